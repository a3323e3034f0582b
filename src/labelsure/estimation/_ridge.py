"""Ridge regression on counts by Newton's method, for all folds and a path of penalties at once.

The objective is glmnet's: the mean negative log-likelihood over the total weight W of the counts,
plus penalty / 2 times the sum of squared coefficients, the intercept free. In scikit-learn's
terms C = 1 / (penalty * W).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from labelsure._typing import Floats, Indices
from labelsure.estimation._design import Block, Layout, log_rates

TOLERANCE = 1e-10  # of the gradient of the final fit; Newton gets there in one step from 1e-5
PATH_STEP = 0.01  # along the path a smaller Newton step is the last: its error is about the square
MAX_STEPS = 100
CURVATURE_FLOOR = 1e-10
N_PENALTIES = 20
PATH_START, PATH_END = 10.0, 1e-6  # times the steepest slope at which nothing but offsets remains


@dataclass(frozen=True)
class Problem:
    """Counts and columns of one regression.

    Parameters
    ----------
    design
        Blocks of standardised columns.
    targets
        (n, K) counts of each class.
    n_free
        Classes with a linear predictor of their own: 1 of 2, or all K.
    layout
        Which coefficient is where.
    """

    design: list[Block]
    targets: Floats
    n_free: int
    layout: Layout

    @property
    def n_columns(self) -> int:
        """Coefficients of each linear predictor."""
        return self.layout.n_columns

    def start(self, n_fits: int) -> Floats:
        """Return coefficients of 0 for `n_fits` fits."""
        return np.zeros((n_fits, self.n_free, self.n_columns))


@dataclass
class Terms:
    """Loss, gradient and Hessian of several fits; sums over rows, without the penalty."""

    loss: Floats
    gradient: Floats
    hessian: Floats


def _terms(problem: Problem, coefficients: Floats, used: Floats) -> Terms:
    """Return the terms of all fits; `used` (n, fits) says which rows each fit sees."""
    n_fits, n_free, n_columns = coefficients.shape
    terms = Terms(
        np.zeros(n_fits),
        np.zeros((n_fits, n_free, n_columns)),
        np.zeros((n_fits, n_free, n_columns, n_free, n_columns)),
    )
    for block in problem.design:
        _add_block(terms, block, problem.targets[block.rows], coefficients, used[block.rows])
    return terms


def _add_block(
    terms: Terms, block: Block, targets: Floats, coefficients: Floats, used: Floats
) -> None:
    n_free = coefficients.shape[1]
    X, columns = block.values, block.columns
    logs = log_rates(block, coefficients, targets.shape[1])
    terms.loss -= _log_likelihood(logs, targets, used)
    rates = np.exp(logs[:n_free])
    weights = used * targets.sum(axis=1)[:, np.newaxis]
    # All fits and pairs of classes share the products of columns.
    left, right = np.triu_indices(columns.size)
    off = left != right
    products = X[:, left] * X[:, right]
    for k in range(n_free):
        expected = weights * rates[k]
        terms.gradient[:, k, columns] += (expected - used * targets[:, [k]]).T @ X
        for m in range(k, n_free):
            part = (expected * ((k == m) - rates[m])).T @ products
            for a, b in {(k, m), (m, k)}:
                view = terms.hessian[:, a, :, b, :]
                view[:, columns[left], columns[right]] += part
                view[:, columns[right[off]], columns[left[off]]] += part[:, off]


def _log_likelihood(logs: Floats, targets: Floats, used: Floats) -> Floats:
    """Return the log-likelihood of the used rows, one for each fit."""
    by_row = sum(targets[:, [k]] * logs[k] for k in range(len(logs)))
    return np.einsum("nf,nf->f", by_row, used)


def _penalised(terms: Terms, coefficients: Floats, totals: Floats, ridge: Floats) -> Terms:
    """Return the terms of the objective: means, with the penalty of each column."""
    _, n_free, n_columns = coefficients.shape
    objective = terms.loss / totals + 0.5 * (ridge * coefficients**2).sum(axis=(1, 2))
    gradient = terms.gradient / totals[:, np.newaxis, np.newaxis] + ridge * coefficients
    hessian = terms.hessian / totals.reshape(-1, 1, 1, 1, 1)
    for k in range(n_free):
        columns = np.arange(n_columns)
        hessian[:, k, columns, k, columns] += ridge
        # Where all rates are 0 or 1 to rounding the intercept has no curvature; the step needs one.
        hessian[:, k, -1, k, -1] += CURVATURE_FLOOR
    if n_free > 1:
        # The same number added to every intercept changes no rate: without this the Hessian has
        # no inverse. The gradient is zero that way, so the step is the same.
        hessian[:, :, -1, :, -1] += 1.0 / n_free
    return Terms(objective, gradient, hessian)


def minimise(
    problem: Problem, start: Floats, used: Floats, penalty: float, *, last_step: float = 0.0
) -> Floats:
    """Return the coefficients of each fit, (fits, n_free, columns), from those of a start.

    Parameters
    ----------
    problem
        Counts and columns.
    start
        (fits, n_free, columns)
    used
        (n, fits) 1 for the rows that a fit sees, 0 for the others.
    penalty
        Greater than 0.
    last_step
        A step smaller than this in every coefficient ends the search unchecked; 0 goes on until
        the gradient is below `TOLERANCE`.
    """
    ridge = penalty * problem.layout.penalised()
    totals = used.T @ problem.targets.sum(axis=1)
    size = problem.n_free * problem.n_columns
    coefficients, kept = start, start
    step, best = np.zeros_like(start), np.full(len(start), np.inf)
    for _ in range(MAX_STEPS):
        terms = _penalised(_terms(problem, coefficients, used), coefficients, totals, ridge)
        worse = terms.loss > best + 1e-12 * np.abs(best)
        if not worse.any() and np.abs(terms.gradient).max() < TOLERANCE:
            return coefficients
        newton = np.linalg.solve(
            terms.hessian.reshape(-1, size, size), terms.gradient.reshape(-1, size, 1)
        ).reshape(start.shape)
        halve = worse[:, np.newaxis, np.newaxis]
        kept = np.where(halve, kept, coefficients)
        best = np.where(worse, best, terms.loss)
        step = np.where(halve, step / 2, -newton)
        coefficients = kept + step
        if not worse.any() and np.abs(step).max() < last_step:
            return coefficients
    warnings.warn(
        f"The fit at penalty {penalty:.3g} did not converge in {MAX_STEPS} steps; its largest "
        f"slope is {np.abs(terms.gradient).max():.1e}. Check the features for extreme values.",
        ConvergenceWarning,
        stacklevel=2,
    )
    return kept


def penalty_path(problem: Problem) -> Floats:
    """Return penalties from one that leaves next to nothing of the slopes to nearly none."""
    weights = problem.targets.sum(axis=1)
    shares = problem.targets.sum(axis=0) / weights.sum()
    excess = weights[:, np.newaxis] * shares - problem.targets
    gradient = np.zeros((problem.n_columns, problem.n_free))
    for block in problem.design:
        gradient[block.columns] += block.values.T @ excess[block.rows, : problem.n_free]
    steepest = np.abs(gradient[:-1]).max(initial=0.0) / weights.sum()
    if steepest < 1e-12:  # nothing to learn: any penalty does
        return np.ones(1)
    return np.geomspace(PATH_START * steepest, PATH_END * steepest, N_PENALTIES)


@dataclass(frozen=True)
class PathFit:
    """Fits along a path of penalties.

    Parameters
    ----------
    penalties
        From the strongest down.
    deviances
        Held-out deviance for a unit of weight, one for each penalty.
    coefficients
        (penalties, n_free, columns) of the fits to all rows.
    """

    penalties: Floats
    deviances: Floats
    coefficients: Floats

    @property
    def best(self) -> int:
        """The penalty with the least held-out deviance; the stronger on a tie."""
        return int(np.argmin(self.deviances))


def fit_path(problem: Problem, penalties: Floats, folds: Indices) -> PathFit:
    """Fit all folds' complements and all rows along the path, each from the last one's end."""
    n_folds = int(folds.max()) + 1
    used = np.ones((len(folds), n_folds + 1))
    used[np.arange(len(folds)), folds] = 0.0
    held_out = 1.0 - used[:, :-1]
    coefficients = problem.start(n_folds + 1)
    deviances, whole = [], []
    for penalty in penalties:
        coefficients = minimise(problem, coefficients, used, penalty, last_step=PATH_STEP)
        deviances.append(2 * _loss(problem, coefficients[:-1], held_out))
        whole.append(coefficients[-1])
    return PathFit(penalties, np.array(deviances), np.array(whole))


def _loss(problem: Problem, coefficients: Floats, used: Floats) -> float:
    total = 0.0
    for block in problem.design:
        logs = log_rates(block, coefficients, problem.targets.shape[1])
        total -= _log_likelihood(logs, problem.targets[block.rows], used[block.rows]).sum()
    return float(total / problem.targets.sum())


def covariance(problem: Problem, coefficients: Floats, penalty: float) -> Floats:
    """Return the sandwich covariance of one fit's (n_free * columns) coefficients.

    It holds whether or not the counts are as independent as the likelihood has them.
    """
    everything = np.ones((len(problem.targets), 1))
    total = problem.targets.sum()
    terms = _terms(problem, coefficients[np.newaxis], everything)
    size = problem.n_free * problem.n_columns
    plain = terms.hessian[0].reshape(size, size) / total
    ridge = penalty * problem.layout.penalised()
    terms = _penalised(terms, coefficients[np.newaxis], np.array([total]), ridge)
    inverse = np.linalg.inv(terms.hessian[0].reshape(size, size))
    scores = np.zeros((size, size))
    for block in problem.design:
        scores += _score_products(problem, block, coefficients)
    n_samples = len(problem.targets)
    effective = min(float(np.trace(inverse @ plain)), n_samples / 2)
    return inverse @ scores @ inverse / total**2 * n_samples / (n_samples - effective)


def _score_products(problem: Problem, block: Block, coefficients: Floats) -> Floats:
    targets = problem.targets[block.rows]
    rates = np.exp(log_rates(block, coefficients[np.newaxis], targets.shape[1]))[:, :, 0].T
    excess = (targets.sum(axis=1)[:, np.newaxis] * rates - targets)[:, : problem.n_free]
    scores = np.zeros((len(targets), problem.n_free, problem.n_columns))
    scores[:, :, block.columns] = excess[:, :, np.newaxis] * block.values[:, np.newaxis, :]
    flat = scores.reshape(len(targets), -1)
    return flat.T @ flat
