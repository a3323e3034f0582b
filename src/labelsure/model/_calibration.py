"""How the model inside an aware classifier is fitted, and scored on rows that it has not seen."""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy.special import gammaincinv
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import KFold, check_cv
from sklearn.pipeline import Pipeline
from sklearn.utils import check_consistent_length, get_tags, indexable

from labelsure._runtime.typing import Floats, Indices, LabelNames, Labelsets
from labelsure._runtime.warnings import warn
from labelsure.classifiers._adapters import without_probabilities
from labelsure.classifiers._base_learners import is_search, name_missing_classes
from labelsure.classifiers._precomputed import PrecomputedProbabilities
from labelsure.classifiers._predictor import LabelsetClassifier, Targets, read_classes, read_truth
from labelsure.classifiers.recalibration import RECALIBRATIONS
from labelsure.classifiers.recalibration._gate import Recalibration
from labelsure.distributions._bridge import LabelsetDistribution
from labelsure.distributions._probabilities import make_random_state
from labelsure.errors import InputError, unknown_name
from labelsure.estimation._batch_estimates import TrainingGain
from labelsure.estimation._estimator import AccuracyEstimator
from labelsure.estimation._fitted_estimator import BatchSettings
from labelsure.estimation._labelset_frequencies import LabelsetFrequencies
from labelsure.estimation.score_table import ScoreTable
from labelsure.labelsets.rows import count_rows, index_of, is_sparse, take_rows
from labelsure.metrics.registry import MetricLike

MIN_SAMPLES = 4  # two to train on and two to compare with


@dataclass(frozen=True)
class TrainingData:
    """What the aware classifier's `fit` got.

    Parameters
    ----------
    X
        n instances, as they came, or checked where the estimator is one of ours.
    Y
        (n, L) their labelsets.
    y
        The same in the form that the estimator is fitted with.
    params
        What else goes to its `fit`.
    groups
        What else goes to the splitter: the group of each instance, or None.
    """

    X: Any
    Y: Labelsets
    y: Any
    params: dict[str, Any]
    groups: Any = None

    @property
    def n_samples(self) -> int:
        """How many instances there are."""
        return int(self.Y.shape[0])


def shape_for_estimator(truth: Targets, X: Any, *, with_names: bool) -> Any:
    """Return zeros and ones as estimators are fitted with: a vector, a matrix or a DataFrame.

    Parameters
    ----------
    truth
        Of the training instances.
    X
        What the estimator is fitted with: a DataFrame has the index of this one.
    with_names
        Whether the estimator keeps the label names of a DataFrame.
    """
    numbers = truth.labelsets.astype(np.int64)
    if truth.is_vector:
        return numbers[:, 0]
    if not with_names or truth.label_names is None or is_sparse(numbers):
        return numbers
    import pandas as pd

    return pd.DataFrame(numbers, index_of(X), list(truth.label_names))


def check_sizes(X: Any, y: Any, who: str) -> None:
    """Refuse training data without a truth, of different lengths or with too few instances."""
    if y is None:
        raise ValueError(f"{who} requires y to be passed, but the target y is None.")
    check_consistent_length(X, y)
    if count_rows(X) < MIN_SAMPLES:
        raise InputError(
            f"At least {MIN_SAMPLES} instances are needed to fit, got n_samples = "
            f"{count_rows(X)}. A few hundred give estimates worth having."
        )


def read_instances(X: Any, y: Any, estimator: Any, owner: str) -> tuple[Any, Targets]:
    """Return X so that rows can be taken from it, and the labels read.

    Parameters
    ----------
    X, y
        As `fit` of the aware classifier got them.
    estimator
        That it wraps.
    owner
        The name of the class, for the messages.
    """
    check_sizes(X, y, owner)
    frozen = isinstance(estimator, FrozenEstimator)
    inner = innermost(estimator)
    names = known_label_names(estimator) if frozen else None
    settled = frozen or isinstance(inner, PrecomputedProbabilities)
    if settled and not frozen:
        names = inner.label_names_of(X if inner is estimator else None)
    sparse = lists_labels(estimator, X)
    truth = read_truth(y, X, label_names=names, settled=settled, frozen=frozen, sparse=sparse)
    has_tags = hasattr(inner, "__sklearn_tags__")
    if truth.is_vector and has_tags and not get_tags(inner).target_tags.single_output:
        raise InputError(
            f"`y` must have a column for each label for {type(inner).__name__}, which does not "
            "take a vector of classes. Pass zeros and ones of shape (n_samples, 1)."
        )
    if isinstance(estimator, LabelsetClassifier):  # which checks X itself
        return X, truth
    (X,) = indexable(X)
    return X, truth


def lists_labels(estimator: Any, X: Any) -> bool:
    """Whether X lists some of very many labels, too many for an array of their truth.

    Parameters
    ----------
    estimator
        That of the aware classifier.
    X
        Sparse scores of another system, or a table of which a step of the estimator makes such.
    """
    if not isinstance(innermost(estimator), PrecomputedProbabilities):
        return False
    inner = estimator.estimator if isinstance(estimator, FrozenEstimator) else estimator
    steps = [step for _, step in inner.steps] if isinstance(inner, Pipeline) else []
    return is_sparse(X) or any(getattr(step, "is_sparse", False) for step in steps)


def innermost(model: Any) -> Any:
    """Return the model that a frozen one, a search or a pipeline ends in."""
    if isinstance(model, Pipeline):
        return innermost(model.steps[-1][1])
    if is_search(model):
        return innermost(getattr(model, "best_estimator_", model.estimator))
    if isinstance(model, FrozenEstimator):
        return innermost(model.estimator)
    return model


def check_inner_model(model: Any) -> None:
    """Refuse what cannot be fitted, and models that have scores but no probabilities.

    Parameters
    ----------
    model
        The estimator that is to be cloned and fitted, or a frozen one.
    """
    if isinstance(model, type):
        raise InputError(
            f"`estimator` must be a model, got the class {model.__name__}. Make one: "
            f"`{model.__name__}()`."
        )
    if not hasattr(model, "get_params") or not hasattr(model, "fit"):
        raise InputError(
            "`estimator` must be a scikit-learn estimator, to be cloned and fitted, got a "
            f"{type(model).__name__}. If it is fitted, pass `FrozenEstimator(model)`; if it only "
            "gives probabilities or logits, pass these as X to "
            "`AccuracyAwareClassifier(PrecomputedProbabilities())`."
        )
    inner = innermost(model)
    if any(hasattr(part, name) for part in (model, inner) for name in _SOURCES):
        return
    learner = getattr(inner, "estimator", inner)  # of MultiOutputClassifier and the like
    # Some models have `predict_proba` only once they are fitted; scores alone are a sure sign.
    if hasattr(learner, "decision_function") and not _is_search(model):
        raise without_probabilities(inner, "`estimator`")


_SOURCES = ("predict_distribution", "predict_proba")


def _is_search(model: Any) -> bool:
    """Whether a search is to be fitted, which may end in another model than it begins with."""
    inner = model.steps[-1][1] if isinstance(model, Pipeline) else model
    return is_search(inner)


def known_label_names(model: Any) -> LabelNames:
    """Return the label names of a fitted model that has some, None for others.

    Parameters
    ----------
    model
        A fitted or frozen model.
    """
    names: LabelNames = getattr(innermost(model), "label_names_", None)
    return names


def with_labelsets(
    settings: BatchSettings, classes: Any, dist: LabelsetDistribution
) -> BatchSettings:
    """Return the settings of an estimate with the truth of some instances as labelsets.

    Parameters
    ----------
    settings
        As the user gave them, with `Y_true`.
    classes
        `classes_` of the model: a list for labelsets, else the two classes of a vector.
    dist
        The predictions of the batch.
    """
    if isinstance(classes, list):
        return settings
    y, settled = settings["Y_true"], settings.copy()
    labelsets = read_classes(y, classes, "Y_true")
    settled["Y_true"] = labelsets
    if settled.get("rows") is None and hasattr(y, "index"):
        import pandas as pd

        settled["Y_true"] = pd.DataFrame(labelsets, y.index, dist.label_names)
    return settled


LEARNING_EXPONENT = 0.5
"""What is missing to the accuracy that more and more instances lead to is taken to fall as the
number of instances to the power of minus this."""

FACTOR_ERROR = 1 / 3
"""The relative standard deviation of the factor: other exponents, from 1/4 to 2, have factors
between 1.1 times and half of it."""

SHARED_CLASSIFIERS = 1 / 4
"""Residuals of a fold share a classifier, which is not the one that predicts in the end. How much
predictions change with the classifier shows in those of half the instances: this part of their
variance is added. It was chosen by simulation, as no unbiased estimate exists."""


CHANCE_LEVEL = 0.95
"""Residuals of different classifiers differ by chance, too. By how much more they do is counted
only if chance would not make them differ so much with this probability: folds are few and small."""


@dataclass(frozen=True)
class HalfTrained:
    """The same instances, predicted by classifiers of folds and by ones of half the instances.

    Parameters
    ----------
    by_whole
        Predictions by classifiers that were fitted to all training instances of a fold.
    by_half
        By classifiers that were fitted to half of these.
    share
        The training instances of a fold, of all.
    sizes
        How many instances each fold has; they stand in this order in both tables.
    """

    by_whole: ScoreTable
    by_half: ScoreTable
    share: float
    sizes: tuple[int, ...]


def extrapolation_factor(share: float) -> float:
    """Return the gain from a share of the instances to all, of that from half the share to it.

    Parameters
    ----------
    share
        Above 0, at most 1.

    Examples
    --------
    >>> round(extrapolation_factor(0.8), 3), round(extrapolation_factor(0.9), 3)
    (0.255, 0.124)
    """
    by_half, by_whole = (part**-LEARNING_EXPONENT for part in (share / 2, share))
    return (by_whole - 1) / (by_half - by_whole)


def variance_between(residuals: Sequence[Floats], sizes: Sequence[int]) -> float:
    """Return the variance of mean residuals between classifiers, beyond what chance explains.

    A learner whose confidence means one thing on some training instances and another on others, as
    that of a few neighbours may, has an accuracy that no other classifier tells exactly.

    Parameters
    ----------
    residuals
        Groups of residuals, one after the other for each classifier; of a group, the classifiers
        learned from equally many instances.
    sizes
        How many residuals each classifier of a group has.

    Returns
    -------
    0 where the classifiers do not differ more than chance allows.

    Examples
    --------
    >>> round(variance_between([np.array([0.1, 0.2, -0.1, -0.2])], [2, 2]), 3)
    0.043
    """
    statistic, total, n_free = 0.0, 0.0, 0
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(int)
    for group in residuals:
        means = np.add.reduceat(group, starts) / sizes
        within = group - np.repeat(means, sizes)
        n_within = max(len(group) - len(means), 1)
        chance = (within**2).sum() / n_within / np.asarray(sizes)
        deviations = (means - means.mean()) ** 2
        if not chance.min() > 0:  # classifiers that are always right, or one instance for each
            continue
        statistic += float((deviations / chance).sum())
        total += float(deviations.sum() - (1 - 1 / len(means)) * chance.sum())
        n_free += len(means) - 1
    if n_free == 0 or statistic <= 2 * gammaincinv(n_free / 2, CHANCE_LEVEL):
        return 0.0
    return max(total / n_free, 0.0)


def measure_training_gain(estimator: AccuracyEstimator, found: HalfTrained) -> TrainingGain:
    """Return by how much an estimator is too low for a classifier that learned from everything.

    One step below it can be seen: an estimator that is fitted to the predictions of classifiers of
    half the instances judges those of twice as many, and is too low by something. The step that
    cannot be seen is a fraction of that.

    Parameters
    ----------
    estimator
        Fitted to predictions of all folds.
    found
        Predictions of some folds.
    """
    if not estimator.model_.learns:  # nothing that folds could have taught it
        return TrainingGain()
    judge = clone(estimator).set_params(penalty=estimator.penalty_)
    judge.fit(ScoreTable(found.by_half.to_frame()))
    of_halves = _residuals(judge, found.by_half)
    excess = _residuals(judge, found.by_whole) - of_halves
    factor = extrapolation_factor(found.share)
    mean = factor * float(excess.mean())
    # An instance's excess goes with its residual, of which it is a part: hence the factor itself.
    variance = factor * (1 + factor) * float(excess.var()) / len(excess)
    variance += SHARED_CLASSIFIERS * float(excess.var()) / estimator.dispersion_.n_samples
    variance += (FACTOR_ERROR * mean) ** 2
    # The last classifier has a deviation of its own, and the mean of those of the folds has one.
    between = variance_between([_residuals(estimator, found.by_whole), of_halves], found.sizes)
    variance += (1 + 1 / len(found.sizes)) * between
    estimated = estimator.predict(found.by_whole)
    coins = float((estimated * (1 - estimated)).mean())
    if coins == 0:  # all is certain
        return TrainingGain()
    return TrainingGain(mean, float(np.clip(mean / coins, -1, 1)), variance / coins**2)


def add_training_gain(
    estimator: AccuracyEstimator, table: ScoreTable, found: HalfTrained | None, level: float
) -> AccuracyEstimator:
    """Return the estimator, with the gain in what it says from now on.

    Parameters
    ----------
    estimator
        Fitted to the table.
    table
        Predictions of all folds.
    found
        Predictions of some folds; None where there is nothing to gain.
    level
        Confidence level of the estimator's reference.
    """
    if found is not None:
        estimator.training_gain_ = measure_training_gain(estimator, found)
    if found is not None or level != estimator.reference_.level:
        estimator.reference_ = estimator.estimate(table, level=level, shift="ignore")
    return estimator


def _residuals(estimator: AccuracyEstimator, table: ScoreTable) -> Floats:
    return table.accuracy(estimator.metric, estimator.empty) - estimator.predict(table)


MOST_SHARED = 0.25
"""Share of held-out rows that are training rows as well: at most 0.11 on random splits of the nine
sets (stare)."""

MIN_DISTINCT, MOST_AMBIGUOUS = 100, 0.05
"""Distinct features, and the share of them that occur with several labelsets: copies have the
labels of their original, instances of few categories do not."""

MOST_TRAINING, MOST_HELD_OUT = 20_000, 2_000  # rows that are compared

NEARLY_PERFECT = 0.98
"""Share of labelsets that are entirely right. On new instances of the nine sets forests, trees and
logistic regressions had at most 0.66, and a forest on digits 0.96; on their own training instances
13 of 18 forests and trees had more than 0.98, and no logistic regression."""

MIN_ROWS, MIN_LABELS = 30, 3  # fewer can all be right


def is_fitted_elsewhere(estimator: Any) -> bool:
    """Return whether a model was trained on instances that nobody here has seen."""
    return isinstance(estimator, FrozenEstimator) or isinstance(
        innermost(estimator), PrecomputedProbabilities
    )


def warn_of_shared_rows(data: TrainingData, training: Indices, held_out: Indices) -> None:
    """Warn where many held-out instances are identical to training instances."""
    known = _keys(data, training[:MOST_TRAINING])
    asked = _keys(data, held_out[:MOST_HELD_OUT])
    if not known or not asked:
        return
    labels_of: defaultdict[Any, set[Any]] = defaultdict(set)
    for features, labels in known:
        labels_of[features].add(labels)
    ambiguous = np.mean([len(labels) > 1 for labels in labels_of.values()])
    if len(labels_of) < MIN_DISTINCT or ambiguous > MOST_AMBIGUOUS:
        return  # few values, as of categories: instances are alike without being copies
    shared = np.mean([labels in labels_of.get(features, ()) for features, labels in asked])
    if shared > MOST_SHARED:
        warn(
            f"{shared:.0%} of the held-out instances are identical to training instances, features "
            "and labels. Estimates and guarantees hold for instances that the model was not "
            "trained on: drop duplicates, or keep each group of them in one part by `groups` and "
            "`GroupKFold`.",
            UserWarning,
        )


def warn_of_perfection(table: ScoreTable, n_labels: int) -> None:
    """Ask whether a model that was fitted elsewhere has seen these instances."""
    if len(table) < MIN_ROWS or n_labels < MIN_LABELS:
        return
    exact = float(table.accuracy("exact", 1.0).mean())
    if exact >= NEARLY_PERFECT:
        warn(
            f"{exact:.1%} of the {len(table)} labelsets are predicted entirely right, as models do "
            "on instances that they were trained on. Was this model trained on some of them? Then "
            "estimates and guarantees are too high: calibrate with instances that it has not seen.",
            UserWarning,
        )


def _is_of_instances(value: Any, data: TrainingData) -> bool:
    """Whether a parameter of `fit` has one entry for each instance."""
    has_rows = any(hasattr(value, name) for name in ("shape", "__array__", "__getitem__"))
    is_other = isinstance(value, str) or (hasattr(value, "keys") and not hasattr(value, "shape"))
    return has_rows and not is_other and count_rows(value) == count_rows(data.Y)


def _keys(data: TrainingData, rows: Indices) -> list[Any] | None:
    """Return something that is equal for identical instances; None where X has no such rows."""
    X, Y = take_rows(data.X, rows), data.Y[rows]
    parts = [list(_keys_of(part)) for part in (X, Y)]
    if any(len(part) != len(rows) for part in parts):
        return None
    return list(zip(*parts, strict=True))


def _keys_of(values: Any) -> Iterator[Any]:
    if is_sparse(values):
        rows = values.tocsr()
        for start, stop in zip(rows.indptr[:-1], rows.indptr[1:], strict=True):
            yield rows.indices[start:stop].tobytes(), rows.data[start:stop].tobytes()
    elif hasattr(values, "iloc"):
        from pandas.util import hash_pandas_object

        try:
            yield from hash_pandas_object(values, index=False).tolist()
        except TypeError:  # cells that cannot be hashed
            return
    elif isinstance(values, np.ndarray) and values.dtype.kind in "biuf":
        for row in np.ascontiguousarray(values):
            yield row.tobytes()
    elif isinstance(values, list) and all(isinstance(value, str) for value in values):
        yield from values


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
        X = take_rows(data.X, rows)
        if isinstance(estimator, LabelsetClassifier) and not data.params:
            return estimator.fit_checked(X, data.Y[rows], self.label_names)
        params = {
            name: take_rows(value, rows) if _is_of_instances(value, data) else value
            for name, value in data.params.items()
        }
        with name_missing_classes(estimator, data.Y[rows], self.label_names):
            return estimator.fit(X, take_rows(data.y, rows), **params)

    def predict(
        self, fitted: Any, data: TrainingData, rows: Indices, training: Indices
    ) -> Predicted:
        """Return what a clone says of some of the instances, fitted to the training ones."""
        seen = self.count_labelsets(data, training)
        return Predicted(rows, *self.ask(fitted, take_rows(data.X, rows)), seen)

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
