"""Chains: each label's probability given x and the labels before it, in the chain's own order.

`LinearChain` and `PrefixChain` are single chains. `WeightedChains` are those of a mixture, drawn
from and evaluated together: linear ones by kernels that work with odds, any other base learner with
many prefixes at a time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property, lru_cache
from hashlib import blake2b
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit

from labelsure._kernels import chain_paths
from labelsure._kernels.chain_beams import MIN_SCALE
from labelsure._kernels.chain_joints import SAFE_LOGIT, BlockPlan, joint_rows, plan_blocks
from labelsure._kernels.threads import for_rows
from labelsure._runtime.typing import Floats, Indices, Integers, Labelsets, Rows
from labelsure.distributions._probabilities import as_floats, log_prob_of_logits
from labelsure.distributions.candidates import log
from labelsure.errors import InputError
from labelsure.labelsets.codes import from_codes
from labelsure.labelsets.label_names import check_label_order

Conditional = Callable[[int, Indices, Labelsets], Floats]

CALL_ROWS = 2**16
"""Rows that a base learner predicts in one call."""


def open_interval(p: Floats) -> Floats:
    """Probabilities clipped to the open interval (0, 1), so that their logits are finite."""
    return np.clip(p, np.finfo(float).tiny, 1 - 2.0**-53)


class Chain(ABC):
    """One chain over a batch of n instances.

    Parameters
    ----------
    order
        (L,) the label at each position: a permutation of 0 to L - 1.
    """

    def __init__(self, order: ArrayLike) -> None:
        self.order = check_label_order(order, name="order")

    @property
    @abstractmethod
    def n_samples(self) -> int:
        """The number of instances."""

    @abstractmethod
    def take(self, rows: Rows) -> Self:
        """The chain for some of its instances."""

    @abstractmethod
    def conditional(self, position: int, rows: Indices, prefixes: Labelsets) -> Floats:
        """P(label at `position` = 1) for pairs of an instance and its earlier labels, (k,)."""

    @abstractmethod
    def temper(self, temperature: float) -> Self:
        """The chain with the log-odds of each link divided by the temperature."""

    def log_prob(self, Y: Labelsets) -> Floats:
        """Log-probability of one labelset for each instance, (n,)."""
        return log_prob_of_logits(self.link_logits(Y))

    def link_logits(self, Y: Labelsets) -> Floats:
        """Log-odds of each label's value, given those before it, (n, L)."""
        logits = logit(self.path_conditionals(Y))
        return np.where(Y == 1, logits, -logits)

    def path_conditionals(self, Y: Labelsets) -> Floats:
        """P(y_j = 1) of each label given those before it in the labelset, (n, L)."""
        ordered = Y[:, self.order]
        p = np.empty(Y.shape)
        for j, label in enumerate(self.order):
            p[:, label] = self.conditional(j, np.arange(len(Y)), ordered[:, :j])
        return p

    def sample(self, rows: Indices, uniforms: Floats) -> Labelsets:
        """One labelset for each entry of `rows`, by ancestral sampling, (k, L)."""
        unused = np.broadcast_to(0.0, (self.n_samples, self.order.size))
        return self.draw_paths(rows, uniforms, unused)[0]

    def draw_paths(
        self, rows: Indices, uniforms: Floats, mean_logits: Floats
    ) -> tuple[Labelsets, Floats]:
        """Labelsets by ancestral sampling, with two control variates of their log-probability.

        Returns
        -------
        The labelsets, and control variates (k, 2) with mean 0: the log-probability minus its mean,
        link by link, which is the sum of (y - p) logit(p); and the same sum with `mean_logits`,
        (n, L), in place of the links' own logits.
        """
        ordered = np.empty(uniforms.shape, dtype=np.int8)
        excess = np.zeros((len(rows), 2))
        for j in range(uniforms.shape[1]):
            p = self.conditional(j, rows, ordered[:, :j])
            ordered[:, j] = one = uniforms[:, j] < p
            excess[:, 0] += (one - p) * logit(open_interval(p))  # a certain label adds nothing
            excess[:, 1] += (one - p) * mean_logits[rows, self.order[j]]
        drawn = np.empty_like(ordered)
        drawn[:, self.order] = ordered
        return drawn, excess

    def search_beam(self, width: int) -> tuple[Labelsets, Floats, Floats]:
        """Beam search: the `width` likeliest prefixes are kept, label by label.

        Returns
        -------
        (n, w, L) labelsets; (n, w) their probabilities divided by the largest, 0 where there is
        none; and the largest probability of a prefix that was pruned, (n,).
        """
        found, q = np.zeros((self.n_samples, 1, self.order.size), dtype=np.int8), np.ones((1, 1))
        q, scale = np.repeat(q, self.n_samples, axis=0), np.ones(self.n_samples)
        pruned = np.zeros(self.n_samples)
        for j, label in enumerate(self.order):
            p = self._predict_prefixes(j, q, found[:, :, self.order[:j]])
            children = np.stack([q * (1 - p), q * p], axis=2).reshape(len(q), -1)
            kept = np.argsort(-children, axis=1, kind="stable")
            if kept.shape[1] > width:
                left = np.take_along_axis(children, kept[:, width : width + 1], axis=1)[:, 0]
                pruned, kept = np.maximum(pruned, scale * left), kept[:, :width]
            found = np.take_along_axis(found, kept[:, :, np.newaxis] >> 1, axis=1)
            found[:, :, label] = kept & 1
            q = np.take_along_axis(children, kept, axis=1)
            largest = q[:, :1].copy()
            q /= largest
            scale = np.maximum(scale * largest[:, 0], MIN_SCALE)
        return found, q, pruned

    def _predict_prefixes(self, position: int, q: Floats, prefixes: Labelsets) -> Floats:
        """P(label at `position` = 1) after (n, w, position) prefixes, (n, w); 0 where q is 0."""
        p = np.zeros(q.shape)
        rows, places = np.nonzero(q > 0)  # impossible prefixes need no prediction
        for first in range(0, rows.size, CALL_ROWS):
            some, place = rows[first : first + CALL_ROWS], places[first : first + CALL_ROWS]
            p[some, place] = self.conditional(position, some, prefixes[some, place])
        return p

    def joint(self) -> Floats:
        """All probabilities, (n, 2**L) in code order, prefix by prefix."""
        n_labels = self.order.size
        q = np.ones((self.n_samples, 1))
        for j in range(n_labels):
            prefixes = from_codes(np.arange(2**j), j)
            p = self._predict_prefixes(j, q, np.broadcast_to(prefixes, (len(q), 2**j, j)))
            q = np.concatenate([q * (1 - p), q * p], axis=1)
        # Axis 1 + a of the reshaped array is the bit of position L - 1 - a: make it the bit of
        # label L - 1 - a.
        axes = [n_labels - int(np.argmax(self.order == n_labels - 1 - a)) for a in range(n_labels)]
        return q.reshape(-1, *(2,) * n_labels).transpose(0, *axes).reshape(q.shape)


@dataclass(frozen=True, eq=False)
class ChainLinks:
    """Order and weights of a linear chain, the same for all instances.

    Chains taken from one another share it, with its cached arrays.
    """

    order: Indices
    weights: Floats

    @cached_property
    def terms(self) -> Floats:
        """(L, L) terms that label i, set, adds to the logit of label j: 0 unless i is earlier."""
        terms = np.empty(self.weights.shape)
        terms[np.ix_(self.order, self.order)] = self.weights.T
        return terms

    @cached_property
    def reach(self) -> Floats:
        """(L,) bound on the change of the logit at each position by earlier labels."""
        return np.asarray(np.abs(self.weights).sum(axis=1))


@lru_cache(maxsize=64)
def _temper(links: ChainLinks, temperature: float) -> ChainLinks:
    """Tempered links, cached: a mixture's instances come a few at a time."""
    return ChainLinks(links.order, links.weights / temperature)


def _check_finite(values: Floats, name: str) -> None:
    if not np.isfinite(values).all():
        raise InputError(
            f"`{name}` must be finite, got a value that is not in row "
            f"{np.argwhere(~np.isfinite(values))[0][0]}."
        )


class LinearChain(Chain):
    """A chain whose conditionals are the logistic of a linear function.

    Parameters
    ----------
    order
        (L,) the label at each position.
    base
        (n, L) logit at each position when no earlier label is set.
    weights
        (L, L) weights[j, i] is added to the logit at position j by a 1 at position i < j.

    Examples
    --------
    Label 1 first; label 0 likes company:

    >>> chain = LinearChain([1, 0], base=[[0.0, -2.0]], weights=[[0, 0], [4.0, 0]])
    >>> chain.joint().round(3)
    array([[0.44, 0.06, 0.06, 0.44]])
    """

    def __init__(self, order: ArrayLike, base: ArrayLike, weights: ArrayLike) -> None:
        super().__init__(order)
        self.base = as_floats(base, "base").astype(np.float64)  # a copy, also of such an array
        self.weights = np.tril(as_floats(weights, "weights").astype(np.float64), -1)
        n_labels = self.order.size
        if self.base.ndim != 2 or self.base.shape[1] != n_labels:
            raise InputError(
                f"`base` must have shape (n_samples, {n_labels}), got shape {self.base.shape}."
            )
        if self.weights.shape != (n_labels, n_labels):
            raise InputError(
                f"`weights` must have shape ({n_labels}, {n_labels}), got {self.weights.shape}."
            )
        _check_finite(self.base, "base")
        _check_finite(self.weights, "weights")
        self.links = ChainLinks(self.order, self.weights)

    @classmethod
    def from_fitted(cls, order: Indices, base: Floats, weights: Floats) -> Self:
        """Chain of a fitted model, whose order and weights were checked with it.

        Parameters
        ----------
        order, base, weights
            As for the class; `weights` are 0 but below the diagonal. Logits may overflow where
            features are extreme, so these are still looked at.
        """
        _check_finite(base, "base")
        new = cls.__new__(cls)
        new.order, new.base, new.weights = order, base, weights
        new.links = ChainLinks(order, weights)
        return new

    @property
    def n_samples(self) -> int:
        """The number of instances."""
        return len(self.base)

    def take(self, rows: Rows) -> Self:
        """The chain for some of its instances."""
        taken = copy(self)  # without checking again
        taken.base = self.base[rows]
        return taken

    @property
    def largest_logit(self) -> float:
        """No logit of a label is farther from 0, whatever the labels before it."""
        most = np.abs(self.base).max(axis=0, initial=0.0) + self.links.reach
        return float(most.max(initial=0.0))

    def link_logits(self, Y: Labelsets) -> Floats:
        """Log-odds of each label's value, given those before it, (n, L)."""
        logits = np.empty(Y.shape)
        logits[:, self.order] = self.base + Y[:, self.order] @ self.weights.T
        return np.where(Y == 1, logits, -logits)

    def temper(self, temperature: float) -> Self:
        """The chain with the log-odds of each link divided by the temperature."""
        tempered = copy(self)
        tempered.base, tempered.links = self.base / temperature, _temper(self.links, temperature)
        tempered.weights = tempered.links.weights
        return tempered

    def conditional(self, position: int, rows: Indices, prefixes: Labelsets) -> Floats:
        """P(label at `position` = 1) for pairs of an instance and its earlier labels, (k,)."""
        logits = self.base[rows, position] + prefixes @ self.weights[position, :position]
        return expit(logits)


@lru_cache(maxsize=8)
def _plan_joint(links: tuple[ChainLinks, ...]) -> BlockPlan:
    """Plan of the joint, cached: a mixture's instances come a few at a time, in several threads."""
    weights, orders = [link.weights for link in links], [link.order for link in links]
    return plan_blocks(np.stack(weights), np.stack(orders))


def write_joints(chains: Sequence[Chain], shares: Floats | None, P: Floats) -> None:
    """Write the joints of mixtures: of linear chains in one kernel, of others one by one."""
    shares = np.ones((len(P), len(chains))) if shares is None else shares
    bases, links, mine, others = [], [], [], []
    for m, chain in enumerate(chains):
        if isinstance(chain, LinearChain):
            bases.append(chain.base)
            links.append(chain.links)
            mine.append(m)
        else:
            others.append((chain, shares[:, m : m + 1] / len(chains)))
    if bases:
        own = shares[:, mine] * (len(mine) / len(chains))
        plan = _plan_joint(tuple(links))
        for_rows(joint_rows, len(P), np.stack(bases, axis=1), own, plan, into=[P])
    else:
        P[:] = 0.0
    for chain, share in others:
        P += chain.joint() * share


class PrefixChain(Chain):
    """A chain whose conditionals are any function: a base learner that is not linear.

    Parameters
    ----------
    order
        (L,) the label at each position.
    conditional
        Takes (position, rows, prefixes) as `Chain.conditional` does and returns (m,)
        probabilities. Asked for many pairs at once.
    n_samples
        The number of instances.

    Examples
    --------
    A fair coin, and a second label that mostly follows it:

    >>> def follows(position, rows, prefixes):
    ...     return 0.1 + 0.8 * prefixes[:, 0] if position else np.full(len(rows), 0.5)
    >>> PrefixChain([0, 1], follows, n_samples=1).joint()
    array([[0.45, 0.05, 0.05, 0.45]])
    """

    def __init__(
        self,
        order: ArrayLike,
        conditional: Conditional,
        n_samples: int,
    ) -> None:
        super().__init__(order)
        self._conditional = conditional
        self._rows = np.arange(n_samples)
        self._temperature = 1.0

    @property
    def n_samples(self) -> int:
        """The number of instances."""
        return self._rows.size

    def take(self, rows: Rows) -> Self:
        """The chain for some of its instances."""
        taken = copy(self)
        taken._rows = self._rows[rows]
        return taken

    def conditional(self, position: int, rows: Indices, prefixes: Labelsets) -> Floats:
        """P(label at `position` = 1) for pairs of an instance and its earlier labels, (k,)."""
        if not rows.size:
            return np.empty(0)  # most learners refuse to predict no rows
        given: Any = self._conditional(position, self._rows[rows], prefixes)
        p = np.asarray(given, dtype=np.float64)
        if p.shape != rows.shape or not ((p >= 0) & (p <= 1)).all():
            raise InputError(
                f"`conditional` must return {rows.size} probabilities in [0, 1] for position "
                f"{position}, got shape {p.shape}, from {p.min(initial=np.nan)} to "
                f"{p.max(initial=np.nan)}."
            )
        return p if self._temperature == 1 else expit(logit(p) / self._temperature)

    def temper(self, temperature: float) -> Self:
        """The chain with the log-odds of each link divided by the temperature."""
        tempered = copy(self)
        tempered._temperature = temperature * self._temperature
        return tempered


class LinearStack(NamedTuple):
    """Several linear chains in the layout of the kernels: everything by label.

    Parameters
    ----------
    odds
        (n, m, L) of each label in each chain when no earlier label is set.
    logits
        Their logarithms.
    factors
        (m, L, L) factors[m, i, j] multiplies the odds of label j where label i is set: 1 unless i
        comes earlier in the chain.
    terms
        Their logarithms, which are added to the logits.
    orders
        (m, L) the label at each position.
    """

    odds: Floats
    logits: Floats
    factors: Floats
    terms: Floats
    orders: Indices


@lru_cache(maxsize=8)
def _stack_links(links: tuple[ChainLinks, ...]) -> tuple[Floats, Floats, Indices]:
    """Factors, terms and orders of all chains, cached: instances come a few at a time."""
    terms = np.stack([link.terms for link in links])
    return np.exp(terms), terms, np.stack([link.order for link in links])


class PathDraws(NamedTuple):
    """Draws of a mixture, as many in each of its strata.

    Parameters
    ----------
    owners
        (n, m, size) the chain of each draw.
    draws
        (n, m, size, L)
    excess
        (n, m, size, 2) control variates with mean 0: its log-probability in that chain minus the
        mean, link by link; and the same with each label's mean logit over the chains.
    """

    owners: Integers
    draws: Labelsets
    excess: Floats

    def take(self, rows: Rows) -> PathDraws:
        """The draws of some instances."""
        return PathDraws(self.owners[rows], self.draws[rows], self.excess[rows])

    def join(self, more: PathDraws) -> PathDraws:
        """These draws followed by further ones in each stratum."""
        pairs: Any = zip(self, more, strict=True)
        return PathDraws(*(np.concatenate(pair, axis=2) for pair in pairs))


class WeightedChains:
    """The chains of a mixture with their shares.

    The mixture is the mean over chains of share * P(y). Equal weights are shares of 1: results are
    the same as without weights, to the last bit.

    Parameters
    ----------
    chains
        m of them over the same n instances and labels.
    shares
        (n, m) each weight times m; None means that all chains have the same.
    """

    def __init__(self, chains: Sequence[Chain], shares: Floats | None = None) -> None:
        self.chains = list(chains)
        self.n_samples, self.n_labels = chains[0].n_samples, chains[0].order.size
        self.is_equal = shares is None
        equal = np.broadcast_to(1.0, (self.n_samples, len(chains)))
        self.shares: Floats = equal if shares is None else shares
        self._squared: WeightedChains | None = None  # once needed, also for chains taken from these

    def __len__(self) -> int:
        return len(self.chains)

    def take(self, rows: Rows) -> WeightedChains:
        """The chains for some of their instances."""
        shares = None if self.is_equal else self.shares[rows]
        taken = WeightedChains([chain.take(rows) for chain in self.chains], shares)
        taken._squared = None if self._squared is None else self._squared.take(rows)
        return taken

    @property
    def squared(self) -> WeightedChains:
        """The chains whose conditionals have the odds of these, squared."""
        if self._squared is None:
            chains = [chain.temper(0.5) for chain in self.chains]
            self._squared = WeightedChains(chains, None if self.is_equal else self.shares)
        return self._squared

    @cached_property
    def stack(self) -> LinearStack | None:
        """The chains as kernels take them; None if one is not linear or its odds may overflow."""
        linear = [chain for chain in self.chains if isinstance(chain, LinearChain)]
        is_safe = len(linear) == len(self) and all(c.largest_logit <= SAFE_LOGIT for c in linear)
        if not is_safe:
            return None
        logits = np.empty((self.n_samples, len(self), self.n_labels))
        for m, chain in enumerate(linear):
            logits[:, m, chain.order] = chain.base
        links = _stack_links(tuple(chain.links for chain in linear))
        return LinearStack(np.exp(logits), logits, *links)

    def row_keys(self) -> NDArray[np.uint64]:
        """64-bit hash of each instance, (n,).

        It is a digest of the shares and of the log-odds along the path on which no label is set,
        in single precision: equal instances whose log-odds differ by rounding have the same.
        """
        none = np.zeros((self.n_samples, self.n_labels), dtype=np.int8)
        logits = [chain.link_logits(none)[:, chain.order] for chain in self.chains]
        known = np.concatenate([self.shares, *logits], axis=1).astype(np.float32) + 0.0  # no -0.0
        digests = (blake2b(row.tobytes(), digest_size=8).digest() for row in known)
        return np.frombuffer(b"".join(digests), dtype=np.uint64)

    def choose_owners(self, uniforms: Floats) -> Integers:
        """Chain of each draw, (n, m, size), by stratified sampling of the weights.

        The weights of an instance, one after the other, are cut into m strata of the same size.
        With equal weights the strata are the chains.
        """
        n_strata = uniforms.shape[1]
        places = (np.arange(n_strata)[:, np.newaxis] + uniforms) / n_strata
        return find_owners(self.shares, places.reshape(len(places), -1)).reshape(uniforms.shape)

    def draw(self, owners: Integers, uniforms: Floats) -> PathDraws:
        """Labelsets drawn by (n, m, size, L) uniform numbers, each from the chain that owns it."""
        drawn = PathDraws(
            owners, np.empty(uniforms.shape, dtype=np.int8), np.empty((*owners.shape, 2))
        )
        if self.stack is not None:
            mean_logits = self._mean_logits(self.stack.logits)
            inputs = (self.stack, mean_logits, owners, uniforms)
            for_rows(chain_paths.draw_rows, self.n_samples, *inputs, into=drawn[1:])
            return drawn
        none = np.zeros((self.n_samples, self.n_labels), dtype=np.int8)
        p = np.stack([chain.path_conditionals(none) for chain in self.chains], axis=1)
        mean_logits = self._mean_logits(logit(open_interval(p)))
        for m, chain in enumerate(self.chains):
            mine = np.nonzero(owners == m)
            drawn.draws[mine], drawn.excess[mine] = chain.draw_paths(
                mine[0], uniforms[mine], mean_logits
            )
        return drawn

    def _mean_logits(self, by_chain: Floats) -> Floats:
        return np.asarray(np.einsum("nm,nmj->nj", self.shares, by_chain) / len(self))

    def log_prob(self, labelsets: Labelsets, *, with_squared: bool = False) -> Floats:
        """Log of the mixture's P(y), (n, ..., q), for labelsets (n, ..., L).

        The last axis is of length 1, or 2 `with_squared`: then that of the chains with squared
        odds, of the same weights, follows.
        """
        shape = (*labelsets.shape[:-1], 1 + with_squared)
        flat = labelsets.reshape(len(labelsets), -1, self.n_labels)
        log_prob = np.empty((*flat.shape[:2], 1 + with_squared))
        mixtures = [self, self.squared] if with_squared else [self]
        if self.stack is not None and mixtures[-1].stack is not None:
            inputs = (self.stack.odds, self.stack.factors, self.shares, flat)
            for_rows(chain_paths.log_prob_rows, len(flat), *inputs, into=[log_prob])
            return log_prob.reshape(shape)
        rows = np.repeat(np.arange(len(flat)), flat.shape[1])
        for q, mixture in enumerate(mixtures):
            found = mixture.log_prob_of_pairs(flat.reshape(-1, self.n_labels), rows)
            log_prob[:, :, q] = found.reshape(flat.shape[:2])
        return log_prob.reshape(shape)

    def log_prob_of_pairs(self, Y: Labelsets, rows: Indices) -> Floats:
        """Log of the mixture's P(y) for pairs of a labelset and its instance, (k,)."""
        return self.take(rows).tempered_log_prob(Y)(1.0)

    def tempered_log_prob(self, Y: Labelsets) -> Callable[[float], Floats]:
        """Log of P(y) for one labelset of each instance, (n,), by temperature of the links."""
        logits = [chain.link_logits(Y) for chain in self.chains]
        log_shares = log(self.shares) - np.log(len(self))

        def at(temperature: float) -> Floats:
            by_chain = [log_prob_of_logits(of_links / temperature) for of_links in logits]
            return np.asarray(np.logaddexp.reduce(np.stack(by_chain, axis=1) + log_shares, axis=1))

        return at

    def path_sums(self, paths: PathDraws, predicted: Labelsets) -> Floats:
        """Counts of draws' labels against a prediction, and control variates, (n, m, size, 4).

        Sums of y_j - P(y_j = 1 | labels before) in the draws' own chains, whose means are 0, and
        numbers of labels: each over the labels that are not predicted, and over those that are.
        """
        owners, draws, _ = paths
        sums = np.empty((*owners.shape, 4))
        if self.stack is not None:
            inputs = (self.stack.odds, self.stack.factors, owners, draws, predicted)
            for_rows(chain_paths.path_sum_rows, len(draws), *inputs, into=[sums])
            return sums
        off = draws - self._path_conditionals(paths)
        for k in (0, 1):
            mine = predicted[:, np.newaxis, np.newaxis] == k
            sums[..., k] = np.where(mine, off, 0.0).sum(axis=3)
            sums[..., 2 + k] = np.where(mine, draws, 0).sum(axis=3)
        return sums

    def link_moments(self, paths: PathDraws) -> Floats:
        """Sums over draws of P(y_j = 1 | labels before), a control variate, and their products.

        (n, m, 2, 5, L) as `_kernels.chain_paths.link_moment_rows` writes them. The control is 0
        where a chain is not linear.
        """
        owners, draws, _ = paths
        moments = np.zeros((*owners.shape[:2], 2, 5, self.n_labels))
        if self.stack is not None:
            inputs = (self.stack.odds, self.stack.factors, self.stack.terms, owners, draws)
            for_rows(chain_paths.link_moment_rows, len(draws), *inputs, into=[moments])
            return moments
        p = self._path_conditionals(paths)
        for half in (0, 1):
            moments[:, :, half, 0] = p[:, :, half::2].sum(axis=2)
            moments[:, :, half, 2] = (p[:, :, half::2] ** 2).sum(axis=2)
        return moments

    def conditional_range(self) -> tuple[Floats, Floats]:
        """Bounds of P(y_j = 1 | labels before), (n, m, L) by stratum."""
        if self.stack is None:
            return np.zeros((1, 1, 1)), np.ones((1, 1, 1))
        logits, terms = self.stack.logits, self.stack.terms
        least = expit(logits + np.minimum(terms, 0.0).sum(axis=1))
        most = expit(logits + np.maximum(terms, 0.0).sum(axis=1))
        if self.is_equal:
            return least, most
        return least.min(axis=1, keepdims=True), most.max(axis=1, keepdims=True)

    def _path_conditionals(self, paths: PathDraws) -> Floats:
        """P(y_j = 1 | labels before) along each draw's path, (n, m, size, L)."""
        p = np.empty(paths.draws.shape)
        for m, chain in enumerate(self.chains):
            mine = np.nonzero(paths.owners == m)
            p[mine] = chain.take(mine[0]).path_conditionals(paths.draws[mine])
        return p


BELOW_ONE = float(np.nextafter(1.0, 0.0))


def find_owners(shares: Floats, places: Floats) -> Integers:
    """Part of a mixture that each number in [0, 1) selects by the weights, (n, size)."""
    ends = np.cumsum(shares, axis=1)
    ends = ends / ends[:, -1:]  # the last ones are 1: nothing lies beyond a part with weight
    owners = np.empty(places.shape, dtype=np.intp)
    places = np.minimum(places, BELOW_ONE)  # a stratum of the largest uniforms may round to 1
    for mine, row, place in zip(owners, ends, places, strict=True):
        mine[:] = np.searchsorted(row, place, side="right")
    return owners


def draw_owners(
    shares: Floats | None, n_parts: int, shape: tuple[int, int], generator: np.random.Generator
) -> Integers:
    """Part that each draw comes from, (n, size), at random; `shares` are None if all are equal."""
    if shares is None:
        return generator.integers(n_parts, size=shape)
    return find_owners(shares, generator.random(shape))
