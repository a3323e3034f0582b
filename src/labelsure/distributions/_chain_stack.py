"""Several chains over the same instances, drawn from and evaluated together.

Linear chains go through kernels that work with odds; any other base learner is asked for many
prefixes at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from labelsure._kernels import chain_paths
from labelsure._kernels.chain_joints import SAFE_LOGIT
from labelsure._kernels.threads import for_rows
from labelsure._typing import Floats, Indices, Labelsets
from labelsure.distributions._chain_links import Chain, ChainLinks, LinearChain


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


class PathDraws(NamedTuple):
    """Draws from each chain, and what their own chain says of them.

    Parameters
    ----------
    draws
        (n, m, size, L)
    log_own
        (n, m, size) the log-probability of each in the chain that it comes from.
    excess
        (n, m, size) by how much that is above what it is on average, link by link; its mean is 0.
    """

    draws: Labelsets
    log_own: Floats
    excess: Floats


def draw_from_each(
    chains: Sequence[Chain], uniforms: Floats, *, squared: bool = False
) -> PathDraws:
    """Draw labelsets of each instance from each chain.

    Parameters
    ----------
    chains
        m of them over n instances.
    uniforms
        (n, m, size, L) numbers in [0, 1).
    squared
        Whether to draw from the chains with squared odds.
    """
    n_samples, _, size, n_labels = uniforms.shape
    draws = np.empty(uniforms.shape, dtype=np.int8)
    log_own, excess = np.empty(uniforms.shape[:3]), np.empty(uniforms.shape[:3])
    stack = LinearStack.of(chains, 2 if squared else 1)
    if stack is not None:
        links = (stack.odds, stack.logits, stack.factors, stack.terms, stack.orders)
        drawn = PathDraws(draws, log_own, excess)
        for_rows(chain_paths.draw_rows, n_samples, links, uniforms, into=drawn)
        return drawn
    rows = np.repeat(np.arange(n_samples), size)
    for m, given in enumerate(chains):
        chain = given.square_odds() if squared else given
        flat, own, above = chain.draw_paths(rows, uniforms[:, m].reshape(-1, n_labels))
        draws[:, m] = flat.reshape(n_samples, size, n_labels)
        log_own[:, m], excess[:, m] = (each.reshape(n_samples, size) for each in (own, above))
    return PathDraws(draws, log_own, excess)


def log_mean_prob(
    chains: Sequence[Chain], labelsets: Labelsets, *, with_squared: bool = False
) -> Floats:
    """Return the log of the mean over chains of P(y), (n, ..., q), for labelsets (n, ..., L).

    The last axis is of length 1, or 2 `with_squared`: then the mean of the chains with squared odds
    follows.
    """
    shape, n_labels = labelsets.shape[:-1], labelsets.shape[-1]
    flat = labelsets.reshape(shape[0], -1, n_labels)
    log_prob = np.empty((*flat.shape[:2], 1 + with_squared))
    stack = LinearStack.of(chains, 1 + with_squared)
    if stack is not None:
        base = LinearStack.of(chains) if with_squared else stack
        assert base is not None
        inputs = (base.odds, base.factors, flat)
        for_rows(chain_paths.log_prob_rows, len(flat), *inputs, into=[log_prob])
        return log_prob.reshape(*shape, 1 + with_squared)
    rows = np.repeat(np.arange(len(flat)), flat.shape[1])
    kinds = [chains, [chain.square_odds() for chain in chains]] if with_squared else [chains]
    for q, kind in enumerate(kinds):
        by_chain = [chain.take(rows).log_prob(flat.reshape(-1, n_labels)) for chain in kind]
        mean = logsumexp(by_chain, axis=0) - np.log(len(chains))
        log_prob[:, :, q] = mean.reshape(flat.shape[:2])
    return log_prob.reshape(*shape, 1 + with_squared)


def path_sums(chains: Sequence[Chain], draws: Labelsets, predicted: Labelsets) -> Floats:
    """Return sums of y_j - P(y_j = 1 | labels before), along paths in the draws' own chains.

    Parameters
    ----------
    chains
        m of them over n instances.
    draws
        (n, m, size, L)
    predicted
        (n, L) labelsets.

    Returns
    -------
    (n, m, size, 2): over the labels that are not predicted, and over those that are; their means
    are 0
    """
    sums = np.empty((*draws.shape[:3], 2))
    stack = LinearStack.of(chains)
    if stack is not None:
        inputs = (stack.odds, stack.factors, draws, predicted)
        for_rows(chain_paths.path_sum_rows, len(draws), *inputs, into=[sums])
        return sums
    for m, off in enumerate(_off_paths(chains, draws)):
        for k in (0, 1):
            sums[:, m, :, k] = np.where(predicted[:, np.newaxis] == k, off, 0.0).sum(axis=2)
    return sums


def path_means(chains: Sequence[Chain], draws: Labelsets) -> tuple[Floats, Floats]:
    """Return the mean over draws of P(y_j = 1 | labels before) along their paths, and its spread.

    Parameters
    ----------
    chains, draws
        As for `path_sums`.

    Returns
    -------
    (n, m, L) means, and sums of squared differences from them
    """
    n_samples, n_chains, _, n_labels = draws.shape
    means, squares = (np.empty((n_samples, n_chains, n_labels)) for _ in range(2))
    stack = LinearStack.of(chains)
    if stack is not None:
        inputs = (stack.odds, stack.factors, draws)
        for_rows(chain_paths.path_mean_rows, n_samples, *inputs, into=[means, squares])
        return means, squares
    for m, off in enumerate(_off_paths(chains, draws)):
        p = draws[:, m] - off
        means[:, m] = p.mean(axis=1)
        squares[:, m] = ((p - means[:, m, np.newaxis]) ** 2).sum(axis=1)
    return means, squares


def _off_paths(chains: Sequence[Chain], draws: Labelsets) -> Iterator[Floats]:
    """Yield y_j - P(y_j = 1 | labels before) of each chain's draws, (n, size, L)."""
    n_samples, _, size, n_labels = draws.shape
    rows = np.repeat(np.arange(n_samples), size)
    for m, chain in enumerate(chains):
        p = chain.take(rows).path_conditionals(draws[:, m].reshape(-1, n_labels))
        yield draws[:, m] - p.reshape(n_samples, size, n_labels)
