"""Sparse labelsets: rows of ones as a `scipy.sparse.csr_array`, several of each instance."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from labelsure._runtime.typing import Labelsets, LabelsetsLike


def is_sparse(Y: LabelsetsLike) -> bool:
    """Whether labelsets are rows of a scipy sparse array or matrix."""
    return bool(issparse(Y))


def sparse_ones(
    indices: NDArray[np.generic], starts: NDArray[np.generic], n_labels: int
) -> Labelsets:
    """Sparse rows of ones, from the labels of all rows one after the other and the row starts."""
    ones = np.ones(len(indices), dtype=np.int8)
    rows = csr_array((ones, indices, starts), shape=(len(starts) - 1, n_labels))
    rows.has_canonical_format = True
    return rows


def make_sparse(Y: LabelsetsLike) -> Labelsets:
    """Checked labelsets as sparse rows of ones; `Y` itself where it is in that form.

    Examples
    --------
    >>> make_sparse(np.array([[0, 1, 1], [0, 0, 0]], dtype=np.int8)).indices
    array([1, 2], dtype=int32)
    """
    rows = csr_array(Y)
    is_ones = rows.dtype == np.int8 and bool((rows.data == 1).all())
    if is_ones and rows.has_canonical_format:
        return rows
    rows = csr_array(Y, dtype=np.int8, copy=True)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    return sparse_ones(rows.indices, rows.indptr, rows.shape[1])


class StackedLabelsets:
    """Several sparse labelsets for each instance, the counterpart of a dense (n, g, L) array.

    Parameters
    ----------
    rows
        (n * g, L) sparse rows, those of an instance one after the other.
    n_each
        g, the number of labelsets of each instance.

    Examples
    --------
    >>> rows = make_sparse(np.eye(4, dtype=np.int8))
    >>> stacked = StackedLabelsets(rows, 2)
    >>> stacked.shape, stacked[:, 1].indices, stacked[1].indices
    ((2, 2, 4), array([1, 3], dtype=int32), array([2, 3], dtype=int32))
    """

    ndim = 3

    def __init__(self, rows: Labelsets, n_each: int) -> None:
        self.rows = rows
        self.n_each = n_each

    @property
    def shape(self) -> tuple[int, int, int]:
        """Instances, labelsets of each, labels."""
        n_rows, n_labels = self.rows.shape
        return n_rows // max(1, self.n_each), self.n_each, n_labels

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, at: int | tuple[slice, int]) -> Labelsets:
        """All labelsets of an instance, `[i]`, or one of each instance, `[:, rank]`."""
        numbers = np.arange(self.rows.shape[0]).reshape(self.shape[:2])
        return self.rows[numbers[at]]
