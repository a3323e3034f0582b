"""Input validation for wrapped estimators, and access to the estimator inside."""

from __future__ import annotations

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import check_consistent_length, get_tags, indexable

from labelsure._runtime.typing import Estimator, FeaturesLike, LabelNames, LabelsetsLike
from labelsure.classifiers._base_learners import is_search
from labelsure.classifiers._precomputed import PrecomputedProbabilities
from labelsure.classifiers._predictor import LabelsetClassifier, Targets, read_truth
from labelsure.errors import InputError
from labelsure.labelsets.foreign import count_rows, index_of
from labelsure.labelsets.sparse import is_sparse

MIN_SAMPLES = 4  # two to train on and two to compare with


def shape_for_estimator(truth: Targets, X: FeaturesLike, *, with_names: bool) -> LabelsetsLike:
    """Zeros and ones in the form that estimators are fitted with: vector, matrix or DataFrame."""
    numbers = truth.labelsets.astype(np.int64)
    if truth.is_vector:
        return numbers[:, 0]
    if not with_names or truth.label_names is None or is_sparse(numbers):
        return numbers
    import pandas as pd

    return pd.DataFrame(numbers, index_of(X), list(truth.label_names))


def read_instances(
    X: FeaturesLike, y: LabelsetsLike, estimator: Estimator
) -> tuple[object, Targets]:
    """X in a form of which rows can be taken, and the targets."""
    check_consistent_length(X, y)
    if count_rows(X) < MIN_SAMPLES:
        raise InputError(
            f"At least {MIN_SAMPLES} instances are needed to fit, got n_samples = {count_rows(X)}."
        )
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
            f"`y` must have a column for each label for {type(inner).__name__}, got a vector. Pass "
            "zeros and ones of shape (n_samples, 1)."
        )
    if isinstance(estimator, LabelsetClassifier):  # which checks X itself
        return X, truth
    (X,) = indexable(X)
    return X, truth


def lists_labels(estimator: Estimator, X: FeaturesLike) -> bool:
    """Whether X lists some of very many labels, too many for an array of their truth."""
    if not isinstance(innermost(estimator), PrecomputedProbabilities):
        return False
    inner = estimator.estimator if isinstance(estimator, FrozenEstimator) else estimator
    steps = [step for _, step in inner.steps] if isinstance(inner, Pipeline) else []
    return is_sparse(X) or any(getattr(step, "is_sparse", False) for step in steps)


def innermost(model: Estimator) -> Estimator:
    """Model that a frozen one, a search or a pipeline ends in."""
    if isinstance(model, Pipeline):
        return innermost(model.steps[-1][1])
    if is_search(model):
        return innermost(getattr(model, "best_estimator_", model.estimator))
    if isinstance(model, FrozenEstimator):
        return innermost(model.estimator)
    return model


def first_step(model: Estimator) -> Estimator:
    """First step of a pipeline, frozen or not; the estimator itself if it is none."""
    model = model.estimator if isinstance(model, FrozenEstimator) else model
    return model.steps[0][1] if isinstance(model, Pipeline) else model


def known_label_names(model: Estimator) -> LabelNames:
    """Label names of a fitted model; None where it has none."""
    names: LabelNames = getattr(innermost(model), "label_names_", None)
    return names


def is_prefit(estimator: Estimator) -> bool:
    """Whether nothing is trained here: the model is frozen, or X holds probabilities."""
    return isinstance(estimator, FrozenEstimator) or isinstance(
        innermost(estimator), PrecomputedProbabilities
    )
