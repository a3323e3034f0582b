"""`ClassifierTrellis`: labels in a grid, each depending on its neighbours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from labelsure._typing import Floats, Labelsets
from labelsure.classifiers._base import LabelsetClassifier
from labelsure.classifiers._grid import (
    DENSITIES,
    Parents,
    default_width,
    grid_parents,
    mutual_information,
    place_by_information,
)
from labelsure.classifiers._learners import (
    MAX_SEED,
    Features,
    LabelTask,
    append_labels,
    fit_learners,
    positive_probability,
)
from labelsure.classifiers._permutation import check_permutation
from labelsure.distributions import TrellisDistribution
from labelsure.errors import InputError, unknown_name
from labelsure.labelsets import from_codes

Placement = Callable[
    [Labelsets, Floats | None, Parents, np.random.RandomState], NDArray[np.integer[Any]]
]


def _by_information(
    Y: Labelsets, weights: Floats | None, parents: Parents, generator: np.random.RandomState
) -> NDArray[np.integer[Any]]:
    corner = int(generator.randint(Y.shape[1]))
    return place_by_information(mutual_information(Y, weights), parents, corner)


def _at_random(
    Y: Labelsets, weights: Floats | None, parents: Parents, generator: np.random.RandomState
) -> NDArray[np.integer[Any]]:
    return generator.permutation(Y.shape[1])


_PLACEMENTS: dict[str, Placement] = {"mutual_info": _by_information, "random": _at_random}


class ClassifierTrellis(LabelsetClassifier):
    """Labels in a grid: each depends on its neighbours to the left and above.

    Parameters
    ----------
    estimator
        Base learner with `predict_proba`; None means logistic regression.
    width
        Labels in a row; None means the square root of their number, at most 12. Exact answers
        cost 2**width for each label.
    density
        1: parents are the left and the upper neighbour. 2 adds the upper left one. 0: none, which
        is binary relevance.
    placement
        "mutual_info": a random label in the corner, then in each place the one with the largest
        mutual information with its parents. "random", or an array: the label in each place.
    n_jobs
        How many labels are fitted at a time, as in joblib.
    random_state
        For the placement, and for base learners that are random and have no seed of their own.

    Attributes
    ----------
    order_
        The label in each place, row by row.
    parents_
        For each place the earlier places it depends on.
    estimators_
        The fitted learner of each place; a constant label's is the smoothed prior.
    classes_
        [0, 1] for each label, or the two values of a vector Y.
    label_names_
        The columns of a DataFrame Y, otherwise y0, y1, ...
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> X = [[0.0], [1.0], [2.0], [3.0]]
    >>> Y = [[0, 1], [0, 1], [1, 0], [1, 0]]
    >>> model = ClassifierTrellis(placement=[0, 1]).fit(X, Y)
    >>> model.parents_
    ((), (0,))
    >>> model.predict([[0.0], [3.0]])
    array([[0, 1],
           [1, 0]])
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        width: int | None = None,
        density: int = 1,
        placement: Any = "mutual_info",
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.width = width
        self.density = density
        self.placement = placement
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _fit_checked(
        self, learner: Any, X: Features, Y: Labelsets, sample_weight: Floats | None
    ) -> None:
        generator = check_random_state(self.random_state)
        width = _check_width(self.width, Y.shape[1])
        self.parents_ = grid_parents(Y.shape[1], width, _check_density(self.density))
        self.order_ = self._place(Y, sample_weight, generator)
        seeds = generator.randint(MAX_SEED, size=Y.shape[1])
        tasks = [
            LabelTask(label, [int(self.order_[i]) for i in above], seed)
            for label, above, seed in zip(self.order_, self.parents_, seeds, strict=True)
        ]
        self.estimators_ = fit_learners(
            learner, X, Y, tasks, sample_weight=sample_weight, n_jobs=self.n_jobs
        )

    def _place(
        self, Y: Labelsets, weights: Floats | None, generator: np.random.RandomState
    ) -> NDArray[np.integer[Any]]:
        if not isinstance(self.placement, str):
            names = " or ".join(repr(name) for name in _PLACEMENTS)
            return check_permutation(self.placement, Y.shape[1], name="placement", names=names)
        if self.placement not in _PLACEMENTS:
            raise unknown_name("placement", self.placement, _PLACEMENTS)
        return _PLACEMENTS[self.placement](Y, weights, self.parents_, generator)

    def _distribution(self, X: Features) -> TrellisDistribution:
        conditionals = [
            _conditional_table(learner, X, len(above))
            for learner, above in zip(self.estimators_, self.parents_, strict=True)
        ]
        return TrellisDistribution(conditionals, self.parents_, self.order_, self.label_names_)


def _conditional_table(learner: Any, X: Features, n_parents: int) -> Floats:
    """Return P(label = 1) for each row of X and each code of the parents, (n, 2**n_parents)."""
    if n_parents == 0:
        return positive_probability(learner, X)[:, np.newaxis]
    n_states = 2**n_parents
    states = np.repeat(from_codes(np.arange(n_states), n_parents), X.shape[0], axis=0)
    stack = sp.vstack if sp.issparse(X) else np.vstack
    features = append_labels(stack([X] * n_states), states)
    return positive_probability(learner, features).reshape(n_states, -1).T.copy()


def _check_width(width: Any, n_labels: int) -> int:
    if width is None:
        return default_width(n_labels)
    if not isinstance(width, (int, np.integer)) or width < 1:
        raise InputError(
            f"`width` must be None or a whole number of at least 1, got {width!r}. "
            "Exact answers cost 2**width."
        )
    return int(width)


def _check_density(density: Any) -> int:
    if density not in DENSITIES or isinstance(density, bool):
        raise InputError(
            f"`density` must be 0, 1 or 2, got {density!r}. It is the number of parents: none, "
            "left and upper, or these and the upper left one."
        )
    return int(density)
