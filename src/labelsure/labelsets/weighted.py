"""Weighted labelsets, any number for each instance: votes, beams, enumerated labelsets.

The labelsets of all instances are rows of one array, so that no method loops over the instances.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from labelsure._runtime.limits import TIE
from labelsure._runtime.typing import Array, Floats, Indices, Labelsets, Mask, Rows
from labelsure.labelsets.codes import code_keys, fill_with_lowest


@dataclass(frozen=True, eq=False)
class WeightedLabelsets:
    """Distinct labelsets of each instance, perhaps none, with positive weights.

    Made by `merge`, which ensures this order; the arrays must not be changed afterwards.

    Parameters
    ----------
    rows
        (m, L) the labelsets of the first instance, then those of the next: each instance's in the
        order of falling weights, of equal ones (within `TIE`) the lowest code first.
    weights
        (m,) all above 0. They need not sum to one.
    starts
        (n + 1,) the labelsets of instance i are rows[starts[i] : starts[i + 1]].

    Examples
    --------
    Two instances, of which the first has a labelset twice:

    >>> labelsets = [[1, 0], [0, 1], [1, 0], [1, 1]]
    >>> votes = WeightedLabelsets.merge(labelsets, [1, 2, 3, 5], [0, 0, 0, 1])
    >>> votes.rows
    array([[1, 0],
           [0, 1],
           [1, 1]], dtype=int8)
    >>> votes.weights
    array([4., 2., 5.])
    >>> votes.totals()
    array([6., 5.])
    """

    rows: Labelsets
    weights: Floats
    starts: Indices

    @classmethod
    def merge(
        cls, rows: object, weights: object, instance: object, n_samples: int | None = None
    ) -> WeightedLabelsets:
        """Sum the weights of equal labelsets, drop those of weight 0, and sort."""
        rows = np.asarray(rows, dtype=np.int8)
        weights, instance = np.asarray(weights, dtype=np.float64), np.asarray(instance)
        keys = code_keys(rows)
        order, first = _group_equal(keys, instance)
        sums = np.add.reduceat(weights[order], first) if len(first) else np.empty(0)
        kept, sums = order[first[sums > 0]], sums[sums > 0]
        ranked = order_by_weight(sums, instance[kept], TIE * sums)
        kept = kept[ranked]
        if n_samples is None:
            n_samples = int(instance.max()) + 1 if len(instance) else 0
        starts = np.searchsorted(instance[kept], np.arange(n_samples + 1))
        return cls(rows[kept], sums[ranked], starts)

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def n_labels(self) -> int:
        """The number of labels, L."""
        return self.rows.shape[1]

    @property
    def lengths(self) -> Indices:
        """Number of labelsets of each instance, (n,)."""
        return np.diff(self.starts)

    @cached_property
    def instance(self) -> Indices:
        """The instance of each labelset, (m,)."""
        return np.repeat(np.arange(len(self)), self.lengths)

    def weights_of(self, i: int) -> Floats:
        """Weights of one instance, the largest first."""
        return self.weights[self.starts[i] : self.starts[i + 1]]

    def take(self, rows: Rows) -> WeightedLabelsets:
        """Labelsets of some instances."""
        chosen = np.arange(len(self))[rows]
        lengths = self.lengths[chosen]
        starts = np.append(0, np.cumsum(lengths))
        source = np.arange(starts[-1]) + np.repeat(self.starts[chosen] - starts[:-1], lengths)
        return WeightedLabelsets(self.rows[source], self.weights[source], starts)

    def sum(self, values: Floats) -> Floats:
        """Sums of values over the labelsets of each instance: (m, ...) to (n, ...)."""
        return sum_by_row(values, self.starts)

    def totals(self) -> Floats:
        """Sum of the weights of each instance, (n,)."""
        return self.sum(self.weights)

    def marginals(self) -> Floats:
        """Total weight of the labelsets with each label, (n, L)."""
        return self.sum(self.weights[:, np.newaxis] * self.rows)

    def normalise(self) -> WeightedLabelsets:
        """Labelsets whose weights sum to one in each instance."""
        weights = self.weights / self.totals()[self.instance]
        return WeightedLabelsets(self.rows, weights, self.starts)

    def join(self, other: WeightedLabelsets) -> WeightedLabelsets:
        """Labelsets of both, with the sum of the weights of those in both."""
        return self.merge(
            np.concatenate([self.rows, other.rows]),
            np.concatenate([self.weights, other.weights]),
            np.concatenate([self.instance, other.instance]),
            len(self),
        )

    def top(self, k: int) -> tuple[Labelsets, Floats]:
        """The k labelsets of largest weight of each instance, (n, k, L), and their weights, (n, k).

        Where there are fewer, the labelsets of lowest code follow with weight 0.
        """
        labelsets = np.zeros((len(self), k, self.n_labels), dtype=np.int8)
        weights = np.zeros((len(self), k))
        rank = np.arange(len(self.rows)) - self.starts[self.instance]
        is_kept = rank < k
        labelsets[self.instance[is_kept], rank[is_kept]] = self.rows[is_kept]
        weights[self.instance[is_kept], rank[is_kept]] = self.weights[is_kept]
        fill_with_lowest(labelsets, self.lengths)
        return labelsets, weights

    def contains(self, draws: Labelsets) -> Mask:
        """Whether draws are among their instance's labelsets: (n, size, L) to (n, size)."""
        drawn = code_keys(draws.reshape(-1, self.n_labels)).reshape(draws.shape[:2])
        keys = code_keys(self.rows)
        is_contained = np.empty(drawn.shape, dtype=bool)
        for i, keys_of_draws in enumerate(drawn):
            is_contained[i] = np.isin(keys_of_draws, keys[self.starts[i] : self.starts[i + 1]])
        return is_contained

    def counts(self, Y_pred: Labelsets) -> tuple[Indices, Indices, Indices, Indices]:
        """(tp, fp, fn, tn) of an instance's prediction against each of its labelsets, each (m,)."""
        n_predicted = Y_pred.sum(axis=1)[self.instance]
        tp = (self.rows & Y_pred[self.instance]).sum(axis=1)
        fp, fn = n_predicted - tp, self.rows.sum(axis=1) - tp
        return tp, fp, fn, self.n_labels - tp - fp - fn


def sum_by_row(values: Array, starts: Array) -> Floats:
    """Sums of ragged rows that are stored one after the other, 0 for empty rows.

    Examples
    --------
    >>> sum_by_row(np.array([1.0, 2.0, 3.0]), np.array([0, 2, 2, 3]))
    array([3., 0., 3.])
    """
    sums = np.zeros((len(starts) - 1, *values.shape[1:]))
    is_filled = np.diff(starts) > 0
    if is_filled.any():  # an empty row would get the first value of the next one
        firsts = starts[:-1][is_filled]
        sums[is_filled] = np.add.reduceat(values, firsts, axis=0, dtype=np.float64)
    return sums


def order_by_weight(weights: Floats, instance: Indices, slack: Floats) -> Indices:
    """Order by instance and falling weight; weights within `slack` of the next keep their order.

    Examples
    --------
    >>> order_by_weight(np.array([0.2, 0.1 + 0.2, 0.3]), np.zeros(3), np.full(3, 1e-12))
    array([1, 2, 0])
    """
    order = np.lexsort((-weights, instance))  # stable
    sorted_weights = weights[order]
    is_first = np.ones(len(order), dtype=bool)
    is_first[1:] = instance[order][1:] != instance[order][:-1]
    is_less = np.zeros(len(order), dtype=bool)
    is_less[1:] = (sorted_weights[1:] < sorted_weights[:-1]) & ~is_first[1:]
    is_clear = is_less.copy()
    is_clear[1:] &= sorted_weights[1:] < sorted_weights[:-1] - slack[order][:-1]
    if np.array_equal(is_less, is_clear):
        return order
    groups = np.cumsum(is_first | is_clear)
    return order[np.lexsort((order, groups))]


def find_distinct(rows: Labelsets, instance: Indices) -> Indices:
    """First position of each distinct labelset of each instance, by instance and code.

    Examples
    --------
    >>> rows = np.array([[1, 1], [0, 1], [1, 1], [1, 1]], dtype=np.int8)
    >>> find_distinct(rows, np.array([0, 0, 0, 1]))
    array([1, 0, 3])
    """
    order, first = _group_equal(code_keys(rows), instance)
    return order[first]


def _group_equal(keys: NDArray[np.generic], instance: Indices) -> tuple[Indices, Indices]:
    """Order by instance and key, and the position in it where each group of equal ones starts.

    The sort is stable, so that a group starts with its first element.
    """
    order = np.lexsort((keys, instance))
    keys, instance = keys[order], instance[order]
    is_first = np.ones(len(order), dtype=bool)
    is_first[1:] = (keys[1:] != keys[:-1]) | (instance[1:] != instance[:-1])
    return order, np.flatnonzero(is_first)
