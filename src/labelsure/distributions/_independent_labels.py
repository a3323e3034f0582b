"""`IndependentLabels`: marginals of independent labels; closed forms for any number of them."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from typing import Any, Self

import numpy as np

from labelsure import _limits
from labelsure._kernels import independent_sums as kernels
from labelsure._kernels import unit_interval
from labelsure._kernels.profile_sums import independent_profile_rows
from labelsure._kernels.threads import for_rows
from labelsure._typing import Floats, Labelsets, Rows
from labelsure.candidates import Profile, log
from labelsure.distributions._answers import Summary, TopLabelsets
from labelsure.distributions._bridge import LabelsetDistribution
from labelsure.distributions._probabilities import as_floats, check_unit_interval
from labelsure.errors import InputError
from labelsure.labelsets import fill_with_lowest, index_of, names_in
from labelsure.metrics import F1, JACCARD, Metric

_EXPECTED_ROWS: dict[Metric, Callable[..., None]] = {
    JACCARD: kernels.expected_jaccard_rows,
    F1: kernels.expected_f1_rows,
}

_BY_SIZE_ROWS: dict[Metric, tuple[Callable[..., None], Callable[[int], int]]] = {
    JACCARD: (kernels.jaccard_by_size_rows, lambda n_labels: n_labels - 1),
    F1: (kernels.f1_by_size_rows, lambda n_labels: 2 * n_labels - 1),
}
"""For each metric the kernel and the degree of its integrand."""


class IndependentLabels(LabelsetDistribution):
    """Distributions whose labels are independent: binary relevance, sigmoid heads.

    Parameters
    ----------
    marginals
        (n, L) probabilities P(y_j = 1), of which a copy is kept; a DataFrame brings its label
        names.
    label_names
        One for each label.

    Examples
    --------
    >>> dist = IndependentLabels([[0.9, 0.2]])
    >>> dist.mode()
    array([[1, 0]], dtype=int8)
    >>> dist.profile().top
    array([0.72])
    """

    def __init__(self, marginals: Any, label_names: Iterable[Any] | None = None) -> None:
        array = as_floats(marginals, "marginals")
        if array.ndim != 2 or array.shape[1] == 0:
            raise InputError(
                "`marginals` must have shape (n_samples, n_labels) with at least one label, got "
                f"shape {array.shape}. One instance is one row: `[marginals]`."
            )
        array = check_unit_interval(array, "marginals")
        super().__init__(
            array.shape[0],
            array.shape[1],
            names_in(marginals) if label_names is None else label_names,
        )
        self._p = array.copy()
        self._index = index_of(marginals)

    def _take(self, rows: Rows) -> Self:
        # In one piece, as kernels are compiled for: every other row would compile them anew.
        new = type(self).__new__(type(self))
        new._p = np.ascontiguousarray(self._p[rows])
        LabelsetDistribution.__init__(new, len(new._p), self.n_labels, self.label_names)
        return new

    def _marginals(self) -> Floats:
        return self._p.astype(np.float64)

    def _log_prob(self, Y: Labelsets) -> Floats:
        p = self._p.astype(np.float64, copy=False)
        return log(np.where(Y == 1, p, 1 - p)).sum(axis=1)

    def _summary(self, metrics: list[Metric], empty: float) -> Summary:
        values = np.empty((len(self), 4))
        for_rows(independent_profile_rows, len(self), self._p, into=[values])
        log_top, flip_odds, entropy, log_collision = values.T.copy()
        profile = Profile(log_top, log_top + log(flip_odds), entropy, log_collision, self.n_labels)
        mode = self._mode()
        expected = {metric.name: self._expected(metric, mode, empty) for metric in metrics}
        return Summary.of_mode(profile, mode, expected)

    def _mode(self) -> Labelsets:
        return (self._p > 0.5).astype(np.int8)

    def _top(self, k: int) -> TopLabelsets:
        labelsets = np.empty((len(self), k, self.n_labels), dtype=np.int8)
        mode, p = self._mode(), self._p.astype(np.float64, copy=False)
        # What flipping a label away from the mode costs, in units of log-probability.
        costs = log(np.maximum(p, 1 - p)) - log(np.minimum(p, 1 - p))
        for best, labels, cost in zip(labelsets, mode, costs, strict=True):
            flips = _cheapest_flips(cost, labels, k)
            best[: len(flips)] = labels
            for row, flipped in zip(best, flips, strict=False):
                row[flipped] ^= 1
            fill_with_lowest(best, len(flips))
        flat = labelsets.reshape(-1, self.n_labels)
        repeated = self._take(np.repeat(np.arange(len(self)), k))
        return TopLabelsets(labelsets, np.exp(repeated._log_prob(flat)).reshape(-1, k))

    def _sample(self, size: int, generator: np.random.Generator) -> Labelsets:
        draws = np.empty((len(self), size, self.n_labels), dtype=np.int8)
        block = max(1, _limits.UNIFORM_NUMBERS // max(1, size * self.n_labels))
        for first in range(0, len(self), block):
            rows = slice(first, first + block)
            uniforms = generator.random(draws[rows].shape)
            draws[rows] = uniforms < self._p[rows, np.newaxis, :]
        return draws

    def _expected_by_counts(self, metric: Metric, Y_pred: Labelsets, empty: float) -> Floats:
        expected = np.empty(len(self))
        if metric in _EXPECTED_ROWS:
            for_rows(_EXPECTED_ROWS[metric], len(self), self._p, Y_pred, empty, into=[expected])
            return expected
        hits, misses = (np.empty((len(self), self.n_labels + 1)) for _ in range(2))
        for_rows(kernels.count_rows, len(self), self._p, Y_pred, into=[hits, misses])
        n_predicted = Y_pred.sum(axis=1)
        for k in np.unique(n_predicted):
            rows = n_predicted == k
            values = metric.table(self.n_labels, k, empty=empty)
            by_misses = hits[rows, : values.shape[0]] @ values
            expected[rows] = (by_misses * misses[rows, : values.shape[1]]).sum(axis=1)
        return expected

    def _size_marginals(self) -> Floats:
        by_size = np.empty((len(self), self.n_labels, self.n_labels))
        hits, misses = (np.empty((len(self), self.n_labels + 1)) for _ in range(2))
        for j in range(self.n_labels):  # the size is one more than that of the other labels
            only_j = np.zeros((len(self), self.n_labels), dtype=np.int8)
            only_j[:, j] = 1
            for_rows(kernels.count_rows, len(self), self._p, only_j, into=[hits, misses])
            by_size[:, j] = hits[:, 1:2] * misses[:, : self.n_labels]
        return by_size

    def _probabilities(self) -> Floats:
        P = np.ones((len(self), 2**self.n_labels))
        for j in range(self.n_labels):
            p = self._p[:, j : j + 1].astype(np.float64)
            half = 2**j
            np.multiply(P[:, :half], p, out=P[:, half : 2 * half])
            P[:, :half] *= 1 - p
        return P

    def _best(self, metric: Metric, empty: float) -> Labelsets | None:
        """Return the best of the k most probable labels, k from 0 to L, where that is optimal."""
        if metric not in _BY_SIZE_ROWS:
            return None
        order = np.argsort(-self._p, axis=1, kind="stable")
        descending = np.take_along_axis(self._p, order, axis=1).astype(np.float64, copy=False)
        kernel, degree = _BY_SIZE_ROWS[metric]
        nodes, weights = unit_interval(degree(self.n_labels))
        values = np.empty((len(self), self.n_labels + 1))
        for_rows(kernel, len(self), descending, empty, nodes, weights, into=[values])
        # Of equally good sizes the smallest is a subset of the others: the lowest code.
        n_chosen = (values >= values.max(axis=1, keepdims=True) - _limits.TIE).argmax(axis=1)
        chosen = np.arange(self.n_labels) < n_chosen[:, np.newaxis]
        best = np.zeros((len(self), self.n_labels), dtype=np.int8)
        np.put_along_axis(best, order, chosen.astype(np.int8), axis=1)
        return best


def _cheapest_flips(cost: Floats, mode: Labelsets, k: int) -> list[list[int]]:
    """Return the k sets of labels whose flips cost least in total, cheapest first.

    Fewer where there are fewer: a label that is certain is never flipped.

    The order is that of (cost, code): a flip adds its cost to the first and plus or minus 2**j to
    the second. Both are sums and each such pair is positive, so the usual heap works on pairs: the
    sets that follow {..., i} in sorted order are {..., i, i+1} and {..., i+1}.
    """
    step = [
        (float(cost[j]), -(1 << j) if mode[j] else 1 << j, j)
        for j in np.flatnonzero(np.isfinite(cost)).tolist()
    ]
    step = heapq.nsmallest(k, step)
    best: list[list[int]] = []
    heap: list[tuple[float, int, list[int]]] = [(0.0, 0, [])]
    while heap and len(best) < k:
        members = heapq.heappop(heap)[2]
        best.append([step[i][2] for i in members])
        following = members[-1] + 1 if members else 0
        if following < len(step):
            for grown in ([*members, following], [*members[:-1], following]):
                pair = (sum(step[i][0] for i in grown), sum(step[i][1] for i in grown))
                heapq.heappush(heap, (*pair, grown))
                if not members:
                    break
    return best
