"""What distributions are asked about answers that leave labels open. Section 15.

The bridge is made of this, so what is made of the bridge is imported when it is needed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from labelsure import _limits
from labelsure._limits import TIE, cut_rows
from labelsure._typing import Floats, Indices, Labelsets
from labelsure.errors import InputError, TooLargeError
from labelsure.labelset_rows import refuse_other_labels
from labelsure.labelsets import OPEN, from_codes
from labelsure.metrics import (
    EXACT,
    F1,
    JACCARD,
    Metric,
    MetricLike,
    check_empty,
    get_metric,
)
from labelsure.weighted_labelsets import WeightedLabelsets

if TYPE_CHECKING:
    from labelsure.distributions._answers import Expected
    from labelsure.distributions._bridge import LabelsetDistribution


class OpenLabelQuestions:
    """The part of a `LabelsetDistribution` that is about answers with open labels."""

    def expected_decided(
        self: Any, metric: MetricLike, answers: Any, *, empty: float = 1.0
    ) -> Expected:
        """Return the expected accuracy of the labels that answers decide, with bounds.

        Parameters
        ----------
        metric
            A name or a function of (tp, fp, fn, tn), which count decided labels only.
        answers
            `PartialLabelsets`, or an (n, L) array of 1, 0 and -1 for open labels; or (n, g, L), g
            answers for each instance.
        empty
            The Jaccard and F1 where no decided label is set, neither here nor in the truth.

        Returns
        -------
        Values and bounds of shape (n,), or (n, g); NaN where all labels are open
        """
        metric, empty = get_metric(metric), check_empty(empty)
        values = read_answers(self, answers)
        if values.ndim == 3:
            return _expect_decided(self, metric, values, empty)
        found = _expect_decided(self, metric, values[:, np.newaxis], empty)
        return replace(found, value=found.value[:, 0], low=found.low[:, 0], high=found.high[:, 0])

    def best_partial(
        self: Any, metric: MetricLike, costs: Floats, *, empty: float = 1.0
    ) -> Labelsets | None:
        """Return the answers that are worth most, where this kind has its own exact way.

        `labelsure.decide` with `open_cost` is the function for users.

        Parameters
        ----------
        metric, empty
            As for `expected_decided`; but two empty labelsets are worth `empty` only where all
            labels are decided.
        costs
            (L + 1,) of 0, 1, ... L open labels.

        Returns
        -------
        (n, L) of 1, 0 and -1 for open labels; None where there is no such way
        """
        return self._best_partial(get_metric(metric), costs, check_empty(empty))

    # What has a default, for kinds that have no better way.

    def _expected_hidden(self: Any, metric: Metric, answers: Labelsets, empty: float) -> Expected:
        """Return the same of (n, g, L) answers, open labels counting as absent and not true."""
        return _expect_by_tables(self, metric, answers, empty)

    def _best_partial(self, metric: Metric, costs: Floats, empty: float) -> Labelsets | None:
        return None


def read_answers(dist: LabelsetDistribution, answers: Any) -> Labelsets:
    """Return answers in the order of a distribution's labels and instances, or refuse them."""
    from labelsure.partial_labelsets import PartialLabelsets

    if isinstance(answers, PartialLabelsets):
        refuse_other_labels(
            answers.label_names,
            answers.n_labels,
            dist.label_names,
            dist.n_labels,
            "the distribution",
        )
        index, own = answers.index, dist.index
        if index is not None and own is not None and not index.equals(own):
            raise InputError(
                "The answers must have the rows of the distribution, in their order, got others."
            )
        answers = answers.values
    values = np.asarray(answers)
    shape = (len(dist), dist.n_labels)
    is_fitting = values.ndim in (2, 3) and (values.shape[0], values.shape[-1]) == shape
    if not is_fitting or 0 in values.shape[1:]:
        raise InputError(
            f"Answers must have shape {shape}, or one more axis between for several answers, got "
            f"shape {values.shape}."
        )
    if not np.isin(values, (1, 0, OPEN)).all():
        raise InputError("Answers must be 1 (there), 0 (absent) or -1 (open), got other values.")
    return values.astype(np.int8)


def _expect_decided(
    dist: LabelsetDistribution, metric: Metric, answers: Labelsets, empty: float
) -> Expected:
    from labelsure.distributions._answers import Expected

    n_open = (answers == OPEN).sum(axis=2)
    value, low, high = (np.full(n_open.shape, np.nan) for _ in range(3))
    if metric in _WITHOUT_TRUE_NEGATIVES:
        found = dist._expected_hidden(metric, answers, empty)
        value, low, high = (numbers.copy() for numbers in (found.value, found.low, found.high))
    else:
        for a in np.unique(n_open).tolist():
            rows = np.flatnonzero((n_open == a).any(axis=1))
            own = _with_fewer_negatives(metric, a)
            part = dist[rows]._expected_hidden(own, answers[rows], empty)
            at = rows[:, np.newaxis], np.arange(n_open.shape[1])
            is_so = n_open[at] == a
            for whole, new in ((value, part.value), (low, part.low), (high, part.high)):
                whole[at] = np.where(is_so, new, whole[at])
    for numbers in (value, low, high):
        numbers[n_open == dist.n_labels] = np.nan
    return Expected(value, low, high)


_WITHOUT_TRUE_NEGATIVES = frozenset({EXACT, JACCARD, F1})
"""Metrics for which a label that is open is like one that is absent and not true."""


def _with_fewer_negatives(metric: Metric, n_open: int) -> Metric:
    """Return the metric that does not count the open labels, which are among the true negatives."""

    def of_decided(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Any:
        return metric.function(tp, fp, fn, np.maximum(tn - n_open, 0))

    return Metric(metric.name, of_decided, metric.range, metric.outcome, metric.title)


def _expect_by_tables(
    dist: LabelsetDistribution, metric: Metric, answers: Labelsets, empty: float
) -> Expected:
    """Go by all labelsets where these are few, else by those that decisions go by."""
    from labelsure.distributions._answers import Expected

    value, low, high = (np.empty(answers.shape[:2]) for _ in range(3))
    support = dist.support()
    if support is None and dist.n_labels > _limits.CHEAP_DENSE_LABELS:
        support = dist.with_engine(engine="certified").support()
    if support is None:
        for some, table in list_all_labelsets(dist):
            value[some] = table._expected_hidden(metric, answers[some], empty).value
        return Expected.exactly(value)
    least, most = _extremes(metric, dist.n_labels, empty)
    for rows, known in support:
        seen, unseen = (mass[:, np.newaxis] for mass in (known.seen_mass, known.unseen_mass))
        by_seen = seen * known.table._expected_hidden(metric, answers[rows], empty).value
        low[rows], high[rows] = by_seen + unseen * least, by_seen + unseen * most
        value[rows] = (low[rows] + high[rows]) / 2
    return Expected(value, low, high)


def _extremes(metric: Metric, n_labels: int, empty: float) -> tuple[float, float]:
    """Return the least and the most that any answer can be worth, 0 included."""
    if metric.range is not None:
        return min(metric.range[0], 0.0), max(metric.range[1], 0.0)
    tables = [metric.table(n_labels, k, empty=empty) for k in range(n_labels + 1)]
    return min(0.0, *(t.min() for t in tables)), max(0.0, *(t.max() for t in tables))


def list_all_labelsets(
    dist: LabelsetDistribution,
) -> Iterator[tuple[slice, LabelsetDistribution]]:
    """Yield some instances at a time as a table of all their labelsets, where these are few."""
    from labelsure.distributions._labelset_table import LabelsetTable

    if dist.n_labels > _limits.CHEAP_DENSE_LABELS:
        raise TooLargeError(
            f"Answers with open labels need all labelsets of a {type(dist).__name__}, for at most "
            f"{_limits.CHEAP_DENSE_LABELS} labels, got {dist.n_labels}. Use IndependentLabels, a "
            "trellis, a LabelsetTable or chains."
        )
    labelsets = from_codes(np.arange(2**dist.n_labels), dist.n_labels)
    bytes_each = 2**dist.n_labels * (dist.n_labels + 24)
    for some in cut_rows(len(dist), bytes_each, _limits.DECISION_BYTES):
        P = dist[some].probabilities()
        order = np.argsort(-P, axis=1, kind="stable")
        weights = np.take_along_axis(P, order, axis=1)
        is_there = weights > 0
        starts = np.append(0, np.cumsum(is_there.sum(axis=1)))
        seen = WeightedLabelsets(labelsets[order[is_there]], weights[is_there], starts)
        yield some, LabelsetTable.from_weighted(seen, dist.label_names)


def open_labels(answers: Labelsets, order: Indices, worth: Floats) -> Labelsets:
    """Open as many labels as are worth most; of equally good numbers of them the least.

    Parameters
    ----------
    answers
        (n, L) zeros and ones.
    order
        (n, L) the labels of each instance, the first to be opened first.
    worth
        (n, L + 1) of 0, 1, ... L open labels.
    """
    n_open = (worth >= worth.max(axis=1, keepdims=True) - TIE).argmax(axis=1)
    is_open = np.arange(answers.shape[1]) < n_open[:, np.newaxis]
    ranked = np.where(is_open, OPEN, np.take_along_axis(answers, order, axis=1))
    opened = np.empty_like(answers)
    np.put_along_axis(opened, order, ranked.astype(np.int8), axis=1)
    return opened
