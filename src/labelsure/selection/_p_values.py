"""P-values for "the mean accuracy is below the target", valid at every sample size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy
from scipy.stats import binom

Floats = NDArray[np.float64]
PValue = Callable[[Any, Any, Any], Floats]

ROUNDING = 1e-9  # a sum of accuracies this close below a whole number is that number


def hoeffding_bentkus(total: Any, n_samples: Any, target: Any) -> Floats:
    """Return the p-value for accuracies anywhere in [0, 1].

    The smaller of Hoeffding's bound and Bentkus's, which is e times a binomial tail: both bound
    the chance of so large a mean when the true mean is below the target.

    Parameters
    ----------
    total
        Sums of accuracies.
    n_samples
        How many there are in each.
    target
        The mean to be shown.
    """
    total, n_samples = np.asarray(total, dtype=np.float64), np.asarray(n_samples)
    n = np.maximum(n_samples, 1)
    loss, limit = np.clip(1 - total / n, 0, 1), 1 - np.asarray(target, dtype=np.float64)
    below = np.minimum(loss, limit)
    divergence = xlogy(below, below) - xlogy(below, limit)
    divergence += xlogy(1 - below, 1 - below) - xlogy(1 - below, 1 - limit)
    hoeffding = np.exp(-n * divergence)
    n_losses = np.ceil(n * loss - ROUNDING)
    bentkus = np.e * binom.cdf(n_losses, n, limit)
    return np.where(n_samples == 0, 1.0, np.minimum(1.0, np.minimum(hoeffding, bentkus)))


def exact_binomial(total: Any, n_samples: Any, target: Any) -> Floats:
    """Return the p-value for accuracies that are 0 or 1: the binomial tail itself."""
    n_samples = np.asarray(n_samples)
    n_losses = n_samples - np.round(np.asarray(total, dtype=np.float64))
    p = binom.cdf(n_losses, np.maximum(n_samples, 1), 1 - np.asarray(target))
    return np.where(n_samples == 0, 1.0, p)


TESTS: dict[str, PValue] = {"bounded": hoeffding_bentkus, "binary": exact_binomial}
"""The test for each kind of outcome."""


def n_needed(mean: float, target: float, level: float, test: PValue) -> float:
    """Return how many accepted instances with this mean accuracy would pass; infinite if none.

    Parameters
    ----------
    mean
        Of the accuracies.
    target
        The mean to be shown.
    level
        The p-value that passes.
    test
        One of `TESTS`.
    """
    if mean <= target:
        return np.inf
    low, high = 1, 2
    while test(high * mean, high, target) > level:
        low, high = high, 2 * high
        if high > 2**40:
            return np.inf
    while high - low > 1:
        middle = (low + high) // 2
        if test(middle * mean, middle, target) > level:
            low = middle
        else:
            high = middle
    return float(high)
