"""`Predictor`: from X to distributions and decisions, without estimates of accuracy."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from labelsure._runtime import limits as _limits
from labelsure._runtime.typing import (
    Estimator,
    FeaturesLike,
    LabelNames,
    Labelsets,
    LabelsetsLike,
    Mask,
    RowsLike,
)
from labelsure.classifiers._adapters import as_distribution
from labelsure.classifiers._inner_models import innermost, known_label_names
from labelsure.classifiers._precomputed import PrecomputedProbabilities
from labelsure.classifiers._predictor import Classes, Targets, order_like, read_classes
from labelsure.classifiers.recalibration._base import Recalibration
from labelsure.classifiers.recalibration._constrained import ConstrainedCalibration
from labelsure.distributions._base import LabelsetDistribution
from labelsure.distributions._dense import DenseDistribution
from labelsure.distributions._independent_labels import IndependentLabels
from labelsure.errors import InputError
from labelsure.labelsets.foreign import count_rows, index_of, take_rows
from labelsure.labelsets.names import ParsedLabelsets
from labelsure.labelsets.reading import check_shape
from labelsure.labelsets.sparse import is_sparse
from labelsure.model._decision_rules import DecisionRule, predict_labelsets
from labelsure.model._input_ranges import InputRanges
from labelsure.model._inputs import InputColumns, as_batch, refuse_as_input
from labelsure.saving import CompactState

if TYPE_CHECKING:
    import pandas as pd

SMALL_JOINT = 2**23
"""Largest number of probabilities (64 MB) of a batch that is stored as a dense joint. Ten
chains of 14 labels: `estimate` of 500 rows takes 103 ms of CPU instead of 198 with 2**22."""


@dataclass(frozen=True)
class Labels(CompactState):
    """Labels of a model, and the form of y in `fit`.

    Parameters
    ----------
    classes
        For a vector y its two values; otherwise a list with [0, 1] of y's type for each label.
    names
        One for each label; None without names.
    n_labels
        Number of labels, L.
    """

    classes: Classes
    names: LabelNames
    n_labels: int

    @classmethod
    def of(cls, truth: Targets) -> Labels:
        """Labels of the y of `fit`."""
        return cls(truth.classes, truth.label_names, truth.n_labels)

    def of_fitted(self, estimator: Estimator) -> Labels:
        """Labels with the names of a fitted model, which may come from the columns of X."""
        names = known_label_names(estimator) if isinstance(self.classes, list) else None
        return self if names is None else replace(self, names=names)

    def read(self, y: LabelsetsLike, name: str, index: pd.Index | None = None) -> LabelsetsLike:
        """Truth as `LabelsetDistribution.align` takes it: a vector y becomes labelsets, (n, 1)."""
        if isinstance(self.classes, list):
            return y
        rows = read_classes(y, self.classes, name)
        if index is None:
            return rows
        import pandas as pd

        return pd.DataFrame(rows, index, self.names)

    def read_given(self, Y_pred: LabelsetsLike, X: FeaturesLike, truth: Labelsets) -> Labelsets:
        """Predictions of another system for the rows of `fit`, (n, L), in the order of X."""
        ordered = order_like(Y_pred, X)
        if isinstance(self.classes, list):
            parsed = ParsedLabelsets.read(ordered, "Y_pred")
            rows = parsed.to_rows(self.names, beside="`y`", sparse=is_sparse(truth))
        else:
            rows = read_classes(ordered, self.classes, "Y_pred")
        check_shape(rows.shape, "Y_pred", *truth.shape)
        return rows


@dataclass(frozen=True)
class Predictions:
    """Distributions of a batch and its decisions.

    Parameters
    ----------
    dist
        The distributions, with the index of X.
    decisions
        (n, L) predicted labelsets; None for the mode.
    outside
        (n,) name of the column in which a row lies far outside the rows of `fit`, else None; None
        where inputs are not checked.
    """

    dist: LabelsetDistribution
    decisions: Labelsets | None
    outside: NDArray[np.object_] | None = None

    @property
    def labelsets(self) -> Labelsets:
        """Predicted labelsets, (n, L)."""
        return self.dist.mode() if self.decisions is None else self.decisions

    def with_index(self, index: pd.Index) -> Predictions:
        """Predictions with another index."""
        return replace(self, dist=self.dist._with_index(index))

    def __len__(self) -> int:
        return len(self.dist)

    def __getitem__(self, rows: RowsLike) -> Predictions:
        decisions = None if self.decisions is None else self.decisions[rows]
        return Predictions(
            self.dist[rows], decisions, None if self.outside is None else self.outside[rows]
        )


@dataclass(frozen=True)
class Predictor:
    """A fitted classifier, its recalibration and its decision rule: from X to predictions.

    Parameters
    ----------
    estimator
        The fitted classifier.
    inputs
        Columns of X.
    labels
        Labels of the predictions.
    rule
        Decision rule.
    recalibration
        Fitted recalibration of the distributions; None without one.
    ranges
        Ranges of numeric columns; None where inputs are not checked.
    """

    estimator: Estimator
    inputs: InputColumns
    labels: Labels
    rule: DecisionRule
    recalibration: Recalibration | None = None
    ranges: InputRanges | None = None

    @property
    def judged(self) -> str:
        """Rule of the judged predictions, in words."""
        is_ruled = isinstance(self.recalibration, ConstrainedCalibration)
        obeys = is_ruled and self.rule.name not in ("predict", "given")
        return self.rule.title + (", valid labelsets only" if obeys else "")

    def predict_raw(self, X: FeaturesLike) -> LabelsetDistribution:
        """Distributions before recalibration, for X as `inputs.read` returns it."""
        if self.inputs.requirements is not None:
            return self.estimator._distribution_of_any(X)
        if count_rows(X) == 0 and not isinstance(self.estimator, PrecomputedProbabilities):
            # Models of other libraries raise errors for no rows.
            return IndependentLabels(np.empty((0, self.labels.n_labels)), self.labels.names)
        knows_names = hasattr(innermost(self.estimator), "predict_distribution")
        names = None if knows_names else self.labels.names
        with refuse_as_input():
            return as_distribution(self.estimator, X, label_names=names)

    def recalibrate(self, dist: LabelsetDistribution) -> LabelsetDistribution:
        """Recalibrated distributions."""
        return dist if self.recalibration is None else self.recalibration.transform(dist)

    def distribution(self, X: FeaturesLike) -> LabelsetDistribution:
        """Recalibrated distributions of a batch, with its index."""
        X = as_batch(X)
        return self.recalibrate(self.predict_raw(self.inputs.read(X)))._with_index(index_of(X))

    def predict_own(self, X: FeaturesLike) -> Labelsets:
        """Labelsets of the classifier's own `predict`, (n, L)."""
        checked = self.inputs.read(as_batch(X))
        return predict_labelsets(
            self.estimator, checked, self.predict_raw(take_rows(checked, slice(0, 1)))
        )

    def predict(
        self, X: FeaturesLike, Y_pred: LabelsetsLike = None, *, of_any_system: bool = False
    ) -> Predictions:
        """Predictions for a batch, by the rule or as passed in `Y_pred`.

        Raises InputError for `Y_pred` unless the model was fitted with some, or `of_any_system`.
        """
        if Y_pred is not None and not self.rule.takes_predictions and not of_any_system:
            raise InputError(
                "`Y_pred` must be None for a model that was fitted without `Y_pred`, got "
                f"predictions. This model judges {self.rule.title}. Fit with `fit(X, y, "
                "Y_pred=...)` to judge others, or label some rows: `estimate(X, Y_pred=..., "
                "rows=..., Y_true=...)`."
            )
        X = as_batch(X)
        checked = self.inputs.read(X)
        raw = self.predict_raw(checked)
        dist = make_small_dense(self.recalibrate(raw))._with_index(index_of(X))
        if Y_pred is not None:
            aligned = self.labels.read(Y_pred, "Y_pred", index_of(Y_pred))
            decisions: Labelsets | None = dist.align(aligned, "Y_pred")
        else:
            direct = self.rule.predict_direct(self.estimator, checked, raw)
            decisions = self.rule.choose(dist, direct)
        return Predictions(dist, decisions, self.find_outside(checked))

    def is_outside(self, X: FeaturesLike) -> Mask:
        """Mask of checked rows that lie far outside the rows of `fit`, (n,)."""
        columns = self.find_outside(X)
        return np.zeros(count_rows(X), dtype=bool) if columns is None else columns.astype(bool)

    def find_outside(self, X: FeaturesLike) -> NDArray[np.object_] | None:
        """Columns in which checked rows lie far outside the rows of `fit`, (n,), None within."""
        return None if self.ranges is None else self.ranges.find_outside(X, self.inputs.names)


def make_small_dense(dist: LabelsetDistribution) -> LabelsetDistribution:
    """Chains with a small joint as a dense distribution; others unchanged."""
    is_small = (
        dist.n_labels <= _limits.CHEAP_DENSE_LABELS and len(dist) << dist.n_labels <= SMALL_JOINT
    )
    if not dist._has_engines or not is_small or len(dist) == 0:
        return dist
    dense = DenseDistribution.from_trusted(dist._probabilities(), dist.label_names)
    dense._rules = dist.rules
    return dense
