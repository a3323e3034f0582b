"""`TrellisDistribution`: each label depends on a few visited shortly before it; any number of them.

Section numbers are those of `docs/algorithms.md`.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Iterable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from labelsure import _limits
from labelsure._kernels import frontier_counts as counting
from labelsure._kernels import frontier_sweeps as kernels
from labelsure._kernels import unit_interval
from labelsure._kernels.maximum_sweeps import frontier_rows
from labelsure._kernels.threads import for_rows, n_threads
from labelsure._limits import check_size
from labelsure._typing import Floats, Indices, Integers, Labelsets, Rows
from labelsure.candidates import Profile, log
from labelsure.distributions._answers import Expected, MaxMarginals, Summary, TopLabelsets
from labelsure.distributions._bridge import LabelsetDistribution
from labelsure.distributions._probabilities import as_floats, check_unit_interval
from labelsure.errors import InputError, TooLargeError
from labelsure.labelsets import check_label_order, fill_with_lowest
from labelsure.metrics import EXACT, F1, HAMMING, JACCARD, Metric

MAX_PARENTS = 3
"""The left, the upper and the upper-left neighbour."""

ENTRY_BYTES = 32
"""What a labelset that waits in the search for the most probable ones takes: `top_rows`."""


class TrellisDistribution(LabelsetDistribution):
    """Distributions of labels that depend on a few others visited shortly before them.

    The labels of a grid visited row by row are the usual case: a label depends on its left and
    upper neighbours, so never on labels farther back than the grid is wide. How far back (the
    *memory* m) decides the cost: everything is exact, in time proportional to L 2**m for the
    profile, the mode, marginals and draws, and L**2 2**m for an expected Jaccard or F1 and for
    `size_marginals`. A metric of your own takes (k + 1)(L - k + 1)/2 passes of L 2**m for a
    prediction of k labels.

    Labelsets whose log-probabilities are within 1e-12 of each other count as equally probable; the
    mode and `top` then take the lowest code, whatever the order of the labels.

    Parameters
    ----------
    conditionals
        For each position an (n, 2**k) array of P(label = 1 | its k parents). Column c is the case
        in which the parents have the bits of c, the first parent being the lowest.
    parents
        For each position the earlier positions that its label depends on, at most three.
    order
        For each position the index of the label that is visited there.
    label_names
        One for each label, in the order of the labels (not of the positions).

    Examples
    --------
    Label 1 is visited first; label 0 is likely only where label 1 is set:

    >>> dist = TrellisDistribution([[[0.5]], [[0.1, 0.8]]], parents=[(), (0,)], order=[1, 0])
    >>> dist.marginals()
    array([[0.45, 0.5 ]])
    >>> dist.probabilities()
    array([[0.45, 0.05, 0.1 , 0.4 ]])
    >>> dist.mode()
    array([[0, 0]], dtype=int8)
    """

    _conditionals: Floats
    _shifts: Integers
    _order: Integers
    _memory: int

    def __init__(
        self,
        conditionals: Iterable[Any],
        parents: Iterable[Iterable[int]],
        order: Iterable[int],
        label_names: Iterable[Any] | None = None,
    ) -> None:
        self._order = check_label_order(order, name="order").astype(np.int64, copy=False)
        n_labels = len(self._order)
        positions = _check_parents(parents, n_labels)
        self._memory = max((j - p for j, some in enumerate(positions) for p in some), default=1)
        _check_frontier(n_labels, self._memory)
        self._conditionals = _check_conditionals(conditionals, positions)
        self._shifts = np.full((n_labels, MAX_PARENTS), kernels.NO_PARENT, dtype=np.int64)
        for j, some in enumerate(positions):
            self._shifts[j, : len(some)] = [self._memory - j + p for p in some]
        super().__init__(len(self._conditionals), n_labels, label_names)

    @property
    def memory(self) -> int:
        """How many positions back a label may depend on: the logarithm of the number of states."""
        return self._memory

    def _take(self, rows: Rows) -> Self:
        return self._with_conditionals(np.ascontiguousarray(self._conditionals[rows]), self._shifts)

    def _with_conditionals(self, conditionals: Floats, shifts: Integers) -> Self:
        new = type(self).__new__(type(self))
        new._conditionals, new._shifts = conditionals, shifts
        new._order, new._memory = self._order, self._memory
        LabelsetDistribution.__init__(new, len(new._conditionals), self.n_labels, self.label_names)
        return new

    @property
    def _network(self) -> tuple[Floats, Integers, Integers, int]:
        return self._conditionals, self._shifts, self._order, 2**self._memory

    def _by_label(self, by_position: NDArray[Any]) -> NDArray[Any]:
        """Reorder the last axis from positions to labels."""
        by_label = np.empty_like(by_position)
        by_label[..., self._order] = by_position
        return by_label

    def _sums(self) -> tuple[Floats, Floats]:
        """Return the marginals and, as columns, entropy and log collision."""
        marginals, values = np.empty((len(self), self.n_labels)), np.empty((len(self), 2))
        for_rows(kernels.sum_rows, len(self), self._network, into=[marginals, values])
        return self._by_label(marginals), values

    def _maxima(self) -> tuple[Labelsets, Floats]:
        """Return the mode and, as columns, its log-probability and the runner-up's."""
        mode, logs = np.empty((len(self), self.n_labels), dtype=np.int8), np.empty((len(self), 2))
        for_rows(kernels.mode_rows, len(self), self._network, into=[mode, logs])
        return self._by_label(mode), logs

    def _marginals(self) -> Floats:
        return self._sums()[0]

    def _max_marginals(self, log_at_least: float) -> MaxMarginals:
        maxima = np.empty((len(self), self.n_labels, 2))
        for_rows(frontier_rows, len(self), self._network, into=[maxima])
        by_label = np.empty_like(maxima)
        by_label[:, self._order] = maxima
        return MaxMarginals.exactly(by_label)

    def _mode(self) -> Labelsets:
        return self._maxima()[0]

    def _summary(self, metrics: list[Metric], empty: float) -> Summary:
        mode, logs = self._maxima()
        marginals, values = self._sums()
        (log_top, log_runner_up), (entropy, log_collision) = logs.T.copy(), values.T.copy()
        profile = Profile(log_top, log_runner_up, entropy, log_collision, self.n_labels)
        agreement = np.where(mode == 1, marginals, 1 - marginals).mean(axis=1)
        known = {EXACT: Expected.exactly(profile.top), HAMMING: Expected.exactly(agreement)}
        expected = {
            metric.name: known[metric] if metric in known else self._expected(metric, mode, empty)
            for metric in metrics
        }
        return Summary.of_mode(profile, mode, expected)

    def _log_prob(self, Y: Labelsets) -> Floats:
        values, p = self._conditionals_of(Y)
        return log(np.where(values == 1, p, 1 - p)).sum(axis=1)

    def _conditionals_of(self, Y: Labelsets) -> tuple[Labelsets, Floats]:
        """Return labelsets by position, and P(label = 1) there given those before it."""
        values = Y[:, self._order]
        columns = np.zeros(values.shape, dtype=np.intp)
        for parent, shift in enumerate(self._shifts.T):
            has = np.flatnonzero(shift != kernels.NO_PARENT)
            at = has - self._memory + shift[has]
            columns[:, has] += values[:, at].astype(np.intp) << parent
        p = np.take_along_axis(self._conditionals, columns[..., np.newaxis], axis=2)[..., 0]
        return values, p

    def _temper_links(self, power: float) -> Self:
        return self._with_conditionals(expit(power * logit(self._conditionals)), self._shifts)

    def _link_logits(self, Y: Labelsets) -> Floats:
        values, p = self._conditionals_of(Y)
        return np.where(values == 1, logit(p), -logit(p))[:, np.newaxis]

    def _temper(self, power: float) -> LabelsetDistribution:
        from labelsure.distributions._tempered_trellis import TemperedTrellis  # which is made of it

        return TemperedTrellis(self, power)

    def _raise_states(self, power: float) -> tuple[Self, Floats]:
        """Return P to a power as a trellis of whole states, and the log of each sum that it has."""
        by_state = np.empty((len(self), self.n_labels, 2**self._memory))
        log_totals = np.empty(len(self))
        for_rows(kernels.power_rows, len(self), self._network, power, into=[by_state, log_totals])
        shifts = np.full_like(self._shifts, kernels.WHOLE_STATE)
        return self._with_conditionals(by_state, shifts), log_totals

    def _top(self, k: int) -> TopLabelsets:
        n_entries = min(k * self.n_labels + 1, 2**self.n_labels)
        check_size(
            min(n_threads(), len(self)) * n_entries * ENTRY_BYTES,
            f"The search for the `k` most probable labelsets of {self.n_labels} labels",
            "Ask for fewer.",
        )
        labelsets = np.empty((len(self), k, self.n_labels), dtype=np.int8)
        logs = np.empty((len(self), k))
        for_rows(kernels.top_rows, len(self), self._network, n_entries, into=[labelsets, logs])
        labelsets = self._by_label(labelsets)
        for best, n_filled in zip(labelsets, np.isfinite(logs).sum(axis=1), strict=True):
            fill_with_lowest(best, int(n_filled))
        # Equally probable ones, in the order of their codes, must not seem to rise by rounding.
        return TopLabelsets(labelsets, np.exp(np.minimum.accumulate(logs, axis=1)))

    def _sample(self, size: int, generator: np.random.Generator) -> Labelsets:
        draws = np.empty((len(self), size, self.n_labels), dtype=np.int8)
        block = max(1, _limits.UNIFORM_NUMBERS // max(1, size * self.n_labels))
        for first in range(0, len(self), block):
            some = self._take(slice(first, first + block))
            uniforms = generator.random((len(some), size, self.n_labels))
            target = draws[first : first + block]
            for_rows(kernels.sample_rows, len(some), some._network, uniforms, into=[target])
        return draws

    def _expected_by_counts(self, metric: Metric, Y_pred: Labelsets, empty: float) -> Floats:
        """Return the mean of a function of the counts; a label that is -1, open, is in none."""
        expected = np.empty(len(self))
        n_predicted = (Y_pred == 1).sum(axis=1)
        for k in np.unique(n_predicted).tolist():
            rows = np.flatnonzero(n_predicted == k)
            some, predicted = self._take(rows), Y_pred[np.ix_(rows, self._order)]
            inputs = (some._network, predicted, *_points_of(metric, self.n_labels, k, empty))
            values = np.empty(len(rows))
            for_rows(counting.expected_rows, len(rows), *inputs, into=[values])
            expected[rows] = values
        return expected

    def _expected_hidden(self, metric: Metric, answers: Labelsets, empty: float) -> Expected:
        columns = np.swapaxes(answers, 0, 1)
        values = [self._expected_by_counts(metric, answer, empty) for answer in columns]
        return Expected.exactly(np.column_stack(values))

    def _expected_steps(self) -> Integers:
        # At each node of the integral all states move back over all labels; a move takes as long as
        # a hundred states, however few there are.
        n_nodes = len(unit_interval(self.n_labels - 1)[0])
        return np.full(len(self), self.n_labels * n_nodes * (2**self._memory + 100))

    def _size_marginals(self) -> Floats:
        """Return the inverse transform of E[y_j w**|y|] over the (L + 1)th roots of unity w."""
        n_points = (self.n_labels + 1) // 2 + 1
        weights = _rotations(np.arange(n_points), self.n_labels + 1)
        transform = np.empty((len(self), self.n_labels, n_points), dtype=np.complex128)
        for_rows(counting.size_rows, len(self), self._network, weights, into=[transform])
        by_size = np.empty((len(self), self.n_labels, self.n_labels))
        sizes = np.fft.irfft(transform, self.n_labels + 1, axis=2)[:, :, 1:]
        by_size[:, self._order] = np.maximum(sizes, 0.0)
        return by_size

    def _probabilities(self) -> Floats:
        P = np.ones((len(self), 1))
        codes = np.zeros(1, dtype=np.int64)
        states = np.zeros(1, dtype=np.int64)
        for j, label in enumerate(self._order):
            columns = sum((states >> shift & 1) << i for i, shift in enumerate(self._shifts[j]))
            p = self._conditionals[:, j, columns]
            P = np.concatenate([P * (1 - p), P * p], axis=1)
            codes = np.concatenate([codes, codes | 1 << label])
            states = np.concatenate([states >> 1, (states >> 1) + 2 ** (self._memory - 1)])
        by_code = np.empty_like(P)
        by_code[:, codes] = P
        return by_code


Points = tuple[Floats, Floats]
"""Weights (q, 3, 3) of a false negative, a true positive and an open label that is true at each
point, the last only from `_points_of`; coefficients (q, 2)."""


def _points_of(metric: Metric, n_labels: int, k: int, empty: float) -> Points:
    """Return where to evaluate the generating function of (tp, fn), and what to add up.

    Its value at weights (w, z) is E[w**fn z**tp], for a prediction of k labels.
    """
    if metric not in _QUOTIENTS:
        weights, coefficients = _roots_of_unity(metric.table(n_labels, k, empty=empty))
    elif k == 0:  # worth `empty` where no label is missed
        weights, coefficients = np.zeros((1, 2, 3)), np.array([[empty, 0.0]])
    else:
        weights, coefficients = _QUOTIENTS[metric](n_labels, k)
    # Whether an open label is true changes nothing. Its value, -1, is the index of this last row.
    one = np.broadcast_to([1.0, 0.0, 0.0], (len(weights), 1, 3))
    return np.concatenate([weights, one], axis=1), coefficients


def _jaccard_points(n_labels: int, k: int) -> Points:
    """E[tp / (k + fn)] is the integral over t of t**(k - 1) E[tp t**fn]. Section 5."""
    nodes, weights = unit_interval(n_labels - 1)
    return _value_and_derivative(nodes, np.ones_like(nodes), weights * nodes ** (k - 1))


def _f1_points(n_labels: int, k: int) -> Points:
    """E[2 tp / (k + tp + fn)] is the integral over t of 2 t**(k - 1) E[tp t**(tp + fn)]."""
    nodes, weights = unit_interval(n_labels + k - 1)
    return _value_and_derivative(nodes, nodes, 2 * weights * nodes ** (k - 1))


_QUOTIENTS: dict[Metric, Callable[[int, int], Points]] = {
    JACCARD: _jaccard_points,
    F1: _f1_points,
}
"""Metrics whose expectation is an integral over one variable instead of a sum over two counts."""


def _value_and_derivative(missed: Floats, hit: Floats, coefficients: Floats) -> Points:
    """Return the points at which each true positive counts hit * z, for the derivative at z = 1."""
    points = np.zeros((len(missed), 2, 3))
    points[:, 0, 0] = missed
    points[:, 1, 0] = points[:, 1, 2] = hit
    return points, np.column_stack([np.zeros_like(coefficients), coefficients])


def _roots_of_unity(values: Floats) -> Points:
    """Return the points that give the mean of values[tp, fn].

    With tp + (k + 1) fn as one count, P(count) is the inverse Fourier transform of the generating
    function, and so the mean is a sum over its products with the transform of the values. They are
    real, so the second half of the points is the conjugate of the first.
    """
    n_counts, n_hits = values.size, values.shape[0]
    transform = np.fft.rfft(values.T.ravel()) / n_counts
    transform[1 : (n_counts + 1) // 2] *= 2
    turns = np.arange(len(transform))
    points = [_rotations(n_hits * turns, n_counts), _rotations(turns, n_counts)]
    return np.stack(points, axis=1), np.column_stack([transform.real, transform.imag])


def _rotations(numerators: Indices, denominator: int) -> Floats:
    """Return the roots of unity exp(-2 pi i numerator / denominator) as weights (a, b, c)."""
    angle = -2 * np.pi * (numerators % denominator) / denominator
    return np.column_stack([np.cos(angle), -np.sin(angle), np.sin(angle)])


def _check_parents(parents: Iterable[Iterable[int]], n_labels: int) -> list[list[int]]:
    try:
        positions = [list(some) for some in parents]
    except TypeError:
        positions = []
    if len(positions) != n_labels:
        raise InputError(
            f"`parents` must have one sequence of positions for each of the {n_labels} positions, "
            f"got {reprlib.repr(parents)}. A label without parents has an empty one: `()`."
        )
    for j, some in enumerate(positions):
        if len(some) > MAX_PARENTS:
            raise InputError(
                f"`parents[{j}]` must have at most {MAX_PARENTS} positions, got {len(some)}. "
                "Keep the parents that matter most."
            )
        earlier = all(isinstance(p, (int, np.integer)) and 0 <= p < j for p in some)
        if not earlier or len(set(some)) < len(some):
            raise InputError(
                f"`parents[{j}]` must be distinct positions before {j}, got {some}. "
                "Parents are positions in `order`, not labels."
            )
    return positions


def _check_frontier(n_labels: int, memory: int) -> None:
    bytes_per_state = 9 * n_labels
    if bytes_per_state * 2**memory > _limits.FRONTIER_BYTES:
        allowed = (_limits.FRONTIER_BYTES // bytes_per_state).bit_length() - 1
        raise TooLargeError(
            f"`parents` reach back {memory} positions: with {n_labels} labels, 2**{memory} states "
            f"do not fit in the {_limits.FRONTIER_BYTES // 2**20} MiB that a thread may take. Use "
            f"parents at most {allowed} positions back: a grid of width {allowed}, or "
            f"{allowed - 1} with upper-left neighbours."
        )


def _check_conditionals(conditionals: Iterable[Any], parents: list[list[int]]) -> Floats:
    """Return the conditionals as one (n, L, columns) array, columns that are not used being 0."""
    tables = [as_floats(table, f"conditionals[{j}]") for j, table in enumerate(conditionals)]
    if len(tables) != len(parents):
        raise InputError(
            f"`conditionals` must have one array for each of the {len(parents)} positions, got "
            f"{len(tables)}. Its rows are the instances, its columns the ways the parents can be."
        )
    n_samples = tables[0].shape[0] if tables[0].ndim else 0
    packed = np.zeros((n_samples, len(tables), 2 ** max(map(len, parents))))
    for j, (table, some) in enumerate(zip(tables, parents, strict=True)):
        shape = (n_samples, 2 ** len(some))
        if table.shape != shape:
            raise InputError(
                f"`conditionals[{j}]` must have shape {shape}: a row for each instance, a column "
                f"for every way that its {len(some)} parents can be, got shape {table.shape}."
            )
        packed[:, j, : shape[1]] = check_unit_interval(
            table, f"conditionals[{j}]", fix="Pass probabilities, not logits."
        )
    return packed
