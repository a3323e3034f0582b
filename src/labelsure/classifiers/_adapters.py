"""`as_distribution`: fitted models and predicted probabilities as distributions."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.frozen import FrozenEstimator
from sklearn.multioutput import ClassifierChain
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted, validate_data

from labelsure._runtime.typing import Estimator, FeaturesLike, Names
from labelsure.classifiers._base_learners import (
    expand_chain,
    is_search,
    read_linear_weights,
    read_positive_column,
)
from labelsure.classifiers._predicted_probabilities import (
    fitted_on_vector,
    warn_of_single_classes,
    wrap_model_probabilities,
    wrap_probabilities,
)
from labelsure.distributions._base import LabelsetDistribution
from labelsure.distributions._chain_mixture import ChainMixture
from labelsure.distributions._independent_labels import IndependentLabels
from labelsure.distributions._labelset_table import LabelsetTable
from labelsure.errors import InputError, unknown_name
from labelsure.labelsets.foreign import index_of, refuse_masked

LABEL_SCALE = ("predict", "predict_proba")
"""Values of `chain_method` that lie in [0, 1], as labels do: learners that were trained on these
take labels. A joint distribution of such learners has a higher log-likelihood on held-out rows than
their `predict_proba`; where they were trained on scores, a lower one."""


def as_distribution(
    source: object, X: FeaturesLike = None, *, kind: str | None = None, label_names: Names = None
) -> LabelsetDistribution:
    """Distributions of a fitted model for its instances, or of predicted probabilities.

    Parameters
    ----------
    source
        A fitted model, with `X`:

        - a classifier of labelsure;
        - scikit-learn's `ClassifierChain`: the joint distribution of its base learners, which its
          own `predict_proba` is not; with `cv` and a `chain_method` of scores, whose learners take
          no labels, independent labels;
        - `RandomForestClassifier`, `ExtraTreesClassifier`: the votes of the trees as a table, or
          with ``kind="marginal"`` independent labels;
        - any other model with `predict_proba`, fitted on labelsets: independent labels;
        - a pipeline, search or `FrozenEstimator` around one of these.

        Or predicted probabilities, without `X`:

        - (n, L) array, DataFrame or tensor of marginals P(y_j = 1), or of logits with
          ``kind="logit"``. Marginals, also those of models, are clipped to
          [2**-24, 1 - 2**-24]; logits are not clipped;
        - list of L arrays (n, 2), or one (n, L, 2) array: P(y_j = 0) and P(y_j = 1), as
          scikit-learn's `MultiOutputClassifier.predict_proba` gives them;
        - (n, 2**L) array of joint probabilities in the order of the codes, ``kind="joint"``;
        - (n, n_votes, L) zeros and ones, a labelset for each vote, ``kind="votes"``; a row of NaN
          for a vote that was not cast;
        - a `LabelsetDistribution`, returned as it is.
    X
        The instances to predict, for a fitted model, as it takes them.
    kind
        For arrays "marginal" (None), "joint", "logit" or "votes"; for forests "votes" (None) or
        "marginal".
    label_names
        One for each label; DataFrames and classifiers of labelsure bring their own.

    Returns
    -------
    LabelsetDistribution
        A batch with one distribution per row.

    Warns
    -----
    ProbabilityWarning
        Where a label has the probability 0 or 1 in every row, or rows of marginals sum to one as
        those of a softmax do.

    See Also
    --------
    PrecomputedProbabilities : The same as an estimator with `fit`, for pipelines.
    confidence : How sure a distribution is.
    decide : The labelset with the highest expected accuracy.

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
    if isinstance(source, type):
        raise InputError(
            f"`source` must be a fitted model, got the class {source.__name__}. Fit one."
        )
    refuse_masked(source, "source")
    refuse_masked(X, "X")
    predicts = hasattr(source, "predict_distribution") or hasattr(source, "predict_proba")
    if isinstance(source, BaseEstimator) or predicts:
        if X is None:
            raise InputError(
                "`X` must hold the instances to predict where `source` is a model, got None. Call "
                "`as_distribution(model, X)`."
            )
        dist, rows = _from_model(*_unwrap(source, X), kind, label_names), X
    elif callable(source) or hasattr(source, "predict"):
        raise without_probabilities(source)
    elif X is not None:
        raise InputError(
            f"`X` belongs to a fitted model, but `source` is a {type(source).__name__}. Pass "
            "probabilities without `X`."
        )
    else:
        dist = wrap_probabilities(source, kind=kind or "marginal", label_names=label_names)
        rows = source
    # A model knows nothing of the names of rows, and a pipeline loses them on the way.
    index = index_of(rows)
    return dist if index is None or dist.index is not None else dist._with_index(index)


def _unwrap(model: Estimator, X: FeaturesLike) -> tuple[Estimator, FeaturesLike]:
    """Model inside pipelines, searches and frozen estimators, and the instances that reach it."""
    while True:
        if is_search(model):
            check_is_fitted(model)
            if not hasattr(model, "best_estimator_"):
                raise InputError(
                    f"`source` must have a best model, which this {type(model).__name__} has not. "
                    "Fit it with `refit=True`."
                )
            model = model.best_estimator_
        elif isinstance(model, FrozenEstimator):
            model = model.estimator
        elif isinstance(model, Pipeline):
            X, model = model[:-1].transform(X) if len(model) > 1 else X, model[-1]
        else:
            return model, X


def _from_model(
    model: Estimator, X: FeaturesLike, kind: str | None, label_names: Names
) -> LabelsetDistribution:
    """Read models that hold more than `predict_proba` says, and all others by that."""
    from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier  # slow to import

    if isinstance(model, (ExtraTreesClassifier, RandomForestClassifier)):
        check_is_fitted(model)
        if kind not in (None, "votes", "marginal"):
            raise unknown_name("kind for a forest", kind, ("votes", "marginal"))
        read = wrap_model_probabilities if kind == "marginal" else _forest_votes
        return read(model, X, label_names)
    if kind is not None:
        raise InputError(f"`kind` must be None for a {type(model).__name__}, got {kind!r}.")
    if isinstance(model, ClassifierChain):
        return _from_chain(model, X, label_names)
    if hasattr(model, "predict_distribution"):
        if label_names is not None:
            raise InputError(
                "`label_names` must be None for a classifier of labelsure, which learns them from "
                "a DataFrame `Y` in `fit`."
            )
        return model.predict_distribution(X)
    if hasattr(model, "predict_proba"):
        return wrap_model_probabilities(model, X, label_names)
    raise without_probabilities(model)


def _from_chain(
    model: ClassifierChain, X: FeaturesLike, label_names: Names
) -> ChainMixture | IndependentLabels:
    check_is_fitted(model)
    for label, learner in zip(model.order_, model.estimators_, strict=True):
        if not hasattr(learner, "predict_proba"):
            raise without_probabilities(model)
        read_positive_column(np.empty((0, len(learner.classes_))), learner.classes_, label)
    if model.cv is not None and model.chain_method_ not in LABEL_SCALE:
        # Each learner takes scores of the ones before it, which x determines: given x, labels are
        # independent, with the marginals of `predict_proba`.
        return wrap_model_probabilities(model, X, label_names)
    X = validate_data(model, X, reset=False, accept_sparse="csr", dtype=np.float64)
    order = np.asarray(model.order_)
    # The labels of the probes may be anything; half of them are 1.
    labels = np.indices((X.shape[0], len(order))).sum(axis=0).astype(np.int8) % 2
    before = [range(j) for j in range(len(order))]
    linear = read_linear_weights(model.estimators_, X, labels, before)
    dist = ChainMixture([expand_chain(order, model.estimators_, linear, X)], label_names)
    classes = [model.estimators_[position].classes_ for position in np.argsort(order)]
    warn_of_single_classes(dist, classes)
    return dist


def _forest_votes(model: Estimator, X: FeaturesLike, label_names: Names) -> LabelsetTable:
    classes = [model.classes_] if model.n_outputs_ == 1 else model.classes_
    if model.n_outputs_ == 1 and len(model.classes_) > 2:
        raise fitted_on_vector(model, len(model.classes_))
    X = validate_data(
        model, X, reset=False, accept_sparse="csr", dtype=np.float32, ensure_all_finite=False
    )
    values = [read_positive_column(np.eye(len(c)), c, j) for j, c in enumerate(classes)]
    votes = np.empty((X.shape[0], len(model.estimators_), len(classes)), dtype=np.int8)
    for t, tree in enumerate(model.estimators_):
        # The trees of a forest predict the indices of the classes.
        chosen = tree.predict(X).reshape(X.shape[0], -1).astype(np.intp)
        for j, value in enumerate(values):
            votes[:, t, j] = value[chosen[:, j]]
    dist = LabelsetTable.from_samples(votes, label_names)
    warn_of_single_classes(dist, classes)
    return dist


def without_probabilities(model: Estimator, name: str = "`source`") -> InputError:
    """Error for a model, function or network without `predict_proba`."""
    learner = getattr(model, "estimator", model)  # of MultiOutputClassifier and the like
    kind = getattr(learner, "__name__", type(learner).__name__)
    if isinstance(model, ClassifierChain):
        name = "The learners of a ClassifierChain"
    fix = 'Pass its output for the instances without `X`, with kind="logit" if it is logits.'
    if hasattr(learner, "decision_function"):
        fix = (
            "Its `decision_function` gives scores, not probabilities. Calibrate it: "
            f"`CalibratedClassifierCV({kind}())`, in a `MultiOutputClassifier` for several labels."
        )
    return InputError(f"{name} must have `predict_proba`, which {kind} has not. {fix}")
