"""Scores of labelsets, from which regions follow: the higher, the less the model expects it.

A score rises as the probability of the labelset falls, for one and the same instance. So the region
of all labelsets with a score of at most q holds those with at least some probability: a threshold
for each instance.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from zlib import crc32

import numpy as np

from labelsure._runtime import limits as _limits
from labelsure._runtime.typing import Floats, Labelsets
from labelsure.distributions._bridge import LabelsetDistribution

SLACK = 16 * _limits.TIE
"""Log-probabilities that differ by less are equal: they are computed in different ways. Where it
matters a labelset is in the region, which only raises the coverage."""


KEY_DIGITS = 9  # of the log-probability of no label, by which draws of an instance are seeded


class RegionScore(ABC):
    """A way to score the labelsets of an instance."""

    @abstractmethod
    def score(self, source: LabelsetDistribution, Y: Labelsets, seed: int | None) -> Floats:
        """Return the score of one labelset for each instance, (n,)."""

    @abstractmethod
    def log_thresholds(
        self, source: LabelsetDistribution, quantiles: Floats, seed: int | None
    ) -> Floats:
        """Return the least log-probability of a labelset whose score is at most the quantile, (n,).

        -inf where all labelsets are in the region, inf where none is.
        """


class ProbabilityScore(RegionScore):
    """-log P(y): regions of all labelsets that are probable enough, small where one stands out."""

    def score(self, source: LabelsetDistribution, Y: Labelsets, seed: int | None) -> Floats:
        """Return -log P(y)."""
        return -source.log_prob(Y)

    def log_thresholds(
        self, source: LabelsetDistribution, quantiles: Floats, seed: int | None
    ) -> Floats:
        """Return the negative of the quantiles."""
        return lower_by_rounding(-quantiles)


class MassScore(RegionScore):
    """The mass of all labelsets that are more probable: regions large where nothing stands out.

    Labelsets that are equally probable are in the region together: a random share of their mass
    would make it smaller, and would have to be drawn for each instance by itself, also where
    instances come one at a time. The masses are exact where all labelsets can be written out, and
    otherwise shares among draws, which are seeded by the distribution of the instance itself.

    Parameters
    ----------
    n_draws
        For each instance, where not all labelsets can be written out.
    """

    def __init__(self, n_draws: int = 500) -> None:
        self.n_draws = n_draws

    def score(self, source: LabelsetDistribution, Y: Labelsets, seed: int | None) -> Floats:
        """Return the mass above."""
        scores = np.empty(len(source))
        for rows, logs, weights in self._ranked(source, seed):
            own = source[rows].log_prob(Y[rows])[:, np.newaxis]
            scores[rows] = np.where(logs > own + _slack(own), weights, 0.0).sum(axis=1)
        return scores

    def log_thresholds(
        self, source: LabelsetDistribution, quantiles: Floats, seed: int | None
    ) -> Floats:
        """Return the probability down to which the mass above stays in bounds."""
        thresholds = np.empty(len(source))
        for rows, logs, weights in self._ranked(source, seed):
            order = np.argsort(-logs, axis=1, kind="stable")
            logs = np.take_along_axis(logs, order, axis=1)
            weights = np.take_along_axis(np.broadcast_to(weights, logs.shape), order, axis=1)
            found = _last_within(logs, weights, quantiles[rows])
            if not _is_written_out(source.n_labels):  # what was not drawn may be less probable
                found[weights.sum(axis=1) <= quantiles[rows]] = -np.inf
            thresholds[rows] = found
        return thresholds

    def _ranked(
        self, source: LabelsetDistribution, seed: int | None
    ) -> Iterator[tuple[slice, Floats, Floats]]:
        """Yield some instances at a time, with log-probabilities and the weight of each."""
        if _is_written_out(source.n_labels):
            bytes_each = 8 * 2**source.n_labels
            for rows in _limits.cut_rows(len(source), bytes_each, _limits.DECISION_BYTES):
                P = source[rows].probabilities()
                with np.errstate(divide="ignore"):
                    yield rows, np.log(P), P
            return
        bytes_each = self.n_draws * source.n_labels
        for rows in _limits.cut_rows(len(source), bytes_each, _limits.DECISION_BYTES):
            some = source[rows]
            empty = np.zeros((len(some), source.n_labels), dtype=np.int8)
            keys = [crc32(np.round(own, KEY_DIGITS).tobytes()) for own in some.log_prob(empty)]
            generators = [np.random.default_rng([seed or 0, key]) for key in keys]
            draws = np.concatenate(
                [some[i].sample(self.n_draws, rng) for i, rng in enumerate(generators)]
            )
            logs = np.stack([some.log_prob(draws[:, i]) for i in range(self.n_draws)], axis=1)
            yield rows, logs, np.full(logs.shape, 1 / self.n_draws)


def _is_written_out(n_labels: int) -> bool:
    return n_labels <= _limits.CHEAP_DENSE_LABELS


def _last_within(logs: Floats, weights: Floats, quantiles: Floats) -> Floats:
    """Return the least log-probability above which the mass is at most the quantile.

    Parameters
    ----------
    logs, weights
        (n, k) of what labelsets are compared with, the most probable first.
    quantiles
        (n,) the most that a score may be, not below 0.
    """
    is_first = np.ones(logs.shape, dtype=bool)  # of those that are equally probable
    is_first[:, 1:] = logs[:, 1:] < logs[:, :-1] - _slack(logs[:, :-1])
    before = np.cumsum(weights, axis=1) - weights
    above = np.maximum.accumulate(np.where(is_first, before, 0.0), axis=1)
    last = (above <= quantiles[:, np.newaxis]).sum(axis=1) - 1
    return lower_by_rounding(np.take_along_axis(logs, last[:, np.newaxis], axis=1)[:, 0])


def lower_by_rounding(logs: Floats) -> Floats:
    """Return thresholds that also let in what is equal but for rounding."""
    return np.asarray(logs - _slack(logs))


def _slack(logs: Floats) -> Floats:
    """Return how far others may be off to be equal to these; nothing is near what is impossible."""
    return np.where(np.isfinite(logs), SLACK * (1 + np.abs(logs)), 0.0)


SCORES: dict[str, RegionScore] = {"probability": ProbabilityScore(), "mass": MassScore()}
"""The scores that have a name."""
