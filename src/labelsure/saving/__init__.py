"""Fitted models on disk, without pickle, checked before anything is built.

May depend on `metrics` and what is below it.
"""

from labelsure.saving._model_files import CompactState, Savable, damaged, load, read_description
from labelsure.saving._schema import OWN_TYPES

__all__ = ["OWN_TYPES", "CompactState", "Savable", "damaged", "load", "read_description"]
