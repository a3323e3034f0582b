"""Decisions that may leave labels open: each open label costs something, so few are. Section 15.

What an answer is worth is its expected accuracy minus the cost of its open labels. An open label
is in no count; Hamming is counted over all labels, an open one not being wrong; and two empty
labelsets are worth `empty` only where all labels are decided: saying nothing would pay otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from labelsure import _limits
from labelsure._limits import TIE, cut_rows
from labelsure._typing import Floats, Labelsets
from labelsure.decisions._partial_search import search_partial
from labelsure.distributions import LabelsetDistribution, list_all_labelsets, open_labels
from labelsure.errors import InputError
from labelsure.labelsets import OPEN
from labelsure.metrics import EXACT, F1, HAMMING, JACCARD, Metric
from labelsure.partial_labelsets import PartialLabelsets

SHAPE_ROUNDING = 1e-9  # how far costs may be from rising, or from concave


def decide_partially(
    dist: LabelsetDistribution, metric: Metric, empty: float, open_cost: Any
) -> PartialLabelsets:
    """Return the answers that are worth most, with how far below the best they can be.

    Parameters
    ----------
    dist
        A batch of n distributions.
    metric
        One that has a rule.
    empty
        The Jaccard and F1 of two empty labelsets, where all labels are decided.
    open_cost
        As `labelsure.decide` takes it.
    """
    if metric not in PARTIAL_RULES:
        raise InputError(
            "`metric` must be one of "
            f"{', '.join(known.name for known in PARTIAL_RULES)} with `open_cost`, got "
            f"{metric.name!r}."
        )
    costs = check_open_cost(open_cost, dist.n_labels)
    values = np.empty((len(dist), dist.n_labels), dtype=np.int8)
    gaps = np.empty(len(dist))
    if dist.n_labels > _limits.CHEAP_DENSE_LABELS:
        # A search asks many times: of all labelsets of more labels each time would take too long.
        dist = dist.with_engine(engine="certified")
    support = dist.support()
    if support is None:
        for some in cut_rows(len(dist), 8 * dist.n_labels**2, _limits.DECISION_BYTES):
            values[some], gaps[some] = PARTIAL_RULES[metric](dist[some], metric, empty, costs)
    else:
        for rows, known in support:
            found, gap = PARTIAL_RULES[metric](known.table, metric, empty, costs)
            # The seen labelsets were taken as if they were all: what the others can add, and the
            # cost, which then weighs too little beside the accuracy, may be lost.
            lost = (1 - known.seen_mass) * costs[(found == OPEN).sum(axis=1)]
            values[rows], gaps[rows] = found, known.seen_mass * gap + known.unseen_mass + lost
    return PartialLabelsets(values, dist.label_names, dist.index, gap=gaps)


def check_open_cost(open_cost: Any, n_labels: int) -> Floats:
    """Return the cost of 0, 1, ... L open labels, or say what is wrong with it."""
    shares = np.arange(n_labels + 1) / n_labels
    try:
        if callable(open_cost):
            costs = np.array([float(open_cost(share)) for share in shares.tolist()])
        else:
            costs = float(open_cost) * shares
    except (TypeError, ValueError) as error:
        raise _wrong_cost(open_cost) from error
    if not np.isfinite(costs).all() or abs(costs[0]) > SHAPE_ROUNDING:
        raise _wrong_cost(open_cost)
    steps = np.diff(costs)
    if (steps < -SHAPE_ROUNDING).any() or (np.diff(steps) > SHAPE_ROUNDING).any():
        raise _wrong_cost(open_cost)
    return costs


def _wrong_cost(open_cost: Any) -> InputError:
    return InputError(
        "`open_cost` must be a number >= 0, the cost of leaving all labels open, or a function of "
        "the share of open labels that is 0 at 0, never falls and is concave, e.g. "
        f"`lambda share: 0.2 * share**0.5`, got {open_cost!r}."
    )


# One rule for each metric: answers, and how far below the best they can be.

PartialRule = Callable[[LabelsetDistribution, Metric, float, Floats], tuple[Labelsets, Floats]]


def _open_uncertain_labels(
    dist: LabelsetDistribution, metric: Metric, empty: float, costs: Floats
) -> tuple[Labelsets, Floats]:
    """Leave the labels open whose probability is nearest to a half; labels add up, so this is best.

    With a number as the cost these are all labels that are wrong with a probability above it.
    """
    marginals = dist.marginals()
    wrong = np.minimum(marginals, 1 - marginals)
    order = np.argsort(-wrong, axis=1, kind="stable")
    falling = np.take_along_axis(wrong, order, axis=1)
    rest = falling.sum(axis=1, keepdims=True) - np.cumsum(falling, axis=1)
    losses = np.column_stack([falling.sum(axis=1), rest]) / dist.n_labels + costs
    answers = (marginals > 0.5 + TIE).astype(np.int8)
    return open_labels(answers, order, -losses), np.zeros(len(dist))


def _ask_or_search(
    dist: LabelsetDistribution, metric: Metric, empty: float, costs: Floats
) -> tuple[Labelsets, Floats]:
    best = dist.best_partial(metric, costs, empty=empty)
    if best is not None:
        return best, np.zeros(len(dist))
    return _search_in_parts(dist, metric, empty, costs)


PARTIAL_RULES: dict[Metric, PartialRule] = {
    EXACT: _ask_or_search,
    HAMMING: _open_uncertain_labels,
    F1: _ask_or_search,
    JACCARD: _ask_or_search,
}
"""The rule for each metric that has one."""


def _search_in_parts(
    dist: LabelsetDistribution, metric: Metric, empty: float, costs: Floats
) -> tuple[Labelsets, Floats]:
    """Search among the labelsets written out where these are few: they are evaluated fastest."""
    answers = np.empty((len(dist), dist.n_labels), dtype=np.int8)
    gaps = np.empty(len(dist))
    for rows, part in _written_out(dist):
        answers[rows], gaps[rows] = search_partial(part, metric, empty, costs)
    return answers, gaps


def _written_out(
    dist: LabelsetDistribution,
) -> Iterator[tuple[slice, LabelsetDistribution]]:
    if dist.n_labels <= _limits.CHEAP_DENSE_LABELS:
        return list_all_labelsets(dist)
    return iter([(slice(None), dist)])
