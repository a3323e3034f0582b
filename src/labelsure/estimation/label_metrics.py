"""Precision, recall and F1 of each label, and their micro and macro averages over a batch.

All of them are quotients of three counts of a label: how often it is predicted, how often it is
true, how often both. What is predicted is known; the truth is not, so the other two are random.

- Labels are drawn instance by instance from the distribution, which gives every quantity with its
  interval (`draw_counts`).
- Under a distribution the instances are independent, so the counts of one label are sums of
  independent coins, whose distribution is computed exactly, and with it the expectation
  (`expect_measures`). Averages over labels: macro is the mean of these; micro depends on how labels
  of one instance go together and is taken from the draws.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from labelsure._runtime import limits as _limits
from labelsure._runtime.limits import cut_rows
from labelsure._runtime.typing import Floats, LabelNames, Labelsets, RandomState
from labelsure.distributions._bridge import LabelsetDistribution
from labelsure.distributions._probabilities import make_generator
from labelsure.errors import unknown_name
from labelsure.labelsets.rows import show_names

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "LABEL_METRICS",
    "MEASURES",
    "LabelCounts",
    "Measure",
    "check_label_metric",
    "draw_counts",
    "expect_measures",
    "label_table",
]

NEGLIGIBLE = 1e-12
"""Counts less probable than this are left out of an expectation: beyond lies rounding."""


@dataclass(frozen=True)
class Measure:
    """A quotient of the counts of a label, or of all labels together.

    Its value is `tp_weight` * tp / (n_predicted, if it counts, + n_true, if it counts), where tp
    is how often the label is predicted and true.

    Parameters
    ----------
    tp_weight
        Of the true positives, above the line.
    counts_predicted, counts_true
        Whether what is predicted, and what is true, is counted below the line.
    """

    tp_weight: float
    counts_predicted: bool
    counts_true: bool

    def denominator(self, n_predicted: Any, n_true: Any) -> Floats:
        """Return what stands below the line."""
        total: Floats = self.counts_predicted * n_predicted + self.counts_true * n_true
        return total

    def values(self, tp: Any, n_predicted: Any, n_true: Any, empty: float) -> Floats:
        """Return the quotient of each entry, 0/0 being worth `empty`."""
        below = self.denominator(n_predicted, n_true) + np.zeros_like(tp, dtype=np.float64)
        is_known = below > 0
        quotient = self.tp_weight * np.asarray(tp) / np.where(is_known, below, 1.0)
        return np.where(is_known, quotient, empty)


MEASURES: dict[str, Measure] = {
    "precision": Measure(1.0, counts_predicted=True, counts_true=False),
    "recall": Measure(1.0, counts_predicted=False, counts_true=True),
    "f1": Measure(2.0, counts_predicted=True, counts_true=True),
}
"""The measures of one label."""

LABEL_METRICS: tuple[str, ...] = tuple(
    f"{average}-{measure}" for average in ("micro", "macro") for measure in MEASURES
)
"""Measures of a batch: micro, of the counts of all labels together; macro, the mean over labels."""


def check_label_metric(metric: Any) -> tuple[str, Measure]:
    """Return the kind of average, micro or macro, and the measure that a name stands for."""
    if metric not in LABEL_METRICS:
        raise unknown_name("label metric", str(metric), LABEL_METRICS)
    average, _, measure = metric.partition("-")
    return average, MEASURES[measure]


@dataclass(frozen=True)
class LabelCounts:
    """How often each label is predicted, true, and both.

    Parameters
    ----------
    tp, n_true
        (..., L) how often a label is predicted and true, and true; before the last axis there may
        be one for draws.
    n_predicted
        (L,) how often it is predicted.

    Examples
    --------
    >>> counts = LabelCounts.compare([[1, 0], [1, 1]], [[1, 0], [0, 0]])
    >>> counts.of_labels(MEASURES["recall"], empty=1.0)
    array([0.5, 0. ])
    >>> counts.of_batch("micro-recall", empty=1.0)
    array(0.333...)
    """

    tp: Floats
    n_true: Floats
    n_predicted: Floats

    @classmethod
    def compare(cls, Y_true: Any, Y_pred: Any) -> LabelCounts:
        """Count a known truth."""
        true, predicted = np.asarray(Y_true), np.asarray(Y_pred)
        tp = (true * predicted).sum(axis=0).astype(np.float64)
        return cls(tp, true.sum(axis=0).astype(np.float64), _count_predicted(predicted))

    def of_labels(self, measure: Measure, empty: float) -> Floats:
        """Return a measure of each label, (..., L)."""
        return measure.values(self.tp, self.n_predicted, self.n_true, empty)

    def of_batch(self, metric: str, empty: float) -> Floats:
        """Return the micro or macro average of a measure, (...)."""
        average, measure = check_label_metric(metric)
        if average == "macro":
            return self.of_labels(measure, empty).mean(axis=-1)
        tp, n_true = self.tp.sum(axis=-1), self.n_true.sum(axis=-1)
        return measure.values(tp, self.n_predicted.sum(), n_true, empty)


def draw_counts(
    dist: LabelsetDistribution, Y_pred: Labelsets, n_draws: int, random_state: RandomState
) -> LabelCounts:
    """Count the labels of truths that are drawn from the distributions, (draws, L).

    Parameters
    ----------
    dist
        A batch of n distributions.
    Y_pred
        (n, L) what is predicted.
    n_draws
        How many truths of the whole batch are drawn.
    random_state
        Seed or generator.
    """
    generator = make_generator(random_state)
    tp = np.zeros((n_draws, dist.n_labels))
    n_true = np.zeros_like(tp)
    for rows in cut_rows(len(dist), 2 * n_draws * dist.n_labels, _limits.DECISION_BYTES):
        drawn = dist[rows].sample(n_draws, generator)
        n_true += drawn.sum(axis=0, dtype=np.int64)
        tp += (drawn & Y_pred[rows, np.newaxis]).sum(axis=0, dtype=np.int64)
    return LabelCounts(tp, n_true, _count_predicted(Y_pred))


def expect_measures(marginals: Floats, Y_pred: Labelsets, empty: float) -> dict[str, Floats]:
    """Return the exact expectation of each measure of each label, (L,), by name.

    Parameters
    ----------
    marginals
        (n, L) how probable each label is.
    Y_pred
        (n, L) what is predicted.
    empty
        What 0/0 is worth.
    """
    n_labels = marginals.shape[1]
    expected = {name: np.empty(n_labels) for name in MEASURES}
    for j in range(n_labels):
        is_predicted = Y_pred[:, j] == 1
        first_tp, p_tp = _sum_of_coins(marginals[is_predicted, j])
        first_fn, p_fn = _sum_of_coins(marginals[~is_predicted, j])
        tp = first_tp + np.arange(len(p_tp))[:, np.newaxis]
        n_true = tp + first_fn + np.arange(len(p_fn))
        for name, measure in MEASURES.items():
            values = measure.values(tp + 0 * n_true, is_predicted.sum(), n_true, empty)
            expected[name][j] = p_tp @ values @ p_fn
    return expected


def _sum_of_coins(probabilities: Floats) -> tuple[int, Floats]:
    """Return the distribution of how many coins show heads: the least number, and probabilities.

    Coins are put together two by two, then pairs, and so on. Numbers at both ends that are too
    improbable to matter are left out.
    """
    from scipy.signal import fftconvolve  # slow to import

    n_sums = 1 << max(len(probabilities) - 1, 0).bit_length()
    sums = np.zeros((n_sums, 2))
    sums[:, 0] = 1.0
    sums[: len(probabilities), 1] = probabilities
    sums[: len(probabilities), 0] -= probabilities
    while len(sums) > 1:
        sums = fftconvolve(sums[::2], sums[1::2], axes=1)
    matters = np.flatnonzero(sums[0] > NEGLIGIBLE)
    kept = sums[0, matters[0] : matters[-1] + 1]
    return int(matters[0]), np.maximum(kept, 0.0) / np.maximum(kept, 0.0).sum()


def _count_predicted(Y_pred: Any) -> Floats:
    counted: Floats = Y_pred.sum(axis=0, dtype=np.int64).astype(np.float64)
    return counted


def _interval_columns(name: str, values: Floats, draws: Floats, level: float) -> dict[str, Floats]:
    """Return the columns of a quantity: its value, and the percentiles of the draws around it."""
    low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return {name: values, f"{name}_low": low, f"{name}_high": high}


def label_table(
    drawn: LabelCounts,
    values: dict[str, Floats],
    label_names: LabelNames,
    *,
    empty: float,
    level: float,
) -> pd.DataFrame:
    """Return the table of the labels: numbers and measures, each with an interval.

    Parameters
    ----------
    drawn
        Counts of draws, from which the intervals come.
    values
        By name (n_true and those of `MEASURES`), (L,) the numbers to show; what is not there is
        the mean of the draws.
    label_names
        The index; y0, y1, ... where labels have no names.
    empty, level
        What 0/0 is worth; how often an interval covers.
    """
    import pandas as pd

    draws = {"n_true": drawn.n_true}
    draws |= {name: drawn.of_labels(measure, empty) for name, measure in MEASURES.items()}
    columns: dict[str, Any] = {"n_predicted": drawn.n_predicted.astype(np.int64)}
    for name, of_draws in draws.items():
        shown = values.get(name, of_draws.mean(axis=0))
        columns |= _interval_columns(name, shown, of_draws, level)
    names = show_names(label_names, len(columns["n_predicted"]))
    return pd.DataFrame(columns, index=pd.Index(names, name="label"))
