"""From training data to calibration tables: rows held out, or out-of-fold predictions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from numbers import Integral
from typing import cast

import numpy as np
from joblib import effective_n_jobs
from sklearn.frozen import FrozenEstimator
from sklearn.utils.parallel import Parallel, delayed

from labelsure._kernels.threads import one_blas_thread
from labelsure._runtime import limits as _limits
from labelsure._runtime.processes import count_workers
from labelsure._runtime.typing import CvLike, Estimator, Floats, Indices, Labelsets, Mask
from labelsure.classifiers._inner_models import innermost, is_prefit
from labelsure.classifiers.recalibration._base import Part, Recalibration, RecalibrationLike
from labelsure.classifiers.recalibration._recalibrated_classifier import (
    RecalibratedClassifier,
    fit_recalibration,
)
from labelsure.distributions._base import LabelsetDistribution
from labelsure.errors import LabelsureError, warn
from labelsure.estimation._accuracy_model import LabelsetFrequencies
from labelsure.estimation._diagnostics import (
    MOST_HELD_OUT,
    MOST_TRAINING,
    PredictComparison,
    warn_if_leakage_suspected,
    warn_if_rows_are_shared,
)
from labelsure.estimation.score_table import ScoreTable
from labelsure.labelsets.foreign import take_rows
from labelsure.labelsets.sparse import stack_rows
from labelsure.metrics.registry import METRICS, MetricLike, accuracy, get_metric
from labelsure.model._decision_rules import DecisionRule, predict_labelsets
from labelsure.model._input_ranges import InputRanges
from labelsure.model._predictor import Predictor, make_small_dense
from labelsure.model._training_data import (
    TrainingData,
    cut_by_groups,
    fit_clone,
    fold_ends,
    hold_out,
    is_share,
    make_folds,
)

FEW_HELD_OUT = 50
"""Held-out rows below which `fit` names cv=5: with 60 of Yeast and Emotions the interval of the
mean F1 of a large batch is about 0.2 wide, and no target above the mean can be shown."""

N_CROSS_FITS, MIN_CROSS_FITTED = 5, 10
"""Folds of cross-fitted recalibration, and the minimum number of rows for it."""


@dataclass(frozen=True)
class CalibrationRows:
    """Distributions of rows that a classifier was not fitted to, and their truth.

    Parameters
    ----------
    dist
        Distributions of n rows.
    truth
        (n, L) true labelsets.
    direct
        (n, L) predictions that do not follow from the distribution; None where they do.
    training_labelsets
        Frequencies of the labelsets that the classifier was fitted to; None if it was prefit.
    weights
        (n,) sample weights, or None.
    clusters
        (n,) numbers of the clusters of dependent rows, or None.
    """

    dist: LabelsetDistribution
    truth: Labelsets
    direct: Labelsets | None
    training_labelsets: LabelsetFrequencies | None
    weights: Floats | None = None
    clusters: Indices | None = None

    def __len__(self) -> int:
        return len(self.dist)

    def __getitem__(self, rows: slice) -> CalibrationRows:
        direct = None if self.direct is None else self.direct[rows]
        weights = None if self.weights is None else self.weights[rows]
        clusters = None if self.clusters is None else self.clusters[rows]
        dist, truth = self.dist[rows], self.truth[rows]
        return CalibrationRows(dist, truth, direct, self.training_labelsets, weights, clusters)

    def cut_for_cache(self) -> Iterator[CalibrationRows]:
        """Yield blocks of rows whose dense joints fit into the processor's cache."""
        step = max(1, len(self))
        if self.dist._has_engines:
            step = max(1, _limits.CACHED_JOINT_BYTES >> (self.dist.n_labels + 3))
        for first in range(0, max(1, len(self)), step):
            yield self[first : first + step]


@dataclass(frozen=True)
class Calibrated:
    """A fitted predictor, and score tables of rows that are new to it.

    Parameters
    ----------
    predictor
        The predictor for new rows.
    for_estimator, for_policy
        The tables that accuracy estimator and policy are fitted to; one table where there are no
        rows for the policy alone.
    for_region
        Rows that a prediction set may be calibrated on; None after cross-fitting.
    n_training
        Number of rows that the classifier was fitted to; 0 if it was prefit.
    training_labelsets
        Frequencies of the labelsets of these rows; None if it was prefit.
    comparison
        Comparison with the own `predict` of a frozen model.
    is_outside
        (n,) mask of policy rows with inputs far outside the ranges of other rows.
    trained_on
        After cross-fitting the part of the rows that the models of the folds were trained on, in
        words; None where rows were held out.
    """

    predictor: Predictor
    for_estimator: ScoreTable
    for_policy: ScoreTable
    for_region: CalibrationRows | None
    n_training: int
    training_labelsets: LabelsetFrequencies | None
    comparison: PredictComparison
    is_outside: Mask
    trained_on: str | None = None

    @property
    def holds_out(self) -> bool:
        """Whether calibration rows are new to the model that predicts."""
        return self.trained_on is None


@dataclass(frozen=True)
class Calibration(ABC):
    """Base class: choice and scoring of calibration rows.

    Parameters
    ----------
    estimator
        The classifier, to be cloned and fitted.
    metric, empty
        Metric of the accuracy, and its value for two empty labelsets.
    cv
        As the parameter of `AccuracyAwareClassifier`.
    rule
        Decision rule.
    recalibration
        The setting: "auto", None or an unfitted recalibration.
    splits
        Whether a policy needs rows of its own.
    check_inputs
        Whether ranges of numeric columns are fitted.
    random_state, n_jobs
        Seed of the splits, number of processes for folds.
    log
        Receives a sentence at each step.
    """

    estimator: Estimator
    metric: MetricLike
    empty: float
    cv: CvLike
    rule: DecisionRule
    recalibration: RecalibrationLike
    splits: bool
    check_inputs: bool
    random_state: int | None
    n_jobs: int | None
    log: Callable[[str], None]

    @abstractmethod
    def calibrate(self, data: TrainingData) -> Calibrated:
        """Fitted predictor and score tables of calibration rows."""

    def _fit(self, data: TrainingData, rows: Indices) -> Predictor:
        fitted = fit_clone(self.estimator, data, rows)
        inputs, labels = data.inputs.of_fitted(fitted), data.labels.of_fitted(fitted)
        return Predictor(fitted, inputs, labels, self.rule)

    def _add_ranges(self, predictor: Predictor, data: TrainingData, rows: Indices) -> Predictor:
        """Predictor with input ranges of `rows`; unchanged without `check_inputs`."""
        if not self.check_inputs:
            return predictor
        ranges = InputRanges.fit(data.X, rows, predictor.estimator, self.random_state)
        return replace(predictor, ranges=ranges)

    def _predict_rows(
        self, predictor: Predictor, data: TrainingData, rows: Indices, training: Indices | None
    ) -> CalibrationRows:
        """Calibration rows at some positions, by a classifier fitted to `training` positions."""
        X = take_rows(data.X, rows)
        dist = predictor.predict_raw(X)
        if data.Y_pred is None:
            direct = self.rule.predict_direct(predictor.estimator, X, dist)
        else:
            direct = data.Y_pred[rows]
        frequencies = None
        if training is not None:
            frequencies = LabelsetFrequencies.of(data.Y[training], data.labels.names)
        weights, clusters = data.weights(rows), data.clusters(rows)
        return CalibrationRows(dist, data.Y[rows], direct, frequencies, weights, clusters)

    @one_blas_thread()
    def tabulate(self, rows: CalibrationRows) -> ScoreTable:
        """Score table of predictions, with expected values under every metric."""
        metrics = list(dict.fromkeys([get_metric(self.metric), *METRICS.values()]))
        tables = []
        for block in rows.cut_for_cache():
            dist = make_small_dense(block.dist)
            decisions = self.rule.choose(dist, block.direct)
            table = ScoreTable._of_aligned(dist, block.truth, decisions, metrics, self.rule.name)
            table.clusters = block.clusters
            if dist is not block.dist:
                table.replace_joint(block.dist)
            frequencies = rows.training_labelsets
            tables.append(table if frequencies is None else frequencies.add_to(table))
        return ScoreTable.concatenate(tables, of_one_model=True)

    @one_blas_thread()
    def fit_recalibration(
        self, fitted: Estimator, parts: Sequence[CalibrationRows]
    ) -> Recalibration | None:
        """Fitted recalibration; "auto" rejects one that makes decisions less accurate."""
        is_auto = isinstance(self.recalibration, str)
        if is_auto and isinstance(innermost(fitted), RecalibratedClassifier):
            return None  # the classifier chose one itself, perhaps another kind in each fold
        dists, truths = [part.dist for part in parts], [part.truth for part in parts]
        weights = None if parts[0].weights is None else [part.weights for part in parts]
        recalibration = fit_recalibration(self.recalibration, dists, truths, weights)
        if recalibration is None or not recalibration.is_kept_ or not is_auto:
            return recalibration

        def total(part: CalibrationRows, dist: LabelsetDistribution) -> float:
            Y_pred = self.rule.choose(dist, part.direct)
            Y_pred = dist.mode() if Y_pred is None else Y_pred
            values = accuracy(part.truth, Y_pred, self.metric, empty=self.empty)
            return float(values.sum() if part.weights is None else part.weights @ values)

        accuracy_before = sum(total(part, part.dist) for part in parts)
        accuracy_after = sum(total(part, recalibration.transform(part.dist)) for part in parts)
        if accuracy_after < accuracy_before:
            n = sum(len(p) if p.weights is None else float(p.weights.sum()) for p in parts)
            title = get_metric(self.metric).title
            recalibration.reject(
                f"decisions become less accurate on these rows, mean {title} "
                f"{accuracy_before / n:.3f} to {accuracy_after / n:.3f}"
            )
        return recalibration


def learns_from_rows(recalibration: object) -> bool:
    """Whether a recalibration has parameters that are fitted to rows."""
    return recalibration is not None and getattr(recalibration, "calibrate", True)


def recalibrate_rows(recalibration: Recalibration | None, rows: CalibrationRows) -> CalibrationRows:
    """Rows with recalibrated distributions."""
    dist = rows.dist if recalibration is None else recalibration.transform(rows.dist)
    return replace(rows, dist=make_small_dense(dist))


def cross_recalibrate(
    recalibration: Recalibration | None, parts: Sequence[CalibrationRows]
) -> Iterator[CalibrationRows]:
    """Yield each part recalibrated by a fit to the other parts (cross-fitting).

    With label-wise calibration of 174 labels by 70 rows (Cal500), F1 estimated from these rows
    is .032 too high, and half of the intervals miss; by cross-fitting -.001, and none of 8.
    """
    if recalibration is None or not recalibration.is_kept_ or len(parts) < 2:
        for part in parts:
            yield recalibrate_rows(recalibration, part)
        return
    recalibration_parts = [Part(part.dist, part.truth, part.weights) for part in parts]
    for part, dist in zip(parts, recalibration.cross_transform(recalibration_parts), strict=True):
        yield replace(part, dist=dist)


class HeldOut(Calibration):
    """Fit to some rows and score the others; all rows where the classifier is prefit."""

    def calibrate(self, data: TrainingData) -> Calibrated:
        """Fitted predictor and score tables of held-out rows."""
        is_fitted = is_prefit(self.estimator)
        share = 1.0 if is_fitted else float(self.cv)
        n_needed = 4 if self.splits else 2
        held_out, training = hold_out(data, share, n_needed, self.random_state)
        if not is_fitted:
            self._check_split(data, training, held_out)
        fitted_to = np.arange(data.n_samples) if is_fitted else training
        self.log(f"{len(fitted_to):,} rows for training, {len(held_out):,} for calibration")
        predictor = self._fit(data, fitted_to)
        rows = self._predict_rows(predictor, data, held_out, None if is_fitted else training)
        n_first = len(held_out)
        if self.splits or learns_from_rows(self.recalibration):
            n_first = cut_by_groups(held_out, n_first // 2, data.groups)
        policy_rows = held_out[n_first:] if self.splits else held_out
        range_rows = held_out[:n_first] if self.splits else held_out
        predictor = self._add_ranges(predictor, data, np.concatenate([training, range_rows]))
        recalibration_rows = rows[:n_first]
        recalibration = self.fit_recalibration(predictor.estimator, [recalibration_rows])
        rows = recalibrate_rows(recalibration, rows)
        later_rows = rows[n_first:]
        estimator_rows = rows[:n_first] if self.splits else rows
        tables = [self.tabulate(estimator_rows)]
        if recalibration is not None and recalibration.is_kept_ and n_first >= MIN_CROSS_FITTED:
            ends = fold_ends(held_out[:n_first], N_CROSS_FITS, data.groups)
            folds = [recalibration_rows[start:stop] for start, stop in pairwise(ends)]
            parts = [self.tabulate(part) for part in cross_recalibrate(recalibration, folds)]
            if not self.splits:
                parts.append(self.tabulate(later_rows))
            cross_fitted = ScoreTable.concatenate(parts, of_one_model=True)
            cross_fitted._compared_as, tables = tables[0], [cross_fitted]
        if self.splits:
            tables.append(self.tabulate(later_rows))
        if is_fitted:
            warn_if_leakage_suspected(tables[0], data.Y.shape[1])
        return Calibrated(
            replace(predictor, recalibration=recalibration),
            tables[0],
            tables[-1],
            # A region needs rows that the recalibration was not fitted to.
            later_rows if learns_from_rows(recalibration) else rows,
            0 if is_fitted else len(training),
            rows.training_labelsets,
            self._compare_with_predict(predictor, data, held_out, tables),
            predictor.is_outside(take_rows(data.X, policy_rows)),
        )

    def _check_split(self, data: TrainingData, training: Indices, held_out: Indices) -> None:
        """Warn of few held-out rows, and of copies of training rows among them."""
        _warn_of_copies(data, training, held_out)
        if len(held_out) < FEW_HELD_OUT:
            warn(
                f"Only {len(held_out)} of {data.n_samples} rows are held out: estimates have "
                "wide intervals, and hardly any target can be guaranteed. For so few rows use "
                "cv=5, without a guarantee.",
                UserWarning,
            )

    def _compare_with_predict(
        self, predictor: Predictor, data: TrainingData, rows: Indices, tables: list[ScoreTable]
    ) -> PredictComparison:
        """Comparison of the judged decisions with a frozen model's own `predict`."""
        model = predictor.estimator
        is_own = self.rule.name in ("predict", "given")
        if not isinstance(model, FrozenEstimator) or is_own or is_prefit(innermost(model)):
            return PredictComparison()
        X = take_rows(data.X, rows)
        try:
            dist = predictor.predict_raw(take_rows(X, slice(0, 1)))
            own = predict_labelsets(model, X, dist)
        except (AttributeError, LabelsureError, TypeError, ValueError):
            return PredictComparison()  # no `predict`, or one that does not return labelsets
        judged = stack_rows([cast(Labelsets, table.decisions) for table in tables])
        return PredictComparison.compare(
            judged, own, data.Y[rows], get_metric(self.metric), self.empty
        )


class CrossFitted(Calibration):
    """Cross-fitting: score each row by a classifier that was fitted to other folds."""

    def calibrate(self, data: TrainingData) -> Calibrated:
        """Predictor fitted to all rows, and the score table of out-of-fold predictions."""
        # All folds are made before any fit, so that splitters raise errors early.
        folds = make_folds(data, self.cv, self.random_state)
        if folds:
            _warn_of_copies(data, *folds[0])
        predictor = self._fit(data, np.arange(data.n_samples))
        self.log(f"{len(folds)} folds of {data.n_samples:,} rows")
        n_workers = count_workers(self.n_jobs, len(folds))
        clones = ((self.estimator, data, train) for train, _ in folds)
        if effective_n_jobs(n_workers) == 1:  # scikit-learn's `Parallel` changes warning filters
            models = (fit_clone(*clone) for clone in clones)
        else:
            workers = Parallel(n_jobs=n_workers, return_as="generator")
            models = workers(delayed(fit_clone)(*clone) for clone in clones)
        parts = [
            self._predict_rows(replace(predictor, estimator=fitted), data, test, train)
            for fitted, (train, test) in zip(models, folds, strict=True)
        ]
        order = np.concatenate([test for _, test in folds])
        predictor = self._add_ranges(predictor, data, np.arange(data.n_samples))
        recalibration = self.fit_recalibration(predictor.estimator, parts)
        tables = [self.tabulate(part) for part in cross_recalibrate(recalibration, parts)]
        table = ScoreTable.concatenate(tables)
        if isinstance(self.cv, Integral):
            table.trained_on = f"{1 - 1 / int(self.cv):.0%} of the"
        return Calibrated(
            replace(predictor, recalibration=recalibration),
            table,
            table,
            None,
            data.n_samples,
            LabelsetFrequencies.of(data.Y, data.labels.names),
            PredictComparison(),
            predictor.is_outside(take_rows(data.X, order)),
            table.trained_on,
        )


def _warn_of_copies(data: TrainingData, training: Indices, held_out: Indices) -> None:
    """Warn if many held-out rows are copies of training rows."""
    compared = training[:MOST_TRAINING], held_out[:MOST_HELD_OUT]
    warn_if_rows_are_shared(*((take_rows(data.X, rows), data.Y[rows]) for rows in compared))


def holds_out(estimator: Estimator, cv: object) -> bool:
    """Whether calibration rows are new to the model that predicts."""
    return is_prefit(estimator) or is_share(cv)
