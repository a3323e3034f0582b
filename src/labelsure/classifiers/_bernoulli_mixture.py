"""`ConditionalBernoulliMixture`: labels that are independent once it is known which case this is.

Li, Wang, Pavlu and Aslam (ICML 2016).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logsumexp
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.sparsefuncs import mean_variance_axis

from labelsure._kernels.threads import one_blas_thread
from labelsure._runtime.arguments import read_number, read_whole_number
from labelsure._runtime.processes import count_workers
from labelsure._runtime.typing import Floats, Indices, Labelsets
from labelsure.classifiers._base_learners import MAX_SEED, Features
from labelsure.classifiers._predictor import LabelsetPredictor, index_of_batch
from labelsure.distributions._bridge import LabelsetDistribution
from labelsure.distributions._chain_mixture import IndependentMixture
from labelsure.distributions._independent_labels import IndependentLabels
from labelsure.distributions._probabilities import make_random_state
from labelsure.labelsets.names import check_weights

HELD_OUT = 0.2
"""The share of the instances by which a restart is stopped."""

FEW_SAMPLES = 20  # with fewer, none are held out
PATIENCE = 3  # rounds without a gain
STEPS = 8  # of the optimiser in each round, which begins where the last one ended
BLUR = 0.2  # what the first round has of all components alike


class ConditionalBernoulliMixture(LabelsetPredictor):
    """A few cases, told apart by x; within each of them labels depend on x alone.

    The weights of the components are a multinomial logistic regression, the labels of each
    component are logistic regressions. Both are fitted in turns (EM), from a random start, until
    the labelsets of instances held out become no more likely. Several restarts, each with instances
    held out of its own, are averaged.

    Parameters
    ----------
    n_components
        Of each restart.
    n_restarts
        How many.
    C
        Smaller values pull the coefficients of standardised features more towards 0, and the
        intercepts towards the frequency of each label.
    max_iter
        Rounds of a restart at most.
    n_jobs
        Restarts that are fitted at the same time.
    random_state
        Seed; an int makes every call give the same classifier.

    Attributes
    ----------
    gates_
        (n_restarts, d + 1, n_components) coefficients of the weights, the intercept last.
    coefficients_
        (n_restarts, n_components, d + 1, L) of the labels.
    scale_
        (d,) standard deviations of the features.
    n_iter_
        (n_restarts,) rounds of each restart that count.
    held_out_
        (n_restarts,) mean log-probability of the labelsets held out after these.
    classes_, label_names_
        As of all classifiers.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(300, 1))
    >>> Y = np.where(np.random.default_rng(1).random((300, 1)) < 0.5, [1, 0], [0, 1])
    >>> model = ConditionalBernoulliMixture(n_components=2, random_state=0).fit(X, Y)
    >>> model.predict_distribution(X[:1]).probabilities().round(1)
    array([[0. , 0.5, 0.5, 0. ]])
    """

    def __init__(
        self,
        n_components: int = 5,
        *,
        n_restarts: int = 3,
        C: float = 1.0,
        max_iter: int = 50,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.n_restarts = n_restarts
        self.C = C
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the restarts.

        Parameters
        ----------
        X
            (n, d) array, DataFrame or scipy sparse matrix.
        y
            (n, L) zeros and ones, a DataFrame (whose columns name the labels), sparse, or a list
            of label names for each instance; or a vector of two classes, which is the case of one
            label.
        sample_weight
            (n,) weights of the instances. A weight of 0 is as if the instance was not there.
        """
        self._check_parameters()
        index = index_of_batch(X, y)
        X, Y = self._check_training_data(X, y)
        weights = np.ones(len(Y))
        if sample_weight is not None:
            weights = check_weights(sample_weight, len(Y), index)
            is_used = weights > 0
            X, Y, weights = X[is_used], Y[is_used], weights[is_used]
        variance = _variance(X, weights)
        self.scale_ = np.where(variance > 0, np.sqrt(variance), 1.0)
        seeds = make_random_state(self.random_state).randint(MAX_SEED, size=self.n_restarts)
        settings = (self.n_components, 1 / self.C, self.max_iter)
        with one_blas_thread():
            fits = Parallel(n_jobs=count_workers(self.n_jobs, self.n_restarts))(
                delayed(_fit_restart)(_scaled(X, self.scale_), Y, weights, *settings, seed)
                for seed in seeds
            )
        self.gates_ = np.stack([fit.parameters.gate for fit in fits])
        self.coefficients_ = np.stack([fit.parameters.labels for fit in fits])
        self.n_iter_ = np.array([fit.n_rounds for fit in fits])
        self.held_out_ = np.array([fit.held_out for fit in fits])
        return self

    def _distribution_of_checked(self, X: Features) -> LabelsetDistribution:
        """Return P(Y|x) of each row: the components of all restarts, weighted by x."""
        features = _scaled(X, self.scale_)
        weights, components = [], []
        for gate, labels in zip(self.gates_, self.coefficients_, strict=True):
            parameters = Parameters(gate, labels)
            weights.append(np.exp(parameters.log_weights(features)))
            components += [
                IndependentLabels.from_logits(logits, self.label_names_)
                for logits in parameters.label_logits(features)
            ]
        mixed = np.concatenate(weights, axis=1) / len(weights)
        return IndependentMixture(components, self.label_names_, weights=mixed)

    def _check_parameters(self) -> None:
        for name in ("n_components", "n_restarts", "max_iter"):
            read_whole_number(getattr(self, name), name, most=1000)
        read_number(self.C, "C", 0, ends="()")


@dataclass(frozen=True)
class Parameters:
    """The coefficients of one restart.

    Parameters
    ----------
    gate
        (d + 1, K) of the weights, the intercept last.
    labels
        (K, d + 1, L) of the labels.
    """

    gate: Floats
    labels: Floats

    def log_weights(self, X: Features) -> Floats:
        """Return the logs of the components' weights, (n, K)."""
        scores = _linear(X, self.gate)
        return scores - logsumexp(scores, axis=1, keepdims=True)

    def label_logits(self, X: Features) -> list[Floats]:
        """Return the log-odds of the labels in each component, (n, L)."""
        return [_linear(X, coefficients) for coefficients in self.labels]

    def log_joints(self, X: Features, Y: Labelsets) -> Floats:
        """Return the log of weight times P(y) of each component, (n, K)."""
        sign = np.where(Y == 1, 1.0, -1.0)
        logs = [-np.logaddexp(0.0, -sign * z).sum(axis=1) for z in self.label_logits(X)]
        return self.log_weights(X) + np.stack(logs, axis=1)

    def improve(
        self, X: Features, Y: Labelsets, shares: Floats, start: Floats, penalty: float
    ) -> Parameters:
        """Return coefficients under which the shared labelsets are more likely: a step of EM."""
        weights = shares.sum(axis=1, keepdims=True)

        def gate_loss(scores: Floats) -> tuple[float, Floats]:
            totals = logsumexp(scores, axis=1, keepdims=True)
            loss = weights * totals - (shares * scores).sum(axis=1, keepdims=True)
            return float(loss.sum()), weights * np.exp(scores - totals) - shares

        def label_loss(share: Floats) -> Callable[[Floats], tuple[float, Floats]]:
            def loss(z: Floats) -> tuple[float, Floats]:
                values = np.logaddexp(0.0, z) - Y * z
                return float((share * values).sum()), share * (expit(z) - Y)

            return loss

        gate = _minimise(gate_loss, X, self.gate, np.zeros_like(self.gate), penalty)
        labels = [
            _minimise(label_loss(share[:, np.newaxis]), X, coefficients, start, penalty)
            for share, coefficients in zip(shares.T, self.labels, strict=True)
        ]
        return Parameters(gate, np.stack(labels))


@dataclass(frozen=True)
class RestartFit:
    """What one restart came to.

    Parameters
    ----------
    parameters
        After the best round.
    n_rounds
        How many that were.
    held_out
        The mean log-probability of the labelsets held out.
    """

    parameters: Parameters
    n_rounds: int
    held_out: float


def _fit_restart(
    X: Features,
    Y: Labelsets,
    weights: Floats,
    n_components: int,
    penalty: float,
    max_iter: int,
    seed: int,
) -> RestartFit:
    """Fit by EM from a random start, until instances held out become no more likely."""
    generator = np.random.default_rng(seed)
    held_out, train = _split(len(Y), generator)
    X_held, Y_held, X, Y = X[held_out], Y[held_out], X[train], Y[train]
    of_held_out, weight = weights[held_out], weights[train][:, np.newaxis]
    start = np.zeros((X.shape[1] + 1, Y.shape[1]))
    start[-1] = np.log(((weight * Y).sum(axis=0) + 1) / ((weight * (1 - Y)).sum(axis=0) + 1))
    parameters = Parameters(
        np.zeros((X.shape[1] + 1, n_components)), np.repeat(start[np.newaxis], n_components, 0)
    )
    shares = _first_shares(Y, n_components, generator)
    best = RestartFit(parameters, 0, -np.inf)
    for n_rounds in range(1, max_iter + 1):
        parameters = parameters.improve(X, Y, weight * shares, start, penalty)
        log_joints = parameters.log_joints(X, Y)
        shares = np.exp(log_joints - logsumexp(log_joints, axis=1, keepdims=True))
        logs = logsumexp(parameters.log_joints(X_held, Y_held), axis=1)
        found = float(np.average(logs, weights=of_held_out))
        if found > best.held_out:
            best = RestartFit(parameters, n_rounds, found)
        elif n_rounds - best.n_rounds >= PATIENCE:
            break
    return best


def _split(n_samples: int, generator: np.random.Generator) -> tuple[Indices, Indices]:
    """Return the instances held out, and those learned from: all and all, where there are few."""
    if n_samples < FEW_SAMPLES:
        return np.arange(n_samples), np.arange(n_samples)
    order = generator.permutation(n_samples)
    n_held_out = int(HELD_OUT * n_samples)
    return order[:n_held_out], order[n_held_out:]


def _first_shares(Y: Labelsets, n_components: int, generator: np.random.Generator) -> Floats:
    """Return shares with which EM begins: each labelset mostly in one component, by chance."""
    distinct, of_row = np.unique(Y, axis=0, return_inverse=True)
    owner = generator.permutation(np.arange(len(distinct)) % n_components)[of_row.ravel()]
    shares = np.full((len(Y), n_components), BLUR / n_components)
    shares[np.arange(len(Y)), owner] += 1 - BLUR
    return shares


def _variance(X: Features, weights: Floats) -> Floats:
    """Return the variance of each feature, (d,)."""
    if hasattr(X, "tocsr"):
        variance: Floats = mean_variance_axis(X, 0, weights=weights)[1]
        return variance
    mean = np.average(X, axis=0, weights=weights)
    return np.average((X - mean) ** 2, axis=0, weights=weights)


def _scaled(X: Features, scale: Floats) -> Features:
    """Return the features in units of their standard deviations; sparse ones stay sparse."""
    return X.multiply(1 / scale).tocsr() if hasattr(X, "tocsr") else X / scale


def _linear(X: Features, coefficients: Floats) -> Floats:
    return np.asarray(X @ coefficients[:-1] + coefficients[-1])


def _minimise(
    loss: Callable[[Floats], tuple[float, Floats]],
    X: Features,
    first: Floats,
    centre: Floats,
    penalty: float,
) -> Floats:
    """Return coefficients that are better than the first, by a few steps of L-BFGS."""

    def objective(flat: Floats) -> tuple[float, Floats]:
        coefficients = flat.reshape(first.shape)
        value, slope = loss(_linear(X, coefficients))
        off = coefficients - centre
        change = np.concatenate([X.T @ slope, slope.sum(axis=0)[np.newaxis]]) + penalty * off
        return value + 0.5 * penalty * float((off**2).sum()), change.ravel()

    found = minimize(
        objective, first.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": STEPS}
    )
    better: Floats = found.x.reshape(first.shape)
    return better
