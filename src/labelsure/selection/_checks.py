"""Scores and accuracies, checked."""

from __future__ import annotations

from typing import Any

import numpy as np

from labelsure._typing import Floats
from labelsure.errors import InputError


def check_score(score: Any) -> Floats:
    """Return scores as an (n,) array without NaN, or say what is wrong."""
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
    scores = check_score(score)
    values = np.asarray(accuracy, dtype=np.float64)
    if values.shape != scores.shape:
        raise InputError(
            f"`accuracy` must have one entry for each of the {len(scores)} scores, got shape "
            f"{values.shape}."
        )
    outside = ~((values >= 0) & (values <= 1))
    if outside.any():
        raise InputError(
            f"`accuracy` must lie in [0, 1], got {values[outside][0]} in row "
            f"{np.flatnonzero(outside)[0]}."
        )
    return scores, values
