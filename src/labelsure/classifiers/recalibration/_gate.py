"""The gate of a recalibration: cross-validated gain in log P(truth), with an interval."""

from __future__ import annotations

import numpy as np
from scipy.special import stdtrit

from labelsure._runtime.typing import Floats

N_FOLDS = 5
LEVEL = 0.95


def passes(gain_low: float) -> bool:
    """Whether a recalibration is kept, by the lower end of the interval of its mean gain."""
    return gain_low > 0


def mean_interval(values: Floats, weights: Floats | None = None) -> tuple[float, float, float]:
    """Return the mean and the ends of its 95 % interval, by Student's t.

    Examples
    --------
    >>> mean_interval(np.array([1.0, 2.0, 3.0, 4.0]))
    (2.5, 0.445..., 4.554...)
    """
    mean = float(np.average(values, weights=weights))
    if weights is None:
        error = float(values.std(ddof=1)) / len(values) ** 0.5
    else:
        squares = float(((weights * (values - mean)) ** 2).sum()) * len(values) / (len(values) - 1)
        error = squares**0.5 / float(weights.sum())
    half = n_standard_errors(len(values)) * error
    return mean, mean - half, mean + half


def n_standard_errors(n_values: int) -> float:
    """Return how many standard errors the end of the interval is from the mean."""
    return float(stdtrit(n_values - 1, (1 + LEVEL) / 2))
