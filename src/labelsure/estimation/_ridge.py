"""Ridge regression on counts by Newton's method, for all folds and a path of penalties at once.

The objective is glmnet's: the mean negative log-likelihood over the total weight W of the counts,
plus penalty / 2 times the sum of squared coefficients, the intercept free. In scikit-learn's
terms C = 1 / (penalty * W).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from scipy.linalg import lu_factor, lu_solve
from scipy.special import log_softmax
from sklearn.exceptions import ConvergenceWarning

from labelsure._runtime.typing import Floats, Indices
from labelsure.estimation._design import (
    Block,
    Layout,
    Part,
    class_rates,
    linear_predictors,
    log_rates,
    make_parts,
)

TOLERANCE = 1e-10  # of the gradient of the final fit; Newton gets there in one step from 1e-5
PATH_STEP = 0.01  # along the path a smaller Newton step is the last: its error is about the square
FOLD_ERROR = 1e-6  # of a coefficient: held-out deviances of neighbours may differ by only 1e-8
MOST_LEFT = 0.8  # of the distance, by a step with another fit's curvature
MAX_STEPS = 100
ROUNDING = 1e-12  # of a loss, which may be all rounding where next to nothing is left of it
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

    def parts(self, used: Floats) -> list[Part]:
        """Return the blocks with what fits see of their rows, (n, fits)."""
        return make_parts(self.design, self.targets, used)

    def start(self, n_fits: int) -> Floats:
        """Return coefficients of 0 for `n_fits` fits."""
        return np.zeros((n_fits, self.n_free, self.n_columns))


@dataclass
class Terms:
    """Loss, gradient and Hessian of several fits; sums over rows, without the penalty."""

    loss: Floats
    gradient: Floats
    hessian: Floats


def _terms(parts: list[Part], coefficients: Floats) -> Terms:
    """Return the terms of all fits."""
    n_fits, n_free, n_columns = coefficients.shape
    terms = Terms(
        np.zeros(n_fits),
        np.zeros((n_fits, n_free, n_columns)),
        np.zeros((n_fits, n_free, n_columns, n_free, n_columns)),
    )
    for part in parts:
        _add_part(terms, part, coefficients)
    return terms


def _add_part(terms: Terms, part: Part, coefficients: Floats) -> None:
    n_fits, n_free, _ = coefficients.shape
    X, columns = part.block.values, part.block.columns
    logs, rates = _log_rates(part, coefficients)
    terms.loss -= ((part.targets * logs).sum(axis=0) * part.used).sum(axis=0)
    weights = part.totals * part.used
    for k in range(n_free):
        excess = (part.totals * rates[k] - part.targets[k]) * part.used
        terms.gradient[:, k, columns] += excess.T @ X
    for fit in range(n_fits):
        _add_curvature(terms.hessian[fit], part.block, rates[:n_free, :, fit], weights[:, fit])


def _log_rates(part: Part, coefficients: Floats) -> tuple[Floats, Floats]:
    """Return the log of each class's rate, (K, rows, fits), and the rates."""
    logs = np.zeros((len(part.targets), len(part.totals), len(coefficients)))
    logs[: coefficients.shape[1]] = linear_predictors(part.block, coefficients)
    logs -= logs.max(axis=0)
    rates = np.exp(logs)
    sums = rates.sum(axis=0)
    logs -= np.log(sums)
    rates /= sums
    return logs, rates


def _add_curvature(hessian: Floats, block: Block, rates: Floats, weights: Floats) -> None:
    """Add one fit's second derivatives, (n_free, columns, n_free, columns)."""
    X, n_free = block.values, len(rates)
    at = (np.arange(n_free)[:, np.newaxis] * hessian.shape[1] + block.columns).ravel()
    if n_free == 1:
        local = X.T @ (X * (weights * rates[0] * (1 - rates[0]))[:, np.newaxis])
    else:  # those of each class, less the products of two classes
        n_columns = block.columns.size
        scaled = np.sqrt(weights) * rates
        stacked = np.concatenate([X * of_class[:, np.newaxis] for of_class in scaled], axis=1)
        local = -(stacked.T @ stacked)
        for k in range(n_free):
            own = slice(k * n_columns, (k + 1) * n_columns)
            local[own, own] += X.T @ (X * (weights * rates[k])[:, np.newaxis])
    size = n_free * hessian.shape[1]
    hessian.reshape(size, size)[np.ix_(at, at)] += local


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
    return _minimise(problem.parts(used), start, problem.layout, penalty, last_step)[0]


def _minimise(
    parts: list[Part], start: Floats, layout: Layout, penalty: float, last_step: float
) -> tuple[Floats, Floats]:
    """Return the coefficients, and the Hessians, (fits, size, size), where they were last made."""
    ridge = penalty * layout.penalised()
    totals = _total_weights(parts)
    size = start[0].size
    coefficients, kept = start, start
    step, best = np.zeros_like(start), np.full(len(start), np.inf)
    for _ in range(MAX_STEPS):
        terms = _penalised(_terms(parts, coefficients), coefficients, totals, ridge)
        hessian = terms.hessian.reshape(-1, size, size)
        worse = terms.loss > best + ROUNDING * (1 + np.abs(best))
        newton = np.linalg.solve(hessian, terms.gradient.reshape(-1, size, 1)).reshape(start.shape)
        if not worse.any() and np.abs(terms.gradient).max() < TOLERANCE:
            return coefficients - newton, hessian  # which is as exact as rounding allows
        halve = worse[:, np.newaxis, np.newaxis]
        kept = np.where(halve, kept, coefficients)
        best = np.where(worse, best, terms.loss)
        step = np.where(halve, step / 2, -newton)
        coefficients = kept + step
        if not worse.any() and np.abs(step).max() < last_step:
            return coefficients, hessian
    warnings.warn(
        f"The fit at penalty {penalty:.3g} did not converge in {MAX_STEPS} steps; its largest "
        f"slope is {np.abs(terms.gradient).max():.1e}. Check the features for extreme values.",
        ConvergenceWarning,
        stacklevel=3,
    )
    return kept, hessian


def _total_weights(parts: list[Part]) -> Floats:
    """Return the counts that each fit sees, summed."""
    return np.array([part.totals[:, 0] @ part.used for part in parts]).sum(axis=0)


def _minimise_alike(
    parts: list[Part], start: Floats, ridge: Floats, hessian: Floats, share: float
) -> tuple[Floats, float] | None:
    """Return the coefficients of fits to nearly the same rows as one whose Hessian is known.

    A step by that Hessian leaves a small share of the distance, and needs no second derivatives of
    its own. The first step is taken to leave `share`, which is what the last one left before.
    Returns the share of this time too, or None where it is not small.
    """
    weights = _total_weights(parts)
    factor = lu_factor(hessian)
    coefficients, reached, step, before = start, start, np.zeros_like(start), np.inf
    while True:
        gradient = _gradients(parts, coefficients) / weights[:, np.newaxis, np.newaxis]
        gradient += ridge * coefficients
        last_reached, last_step = reached, step
        step = lu_solve(factor, gradient.reshape(len(start), -1).T).T.reshape(start.shape)
        reached = coefficients - step
        largest = float(np.abs(step).max())
        if np.isfinite(before):
            share = largest / before
            if not share < MOST_LEFT:
                return None
            coefficients = reached - _lean(step, last_step) * (reached - last_reached)
        else:
            coefficients = reached
        before = largest
        if share / (1 - share) * largest < FOLD_ERROR:
            return coefficients, share


def _lean(step: Floats, last_step: Floats) -> Floats:
    """Return by how much of the way between two points to go on, so that steps would be least.

    As if steps were linear between the two: Anderson's acceleration with one point of memory.
    """
    change = step - last_step
    length = (change**2).sum(axis=(1, 2), keepdims=True)
    return (change * step).sum(axis=(1, 2), keepdims=True) / np.maximum(length, 1e-300)


def _gradients(parts: list[Part], coefficients: Floats) -> Floats:
    """Return the gradient of each fit's loss: a sum over rows, without the penalty."""
    gradients = np.zeros_like(coefficients)
    for part in parts:
        block = part.block
        rates = class_rates(block, coefficients)
        rates *= part.totals
        rates -= part.targets[: len(rates)]
        rates *= part.used
        for k, excess in enumerate(rates):
            gradients[:, k, block.columns] += excess.T @ block.values
    return gradients


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
    """Fit all folds' complements and all rows along the path, each from the last one's end.

    From one penalty to the next the fits to the folds' complements move nearly as that to all rows
    does: they begin as far from it as they were.
    """
    n_folds = int(folds.max()) + 1
    everything, used = np.ones((len(folds), 1)), np.ones((len(folds), n_folds))
    used[np.arange(len(folds)), folds] = 0.0
    all_parts, parts = problem.parts(everything), problem.parts(used)
    penalised = problem.layout.penalised()
    whole, others = problem.start(1), problem.start(n_folds)
    share = MOST_LEFT
    deviances, of_all = [], []
    hessian = np.zeros(0)  # of the fit to all rows, from the first penalty on
    for i, penalty in enumerate(penalties):
        start = others - whole
        if i:
            change = (penalty - penalties[i - 1]) * penalised
            whole = _move_minimum(hessian[0], whole[0], change)[np.newaxis]
        whole, hessian = _minimise(all_parts, whole, problem.layout, penalty, PATH_STEP)
        start += whole
        found = _minimise_alike(parts, start, penalty * penalised, hessian[0], share)
        if found is None:
            others = _minimise(parts, start, problem.layout, penalty, PATH_STEP)[0]
        else:
            others, share = found
        deviances.append(2 * _held_out_loss(problem, others, folds))
        of_all.append(whole[0])
    return PathFit(penalties, np.array(deviances), np.array(of_all))


def _move_minimum(hessian: Floats, whole: Floats, change: Floats) -> Floats:
    """Return about where a minimum goes when the ridge of each column changes, (n_free, columns).

    There the gradient was 0, and now it is the change of the penalty's.
    """
    changes = np.tile(change, len(whole))
    pull = changes * whole.ravel()
    return whole - np.linalg.solve(hessian + np.diag(changes), pull).reshape(whole.shape)


def _held_out_loss(problem: Problem, coefficients: Floats, folds: Indices) -> float:
    """Return the loss of each row under the fit that has not seen it, for a unit of weight."""
    total = 0.0
    for block in problem.design:
        targets, own = problem.targets[block.rows], folds[block.rows]
        logs = np.zeros((targets.shape[1], len(targets)))
        logs[: problem.n_free] = linear_predictors(block, coefficients)[
            :, np.arange(len(targets)), own
        ]
        total -= (targets.T * log_softmax(logs, axis=0)).sum()
    return float(total / problem.targets.sum())


def covariance(problem: Problem, coefficients: Floats, penalty: float) -> Floats:
    """Return the sandwich covariance of one fit's (n_free * columns) coefficients.

    It holds whether or not the counts are as independent as the likelihood has them.
    """
    everything = np.ones((len(problem.targets), 1))
    total = problem.targets.sum()
    terms = _terms(problem.parts(everything), coefficients[np.newaxis])
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
