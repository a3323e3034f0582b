"""`ModelCard`: data sizes, guarantee and calibration of a fitted model."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from sklearn.frozen import FrozenEstimator

from labelsure._runtime.notebook import list_names, make_html
from labelsure._runtime.typing import Estimator, JsonObject
from labelsure.classifiers._inner_models import first_step, innermost, is_prefit
from labelsure.errors import MAX_NAMES_LISTED
from labelsure.estimation._estimator import AccuracyEstimator
from labelsure.estimation._reliability import reliability
from labelsure.estimation.score_table import ScoreTable
from labelsure.guarantees._labelset_region import LabelsetRegion
from labelsure.guarantees._policy import AcceptPolicy
from labelsure.labelsets.label_names import abbreviate_names
from labelsure.metrics.registry import METRICS, Metric, get_metric
from labelsure.model._calibration import Calibrated

if TYPE_CHECKING:
    import pandas as pd

FROM_POLICY = "the policy's rows, new to the accuracy estimator"
FROM_FOLDS = "folds, each new to the accuracy estimator that judges it"


@dataclass(frozen=True)
class ModelCard:
    """Summary of a fitted model: data sizes, metric, guarantee and calibration.

    Parameters
    ----------
    n_training
        Rows that the classifier was fitted to; 0 if it was prefit.
    n_for_estimator, n_for_policy
        Rows that the accuracy estimator and the policy were fitted to; 0 without a policy.
    n_features
        Number of columns of X; None where the model has no `n_features_in_`.
    label_names
        One for each label; of very many, the first and the last.
    metric, empty, decision
        Metric, its value for two empty labelsets, and the rule of the judged decisions.
    comparison
        Comparison of these with the own `predict` of a frozen model, in words; empty without one.
    recalibration
        Recalibration of the distributions, in words; None without one.
    region
        Coverage and mean size of prediction sets, in words; None without them.
    estimated, low, high
        Mean accuracy on the rows of the accuracy estimator, and its interval.
    target, confidence, threshold, share, bound
        Settings and results of the policy; None without one, threshold and bound also if the target
        was not reached.
    guaranteed
        Whether the bound holds with that confidence.
    summary
        Accepted predictions and their guarantee, in words.
    calibration
        The columns of `labelsure.reliability`, estimated against actual accuracies; None in
        intervals without rows.
    calibration_from
        Rows that the calibration was measured on, in words; new to the estimator that judges them.
    columns
        Role of each column of a table; None for other features.
    classifier
        Class of the classifier, in words.
    n_labels
        Number of labels.
    """

    n_training: int
    n_for_estimator: int
    n_for_policy: int
    n_features: int | None
    label_names: list[str]
    metric: str
    empty: float
    decision: str
    comparison: str
    recalibration: str | None
    region: str | None
    estimated: float
    low: float
    high: float
    target: float | None
    confidence: float
    threshold: float | None
    share: float | None
    bound: float | None
    guaranteed: bool
    summary: str
    calibration: JsonObject
    calibration_from: str
    columns: list[dict[str, str]] | None
    classifier: str
    n_labels: int

    @property
    def n_calibration(self) -> int:
        """Number of calibration rows; those of estimator and policy may be the same."""
        is_shared = self.calibration_from == FROM_FOLDS
        return self.n_for_estimator + (0 if is_shared else self.n_for_policy)

    def to_dict(self) -> JsonObject:
        """Card as a dict of JSON values."""
        return asdict(self)

    @property
    def facts(self) -> list[tuple[str, str]]:
        """Lines of the card, (name, text) each."""
        names = list_names(self.label_names, MAX_NAMES_LISTED)
        metric = METRICS[self.metric].title if self.metric in METRICS else self.metric
        facts = {
            "classifier": self.classifier,
            "labels": f"{self.n_labels} ({names})",
            "features": "unknown" if self.n_features is None else str(self.n_features),
            "rows": f"{self.n_training} for training, {self.n_for_estimator} for the accuracy "
            f"estimator, {self.n_for_policy} for the policy",
            "metric": f"{metric}, two empty labelsets score {self.empty:g}",
            "predictions": self.decision,
            "own predictions": self.comparison,
            "recalibration": self.recalibration,
            f"estimated mean {metric}": f"{self.estimated:.3f} "
            f"({self.confidence:.0%} interval {self.low:.3f} to {self.high:.3f})",
            "policy": self.summary,
            "region": self.region,
        }
        return [(name, text) for name, text in facts.items() if text]

    def __str__(self) -> str:
        lines = [f"{name}: {text}" for name, text in self.facts]
        lines.append(f"calibration, on {self.calibration_from}:")
        names = ("low", "high", "n_samples", "estimated", "accuracy")
        columns = (self.calibration[name] for name in names)
        for low, high, n_samples, estimated, accuracy in zip(*columns, strict=True):
            if n_samples:
                lines.append(
                    f"  estimated {low:g} to {high:g}: {n_samples} rows, estimated "
                    f"{estimated:.3f}, accuracy {accuracy:.3f}"
                )
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"ModelCard({self.classifier!r}, metric={self.metric!r}, target={self.target!r})"

    def brief(self) -> pd.DataFrame:
        """Data sizes, estimate and threshold as a table of one row."""
        import pandas as pd

        row: JsonObject = {
            "labels": self.n_labels,
            "calibration rows": self.n_calibration,
            f"estimated {self.metric}": self.estimated,
            "low": self.low,
            "high": self.high,
        }
        if self.threshold is not None:
            row |= {"threshold": self.threshold, "accepted": self.share, "bound": self.bound}
        return pd.DataFrame(row, [""])

    def _repr_html_(self) -> str:
        import pandas as pd

        facts = pd.DataFrame(dict(self.facts), ["model"]).T
        return make_html(f"{self.classifier}.", facts)


def make_card(
    calibrated: Calibrated,
    estimator: AccuracyEstimator,
    policy: AcceptPolicy | None,
    region: LabelsetRegion | None,
    confidence: float,
) -> ModelCard:
    """Card of a model at the end of its `fit`."""
    predictor, for_estimator, for_policy = (
        calibrated.predictor,
        calibrated.for_estimator,
        calibrated.for_policy,
    )
    calibration, origin = _measure_calibration(estimator, for_estimator, for_policy)
    reference, labels = estimator.reference_, predictor.labels
    is_reached = policy is not None and policy.reached_
    is_exact = policy is not None and policy.guarantee == "exact"
    return ModelCard(
        n_training=calibrated.n_training,
        n_for_estimator=len(for_estimator),
        n_for_policy=0 if policy is None else len(for_policy),
        n_features=predictor.inputs.n_features,
        label_names=abbreviate_names(labels.names, labels.n_labels),
        metric=get_metric(estimator.metric).name,
        empty=float(estimator.empty),
        decision=predictor.judged,
        comparison=calibrated.comparison.sentence,
        recalibration=None if predictor.recalibration is None else str(predictor.recalibration),
        region=None if region is None else str(region.message_),
        estimated=reference.mean,
        low=reference.low,
        high=reference.high,
        target=None if policy is None or policy.target is None else float(policy.target),
        confidence=float(confidence),
        threshold=float(policy.threshold_) if policy is not None and is_reached else None,
        share=None if policy is None else float(policy.share_),
        bound=float(policy.bound_) if policy is not None and is_reached else None,
        n_labels=labels.n_labels,
        guaranteed=calibrated.holds_out and is_reached and is_exact,
        summary=_describe_policy(calibrated, policy, get_metric(estimator.metric)),
        calibration=calibration,
        calibration_from=origin,
        columns=_describe_columns(predictor.estimator),
        classifier=_describe_classifier(predictor.estimator),
    )


def _describe_classifier(fitted: Estimator) -> str:
    """Class name of the classifier, its own recalibration, and whether it was fitted before."""
    inner = innermost(fitted)
    recalibration = getattr(inner, "recalibration_", None)
    recalibrated = "" if recalibration is None else f": {str(recalibration).rstrip('.')}"
    frozen = ", fitted beforehand" if isinstance(fitted, FrozenEstimator) else ""
    return f"{type(inner).__name__}{recalibrated}{frozen}"


def _describe_columns(fitted: Estimator) -> list[dict[str, str]] | None:
    """Roles of the columns of a table, by the first step of a pipeline; None without it."""
    first = first_step(fitted)
    return first.describe_columns() if hasattr(first, "describe_columns") else None


def _measure_calibration(
    estimator: AccuracyEstimator, for_estimator: ScoreTable, for_policy: ScoreTable
) -> tuple[dict[str, list[object]], str]:
    """Out-of-sample columns of `reliability`, and the name of the rows they are from."""
    if for_policy is for_estimator:
        (estimated, accuracy), origin = estimator.compare_estimates(), FROM_FOLDS
    else:
        estimated, origin = estimator.predict(for_policy), FROM_POLICY
        accuracy = for_policy.accuracy(estimator.metric, estimator.empty)
    return reliability(estimated, accuracy)._to_lists(), origin


def _describe_policy(calibrated: Calibrated, policy: AcceptPolicy | None, metric: Metric) -> str:
    """Sentence on the predictions that a policy accepts and their guarantee."""
    if policy is None:
        return "There is no target and no share, so no prediction is accepted or refused."
    if not policy.reached_:
        return policy.message_
    message = policy.message_.replace("mean accuracy", f"mean {metric.title}")
    if not calibrated.holds_out:
        return (
            f"{message} Not guaranteed: with folds all rows serve every purpose, and the "
            f"estimates are those of models trained on {calibrated.trained_on} rows. Hold rows "
            "out, e.g. by cv=0.4."
        )
    if policy.guarantee == "approximate":
        return (
            f"{message} Approximate, not guaranteed: by Student's t, and estimator and policy "
            "share their calibration rows."
        )
    if is_prefit(calibrated.predictor.estimator):
        return (
            f"{message} Guaranteed if the model was not trained on the calibration set, which "
            "cannot be checked here."
        )
    return f"{message} Guaranteed: the policy has a calibration set of its own."
