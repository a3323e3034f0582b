"""`TemperedTrellis`: the joint probabilities of a trellis, raised to a power."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Self

import numpy as np

from labelsure import _limits
from labelsure._limits import cut_rows
from labelsure._typing import Floats, Indices, Labelsets, Rows
from labelsure.distributions._answers import (
    EXPECTATIONS,
    Expected,
    MaxMarginals,
    Summary,
    TopLabelsets,
)
from labelsure.distributions._bridge import LabelsetDistribution
from labelsure.distributions._trellis import TrellisDistribution
from labelsure.metrics import Metric


class TemperedTrellis(LabelsetDistribution):
    """P(y)**power of a trellis, divided by the sum over all labelsets. Exact at any number of them.

    What `TrellisDistribution.temper` makes. A label then depends on all that its trellis remembers,
    not on its few parents alone: the probabilities given each of these 2**memory states come from
    one pass over the labels, backwards, for a few instances at a time. All else a trellis answers.

    Parameters
    ----------
    trellis
        The distributions before.
    power
        Above 0; below 1 they become flatter.

    Examples
    --------
    >>> trellis = TrellisDistribution([[[0.5]], [[0.1, 0.8]]], parents=[(), (0,)], order=[1, 0])
    >>> trellis.temper(2).probabilities().round(3)
    array([[0.54 , 0.007, 0.027, 0.427]])
    """

    def __init__(self, trellis: TrellisDistribution, power: float) -> None:
        super().__init__(len(trellis), trellis.n_labels, trellis.label_names)
        self._trellis = trellis
        self._power = power

    def _take(self, rows: Rows) -> Self:
        return type(self)(self._trellis._take(rows), self._power)

    def _blocks(self) -> Iterator[tuple[Indices, TrellisDistribution, Floats]]:
        """Yield some instances at a time: which, their trellis, and the logs of their sums."""
        bytes_each = 8 * self.n_labels * 2**self._trellis.memory
        for some in cut_rows(len(self), bytes_each, _limits.SEEN_LABELSETS_BYTES):
            raised, log_totals = self._trellis._take(some)._raise_states(self._power)
            yield np.arange(len(self))[some], raised, log_totals

    def _fill(
        self, shape: tuple[int, ...], answer: Callable[[TrellisDistribution], Floats]
    ) -> Floats:
        """Return an array with what the trellis of each block answers."""
        filled = np.empty((len(self), *shape))
        for rows, trellis, _ in self._blocks():
            filled[rows] = answer(trellis)
        return filled

    def _log_totals(self) -> Floats:
        totals = np.empty(len(self))
        for rows, _, log_totals in self._blocks():
            totals[rows] = log_totals
        return totals

    def _marginals(self) -> Floats:
        return self._fill((self.n_labels,), lambda trellis: trellis._marginals())

    def _log_prob(self, Y: Labelsets) -> Floats:
        return self._power * self._trellis._log_prob(Y) - self._log_totals()

    def _max_marginals(self, log_at_least: float) -> MaxMarginals:
        before = self._trellis._max_marginals(-np.inf).logs
        return MaxMarginals.exactly(self._power * before - self._log_totals()[:, None, None])

    def _mode(self) -> Labelsets:
        return self._trellis._mode()

    def _summary(self, metrics: list[Metric], empty: float) -> Summary:
        parts = [(rows, trellis._summary(metrics, empty)) for rows, trellis, _ in self._blocks()]
        return Summary.assemble(parts) if parts else self._trellis._summary(metrics, empty)

    def _top(self, k: int) -> TopLabelsets:
        best = self._trellis._top(k)
        with np.errstate(divide="ignore"):
            logs = self._power * np.log(best.probabilities) - self._log_totals()[:, np.newaxis]
        return TopLabelsets(best.labelsets, np.exp(logs))

    def _sample(self, size: int, generator: np.random.Generator) -> Labelsets:
        draws = np.empty((len(self), size, self.n_labels), dtype=np.int8)
        for rows, trellis, _ in self._blocks():
            draws[rows] = trellis._sample(size, generator)
        return draws

    def _expected_by_counts(self, metric: Metric, Y_pred: Labelsets, empty: float) -> Floats:
        expected = np.empty(len(self))
        for rows, trellis, _ in self._blocks():
            expected[rows] = trellis._expected_by_counts(metric, Y_pred[rows], empty)
        return expected

    def _expected_of_guesses(self, metric: Metric, guesses: Labelsets, empty: float) -> Expected:
        if metric in EXPECTATIONS:
            return super()._expected_of_guesses(metric, guesses, empty)
        values = np.empty(guesses.shape[:2])
        for rows, trellis, _ in self._blocks():
            values[rows] = trellis._expected_of_guesses(metric, guesses[rows], empty).value
        return Expected.exactly(values)

    def _expected_hidden(self, metric: Metric, answers: Labelsets, empty: float) -> Expected:
        value = np.empty(answers.shape[:2])
        for rows, trellis, _ in self._blocks():
            value[rows] = trellis._expected_hidden(metric, answers[rows], empty).value
        return Expected.exactly(value)

    def _covariance_sums(self) -> Floats:
        return self._fill((self.n_labels,), lambda trellis: trellis._covariance_sums())

    def _size_marginals(self) -> Floats:
        return self._fill((self.n_labels,) * 2, lambda trellis: trellis._size_marginals())

    def _probabilities(self) -> Floats:
        P = self._trellis._probabilities() ** self._power
        return P / P.sum(axis=1, keepdims=True)

    def _temper(self, power: float) -> LabelsetDistribution:
        return self._trellis.temper(power * self._power)
