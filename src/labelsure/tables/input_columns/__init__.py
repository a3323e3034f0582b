"""What the columns of a table are for a model: features of any type, or another system's output."""

from labelsure.tables.input_columns._column_values import refuse_missing_columns
from labelsure.tables.input_columns._inferred_roles import ROLES, ColumnRole, infer_roles
from labelsure.tables.input_columns._listed_predictions import LabelPlaces, all_listed_labels
from labelsure.tables.input_columns._prediction_columns import PredictionColumns
from labelsure.tables.input_columns._prediction_layouts import (
    ANSWERS,
    CELLS,
    LABELS,
    LISTED,
    LISTS,
    SCORES,
    Layout,
    OddAnswers,
    all_labels_in_answers,
    check_lists_labels,
    find_layout,
)
from labelsure.tables.input_columns._table_columns import TableColumns

__all__ = [
    "ANSWERS",
    "CELLS",
    "LABELS",
    "LISTED",
    "LISTS",
    "ROLES",
    "SCORES",
    "ColumnRole",
    "LabelPlaces",
    "Layout",
    "OddAnswers",
    "PredictionColumns",
    "TableColumns",
    "all_labels_in_answers",
    "all_listed_labels",
    "check_lists_labels",
    "find_layout",
    "infer_roles",
    "refuse_missing_columns",
]
