"""How the model inside an aware classifier is fitted, and scored on instances it has not seen."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import KFold, check_cv
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _check_method_params

from labelsure._runtime.typing import Indices, LabelNames, Labelsets
from labelsure.classifiers._base_learners import name_missing_classes
from labelsure.classifiers._predictor import LabelsetClassifier
from labelsure.classifiers.recalibration import RECALIBRATIONS
from labelsure.classifiers.recalibration._gate import Recalibration
from labelsure.distributions._bridge import LabelsetDistribution
from labelsure.distributions._probabilities import make_random_state
from labelsure.errors import InputError, unknown_name
from labelsure.estimation._labelset_frequencies import LabelsetFrequencies
from labelsure.estimation.score_table import ScoreTable
from labelsure.metrics.registry import MetricLike
from labelsure.model._seen_rows import is_fitted_elsewhere, warn_of_perfection, warn_of_shared_rows
from labelsure.model._training_data import TrainingData
from labelsure.model._training_gain import HalfTrained

Predict = Callable[[Any, Any], tuple[LabelsetDistribution, Labelsets | None]]
"""From a fitted estimator and instances to distributions, and to predictions of its own."""

Choose = Callable[[LabelsetDistribution, Labelsets | None], Labelsets | None]
"""From distributions and those predictions to decisions, None for the mode."""

Folds = list[tuple[Indices, Indices]]
"""The training and the test rows of each fold."""

N_HALVES = 5
"""Folds that are fitted to half of their training instances as well: with more folds there is less
to gain, and fewer will do."""


@dataclass(frozen=True)
class Predicted:
    """What a fitted clone says of some instances that it has not seen.

    Parameters
    ----------
    rows
        Which.
    distribution
        As the clone has it, not recalibrated.
    own
        Its own predictions, None where they do not count.
    seen
        The labelsets that the clone was fitted to; None if it was fitted before.
    """

    rows: Indices
    distribution: LabelsetDistribution
    own: Labelsets | None
    seen: LabelsetFrequencies | None


@dataclass(frozen=True)
class WrappedModel:
    """A model that is to be fitted, or is frozen, and how its predictions are scored.

    Parameters
    ----------
    estimator
        Whatever `as_distribution` takes once it is fitted.
    label_names
        One for each label, or None.
    metric
        The accuracy whose expectation is needed.
    decision
        What the decisions are called.
    ask
        What asks a fitted clone.
    choose
        What makes decisions of the answer.
    recalibration
        Of the distributions, not fitted; None for none.
    """

    estimator: Any
    label_names: LabelNames
    metric: MetricLike
    decision: str
    ask: Predict
    choose: Choose
    recalibration: Recalibration | None = None

    @property
    def is_frozen(self) -> bool:
        """Whether it is fitted already, so that all instances are new to it."""
        return isinstance(self.estimator, FrozenEstimator)

    def fit(self, data: TrainingData, rows: Indices) -> Any:
        """Return a clone that is fitted to some of the instances."""
        estimator = clone(self.estimator)  # a frozen one stays as it is
        if self.is_frozen:
            return estimator
        X = _safe_indexing(data.X, rows)
        if isinstance(estimator, LabelsetClassifier) and not data.params:
            return estimator.fit_checked(X, data.Y[rows], self.label_names)
        params = _check_method_params(data.X, data.params, rows)
        with name_missing_classes(estimator, data.Y[rows], self.label_names):
            return estimator.fit(X, _safe_indexing(data.y, rows), **params)

    def predict(
        self, fitted: Any, data: TrainingData, rows: Indices, training: Indices
    ) -> Predicted:
        """Return what a clone says of some of the instances, fitted to the training ones."""
        seen = self.count_labelsets(data, training)
        return Predicted(rows, *self.ask(fitted, _safe_indexing(data.X, rows)), seen)

    def count_labelsets(self, data: TrainingData, rows: Indices) -> LabelsetFrequencies | None:
        """Return the labelsets of training instances; None for a model that was fitted before."""
        return None if self.is_frozen else LabelsetFrequencies.of(data.Y[rows], self.label_names)

    def score(
        self, predicted: Predicted, data: TrainingData, recalibration: Recalibration | None
    ) -> ScoreTable:
        """Return the score table of predictions, by recalibrated distributions if there is one."""
        dist = predicted.distribution
        dist = dist if recalibration is None else recalibration.transform(dist)
        table = ScoreTable.from_distribution(
            dist,
            data.Y[predicted.rows],
            self.choose(dist, predicted.own),
            metrics=[self.metric],
            decision_rule=self.decision,
        )
        return table if predicted.seen is None else predicted.seen.add_to(table)

    def recalibrate_and_score(
        self, predicted: Iterable[Predicted], data: TrainingData
    ) -> tuple[list[ScoreTable], Recalibration | None]:
        """Return the score tables of predictions, and the recalibration that they teach."""
        if self.recalibration is None:  # one after the other: each may hold a model
            return [self.score(some, data, None) for some in predicted], None
        known = list(predicted)
        fitted = clone(self.recalibration).fit_parts(
            [some.distribution for some in known], [data.Y[some.rows] for some in known]
        )
        return [self.score(some, data, fitted) for some in known], fitted


@dataclass(frozen=True)
class Calibration:
    """A fitted model, and tables of predictions for instances that are new to it.

    Parameters
    ----------
    fitted
        The model that predicts from now on.
    n_training
        How many instances it was fitted to; 0 if it was fitted before.
    for_estimator, for_policy
        What the accuracy estimator and the policy are fitted to.
    is_held_out
        Whether the policy's table is new to the model and to the accuracy estimator.
    half_trained
        By which the gain from learning from all instances is measured; None where the tables are
        of the fitted model itself, or where it could not be made.
    recalibration
        Fitted to the predictions of the accuracy estimator's table; None for none.
    seen
        The labelsets that the model was fitted to; None if it was fitted before.
    """

    fitted: Any
    n_training: int
    for_estimator: ScoreTable
    for_policy: ScoreTable
    is_held_out: bool
    half_trained: HalfTrained | None = None
    recalibration: Recalibration | None = None
    seen: LabelsetFrequencies | None = None


def is_share(cv: Any) -> bool:
    """Whether `cv` is a share of instances to hold out, and no number of folds."""
    return isinstance(cv, Real) and not isinstance(cv, Integral)


def check_cv_setting(cv: Any) -> None:
    """Refuse shares outside of (0, 1) and fewer than two folds."""
    if is_share(cv) and not 0 < cv < 1:
        raise InputError(
            f"`cv` as a share of held-out instances must lie between 0 and 1, got {cv!r}. "
            "A whole number is a number of folds."
        )
    if isinstance(cv, Integral) and (isinstance(cv, bool) or cv < 2):
        raise InputError(
            f"`cv` as a number of folds must be at least 2, got {cv!r}. A share such as 0.4 holds "
            "instances out."
        )


def make_recalibration(setting: Any) -> Recalibration | None:
    """Return the recalibration that is wanted, not fitted; None for none.

    Parameters
    ----------
    setting
        None, a name, or an object.
    """
    if setting is None:
        return None
    if isinstance(setting, str):
        if setting not in RECALIBRATIONS:
            raise unknown_name("recalibration", setting, RECALIBRATIONS)
        return RECALIBRATIONS[setting]()
    if not isinstance(setting, Recalibration):
        raise InputError(
            "`recalibration` must be None, one of the names "
            f"{', '.join(map(repr, RECALIBRATIONS))}, or an object such as "
            f"`TemperatureScaling(gate=False)`, got {setting!r}."
        )
    return clone(setting)


def calibrate(
    model: WrappedModel, data: TrainingData, cv: Any, *, needs_half: bool, random_state: Any
) -> Calibration:
    """Fit a model and score it on instances that it has not seen.

    Parameters
    ----------
    model, data
        What is fitted to what.
    cv
        A share to hold out, a number of folds, or a splitter; a frozen model needs none.
    needs_half
        Whether one half of what is held out is for a policy or a region alone.
    random_state
        Seed of folds and splits.
    """
    if model.is_frozen or is_share(cv):
        return _hold_out(model, data, cv, needs_half, random_state)
    return _fit_by_folds(model, data, cv, random_state)


def _fit_by_folds(model: WrappedModel, data: TrainingData, cv: Any, seed: Any) -> Calibration:
    """Score every instance by a model that was fitted to others."""
    # All folds are made first: what a splitter refuses should not cost a fit.
    folds = _make_folds(data, cv, seed)
    if folds:
        warn_of_shared_rows(data, *folds[0])
    n_training = data.n_samples
    fitted = model.fit(data, np.arange(n_training))
    predicted = (model.predict(model.fit(data, train), data, test, train) for train, test in folds)
    tables, recalibration = model.recalibrate_and_score(predicted, data)
    table = ScoreTable.concatenate(tables)
    half_trained = _train_halves(model, data, folds, tables, recalibration, seed)
    seen = model.count_labelsets(data, np.arange(n_training))
    return Calibration(fitted, n_training, table, table, False, half_trained, recalibration, seen)


def _hold_out(
    model: WrappedModel, data: TrainingData, cv: Any, needs_half: bool, seed: Any
) -> Calibration:
    """Score instances that the model was not fitted to: all of them, if it is frozen."""
    order = make_random_state(seed).permutation(data.n_samples)
    n_held_out = len(order) if model.is_frozen else _count_held_out(len(order), cv, needs_half)
    training = order[n_held_out:]
    warn_of_shared_rows(data, training, order[:n_held_out])
    fitted = model.fit(data, training)
    n_first = n_held_out // 2 if needs_half else n_held_out
    predicted = model.predict(fitted, data, order[:n_first], training)
    (first,), recalibration = model.recalibrate_and_score([predicted], data)
    second = first
    if needs_half:  # by instances that are new to the recalibration as well
        predicted = model.predict(fitted, data, order[n_first:n_held_out], training)
        second = model.score(predicted, data, recalibration)
    if is_fitted_elsewhere(fitted):
        warn_of_perfection(first, data.Y.shape[1])
    seen = model.count_labelsets(data, training)
    return Calibration(fitted, len(training), first, second, True, None, recalibration, seen)


def _count_held_out(n_samples: int, cv: float, needs_half: bool) -> int:
    """Return how many instances a share holds out; refuse too few of either kind."""
    n_held_out = round(cv * n_samples)
    n_needed = 4 if needs_half else 2
    if n_held_out < n_needed or n_samples - n_held_out < 2:
        raise InputError(
            f"`cv` as a share must hold out at least {n_needed} instances and leave 2 for "
            f"training, cv={cv} holds out {n_held_out} of {n_samples}. Change the share, or fit to "
            "more instances."
        )
    return n_held_out


def _make_folds(data: TrainingData, cv: Any, random_state: Any) -> Folds:
    if isinstance(cv, Integral):
        n_folds, generator = min(int(cv), data.n_samples), make_random_state(random_state)
        return list(
            KFold(n_folds, shuffle=True, random_state=generator).split(np.empty(data.n_samples))
        )
    return list(check_cv(cv).split(data.X, data.y, data.groups))


def _train_halves(
    model: WrappedModel,
    data: TrainingData,
    folds: Folds,
    tables: list[ScoreTable],
    recalibration: Recalibration | None,
    seed: Any,
) -> HalfTrained | None:
    """Fit to half of the training instances of some folds as well, and score on the same ones."""
    rng = make_random_state(seed)
    halves = []
    for train, test in folds[:N_HALVES]:
        try:
            half = _take_half(train, data, rng)
            predicted = model.predict(model.fit(data, half), data, test, half)
            halves.append(model.score(predicted, data, recalibration))
        except ValueError as error:  # as of fewer neighbours than wanted, or of a single class
            warnings.warn(
                "The estimator could not be fitted to half of the training instances of a fold, "
                f"so what it gains from all of them is not known ({error}). Estimates may be low "
                "and their intervals narrow. Fit to more instances, or hold some out, e.g. by "
                "cv=0.4.",
                UserWarning,
                stacklevel=5,
            )
            return None
    share = float(np.mean([len(train) for train, _ in folds])) / data.n_samples
    by_whole, by_half = (ScoreTable.concatenate(part) for part in (tables[: len(halves)], halves))
    sizes = tuple(len(table) for table in halves)
    return HalfTrained(by_whole, by_half, min(share, 1.0), sizes)


def _take_half(rows: Indices, data: TrainingData, rng: np.random.RandomState) -> Indices:
    """Return half of the rows, or those of half of the groups."""
    units = rows if data.groups is None else np.asarray(data.groups)[rows]
    distinct = rng.permutation(np.unique(units))
    return rows[np.isin(units, distinct[: (len(distinct) + 1) // 2])]
