"""`ValidLabelsets`: independent labels restricted to a list of labelsets.

P(y | x) = exp(sum over j of y_j z_j(x)) / Z(x) for the V listed labelsets, 0 for all others. Every
answer is a product of (n, V) probabilities with a matrix of the list, some rows at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Self

import numpy as np
from scipy.special import logsumexp

from labelsure._runtime import limits as _limits
from labelsure._runtime.limits import TIE, cut_rows
from labelsure._runtime.typing import Floats, Indices, LabelNames, Labelsets, Rows
from labelsure.distributions._answers import (
    Best,
    Expected,
    Guesses,
    Optimum,
    Summary,
    TopLabelsets,
    each_guess,
)
from labelsure.distributions._base import SIMPLE, LabelsetDistribution
from labelsure.distributions.candidates import Profile
from labelsure.labelsets.codes import codes_of, fill_with_lowest, row_keys
from labelsure.metrics.registry import Metric

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
        self._as_floats = labelsets.astype(np.float64)
        self._by_label = np.ascontiguousarray(self._as_floats.T)

    def _take(self, rows: Rows) -> Self:
        return type(self)(self._labelsets, self._logits[rows], self.label_names)

    def _logs(self, rows: Rows = slice(None)) -> Floats:
        """Log-probabilities of the listed labelsets, (m, V)."""
        # Not by BLAS, whose last digit depends on the number of rows.
        scores = np.einsum("nl,vl->nv", self._logits[rows], self._as_floats)
        return scores - logsumexp(scores, axis=1, keepdims=True)

    def _blocks(self) -> Iterator[tuple[slice, Floats]]:
        """Rows and their log-probabilities of the listed labelsets, (m, V)."""
        bytes_each = 8 * WORK_ARRAYS * len(self._labelsets)
        for rows in cut_rows(len(self), bytes_each, _limits.DECISION_BYTES):
            yield rows, self._logs(rows)

    def _marginals(self) -> Expected:
        marginals = np.empty((len(self), self.n_labels))
        for rows, logs in self._blocks():
            sums = np.einsum("nv,lv->nl", np.exp(logs), self._by_label)
            marginals[rows] = np.minimum(sums, 1.0)
        return Expected.exactly(marginals)

    def _places_of(self, Y: Labelsets) -> Indices:
        """Places of labelsets in the list, -1 of those that are not listed, (n,)."""
        keys, wanted = row_keys(self._labelsets), row_keys(Y)
        order = np.argsort(keys, kind="stable")
        place = order[np.minimum(np.searchsorted(keys[order], wanted), len(keys) - 1)]
        return np.where(keys[place] == wanted, place, -1)

    def _log_prob(self, Y: Labelsets) -> Floats:
        places = self._places_of(Y)
        found = np.full(len(self), -np.inf)
        for rows, logs in self._blocks():
            found[rows] = logs[np.arange(len(logs)), places[rows]]
        return np.where(places >= 0, found, -np.inf)

    def _summary(self, metrics: Sequence[Metric], empty: float) -> Summary:
        best = self._top(min(2, 2**self.n_labels))
        sums = np.empty((len(self), 2))
        for rows, logs in self._blocks():
            P = np.exp(logs)
            sums[rows, 0] = -(P * np.where(P > 0, logs, 0.0)).sum(axis=1)
            sums[rows, 1] = logsumexp(2 * logs, axis=1)
        entropy, log_collision = sums.T.copy()
        log_top, log_runner_up = best.logs[:, 0], best.logs[:, 1]
        profile = Profile(
            log_top,
            log_runner_up,
            np.maximum(entropy, 0.0),
            np.minimum(log_collision, 0.0),
            self.n_labels,
        )
        return self._summarise(profile, best.labelsets[:, 0], metrics, empty)

    def _mode(self) -> Labelsets:
        return self._top(1).labelsets[:, 0]

    def _top(self, k: int) -> TopLabelsets:
        n_listed = min(k, len(self._labelsets))
        labelsets = np.zeros((len(self), k, self.n_labels), dtype=np.int8)
        all_logs = np.full((len(self), k), -np.inf)
        for rows, logs in self._blocks():
            order = np.argsort(-np.round(logs, 12), axis=1, kind="stable")[:, :n_listed]
            labelsets[rows, :n_listed] = self._labelsets[order]
            all_logs[rows, :n_listed] = np.take_along_axis(logs, order, axis=1)
        fill_with_lowest(labelsets, np.isfinite(all_logs).sum(axis=1))
        return TopLabelsets(labelsets, np.minimum.accumulate(all_logs, axis=1))

    def _sample(self, size: int, generator: np.random.Generator) -> Labelsets:
        uniforms = generator.random((len(self), size))
        draws = np.empty((len(self), size, self.n_labels), dtype=np.int8)
        for rows, logs in self._blocks():
            # Row i owns the stretch from i to i + 1 of one long running sum.
            row = np.arange(len(logs))[:, np.newaxis]
            running = np.cumsum(np.exp(logs), axis=1)
            ends = (row + running / running[:, -1:]).ravel()
            places = np.searchsorted(ends, uniforms[rows] + row, side="right")
            draws[rows] = self._labelsets[
                np.minimum(places - row * logs.shape[1], logs.shape[1] - 1)
            ]
        return draws

    def _expected(
        self, metrics: Sequence[Metric], guesses: Guesses, empty: float
    ) -> list[Expected]:
        return [self._expect(metric, guesses, empty) for metric in metrics]

    def _expect(self, metric: Metric, guesses: Guesses, empty: float) -> Expected:
        if metric in SIMPLE:
            return self._simple(metric, guesses)
        values = np.empty((len(self), np.shape(guesses)[1]))
        for rows, logs in self._blocks():
            P = np.exp(logs)
            for g, Y in enumerate(each_guess(guesses)):
                table = _values_of_pairs(metric, Y[rows], self._labelsets, empty)
                values[rows, g] = (P * table).sum(axis=1)
        return Expected.exactly(values)

    def _best(self, metric: Metric, empty: float) -> Iterator[tuple[Indices, Best]]:
        """Best valid labelset where rules ask for one: all of them are compared."""
        if self.rules is None or metric in SIMPLE:
            yield from super()._best(metric, empty)
            return
        best = np.empty((len(self), self.n_labels), dtype=np.int8)
        for rows, logs in self._blocks():
            P = np.exp(logs)
            values = np.empty(P.shape)
            for some in cut_rows(len(self._labelsets), 8 * P.shape[1], _limits.DECISION_BYTES):
                table = _values_of_pairs(metric, self._labelsets[some], self._labelsets, empty)
                values[:, some] = P @ table.T
            first = (values >= values.max(axis=1, keepdims=True) - TIE).argmax(axis=1)
            best[rows] = self._labelsets[first]
        yield np.arange(len(self)), Optimum(best, np.zeros(len(self)))

    def _size_marginals(self) -> Floats:
        sizes = self._labelsets.sum(axis=1)
        by_size = np.zeros((len(self), self.n_labels, self.n_labels))
        for rows, logs in self._blocks():
            P = np.exp(logs)
            for size in np.unique(sizes[sizes > 0]).tolist():
                listed = sizes == size
                by_size[rows, :, size - 1] = P[:, listed] @ self._as_floats[listed]
        return by_size

    def _temper(self, temperature: float) -> Self:
        return type(self)(self._labelsets, self._logits / temperature, self.label_names)

    def _probabilities(self) -> Floats:
        P = np.zeros((len(self), 2**self.n_labels))
        codes = codes_of(self._labelsets)
        for rows, logs in self._blocks():
            P[rows, codes] = np.exp(logs)
        return P


def _values_of_pairs(metric: Metric, Y_pred: Labelsets, Y_true: Labelsets, empty: float) -> Floats:
    """Metric of each prediction for each truth, (predictions, truths)."""
    tp = Y_pred.astype(np.float64) @ Y_true.T.astype(np.float64)
    fp = Y_pred.sum(axis=1)[:, np.newaxis] - tp
    fn = Y_true.sum(axis=1) - tp
    return metric.values(tp, fp, fn, Y_true.shape[1] - tp - fp - fn, empty=empty)
