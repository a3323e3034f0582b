"""Models on disk, without pickle: one file format for everything that has a `save`."""

from labelsure._storage import name_classes_publicly
from labelsure.saving._fitted_attributes import expect, is_array, is_count, is_number
from labelsure.saving._savable import Savable, load

__all__ = ["Savable", "expect", "is_array", "is_count", "is_number", "load"]

name_classes_publicly(__name__)
