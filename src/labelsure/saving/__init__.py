"""Fitted models on disk, without pickle: one file format for everything that has a `save`.

May depend on `metrics` and what is below it.
"""

from labelsure.saving._file_format import damaged
from labelsure.saving._savable import Savable, load, read_description

__all__ = [
    "Savable",
    "damaged",
    "load",
    "read_description",
]
