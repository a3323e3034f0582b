"""Base learners: one for each label, on the features and some of the other labels.

A base learner is linear if its `predict_proba` is the logistic function of a linear form. A chain
of such learners needs no call of `predict_proba` for each prefix: the weights of the features and
of the earlier labels are all there is to know. What is read off a learner's attributes is compared
with its own `predict_proba` before it is used.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from joblib import effective_n_jobs
from numpy.typing import NDArray
from scipy.special import expit, logit
from sklearn import get_config
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import has_fit_parameter

from labelsure._kernels.threads import one_blas_thread
from labelsure._runtime.processes import count_workers
from labelsure._runtime.progress import note_fitted
from labelsure._runtime.storage import first_line
from labelsure._runtime.typing import (
    Estimator,
    Floats,
    Indices,
    LabelNames,
    Labelsets,
    LabelsetsLike,
)
from labelsure.distributions._chains import LinearChain, PrefixChain
from labelsure.distributions._probabilities import clip_certain
from labelsure.errors import InputError
from labelsure.labelsets.label_names import show_names
from labelsure.labelsets.names import list_some

Features = Any
"""An (n, d) float64 array or csr matrix."""

MAX_ITERATIONS = 1000  # of the default learner; scikit-learn's 100 are too few for raw features
PAIR_TOLERANCE = 1e-4  # of a sum of two probabilities: float32 outputs are rounded
MAX_SEED = np.iinfo(np.int32).max


def check_learner(estimator: Estimator) -> Estimator:
    """Base learner to clone: logistic regression for None. Raises InputError for anything unfit."""
    if estimator is None:
        return LogisticRegression(max_iter=MAX_ITERATIONS)
    if isinstance(estimator, type) or not hasattr(estimator, "get_params"):
        raise InputError(
            f"`estimator` must be an estimator such as `LogisticRegression()`, got {estimator!r}."
        )
    _check_for_one_label(estimator)
    if not hasattr(estimator, "predict_proba"):
        name = type(estimator).__name__
        raise InputError(
            f"`estimator` must have `predict_proba`, which {name} has not. Use "
            f"`CalibratedClassifierCV({name}())`, or the option that turns it on."
        )
    return estimator


_FOR_ALL_LABELS = (ClassifierChain, FrozenEstimator, MultiOutputClassifier, OneVsRestClassifier)


def _check_for_one_label(estimator: Estimator) -> None:
    """Refuse estimators that are for all labels at once, or that would not be fitted at all."""
    if isinstance(estimator, Pipeline):
        _check_for_one_label(estimator.steps[-1][1])
    elif is_search(estimator):
        _check_for_one_label(estimator.estimator)
    elif isinstance(estimator, _FOR_ALL_LABELS) or hasattr(estimator, "predict_distribution"):
        raise InputError(
            "`estimator` must be a classifier that can be fitted to each label, got a "
            f"{type(estimator).__name__}. Use a model of all labels by `as_distribution(model, X)` "
            "once it is fitted, or by `AccuracyAwareClassifier(model)`."
        )


def is_search(model: Estimator) -> bool:
    """Whether a model is a search over parameters, such as `GridSearchCV`, of any library."""
    return hasattr(model, "refit") and hasattr(model, "error_score")


def append_labels(X: Features, labels: Labelsets) -> Features:
    """X with labels as further columns; sparse stays sparse."""
    if labels.shape[1] == 0:
        return X
    if sp.issparse(X):
        return sp.hstack([X, sp.csr_matrix(labels, dtype=np.float64)], format="csr")
    return np.hstack([X, labels])


def fit_learners(
    estimator: Estimator,
    X: Features,
    Y: Labelsets,
    sample_weight: Floats | None,
    order: Any,
    parents: Sequence[Sequence[int]],
    generator: np.random.RandomState,
    n_jobs: int | None,
) -> tuple[list[Estimator], LinearWeights | None]:
    """Fitted learner of the label at each position, and their weights if all are linear.

    Its features are X and the labels at the positions of its parents. These are true labels, so
    that the learners do not wait for each other. The learners do not depend on `n_jobs`.
    """
    seeds = generator.randint(MAX_SEED, size=len(order)).tolist()
    tasks = [
        (estimator, X, Y[:, label], Y[:, [order[i] for i in above]], sample_weight, seed)
        for label, above, seed in zip(order, parents, seeds, strict=True)
    ]
    n_workers = count_workers(n_jobs, len(tasks))
    with one_blas_thread():
        if effective_n_jobs(n_workers) == 1:  # scikit-learn's `Parallel` changes warning filters
            learners = [_fit_learner(*task) for task in tasks]
        else:
            learners = Parallel(n_jobs=n_workers)(delayed(_fit_learner)(*task) for task in tasks)
    return learners, read_linear_weights(learners, X, Y[:, order], parents)


def _fit_learner(
    estimator: Estimator,
    X: Features,
    y: Labelsets,
    above: Labelsets,
    weights: Floats | None,
    seed: int,
) -> Estimator:
    if y.min() == y.max():
        learner = fit_smoothed_prior(y, X.shape[1] + above.shape[1], weights)
    else:
        learner = fit_clone(estimator, append_labels(X, above), y.astype(np.int64), weights, seed)
    note_fitted()
    return learner


def fit_clone(
    estimator: Estimator,
    X: Features,
    y: NDArray[np.generic],
    sample_weight: Floats | None,
    seed: int,
) -> Estimator:
    """Fitted clone of the learner; its random states that are not set get a seed."""
    learner = clone(estimator)
    unset = [
        name
        for name, value in sorted(learner.get_params().items())
        if value is None and name.split("__")[-1] == "random_state"
    ]
    if unset:
        seeds = np.random.RandomState(seed).randint(MAX_SEED, size=len(unset))
        learner.set_params(**dict(zip(unset, seeds.tolist(), strict=True)))
    argument = find_weight_argument(learner)
    weights = {} if sample_weight is None or argument is None else {argument: sample_weight}
    with one_blas_thread():  # again, because this may be another process
        return learner.fit(X, y, **weights)


def fit_smoothed_prior(
    y: Labelsets, n_features: int, sample_weight: Floats | None
) -> DummyClassifier:
    """Learner that gives (n1 + 1) / (N + 2) to every instance (Laplace smoothing).

    For labels that have one value in training. It is scikit-learn's own constant learner, fitted to
    one row of each class with the smoothed counts as weights, so that a saved model needs no
    further class of labelsure to be trusted.
    """
    weights = np.ones(len(y)) if sample_weight is None else sample_weight
    counts = np.array([weights[y == 0].sum(), weights[y == 1].sum()])
    learner = DummyClassifier(strategy="prior")
    return learner.fit(np.zeros((2, n_features)), [0, 1], sample_weight=counts + 1)


@contextmanager
def name_missing_classes(
    estimator: Estimator, Y: LabelsetsLike, label_names: LabelNames
) -> Iterator[None]:
    """Name the labels that have one value in Y where an estimator cannot be fitted to it."""
    try:
        yield
    except ValueError as error:
        array = np.asarray(Y.toarray() if hasattr(Y, "toarray") else Y)
        array = array.reshape(len(array), -1)
        single = np.flatnonzero((array == array[:1]).all(axis=0))
        if isinstance(error, InputError) or not single.size:
            raise
        names = list_some(show_names(label_names, single.tolist()))
        raise InputError(
            f"`{type(estimator).__name__}` needs both values of every label, but {names} has only "
            f"one in the {len(array)} instances of a training fold ({first_line(error)}) Drop the "
            "label, use fewer folds, or a learner that takes one class."
        ) from error


def positive_probability(learner: Estimator, features: Features) -> Floats:
    """P(label = 1) by the learner's own `predict_proba`, (n,)."""
    return read_positive_column(learner.predict_proba(features), learner.classes_)


def read_positive_column(probabilities: Any, classes: Any, label: int = 0) -> Floats:
    """Column of the class 1, (n,); zeros where the learner never saw it."""
    values = list(classes)
    if not all(value in (0, 1) for value in values):
        raise InputError(
            f"Every label must have the classes 0 and 1, label {label} has {values}. Fit the model "
            "on zeros and ones."
        )
    columns = np.asarray(probabilities)
    if columns.ndim != 2 or columns.shape[1] != len(values):
        values = _classes_of_columns(columns, values, label)
    if 1 not in values:
        return np.zeros(len(columns))
    # Means over trees or folds can be a hair above one.
    return np.clip(columns[:, values.index(1)].astype(np.float64), 0.0, 1.0)


def _classes_of_columns(
    columns: NDArray[np.generic], values: list[object], label: int
) -> list[int]:
    """Classes of two columns that sum to one, where the learner reports one class.

    Of a label that was always 1 in training, boosted trees and networks have `classes_` [1] and the
    columns P(y = 1) and a remainder. CatBoost's MultiLogloss reports the number of its only label,
    0, for the columns P(y = 0) and P(y = 1). What saw the class 1 alone predicts it.
    """
    is_pair = columns.ndim == 2 and columns.shape[1] == 2
    if is_pair and np.allclose(columns.sum(axis=1), 1, rtol=0, atol=PAIR_TOLERANCE):
        is_first = values == [1] and columns[:, 0].sum() >= columns[:, 1].sum()
        return [1, 0] if is_first else [0, 1]
    raise InputError(
        f"`predict_proba` must have one column for each class {values} of label {label}, got shape "
        f"{columns.shape}. Pass P(y_j = 1) to `as_distribution` instead."
    )


def find_weight_argument(estimator: Estimator) -> str | None:
    """Argument of `fit` that takes sample weights; None where there is none.

    A pipeline hands them to its last step, or where metadata routing says.
    """
    if has_fit_parameter(estimator, "sample_weight"):
        return "sample_weight"
    if not isinstance(estimator, Pipeline):
        return None
    if get_config()["enable_metadata_routing"]:
        return "sample_weight"
    name, last = estimator.steps[-1]
    inner = find_weight_argument(last)
    return None if inner is None else f"{name}__{inner}"


def check_takes_weights(estimator: Estimator) -> None:
    """Refuse sample weights that a learner, or the base learner of a classifier, cannot use."""
    if hasattr(estimator, "check_takes_weights"):
        estimator.check_takes_weights()
    elif find_weight_argument(estimator) is None:
        raise InputError(
            f"`sample_weight` must be None for the base learner {type(estimator).__name__}, whose "
            "`fit` takes no weights."
        )


TOLERANCE = 1e-12  # of a probability: more than rounding means another function
N_PROBES = 8  # rows on which a linear form is compared with the learner itself

LinearWeights = tuple[Floats, Floats, Floats]
"""Of each position: the weights of the features (L, d), of the earlier positions (L, L), and the
intercept (L,). A tuple of arrays, because fitted models are saved with it."""


def _predict_next(
    learners: Sequence[Any], X: Features, position: int, rows: Indices, prefixes: Labelsets
) -> Floats:
    """P(label at a position = 1) for pairs of an instance and its earlier labels."""
    features = append_labels(X[rows], prefixes)
    return clip_certain(positive_probability(learners[position], features))


def read_linear_weights(
    learners: Sequence[object], X: Features, Y: Labelsets, parents: Iterable[Sequence[int]]
) -> LinearWeights | None:
    """Weights of learners that are all linear; None if one is not.

    Y holds the label at each position, and the parents of each position. Some rows, spread over
    all of them, show whether the linear form gives the learner's probabilities.
    """
    probes = np.linspace(0, X.shape[0] - 1, min(N_PROBES, X.shape[0])).astype(int)
    X, Y = X[probes], Y[probes]
    n_labels, n_features = len(learners), X.shape[1]
    of_features, of_labels = np.zeros((n_labels, n_features)), np.zeros((n_labels, n_labels))
    intercepts = np.zeros(n_labels)
    for j, (learner, above) in enumerate(zip(learners, parents, strict=True)):
        form = read_linear_form(learner, append_labels(X, Y[:, list(above)]))
        if form is None:
            return None
        of_features[j] = form.weights[:n_features]
        of_labels[j, list(above)] = form.weights[n_features:]
        intercepts[j] = form.intercept
    return of_features, of_labels, intercepts


def multiply_features(linear: LinearWeights, X: Features) -> Floats:
    """Logit of each label where no other label is set, (n, L)."""
    of_features, _, intercepts = linear
    return np.asarray(X @ of_features.T) + intercepts


def expand_chain(
    order: NDArray[np.integer],
    learners: Sequence[Any],
    linear: LinearWeights | None,
    X: Features,
) -> LinearChain | PrefixChain:
    """Linear chain where all learners are linear, otherwise one that calls them for each prefix."""
    if linear is None:
        return PrefixChain(order, partial(_predict_next, learners, X), X.shape[0])
    base = multiply_features(linear, X)
    return LinearChain.from_fitted(order.astype(np.intp), base, linear[1])


@dataclass(frozen=True)
class LinearForm:
    """P(label = 1) is the logistic function of ``features @ weights + intercept``."""

    weights: Floats
    intercept: float

    def logits(self, features: Features) -> Floats:
        """Linear form of each row, (n,)."""
        return np.asarray(features @ self.weights) + self.intercept

    def after(self, scale: Floats | float, shift: Floats | float) -> LinearForm:
        """Form in terms of z where the features are ``z * scale + shift``."""
        return LinearForm(
            self.weights * scale, float(self.intercept + (self.weights * shift).sum())
        )


def read_linear_form(learner: Estimator, probes: Features) -> LinearForm | None:
    """Linear form of a learner; None if it has none or its probabilities differ from it."""
    form = _read_form(learner)
    if form is None or form.weights.shape != (probes.shape[1],):
        return None
    probabilities = positive_probability(learner, probes)
    difference = np.abs(expit(form.logits(probes)) - probabilities)
    return form if (difference <= TOLERANCE).all() else None


def _read_form(learner: Estimator) -> LinearForm | None:
    """Linear form by a learner's attributes; None where there is none."""
    if isinstance(learner, Pipeline):
        form = _read_form(learner[-1])
        for step in reversed(learner[:-1]):
            affine = _read_affine(step)
            form = None if form is None or affine is None else form.after(*affine)
        return form
    # The class that `predict_proba` comes from: a subclass may have changed it.
    home = next((cls for cls in type(learner).__mro__ if "predict_proba" in vars(cls)), None)
    if home is DummyClassifier and learner.strategy == "prior" and len(learner.classes_) == 2:
        prior = float(logit(learner.class_prior_[1]))
        return LinearForm(np.zeros(learner.n_features_in_), prior)
    if home is LogisticRegression or (home is SGDClassifier and learner.loss == "log_loss"):
        return _read_coefficients(learner)
    return None


def _read_affine(step: Any) -> tuple[Floats | float, Floats | float] | None:
    """Scale and shift of a transformer that maps each column by z * scale + shift."""
    if step in (None, "passthrough"):
        return 1.0, 0.0
    if type(step) is StandardScaler:
        scale = 1.0 if step.scale_ is None else 1 / step.scale_
        return scale, -step.mean_ * scale if step.with_mean else 0.0
    if type(step) is MinMaxScaler and not step.clip:
        return step.scale_, step.min_
    # `clip` came with scikit-learn 1.8.
    if type(step) is MaxAbsScaler and not getattr(step, "clip", False):
        return 1 / step.scale_, 0.0
    return None


def _read_coefficients(learner: Estimator) -> LinearForm | None:
    coefficients = learner.coef_
    if hasattr(coefficients, "toarray"):  # after `sparsify`
        coefficients = coefficients.toarray()
    if len(learner.classes_) != 2 or coefficients.shape[0] != 1:
        return None
    intercept = np.broadcast_to(learner.intercept_, 1)[0]
    return LinearForm(coefficients[0].astype(np.float64), float(intercept))
