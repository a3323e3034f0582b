"""How the model inside an aware classifier is fitted, and scored on rows that it has not seen."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GroupKFold, KFold, check_cv
from sklearn.pipeline import Pipeline

from labelsure._runtime.typing import Indices, LabelNames, Labelsets
from labelsure.classifiers._adapters import innermost, without_probabilities
from labelsure.classifiers._base_learners import is_search, name_missing_classes
from labelsure.classifiers._predictor import LabelsetClassifier, read_classes
from labelsure.classifiers.recalibration import Recalibration
from labelsure.distributions._base import LabelsetDistribution
from labelsure.distributions._probabilities import make_random_state
from labelsure.errors import InputError, unknown_name, warn
from labelsure.estimation._accuracy_model import LabelsetFrequencies
from labelsure.estimation._estimator import BatchSettings
from labelsure.estimation.score_table import ScoreTable
from labelsure.labelsets.rows import count_rows, index_of, is_sparse, take_rows

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class TrainingData:
    """What the aware classifier's `fit` got.

    Parameters
    ----------
    X
        n rows, as they came, or checked where the estimator is one of ours.
    Y
        (n, L) their labelsets.
    y
        The same in the form that the estimator is fitted with.
    params
        What else goes to its `fit`.
    groups
        The group of each row, or None.
    Y_pred
        (n, L) what another system predicts for them, or None.
    """

    X: Any
    Y: Labelsets
    y: Any
    params: dict[str, Any]
    groups: Any = None
    Y_pred: Labelsets | None = None

    @property
    def n_samples(self) -> int:
        """How many rows there are."""
        return int(self.Y.shape[0])


def check_inner_model(model: Any) -> None:
    """Refuse what cannot be fitted, and models that have scores but no probabilities."""
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
    return is_search(inner)


def with_labelsets(
    settings: BatchSettings, classes: Any, dist: LabelsetDistribution
) -> BatchSettings:
    """Return the settings of an estimate with the truth of some rows as labelsets."""
    if isinstance(classes, list):
        return settings
    import pandas as pd

    y = settings["Y_true"]
    labelsets = pd.DataFrame(read_classes(y, classes, "Y_true"), index_of(y), dist.label_names)
    return {**settings, "Y_true": labelsets}


MOST_SHARED = 0.25
"""Share of held-out rows that are training rows as well: at most 0.11 on random splits of the nine
sets (stare)."""

MIN_DISTINCT, MOST_AMBIGUOUS = 100, 0.05
"""Distinct features, and the share of them that occur with several labelsets: copies have the
labels of their original, rows of few categories do not."""

MOST_TRAINING, MOST_HELD_OUT = 20_000, 2_000  # rows that are compared

NEARLY_PERFECT = 0.98
"""Share of labelsets that are entirely right. On new rows of the nine sets forests, trees and
logistic regressions had at most 0.66, and a forest on digits 0.96; on their own training rows
13 of 18 forests and trees had more than 0.98, and no logistic regression."""

MIN_ROWS, MIN_LABELS = 30, 3  # fewer can all be right


def as_batch(X: Any) -> Any:
    """Return records, a list of dicts, as a DataFrame; anything else as it is."""
    if isinstance(X, list) and X and all(isinstance(row, dict) for row in X):
        import pandas as pd

        return pd.DataFrame(X)
    return X


def warn_of_shared_rows(data: TrainingData, training: Indices, held_out: Indices) -> None:
    """Warn where many held-out rows are identical to training rows."""
    import pandas as pd

    known = _fingerprints(data, training[:MOST_TRAINING])
    asked = _fingerprints(data, held_out[:MOST_HELD_OUT])
    if known is None or asked is None:
        return
    n_labelsets = known.drop_duplicates().groupby("features").size()
    if len(n_labelsets) < MIN_DISTINCT or (n_labelsets > 1).mean() > MOST_AMBIGUOUS:
        return  # few values, as of categories: rows are alike without being copies
    shared = pd.MultiIndex.from_frame(asked).isin(pd.MultiIndex.from_frame(known)).mean()
    if shared > MOST_SHARED:
        warn(
            f"{shared:.0%} of the held-out rows are identical to training rows, features "
            "and labels. Estimates and guarantees hold for rows that the model was not "
            "trained on: drop duplicates, or keep each group of them in one part by `groups=`.",
            UserWarning,
        )


def warn_of_perfection(table: ScoreTable, n_labels: int) -> None:
    """Ask whether a model that was fitted elsewhere has seen these rows."""
    if len(table) < MIN_ROWS or n_labels < MIN_LABELS:
        return
    exact = float(table.accuracy("exact", 1.0).mean())
    if exact >= NEARLY_PERFECT:
        warn(
            f"{exact:.1%} of the {len(table)} labelsets are predicted entirely right, as models do "
            "on rows that they were trained on. Was this model trained on some of them? Then "
            "estimates and guarantees are too high: calibrate with rows that it has not seen.",
            UserWarning,
        )


def _is_of_instances(value: Any, data: TrainingData) -> bool:
    """Whether a parameter of `fit` has one entry for each row."""
    has_rows = any(hasattr(value, name) for name in ("shape", "__array__", "__getitem__"))
    is_other = isinstance(value, str) or (hasattr(value, "keys") and not hasattr(value, "shape"))
    return has_rows and not is_other and count_rows(value) == count_rows(data.Y)


def _fingerprints(data: TrainingData, rows: Indices) -> pd.DataFrame | None:
    """Return what is equal for identical features and labels; None of X without such rows."""
    import pandas as pd

    features: Any
    X = take_rows(data.X, rows)
    if hasattr(X, "iloc"):
        try:
            features = pd.util.hash_pandas_object(X, index=False).to_numpy()
        except TypeError:  # cells that cannot be hashed
            return None
    elif is_sparse(X) or getattr(getattr(X, "dtype", None), "kind", "") in tuple("biuf"):
        features = _project(X)
    elif isinstance(X, list) and all(isinstance(text, str) for text in X):
        features = X
    else:
        return None
    keys = pd.DataFrame({"features": features, "labels": _project(data.Y[rows])})
    return keys.dropna()  # rows with missing values have no number


def _project(rows: Any) -> Any:
    """Return a number for each row, which others than identical rows hardly share."""
    return (rows @ np.random.default_rng(0).normal(size=rows.shape[1])).astype(np.float32)


Folds = list[tuple[Indices, Indices]]
"""The training and the test rows of each fold."""


@dataclass(frozen=True)
class NewRows:
    """Distributions of rows that a model was not fitted to, and their truth.

    Parameters
    ----------
    dist
        Of these rows.
    truth
        (n, L) their labelsets.
    given
        (n, L) what else is predicted for them: by the model's own `predict`, or as `Y_pred`.
    seen
        The labelsets that the model was fitted to; None if it was fitted elsewhere.
    weights
        (n,) of these rows, or None.
    """

    dist: LabelsetDistribution
    truth: Labelsets
    given: Labelsets | None
    seen: LabelsetFrequencies | None
    weights: Any = None

    def __len__(self) -> int:
        return len(self.dist)

    def __getitem__(self, rows: slice) -> NewRows:
        given = None if self.given is None else self.given[rows]
        weights = None if self.weights is None else self.weights[rows]
        return NewRows(self.dist[rows], self.truth[rows], given, self.seen, weights)


def is_share(cv: Any) -> bool:
    """Whether `cv` is a share of rows to hold out, and no number of folds."""
    return isinstance(cv, Real) and not isinstance(cv, Integral)


def check_cv_setting(cv: Any) -> None:
    """Refuse shares outside of (0, 1) and fewer than two folds."""
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


def check_recalibration(setting: Any) -> None:
    """Refuse what is neither "auto", None nor a recalibration."""
    if isinstance(setting, str) and setting != "auto":
        raise unknown_name("recalibration", setting, ("auto",))
    if setting is not None and not isinstance(setting, (str, Recalibration)):
        raise InputError(
            '`recalibration` must be "auto", None or an object such as '
            f"`TemperatureScaling(gate=False)`, got {setting!r}."
        )


def fit_clone(estimator: Any, data: TrainingData, rows: Indices, label_names: LabelNames) -> Any:
    """Return a clone that is fitted to some of the rows; a frozen model stays as it is."""
    estimator = clone(estimator)
    if isinstance(estimator, FrozenEstimator):
        return estimator
    X = take_rows(data.X, rows)
    if isinstance(estimator, LabelsetClassifier) and not data.params:
        return estimator._fit_checked(X, data.Y[rows], label_names)
    params = {
        name: take_rows(value, rows) if _is_of_instances(value, data) else value
        for name, value in data.params.items()
    }
    with name_missing_classes(estimator, data.Y[rows], label_names):
        return estimator.fit(X, take_rows(data.y, rows), **params)


def make_folds(data: TrainingData, cv: Any, seed: Any) -> Folds:
    """Return the rows of each fold; whole groups where there are groups."""
    if not isinstance(cv, Integral):
        return list(check_cv(cv).split(data.X, data.y, data.groups))
    rows, generator = np.empty(data.n_samples), make_random_state(seed)
    if data.groups is not None:
        splitter = GroupKFold(int(cv), shuffle=True, random_state=generator)
        return list(splitter.split(rows, groups=data.groups))
    n_folds = min(int(cv), data.n_samples)
    return list(KFold(n_folds, shuffle=True, random_state=generator).split(rows))


def hold_out(data: TrainingData, share: float, n_needed: int, seed: Any) -> tuple[Indices, Indices]:
    """Return held-out and training rows in random order; the rows of a group stay together.

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


def _keep_groups(order: Indices, groups: Any) -> Indices:
    """Return the rows with those of each group one after the other."""
    if groups is None:
        return order
    _, group = np.unique(np.asarray(groups)[order], return_inverse=True)
    _, first = np.unique(group, return_index=True)
    return order[np.argsort(first[group], kind="stable")]


def cut_by_groups(order: Indices, wanted: int, groups: Any) -> int:
    """Return the number of first rows that is nearest to what is wanted and cuts no group."""
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
