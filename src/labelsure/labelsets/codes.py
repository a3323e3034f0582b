"""Codes of labelsets, dense and sparse: integers that order labelsets, keys that compare like them.

The *code* of a labelset has the same bits, label 0 being the lowest: an integer up to 63 labels, a
row of packed bytes beyond.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from labelsure._runtime.typing import Integers, Labelsets
from labelsure.labelsets.sparse import is_sparse

MAX_INTEGER_LABELS = 63
"""Up to this many labels a code is an int64; beyond, a row of packed bytes."""


def codes_of(rows: Labelsets) -> NDArray[np.generic]:
    """Code of each row: (n,) int64 up to 63 labels, (n, ceil(L/8)) uint8 beyond.

    Examples
    --------
    >>> codes_of(np.array([[1, 0, 0], [0, 1, 1]], dtype=np.int8))
    array([1, 6])
    """
    if rows.shape[1] > MAX_INTEGER_LABELS:
        return np.packbits(rows.view(np.uint8), axis=1, bitorder="little")
    return rows.astype(np.int64) @ (np.int64(1) << np.arange(rows.shape[1], dtype=np.int64))


def from_codes(codes: ArrayLike, n_labels: int) -> Labelsets:
    """Labelsets of `codes`, (n, L): the inverse of `codes_of`.

    Examples
    --------
    >>> from_codes([1, 6], n_labels=3)
    array([[1, 0, 0],
           [0, 1, 1]], dtype=int8)
    """
    array = np.asarray(codes)
    if n_labels > MAX_INTEGER_LABELS:
        bits = np.unpackbits(array, axis=1, bitorder="little")
        return np.ascontiguousarray(bits[:, :n_labels]).view(np.int8)
    array = array.astype(np.int64)
    return ((array[:, np.newaxis] >> np.arange(n_labels)) & 1).astype(np.int8)


def code_keys(Y: Labelsets) -> NDArray[np.generic]:
    """Key of each row, (n,), that sorts and compares like its code, at any L."""
    if Y.shape[1] <= MAX_INTEGER_LABELS:
        return codes_of(Y)
    highest_first = np.ascontiguousarray(codes_of(Y)[:, ::-1])
    return highest_first.view(f"S{highest_first.shape[1]}").ravel()


def key_sparse_rows(Y: Labelsets) -> NDArray[np.generic]:
    """Key of each sparse row, (n,), that sorts like its code: its labels, the last one first."""
    starts = Y.indptr  # type: ignore[attr-defined]
    labels = Y.indices.astype(">i8")  # type: ignore[attr-defined]
    keys = np.empty(Y.shape[0], dtype=object)
    for i in range(len(keys)):
        keys[i] = labels[starts[i] : starts[i + 1]][::-1].tobytes()
    return keys


def row_keys(Y: Labelsets) -> NDArray[np.generic]:
    """Key of each row, dense or sparse, (n,), that sorts and compares like its code."""
    return key_sparse_rows(Y) if is_sparse(Y) else code_keys(Y)


def fill_with_lowest(rows: Labelsets, n_filled: Integers) -> None:
    """Fill (m, k, L) rows in place, each from its `n_filled` on, with the lowest missing codes."""
    n_rows, n_labels = rows.shape[1:]
    n_bits = max(1, (n_rows - 1).bit_length())  # 2**n_bits codes contain enough missing ones
    bits = np.arange(n_bits)
    for n_present in np.unique(n_filled[n_filled < n_rows]).tolist():
        indices = np.flatnonzero(n_filled == n_present)
        present = rows[indices, :n_present]
        row, rank = np.nonzero(~present[:, :, n_bits:].any(axis=2))
        is_present = np.zeros((len(indices), 2**n_bits), dtype=bool)
        is_present[row, present[row, rank, :n_bits] @ (1 << bits)] = True
        codes = np.argsort(is_present, axis=1, kind="stable")[:, : n_rows - n_present]
        missing = np.zeros((*codes.shape, n_labels), dtype=np.int8)
        missing[:, :, :n_bits] = codes[:, :, np.newaxis] >> bits & 1
        rows[indices, n_present:] = missing
