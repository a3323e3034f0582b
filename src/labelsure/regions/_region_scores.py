"""Scores of labelsets, from which regions follow: the higher, the less the model expects it.

A score rises as the probability of the labelset falls, for one and the same instance. So the region
of all labelsets with a score of at most q holds those with at least some probability: a threshold
for each instance.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

import numpy as np

from labelsure import _limits
from labelsure._typing import Floats, Labelsets
from labelsure.regions._mixed_votes import Source

SLACK = 16 * _limits.TIE
"""Log-probabilities that differ by less are equal: they are computed in different ways. Where it
matters a labelset is in the region, which only raises the coverage."""


class RegionScore(ABC):
    """A way to score the labelsets of an instance."""

    @abstractmethod
    def score(self, source: Source, Y: Labelsets, generator: np.random.Generator) -> Floats:
        """Return the score of one labelset for each instance, (n,)."""

    @abstractmethod
    def log_thresholds(
        self, source: Source, quantiles: Floats, generator: np.random.Generator
    ) -> Floats:
        """Return the least log-probability of a labelset whose score is at most the quantile, (n,).

        -inf where all labelsets are in the region, inf where none is.
        """


class ProbabilityScore(RegionScore):
    """-log P(y): regions of all labelsets that are probable enough, small where one stands out."""

    def score(self, source: Source, Y: Labelsets, generator: np.random.Generator) -> Floats:
        """Return -log P(y)."""
        return -source.log_prob(Y)

    def log_thresholds(
        self, source: Source, quantiles: Floats, generator: np.random.Generator
    ) -> Floats:
        """Return the negative of the quantiles."""
        return lower_by_rounding(-quantiles)


class MassScore(RegionScore):
    """The mass of all labelsets that are more probable: regions large where nothing stands out.

    Of the mass of those that are equally probable, itself included, a random share counts, so that
    ties are broken at random. The masses are exact where all labelsets can be written out, and the
    shares among draws from the distribution otherwise.

    Parameters
    ----------
    n_draws
        For each instance, where not all labelsets can be written out.
    """

    def __init__(self, n_draws: int = 500) -> None:
        self.n_draws = n_draws

    def score(self, source: Source, Y: Labelsets, generator: np.random.Generator) -> Floats:
        """Return the mass above, and a random share of the mass beside."""
        scores = np.empty(len(source))
        for rows, logs, weights in self._ranked(source, generator):
            own = source[rows].log_prob(Y[rows])[:, np.newaxis]
            slack = _slack(own)
            above = np.where(logs > own + slack, weights, 0.0).sum(axis=1)
            is_beside = (logs >= own - slack) & (logs <= own + slack)
            beside = np.where(is_beside, weights, 0.0).sum(axis=1)
            beside += self._own_weight(source.n_labels)
            scores[rows] = above + generator.random(len(above)) * beside
        return scores

    def log_thresholds(
        self, source: Source, quantiles: Floats, generator: np.random.Generator
    ) -> Floats:
        """Return the probability down to which the mass, with random shares, stays in bounds."""
        thresholds = np.empty(len(source))
        own = self._own_weight(source.n_labels)
        for rows, logs, weights in self._ranked(source, generator):
            order = np.argsort(-logs, axis=1, kind="stable")
            logs = np.take_along_axis(logs, order, axis=1)
            weights = np.take_along_axis(np.broadcast_to(weights, logs.shape), order, axis=1)
            uniforms = generator.random(len(logs))
            thresholds[rows] = _last_within(logs, weights, own, quantiles[rows], uniforms)
        return thresholds

    def _own_weight(self, n_labels: int) -> float:
        """Return what a labelset weighs beside those it is compared with."""
        return 0.0 if _is_written_out(n_labels) else 1 / (self.n_draws + 1)

    def _ranked(
        self, source: Source, generator: np.random.Generator
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
            draws = some.sample(self.n_draws, generator)
            logs = np.stack([some.log_prob(draws[:, i]) for i in range(self.n_draws)], axis=1)
            yield rows, logs, np.full(logs.shape, 1 / (self.n_draws + 1))


def _is_written_out(n_labels: int) -> bool:
    return n_labels <= _limits.CHEAP_DENSE_LABELS


def _last_within(
    logs: Floats, weights: Floats, own: float, quantiles: Floats, uniforms: Floats
) -> Floats:
    """Return the least log-probability whose score is at most the quantile, inf if there is none.

    Parameters
    ----------
    logs, weights
        (n, k) of what labelsets are compared with, the most probable first.
    own
        What a labelset weighs itself where it is none of these; 0 where these are all.
    quantiles, uniforms
        (n,) the most that a score may be, and the share of equally probable ones that counts.
    """
    places = np.arange(logs.shape[1])
    is_first = np.ones(logs.shape, dtype=bool)  # of those that are equally probable
    is_first[:, 1:] = logs[:, 1:] < logs[:, :-1] - _slack(logs[:, :-1])
    first = np.maximum.accumulate(np.where(is_first, places, 0), axis=1)
    ends = np.append(is_first[:, 1:], np.ones((len(logs), 1), dtype=bool), axis=1)
    last = np.minimum.accumulate(np.where(ends, places, len(places))[:, ::-1], axis=1)[:, ::-1]
    sums = np.append(np.zeros((len(logs), 1)), np.cumsum(weights, axis=1), axis=1)
    above = np.take_along_axis(sums, first, axis=1)
    beside = np.take_along_axis(sums, last + 1, axis=1) - above
    limits, shares = quantiles[:, np.newaxis], uniforms[:, np.newaxis]
    fits = above + shares * (beside + own) <= limits
    # Where not all are listed: whether what is just above these, and equal to none, fits.
    reaches = above + shares * own <= limits if own else fits
    n_reached = reaches.sum(axis=1)
    at = np.maximum(n_reached - 1, 0)[:, np.newaxis]
    edge = np.take_along_axis(logs, at, axis=1)[:, 0]
    is_inside = np.take_along_axis(fits, at, axis=1)[:, 0]
    found = np.where(is_inside, lower_by_rounding(edge), edge + _slack(edge))
    if own:
        found[sums[:, -1] + uniforms * own <= quantiles] = -np.inf
    found[n_reached == 0] = np.inf
    return np.asarray(found)


def lower_by_rounding(logs: Floats) -> Floats:
    """Return thresholds that also let in what is equal but for rounding."""
    return np.asarray(logs - _slack(logs))


def _slack(logs: Floats) -> Floats:
    """Return how far others may be off to be equal to these; nothing is near what is impossible."""
    return np.where(np.isfinite(logs), SLACK * (1 + np.abs(logs)), 0.0)


SCORES: dict[str, RegionScore] = {"probability": ProbabilityScore(), "mass": MassScore()}
"""The scores that have a name."""
