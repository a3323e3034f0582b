"""What the columns of a table are for a model: features of any type, or another system's output."""

from labelsure.tables.input_columns._inferred_roles import ColumnRole, infer_roles
from labelsure.tables.input_columns._prediction_columns import PredictionColumns
from labelsure.tables.input_columns._table_columns import TableColumns

__all__ = ["ColumnRole", "PredictionColumns", "TableColumns", "infer_roles"]
