"""`ModelCard`: what a fitted model was made from, what it claims, and how well calibrated it is."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

from labelsure._runtime.notebook import join_names
from labelsure._runtime.typing import Floats
from labelsure.errors import MAX_NAMES_LISTED
from labelsure.estimation._estimator import AccuracyEstimator
from labelsure.estimation._reliability import reliability
from labelsure.estimation.score_table import ScoreTable
from labelsure.guarantees._policy import AcceptPolicy
from labelsure.labelsets.rows import MAX_WRITTEN_NAMES, abbreviate_names
from labelsure.metrics.registry import get_metric
from labelsure.model._calibration import Calibration, innermost

N_FOLDS = 5
FROM_POLICY = "the policy's instances, new to the accuracy estimator"
FROM_FOLDS = f"{N_FOLDS} folds, each new to the accuracy estimator that judges it"
CALIBRATION_COLUMNS = (
    "low",
    "high",
    "n_samples",
    "estimated",
    "accuracy",
    "accuracy_low",
    "accuracy_high",
)


@dataclass(frozen=True)
class ModelCard:
    """What people who meet a saved model want to know of it.

    Parameters
    ----------
    n_training
        Instances that the classifier was fitted to; 0 if it was fitted before.
    n_for_estimator, n_for_policy
        Instances that the accuracy estimator and the policy were fitted to; 0 without a policy.
    n_features
        Columns of X, None where the model does not say.
    label_names
        One for each label; of very many, the first and the last.
    metric, empty, decision
        What accuracy means, and what is predicted.
    recalibration
        What recalibrates the distributions, in words; None without one.
    region
        What the sets of labelsets hold, and how often, in words; None without them.
    estimated, low, high
        The mean accuracy on the instances of the accuracy estimator, and the interval of that.
    training_gain
        What the mean holds because the classifier learned from more instances than those of the
        folds; 0 without folds.
    target, level, threshold, coverage, bound
        Of the policy: what was asked for, and what came out; None without one, and threshold and
        bound also if the target was not reached.
    guaranteed
        Whether the bound holds with probability `level`.
    summary
        What is accepted and whether that is guaranteed, in words.
    calibration
        The columns of `labelsure.reliability`, estimated against actual accuracies; None in
        intervals without instances.
    calibration_from
        The instances that the calibration was measured on. They are new to the model that judges
        them.
    columns
        What each column of a table is to the model, where it was made from one; otherwise None.
    classifier
        What predicts, in words.
    n_labels
        How many labels there are; None means as many as there are names.
    """

    n_training: int
    n_for_estimator: int
    n_for_policy: int
    n_features: int | None
    label_names: list[str]
    metric: str
    empty: float
    decision: str
    recalibration: str | None
    region: str | None
    estimated: float
    low: float
    high: float
    training_gain: float
    target: float | None
    level: float
    threshold: float | None
    coverage: float | None
    bound: float | None
    guaranteed: bool
    summary: str
    calibration: dict[str, list[Any]]
    calibration_from: str
    columns: list[dict[str, str]] | None = None
    classifier: str = "unknown"
    n_labels: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the card as plain values, as they stand in a saved file."""
        return asdict(self)

    def __str__(self) -> str:
        features = "unknown" if self.n_features is None else self.n_features
        gained = ""
        if self.training_gain:  # of cross-fitting alone
            gained = f" ({self.training_gain:+.3f} for learning from more than the folds)"
        lines = [
            f"classifier: {self.classifier}",
            f"labels: {self.n_labels or len(self.label_names)} "
            f"({join_names(self.label_names, MAX_NAMES_LISTED)})",
            f"features: {features}",
            f"instances: {self.n_training} for training, {self.n_for_estimator} for the accuracy "
            f"estimator, {self.n_for_policy} for the policy",
            f"accuracy: {self.metric}, of decision {self.decision!r}, two empty labelsets being "
            f"worth {self.empty:g}",
            *([] if self.recalibration is None else [f"recalibration: {self.recalibration}"]),
            f"estimated mean accuracy: {self.estimated:.3f}, from {self.low:.3f} to "
            f"{self.high:.3f}{gained}",
            f"policy: {self.summary}",
            *([] if self.region is None else [f"region: {self.region}"]),
            f"calibration, on {self.calibration_from}:",
        ]
        columns = (self.calibration[name] for name in CALIBRATION_COLUMNS[:5])
        for low, high, n_samples, estimated, accuracy in zip(*columns, strict=True):
            if n_samples:
                lines.append(
                    f"  estimated {low:g} to {high:g}: {n_samples} instances, estimated "
                    f"{estimated:.3f}, accuracy {accuracy:.3f}"
                )
        return "\n".join(lines)


def make_card(model: Any, found: Calibration) -> ModelCard:
    """Return the card of a classifier whose parts are fitted.

    Parameters
    ----------
    model
        An `AccuracyAwareClassifier` at the end of its `fit`.
    found
        What its parts were fitted to.
    """
    policy: AcceptPolicy | None = model.policy_
    calibration, origin = _measure_calibration(model.accuracy_estimator_, found)
    reference = model.reference_
    n_features = getattr(model, "n_features_in_", None)
    return ModelCard(
        n_training=found.n_training,
        n_for_estimator=len(found.for_estimator),
        n_for_policy=0 if policy is None else len(found.for_policy),
        n_features=None if n_features is None else int(n_features),
        label_names=abbreviate_names(model.label_names_, model.n_labels_),
        metric=get_metric(model.metric).name,
        empty=float(model.empty),
        decision=model.decision,
        recalibration=describe_recalibration(model),
        region=describe_region(model),
        estimated=reference.mean,
        low=reference.low,
        high=reference.high,
        training_gain=model.accuracy_estimator_.training_gain_.mean,
        target=None if model.target is None else float(model.target),
        level=float(model.level),
        threshold=None if policy is None or not policy.reached_ else float(policy.threshold_),
        coverage=None if policy is None else float(policy.coverage_),
        bound=None if policy is None or not policy.reached_ else float(policy.bound_),
        n_labels=_count_labels(model),
        guaranteed=model.guaranteed_,
        summary=model.summary_,
        calibration=calibration,
        calibration_from=origin,
        columns=_describe_columns(model),
        classifier=_describe_classifier(model.estimator_),
    )


def _describe_classifier(fitted: Any) -> str:
    """Return the name of the model that predicts, and what it says it has chosen."""
    inner = innermost(fitted)
    chosen = f": {inner.choice_}" if hasattr(inner, "choice_") else ""
    before = ", fitted beforehand" if isinstance(fitted, FrozenEstimator) else ""
    return f"{type(inner).__name__}{chosen}{before}"


def _describe_columns(model: Any) -> list[dict[str, str]] | None:
    """Return what the first step of a pipeline says of the columns of a table, None without it."""
    estimator = model.estimator_
    if isinstance(estimator, FrozenEstimator):
        estimator = estimator.estimator
    first = estimator.steps[0][1] if isinstance(estimator, Pipeline) else estimator
    return first.describe_columns() if hasattr(first, "describe_columns") else None


def _measure_calibration(
    estimator: AccuracyEstimator, found: Calibration
) -> tuple[dict[str, list[Any]], str]:
    """Return the columns of `reliability`, out of sample, and on which instances."""
    table, origin = found.for_policy, FROM_POLICY
    if table is found.for_estimator:
        estimated, origin = _estimate_by_folds(estimator, table), FROM_FOLDS
    else:
        estimated = estimator.predict(table)
    accuracy = table.accuracy(estimator.metric, estimator.empty)
    frame = reliability(estimated, accuracy).table
    columns = {name: frame[name].tolist() for name in CALIBRATION_COLUMNS}
    return {name: [_without_nan(value) for value in columns[name]] for name in columns}, origin


def _without_nan(value: Any) -> Any:
    return None if isinstance(value, float) and math.isnan(value) else value


def _estimate_by_folds(estimator: AccuracyEstimator, table: ScoreTable) -> Floats:
    """Return the estimate of each instance by an estimator that was fitted to other folds."""
    frame = table.to_frame()
    n_folds = min(N_FOLDS, len(table))
    fold = np.random.default_rng(0).permutation(np.arange(len(table)) % n_folds)
    # With the penalty of the whole fit, which costs a tenth of choosing one in each fold.
    judge = clone(estimator).set_params(penalty=estimator.penalty_)
    estimated = np.empty(len(table))
    for k in range(n_folds):
        judge.fit(ScoreTable(frame[fold != k]))
        estimated[fold == k] = judge.predict(ScoreTable(frame[fold == k]))
    return estimated


def describe_recalibration(model: Any) -> str | None:
    """Return what recalibrates the distributions of a classifier, in words; None for nothing."""
    return None if model.recalibration_ is None else str(model.recalibration_)


def describe_region(model: Any) -> str | None:
    """Return what the region of a classifier promises, in words; None without one."""
    return None if model.region_ is None else str(model.region_.message_)


def describe_policy(
    policy: AcceptPolicy | None, guaranteed: bool, fitted_elsewhere: bool = False
) -> str:
    """Return what a policy accepts, and whether that is guaranteed, in words.

    Parameters
    ----------
    policy
        Fitted, or None.
    guaranteed
        Whether what it says holds with probability `level`.
    fitted_elsewhere
        Whether the model was fitted before, to instances that nobody here has seen.
    """
    if policy is None:
        return "There is no target and no coverage, so no prediction is accepted or refused."
    message: str = policy.message_
    if not policy.reached_:
        return message
    if guaranteed:
        given = (
            "if the model was not trained on the policy's instances, which cannot be seen here"
            if fitted_elsewhere
            else "the policy had instances of its own"
        )
        return f"{message} This is guaranteed{' ' if fitted_elsewhere else ': '}{given}."
    return (
        f"{message} This is to be expected, but not guaranteed: by cross-fitting all instances "
        "serve every purpose. Hold some out for the policy, e.g. by cv=0.4."
    )


def _count_labels(model: Any) -> int | None:
    n_labels: int = model.n_labels_
    return n_labels if n_labels > MAX_WRITTEN_NAMES else None
