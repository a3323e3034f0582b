"""Base learners: one for each label, on the features and some of the other labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.utils.parallel import Parallel, delayed
from threadpoolctl import ThreadpoolController

from labelsure._typing import Floats, Labelsets
from labelsure.classifiers._constant import smoothed_prior
from labelsure.classifiers._weights import weight_argument
from labelsure.errors import InputError

Features = Any
"""An (n, d) float64 array or csr matrix."""

MAX_ITERATIONS = 1000  # of the default learner; scikit-learn's 100 are too few for raw features
MAX_SEED = np.iinfo(np.int32).max


@dataclass(frozen=True)
class LabelTask:
    """One learner to fit.

    Parameters
    ----------
    label
        The label that it predicts.
    given
        The labels that it gets as features behind X, in this order.
    seed
        For a learner with randomness and no seed of its own.
    """

    label: int
    given: Sequence[int]
    seed: int


def check_learner(estimator: Any) -> Any:
    """Return the base learner to clone: logistic regression for None.

    Parameters
    ----------
    estimator
        What the user passed.
    """
    if estimator is None:
        return LogisticRegression(max_iter=MAX_ITERATIONS)
    if isinstance(estimator, type) or not hasattr(estimator, "get_params"):
        raise InputError(
            f"`estimator` must be a scikit-learn estimator, an instance, got {estimator!r}. "
            "Pass e.g. `LogisticRegression()`."
        )
    if not hasattr(estimator, "predict_proba"):
        name = type(estimator).__name__
        raise InputError(
            f"`estimator` must have `predict_proba`, which {name} has not. Wrap it, e.g. "
            f"`CalibratedClassifierCV({name}())`, or set the option that turns it on."
        )
    return estimator


def append_labels(X: Features, labels: Labelsets) -> Features:
    """Return X with labels as further columns; sparse stays sparse."""
    if labels.shape[1] == 0:
        return X
    if sp.issparse(X):
        return sp.hstack([X, sp.csr_matrix(labels, dtype=np.float64)], format="csr")
    return np.hstack([X, labels])


@cache
def _thread_pools() -> ThreadpoolController:
    """Find the pools once for each process: looking for them takes as long as a small fit."""
    return ThreadpoolController()


def one_blas_thread() -> Any:
    """Keep BLAS to one thread: sums then do not depend on how many jobs share the cores.

    For base learners of this size it is also several times faster than two threads.
    """
    return _thread_pools().limit(limits=1, user_api="blas")


def fit_learners(
    estimator: Any,
    X: Features,
    Y: Labelsets,
    tasks: Sequence[LabelTask],
    *,
    sample_weight: Floats | None = None,
    n_jobs: int | None = None,
) -> list[Any]:
    """Return one fitted learner for each task, the same whatever `n_jobs` is."""
    unset = [
        name
        for name, value in sorted(estimator.get_params().items())
        if value is None and name.split("__")[-1] == "random_state"
    ]
    with one_blas_thread():
        return Parallel(n_jobs=n_jobs)(
            delayed(_fit_learner)(estimator, X, Y, task, unset, sample_weight) for task in tasks
        )


def _fit_learner(
    estimator: Any,
    X: Features,
    Y: Labelsets,
    task: LabelTask,
    unset: list[str],
    sample_weight: Floats | None,
) -> Any:
    """Fit one learner; `unset` names its random states that are to be seeded."""
    y = Y[:, task.label]
    if y.min() == y.max():
        return smoothed_prior(y, X.shape[1] + len(task.given), sample_weight)
    learner = clone(estimator)
    if unset:
        seeds = np.random.RandomState(task.seed).randint(MAX_SEED, size=len(unset))
        learner.set_params(**dict(zip(unset, seeds.tolist(), strict=True)))
    argument = weight_argument(learner)
    weights = {} if sample_weight is None or argument is None else {argument: sample_weight}
    with one_blas_thread():  # again, because this may be another process
        return learner.fit(append_labels(X, Y[:, task.given]), y.astype(np.int64), **weights)


def positive_probability(learner: Any, features: Features) -> Floats:
    """Return P(label = 1) by the learner's own `predict_proba`, (n,)."""
    return column_of_ones(learner.predict_proba(features), learner.classes_)


def column_of_ones(probabilities: Any, classes: Any, label: int = 0) -> Floats:
    """Return the column that belongs to the class 1; a class that never occurred has none.

    Parameters
    ----------
    probabilities
        (n, n_classes)
    classes
        The classes of the columns: 0 and 1, or one of them.
    label
        Which label this is, for the message.
    """
    known = list(classes)
    if not all(value in (0, 1) for value in known):
        raise InputError(
            f"Every label must have the classes 0 and 1, label {label} has {known}. "
            "Fit the model on zeros and ones."
        )
    if 1 not in known:
        return np.zeros(len(probabilities))
    # Means over trees or folds can be a hair above one.
    return np.clip(np.asarray(probabilities)[:, known.index(1)].astype(np.float64), 0.0, 1.0)
