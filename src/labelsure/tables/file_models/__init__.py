"""Models from files and for files: trained on a table, or around another system's predictions."""

from labelsure.tables.file_models._calibrating import calibrate_model
from labelsure.tables.file_models._described_files import DescribedFile, describe_file
from labelsure.tables.file_models._input_table import InputTable
from labelsure.tables.file_models._table_classifiers import CLASSIFIERS
from labelsure.tables.file_models._training import HELD_OUT, train_model
from labelsure.tables.file_models._truth_tables import join_truth, read_truth

__all__ = [
    "CLASSIFIERS",
    "HELD_OUT",
    "DescribedFile",
    "InputTable",
    "calibrate_model",
    "describe_file",
    "join_truth",
    "read_truth",
    "train_model",
]
