"""`DenseDistribution`: all 2**L probabilities of each instance, written out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from labelsure._kernels import dense_sweeps as kernels
from labelsure._kernels.profile_sums import dense_profile_rows
from labelsure._kernels.threads import Progress, for_rows, map_rows, n_threads
from labelsure._runtime import limits as _limits
from labelsure._runtime.limits import TIE
from labelsure._runtime.typing import Floats, Indices, Integers, Labelsets, Rows
from labelsure.distributions._answers import (
    Expected,
    Guesses,
    Summary,
    TopLabelsets,
    each_guess,
    join_answers,
)
from labelsure.distributions._base import SIMPLE, LabelsetDistribution
from labelsure.distributions._probabilities import as_floats, check_row_sums
from labelsure.distributions._reciprocals import unit_interval
from labelsure.distributions.candidates import Profile, log
from labelsure.errors import InputError
from labelsure.labelsets.rows import as_table, codes_of, from_codes, index_of
from labelsure.metrics.registry import EXACT, F1, HAMMING, JACCARD, Metric


class DenseDistribution(LabelsetDistribution):
    """Joint distributions given by the probabilities of all 2**L labelsets.

    Parameters
    ----------
    probabilities
        (n, 2**L); column c is the labelset with code c, label 0 being the lowest bit.
    label_names
        One for each label.
    normalise
        Divide each row by its sum (in a copy) instead of refusing rows that do not sum to one.
    copy
        Keep a copy of the probabilities. False saves that memory where an array of float32 or
        float64 is large: it is used as it is, so that a later change of it changes the answers.

    See Also
    --------
    LabelsetTable : Only some labelsets have a positive probability.
    IndependentLabels : Probabilities of single labels.
    as_distribution : Make a distribution from a model or from probabilities.

    Examples
    --------
    Two labels, P(00), P(10), P(01), P(11):

    >>> dist = DenseDistribution([[0.1, 0.2, 0.3, 0.4]])
    >>> dist.marginals()
    array([[0.6, 0.7]])
    >>> dist.mode()
    array([[1, 1]], dtype=int8)
    """

    def __init__(
        self,
        probabilities: Any,
        label_names: Iterable[Any] | None = None,
        *,
        normalise: bool = False,
        copy: bool = True,
    ) -> None:
        P = as_floats(as_table(probabilities), "probabilities")
        n_labels = P.shape[1].bit_length() - 1 if P.ndim == 2 else 0
        if n_labels < 1 or P.shape[1] != 2**n_labels:
            raise InputError(
                f"`probabilities` must have shape (n_samples, 2**n_labels), got shape {P.shape}. "
                "For a few labelsets use `LabelsetTable`, for marginals `IndependentLabels`."
            )
        super().__init__(P.shape[0], n_labels, label_names)
        totals, n_bad = np.empty(len(P)), np.empty(len(P), dtype=np.int64)
        for_rows(kernels.check_rows, len(P), P, into=[totals, n_bad])
        check_row_sums(totals, n_bad, P.dtype, normalise=normalise)
        self._P = P / totals[:, np.newaxis] if normalise else P.copy() if copy else P
        self._index = index_of(probabilities)

    @classmethod
    def from_trusted(cls, P: NDArray[Any], label_names: Iterable[Any] | None = None) -> Self:
        """Wrap rows that are known to be distributions, without a sweep to check them.

        Parameters
        ----------
        P
            (n, 2**L) probabilities in one piece, used as they are.
        label_names
            One for each label.

        Examples
        --------
        >>> DenseDistribution.from_trusted(np.full((3, 4), 0.25))
        DenseDistribution(n_samples=3, n_labels=2)
        """
        new = cls.__new__(cls)
        LabelsetDistribution.__init__(new, len(P), P.shape[1].bit_length() - 1, label_names)
        new._P = P
        return new

    def _take(self, rows: Rows) -> Self:
        # In one piece, as kernels are compiled for: every other row would compile them anew.
        return self.from_trusted(np.ascontiguousarray(self._P[rows]), self.label_names)

    def _marginals(self) -> Floats:
        marginals = np.empty((len(self), self.n_labels))
        for_rows(kernels.marginal_rows, len(self), self._P, into=[marginals])
        return np.minimum(marginals, 1.0, out=marginals)  # a sum may be a hair above

    def _log_prob(self, Y: Labelsets) -> Floats:
        return log(self._P[np.arange(len(self)), codes_of(Y)])

    def _profile_and_mode(self) -> tuple[Profile, Labelsets]:
        values, codes = np.empty((len(self), 4)), np.empty(len(self), dtype=np.int64)
        for_rows(dense_profile_rows, len(self), self._P, into=[values, codes])
        top, runner_up, entropy, collision = values.T.copy()
        profile = Profile.from_values(top, runner_up, entropy, collision, self.n_labels)
        return profile, from_codes(codes, self.n_labels)

    def _summary(self, metrics: Sequence[Metric], empty: float) -> Summary:
        profile, mode = self._profile_and_mode()
        values = map(Expected.exactly, self._expected_of_all(metrics, mode, empty))
        names = [metric.name for metric in metrics]
        return Summary(profile, mode, dict(zip(names, values, strict=True)))

    def _top(self, k: int) -> TopLabelsets:
        codes = np.empty((len(self), k), dtype=np.int64)
        for_rows(kernels.top_rows, len(self), self._P, into=[codes])
        probabilities = np.take_along_axis(self._P, codes, axis=1).astype(np.float64)
        return TopLabelsets(self._labelsets_of(codes), log(probabilities))

    def _sample(self, size: int, generator: np.random.Generator) -> Labelsets:
        codes = np.empty((len(self), size), dtype=np.int64)
        uniforms = generator.random((len(self), size))
        for_rows(kernels.sample_rows, len(self), self._P, uniforms, into=[codes])
        return self._labelsets_of(codes)

    def _labelsets_of(self, codes: Integers) -> Labelsets:
        return from_codes(codes.ravel(), self.n_labels).reshape(*codes.shape, self.n_labels)

    def _expected(self, metric: Metric, guesses: Guesses, empty: float) -> Expected:
        if metric in SIMPLE:
            return super()._expected(metric, guesses, empty)
        return self._expected_each([metric], guesses, empty)[0]

    def _expected_each(
        self, metrics: Sequence[Metric], guesses: Guesses, empty: float
    ) -> list[Expected]:
        others = [metric for metric in metrics if metric not in SIMPLE]
        columns = [self._expected_of_all(others, Y, empty) for Y in each_guess(guesses)]
        values = {m: np.stack(one, axis=1) for m, *one in zip(others, *columns, strict=True)}
        return [
            Expected.exactly(values[metric])
            if metric in values
            else self._expected(metric, guesses, empty)
            for metric in metrics
        ]

    def _expected_of_all(
        self, metrics: Sequence[Metric], Y_pred: Labelsets, empty: float
    ) -> list[Floats]:
        """Return several metrics' expectations from one table P(tp = a, fn = b) an instance."""
        if not metrics:
            return []
        overlap = np.empty((len(self), self.n_labels + 1, self.n_labels + 1))
        for_rows(kernels.overlap_rows, len(self), self._P, codes_of(Y_pred), into=[overlap])
        n_predicted = Y_pred.sum(axis=1)
        expected = [np.empty(len(self)) for _ in metrics]
        for k in np.unique(n_predicted):
            rows = n_predicted == k
            reachable = overlap[rows, : k + 1, : self.n_labels - k + 1]
            for metric, values in zip(metrics, expected, strict=True):
                table = metric.table(self.n_labels, k, empty=empty)
                values[rows] = (reachable * table).sum(axis=(1, 2))
        return expected

    def _size_marginals(self) -> Floats:
        by_size = np.empty((len(self), self.n_labels, self.n_labels))
        for_rows(kernels.size_rows, len(self), self._P, into=[by_size])
        return by_size

    def _probabilities(self) -> Floats:
        # The array itself, which may be large: read-only, so that nobody changes the answers.
        P = self._P.astype(np.float64, copy=False).view()
        P.flags.writeable = False
        return P

    def _temper(self, temperature: float) -> Self:
        # Of the largest, so that no temperature leaves nothing but zeros.
        P = self._P / self._P.max(axis=1, keepdims=True).astype(np.float64)
        P **= 1 / temperature
        P /= P.sum(axis=1, keepdims=True)
        return self.from_trusted(P, self.label_names)

    def _tempered_log_prob(self, Y: Labelsets) -> Callable[[float], Floats]:
        largest = self._P.max(axis=1, keepdims=True).astype(np.float64)
        logs = log(self._P / largest)
        of_truth = logs[np.arange(len(self)), codes_of(Y)]
        return lambda temperature: (
            of_truth / temperature - np.log(np.exp(logs / temperature).sum(axis=1))
        )

    def _best(self, metric: Metric, empty: float) -> tuple[Labelsets, Floats] | None:
        if not has_dense_best(metric, self.n_labels):
            return None
        if metric == JACCARD:
            best = self._best_jaccard(empty)
        else:
            best = np.empty(len(self), dtype=np.int64)
            table = _metric_of_every_count(metric, self.n_labels, empty)
            for_rows(kernels.best_by_pairs_rows, len(self), self._P, table, into=[best])
        return from_codes(best, self.n_labels), np.zeros(len(self))

    def _best_jaccard(self, empty: float) -> Integers:
        """Return codes: where bounds prove none, by a transform, in double precision if it must."""
        best, rule = self._prove_jaccard(empty), unit_interval(self.n_labels - 1)
        is_long = self.n_labels > SINGLE_PRECISION_BEYOND
        for precision in (np.float32, np.float64) if is_long else (np.float64,):
            if (best < 0).any():
                inputs = (empty, *(values.astype(precision) for values in rule))
                for_rows(kernels.best_jaccard_rows, len(self), self._P, *inputs, into=[best])
        return best

    def _prove_jaccard(self, empty: float) -> Integers:
        """Return the codes of the predictions that bounds prove the best under Jaccard, or -1.

        |y or p| is at least max(|y|, |p|), so a label is worth at most E[y_j / max(|y|, k)] in a
        prediction of k labels, and the k best labels bound all predictions of that size. The one
        with the largest bound is the best if it is worth more than the bounds of all other sizes,
        and of its own size with the next label instead of its last.
        """
        sizes, n = np.arange(1, self.n_labels + 1), np.arange(len(self))
        worth = self._size_marginals() @ (1.0 / np.maximum.outer(sizes, sizes))  # [i, label, k - 1]
        worth = np.swapaxes(worth, 1, 2)
        descending = -np.sort(-worth, axis=2)
        top = np.diagonal(np.cumsum(descending, axis=2), axis1=1, axis2=2)
        last = np.diagonal(descending, axis1=1, axis2=2)
        after = np.diagonal(descending, 1, axis1=1, axis2=2)
        bounds = np.column_stack([empty * self._P[:, 0], top])
        k = bounds.argmax(axis=1)
        guess = (worth[n, k - 1] >= last[n, k - 1, np.newaxis]) & (k > 0)[:, np.newaxis]
        guess = guess.astype(np.int8)
        swapped = np.pad(top[:, :-1] - last[:, :-1] + after, ((0, 0), (1, 1)), constant_values=-1.0)
        bounds[n, k] = swapped[n, k]  # there is one labelset with no label, and one with all
        value = self._expected_of_all([JACCARD], guess, empty)[0]
        return np.where(value - TIE > bounds.max(axis=1), codes_of(guess), -1)


_BEST_WITHOUT_PAIRS = frozenset({EXACT, HAMMING, F1})
"""Metrics whose best labelset follows from the mode, the marginals or `size_marginals`, in far less
time than from all pairs: `labelsure.decide` finds it so for all kinds."""


def has_dense_best(metric: Metric, n_labels: int) -> bool:
    """Whether a `DenseDistribution` has its own way for a metric and a number of labels."""
    by_pairs = metric not in _BEST_WITHOUT_PAIRS and n_labels <= _limits.ALL_PAIRS_LABELS
    return metric == JACCARD or by_pairs


def _metric_of_every_count(metric: Metric, n_labels: int, empty: float) -> Floats:
    """Return values[k, tp, fn]; what cannot happen stays 0."""
    values = np.zeros((n_labels + 1,) * 3)
    for k in range(n_labels + 1):
        table = metric.table(n_labels, k, empty=empty)
        values[k, : table.shape[0], : table.shape[1]] = table
    return values


Question = Callable[[Indices, DenseDistribution], Any]

SINGLE_PRECISION_BEYOND = 10
"""Labels up to which the transform takes less time than compiling it for single precision, too."""

JOINT_BYTES = 16  # for each labelset: its probability, and as much again for some questions


class DenseBlocks(LabelsetDistribution):
    """Distributions whose 2**L probabilities are made when they are asked for, some rows at a time.

    Every answer is that of a `DenseDistribution`, of which a block exists until the next one is
    made: memory is bounded, whatever the number of instances.

    Parameters
    ----------
    source
        The distributions themselves, which answer what needs no joint.
    write
        Takes instances and an array, to which it writes their probabilities.
    concurrent
        Whether several threads may do so at a time.
    n_kept
        How many of the most probable labelsets to keep of the first question, with the marginals;
        0 keeps nothing.
    """

    def __init__(
        self,
        source: LabelsetDistribution,
        write: Callable[[Indices, Floats], None],
        *,
        concurrent: bool = False,
        n_kept: int = 0,
    ) -> None:
        super().__init__(len(source), source.n_labels, source.label_names)
        self._source, self._write, self._concurrent = source, write, concurrent
        self._n_kept = min(n_kept, 2**self.n_labels)
        self._kept: tuple[TopLabelsets, Floats] | None = None

    @classmethod
    def of(cls, dist: LabelsetDistribution) -> Self:
        """Make blocks of what any distribution says of all labelsets."""

        def write(rows: Indices, P: Floats) -> None:
            P[:] = dist._take(rows)._probabilities()

        return cls(dist, write)

    def _blocks(self, start: int, stop: int) -> Iterator[tuple[Indices, DenseDistribution]]:
        """Yield instances with all their probabilities, as many at a time as fit into memory."""
        step = max(self._n_joints, _limits.CACHED_JOINT_BYTES >> (self.n_labels + 3))
        step = min(stop - start, step)
        # One array for all: memory that the system gives anew is as slow as filling it.
        P = np.empty((step, 2**self.n_labels))
        for first in range(start, max(stop, start + 1), max(step, 1)):
            rows = np.arange(first, min(first + step, stop))
            self._write(rows, P[: len(rows)])
            yield rows, DenseDistribution.from_trusted(P[: len(rows)], self.label_names)

    @property
    def _n_joints(self) -> int:
        """How many joints are made at a time: one for each thread, if there is memory."""
        room = _limits.DENSE_WORK_BYTES // (JOINT_BYTES << self.n_labels)
        return max(1, min(n_threads(), room))

    def _ask(self, question: Question, *, concurrent: bool = False) -> Any:
        """Ask block by block and put the answers together."""
        keeps = self._n_kept > 0 and self._kept is None
        progress = Progress(len(self))

        def ask(start: int, stop: int) -> list[tuple[Indices, Any]]:
            parts = []
            for rows, dense in self._blocks(start, stop):
                more = (dense._top(self._n_kept), dense._marginals()) if keeps else ()
                parts.append((rows, (question(rows, dense), *more)))
                progress.add(len(rows))
            return parts

        # Each thread makes joints and sums them up while they are in its cache.
        parts = map_rows(ask, len(self)) if concurrent else [ask(0, len(self))]
        found, *kept = join_answers([part for some in parts for part in some])
        if keeps:
            self._kept = kept[0], kept[1]
        return found

    def _take(self, rows: Rows) -> Self:
        places, new = np.arange(len(self))[rows], copy(self)
        new._write = lambda some, P: self._write(places[some], P)
        new._source, new._n_samples = self._source._take(rows), len(places)
        new._n_kept, new._kept = 0, None
        return new

    def _marginals(self) -> Floats:
        if self._kept is not None:
            return self._kept[1].copy()
        return self._ask(lambda _, dense: dense._marginals())

    def _top(self, k: int) -> TopLabelsets:
        if self._kept is not None and k <= self._n_kept:
            best = self._kept[0]
            return TopLabelsets(best.labelsets[:, :k].copy(), best.logs[:, :k].copy())
        return self._ask(lambda _, dense: dense._top(k))

    def _profile_and_mode(self) -> tuple[Profile, Labelsets]:
        found = self._summary([], 1.0)
        return found.profile, found.mode

    def _summary(self, metrics: Sequence[Metric], empty: float) -> Summary:
        concurrent = self._concurrent and self._n_joints == n_threads()
        return self._ask(lambda _, dense: dense._summary(metrics, empty), concurrent=concurrent)

    def _expected(self, metric: Metric, guesses: Guesses, empty: float) -> Expected:
        return self._expected_each([metric], guesses, empty)[0]

    def _expected_each(
        self, metrics: Sequence[Metric], guesses: Guesses, empty: float
    ) -> list[Expected]:
        given: Any = guesses

        def ask(rows: Indices, dense: DenseDistribution) -> tuple[Expected, ...]:
            return tuple(dense._expected_each(metrics, given[rows], empty))

        return list(self._ask(ask))

    def _size_marginals(self) -> Floats:
        return self._ask(lambda _, dense: dense._size_marginals())

    def _best(self, metric: Metric, empty: float) -> tuple[Labelsets, Floats] | None:
        if not has_dense_best(metric, self.n_labels):
            return None
        return self._ask(lambda _, dense: dense._best(metric, empty))

    def _probabilities(self) -> Floats:
        P = np.empty((len(self), 2**self.n_labels))
        self._write(np.arange(len(self)), P)
        return P

    # What needs no joint.

    def _log_prob(self, Y: Labelsets) -> Floats:
        return self._source._log_prob(Y)

    def _sample(self, size: int, generator: np.random.Generator) -> Labelsets:
        return self._source._sample(size, generator)

    def _temper(self, temperature: float) -> LabelsetDistribution:
        return self._source._temper(temperature)
