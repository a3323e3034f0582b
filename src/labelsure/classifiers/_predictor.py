"""Base class of classifiers with a labelset distribution: reading X and y, and predictions."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.utils import assert_all_finite, check_consistent_length, column_or_1d, get_tags
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from labelsure._runtime.typing import (
    Array,
    Estimator,
    FeaturesLike,
    Floats,
    LabelNames,
    Labelsets,
    LabelsetsLike,
)
from labelsure.classifiers._base_learners import Features, check_learner, check_takes_weights
from labelsure.distributions._base import LabelsetDistribution
from labelsure.distributions._sparse_labels import listed_marginals
from labelsure.errors import InputError
from labelsure.labelsets.foreign import as_table, index_of, refuse_dicts, refuse_masked, take_rows
from labelsure.labelsets.label_names import MAX_WRITTEN_NAMES
from labelsure.labelsets.names import NamedLabelsets, ParsedLabelsets, align_rows, check_weights
from labelsure.labelsets.reading import check_shape
from labelsure.labelsets.sparse import differing_rows
from labelsure.saving import Savable

Classes = Array | list[Array]
"""The two values of a vector y; for labelsets a list with [0, 1] of y's type for each label."""


class LabelsetPredictor(Savable, ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """A scikit-learn classifier whose predictions follow from a distribution over labelsets.

    A new one implements `fit`, which begins with `_check_training_data`, and
    `_distribution_of_checked`. It may also replace `_wrapped_estimator`, which decides whether X
    may be sparse or have missing values, and `_decide`, which chooses the labelset to predict.
    """

    label_names_: LabelNames
    n_labels_: int
    classes_: Classes

    @abstractmethod
    def _distribution_of_checked(self, X: Features) -> LabelsetDistribution:
        """P(Y|x) of each row of checked features."""

    def _wrapped_estimator(self) -> Estimator:
        """Estimator that gets X; where it is None, X may be sparse but not have NaN."""
        return None

    def _decide(self, dist: LabelsetDistribution) -> Labelsets:
        """Predicted labelset of each instance, (n, L): the most probable one."""
        return dist.mode()

    def _check_training_data(self, X: FeaturesLike, y: LabelsetsLike) -> tuple[Features, Labelsets]:
        """X and y as arrays. Sets classes, label names and their number."""
        refuse_masked(X, "X")
        checked = validate_data(self, as_table(X), **self._requirements())
        truth = read_truth(y, X)
        check_consistent_length(checked, truth.labelsets)
        self.classes_, self.label_names_ = truth.classes, truth.label_names
        self.n_labels_ = truth.n_labels
        return checked, truth.labelsets

    def predict_distribution(self, X: FeaturesLike) -> LabelsetDistribution:
        """P(Y|x) of each instance.

        Parameters
        ----------
        X
            (n, d) array, DataFrame or scipy sparse matrix.
        """
        check_is_fitted(self)
        refuse_masked(X, "X")
        needed = {**self._requirements(), "ensure_min_samples": 0}
        checked = validate_data(self, as_table(X), reset=False, **needed)
        return self._distribution_of_any(checked)._with_index(index_of(X))

    def _distribution_of_any(self, X: Features) -> LabelsetDistribution:
        """P(Y|x) of checked rows, also of none, which no base learner predicts."""
        if X.shape[0]:
            return self._distribution_of_checked(X)
        return self._distribution_of_checked(np.zeros((1, X.shape[1])))[:0]

    def predict(self, X: FeaturesLike) -> Array:
        """Predicted labelset of each instance.

        Parameters
        ----------
        X
            (n, d) array, DataFrame or scipy sparse matrix.

        Returns
        -------
        numpy.ndarray of shape (n, L), or (n,) where y was a vector in `fit`
        """
        return to_classes(self._decide(self.predict_distribution(X)), self.classes_)

    def predict_proba(self, X: FeaturesLike) -> Floats:
        """Marginals of the distribution, P(y_j = 1).

        Parameters
        ----------
        X
            (n, d) array, DataFrame or scipy sparse matrix.

        Returns
        -------
        numpy.ndarray of shape (n, L); where y was a vector in `fit`, the probabilities of its two
        classes, (n, 2). Of very many labels the listed ones, sparse
        """
        dist = self.predict_distribution(X)
        marginals = listed_marginals(dist)
        if isinstance(self.classes_, list):
            return marginals
        return np.column_stack([1 - marginals[:, 0], marginals[:, 0]])

    def score(self, X: FeaturesLike, y: LabelsetsLike, sample_weight: object = None) -> float:
        """Mean exact match: the share of instances whose labelset is predicted exactly.

        Parameters
        ----------
        X
            (n, d) array, DataFrame or scipy sparse matrix.
        y
            Their true labels, in any form that `fit` takes. Labels are compared by name, rows by
            index, where both sides have them.
        sample_weight
            (n,) weights of the instances.
        """
        dist = self.predict_distribution(X)
        is_right = ~differing_rows(align_truth(self.classes_, y, dist), self._decide(dist))
        return weighted_mean(is_right, sample_weight, dist)

    def _requirements(self) -> dict[str, object]:
        """Arguments of scikit-learn's `validate_data` for X.

        One type and layout of arrays, so that every route and every source of the same numbers
        gives the same answer to the last bit.
        """
        allow_nan = get_tags(self).input_tags.allow_nan
        return {
            "accept_sparse": "csr",
            "dtype": np.float64,
            "order": "C",
            "ensure_all_finite": "allow-nan" if allow_nan else True,
        }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.multi_label = True
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = True
        tags.input_tags.sparse = True
        wrapped = self._wrapped_estimator()
        if hasattr(wrapped, "__sklearn_tags__") and not isinstance(wrapped, type):
            inner = get_tags(wrapped).input_tags
            tags.input_tags.sparse, tags.input_tags.allow_nan = inner.sparse, inner.allow_nan
        return tags


class LabelsetClassifier(LabelsetPredictor):
    """A multi-label classifier made of base learners, which predicts a distribution.

    A new one implements `_fit_clones` and `_distribution_of_checked`, and has parameters called
    `estimator` and, for what is fitted in parallel, `n_jobs`.
    """

    estimator: Estimator

    def fit(self, X: FeaturesLike, y: LabelsetsLike, sample_weight: object = None) -> Self:
        """Fit the base learners.

        Parameters
        ----------
        X
            (n, d) array, DataFrame or scipy sparse matrix.
        y
            (n, L) zeros and ones, a DataFrame (whose columns name the labels), sparse, or a list
            of label names for each instance; or a vector of two classes, which is the case of one
            label.
        sample_weight
            (n,) weights of the instances. A weight of 0 is as if the instance was not there.
        """
        learner = check_learner(self.estimator)
        index = index_of_batch(X, y)
        X, Y = self._check_training_data(X, y)
        if sample_weight is not None:
            weights = check_weights(sample_weight, len(Y), index)
            is_used = weights > 0
            X, Y, sample_weight = X[is_used], Y[is_used], weights[is_used]
            self.check_takes_weights()
        self._fit_clones(learner, X, Y, sample_weight)
        return self

    def _fit_checked(
        self,
        X: Features,
        Y: Labelsets,
        label_names: Sequence[str] | None,
        sample_weight: Floats | None = None,
    ) -> Self:
        """Fit to arrays that are checked already, for estimators that hold such a classifier."""
        learner = check_learner(self.estimator)
        self.n_features_in_ = X.shape[1]
        self.classes_ = _classes_of_labelsets(Y.dtype, Y.shape[1])
        self.label_names_ = None if label_names is None else tuple(label_names)
        self.n_labels_ = Y.shape[1]
        self._fit_clones(learner, X, Y, sample_weight)
        return self

    @abstractmethod
    def _fit_clones(
        self, learner: Estimator, X: Features, Y: Labelsets, sample_weight: Floats | None
    ) -> None:
        """Fit clones of `learner`; everything is checked and no weight is 0."""

    def check_takes_weights(self) -> None:
        """Refuse sample weights that the base learner would be fitted with, but does not take."""
        if self._passes_weights_on():
            check_takes_weights(check_learner(self.estimator))

    def _passes_weights_on(self) -> bool:
        """Whether base learners are fitted with the weights."""
        return True

    def _wrapped_estimator(self) -> Estimator:
        """Base learner; None stands for logistic regression."""
        return self.estimator


@dataclass(frozen=True, eq=False, repr=False)
class Targets(NamedLabelsets):
    """True labelsets in the order of X, and the classes, by which predictions get the form of y.

    Parameters
    ----------
    classes
        For a vector its two values; for labelsets a list with [0, 1] of y's type for each label.
    """

    classes: Classes = field(kw_only=True)

    @property
    def is_vector(self) -> bool:
        """Whether there is one class for each instance."""
        return not isinstance(self.classes, list)


def index_of_batch(X: FeaturesLike, y: LabelsetsLike) -> Any:
    """Index of X, or that of y where X has none."""
    index = index_of(X)
    return index_of(y) if index is None else index


def order_like(y: LabelsetsLike, X: FeaturesLike) -> LabelsetsLike:
    """Table or array y with its rows in the order of X where both have an index."""
    order = align_rows(index_of(y), index_of(X), name="y", beside="`X`")
    y = as_table(y)
    if hasattr(y, "__array__") and not hasattr(y, "index"):
        y = np.asarray(y)  # of any library that is like NumPy
    return y if order is None else take_rows(y, order)


def is_vector(y: LabelsetsLike) -> bool:
    """Whether y has one value for each instance, not several labels."""
    if hasattr(y, "columns") or hasattr(y, "toarray") or getattr(y, "ndim", 1) != 1:
        return False
    return not any(isinstance(entry, (list, tuple, set, frozenset, np.ndarray)) for entry in y)


def read_truth(
    y: LabelsetsLike,
    X: FeaturesLike,
    *,
    label_names: LabelNames = None,
    settled: bool = False,
    frozen: bool = False,
    sparse: bool = False,
) -> Targets:
    """Targets with their rows in the order of X."""
    refuse_masked(X, "X")
    refuse_masked(y, "y")
    if y is None:
        raise InputError(
            "`y` must hold the true labelsets: this estimator requires y to be passed, but the "
            "target y is None. Without a truth use `as_distribution`."
        )
    refuse_dicts(y, "y")
    y = order_like(y, X)
    if is_vector(y):
        vector = column_or_1d(y)
        assert_all_finite(vector, input_name="y")
        classes = _two_classes(vector)
        name = getattr(y, "name", None)
        labelsets = (classes[1] == vector).astype(np.int8)[:, np.newaxis]
        return Targets(labelsets, None if name is None else (str(name),), classes=classes)
    parsed = ParsedLabelsets.read(y, "y")
    names = parsed.label_names
    if frozen or parsed.sets is not None:
        names = label_names or names
        names = names if settled or parsed.sets is None else parsed.names_in_sets
    rows = parsed.to_rows(names, beside="the model", sparse=sparse)
    dtype = np.asarray(y[:0]).dtype if hasattr(y, "columns") else getattr(y, "dtype", None)
    if not isinstance(dtype, np.dtype) or dtype.kind not in "biuf":  # a tensor's, or of texts
        dtype = np.dtype(int)
    return Targets(rows, names, classes=_classes_of_labelsets(dtype, rows.shape[1], sparse))


def align_truth(
    classes: Classes, y: LabelsetsLike, dist: LabelsetDistribution, name: str = "y"
) -> Labelsets:
    """True labelsets of new instances, (n, L), in the order of their labels and rows."""
    if isinstance(classes, list):
        return dist._align_truth(y, name)
    rows = read_classes(y, classes, name)
    check_shape(rows.shape, name, len(dist), 1)
    order = align_rows(index_of(y), dist.index, name=name, beside="X")
    return rows if order is None else rows[order]


def to_classes(labelsets: Labelsets, classes: Classes) -> Array:
    """Labelsets in the form of y: (n, L) of its type, or (n,) classes."""
    if isinstance(classes, list):
        return labelsets.astype(classes[0].dtype)
    return classes[labelsets[:, 0]]


def read_classes(y: LabelsetsLike, classes: NDArray[np.generic], name: str) -> Labelsets:
    """Vector of a model's two classes as (n, 1) labelsets. Raises InputError for other classes."""
    import pandas as pd

    values = np.asarray(as_table(y))
    values = values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values
    if values.ndim != 1:
        raise InputError(f"`{name}` must be a vector of classes, got shape {values.shape}.")
    unknown = np.flatnonzero(~pd.Series(values).isin(list(classes)))
    if len(unknown):
        raise InputError(
            f"`{name}` must hold the model's classes {classes[0]!r} and {classes[1]!r}, got "
            f"{values[unknown[0]]!r} in row {unknown[0]}."
        )
    return (values == classes[1]).astype(np.int8)[:, np.newaxis]


def weighted_mean(values: Any, sample_weight: Any, dist: LabelsetDistribution) -> float:
    """Weighted mean over instances, by checked and aligned weights."""
    if sample_weight is None:
        return float(np.mean(values))
    return float(np.average(values, weights=check_weights(sample_weight, len(dist), dist.index)))


def _classes_of_labelsets(dtype: Any, n_labels: int, sparse: bool = False) -> list[Array]:
    """[0, 1] for each label; one entry for all where they are very many."""
    n_entries = 1 if sparse and n_labels > MAX_WRITTEN_NAMES else n_labels
    return [np.array([0, 1], dtype=dtype)] * n_entries


def _two_classes(y: NDArray[np.generic]) -> Array:
    kind = type_of_target(y, input_name="y")
    if kind != "binary":
        raise InputError(
            f"Unknown label type: {kind}. Only binary classification is supported. Pass `y` as a "
            "vector of two classes, or as zeros and ones of shape (n_samples, n_labels); "
            "`read_labelsets(y, sep=';')` reads texts that name several labels."
        )
    classes = np.unique(y)
    if len(classes) == 2:
        return classes
    if classes.dtype.kind in "biuf" and classes[0] in (0, 1):
        return np.array([0, 1], dtype=classes.dtype)
    raise InputError(
        f"`y` as a vector must have two classes, got only {classes[0]!r}. Pass zeros and ones, of "
        "which one may be missing."
    )
