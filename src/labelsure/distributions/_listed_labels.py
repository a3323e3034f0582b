"""Closed forms of independent labels, listed and unlisted.

Unlisted labels all have the same small probability, so the number of them that are true is
binomial. Dense marginals list all labels. Costs grow with the listed labels only, also with a
million labels. Formulas: `docs/understand/mathematics.md`, "Independent labels".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from labelsure._kernels import independent_sums as kernels
from labelsure._kernels.independent_tops import NEAR_HALF, top_rows
from labelsure._kernels.profile_sums import independent_profile_rows
from labelsure._kernels.threads import for_rows
from labelsure._runtime import limits as _limits
from labelsure._runtime.limits import TIE, cut_rows
from labelsure._runtime.typing import Floats, Indices, Integers, Mask, Rows
from labelsure.distributions._reciprocals import unit_interval
from labelsure.distributions.candidates import log
from labelsure.labelsets.weighted import sum_by_row
from labelsure.metrics.registry import F1, HAMMING, JACCARD, Metric

NEGLIGIBLE = 1e-19
"""Counts of true unlisted labels with a smaller probability, relative to the most probable count,
are left out: their sum is below the rounding error of any result."""

_EXPECTED_ROWS: dict[Metric, Callable[..., None]] = {
    JACCARD: kernels.expected_jaccard_rows,
    F1: kernels.expected_f1_rows,
}

BEST_SIZES: dict[Metric, tuple[Callable[..., None], int]] = {
    JACCARD: (kernels.best_jaccard_sizes, 1),
    F1: (kernels.best_f1_sizes, 2),
}
"""Metrics under which the most probable labels are the best to predict: the kernel, and how often
the labels count for the degree of its integrand."""


@dataclass(frozen=True)
class UnlistedLabels:
    """Unlisted labels of each instance, all with the same probability.

    Parameters
    ----------
    sizes
        (n,) number of unlisted labels.
    floor
        Probability of each, less than 1/2.
    floor_logit
        Logit of the floor, finite also where the floor underflows.
    """

    sizes: Integers
    floor: float = 0.0
    floor_logit: float = -np.inf

    @cached_property
    def distinct(self) -> tuple[Integers, Integers]:
        """Distinct sizes, and the index of each instance's own."""
        if self.floor == 0:  # nothing to count, whatever the size
            return np.zeros(1, dtype=np.int64), np.zeros(len(self.sizes), dtype=np.int64)
        sizes, row_of = np.unique(self.sizes, return_inverse=True)
        return sizes, row_of.astype(np.int64)

    @cached_property
    def counts(self) -> tuple[Integers, Integers, Floats]:
        """Row of each instance; first count and P(count) from there on, a row per distinct size."""
        sizes, row_of = self.distinct
        rows = [_binomial_pmf(int(size), self.floor) for size in sizes]
        pmfs = np.zeros((len(rows), max((len(pmf) for _, pmf in rows), default=1)))
        for row, (_, pmf) in zip(pmfs, rows, strict=True):
            row[: len(pmf)] = pmf
        return row_of, np.array([first for first, _ in rows], dtype=np.int64), pmfs

    @property
    def most(self) -> int:
        """Largest count of true unlisted labels that is not negligible."""
        _, first_counts, pmfs = self.counts
        return int(first_counts.max(initial=0)) + pmfs.shape[1] - 1

    def factors(self, nodes: Floats) -> tuple[Integers, Floats, Floats]:
        """Row of each instance; E[t**count] at nodes t and at 0, a row per distinct size."""
        sizes, row_of = self.distinct
        logs = np.log1p(-self.floor * np.append(1 - nodes, 1.0))
        values = np.exp(sizes[:, np.newaxis] * logs)
        return row_of, values[:, :-1], values[:, -1]

    def take(self, rows: Rows) -> UnlistedLabels:
        """Unlisted labels of some instances."""
        return replace(self, sizes=self.sizes[rows])


def _binomial_pmf(size: int, floor: float) -> tuple[int, Floats]:
    """First count that is not negligible, and the binomial probabilities from there on.

    From the mode on, each probability follows from its neighbour: no factorials, whose
    logarithms would lose half of the digits. `scipy.special` has the distribution function alone,
    whose differences are off by 1e-9 for a million labels.
    """
    odds = floor / (1 - floor)
    likeliest = min(size, int((size + 1) * floor))
    reach = int(10 * np.sqrt(size * floor * (1 - floor))) + 40
    up = np.arange(likeliest, min(size, likeliest + reach))
    down = np.arange(likeliest, max(0, likeliest - reach), -1)
    above = np.cumprod((size - up) / (up + 1) * odds)
    below = np.cumprod(down / (size - down + 1) / odds)
    above, below = above[above > NEGLIGIBLE], below[below > NEGLIGIBLE]
    weights = np.concatenate([below[::-1], [1.0], above])
    return likeliest - len(below), weights / weights.sum()


@dataclass(frozen=True)
class TopFlips:
    """The k most probable labelsets of each instance, by the labels that change in the mode.

    Parameters
    ----------
    flipped
        (n, k, m) labels, padded with -1.
    logs
        (n, k) log-probabilities.
    n_found
        (n,) number of labelsets with a positive probability, at most k.
    """

    flipped: Integers
    logs: Floats
    n_found: Integers


@dataclass(frozen=True)
class ListedLabels:
    """Marginals of listed labels, row after row, and the unlisted labels of each row.

    Parameters
    ----------
    marginals
        Concatenated marginals of all rows.
    starts
        (n + 1,) where each row starts, and where the last one ends.
    unlisted
        The other labels of each row.
    logits
        Logits of the marginals where these came from logits, else None.
    labels
        Index of each listed label, ascending within a row; None where all labels are listed.

    Examples
    --------
    >>> listed = ListedLabels(np.array([0.9, 0.2]), np.array([0, 2]), UnlistedLabels(np.array([0])))
    >>> listed.expected(JACCARD, np.array([1, 0]), 1.0, 2)
    array([0.81])
    """

    marginals: NDArray[np.floating]
    starts: Indices
    unlisted: UnlistedLabels
    logits: Floats | None = None
    labels: Integers | None = None

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def lengths(self) -> Indices:
        """Number of listed labels of each instance, (n,)."""
        return np.diff(self.starts)

    def match(self, Y: csr_array) -> tuple[ListedLabels, NDArray[np.int8]]:
        """Listed labels extended by those of sparse labelsets, and marks of the latter."""
        assert self.labels is not None
        places = np.empty(Y.nnz, dtype=np.int64)
        rows = (self.labels, self.starts, Y.indices, Y.indptr)
        inputs = [part.astype(np.int64, copy=False) for part in rows]
        for_rows(kernels.find_labels_rows, len(self), *inputs, into=[places])
        is_new = places < 0
        places = np.where(is_new, -places - 1, places)
        n_before = np.append(0, np.cumsum(is_new))
        marks = np.zeros(len(self.marginals) + n_before[-1], dtype=np.int8)
        marks[places + n_before[:-1]] = 1
        if not n_before[-1]:
            return self, marks
        at, n_inserted, unlisted = places[is_new], n_before[Y.indptr], self.unlisted
        widened = ListedLabels(
            np.insert(self.marginals, at, unlisted.floor),
            self.starts + n_inserted,
            replace(unlisted, sizes=unlisted.sizes - np.diff(n_inserted)),
            None if self.logits is None else np.insert(self.logits, at, unlisted.floor_logit),
        )
        return widened, marks

    def log_values(self, marks: NDArray[np.int8] | int) -> Floats:
        """Log P(y_j = mark) of each listed label."""
        if self.logits is None:
            p = self.marginals.astype(np.float64, copy=False)
            return log(np.where(marks == 1, p, 1 - p))
        return -np.logaddexp(0.0, np.where(marks == 1, -self.logits, self.logits))

    def log_prob(self, marks: NDArray[np.int8]) -> Floats:
        """Log-probability of labelsets that have the marked labels, (n,)."""
        of_unlisted = self.unlisted.sizes * np.log1p(-self.unlisted.floor)
        return sum_by_row(self.log_values(marks), self.starts) + of_unlisted

    def profile(self) -> tuple[Floats, Floats, Floats, Floats]:
        """Logs of the two largest probabilities, entropy, log collision: (n,) each."""
        values = np.empty((len(self), 4))
        for_rows(independent_profile_rows, len(self), self.marginals, self.starts, into=[values])
        log_top, flip_odds, entropy, log_collision = values.T.copy()
        f, m = self.unlisted.floor, self.unlisted.sizes
        if f > 0:
            log_top += m * np.log1p(-f)
            flip_odds[m > 0] = np.maximum(flip_odds[m > 0], f / (1 - f))
            entropy -= m * (f * np.log(f) + (1 - f) * np.log1p(-f))
            log_collision += m * np.log1p(-2 * f * (1 - f))
        log_flip = log(flip_odds)
        if self.logits is not None:
            log_flip = np.where(m > 0, self.unlisted.floor_logit, -np.inf)
            instance = np.repeat(np.arange(len(self)), self.lengths)
            np.maximum.at(log_flip, instance, -np.abs(self.logits))
        return log_top, log_top + log_flip, entropy, log_collision

    def expected(
        self, metric: Metric, predicted: NDArray[np.int8], empty: float, n_labels: int
    ) -> Floats:
        """Expectation of a function of (tp, fp, fn, tn), (n,)."""
        expected = np.empty(len(self))
        if metric in _EXPECTED_ROWS:
            rows = self.marginals, predicted, self.starts, self.unlisted.counts
            for_rows(_EXPECTED_ROWS[metric], len(self), *rows, empty, into=[expected])
            return expected
        n_predicted = sum_by_row(predicted, self.starts).astype(np.int64)
        if metric == HAMMING:  # right are those predicted and true, and those neither
            hits = sum_by_row(self.marginals * predicted, self.starts)
            return (n_labels - n_predicted - self.n_true + 2 * hits) / n_labels
        most = min(n_labels, int(self.lengths.max(initial=0)) + self.unlisted.most)
        for some in cut_rows(len(self), 16 * (most + 1), _limits.DECISION_BYTES):
            part, chosen = self._cut(some, predicted)
            hits, misses = part.count_hits(chosen, most)
            sizes = n_predicted[some]
            for k in np.unique(sizes):
                own = sizes == k
                values = metric.table(n_labels, k, empty=empty, n_missed=most)
                by_misses = hits[own, : values.shape[0]] @ values
                means = (by_misses * misses[own, : values.shape[1]]).sum(axis=1)
                expected[some][own] = means
        return expected

    def count_hits(self, predicted: NDArray[np.int8], most: int) -> tuple[Floats, Floats]:
        """P(number of true positives) and P(number of false negatives), (n, most + 1) each."""
        hits, misses = (np.empty((len(self), most + 1)) for _ in range(2))
        rows = self.marginals, predicted, self.starts, self.unlisted.counts
        for_rows(kernels.count_rows, len(self), *rows, into=[hits, misses])
        return hits, misses

    def _cut(
        self, rows: slice, predicted: NDArray[np.int8]
    ) -> tuple[ListedLabels, NDArray[np.int8]]:
        """Some rows that follow each other, with the marks of their predicted labels."""
        starts = self.starts[rows.start : rows.stop + 1]
        own = slice(int(starts[0]), int(starts[-1]))
        part = ListedLabels(self.marginals[own], starts - starts[0], self.unlisted.take(rows))
        return part, predicted[own]

    @property
    def n_true(self) -> Floats:
        """Expected number of true labels, (n,)."""
        return sum_by_row(self.marginals, self.starts) + self.unlisted.sizes * self.unlisted.floor

    @property
    def is_likely(self) -> Mask:
        """Whether each listed label is in the mode; labels within `TIE` of one half are not."""
        if self.logits is not None:
            return self.logits > TIE
        return self.marginals > 0.5 + NEAR_HALF

    def top(self, n_labels: int, k: int) -> TopFlips:
        """K most probable labelsets, as the labels in which they differ from the mode.

        Of labelsets within `TIE` of each other the lowest code comes first.
        """
        nothing = np.empty(0)
        width = max(1, min(k.bit_length(), k - 1))
        found = TopFlips(
            np.full((len(self), k, width), -1, dtype=np.int64),
            np.full((len(self), k), -np.inf),
            np.empty(len(self), dtype=np.int64),
        )
        rows = (
            self.marginals,
            nothing if self.logits is None else self.logits,
            nothing.astype(np.int64) if self.labels is None else self.labels.astype(np.int64),
            self.starts,
        )
        unlisted = self.unlisted.floor, self.unlisted.floor_logit
        outputs = [found.flipped, found.logs, found.n_found]
        for_rows(top_rows, len(self), rows, unlisted, n_labels, into=outputs)
        return found

    def choose(self, metric: Metric, empty: float) -> tuple[Mask, Floats]:
        """Listed labels to predict for the highest expected accuracy, and gaps, (n,).

        The optimum is a number of the most probable labels. Unlisted labels are never predicted:
        the gap bounds their gain.
        """
        chosen = np.zeros(len(self.marginals), dtype=bool)
        best_values = np.empty(len(self))
        for rows, width in self._rows_by_width():
            for some in cut_rows(len(rows), 40 * width, _limits.DECISION_BYTES):
                own = rows[some]
                places, values = self._choose_rows(own, width, metric, empty)
                chosen[places] = True
                best_values[own] = values
        if self.unlisted.floor == 0:
            return chosen, np.zeros(len(self))
        return chosen, _GAPS[metric](best_values, self.n_true, self.unlisted)

    def _rows_by_width(self) -> list[tuple[Indices, int]]:
        """Bucket rows by length, to limit padding."""
        lengths = self.lengths
        classes = np.ceil(4 * np.log2(np.maximum(lengths, 1)))  # at most 1.19 times as long
        return [
            (rows, max(1, int(lengths[rows].max())))
            for rows in (np.flatnonzero(classes == c) for c in np.unique(classes))
        ]

    def _choose_rows(
        self, rows: Indices, width: int, metric: Metric, empty: float
    ) -> tuple[Indices, Floats]:
        """Places of the labels to predict, and their expected accuracy, (n,)."""
        is_listed = np.arange(width) < self.lengths[rows][:, np.newaxis]
        places = np.where(is_listed, self.starts[rows][:, np.newaxis] + np.arange(width), 0)
        p = np.zeros(places.shape)  # labels of probability 0 add nothing
        p[is_listed] = self.marginals[places[is_listed]]
        order = np.argsort(-np.round(p, 12), axis=1, kind="stable")  # ties: the lowest label
        descending = np.take_along_axis(p, order, axis=1)
        sizes, best_values = best_sizes(metric, descending, self.unlisted.take(rows), empty)
        is_chosen = np.arange(width) < sizes[:, np.newaxis]
        return np.take_along_axis(places, order, axis=1)[is_chosen], best_values


def best_sizes(
    metric: Metric, descending: Floats, unlisted: UnlistedLabels, empty: float
) -> tuple[Integers, Floats]:
    """Best number of the most probable labels to predict, and its expected accuracy, (n,) each.

    Of equally good numbers it is the smallest, whose labels are among those of the others: the
    lowest code.
    """
    kernel, times = BEST_SIZES[metric]
    nodes, weights = unit_interval(times * descending.shape[1] + unlisted.most - 1)
    sizes, best_values = np.empty(len(descending), dtype=np.int64), np.empty(len(descending))
    inputs = descending, empty, nodes, weights, unlisted.factors(nodes)
    for_rows(kernel, len(descending), *inputs, into=[sizes, best_values])
    return sizes, best_values


# Upper bounds on the gain by predicting unlisted labels, (n,). A prediction of k labels with r more
# unlisted ones, u of them true, has an F1 of at most that without them plus 2 u / (k + r + 1): it
# gains less than twice the floor. For Jaccard it is u / (k + r), and less than the floor. It also
# loses a share r / (k + r + s) of its value without them where s labels are true. That is more than
# it gains if the best value is high enough: P(s > c) <= n_true / c for any c.


def _gap_of_f1(best_values: Floats, n_true: Floats, unlisted: UnlistedLabels) -> Floats:
    c = np.maximum(1.0, np.sqrt(n_true / (2 * unlisted.floor)))
    is_best = best_values >= 2 * unlisted.floor * (1 + c) + n_true / c
    return np.where(is_best | (unlisted.sizes == 0), 0.0, 2 * unlisted.floor)


def _gap_of_jaccard(best_values: Floats, n_true: Floats, unlisted: UnlistedLabels) -> Floats:
    c = np.maximum(1.0, np.sqrt(n_true / unlisted.floor))
    is_best = best_values >= unlisted.floor * (2 + c) + n_true / c + unlisted.sizes * unlisted.floor
    return np.where(is_best | (unlisted.sizes == 0), 0.0, unlisted.floor)


_GAPS = {F1: _gap_of_f1, JACCARD: _gap_of_jaccard}
