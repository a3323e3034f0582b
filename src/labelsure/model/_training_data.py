"""The rows of `fit`: validation, splits and fitting of clones."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GroupKFold, KFold, check_cv
from sklearn.pipeline import Pipeline

from labelsure._runtime.typing import (
    CvLike,
    Estimator,
    FeaturesLike,
    Floats,
    Indices,
    Labelsets,
    LabelsetsLike,
    RandomState,
    Settings,
)
from labelsure.classifiers._adapters import without_probabilities
from labelsure.classifiers._base_learners import (
    check_takes_weights,
    find_weight_argument,
    is_search,
    name_missing_classes,
)
from labelsure.classifiers._inner_models import (
    innermost,
    is_prefit,
    read_instances,
    shape_for_estimator,
)
from labelsure.classifiers._predictor import LabelsetClassifier, index_of_batch
from labelsure.classifiers.recalibration._base import Recalibration, RecalibrationLike
from labelsure.classifiers.recalibration._constrained import ConstrainedCalibration
from labelsure.distributions._probabilities import make_random_state
from labelsure.distributions.constraints import LabelConstraints
from labelsure.errors import InputError, unknown_name
from labelsure.labelsets.foreign import count_rows, take_rows
from labelsure.labelsets.names import align_values, read_groups
from labelsure.metrics.clusters import number_clusters
from labelsure.model._inputs import InputColumns, as_batch, refuse_as_input
from labelsure.model._predictor import Labels

Folds = list[tuple[Indices, Indices]]
"""The training and the test rows of each fold."""


@dataclass(frozen=True)
class TrainingData:
    """The rows of `fit`, checked and aligned.

    Parameters
    ----------
    X
        n rows, unchanged, or as an array for this package's classifiers.
    Y
        (n, L) true labelsets.
    y
        True labelsets in the form that the estimator is fitted with.
    labels
        Names and classes of the labels.
    inputs
        Columns of X.
    params
        Further arguments of the estimator's `fit`.
    groups
        (n,) the group of each row, or None.
    Y_pred
        (n, L) predictions of another system, or None.
    """

    X: FeaturesLike
    Y: Labelsets
    y: LabelsetsLike
    labels: Labels
    inputs: InputColumns
    params: Settings
    groups: ArrayLike | None = None
    Y_pred: Labelsets | None = None

    @classmethod
    def read(
        cls,
        X: FeaturesLike,
        y: LabelsetsLike,
        estimator: Estimator,
        requirements: Settings,
        params: Settings,
        *,
        groups: ArrayLike | None = None,
        Y_pred: LabelsetsLike = None,
    ) -> TrainingData:
        """Checked arguments of `fit`, aligned with X. Raises InputError."""
        batch = as_batch(X)
        index = index_of_batch(batch, y)
        params = {
            name: align_values(value, index, name=name, beside="`X`")
            for name, value in params.items()
        }
        groups = align_values(groups, index, name="groups", beside="`X`")
        with refuse_as_input():
            X, truth = read_instances(batch, y, estimator)
        n_rows = len(truth)
        for name, values in (("groups", groups), ("sample_weight", params.get("sample_weight"))):
            if values is not None and np.asarray(values).shape != (n_rows,):
                raise InputError(
                    f"`{name}` must have one entry for each of the {n_rows} rows, got shape "
                    f"{np.asarray(values).shape}."
                )
        if groups is not None:
            read_groups(groups)
        if "sample_weight" in params and not is_prefit(estimator):
            check_takes_weights(estimator)
        labels, inputs = Labels.of(truth), InputColumns.of(X, estimator, requirements)
        keeps_names = hasattr(innermost(estimator), "predict_distribution")
        X = inputs.read(X)
        shaped = shape_for_estimator(truth, X, with_names=keeps_names)
        predictions = None if Y_pred is None else labels.read_given(Y_pred, batch, truth.labelsets)
        return cls(X, truth.labelsets, shaped, labels, inputs, params, groups, predictions)

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return int(self.Y.shape[0])

    def weights(self, rows: Indices) -> Floats | None:
        """Sample weights of the rows at some positions; None without weights."""
        weights = self.params.get("sample_weight")
        return None if weights is None else np.asarray(weights)[rows]

    def clusters(self, rows: Indices) -> Indices | None:
        """Cluster numbers of the rows at some positions; None without groups."""
        return None if self.groups is None else number_clusters(read_groups(self.groups))[rows]


def check_inner_model(model: Estimator) -> None:
    """Raise InputError unless the model has `fit` and, as far as visible, probabilities."""
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
    if any(hasattr(part, name) for part in (model, inner) for name in PROBABILITY_METHODS):
        return
    learner = getattr(inner, "estimator", inner)  # of MultiOutputClassifier and the like
    # Some models have `predict_proba` only once fitted; those with scores alone never do.
    if hasattr(learner, "decision_function") and not _is_search(model):
        raise without_probabilities(inner, "`estimator`")


PROBABILITY_METHODS = ("predict_distribution", "predict_proba")


def _is_search(model: Estimator) -> bool:
    """Whether the model is a search, whose best estimator may differ from its `estimator`."""
    inner = model.steps[-1][1] if isinstance(model, Pipeline) else model
    return is_search(inner)


def is_share(cv: object) -> bool:
    """Whether `cv` is a share of rows to hold out, not a number of folds."""
    return isinstance(cv, Real) and not isinstance(cv, Integral)


def check_cv_setting(cv: CvLike) -> None:
    """Raise InputError for shares outside (0, 1) and for fewer than two folds."""
    if is_share(cv) and not 0 < cv < 1:
        raise InputError(
            f"`cv` as a share of held-out rows must lie between 0 and 1, got {cv!r}. "
            "A whole number is a number of folds."
        )
    if isinstance(cv, Integral) and (isinstance(cv, bool) or cv < 2):
        raise InputError(
            f"`cv` as a number of folds must be at least 2, got {cv!r}. A share such as 0.4 holds "
            "rows out."
        )


def check_recalibration(setting: RecalibrationLike, constraints: LabelConstraints | None) -> None:
    """Raise InputError unless "auto", None or, without constraints, a recalibration."""
    if constraints is not None:
        ConstrainedCalibration(constraints)._check_parameters()
        if isinstance(setting, Recalibration):
            raise InputError(
                '`recalibration` must be "auto" or None with `constraints`, got a '
                f"{type(setting).__name__}. Constraints bring a calibration of their own."
            )
    if isinstance(setting, str) and setting != "auto":
        raise unknown_name("recalibration", setting, ("auto",))
    if setting is not None and not isinstance(setting, (str, Recalibration)):
        raise InputError(
            '`recalibration` must be "auto", None or an object such as '
            f"`TemperatureScaling(gate=False)`, got {setting!r}."
        )


def fit_clone(estimator: Estimator, data: TrainingData, rows: Indices) -> Estimator:
    """Clone fitted to the rows at some positions; a frozen model unchanged."""
    estimator = clone(estimator)
    if isinstance(estimator, FrozenEstimator):
        return estimator
    X = take_rows(data.X, rows)
    if isinstance(estimator, LabelsetClassifier) and not data.params:
        return estimator._fit_checked(X, data.Y[rows], data.labels.names)
    params = {
        name: take_rows(value, rows) if _is_by_row(value, data) else value
        for name, value in data.params.items()
    }
    if "sample_weight" in params:  # of a pipeline, those of its last step
        weights = params.pop("sample_weight")
        params |= {find_weight_argument(estimator) or "sample_weight": weights}
    with name_missing_classes(estimator, data.Y[rows], data.labels.names):
        return estimator.fit(X, take_rows(data.y, rows), **params)


def _is_by_row(value: object, data: TrainingData) -> bool:
    """Whether a parameter of `fit` has one entry for each row."""
    has_rows = any(hasattr(value, name) for name in ("shape", "__array__", "__getitem__"))
    is_mapping_or_text = isinstance(value, str) or (
        hasattr(value, "keys") and not hasattr(value, "shape")
    )
    return has_rows and not is_mapping_or_text and count_rows(value) == count_rows(data.Y)


def make_folds(data: TrainingData, cv: object, seed: RandomState) -> Folds:
    """Training and test rows of each fold; whole groups where there are groups."""
    if not isinstance(cv, Integral):
        with refuse_as_input():
            folds = check_cv(cv).split(data.X, data.y, data.groups)
            return [(train, test) for train, test in folds]
    rows, generator = np.empty(data.n_samples), make_random_state(seed)
    if data.groups is not None:
        splitter = GroupKFold(int(cv), shuffle=True, random_state=generator)
        return list(splitter.split(rows, groups=data.groups))
    n_folds = min(int(cv), data.n_samples)
    return list(KFold(n_folds, shuffle=True, random_state=generator).split(rows))


def hold_out(
    data: TrainingData, share: float, n_needed: int, seed: RandomState
) -> tuple[Indices, Indices]:
    """Held-out and training rows in random order; the rows of a group stay together.

    A share of 1 holds out every row, as for a model that needs no training.
    """
    order = make_random_state(seed).permutation(data.n_samples)
    order = _keep_groups(order, data.groups)
    n_held_out = len(order)
    if share < 1:
        n_held_out = cut_by_groups(order, round(share * len(order)), data.groups)
    if n_held_out < n_needed or (share < 1 and len(order) - n_held_out < 2):
        raise InputError(
            f"`cv` as a share must hold out at least {n_needed} rows and leave 2 for training, "
            f"cv={share:g} holds out {n_held_out} of {len(order)}. Change the share, use cv=5, or "
            "fit to more rows."
        )
    return order[:n_held_out], order[n_held_out:]


def _keep_groups(order: Indices, groups: object) -> Indices:
    """Positions with the rows of a group in succession."""
    if groups is None:
        return order
    _, group = np.unique(np.asarray(groups)[order], return_inverse=True)
    _, first = np.unique(group, return_index=True)
    return order[np.argsort(first[group], kind="stable")]


def cut_by_groups(order: Indices, wanted: int, groups: object) -> int:
    """Length of the prefix nearest to `wanted` rows that splits no group."""
    if groups is None:
        return wanted
    group = np.asarray(groups)[order]
    ends = np.flatnonzero(group[1:] != group[:-1]) + 1
    if len(ends) == 0:
        raise InputError(
            "`groups` must name at least two groups, so that one can be held out, got one in the "
            "rows to split."
        )
    return int(ends[np.argmin(np.abs(ends - wanted))])


def fold_ends(order: Indices, n_folds: int, groups: object) -> Indices:
    """Ends of about equal folds that split no group, (n_folds + 1,) or fewer, from 0 on."""
    wanted = np.linspace(0, len(order), n_folds + 1).astype(np.intp)
    if groups is None:
        return wanted
    group = np.asarray(groups)[order]
    group_ends = np.flatnonzero(np.concatenate([[True], group[1:] != group[:-1], [True]]))
    nearest = np.abs(group_ends[:, np.newaxis] - wanted).argmin(axis=0)
    return np.unique(group_ends[nearest])
