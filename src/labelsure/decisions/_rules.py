"""Decisions: the expected accuracy of a labelset, and the labelset that has the highest.

Section numbers are those of `docs/algorithms.md`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, Protocol, Unpack, overload

import numpy as np

from labelsure import _limits
from labelsure._limits import TIE, cut_rows
from labelsure._typing import Floats, Labelsets
from labelsure.decisions._jaccard_search import choose_f1, search_jaccard
from labelsure.distributions import (
    DenseDistribution,
    EngineSettings,
    LabelsetDistribution,
    Support,
    check_distribution,
)
from labelsure.errors import InputError, TooLargeError
from labelsure.labelset_rows import no_labels, stack_rows
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
from labelsure.partial_labelsets import PartialLabelsets
from labelsure.sparse_rows import make_sparse

OpenCost = float | Callable[[float], float]
"""What it costs to leave all labels open, a share of them costing that share of it; or a concave
function of the share."""


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
        A fitted `JointTemperature`, `LinkTemperature` or `LabelwiseCalibration`, by which the
        distribution is recalibrated first.
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
            "`recalibration` must be fitted, e.g. `JointTemperature().fit(dist, Y)`, got "
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
    open_cost: OpenCost,
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
    open_cost: OpenCost | None = None,
    skeptical: bool = False,
    **settings: Unpack[EngineSettings],
) -> Labelsets | tuple[Labelsets, Floats] | PartialLabelsets:
    """Return the labelset with the highest expected accuracy for each instance.

    Or an answer that may leave labels open, with `open_cost` or `skeptical`:
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
        number of labelsets: the answer is the same on every machine.
    open_cost
        Leave labels open where that is worth it: the loss of accuracy that leaving all labels open
        is worth, a share of them costing that share of it; or a concave function of the share of
        open labels. For "exact", "hamming", "jaccard" and "f1". Hamming is then counted over all
        labels, an open one not being wrong, and `empty` counts only where all labels are decided.
    skeptical
        For mixtures: decide the labels on which all members agree, and leave the others open. The
        answer also has the labelset with the highest least expected accuracy (`maximin`) and how
        far apart the members are about it (`spread`).
    **settings
        Of the engine, as for `expected_accuracy`.

    Returns
    -------
    numpy.ndarray of shape (n, L), or a tuple of it and the (n,) gaps; `PartialLabelsets`, which
    has its `gap`, with `open_cost` or `skeptical`

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
        dist = dist.with_dense_rows()
        if return_gap or (open_cost is not None and skeptical):
            raise InputError(
                "`decide` must be given only one of `open_cost`, `skeptical` and `return_gap`, got "
                "several. What it returns with the first two has its `gap`."
            )
        if open_cost is not None:
            from labelsure.decisions._partial_rules import decide_partially  # few need it

            return decide_partially(dist, metric, empty, open_cost)
        from labelsure.decisions._skeptical import decide_skeptically  # fewer still

        return decide_skeptically(
            dist, metric, empty, lambda other: _decide_with_gaps(other, metric, empty)
        )
    decisions, gaps = _decide_with_gaps(dist, metric, empty)
    return (decisions, gaps) if return_gap else decisions


def _decide_with_gaps(
    dist: LabelsetDistribution, metric: Metric, empty: float
) -> tuple[Labelsets, Floats]:
    """Decide by the labelsets that are known, and say how far below the best that can be."""
    support = dist.support()
    if support is None:
        return _decide_in_blocks(dist, metric, empty)
    decisions = np.empty((len(dist), dist.n_labels), dtype=np.int8)
    gaps = np.empty(len(dist))
    widen = _SUPPORT_GAPS.get(metric, _add_unseen_spread)
    for rows, known in support:
        decisions[rows], by_known = _decide_in_blocks(known.table, metric, empty)
        gaps[rows] = widen(known, decisions[rows], by_known, metric, empty)
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
    if dist.members() is None:
        return dist.mode(), np.zeros(len(dist))
    best = dist.top(1)  # the mode of a mixture is searched for, and may not be found
    return best.labelsets[:, 0], (best.high - best.probabilities)[:, 0]


def _take_majority(
    dist: LabelsetDistribution, metric: Metric, empty: float
) -> tuple[Labelsets, Floats]:
    return (dist.marginals() > 0.5 + TIE).astype(np.int8), np.zeros(len(dist))


def _choose_by_size(
    dist: LabelsetDistribution, metric: Metric, empty: float
) -> tuple[Labelsets, Floats]:
    best = dist.best_with_gap(metric, empty=empty)
    return (choose_f1(dist, empty), np.zeros(len(dist))) if best is None else best


def _transform_or_search(
    dist: LabelsetDistribution, metric: Metric, empty: float
) -> tuple[Labelsets, Floats]:
    best = dist.best_with_gap(metric, empty=empty)
    if best is None and dist.n_labels <= _limits.CHEAP_DENSE_LABELS:
        best = _best_of_dense_copy(dist, metric, empty)
    return search_jaccard(dist, empty) if best is None else best


def _decide_from_pairs(
    dist: LabelsetDistribution, metric: Metric, empty: float
) -> tuple[Labelsets, Floats]:
    best = dist.best_with_gap(metric, empty=empty)
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
    best = []
    for rows in cut_rows(len(dist), 8 * 2**dist.n_labels, _limits.DECISION_BYTES):
        dense = DenseDistribution.from_trusted(dist[rows].probabilities(), dist.label_names)
        found = dense.best(metric, empty=empty)
        if found is None:
            return None
        best.append(make_sparse(found) if dist.sparse_rows else found)
    nothing = no_labels(dist[:0].mode())
    return stack_rows([nothing, *best]), np.zeros(len(dist))


# Decisions that go by a support: what the labelsets that were not seen add to the gap.

WidenGaps = Callable[[Support, Labelsets, Floats, Metric, float], Floats]


def _add_unseen_spread(
    known: Support, decisions: Labelsets, gaps: Floats, metric: Metric, empty: float
) -> Floats:
    """Count what is open among the seen labelsets with their share, and what the others can add.

    The two masses may sum to a hair more than one; no gap is wider than the metric's range.
    """
    spread = metric.spread(known.table.n_labels, empty=empty)
    return np.minimum(known.seen_mass * gaps + known.unseen_mass * spread, spread)


def _compare_with_largest_unseen(
    known: Support, decisions: Labelsets, gaps: Floats, metric: Metric, empty: float
) -> Floats:
    """Only a single unseen labelset can match exactly what the decision does not."""
    of_decisions = known.seen_mass * np.exp(known.table.log_prob(decisions))
    return np.maximum(known.largest_unseen - of_decisions, 0.0)


_SUPPORT_GAPS: dict[Metric, WidenGaps] = {EXACT: _compare_with_largest_unseen}
"""Metrics whose gap is smaller than the spread of the unseen mass."""
