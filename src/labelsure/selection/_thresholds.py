"""Thresholds, and which of them are proved to reach a target.

A p-value is for "the mean accuracy of what this threshold accepts is below the target", and a
family says how many thresholds share one chance of error.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import xlogy
from scipy.stats import binom

from labelsure._typing import Floats, Indices, Mask
from labelsure.errors import InputError
from labelsure.metrics import align_values, check_accuracies

N_STARTS = 4  # of the sequences of tests
ROUNDING = 1e-9  # a sum of accuracies this close below a whole number is that number


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
    accuracy = align_values(accuracy, score, name="accuracy", beside="`score`")
    scores = check_score(score)
    if np.shape(accuracy) != scores.shape:
        raise InputError(
            f"`accuracy` must have one entry for each of the {len(scores)} scores, got shape "
            f"{np.shape(accuracy)}."
        )
    return scores, check_accuracies(accuracy, "accuracy")


PValue = Callable[[Any, Any, Any], Floats]


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


class Family(ABC):
    """A way to test many thresholds so that a false pass happens with probability `error`."""

    @abstractmethod
    def grid(self) -> Floats:
        """Return rising thresholds for estimated accuracies, the same for all data."""

    @abstractmethod
    def entries(self, grid: Floats, target: float) -> Indices:
        """Return the thresholds that are tested whatever becomes of the others."""

    @abstractmethod
    def single_level(self, grid: Floats, target: float, error: float) -> float:
        """Return what the p-value of a single threshold is compared with."""

    @abstractmethod
    def passed(self, p_values: Floats, grid: Floats, target: float, error: float) -> Mask:
        """Return which thresholds pass."""


class Bonferroni(Family):
    """Each threshold gets an equal part of the error: a coarse grid keeps the parts large."""

    def grid(self) -> Floats:
        """Return 0, 0.05, ..., 0.95."""
        return np.round(np.arange(20) / 20, 12)

    def entries(self, grid: Floats, target: float) -> Indices:
        """Return all."""
        return np.arange(len(grid))

    def single_level(self, grid: Floats, target: float, error: float) -> float:
        """Return the error over the full size of the grid."""
        return error / len(grid)

    def passed(self, p_values: Floats, grid: Floats, target: float, error: float) -> Mask:
        """Return which thresholds pass."""
        return p_values <= self.single_level(grid, target, error)


class Sequences(Family):
    """From a few starting points downwards, each threshold at full level until one fails.

    The starting points share the error equally. As scores are estimates of accuracy, they lie at
    and around the target, where a threshold passes if the estimates are any good. A finer grid
    costs nothing.
    """

    def grid(self) -> Floats:
        """Return 0, 0.01, ..., 0.99."""
        return np.round(np.arange(100) / 100, 12)

    def single_level(self, grid: Floats, target: float, error: float) -> float:
        """Return the error over the number of starting points."""
        return error / len(self.entries(grid, target))

    def entries(self, grid: Floats, target: float) -> Indices:
        """Return the starting points."""
        wanted = np.round(target + (1 - target) * (np.arange(N_STARTS) - 1) / N_STARTS, 12)
        return np.unique(np.clip(np.searchsorted(grid, wanted), 0, len(grid) - 1))

    def passed(self, p_values: Floats, grid: Floats, target: float, error: float) -> Mask:
        """Return which thresholds pass."""
        below = p_values <= self.single_level(grid, target, error)
        passed = np.zeros(len(grid), dtype=bool)
        for start in self.entries(grid, target):
            fails = np.flatnonzero(~below[: start + 1])
            passed[fails[-1] + 1 if fails.size else 0 : start + 1] = True
        return passed


FAMILIES: dict[str, Family] = {"sequences": Sequences(), "bonferroni": Bonferroni()}
