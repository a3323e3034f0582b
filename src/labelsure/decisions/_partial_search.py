"""The search for answers with open labels, where labels depend on each other. Section 15.

It begins with answers that set the most probable labels, deny the least probable ones and leave
those between open, as the best one does where labels are independent, and with good ones that leave
none open; then it changes single labels as long as that helps. Bounds over all answers with k
labels set and a open say how far below the best the result can be.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from labelsure import _limits
from labelsure._limits import TIE
from labelsure._typing import Floats, Indices, Integers, Labelsets
from labelsure.decisions._jaccard_search import choose_f1
from labelsure.distributions import IndependentLabels, LabelsetDistribution
from labelsure.labelsets import OPEN
from labelsure.metrics import EXACT, F1, JACCARD, Metric

MAX_CHANGES = 100  # of single labels; it nearly always ends by itself sooner


def search_partial(
    dist: LabelsetDistribution, metric: Metric, empty: float, costs: Floats
) -> tuple[Labelsets, Floats]:
    """Return good answers, (n, L), and how far below the best each can be, (n,).

    Parameters
    ----------
    dist
        A batch of n distributions.
    metric
        Exact match, F1 or Jaccard.
    empty
        The accuracy of two empty labelsets where all labels are decided.
    costs
        (L + 1,) of 0, 1, ... L open labels.
    """
    search = _Search(dist, metric, empty, costs)
    everyone = np.arange(len(dist))
    search.evaluate(everyone, _whole_answers(dist, empty))
    search.evaluate(everyone, _ranked_answers(dist, metric, empty, costs))
    bound = _BOUNDS[metric](dist, empty, costs)
    search.change_while_better(np.flatnonzero(bound > search.value + TIE))
    return search.best, np.maximum(bound - search.value, 0.0)


def _whole_answers(dist: LabelsetDistribution, empty: float) -> Labelsets:
    """Return good answers that leave no label open, (n, g, L)."""
    majority = (dist.marginals() > 0.5 + TIE).astype(np.int8)
    return np.stack([dist.mode(), choose_f1(dist, empty), majority], axis=1)


def _ranked_answers(
    dist: LabelsetDistribution, metric: Metric, empty: float, costs: Floats
) -> Labelsets:
    """Return the answers by rank of marginals, (n, g, L): all of them, or the best if independent.

    All of them is about half the square of the number of labels.
    """
    n_labels, marginals = dist.n_labels, dist.marginals()
    best = IndependentLabels(marginals).best_partial(metric, costs, empty=empty)
    if n_labels > _limits.CHEAP_DENSE_LABELS:
        nothing = np.full(marginals.shape, OPEN, dtype=np.int8)
        return np.stack([nothing if best is None else best, nothing], axis=1)
    ends = [(n_set, end) for n_set in range(n_labels + 1) for end in range(n_set, n_labels + 1)]
    n_set, end = (np.array(column)[:, np.newaxis] for column in zip(*ends, strict=True))
    position = np.arange(n_labels)
    ranked = np.where(position < n_set, 1, np.where(position < end, OPEN, 0)).astype(np.int8)
    order = np.argsort(-marginals, axis=1, kind="stable")
    return np.moveaxis(ranked[:, np.argsort(order, axis=1)], 0, 1)


class _Search:
    """The best answer of each instance so far, and how many more may be evaluated."""

    best: Labelsets
    value: Floats
    left: Integers

    def __init__(
        self, dist: LabelsetDistribution, metric: Metric, empty: float, costs: Floats
    ) -> None:
        self._dist, self._metric, self._costs = dist, metric, costs
        self.best = np.zeros((len(dist), dist.n_labels), dtype=np.int8)
        self.value = np.full(len(dist), -np.inf)
        self.left = np.full(len(dist), _limits.SEARCHED_LABELS // dist.n_labels)
        of_nothing = np.exp(dist.log_prob(self.best))
        # What two empty labelsets add, where that is not what the metric says by itself.
        self._of_empty = empty * of_nothing * metric.depends_on_empty
        self._all_open = float(metric.values(0, 0, 0, 0, empty=0.0))

    def evaluate(self, rows: Indices, answers: Labelsets) -> None:
        """Work out what (r, g, L) answers are worth, and keep those that are better."""
        values = self._dist[rows].expected_decided(self._metric, answers, empty=0.0).value
        n_open = (answers == OPEN).sum(axis=2)
        values = np.where(n_open == answers.shape[2], self._all_open, values)
        is_empty = (answers == 0).all(axis=2)
        values += is_empty * self._of_empty[rows, np.newaxis] - self._costs[n_open]
        self.left[rows] -= answers.shape[1]
        first = (values >= values.max(axis=1, keepdims=True) - TIE).argmax(axis=1)
        at = np.arange(len(rows)), first
        better = values[at] > self.value[rows] + TIE
        self.best[rows[better]] = answers[at][better]
        self.value[rows[better]] = values[at][better]

    def change_while_better(self, rows: Indices) -> None:
        """Change the label that helps most to another of its three values, again and again."""
        n_changes = 2 * self.best.shape[1]
        for _ in range(MAX_CHANGES):
            rows = rows[self.left[rows] > n_changes]
            if not rows.size:
                return
            before = self.value[rows]
            self.evaluate(rows, _with_changes(self.best[rows]))
            rows = rows[self.value[rows] > before]


def _with_changes(answers: Labelsets) -> Labelsets:
    """Return each answer, then the same with one label changed to either other value."""
    n_labels = answers.shape[1]
    changed = np.repeat(answers[:, np.newaxis], 1 + 2 * n_labels, axis=1)
    label = np.arange(n_labels)
    for turn in (1, 2):  # -1, 0, 1 and round again
        new = (answers + 1 + turn) % 3 - 1
        changed[:, 1 + label + (turn - 1) * n_labels, label] = new
    return changed


# Upper bounds of what any answer is worth.


def _bound_exact(dist: LabelsetDistribution, empty: float, costs: Floats) -> Floats:
    """All decided labels are right at most as often as the least certain of them.

    If a are open, that is at best the one after the a least certain labels; with none open it is
    the mode's probability.
    """
    marginals = dist.marginals()
    certain = np.sort(np.maximum(marginals, 1 - marginals), axis=1)
    bounds = np.column_stack([np.exp(dist.log_prob(dist.mode())), certain[:, 1:]])
    bounds = np.column_stack([bounds, np.ones(len(dist))])
    return (bounds - costs).max(axis=1)


def _bound_by_sizes(
    worth: Callable[[Floats, Floats, int], Floats],
) -> Callable[[LabelsetDistribution, float, Floats], Floats]:
    """Return the bound that goes by the best k labels for each number a of open ones.

    Of a labelset with s labels at least s - a are decided.

    Parameters
    ----------
    worth
        What a true positive can add at most, for s (rows) and k (columns), given a.
    """

    def bound(dist: LabelsetDistribution, empty: float, costs: Floats) -> Floats:
        n_labels = dist.n_labels
        by_size = dist.size_marginals()
        size, k = np.arange(1.0, n_labels + 1)[:, np.newaxis], np.arange(1.0, n_labels + 1)
        best = empty * np.exp(dist.log_prob(np.zeros((len(dist), n_labels), dtype=np.int8)))
        for a in range(n_labels):
            gains = by_size @ worth(size, k, a)
            falling = -np.sort(-gains, axis=1)
            sums = np.einsum("njk,jk->nk", falling, np.triu(np.ones((n_labels, n_labels))))
            best = np.maximum(best, sums[:, : n_labels - a].max(axis=1) - costs[a])
        return best

    return bound


def _f1_worth(size: Floats, k: Floats, a: int) -> Floats:
    return 2.0 / (k + np.maximum(size - a, 1.0))


def _jaccard_worth(size: Floats, k: Floats, a: int) -> Floats:
    return 1.0 / np.maximum(size - a, k)


_BOUNDS: dict[Metric, Callable[[LabelsetDistribution, float, Floats], Floats]] = {
    EXACT: _bound_exact,
    F1: _bound_by_sizes(_f1_worth),
    JACCARD: _bound_by_sizes(_jaccard_worth),
}
