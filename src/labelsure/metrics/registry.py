"""Metrics: how accurate one labelset is when another is true, from the four counts.

A metric is a function of (tp, fp, fn, tn) with a title, a range and a type of outcome. Those of the
field are registered by name; any other function of the same arguments serves as well. Two empty
labelsets are the one case in which a function may give NaN, which `empty` replaces. The recall of
an empty truth and the precision of an empty prediction are 0 otherwise, so that F1 is the harmonic
mean of both in every row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from labelsure._runtime.arguments import read_number
from labelsure._runtime.typing import Array, Floats, LabelsetsLike
from labelsure.errors import InputError, unknown_name
from labelsure.labelsets.names import align_pair
from labelsure.labelsets.sparse import count_labels, count_shared

COUNTS = ("tp", "fp", "fn", "tn")
"""The names of the four counts, in the order in which every function takes them."""

OUTCOMES = ("bounded", "binary")
ROUNDING = 1e-9  # how far a value may be outside of its metric's range

Counts = tuple[Array, Array, Array, Array]
"""True positives, false positives, false negatives, true negatives."""


@dataclass(frozen=True)
class Metric:
    """A named function of (tp, fp, fn, tn), the counts being arrays of one shape.

    Parameters
    ----------
    name
        Name in tables and messages.
    function
        Takes four float arrays, returns one of the same shape; `empty`
        replaces NaN for two empty sets.
    range
        The least and the largest value that it can have, for any number of labels. Certified
        gaps rest on it, so that every value is compared with it. None: it is computed for each
        number of labels.
    outcome
        "binary" if there are no values but 0 and 1, "bounded" otherwise.
    title
        For headings; by default the name with a capital letter.
    """

    name: str
    function: Callable[[Any, Any, Any, Any], Any]
    range: tuple[float, float] | None = None
    outcome: str = "bounded"
    title: str = ""

    def __post_init__(self) -> None:
        if self.range is not None and not self.range[0] < self.range[1]:
            raise InputError(
                f"The range of the metric {self.name!r} must be its least and largest value, or "
                f"None, got {self.range!r}."
            )
        if self.outcome not in OUTCOMES:
            raise unknown_name(f"outcome of the metric {self.name!r}", self.outcome, OUTCOMES)
        if not self.title:
            object.__setattr__(self, "title", self.name[:1].upper() + self.name[1:])

    def __hash__(self) -> int:
        # By the name alone: the function may be an object without a hash.
        return hash(self.name)

    def values(self, tp: Any, fp: Any, fn: Any, tn: Any, *, empty: float = 1.0) -> Floats:
        """Metric of each entry; `empty` replaces the 0/0 of two empty labelsets."""
        tp, fp, fn, tn = (np.asarray(count, dtype=np.float64) for count in (tp, fp, fn, tn))
        with np.errstate(divide="ignore", invalid="ignore"):
            values = np.array(self.function(tp, fp, fn, tn), dtype=np.float64)
        if values.shape != tp.shape:
            raise InputError(
                f"The metric {self.name!r} must return an array of shape {tp.shape}, got shape "
                f"{values.shape}. Write it with array operations, e.g. `np.where` instead of `if`."
            )
        both_empty = tp + fp + fn == 0
        values[both_empty & np.isnan(values)] = empty
        if not np.isfinite(values).all():
            at = np.argwhere(~np.isfinite(values))[0]
            where = ", ".join(
                f"{name}={count[tuple(at)]:g}"
                for name, count in zip(COUNTS, (tp, fp, fn, tn), strict=True)
            )
            raise InputError(
                f"The metric {self.name!r} must be finite, got {values[tuple(at)]} at {where}. "
                "Only two empty labelsets may give NaN. Return a number for one empty labelset, "
                "e.g. `np.where(tp + fn == 0, 0.0, tp / (tp + fn))`."
            )
        self._check_range(values)
        return values

    def _check_range(self, values: Floats) -> None:
        if self.range is None:
            return
        least, largest = self.range
        outside = values[(values < least - ROUNDING) | (values > largest + ROUNDING)]
        if outside.size:
            raise InputError(
                f"The metric {self.name!r} must lie in its range [{least:g}, {largest:g}], got "
                f"{outside[0]:g}. Pass its true range, or None."
            )

    @cached_property
    def depends_on_empty(self) -> bool:
        """Whether it is 0/0 for two empty labelsets, so that `empty` is their value."""
        empty_counts = ([0], [0], [0], [1])
        return bool(self.values(*empty_counts, empty=1.0) != self.values(*empty_counts, empty=0.0))

    def range_width(self, n_labels: int, *, empty: float = 1.0) -> float:
        """Largest difference between two values, for labelsets of `n_labels`."""
        if self.range is not None:
            return self.range[1] - self.range[0]
        tables = [self.table(n_labels, k, empty=empty) for k in range(n_labels + 1)]
        return float(max(table.max() for table in tables) - min(table.min() for table in tables))

    def table(
        self, n_labels: int, n_predicted: int, *, empty: float = 1.0, n_missed: int | None = None
    ) -> Floats:
        """Metric for every (tp, fn) when `n_predicted` of `n_labels` labels are predicted.

        `n_missed` is the largest number of false negatives; None for all.
        """
        n_others = n_labels - n_predicted
        max_missed = n_others if n_missed is None else min(n_others, n_missed)
        tp = np.arange(n_predicted + 1)[:, np.newaxis]
        fn = np.arange(max_missed + 1)[np.newaxis, :]
        tp, fn = np.broadcast_arrays(tp, fn)
        return self.values(tp, n_predicted - tp, fn, n_others - fn, empty=empty)


def _exact(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    return (fp + fn == 0).astype(np.float64)


def _hamming(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    return (tp + tn) / (tp + fp + fn + tn)


def _jaccard(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    return tp / (tp + fp + fn)


def _f1(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    return 2 * tp / (2 * tp + fp + fn)


def _recall(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    return np.where((tp + fn == 0) & (fp > 0), 0.0, tp / (tp + fn))


def _precision(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    return np.where((tp + fp == 0) & (fn > 0), 0.0, tp / (tp + fp))


EXACT = Metric("exact", _exact, (0.0, 1.0), outcome="binary", title="Exact match")
HAMMING = Metric("hamming", _hamming, (0.0, 1.0), title="Hamming accuracy")
JACCARD = Metric("jaccard", _jaccard, (0.0, 1.0))
F1 = Metric("f1", _f1, (0.0, 1.0))
RECALL = Metric("recall", _recall, (0.0, 1.0))
PRECISION = Metric("precision", _precision, (0.0, 1.0))

METRICS: dict[str, Metric] = {
    metric.name: metric for metric in (EXACT, HAMMING, JACCARD, F1, RECALL, PRECISION)
}
"""The metrics that have a name. A new one is a function, an entry here, and a loop in the tests."""

MetricLike = str | Metric | Callable[[Any, Any, Any, Any], Any]


def get_metric(metric: MetricLike) -> Metric:
    """The registered metric of a name, or a function as a metric.

    Examples
    --------
    >>> get_metric("jaccard").values([1], [1], [0], [2])
    array([0.5])
    """
    if isinstance(metric, Metric):
        return metric
    if isinstance(metric, str):
        if metric not in METRICS:
            raise unknown_name("metric", metric, METRICS)
        return METRICS[metric]
    if callable(metric):
        return Metric(getattr(metric, "__name__", type(metric).__name__), metric)
    raise InputError(
        f"`metric` must be a name ({', '.join(METRICS)}) or a function of (tp, fp, fn, tn), "
        f"got {metric!r}."
    )


def check_metrics(metrics: Sequence[MetricLike]) -> list[Metric]:
    """Several metrics. Raises InputError unless their names, which identify them, differ.

    Examples
    --------
    >>> [metric.name for metric in check_metrics(["exact", "f1"])]
    ['exact', 'f1']
    """
    if isinstance(metrics, str):
        raise InputError(
            f"`metrics` must be a sequence of metrics, got {metrics!r}. Write [{metrics!r}]."
        )
    chosen = [get_metric(metric) for metric in metrics]
    names = [metric.name for metric in dict.fromkeys(chosen)]
    duplicate = next((name for name in names if names.count(name) > 1), None)
    if duplicate is not None:
        raise InputError(
            f"`metrics` must have distinct names, got two called {duplicate!r}. Name them by "
            "`Metric(name, function)`."
        )
    return chosen


def check_empty(empty: float) -> float:
    """The checked value of two empty labelsets under Jaccard and F1."""
    return read_number(empty, "empty", 0, 1, hint="Usual choices are 1.0 and 0.0.")


def check_level(level: float) -> float:
    """The checked confidence level."""
    return read_number(level, "level", 0, 1, ends="()", hint="Usual choices are 0.9 and 0.95.")


def counts(Y_true: ArrayLike, Y_pred: ArrayLike) -> Counts:
    """(tp, fp, fn, tn) of each prediction against its truth, each (n,).

    Labels are compared by name where both sides have names, rows by index where both have one.
    Where one is sparse, no array of all labels is made.

    Examples
    --------
    >>> [int(c[0]) for c in counts([[1, 1, 0, 0]], [[1, 0, 1, 0]])]
    [1, 1, 1, 1]
    """
    true, predicted = align_pair(Y_true, Y_pred)
    tp = count_shared(true, predicted)
    fp, fn = count_labels(predicted) - tp, count_labels(true) - tp
    return tp, fp, fn, true.shape[1] - tp - fp - fn


def accuracy(
    Y_true: ArrayLike, Y_pred: LabelsetsLike, metric: MetricLike, *, empty: float = 1.0
) -> Floats:
    """Accuracy of each prediction against its truth, (n,).

    Parameters
    ----------
    Y_true, Y_pred
        (n, L) zeros and ones, or a list of label names for each instance. The columns of two
        DataFrames are compared by name, their rows by index. Of a prediction that leaves labels
        open, `PartialLabelsets`, the decided ones count.
    metric
        "exact", "hamming", "jaccard", "f1", "recall", "precision", or a function of
        (tp, fp, fn, tn).
    empty
        Value of two empty labelsets where the metric is 0/0. The recall of an empty truth and the
        precision of an empty prediction alone are 0.

    Returns
    -------
    numpy.ndarray of shape (n,)
        One value per row; its mean is the example-based metric.

    See Also
    --------
    expected_accuracy : Expected accuracy, before the truth is known.
    AccuracyEstimator : Calibrated estimates of it.

    Examples
    --------
    >>> accuracy([[1, 1, 0], [0, 0, 0]], [[1, 0, 0], [0, 0, 0]], "jaccard")
    array([0.5, 1. ])
    """
    if hasattr(Y_pred, "is_open"):  # `PartialLabelsets` compare decided labels alone
        return np.asarray(Y_pred.accuracy(Y_true, metric, empty=empty))
    return get_metric(metric).values(*counts(Y_true, Y_pred), empty=check_empty(empty))
