"""The search under Jaccard, where there are too many labelsets to see all. Section 5.

It begins with the best labels of each size, from P(y_j = 1, |y| = s), which is also how F1 decides.
"""

from __future__ import annotations

import numpy as np

from labelsure._runtime import limits as _limits
from labelsure._runtime.limits import TIE, check_size
from labelsure._runtime.typing import Floats, Indices, Integers, Labelsets, Mask
from labelsure.distributions._bridge import LabelsetDistribution
from labelsure.distributions._flips import with_flips
from labelsure.metrics.registry import JACCARD

MAX_FLIPS = 50  # of the local search; it nearly always ends by itself sooner


def search_jaccard(dist: LabelsetDistribution, empty: float) -> tuple[Labelsets, Floats]:
    """Return good labelsets under Jaccard and how far below the optimum they can be. Section 5.

    |y or p| is at least max(|y|, |p|), so sums of single labels' worth bound the expected Jaccard
    of every prediction of a size from above. Their maximisers are also good first guesses; the
    best guess is then improved by flipping labels and by exchanging one for another, as long as
    `_limits.SEARCHED_LABELS` allows. The bounds hold however early that ends.
    """
    sizes = np.arange(1, dist.n_labels + 1)
    by_size = _find_sizes(dist)
    bounds, optimists = choose_each_size(by_size, 1.0 / np.maximum(sizes[:, np.newaxis], sizes))
    spreads = dist._covariance_sums()
    if spreads is not None:
        bounds = np.minimum(bounds, _bound_by_covariances(dist.marginals(), spreads))
    by_marginal = choose_each_size(by_size, np.ones((dist.n_labels, dist.n_labels)))[1]
    nothing = np.zeros((len(dist), dist.n_labels), dtype=np.int8)
    singles = np.stack([nothing, dist.mode(), choose_f1(dist, empty)], axis=1)
    search = _Search(dist, empty)
    search.evaluate(np.arange(len(dist)), singles)
    search.try_sizes(bounds, np.stack([optimists, by_marginal], axis=2))
    bound = bounds.max(axis=1)  # of all but the empty labelset, which was evaluated
    open_rows = np.flatnonzero(bound > search.value + TIE)
    search.flip_while_better(open_rows)
    search.flip_while_better(search.exchange_once(open_rows))
    return search.best, np.maximum(bound - search.value, 0.0)


class _Search:
    """The best labelset of each instance so far, and how many more may be evaluated.

    Parameters
    ----------
    dist
        A batch of n distributions.
    empty
        The Jaccard of two empty labelsets.
    """

    best: Labelsets
    value: Floats  # expected Jaccard of the best
    left: Integers  # labelsets that may still be evaluated

    def __init__(self, dist: LabelsetDistribution, empty: float) -> None:
        self._dist, self._empty = dist, empty
        self.best = np.zeros((len(dist), dist.n_labels), dtype=np.int8)
        self.value = np.full(len(dist), -np.inf)
        self.left = np.full(len(dist), _limits.SEARCHED_LABELS // dist.n_labels)

    def evaluate(self, rows: Indices, guesses: Labelsets) -> Floats:
        """Return the expected Jaccard of (r, g, L) guesses, and keep those that are better."""
        self.left[rows] -= guesses.shape[1]
        values = self._dist[rows].expected(JACCARD, guesses, empty=self._empty).value
        first = (values >= values.max(axis=1, keepdims=True) - TIE).argmax(axis=1)
        at = np.arange(len(rows)), first
        better = values[at] > self.value[rows] + TIE
        self.best[rows[better]] = guesses[at][better]
        self.value[rows[better]] = values[at][better]
        return values

    def try_sizes(self, bounds: Floats, guesses: Labelsets) -> None:
        """Evaluate the guesses of each size, (n, L, g, L), where its bound leaves room for a gain.

        Sizes with the highest bound come first, and half of the evaluations are kept for flips.
        """
        order = np.argsort(-bounds, axis=1, kind="stable")
        least = self.left // 2 + guesses.shape[2]
        for size in order.T:
            may_gain = bounds[np.arange(len(bounds)), size] > self.value + TIE
            rows = np.flatnonzero(may_gain & (self.left >= least))
            if not rows.size:  # nor will there be any: bounds fall, values rise
                return
            self.evaluate(rows, guesses[rows, size[rows]])

    def flip_while_better(self, rows: Indices) -> None:
        """Flip the label that helps most, again and again."""
        for _ in range(MAX_FLIPS):
            rows = self._affordable(rows)
            if not rows.size:
                return
            before = self.value[rows]
            self._try_flips(rows, self.best[rows])
            rows = rows[self.value[rows] > before]

    def exchange_once(self, rows: Indices) -> Indices:
        """Take each label out in turn and put in the one that then helps most.

        Labels without which the labelset is worth most come first. Returns the rows that are
        better for it.
        """
        rows = self._affordable(rows)
        if not rows.size:
            return rows
        start, before = self.best[rows], self.value[rows]
        without = np.where(start == 1, self._try_flips(rows, start)[:, 1:], -np.inf)
        for out in np.argsort(-without, axis=1, kind="stable").T[: start.sum(axis=1).max()]:
            has_label = start[np.arange(len(rows)), out] == 1
            at = np.flatnonzero(has_label & self._is_affordable(rows))
            if at.size:
                reduced = start[at]
                reduced[np.arange(len(at)), out[at]] = 0
                self._try_flips(rows[at], reduced)
        return rows[self.value[rows] > before]

    def _try_flips(self, rows: Indices, Y_pred: Labelsets) -> Floats:
        """Evaluate labelsets and all their flips, (r, 1 + L)."""
        return self.evaluate(rows, with_flips(Y_pred))

    def _is_affordable(self, rows: Indices) -> Mask:
        """Return which of the rows may evaluate a labelset and all its flips."""
        return self.left[rows] > self._dist.n_labels

    def _affordable(self, rows: Indices) -> Indices:
        return rows[self._is_affordable(rows)]


def _bound_by_covariances(marginals: Floats, spreads: Floats) -> Floats:
    """Return for each k what the expected Jaccard of k labels is at most, (n, L). Section 5.

    With d missed labels, and c = k + E[d], tp / (k + d) is at most
    tp / c - tp (d - E[d]) / c**2 + ((d - E[d]) / c)**2. The mean of the last two is a sum of
    covariances, at most that of the spreads of the labels left out, over c**2.
    """
    k = np.arange(1, marginals.shape[1] + 1)
    most_hit = np.cumsum(-np.sort(-marginals, axis=1), axis=1)
    least = k + marginals.sum(axis=1, keepdims=True) - most_hit  # what c can be
    c = least[:, :, np.newaxis]
    worth = marginals[:, np.newaxis] / c - spreads[:, np.newaxis] / c**2
    best = np.cumsum(-np.sort(-worth, axis=2), axis=2)
    chosen = np.take_along_axis(best, (k - 1)[np.newaxis, :, np.newaxis], axis=2)[..., 0]
    return chosen + spreads.sum(axis=1, keepdims=True) / least**2


def choose_f1(dist: LabelsetDistribution, empty: float) -> Labelsets:
    """Return the best labelsets under F1, (n, L): for each size a choice of the top k."""
    sizes = np.arange(1, dist.n_labels + 1)
    worth = 2.0 / (sizes[:, np.newaxis] + sizes)  # of a true positive, for each |y| and each k
    values, chosen = choose_each_size(_find_sizes(dist), worth)
    return _best_of_sizes(dist, values, chosen, empty)


def _find_sizes(dist: LabelsetDistribution) -> Floats:
    """Return P(y_j = 1, |y| = s), (n, L, L), or refuse what does not fit into memory."""
    check_size(
        8 * len(dist) * dist.n_labels**2,
        f"P(y_j = 1 and |y| = s) of {len(dist)} instances with {dist.n_labels} labels",
        "Decide under another metric, or between your own proposals with `expected_accuracy`.",
    )
    return dist._size_marginals()


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
