"""Good labelsets under Jaccard where there are too many to see all, and how good. Section 5."""

from __future__ import annotations

import numpy as np

from labelsure._limits import TIE
from labelsure._typing import Floats, Labelsets
from labelsure.decisions._size_choices import choose_each_size, choose_f1
from labelsure.distributions import LabelsetDistribution
from labelsure.metrics import JACCARD

MAX_FLIPS = 50  # of the local search; it nearly always ends by itself sooner


def search_jaccard(dist: LabelsetDistribution, empty: float) -> tuple[Labelsets, Floats]:
    """Return good labelsets under Jaccard and how far below the optimum they can be. Section 5.

    |y or p| is at least max(|y|, |p|), so sums of single labels' worth bound the expected Jaccard
    of every prediction of a size from above. Their maximisers are also good first guesses; the
    best guess is then improved by flipping labels and by exchanging one for another.
    """
    sizes = np.arange(1, dist.n_labels + 1)
    by_size = dist.size_marginals()
    bounds, optimists = choose_each_size(by_size, 1.0 / np.maximum(sizes[:, np.newaxis], sizes))
    by_marginal = choose_each_size(by_size, np.ones((dist.n_labels, dist.n_labels)))[1]
    nothing = np.zeros((len(dist), dist.n_labels), dtype=np.int8)
    singles = np.stack([nothing, dist.mode(), choose_f1(dist, empty)], axis=1)
    values = _expect(dist, singles, empty)
    bound = np.maximum(bounds.max(axis=1), values[:, 0])
    best, value = _first_best(singles, values)
    for size in range(dist.n_labels):
        rows = np.flatnonzero(bounds[:, size] > value + TIE)  # no other can gain by this size
        if rows.size:
            guesses = np.stack([optimists[rows, size], by_marginal[rows, size]], axis=1)
            values = _expect(dist[rows], guesses, empty)
            guess, worth = _first_best(guesses, values)
            better = worth > value[rows] + TIE
            best[rows[better]], value[rows[better]] = guess[better], worth[better]
    rows = np.flatnonzero(bound > value + TIE)
    if rows.size:
        part = dist[rows]
        flipped = _flip_while_better(part, empty, best[rows], value[rows])
        best[rows], value[rows] = _exchange_once(part, empty, *flipped)
    return best, np.maximum(bound - value, 0.0)


def _first_best(guesses: Labelsets, values: Floats) -> tuple[Labelsets, Floats]:
    """Return the best of (n, g, L) guesses, the first on a tie, and its value."""
    first = (values >= values.max(axis=1, keepdims=True) - TIE).argmax(axis=1)
    rows = np.arange(len(guesses))
    return guesses[rows, first], values[rows, first]


def _flip_while_better(
    dist: LabelsetDistribution, empty: float, best: Labelsets, value: Floats
) -> tuple[Labelsets, Floats]:
    """Flip the label that helps most, again and again."""
    best, value = best.copy(), value.copy()
    active = np.arange(len(dist))
    for _ in range(MAX_FLIPS):
        flips = _expect_flips(dist[active], best[active], empty)
        label = flips.argmax(axis=1)
        won = flips.max(axis=1) > value[active] + TIE
        active, label = active[won], label[won]
        if not active.size:
            break
        best[active, label] ^= 1
        value[active] = flips[won, label]
    return best, value


def _exchange_once(
    dist: LabelsetDistribution, empty: float, best: Labelsets, value: Floats
) -> tuple[Labelsets, Floats]:
    """Take each label out in turn and put in the one that then helps most; flip on from there."""
    start, start_value = best, value
    for j in np.flatnonzero(start.any(axis=0)):
        rows = np.flatnonzero(start[:, j])
        without = start[rows].copy()
        without[:, j] = 0
        flips = _expect_flips(dist[rows], without, empty)
        label = flips.argmax(axis=1)
        won = flips.max(axis=1) > value[rows] + TIE
        if won.any():
            best, value = best.copy(), value.copy()
            without[np.arange(len(rows)), label] ^= 1
            best[rows[won]], value[rows[won]] = without[won], flips[won, label[won]]
    if (value > start_value).any():
        return _flip_while_better(dist, empty, best, value)
    return best, value


def _expect(dist: LabelsetDistribution, guesses: Labelsets, empty: float) -> Floats:
    """Return the expected Jaccard of (n, g, L) guesses, (n, g)."""
    return dist.expected(JACCARD, guesses, empty=empty).value


def _expect_flips(dist: LabelsetDistribution, Y_pred: Labelsets, empty: float) -> Floats:
    """Return the expected Jaccard of each labelset with one label flipped, (n, L)."""
    # The labelset itself comes first: tables count it once, and each flip from there.
    change = np.concatenate([np.zeros((1, dist.n_labels)), np.eye(dist.n_labels)]).astype(np.int8)
    return _expect(dist, Y_pred[:, np.newaxis] ^ change, empty)[:, 1:]
