"""Weights of instances: checked, and handed to base learners that take them."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.pipeline import Pipeline
from sklearn.utils import check_array
from sklearn.utils.validation import has_fit_parameter

from labelsure._typing import Floats
from labelsure.errors import InputError


def check_weights(sample_weight: Any, n_samples: int) -> Floats:
    """Return one weight for each instance, some of them above 0, or say what is wrong with them."""
    weights: Floats = check_array(
        sample_weight,
        ensure_2d=False,
        dtype=np.float64,
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


def weight_argument(estimator: Any) -> str | None:
    """Return the argument of `fit` that takes sample weights; None where there is none.

    A pipeline hands them to its last step, or where metadata routing says.
    """
    if has_fit_parameter(estimator, "sample_weight"):
        return "sample_weight"
    if not isinstance(estimator, Pipeline):
        return None
    if get_config()["enable_metadata_routing"]:
        return "sample_weight"
    name, last = estimator.steps[-1]
    inner = weight_argument(last)
    return None if inner is None else f"{name}__{inner}"


def check_takes_weights(estimator: Any) -> None:
    """Refuse sample weights that the base learner could not use."""
    if weight_argument(estimator) is None:
        raise InputError(
            "`sample_weight` must be None, because the base learner "
            f"{type(estimator).__name__} does not take weights. Use one whose `fit` does, or "
            "draw rows in proportion to the weights."
        )
