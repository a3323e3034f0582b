"""Sampling: unbiased estimates with 95% intervals, because chains can evaluate what they draw.

- Stratified sampling over the chains, by their weights; enumerated labelsets count exactly.
- Entropy: the mean of -log P(y), with control variates from the links of a draw's own chain.
- Collision: importance sampling of P(y)**2 with the chains of squared odds as the proposal.
- Marginals: means of conditional probabilities along the paths (Rao-Blackwell).
- Draws are made in rounds until the interval of what was asked is narrow enough.

The derivations are in `docs/understand/mathematics.md`, "Sampling without bias".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelsure._runtime import limits as _limits
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
from labelsure.distributions._enumeration import Enumeration, metric_range
from labelsure.distributions._labelset_table import expect_over
from labelsure.distributions._mean_estimates import (
    QUANTILE,
    MeanEstimate,
    estimate_mean,
    stratified_variance,
    undrawn_variance,
)
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


class DrawStreams:
    """Uniform random numbers for some instances of a batch.

    What an instance gets depends on the seed and on its key alone: not on where it stands, nor on
    the instances that are drawn with it, nor on how many threads there are.

    Parameters
    ----------
    seed
        A whole number >= 0.
    rows
        The numbers of the instances.
    keys
        What each of them is, as a number of 64 bits: equal instances have equal keys.

    Examples
    --------
    >>> one, other = DrawStreams(0, [3, 4], [17, 5]), DrawStreams(0, [8], [5])
    >>> bool((one.uniforms((5,))[1] == other.uniforms((5,))[0]).all())
    True
    """

    def __init__(
        self, seed: int, rows: Sequence[int] | Indices, keys: Sequence[int] | NDArray[np.uint64]
    ) -> None:
        word = 2**64
        self.rows = np.asarray(rows, dtype=np.intp)
        self._streams = [
            [
                np.random.Generator(np.random.Philox(key=[(seed + kind * 2**63) % word, int(key)]))
                for kind in (0, 1)
            ]
            for key in keys
        ]

    def __getitem__(self, rows: Any) -> DrawStreams:
        taken = DrawStreams(0, [], [])
        taken.rows = self.rows[rows]
        taken._streams = [self._streams[i] for i in np.arange(len(self._streams))[rows]]
        return taken

    def uniforms(self, shape: tuple[int, ...], *, squared: bool = False) -> Floats:
        """Return the next numbers of each instance, (n, *shape), for one of two kinds of draws."""
        numbers = np.empty((len(self._streams), *shape))
        for mine, kinds in zip(numbers, self._streams, strict=True):
            kinds[int(squared)].random(out=mine)
        return numbers


@dataclass(frozen=True)
class SquaredDraws:
    """What draws with squared odds say of the collision, the sum of P(y)**2.

    Parameters
    ----------
    log_weights
        (n, m, size) the log of P(y)**2 / Q(y) of the draws, Q being the mixture of the chains
        with squared odds: with many labels they are too small for a number.
    is_new
        (n, m, size) whether a draw is not among the labelsets enumerated.
    log_known
        (n,) the log of the sum of P(y)**2 over those.
    """

    log_weights: Floats
    is_new: Mask
    log_known: Floats

    @classmethod
    def draw(
        cls,
        chains: WeightedChains,
        known: WeightedLabelsets,
        owners: Integers,
        uniforms: Floats,
    ) -> SquaredDraws:
        """Make the draws.

        Parameters
        ----------
        chains
            m of them over n instances.
        known
            The labelsets enumerated, with their probabilities.
        owners
            (n, m, size) the chain that each draw comes from.
        uniforms
            (n, m, size, L) numbers in [0, 1).
        """
        draws = draw_paths(chains, owners, uniforms, squared=True).draws
        log_prob = log_mean_prob(chains, draws, with_squared=True)
        flat = draws.reshape(len(draws), -1, draws.shape[-1])
        is_new = ~known.contains(flat).reshape(draws.shape[:3])
        log_known = log(known.sum(known.weights**2))
        return cls(2 * log_prob[..., 0] - log_prob[..., 1], is_new, log_known)

    def join(self, more: SquaredDraws) -> SquaredDraws:
        """Add further draws of the same instances."""
        return SquaredDraws(
            np.concatenate([self.log_weights, more.log_weights], axis=2),
            np.concatenate([self.is_new, more.is_new], axis=2),
            self.log_known,
        )

    def __getitem__(self, rows: Any) -> SquaredDraws:
        return SquaredDraws(self.log_weights[rows], self.is_new[rows], self.log_known[rows])

    @property
    def size(self) -> int:
        """How many draws of each chain there are."""
        return self.is_new.shape[2]

    @property
    def n_new(self) -> Integers:
        """How many draws are new, (n,)."""
        return np.asarray(self.is_new.sum(axis=(1, 2)))

    @property
    def log_scale(self) -> Floats:
        """The log of each instance's largest weight, by which all are divided, (n,)."""
        return np.asarray(self.log_weights.max(axis=(1, 2)))

    @property
    def weights(self) -> Floats:
        """Of the draws, divided by the largest: in [0, 1], (n, m, size)."""
        return np.exp(self.log_weights - self.log_scale[:, np.newaxis, np.newaxis])

    @property
    def known(self) -> Floats:
        """What was enumerated, divided by the same, (n,)."""
        return np.exp(self.log_known - self.log_scale)

    def corrected(self) -> Floats:
        """Return (n, m, size) values whose mean is unbiased for what was not enumerated.

        These are the weights of new draws. Those of the other draws have a mean that is known:
        where few of them were drawn, too many are new. A share of how far they are off is added,
        the one that takes most variance away in the other half of the draws, which leaves the mean
        unbiased.
        """
        weights = self.weights
        new = np.where(self.is_new, weights, 0.0)
        off = np.where(self.is_new, 0.0, weights) - self.known[:, np.newaxis, np.newaxis]
        half = new.shape[2] // 2
        share = np.empty_like(new)
        share[:, :, :half] = _best_share(new[:, :, half:], off[:, :, half:])
        share[:, :, half:] = _best_share(new[:, :, :half], off[:, :, :half])
        return new + share * off

    def estimate(self) -> MeanEstimate:
        """Return the log collision, its standard error and half the width of its interval.

        A few weights may be far above the others. On the scale of logs the interval reaches
        farther up than down, and further draws could bring the largest weight drawn, or none.
        """
        values = self.corrected()
        mean = values.mean(axis=(1, 2))
        total = np.maximum(self.known + mean, np.finfo(float).tiny)
        least = np.minimum(values.min(axis=(1, 2)), 0.0)
        variance = stratified_variance(values) / total**2
        n_draws = values.shape[1] * values.shape[2]
        undrawn = undrawn_variance(n_draws, least, values.max(axis=(1, 2)), mean) / total**2
        value = np.log(total) + self.log_scale
        return MeanEstimate(value, np.sqrt(variance), QUANTILE * np.sqrt(variance + undrawn))


def _best_share(values: Floats, control: Floats) -> Floats:
    """Return the share in [0, 1] of the control that takes most variance off the values."""
    values = values - values.mean(axis=2, keepdims=True)  # only variance within chains counts
    control = control - control.mean(axis=2, keepdims=True)
    covariance = (values * control).sum(axis=(1, 2), keepdims=True)
    variance = (control**2).sum(axis=(1, 2), keepdims=True)
    return np.clip(-covariance / np.where(variance > 0, variance, 1.0), 0.0, 1.0)


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
    def entropy(self) -> MeanEstimate:
        """The entropy, with control variates.

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
        """Draws from the mean of the chains with squared odds."""
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
    def marginal_estimates(self) -> MeanEstimate:
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
            of_strata = is_set.var(axis=2, ddof=1).sum(axis=1)
            variance[rest] = of_strata / (size * n_chains**2)
        undrawn = undrawn_variance(n_chains * size, 0.0, 1.0, value)
        return MeanEstimate(value, np.sqrt(variance), QUANTILE * np.sqrt(variance + undrawn))

    def expected(self, metric: Metric, Y_pred: Labelsets, *, empty: float) -> Expected:
        """Return unbiased expected accuracies with 95% intervals within the certified bounds."""
        found = self.expected_estimate(metric, Y_pred, empty)
        certain = self.enumeration.expected(metric, Y_pred, empty=empty)
        is_known = self.n_new >= MIN_NEW_DRAWS
        return Expected(found.value, *_cut(found, certain.low, certain.high, is_known))

    def expected_estimate(self, metric: Metric, Y_pred: Labelsets, empty: float) -> MeanEstimate:
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
    found: MeanEstimate, low: Floats, high: Floats, is_known: Mask | bool
) -> tuple[Floats, Floats]:
    """Return the sampling interval cut to the certified one, from low to high.

    The latter where the two do not meet, and where so few draws are new that their spread says
    nothing: it is not known.
    """
    left = np.maximum(found.value - found.half_width, low)
    right = np.minimum(found.value + found.half_width, high)
    usable = (left <= right) & is_known
    return np.where(usable, left, low), np.where(usable, right, high)


# When to stop drawing.

LADDER_STEP = (
    1.4  # between totals: a smaller one draws fewer too many, a larger one in fewer groups
)
LONGEST_JUMP = 6.0  # what a first round says of the variance is not to be trusted beyond


@dataclass(frozen=True)
class Need:
    """What draws are made for: an interval that is at most so wide."""

    width: float

    def draw(self, sampled: Sampled, n_draws: int) -> Sampled:
        """Draw until there are so many, at least two in each stratum."""
        size = max(2, -(-n_draws // len(sampled.chains)))
        return sampled if size <= sampled.size else sampled.draw_more(size - sampled.size)

    def growth(self, sampled: Sampled) -> Floats:
        """Return how many times as many draws would do, (n,): 1 or less where there are enough."""
        raise NotImplementedError

    def limit(self, n_draws: int, shared: bool) -> int:
        """Return how many of `n_draws` this may have, which may be shared by all needs."""
        return 2 * n_draws // 3 if shared else n_draws


class EntropyNeed(Need):
    """The normalised entropy."""

    def growth(self, sampled: Sampled) -> Floats:
        """Return how many times as many draws would do, (n,)."""
        growth = sampled.entropy.growth_needed(self.width / 2 * sampled.n_labels * np.log(2))
        certain = sampled.enumeration.entropy_width <= self.width
        return _allow_for_few(growth, sampled.n_new, certain)


class CollisionNeed(Need):
    """The collision and the normalised collision entropy, from draws with squared odds."""

    def draw(self, sampled: Sampled, n_draws: int) -> Sampled:
        """Draw until there are so many with squared odds, at least two in each stratum."""
        before = 0 if sampled.squared_draws is None else sampled.squared_draws.size
        more = max(2, -(-n_draws // len(sampled.chains))) - before
        return sampled if more <= 0 else sampled.draw_more_squared(more)

    def growth(self, sampled: Sampled) -> Floats:
        """Return how many times as many draws would do, (n,)."""
        found = sampled.squared.estimate()
        of_entropy = sampled.n_labels * np.log(2)
        of_collision = np.exp(np.minimum(-found.value, 700.0))
        growth = found.growth_needed(self.width / 2 * np.minimum(of_entropy, of_collision))
        certain = sampled.enumeration.collision_width <= self.width
        return _allow_for_few(growth, sampled.squared.n_new, certain)

    def limit(self, n_draws: int, shared: bool) -> int:
        """Return how many of `n_draws` this may have, which may be shared by all needs."""
        return n_draws // 3 if shared else n_draws // 2


@dataclass(frozen=True)
class ExpectedNeed(Need):
    """Expected accuracies of guesses (N, g, L) of the whole batch; None: of the modes found."""

    metrics: Sequence[Metric]
    empty: float
    guesses: Labelsets | None = None

    def growth(self, sampled: Sampled) -> Floats:
        """Return how many times as many draws would do, (n,)."""
        mode = sampled.enumeration.mode()[:, np.newaxis]
        guesses = mode if self.guesses is None else self.guesses[sampled.streams.rows]
        growth = np.zeros(len(guesses))
        for metric in self.metrics:
            for g in range(guesses.shape[1]):
                found = sampled.expected_estimate(metric, guesses[:, g], self.empty)
                growth = np.maximum(growth, found.growth_needed(self.width / 2))
        certain = sampled.enumeration.unseen_mass <= self.width
        return _allow_for_few(growth, sampled.n_new, certain)


class MarginalNeed(Need):
    """All marginals."""

    def growth(self, sampled: Sampled) -> Floats:
        """Return how many times as many draws would do, (n,)."""
        return np.asarray(sampled.marginal_estimates.growth_needed(self.width / 2).max(axis=1))

    def limit(self, n_draws: int, shared: bool) -> int:
        """Return how many of `n_draws` this may have: all of them."""
        return n_draws


def _allow_for_few(growth: Floats, n_new: Integers, certain: Mask) -> Floats:
    """Ask for enough new draws to have an interval, unless the guaranteed one will do."""
    return np.where(certain, 0.0, np.maximum(growth, MIN_NEW_DRAWS / np.maximum(n_new, 1)))


def draw_for(
    rows: Indices, sampled: Sampled, needs: Sequence[Need], limits: Sequence[int]
) -> Iterator[tuple[Indices, Sampled]]:
    """Draw for one need after the other; yield instances that are finished together.

    A round tells how many draws are needed. Totals are steps of a fixed ladder, so that instances
    which need about as many stay together; doubling instead takes 25% more draws and 40% more time.

    Parameters
    ----------
    rows
        (n,) the numbers of the instances.
    sampled
        What was enumerated, and perhaps drawn, of these.
    needs
        What is asked.
    limits
        Draws that each need may have for an instance.
    """
    if not needs:
        yield rows, sampled
        return
    need, limit = needs[0], limits[0]
    waiting = [(rows, sampled, min(_limits.FIRST_DRAWS, limit))]
    while waiting:
        rows, sampled, total = waiting.pop()
        sampled = need.draw(sampled, total)
        growth = need.growth(sampled)
        targets = np.full(len(rows), total)
        if total < limit:  # a budget of 0 has no ladder to climb
            targets[growth > 1] = _climb_ladder(total, growth[growth > 1], limit)
        for target in np.unique(targets).tolist():
            mine = np.flatnonzero(targets == target)
            part = sampled if len(mine) == len(rows) else sampled[mine]
            if target > total:
                waiting.append((rows[mine], part, target))
                continue
            if isinstance(need, EntropyNeed):  # further draws go without their probabilities
                part = replace(part, n_entropy_rounds=len(part.rounds))
            yield from draw_for(rows[mine], part, needs[1:], limits[1:])


def _climb_ladder(total: int, growth: Floats, limit: int) -> Indices:
    """Return the step of the ladder that is high enough: from the next one up to the limit."""
    wanted = total * np.clip(growth, LADDER_STEP, LONGEST_JUMP)
    step = np.ceil(np.log(wanted / _limits.FIRST_DRAWS) / np.log(LADDER_STEP) - 1e-9)
    return np.minimum(np.ceil(_limits.FIRST_DRAWS * LADDER_STEP**step), limit).astype(np.intp)
