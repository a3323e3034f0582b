"""P-values for "the mean accuracy is below the target", valid at every sample size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import xlogy
from scipy.stats import binom

from labelsure._typing import Floats

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
    hoeffding = np.exp(-n * _divergence(np.minimum(loss, limit), limit))
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


def n_needed(mean: Any, target: float, level: float) -> Floats:
    """Return how many accepted instances with these mean accuracies pass either test for sure.

    It is Hoeffding's bound solved for the number; infinite where the mean is not above the target.

    Parameters
    ----------
    mean
        Means of accuracies.
    target
        The mean to be shown.
    level
        The p-value that passes.
    """
    loss, limit = 1 - np.asarray(mean, dtype=np.float64), 1 - target
    divergence = np.where(loss < limit, _divergence(loss, limit), 0.0)
    needed = np.full(divergence.shape, np.inf)
    np.divide(-np.log(level), divergence, out=needed, where=divergence > 0)
    return np.ceil(needed)


def _divergence(a: Any, b: Any) -> Floats:
    """Return the Kullback-Leibler divergence of a coin with rate a from one with rate b."""
    return xlogy(a, a) - xlogy(a, b) + xlogy(1 - a, 1 - a) - xlogy(1 - a, 1 - b)
