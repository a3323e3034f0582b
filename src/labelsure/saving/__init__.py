"""Models on disk, without pickle: one file format for everything that has a `save`."""

from labelsure._storage import name_classes_publicly
from labelsure.saving._file_format import damaged
from labelsure.saving._savable import Savable, load, read_description

__all__ = [
    "Savable",
    "damaged",
    "load",
    "read_description",
]

name_classes_publicly(__name__)
