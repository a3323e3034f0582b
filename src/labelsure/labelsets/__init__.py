"""Labelsets: dense and sparse rows, label names and alignment, codes, weighted rows.

May depend on `_kernels`, `_runtime` and `errors`. Every labelset that a user passes enters here.
"""

from labelsure.labelsets.lists import from_indices, to_indices, to_names
from labelsure.labelsets.names import NamedLabelsets, read_labelsets

__all__ = ["NamedLabelsets", "from_indices", "read_labelsets", "to_indices", "to_names"]
