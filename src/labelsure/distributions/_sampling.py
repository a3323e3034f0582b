"""Sampling without bias: chains can evaluate what they draw.

The mean of -log P(y) over draws y is unbiased for the entropy; what the links of a draw's own chain
say takes most of its variance away. Draws are stratified over the chains, by their weights. Where
some labelsets were enumerated, these count exactly.

Section numbers are those of `docs/algorithms.md`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelsure._runtime.typing import Floats, Indices, Integers, Labelsets, Mask
from labelsure.distributions._answers import Expected, MaxMarginals, TopLabelsets, View
from labelsure.distributions._chain_stack import (
    PathDraws,
    Paths,
    draw_paths,
    log_mean_prob,
    path_means,
    path_sums,
)
from labelsure.distributions._draw_streams import DrawStreams
from labelsure.distributions._enumeration import Enumeration, metric_range
from labelsure.distributions._labelset_table import expect_over
from labelsure.distributions._mean_estimates import (
    QUANTILE,
    Estimate,
    estimate_mean,
    undrawn_variance,
)
from labelsure.distributions._squared_draws import SquaredDraws
from labelsure.distributions._weighted_chains import WeightedChains
from labelsure.distributions.candidates import Profile, log
from labelsure.labelsets.weighted import WeightedLabelsets, find_distinct
from labelsure.metrics.registry import Metric, counts

MIN_NEW_DRAWS = 10  # fewer give no interval
DRAWS_PER_SQUARED = 5
"""How many draws there are for each one with squared odds, where nobody asks for more."""

KNOWN_BEST = 0.9
"""From this mass on, marginals count what was enumerated and take the rest from draws; below, the
conditional probabilities along the paths of all draws vary less."""


@dataclass(frozen=True)
class DrawRound:
    """Draws of n instances, made together.

    Parameters
    ----------
    chains
        That were drawn from.
    paths
        The draws, and what their own chain says of them.
    is_new
        (n, m, size) whether a draw is not among the labelsets enumerated.
    """

    chains: WeightedChains
    paths: PathDraws
    is_new: Mask

    @cached_property
    def log_prob(self) -> Floats:
        """Of each draw under the mixture, (n, m, size)."""
        return log_mean_prob(self.chains, self.paths.draws)[..., 0]

    def __getitem__(self, rows: Any) -> DrawRound:
        taken = DrawRound(
            self.chains.take(rows),
            PathDraws(*(each[rows] for each in self.paths)),
            self.is_new[rows],
        )
        if "log_prob" in self.__dict__:
            taken.__dict__["log_prob"] = self.log_prob[rows]
        return taken


@dataclass(frozen=True)
class Sampled(View):
    """Draws of each instance, and what was enumerated before they were made.

    Parameters
    ----------
    enumeration
        The labelsets that count exactly; perhaps none.
    chains
        That are drawn from.
    streams
        Of random numbers, one for each instance.
    rounds
        In which draws were made.
    squared_draws
        With squared odds, for the collision; None where none were made yet.
    n_entropy_rounds
        How many of the rounds the entropy goes by; None means all.
    """

    enumeration: Enumeration
    chains: WeightedChains
    streams: DrawStreams
    rounds: tuple[DrawRound, ...] = ()
    squared_draws: SquaredDraws | None = None
    n_entropy_rounds: int | None = field(default=None)

    def __getitem__(self, rows: Indices) -> Sampled:
        squared = self.squared_draws
        return Sampled(
            self.enumeration[rows],
            self.chains.take(rows),
            self.streams[rows],
            tuple(one[rows] for one in self.rounds),
            None if squared is None else squared[rows],
            self.n_entropy_rounds,
        )

    def draw_more(self, size: int) -> Sampled:
        """Return the same with `size` further draws in each stratum."""
        owners = self._choose_owners(size)
        uniforms = self.streams.uniforms((len(self.chains), size, self.n_labels))
        paths = draw_paths(self.chains, owners, uniforms)
        flat = paths.draws.reshape(len(uniforms), -1, self.n_labels)
        is_new = ~self.enumeration.seen.contains(flat).reshape(uniforms.shape[:3])
        return replace(self, rounds=(*self.rounds, DrawRound(self.chains, paths, is_new)))

    def draw_more_squared(self, size: int) -> Sampled:
        """Return the same with `size` further draws with squared odds in each stratum."""
        owners = self._choose_owners(size, squared=True)
        shape = (len(self.chains), size, self.n_labels)
        uniforms = self.streams.uniforms(shape, squared=True)
        more = SquaredDraws.draw(self.chains, self.enumeration.seen, owners, uniforms)
        before = self.squared_draws
        return replace(self, squared_draws=more if before is None else before.join(more))

    def _choose_owners(self, size: int, *, squared: bool = False) -> Integers:
        """Return which chain each of `size` further draws in each stratum comes from."""
        if self.chains.is_equal:
            return self.chains.owners_of_each(size)
        uniforms = self.streams.uniforms((len(self.chains), size), squared=squared)
        return self.chains.choose_owners(uniforms)

    @property
    def n_labels(self) -> int:
        """The number of labels, L."""
        return self.enumeration.seen.n_labels

    @property
    def size(self) -> int:
        """How many draws of each stratum there are."""
        return sum(one.is_new.shape[2] for one in self.rounds)

    @cached_property
    def draws(self) -> Labelsets:
        """(n, m, size, L)."""
        return np.concatenate([one.paths.draws for one in self.rounds], axis=2)

    @cached_property
    def paths(self) -> Paths:
        """Whose draws they are, and the draws."""
        return np.concatenate([one.paths.owners for one in self.rounds], axis=2), self.draws

    @cached_property
    def is_new(self) -> Mask:
        """(n, m, size) whether a draw is not among the labelsets enumerated."""
        return np.concatenate([one.is_new for one in self.rounds], axis=2)

    @property
    def n_new(self) -> Integers:
        """How many draws are not among the labelsets enumerated, (n,)."""
        return np.asarray(self.is_new.sum(axis=(1, 2)))

    @property
    def _log_n(self) -> float:
        """The log of the number of labelsets."""
        return float(self.n_labels * np.log(2))

    @property
    def _evaluated(self) -> tuple[DrawRound, ...]:
        return self.rounds[: self.n_entropy_rounds]

    def profile(self) -> Profile:
        """Return unbiased entropy and collision; intervals of 95% within the certified bounds."""
        certain = self.with_draws.profile()
        low, high = certain.low, certain.high
        entropy, collision = self.entropy, self.squared.estimate()
        is_known = self._n_new_evaluated >= MIN_NEW_DRAWS
        entropy_ends = _cut(entropy, low.entropy, high.entropy, is_known)
        is_known = self.squared.n_new >= MIN_NEW_DRAWS
        collision_ends = _cut(collision, low.log_collision, high.log_collision, is_known)
        return replace(
            certain,
            entropy=entropy.value,
            log_collision=np.maximum(collision.value, -self._log_n),
            method=self._method(),
            bounds=(
                replace(low, entropy=entropy_ends[0], log_collision=collision_ends[0]),
                replace(high, entropy=entropy_ends[1], log_collision=collision_ends[1]),
            ),
            entropy_error=entropy.error,
            collision_error=np.exp(collision.value) * collision.error,
        )

    @cached_property
    def entropy(self) -> Estimate:
        """The entropy. Section 7.

        Four numbers of a draw have a mean of 0 and go along with -log P: how far its probability
        in its own chain is above average, link by link; the same with the mean logits of all
        chains; whether it was enumerated, less the mass of what was; and its -log P if it was, less
        the sum of these.
        """
        surprise = -np.concatenate([one.log_prob for one in self._evaluated], axis=2)
        excess = np.concatenate([one.paths.excess for one in self._evaluated], axis=2)
        is_new = np.concatenate([one.is_new for one in self._evaluated], axis=2)
        known = self.enumeration.seen
        of_known = known.sum(-known.weights * np.log(known.weights))
        n_new = is_new.sum(axis=(1, 2))
        # Unseen labelsets have at least this surprise, which counts as one more draw.
        guess = -log(np.maximum(self.enumeration.largest_unseen, 1e-300))
        of_new = np.where(is_new, surprise, 0.0)
        centre = (of_new.sum(axis=(1, 2)) + guess) / (n_new + 1)
        # What is more probable was drawn already; surprise on average is no more than of a flat P.
        least = np.where(is_new, surprise, np.inf).min(axis=(1, 2), initial=self._log_n)
        return estimate_mean(
            surprise,
            [excess[..., 0], excess[..., 1], *self._known_controls(surprise, is_new, of_known)],
            [-1.0, 0.0, 0.0, 0.0],
            undrawn_variance(is_new[0].size if len(is_new) else 1, least, self._log_n, centre),
        )

    def _known_controls(self, values: Floats, is_new: Mask, of_known: Floats) -> list[Floats]:
        """Return two numbers of each draw with a mean of 0: that it was enumerated, and its value.

        Parameters
        ----------
        values
            (n, m, size) of the draws.
        is_new
            (n, m, size)
        of_known
            (n,) the sum over what was enumerated of P(y) value(y).
        """
        mass = self.enumeration.seen.totals()
        of_draw = np.where(is_new, 0.0, values) - of_known[:, np.newaxis, np.newaxis]
        return [of_draw, ~is_new - mass[:, np.newaxis, np.newaxis]]

    @property
    def _n_new_evaluated(self) -> Integers:
        return np.sum([one.is_new.sum(axis=(1, 2)) for one in self._evaluated], axis=0)

    @cached_property
    def squared(self) -> SquaredDraws:
        """Draws from the mean of the chains with squared odds. Section 7."""
        if self.squared_draws is not None:
            return self.squared_draws
        drawn = self.draw_more_squared(max(2, -(-self.size // DRAWS_PER_SQUARED))).squared_draws
        assert drawn is not None
        return drawn

    def mode(self) -> Labelsets:
        """Return the best labelsets that were enumerated or drawn."""
        return self.with_draws.mode()

    def top(self, k: int) -> TopLabelsets:
        """Return the best labelsets that were enumerated or drawn."""
        return self.with_draws.top(k)

    def marginal_bounds(self) -> Expected:
        """Return unbiased estimates of P(y_j = 1), kept within [0, 1], with simultaneous intervals.

        All labels of an instance are within theirs with 95% confidence (Bonferroni).
        """
        n_draws = len(self.chains) * (self.size - 1)
        found = self.marginal_estimates.widen(self.n_labels, n_draws)
        certain = self.enumeration.marginal_bounds()
        value = np.clip(found.value, 0.0, 1.0)
        return Expected(value, *_cut(found, certain.low, certain.high, True))

    @cached_property
    def marginal_estimates(self) -> Estimate:
        """P(y_j = 1) of each label, all (n, L).

        The mean of P(y_j = 1) given the labels before it, along the paths of the draws; where
        nearly everything was enumerated, what that says and the share of other draws with y_j = 1.
        """
        n_chains, size = self.draws.shape[1:3]
        means, squares = path_means(self.chains, self.paths)
        value = means.mean(axis=1)
        variance = squares.sum(axis=1) / ((size - 1) * size * n_chains**2)
        known = self.enumeration.seen
        rest = np.flatnonzero(known.totals() >= KNOWN_BEST)
        if rest.size:
            is_set = np.where(self.is_new[rest, ..., np.newaxis], self.draws[rest], 0)
            value[rest] = known.marginals()[rest] + is_set.mean(axis=(1, 2))
            spread = is_set.var(axis=2, ddof=1).sum(axis=1)
            variance[rest] = spread / (size * n_chains**2)
        undrawn = undrawn_variance(n_chains * size, 0.0, 1.0, value)
        return Estimate(value, np.sqrt(variance), QUANTILE * np.sqrt(variance + undrawn))

    def expected(self, metric: Metric, Y_pred: Labelsets, *, empty: float) -> Expected:
        """Return unbiased expected accuracies with 95% intervals within the certified bounds."""
        found = self.expected_estimate(metric, Y_pred, empty)
        certain = self.enumeration.expected(metric, Y_pred, empty=empty)
        is_known = self.n_new >= MIN_NEW_DRAWS
        return Expected(found.value, *_cut(found, certain.low, certain.high, is_known))

    def expected_estimate(self, metric: Metric, Y_pred: Labelsets, empty: float) -> Estimate:
        """Return expected accuracies, all (n,).

        Beside what was enumerated, the labels that a path has beyond what its links expect, among
        those predicted and among the others, have a mean of 0 and go along with the accuracy.
        """
        flat = self.draws.reshape(-1, self.n_labels)
        n_each = self.draws.shape[1] * self.draws.shape[2]
        predicted = np.repeat(Y_pred, n_each, axis=0)
        values = metric.values(*counts(flat, predicted), empty=empty).reshape(self.is_new.shape)
        least, most = metric_range(metric, Y_pred, empty)
        of_known = expect_over(self.enumeration.seen, metric, Y_pred, empty)
        sums = path_sums(self.chains, self.paths, Y_pred)
        n_new = self.is_new.sum(axis=(1, 2))
        centre = np.where(self.is_new, values, 0.0).sum(axis=(1, 2)) / (n_new + 1)
        return estimate_mean(
            values,
            [sums[..., 0], sums[..., 1], *self._known_controls(values, self.is_new, of_known)],
            [0.0, 0.0, 0.0, 0.0],
            undrawn_variance(n_each, least, most, centre),
        )

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
        rows, weights, instance = [], [], []
        for one in self._evaluated:
            at = np.nonzero(one.is_new)
            rows.append(one.paths.draws[at])
            weights.append(np.exp(one.log_prob[at]))
            instance.append(at[0])
        labelsets, owner = np.concatenate(rows), np.concatenate(instance)
        once = find_distinct(labelsets, owner)
        drawn = WeightedLabelsets.merge(
            labelsets[once], np.concatenate(weights)[once], owner[once], len(known)
        )
        return Enumeration.from_seen(known.join(drawn), self.enumeration.largest_unseen)


def _cut(
    found: Estimate, low: Floats, high: Floats, is_known: Mask | bool
) -> tuple[Floats, Floats]:
    """Return the sampling interval cut to the certified one, from low to high.

    The latter where the two do not meet, and where so few draws are new that their spread says
    nothing: it is not known.
    """
    left = np.maximum(found.value - found.half_width, low)
    right = np.minimum(found.value + found.half_width, high)
    usable = (left <= right) & is_known
    return np.where(usable, left, low), np.where(usable, right, high)
