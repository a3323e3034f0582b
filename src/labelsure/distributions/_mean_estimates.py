"""Means of stratified draws with control variates, and intervals that allow for undrawn values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri, stdtrit

from labelsure._runtime.typing import Floats

LEVEL = 0.95
QUANTILE = float(ndtri(0.5 + LEVEL / 2))

UNDRAWN = 2
"""What has not been drawn may be at either end of the range. Intervals are as wide as if two more
draws were at each end, so that draws which are all alike do not claim to be sure: with zeros and
ones that is Agresti and Coull's interval."""

PRIOR_DRAWS = 2
"""A coefficient that is fitted counts its first guess like so many draws."""

LEAST_LEFT = 0.01
"""However much variance was taken away, this share of what undrawn ends add is left."""


class MeanEstimate(NamedTuple):
    """An estimate of each instance, all (n,).

    Parameters
    ----------
    value
        Unbiased.
    error
        Its standard error.
    half_width
        Of its interval of 95%.
    """

    value: Floats
    error: Floats
    half_width: Floats

    def widen(self, n_intervals: int, freedom: int) -> MeanEstimate:
        """Return intervals that hold together with 95% confidence, by Bonferroni and Student's t.

        Parameters
        ----------
        n_intervals
            How many have to hold.
        freedom
            Degrees of freedom of their standard errors.
        """
        quantile = float(stdtrit(freedom, 1 - (1 - LEVEL) / (2 * n_intervals)))
        return self._replace(half_width=self.half_width * (quantile / QUANTILE))

    def growth_needed(self, half_width: Floats | float) -> Floats:
        """Return how many times as many draws would give intervals of that half width, (n,).

        The variance falls with the number of draws, what undrawn ends add with its square.
        """
        wanted = np.maximum((half_width / QUANTILE) ** 2, np.finfo(float).tiny)
        variance = self.error**2
        undrawn = np.maximum((self.half_width / QUANTILE) ** 2 - variance, 0.0)
        return (variance + np.sqrt(variance**2 + 4 * wanted * undrawn)) / (2 * wanted)


def estimate_mean(
    values: Floats,
    controls: Sequence[Floats],
    guesses: Sequence[float],
    undrawn: Floats,
) -> MeanEstimate:
    """MeanEstimate the mean of what was drawn, as many from each chain.

    What has a mean of 0 can be taken off the values, in any multiple, without changing theirs. The
    multiples that leave least variance in one half of the draws are used for the other half, which
    leaves the estimate unbiased.

    Parameters
    ----------
    values
        (n, m, size) of the draws.
    controls
        Arrays of the same shape whose mean over the chains is known to be 0.
    guesses
        The multiple of each control that is expected to be best.
    undrawn
        (n,) the variance that draws at both ends of the range would add to the mean.
    """
    size = values.shape[2]
    guess = np.asarray(guesses, dtype=np.float64)
    stacked = np.stack(controls, axis=-1)
    first, second = slice(None, size // 2), slice(size // 2, None)
    rest = np.empty(values.shape)
    for mine, other in ((first, second), (second, first)):
        multiples = _best_multiples(values[:, :, other], stacked[:, :, other], guess)
        taken = np.einsum("nmsk,nk->nms", stacked[:, :, mine], multiples)
        rest[:, :, mine] = values[:, :, mine] - taken
    variance, before = stratified_variance(rest), stratified_variance(values)
    # What takes variance off the draws does so with those at the ends of the range: with these
    # half as well, to be safe.
    share = np.where(before > 0, variance / np.where(before > 0, before, 1.0), 1.0)
    left = np.clip(2.0 * share, LEAST_LEFT, 1.0)
    half_width = QUANTILE * np.sqrt(variance + left * undrawn)
    return MeanEstimate(rest.mean(axis=(1, 2)), np.sqrt(variance), half_width)


def _best_multiples(values: Floats, controls: Floats, guess: Floats) -> Floats:
    """Return (n, k) least squares within chains, pulled a little towards the guess."""
    values = values - np.einsum("nmsk,k->nms", controls, guess)
    # Around 0, the known mean: a control that no draw moved has a variance all the same.
    variance = np.einsum("nmsk,nmsk->nk", controls, controls)
    values = values - values.mean(axis=2, keepdims=True)  # only variance within chains counts
    controls = controls - controls.mean(axis=2, keepdims=True)
    n_draws = values.shape[1] * values.shape[2]
    flat = controls.reshape(len(values), n_draws, -1)
    squares = np.einsum("nsk,nsl->nkl", flat, flat)  # in one order, on any number of threads
    products = np.einsum("nsk,ns->nk", flat, values.reshape(len(values), n_draws))
    pull = np.where(variance > 0, variance * (PRIOR_DRAWS / n_draws), 1.0)
    squares = squares + pull[:, :, np.newaxis] * np.eye(len(guess))
    return guess + np.linalg.solve(squares, products[:, :, np.newaxis])[:, :, 0]


def stratified_variance(values: Floats) -> Floats:
    """Return the variance of the mean of each instance's values, as many from each chain, (n,)."""
    n_chains, size = values.shape[1:]
    return np.asarray(values.var(axis=2, ddof=1).sum(axis=1) / (size * n_chains**2))


def undrawn_variance(
    n_draws: int, least: Floats | float, most: Floats | float, centre: Floats
) -> Floats:
    """Return what draws at both ends of the range would add to the variance of the mean, (n,)."""
    return np.asarray(UNDRAWN * ((centre - least) ** 2 + (most - centre) ** 2) / n_draws**2)
