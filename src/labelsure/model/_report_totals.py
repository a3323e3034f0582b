"""What a report says of all predictions: sums that take the same memory for any number of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from labelsure._runtime.typing import Floats, Integers, LabelNames, Labelsets
from labelsure.distributions._bridge import LabelsetDistribution
from labelsure.estimation.label_outcomes import calibration_marginals
from labelsure.estimation.score_table import ScoreTable
from labelsure.labelsets.rows import show_names
from labelsure.labelsets.sparse import make_sparse
from labelsure.metrics.registry import Metric

N_STEPS = 200
"""Of the slider: thresholds from 0 to 1, half a percent apart."""

N_BINS = 20  # of the histogram of estimated accuracies
N_PAIRS = 20  # of labels that are confused most
N_LABELS = 200  # in the table of labels


class BatchTotals:
    """Sums over predictions, batch by batch.

    Parameters
    ----------
    metrics
        The accuracies to show.
    empty
        The Jaccard and F1 of two empty labelsets.
    label_names
        One for each label, or None.
    n_labels
        How many there are.
    threshold
        Of the policy, which the slider has beside its own; None without one.
    has_truth
        Whether the truth is known.
    """

    def __init__(
        self,
        metrics: Sequence[Metric],
        empty: float,
        label_names: LabelNames,
        n_labels: int,
        threshold: float | None,
        has_truth: bool,
    ) -> None:
        self.metrics, self.empty = list(metrics), empty
        self.label_names, self.n_labels = label_names, n_labels
        self.threshold, self.has_truth = threshold, has_truth
        known = [] if threshold is None else [threshold]
        self.thresholds = np.unique([*np.linspace(0, 1, N_STEPS + 1).round(6), *known])
        n_steps = len(self.thresholds)
        self.n = np.zeros(n_steps, dtype=np.int64)
        self.estimated = np.zeros(n_steps)
        self.expected = np.zeros((len(self.metrics), n_steps))
        self.actual = np.zeros((len(self.metrics), n_steps))
        self.histogram = np.zeros(N_BINS, dtype=np.int64)
        self.n_predicted = np.zeros(n_labels, dtype=np.int64)
        self.n_true = np.zeros(n_labels, dtype=np.int64)
        self.n_hit = np.zeros(n_labels, dtype=np.int64)
        self.sum_probability = np.zeros(n_labels)
        self.confusions = sparse.csr_array((n_labels, n_labels), dtype=np.int64)

    def add(
        self,
        dist: LabelsetDistribution,
        table: ScoreTable,
        estimated: Floats,
        Y_true: Labelsets | None,
    ) -> None:
        """Add a batch.

        Parameters
        ----------
        dist
            Its distributions.
        table
            Its predictions, with the expected accuracies of all metrics.
        estimated
            (n,) estimated accuracies.
        Y_true
            (n, L) the truth, where it is known.
        """
        # Which is the highest threshold that accepts it? All lower ones do as well.
        step = np.searchsorted(self.thresholds, estimated, side="right") - 1
        self.n += self._sum_by_step(step, None)
        self.estimated += self._sum_by_step(step, estimated)
        for i, metric in enumerate(self.metrics):
            self.expected[i] += self._sum_by_step(step, table.expected(metric, self.empty))
            if self.has_truth:
                self.actual[i] += self._sum_by_step(step, table.accuracy(metric, self.empty))
        bins = np.minimum((estimated * N_BINS).astype(int), N_BINS - 1)
        self.histogram += np.bincount(bins, minlength=N_BINS)
        Y_pred: Any = table.decisions  # the table of a distribution has them
        self.n_predicted += _count_instances(Y_pred)
        self.sum_probability += calibration_marginals(dist).sum(axis=0)
        if Y_true is not None:
            self.n_true += _count_instances(Y_true)
            self.n_hit += _count_instances(_find_hits(Y_true, Y_pred))
            self.confusions += _count_confusions(Y_true, Y_pred)

    def _sum_by_step(self, step: Any, values: Floats | None) -> Any:
        """Return for each threshold the sum over the predictions that it accepts."""
        sums = np.bincount(step, weights=values, minlength=len(self.thresholds))
        return sums[::-1].cumsum()[::-1]

    @property
    def n_instances(self) -> int:
        """How many predictions there are."""
        return int(self.n[0])

    def mean_expected(self, metric: Metric) -> float:
        """Return what the model itself believes the mean accuracy to be."""
        return float(self.expected[self.metrics.index(metric), 0] / self.n_instances)

    def mean_actual(self, metric: Metric) -> float:
        """Return the mean accuracy."""
        return float(self.actual[self.metrics.index(metric), 0] / self.n_instances)

    def describe_acceptance(self, metric: Metric) -> dict[str, Any]:
        """Return for each threshold how many are accepted, and their mean accuracies.

        Parameters
        ----------
        metric
            The one that is estimated; of others the truth or else the model's own belief is shown.
        """
        policy = None
        if self.threshold is not None:
            policy = int(np.searchsorted(self.thresholds, self.threshold))
        accuracy = {}
        for i, shown in enumerate(self.metrics):
            sums, source = self.expected[i], "what the model itself expects, not checked"
            if self.has_truth:
                sums, source = self.actual[i], "actual, by the truth"
            elif shown == metric:
                sums, source = self.estimated, "estimated"
            means = np.divide(sums, self.n, out=np.zeros(len(self.n)), where=self.n > 0)
            accuracy[shown.name] = {"values": means.round(4).tolist(), "source": source}
        return {
            "thresholds": self.thresholds.tolist(),
            "n": self.n.tolist(),
            "policy": policy,
            "accuracy": accuracy,
        }

    def describe_histogram(self) -> list[dict[str, Any]]:
        """Return how many predictions have which estimated accuracy."""
        edges = np.linspace(0, 1, N_BINS + 1).round(6).tolist()
        rows = zip(edges[:-1], edges[1:], self.histogram.tolist(), strict=True)
        return [{"low": low, "high": high, "n": n} for low, high, n in rows]

    def describe_labels(self) -> dict[str, Any]:
        """Return the labels that are predicted most, with what is known of each.

        Labels that no instance has, or may have by what is listed, are only counted.
        """
        weight = self.n_predicted + self.sum_probability
        n_occurring = int(((weight > 0) | (self.n_true > 0)).sum())
        order = np.argsort(-weight, kind="stable")
        order = order[(weight[order] > 0) | (self.n_true[order] > 0)][:N_LABELS]
        rows = []
        names = show_names(self.label_names, order.tolist())
        for label, name in zip(order.tolist(), names, strict=True):
            row: dict[str, Any] = {
                "name": name,
                "n_predicted": int(self.n_predicted[label]),
                "sum_probability": round(float(self.sum_probability[label]), 1),
            }
            if self.has_truth:
                hit = int(self.n_hit[label])
                row["n_true"] = int(self.n_true[label])
                row["precision"] = _divide(hit, row["n_predicted"])
                row["recall"] = _divide(hit, row["n_true"])
            rows.append(row)
        n_absent = self.n_labels - n_occurring
        return {"rows": rows, "n_left_out": n_occurring - len(rows), "n_absent": n_absent}

    def describe_confusions(self) -> list[dict[str, Any]]:
        """Return the pairs of labels of which most often one was true and the other predicted."""
        pairs = self.confusions.tocoo()
        order = np.argsort(-pairs.data, kind="stable")[:N_PAIRS]
        order = order[pairs.data[order] > 0]
        missed, added = (show_names(self.label_names, part[order]) for part in pairs.coords)
        return [
            {"missed": one, "added": other, "n": int(n)}
            for one, other, n in zip(missed, added, pairs.data[order], strict=True)
        ]


def _count_confusions(Y_true: Labelsets, Y_pred: Labelsets) -> Any:
    """Return how often label i was true and missed while label j was predicted and not true."""
    hits = _find_hits(Y_true, Y_pred)
    missed, added = (
        sparse.csr_array(make_sparse(Y) - hits, dtype=np.int64) for Y in (Y_true, Y_pred)
    )
    return sparse.csr_array(missed.T @ added)


def _find_hits(Y_true: Any, Y_pred: Any) -> Any:
    """Return sparse rows of the labels that are true and predicted."""
    true: Any = make_sparse(Y_true)
    return true.multiply(make_sparse(Y_pred))


def _count_instances(Y: Any) -> Integers:
    """Return how many instances have each label, (L,)."""
    return np.asarray(Y.sum(axis=0, dtype=np.int64))


def _divide(part: int, whole: int) -> float | None:
    return part / whole if whole else None
