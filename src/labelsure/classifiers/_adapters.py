"""`as_distribution`: fitted models of scikit-learn, and arrays, as distributions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted, validate_data

from labelsure import distributions
from labelsure._typing import Floats, Names
from labelsure.classifiers._base_learners import read_positive_column
from labelsure.classifiers._linear_chains import expand_chain, read_linear_weights
from labelsure.distributions import (
    ChainMixture,
    IndependentLabels,
    LabelsetDistribution,
    LabelsetTable,
)
from labelsure.errors import InputError, unknown_name


def as_distribution(
    source: Any, X: Any = None, *, kind: str | None = None, label_names: Names = None
) -> LabelsetDistribution:
    """Wrap a fitted model and its instances, or predicted probabilities, as distributions.

    Parameters
    ----------
    source
        A fitted model, with `X`:

        - a classifier of labelsure;
        - scikit-learn's `ClassifierChain`: the joint distribution of its base learners, which its
          own `predict_proba` is not;
        - `MultiOutputClassifier`, `OneVsRestClassifier` (fitted on labelsets), `MLPClassifier`:
          independent labels;
        - `RandomForestClassifier`, `ExtraTreesClassifier`: the votes of the trees as a table, or
          with ``kind="marginal"`` independent labels;
        - a pipeline or a grid search around one of these.

        Or predicted probabilities, without `X`:

        - (n, L) array or DataFrame of marginals P(y_j = 1), or of logits with ``kind="logit"``;
        - list of L arrays (n, 2), or one (n, L, 2) array: P(y_j = 0) and P(y_j = 1), as
          scikit-learn's `MultiOutputClassifier.predict_proba` gives them;
        - (n, 2**L) array of joint probabilities in the order of the codes, ``kind="joint"``;
        - a `LabelsetDistribution`, returned as it is.
    X
        The instances to predict, for a fitted model.
    kind
        For arrays "marginal" (None), "joint" or "logit"; for forests "votes" (None) or "marginal".
    label_names
        One for each label; DataFrames and classifiers of labelsure bring their own.

    Examples
    --------
    >>> as_distribution([[0.9, 0.2]])
    IndependentLabels(n_samples=1, n_labels=2)

    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.multioutput import ClassifierChain
    >>> X, Y = [[0.0], [1.0], [2.0], [3.0]], [[0, 1], [0, 1], [1, 0], [1, 0]]
    >>> as_distribution(ClassifierChain(LogisticRegression()).fit(X, Y), X)
    ChainMixture(n_samples=4, n_labels=2)
    """
    if isinstance(source, BaseEstimator) or hasattr(source, "predict_proba"):
        if isinstance(source, type):
            raise InputError(
                f"`source` must be a fitted model, got the class {source.__name__}. "
                "Make one and fit it."
            )
        return _from_model(source, X, kind, label_names)
    if X is not None:
        raise InputError(
            f"`X` belongs to a fitted model, but `source` is a {type(source).__name__}. "
            "Pass the model, or its probabilities without `X`."
        )
    kind = "marginal" if kind is None else kind
    return distributions.as_distribution(source, kind=kind, label_names=label_names)


def _from_model(model: Any, X: Any, kind: str | None, label_names: Names) -> LabelsetDistribution:
    name = type(model).__name__
    if X is None:
        raise InputError(
            f"`X` must hold the instances to predict, because `source` is a model ({name}). "
            "Call `as_distribution(model, X)`."
        )
    reader = next((_READERS[cls] for cls in type(model).__mro__ if cls in _READERS), None)
    if reader is None and hasattr(model, "predict_distribution"):
        reader = _from_labelsure
    if reader is None:
        known = ", ".join(sorted(cls.__name__ for cls in _READERS))
        raise InputError(
            f"`source` must be a model whose distribution is known, got {name}. Known are the "
            f"classifiers of labelsure and {known}. For independent labels pass its probabilities: "
            "`as_distribution(model.predict_proba(X))`."
        )
    check_is_fitted(model)
    return reader(model, X, kind, label_names)


def _from_labelsure(model: Any, X: Any, kind: str | None, label_names: Names) -> Any:
    _check_no_kind(model, kind)
    if label_names is not None:
        raise InputError(
            "`label_names` must be None for a classifier of labelsure, which has its own. "
            "Fit it on a DataFrame `Y` with these columns."
        )
    return model.predict_distribution(X)


def _from_pipeline(
    model: Pipeline, X: Any, kind: str | None, label_names: Names
) -> LabelsetDistribution:
    transformed = model[:-1].transform(X) if len(model) > 1 else X
    return as_distribution(model[-1], transformed, kind=kind, label_names=label_names)


def _from_search(model: Any, X: Any, kind: str | None, label_names: Names) -> LabelsetDistribution:
    return as_distribution(model.best_estimator_, X, kind=kind, label_names=label_names)


def _from_chain(
    model: ClassifierChain, X: Any, kind: str | None, label_names: Names
) -> ChainMixture:
    _check_no_kind(model, kind)
    for label, learner in zip(model.order_, model.estimators_, strict=True):
        if not hasattr(learner, "predict_proba"):
            name = type(learner).__name__
            raise InputError(
                f"The learners of a ClassifierChain must have `predict_proba`, which {name} has "
                f"not. Fit the chain on e.g. `CalibratedClassifierCV({name}())`."
            )
        read_positive_column(np.empty((0, len(learner.classes_))), learner.classes_, label)
    X = validate_data(model, X, reset=False, accept_sparse="csr", dtype=np.float64)
    order = np.asarray(model.order_)
    # The labels of the probes may be anything; half of them are 1.
    labels = np.indices((X.shape[0], len(order))).sum(axis=0).astype(np.int8) % 2
    linear = read_linear_weights(model.estimators_, X, labels)
    return ChainMixture([expand_chain(order, model.estimators_, linear, X)], label_names)


def _from_multi_output(
    model: MultiOutputClassifier, X: Any, kind: str | None, label_names: Names
) -> IndependentLabels:
    _check_no_kind(model, kind)
    marginals = _read_marginals(model.predict_proba(X), model.classes_)
    return IndependentLabels(marginals, label_names)


def _from_one_vs_rest(
    model: OneVsRestClassifier, X: Any, kind: str | None, label_names: Names
) -> IndependentLabels:
    _check_no_kind(model, kind)
    if not model.multilabel_:
        raise _not_multilabel(model, len(model.classes_))
    return IndependentLabels(model.predict_proba(X), label_names)


def _from_network(
    model: MLPClassifier, X: Any, kind: str | None, label_names: Names
) -> IndependentLabels:
    _check_no_kind(model, kind)
    if model.out_activation_ != "logistic":
        raise _not_multilabel(model, model.n_outputs_)
    probabilities = model.predict_proba(X)
    if model.n_outputs_ == 1:  # a vector of two classes, or a single label
        probabilities = probabilities[:, -1:]
    return IndependentLabels(probabilities, label_names)


def _from_forest(model: Any, X: Any, kind: str | None, label_names: Names) -> LabelsetDistribution:
    kind = "votes" if kind is None else kind
    if kind not in _FOREST_KINDS:
        raise unknown_name("kind for a forest", kind, _FOREST_KINDS)
    single = model.n_outputs_ == 1
    return _FOREST_KINDS[kind](
        model, X, [model.classes_] if single else model.classes_, label_names
    )


def _forest_marginals(
    model: Any, X: Any, classes: Sequence[Any], label_names: Names
) -> IndependentLabels:
    probabilities = model.predict_proba(X)
    pairs = [probabilities] if model.n_outputs_ == 1 else probabilities
    return IndependentLabels(_read_marginals(pairs, classes), label_names)


def _forest_votes(model: Any, X: Any, classes: Sequence[Any], label_names: Names) -> LabelsetTable:
    X = validate_data(
        model, X, reset=False, accept_sparse="csr", dtype=np.float32, ensure_all_finite=False
    )
    values = [read_positive_column(np.eye(len(known)), known, j) for j, known in enumerate(classes)]
    votes = np.empty((X.shape[0], len(model.estimators_), len(classes)), dtype=np.int8)
    for t, tree in enumerate(model.estimators_):
        # The trees of a forest predict the indices of the classes.
        chosen = tree.predict(X).reshape(X.shape[0], -1).astype(np.intp)
        for j, value in enumerate(values):
            votes[:, t, j] = value[chosen[:, j]]
    return LabelsetTable.from_samples(votes, label_names)


_FOREST_KINDS: dict[str, Callable[..., LabelsetDistribution]] = {
    "votes": _forest_votes,
    "marginal": _forest_marginals,
}

_READERS: dict[type, Callable[[Any, Any, str | None, Names], LabelsetDistribution]] = {
    ClassifierChain: _from_chain,
    ExtraTreesClassifier: _from_forest,
    GridSearchCV: _from_search,
    MLPClassifier: _from_network,
    MultiOutputClassifier: _from_multi_output,
    OneVsRestClassifier: _from_one_vs_rest,
    Pipeline: _from_pipeline,
    RandomForestClassifier: _from_forest,
    RandomizedSearchCV: _from_search,
}
"""Models by their class. A new one is a function and an entry here."""


def _read_marginals(pairs: Sequence[Any], classes: Sequence[Any]) -> Floats:
    return np.column_stack(
        [
            read_positive_column(pair, known, j)
            for j, (pair, known) in enumerate(zip(pairs, classes, strict=True))
        ]
    )


def _check_no_kind(model: Any, kind: str | None) -> None:
    if kind is not None:
        raise InputError(
            f"`kind` must be None for a {type(model).__name__}, which has one kind of "
            f"distribution, got {kind!r}."
        )


def _not_multilabel(model: Any, n_classes: int) -> InputError:
    return InputError(
        f"`source` must be fitted on labelsets, but this {type(model).__name__} was fitted on a "
        f"vector of {n_classes} classes, of which each instance has one. Fit it on `Y` of zeros "
        "and ones of shape (n_samples, n_labels)."
    )
