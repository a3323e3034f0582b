"""The model inside an aware classifier: how any estimator is fitted, asked and scored."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import KFold, check_cv
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.validation import _check_method_params

from labelsure._typing import Indices, Labelsets
from labelsure.accuracy_aware._inner_models import innermost
from labelsure.accuracy_aware._training_data import TrainingData
from labelsure.classifiers import LabelsetClassifier, ProbabilityWarning, as_distribution
from labelsure.decisions import decide
from labelsure.distributions import LabelsetDistribution
from labelsure.errors import InputError
from labelsure.labelsets import check_labelsets
from labelsure.metrics import MetricLike
from labelsure.named_labelsets import given_names
from labelsure.score_table import ScoreTable

DECISIONS = ("mode", "best", "predict")


@dataclass(frozen=True)
class WrappedModel:
    """A model that is to be fitted, or is frozen, and what is predicted from its distributions.

    Parameters
    ----------
    estimator
        Whatever `as_distribution` takes once it is fitted.
    label_names
        One for each label.
    decision
        "mode", "best" or "predict".
    metric, empty
        The accuracy that the best decision maximises, and that is scored.
    """

    estimator: Any
    label_names: tuple[str, ...]
    decision: str
    metric: MetricLike
    empty: float

    @property
    def is_frozen(self) -> bool:
        """Whether it is fitted already, so that all instances are new to it."""
        return isinstance(self.estimator, FrozenEstimator)

    @property
    def has_base_learners(self) -> bool:
        """Whether it is one of ours, for which X is checked once, by the aware classifier."""
        return isinstance(self.estimator, LabelsetClassifier)

    def fit(self, data: TrainingData, rows: Indices) -> Any:
        """Return a clone that is fitted to some of the instances."""
        estimator = clone(self.estimator)  # a frozen one stays as it is
        if self.is_frozen:
            return estimator
        X = _safe_indexing(data.X, rows)
        if self.has_base_learners and not data.params:
            return estimator.fit_checked(X, data.Y[rows], self.label_names)
        params = _check_method_params(data.X, data.params, rows)
        return estimator.fit(X, _safe_indexing(data.y, rows), **params)

    def distribution(self, fitted: Any, X: Any) -> LabelsetDistribution:
        """Return P(Y|x) of each instance by a fitted clone."""
        if self.has_base_learners:
            dist: LabelsetDistribution = fitted.distribution_of_checked(X)
            return dist
        return as_distribution(fitted, X, label_names=self._names_to_pass())

    def _names_to_pass(self) -> tuple[str, ...] | None:
        """Return the label names, unless nobody gave any or the model knows them itself."""
        if hasattr(innermost(self.estimator), "predict_distribution"):
            return None
        return given_names(self.label_names)

    def decisions(self, fitted: Any, dist: LabelsetDistribution, X: Any) -> Labelsets | None:
        """Return what is predicted; None for the mode, which comes with the profile anyway."""
        if self.decision == "mode":
            return None
        if self.decision == "best":
            return decide(dist, self.metric, empty=self.empty)
        predicted = fitted.predict(X)
        if np.ndim(predicted) == 1:  # of a model of one label
            predicted = np.asarray(predicted)[:, np.newaxis]
        return check_labelsets(predicted, name="predict(X)", n_labels=dist.n_labels)

    def score(self, fitted: Any, data: TrainingData, rows: Indices) -> ScoreTable:
        """Return the score table of a fitted clone's predictions for some of the instances."""
        X = _safe_indexing(data.X, rows)
        dist = self.distribution(fitted, X)
        decisions = self.decisions(fitted, dist, X)
        return ScoreTable.from_distribution(
            dist,
            data.Y[rows],
            decisions,
            metrics=[self.metric],
            decision_rule=self.decision,
        )


@dataclass(frozen=True)
class Calibration:
    """A fitted model, and tables of predictions for instances that are new to it.

    Parameters
    ----------
    fitted
        The model that predicts from now on.
    for_estimator, for_policy
        What the accuracy estimator and the policy are fitted to.
    is_held_out
        Whether the policy's table is new to the model and to the accuracy estimator.
    """

    fitted: Any
    for_estimator: ScoreTable
    for_policy: ScoreTable
    is_held_out: bool


def is_share(cv: Any) -> bool:
    """Whether `cv` is a share of instances to hold out, and no number of folds."""
    return isinstance(cv, Real) and not isinstance(cv, Integral)


def calibrate(
    model: WrappedModel, data: TrainingData, cv: Any, *, has_policy: bool, random_state: Any
) -> Calibration:
    """Fit a model and score it on instances that it has not seen.

    Parameters
    ----------
    model, data
        What is fitted to what.
    cv
        A share to hold out, a number of folds, or a splitter; a frozen model needs none.
    has_policy
        Whether one half of what is held out is for the policy alone.
    random_state
        Seed of folds and splits.
    """
    everything = np.arange(len(data.Y))
    if not model.is_frozen and not is_share(cv):
        # All folds are made first: what a splitter refuses should not cost a fit.
        folds = _make_folds(data, cv, random_state)
        fitted = model.fit(data, everything)
        tables = [model.score(model.fit(data, train), data, test) for train, test in folds]
        table = ScoreTable.concatenate(tables)
        return Calibration(fitted, table, table, is_held_out=False)
    order = check_random_state(random_state).permutation(everything)
    n_held_out = len(order) if model.is_frozen else _count_held_out(len(order), cv, has_policy)
    fitted = model.fit(data, order[n_held_out:])
    half = n_held_out // 2
    if not has_policy:
        table = model.score(fitted, data, order[:n_held_out])
        return Calibration(fitted, table, table, is_held_out=True)
    first = model.score(fitted, data, order[:half])
    second = model.score(fitted, data, order[half:n_held_out])
    return Calibration(fitted, first, second, is_held_out=True)


def _count_held_out(n_samples: int, cv: float, has_policy: bool) -> int:
    """Return how many instances a share holds out; refuse too few of either kind."""
    n_held_out = round(cv * n_samples)
    n_needed = 4 if has_policy else 2
    if n_held_out < n_needed or n_samples - n_held_out < 2:
        raise InputError(
            f"`cv` as a share must hold out at least {n_needed} instances and leave 2 for "
            f"training, cv={cv} holds out {n_held_out} of {n_samples}. Change the share, or fit to "
            "more instances."
        )
    return n_held_out


def _make_folds(data: TrainingData, cv: Any, random_state: Any) -> list[tuple[Indices, Indices]]:
    if isinstance(cv, Integral):
        n_folds = min(int(cv), len(data.Y))
        return list(KFold(n_folds, shuffle=True, random_state=random_state).split(data.Y))
    return list(check_cv(cv).split(data.X, data.y, data.groups))


@contextmanager
def warn_once() -> Iterator[None]:
    """Join the warnings of suspect probabilities, which each fold may repeat, into one."""
    with warnings.catch_warnings(record=True) as caught:
        yield
    suspect = [entry for entry in caught if issubclass(entry.category, ProbabilityWarning)]
    for entry in caught:
        if entry not in suspect:
            warnings.warn_explicit(entry.message, entry.category, entry.filename, entry.lineno)
    if suspect:
        texts = dict.fromkeys(str(entry.message) for entry in suspect)
        warnings.warn("\n".join(texts), ProbabilityWarning, stacklevel=4)
