"""Sampling: unbiased estimates with 95% intervals from draws whose probabilities are known.

- Stratified sampling over the chains, by their weights; enumerated labelsets count exactly.
- Entropy: the mean of -log P(y), with control variates from the links of a draw's own chain.
- Collision: importance sampling of P(y)**2; the proposal is the mixture of squared odds.
- Marginals: means of conditional probabilities along the paths (Rao-Blackwell).
- Rounds of draws follow until the interval of the requested quantity is narrow enough.

Formulas: `docs/understand/mathematics.md`, "Sampling without bias".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtrit

from labelsure._runtime import limits as _limits
from labelsure._runtime.typing import Array, Floats, Indices, Integers, Labelsets, Mask, RowsLike
from labelsure.distributions._answers import Expected, Support, TopLabelsets, each_guess
from labelsure.distributions._chains import PathDraws, WeightedChains
from labelsure.distributions._enumeration import Enumeration, SomeLabelsets, metric_range
from labelsure.distributions._labelset_table import LabelsetTable, expect_over
from labelsure.distributions.candidates import Profile, log
from labelsure.labelsets.weighted import WeightedLabelsets
from labelsure.metrics.registry import HAMMING, Metric

DrawKind = Literal["plain", "entropy", "collision", "marginals"]
"""With log-probabilities for the entropy, with squared odds, or with sums for the marginals."""

LEVEL = 0.95
QUANTILE = float(ndtri(0.5 + LEVEL / 2))

UNDRAWN = 2
"""Pseudo-draws at each end of the range, which widen every interval: draws that are all alike do
not give a width of 0. For zeros and ones this is the interval of Agresti and Coull (1998)."""

PRIOR_DRAWS = 2
"""Ridge penalty of a control variate's coefficient: its first guess counts as so many draws."""

LEAST_LEFT = 0.01
"""Control variates reduce the variance of the pseudo-draws to this share at the least."""


class MeanEstimate(NamedTuple):
    """Unbiased estimates with standard errors and 95% intervals.

    Parameters
    ----------
    value
        (n,) estimate of each instance.
    error
        (n,) standard errors.
    half_width
        (n,) half widths of the 95% intervals.
    """

    value: Floats
    error: Floats
    half_width: Floats

    def widen(self, n_intervals: int, freedom: int) -> MeanEstimate:
        """Simultaneous 95% intervals, by Bonferroni and Student's t."""
        quantile = float(stdtrit(freedom, 1 - (1 - LEVEL) / (2 * n_intervals)))
        return self._replace(half_width=self.half_width * (quantile / QUANTILE))

    def growth_needed(self, half_width: Floats | float) -> Floats:
        """Factor by which the number of draws must grow for that half width, (n,).

        With N draws the variance falls as 1/N, that of the pseudo-draws as 1/N**2.
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
    """Estimated mean of values (n, m, size), as many from each chain, with control variates.

    `guesses` are prior values of the coefficients, `undrawn` the variance of the pseudo-draws.
    """
    guess = np.asarray(guesses, dtype=np.float64)
    fit = partial(_best_multiples, guess=guess)
    rest = subtract_controls(values, np.stack(controls, axis=-1), fit)
    variance, before = stratified_variance(rest), stratified_variance(values)
    # Control variates are assumed to reduce the variance of the pseudo-draws half as much.
    share = np.where(before > 0, variance / np.where(before > 0, before, 1.0), 1.0)
    left = np.clip(2.0 * share, LEAST_LEFT, 1.0)
    half_width = QUANTILE * np.sqrt(variance + left * undrawn)
    return MeanEstimate(rest.mean(axis=(1, 2)), np.sqrt(variance), half_width)


def subtract_controls(
    values: Floats, controls: Floats, fit: Callable[[Floats, Floats], Floats]
) -> Floats:
    """Values (n, m, size) minus coefficients times control variates (n, m, size, k).

    The controls have mean 0. `fit` finds the (n, k) coefficients for one half of the draws in the
    other half (cross-fitting), so the mean stays unbiased.
    """
    half = values.shape[2] // 2
    first, second = slice(None, half), slice(half, None)
    rest = np.empty(values.shape)
    for mine, other in ((first, second), (second, first)):
        multiples = fit(values[:, :, other], controls[:, :, other])
        taken = np.einsum("nmsk,nk->nms", controls[:, :, mine], multiples)
        rest[:, :, mine] = values[:, :, mine] - taken
    return rest


def _best_multiples(values: Floats, controls: Floats, guess: Floats) -> Floats:
    """Coefficients of a ridge regression within chains, shrunk to the guess, (n, k)."""
    values = values - np.einsum("nmsk,k->nms", controls, guess)
    # Around the known mean 0: a control that is constant in the draws has a variance above 0.
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
    """Mean of each stratum and its variance, (n, m, L), from the sums of `link_moment_rows`.

    There is one control variate.
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
    """Variance of the stratified mean of values (n, m, size), (n,)."""
    n_chains, size = values.shape[1:]
    return np.asarray(values.var(axis=2, ddof=1).sum(axis=1) / (size * n_chains**2))


def undrawn_variance(
    n_draws: int, least: Floats | float, most: Floats | float, centre: Floats
) -> Floats:
    """Variance that pseudo-draws at both ends of the range add to the mean, (n,)."""
    return np.asarray(UNDRAWN * ((centre - least) ** 2 + (most - centre) ** 2) / n_draws**2)


MIN_NEW_DRAWS = 10  # fewer draws outside of the enumeration give no interval
KNOWN_BEST = 0.9
"""From this enumerated mass on, marginals are the enumerated part plus the share of other draws;
below, the conditional probabilities along the paths of all draws have less variance."""


class DrawStreams:
    """Uniform random numbers for some instances of a batch.

    The numbers of an instance depend on the seed and its key only: not on its row, on the other
    instances of the batch, or on the number of threads.

    Parameters
    ----------
    seed
        A whole number >= 0.
    rows
        Row of each instance in the batch.
    keys
        A hash of 64 bits of each instance: equal instances have equal keys.

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

    def __getitem__(self, rows: RowsLike) -> DrawStreams:
        taken = DrawStreams(0, [], [])
        taken.rows = self.rows[rows]
        taken._streams = [self._streams[i] for i in np.arange(len(self._streams))[rows]]
        return taken

    def uniforms(self, shape: tuple[int, ...], *, squared: bool = False) -> Floats:
        """Next numbers of each instance, (n, *shape); `squared` draws have their own stream."""
        numbers = np.empty((len(self._streams), *shape))
        for mine, streams in zip(numbers, self._streams, strict=True):
            streams[int(squared)].random(out=mine)
        return numbers


@dataclass(frozen=True)
class SquaredDraws:
    """Importance sampling of the collision, the sum of P(y)**2, by draws with squared odds.

    Parameters
    ----------
    log_weights
        (n, m, size) log of P(y)**2 / Q(y) of each draw, where the proposal Q is the mixture of the
        chains with squared odds. With many labels the weights themselves underflow.
    is_new
        (n, m, size) whether a draw is not among the enumerated labelsets.
    log_known
        (n,) log of the sum of P(y)**2 over the enumerated labelsets.
    """

    log_weights: Floats
    is_new: Mask
    log_known: Floats

    def __getitem__(self, rows: RowsLike) -> SquaredDraws:
        return SquaredDraws(self.log_weights[rows], self.is_new[rows], self.log_known[rows])

    @property
    def n_new(self) -> Integers:
        """Number of draws that are not among the enumerated labelsets, (n,)."""
        return np.asarray(self.is_new.sum(axis=(1, 2)))

    @property
    def log_scale(self) -> Floats:
        """Log of each instance's largest weight, (n,)."""
        return np.asarray(self.log_weights.max(axis=(1, 2)))

    @property
    def weights(self) -> Floats:
        """Weights of the draws, divided by the largest one: in [0, 1], (n, m, size)."""
        return np.exp(self.log_weights - self.log_scale[:, np.newaxis, np.newaxis])

    def estimate(self) -> MeanEstimate:
        """Log collision, with its standard error and the half width of its interval.

        The estimate is the enumerated sum plus the mean weight of new draws. The weights of the
        other draws have the enumerated sum as their mean and serve as a control variate. Weights
        are heavy-tailed, so the interval is symmetric on the log scale, and the pseudo-draws have
        the largest weight drawn, or none.
        """
        weights, known = self.weights, np.exp(self.log_known - self.log_scale)
        off = np.where(self.is_new, 0.0, weights) - known[:, np.newaxis, np.newaxis]
        new = np.where(self.is_new, weights, 0.0)
        values = subtract_controls(new, off[..., np.newaxis], _best_share)
        mean = values.mean(axis=(1, 2))
        total = np.maximum(known + mean, np.finfo(float).tiny)
        least = np.minimum(values.min(axis=(1, 2)), 0.0)
        variance = stratified_variance(values) / total**2
        n_draws = values.shape[1] * values.shape[2]
        undrawn = undrawn_variance(n_draws, least, values.max(axis=(1, 2)), mean) / total**2
        value = np.log(total) + self.log_scale
        return MeanEstimate(value, np.sqrt(variance), QUANTILE * np.sqrt(variance + undrawn))


def _best_share(values: Floats, controls: Floats) -> Floats:
    """Coefficient in [-1, 0] of a single control with the least variance, (n, 1)."""
    values = values - values.mean(axis=2, keepdims=True)  # only variance within chains counts
    control = controls[..., 0] - controls[..., 0].mean(axis=2, keepdims=True)
    covariance = (values * control).sum(axis=(1, 2))
    variance = (control**2).sum(axis=(1, 2))
    return np.clip(covariance / np.where(variance > 0, variance, 1.0), -1.0, 0.0)[:, np.newaxis]


@dataclass(frozen=True)
class Sampled(SomeLabelsets):
    """Draws of each instance, and the enumeration that precedes them.

    Parameters
    ----------
    enumeration
        Enumerated labelsets, perhaps none: they count exactly.
    chains
        Chains to draw from.
    streams
        Random numbers of each instance.
    paths
        The draws.
    is_new
        (n, m, size) whether a draw is not among the enumerated labelsets.
    log_prob
        (n, m, some) log-probabilities of the first draws under the mixture, for the entropy.
    squared
        Draws with squared odds, for the collision.
    moments
        (n, m, 2, 5, L) sums over the draws of P(y_j = 1 | labels before) and its control variate,
        for marginals.
    """

    enumeration: Enumeration
    chains: WeightedChains
    streams: DrawStreams
    paths: PathDraws
    is_new: Mask
    log_prob: Floats
    squared: SquaredDraws
    moments: Floats

    @classmethod
    def nothing(
        cls, enumeration: Enumeration, chains: WeightedChains, streams: DrawStreams
    ) -> Sampled:
        """An enumeration without draws."""
        shape, known = (chains.n_samples, len(chains), 0), enumeration.seen
        paths = PathDraws(
            np.empty(shape, dtype=np.intp),
            np.empty((*shape, chains.n_labels), dtype=np.int8),
            np.empty((*shape, 2)),
        )
        is_new, log_prob = np.empty(shape, dtype=bool), np.empty(shape)
        squared = SquaredDraws(log_prob, is_new, log(known.sum(known.weights**2)))
        moments = np.zeros((*shape[:2], 2, 5, chains.n_labels))
        return cls(enumeration, chains, streams, paths, is_new, log_prob, squared, moments)

    def __getitem__(self, rows: Indices) -> Sampled:
        return Sampled(
            self.enumeration[rows],
            self.chains.take(rows),
            self.streams[rows],
            self.paths.take(rows),
            self.is_new[rows],
            self.log_prob[rows],
            self.squared[rows],
            self.moments[rows],
        )

    def draw_more(self, size: int, kind: DrawKind) -> Sampled:
        """Estimates after `size` further draws in each stratum."""
        more = self._draw(self.chains, size)
        log_prob, moments = self.log_prob, self.moments
        if kind == "entropy":
            log_prob = _append(log_prob, self.chains.log_prob(more.draws)[..., 0])
        if kind == "marginals":
            moments = moments + self.chains.link_moments(more)
        return replace(
            self,
            paths=self.paths.join(more),
            is_new=_append(self.is_new, self._are_new(more.draws)),
            log_prob=log_prob,
            moments=moments,
        )

    def draw_more_squared(self, size: int) -> Sampled:
        """Estimates after `size` further draws with squared odds in each stratum."""
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
            of_stratum = np.arange(len(chains))[:, np.newaxis]
            owners = np.broadcast_to(of_stratum, (chains.n_samples, len(chains), size))
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
        """Number of draws that are not among the enumerated labelsets, (n,)."""
        return np.asarray(self.is_new.sum(axis=(1, 2)))

    @property
    def _log_n(self) -> float:
        """The log of the number of labelsets."""
        return float(self.n_labels * np.log(2))

    @property
    def _n_evaluated(self) -> int:
        return self.log_prob.shape[2]

    def profile(self) -> Profile:
        """Unbiased entropy and collision, 95% intervals clipped to the certified bounds."""
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
        """The entropy, the mean of -log P, with four control variates of each draw.

        They are the log-probability in the draw's own chain minus its mean, link by link; the same
        with the mean logits of all chains; whether the labelset was enumerated, minus the
        enumerated mass; and its -log P if it was, minus the enumerated part of the entropy.
        """
        surprise, excess = -self.log_prob, self.paths.excess[:, :, : self._n_evaluated]
        is_new = self.is_new[:, :, : self._n_evaluated]
        known = self.enumeration.seen
        of_known = known.sum(-known.weights * np.log(known.weights))
        n_new = is_new.sum(axis=(1, 2))
        # Unseen labelsets have at least this surprise (-log P), which counts as one more draw.
        guess = -log(np.maximum(self.enumeration.largest_unseen, 1e-300))
        of_new = np.where(is_new, surprise, 0.0)
        centre = (of_new.sum(axis=(1, 2)) + guess) / (n_new + 1)
        # Range of an undrawn surprise: from the least one drawn to that of a uniform P.
        least = np.where(is_new, surprise, np.inf).min(axis=(1, 2), initial=self._log_n)
        return estimate_mean(
            surprise,
            [excess[..., 0], excess[..., 1], *self._known_controls(surprise, is_new, of_known)],
            [-1.0, 0.0, 0.0, 0.0],
            undrawn_variance(is_new[0].size if len(is_new) else 1, least, self._log_n, centre),
        )

    def _known_controls(self, values: Floats, is_new: Mask, of_known: Floats) -> list[Floats]:
        """Two control variates: a draw's value if it was enumerated, and whether it was."""
        mass = self.enumeration.seen.totals()
        of_draw = np.where(is_new, 0.0, values) - of_known[:, np.newaxis, np.newaxis]
        return [of_draw, ~is_new - mass[:, np.newaxis, np.newaxis]]

    def top(self, k: int) -> TopLabelsets:
        """The most probable labelsets that were enumerated or drawn."""
        return self.with_draws.top(k)

    def marginals(self) -> Expected:
        """Estimates of P(y_j = 1), clipped to [0, 1], with simultaneous 95% intervals.

        The intervals hold for all labels of an instance at once (Bonferroni).
        """
        n_draws = len(self.chains) * (self.is_new.shape[2] - 1)
        found = self.marginal_estimates.widen(self.n_labels, n_draws)
        certain = self.enumeration.marginals()
        value = np.clip(found.value, 0.0, 1.0)
        return Expected(value, *_cut(found, certain.low, certain.high, True), self._method)

    @cached_property
    def marginal_estimates(self) -> MeanEstimate:
        """P(y_j = 1) of each label, all (n, L).

        The mean of P(y_j = 1 | earlier labels) along the paths of the draws. The control variate is
        the sum of the earlier labels' terms in the logit of label j, minus its mean. Where nearly
        all mass was enumerated: the enumerated marginal plus the share of new draws with y_j = 1.
        """
        n_chains, size = self.is_new.shape[1:]
        value, variance = mean_of_moments(self.moments, size)
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

    def expect(self, metric: Metric, Y_pred: Labelsets, empty: float) -> Expected:
        """Unbiased expected accuracies, 95% intervals clipped to the certified bounds."""
        found = self.expected_estimate(metric, Y_pred, empty)
        certain = self.enumeration.expect(metric, Y_pred, empty)
        is_known = self.n_new >= MIN_NEW_DRAWS
        ends = _cut(found, certain.low, certain.high, is_known)
        return Expected(found.value, *ends, self._method)

    def expected_estimate(self, metric: Metric, Y_pred: Labelsets, empty: float) -> MeanEstimate:
        """Expected accuracies, all (n,), with four control variates.

        Two come from the enumeration. The others are the sums of y_j - P(y_j = 1 | earlier labels)
        over the predicted labels and over all others.
        """
        kept, key = self._kept, (metric, empty, Y_pred.tobytes())
        if key not in kept:
            kept[key] = self._estimate_expected(metric, Y_pred, empty)
        return kept[key]

    @cached_property
    def _kept(self) -> dict[Any, Any]:
        """Cached estimates, and the counts of draws against the last guess, for all metrics."""
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

    def best(self, metric: Metric, empty: float) -> Support:
        """Table of enumerated labelsets, and of draws of equal weight for the others.

        Both the unseen mass and the draws in its place may be misplaced, so the gap counts that
        mass twice. The weight of a draw does not estimate the probability of its labelset: the mode
        is one of the enumerated labelsets.
        """
        found = self.enumeration
        draws = self.paths.draws.reshape(len(self.is_new), -1, self.n_labels)
        instance, place = np.nonzero(self.is_new.reshape(draws.shape[:2]))
        n_new = np.bincount(instance, minlength=len(draws))
        rest = np.maximum(1.0 - found.seen.totals(), 0.0)
        shares = (rest / np.maximum(n_new, 1))[instance]
        drawn = WeightedLabelsets.merge(draws[instance, place], shares, instance, len(draws))
        return Support(
            LabelsetTable.from_weighted(found.seen.join(drawn).normalise(), known=found.seen),
            np.ones(len(draws)),
            np.minimum(2 * found.unseen_mass, 1.0),
            found.largest_unseen,
            self.marginals() if metric == HAMMING else None,
        )

    @property
    def _method(self) -> NDArray[np.str_]:
        return np.where(self.enumeration.seen.lengths > 0, "certified+sampled", "sampled")

    @cached_property
    def with_draws(self) -> Enumeration:
        """The enumeration with the evaluated draws added."""
        n_each = self.log_prob.shape[1] * self._n_evaluated
        draws = self.paths.draws[:, :, : self._n_evaluated].reshape(-1, n_each, self.n_labels)
        is_new = self.is_new[:, :, : self._n_evaluated].reshape(-1, n_each)
        return self.enumeration.add(draws, self.log_prob.reshape(-1, n_each), is_new)


def _append(values: Array, more: Array) -> Array:
    """Draws followed by further ones in each stratum."""
    return np.concatenate([values, more], axis=2)


def _cut(
    found: MeanEstimate, low: Floats, high: Floats, is_known: Mask | bool
) -> tuple[Floats, Floats]:
    """95% interval clipped to the certified one, from low to high.

    Where the two are disjoint, or too few draws are new (not `is_known`), the certified one stays.
    """
    left = np.maximum(found.value - found.half_width, low)
    right = np.minimum(found.value + found.half_width, high)
    usable = (left <= right) & is_known
    return np.where(usable, left, low), np.where(usable, right, high)


# Sequential sampling: when to stop.

LADDER_STEP = 1.4
"""Ratio of successive totals: a smaller one wastes fewer draws, a larger one has fewer groups."""
LONGEST_JUMP = 6.0  # the variance of a first round is too uncertain for larger factors


class Need(NamedTuple):
    """A quantity to estimate by draws until its interval is narrow enough.

    Parameters
    ----------
    growth
        Factor by which the number of draws must grow, (n,): at most 1 where they suffice.
    share, share_of_auto
        Share of the budget for this quantity, in sixths: with the engine "sampled", and with
        "auto", where all quantities share one budget.
    kind
        Quantities computed with each draw.
    """

    growth: Callable[[Sampled], Floats]
    share: int = 6
    share_of_auto: int = 4
    kind: DrawKind = "plain"

    def draw(self, sampled: Sampled, n_draws: int) -> Sampled:
        """Estimates after a total of `n_draws`, an even number in each stratum."""
        is_squared = self.kind == "collision"
        before = (sampled.squared if is_squared else sampled).is_new.shape[2]
        more = max(2, 2 * -(-n_draws // (2 * len(sampled.chains)))) - before
        if more <= 0:
            return sampled
        if is_squared:
            return sampled.draw_more_squared(more)
        return sampled.draw_more(more, self.kind)


def need_entropy(width: float) -> Need:
    """Normalised entropy within an interval of that width."""

    def growth(sampled: Sampled) -> Floats:
        growth = sampled.entropy.growth_needed(width / 2 * sampled.n_labels * np.log(2))
        return _allow_for_few(growth, sampled.n_new, sampled.enumeration.entropy_width <= width)

    return Need(growth, kind="entropy")


def need_collision(width: float) -> Need:
    """Collision and normalised collision entropy within intervals of that width."""

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
    """Expected accuracies of guesses (N, g, L) of the whole batch; None: of the modes."""

    def growth(sampled: Sampled) -> Floats:
        mode = sampled.enumeration.top(1).labelsets
        mine = mode if guesses is None else guesses[sampled.streams.rows]
        growth = np.zeros(len(mine))
        for Y in each_guess(mine):
            for metric in metrics:  # they share the counts of draws against the guess
                found = sampled.expected_estimate(metric, Y, empty)
                growth = np.maximum(growth, found.growth_needed(width / 2))
        return _allow_for_few(growth, sampled.n_new, sampled.enumeration.unseen_mass <= width)

    return Need(growth)


def need_marginals(width: float) -> Need:
    """All marginals within intervals of that width."""

    def growth(sampled: Sampled) -> Floats:
        return np.asarray(sampled.marginal_estimates.growth_needed(width / 2).max(axis=1))

    return Need(growth, share_of_auto=6, kind="marginals")


def _allow_for_few(growth: Floats, n_new: Integers, certain: Mask) -> Floats:
    """Growth to at least `MIN_NEW_DRAWS` new draws; 0 where the certified interval suffices."""
    return np.where(certain, 0.0, np.maximum(growth, MIN_NEW_DRAWS / np.maximum(n_new, 1)))


def draw_for(
    rows: Indices, sampled: Sampled, needs: Sequence[tuple[Need, int]]
) -> Iterator[tuple[Indices, Sampled]]:
    """Groups of finished instances, drawn for one need after the other, up to its limit.

    Each round estimates how many draws are needed. Totals are steps of a geometric ladder, so
    instances with similar needs stay together; doubling takes 25% more draws and 40% more time.
    """
    if not needs:
        yield rows, sampled
        return
    (need, limit), *others = needs
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
            yield from draw_for(rows[mine], part, others)


def _climb_ladder(total: int, growth: Floats, limit: int) -> Indices:
    """First step of the ladder that suffices: at least the next, at most the limit."""
    wanted = total * np.clip(growth, LADDER_STEP, LONGEST_JUMP)
    step = np.ceil(np.log(wanted / _limits.FIRST_DRAWS) / np.log(LADDER_STEP) - 1e-9)
    return np.minimum(np.ceil(_limits.FIRST_DRAWS * LADDER_STEP**step), limit).astype(np.intp)
