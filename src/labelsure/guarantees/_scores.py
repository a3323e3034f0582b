"""Checks of what a policy is given: scores, accuracies, groups, shares, thresholds."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelsure._runtime.typing import Floats
from labelsure.errors import InputError
from labelsure.labelsets.index import align_values, read_groups
from labelsure.labelsets.rows import index_of, refuse_masked
from labelsure.metrics.registry import check_accuracies


def check_score(score: Any) -> Floats:
    """Return scores as an (n,) array without NaN, or say what is wrong."""
    refuse_masked(score, "score")
    values = np.asarray(score, dtype=np.float64)
    if values.ndim != 1:
        raise InputError(f"`score` must be one number for each instance, got shape {values.shape}.")
    if np.isnan(values).any():
        raise InputError(
            f"`score` must not be missing, got NaN in row {np.flatnonzero(np.isnan(values))[0]}."
        )
    return values


def check_scored(score: Any, accuracy: Any) -> tuple[Floats, Floats]:
    """Return scores and as many accuracies in [0, 1], or say what is wrong."""
    accuracy = align_values(accuracy, index_of(score), name="accuracy", beside="`score`")
    scores = check_score(score)
    if np.shape(accuracy) != scores.shape:
        raise InputError(
            f"`accuracy` must have one entry for each of the {len(scores)} scores, got shape "
            f"{np.shape(accuracy)}."
        )
    return scores, check_accuracies(accuracy, "accuracy")


def check_groups(
    groups: Any, index: Any, n_samples: int, beside: str = "`score`"
) -> NDArray[np.str_]:
    """Return the group of each instance by name, in the order of an index, or refuse them."""
    names = np.asarray(align_values(groups, index, name="groups", beside=beside))
    if names.shape != (n_samples,):
        raise InputError(
            f"`groups` must have one entry for each of the {n_samples} instances, got shape "
            f"{names.shape}."
        )
    return read_groups(names, "groups")


def check_share(name: str, value: Any, *, one: bool = False) -> None:
    """Refuse what is no number between 0 and 1; 1 itself is allowed by `one`."""
    is_number = isinstance(value, (int, float, np.number))
    if not is_number or not (0 < value < 1 or (one and value == 1)):
        ends = "above 0 and at most 1" if one else "between 0 and 1, both excluded"
        raise InputError(f"`{name}` must be a number {ends}, got {value!r}.")


def check_grid(grid: Any) -> Floats:
    """Return rising thresholds, or say what is wrong with them."""
    thresholds = np.unique(np.asarray(grid, dtype=np.float64))
    if thresholds.ndim != 1 or thresholds.size == 0 or not np.isfinite(thresholds).all():
        raise InputError(
            f"`grid` must be a list of finite thresholds, got {grid!r}. None takes thresholds on "
            "[0, 1]."
        )
    return thresholds
