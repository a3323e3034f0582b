"""Decisions: the expected accuracy of a labelset, and the labelset that has the highest.

Section numbers are those of `docs/algorithms.md`.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any, Literal, Protocol, Unpack, overload

import numpy as np

from labelsure._runtime import limits as _limits
from labelsure._runtime.limits import TIE, cut_rows
from labelsure._runtime.typing import Floats, Labelsets
from labelsure.decisions._jaccard_search import choose_f1, search_jaccard
from labelsure.distributions._answers import Expected, Support
from labelsure.distributions._bridge import LabelsetDistribution, check_distribution
from labelsure.distributions._dense import DenseBlocks
from labelsure.distributions._engines import EngineSettings
from labelsure.distributions._independent_labels import SparseIndependentLabels
from labelsure.errors import InputError, TooLargeError
from labelsure.labelsets.codes import OPEN
from labelsure.labelsets.sparse import make_sparse
from labelsure.metrics.partial import PartialLabelsets
from labelsure.metrics.registry import (
    EXACT,
    F1,
    HAMMING,
    JACCARD,
    Metric,
    MetricLike,
    check_empty,
    get_metric,
)


class FittedChange(Protocol):
    """What makes distributions of distributions: a fitted recalibration."""

    def transform(self, dist: LabelsetDistribution) -> LabelsetDistribution:
        """Return the changed distributions."""


@overload
def expected_accuracy(
    dist: LabelsetDistribution,
    Y_pred: Any = ...,
    *,
    metric: MetricLike,
    empty: float = ...,
    recalibration: FittedChange | None = ...,
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
    recalibration: FittedChange | None = ...,
    return_bounds: Literal[True],
    **settings: Unpack[EngineSettings],
) -> tuple[Floats, Floats, Floats]: ...
def expected_accuracy(
    dist: LabelsetDistribution,
    Y_pred: Any = None,
    *,
    metric: MetricLike,
    empty: float = 1.0,
    recalibration: FittedChange | None = None,
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
    recalibration
        A fitted `TemperatureScaling` or `LabelwiseCalibration`, by which the distribution is
        recalibrated first.
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
    dist = _recalibrate(check_distribution(dist), recalibration).with_engine(**settings)
    Y_pred = dist.mode() if Y_pred is None else Y_pred
    expected = dist.expected(metric, Y_pred, empty=empty)
    return (expected.value, expected.low, expected.high) if return_bounds else expected.value


def _recalibrate(
    dist: LabelsetDistribution, recalibration: FittedChange | None
) -> LabelsetDistribution:
    if recalibration is None:
        return dist
    if not hasattr(recalibration, "transform"):
        raise InputError(
            "`recalibration` must be fitted, e.g. `TemperatureScaling().fit(dist, Y)`, got "
            f"{recalibration!r}."
        )
    return recalibration.transform(dist)


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
@overload
def decide(
    dist: LabelsetDistribution,
    metric: MetricLike,
    *,
    empty: float = ...,
    open_cost: float,
    **settings: Unpack[EngineSettings],
) -> PartialLabelsets: ...
@overload
def decide(
    dist: LabelsetDistribution,
    metric: MetricLike,
    *,
    empty: float = ...,
    skeptical: Literal[True],
    **settings: Unpack[EngineSettings],
) -> PartialLabelsets: ...
def decide(
    dist: LabelsetDistribution,
    metric: MetricLike,
    *,
    empty: float = 1.0,
    return_gap: bool = False,
    open_cost: float | None = None,
    skeptical: bool = False,
    **settings: Unpack[EngineSettings],
) -> Labelsets | tuple[Labelsets, Floats] | PartialLabelsets:
    """Return the labelset with the highest expected accuracy for each instance.

    With `open_cost` or `skeptical`, under Hamming, abstain on single labels (partial abstention):
    `docs/which_answer.md` says when to take which.

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
        more labels than can be enumerated. Jaccard then goes by a search that evaluates a limited
        number of labelsets: the answer is the same on every machine. The bound is certain, but for
        Hamming where marginals come from draws: there it is a 95% bound, from intervals that hold
        for all labels of an instance together.
    open_cost
        Under Hamming: leave a label open if it would be wrong with a probability above this cost,
        min(p, 1 - p) > `open_cost`. A wrong label costs 1, an open label `open_cost`, both over L.
    skeptical
        Under Hamming, for mixtures: decide the labels whose probability is above 0.5 under every
        member, or below 0.5 under every member, and leave the others open.
    **settings
        Of the engine, as for `expected_accuracy`.

    Returns
    -------
    numpy.ndarray of shape (n, L), or a tuple of it and the (n,) gaps; `PartialLabelsets` with
    `open_cost`, which has its `gap`, or with `skeptical`

    Examples
    --------
    >>> from labelsure import DenseDistribution
    >>> dist = DenseDistribution([[0.0, 0.25, 0.25, 1 / 6, 1 / 3, 0.0, 0.0, 0.0]])
    >>> decide(dist, "exact"), decide(dist, "jaccard")
    (array([[0, 0, 1]], dtype=int8), array([[1, 1, 0]], dtype=int8))
    >>> decide(dist, "hamming", open_cost=0.4).to_frame()
      certain    possible   open  gap
    0      ()  (y0, y1)  (y0, y1)  0.0
    """
    metric, empty = get_metric(metric), check_empty(empty)
    dist = check_distribution(dist).with_engine(**settings)
    if open_cost is not None or skeptical:
        if return_gap or (open_cost is not None and skeptical):
            raise InputError(
                "`decide` must be given only one of `open_cost`, `skeptical` and `return_gap`, got "
                "several. What it returns with `open_cost` has its `gap`."
            )
        if metric != HAMMING:
            raise InputError(
                "`metric` must be 'hamming' with `open_cost` or `skeptical`: under Hamming each "
                f"label is decided or left open by its own probability, got {metric.name!r}. "
                "Decide under 'hamming', or leave `open_cost` and `skeptical` out."
            )
        if open_cost is None:
            return _decide_agreed_labels(dist._with_dense_rows())
        return _open_uncertain_labels(dist._with_dense_rows(), check_open_cost(open_cost))
    decisions, gaps = _decide_with_gaps(dist, metric, empty)
    return (decisions, gaps) if return_gap else decisions


def check_open_cost(open_cost: Any) -> float:
    """Return the cost of an open label, or say what is wrong with it."""
    is_number = isinstance(open_cost, Real) and not isinstance(open_cost, bool)
    if not is_number or not 0 <= open_cost < np.inf:
        raise InputError(
            "`open_cost` must be a number >= 0, the probability of being wrong above which a label "
            f"is left open, got {open_cost!r}."
        )
    return float(open_cost)


def _open_uncertain_labels(dist: LabelsetDistribution, open_cost: float) -> PartialLabelsets:
    """Leave labels open that would be wrong too often: Hamming is a sum over labels."""
    found = dist.marginal_bounds()
    p = found.value
    is_open = np.minimum(p, 1 - p) > open_cost + TIE
    values = np.where(is_open, OPEN, p > 0.5 + TIE).astype(np.int8)

    def regret(p: Floats) -> Floats:
        loss = np.where(is_open, open_cost, np.where(values == 1, 1 - p, p))
        return loss - np.minimum(np.minimum(p, 1 - p), open_cost)

    # The regret of a label is convex in its probability, so largest at an end of the interval.
    gap = np.maximum(regret(found.low), regret(found.high)).mean(axis=1)
    return PartialLabelsets(values, dist.label_names, dist.index, gap=gap)


def _decide_agreed_labels(dist: LabelsetDistribution) -> PartialLabelsets:
    """Decide labels whose probability is on one side of a half under all members."""
    members = dist._members()
    if members is None:
        raise InputError(
            "`skeptical` must be asked of a mixture, whose members can disagree, such as an "
            f"ensemble of chains makes, got {type(dist).__name__}. `open_cost` leaves labels open "
            "for any distribution."
        )
    is_set, is_absent = (np.ones((len(dist), dist.n_labels), dtype=bool) for _ in range(2))
    for member in members:
        found = member.marginal_bounds()
        is_set &= found.low > 0.5 + TIE
        is_absent &= found.high < 0.5 - TIE
    values = np.where(is_set, 1, np.where(is_absent, 0, OPEN)).astype(np.int8)
    return PartialLabelsets(values, dist.label_names, dist.index)


def _decide_with_gaps(
    dist: LabelsetDistribution, metric: Metric, empty: float
) -> tuple[Labelsets, Floats]:
    """Decide by the labelsets that are known, and say how far below the best that can be."""
    support = dist._support()
    if support is None:
        return _decide_in_blocks(dist, metric, empty)
    decisions = np.empty((len(dist), dist.n_labels), dtype=np.int8)
    gaps = np.empty(len(dist))
    decide_known = _SUPPORT_RULES.get(metric, _decide_by_table)
    for rows, known in support:
        decisions[rows], gaps[rows] = decide_known(known, metric, empty)
    return decisions, gaps


def _decide_in_blocks(
    dist: LabelsetDistribution, metric: Metric, empty: float
) -> tuple[Labelsets, Floats]:
    """Decide for as many instances at a time as leave the work arrays small."""
    decide_block = RULES.get(metric, _decide_from_pairs)
    if dist.sparse_rows:  # it cuts its rows itself, by what is listed of them
        return decide_block(dist, metric, empty)
    decisions = np.empty((len(dist), dist.n_labels), dtype=np.int8)
    gaps = np.empty(len(dist))
    for rows in cut_rows(len(dist), 8 * dist.n_labels**2, _limits.DECISION_BYTES):
        decisions[rows], gaps[rows] = decide_block(dist[rows], metric, empty)
    return decisions, gaps


# One rule for each metric: labelsets, and how far below the best they can be.

Rule = Callable[[LabelsetDistribution, Metric, float], tuple[Labelsets, Floats]]


def _take_mode(
    dist: LabelsetDistribution, metric: Metric, empty: float
) -> tuple[Labelsets, Floats]:
    if dist._members() is None:
        return dist.mode(), np.zeros(len(dist))
    best = dist.top(1)  # the mode of a mixture is searched for, and may not be found
    return best.labelsets[:, 0], (best.high - best.probabilities)[:, 0]


def _take_majority(
    dist: LabelsetDistribution, metric: Metric, empty: float
) -> tuple[Labelsets, Floats]:
    if isinstance(dist, SparseIndependentLabels):
        return (dist.listed_marginals() > 0.5 + TIE).astype(np.int8), np.zeros(len(dist))
    return _decide_each_label(dist.marginal_bounds())


def _decide_each_label(marginals: Expected) -> tuple[Labelsets, Floats]:
    """Decide each label by its probability; it loses at most |1 - 2p| at the far end of p."""
    decisions = (marginals.value > 0.5 + TIE).astype(np.int8)
    if marginals.low is marginals.high:  # exact
        return decisions, np.zeros(len(decisions))
    regret = np.where(decisions == 1, 1 - 2 * marginals.low, 2 * marginals.high - 1)
    is_exact = marginals.low == marginals.high  # a tie within rounding is no loss
    return decisions, np.where(is_exact, 0.0, np.maximum(regret, 0.0)).mean(axis=1)


def _choose_by_size(
    dist: LabelsetDistribution, metric: Metric, empty: float
) -> tuple[Labelsets, Floats]:
    best = dist._best(metric, empty)
    return (choose_f1(dist, empty), np.zeros(len(dist))) if best is None else best


def _transform_or_search(
    dist: LabelsetDistribution, metric: Metric, empty: float
) -> tuple[Labelsets, Floats]:
    best = dist._best(metric, empty)
    if best is None and dist.n_labels <= _limits.CHEAP_DENSE_LABELS:
        best = _best_of_dense_copy(dist, metric, empty)
    return search_jaccard(dist, empty) if best is None else best


def _decide_from_pairs(
    dist: LabelsetDistribution, metric: Metric, empty: float
) -> tuple[Labelsets, Floats]:
    best = dist._best(metric, empty)
    if best is None and dist.n_labels <= _limits.ALL_PAIRS_LABELS:
        best = _best_of_dense_copy(dist, metric, empty)
    if best is None:
        raise TooLargeError(
            f"The best labelset under the metric {metric.name!r} is only known by comparing all "
            f"pairs of labelsets, for at most {_limits.ALL_PAIRS_LABELS} labels, got "
            f"{dist.n_labels}. Compare your own proposals with `expected_accuracy`, which works "
            "for any number."
        )
    return best


RULES: dict[Metric, Rule] = {
    EXACT: _take_mode,
    HAMMING: _take_majority,
    F1: _choose_by_size,
    JACCARD: _transform_or_search,
}
"""The rule for each metric that has one; any other is decided from all pairs of labelsets."""


def _best_of_dense_copy(
    dist: LabelsetDistribution, metric: Metric, empty: float
) -> tuple[Labelsets, Floats] | None:
    best = DenseBlocks.of(dist)._best(metric, empty)
    if best is None or not dist.sparse_rows:
        return best
    return make_sparse(best[0]), best[1]


# Decisions that go by a support: what the labelsets that were not seen add to the gap.

SupportRule = Callable[[Support, Metric, float], tuple[Labelsets, Floats]]


def _decide_by_table(known: Support, metric: Metric, empty: float) -> tuple[Labelsets, Floats]:
    """Count what is open among the seen labelsets with their share, and what the others can add.

    The two masses may sum to a hair more than one; no gap is wider than the metric's range.
    """
    decisions, gaps = _decide_in_blocks(known.table, metric, empty)
    spread = metric.spread(known.table.n_labels, empty=empty)
    return decisions, np.minimum(known.seen_mass * gaps + known.unseen_mass * spread, spread)


def _take_best_seen(known: Support, metric: Metric, empty: float) -> tuple[Labelsets, Floats]:
    """Only a single unseen labelset can match exactly what the decision does not."""
    decisions = known.table.mode()
    of_decisions = known.seen_mass * np.exp(known.table.log_prob(decisions))
    return decisions, np.maximum(known.largest_unseen - of_decisions, 0.0)


def _take_likely_labels(known: Support, metric: Metric, empty: float) -> tuple[Labelsets, Floats]:
    """Decide by marginals, whose simultaneous intervals make the gap a 95% bound with draws."""
    return _decide_each_label(known.marginal_bounds())


_SUPPORT_RULES: dict[Metric, SupportRule] = {EXACT: _take_best_seen, HAMMING: _take_likely_labels}
"""Metrics that need not allow for the whole range on the unseen mass."""
