"""Likely labelsets of chains, found by branch and bound or by beam search; bounds on all others.

Branch and bound proves that it found all labelsets above a threshold. A beam search finds labelsets
that are at least as probable as the greedy labelset of each chain (a beam of width 1), however flat
the probabilities, for chains of any base learner.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from labelsure._kernels import labelset_search as search
from labelsure._kernels.chain_beams import beam_rows
from labelsure._kernels.threads import for_rows, map_rows
from labelsure._runtime import limits as _limits
from labelsure._runtime.typing import Floats, Indices, Labelsets, Mask
from labelsure.distributions._answers import (
    Approximation,
    Expected,
    Guesses,
    Summary,
    Support,
    TopLabelsets,
    each_guess,
)
from labelsure.distributions._chains import LinearStack, WeightedChains
from labelsure.distributions._labelset_table import LabelsetTable, expect_over
from labelsure.distributions.candidates import Profile, log
from labelsure.labelsets.codes import code_keys, fill_with_lowest
from labelsure.labelsets.weighted import WeightedLabelsets, find_distinct
from labelsure.metrics.registry import HAMMING, Metric


@dataclass(frozen=True)
class Beam:
    """Most probable labelsets that beam searches found.

    Parameters
    ----------
    labelsets
        (n, k, L) distinct ones, the most probable first, of equal ones the lowest code.
    logs
        (n, k) their log-probabilities under the mixture; minus infinity where fewer were found.
    unseen
        (n,) no other labelset has a higher probability.
    """

    labelsets: Labelsets
    logs: Floats
    unseen: Floats

    def __getitem__(self, rows: Indices) -> Beam:
        return Beam(self.labelsets[rows], self.logs[rows], self.unseen[rows])


class SomeLabelsets(Approximation):
    """Answers from some of the labelsets of each instance, with bounds."""

    @abstractmethod
    def profile(self) -> Profile:
        """Profile with bounds."""

    @abstractmethod
    def expect(self, metric: Metric, Y_pred: Labelsets, empty: float) -> Expected:
        """Mean accuracies with bounds, (n,)."""

    def summary(self, metrics: Sequence[Metric], empty: float) -> Summary:
        """Profile, mode and expected accuracies of the mode."""
        mode = self.top(1).labelsets[:, 0]
        expected = {metric.name: self.expect(metric, mode, empty) for metric in metrics}
        return Summary(self.profile(), mode, expected)

    def expected(self, metrics: Sequence[Metric], guesses: Guesses, empty: float) -> list[Expected]:
        """Means of each metric, (n, g); guess by guess, as metrics share their counts."""
        by_guess = [[self.expect(m, Y, empty) for m in metrics] for Y in each_guess(guesses)]
        stacked = []
        for found in zip(*by_guess, strict=True):
            columns = zip(*((one.value, one.low, one.high) for one in found), strict=True)
            value, low, high = (np.stack(column, axis=1) for column in columns)
            stacked.append(Expected(value, low, high, found[0].method))
        return stacked


@dataclass(frozen=True)
class Enumeration(SomeLabelsets):
    """Enumerated labelsets, and bounds on all others.

    Parameters
    ----------
    seen
        Enumerated labelsets with their probabilities under the mixture, which sum to less than one
        unless all labelsets were enumerated.
    bounds
        (n, N_BOUNDS) as `_kernels.labelset_search.write_bounds` writes them.
    beam
        Further labelsets, for the mode and `top` alone; None where enumeration suffices.
    """

    seen: WeightedLabelsets
    bounds: Floats
    beam: Beam | None = None

    def __getitem__(self, rows: Indices) -> Enumeration:
        beam = None if self.beam is None else self.beam[rows]
        return Enumeration(self.seen.take(rows), self.bounds[rows], beam)

    def add(self, labelsets: Labelsets, log_prob: Floats, is_new: Mask) -> Enumeration:
        """Enumeration with the new ones among (n, size, L) labelsets."""
        instance, place = np.nonzero(is_new)
        rows, weights = labelsets[instance, place], np.exp(log_prob[instance, place])
        once = find_distinct(rows, instance)
        more = WeightedLabelsets.merge(rows[once], weights[once], instance[once], len(self.seen))
        seen, bounds = self.seen.join(more), np.empty_like(self.bounds)
        for i, row in enumerate(bounds):
            search.write_bounds(seen.weights_of(i), self.largest_unseen[i], seen.n_labels, row)
        return Enumeration(seen, bounds, self.beam)

    def with_beam(self, chains: WeightedChains, n_best: int) -> Enumeration:
        """Enumeration with a beam search for the most probable labelsets, which `top` shows."""
        return replace(self, beam=search_beams(chains, n_best))

    def join_beam(self) -> Enumeration:
        """Enumeration that counts the labelsets of the beam search as its own."""
        if self.beam is None:
            return self
        is_new = np.isfinite(self.beam.logs) & ~self.seen.contains(self.beam.labelsets)
        joined = self.add(self.beam.labelsets, self.beam.logs, is_new)
        largest = np.minimum(joined.largest_unseen, self.beam.unseen)
        joined.bounds[:, search.LARGEST_UNSEEN] = largest
        return joined

    @property
    def unseen_mass(self) -> Floats:
        """Upper bound on the mass of all unseen labelsets, (n,)."""
        return self.bounds[:, search.UNSEEN_MASS]

    @property
    def largest_unseen(self) -> Floats:
        """Upper bound on the probability of a single unseen labelset, (n,)."""
        return self.bounds[:, search.LARGEST_UNSEEN]

    @property
    def n_certain(self) -> Floats:
        """How many labelsets seen are more probable than any unseen one, (n,)."""
        return self.bounds[:, search.N_CERTAIN]

    @property
    def entropy_width(self) -> Floats:
        """Width of the interval of the normalised entropy, (n,)."""
        width = self.bounds[:, search.ENTROPY_HIGH] - self.bounds[:, search.ENTROPY_LOW]
        return np.asarray(width / (self.seen.n_labels * np.log(2)))

    @property
    def collision_width(self) -> Floats:
        """Larger width of the intervals of the collision and of its normalised entropy, (n,)."""
        low, high = self.bounds[:, search.COLLISION_LOW], self.bounds[:, search.COLLISION_HIGH]
        of_entropy = (log(high) - log(np.maximum(low, 1e-300))) / (self.seen.n_labels * np.log(2))
        return np.maximum(high - low, of_entropy)

    def best(self, metric: Metric, empty: float) -> Support:
        """Normalised table of the enumerated labelsets, with bounds on the others."""
        table = LabelsetTable.from_weighted(self.seen.normalise())
        masses = self.seen.totals(), self.unseen_mass, self.largest_unseen
        return Support(table, *masses, self.marginals() if metric == HAMMING else None)

    def meets(self, goals: search.Goals) -> Mask:
        """Whether the bounds meet the goals, (n,)."""
        n_labels = self.seen.n_labels
        return np.array(
            [search.meets_goals(row, n_labels, goals) for row in self.bounds], dtype=bool
        )

    def profile(self) -> Profile:
        """Middle of each interval, with the intervals as bounds."""
        n_labels = self.seen.n_labels
        least = -n_labels * np.log(2)
        b, best = self.bounds.T, self.top(2)
        low = Profile(
            np.maximum(best.logs[:, 0], least),
            best.logs[:, 1],
            b[search.ENTROPY_LOW],
            np.maximum(log(b[search.COLLISION_LOW]), least),
            n_labels,
        )
        high = Profile(
            best.log_high[:, 0],
            np.maximum(best.logs[:, 1], np.minimum(best.log_high[:, 1], -np.log(2))),
            b[search.ENTROPY_HIGH],
            np.maximum(log(b[search.COLLISION_HIGH]), least),
            n_labels,
        )
        return Profile(
            low.log_top,
            low.log_runner_up,
            (low.entropy + high.entropy) / 2,
            np.logaddexp(low.log_collision, high.log_collision) - np.log(2),
            n_labels,
            method=np.full(len(self.bounds), "certified"),
            bounds=(low, high),
        )

    def top(self, k: int) -> TopLabelsets:
        """Most probable labelsets known; `high` is the probability where certain."""
        labelsets, probabilities = self.seen.top(k)
        logs, unseen = log(probabilities), self.largest_unseen
        if self.beam is not None:
            unseen = np.minimum(unseen, self.beam.unseen)
            labelsets, logs = _merge_top(labelsets, logs, self.beam, k)
        return TopLabelsets(labelsets, logs, np.maximum(logs, log(unseen)[:, np.newaxis]))

    def marginals(self) -> Expected:
        """P(y_j = 1): the seen share, and bounds if no or all unseen labelsets have j."""
        total, low = self.seen.totals()[:, np.newaxis], self.seen.marginals()
        value = np.where(total > 0, low / np.where(total > 0, total, 1), 0.5)
        return Expected(value, low, np.minimum(low + self.unseen_mass[:, np.newaxis], 1.0))

    def expect(self, metric: Metric, Y_pred: Labelsets, empty: float) -> Expected:
        """Expected accuracies: the middle and the ends of the certified interval."""
        seen = expect_over(self.seen, metric, Y_pred, empty)
        least, most = metric_range(metric, Y_pred, empty)
        low, high = seen + self.unseen_mass * least, seen + self.unseen_mass * most
        return Expected((low + high) / 2, low, high)


def _merge_top(labelsets: Labelsets, logs: Floats, beam: Beam, k: int) -> tuple[Labelsets, Floats]:
    """The k most probable of both, (n, k, L) and (n, k); then the lowest codes fill up."""
    logs = np.concatenate([logs, beam.logs], axis=1)
    rows = np.concatenate([labelsets, beam.labelsets], axis=1)
    keys = keys_by_row(rows)
    # Of equal labelsets the first counts, but for those that only fill up.
    by_key = np.lexsort((np.isneginf(logs), keys), axis=1)
    keys = np.take_along_axis(keys, by_key, axis=1)
    repeats = np.zeros(logs.shape, dtype=bool)
    repeats[:, 1:] = keys[:, 1:] == keys[:, :-1]
    logs = np.where(repeats, -np.inf, np.take_along_axis(logs, by_key, axis=1))
    best = np.argsort(-logs, axis=1, kind="stable")[:, :k]  # on a tie the lowest code
    order = np.take_along_axis(by_key, best, axis=1)[:, :, np.newaxis]
    logs, rows = np.take_along_axis(logs, best, axis=1), np.take_along_axis(rows, order, axis=1)
    fill_with_lowest(rows, np.isfinite(logs).sum(axis=1))
    return rows, logs


def metric_range(metric: Metric, Y_pred: Labelsets, empty: float) -> tuple[Floats, Floats]:
    """Range of the metric for each prediction, widened to contain 0, (n,) each."""
    n_predicted = Y_pred.sum(axis=1)
    least, most = np.zeros(len(Y_pred)), np.zeros(len(Y_pred))
    for k in np.unique(n_predicted):
        values = metric.table(Y_pred.shape[1], k, empty=empty)
        least[n_predicted == k] = min(values.min(), 0.0)
        most[n_predicted == k] = max(values.max(), 0.0)
    return least, most


def enumerate_chains(
    chains: WeightedChains, goals: search.Goals, budget: int, small: float = 0.0
) -> Enumeration:
    """Enumeration of each instance's labelsets until the goals are met or the budget is used up.

    Of chains that are not linear: those that a beam search finds.
    """
    budget = min(budget, 2 ** min(chains.n_labels, 62))
    if chains.stack is not None:
        return _enumerate_linear(chains.stack, chains.shares, goals, budget, small)
    no_labelsets, n = np.empty((0, chains.n_labels), dtype=np.int8), chains.n_samples
    bounds = np.empty((n, search.N_BOUNDS))
    for row in bounds:
        search.write_bounds(np.empty(0), 1.0, chains.n_labels, row)
    found = Enumeration(WeightedLabelsets.merge(no_labelsets, [], [], n), bounds)
    return found.with_beam(chains, 1).join_beam() if budget and n else found


def _enumerate_linear(
    stack: LinearStack, shares: Floats, goals: search.Goals, budget: int, small: float
) -> Enumeration:
    n_samples, _, n_labels = stack.odds.shape
    n_words = -(-n_labels // 64)
    bounds = np.empty((n_samples, search.N_BOUNDS))
    shares = np.ascontiguousarray(shares)

    def run(start: int, stop: int) -> list[tuple[NDArray[np.uint64], Floats]]:
        keys, P = np.empty((budget, n_words), dtype=np.uint64), np.empty(budget)
        found = []
        for i in range(start, stop):
            links = (stack.odds[i], stack.factors, shares[i], stack.orders)
            n = search.enumerate_row(*links, goals, small, keys, P, bounds[i])
            found.append((keys[:n].copy(), P[:n].copy()))
        return found

    found = [one for block in map_rows(run, n_samples) for one in block]
    nothing = np.empty((0, n_words), dtype=np.uint64)
    words = np.concatenate([nothing, *(keys for keys, _ in found)])
    weights = np.concatenate([np.empty(0), *(P for _, P in found)])
    octets = words.view(np.uint8).reshape(len(words), 8 * n_words)
    rows = np.unpackbits(octets, axis=1, count=n_labels, bitorder="little").view(np.int8)
    instance = np.repeat(np.arange(n_samples), [len(P) for _, P in found])
    return Enumeration(WeightedLabelsets.merge(rows, weights, instance, n_samples), bounds)


def search_beams(chains: WeightedChains, n_best: int) -> Beam:
    """Beam searches for the `n_best` most probable labelsets of each instance."""
    n_all = 2 ** min(chains.n_labels, 62)
    n_kept = min(max(_limits.BEAM_LABELSETS, 2 * n_best), n_all)
    width = min(max(_limits.BEAM_WIDTH, 2 * n_best), n_all)
    if chains.stack is None:
        labelsets, lengths, unseen = _search_any(chains, width, n_kept)
    else:
        stack, n = chains.stack, chains.n_samples
        labelsets = np.zeros((n, n_kept, chains.n_labels), dtype=np.int8)
        lengths, unseen = np.zeros(n, dtype=np.int64), np.empty(n)
        inputs = (stack.odds, stack.factors, chains.shares, stack.orders, width, n_best)
        for_rows(beam_rows, n, *inputs, into=[labelsets, lengths, unseen])
    logs = chains.log_prob(labelsets)[..., 0]
    logs[np.arange(labelsets.shape[1]) >= lengths[:, np.newaxis]] = -np.inf
    order = np.lexsort((keys_by_row(labelsets), -logs), axis=1)
    labelsets = np.take_along_axis(labelsets, order[:, :, np.newaxis], axis=1)
    return Beam(labelsets, np.take_along_axis(logs, order, axis=1), unseen)


def keys_by_row(labelsets: Labelsets) -> NDArray[np.generic]:
    """Keys of (n, k, L) labelsets that sort like their codes, (n, k)."""
    keys = code_keys(labelsets.reshape(-1, labelsets.shape[2]))
    return keys.reshape(labelsets.shape[:2])


def _search_any(
    chains: WeightedChains, width: int, n_kept: int
) -> tuple[Labelsets, Indices, Floats]:
    n, parts, unseen = chains.n_samples, [], np.zeros(chains.n_samples)
    for chain, share in zip(chains.chains, chains.shares.T, strict=True):
        found, q, pruned = chain.search_beam(width)
        instance, place = np.nonzero((q > 0) & (share > 0)[:, np.newaxis])
        parts.append((found[instance, place], instance))
        unseen += share * pruned / len(chains)
    rows, instance = (np.concatenate(column) for column in zip(*parts, strict=True))
    distinct = find_distinct(rows, instance)
    rows, instance = rows[distinct], instance[distinct]
    logs = chains.log_prob_of_pairs(rows, instance)
    order = np.lexsort((-logs, instance))
    rows, logs, instance = rows[order], logs[order], instance[order]
    rank = np.arange(len(rows)) - np.searchsorted(instance, instance)
    np.maximum.at(unseen, instance[rank == n_kept], np.exp(logs[rank == n_kept]))
    kept = rank < n_kept
    labelsets = np.zeros((n, n_kept, chains.n_labels), dtype=np.int8)
    labelsets[instance[kept], rank[kept]] = rows[kept]
    return labelsets, np.bincount(instance[kept], minlength=n), unseen
