"""Labelsets: dense and sparse rows, label names and alignment, codes, weighted rows.

May depend on `_kernels`, `_runtime` and `errors`. Every labelset that a user passes enters here.
"""

from labelsure.labelsets.rows import from_indices, to_indices, to_names

__all__ = ["from_indices", "to_indices", "to_names"]
