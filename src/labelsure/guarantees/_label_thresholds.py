"""`LabelThresholds`: predict the labels whose probability is high enough."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from labelsure._runtime.limits import TIE
from labelsure._runtime.typing import Floats, Integers, Labelsets, LabelsetsLike, Mask
from labelsure.distributions._base import LabelsetDistribution, check_distribution
from labelsure.distributions._sparse_labels import with_dense_rows
from labelsure.errors import InputError, unknown_name
from labelsure.labelsets.label_names import check_same_labels
from labelsure.metrics.registry import Metric, MetricLike, check_empty, get_metric
from labelsure.saving import Savable

MAX_ROUNDS = 20  # over all labels; a round that gains nothing ends the search, mostly the third


class LabelThresholds(Savable, BaseEstimator):  # type: ignore[misc]
    """Predict the labels whose probability reaches a threshold.

    `labelsure.decide` finds the best labelset of each row from its whole distribution;
    thresholds see single labels only. They are chosen on labelled rows that are new to the
    classifier, for a metric. `docs/evidence/decisions.md` compares the two.

    Parameters
    ----------
    rule
        - "one": one threshold for all labels, the one with the highest mean accuracy;
        - "each": a threshold per label, by coordinate ascent on the mean accuracy from the single
          threshold;
        - "mean_size": one threshold, chosen so that predictions have as many labels on average as
          the truth;
        - "top_k": the k most probable labels of every row.
    metric
        What they are chosen for: "exact", "hamming", "jaccard", "f1", or a function of
        (tp, fp, fn, tn). "mean_size" does not use it but for `accuracy_`.
    empty
        The Jaccard and F1 of two empty labelsets.

    Attributes
    ----------
    thresholds_
        (L,) predict label j where its probability is at least this; infinite where it is never
        predicted. None for "top_k".
    k_
        How many labels "top_k" predicts; None for the others.
    label_names_
        The labels that they were chosen for.
    accuracy_
        The mean accuracy on the rows that it was fitted to.

    See Also
    --------
    decide : The best labelset under the whole distribution.
    AccuracyAwareClassifier : Takes fitted thresholds as `decision`.

    Examples
    --------
    >>> from labelsure import IndependentLabels, LabelThresholds
    >>> dist = IndependentLabels([[0.9, 0.3], [0.2, 0.4], [0.6, 0.1]])
    >>> thresholds = LabelThresholds("one", "f1").fit(dist, [[1, 1], [0, 1], [1, 0]])
    >>> thresholds.thresholds_, thresholds.accuracy_
    (array([0.25, 0.25]), 1.0)
    >>> thresholds.predict(IndependentLabels([[0.3, 0.2]]))
    array([[1, 0]], dtype=int8)
    """

    def __init__(self, rule: str = "one", metric: MetricLike = "f1", empty: float = 1.0) -> None:
        self.rule = rule
        self.metric = metric
        self.empty = empty

    def fit(self, dist: LabelsetDistribution, Y_true: LabelsetsLike) -> Self:
        """Choose thresholds on labelled rows that are new to the classifier.

        Parameters
        ----------
        dist
            A batch of n distributions, of which only the probabilities of labels are used.
        Y_true
            (n, L) the truth.
        """
        if self.rule not in RULES:
            raise unknown_name("rule", self.rule, RULES)
        metric, empty = get_metric(self.metric), check_empty(self.empty)
        dist = with_dense_rows(check_distribution(dist))
        true = dist._align_truth(Y_true)
        if len(dist) == 0:
            raise InputError("Thresholds need at least one labelled row, got none.")
        labelled = _Labelled(dist.marginals(), true, metric, empty)
        chosen = RULES[self.rule](labelled)
        self.label_names_, self.n_labels_ = dist.label_names, dist.n_labels
        self.thresholds_: Any = None if isinstance(chosen, int) else chosen
        self.k_: int | None = chosen if isinstance(chosen, int) else None
        self.accuracy_ = float(labelled.values(self.predict(dist)).mean())
        return self

    def predict(self, dist: LabelsetDistribution) -> Labelsets:
        """Labelsets by the thresholds, (n, L).

        Parameters
        ----------
        dist
            A batch of distributions over the same labels.
        """
        check_is_fitted(self)
        dist = with_dense_rows(check_distribution(dist))
        check_same_labels(
            dist.label_names, dist.n_labels, self.label_names_, self.n_labels_, "these thresholds"
        )
        if self.k_ is not None:
            return _take_top(dist.marginals(), self.k_)
        return (dist.marginals() >= self.thresholds_).astype(np.int8)


def _take_top(marginals: Floats, k: int) -> Labelsets:
    """Labelsets of the k most probable labels, (n, L); ties go to the first label."""
    order = np.argsort(-marginals, axis=1, kind="stable")
    chosen = np.zeros(marginals.shape, dtype=np.int8)
    np.put_along_axis(chosen, order[:, :k], 1, axis=1)
    return chosen


@dataclass(frozen=True)
class _Labelled:
    """Labelled rows: marginals, (n, L), truth, (n, L), and the metric to maximise."""

    marginals: Floats
    true: Labelsets
    metric: Metric
    empty: float

    def values(self, predicted: Labelsets) -> Floats:
        """Accuracy of each prediction, (n,)."""
        tp = (predicted & self.true).sum(axis=1)
        return self.values_of(tp, predicted.sum(axis=1))

    def values_of(self, tp: Integers, n_predicted: Integers) -> Floats:
        """Accuracies from true positives and sizes, (n,) or (n, k) each."""
        n_labels, n_true = self.true.shape[1], self.true.sum(axis=1)
        n_true = n_true if tp.ndim == 1 else n_true[:, np.newaxis]
        fp, fn = n_predicted - tp, n_true - tp
        return self.metric.values(tp, fp, fn, n_labels - tp - fp - fn, empty=self.empty)

    def by_probability(self) -> tuple[Floats, Floats]:
        """Descending marginals, (n, L); accuracies of the top 0 to L labels, (n, L + 1)."""
        order = np.argsort(-self.marginals, axis=1, kind="stable")
        tp = np.take_along_axis(self.true, order, axis=1).cumsum(axis=1, dtype=np.int64)
        tp = np.column_stack([np.zeros(len(tp), dtype=np.int64), tp])
        sizes = np.broadcast_to(np.arange(tp.shape[1]), tp.shape)
        return np.take_along_axis(self.marginals, order, axis=1), self.values_of(tp, sizes)


def _find_best_cut(probabilities: Floats, gains: Floats) -> tuple[float, float]:
    """Threshold with the largest sum of gains at or above it, and that sum.

    Ties go to the threshold nearest to 1/2, which depends least on the sample.
    """
    cuts, counts = _list_cuts(probabilities)
    cumulative = np.append(0.0, np.cumsum(gains[np.argsort(-probabilities, kind="stable")]))
    sums = cumulative[counts]
    optimal = np.flatnonzero(sums >= sums.max() - TIE * max(len(gains), 1))
    best = optimal[np.argmin(np.abs(cuts[optimal] - 0.5))]
    return float(cuts[best]), float(sums[best])


def _list_cuts(probabilities: Floats) -> tuple[Floats, Integers]:
    """Thresholds between distinct probabilities, (k,), and the numbers at or above each, (k,)."""
    descending = -np.sort(-probabilities)
    is_last = np.append(descending[1:] != descending[:-1], True)
    counts = np.append(0, np.flatnonzero(is_last) + 1)
    above, below = descending[counts[1:] - 1], np.append(descending[counts[1:-1]], 0.0)
    midpoints = (above + below) / 2
    # Adjacent floats have no midpoint: rounding must not accept the lower one.
    return np.append(np.inf, np.where(midpoints > below, midpoints, above)), counts


def _choose_one(labelled: _Labelled) -> Floats:
    """Single threshold: each label in descending order adds its gain to the sum of accuracies."""
    descending, values = labelled.by_probability()
    threshold, _ = _find_best_cut(descending.ravel(), np.diff(values, axis=1).ravel())
    return np.full(descending.shape[1], threshold)


def _choose_each(labelled: _Labelled) -> Floats:
    """Thresholds by coordinate ascent from the single one, (L,)."""
    thresholds = _choose_one(labelled)
    predicted: Mask = labelled.marginals >= thresholds
    for _ in range(MAX_ROUNDS):
        previous = float(labelled.values(predicted.astype(np.int8)).sum())
        for j, marginals in enumerate(labelled.marginals.T):
            predicted[:, j] = False
            tp = (predicted & (labelled.true == 1)).sum(axis=1)
            sizes = predicted.sum(axis=1)
            baseline = labelled.values_of(tp, sizes)
            gains = labelled.values_of(tp + labelled.true[:, j], sizes + 1) - baseline
            cut, gain = _find_best_cut(marginals, gains)
            if gain > float(gains[marginals >= thresholds[j]].sum()) + TIE * len(gains):
                thresholds[j] = cut
            predicted[:, j] = marginals >= thresholds[j]
        if labelled.values(predicted.astype(np.int8)).sum() <= previous + TIE * len(predicted):
            break
    return thresholds


def _match_mean_size(labelled: _Labelled) -> Floats:
    cuts, counts = _list_cuts(labelled.marginals.ravel())
    nearest = np.argmin(np.abs(counts - labelled.true.sum()))
    return np.full(labelled.marginals.shape[1], cuts[nearest])


def _choose_size(labelled: _Labelled) -> int:
    means = labelled.by_probability()[1].mean(axis=0)
    return int(np.argmax(means >= means.max() - TIE))


RULES: dict[str, Callable[[_Labelled], Floats | int]] = {
    "one": _choose_one,
    "each": _choose_each,
    "mean_size": _match_mean_size,
    "top_k": _choose_size,
}
"""Fits of the rules by name: thresholds, (L,), or a number of labels."""
