"""Answers from a mixture that do not rest on how its members are weighted. Section 16."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from labelsure import _limits
from labelsure._kernels import unit_interval
from labelsure._kernels.dense_sweeps import every_jaccard_rows
from labelsure._kernels.threads import for_rows
from labelsure._limits import TIE, cut_rows
from labelsure._typing import Floats, Labelsets
from labelsure.distributions import DenseDistribution, LabelsetDistribution
from labelsure.errors import InputError
from labelsure.labelsets import OPEN, from_codes
from labelsure.metrics import EXACT, F1, HAMMING, JACCARD, Metric
from labelsure.partial_labelsets import PartialLabelsets

MAX_FLIPS = 50  # of the local search; it nearly always ends by itself sooner
SEARCHED_ROWS = 64  # whose members' likely labelsets are held at a time

Decide = Callable[[LabelsetDistribution], tuple[Labelsets, Floats]]
"""The best labelsets of a distribution, and how far below the best they can be."""


def decide_skeptically(
    dist: LabelsetDistribution, metric: Metric, empty: float, decide: Decide
) -> PartialLabelsets:
    """Return the labels that all members decide alike, and the labelset that is best at worst.

    Parameters
    ----------
    dist
        A batch of n mixtures.
    metric, empty
        As `labelsure.decide` takes them.
    decide
        By the same metric.
    """
    if dist.members() is None:
        raise InputError(
            "`skeptical` must be asked of a mixture, whose members can disagree, such as an "
            f"ensemble of chains makes, got {type(dist).__name__}. `open_cost` leaves labels open "
            "for any distribution."
        )
    if dist.n_labels > _limits.CHEAP_DENSE_LABELS:
        dist = dist.with_engine(engine="certified")
    values = np.empty((len(dist), dist.n_labels), dtype=np.int8)
    maximin = np.empty_like(values)
    gap, spread = np.empty(len(dist)), np.empty(len(dist))
    bytes_each = 8 * 2 ** min(dist.n_labels, _limits.CHEAP_DENSE_LABELS)
    step_bytes = min(_limits.DECISION_BYTES, SEARCHED_ROWS * bytes_each)
    for rows in cut_rows(len(dist), bytes_each, step_bytes):
        part = dist[rows]
        members = part.members() or []
        best = [decide(member) for member in members]
        values[rows] = _find_agreed(members, [labelsets for labelsets, _ in best], metric)
        if dist.support() is None and metric in _EVERY and _is_small(dist):
            maximin[rows], gap[rows] = _compare_all(members, metric, empty), 0.0
        else:
            maximin[rows], gap[rows] = _search_maximin(part, members, best, metric, empty, decide)
        spread[rows] = spread_over(members, maximin[rows], metric, empty)
    return PartialLabelsets(
        values, dist.label_names, dist.index, gap=gap, maximin=maximin, spread=spread
    )


def spread_over(
    members: list[LabelsetDistribution], Y_pred: Labelsets, metric: Metric, empty: float
) -> Floats:
    """Return how far apart the members' expected accuracies of given labelsets are, (n,)."""
    expected = [member.expected(metric, Y_pred, empty=empty).value for member in members]
    return np.ptp(np.stack(expected), axis=0)


def _is_small(dist: LabelsetDistribution) -> bool:
    return dist.n_labels <= _limits.CHEAP_DENSE_LABELS


def _find_agreed(
    members: list[LabelsetDistribution], decisions: list[Labelsets], metric: Metric
) -> Labelsets:
    """Return the values that all members decide, open where they differ."""
    if metric in _BY_MARGINALS:
        marginals = np.stack([member.marginals() for member in members])
        is_set = (marginals > 0.5 + TIE).all(axis=0)
        is_absent = (marginals < 0.5 - TIE).all(axis=0)
    else:
        chosen = np.stack(decisions)
        is_set, is_absent = (chosen == 1).all(axis=0), (chosen == 0).all(axis=0)
    return np.where(is_set, 1, np.where(is_absent, 0, OPEN)).astype(np.int8)


_BY_MARGINALS = frozenset({HAMMING})
"""Metrics whose best decision is one of single labels: a marginal of a half decides neither way,
and what all members agree on holds for every mixture of them."""


# All labelsets, where these are few.


def _compare_all(members: list[LabelsetDistribution], metric: Metric, empty: float) -> Labelsets:
    """Return the labelsets with the highest least expected accuracy, on a tie the lowest code."""
    least = None
    for member in members:
        dense = DenseDistribution.from_trusted(member.probabilities(), member.label_names)
        values = _EVERY[metric](dense, empty)
        least = values if least is None else np.minimum(least, values)
    if least is None:
        raise ValueError("a mixture has at least one member")
    best = (least >= least.max(axis=1, keepdims=True) - TIE).argmax(axis=1)
    return from_codes(best, members[0].n_labels)


def _every_exact(dense: DenseDistribution, empty: float) -> Floats:
    return dense.probabilities()


def _every_hamming(dense: DenseDistribution, empty: float) -> Floats:
    marginals, labelsets = dense.marginals(), _all_labelsets(dense)
    return (marginals @ labelsets.T + (1 - marginals) @ (1 - labelsets.T)) / dense.n_labels


def _every_f1(dense: DenseDistribution, empty: float) -> Floats:
    """Add up what each label of a labelset of k adds: 2 P(y_j = 1, |y| = s) / (s + k)."""
    labelsets = _all_labelsets(dense)
    sizes = labelsets.sum(axis=1).astype(np.int64)
    size = np.arange(1.0, dense.n_labels + 1)
    gains = dense.size_marginals() @ (2.0 / (size[:, np.newaxis] + size))  # [instance, label, k]
    values = np.empty((len(dense), len(labelsets)))
    values[:, 0] = empty * dense.probabilities()[:, 0]
    for k in range(1, dense.n_labels + 1):
        of_size = np.flatnonzero(sizes == k)
        values[:, of_size] = gains[:, :, k - 1] @ labelsets[of_size].T
    return values


def _every_jaccard(dense: DenseDistribution, empty: float) -> Floats:
    P = dense.probabilities()
    values = np.empty(P.shape)
    nodes, weights = unit_interval(dense.n_labels - 1)
    for_rows(every_jaccard_rows, len(dense), P, empty, nodes, weights, into=[values])
    return values


def _all_labelsets(dense: DenseDistribution) -> Floats:
    return from_codes(np.arange(2**dense.n_labels), dense.n_labels).astype(np.float64)


_EVERY: dict[Metric, Callable[[DenseDistribution, float], Floats]] = {
    EXACT: _every_exact,
    HAMMING: _every_hamming,
    F1: _every_f1,
    JACCARD: _every_jaccard,
}
"""Metrics whose expectation is known for all labelsets at once, (n, 2**L)."""


# A search where there are more.


def _search_maximin(
    dist: LabelsetDistribution,
    members: list[LabelsetDistribution],
    best: list[tuple[Labelsets, Floats]],
    metric: Metric,
    empty: float,
    decide: Decide,
) -> tuple[Labelsets, Floats]:
    """Flip labels of the best of all decisions while that raises the least expected accuracy.

    No labelset is better under its worst member than each member's best is under that member, nor
    than the mixture's best is under the mixture: the least of these bounds the gap.
    """
    decisions = [decide(dist), *best]
    bounds = [
        source.expected(metric, labelsets, empty=empty).high + gap
        for source, (labelsets, gap) in zip([dist, *members], decisions, strict=True)
    ]
    asked = [_Bounded(member) for member in members]

    def least(guesses: Labelsets) -> Floats:
        return np.stack([member.expected_low(metric, guesses, empty) for member in asked]).min(0)

    guesses = np.stack([labelsets for labelsets, _ in decisions], axis=1)
    n_labels, rows = dist.n_labels, np.arange(len(dist))
    values = least(guesses)
    chosen, value = guesses[rows, values.argmax(axis=1)], values.max(axis=1)
    change = np.concatenate([np.zeros((1, n_labels)), np.eye(n_labels)]).astype(np.int8)
    for _ in range(MAX_FLIPS):
        guesses = chosen[:, np.newaxis] ^ change
        values = least(guesses)
        better = values.max(axis=1) > value + TIE
        if not better.any():
            break
        at = values.argmax(axis=1)
        chosen = np.where(better[:, np.newaxis], guesses[rows, at], chosen)
        value = np.where(better, values.max(axis=1), value)
    return chosen, np.maximum(np.min(bounds, axis=0) - value, 0.0)


class _Bounded:
    """A member whose likely labelsets are looked for once, where it cannot see all."""

    def __init__(self, member: LabelsetDistribution) -> None:
        support = member.support()
        self._member = member
        self._known = None if support is None else list(support)

    def expected_low(self, metric: Metric, guesses: Labelsets, empty: float) -> Floats:
        """Return what (n, g, L) guesses are worth at least, (n, g)."""
        if self._known is None:
            return self._member.expected(metric, guesses, empty=empty).low
        low = np.empty(guesses.shape[:2])
        for rows, known in self._known:
            expected = known.table.expected(metric, guesses[rows], empty=empty).value
            low[rows] = known.seen_mass[:, np.newaxis] * expected
        return low
