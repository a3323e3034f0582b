"""Sampling without bias: chains can evaluate what they draw.

The mean of -log P(y) over draws y is unbiased for the entropy. Few labelsets carry the collision,
the sum of P(y)**2, and P seldom draws them: it is the mean of P(y)**2 / Q(y) over draws from Q, the
mean of the chains with squared odds. Draws are stratified over the chains. Where some labelsets
were enumerated, these count exactly and draws only estimate the rest.

Section numbers are those of `docs/algorithms.md`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from scipy.stats import norm

from labelsure._kernels import labelset_search as search
from labelsure._kernels.threads import for_rows
from labelsure._typing import Floats, Integers, Labelsets, Mask
from labelsure.candidates import Profile, log
from labelsure.distributions._answers import Expected, MaxMarginals, TopLabelsets, View
from labelsure.distributions._chain_links import Chain, LinearStack
from labelsure.distributions._enumeration import Enumeration, metric_range
from labelsure.distributions._labelset_table import expect_over
from labelsure.metrics import Metric, counts
from labelsure.weighted_labelsets import WeightedLabelsets, find_distinct

LEVEL = 0.95
QUANTILE = float(norm.ppf(0.5 + LEVEL / 2))
MIN_NEW_DRAWS = 30  # fewer give no interval
DRAWS_PER_SQUARED = 5
"""How many draws there are for each one with squared odds, which costs two evaluations: that the
collision is known better than the entropy is worth no more than a third of the time."""

UNDRAWN = 2
"""What has not been drawn may be at either end of the range. Intervals are as wide as if two more
draws were at each end, so that draws which are all alike do not claim to be sure: with zeros and
ones that is Agresti and Coull's interval."""


class Estimate(NamedTuple):
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


@dataclass(frozen=True)
class SquaredDraws:
    """What draws with squared odds say of the collision, the sum of P(y)**2.

    Parameters
    ----------
    log_scale
        (n,) the log of each instance's largest weight P(y)**2 / Q(y), which all are divided by:
        with many labels they are too small for a number.
    weights
        (n, m, size) of the draws, in [0, 1].
    is_new
        (n, m, size) whether a draw is not among the labelsets enumerated.
    known
        (n,) the sum of P(y)**2 over those, divided by the same.
    """

    log_scale: Floats
    weights: Floats
    is_new: Mask
    known: Floats

    @classmethod
    def from_logs(cls, log_weights: Floats, is_new: Mask, log_known: Floats) -> SquaredDraws:
        """Divide by the largest weight."""
        log_scale = log_weights.max(axis=(1, 2))
        weights = np.exp(log_weights - log_scale[:, np.newaxis, np.newaxis])
        return cls(log_scale, weights, is_new, np.exp(log_known - log_scale))

    @property
    def n_new(self) -> Integers:
        """How many draws are new, (n,)."""
        return np.asarray(self.is_new.sum(axis=(1, 2)))

    def corrected(self) -> Floats:
        """Return (n, m, size) values whose mean is unbiased for what was not enumerated.

        These are the weights of new draws. Those of the other draws have a mean that is known:
        where few of them were drawn, too many are new. A share of how far they are off is added,
        the one that takes most variance away in the other half of the draws, which leaves the mean
        unbiased.
        """
        new = np.where(self.is_new, self.weights, 0.0)
        off = np.where(self.is_new, 0.0, self.weights) - self.known[:, np.newaxis, np.newaxis]
        half = new.shape[2] // 2
        share = np.empty_like(new)
        share[:, :, :half] = _best_share(new[:, :, half:], off[:, :, half:])
        share[:, :, half:] = _best_share(new[:, :, :half], off[:, :, :half])
        return new + share * off

    def estimate(self) -> Estimate:
        """Return the log collision, its standard error and half the width of its interval.

        A few weights may be far above the others. On the scale of logs the interval reaches
        farther up than down, and further draws could bring the largest weight drawn, or none.
        """
        values = self.corrected()
        mean = values.mean(axis=(1, 2))
        total = np.maximum(self.known + mean, np.finfo(float).tiny)
        least = np.minimum(values.min(axis=(1, 2)), 0.0)
        variance = _stratified_variance(values) / total**2
        undrawn = _undrawn_variance(values, least, values.max(axis=(1, 2)), mean) / total**2
        value = np.log(total) + self.log_scale
        return Estimate(value, np.sqrt(variance), QUANTILE * np.sqrt(variance + undrawn))


def _best_share(values: Floats, control: Floats) -> Floats:
    """Return the share in [0, 1] of the control that takes most variance off the values."""
    values = values - values.mean(axis=2, keepdims=True)  # only variance within chains counts
    control = control - control.mean(axis=2, keepdims=True)
    covariance = (values * control).sum(axis=(1, 2), keepdims=True)
    variance = (control**2).sum(axis=(1, 2), keepdims=True)
    return np.clip(-covariance / np.where(variance > 0, variance, 1.0), 0.0, 1.0)


@dataclass(frozen=True)
class Sampled(View):
    """Draws of each instance, and what was enumerated before they were made.

    Parameters
    ----------
    enumeration
        The labelsets that count exactly; perhaps none.
    draws
        (n, m, size, L): `size` from each of the m chains.
    log_prob
        (n, m, size) of each draw under the mixture.
    is_new
        (n, m, size) whether a draw is not among the labelsets enumerated.
    chains
        That were drawn from.
    generator
        For draws with squared odds, which are made when the collision is asked for.
    """

    enumeration: Enumeration
    draws: Labelsets
    log_prob: Floats
    is_new: Mask
    chains: Sequence[Chain]
    generator: np.random.Generator

    def mean_of_rest(
        self, values: Floats, least: Floats, most: Floats, guess: Floats | float = 0.0
    ) -> Estimate:
        """Estimate the sum over labelsets not enumerated of P(y) value(y).

        The mass of the rest is known, so a constant taken off the values of the draws and put back
        exactly takes variance away: their mean, as far as possible. That of one half of the draws
        is used for the other half, which leaves the estimate unbiased. A guess that does not come
        from the draws counts as one more of them.

        Parameters
        ----------
        values
            (n, m, size) of the draws.
        least, most
            (n,) between which values are expected.
        guess
            Of the mean, or one for each instance.
        """
        size = values.shape[2]
        first, second = slice(None, size // 2), slice(size // 2, None)
        estimate = np.zeros(len(values))
        for mine, other in ((first, second), (second, first)):
            centre = _mean_where(self.is_new[:, :, other], values[:, :, other], guess)
            shifted = _shifted(self.is_new[:, :, mine], values[:, :, mine], centre)
            part = self.enumeration.unseen_mass * centre + shifted.mean(axis=(1, 2))
            estimate += part * (shifted.shape[2] / size)
        centre = _mean_where(self.is_new, values, guess)
        variance = _stratified_variance(_shifted(self.is_new, values, centre))
        undrawn = _undrawn_variance(values, least, most, centre)
        return Estimate(estimate, np.sqrt(variance), QUANTILE * np.sqrt(variance + undrawn))

    def profile(self) -> Profile:
        """Return unbiased entropy and collision; intervals of 95% within the certified bounds."""
        certain = self.with_draws.profile()
        low, high = certain.low, certain.high
        entropy, entropy_ends = self._entropy(low.entropy, high.entropy)
        collision, collision_ends = self._log_collision(low.log_collision, high.log_collision)
        return replace(
            certain,
            entropy=entropy.value,
            log_collision=collision.value,
            method=self._method(),
            bounds=(
                replace(low, entropy=entropy_ends[0], log_collision=collision_ends[0]),
                replace(high, entropy=entropy_ends[1], log_collision=collision_ends[1]),
            ),
            entropy_error=entropy.error,
            collision_error=collision.error,
        )

    def _entropy(self, low: Floats, high: Floats) -> tuple[Estimate, tuple[Floats, Floats]]:
        """Return the entropy and its interval within the certified one."""
        known = self.enumeration.seen
        surprise = np.where(self.is_new, -self.log_prob, 0.0)
        # Unseen labelsets have at least this surprise.
        guess = -log(np.maximum(self.enumeration.largest_unseen, 1e-300))
        # What is more probable was drawn already; surprise on average is no more than of a flat P.
        least = np.where(self.is_new, surprise, np.inf).min(axis=(1, 2), initial=self._log_n)
        rest = self.mean_of_rest(surprise, least, np.full_like(least, self._log_n), guess)
        value = rest.value + known.sum(-known.weights * np.log(known.weights))
        ends = value - rest.half_width, value + rest.half_width
        return rest._replace(value=value), self._cut(ends, (low, high), self.n_new)

    def _log_collision(self, low: Floats, high: Floats) -> tuple[Estimate, tuple[Floats, Floats]]:
        """Return the log collision, with the collision's own error, and the former's interval."""
        found = self.squared.estimate()
        ends = found.value - found.half_width, found.value + found.half_width
        return found._replace(
            value=np.maximum(found.value, -self._log_n), error=np.exp(found.value) * found.error
        ), self._cut(ends, (low, high), self.squared.n_new)

    @cached_property
    def squared(self) -> SquaredDraws:
        """Draws from the mean of the chains with squared odds. Section 7."""
        size = max(2, -(-self.draws.shape[2] // DRAWS_PER_SQUARED))
        squared = [chain.square_odds() for chain in self.chains]
        draws = _draw_each(squared, size, self.generator)
        flat = draws.reshape(len(draws), -1, draws.shape[-1])
        log_weights = 2 * _log_mean_prob(self.chains, flat) - _log_mean_prob(squared, flat)
        known = self.enumeration.seen
        is_new, shape = ~known.contains(flat), draws.shape[:3]
        return SquaredDraws.from_logs(
            log_weights.reshape(shape), is_new.reshape(shape), log(known.sum(known.weights**2))
        )

    @property
    def n_new(self) -> Integers:
        """How many draws are not among the labelsets enumerated, (n,)."""
        return np.asarray(self.is_new.sum(axis=(1, 2)))

    @property
    def _log_n(self) -> float:
        """The log of the number of labelsets."""
        return float(self.draws.shape[-1] * np.log(2))

    def mode(self) -> Labelsets:
        """Return the best labelsets that were enumerated or drawn."""
        return self.with_draws.mode()

    def top(self, k: int) -> TopLabelsets:
        """Return the best labelsets that were enumerated or drawn."""
        return self.with_draws.top(k)

    def marginals(self) -> Floats:
        """Return unbiased estimates of P(y_j = 1), kept within [0, 1]."""
        rest = np.where(self.is_new[..., np.newaxis], self.draws, 0).mean(axis=(1, 2))
        return np.clip(self.enumeration.seen.marginals() + rest, 0.0, 1.0)

    def expected(self, metric: Metric, Y_pred: Labelsets, *, empty: float) -> Expected:
        """Return unbiased expected accuracies with 95% intervals within the certified bounds."""
        flat = self.draws.reshape(-1, self.draws.shape[-1])
        predicted = np.repeat(Y_pred, self.draws.shape[1] * self.draws.shape[2], axis=0)
        values = metric.values(*counts(flat, predicted), empty=empty)
        least, most = metric_range(metric, Y_pred, empty)
        rest = self.mean_of_rest(values.reshape(self.log_prob.shape), least, most)
        value = expect_over(self.enumeration.seen, metric, Y_pred, empty) + rest.value
        certain = self.with_draws.expected(metric, Y_pred, empty=empty)
        ends = value - rest.half_width, value + rest.half_width
        return Expected(value, *self._cut(ends, (certain.low, certain.high), self.n_new))

    def _cut(
        self, ends: tuple[Floats, Floats], certain: tuple[Floats, Floats], n_new: Integers
    ) -> tuple[Floats, Floats]:
        """Return the sampling interval cut to the certified one.

        The latter where the two do not meet, and where so few draws are new that their spread
        says nothing.
        """
        left, right = np.maximum(ends[0], certain[0]), np.minimum(ends[1], certain[1])
        usable = (left <= right) & (n_new >= MIN_NEW_DRAWS)
        return np.where(usable, left, certain[0]), np.where(usable, right, certain[1])

    def max_marginals(self) -> MaxMarginals:
        """Return what the labelsets enumerated and drawn say."""
        return self.with_draws.max_marginals()

    def _method(self) -> NDArray[np.str_]:
        some = self.enumeration.seen.lengths > 0
        return np.where(some, "certified+sampled", "sampled")

    @cached_property
    def with_draws(self) -> Enumeration:
        """The enumeration with the draws added: they were seen, and their P is known."""
        known = self.enumeration.seen
        new = self.is_new.ravel()
        instance = np.repeat(np.arange(len(known)), self.is_new[0].size if len(known) else 0)[new]
        rows, log_prob = self.draws.reshape(-1, known.n_labels)[new], self.log_prob.ravel()[new]
        once = find_distinct(rows, instance)
        drawn = WeightedLabelsets.merge(
            rows[once], np.exp(log_prob[once]), instance[once], len(known)
        )
        return Enumeration.from_seen(known.join(drawn), self.enumeration.largest_unseen)


def _mean_where(chosen: Mask, values: Floats, guess: Floats | float) -> Floats:
    """Return the mean of each instance's chosen values and one guess, (n,)."""
    total = np.where(chosen, values, 0.0).sum(axis=(1, 2)) + guess
    return total / (chosen.sum(axis=(1, 2)) + 1)


def _shifted(chosen: Mask, values: Floats, centre: Floats) -> Floats:
    """Return the chosen values less a constant of each instance, 0 for the others."""
    return np.where(chosen, values - centre[:, np.newaxis, np.newaxis], 0.0)


def _stratified_variance(values: Floats) -> Floats:
    """Return the variance of the mean of each instance's values, as many from each chain, (n,)."""
    n_chains, size = values.shape[1:]
    return np.asarray(values.var(axis=2, ddof=1).sum(axis=1) / (size * n_chains**2))


def _undrawn_variance(
    values: Floats, least: Floats | float, most: Floats | float, centre: Floats
) -> Floats:
    """Return what draws at both ends of the range would add to the variance of the mean, (n,)."""
    n_draws = values.shape[1] * values.shape[2]
    return UNDRAWN * ((centre - least) ** 2 + (most - centre) ** 2) / n_draws**2


def sample_chains(
    chains: Sequence[Chain],
    enumeration: Enumeration,
    n_draws: int,
    generator: np.random.Generator,
) -> Sampled:
    """Draw about `n_draws` labelsets for each instance, as many from each chain."""
    draws = _draw_each(chains, max(2, -(-n_draws // len(chains))), generator)
    flat = draws.reshape(len(draws), -1, draws.shape[-1])
    log_prob, is_new = _log_mean_prob(chains, flat), ~enumeration.seen.contains(flat)
    shape = draws.shape[:3]
    return Sampled(
        enumeration, draws, log_prob.reshape(shape), is_new.reshape(shape), chains, generator
    )


def _draw_each(chains: Sequence[Chain], size: int, generator: np.random.Generator) -> Labelsets:
    """Draw labelsets of each instance from each chain, (n, m, size, L)."""
    n_samples, n_labels = chains[0].n_samples, chains[0].order.size
    stack = LinearStack.of(chains)
    draws = np.empty((n_samples, len(chains), size, n_labels), dtype=np.int8)
    for m, chain in enumerate(chains):
        uniforms = generator.random((n_samples, size, n_labels))
        if stack is None:
            rows = np.repeat(np.arange(n_samples), size)
            flat = chain.sample(rows, uniforms.reshape(-1, n_labels))
            draws[:, m] = flat.reshape(uniforms.shape)
        else:
            drawn = np.empty((n_samples, size, n_labels), dtype=np.int8)
            linear = (stack.odds[:, m], stack.factors[m], stack.orders[m])
            for_rows(search.draw_rows, n_samples, *linear, uniforms, into=[drawn])
            draws[:, m] = drawn
    return draws


def _log_mean_prob(chains: Sequence[Chain], draws: Labelsets) -> Floats:
    """Return the log of the mean over chains of P(y), (n, size), for draws (n, size, L)."""
    n_samples, size, n_labels = draws.shape
    stack = LinearStack.of(chains)
    if stack is not None:
        log_prob = np.empty((n_samples, size))
        inputs = (stack.odds, stack.factors, draws)
        for_rows(search.log_prob_rows, n_samples, *inputs, into=[log_prob])
        return log_prob
    rows = np.repeat(np.arange(n_samples), size)
    flat = draws.reshape(-1, n_labels)
    by_chain = [chain.take(rows).log_prob(flat) for chain in chains]
    return (logsumexp(by_chain, axis=0) - np.log(len(chains))).reshape(n_samples, size)
