"""Decision rules: from a distribution, the model or the caller to predicted labelsets."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from labelsure._runtime.typing import Estimator, FeaturesLike, Labelsets
from labelsure.decisions._rules import decide
from labelsure.distributions._base import LabelsetDistribution
from labelsure.errors import InputError, unknown_name
from labelsure.guarantees._label_thresholds import LabelThresholds
from labelsure.labelsets.reading import read_rows
from labelsure.labelsets.sparse import count_labels, stack_rows
from labelsure.metrics.registry import (
    EXACT,
    F1,
    JACCARD,
    PRECISION,
    RECALL,
    MetricLike,
    get_metric,
)
from labelsure.saving import CompactState

DECISIONS = ("best", "mode", "predict")


def predict_labelsets(fitted: Estimator, X: FeaturesLike, dist: LabelsetDistribution) -> Labelsets:
    """Labelsets of a model's own `predict`, (n, L)."""
    if len(dist) == 0:
        return dist.mode()
    predicted = fitted.predict(X)
    if np.ndim(predicted) == 1:  # of a model of one label
        predicted = np.asarray(predicted)[:, np.newaxis]
    return read_rows(predicted, "predict(X)", n_labels=dist.n_labels, sparse=dist.sparse_rows)


class DecisionRule(ABC):
    """Base class of decision rules."""

    name: ClassVar[str]
    words: ClassVar[str] = ""
    takes_predictions: ClassVar[bool] = False
    """Whether another system predicts, so that callers pass `Y_pred`."""

    @property
    def title(self) -> str:
        """Which predictions are judged, in words."""
        return self.words

    def predict_direct(
        self, fitted: Estimator, X: FeaturesLike, dist: LabelsetDistribution
    ) -> Labelsets | None:
        """Predictions that do not follow from the distribution, (n, L); None where they do."""
        return None

    @abstractmethod
    def choose(self, dist: LabelsetDistribution, direct: Labelsets | None) -> Labelsets | None:
        """Predictions, (n, L); None for the mode, which is computed along with the profile."""


@dataclass(frozen=True)
class Best(CompactState, DecisionRule):
    """The labelset with the highest expected accuracy, empty only if a training row was.

    Probabilities of independent labels overrate the empty labelset. Where no row of `fit` is
    empty, decisions under F1 and Jaccard that are not gain .05 to .16 on Scene, Slashdot,
    Medical and Stare (`benchmarks.decisions`).

    Parameters
    ----------
    metric, empty
        Metric that is maximised, and its value for two empty labelsets.
    may_be_empty
        Whether the empty labelset may be predicted.
    """

    metric: MetricLike
    empty: float
    may_be_empty: bool
    name: ClassVar[str] = "best"

    @classmethod
    def of(cls, metric: MetricLike, empty: float, truth: Labelsets) -> Best:
        """Rule for a metric; predictions may be empty if a training labelset is.

        They always may be under metrics other than exact match, F1 and Jaccard.
        """
        depends_on_truth = get_metric(metric) in (EXACT, F1, JACCARD)
        may_be_empty = not depends_on_truth or bool((count_labels(truth) == 0).any())
        return cls(metric, empty, may_be_empty)

    @property
    def title(self) -> str:
        """Which predictions are judged, in words."""
        noun = "labelsets" if self.may_be_empty else "non-empty labelsets"
        return f"the {noun} that maximise expected {get_metric(self.metric).title}"

    def choose(self, dist: LabelsetDistribution, direct: Labelsets | None) -> Labelsets:
        """Exact optima, or the best non-empty labelsets."""
        metric = get_metric(self.metric)
        if self.may_be_empty:
            return decide(dist, metric, empty=self.empty).labelsets
        best = decide(dist, metric, empty=0.0).labelsets
        is_empty = count_labels(best) == 0
        if metric is EXACT and is_empty.any():
            runners_up = dist[is_empty].top(2).labelsets[:, 1]
            if dist.rules is not None:  # the second may have probability 0
                runners_up = dist.rules.close(runners_up)
            order = np.argsort(is_empty, kind="stable")
            best = stack_rows([best[~is_empty], runners_up])[np.argsort(order)]
        return best


@dataclass(frozen=True)
class Mode(DecisionRule):
    """The most probable labelset."""

    name: ClassVar[str] = "mode"
    words: ClassVar[str] = "the most probable labelsets"

    def choose(self, dist: LabelsetDistribution, direct: Labelsets | None) -> None:
        """None: the mode."""


@dataclass(frozen=True)
class OwnPredict(DecisionRule):
    """The model's own `predict`."""

    name: ClassVar[str] = "predict"
    words: ClassVar[str] = "the model's own `predict`"

    def predict_direct(
        self, fitted: Estimator, X: FeaturesLike, dist: LabelsetDistribution
    ) -> Labelsets:
        """Labelsets of the model's own `predict`."""
        return predict_labelsets(fitted, X, dist)

    def choose(self, dist: LabelsetDistribution, direct: Labelsets | None) -> Labelsets | None:
        """Labelsets of the model's own `predict`."""
        return direct


@dataclass(frozen=True)
class Given(OwnPredict):
    """Predictions of another system, which callers pass as `Y_pred`."""

    name: ClassVar[str] = "given"
    takes_predictions: ClassVar[bool] = True
    words: ClassVar[str] = "the predictions given as `Y_pred`"

    def predict_direct(
        self, fitted: Estimator, X: FeaturesLike, dist: LabelsetDistribution
    ) -> Labelsets:
        """Raise InputError: `Y_pred` is required."""
        raise InputError(
            "`Y_pred` must be given to a model that was fitted with `Y_pred`, got None. Pass "
            "the predictions of the system that this model judges."
        )


@dataclass(frozen=True)
class Thresholds(DecisionRule):
    """Labels whose probability reaches a fitted threshold."""

    thresholds: LabelThresholds
    name: ClassVar[str] = "thresholds"
    words: ClassVar[str] = "the labels whose probability reaches a threshold"

    def choose(self, dist: LabelsetDistribution, direct: Labelsets | None) -> Labelsets:
        """Labels at or above their thresholds, with their ancestors where there are rules."""
        predicted = self.thresholds.predict(dist)
        return predicted if dist.rules is None else dist.rules.close(predicted)


def check_decision(decision: str | LabelThresholds, metric: MetricLike) -> None:
    """Raise InputError for unknown decisions, and for "best" under recall and precision."""
    if isinstance(decision, LabelThresholds):
        check_is_fitted(decision)
    elif not isinstance(decision, str) or decision not in DECISIONS:
        raise unknown_name("decision", decision, DECISIONS)
    elif decision == "best" and get_metric(metric) in (RECALL, PRECISION):
        raise InputError(
            f'`decision` must not be "best" for {get_metric(metric).name}: the best recall '
            "predicts every label, the best precision the surest one alone. Judge other "
            'decisions, e.g. by decision="mode", decision="predict", a fitted `LabelThresholds`, '
            "or `fit(X, y, Y_pred=...)`."
        )


def make_rule(
    decision: object, metric: MetricLike, empty: float, truth: Labelsets, *, given: bool
) -> DecisionRule:
    """Decision rule of the parameter `decision`; `Given` for predictions in `Y_pred`."""
    if given:
        return Given()
    if isinstance(decision, LabelThresholds):
        return Thresholds(decision)
    if decision == "best":
        return Best.of(metric, empty, truth)
    return Mode() if decision == "mode" else OwnPredict()
