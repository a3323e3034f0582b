"""Weights of instances, as scikit-learn's `fit` takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from labelsure._runtime.typing import Floats
from labelsure.errors import InputError
from labelsure.labelsets.index import align_values
from labelsure.labelsets.rows import refuse_masked

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["check_weights"]


def check_weights(sample_weight: Any, n_samples: int, index: pd.Index | None = None) -> Floats:
    """Return one weight for each instance, some of them above 0, or say what is wrong with them.

    Those of a Series are brought into the order of the instances' `index`.

    Examples
    --------
    >>> check_weights([1, 2, 0], 3)
    array([1., 2., 0.])
    """
    from sklearn.utils import check_array  # here, because it takes long to load

    refuse_masked(sample_weight, "sample_weight")
    sample_weight = align_values(sample_weight, index, name="sample_weight", beside="the instances")
    weights: Floats = check_array(
        sample_weight,
        ensure_2d=False,
        dtype=float,
        input_name="sample_weight",
        ensure_min_samples=0,
    )
    if weights.shape != (n_samples,):
        raise InputError(
            f"`sample_weight` must be a vector of {n_samples} weights, one for each instance, got "
            f"shape {weights.shape}."
        )
    if (weights < 0).any():
        raise InputError(
            f"`sample_weight` must not be negative, got {weights.min()} in row "
            f"{weights.argmin()}. Drop such rows, or give them weight 0."
        )
    if not weights.any():
        raise InputError(
            "`sample_weight` must have a weight above zero, got zeros only. "
            "Pass None to weigh all instances alike."
        )
    return weights
