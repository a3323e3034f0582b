"""Rows of labelsets, dense or sparse: conversion to sparse rows of ones, counts, comparisons."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse, vstack

from labelsure._runtime.typing import Integers, Labelsets, LabelsetsLike, Mask


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


def count_labels(Y: Labelsets) -> Integers:
    """Number of labels of each labelset, (n,).

    Examples
    --------
    >>> count_labels(np.array([[1, 0, 1], [0, 0, 0]], dtype=np.int8))
    array([2, 0])
    """
    if is_sparse(Y):
        return np.diff(Y.indptr).astype(np.int64)  # type: ignore[attr-defined]
    return Y.sum(axis=1, dtype=np.int64)


def count_shared(first: Labelsets, second: Labelsets) -> Integers:
    """Number of labels that two labelsets have in common, row by row, (n,).

    Examples
    --------
    >>> some, others = (np.array(rows, dtype=np.int8) for rows in ([[1, 1, 0]], [[1, 0, 1]]))
    >>> count_shared(some, others)
    array([1])
    """
    if not is_sparse(first) and not is_sparse(second):
        return (first & second).sum(axis=1)
    shared = make_sparse(first).multiply(make_sparse(second))  # type: ignore[attr-defined]
    return count_labels(csr_array(shared))


def differing_rows(first: Labelsets, second: Labelsets) -> Mask:
    """Whether two labelsets differ, row by row, (n,)."""
    if not is_sparse(first) and not is_sparse(second):
        return (first != second).any(axis=1)
    shared = count_shared(first, second)
    return (shared != count_labels(first)) | (shared != count_labels(second))


def no_labels(Y: Labelsets) -> Labelsets:
    """Empty labelsets, one for each row, in the same form."""
    if is_sparse(Y):
        return csr_array(Y.shape, dtype=np.int8)
    return np.zeros_like(Y)


def stack_rows(parts: Sequence[Labelsets]) -> Labelsets:
    """Rows of several labelsets below each other, sparse if one of them is."""
    if not any(is_sparse(part) for part in parts):
        return np.concatenate(parts)
    return make_sparse(vstack([make_sparse(part) for part in parts], format="csr"))


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
