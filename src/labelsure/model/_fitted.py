"""`Fitted`: the parts of a fitted model, behind its methods, reports and files."""

from __future__ import annotations

from dataclasses import dataclass

from labelsure._runtime.typing import LabelNames, Labelsets, LabelsetsLike
from labelsure.distributions._instance_table import check_shown
from labelsure.errors import InputError, unknown_name
from labelsure.estimation._accuracy_model import EXPECTED, LabelsetFrequencies
from labelsure.estimation._batch_estimates import INTERVALS, Estimate
from labelsure.estimation._batch_summary import BatchSummary, RowEstimates
from labelsure.estimation._comparison import Comparison, Difference, Side
from labelsure.estimation._diagnostics import PredictComparison
from labelsure.estimation._estimator import AccuracyEstimator, BatchSettings
from labelsure.estimation._label_estimates import LABEL_METRICS
from labelsure.estimation.score_table import ScoreTable, keep_marginals
from labelsure.guarantees._labelset_region import LabelsetRegion
from labelsure.guarantees._policy import AcceptPolicy
from labelsure.labelsets.foreign import index_of
from labelsure.metrics.registry import METRICS, Metric, MetricLike, get_metric
from labelsure.model._model_card import ModelCard
from labelsure.model._predictor import Predictions, Predictor


@dataclass(frozen=True)
class Fitted:
    """Parts of a fitted model.

    Parameters
    ----------
    predictor
        Classifier, recalibration and decision rule.
    accuracy_estimator
        Estimator of the accuracy of predictions.
    policy
        Accept policy; None without target and share.
    region
        Conformal prediction sets; None after cross-fitting and for very many labels.
    confidence
        Confidence level of intervals and guarantees.
    shows_region
        Whether `assess` shows certain and possible labels.
    holds_out
        Whether calibration rows are new to the model that predicts.
    comparison
        Comparison with the own `predict` of a frozen model.
    card
        Data sizes, metric, guarantee, calibration.
    """

    predictor: Predictor
    accuracy_estimator: AccuracyEstimator
    policy: AcceptPolicy | None
    region: LabelsetRegion | None
    confidence: float
    shows_region: bool
    holds_out: bool
    comparison: PredictComparison
    card: ModelCard

    @property
    def metric(self) -> Metric:
        """Metric of the accuracy."""
        return get_metric(self.accuracy_estimator.metric)

    @property
    def empty(self) -> float:
        """Value of Jaccard and F1 for two empty labelsets."""
        return float(self.accuracy_estimator.empty)

    @property
    def label_names(self) -> LabelNames:
        """Names of the labels; None without names."""
        return self.predictor.labels.names

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return self.predictor.labels.n_labels

    def estimate_rows(
        self,
        predictions: Predictions,
        truth: Labelsets | None = None,
        *,
        estimator: AccuracyEstimator | None = None,
        k: int = 0,
        compares: bool = False,
    ) -> RowEstimates:
        """Estimated accuracy of each prediction, in one sweep over the distributions.

        Parameters
        ----------
        predictions
            A batch.
        truth
            (n, L) true labelsets, or None.
        estimator
            Accuracy estimator of another metric; None for that of the model.
        k
            Number of most probable labelsets that are computed along.
        compares
            Whether the batch will be compared with the calibration set.
        """
        estimator, dist = estimator or self.accuracy_estimator, predictions.dist
        if n_shown := check_shown(k, dist.n_labels):
            dist = dist.with_engine(keep_top=n_shown)
        elif compares and estimator.can_compare:
            dist = keep_marginals(dist)
        metrics, rule = [get_metric(estimator.metric)], self.predictor.rule.name
        table = ScoreTable._of_aligned(dist, truth, predictions.decisions, metrics, rule)
        return estimator.estimate_rows(table)

    def estimator_for(self, metric: MetricLike | None) -> AccuracyEstimator:
        """Accuracy estimator under another metric, fitted to the same calibration table."""
        if metric is None:
            return self.accuracy_estimator
        if isinstance(metric, str) and metric not in METRICS:
            raise unknown_name("metric", metric, [*METRICS, *LABEL_METRICS])
        requested, own, features = get_metric(metric), self.accuracy_estimator, None
        if requested == self.metric:
            return own
        if requested not in METRICS.values():
            # Expected values are tabulated for the named metrics and the model's own alone.
            features = [name for name in own.features_ if name != EXPECTED]
        unfitted = AccuracyEstimator(requested, features, self.empty)
        table, frequencies = own.calibration_, own.labelset_frequencies_
        return fit_accuracy_estimator(unfitted, self.confidence, table, frequencies)

    def estimate(self, predictions: Predictions, settings: BatchSettings) -> Estimate:
        """Mean accuracy of a batch, under any metric."""
        metric, shift = settings.get("metric"), settings.get("shift", "test")
        level = self._level(settings)
        label_metric = metric if metric in LABEL_METRICS else None
        estimator = self.estimator_for(None if label_metric else metric)
        Y_true = self._read_truth(settings)
        if label_metric is not None or Y_true is not None or settings.get("rows") is not None:
            settings |= {"metric": label_metric, "level": level, "Y_true": Y_true}
            return estimator.estimate(predictions.dist, predictions.decisions, **settings)
        compares = shift != "ignore"
        rows = self.estimate_rows(predictions, estimator=estimator, compares=compares)
        summary = rows.summarise() if compares else BatchSummary(rows.sums())
        return estimator.estimate(summary, level=level, shift=shift)

    def _level(self, settings: BatchSettings) -> float:
        level = settings.get("level")
        return self.confidence if level is None else level

    def _read_truth(self, settings: BatchSettings) -> LabelsetsLike:
        """True labelsets of labelled rows as distributions align them; None without any."""
        Y_true = settings.get("Y_true")
        if Y_true is None:
            return None
        return self.predictor.labels.read(Y_true, "Y_true", index_of(Y_true))

    def compare(
        self, other: Fitted, predictions: tuple[Predictions, Predictions], settings: BatchSettings
    ) -> Difference:
        """Mean accuracy minus that of another model on a batch."""
        models = (self, other)
        if self.label_names != other.label_names or self.n_labels != other.n_labels:
            raise InputError("`other` must have the labels of this model, in the same order.")
        metric = settings.get("metric") or self.accuracy_estimator.metric
        if metric in LABEL_METRICS:
            raise InputError(
                f"`metric` must be a mean over rows to compare models, got {metric!r}. Estimate it "
                "for each model."
            )
        if get_metric(metric).depends_on_empty and self.empty != other.empty:
            raise InputError(f"`other` must have empty={self.empty:g}, got {other.empty:g}.")
        first, second = (
            Side(model.estimator_for(metric), batch.dist, batch.decisions)
            for model, batch in zip(models, predictions, strict=True)
        )
        comparison = Comparison(first, second, self._level(settings))
        if settings.get("Y_true") is None and settings.get("rows") is None:
            return comparison.by_calibration(settings.get("shift", "test"))
        Y_true, interval = self._read_truth(settings), settings.get("interval", INTERVALS[0])
        return comparison.by_labels(Y_true, settings.get("rows"), interval)

    def find_region(self) -> LabelsetRegion:
        """Fitted region. Raises InputError without one."""
        if self.region is None:
            raise InputError(
                "Prediction sets need held-out rows and labels that fit into an array, got "
                f"{'held-out' if self.holds_out else 'out-of-fold'} rows and {self.n_labels:,} "
                "labels. Hold rows out, e.g. by cv=0.4."
            )
        return self.region


def fit_accuracy_estimator(
    estimator: AccuracyEstimator,
    confidence: float,
    table: ScoreTable,
    frequencies: LabelsetFrequencies | None,
) -> AccuracyEstimator:
    """Fitted accuracy estimator; the interval of its reference is at level `confidence`."""
    estimator.fit(table, Y_train=frequencies)
    if confidence != estimator.reference_.level:
        estimator.reference_ = estimator.estimate(table, level=confidence, shift="ignore")
    return estimator
