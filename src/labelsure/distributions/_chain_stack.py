"""Several chains over the same instances, drawn from and evaluated together.

Linear chains go through kernels that work with odds; any other base learner is asked for many
prefixes at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import logit

from labelsure._kernels import chain_paths
from labelsure._kernels.chain_joints import SAFE_LOGIT
from labelsure._kernels.threads import for_rows
from labelsure._runtime.typing import Floats, Indices, Integers, Labelsets
from labelsure.distributions._chain_links import Chain, ChainLinks, LinearChain, open_interval
from labelsure.distributions._weighted_chains import WeightedChains


@dataclass(frozen=True)
class LinearStack:
    """Several linear chains in the layout of the kernels: everything by label.

    Parameters
    ----------
    odds
        (n, m, L) of each label in each chain when no earlier label is set.
    logits
        Their logarithms.
    factors
        (m, L, L) factors[m, i, j] is what label i, set, multiplies the odds of label j with: 1
        unless it comes earlier in the chain.
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

    @classmethod
    def of(cls, chains: Sequence[Chain], power: int = 1) -> LinearStack | None:
        """Stack chains that are linear and whose odds cannot overflow; None for any other.

        Parameters
        ----------
        chains
            Over the same instances and labels.
        power
            2 for the chains with squared odds.
        """
        linear = [chain for chain in chains if isinstance(chain, LinearChain)]
        if len(linear) < len(chains):
            return None
        if any(power * chain.largest_logit > SAFE_LOGIT for chain in linear):
            return None
        n_samples, n_labels = linear[0].base.shape
        logits = np.empty((n_samples, len(linear), n_labels))
        for m, chain in enumerate(linear):
            logits[:, m, chain.order] = power * chain.base
        factors, terms, orders = _stack_links(tuple(chain.links for chain in linear), power)
        return cls(np.exp(logits), logits, factors, terms, orders)


@lru_cache(maxsize=8)
def _stack_links(links: tuple[ChainLinks, ...], power: int) -> tuple[Floats, Floats, Indices]:
    """Stack what is the same for all instances, once for a mixture: they come a few at a time."""
    terms = power * np.stack([link.terms for link in links])
    return np.exp(terms), terms, np.stack([link.order for link in links])


Paths = tuple[Integers, Labelsets]
"""Whose draws they are, (n, m, size), and the draws, (n, m, size, L)."""


class PathDraws(NamedTuple):
    """Draws of a mixture, as many in each of its strata, and what their own chain says of them.

    Parameters
    ----------
    owners
        (n, m, size) the chain that each comes from.
    draws
        (n, m, size, L)
    log_own
        (n, m, size) the log-probability of each in the chain that it comes from.
    excess
        (n, m, size, 2) by how much that is above what it is on average, link by link, and the same
        with each label's mean logit over the chains; their means are 0.
    """

    owners: Integers
    draws: Labelsets
    log_own: Floats
    excess: Floats


def draw_paths(
    chains: WeightedChains, owners: Integers, uniforms: Floats, *, squared: bool = False
) -> PathDraws:
    """Draw labelsets of each instance from the chains that are told.

    Parameters
    ----------
    chains
        m of them over n instances.
    owners
        (n, m, size) the chain that each draw comes from.
    uniforms
        (n, m, size, L) numbers in [0, 1).
    squared
        Whether to draw from the chains with squared odds.
    """
    draws = np.empty(uniforms.shape, dtype=np.int8)
    log_own, excess = np.empty(owners.shape), np.empty((*owners.shape, 2))
    stack = LinearStack.of(chains, 2 if squared else 1)
    if stack is not None:
        links = (stack.odds, stack.logits, stack.factors, stack.terms, stack.orders)
        drawn = PathDraws(owners, draws, log_own, excess)
        mean_logits = np.einsum("nm,nmj->nj", chains.shares, stack.logits) / len(chains)
        inputs = (links, mean_logits, owners, uniforms)
        for_rows(chain_paths.draw_rows, len(draws), *inputs, into=drawn[1:])
        return drawn
    drawn_from = chains.change(lambda chain: chain.square_odds()) if squared else chains
    mean_logits = _mean_logits(drawn_from)
    for m, chain in enumerate(drawn_from):
        mine = np.nonzero(owners == m)
        draws[mine], log_own[mine], excess[mine] = chain.draw_paths(
            mine[0], uniforms[mine], mean_logits
        )
    return PathDraws(owners, draws, log_own, excess)


def _mean_logits(chains: WeightedChains) -> Floats:
    """Return the logit of each label when none before it is set, on average over chains, (n, L)."""
    none = np.zeros((chains.n_samples, chains[0].order.size), dtype=np.int8)
    logits = np.stack([logit(open_interval(c.path_conditionals(none))) for c in chains], axis=1)
    return np.asarray(np.einsum("nm,nmj->nj", chains.shares, logits) / len(chains))


def log_mean_prob(
    chains: WeightedChains, labelsets: Labelsets, *, with_squared: bool = False
) -> Floats:
    """Return the log of the mixture's P(y), (n, ..., q), for labelsets (n, ..., L).

    The last axis is of length 1, or 2 `with_squared`: then that of the chains with squared odds,
    of the same weights, follows.
    """
    shape, n_labels = labelsets.shape[:-1], labelsets.shape[-1]
    flat = labelsets.reshape(shape[0], -1, n_labels)
    log_prob = np.empty((*flat.shape[:2], 1 + with_squared))
    stack = LinearStack.of(chains, 1 + with_squared)
    if stack is not None:
        base = LinearStack.of(chains) if with_squared else stack
        assert base is not None
        inputs = (base.odds, base.factors, chains.shares, flat)
        for_rows(chain_paths.log_prob_rows, len(flat), *inputs, into=[log_prob])
        return log_prob.reshape(*shape, 1 + with_squared)
    rows = np.repeat(np.arange(len(flat)), flat.shape[1])
    kinds = [chains, chains.change(lambda chain: chain.square_odds())] if with_squared else [chains]
    for q, kind in enumerate(kinds):
        log_prob[:, :, q] = kind.log_prob(flat.reshape(-1, n_labels), rows).reshape(flat.shape[:2])
    return log_prob.reshape(*shape, 1 + with_squared)


def path_sums(chains: WeightedChains, paths: Paths, predicted: Labelsets) -> Floats:
    """Return sums of y_j - P(y_j = 1 | labels before), along paths in the draws' own chains.

    Parameters
    ----------
    chains
        m of them over n instances.
    paths
        (n, m, size) owners and (n, m, size, L) draws.
    predicted
        (n, L) labelsets.

    Returns
    -------
    (n, m, size, 2): over the labels that are not predicted, and over those that are; their means
    are 0
    """
    owners, draws = paths
    sums = np.empty((*owners.shape, 2))
    stack = LinearStack.of(chains)
    if stack is not None:
        inputs = (stack.odds, stack.factors, owners, draws, predicted)
        for_rows(chain_paths.path_sum_rows, len(draws), *inputs, into=[sums])
        return sums
    off = draws - _path_conditionals(chains, paths)
    for k in (0, 1):
        sums[..., k] = np.where(predicted[:, np.newaxis, np.newaxis] == k, off, 0.0).sum(axis=3)
    return sums


def path_means(chains: WeightedChains, paths: Paths) -> tuple[Floats, Floats]:
    """Return the mean over draws of P(y_j = 1 | labels before) along their paths, and its spread.

    Parameters
    ----------
    chains, paths
        As for `path_sums`.

    Returns
    -------
    (n, m, L) means of each stratum, and sums of squared differences from them
    """
    owners, draws = paths
    means, squares = (np.empty((*owners.shape[:2], draws.shape[3])) for _ in range(2))
    stack = LinearStack.of(chains)
    if stack is not None:
        inputs = (stack.odds, stack.factors, owners, draws)
        for_rows(chain_paths.path_mean_rows, len(draws), *inputs, into=[means, squares])
        return means, squares
    p = _path_conditionals(chains, paths)
    means[:] = p.mean(axis=2)
    squares[:] = ((p - means[:, :, np.newaxis]) ** 2).sum(axis=2)
    return means, squares


def _path_conditionals(chains: WeightedChains, paths: Paths) -> Floats:
    """Return P(y_j = 1 | labels before) along each draw's path, (n, m, size, L)."""
    owners, draws = paths
    p = np.empty(draws.shape)
    for m, chain in enumerate(chains):
        mine = np.nonzero(owners == m)
        p[mine] = chain.take(mine[0]).path_conditionals(draws[mine])
    return p
