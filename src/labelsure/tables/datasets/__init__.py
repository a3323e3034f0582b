"""Data sets: any file that people have, the paper's, and some that need no download."""

from labelsure.tables.datasets._built_in import make_labelsets
from labelsure.tables.datasets._catalogue import catalogue, list_datasets, load_dataset
from labelsure.tables.datasets._dataset import Dataset, split_dataset, split_rows
from labelsure.tables.datasets._label_files import read_label_file
from labelsure.tables.datasets._reading import read_dataset

__all__ = [
    "Dataset",
    "catalogue",
    "list_datasets",
    "load_dataset",
    "make_labelsets",
    "read_dataset",
    "read_label_file",
    "split_dataset",
    "split_rows",
]
