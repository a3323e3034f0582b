"""Sampling: unbiased estimates with 95% intervals, because chains can evaluate what they draw.

- Stratified sampling over the chains, by their weights; enumerated labelsets count exactly.
- Entropy: the mean of -log P(y), with control variates from the links of a draw's own chain.
- Collision: importance sampling of P(y)**2 with the chains of squared odds as the proposal.
- Marginals: means of conditional probabilities along the paths (Rao-Blackwell).
- Draws are made in rounds until the interval of what was asked is narrow enough.

Formulas: `docs/understand/mathematics.md`, "Sampling without bias".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtrit

from labelsure._runtime import limits as _limits
from labelsure._runtime.typing import Floats, Indices, Integers, Labelsets, Mask
from labelsure.distributions._answers import Expected, TopLabelsets, each_guess
from labelsure.distributions._chains import PathDraws, WeightedChains
from labelsure.distributions._enumeration import Enumeration, View, metric_range
from labelsure.distributions._labelset_table import expect_over
from labelsure.distributions.candidates import Profile, log
from labelsure.metrics.registry import Metric

LEVEL = 0.95
QUANTILE = float(ndtri(0.5 + LEVEL / 2))

UNDRAWN = 2
"""What has not been drawn may be at either end of the range. Intervals are as wide as if two more
draws were at each end, so that draws which are all alike do not claim to be sure: with zeros and
ones that is Agresti and Coull's interval."""

PRIOR_DRAWS = 2
"""A coefficient that is fitted counts its first guess like so many draws."""

LEAST_LEFT = 0.01
"""Whatever control variates save, this share of what undrawn ends add to the variance is left."""


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
        """Return simultaneous 95% intervals, by Bonferroni and Student's t."""
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


def mean_of_moments(moments: Floats, size: int) -> tuple[Floats, Floats]:
    """Do the same with one control variate, from the sums of `link_moment_rows` alone.

    Returns the mean of each stratum and its variance, (n, m, L).
    """
    n_half = size / 2
    p, c, pp, pc, cc = np.moveaxis(moments, 3, 0)  # each (n, m, 2, L)
    pull = cc.mean(axis=1) * PRIOR_DRAWS / n_half
    squares = (cc - c**2 / n_half).sum(axis=1) + pull
    products = (pc - p * c / n_half).sum(axis=1)
    multiples = (products / np.where(squares > 0, squares, 1.0))[:, np.newaxis, ::-1]
    rest = (p - multiples * c).sum(axis=2)
    rest_squares = (pp - 2 * multiples * pc + multiples**2 * cc).sum(axis=2)
    variance = np.maximum(rest_squares - rest**2 / size, 0.0) / ((size - 1) * size)
    return rest / size, variance


def stratified_variance(values: Floats) -> Floats:
    """Return the variance of the mean of each instance's values, as many from each chain, (n,)."""
    n_chains, size = values.shape[1:]
    return np.asarray(values.var(axis=2, ddof=1).sum(axis=1) / (size * n_chains**2))


def undrawn_variance(
    n_draws: int, least: Floats | float, most: Floats | float, centre: Floats
) -> Floats:
    """Return what draws at both ends of the range would add to the variance of the mean, (n,)."""
    return np.asarray(UNDRAWN * ((centre - least) ** 2 + (most - centre) ** 2) / n_draws**2)


MIN_NEW_DRAWS = 10  # fewer give no interval
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

    def __getitem__(self, rows: Any) -> SquaredDraws:
        return SquaredDraws(self.log_weights[rows], self.is_new[rows], self.log_known[rows])

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
    paths
        The draws.
    is_new
        (n, m, size) whether a draw is not among the labelsets enumerated.
    log_prob
        (n, m, some) of the first draws under the mixture: those that the entropy goes by.
    squared
        Draws with squared odds, for the collision.
    """

    enumeration: Enumeration
    chains: WeightedChains
    streams: DrawStreams
    paths: PathDraws
    is_new: Mask
    log_prob: Floats
    squared: SquaredDraws

    @classmethod
    def nothing(
        cls, enumeration: Enumeration, chains: WeightedChains, streams: DrawStreams
    ) -> Sampled:
        """Return what was enumerated, to be drawn beside."""
        shape, known = (chains.n_samples, len(chains), 0), enumeration.seen
        paths = PathDraws(
            np.empty(shape, dtype=np.intp),
            np.empty((*shape, chains.n_labels), dtype=np.int8),
            np.empty((*shape, 2)),
        )
        is_new, log_prob = np.empty(shape, dtype=bool), np.empty(shape)
        squared = SquaredDraws(log_prob, is_new, log(known.sum(known.weights**2)))
        return cls(enumeration, chains, streams, paths, is_new, log_prob, squared)

    def __getitem__(self, rows: Indices) -> Sampled:
        taken = Sampled(
            self.enumeration[rows],
            self.chains.take(rows),
            self.streams[rows],
            self.paths.take(rows),
            self.is_new[rows],
            self.log_prob[rows],
            self.squared[rows],
        )
        if "link_moments" in self.__dict__:
            taken.__dict__["link_moments"] = self.link_moments[rows]
        return taken

    def draw_more(self, size: int, *, evaluate: bool = False) -> Sampled:
        """Return the same with `size` further draws in each stratum, for the entropy or not."""
        more = self._draw(self.chains, size)
        log_prob = self.log_prob
        if evaluate:
            log_prob = _append(log_prob, self.chains.log_prob(more.draws)[..., 0])
        drawn = replace(
            self,
            paths=self.paths.join(more),
            is_new=_append(self.is_new, self._are_new(more.draws)),
            log_prob=log_prob,
        )
        if "link_moments" in self.__dict__:  # sums, so that those of the new draws are added
            drawn.__dict__["link_moments"] = self.link_moments + self.chains.link_moments(more)
        return drawn

    def draw_more_squared(self, size: int) -> Sampled:
        """Return the same with `size` further draws with squared odds in each stratum."""
        draws = self._draw(self.chains.squared, size, squared=True).draws
        log_prob = self.chains.log_prob(draws, with_squared=True)
        squared = replace(
            self.squared,
            log_weights=_append(self.squared.log_weights, 2 * log_prob[..., 0] - log_prob[..., 1]),
            is_new=_append(self.squared.is_new, self._are_new(draws)),
        )
        return replace(self, squared=squared)

    def _draw(self, chains: WeightedChains, size: int, *, squared: bool = False) -> PathDraws:
        if chains.is_equal:
            owners = chains.owners_of_each(size)
        else:
            uniforms = self.streams.uniforms((len(chains), size), squared=squared)
            owners = chains.choose_owners(uniforms)
        shape = (len(chains), size, chains.n_labels)
        return chains.draw(owners, self.streams.uniforms(shape, squared=squared))

    def _are_new(self, draws: Labelsets) -> Mask:
        flat = draws.reshape(len(draws), -1, self.n_labels)
        return ~self.enumeration.seen.contains(flat).reshape(draws.shape[:3])

    @property
    def n_labels(self) -> int:
        """The number of labels, L."""
        return self.chains.n_labels

    @property
    def n_new(self) -> Integers:
        """How many draws are not among the labelsets enumerated, (n,)."""
        return np.asarray(self.is_new.sum(axis=(1, 2)))

    @property
    def _log_n(self) -> float:
        """The log of the number of labelsets."""
        return float(self.n_labels * np.log(2))

    @property
    def _n_evaluated(self) -> int:
        return self.log_prob.shape[2]

    def profile(self) -> Profile:
        """Return unbiased entropy and collision; intervals of 95% within the certified bounds."""
        certain = self.with_draws.profile()
        low, high = certain.low, certain.high
        entropy, collision = self.entropy, self.squared.estimate()
        is_known = self.is_new[:, :, : self._n_evaluated].sum(axis=(1, 2)) >= MIN_NEW_DRAWS
        entropy_ends = _cut(entropy, low.entropy, high.entropy, is_known)
        is_known = self.squared.n_new >= MIN_NEW_DRAWS
        collision_ends = _cut(collision, low.log_collision, high.log_collision, is_known)
        return replace(
            certain,
            entropy=entropy.value,
            log_collision=np.maximum(collision.value, -self._log_n),
            method=self._method,
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
        surprise, excess = -self.log_prob, self.paths.excess[:, :, : self._n_evaluated]
        is_new = self.is_new[:, :, : self._n_evaluated]
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
        """Return two control variates of each draw: whether it was enumerated, and its value."""
        mass = self.enumeration.seen.totals()
        of_draw = np.where(is_new, 0.0, values) - of_known[:, np.newaxis, np.newaxis]
        return [of_draw, ~is_new - mass[:, np.newaxis, np.newaxis]]

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
        n_draws = len(self.chains) * (self.is_new.shape[2] - 1)
        found = self.marginal_estimates.widen(self.n_labels, n_draws)
        certain = self.enumeration.marginal_bounds()
        value = np.clip(found.value, 0.0, 1.0)
        return Expected(value, *_cut(found, certain.low, certain.high, True), self._method)

    @cached_property
    def link_moments(self) -> Floats:
        """Sums over the draws of P(y_j = 1 | labels before) and its control, (n, m, 2, 5, L)."""
        return self.chains.link_moments(self.paths)

    @cached_property
    def marginal_estimates(self) -> MeanEstimate:
        """P(y_j = 1) of each label, all (n, L).

        The mean of P(y_j = 1) given the labels before it, along the paths of the draws, with what
        these labels add to its logit, beyond what was expected of them, as a control variate; where
        nearly everything was enumerated, what that says and the share of other draws with y_j = 1.
        """
        n_chains, size = self.is_new.shape[1:]
        value, variance = mean_of_moments(self.link_moments, size)
        least, most = self.chains.conditional_range()
        undrawn = undrawn_variance(n_chains * size, least, most, value).mean(axis=1)
        value, variance = value.mean(axis=1), variance.sum(axis=1) / n_chains**2
        known = self.enumeration.seen
        rest = np.flatnonzero(known.totals() >= KNOWN_BEST)
        if rest.size:
            is_set = np.where(self.is_new[rest, ..., np.newaxis], self.paths.draws[rest], 0)
            value[rest] = known.marginals()[rest] + is_set.mean(axis=(1, 2))
            variance[rest] = is_set.var(axis=2, ddof=1).sum(axis=1) / (size * n_chains**2)
            undrawn[rest] = undrawn_variance(n_chains * size, 0.0, 1.0, value[rest])
        return MeanEstimate(value, np.sqrt(variance), QUANTILE * np.sqrt(variance + undrawn))

    def expected(self, metric: Metric, Y_pred: Labelsets, empty: float) -> Expected:
        """Return unbiased expected accuracies with 95% intervals within the certified bounds."""
        found = self.expected_estimate(metric, Y_pred, empty)
        certain = self.enumeration.expected(metric, Y_pred, empty)
        is_known = self.n_new >= MIN_NEW_DRAWS
        ends = _cut(found, certain.low, certain.high, is_known)
        return Expected(found.value, *ends, self._method)

    def expected_estimate(self, metric: Metric, Y_pred: Labelsets, empty: float) -> MeanEstimate:
        """Return expected accuracies, all (n,).

        Beside what was enumerated, the labels that a path has beyond what its links expect, among
        those predicted and among the others, have a mean of 0 and go along with the accuracy.
        """
        kept, key = self._kept, (metric, empty, Y_pred.tobytes())
        if key not in kept:
            kept[key] = self._estimate_expected(metric, Y_pred, empty)
        return kept[key]

    @cached_property
    def _kept(self) -> dict[Any, Any]:
        """Estimates of guesses, and how draws compare with the last guess, which metrics share."""
        return {}

    def _compare_draws(self, Y_pred: Labelsets) -> Floats:
        guess = Y_pred.tobytes()
        if self._kept.get("guess", (None,))[0] != guess:
            self._kept["guess"] = guess, self.chains.path_sums(self.paths, Y_pred)
        return self._kept["guess"][1]

    def _estimate_expected(self, metric: Metric, Y_pred: Labelsets, empty: float) -> MeanEstimate:
        sums = self._compare_draws(Y_pred)
        n_predicted = Y_pred.sum(axis=1)[:, np.newaxis, np.newaxis]
        fn, tp = sums[..., 2], sums[..., 3]
        tn = self.n_labels - n_predicted - fn
        values = metric.values(tp, n_predicted - tp, fn, tn, empty=empty)
        least, most = metric_range(metric, Y_pred, empty)
        of_known = expect_over(self.enumeration.seen, metric, Y_pred, empty)
        centre = np.where(self.is_new, values, 0.0).sum(axis=(1, 2)) / (self.n_new + 1)
        return estimate_mean(
            values,
            [sums[..., 0], sums[..., 1], *self._known_controls(values, self.is_new, of_known)],
            [0.0, 0.0, 0.0, 0.0],
            undrawn_variance(self.is_new[0].size, least, most, centre),
        )

    @property
    def _method(self) -> NDArray[np.str_]:
        return np.where(self.enumeration.seen.lengths > 0, "certified+sampled", "sampled")

    @cached_property
    def with_draws(self) -> Enumeration:
        """The enumeration with the draws added: they were seen, and their P is known."""
        n_each = self.log_prob.shape[1] * self._n_evaluated
        draws = self.paths.draws[:, :, : self._n_evaluated].reshape(-1, n_each, self.n_labels)
        is_new = self.is_new[:, :, : self._n_evaluated].reshape(-1, n_each)
        return self.enumeration.add(draws, self.log_prob.reshape(-1, n_each), is_new)


def _append(values: NDArray[Any], more: NDArray[Any]) -> NDArray[Any]:
    """Put the draws of all strata behind those before them."""
    return np.concatenate([values, more], axis=2)


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

LADDER_STEP = 1.4
"""Between totals: a smaller one draws fewer too many, a larger one in fewer groups."""
LONGEST_JUMP = 6.0  # what a first round says of the variance is not to be trusted beyond


class Need(NamedTuple):
    """What draws are made for: an interval that is narrow enough.

    Parameters
    ----------
    growth
        Returns how many times as many draws would do, (n,): 1 or less where there are enough.
    share, share_of_auto
        What the need may have of all draws, in sixths: with the engine "sampled", and with "auto",
        whose budget is that of all needs together.
    kind
        "entropy" for draws with their log-probabilities, "collision" for draws with squared odds.
    """

    growth: Callable[[Sampled], Floats]
    share: int = 6
    share_of_auto: int = 4
    kind: str = ""

    def draw(self, sampled: Sampled, n_draws: int) -> Sampled:
        """Draw until there are so many, an even number in each stratum."""
        is_squared = self.kind == "collision"
        before = (sampled.squared if is_squared else sampled).is_new.shape[2]
        more = max(2, 2 * -(-n_draws // (2 * len(sampled.chains)))) - before
        if more <= 0:
            return sampled
        if is_squared:
            return sampled.draw_more_squared(more)
        return sampled.draw_more(more, evaluate=self.kind == "entropy")


def need_entropy(width: float) -> Need:
    """Ask for the normalised entropy."""

    def growth(sampled: Sampled) -> Floats:
        growth = sampled.entropy.growth_needed(width / 2 * sampled.n_labels * np.log(2))
        return _allow_for_few(growth, sampled.n_new, sampled.enumeration.entropy_width <= width)

    return Need(growth, kind="entropy")


def need_collision(width: float) -> Need:
    """Ask for the collision and the normalised collision entropy."""

    def growth(sampled: Sampled) -> Floats:
        found = sampled.squared.estimate()
        of_entropy = sampled.n_labels * np.log(2)
        of_collision = np.exp(np.minimum(-found.value, 700.0))
        growth = found.growth_needed(width / 2 * np.minimum(of_entropy, of_collision))
        certain = sampled.enumeration.collision_width <= width
        return _allow_for_few(growth, sampled.squared.n_new, certain)

    return Need(growth, share=3, share_of_auto=2, kind="collision")


def need_expected(
    width: float, metrics: Sequence[Metric], empty: float, guesses: Labelsets | None = None
) -> Need:
    """Ask for expected accuracies of guesses (N, g, L) of the whole batch; None: of the modes."""

    def growth(sampled: Sampled) -> Floats:
        mode = sampled.enumeration.mode()[:, np.newaxis]
        mine = mode if guesses is None else guesses[sampled.streams.rows]
        growth = np.zeros(len(mine))
        for Y in each_guess(mine):
            for metric in metrics:  # which share what the draws have in common with the guess
                found = sampled.expected_estimate(metric, Y, empty)
                growth = np.maximum(growth, found.growth_needed(width / 2))
        return _allow_for_few(growth, sampled.n_new, sampled.enumeration.unseen_mass <= width)

    return Need(growth)


def need_marginals(width: float) -> Need:
    """Ask for all marginals."""

    def growth(sampled: Sampled) -> Floats:
        return np.asarray(sampled.marginal_estimates.growth_needed(width / 2).max(axis=1))

    return Need(growth, share_of_auto=6)


def _allow_for_few(growth: Floats, n_new: Integers, certain: Mask) -> Floats:
    """Ask for enough new draws to have an interval, unless the guaranteed one will do."""
    return np.where(certain, 0.0, np.maximum(growth, MIN_NEW_DRAWS / np.maximum(n_new, 1)))


def draw_for(
    rows: Indices, sampled: Sampled, needs: Sequence[Need], limits: Sequence[int]
) -> Iterator[tuple[Indices, Sampled]]:
    """Draw for one need after the other; yield instances that are finished together.

    A round tells how many draws are needed. Totals are steps of a fixed ladder, so that instances
    which need about as many stay together; doubling instead takes 25% more draws and 40% more time.
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
            yield from draw_for(rows[mine], part, needs[1:], limits[1:])


def _climb_ladder(total: int, growth: Floats, limit: int) -> Indices:
    """Return the step of the ladder that is high enough: from the next one up to the limit."""
    wanted = total * np.clip(growth, LADDER_STEP, LONGEST_JUMP)
    step = np.ceil(np.log(wanted / _limits.FIRST_DRAWS) / np.log(LADDER_STEP) - 1e-9)
    return np.minimum(np.ceil(_limits.FIRST_DRAWS * LADDER_STEP**step), limit).astype(np.intp)
