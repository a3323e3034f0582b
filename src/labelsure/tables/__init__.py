"""Tables: data sets, files in and files out, column roles, scoring runs.

May depend on `model` and what is below it.
"""

from labelsure.tables.features import TableColumns
from labelsure.tables.predictions import PredictionColumns

__all__ = ["PredictionColumns", "TableColumns"]
