"""Sampling without bias: chains can evaluate what they draw.

The mean of -log P(y) over draws y is unbiased for the entropy, the mean of P(y) for the collision.
Draws are stratified over the chains. Where some labelsets were enumerated, these count exactly and
draws only estimate the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from scipy.stats import norm

from labelsure._kernels import labelset_search as search
from labelsure._kernels.threads import for_rows
from labelsure._typing import Floats, Labelsets, Mask
from labelsure.candidates import Profile, log
from labelsure.distributions._answers import Expected, TopLabelsets, View
from labelsure.distributions._chain_links import Chain, LinearStack
from labelsure.distributions._enumeration import Enumeration
from labelsure.distributions._labelset_table import expect_over
from labelsure.metrics import Metric, counts
from labelsure.weighted_labelsets import WeightedLabelsets, find_distinct

LEVEL = 0.95
QUANTILE = float(norm.ppf(0.5 + LEVEL / 2))
MIN_NEW_DRAWS = 30  # fewer give no interval


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
    """

    enumeration: Enumeration
    draws: Labelsets
    log_prob: Floats
    is_new: Mask

    def mean_of_rest(self, values: Floats, guess: Floats | float = 0.0) -> tuple[Floats, Floats]:
        """Estimate the sum over labelsets not enumerated of P(y) value(y), with standard error.

        The mass of the rest is known, so a constant taken off the values of the draws and put back
        exactly takes variance away: their mean, as far as possible. That of one half of the draws
        is used for the other half, which leaves the estimate unbiased. A guess that does not come
        from the draws counts as one more of them.
        """
        size, n_chains = values.shape[2], values.shape[1]
        first, second = slice(None, size // 2), slice(size // 2, None)
        estimate = np.zeros(len(values))
        for mine, other in ((first, second), (second, first)):
            centre = _mean_where(self.is_new[:, :, other], values[:, :, other], guess)
            shifted = _shifted(self.is_new[:, :, mine], values[:, :, mine], centre)
            part = self.enumeration.unseen_mass * centre + shifted.mean(axis=(1, 2))
            estimate += part * (shifted.shape[2] / size)
        shifted = _shifted(self.is_new, values, _mean_where(self.is_new, values, guess))
        variance = shifted.var(axis=2, ddof=1).sum(axis=1) / (size * n_chains**2)
        return estimate, np.sqrt(variance)

    def profile(self) -> Profile:
        """Return unbiased entropy and collision; intervals of 95% within the certified bounds."""
        certain = self.with_draws.profile()
        known = self.enumeration.seen
        surprise = np.where(self.is_new, -self.log_prob, 0.0)
        # Unseen labelsets have at least this surprise.
        least = -log(np.maximum(self.enumeration.largest_unseen, 1e-300))
        entropy, entropy_error = self.mean_of_rest(surprise, least)
        collision, collision_error = self.mean_of_rest(np.exp(self.log_prob))
        entropy += known.sum(-known.weights * np.log(known.weights))
        collision += known.sum(known.weights**2)
        low, high = certain.low, certain.high
        entropies = self._interval(entropy, entropy_error, low.entropy, high.entropy)
        collisions = self._interval(collision, collision_error, low.collision, high.collision)
        return replace(
            certain,
            entropy=entropy,
            log_collision=log(np.maximum(collision, 2.0**-certain.n_labels)),
            method=self._method(),
            bounds=(
                replace(low, entropy=entropies[0], log_collision=log(collisions[0])),
                replace(high, entropy=entropies[1], log_collision=log(collisions[1])),
            ),
            entropy_error=entropy_error,
            collision_error=collision_error,
        )

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
        rest, error = self.mean_of_rest(values.reshape(self.log_prob.shape))
        value = expect_over(self.enumeration.seen, metric, Y_pred, empty) + rest
        certain = self.with_draws.expected(metric, Y_pred, empty=empty)
        return Expected(value, *self._interval(value, error, certain.low, certain.high))

    def _interval(
        self, value: Floats, error: Floats, low: Floats, high: Floats
    ) -> tuple[Floats, Floats]:
        """Return the sampling interval cut to the certified one.

        The latter where the two do not meet, and where so few draws are new that their spread
        says nothing: without a single one the standard error is 0.
        """
        left = np.maximum(value - QUANTILE * error, low)
        right = np.minimum(value + QUANTILE * error, high)
        usable = (left <= right) & (self.is_new.sum(axis=(1, 2)) >= MIN_NEW_DRAWS)
        return np.where(usable, left, low), np.where(usable, right, high)

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


def sample_chains(
    chains: Sequence[Chain],
    enumeration: Enumeration,
    n_draws: int,
    generator: np.random.Generator,
) -> Sampled:
    """Draw about `n_draws` labelsets for each instance, as many from each chain."""
    n_samples, n_labels = chains[0].n_samples, chains[0].order.size
    size = max(2, -(-n_draws // len(chains)))
    stack = LinearStack.of(chains)
    draws = np.empty((n_samples, len(chains), size, n_labels), dtype=np.int8)
    for m in range(len(chains)):
        uniforms = generator.random((n_samples, size, n_labels))
        if stack is None:
            draws[:, m] = _draw_any(chains[m], uniforms)
        else:
            drawn = np.empty((n_samples, size, n_labels), dtype=np.int8)
            chain = (stack.odds[:, m], stack.factors[m], stack.orders[m])
            for_rows(search.draw_rows, n_samples, *chain, uniforms, into=[drawn])
            draws[:, m] = drawn
    flat = draws.reshape(n_samples, -1, n_labels)
    log_prob = np.empty(flat.shape[:2])
    if stack is None:
        log_prob[:] = _log_prob_any(chains, flat)
    else:
        for_rows(search.log_prob_rows, n_samples, stack.odds, stack.factors, flat, into=[log_prob])
    is_new = ~enumeration.seen.contains(flat)
    shape = draws.shape[:3]
    return Sampled(enumeration, draws, log_prob.reshape(shape), is_new.reshape(shape))


def _draw_any(chain: Chain, uniforms: Floats) -> Labelsets:
    n_samples, size, n_labels = uniforms.shape
    rows = np.repeat(np.arange(n_samples), size)
    return chain.sample(rows, uniforms.reshape(-1, n_labels)).reshape(uniforms.shape)


def _log_prob_any(chains: Sequence[Chain], draws: Labelsets) -> Floats:
    n_samples, size, n_labels = draws.shape
    rows = np.repeat(np.arange(n_samples), size)
    flat = draws.reshape(-1, n_labels)
    by_chain = [chain.take(rows).log_prob(flat) for chain in chains]
    return (logsumexp(by_chain, axis=0) - np.log(len(chains))).reshape(n_samples, size)
