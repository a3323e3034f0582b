"""`LabelPowerset`: every labelset that was seen is a class of its own."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize_scalar
from sklearn.dummy import DummyClassifier
from sklearn.model_selection import KFold
from sklearn.utils.parallel import Parallel, delayed

from labelsure._kernels.threads import one_blas_thread
from labelsure._runtime.arguments import read_number
from labelsure._runtime.processes import count_workers
from labelsure._runtime.typing import Estimator, Floats, Indices, LabelNames, Labelsets, RandomState
from labelsure.classifiers._base_learners import MAX_SEED, Features, fit_clone
from labelsure.classifiers._predictor import LabelsetClassifier
from labelsure.distributions._independent_labels import IndependentLabels
from labelsure.distributions._labelset_table import LabelsetTable
from labelsure.distributions._probabilities import make_random_state
from labelsure.distributions._smoothed_table import SmoothedTable
from labelsure.distributions.candidates import log
from labelsure.labelsets.codes import code_keys
from labelsure.labelsets.weighted import WeightedLabelsets

N_FOLDS = 5
LEAST_SHARE = 1e-6
"""Of the independent labels, when the share is chosen: unseen labelsets stay possible."""


class LabelPowerset(LabelsetClassifier):
    """One multi-class learner, whose classes are the labelsets seen in training.

    The distribution is a mixture with independent labels of the same marginals, so that unseen
    labelsets have a positive probability. `share` is the weight of the independent labels.

    Parameters
    ----------
    estimator
        Multi-class learner with `predict_proba`; None means logistic regression.
    share
        Weight of the independent labels in the mixture, in (0, 1]. None chooses it by 5-fold
        cross-validated likelihood, which takes five more fits.
    n_jobs
        How many folds are fitted at a time, as in joblib.
    random_state
        For the folds, and for a learner that is random and has no seed of its own.

    Attributes
    ----------
    labelsets_
        (K, L) those seen in training, in the order of their codes.
    estimator_
        The fitted learner, whose class k is `labelsets_[k]`.
    share_
        The share of the independent labels.
    floor_
        How far the marginals of these are kept off 0 and 1.
    classes_, label_names_, n_features_in_, feature_names_in_
        As in `BinaryRelevance`.

    See Also
    --------
    EnsembleOfClassifierChains : Dependence of labels without a class per labelset.
    labelsure.distributions.SmoothedTable : The distribution that it predicts.

    Notes
    -----
    Tsoumakas and Katakis (2007), Multi-label classification: an overview, International Journal of
    Data Warehousing and Mining 3. The mixture with independent labels gives unseen labelsets a
    positive probability.

    Examples
    --------
    >>> X = [[0.0], [1.0], [2.0], [3.0]]
    >>> Y = [[0, 1], [0, 1], [1, 1], [1, 1]]
    >>> model = LabelPowerset(share=0.01).fit(X, Y)
    >>> model.predict([[0.0], [3.0]])
    array([[0, 1],
           [1, 1]])
    >>> model.predict_distribution(X)
    SmoothedTable(n_samples=4, n_labels=2)
    """

    def __init__(
        self,
        estimator: Estimator = None,
        *,
        share: float | None = None,
        n_jobs: int | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.estimator = estimator
        self.share = share
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _fit_clones(
        self, learner: Estimator, X: Features, Y: Labelsets, sample_weight: Floats | None
    ) -> None:
        share = None if self.share is None else read_number(self.share, "share", 0, 1, ends="(]")
        seed = int(make_random_state(self.random_state).randint(MAX_SEED))
        self.labelsets_, self.estimator_, self.floor_ = _fit_classes(
            learner, X, Y, sample_weight, seed
        )
        if share is None:
            share = _choose_share(learner, X, Y, sample_weight, seed, self.n_jobs)
        self.share_ = share

    def _distribution_of_checked(self, X: Features) -> SmoothedTable:
        fitted = self.labelsets_, self.estimator_, self.floor_
        return SmoothedTable(*_predict(*fitted, X, self.label_names_), self.share_)


def _fit_classes(
    learner: Estimator, X: Features, Y: Labelsets, sample_weight: Floats | None, seed: int
) -> tuple[Labelsets, Estimator, float]:
    """Labelsets that occur, a learner whose classes they are, and the floor of the marginals."""
    floor = 1 / ((len(Y) if sample_weight is None else float(sample_weight.sum())) + 2)
    _, first, classes = np.unique(code_keys(Y), return_index=True, return_inverse=True)
    if len(first) == 1:
        prior = DummyClassifier(strategy="prior")
        return Y[first], prior.fit(np.zeros((1, X.shape[1])), [0]), floor
    return Y[first], fit_clone(learner, X, classes.ravel(), sample_weight, seed), floor


def _predict(
    labelsets: Labelsets,
    learner: Estimator,
    floor: float,
    X: Features,
    label_names: LabelNames = None,
) -> tuple[LabelsetTable, IndependentLabels]:
    """Probabilities of the classes, and independent labels with their marginals."""
    shares = np.asarray(learner.predict_proba(X), dtype=np.float64)
    labelsets = labelsets[np.asarray(learner.classes_)]
    instance = np.repeat(np.arange(len(shares)), shares.shape[1])
    rows = np.tile(labelsets, (len(shares), 1))
    weighted = WeightedLabelsets.merge(rows, shares.ravel(), instance, len(shares)).normalise()
    marginals = (shares @ labelsets).clip(floor, 1 - floor)
    independent = IndependentLabels(marginals, label_names)
    return LabelsetTable.from_weighted(weighted, label_names), independent


def _choose_share(
    learner: Estimator,
    X: Features,
    Y: Labelsets,
    sample_weight: Floats | None,
    seed: int,
    n_jobs: int | None,
) -> float:
    """Share of independent labels with the highest held-out likelihood."""
    if len(Y) < 2 * N_FOLDS:
        return 1 / (len(Y) + 1)
    folds = list(KFold(N_FOLDS, shuffle=True, random_state=seed).split(Y))
    with one_blas_thread():
        likelihoods = Parallel(n_jobs=count_workers(n_jobs, N_FOLDS))(
            delayed(_judge_fold)(learner, X, Y, sample_weight, seed, *fold) for fold in folds
        )
    return best_share(*(np.concatenate(column) for column in zip(*likelihoods, strict=True)))


def _judge_fold(
    learner: Estimator,
    X: Features,
    Y: Labelsets,
    sample_weight: Floats | None,
    seed: int,
    train: Indices,
    others: Indices,
) -> tuple[Floats, Floats, Floats]:
    """Held-out probabilities by the classes and by independent labels, and weights, each (m,)."""
    weights = None if sample_weight is None else sample_weight[train]
    components = _predict(*_fit_classes(learner, X[train], Y[train], weights, seed), X[others])
    by_class, independent = (np.exp(dist._log_prob(Y[others])) for dist in components)
    held_out = np.ones(len(others)) if sample_weight is None else sample_weight[others]
    return by_class, independent, held_out


def best_share(by_class: Floats, independent: Floats, weights: Floats) -> float:
    """Share of the second component with the highest likelihood of the mixture.

    Examples
    --------
    >>> half = np.array([0.0, 1.0])
    >>> round(best_share(half, half[::-1], np.ones(2)), 3)
    0.5
    """

    def loss(log_share: float) -> float:
        share = np.exp(log_share)
        return float(-(weights * log((1 - share) * by_class + share * independent)).sum())

    optimum = minimize_scalar(loss, bounds=(np.log(LEAST_SHARE), 0.0), method="bounded")
    return float(np.exp(optimum.x))
