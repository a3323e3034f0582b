"""Beam search: the floor of the most probable labelsets, for chains of any base learner.

However flat the probabilities, the labelsets found are at least as probable as the greedy labelset
of each chain, which is the beam of width 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labelsure._kernels.chain_beams import beam_rows
from labelsure._kernels.threads import for_rows
from labelsure._runtime import limits as _limits
from labelsure._runtime.typing import Floats, Indices, Labelsets
from labelsure.distributions._chains import WeightedChains
from labelsure.labelsets.codes import code_keys
from labelsure.labelsets.weighted import find_distinct


@dataclass(frozen=True)
class Beam:
    """The most probable labelsets that beam searches found.

    Parameters
    ----------
    labelsets
        (n, k, L) distinct ones, the most probable first, of equal ones the lowest code.
    logs
        (n, k) their log-probabilities under the mixture; minus infinity where fewer were found.
    unseen
        (n,) no other labelset has a higher probability.
    """

    labelsets: Labelsets
    logs: Floats
    unseen: Floats

    def __getitem__(self, rows: Indices) -> Beam:
        return Beam(self.labelsets[rows], self.logs[rows], self.unseen[rows])


def search_beams(chains: WeightedChains, n_best: int) -> Beam:
    """Search for the `n_best` most probable labelsets of each instance."""
    n_all = 2 ** min(chains.n_labels, 62)
    n_kept = min(max(_limits.BEAM_LABELSETS, 2 * n_best), n_all)
    width = min(max(_limits.BEAM_WIDTH, 2 * n_best), n_all)
    if chains.stack is None:
        labelsets, lengths, unseen = _search_any(chains, width, n_kept)
    else:
        stack, n = chains.stack, chains.n_samples
        labelsets = np.zeros((n, n_kept, chains.n_labels), dtype=np.int8)
        lengths, unseen = np.zeros(n, dtype=np.int64), np.empty(n)
        inputs = (stack.odds, stack.factors, chains.shares, stack.orders, width, n_best)
        for_rows(beam_rows, n, *inputs, into=[labelsets, lengths, unseen])
    logs = chains.log_prob(labelsets)[..., 0]
    logs[np.arange(labelsets.shape[1]) >= lengths[:, np.newaxis]] = -np.inf
    order = np.lexsort((keys_by_row(labelsets), -logs), axis=1)
    labelsets = np.take_along_axis(labelsets, order[:, :, np.newaxis], axis=1)
    return Beam(labelsets, np.take_along_axis(logs, order, axis=1), unseen)


def keys_by_row(labelsets: Labelsets) -> NDArray[np.generic]:
    """Return keys of (n, k, L) labelsets that sort like their codes, (n, k)."""
    keys = code_keys(labelsets.reshape(-1, labelsets.shape[2]))
    return keys.reshape(labelsets.shape[:2])


def _search_any(
    chains: WeightedChains, width: int, n_kept: int
) -> tuple[Labelsets, Indices, Floats]:
    n, parts, unseen = chains.n_samples, [], np.zeros(chains.n_samples)
    for chain, share in zip(chains.chains, chains.shares.T, strict=True):
        found, q, pruned = chain.search_beam(width)
        instance, place = np.nonzero((q > 0) & (share > 0)[:, np.newaxis])
        parts.append((found[instance, place], instance))
        unseen += share * pruned / len(chains)
    rows, instance = (np.concatenate(column) for column in zip(*parts, strict=True))
    distinct = find_distinct(rows, instance)
    rows, instance = rows[distinct], instance[distinct]
    logs = chains.log_prob_of_pairs(rows, instance)
    order = np.lexsort((-logs, instance))
    rows, logs, instance = rows[order], logs[order], instance[order]
    rank = np.arange(len(rows)) - np.searchsorted(instance, instance)
    np.maximum.at(unseen, instance[rank == n_kept], np.exp(logs[rank == n_kept]))
    kept = rank < n_kept
    labelsets = np.zeros((n, n_kept, chains.n_labels), dtype=np.int8)
    labelsets[instance[kept], rank[kept]] = rows[kept]
    return labelsets, np.bincount(instance[kept], minlength=n), unseen
