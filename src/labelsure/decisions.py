"""Decisions: the expected accuracy of a labelset, and the labelset that has the highest.

Section numbers are those of `docs/algorithms.md`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal, Unpack, overload

import numpy as np

from labelsure import _limits
from labelsure._limits import TIE
from labelsure._typing import Floats, Labelsets
from labelsure.distributions import DenseDistribution, EngineSettings, LabelsetDistribution
from labelsure.errors import InputError, TooLargeError
from labelsure.metrics import (
    EXACT,
    F1,
    HAMMING,
    JACCARD,
    Metric,
    MetricLike,
    check_empty,
    get_metric,
)

__all__ = ["decide", "expected_accuracy"]


MAX_FLIPS = 50  # of the local search; it nearly always ends by itself sooner


@overload
def expected_accuracy(
    dist: LabelsetDistribution,
    Y_pred: Any = ...,
    *,
    metric: MetricLike,
    empty: float = ...,
    return_bounds: Literal[False] = ...,
    **settings: Unpack[EngineSettings],
) -> Floats: ...
@overload
def expected_accuracy(
    dist: LabelsetDistribution,
    Y_pred: Any = ...,
    *,
    metric: MetricLike,
    empty: float = ...,
    return_bounds: Literal[True],
    **settings: Unpack[EngineSettings],
) -> tuple[Floats, Floats, Floats]: ...
def expected_accuracy(
    dist: LabelsetDistribution,
    Y_pred: Any = None,
    *,
    metric: MetricLike,
    empty: float = 1.0,
    return_bounds: bool = False,
    **settings: Unpack[EngineSettings],
) -> Floats | tuple[Floats, Floats, Floats]:
    """Return the mean accuracy of given labelsets under the distribution itself.

    Parameters
    ----------
    dist
        A batch of n distributions.
    Y_pred
        (n, L) zeros and ones; None means the mode.
    metric
        "exact", "hamming", "jaccard", "f1", or a function of (tp, fp, fn, tn).
    empty
        The Jaccard and F1 of two empty labelsets.
    return_bounds
        Also return lower and upper bounds: the values themselves where the engine is exact.
    **settings
        engine, tolerance, mass, budget: how a `ChainMixture` computes, see
        `labelsure.distributions.Engine`.

    Returns
    -------
    numpy.ndarray of shape (n,), or a tuple of three of them

    Examples
    --------
    >>> from labelsure import IndependentLabels
    >>> expected_accuracy(IndependentLabels([[0.9, 0.2]]), metric="hamming")
    array([0.85])
    """
    _check_distribution(dist)
    told = dist.with_engine(**settings)
    Y_pred = told.mode() if Y_pred is None else Y_pred
    expected = told.expected_with_bounds(metric, Y_pred, empty=empty)
    return (expected.value, expected.low, expected.high) if return_bounds else expected.value


@overload
def decide(
    dist: LabelsetDistribution,
    metric: MetricLike,
    *,
    empty: float = ...,
    return_gap: Literal[False] = ...,
    **settings: Unpack[EngineSettings],
) -> Labelsets: ...
@overload
def decide(
    dist: LabelsetDistribution,
    metric: MetricLike,
    *,
    empty: float = ...,
    return_gap: Literal[True],
    **settings: Unpack[EngineSettings],
) -> tuple[Labelsets, Floats]: ...
def decide(
    dist: LabelsetDistribution,
    metric: MetricLike,
    *,
    empty: float = 1.0,
    return_gap: bool = False,
    **settings: Unpack[EngineSettings],
) -> Labelsets | tuple[Labelsets, Floats]:
    """Return the labelset with the highest expected accuracy for each instance.

    Parameters
    ----------
    dist
        A batch of n distributions.
    metric
        "exact", "hamming", "jaccard", "f1", or a function of (tp, fp, fn, tn). A function needs
        all pairs of labelsets and so at most 12 labels.
    empty
        The Jaccard and F1 of two empty labelsets.
    return_gap
        Also return by how much, at most, each decision's expected accuracy is below the best
        possible: 0 where the decision is exact, which it is but for the Jaccard of more labels
        than a dense array holds, and for chains that the certified engine computes or that have
        more labels than can be enumerated.
    **settings
        Of the engine, as for `expected_accuracy`.

    Returns
    -------
    numpy.ndarray of shape (n, L), or a tuple of it and the (n,) gaps

    Examples
    --------
    >>> from labelsure import DenseDistribution
    >>> dist = DenseDistribution([[0.0, 0.25, 0.25, 1 / 6, 1 / 3, 0.0, 0.0, 0.0]])
    >>> decide(dist, "exact"), decide(dist, "jaccard")
    (array([[0, 0, 1]], dtype=int8), array([[1, 1, 0]], dtype=int8))
    """
    _check_distribution(dist)
    metric, empty = get_metric(metric), check_empty(empty)
    dist = dist.with_engine(**settings)
    decisions = np.empty((len(dist), dist.n_labels), dtype=np.int8)
    gaps = np.empty(len(dist))
    for rows in _blocks(len(dist), dist.decision_bytes):
        decisions[rows], gaps[rows] = _decide_block(dist[rows], metric, empty)
    return (decisions, gaps) if return_gap else decisions


def _decide_block(
    dist: LabelsetDistribution, metric: Metric, empty: float
) -> tuple[Labelsets, Floats]:
    partial = dist.partial_table()
    if partial is not None:
        decisions, gaps = _decide_block(partial.given_seen, metric, empty)
        if metric == EXACT:
            seen = np.exp(partial.table.log_prob(decisions))
            return decisions, np.maximum(partial.largest_unseen - seen, 0.0)
        # Whatever the unseen labelsets add, it differs between two decisions by no more than this.
        return decisions, gaps + partial.unseen_mass * metric.spread(dist.n_labels, empty=empty)
    if metric in _SHARED_RULES:
        return _SHARED_RULES[metric](dist), np.zeros(len(dist))
    best: Labelsets | None = dist.optimum(metric, empty=empty)
    if best is None and metric == F1:
        best = _best_f1(dist, empty)
    if best is None and metric == JACCARD and dist.n_labels > _limits.CHEAP_DENSE_LABELS:
        return _good_jaccard(dist, empty)
    if best is None:
        best = _dense_optimum(dist, metric, empty)
    return best, np.zeros(len(dist))


def _marginal_majority(dist: LabelsetDistribution) -> Labelsets:
    return (dist.marginals() > 0.5 + TIE).astype(np.int8)


_SHARED_RULES: dict[Metric, Callable[[LabelsetDistribution], Labelsets]] = {
    EXACT: LabelsetDistribution.mode,
    HAMMING: _marginal_majority,
}
"""Metrics whose optimum every kind has from simpler answers."""


def _dense_optimum(dist: LabelsetDistribution, metric: Metric, empty: float) -> Labelsets:
    if metric != JACCARD and dist.n_labels > _limits.ALL_PAIRS_LABELS:
        raise TooLargeError(
            f"The best labelset under the metric {metric.name!r} is only known by comparing all "
            f"pairs of labelsets, for at most {_limits.ALL_PAIRS_LABELS} labels, got "
            f"{dist.n_labels}. Compare your own proposals with `expected_accuracy`, which works "
            "for any number."
        )
    best = np.empty((len(dist), dist.n_labels), dtype=np.int8)
    for rows in _blocks(len(dist), 8 * 2**dist.n_labels):
        dense = DenseDistribution._trusted(dist[rows].probabilities(), dist.label_names)
        found = dense.optimum(metric, empty=empty)
        best[rows] = dense.optimum_by_pairs(metric, empty=empty) if found is None else found
    return best


def _best_f1(dist: LabelsetDistribution, empty: float) -> Labelsets:
    """Return the F1 optimum from P(y_j = 1, |y| = s): for each size a top-k choice. Section 5."""
    sizes = np.arange(1, dist.n_labels + 1)
    worth = 2.0 / (sizes[:, np.newaxis] + sizes)  # of a true positive, for each |y| and each k
    values, chosen = _best_of_each_size(dist.size_marginals(), worth)
    return _best_of_sizes(dist, values, chosen, empty)


def _best_of_each_size(by_size: Floats, worth: Floats) -> tuple[Floats, Labelsets]:
    """Return for each k the largest sum over k labels of their mean worth, and these labels.

    Parameters
    ----------
    by_size
        (n, L, L) P(y_j = 1, |y| = s).
    worth
        (L, L) what label j adds when |y| = s and k labels are chosen.

    Returns
    -------
    (n, L) sums and (n, L, L) labelsets, k - 1 being the middle index
    """
    n_labels = worth.shape[0]
    gains = np.swapaxes(by_size @ worth, 1, 2)  # [instance, k, label]
    keys = -gains
    np.round(keys, 12, out=keys)
    order = np.argsort(keys, axis=2, kind="stable")  # on a tie the lower label
    del keys  # arrays of this size are most of the memory that a decision takes
    chosen = np.zeros(gains.shape, dtype=np.int8)
    first_k = np.tri(n_labels, dtype=np.int8)
    np.put_along_axis(chosen, order, np.broadcast_to(first_k, gains.shape), axis=2)
    return np.einsum("nkj,nkj->nk", gains, chosen), chosen


def _best_of_sizes(
    dist: LabelsetDistribution, values: Floats, chosen: Labelsets, empty: float
) -> Labelsets:
    """Return the best of the empty labelset and one labelset of each size, smallest on a tie."""
    nothing = np.zeros((len(dist), 1, dist.n_labels), dtype=np.int8)
    of_nothing = empty * np.exp(dist.log_prob(nothing[:, 0]))
    values = np.column_stack([of_nothing, values])
    size = (values >= values.max(axis=1, keepdims=True) - TIE).argmax(axis=1)
    return np.concatenate([nothing, chosen], axis=1)[np.arange(len(dist)), size]


def _good_jaccard(dist: LabelsetDistribution, empty: float) -> tuple[Labelsets, Floats]:
    """Return good labelsets under Jaccard and how far below the optimum they can be. Section 5.

    |y or p| is at least max(|y|, |p|), so sums of single labels' worth bound the expected Jaccard
    of every prediction of a size from above. Their maximisers are also good first guesses; the
    best guess is then improved by flipping labels and by exchanging one for another.
    """
    sizes = np.arange(1, dist.n_labels + 1)
    by_size = dist.size_marginals()
    bounds, optimists = _best_of_each_size(by_size, 1.0 / np.maximum(sizes[:, np.newaxis], sizes))
    by_marginal = _best_of_each_size(by_size, np.ones((dist.n_labels, dist.n_labels)))[1]
    nothing = np.zeros((len(dist), dist.n_labels), dtype=np.int8)
    singles = np.stack([nothing, dist.mode(), _best_f1(dist, empty)], axis=1)
    values = dist.jaccard_of_guesses(singles, empty=empty)
    bound = np.maximum(bounds.max(axis=1), values[:, 0])
    best, value = _first_best(singles, values)
    for size in range(dist.n_labels):
        rows = np.flatnonzero(bounds[:, size] > value + TIE)  # no other can gain by this size
        if rows.size:
            guesses = np.stack([optimists[rows, size], by_marginal[rows, size]], axis=1)
            values = dist[rows].jaccard_of_guesses(guesses, empty=empty)
            guess, worth = _first_best(guesses, values)
            better = worth > value[rows] + TIE
            best[rows[better]], value[rows[better]] = guess[better], worth[better]
    rows = np.flatnonzero(bound > value + TIE)
    if rows.size:
        part = dist[rows]
        flipped = _flip_while_better(part, empty, best[rows], value[rows])
        best[rows], value[rows] = _exchange_once(part, empty, *flipped)
    return best, np.maximum(bound - value, 0.0)


def _first_best(guesses: Labelsets, values: Floats) -> tuple[Labelsets, Floats]:
    """Return the best of (n, g, L) guesses, the first on a tie, and its value."""
    first = (values >= values.max(axis=1, keepdims=True) - TIE).argmax(axis=1)
    rows = np.arange(len(guesses))
    return guesses[rows, first], values[rows, first]


def _flip_while_better(
    dist: LabelsetDistribution, empty: float, best: Labelsets, value: Floats
) -> tuple[Labelsets, Floats]:
    """Flip the label that helps most, again and again."""
    best, value = best.copy(), value.copy()
    active = np.arange(len(dist))
    for _ in range(MAX_FLIPS):
        flips = dist[active].jaccard_of_flips(best[active], empty=empty)
        label = flips.argmax(axis=1)
        won = flips.max(axis=1) > value[active] + TIE
        active, label = active[won], label[won]
        if not active.size:
            break
        best[active, label] ^= 1
        value[active] = flips[won, label]
    return best, value


def _exchange_once(
    dist: LabelsetDistribution, empty: float, best: Labelsets, value: Floats
) -> tuple[Labelsets, Floats]:
    """Take each label out in turn and put in the one that then helps most; flip on from there."""
    start, start_value = best, value
    for j in np.flatnonzero(start.any(axis=0)):
        rows = np.flatnonzero(start[:, j])
        without = start[rows].copy()
        without[:, j] = 0
        flips = dist[rows].jaccard_of_flips(without, empty=empty)
        label = flips.argmax(axis=1)
        won = flips.max(axis=1) > value[rows] + TIE
        if won.any():
            best, value = best.copy(), value.copy()
            without[np.arange(len(rows)), label] ^= 1
            best[rows[won]], value[rows[won]] = without[won], flips[won, label[won]]
    if (value > start_value).any():
        return _flip_while_better(dist, empty, best, value)
    return best, value


def _blocks(n_rows: int, bytes_per_row: int) -> Iterator[slice]:
    """Cut the rows so that a work array of `bytes_per_row` each stays small."""
    step = max(1, _limits.DECISION_BYTES // bytes_per_row)
    for first in range(0, n_rows, step):
        yield slice(first, min(first + step, n_rows))


def _check_distribution(dist: Any) -> None:
    if not isinstance(dist, LabelsetDistribution):
        raise InputError(
            f"`dist` must be a LabelsetDistribution, got {type(dist).__name__}. "
            "Wrap probabilities with `as_distribution`."
        )
