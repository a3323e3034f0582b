"""`DenseBlock`: all 2**L probabilities of some instances, and every answer by a sweep over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labelsure._kernels import dense_sweeps as kernels
from labelsure._kernels.profile_sums import dense_profile_rows
from labelsure._kernels.threads import for_rows
from labelsure._runtime import limits as _limits
from labelsure._runtime.limits import TIE
from labelsure._runtime.typing import Array, Floats, Integers, Labelsets
from labelsure.distributions._answers import (
    Approximation,
    Expected,
    Guesses,
    Optimum,
    Summary,
    TopLabelsets,
    each_guess,
    expected_hamming,
)
from labelsure.distributions._reciprocals import unit_interval
from labelsure.distributions.candidates import Profile, log
from labelsure.labelsets.codes import codes_of, from_codes
from labelsure.metrics.registry import EXACT, F1, HAMMING, JACCARD, Metric

SINGLE_PRECISION_BEYOND = 10
"""Labels up to which the transform takes less time than compiling it for single precision, too."""

JOINT_BYTES = 16  # for each labelset: its probability, and as much again for some questions

_BEST_WITHOUT_PAIRS = frozenset({EXACT, HAMMING, F1})
"""Metrics whose best labelset follows from the mode, the marginals or `size_marginals`, in far less
time than from all pairs: `labelsure.decide` does so for all distributions."""


def has_dense_best(metric: Metric, n_labels: int) -> bool:
    """Whether a `DenseBlock` has a solver for a metric and a number of labels."""
    by_pairs = metric not in _BEST_WITHOUT_PAIRS and n_labels <= _limits.ALL_PAIRS_LABELS
    return metric == JACCARD or by_pairs


def temper_probabilities(P: NDArray[np.generic], temperature: float) -> Floats:
    """Rows raised to 1 / temperature and normalised."""
    # Of the largest, so that no temperature leaves nothing but zeros.
    tempered = P / P.max(axis=1, keepdims=True).astype(np.float64)
    tempered **= 1 / temperature
    return np.asarray(tempered / tempered.sum(axis=1, keepdims=True))


@dataclass(frozen=True, eq=False)
class DenseBlock(Approximation):
    """All 2**L probabilities of some instances.

    Parameters
    ----------
    P
        (n, 2**L), in one piece: column c is the labelset with code c.
    """

    P: Array

    def __len__(self) -> int:
        return len(self.P)

    @property
    def n_labels(self) -> int:
        """The number of labels, L."""
        return self.P.shape[1].bit_length() - 1

    def marginals(self) -> Expected:
        """P(y_j = 1), (n, L)."""
        marginals = np.empty((len(self), self.n_labels))
        for_rows(kernels.marginal_rows, len(self), self.P, into=[marginals])
        return Expected.exactly(np.minimum(marginals, 1.0))  # a sum may be a hair above

    def log_prob(self, Y: Labelsets) -> Floats:
        """Log-probability of one labelset for each instance."""
        return log(self.P[np.arange(len(self)), codes_of(Y)])

    def summary(self, metrics: Sequence[Metric], empty: float) -> Summary:
        """Profile, mode and expected accuracies of the mode."""
        n_samples, n_labels = len(self.P), self.n_labels
        values, codes = np.empty((n_samples, 4)), np.empty(n_samples, dtype=np.int64)
        for_rows(dense_profile_rows, n_samples, self.P, into=[values, codes])
        top, runner_up, entropy, collision = values.T.copy()
        profile = Profile.from_values(top, runner_up, entropy, collision, n_labels)
        mode, found = from_codes(codes, n_labels), {}
        if metrics:
            values_of = zip(metrics, self._expect(metrics, mode, empty), strict=True)
            found = {metric.name: Expected.exactly(value) for metric, value in values_of}
        return Summary(profile, mode, found)

    def top(self, k: int) -> TopLabelsets:
        """K most probable labelsets."""
        codes = np.empty((len(self), k), dtype=np.int64)
        for_rows(kernels.top_rows, len(self), self.P, into=[codes])
        probabilities = np.take_along_axis(self.P, codes, axis=1).astype(np.float64)
        return TopLabelsets(self._labelsets_of(codes), log(probabilities))

    def sample(self, uniforms: Floats) -> Labelsets:
        """Labelsets drawn by (n, size) uniform numbers, (n, size, L)."""
        codes = np.empty(uniforms.shape, dtype=np.int64)
        for_rows(kernels.sample_rows, len(self), self.P, uniforms, into=[codes])
        return self._labelsets_of(codes)

    def _labelsets_of(self, codes: Integers) -> Labelsets:
        return from_codes(codes.ravel(), self.n_labels).reshape(*codes.shape, self.n_labels)

    def expected(self, metrics: Sequence[Metric], guesses: Guesses, empty: float) -> list[Expected]:
        """Means of each metric for guesses, (n, g)."""
        others = [metric for metric in metrics if metric != HAMMING]
        columns = [self._expect(others, Y, empty) for Y in each_guess(guesses)]
        values = {m: np.stack(one, axis=1) for m, *one in zip(others, *columns, strict=True)}
        if HAMMING in metrics:
            values[HAMMING] = expected_hamming(self.marginals().value, guesses)
        return [Expected.exactly(values[metric]) for metric in metrics]

    def _expect(self, metrics: Sequence[Metric], Y_pred: Labelsets, empty: float) -> list[Floats]:
        """Expectations of several metrics, (n,) each, from one table P(tp = a, fn = b) a row."""
        if not metrics:
            return []
        overlap = np.empty((len(self), self.n_labels + 1, self.n_labels + 1))
        for_rows(kernels.overlap_rows, len(self), self.P, codes_of(Y_pred), into=[overlap])
        n_predicted = Y_pred.sum(axis=1)
        expected = [np.empty(len(self)) for _ in metrics]
        for k in np.unique(n_predicted):
            rows = n_predicted == k
            reachable = overlap[rows, : k + 1, : self.n_labels - k + 1]
            for metric, values in zip(metrics, expected, strict=True):
                table = metric.table(self.n_labels, k, empty=empty)
                values[rows] = (reachable * table).sum(axis=(1, 2))
        return expected

    def size_marginals(self) -> Floats:
        """P(y_j = 1 and |y| = s), (n, L, L)."""
        by_size = np.empty((len(self), self.n_labels, self.n_labels))
        for_rows(kernels.size_rows, len(self), self.P, into=[by_size])
        return by_size

    def best(self, metric: Metric, empty: float) -> Optimum:
        """Labelsets of the highest expected accuracy, where `has_dense_best`."""
        if metric == JACCARD:
            best = self._best_jaccard(empty)
        else:
            best = np.empty(len(self), dtype=np.int64)
            table = _metric_of_every_count(metric, self.n_labels, empty)
            for_rows(kernels.best_by_pairs_rows, len(self), self.P, table, into=[best])
        return Optimum(from_codes(best, self.n_labels), np.zeros(len(self)))

    def _best_jaccard(self, empty: float) -> Integers:
        """Codes of the optima, (n,); the transform runs for rows that the bounds leave open."""
        best, rule = self._prove_jaccard(empty), unit_interval(self.n_labels - 1)
        is_long = self.n_labels > SINGLE_PRECISION_BEYOND
        for precision in (np.float32, np.float64) if is_long else (np.float64,):
            if (best < 0).any():
                inputs = (empty, *(values.astype(precision) for values in rule))
                for_rows(kernels.best_jaccard_rows, len(self), self.P, *inputs, into=[best])
        return best

    def _prove_jaccard(self, empty: float) -> Integers:
        """Codes of the predictions that bounds prove the best under Jaccard, (n,); -1 for none.

        |y or p| is at least max(|y|, |p|), so a label is worth at most E[y_j / max(|y|, k)] in a
        prediction of k labels, and the k best labels bound all predictions of that size. The one
        with the largest bound is the best if it is worth more than the bounds of all other sizes,
        and of its own size with the next label instead of its last.
        """
        sizes, n = np.arange(1, self.n_labels + 1), np.arange(len(self))
        worth = self.size_marginals() @ (1.0 / np.maximum.outer(sizes, sizes))  # [i, label, k - 1]
        worth = np.swapaxes(worth, 1, 2)
        descending = -np.sort(-worth, axis=2)
        top = np.diagonal(np.cumsum(descending, axis=2), axis1=1, axis2=2)
        last = np.diagonal(descending, axis1=1, axis2=2)
        after = np.diagonal(descending, 1, axis1=1, axis2=2)
        bounds = np.column_stack([empty * self.P[:, 0], top])
        k = bounds.argmax(axis=1)
        guess = (worth[n, k - 1] >= last[n, k - 1, np.newaxis]) & (k > 0)[:, np.newaxis]
        guess = guess.astype(np.int8)
        swapped = np.pad(top[:, :-1] - last[:, :-1] + after, ((0, 0), (1, 1)), constant_values=-1.0)
        bounds[n, k] = swapped[n, k]  # there is one labelset with no label, and one with all
        value = self._expect([JACCARD], guess, empty)[0]
        return np.where(value - TIE > bounds.max(axis=1), codes_of(guess), -1)


def _metric_of_every_count(metric: Metric, n_labels: int, empty: float) -> Floats:
    """Metric of k predicted labels by k, tp and fn, (L + 1, L + 1, L + 1); 0 if impossible."""
    values = np.zeros((n_labels + 1,) * 3)
    for k in range(n_labels + 1):
        table = metric.table(n_labels, k, empty=empty)
        values[k, : table.shape[0], : table.shape[1]] = table
    return values
