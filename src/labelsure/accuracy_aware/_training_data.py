"""What the aware classifier's `fit` gets, checked before anything is fitted: estimator, X and y."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection._search import BaseSearchCV
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing, check_consistent_length, indexable
from sklearn.utils.validation import _check_y, _num_samples

from labelsure._typing import LabelNames, Labelsets
from labelsure.classifiers import (
    LabelsetClassifier,
    PrecomputedProbabilities,
    classes_of_sparse,
    read_label_names,
    read_targets,
    without_probabilities,
)
from labelsure.distributions import LabelsetDistribution
from labelsure.errors import InputError
from labelsure.estimation import BatchSettings
from labelsure.labelset_rows import (
    index_of,
    is_sparse,
    names_in,
    refuse_masked,
)
from labelsure.named_labelsets import match_labels, read_labelsets
from labelsure.named_rows import align_rows

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


@dataclass(frozen=True)
class Truth:
    """The labels of the training instances.

    Parameters
    ----------
    labelsets
        (n, L) zeros and ones.
    label_names
        One for each label, or None.
    classes
        The two values of a vector y; for labelsets a list with [0, 1] of y's type for each label.
    is_vector
        Whether there is one value for each instance.
    """

    labelsets: Labelsets
    label_names: LabelNames
    classes: NDArray[Any] | list[NDArray[Any]]
    is_vector: bool

    def for_estimator(self, X: Any, *, with_names: bool) -> Any:
        """Return zeros and ones as estimators are fitted with: a vector, a matrix or a DataFrame.

        Parameters
        ----------
        X
            What the estimator is fitted with: a DataFrame has the index of this one.
        with_names
            Whether the estimator keeps the label names of a DataFrame.
        """
        numbers = self.labelsets.astype(np.int64)
        if self.is_vector:
            return numbers[:, 0]
        if not with_names or self.label_names is None or is_sparse(numbers):
            return numbers
        import pandas as pd

        return pd.DataFrame(numbers, index_of(X), list(self.label_names))


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


def read_instances(X: Any, y: Any, estimator: Any, owner: str) -> tuple[Any, Truth]:
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
    is_frozen = isinstance(estimator, FrozenEstimator)
    names = known_label_names(estimator) if is_frozen else None
    sparse = lists_labels(estimator, X)
    truth = read_truth(y, X, model_names=names, is_frozen=is_frozen, sparse=sparse)
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


def read_truth(
    y: Any,
    X: Any,
    *,
    model_names: tuple[str, ...] | None,
    is_frozen: bool,
    sparse: bool = False,
) -> Truth:
    """Return the truth with its rows in the order of X and its labels in that of a frozen model.

    Parameters
    ----------
    y
        As in `fit`.
    X
        The instances, whose index names the rows if it has one.
    model_names
        The label names of a frozen model; None if it has none, or is to be fitted.
    is_frozen
        Whether the order of the labels is settled by a model that is fitted already.
    sparse
        Whether labelsets are wanted as sparse rows.
    """
    refuse_masked(X, "X")
    refuse_masked(y, "y")
    if hasattr(y, "__array__") and not hasattr(y, "index"):
        y = np.asarray(y)  # of any library that is like NumPy
    order = align_rows(index_of(y), index_of(X), name="y", beside="X")
    if order is not None:
        y = _safe_indexing(y, order)
    if _is_vector(y):
        targets = read_targets(_check_y(y))
        return Truth(targets.labelsets, read_label_names(y, 1), targets.classes, is_vector=True)
    known = model_names
    has_columns = names_in(y) is not None
    read = read_labelsets(y, None if has_columns else known, name="y", sparse=sparse)
    if is_frozen and known is None and read.label_names is not None and not has_columns:
        raise InputError(
            "`y` must be zeros and ones for a frozen estimator that has no label names, got names "
            "of labels, which could be in any order. Binarise `y` as for the training of that "
            "estimator, e.g. by its MultiLabelBinarizer."
        )
    rows, names = read.rows, read.label_names
    if known is not None and names is not None and names != known:
        rows = rows[:, match_labels(names, known, "y", "the frozen estimator")]
        names = known
    kind = y.dtype if isinstance(y, np.ndarray) else np.dtype(np.int64)
    dtype = kind if kind.kind in "biuf" else np.dtype(np.int64)
    classes = [np.array([0, 1], dtype=dtype) for _ in range(0 if sparse else rows.shape[1])]
    if sparse:
        classes = classes_of_sparse(dtype, rows.shape[1])
    return Truth(rows, names, classes, is_vector=False)


def _is_vector(y: Any) -> bool:
    """Whether y has one value for each instance, not several labels."""
    if hasattr(y, "columns") or hasattr(y, "toarray") or getattr(y, "ndim", 1) != 1:
        return False
    return not any(isinstance(entry, (list, tuple, set, frozenset, np.ndarray)) for entry in y)


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


def align_truth(
    classes: Any, y: Any, dist: LabelsetDistribution, X: Any, *, name: str = "y"
) -> Labelsets:
    """Return the truth of new instances, (n, L), in the order of their labels and rows.

    Parameters
    ----------
    classes
        `classes_` of the model: a list for labelsets, else the two classes of a vector.
    y
        The truth as the user has it.
    dist
        The predictions that it is compared with.
    X
        The instances, which may name their rows.
    name
        What the user calls the truth.
    """
    if isinstance(classes, list):
        return dist.align(y, name)
    order = align_rows(index_of(y), index_of(X), name=name, beside="X")
    is_second = (np.asarray(y) == classes[1])[:, np.newaxis].astype(np.int8)
    return is_second if order is None else is_second[order]


def with_labelsets(
    settings: BatchSettings, classes: Any, dist: LabelsetDistribution
) -> BatchSettings:
    """Return the settings of an estimate with the truth of some instances as labelsets.

    Parameters
    ----------
    settings
        As the user gave them, with `Y_true`.
    classes
        As for `align_truth`.
    dist
        The predictions of the batch.
    """
    if isinstance(classes, list):
        return settings
    y, settled = settings["Y_true"], settings.copy()
    labelsets = (np.asarray(y) == classes[1])[:, np.newaxis].astype(np.int8)
    settled["Y_true"] = labelsets
    if settled.get("rows") is None and hasattr(y, "index"):
        import pandas as pd

        settled["Y_true"] = pd.DataFrame(labelsets, y.index, dist.label_names)
    return settled
