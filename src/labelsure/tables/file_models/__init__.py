"""Models from files and for files: trained on a table, or around another system's predictions."""

from labelsure.tables.file_models._calibrating import calibrate_model
from labelsure.tables.file_models._described_files import DescribedFile, describe_file
from labelsure.tables.file_models._input_table import InputTable
from labelsure.tables.file_models._training import train_model

__all__ = ["DescribedFile", "InputTable", "calibrate_model", "describe_file", "train_model"]
