"""The search under Jaccard, where there are too many labelsets to see all. Section 5.

It begins with the best labels of each size, from P(y_j = 1, |y| = s), which is also how F1 decides.
"""

from __future__ import annotations

import numpy as np

from labelsure._limits import TIE
from labelsure._typing import Floats, Labelsets
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


def choose_f1(dist: LabelsetDistribution, empty: float) -> Labelsets:
    """Return the best labelsets under F1, (n, L): for each size a choice of the top k."""
    sizes = np.arange(1, dist.n_labels + 1)
    worth = 2.0 / (sizes[:, np.newaxis] + sizes)  # of a true positive, for each |y| and each k
    values, chosen = choose_each_size(dist.size_marginals(), worth)
    return _best_of_sizes(dist, values, chosen, empty)


def choose_each_size(by_size: Floats, worth: Floats) -> tuple[Floats, Labelsets]:
    """Return for each k the largest sum over k labels of their mean worth, and these labels.

    Parameters
    ----------
    by_size
        (n, L, L) P(y_j = 1, |y| = s).
    worth
        (L, L) what label j adds when |y| = s and k labels are chosen.

    Returns
    -------
    (n, L) sums and (n, L, L) labelsets, k - 1 being the middle index
    """
    n_labels = worth.shape[0]
    gains = np.swapaxes(by_size @ worth, 1, 2)  # [instance, k, label]
    keys = -gains
    np.round(keys, 12, out=keys)
    order = np.argsort(keys, axis=2, kind="stable")  # on a tie the lower label
    del keys  # arrays of this size are most of the memory that a decision takes
    chosen = np.zeros(gains.shape, dtype=np.int8)
    first_k = np.tri(n_labels, dtype=np.int8)
    np.put_along_axis(chosen, order, np.broadcast_to(first_k, gains.shape), axis=2)
    return np.einsum("nkj,nkj->nk", gains, chosen), chosen


def _best_of_sizes(
    dist: LabelsetDistribution, values: Floats, chosen: Labelsets, empty: float
) -> Labelsets:
    """Return the best of the empty labelset and one labelset of each size, smallest on a tie."""
    nothing = np.zeros((len(dist), 1, dist.n_labels), dtype=np.int8)
    of_nothing = empty * np.exp(dist.log_prob(nothing[:, 0]))
    values = np.column_stack([of_nothing, values])
    size = (values >= values.max(axis=1, keepdims=True) - TIE).argmax(axis=1)
    return np.concatenate([nothing, chosen], axis=1)[np.arange(len(dist)), size]
