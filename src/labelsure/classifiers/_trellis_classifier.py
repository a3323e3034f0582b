"""`ClassifierTrellis`: labels in a grid, each depending on its neighbours."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import expit

from labelsure._runtime.arguments import read_choice, read_whole_number
from labelsure._runtime.typing import Floats, Indices, Labelsets
from labelsure.classifiers._base_learners import (
    MAX_SEED,
    Features,
    LabelTask,
    append_labels,
    fit_learners,
    predict_logits,
)
from labelsure.classifiers._predictor import LabelsetClassifier
from labelsure.distributions._probabilities import make_random_state
from labelsure.distributions._trellis import TrellisDistribution
from labelsure.labelsets.rows import check_label_order, from_codes

Parents = tuple[tuple[int, ...], ...]
"""For each position the earlier positions that its label depends on."""

CLOSEST_TO_ONE = float(np.finfo(np.float64).epsneg)  # 2**-53
"""How close a double comes to 1: what a linear learner's probabilities are kept off 0 and 1."""

MAX_CHOSEN_WIDTH = 12  # exact answers cost 2**width

NEIGHBOURS = ((0, -1), (-1, 0), (-1, -1))
"""Offsets (row, column) of the left, upper and upper left neighbour."""

N_PARENTS = {0: 0, 1: 2, 2: 3}
"""How many of these neighbours are parents, for each density."""


def choose_width(n_labels: int) -> int:
    """Return the side of the square that the labels fill, at most 12."""
    return min(max(1, math.isqrt(n_labels)), MAX_CHOSEN_WIDTH)


def make_grid_parents(n_labels: int, width: int, density: int) -> Parents:
    """Return the parents of each position of a grid that is filled row by row.

    Examples
    --------
    >>> make_grid_parents(4, width=2, density=1)
    ((), (0,), (0,), (2, 1))
    """
    near = NEIGHBOURS[: N_PARENTS[density]]
    places = [divmod(j, width) for j in range(n_labels)]
    return tuple(
        tuple(
            (row + up) * width + column + left
            for up, left in near
            if row + up >= 0 and column + left >= 0
        )
        for row, column in places
    )


def mutual_information(Y: Labelsets, sample_weight: Floats | None = None) -> Floats:
    """Return the mutual information of every pair of labels in nats, (L, L)."""
    weights = np.ones(len(Y)) if sample_weight is None else sample_weight
    ones = Y.astype(np.float64)
    both = (ones * weights[:, np.newaxis]).T @ ones / weights.sum()
    p = np.diag(both).copy()
    cells = [
        (both, np.outer(p, p)),
        (p[:, np.newaxis] - both, np.outer(p, 1 - p)),
        (p - both, np.outer(1 - p, p)),
        (1 - p[:, np.newaxis] - p + both, np.outer(1 - p, 1 - p)),
    ]
    return sum((_cell_information(joint, apart) for joint, apart in cells), np.zeros_like(both))


def _cell_information(joint: Floats, apart: Floats) -> Floats:
    # Where no row belongs, rounding leaves a tiny share of either sign, which must not count.
    seen = (joint > 1e-14) & (apart > 0)
    ratio = np.divide(joint, apart, out=np.ones_like(joint), where=seen)
    return np.where(seen, joint * np.log(ratio), 0.0)


def place_by_information(information: Floats, parents: Parents, corner: int) -> Indices:
    """Return the label at each position: the one that shares most information with its parents."""
    order = [corner]
    unused = [label for label in range(len(information)) if label != corner]
    for positions in parents[1:]:
        placed = [order[position] for position in positions]
        # Rounded, so that gains which are equal in theory tie: the lowest index then wins.
        gains = np.round(information[np.ix_(unused, placed)].sum(axis=1), 12)
        order.append(unused.pop(int(gains.argmax())))
    return np.array(order, dtype=np.intp)


class ClassifierTrellis(LabelsetClassifier):
    """Classifier trellis: labels in a grid, each depends on its left and upper neighbours.

    Parameters
    ----------
    estimator
        Base learner with `predict_proba`; None means logistic regression.
    width
        Labels in a row; None means the square root of their number, at most 12. Exact answers
        cost 2**width for each label.
    density
        1: parents are the left and the upper neighbour. 2 adds the upper left neighbour. 0: no
        parents, which is binary relevance.
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
        The columns of a DataFrame Y, otherwise None.
    n_features_in_
        Number of columns of X in `fit`.
    feature_names_in_
        Names of these columns, if X was a DataFrame.

    See Also
    --------
    EnsembleOfClassifierChains : Each label depends on all earlier ones of its chain.

    Notes
    -----
    Read, Martino, Olmos and Luengo (2015), Scalable multi-output label prediction: from classifier
    chains to classifier trellises, Pattern Recognition 48, arXiv:1501.04870.

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

    def _fit_clones(
        self, learner: Any, X: Features, Y: Labelsets, sample_weight: Floats | None
    ) -> None:
        generator = make_random_state(self.random_state)
        width = (
            choose_width(Y.shape[1])
            if self.width is None
            else read_whole_number(self.width, "width", hint="Exact answers cost 2**width.")
        )
        density = read_whole_number(self.density, "density", 0, max(N_PARENTS))
        self.parents_ = make_grid_parents(Y.shape[1], width, density)
        self.order_ = self._place(Y, sample_weight, generator)
        seeds = generator.randint(MAX_SEED, size=Y.shape[1])
        tasks = [
            LabelTask(label, [int(self.order_[i]) for i in parents], seed)
            for label, parents, seed in zip(self.order_, self.parents_, seeds, strict=True)
        ]
        self.estimators_ = fit_learners(
            learner, X, Y, tasks, sample_weight=sample_weight, n_jobs=self.n_jobs
        )

    def _place(
        self, Y: Labelsets, weights: Floats | None, generator: np.random.RandomState
    ) -> NDArray[np.integer[Any]]:
        if not isinstance(self.placement, str):
            return check_label_order(self.placement, Y.shape[1], name="placement")
        if read_choice(self.placement, "placement", ("mutual_info", "random")) == "random":
            return generator.permutation(Y.shape[1])
        corner = int(generator.randint(Y.shape[1]))
        return place_by_information(mutual_information(Y, weights), self.parents_, corner)

    def _distribution_of_checked(self, X: Features) -> TrellisDistribution:
        """Return P(Y|x) of each row of features that are checked already."""
        conditionals = [
            _make_conditional_table(learner, X, len(parents))
            for learner, parents in zip(self.estimators_, self.parents_, strict=True)
        ]
        return TrellisDistribution(conditionals, self.parents_, self.order_, self.label_names_)


def _make_conditional_table(learner: Any, X: Features, n_parents: int) -> Floats:
    """Return P(label = 1) for each row of X and each code of the parents, (n, 2**n_parents)."""
    n_states = 2**n_parents
    states = from_codes(np.arange(n_states), n_parents) if n_parents else np.zeros((1, 0), np.int8)
    stack = sp.vstack if sp.issparse(X) else np.vstack
    features = append_labels(stack([X] * n_states), np.repeat(states, X.shape[0], axis=0))
    p = expit(predict_logits(learner, features)).clip(CLOSEST_TO_ONE, 1 - CLOSEST_TO_ONE)
    return p.reshape(n_states, -1).T.copy()
