"""Families of thresholds: how several tests share one chance of error.

The p-value of a threshold is for "the mean accuracy of what it accepts is at most the target".
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np

from labelsure._runtime.typing import Floats, Indices, Mask

STARTS = (0.25, 0.0)
"""Where sequences start, as parts of the way from the target to 1."""


PValue = Callable[[int], float]
"""The p-value of the threshold at this place of the grid."""


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
    def passed(self, p_value: PValue, grid: Floats, target: float, error: float) -> Mask:
        """Return which thresholds pass; `p_value` is asked for those that are tested alone."""


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

    def passed(self, p_value: PValue, grid: Floats, target: float, error: float) -> Mask:
        """Return which thresholds pass."""
        level = self.single_level(grid, target, error)
        return np.array([p_value(i) <= level for i in range(len(grid))])


class Sequences(Family):
    """From a few starting points downwards, threshold by threshold until one fails.

    The starting points, the target and one above it, share the error equally. What a starting
    point has is handed down from threshold to threshold as long as they pass, and is added to
    that of the next starting point when it gets there (the fallback procedure of Wiens and
    Dmitrienko). As scores are estimates of accuracy, thresholds from the target on pass if the
    estimates are any good. A finer grid costs nothing.
    """

    def grid(self) -> Floats:
        """Return 0, 0.01, ..., 0.99."""
        return np.round(np.arange(100) / 100, 12)

    def single_level(self, grid: Floats, target: float, error: float) -> float:
        """Return the error over the number of starting points."""
        return error / len(self.entries(grid, target))

    def entries(self, grid: Floats, target: float) -> Indices:
        """Return the starting points."""
        wanted = np.round(target + (1 - target) * np.array(STARTS), 12)
        return np.unique(np.clip(np.searchsorted(grid, wanted), 0, len(grid) - 1))

    def passed(self, p_value: PValue, grid: Floats, target: float, error: float) -> Mask:
        """Return which thresholds pass."""
        own = np.zeros(len(grid))
        own[self.entries(grid, target)] = self.single_level(grid, target, error)
        passed = np.zeros(len(grid), dtype=bool)
        handed_down = 0.0
        for i in range(len(grid) - 1, -1, -1):
            level = own[i] + handed_down
            passed[i] = level > 0 and p_value(i) <= level
            handed_down = level if passed[i] else 0.0
        return passed


FAMILIES: dict[str, Family] = {"sequences": Sequences(), "bonferroni": Bonferroni()}
