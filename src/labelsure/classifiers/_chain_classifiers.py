"""`BinaryRelevance`, `ProbabilisticClassifierChain` and `EnsembleOfClassifierChains`.

One learner for each label: on its own, after those before it in a chain, in several chains.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.parallel import Parallel, delayed

from labelsure._kernels.threads import one_blas_thread
from labelsure._runtime import limits as _limits
from labelsure._runtime.arguments import read_whole_number
from labelsure._runtime.processes import count_workers
from labelsure._runtime.typing import Floats, Indices, Labelsets
from labelsure.classifiers._base_learners import (
    MAX_SEED,
    Features,
    LabelTask,
    LinearWeights,
    expand_chain,
    find_weight_argument,
    fit_learners,
    predict_logits,
    read_linear_weights,
)
from labelsure.classifiers._predictor import LabelsetClassifier
from labelsure.distributions._chain_mixture import ChainMixture
from labelsure.distributions._chains import LinearChain, PrefixChain
from labelsure.distributions._independent_labels import IndependentLabels
from labelsure.distributions._probabilities import make_random_state
from labelsure.labelsets.rows import check_label_order


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
        self, estimator: Any = None, *, n_jobs: int | None = None, random_state: Any = None
    ) -> None:
        self.estimator = estimator
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _fit_clones(
        self, learner: Any, X: Features, Y: Labelsets, sample_weight: Floats | None
    ) -> None:
        seeds = make_random_state(self.random_state).randint(MAX_SEED, size=Y.shape[1])
        tasks = [LabelTask(label, (), seed) for label, seed in enumerate(seeds)]
        self.estimators_ = fit_learners(
            learner, X, Y, tasks, sample_weight=sample_weight, n_jobs=self.n_jobs
        )

    def _distribution_of_checked(self, X: Features) -> IndependentLabels:
        """Return P(Y|x) of each row of features that are checked already."""
        logits = [predict_logits(learner, X) for learner in self.estimators_]
        return IndependentLabels.from_logits(np.column_stack(logits), self.label_names_)


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
        estimator: Any = None,
        *,
        order: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.order = order
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _fit_clones(
        self, learner: Any, X: Features, Y: Labelsets, sample_weight: Floats | None
    ) -> None:
        generator = make_random_state(self.random_state)
        self.order_ = self._order(Y.shape[1], generator)
        seeds = generator.randint(MAX_SEED, size=Y.shape[1])
        # True labels are the features in training, so the learners do not wait for each other.
        tasks = [
            LabelTask(int(label), self.order_[:j].tolist(), int(seeds[j]))
            for j, label in enumerate(self.order_)
        ]
        self.estimators_ = fit_learners(
            learner, X, Y, tasks, sample_weight=sample_weight, n_jobs=self.n_jobs
        )
        self._linear_weights = read_linear_weights(self.estimators_, X, Y[:, self.order_])

    def _order(self, n_labels: int, generator: np.random.RandomState) -> NDArray[Any]:
        if self.order is None:
            return np.arange(n_labels)
        if isinstance(self.order, str) and self.order == "random":
            return generator.permutation(n_labels)
        return check_label_order(self.order, n_labels, name="order")

    def _expand(self, X: Features) -> LinearChain | PrefixChain:
        return expand_chain(self.order_, self.estimators_, self._linear_weights, X)

    def _distribution_of_checked(self, X: Features) -> ChainMixture:
        """Return P(Y|x) of each row of features that are checked already."""
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
        estimator: Any = None,
        *,
        n_chains: int = 10,
        bootstrap: bool = True,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.n_chains = n_chains
        self.bootstrap = bootstrap
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _passes_weights_on(self) -> bool:
        return not self.bootstrap

    def _fit_clones(
        self, learner: Any, X: Features, Y: Labelsets, sample_weight: Floats | None
    ) -> None:
        read_whole_number(self.n_chains, "n_chains", most=_limits.MAX_CHAINS, hint="Ten is usual.")
        seeds = make_random_state(self.random_state).randint(MAX_SEED, size=self.n_chains)
        with one_blas_thread():
            self.chains_ = Parallel(n_jobs=count_workers(self.n_jobs, self.n_chains))(
                delayed(_fit_chain)(self, learner, X, Y, sample_weight, int(seed)) for seed in seeds
            )

    def _distribution_of_checked(self, X: Features) -> ChainMixture:
        """Return P(Y|x) of each row of features that are checked already."""
        return ChainMixture([chain._expand(X) for chain in self.chains_], self.label_names_)


def _fit_chain(
    ensemble: EnsembleOfClassifierChains,
    learner: Any,
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
    generator: np.random.RandomState, n_rows: int, sample_weight: Floats | None, learner: Any
) -> tuple[Indices, Floats | None]:
    """Draw rows with replacement: each once with its count as weight, or as often as drawn.

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
