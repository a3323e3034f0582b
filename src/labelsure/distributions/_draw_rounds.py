"""Draws in rounds, until the interval of what was asked is narrow enough.

What a round needs to be is told from the ones before it; the totals are steps of a fixed ladder, so
that instances which need about as many draws stay together. A smaller limit ends the same rounds
earlier: it never makes anything cost more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from labelsure._runtime import limits as _limits
from labelsure._runtime.typing import Floats, Indices, Labelsets
from labelsure.distributions._sampling import MIN_NEW_DRAWS, Sampled
from labelsure.metrics.registry import Metric

STEP = 1.4  # between the totals of the ladder: fewer draws too many, or fewer groups of instances
LONGEST_JUMP = 6.0  # what a first round says of the variance is not to be trusted beyond


class Phase(Protocol):
    """One thing that is asked of draws."""

    def draw(self, sampled: Sampled, n_draws: int) -> Sampled:
        """Return the same with at least so many draws for this, in all."""

    def growth_needed(self, sampled: Sampled) -> Floats:
        """Return how many times as many draws would do, (n,): 1 or less where there are enough."""

    def finish(self, sampled: Sampled) -> Sampled:
        """Return what was drawn, when there are enough."""

    def limit(self, n_draws: int, shared: bool) -> int:
        """Return how many draws this may have, where `n_draws` is the limit for a distribution.

        `shared` says that it is the limit for draws of all kinds together.
        """


def draw_in_phases(
    rows: Indices, sampled: Sampled, phases: Sequence[Phase], limits: Sequence[int]
) -> Iterator[tuple[Indices, Sampled]]:
    """Draw for one phase after the other; yield instances that are finished together.

    Parameters
    ----------
    rows
        (n,) the numbers of the instances.
    sampled
        What was enumerated, and perhaps drawn, of these.
    phases
        What is asked.
    limits
        Draws that each phase may have for an instance.
    """
    if not phases:
        yield rows, sampled
        return
    for some, drawn in _draw_until(rows, sampled, phases[0], limits[0]):
        yield from draw_in_phases(some, phases[0].finish(drawn), phases[1:], limits[1:])


def _draw_until(
    rows: Indices, sampled: Sampled, phase: Phase, limit: int
) -> Iterator[tuple[Indices, Sampled]]:
    waiting = [(rows, sampled, min(_limits.FIRST_DRAWS, limit))]
    while waiting:
        rows, sampled, total = waiting.pop()
        sampled = phase.draw(sampled, total)
        needed = phase.growth_needed(sampled)
        targets = np.full(len(rows), total)
        if total < limit:
            targets[needed > 1] = _climb_ladder(total, needed[needed > 1], limit)
        for target in np.unique(targets):
            mine = np.flatnonzero(targets == target)
            part = sampled if len(mine) == len(rows) else sampled[mine]
            if target == total:
                yield rows[mine], part
            else:
                waiting.append((rows[mine], part, int(target)))


def _climb_ladder(total: int, growth: Floats, limit: int) -> Indices:
    """Return the step of the ladder that is high enough: from the next up to the limit."""
    wanted = total * np.clip(growth, STEP, LONGEST_JUMP)
    step = np.ceil(np.log(wanted / _limits.FIRST_DRAWS) / np.log(STEP) - 1e-9)
    return np.minimum(np.ceil(_limits.FIRST_DRAWS * STEP**step), limit).astype(np.intp)


def _draw_to(sampled: Sampled, n_draws: int) -> Sampled:
    """Draw until there are so many, at least two from each chain."""
    size = max(2, -(-n_draws // len(sampled.chains)))
    return sampled if size <= sampled.size else sampled.draw_more(size - sampled.size)


@dataclass(frozen=True)
class EntropyPhase:
    """Draws for the entropy, whose probabilities are all evaluated.

    Parameters
    ----------
    width
        Of the interval of the normalised entropy.
    """

    width: float

    def draw(self, sampled: Sampled, n_draws: int) -> Sampled:
        """Return the same with at least so many draws."""
        return _draw_to(sampled, n_draws)

    def growth_needed(self, sampled: Sampled) -> Floats:
        """Return how many times as many draws would do, (n,)."""
        half = self.width / 2 * sampled.n_labels * np.log(2)
        growth = sampled.entropy.growth_needed(half)
        # Without enough new draws there is no interval but the guaranteed one.
        few = MIN_NEW_DRAWS / np.maximum(sampled.n_new, 1)
        certain = sampled.enumeration.entropy_width <= self.width
        return np.where(certain, 0.0, np.maximum(growth, few))

    def finish(self, sampled: Sampled) -> Sampled:
        """Leave further draws, for other questions, without their probabilities."""
        return replace(sampled, n_entropy_rounds=len(sampled.rounds))

    def limit(self, n_draws: int, shared: bool) -> int:
        """Return how many draws this may have."""
        return 2 * n_draws // 3 if shared else n_draws


@dataclass(frozen=True)
class CollisionPhase:
    """Draws with squared odds for the collision.

    Parameters
    ----------
    width
        Of the intervals of the normalised collision entropy, and of the collision itself.
    """

    width: float

    def draw(self, sampled: Sampled, n_draws: int) -> Sampled:
        """Return the same with at least so many draws with squared odds."""
        before = 0 if sampled.squared_draws is None else sampled.squared_draws.size
        more = max(2, -(-n_draws // len(sampled.chains))) - before
        return sampled if more <= 0 else sampled.draw_more_squared(more)

    def growth_needed(self, sampled: Sampled) -> Floats:
        """Return how many times as many draws would do, (n,)."""
        found = sampled.squared.estimate()
        of_entropy = sampled.n_labels * np.log(2)
        of_collision = np.exp(np.minimum(-found.value, 700.0))
        half = self.width / 2 * np.minimum(of_entropy, of_collision)
        few = MIN_NEW_DRAWS / np.maximum(sampled.squared.n_new, 1)
        certain = sampled.enumeration.collision_width <= self.width
        return np.where(certain, 0.0, np.maximum(found.growth_needed(half), few))

    def finish(self, sampled: Sampled) -> Sampled:
        """Return what was drawn."""
        return sampled

    def limit(self, n_draws: int, shared: bool) -> int:
        """Return how many draws this may have."""
        return n_draws // 3 if shared else n_draws // 2


@dataclass(frozen=True)
class ExpectedPhase:
    """Draws for the expected accuracies of given labelsets.

    Parameters
    ----------
    width
        Of their intervals.
    metrics, empty
        As for `LabelsetDistribution.expected`.
    guesses
        (N, g, L) of all instances of the batch, or None for the best labelsets enumerated.
    """

    width: float
    metrics: Sequence[Metric]
    empty: float
    guesses: Labelsets | None = None

    def draw(self, sampled: Sampled, n_draws: int) -> Sampled:
        """Return the same with at least so many draws."""
        return _draw_to(sampled, n_draws)

    def growth_needed(self, sampled: Sampled) -> Floats:
        """Return how many times as many draws would do, (n,)."""
        mode = sampled.enumeration.mode()[:, np.newaxis]
        guesses = mode if self.guesses is None else self.guesses[sampled.streams.rows]
        growth = np.zeros(len(guesses))
        for metric in self.metrics:
            for g in range(guesses.shape[1]):
                found = sampled.expected_estimate(metric, guesses[:, g], self.empty)
                growth = np.maximum(growth, found.growth_needed(self.width / 2))
        few = MIN_NEW_DRAWS / np.maximum(sampled.n_new, 1)
        certain = sampled.enumeration.unseen_mass <= self.width
        return np.where(certain, 0.0, np.maximum(growth, few))

    def finish(self, sampled: Sampled) -> Sampled:
        """Return what was drawn."""
        return sampled

    def limit(self, n_draws: int, shared: bool) -> int:
        """Return how many draws this may have."""
        return 2 * n_draws // 3 if shared else n_draws


@dataclass(frozen=True)
class MarginalPhase:
    """Draws for the marginals.

    Parameters
    ----------
    width
        Of the widest of their intervals.
    """

    width: float

    def draw(self, sampled: Sampled, n_draws: int) -> Sampled:
        """Return the same with at least so many draws."""
        return _draw_to(sampled, n_draws)

    def growth_needed(self, sampled: Sampled) -> Floats:
        """Return how many times as many draws would do, (n,)."""
        return np.asarray(sampled.marginal_estimates.growth_needed(self.width / 2).max(axis=1))

    def finish(self, sampled: Sampled) -> Sampled:
        """Return what was drawn."""
        return sampled

    def limit(self, n_draws: int, shared: bool) -> int:
        """Return how many draws this may have."""
        return n_draws
