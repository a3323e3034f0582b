"""Counts and comparisons of labelsets row by row, dense and sparse."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_array, vstack

from labelsure._runtime.typing import Integers, Labelsets, Mask
from labelsure.labelsets.sparse import is_sparse, make_sparse


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
