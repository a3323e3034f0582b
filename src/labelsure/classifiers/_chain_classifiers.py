"""One learner for each label, on the features and on some of the other labels.

`BinaryRelevance`: on none; `ProbabilisticClassifierChain`: on those before it in a chain;
`EnsembleOfClassifierChains`: in several chains; `ClassifierTrellis`: on its neighbours in a grid.
"""

from __future__ import annotations

import math

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit
from sklearn.utils.parallel import Parallel, delayed

from labelsure._kernels.threads import one_blas_thread
from labelsure._runtime import limits as _limits
from labelsure._runtime.arguments import read_choice, read_whole_number
from labelsure._runtime.processes import count_workers
from labelsure._runtime.typing import Array, Estimator, Floats, Indices, Labelsets, RandomState
from labelsure.classifiers._base_learners import (
    MAX_SEED,
    Features,
    LinearWeights,
    append_labels,
    expand_chain,
    find_weight_argument,
    fit_learners,
    multiply_features,
    positive_probability,
)
from labelsure.classifiers._predictor import LabelsetClassifier
from labelsure.distributions._chain_mixture import ChainMixture
from labelsure.distributions._chains import LinearChain, PrefixChain
from labelsure.distributions._independent_labels import IndependentLabels
from labelsure.distributions._probabilities import clip_certain, make_random_state
from labelsure.distributions._trellis import TrellisDistribution
from labelsure.labelsets.codes import from_codes
from labelsure.labelsets.label_names import check_label_order


class BinaryRelevance(LabelsetClassifier):
    """Binary relevance: one base learner per label, labels independent given x.

    Parameters
    ----------
    estimator
        Base learner with `predict_proba`; None means logistic regression.
    n_jobs
        How many labels are fitted at a time, as in joblib.
    random_state
        Seeds base learners that are random and have no seed of their own.

    Attributes
    ----------
    estimators_
        The fitted learner of each label; a constant one's is the smoothed prior.
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
    EnsembleOfClassifierChains : Models the dependence of labels.
    LabelwiseCalibration : Calibrates the probability of each label.

    Notes
    -----
    Tsoumakas and Katakis (2007), Multi-label classification: an overview, International Journal of
    Data Warehousing and Mining 3.

    Examples
    --------
    >>> X = [[0.0], [1.0], [2.0], [3.0]]
    >>> Y = [[0, 1], [0, 1], [1, 1], [1, 0]]
    >>> model = BinaryRelevance().fit(X, Y)
    >>> model.predict([[0.0], [3.0]])
    array([[0, 1],
           [1, 1]])
    >>> model.predict_distribution(X)
    IndependentLabels(n_samples=4, n_labels=2)
    """

    def __init__(
        self,
        estimator: Estimator = None,
        *,
        n_jobs: int | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.estimator = estimator
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _fit_clones(
        self, learner: Estimator, X: Features, Y: Labelsets, sample_weight: Floats | None
    ) -> None:
        generator, n_labels = make_random_state(self.random_state), Y.shape[1]
        self.estimators_, self._linear_weights = fit_learners(
            learner, X, Y, sample_weight, range(n_labels), [()] * n_labels, generator, self.n_jobs
        )

    def _distribution_of_checked(self, X: Features) -> IndependentLabels:
        if self._linear_weights is None:
            p = [positive_probability(learner, X) for learner in self.estimators_]
            logits = logit(clip_certain(np.column_stack(p)))
        else:
            logits = multiply_features(self._linear_weights, X)
        return IndependentLabels.from_logits(logits, self.label_names_)


class ProbabilisticClassifierChain(LabelsetClassifier):
    """Classifier chain: each label depends on x and on all earlier labels of the chain.

    Parameters
    ----------
    estimator
        Base learner with `predict_proba`; None means logistic regression. Linear ones are much
        the fastest to predict with.
    order
        The label at each position of the chain; None means 0, 1, ..., "random" a random order.
    n_jobs
        How many labels are fitted at a time, as in joblib.
    random_state
        For a random order, and for base learners that are random and have no seed of their own.

    Attributes
    ----------
    order_
        The label at each position.
    estimators_
        The fitted learner of each position; a constant label's is the smoothed prior.
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
    EnsembleOfClassifierChains : A mixture of chains in random orders.
    BinaryRelevance : Independent labels.

    Notes
    -----
    Read, Pfahringer, Holmes and Frank (2011), Classifier chains for multi-label classification,
    Machine Learning 85, doi:10.1007/s10994-011-5256-5.
    Dembczyński, Cheng and Hüllermeier (2010), Bayes optimal multilabel classification via
    probabilistic classifier chains, ICML.

    Examples
    --------
    >>> X = [[0.0], [1.0], [2.0], [3.0]]
    >>> Y = [[0, 1], [0, 1], [1, 0], [1, 0]]
    >>> model = ProbabilisticClassifierChain(order=[1, 0]).fit(X, Y)
    >>> model.predict([[0.0], [3.0]])
    array([[0, 1],
           [1, 0]])
    >>> model.predict_distribution(X)
    ChainMixture(n_samples=4, n_labels=2)
    """

    _linear_weights: LinearWeights | None

    def __init__(
        self,
        estimator: Estimator = None,
        *,
        order: ArrayLike | str | None = None,
        n_jobs: int | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.estimator = estimator
        self.order = order
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _fit_clones(
        self, learner: Estimator, X: Features, Y: Labelsets, sample_weight: Floats | None
    ) -> None:
        generator = make_random_state(self.random_state)
        self.order_ = self._order(Y.shape[1], generator)
        before = [range(j) for j in range(Y.shape[1])]
        self.estimators_, self._linear_weights = fit_learners(
            learner, X, Y, sample_weight, self.order_, before, generator, self.n_jobs
        )

    def _order(self, n_labels: int, generator: np.random.RandomState) -> Array:
        if self.order is None:
            return np.arange(n_labels)
        if isinstance(self.order, str) and self.order == "random":
            return generator.permutation(n_labels)
        return check_label_order(self.order, n_labels, name="order")

    def _expand(self, X: Features) -> LinearChain | PrefixChain:
        return expand_chain(self.order_, self.estimators_, self._linear_weights, X)

    def _distribution_of_checked(self, X: Features) -> ChainMixture:
        return ChainMixture([self._expand(X)], self.label_names_)


class EnsembleOfClassifierChains(LabelsetClassifier):
    """The mixture of several chains, each with its own random order and bootstrap.

    Parameters
    ----------
    estimator
        Base learner with `predict_proba`; None means logistic regression. Linear ones are much
        the fastest to predict with.
    n_chains
        Number of chains.
    bootstrap
        Fit each chain on as many instances as there are, drawn with replacement (and with
        probabilities in proportion to `sample_weight`). False: on all of them.
    n_jobs
        How many chains are fitted at a time, as in joblib. The result is the same to the last bit.
    random_state
        For orders, bootstraps and base learners that are random and have no seed of their own.

    Attributes
    ----------
    chains_
        The fitted chains.
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
    ProbabilisticClassifierChain : A single chain with a fixed order.
    BinaryRelevance : Independent labels.
    labelsure.classifiers.ClassifierTrellis : Each label depends on a few others only.

    Notes
    -----
    Read, Pfahringer, Holmes and Frank (2011), Classifier chains for multi-label classification,
    Machine Learning 85, doi:10.1007/s10994-011-5256-5.

    Examples
    --------
    >>> X = [[0.0], [1.0], [2.0], [3.0]]
    >>> Y = [[0, 1], [0, 1], [1, 0], [1, 0]]
    >>> model = EnsembleOfClassifierChains(n_chains=3, bootstrap=False).fit(X, Y)
    >>> model.predict([[0.0], [3.0]])
    array([[0, 1],
           [1, 0]])
    """

    def __init__(
        self,
        estimator: Estimator = None,
        *,
        n_chains: int = 10,
        bootstrap: bool = True,
        n_jobs: int | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.estimator = estimator
        self.n_chains = n_chains
        self.bootstrap = bootstrap
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _passes_weights_on(self) -> bool:
        return not self.bootstrap

    def _fit_clones(
        self, learner: Estimator, X: Features, Y: Labelsets, sample_weight: Floats | None
    ) -> None:
        read_whole_number(self.n_chains, "n_chains", most=_limits.MAX_CHAINS, hint="Ten is usual.")
        seeds = make_random_state(self.random_state).randint(MAX_SEED, size=self.n_chains)
        with one_blas_thread():
            self.chains_ = Parallel(n_jobs=count_workers(self.n_jobs, self.n_chains))(
                delayed(_fit_chain)(self, learner, X, Y, sample_weight, int(seed)) for seed in seeds
            )

    def _distribution_of_checked(self, X: Features) -> ChainMixture:
        return ChainMixture([chain._expand(X) for chain in self.chains_], self.label_names_)


def _fit_chain(
    ensemble: EnsembleOfClassifierChains,
    learner: Estimator,
    X: Features,
    Y: Labelsets,
    sample_weight: Floats | None,
    seed: int,
) -> ProbabilisticClassifierChain:
    """Fit one chain of the ensemble; all its randomness comes from the seed."""
    generator = np.random.RandomState(seed)
    order = generator.permutation(Y.shape[1])
    chain = ProbabilisticClassifierChain(learner, order=order, random_state=seed)
    if ensemble.bootstrap:
        rows, sample_weight = _bootstrap(generator, len(Y), sample_weight, learner)
        X, Y = X[rows], Y[rows]
    chain._fit_checked(X, Y, ensemble.label_names_, sample_weight)
    chain.classes_ = ensemble.classes_  # its predictions take the same form as the ensemble's
    return chain


def _bootstrap(
    generator: np.random.RandomState, n_rows: int, sample_weight: Floats | None, learner: Estimator
) -> tuple[Indices, Floats | None]:
    """Bootstrap sample: each drawn row once with its count as weight, or as often as drawn.

    Fewer rows are faster to fit on. A pipeline's first steps would not see the weights, so its
    rows are repeated.
    """
    share = None  # equal weights draw the same rows as none
    if sample_weight is not None and (sample_weight != sample_weight[0]).any():
        share = sample_weight / sample_weight.sum()
    drawn = np.sort(generator.choice(n_rows, size=n_rows, p=share))
    if find_weight_argument(learner) != "sample_weight" or hasattr(learner, "steps"):
        return drawn, None
    rows, counts = np.unique(drawn, return_counts=True)
    return rows, counts.astype(np.float64)


Parents = tuple[tuple[int, ...], ...]
"""For each position the earlier positions that its label depends on."""

CLOSEST_TO_ONE = float(np.finfo(np.float64).epsneg)  # 2**-53
"""Distance of the largest double below 1 from 1, the margin to which linear learners' probabilities
are clipped."""

MAX_CHOSEN_WIDTH = 12  # exact answers cost 2**width

NEIGHBOURS = ((0, -1), (-1, 0), (-1, -1))
"""Offsets (row, column) of the left, upper and upper left neighbour."""

N_PARENTS = {0: 0, 1: 2, 2: 3}
"""How many of these neighbours are parents, for each density."""


def choose_width(n_labels: int) -> int:
    """Side of the square that the labels fill, at most 12."""
    return min(max(1, math.isqrt(n_labels)), MAX_CHOSEN_WIDTH)


def make_grid_parents(n_labels: int, width: int, density: int) -> Parents:
    """Parents of each position of a grid that is filled row by row.

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
    """Mutual information of every pair of labels in nats, (L, L)."""
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
    is_positive = (joint > 1e-14) & (apart > 0)
    ratio = np.divide(joint, apart, out=np.ones_like(joint), where=is_positive)
    return np.where(is_positive, joint * np.log(ratio), 0.0)


def place_by_information(information: Floats, parents: Parents, corner: int) -> Indices:
    """Label at each position, (L,): the one that shares most information with its parents."""
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
        estimator: Estimator = None,
        *,
        width: int | None = None,
        density: int = 1,
        placement: ArrayLike | str = "mutual_info",
        n_jobs: int | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.estimator = estimator
        self.width = width
        self.density = density
        self.placement = placement
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _fit_clones(
        self, learner: Estimator, X: Features, Y: Labelsets, sample_weight: Floats | None
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
        self.estimators_, self._linear_weights = fit_learners(
            learner, X, Y, sample_weight, self.order_, self.parents_, generator, self.n_jobs
        )

    def _place(
        self, Y: Labelsets, weights: Floats | None, generator: np.random.RandomState
    ) -> NDArray[np.integer]:
        if not isinstance(self.placement, str):
            return check_label_order(self.placement, Y.shape[1], name="placement")
        if read_choice(self.placement, "placement", ("mutual_info", "random")) == "random":
            return generator.permutation(Y.shape[1])
        corner = int(generator.randint(Y.shape[1]))
        return place_by_information(mutual_information(Y, weights), self.parents_, corner)

    def _distribution_of_checked(self, X: Features) -> TrellisDistribution:
        linear = self._linear_weights
        base = None if linear is None else multiply_features(linear, X)
        stack = sp.vstack if sp.issparse(X) else np.vstack
        conditionals = []  # P(label = 1) for each row of X and each code of the parents
        for j, (learner, parents) in enumerate(zip(self.estimators_, self.parents_, strict=True)):
            n, n_states = len(parents), 2 ** len(parents)
            states = from_codes(np.arange(n_states), n) if n else np.zeros((1, 0), np.int8)
            if linear is None or base is None:
                features = append_labels(stack([X] * n_states), states.repeat(X.shape[0], axis=0))
                p = clip_certain(positive_probability(learner, features))
                conditionals.append(p.reshape(n_states, -1).T.copy())
            else:
                logits = base[:, j, np.newaxis] + states @ linear[1][j, list(parents)]
                conditionals.append(expit(logits).clip(CLOSEST_TO_ONE, 1 - CLOSEST_TO_ONE))
        return TrellisDistribution(conditionals, self.parents_, self.order_, self.label_names_)
