"""Independent labels: `IndependentLabels` stores all marginals, `SparseIndependentLabels` few.

Everything is computed from the listed labels of each instance (`ListedLabels`) and a rest: unlisted
labels with the same small probability, whose number of ones is binomial. Dense marginals list all
labels and have no rest. The cost grows with the listed labels only, also with a million labels.
Formulas: `docs/understand/mathematics.md`, "Independent labels".
"""

from __future__ import annotations

import heapq
from abc import abstractmethod
from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count, filterfalse, islice
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import expit, logit

from labelsure._kernels import independent_sums as kernels
from labelsure._kernels.profile_sums import independent_profile_rows
from labelsure._kernels.threads import for_rows
from labelsure._runtime import limits as _limits
from labelsure._runtime.arguments import read_number
from labelsure._runtime.limits import check_size, cut_rows
from labelsure._runtime.typing import Floats, Indices, Integers, Labelsets, Mask, Rows
from labelsure.distributions._answers import Expected, Guesses, TopLabelsets, each_guess
from labelsure.distributions._base import LabelsetDistribution, log_prob_of_logits
from labelsure.distributions._probabilities import as_floats, check_unit_interval, clip_rounding
from labelsure.distributions._reciprocals import unit_interval
from labelsure.distributions.candidates import Profile, log
from labelsure.errors import InputError
from labelsure.labelsets.names import order_columns
from labelsure.labelsets.rows import (
    StackedLabelsets,
    count_labels,
    fill_with_lowest,
    index_of,
    is_sparse,
    make_sparse,
    sparse_ones,
)
from labelsure.labelsets.weighted import sum_by_row
from labelsure.metrics.registry import EXACT, F1, HAMMING, JACCARD, Metric

NEGLIGIBLE = 1e-19
"""Numbers of ones in a rest with a smaller probability, relative to the likeliest, are left out:
their sum is below the rounding error of any result."""

_EXPECTED_ROWS: dict[Metric, Callable[..., None]] = {
    JACCARD: kernels.expected_jaccard_rows,
    F1: kernels.expected_f1_rows,
}

_BEST_SIZES: dict[Metric, tuple[Callable[..., None], int]] = {
    JACCARD: (kernels.best_jaccard_sizes, 1),
    F1: (kernels.best_f1_sizes, 2),
}
"""Metrics under which the most probable labels are the best to predict: the kernel, and how often
the labels count for the degree of its integrand."""


@dataclass(frozen=True)
class Rest:
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
    def kinds(self) -> tuple[Integers, Integers]:
        """The different sizes, and which of them each instance has."""
        if self.floor == 0:  # nothing to count, whatever the size
            return np.zeros(1, dtype=np.int64), np.zeros(len(self.sizes), dtype=np.int64)
        sizes, which = np.unique(self.sizes, return_inverse=True)
        return sizes, which.astype(np.int64)

    @cached_property
    def counts(self) -> tuple[Integers, Integers, Floats]:
        """Which of the rests each instance has; of each the first number of ones, and P(number)."""
        sizes, which = self.kinds
        found = [_count_binomial(int(size), self.floor) for size in sizes]
        probabilities = np.zeros((len(found), max((len(p) for _, p in found), default=1)))
        for row, (_, p) in zip(probabilities, found, strict=True):
            row[: len(p)] = p
        return which, np.array([first for first, _ in found], dtype=np.int64), probabilities

    @property
    def most(self) -> int:
        """The largest number of ones that is not negligible."""
        _, firsts, probabilities = self.counts
        return int(firsts.max(initial=0)) + probabilities.shape[1] - 1

    def factors(self, nodes: Floats) -> tuple[Integers, Floats, Floats]:
        """Return which rests there are, and E[t**ones] of each at nodes t, and at 0."""
        sizes, which = self.kinds
        logs = np.log1p(-self.floor * np.append(1 - nodes, 1.0))
        values = np.exp(sizes[:, np.newaxis] * logs)
        return which, values[:, :-1], values[:, -1]

    def take(self, rows: Rows) -> Rest:
        """Return the rests of some instances."""
        return replace(self, sizes=self.sizes[rows])


def _count_binomial(size: int, floor: float) -> tuple[int, Floats]:
    """Return P(number of ones) of so many labels, from the first number that is not negligible.

    From the likeliest number on, each probability follows from its neighbour: no factorials, whose
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
class ListedLabels:
    """The marginals of listed labels, row after row, and the rest beside them.

    Parameters
    ----------
    marginals
        Those of all rows, one after the other.
    starts
        (n + 1,) where each row starts, and where the last one ends.
    rest
        What is not listed.
    logits
        Those of the marginals where these were made of logits; None where they were not.

    Examples
    --------
    >>> listed = ListedLabels(np.array([0.9, 0.2]), np.array([0, 2]), Rest(np.array([0])))
    >>> listed.expected(JACCARD, np.array([1, 0]), 1.0, 2)
    array([0.81])
    """

    marginals: NDArray[np.floating]
    starts: Indices
    rest: Rest
    logits: Floats | None = None

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def lengths(self) -> Indices:
        """How many labels are listed of each instance, (n,)."""
        return np.diff(self.starts)

    def match(self, labels: Any, Y: csr_array) -> tuple[ListedLabels, NDArray[np.int8]]:
        """List the labels of sparse labelsets as well, and say which of all listed ones these are.

        `labels` are the indices of those listed so far, in the order of the marginals.
        """
        places = np.empty(Y.nnz, dtype=np.int64)
        rows = (labels, self.starts, Y.indices, Y.indptr)
        inputs = [part.astype(np.int64, copy=False) for part in rows]
        for_rows(kernels.find_labels_rows, len(self), *inputs, into=[places])
        is_new = places < 0
        places = np.where(is_new, -places - 1, places)
        n_before = np.append(0, np.cumsum(is_new))
        marks = np.zeros(len(self.marginals) + n_before[-1], dtype=np.int8)
        marks[places + n_before[:-1]] = 1
        if not n_before[-1]:
            return self, marks
        at, n_inserted, rest = places[is_new], n_before[Y.indptr], self.rest
        widened = ListedLabels(
            np.insert(self.marginals, at, rest.floor),
            self.starts + n_inserted,
            replace(rest, sizes=rest.sizes - np.diff(n_inserted)),
            None if self.logits is None else np.insert(self.logits, at, rest.floor_logit),
        )
        return widened, marks

    def log_values(self, marks: NDArray[np.int8] | int) -> Floats:
        """Return log P(y_j = mark) of each listed label."""
        if self.logits is None:
            p = self.marginals.astype(np.float64, copy=False)
            return log(np.where(marks == 1, p, 1 - p))
        return -np.logaddexp(0.0, np.where(marks == 1, -self.logits, self.logits))

    def log_prob(self, marks: NDArray[np.int8]) -> Floats:
        """Return the log-probability of labelsets that have the marked labels, (n,)."""
        of_rest = self.rest.sizes * np.log1p(-self.rest.floor)
        return sum_by_row(self.log_values(marks), self.starts) + of_rest

    def profile(self) -> tuple[Floats, Floats, Floats, Floats]:
        """Return logs of the two largest probabilities, entropy, log collision: (n,) each."""
        values = np.empty((len(self), 4))
        for_rows(independent_profile_rows, len(self), self.marginals, self.starts, into=[values])
        log_top, flip_odds, entropy, log_collision = values.T.copy()
        f, m = self.rest.floor, self.rest.sizes
        if f > 0:
            log_top += m * np.log1p(-f)
            flip_odds[m > 0] = np.maximum(flip_odds[m > 0], f / (1 - f))
            entropy -= m * (f * np.log(f) + (1 - f) * np.log1p(-f))
            log_collision += m * np.log1p(-2 * f * (1 - f))
        log_flip = log(flip_odds)
        if self.logits is not None:
            log_flip = np.where(m > 0, self.rest.floor_logit, -np.inf)
            instance = np.repeat(np.arange(len(self)), self.lengths)
            np.maximum.at(log_flip, instance, -np.abs(self.logits))
        return log_top, log_top + log_flip, entropy, log_collision

    def expected(
        self, metric: Metric, predicted: NDArray[np.int8], empty: float, n_labels: int
    ) -> Floats:
        """Return the expectation of a function of (tp, fp, fn, tn), (n,)."""
        expected = np.empty(len(self))
        if metric in _EXPECTED_ROWS:
            rows = self.marginals, predicted, self.starts, self.rest.counts
            for_rows(_EXPECTED_ROWS[metric], len(self), *rows, empty, into=[expected])
            return expected
        n_predicted = sum_by_row(predicted, self.starts).astype(np.int64)
        if metric == HAMMING:  # right are those predicted and true, and those neither
            hits = sum_by_row(self.marginals * predicted, self.starts)
            return (n_labels - n_predicted - self.n_true + 2 * hits) / n_labels
        most = min(n_labels, int(self.lengths.max(initial=0)) + self.rest.most)
        for some in cut_rows(len(self), 16 * (most + 1), _limits.DECISION_BYTES):
            part, chosen = self._cut(some, predicted)
            hits, misses = part.count_hits(chosen, most)
            sizes = n_predicted[some]
            for k in np.unique(sizes):
                own = sizes == k
                values = metric.table(n_labels, k, empty=empty, n_missed=most)
                by_misses = hits[own, : values.shape[0]] @ values
                worth = (by_misses * misses[own, : values.shape[1]]).sum(axis=1)
                expected[some][own] = worth
        return expected

    def count_hits(self, predicted: NDArray[np.int8], most: int) -> tuple[Floats, Floats]:
        """Return P(so many predicted labels are true), and P(so many others are), (n, most + 1)."""
        hits, misses = (np.empty((len(self), most + 1)) for _ in range(2))
        rows = self.marginals, predicted, self.starts, self.rest.counts
        for_rows(kernels.count_rows, len(self), *rows, into=[hits, misses])
        return hits, misses

    def _cut(
        self, rows: slice, predicted: NDArray[np.int8]
    ) -> tuple[ListedLabels, NDArray[np.int8]]:
        """Return some rows that follow each other, with what is predicted of them."""
        starts = self.starts[rows.start : rows.stop + 1]
        own = slice(int(starts[0]), int(starts[-1]))
        part = ListedLabels(self.marginals[own], starts - starts[0], self.rest.take(rows))
        return part, predicted[own]

    @property
    def n_true(self) -> Floats:
        """The mean number of true labels, (n,)."""
        return sum_by_row(self.marginals, self.starts) + self.rest.sizes * self.rest.floor

    def choose(self, metric: Metric, empty: float) -> tuple[Mask, Floats]:
        """Return which listed labels to predict for the highest expected accuracy.

        It is best to predict the most probable labels, as many as are worth most. Those of the
        rest are never predicted: beside the choice stands what these could add at most, (n,).
        """
        chosen = np.zeros(len(self.marginals), dtype=bool)
        worth = np.empty(len(self))
        for rows, width in self._rows_by_width():
            for some in cut_rows(len(rows), 40 * width, _limits.DECISION_BYTES):
                own = rows[some]
                places, found = self._choose_rows(own, width, metric, empty)
                chosen[places] = True
                worth[own] = found
        gaps = np.zeros(len(self))
        return chosen, _GAPS[metric](worth, self.n_true, self.rest) if self.rest.floor > 0 else gaps

    def _rows_by_width(self) -> list[tuple[Indices, int]]:
        """Return rows of about one length together, so that a long one does not widen all."""
        lengths = self.lengths
        classes = np.ceil(4 * np.log2(np.maximum(lengths, 1)))  # at most 1.19 times as long
        return [
            (rows, max(1, int(lengths[rows].max())))
            for rows in (np.flatnonzero(classes == c) for c in np.unique(classes))
        ]

    def _choose_rows(
        self, rows: Indices, width: int, metric: Metric, empty: float
    ) -> tuple[Indices, Floats]:
        """Return the places of the labels to predict, and what they are worth."""
        is_listed = np.arange(width) < self.lengths[rows][:, np.newaxis]
        places = np.where(is_listed, self.starts[rows][:, np.newaxis] + np.arange(width), 0)
        p = np.zeros(places.shape)  # labels of probability 0 add nothing
        p[is_listed] = self.marginals[places[is_listed]]
        order = np.argsort(-p, axis=1, kind="stable")
        descending = np.take_along_axis(p, order, axis=1)
        sizes, worth = best_sizes(metric, descending, self.rest.take(rows), empty)
        is_chosen = np.arange(width) < sizes[:, np.newaxis]
        return np.take_along_axis(places, order, axis=1)[is_chosen], worth


def best_sizes(
    metric: Metric, descending: Floats, rest: Rest, empty: float
) -> tuple[Integers, Floats]:
    """Return how many of the most probable labels to predict, and what they are worth, (n,).

    Of equally good numbers it is the smallest, whose labels are among those of the others: the
    lowest code.
    """
    kernel, times = _BEST_SIZES[metric]
    nodes, weights = unit_interval(times * descending.shape[1] + rest.most - 1)
    sizes, worth = np.empty(len(descending), dtype=np.int64), np.empty(len(descending))
    inputs = descending, empty, nodes, weights, rest.factors(nodes)
    for_rows(kernel, len(descending), *inputs, into=[sizes, worth])
    return sizes, worth


# What predicting labels of the rest could add at most, (n,). A prediction of k labels with r more
# of the rest, u of them true, has an F1 of at most that without them plus 2 u / (k + r + 1): it
# gains less than twice the floor. For Jaccard it is u / (k + r), and less than the floor. It also
# loses a share r / (k + r + s) of what it was worth where s labels are true. That is more than it
# gains if the best is worth enough: s is above any c with a probability of n_true / c at most.


def _gap_of_f1(worth: Floats, n_true: Floats, rest: Rest) -> Floats:
    c = np.maximum(1.0, np.sqrt(n_true / (2 * rest.floor)))
    is_best = worth >= 2 * rest.floor * (1 + c) + n_true / c
    return np.where(is_best | (rest.sizes == 0), 0.0, 2 * rest.floor)


def _gap_of_jaccard(worth: Floats, n_true: Floats, rest: Rest) -> Floats:
    c = np.maximum(1.0, np.sqrt(n_true / rest.floor))
    is_best = worth >= rest.floor * (2 + c) + n_true / c + rest.sizes * rest.floor
    return np.where(is_best | (rest.sizes == 0), 0.0, rest.floor)


_GAPS = {F1: _gap_of_f1, JACCARD: _gap_of_jaccard}


# Storage: listed numbers as sparse rows, and labelsets of them.

WITH_DUPLICATES = ("coo", "csr", "csc", "bsr")
"""Formats of scipy in which an entry can be there twice, which scipy would add up."""


def read_listed(values: Any, n_labels: int | None, name: str) -> csr_array:
    """Return listed numbers as a new `csr_array` of floats, zeros kept, or say what is wrong."""
    if not is_sparse(values):
        values = csr_array(as_floats(values, name))
    if values.ndim != 2 or values.shape[1] == 0:
        raise InputError(
            f"`{name}` must have shape (n_samples, n_labels) with at least one label, got shape "
            f"{values.shape}."
        )
    if values.dtype.kind not in "biuf":
        raise InputError(f"`{name}` must hold real numbers, got dtype {values.dtype}.")
    n_stored = values.nnz
    rows = csr_array(values, dtype=np.float64, copy=True)
    rows.sum_duplicates()
    if values.format in WITH_DUPLICATES and rows.nnz < n_stored:
        raise InputError(
            f"`{name}` must list each label of an instance once, got {n_stored - rows.nnz} "
            "duplicate entries."
        )
    if n_labels is not None:
        if n_labels < rows.shape[1]:
            raise InputError(
                f"`n_labels` must be at least the {rows.shape[1]} columns of `{name}`, got "
                f"{n_labels}."
            )
        rows.resize((rows.shape[0], n_labels))
    return rows


def read_top(indices: Any, scores: Any, n_labels: int) -> csr_array:
    """Return top-k arrays as sparse rows: the listed labels of each instance with their scores."""
    values = as_floats(scores, "scores")
    labels = np.asarray(indices)
    if labels.ndim != 2 or labels.dtype.kind not in "iu" or labels.shape != values.shape:
        raise InputError(
            "`indices` and `scores` must have one shape (n_samples, k), indices being whole "
            f"numbers, got {labels.shape} and {values.shape}, {labels.dtype}. Where an instance "
            "has fewer labels, fill up with index -1."
        )
    is_listed = labels >= 0
    if labels.size and (labels.min() < -1 or labels.max() >= n_labels):
        at = tuple(np.argwhere((labels < -1) | (labels >= n_labels))[0])
        raise InputError(
            f"`indices` must be labels from 0 to {n_labels - 1}, or -1 for none, got {labels[at]} "
            f"in row {at[0]}. Check `n_labels`."
        )
    starts = np.append(0, np.cumsum(is_listed.sum(axis=1)))
    rows = csr_array((values[is_listed], labels[is_listed], starts), shape=(len(labels), n_labels))
    return read_listed(rows, n_labels, "scores")


def check_probabilities(rows: csr_array) -> csr_array:
    """Return listed probabilities, put back where rounding has moved them off [0, 1]."""
    rows.data = clip_rounding(rows.data)
    bad = np.flatnonzero(~((rows.data >= 0) & (rows.data <= 1)))
    if bad.size:
        at = int(bad[0])
        row = int(np.searchsorted(rows.indptr, at, side="right")) - 1
        raise InputError(
            f"`marginals` must lie in [0, 1], got {rows.data[at]} in row {row}, label "
            f"{rows.indices[at]}. For logits use `SparseIndependentLabels.from_logits`; calibrate "
            "other scores."
        )
    return rows


def keep_listed(rows: csr_array, values: NDArray[Any], is_kept: NDArray[np.bool_]) -> csr_array:
    """Return sparse rows of some of the entries, with other values."""
    kept = np.flatnonzero(is_kept)
    starts = np.searchsorted(kept, rows.indptr)
    return csr_array((values[kept], rows.indices[kept], starts), rows.shape)


def draw_rows(listed: csr_array, floor: float, size: int, generator: Any) -> Labelsets:
    """Draw labelsets, those of an instance one after the other: (n * size, L) sparse rows."""
    n_samples, n_labels = listed.shape
    places = np.repeat(np.arange(listed.nnz), size)
    draw = np.tile(np.arange(size), listed.nnz)
    is_set = generator.random(len(places)) < listed.data[places]
    instance = np.repeat(np.arange(n_samples), np.diff(listed.indptr))
    rows = instance[places[is_set]] * size + draw[is_set]
    labels = listed.indices[places[is_set]].astype(np.int64)
    n_others = n_labels - np.diff(listed.indptr).astype(np.int64)
    n_drawn = generator.binomial(np.repeat(n_others, size), floor)
    more_rows, more_labels = [rows], [labels]
    for row in np.flatnonzero(n_drawn):
        own = listed.indices[listed.indptr[row // size] : listed.indptr[row // size + 1]]
        ranks = generator.choice(n_others[row // size], n_drawn[row], replace=False, shuffle=False)
        more_labels.append(unlisted_labels(ranks, own))
        more_rows.append(np.full(n_drawn[row], row))
    return _sort_rows(
        np.concatenate(more_rows), np.concatenate(more_labels), (n_samples * size, n_labels)
    )


def unlisted_labels(ranks: Indices, listed: Integers) -> Indices:
    """Return the labels of these ranks among those that are not listed.

    Examples
    --------
    >>> unlisted_labels(np.array([0, 1, 2]), np.array([0, 2]))
    array([1, 3, 4])
    """
    # Before a listed label there are as many others as its index, but for those listed before.
    n_before = listed - np.arange(len(listed))
    return ranks + np.searchsorted(n_before, ranks, side="right")


def find_top_rows(listed: csr_array, logits: Floats, floor_logit: float, k: int) -> Labelsets:
    """Return the k most probable labelsets of each instance, one after the other: sparse rows.

    Of labels that are not listed the k - 1 first are enough: all of them are equally probable, and
    the lowest codes come first.
    """
    n_samples, n_labels = listed.shape
    rows, labels = [], []
    for i in range(n_samples):
        own = slice(listed.indptr[i], listed.indptr[i + 1])
        n_others = min(k - 1, n_labels - len(listed.indices[own]))
        others = unlisted_labels(np.arange(n_others), listed.indices[own])
        seen = np.concatenate([listed.indices[own].astype(np.int64), others])
        odds = np.concatenate([logits[own], np.full(n_others, floor_logit)])
        order = np.argsort(seen)
        seen, odds = seen[order], odds[order]
        codes = cheapest_codes(np.abs(odds), (odds > 0).astype(np.int8), k)
        # Labelsets of probability 0 follow, the lowest codes first.
        codes += islice(filterfalse(set(codes).__contains__, count()), k - len(codes))
        for rank, code in enumerate(codes):
            bits = [j for j in range(len(seen)) if code >> j & 1]
            rows.append(np.full(len(bits), i * k + rank))
            labels.append(seen[bits])
    nothing = np.empty(0, dtype=np.int64)
    return _sort_rows(
        np.concatenate([nothing, *rows]),
        np.concatenate([nothing, *labels]),
        (n_samples * k, n_labels),
    )


def _sort_rows(rows: Indices, labels: Indices, shape: tuple[int, int]) -> Labelsets:
    order = np.lexsort((labels, rows))
    starts = np.append(0, np.cumsum(np.bincount(rows, minlength=shape[0])))
    return sparse_ones(labels[order], starts, shape[1])


def cheapest_codes(cost: Floats, mode: Labelsets, k: int) -> list[int]:
    """Return the codes of the k labelsets whose flips away from the mode cost least, in order.

    Fewer where there are fewer: a label that is certain is never flipped.

    The order is that of (cost, code): a flip adds its cost to the first and plus or minus 2**j to
    the second. Both are sums and each such pair is positive, so the usual heap works on pairs: the
    sets of flips that follow {..., i} in sorted order are {..., i, i+1} and {..., i+1}. An entry
    holds the pair of its flips, the last of them, and the pair without the last.
    """
    mode_code = sum(1 << j for j in np.flatnonzero(mode).tolist())
    flips = [
        (float(cost[j]), -(1 << j) if mode[j] else 1 << j)
        for j in np.flatnonzero(np.isfinite(cost)).tolist()
    ]
    flips = heapq.nsmallest(k, flips)
    codes = [mode_code]
    heap = [(added, mode_code + change, 0, 0.0, mode_code) for added, change in flips[:1]]
    while heap and len(codes) < k:
        total, code, last, total_before, code_before = heapq.heappop(heap)
        codes.append(code)
        following = last + 1
        if following < len(flips):
            added, change = flips[following]
            heapq.heappush(heap, (total + added, code + change, following, total, code))
            exchanged = total_before + added, code_before + change
            heapq.heappush(heap, (*exchanged, following, total_before, code_before))
    return codes


def write_codes(codes: list[int], rows: Labelsets) -> None:
    """Write the labelsets of codes of any length to the first rows."""
    n_bytes = -(-rows.shape[1] // 8)
    octets = np.frombuffer(b"".join(c.to_bytes(n_bytes, "little") for c in codes), dtype=np.uint8)
    bits = np.unpackbits(octets.reshape(-1, n_bytes), axis=1, bitorder="little")
    rows[: len(codes)] = bits[:, : rows.shape[1]]


WAITING_BYTES = 512
"""What the search for the most probable labelsets takes for each of them: numbers of Python."""


class Independent(LabelsetDistribution):
    """Closed forms of independent labels, for dense and for sparse marginals."""

    _p: Any
    _logits: Any = None

    @property
    @abstractmethod
    def listed(self) -> ListedLabels:
        """The labels as their closed forms need them."""

    @abstractmethod
    def _mark(self, Y: Any) -> tuple[ListedLabels, NDArray[np.int8]]:
        """Return the labels, and for each of them whether a labelset has it."""

    @abstractmethod
    def _rows_of(self, is_chosen: Mask) -> Labelsets:
        """Return the labelsets of some of the listed labels."""

    def _log_prob(self, Y: Labelsets) -> Floats:
        listed, marks = self._mark(Y)
        return listed.log_prob(marks)

    def _profile_and_mode(self) -> tuple[Profile, Labelsets]:
        return Profile(*self.listed.profile(), self.n_labels), self._mode()

    def _mode(self) -> Labelsets:
        return self._rows_of(self.listed.marginals > 0.5)

    def _expected(self, metric: Metric, guesses: Guesses, empty: float) -> Expected:
        if metric == EXACT:
            return super()._expected(metric, guesses, empty)
        marked = map(self._mark, each_guess(guesses))
        columns = [listed.expected(metric, marks, empty, self.n_labels) for listed, marks in marked]
        return Expected.exactly(np.stack(columns, axis=1))

    def _best(self, metric: Metric, empty: float) -> tuple[Labelsets, Floats] | None:
        """Return the most probable labels, as many as are best, where that is optimal."""
        if metric not in _BEST_SIZES:
            return None
        is_chosen, gaps = self.listed.choose(metric, empty)
        return self._rows_of(is_chosen), gaps

    # Quantities of every single label need dense rows, which must fit in memory.

    def _marginals(self) -> Floats:
        return self._with_dense_rows()._p.astype(np.float64)

    def _size_marginals(self) -> Floats:
        listed = self._with_dense_rows().listed
        by_size = np.empty((len(self), self.n_labels, self.n_labels))
        for j in range(self.n_labels):  # the size is one more than that of the other labels
            only_j = np.zeros((len(self), self.n_labels), dtype=np.int8)
            only_j[:, j] = 1
            hits, misses = listed.count_hits(only_j.reshape(-1), self.n_labels)
            by_size[:, j] = hits[:, 1:2] * misses[:, : self.n_labels]
        return by_size

    def _probabilities(self) -> Floats:
        marginals = self._marginals()
        P = np.ones((len(self), 2**self.n_labels))
        for j in range(self.n_labels):
            p, half = marginals[:, j : j + 1], 2**j
            np.multiply(P[:, :half], p, out=P[:, half : 2 * half])
            P[:, :half] *= 1 - p
        return P

    @abstractmethod
    def _with_dense_rows(self) -> IndependentLabels: ...


class IndependentLabels(Independent):
    """Distributions of independent labels, such as binary relevance or sigmoid outputs.

    Parameters
    ----------
    marginals
        (n, L) probabilities P(y_j = 1), of which a copy is kept; a DataFrame brings its label
        names.
    label_names
        One for each label.

    See Also
    --------
    SparseIndependentLabels : The same for thousands to millions of labels.
    DenseDistribution : Joint probabilities of all labelsets.
    as_distribution : Make a distribution from a model or from probabilities.

    Notes
    -----
    The number of labels follows a Poisson-binomial distribution, from which expected F1 and Jaccard
    are computed in polynomial time; see `expected_accuracy`.

    Examples
    --------
    >>> dist = IndependentLabels([[0.9, 0.2]])
    >>> dist.mode()
    array([[1, 0]], dtype=int8)
    >>> dist.profile().top
    array([0.72])
    """

    def __init__(self, marginals: Any, label_names: Iterable[Any] | None = None) -> None:
        values, names = order_columns(marginals, label_names, "marginals")
        array = as_floats(values, "marginals")
        if array.ndim != 2 or array.shape[1] == 0:
            raise InputError(
                "`marginals` must have shape (n_samples, n_labels) with at least one label, got "
                f"shape {array.shape}. One instance is one row: `[marginals]`."
            )
        array = check_unit_interval(array, "marginals")
        super().__init__(array.shape[0], array.shape[1], names)
        self._p = array.copy()
        self._index = index_of(marginals)

    @classmethod
    def from_logits(cls, logits: Any, label_names: Iterable[Any] | None = None) -> Self:
        """Make the distributions whose marginals have these logits.

        A marginal near 1 is rounded, its logit is not: log-probabilities, the runner-up and `top`
        come from the logits, so that no labelset is impossible.

        Parameters
        ----------
        logits
            (n, L) log of the odds P(y_j = 1) / P(y_j = 0); a DataFrame brings its label names.
        label_names
            One for each label.

        Examples
        --------
        >>> dist = IndependentLabels.from_logits([[100.0, -1.0]])
        >>> dist.marginals().round(3)
        array([[1.   , 0.269]])
        >>> dist.log_prob([[0, 0]]).round(3)
        array([-100.313])
        """
        values, names = order_columns(logits, label_names, "logits")
        array = as_floats(values, "logits").astype(np.float64)
        if np.isnan(array).any():
            row = np.argwhere(np.isnan(array))[0][0]
            raise InputError(
                f"`logits` must hold logits that are numbers, got NaN in row {row}. "
                "Fix or drop that row."
            )
        new = cls(expit(array), names)
        new._logits = array
        new._index = index_of(logits)
        return new

    def _take(self, rows: Rows) -> Self:
        # In one piece, as kernels are compiled for: every other row would compile them anew.
        new = type(self).__new__(type(self))
        new._p = np.ascontiguousarray(self._p[rows])
        new._logits = None if self._logits is None else self._logits[rows]
        LabelsetDistribution.__init__(new, len(new._p), self.n_labels, self.label_names)
        return new

    def _with_dense_rows(self) -> IndependentLabels:
        return self

    def _top(self, k: int) -> TopLabelsets:
        check_size(
            k * (WAITING_BYTES + 2 * self.n_labels),
            f"The search for the `k` most probable labelsets of {self.n_labels} labels",
            "Ask for fewer.",
        )
        labelsets = np.empty((len(self), k, self.n_labels), dtype=np.int8)
        logs = np.empty((len(self), k))
        modes, listed = self._mode(), self.listed
        log_zero, log_one = (listed.log_values(y).reshape(self._p.shape) for y in (0, 1))
        costs = np.abs(log_one - log_zero)  # of a flip away from the mode, in log-probability
        for i, best in enumerate(labelsets):
            codes = cheapest_codes(costs[i], modes[i], k)
            write_codes(codes, best)
            fill_with_lowest(best[np.newaxis], np.array([len(codes)]))
            for rows in cut_rows(k, 8 * self.n_labels, _limits.CACHED_JOINT_BYTES):
                logs[i, rows] = np.where(best[rows] == 1, log_one[i], log_zero[i]).sum(axis=1)
        return TopLabelsets(labelsets, logs)

    def _sample(self, size: int, generator: np.random.Generator) -> Labelsets:
        uniforms = generator.random((len(self), size, self.n_labels))
        return (uniforms < self._p[:, np.newaxis, :]).astype(np.int8)

    def _mark(self, Y: Any) -> tuple[ListedLabels, NDArray[np.int8]]:
        return self.listed, Y.reshape(-1)

    @property
    def listed(self) -> ListedLabels:
        """All labels, without a rest."""
        starts = np.arange(len(self) + 1) * self.n_labels
        rest = Rest(np.zeros(len(self), dtype=np.int64))
        logits = None if self._logits is None else self._logits.ravel()
        return ListedLabels(self._p.reshape(-1), starts, rest, logits)

    def _rows_of(self, is_chosen: Mask) -> Labelsets:
        return is_chosen.reshape(self._p.shape).astype(np.int8)

    def _temper(self, temperature: float) -> Self:
        return type(self).from_logits(self._marginal_logits() / temperature, self.label_names)

    def _tempered_log_prob(self, Y: Labelsets) -> Callable[[float], Floats]:
        logits = self._marginal_logits()
        logits = np.where(Y == 1, logits, -logits)
        return lambda temperature: log_prob_of_logits(logits / temperature)

    def _marginal_logits(self) -> Floats:
        if self._logits is not None:
            return self._logits
        return logit(self._p.astype(np.float64, copy=False))


FEW_LABELS = 64
"""Up to here decisions are made by the dense marginals: what is not listed may be predicted."""


class SparseIndependentLabels(Independent):
    """Independent labels in extreme multi-label problems: few of very many labels are listed.

    Extreme classifiers score a few hundred out of 10**4 to 10**6 labels. Memory and time grow with
    the listed labels only. Labelsets are returned as a `scipy.sparse.csr_array`, and truths and
    predictions may be sparse as well.

    Parameters
    ----------
    marginals
        (n, L) P(y_j = 1) of the listed labels: sparse in any format of scipy, or an array.
    n_labels
        How many labels there are; None means as many as `marginals` has columns.
    floor
        Probability of each label that is not listed, below 1/2. Listed ones are clipped to
        [floor, 1 - min(floor, 2**-24)], so that no labelset is impossible; 0 clips nothing.
        `suggest_floor` finds one from labelled instances.
    label_names
        One for each label; None where they have none.

    See Also
    --------
    IndependentLabels : The same with all labels listed.
    labelsure.distributions.suggest_floor : Choose `floor` from labelled rows.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> marginals = csr_array(([0.9, 0.2], ([0, 0], [7, 123_456])), shape=(1, 1_000_000))
    >>> dist = SparseIndependentLabels(marginals)
    >>> dist.mode().indices.tolist(), dist.profile().top.round(3)
    ([7], array([0.678]))
    """

    sparse_rows = True

    def __init__(
        self,
        marginals: Any,
        n_labels: int | None = None,
        *,
        floor: float = _limits.PROBABILITY_FLOOR,
        label_names: Iterable[Any] | None = None,
    ) -> None:
        floor = read_number(floor, "floor", 0, 0.5, ends="[)")
        rows = check_probabilities(read_listed(marginals, n_labels, "marginals"))
        super().__init__(rows.shape[0], rows.shape[1], label_names)
        self._floor, self._floor_logit = floor, float(logit(floor))
        most = 1 - min(floor, _limits.PROBABILITY_FLOOR)
        # What is not above the floor is as if it were not listed.
        self._p = keep_listed(rows, np.minimum(rows.data, most), rows.data > floor)
        self.labelset_bytes = _bytes_of_row(self._p)

    @classmethod
    def from_top(
        cls,
        indices: Any,
        scores: Any,
        n_labels: int,
        *,
        floor: float = _limits.PROBABILITY_FLOOR,
        label_names: Iterable[Any] | None = None,
    ) -> Self:
        """Make the distributions of top-k arrays.

        Parameters
        ----------
        indices
            (n, k) the listed labels of each instance, in any order; -1 where it has fewer.
        scores
            (n, k) probability of each of them.
        n_labels
            Number of labels, listed or not.
        floor
            Probability of each label that is not listed, below 1/2.
        label_names
            One for each label; None for none.

        Examples
        --------
        >>> indices, scores = [[7, 2], [5, -1]], [[0.9, 0.2], [0.6, 0.0]]
        >>> dist = SparseIndependentLabels.from_top(indices, scores, n_labels=10**6)
        >>> dist.mode().indices.tolist()
        [7, 5]
        """
        rows = read_top(indices, scores, n_labels)
        return cls(rows, floor=floor, label_names=label_names)

    @classmethod
    def from_logits(
        cls,
        logits: Any,
        n_labels: int | None = None,
        *,
        floor: float = _limits.PROBABILITY_FLOOR,
        label_names: Iterable[Any] | None = None,
    ) -> Self:
        """Make the distributions whose listed labels have these logits.

        Parameters
        ----------
        logits
            (n, L) log of the odds P(y_j = 1) / P(y_j = 0), sparse. A zero that is stored is a label
            of probability 1/2; what is not stored has the floor.
        n_labels
            Number of labels; None for the columns of `logits`.
        floor
            Probability of each label that is not listed, below 1/2.
        label_names
            One for each label; None for none.
        """
        rows = read_listed(logits, n_labels, "logits")
        if np.isnan(rows.data).any():
            at = int(np.flatnonzero(np.isnan(rows.data))[0])
            row = int(np.searchsorted(rows.indptr, at, side="right")) - 1
            raise InputError(f"`logits` must be numbers, got NaN in row {row}. Fix that row.")
        new = cls(csr_array(rows.shape), floor=floor, label_names=label_names)
        new._set_logits(rows, new._floor_logit)
        return new

    def _set_logits(self, logits: csr_array, floor_logit: float) -> None:
        self._floor, self._floor_logit = float(expit(floor_logit)), floor_logit
        self._logits = keep_listed(logits, logits.data, logits.data > floor_logit)
        self._p = self._logits.copy()
        self._p.data = expit(self._logits.data)
        self.labelset_bytes = _bytes_of_row(self._p)

    @property
    def floor(self) -> float:
        """How probable each label is that is not listed."""
        return self._floor

    @property
    def n_listed(self) -> Integers:
        """How many labels are listed of each instance, (n,)."""
        return count_labels(self._p)

    def _with_dense_rows(self) -> IndependentLabels:
        check_size(
            8 * len(self) * self.n_labels,
            f"All {self.n_labels} labels of {len(self)} instances, which this question is about,",
            "Ask for fewer instances (`dist[:10]`), or something that sparse labels answer: see "
            "`docs/howto/extreme.md`.",
        )
        floor, listed = self._floor, self._p
        if self._logits is not None:
            floor, listed = self._floor_logit, self._logits
        values = np.full((len(self), self.n_labels), floor)
        values[np.repeat(np.arange(len(self)), self.n_listed), listed.indices] = listed.data
        make = IndependentLabels if self._logits is None else IndependentLabels.from_logits
        return make(values, self.label_names)._with_index(self.index)

    def _take(self, rows: Rows) -> Self:
        new = copy(self)
        new._p = self._p[rows]
        new._logits = None if self._logits is None else self._logits[rows]
        new._n_samples = new._p.shape[0]
        new.labelset_bytes = _bytes_of_row(new._p)
        return new

    @property
    def listed(self) -> ListedLabels:
        """The listed labels and the rest, as their closed forms need them."""
        rest = Rest(self.n_labels - self.n_listed, self._floor, self._floor_logit)
        logits = None if self._logits is None else self._logits.data
        return ListedLabels(self._p.data, self._p.indptr.astype(np.intp), rest, logits)

    def listed_marginals(self) -> csr_array:
        """Return P(y_j = 1) of the listed labels, sparse; all others have the floor."""
        return self._p.copy()

    def _mark(self, Y: Any) -> tuple[ListedLabels, NDArray[np.int8]]:
        return self.listed.match(self._p.indices, Y)

    def _rows_of(self, is_chosen: Mask) -> Labelsets:
        chosen = np.flatnonzero(is_chosen)
        starts = np.searchsorted(chosen, self._p.indptr)
        return sparse_ones(self._p.indices[chosen], starts, self.n_labels)

    def _top(self, k: int) -> TopLabelsets:
        # The same rounding as for dense labels, so that the same labelsets tie.
        logits = log(self._p.data) - log(1 - self._p.data)
        of_rest = float(log(self._floor) - log(1 - self._floor))
        if self._logits is not None:
            logits, of_rest = self._logits.data, self._floor_logit
        rows = find_top_rows(self._p, logits, of_rest, k)
        stacked = StackedLabelsets(rows, k)
        logs = [self._log_prob(stacked[:, rank]) for rank in range(k)]
        return TopLabelsets(stacked, np.stack(logs, axis=1))  # type: ignore[arg-type]

    def _sample(self, size: int, generator: np.random.Generator) -> Any:
        return StackedLabelsets(draw_rows(self._p, self._floor, size, generator), size)

    def _best(self, metric: Metric, empty: float) -> tuple[Labelsets, Floats] | None:
        """Predict the most probable listed labels; say what predicting others could add at most."""
        if metric not in _BEST_SIZES or self.n_labels > FEW_LABELS:
            return super()._best(metric, empty)
        is_chosen, gaps = self._with_dense_rows().listed.choose(metric, empty)
        return make_sparse(is_chosen.reshape(len(self), self.n_labels).astype(np.int8)), gaps

    def _temper(self, temperature: float) -> Self:
        logits = self._p.copy() if self._logits is None else self._logits.copy()
        logits.data = (logit(logits.data) if self._logits is None else logits.data) / temperature
        new = copy(self)
        new._set_logits(logits, self._floor_logit / temperature)
        return new


def _bytes_of_row(listed: csr_array) -> int:
    """Return about how much memory a labelset takes, of which all listed labels are set."""
    return 16 + 9 * int(np.diff(listed.indptr).max(initial=0))


def suggest_floor(dist: SparseIndependentLabels, Y_true: Any) -> float:
    """Return the floor that labelled instances suggest: how often a label is true if not listed.

    Parameters
    ----------
    dist
        Listed labels of n instances, whatever floor they have.
    Y_true
        Their truth, in any form of labelsets.

    Returns
    -------
    float
        The mean number of true labels that are not listed, and one half among all instances so that
        it is not 0, over the mean number of labels that are not listed; less than 1/2.

    Examples
    --------
    >>> from labelsure.labelsets import from_indices
    >>> dist = SparseIndependentLabels.from_top([[7, 2], [5, 1]], [[0.9, 0.2], [0.6, 0.1]], 10**6)
    >>> round(1e6 * suggest_floor(dist, from_indices([[7], [5, 99]], 10**6)), 2)
    0.75
    """
    if not isinstance(dist, SparseIndependentLabels):
        raise InputError(
            "`dist` must be SparseIndependentLabels, whose labels are not all listed, got "
            f"{type(dist).__name__}."
        )
    if len(dist) == 0:
        raise InputError("`dist` must have at least one instance, got none.")
    truth = dist.align(Y_true, "Y_true")
    n_unlisted = int(dist.listed.rest.sizes.sum())
    n_missed = n_unlisted - int(dist._mark(truth)[0].rest.sizes.sum())
    return float(min((n_missed + 0.5) / max(n_unlisted, 1), 0.25))
