"""Decisions for blocks of labels that are independent of each other, block by block.

For some metrics the best labelset is made of the best of each block, which its own kind finds, and
says how far below the best that can be.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from labelsure._typing import Floats, Integers, Labelsets
from labelsure.distributions import BlockProduct, LabelsetDistribution
from labelsure.metrics import EXACT, HAMMING, Metric

DecideWithGaps = Callable[[LabelsetDistribution, Metric, float], tuple[Labelsets, Floats]]


def decide_each_block(
    dist: BlockProduct, metric: Metric, empty: float, decide: DecideWithGaps
) -> tuple[Labelsets, Floats]:
    """Return the labelsets made of the decisions of all blocks, and how far from the best, (n,).

    Parameters
    ----------
    dist
        A batch of n distributions.
    metric
        One of `BLOCK_GAPS`.
    empty
        The accuracy of two empty labelsets.
    decide
        Decides for one block.
    """
    decisions = np.empty((len(dist), dist.n_labels), dtype=np.int8)
    gaps, chances = [], []
    for labels, block in dist.blocks:
        best, gap = decide(block, metric, empty)
        decisions[:, labels] = best
        gaps.append(gap)
        chances.append(np.exp(block.log_prob(best)))
    n_labels = np.array([[len(labels)] for labels, _ in dist.blocks])
    return decisions, BLOCK_GAPS[metric](np.array(chances), np.array(gaps), n_labels)


def _multiply_best(chances: Floats, gaps: Floats, n_labels: Integers) -> Floats:
    """Take the product: all blocks are right with it, and each of its factors can be larger."""
    return np.asarray(np.prod(chances + gaps, axis=0) - np.prod(chances, axis=0))


def _add_by_labels(chances: Floats, gaps: Floats, n_labels: Integers) -> Floats:
    """Count a block as often as it has labels."""
    return np.asarray((n_labels * gaps).sum(axis=0) / n_labels.sum())


BLOCK_GAPS: dict[Metric, Callable[[Floats, Floats, Integers], Floats]] = {
    EXACT: _multiply_best,
    HAMMING: _add_by_labels,
}
"""Metrics that are decided block by block, and what makes the gap of all: of the probabilities
that the decisions are right and the gaps, (n_blocks, n), and numbers of labels, (n_blocks, 1)."""
