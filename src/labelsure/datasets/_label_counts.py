"""What the labelsets of a data set count, dense or sparse."""

from __future__ import annotations

from typing import Any

import numpy as np

from labelsure._typing import Integers
from labelsure.labelset_rows import is_sparse, row_keys


def count_instances(Y: Any) -> Integers:
    """Return how many instances have each label, (L,)."""
    if is_sparse(Y):
        return np.bincount(Y.indices, minlength=Y.shape[1])
    return np.asarray(Y.sum(axis=0, dtype=np.int64))


def count_labelsets(Y: Any) -> int:
    """Return how many different labelsets there are."""
    return len(np.unique(row_keys(Y)))
