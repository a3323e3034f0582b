"""`AccuracyAwareClassifier`: a classifier that knows how accurate its predictions are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import KFold
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from labelsure._storage import name_classes_publicly
from labelsure._typing import Floats, Labelsets, Mask
from labelsure.classifiers import (
    EnsembleOfClassifierChains,
    LabelsetClassifier,
    LabelsetPredictor,
)
from labelsure.decisions import decide
from labelsure.distributions import LabelsetDistribution
from labelsure.errors import InputError, unknown_name
from labelsure.estimation import AccuracyEstimator, Estimate
from labelsure.metrics import MetricLike, accuracy, check_empty, get_metric
from labelsure.score_table import ScoreTable
from labelsure.selection import AcceptPolicy

__all__ = ["AccuracyAwareClassifier", "Assessment"]


N_FOLDS = 5
MIN_SAMPLES = 4  # two to train on and two to compare with
CALIBRATIONS = ("cross", "split")
DECISIONS = ("mode", "best")


@dataclass(frozen=True)
class Assessment:
    """Predictions and what they are worth.

    Parameters
    ----------
    Y_pred
        (n, L) predicted labelsets.
    accuracy
        (n,) estimated accuracies.
    accepted
        (n,) whether the policy accepts each; None without a target.
    """

    Y_pred: Labelsets
    accuracy: Floats
    accepted: Mask | None


class AccuracyAwareClassifier(LabelsetPredictor):
    """A multi-label classifier, an estimator of its accuracy and a policy, fitted together.

    Parameters
    ----------
    classifier
        Any with `predict_distribution`, such as `BinaryRelevance`; None means
        `EnsembleOfClassifierChains`.
    metric
        The accuracy to estimate: "exact", "hamming", "jaccard", "f1", or a function of
        (tp, fp, fn, tn) with values in [0, 1].
    target
        The mean accuracy that accepted predictions shall reach; None for no policy.
    level
        The probability with which they do, and that of the intervals of `estimate`.
    calibration
        Where the labelled predictions come from that estimator and policy are fitted to. "cross":
        from five-fold cross-fitting, so that every instance serves every purpose; the target is
        then reached as a rule, not guaranteed. "split": from instances held out for it, as the
        guarantee needs.
    calibration_size
        The share of instances held out by "split"; with a target one half of them is for the
        estimator, the other for the policy.
    decision
        "mode" predicts the most probable labelset, "best" the one with the highest expected
        accuracy.
    empty
        The Jaccard and F1 of two empty labelsets.
    features, model
        As of `AccuracyEstimator`, but None means "full" for the ridge: sharper estimates, of which
        a policy accepts more, calibrated nearly as well (`docs/calibration.md`).
    random_state
        Seed of folds and splits.

    Attributes
    ----------
    classifier_, estimator_, policy_
        What was fitted; `policy_` is None without a target.

    Examples
    --------
    >>> import numpy as np
    >>> from labelsure import AccuracyAwareClassifier, BinaryRelevance
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(600, 4))
    >>> Y = (X[:, :3] + 0.5 * rng.normal(size=(600, 3)) > 0).astype(int)
    >>> model = AccuracyAwareClassifier(BinaryRelevance(), metric="hamming", random_state=0)
    >>> model.fit(X[:500], Y[:500]).predict(X[500:502])
    array([[1, 0, 0],
           [0, 0, 0]])
    >>> model.predict_accuracy(X[500:502]).round(2)
    array([0.84, 0.9 ])
    >>> round(model.estimate(X[500:]).mean, 2)
    0.86
    """

    def __init__(
        self,
        classifier: Any = None,
        metric: MetricLike = "jaccard",
        target: float | None = None,
        level: float = 0.95,
        calibration: str = "cross",
        *,
        calibration_size: float = 0.4,
        decision: str = "mode",
        empty: float = 1.0,
        features: Any = None,
        model: str = "ridge",
        random_state: int | None = None,
    ) -> None:
        self.classifier = classifier
        self.metric = metric
        self.target = target
        self.level = level
        self.calibration = calibration
        self.calibration_size = calibration_size
        self.decision = decision
        self.empty = empty
        self.features = features
        self.model = model
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the classifier, the estimator of its accuracy and, with a target, the policy.

        Parameters
        ----------
        X
            (n, d) features.
        y
            (n, L) zeros and ones, a DataFrame (whose columns name the labels) or sparse; or a
            vector of two classes, which is the case of one label.
        """
        self._check_parameters()
        X, Y = self._check_training_data(X, y, min_samples=MIN_SAMPLES)
        fit_parts = self._fit_cross if self.calibration == "cross" else self._fit_split
        for_estimator, for_policy = fit_parts(X, Y)
        features = self.features
        if features is None and self.model == "ridge":
            features = "full"
        self.estimator_ = AccuracyEstimator(self.metric, features, self.model, self.empty).fit(
            for_estimator
        )
        self.policy_ = None if self.target is None else self._fit_policy(for_policy, self.target)
        return self

    def distribution_of_checked(self, X: Any) -> LabelsetDistribution:
        """Return the classifier's P(Y|x) of each row of features that are checked already."""
        return _distribution_of(self.classifier_, X)

    def predict_accuracy(self, X: Any) -> Floats:
        """Return the estimated accuracy of each prediction, (n,)."""
        dist = self.predict_distribution(X)
        return self.estimator_.predict(dist, self._decisions(dist))

    def accept(self, X: Any) -> Mask:
        """Return which predictions the policy accepts, (n,); needs a target."""
        check_is_fitted(self, "estimator_")
        if self.policy_ is None:
            raise InputError(
                "`accept` needs a target, got target=None when fitting. Fit with e.g. target=0.9."
            )
        return self.policy_.accept(self.predict_accuracy(X))

    def estimate(self, X: Any, *, level: float | None = None) -> Estimate:
        """Return the mean accuracy of a batch that nobody has labelled, with an interval."""
        dist = self.predict_distribution(X)
        level = self.level if level is None else level
        return self.estimator_.estimate(dist, self._decisions(dist), level=level)

    def assess(self, X: Any) -> Assessment:
        """Return predictions, their estimated accuracies and acceptance, in one sweep over X."""
        dist = self.predict_distribution(X)
        Y_pred = self._decide(dist)
        estimated = self.estimator_.predict(dist, Y_pred)
        accepted = None if self.policy_ is None else self.policy_.accept(estimated)
        return Assessment(Y_pred, estimated, accepted)

    def score(self, X: Any, y: Any) -> float:
        """Return the mean accuracy under the metric, once the truth is known."""
        Y_pred = self._decide(self.predict_distribution(X))
        if not isinstance(self.classes_, list):
            y = (np.asarray(y) == self.classes_[1])[:, np.newaxis]
        return float(accuracy(y, Y_pred, self.metric, empty=self.empty).mean())

    @property
    def reference_(self) -> Estimate:
        """The `Estimate` for the instances that the estimator was fitted to."""
        check_is_fitted(self, "estimator_")
        reference: Estimate = self.estimator_.reference_
        return reference

    def _check_parameters(self) -> None:
        get_metric(self.metric)
        check_empty(self.empty)
        if self.calibration not in CALIBRATIONS:
            raise unknown_name("calibration", self.calibration, CALIBRATIONS)
        if self.decision not in DECISIONS:
            raise unknown_name("decision", self.decision, DECISIONS)
        if self.classifier is not None and not hasattr(self.classifier, "predict_distribution"):
            raise InputError(
                "`classifier` must have `predict_distribution`, such as `BinaryRelevance` or "
                f"`EnsembleOfClassifierChains`, got {type(self.classifier).__name__}. Pass a "
                "scikit-learn classifier as their `estimator`."
            )
        if not 0 < self.calibration_size < 1:
            raise InputError(
                "`calibration_size` must be a share between 0 and 1, both excluded, got "
                f"{self.calibration_size!r}."
            )

    def _wrapped_estimator(self) -> Any:
        return self.classifier

    def _new_classifier(self) -> Any:
        if self.classifier is None:
            return EnsembleOfClassifierChains(random_state=self.random_state)
        return clone(self.classifier)

    def _decide(self, dist: LabelsetDistribution) -> Labelsets:
        decisions = self._decisions(dist)
        return dist.mode() if decisions is None else decisions

    def _decisions(self, dist: LabelsetDistribution) -> Labelsets | None:
        """Return the decisions, None for the mode, which comes with the profile anyway."""
        if self.decision == "mode":
            return None
        return decide(dist, self.metric, empty=self.empty)

    def _score(self, classifier: Any, X: Any, Y: Labelsets) -> ScoreTable:
        """Return the score table of a fitted classifier's predictions."""
        dist = _distribution_of(classifier, X)
        return ScoreTable.from_distribution(dist, Y, self._decisions(dist), metrics=[self.metric])

    def _fit_classifier(self, X: Any, Y: Labelsets) -> Any:
        classifier = self._new_classifier()
        if isinstance(classifier, LabelsetClassifier):
            return classifier.fit_checked(X, Y, self.label_names_)
        import pandas as pd

        return classifier.fit(X, pd.DataFrame(Y, columns=list(self.label_names_)))

    def _fit_cross(self, X: Any, Y: Labelsets) -> tuple[ScoreTable, ScoreTable]:
        """Return the table of all instances, each scored by a classifier that has not seen it."""
        self.classifier_ = self._fit_classifier(X, Y)
        folds = KFold(min(N_FOLDS, len(Y)), shuffle=True, random_state=self.random_state)
        tables = [
            self._score(self._fit_classifier(X[train], Y[train]), X[test], Y[test])
            for train, test in folds.split(Y)
        ]
        table = ScoreTable.concatenate(tables)
        return table, table

    def _fit_split(self, X: Any, Y: Labelsets) -> tuple[ScoreTable, ScoreTable]:
        """Return the tables of two held-out parts, or twice that of all that is held out."""
        order = check_random_state(self.random_state).permutation(len(Y))
        n_held_out = round(self.calibration_size * len(order))
        train, held_out = order[n_held_out:], order[:n_held_out]
        self.classifier_ = self._fit_classifier(X[train], Y[train])
        if self.target is None:
            table = self._score(self.classifier_, X[held_out], Y[held_out])
            return table, table
        half = n_held_out // 2
        first, second = held_out[:half], held_out[half:]
        return (
            self._score(self.classifier_, X[first], Y[first]),
            self._score(self.classifier_, X[second], Y[second]),
        )

    def _fit_policy(self, table: ScoreTable, target: float) -> AcceptPolicy:
        outcome = get_metric(self.metric).outcome
        return AcceptPolicy(target, self.level, outcome).fit(
            self.estimator_.predict(table), table.accuracy(self.metric, self.empty)
        )


def _distribution_of(classifier: Any, X: Any) -> LabelsetDistribution:
    """Return a fitted classifier's P(Y|x) of features that are checked already."""
    if isinstance(classifier, LabelsetPredictor):
        return classifier.distribution_of_checked(X)
    dist: LabelsetDistribution = classifier.predict_distribution(X)
    return dist


name_classes_publicly(__name__)
