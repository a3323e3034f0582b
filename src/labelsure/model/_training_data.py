"""What the aware classifier's `fit` gets, checked before anything is fitted: estimator, X and y."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection._search import BaseSearchCV
from sklearn.pipeline import Pipeline
from sklearn.utils import check_consistent_length, get_tags, indexable
from sklearn.utils.validation import _num_samples

from labelsure._runtime.typing import LabelNames, Labelsets
from labelsure.classifiers._adapters import without_probabilities
from labelsure.classifiers._precomputed import PrecomputedProbabilities
from labelsure.classifiers._predictor import LabelsetClassifier, Targets, read_classes, read_truth
from labelsure.distributions._bridge import LabelsetDistribution
from labelsure.errors import InputError
from labelsure.estimation._fitted_estimator import BatchSettings
from labelsure.labelsets.rows import index_of, is_sparse

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
    if _num_samples(X) < MIN_SAMPLES:
        raise InputError(
            f"At least {MIN_SAMPLES} instances are needed to fit, got n_samples = "
            f"{_num_samples(X)}. A few hundred give estimates worth having."
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
    if isinstance(model, BaseSearchCV):
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
    return isinstance(inner, BaseSearchCV)


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
