"""`PrecomputedProbabilities`: an estimator whose X holds the predictions of another system."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self, cast

import numpy as np
from sklearn.utils.validation import check_is_fitted

from labelsure._runtime.arguments import read_choice
from labelsure._runtime.typing import FeaturesLike, LabelNames, LabelsetsLike, Names
from labelsure.classifiers._predicted_probabilities import (
    KINDS,
    SCALES,
    read_array,
    tabulate_scores,
    wrap_probabilities,
)
from labelsure.classifiers._predictor import LabelsetPredictor, index_of_batch, read_truth
from labelsure.distributions._base import LabelsetDistribution
from labelsure.distributions._independent_labels import IndependentLabels
from labelsure.distributions._labelset_table import LabelsetTable
from labelsure.distributions._smoothed_table import SmoothedTable
from labelsure.errors import InputError
from labelsure.labelsets.answers import are_answers
from labelsure.labelsets.codes import from_codes
from labelsure.labelsets.foreign import as_table, index_of, names_in
from labelsure.labelsets.label_names import read_names
from labelsure.labelsets.names import ParsedLabelsets, check_weights, match_labels
from labelsure.labelsets.reading import check_shape
from labelsure.labelsets.sparse import is_sparse

ANSWERS = "answers"  # the column of a table that lists answers beside a probability for each label


HALF = 0.5  # of each of two sources, before their weights are fitted


def _has_answers(X: FeaturesLike) -> bool:
    """Whether X lists answers, alone or beside a column of probabilities for each label."""
    return are_answers(X) or (hasattr(X, "columns") and ANSWERS in X.columns)


class PrecomputedProbabilities(LabelsetPredictor):
    """Stand-in for a classifier: X holds the probabilities that another system predicted.

    Use it wherever a classifier is expected. `fit` learns nothing but the names of the labels.

    Parameters
    ----------
    kind
        What X holds:

        - "marginal": (n, L) probabilities P(y_j = 1), clipped to [2**-24, 1 - 2**-24]; or a scipy
          sparse matrix of those that are listed out of very many labels, see
          `SparseIndependentLabels`;
        - "logit": (n, L) logits of these, likewise;
        - "logprob": (n, L) logarithms of these;
        - of these three also what is said of each instance as a dict ``{label: number}``, as pairs
          ``[{"label": ..., "score": ...}, ...]`` in any order, or as JSON text of these. A label's
          number may be ``{"yes": ..., "no": ...}``, which is normalised over both;
        - "joint": (n, 2**L) probabilities of all labelsets, in the order of their codes;
        - "votes": (n, n_votes, L) zeros and ones, one labelset for each vote. Where instances
          have different numbers of votes, a row of NaN stands for one that was not cast. Or for
          each instance a list of answers, which are lists of label names: see
          `LabelsetTable.from_samples`. A DataFrame with such lists in a column "answers" and a
          column of probabilities for each label holds two sources; `VoteSmoothing` weighs them.
    label_names
        The labels, in the order of the columns, where neither X nor y names them: for sparse
        matrices, and for answers beside a y that is no DataFrame.
    floor
        How probable each label is that is not listed. None: in a sparse matrix 2**-24, see
        `SparseIndependentLabels`; for dicts and pairs a label that is missing is refused.
    unknown
        What to do with names in answers that are no label: "refuse" them, or "drop" them with a
        warning that counts them.

    Attributes
    ----------
    classes_
        [0, 1] for each label, or the two values of a vector y; of more than 10,000 sparse labels
        one entry for all.
    label_names_
        The columns of a DataFrame y; otherwise those of a DataFrame X of marginals or logits,
        otherwise None. Predictions have their labels in this order.
    column_names_
        The labels in the order that the columns of X had in `fit`: those of a DataFrame of
        marginals or logits, otherwise `label_names`.
    n_features_in_
        How many columns X has (the labels of a vote).

    See Also
    --------
    as_distribution : The same without `fit`, for one array.
    AccuracyAwareClassifier : Takes this in place of a classifier.

    Examples
    --------
    >>> P = [[0.9, 0.2], [0.3, 0.8], [0.6, 0.6]]
    >>> model = PrecomputedProbabilities().fit(P, [[1, 0], [0, 1], [1, 0]])
    >>> model.predict(P)
    array([[1, 0],
           [0, 1],
           [1, 1]])
    >>> model.predict_distribution(P)
    IndependentLabels(n_samples=3, n_labels=2)
    """

    def __init__(
        self,
        kind: str = "marginal",
        label_names: Names = None,
        floor: float | None = None,
        unknown: str = "drop",
    ) -> None:
        self.kind = kind
        self.label_names = label_names
        self.floor = floor
        self.unknown = unknown

    def fit(self, X: FeaturesLike, y: LabelsetsLike, sample_weight: object = None) -> Self:
        """Check that X and y belong together and keep the names of the labels.

        Parameters
        ----------
        X
            What the other system predicted, of the `kind`.
        y
            (n, L) zeros and ones, a DataFrame (whose columns name the labels) or sparse; for each
            instance the names of its labels, where X is a DataFrame; or a vector of two classes,
            which is the case of one label. The columns of two DataFrames are matched by name,
            those of arrays by position.
        sample_weight
            (n,) weights of the instances, which are checked and change nothing.
        """
        names = self.label_names_of(X)
        if names is None and _has_answers(X):
            names = ParsedLabelsets.read(y, "y").label_names
        dist = self._wrap(self._check_shape(self._tabulate(X, names)), names)
        column_names, n_labels = dist.label_names, dist.n_labels
        truth = read_truth(y, X, label_names=column_names, settled=True, sparse=dist.sparse_rows)
        check_shape(truth.shape, "y", len(dist), n_labels)
        if truth.is_vector or truth.label_names is None:
            truth = replace(truth, label_names=column_names or truth.label_names)
        elif column_names is not None:
            match_labels(truth.label_names, column_names, "y", "`X`")
        if sample_weight is not None:
            check_weights(sample_weight, len(dist), index_of_batch(X, y))
        self.n_features_in_ = 2**n_labels if self.kind == "joint" else n_labels
        self.n_labels_ = n_labels
        self.classes_, self.column_names_ = truth.classes, column_names
        self.label_names_ = truth.label_names
        return self

    def predict_distribution(self, X: FeaturesLike) -> LabelsetDistribution:
        """Distributions over labelsets for the predictions in X.

        Parameters
        ----------
        X
            As in `fit`; the columns of a DataFrame may be in another order.
        """
        check_is_fitted(self)
        return self._distribution_of_checked(X)

    def _distribution_of_checked(self, X: FeaturesLike) -> LabelsetDistribution:
        """Distributions for the predictions in X. Raises InputError for a wrong shape or name."""
        X = self._tabulate(X, self.label_names_)
        array = self._check_shape(X)
        if not _has_answers(array):
            array = self._order_columns(array, self._names_of_columns(X))
        return self._wrap(array, self.label_names_)._with_index(index_of(X))

    def _order_columns(self, array: Any, own: LabelNames) -> Any:
        """Predictions with columns in the order of the labels; those of arrays are as in `fit`."""
        if own is None or self.label_names_ is None:
            own = self.column_names_
            if array.shape[-1] != self.n_features_in_:
                raise InputError(
                    f"`X` must have {self.n_features_in_} columns as in `fit`, got "
                    f"{array.shape[-1]}. Pass predictions of the same {self.n_labels_} labels."
                )
        if own is None or self.label_names_ is None or own == self.label_names_:
            return array
        order = match_labels(own, self.label_names_, "X", "the fitted model")
        if self.kind == "joint":  # columns are codes of labelsets
            order = from_codes(np.arange(2**self.n_labels_), self.n_labels_) @ (1 << order)
        return array[:, order] if is_sparse(array) else array[..., order]

    def _check_shape(self, X: FeaturesLike) -> FeaturesLike:
        read_choice(self.kind, "kind", KINDS)
        read_choice(self.unknown, "value of `unknown`", ("refuse", "drop"))
        if self.kind == "votes" and _has_answers(X):
            return X  # read where the labels are known
        array = X if is_sparse(X) and self.kind in SCALES else read_array(as_table(X), "X")
        middle = ", n_votes" if self.kind == "votes" else ""
        if array.ndim != (3 if middle else 2):
            raise InputError(
                f"`X` must have shape (n_samples{middle}, n_columns) for kind={self.kind!r}, got "
                f"shape {array.shape}."
            )
        return array

    def _tabulate(self, X: FeaturesLike, label_names: Names) -> FeaturesLike:
        return tabulate_scores(X, label_names, self.kind, "X", self.floor)

    def label_names_of(self, X: FeaturesLike) -> LabelNames:
        """Names that X or the parameters give to the columns of X; None for none."""
        names = self._names_of_columns(self._tabulate(X, self.label_names))
        return read_names(self.label_names) if names is None else names

    def _names_of_columns(self, X: FeaturesLike) -> LabelNames:
        """Labels that a DataFrame names; None where columns go by position."""
        names = names_in(X) if self.kind in SCALES or _has_answers(X) else None
        return None if names is None else tuple(name for name in names if name != ANSWERS)

    def _wrap(self, array: Any, label_names: Names) -> LabelsetDistribution:
        if hasattr(array, "columns"):
            votes = cast(LabelsetTable, self._wrap(array[ANSWERS], label_names))
            independent = wrap_probabilities(array.drop(columns=ANSWERS), label_names=label_names)
            return SmoothedTable(votes, cast(IndependentLabels, independent), HALF)
        if are_answers(array) and label_names is None:
            raise InputError(
                "`X` lists label names, but nothing says which labels there are. Pass "
                "`label_names`, or `y` as a DataFrame with a column for each label."
            )
        return wrap_probabilities(
            array,
            kind=self.kind,
            label_names=label_names,
            name="X",
            floor=self.floor,
            unknown=self.unknown,
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        tags.input_tags.two_d_array = self.kind != "votes"
        tags.input_tags.three_d_array = self.kind == "votes"
        return tags
