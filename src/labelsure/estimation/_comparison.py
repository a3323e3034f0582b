"""Which of two models is more accurate on a batch: the difference of their mean accuracies.

Models that were calibrated on the same rows are compared row by row there: what makes a row hard
makes it hard for both, so that the difference varies less than either accuracy. Rows are the same
if their labelsets are, one after the other.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from labelsure._runtime.typing import Floats, Indices, LabelsetsLike
from labelsure.distributions._base import LabelsetDistribution
from labelsure.errors import InputError
from labelsure.estimation._batch_estimates import BatchSums, Estimate, few_labels_interval
from labelsure.estimation._estimator import AccuracyEstimator
from labelsure.estimation.score_table import TRUTH_KEY, ScoreTable
from labelsure.metrics.clusters import design_effect, number_clusters

MIN_SHARED = 30
"""Minimum number of shared calibration rows: the labelsets of fewer may be equal by chance."""


class Difference(Estimate):
    """Estimated difference of the mean accuracies of two models on one batch, within [-1, 1].

    Positive where the first model is more accurate. `mean`, `low`, `high` and the other attributes
    are those of an `Estimate`.

    Examples
    --------
    >>> from labelsure.estimation import Difference
    >>> print(Difference(0.04, 0.026, 0.054, 500, 0.95, 0.1, "difference in mean F1"))
    Difference in mean F1 +0.040 (95% interval +0.026 to +0.054, n = 500).
    """

    _figure = "{:+z.3f}"


class Side(NamedTuple):
    """One of two models: its accuracy estimator, and a batch as it predicts it."""

    estimator: AccuracyEstimator
    dist: LabelsetDistribution
    Y_pred: LabelsetsLike


@dataclass(frozen=True)
class SharedRows:
    """Calibration rows that two estimators share.

    Parameters
    ----------
    accuracy, estimated
        (n,) differences between the two.
    clusters
        (n,) number of the cluster of each row.
    """

    accuracy: Floats
    estimated: Floats
    clusters: Indices

    @classmethod
    def of(cls, first: AccuracyEstimator, second: AccuracyEstimator) -> SharedRows | None:
        """Leading calibration rows that both estimators share; None for fewer than `MIN_SHARED`."""
        tables = first.calibration_, second.calibration_
        n = _count_shared(*tables)
        if n < MIN_SHARED or tables[0].of_one_model != tables[1].of_one_model:
            return None
        pairs = zip(first.compare_estimates(), second.compare_estimates(), strict=True)
        estimated, accuracy = (left[:n] - right[:n] for left, right in pairs)
        clusters = tables[0].clusters
        clusters = np.arange(n) if clusters is None else number_clusters(clusters[:n])
        return cls(accuracy, estimated, clusters)

    @property
    def lambda_(self) -> float:
        """Power-tuning coefficient of estimated differences: cov / var, clipped to [0, 1]."""
        centred = self.estimated - self.estimated.mean()
        variance = float(centred @ centred)
        return float(np.clip(centred @ self.accuracy / variance, 0, 1)) if variance > 0 else 0.0


def _count_shared(first: ScoreTable, second: ScoreTable) -> int:
    """Length of the longest common prefix of the labelsets of two tables."""
    left, right = (table._columns.get(TRUTH_KEY) for table in (first, second))
    if left is None or right is None:
        return 0
    n = min(len(left), len(right))
    return int(np.append(left[:n] != right[:n], True).argmax())


@dataclass(frozen=True)
class Comparison:
    """Two models on one batch.

    Parameters
    ----------
    first, second
        The models; the difference is that of the first less the second.
    level
        Confidence level of the interval.
    """

    first: Side
    second: Side
    level: float

    @property
    def quantity(self) -> str:
        """Name of the estimated quantity, such as "difference in mean F1"."""
        return f"difference in {self.first.estimator._quantity}"

    @cached_property
    def shared(self) -> SharedRows | None:
        """Calibration rows of both; None for fewer than `MIN_SHARED`."""
        return SharedRows.of(self.first.estimator, self.second.estimator)

    def by_labels(self, Y_true: LabelsetsLike, rows: object, interval: str) -> Difference:
        """Prediction-powered difference, paired on labelled rows of the batch."""
        (left, positions, left_labelled), (right, _, right_labelled) = (
            side.estimator._read_few_labels(side.dist, side.Y_pred, Y_true, rows)
            for side in (self.first, self.second)
        )
        metric, empty = self.first.estimator.metric, self.first.estimator.empty
        estimated = left.accuracy - right.accuracy
        estimate = few_labels_interval(
            BatchSums.of(estimated, np.empty(0)),
            left_labelled.accuracy(metric, empty) - right_labelled.accuracy(metric, empty),
            estimated[positions],
            lambda_=0.0 if self.shared is None else self.shared.lambda_,
            level=self.level,
            interval=interval,
            ends=(-1.0, 1.0),
        )
        return replace(Difference(**vars(estimate)), quantity=self.quantity)

    def by_calibration(self, shift: str) -> Difference:
        """Difference of two estimates; its interval by residuals of the shared rows."""
        if shift not in ("test", "ignore"):
            raise InputError(f'`shift` must be "test" or "ignore" to compare, got {shift!r}.')
        left, right = (
            side.estimator.estimate_rows(side.dist, side.Y_pred, compares=shift == "test")
            for side in (self.first, self.second)
        )
        estimators = self.first.estimator, self.second.estimator
        estimates = [
            estimator.estimate(rows.summarise(), level=self.level, shift=shift)
            for estimator, rows in zip(estimators, (left, right), strict=True)
        ]
        differences = left.accuracy - right.accuracy
        if self.shared is None:
            margin = float(np.hypot(_margin(estimates[0]), _margin(estimates[1])))
            basis = "calibrated on different rows, unpaired"
        else:
            inflation = max(estimators[0].fit_inflation(left), estimators[1].fit_inflation(right))
            margin = _paired_margin(self.shared, inflation, len(differences), self.level)
            basis = f"paired on {len(self.shared.accuracy):,} {estimators[0].calibration_rows}"
        if not estimators[0].can_compare:
            basis += f"; {estimators[0].trained_models}"
        mean = estimates[0].mean - estimates[1].mean
        tests = [estimate.shift for estimate in estimates if estimate.shift is not None]
        return Difference(
            mean,
            max(-1.0, mean - margin),
            min(1.0, mean + margin),
            len(differences),
            self.level,
            float(differences.std()),
            self.quantity,
            basis,
            shift=min(tests, key=lambda test: test.p_value) if tests else None,
            untested=estimates[0].untested,
        )


def _margin(estimate: Estimate) -> float:
    """Half the width of an interval that may be clipped at one end."""
    return max(estimate.mean - estimate.low, estimate.high - estimate.mean)


def _paired_margin(shared: SharedRows, inflation: float, n_batch: int, level: float) -> float:
    """Half the width of the paired interval of a batch's difference.

    A pseudo-residual of 1 is added, the end of the range: models that were equally accurate on all
    shared rows need not be so on all others.
    """
    residuals = shared.accuracy - shared.estimated
    residuals = residuals - residuals.mean()
    n, n_clusters = len(residuals), int(shared.clusters.max()) + 1
    effect = design_effect(residuals, shared.clusters)
    residual_variance = (float(residuals @ residuals) + 1) / n
    variance = residual_variance * (effect * inflation / n + min(effect, n_batch) / n_batch)
    return float(stdtrit(max(n_clusters - 1, 1), (1 + level) / 2)) * variance**0.5
