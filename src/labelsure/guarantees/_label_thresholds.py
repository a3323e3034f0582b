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
    """Labelsets of the k most probable labels, (n, L); of ties the first."""
    order = np.argsort(-marginals, axis=1, kind="stable")
    chosen = np.zeros(marginals.shape, dtype=np.int8)
    np.put_along_axis(chosen, order[:, :k], 1, axis=1)
    return chosen


@dataclass(frozen=True)
class _Labelled:
    """Probabilities of labels, the truth, and the metric that thresholds are chosen for."""

    marginals: Floats
    true: Labelsets
    metric: Metric
    empty: float

    def values(self, predicted: Labelsets) -> Floats:
        """Accuracy of each prediction, (n,)."""
        hits = (predicted & self.true).sum(axis=1)
        return self.values_of(hits, predicted.sum(axis=1))

    def values_of(self, hits: Integers, n_predicted: Integers) -> Floats:
        """Accuracies from true positives and sizes, (n,) or (n, k) each."""
        n_labels, n_true = self.true.shape[1], self.true.sum(axis=1)
        n_true = n_true if hits.ndim == 1 else n_true[:, np.newaxis]
        fp, fn = n_predicted - hits, n_true - hits
        return self.metric.values(hits, fp, fn, n_labels - hits - fp - fn, empty=self.empty)

    def in_order(self) -> tuple[Floats, Floats]:
        """Marginals, the highest first, (n, L); accuracies of the top k labels, (n, L + 1)."""
        order = np.argsort(-self.marginals, axis=1, kind="stable")
        hits = np.take_along_axis(self.true, order, axis=1).cumsum(axis=1, dtype=np.int64)
        hits = np.column_stack([np.zeros(len(hits), dtype=np.int64), hits])
        sizes = np.broadcast_to(np.arange(hits.shape[1]), hits.shape)
        return np.take_along_axis(self.marginals, order, axis=1), self.values_of(hits, sizes)


def _find_best_cut(probabilities: Floats, gains: Floats) -> tuple[float, float]:
    """Threshold with the largest sum of gains at or above it, and that sum.

    Of equally good thresholds the one nearest to a half, which depends least on the sample.
    """
    cuts, counts = _list_cuts(probabilities)
    running = np.append(0.0, np.cumsum(gains[np.argsort(-probabilities, kind="stable")]))
    sums = running[counts]
    good = np.flatnonzero(sums >= sums.max() - TIE * max(len(gains), 1))
    best = good[np.argmin(np.abs(cuts[good] - 0.5))]
    return float(cuts[best]), float(sums[best])


def _list_cuts(probabilities: Floats) -> tuple[Floats, Integers]:
    """Thresholds between distinct probabilities, and the number at or above each."""
    falling = -np.sort(-probabilities)
    is_last = np.append(falling[1:] != falling[:-1], True)
    counts = np.append(0, np.flatnonzero(is_last) + 1)
    above, below = falling[counts[1:] - 1], np.append(falling[counts[1:-1]], 0.0)
    middle = (above + below) / 2
    # Neighbouring numbers have no middle: rounding must not let the lower one through.
    return np.append(np.inf, np.where(middle > below, middle, above)), counts


def _choose_one(labelled: _Labelled) -> Floats:
    """As the threshold falls, one label after another joins its row's prediction."""
    falling, values = labelled.in_order()
    threshold, _ = _find_best_cut(falling.ravel(), np.diff(values, axis=1).ravel())
    return np.full(falling.shape[1], threshold)


def _choose_each(labelled: _Labelled) -> Floats:
    thresholds = _choose_one(labelled)
    predicted: Mask = labelled.marginals >= thresholds
    for _ in range(MAX_ROUNDS):
        before = float(labelled.values(predicted.astype(np.int8)).sum())
        for j, marginals in enumerate(labelled.marginals.T):
            predicted[:, j] = False
            hits = (predicted & (labelled.true == 1)).sum(axis=1)
            sizes = predicted.sum(axis=1)
            without = labelled.values_of(hits, sizes)
            gains = labelled.values_of(hits + labelled.true[:, j], sizes + 1) - without
            cut, gain = _find_best_cut(marginals, gains)
            if gain > float(gains[marginals >= thresholds[j]].sum()) + TIE * len(gains):
                thresholds[j] = cut
            predicted[:, j] = marginals >= thresholds[j]
        if labelled.values(predicted.astype(np.int8)).sum() <= before + TIE * len(predicted):
            break
    return thresholds


def _match_mean_size(labelled: _Labelled) -> Floats:
    cuts, counts = _list_cuts(labelled.marginals.ravel())
    nearest = np.argmin(np.abs(counts - labelled.true.sum()))
    return np.full(labelled.marginals.shape[1], cuts[nearest])


def _choose_size(labelled: _Labelled) -> int:
    means = labelled.in_order()[1].mean(axis=0)
    return int(np.argmax(means >= means.max() - TIE))


RULES: dict[str, Callable[[_Labelled], Floats | int]] = {
    "one": _choose_one,
    "each": _choose_each,
    "mean_size": _match_mean_size,
    "top_k": _choose_size,
}
"""The rules by name: thresholds of the labels, or how many labels to take."""
