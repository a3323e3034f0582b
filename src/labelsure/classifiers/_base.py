"""What all four classifiers share: validation, and predictions from the distribution."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted, validate_data

from labelsure._typing import Floats, Labelsets
from labelsure.classifiers._learners import Features, check_learner
from labelsure.classifiers._targets import label_names_of, read_targets
from labelsure.classifiers._weights import check_takes_weights, check_weights
from labelsure.distributions import LabelsetDistribution


class LabelsetClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """A multi-label classifier that predicts a distribution over labelsets.

    A new one implements `_fit_checked` and `_distribution`, and has parameters called `estimator`
    and, for what is fitted in parallel, `n_jobs`.
    """

    estimator: Any
    label_names_: tuple[str, ...]
    classes_: NDArray[Any] | list[NDArray[Any]]

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the base learners.

        Parameters
        ----------
        X
            (n, d) array, DataFrame or scipy sparse matrix.
        y
            (n, L) zeros and ones, a DataFrame (whose columns name the labels) or sparse; or a
            vector of two classes, which is the case of one label.
        sample_weight
            (n,) weights of the instances. A weight of 0 is as if the instance was not there.
        """
        learner = check_learner(self.estimator)
        X, Y = validate_data(self, X, y, multi_output=True, **self._accepted())
        targets = read_targets(Y)
        self.classes_ = targets.classes
        self.label_names_ = label_names_of(y, targets.labelsets.shape[1])
        Y = targets.labelsets
        if sample_weight is not None:
            weights = check_weights(sample_weight, len(Y))
            some = weights > 0
            X, Y, sample_weight = X[some], Y[some], weights[some]
            if self._passes_weights_on():
                check_takes_weights(learner)
        self._fit_checked(learner, X, Y, sample_weight)
        return self

    def predict_distribution(self, X: Any) -> LabelsetDistribution:
        """Return P(Y|x) of each instance.

        Parameters
        ----------
        X
            (n, d) array, DataFrame or scipy sparse matrix.
        """
        check_is_fitted(self)
        return self._distribution(validate_data(self, X, reset=False, **self._accepted()))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable labelset of each instance.

        Parameters
        ----------
        X
            (n, d) array, DataFrame or scipy sparse matrix.

        Returns
        -------
        numpy.ndarray of shape (n, L), or (n,) where `fit` was given a vector
        """
        mode = self.predict_distribution(X).mode()
        if isinstance(self.classes_, list):
            return mode.astype(self.classes_[0].dtype)
        return self.classes_[mode[:, 0]]

    def predict_proba(self, X: Any) -> Floats:
        """Return the marginals of the distribution, P(y_j = 1).

        Parameters
        ----------
        X
            (n, d) array, DataFrame or scipy sparse matrix.

        Returns
        -------
        numpy.ndarray of shape (n, L); where `fit` was given a vector, the probabilities of its two
        classes, (n, 2)
        """
        marginals = self.predict_distribution(X).marginals()
        if isinstance(self.classes_, list):
            return marginals
        return np.column_stack([1 - marginals[:, 0], marginals[:, 0]])

    @abstractmethod
    def _fit_checked(
        self, learner: Any, X: Features, Y: Labelsets, sample_weight: Floats | None
    ) -> None:
        """Fit clones of `learner`; everything is checked and no weight is 0."""

    @abstractmethod
    def _distribution(self, X: Features) -> LabelsetDistribution: ...

    def _passes_weights_on(self) -> bool:
        """Whether base learners are given the weights."""
        return True

    def _accepted(self) -> dict[str, Any]:
        """Return how X is validated.

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
        if hasattr(self.estimator, "__sklearn_tags__") and not isinstance(self.estimator, type):
            base = get_tags(self.estimator).input_tags
            tags.input_tags.sparse, tags.input_tags.allow_nan = base.sparse, base.allow_nan
        return tags
