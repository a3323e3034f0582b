"""How many thresholds share one chance of error."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from labelsure._typing import Floats, Indices, Mask

N_STARTS = 4


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
