"""`ValidLabelsets`: independent labels restricted to a list of labelsets.

P(y | x) = exp(sum over j of y_j z_j(x)) / Z(x) for the V listed labelsets, 0 for all others. Every
answer is a product of (n, V) probabilities with a matrix of the list, some rows at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import logsumexp

from labelsure._runtime import limits as _limits
from labelsure._runtime.limits import TIE, cut_rows
from labelsure._runtime.typing import Floats, Indices, LabelNames, Labelsets, Rows
from labelsure.distributions._answers import (
    Approximation,
    Best,
    Expected,
    Guesses,
    Optimum,
    Question,
    Summary,
    TopLabelsets,
    as_guesses,
    each_guess,
    expected_hamming,
    join_answers,
)
from labelsure.distributions._base import SIMPLE, LabelsetDistribution
from labelsure.distributions.candidates import Profile
from labelsure.labelsets.codes import codes_of, fill_with_lowest, row_keys
from labelsure.metrics.registry import HAMMING, Metric

WORK_ARRAYS = 8
"""Arrays of (rows, V) numbers that an answer holds at a time."""


class ValidLabelsets(LabelsetDistribution):
    """Independent labels restricted to listed labelsets.

    Parameters
    ----------
    labelsets
        (V, L) distinct labelsets in the order of their codes.
    logits
        (n, L) log-odds of the labels before the restriction.
    label_names
        One for each label.
    """

    def __init__(
        self, labelsets: Labelsets, logits: Floats, label_names: LabelNames = None
    ) -> None:
        super().__init__(len(logits), labelsets.shape[1], label_names)
        self._labelsets, self._logits = labelsets, logits

    def _take(self, rows: Rows) -> Self:
        return type(self)(self._labelsets, self._logits[rows], self.label_names)

    def _views(self, question: Question | None = None) -> Iterator[tuple[Indices, ListBlock]]:
        as_floats = self._labelsets.astype(np.float64)
        by_label = np.ascontiguousarray(as_floats.T)
        bytes_each = 8 * WORK_ARRAYS * len(self._labelsets)
        for block_rows in cut_rows(max(len(self), 1), bytes_each, _limits.DECISION_BYTES):
            # Not by BLAS, whose last digit depends on the number of rows.
            scores = np.einsum("nl,vl->nv", self._logits[block_rows], as_floats)
            logs = scores - logsumexp(scores, axis=1, keepdims=True)
            yield np.arange(len(self))[block_rows], ListBlock(self._labelsets, by_label, logs)

    def _log_prob(self, Y: Labelsets) -> Floats:
        keys, keys_of_Y = row_keys(self._labelsets), row_keys(Y)
        order = np.argsort(keys, kind="stable")
        place = order[np.minimum(np.searchsorted(keys[order], keys_of_Y), len(keys) - 1)]
        logs = join_answers(
            (rows, block.logs[np.arange(len(rows)), place[rows]]) for rows, block in self._views()
        )
        return np.where(keys[place] == keys_of_Y, logs, -np.inf)

    def _sample(self, size: int, generator: np.random.Generator) -> Labelsets:
        uniforms = generator.random((len(self), size))
        return join_answers((rows, block.sample(uniforms[rows])) for rows, block in self._views())

    def _best(self, metric: Metric, empty: float) -> Iterator[tuple[Indices, Best]]:
        """Best valid labelset where rules ask for one: all of them are compared."""
        if self.rules is None or metric in SIMPLE:
            yield from super()._best(metric, empty)
            return
        for rows, block in self._views():
            yield rows, block.best(metric, empty)

    def _size_marginals(self) -> Floats:
        return join_answers((rows, block.size_marginals()) for rows, block in self._views())

    def _temper(self, temperature: float) -> Self:
        return type(self)(self._labelsets, self._logits / temperature, self.label_names)

    def _probabilities(self) -> Floats:
        P = np.zeros((len(self), 2**self.n_labels))
        codes = codes_of(self._labelsets)
        for rows, block in self._views():
            P[rows[:, np.newaxis], codes] = np.exp(block.logs)
        return P


@dataclass(frozen=True, eq=False)
class ListBlock(Approximation):
    """Log-probabilities of the V listed labelsets for some instances.

    Parameters
    ----------
    labelsets
        (V, L) in the order of their codes.
    by_label
        (L, V) the same as floats.
    logs
        (n, V) log-probabilities.
    """

    labelsets: Labelsets
    by_label: Floats
    logs: Floats

    def marginals(self) -> Expected:
        """P(y_j = 1), (n, L)."""
        sums = np.einsum("nv,lv->nl", np.exp(self.logs), self.by_label)
        return Expected.exactly(np.minimum(sums, 1.0))

    def summary(self, metrics: Sequence[Metric], empty: float) -> Summary:
        """Profile, mode and expected accuracies of the mode."""
        n_labels, best = len(self.by_label), self.top(2)
        P = np.exp(self.logs)
        entropy = -(P * np.where(P > 0, self.logs, 0.0)).sum(axis=1)
        log_collision = np.minimum(logsumexp(2 * self.logs, axis=1), 0.0)
        entropy, (log_top, log_runner_up) = np.maximum(entropy, 0.0), best.logs.T
        profile = Profile(log_top, log_runner_up, entropy, log_collision, n_labels)
        mode = best.labelsets[:, 0]
        values = self.expected(metrics, as_guesses(mode), empty)
        expected = {m.name: one.of_first_guess() for m, one in zip(metrics, values, strict=True)}
        return Summary(profile, mode, expected)

    def top(self, k: int) -> TopLabelsets:
        """K most probable labelsets; beyond the list those of lowest code."""
        order = np.argsort(-np.round(self.logs, 12), axis=1, kind="stable")[:, :k]
        n_samples, n_listed = order.shape
        labelsets = np.zeros((n_samples, k, len(self.by_label)), dtype=np.int8)
        logs = np.full((n_samples, k), -np.inf)
        labelsets[:, :n_listed] = self.labelsets[order]
        logs[:, :n_listed] = np.take_along_axis(self.logs, order, axis=1)
        fill_with_lowest(labelsets, np.isfinite(logs).sum(axis=1))
        return TopLabelsets(labelsets, np.minimum.accumulate(logs, axis=1))

    def sample(self, uniforms: Floats) -> Labelsets:
        """Labelsets drawn by (n, size) uniform numbers, (n, size, L)."""
        # Row i owns the stretch from i to i + 1 of one long running sum.
        row, n_listed = np.arange(len(self.logs))[:, np.newaxis], len(self.labelsets)
        running = np.cumsum(np.exp(self.logs), axis=1)
        ends = (row + running / running[:, -1:]).ravel()
        places = np.searchsorted(ends, uniforms + row, side="right") - row * n_listed
        return self.labelsets[np.minimum(places, n_listed - 1)]

    def expected(self, metrics: Sequence[Metric], guesses: Guesses, empty: float) -> list[Expected]:
        """Means of each metric for guesses, (n, g)."""
        return [Expected.exactly(self._expect(metric, guesses, empty)) for metric in metrics]

    def _expect(self, metric: Metric, guesses: Guesses, empty: float) -> Floats:
        if metric == HAMMING:
            return expected_hamming(self.marginals().value, guesses)
        P = np.exp(self.logs)
        tables = (_values_of_pairs(metric, Y, self.labelsets, empty) for Y in each_guess(guesses))
        return np.stack([(P * table).sum(axis=1) for table in tables], axis=1)

    def best(self, metric: Metric, empty: float) -> Optimum:
        """Listed labelsets of the highest expected accuracy."""
        P = np.exp(self.logs)
        values = np.empty(P.shape)
        for columns in cut_rows(len(self.labelsets), 8 * P.shape[1], _limits.DECISION_BYTES):
            table = _values_of_pairs(metric, self.labelsets[columns], self.labelsets, empty)
            values[:, columns] = P @ table.T
        first = (values >= values.max(axis=1, keepdims=True) - TIE).argmax(axis=1)
        return Optimum(self.labelsets[first], np.zeros(len(P)))

    def size_marginals(self) -> Floats:
        """P(y_j = 1 and |y| = s), (n, L, L)."""
        P, sizes, n_labels = np.exp(self.logs), self.labelsets.sum(axis=1), len(self.by_label)
        by_size = np.zeros((len(P), n_labels, n_labels))
        for size in np.unique(sizes[sizes > 0]).tolist():
            has_size = sizes == size
            by_size[:, :, size - 1] = P[:, has_size] @ self.by_label[:, has_size].T
        return by_size


def _values_of_pairs(metric: Metric, Y_pred: Labelsets, Y_true: Labelsets, empty: float) -> Floats:
    """Metric of each prediction for each truth, (predictions, truths)."""
    tp = Y_pred.astype(np.float64) @ Y_true.T.astype(np.float64)
    fp = Y_pred.sum(axis=1)[:, np.newaxis] - tp
    fn = Y_true.sum(axis=1) - tp
    return metric.values(tp, fp, fn, Y_true.shape[1] - tp - fp - fn, empty=empty)
