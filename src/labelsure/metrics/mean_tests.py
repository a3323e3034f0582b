"""Tests and intervals of a mean: whether outcomes in [0, 1] show it to be above a target.

A p-value is for "the true mean is at most the target". Guarantees, such as a mean accuracy of
accepted predictions, rest on these tests.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import bdtr, betaincinv, expit, gammaln, ndtri, ndtri_exp, stdtr, stdtrit

from labelsure._kernels.statistics import count_rejected, largest_log_capital
from labelsure._runtime.typing import Floats
from labelsure.errors import InputError

MAX_STAKE = 0.98
"""Largest share of the capital that one outcome can cost. Outcomes of little variance take a
large one; for those that are 0 or 1, where less would be better, there is an exact test."""
OVERSHOOT = 1.01  # of the required capital, so that rounding does not miss it
STAKE_STEP, N_STAKES = 0.01, 6001  # table of stakes: log capital in steps of 0.01 down to -60
N_TARGETS = 1000  # lower bounds are multiples of 0.001
ROUNDING = 1e-9  # rounding error of a product that is a whole number

PSEUDO_VARIANCE = 0.25  # of one fair coin, as a prior
MAX_PMF = 0.4689  # of a Poisson-binomial distribution, times its standard deviation
N_NEWTON, LARGEST_STEP = 6, 2.0  # logistic regression on standardised values


class ExactBinomial:
    """Exact binomial test, for outcomes that are 0 or 1."""

    def check(self, outcomes: Floats) -> None:
        """Raise InputError for outcomes other than 0 and 1."""
        is_fractional = ~np.isin(outcomes, (0, 1))
        if is_fractional.any():
            raise InputError(
                "`accuracy` must be 0 or 1 for outcome='binary', got "
                f"{outcomes[is_fractional][0]}. Use outcome='bounded'."
            )

    def p_value(self, outcomes: Floats, target: float, error: float) -> float:
        """Binomial p-value: probability of at most so many zeros if the mean is the target."""
        return float(bdtr(len(outcomes) - outcomes.sum(), len(outcomes), 1 - target))

    def lower_bound(self, outcomes: Floats, error: float) -> float:
        """Lower confidence bound of the mean (Clopper and Pearson), a multiple of 0.001.

        Rounded down: three printed digits must not claim more than what is proved.
        """
        n_ones = int(outcomes.sum())
        if n_ones == 0:
            return 0.0
        bound = betaincinv(n_ones, len(outcomes) - n_ones + 1, error)
        return math.floor(N_TARGETS * bound + ROUNDING) / N_TARGETS


class Betting:
    """Test by betting on outcomes in [0, 1], one after the other.

    A capital of 1 is staked on each outcome being above the target. If the true mean is at most the
    target, no way of betting makes it grow on average, and the chance that it ever reaches 1 / p is
    at most p (Ville). How much is staked may depend on all outcomes before, and here on their
    variance, on the capital that is still missing and on the number of outcomes to come: the stake
    with the best chance to reach its goal in time if sums are normal (Kulldorff, "Optimal control
    of favorable games with a time limit"; betting on means: Waudby-Smith and Ramdas, "Estimating
    means of bounded random variables by betting"). So it has nearly the power of a test that
    assumes normal sums, and no need of the assumption.
    """

    def check(self, outcomes: Floats) -> None:
        """Accept all outcomes in [0, 1]."""

    def p_value(self, outcomes: Floats, target: float, error: float, n_all: int = 0) -> float:
        """P-value by Ville's inequality: 1 over the largest capital."""
        log_goal = np.log(OVERSHOOT / error)
        log_capital = largest_log_capital(
            outcomes, n_all, target, MAX_STAKE, log_goal, _optimal_stakes(), STAKE_STEP
        )
        return float(np.exp(-log_capital))

    def lower_bound(self, outcomes: Floats, error: float, n_all: int = 0) -> float:
        """Lower confidence bound: largest multiple of 0.001 up to which all targets are rejected.

        If it exceeds the true mean, then the first multiple from the true mean on was rejected, a
        true null hypothesis: the probability is at most `error`.
        """
        log_needed, log_goal = -np.log(error), np.log(OVERSHOOT / error)
        stakes = _optimal_stakes()
        n_shown = count_rejected(
            outcomes, n_all, N_TARGETS, log_needed, MAX_STAKE, log_goal, stakes, STAKE_STEP
        )
        return float(n_shown / N_TARGETS)


MIN_NORMAL = 30
"""Number of outcomes from which their sum is assumed to be normal. With 2, 10 and 30 outcomes of 0
and 1 Student's test at 5 % passes in 6.8, 7.3 and 3.7 % for a true mean of .88 and a target of
.9."""


class Student:
    """Student's t test of the mean of any outcomes, approximately."""

    def check(self, outcomes: Floats) -> None:
        """Accept all outcomes."""

    def p_value(self, outcomes: Floats, target: float, error: float) -> float:
        """P-value of "the mean is at most the target"; 1 for few outcomes."""
        n = len(outcomes)
        if n < MIN_NORMAL:
            return 1.0
        if outcomes.min() == 1:
            return float(target**n)  # all are 1 as often if the others are 0: no spread is no proof
        standard_error = max(float(outcomes.std(ddof=1)), 1e-9) / n**0.5
        return float(stdtr(n - 1, (target - outcomes.mean()) / standard_error))

    def lower_bound(self, outcomes: Floats, error: float) -> float:
        """Lower end of Student's one-sided interval, a multiple of 0.001."""
        n = len(outcomes)
        if n < MIN_NORMAL:
            return 0.0
        bound = outcomes.mean() + float(stdtrit(n - 1, error)) * outcomes.std(ddof=1) / n**0.5
        if outcomes.min() == 1:
            bound = error ** (1 / n)
        return math.floor(N_TARGETS * max(bound, 0.0) + ROUNDING) / N_TARGETS


@cache
def _optimal_stakes() -> Floats:
    """Stakes of a capital that is a factor exp(0), exp(STAKE_STEP), ... below its goal.

    In a fair game a capital of p times the goal reaches it with probability p = P(Z < z), Z being
    standard normal. The stake is the derivative of that probability in z, relative to itself.
    """
    log_p = -STAKE_STEP * np.arange(1, N_STAKES)
    stakes = np.exp(-(ndtri_exp(log_p) ** 2) / 2 - log_p) / np.sqrt(2 * np.pi)
    return np.append(0.0, stakes)


def permutation_bound(reference: Floats, batch: Floats) -> float:
    """Upper bound on the p-value of the two-sided permutation test of two means.

    If both samples come from one population, the batch is a random subset of n of all N values v.
    Its sum S reaches x with a chance of at most exp(-s x) E exp(s S), for each s > 0, and

        E exp(s S) = exp(-a n) prod(1 + exp(a + s v)) P(K = n) / C(N, n)

    for each a, where K counts the heads of N coins with probabilities expit(a + s v). P(K = n) is
    at most 0.4689 over the standard deviation of K (Baillon, Cominetti and Vaisman, 2016). The
    likelihood of a logistic regression that discriminates the samples is
    exp(a n + s x) / prod(1 + exp(a + s v)), so that its a and s make the bound smallest. Nothing is
    assumed to be normal: it holds at any level. The factor 2 makes the bound two-sided.
    """
    n, n_all = len(batch), len(reference) + len(batch)
    values = np.concatenate([reference, batch])
    values = (values - values.mean()) / max(float(values.std()), 1e-300)
    design = np.column_stack([np.ones(n_all), values])
    sums = design[n_all - n :].sum(axis=0)
    log_binomial = gammaln(n_all + 1) - gammaln(n + 1) - gammaln(n_all - n + 1)
    coefficients, log_bound = (
        np.array([np.log(n / (n_all - n)), sums[1] / n * n_all / (n_all - n)]),
        0.0,
    )
    for _ in range(N_NEWTON):
        logits = design @ coefficients
        p = expit(logits)
        weights = p * (1 - p)
        log_likelihood = coefficients @ sums - np.logaddexp(0.0, logits).sum()
        log_pmf_bound = min(0.0, np.log(MAX_PMF) - 0.5 * np.log(weights.sum()))
        log_bound = min(log_bound, np.log(2) + log_pmf_bound - log_likelihood - log_binomial)
        curvature = (design * weights[:, np.newaxis]).T @ design
        step = np.linalg.lstsq(curvature, sums - design.T @ p)[0]
        coefficients = coefficients + step / max(1.0, np.abs(step).max() / LARGEST_STEP)
    return float(np.exp(log_bound))


MeanTest = Betting | ExactBinomial | Student
"""A test of the mean of outcomes in [0, 1], drawn independently."""

MEAN_TESTS: dict[str, dict[str, MeanTest]] = {
    "exact": {"bounded": Betting(), "binary": ExactBinomial()},
    "approximate": {"bounded": Student(), "binary": ExactBinomial()},
}
"""The test for each guarantee and kind of outcome."""


def dispersion_ratio(bernoulli_variance: ArrayLike, squared_residuals: ArrayLike) -> Floats:
    """(sum of squared residuals + 1/4) / (sum of p(1 - p) + 1/4): 1 where both sums are small."""
    residuals, expected = np.asarray(squared_residuals), np.asarray(bernoulli_variance)
    return np.asarray((residuals + PSEUDO_VARIANCE) / (expected + PSEUDO_VARIANCE))


def wilson_interval(
    mean: ArrayLike, spread: ArrayLike, n_samples: ArrayLike, level: float
) -> tuple[Floats, Floats]:
    """Lower and upper ends of Wilson intervals of means, (k,) each.

    The number of trials is n over the dispersion ratio: as many Bernoulli trials as have the
    standard deviation of the values.
    """
    mean, spread, n_samples = np.asarray(mean), np.asarray(spread), np.asarray(n_samples)
    ratio = dispersion_ratio(n_samples * mean * (1 - mean), n_samples * spread**2)
    n_trials = n_samples / ratio
    z = ndtri((1 + level) / 2)
    centre = (mean + z**2 / (2 * n_trials)) / (1 + z**2 / n_trials)
    half = (
        z * np.sqrt(mean * (1 - mean) / n_trials + z**2 / (4 * n_trials**2)) / (1 + z**2 / n_trials)
    )
    return np.maximum(centre - half, 0.0), np.minimum(centre + half, 1.0)
