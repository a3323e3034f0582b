"""Labelsets of data sets, dense or sparse: that they are some, and what they count."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from labelsure._typing import Integers
from labelsure.errors import InputError
from labelsure.labelsets import code_keys


def check_sparse_labelsets(
    Y: Any, *, name: str = "Y", n_samples: int | None = None, n_labels: int | None = None
) -> Any:
    """Return a sparse matrix of labelsets as a CSR array of ones in canonical form.

    Parameters
    ----------
    Y
        A scipy sparse matrix or array of zeros and ones.
    n_samples
        How many rows it must have, where that is known.
    """
    rows = sparse.csr_array(Y, copy=True)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    if rows.shape[1] == 0:
        raise InputError(f"`{name}` must have at least one label, got none.")
    if n_samples is not None and rows.shape[0] != n_samples:
        raise InputError(
            f"`{name}` must have {n_samples} rows, got {rows.shape[0]}. Pass one labelset for each "
            "instance."
        )
    bad = np.flatnonzero(rows.data != 1)
    if len(bad):
        row = int(np.searchsorted(rows.indptr, bad[0], side="right")) - 1
        raise InputError(
            f"`{name}` must contain only 0 and 1, got {rows.data[bad[0]]} in row {row}, column "
            f"{rows.indices[bad[0]]}. Binarise it first, e.g. `(Y > 0).astype(int)`."
        )
    return rows.astype(np.int8)


def count_labels(Y: Any) -> Integers:
    """Return how many instances have each label, (L,)."""
    if sparse.issparse(Y):
        return np.bincount(Y.indices, minlength=Y.shape[1])
    return Y.sum(axis=0, dtype=np.int64)


def count_labelsets(Y: Any) -> int:
    """Return how many different labelsets there are."""
    if not sparse.issparse(Y):
        return len(np.unique(code_keys(Y)))
    ends = Y.indptr.tolist()
    return len({Y.indices[first:last].tobytes() for first, last in pairwise(ends)})
