"""Models on disk, without pickle: one file format for everything that has a `save`."""

from labelsure._storage import name_classes_publicly
from labelsure.saving._file_format import damaged
from labelsure.saving._fitted_attributes import (
    are_alike,
    are_counted,
    expect,
    is_array,
    is_count,
    is_number,
)
from labelsure.saving._savable import Savable, load, read_description

__all__ = [
    "Savable",
    "are_alike",
    "are_counted",
    "damaged",
    "expect",
    "is_array",
    "is_count",
    "is_number",
    "load",
    "read_description",
]

name_classes_publicly(__name__)
