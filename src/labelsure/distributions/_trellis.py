"""`TrellisDistribution`: each label depends on a few visited shortly before it; any number of them.

Formulas: `docs/understand/mathematics.md`, "Trellises".
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, logit

from labelsure._kernels import trellis_counts as counting
from labelsure._kernels import trellis_sweeps as kernels
from labelsure._kernels.threads import for_rows, n_threads
from labelsure._runtime import limits as _limits
from labelsure._runtime.limits import check_size
from labelsure._runtime.typing import (
    Array,
    Floats,
    Indices,
    Integers,
    LabelNames,
    Labelsets,
    Mask,
    Names,
    Rows,
)
from labelsure.distributions._answers import (
    Expected,
    Guesses,
    Summary,
    TopLabelsets,
    are_flips,
    each_guess,
)
from labelsure.distributions._base import SIMPLE, LabelsetDistribution
from labelsure.distributions._probabilities import (
    as_floats,
    check_unit_interval,
    log_prob_of_logits,
)
from labelsure.distributions._reciprocals import sum_of_powers
from labelsure.distributions.candidates import Profile, log
from labelsure.errors import InputError, TooLargeError
from labelsure.labelsets.codes import fill_with_lowest
from labelsure.labelsets.label_names import check_label_order
from labelsure.metrics.registry import EXACT, F1, HAMMING, JACCARD, Metric

FIX = "Pass probabilities, not logits."

MAX_PARENTS = 3
"""The left, the upper and the upper-left neighbour."""


def check_parents(parents: Iterable[Iterable[int]], n_labels: int) -> list[list[int]]:
    try:
        positions = [list(some) for some in parents]
    except TypeError:
        positions = []
    if len(positions) != n_labels:
        raise InputError(
            f"`parents` must have a sequence for each of the {n_labels} positions, empty for no "
            f"parents, got {reprlib.repr(parents)}."
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


def check_frontier(n_labels: int, memory: int) -> None:
    bytes_per_state = 9 * n_labels
    if bytes_per_state * 2**memory > _limits.FRONTIER_BYTES:
        allowed = (_limits.FRONTIER_BYTES // bytes_per_state).bit_length() - 1
        raise TooLargeError(
            f"`parents` reach back {memory} positions: with {n_labels} labels, 2**{memory} states "
            f"do not fit in the {_limits.FRONTIER_BYTES // 2**20} MiB that a thread may take. Use "
            f"parents at most {allowed} positions back: a grid of width {allowed}, or "
            f"{allowed - 1} with upper-left neighbours."
        )


def pack_conditionals(conditionals: Iterable[object], parents: list[list[int]]) -> Floats:
    """Conditionals as one (n, L, columns) array, columns that are not used being 0."""
    tables = [as_floats(table, f"conditionals[{j}]") for j, table in enumerate(conditionals)]
    if len(tables) != len(parents):
        raise InputError(
            f"`conditionals` must have one array for each of the {len(parents)} positions, got "
            f"{len(tables)}."
        )
    n_samples = tables[0].shape[0] if tables[0].ndim else 0
    packed = np.zeros((n_samples, len(tables), 2 ** max(map(len, parents))))
    for j, (table, some) in enumerate(zip(tables, parents, strict=True)):
        shape = (n_samples, 2 ** len(some))
        if table.shape != shape:
            raise InputError(
                f"`conditionals[{j}]` must have shape {shape}, a column for each state of its "
                f"{len(some)} parents, got shape {table.shape}."
            )
        packed[:, j, : shape[1]] = check_unit_interval(table, f"conditionals[{j}]", fix=FIX)
    return packed


Points = tuple[Floats, Floats]
"""Weights (q, 2, 3) of a false negative and a true positive at each point, coefficients (q, 2)."""


def join_points(metrics: Sequence[Metric], n_labels: int, k: int, empty: float) -> Points:
    """Points of several metrics, with coefficients (q, metrics, 2)."""
    points = [_points_of(metric, n_labels, k, empty) for metric in metrics]
    coefficients = np.zeros((sum(len(weights) for weights, _ in points), len(metrics), 2))
    first = 0
    for column, (weights, own) in enumerate(points):
        coefficients[first : first + len(weights), column] = own
        first += len(weights)
    return np.concatenate([weights for weights, _ in points]), coefficients


def _points_of(metric: Metric, n_labels: int, k: int, empty: float) -> Points:
    """Points at which to evaluate the generating function of (tp, fn), with coefficients.

    Its value at weights (w, z) is E[w**fn z**tp], for a prediction of k labels.
    """
    if metric not in _QUOTIENTS:
        return _roots_of_unity(metric.table(n_labels, k, empty=empty))
    if k == 0:  # worth `empty` where no label is missed
        return np.zeros((1, 2, 3)), np.array([[empty, 0.0]])
    return _QUOTIENTS[metric](n_labels, k)


def _jaccard_points(n_labels: int, k: int) -> Points:
    """E[tp / (k + fn)] is the sum over t of c t**(k - first) E[tp t**fn]."""
    nodes, coefficients = sum_of_powers(k, n_labels)
    return _weigh(nodes, np.ones_like(nodes)), _take_derivative(coefficients)


def _f1_points(n_labels: int, k: int) -> Points:
    """E[2 tp / (k + tp + fn)] is the sum over t of 2 c t**(k - first) E[tp t**(tp + fn)]."""
    # Where there is a true positive the labelset has a label: the least denominator is k + 1.
    nodes, coefficients = sum_of_powers(k + 1, k + n_labels)
    return _weigh(nodes, nodes), _take_derivative(2 * coefficients / nodes)


_QUOTIENTS: dict[Metric, Callable[[int, int], Points]] = {
    JACCARD: _jaccard_points,
    F1: _f1_points,
}
"""Metrics whose expectation is a sum over points on a line instead of one over two counts."""


def _weigh(missed: Floats, hit: Floats) -> Floats:
    """Weights by which a true positive counts hit * z, with the derivative at z = 1."""
    weights = np.zeros((len(missed), 2, 3))
    weights[:, 0, 0] = missed
    weights[:, 1, 0] = weights[:, 1, 2] = hit
    return weights


def _take_derivative(coefficients: Floats) -> Floats:
    """Coefficients of both parts of a dual number, where only the derivative counts."""
    return np.column_stack([np.zeros_like(coefficients), coefficients])


def points_of_flips(n_labels: int, k: int) -> tuple[Floats, Floats, Floats]:
    """Nodes t, coefficients c and weights at each t for the Jaccard of k - 1, k and k + 1 labels.

    The sum over t of c t**(u - max(1, k - 1)) is 1/u for every denominator that these can have.
    """
    nodes, coefficients = sum_of_powers(max(1, k - 1), n_labels)
    return nodes, coefficients, _weigh(nodes, np.ones_like(nodes))


def jaccard_of_flips(
    nodes: Floats, coefficients: Floats, totals: Floats, with_label: Floats, is_set: Mask
) -> Floats:
    """Expected Jaccard of predictions of k labels and of each with a label flipped.

    A label that is put in is no longer missed, one that is taken out may be: at every t all these
    follow from E[t**fn] and E[tp t**fn], over all labelsets and over those with that label.

    Returns
    -------
    (n, 1 + L) values, meaningless for the empty labelset.
    """
    k = int(is_set[0].sum())
    powers = coefficients * nodes ** (k - max(1, k - 1))
    value, derivative = with_label[..., 0], with_label[..., 1]
    without = totals[:, np.newaxis, :, 1] - derivative
    put_in = (without + (derivative + value) / nodes) @ (powers * nodes)
    taken_out = (without + (derivative - value) * nodes) @ (powers / nodes)
    return np.column_stack([totals[..., 1] @ powers, np.where(is_set, taken_out, put_in)])


def _roots_of_unity(values: Floats) -> Points:
    """Points that give the mean of values[tp, fn], by a discrete Fourier transform.

    With tp + (k + 1) fn as one count, P(count) is the inverse Fourier transform of the generating
    function, and so the mean is a sum over its products with the transform of the values. They are
    real, so the second half of the points is the conjugate of the first.
    """
    n_counts, n_hits = values.size, values.shape[0]
    transform = np.fft.rfft(values.T.ravel()) / n_counts
    transform[1 : (n_counts + 1) // 2] *= 2
    turns = np.arange(len(transform))
    points = [rotations(n_hits * turns, n_counts), rotations(turns, n_counts)]
    return np.stack(points, axis=1), np.column_stack([transform.real, transform.imag])


def rotations(numerators: Indices, denominator: int) -> Floats:
    """Roots of unity exp(-2 pi i numerator / denominator) as weights (a, b, c)."""
    angle = -2 * np.pi * (numerators % denominator) / denominator
    return np.column_stack([np.cos(angle), -np.sin(angle), np.sin(angle)])


AUXILIARY = 2
"""Stands for an auxiliary position in labelsets by position, which counts as no label."""

UNCOUNTED = np.array([1.0, 0.0, 0.0])
"""Weight of an auxiliary position in generating functions."""

ENTRY_BYTES = 32
"""Bytes of a heap entry of `top_rows`."""


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

    _has_conditionals = True

    def __init__(
        self,
        conditionals: Iterable[ArrayLike],
        parents: Iterable[Iterable[int]],
        order: Iterable[int],
        label_names: Names = None,
    ) -> None:
        self._order = check_label_order(order, name="order").astype(np.int64, copy=False)
        n_labels = len(self._order)
        positions = check_parents(parents, n_labels)
        self._keep_parents(positions)
        self._conditionals = pack_conditionals(conditionals, positions)
        super().__init__(len(self._conditionals), n_labels, label_names)

    @classmethod
    def with_auxiliary(
        cls,
        conditionals: Floats,
        parents: Sequence[Sequence[int]],
        order: Indices,
        n_labels: int,
        label_names: LabelNames = None,
    ) -> Self:
        """Trellis with auxiliary positions, whose value their parents determine.

        Parameters
        ----------
        conditionals
            (n, P, columns) as `pack_conditionals` returns them; 0 or 1 at auxiliary positions.
        parents
            For each of the P positions at most three earlier ones.
        order
            (P,) the label at each position, -1 at auxiliary ones.
        n_labels, label_names
            The number of labels and their names.
        """
        new = cls.__new__(cls)
        new._order, new._conditionals = order, conditionals
        new._keep_parents(parents)
        LabelsetDistribution.__init__(new, len(conditionals), n_labels, label_names)
        return new

    def _keep_parents(self, positions: Sequence[Sequence[int]]) -> None:
        """Set the bit of the state that each parent is."""
        self._memory = max((j - p for j, some in enumerate(positions) for p in some), default=1)
        check_frontier(len(positions), self._memory)
        self._shifts = np.full((len(positions), MAX_PARENTS), kernels.NO_PARENT, dtype=np.int64)
        for j, some in enumerate(positions):
            self._shifts[j, : len(some)] = [self._memory - j + p for p in some]

    @property
    def memory(self) -> int:
        """Largest distance to a parent, in positions: log2 of the number of states."""
        return self._memory

    def _take(self, rows: Rows) -> Self:
        return self._with_conditionals(np.ascontiguousarray(self._conditionals[rows]))

    def _with_conditionals(self, conditionals: Floats) -> Self:
        new = copy(self)
        new._conditionals, new._n_samples, new._index = conditionals, len(conditionals), None
        return new

    @property
    def _network(self) -> tuple[Floats, Integers, Integers, int]:
        return self._conditionals, self._shifts, self._order, 2**self._memory

    @property
    def _has_label(self) -> Mask:
        return self._order >= 0

    def _by_label(self, by_position: Array) -> Array:
        """Reorder the last axis from positions to labels, without auxiliary positions."""
        by_label = np.empty((*by_position.shape[:-1], self.n_labels), dtype=by_position.dtype)
        by_label[..., self._order[self._has_label]] = by_position[..., self._has_label]
        return by_label

    def _by_position(self, Y: Labelsets) -> Labelsets:
        """Labelsets by position, `AUXILIARY` where there is no label."""
        return np.where(self._has_label, Y[:, self._order], np.int8(AUXILIARY))

    def _sums(self) -> tuple[Floats, Floats]:
        """Marginals, (n, L), and entropy and log collision, (n, 2)."""
        marginals, values = np.empty((len(self), len(self._order))), np.empty((len(self), 2))
        for_rows(kernels.forward_rows, len(self), self._network, into=[marginals, values])
        return self._by_label(marginals), values

    def _maxima(self) -> tuple[Labelsets, Floats]:
        """Mode, (n, L), and its log-probability and the runner-up's, (n, 2)."""
        mode = np.empty((len(self), len(self._order)), dtype=np.int8)
        logs = np.empty((len(self), 2))
        for_rows(kernels.mode_rows, len(self), self._network, into=[mode, logs])
        return self._by_label(mode), logs

    def _marginals(self) -> Expected:
        return Expected.exactly(self._sums()[0])

    def _mode(self) -> Labelsets:
        return self._maxima()[0]

    def _sweep(self) -> tuple[Profile, Labelsets, Floats]:
        """Profile, mode and marginals."""
        mode, logs = self._maxima()
        marginals, values = self._sums()
        (log_top, log_runner_up), (entropy, log_collision) = logs.T.copy(), values.T.copy()
        profile = Profile(log_top, log_runner_up, entropy, log_collision, self.n_labels)
        return profile, mode, marginals

    def _summary(self, metrics: Sequence[Metric], empty: float) -> Summary:
        profile, mode, marginals = self._sweep()
        agreement = np.where(mode == 1, marginals, 1 - marginals).mean(axis=1)
        known = {EXACT: profile.top, HAMMING: agreement}
        others = [metric for metric in metrics if metric not in known]
        if others:
            known |= zip(others, self._expected_by_points(others, mode, empty).T, strict=True)
        expected = {metric.name: Expected.exactly(known[metric]) for metric in metrics}
        return Summary(profile, mode, expected)

    def _log_prob(self, Y: Labelsets) -> Floats:
        values, p = self._conditionals_of(Y)
        return log(np.where(values == 1, p, 1 - p)).sum(axis=1)

    def _conditionals_of(self, Y: Labelsets) -> tuple[Labelsets, Floats]:
        """Labelsets by position, and P(label = 1) there given those before it."""
        values = self._by_position(Y)
        for j in np.flatnonzero(~self._has_label).tolist():
            column = self._columns(values, [j])
            values[:, j] = np.take_along_axis(self._conditionals[:, j], column, axis=1)[:, 0]
        columns = self._columns(values, range(len(self._order)))[..., np.newaxis]
        return values, np.take_along_axis(self._conditionals, columns, axis=2)[..., 0]

    def _columns(self, values: Labelsets, positions: Sequence[int]) -> Indices:
        """Columns of the conditionals that the values before some positions select."""
        columns = np.zeros((len(values), len(positions)), dtype=np.intp)
        for parent, shift in enumerate(self._shifts[positions].T):
            has = np.flatnonzero(shift != kernels.NO_PARENT)
            at = np.asarray(positions)[has] - self._memory + shift[has]
            columns[:, has] += values[:, at].astype(np.intp) << parent
        return columns

    def _temper(self, temperature: float) -> Self:
        return self._with_conditionals(expit(logit(self._conditionals) / temperature))

    def _tempered_log_prob(self, Y: Labelsets) -> Callable[[float], Floats]:
        values, p = self._conditionals_of(Y)
        logits = np.where(values == 1, logit(p), -logit(p))
        return lambda temperature: log_prob_of_logits(logits / temperature)

    def _top(self, k: int) -> TopLabelsets:
        n_entries = min(k * self.n_labels + 1, 2**self.n_labels)
        check_size(
            min(n_threads(), len(self)) * n_entries * ENTRY_BYTES,
            f"The search for the `k` most probable labelsets of {self.n_labels} labels",
            "Ask for fewer.",
        )
        labelsets = np.empty((len(self), k, len(self._order)), dtype=np.int8)
        logs = np.empty((len(self), k))
        for_rows(kernels.top_rows, len(self), self._network, n_entries, into=[labelsets, logs])
        labelsets = self._by_label(labelsets)
        fill_with_lowest(labelsets, np.isfinite(logs).sum(axis=1))
        # Equally probable ones, in the order of their codes, must not seem to rise by rounding.
        return TopLabelsets(labelsets, np.minimum.accumulate(logs, axis=1))

    def _sample(self, size: int, generator: np.random.Generator) -> Labelsets:
        draws = np.empty((len(self), size, self.n_labels), dtype=np.int8)
        uniforms = generator.random(draws.shape)
        for_rows(kernels.sample_rows, len(self), self._network, uniforms, into=[draws])
        return draws

    def _expected(
        self, metrics: Sequence[Metric], guesses: Guesses, empty: float
    ) -> list[Expected]:
        return [self._expect(metric, guesses, empty) for metric in metrics]

    def _expect(self, metric: Metric, guesses: Guesses, empty: float) -> Expected:
        if metric in SIMPLE:
            return self._simple(metric, guesses)
        if metric == JACCARD and are_flips(np.asarray(guesses)):
            return Expected.exactly(self._jaccard_of_flips(np.asarray(guesses)[:, 0], empty))
        columns = [self._expected_by_points([metric], Y, empty) for Y in each_guess(guesses)]
        return Expected.exactly(np.concatenate(columns, axis=1))

    def _expected_by_points(
        self, metrics: Sequence[Metric], Y_pred: Labelsets, empty: float
    ) -> Floats:
        """Means of several metrics, (n, metrics)."""
        expected = np.empty((len(self), len(metrics)))
        for k, rows in _rows_by_size(Y_pred):
            weights, coefficients = join_points(metrics, self.n_labels, k, empty)
            values = np.empty((len(rows), len(metrics)))
            predicted = self._by_position(Y_pred[rows])
            inputs = (self._take(rows)._network, predicted, _count(weights), coefficients)
            for_rows(counting.expected_rows, len(rows), *inputs, into=[values])
            expected[rows] = values
        return expected

    def _jaccard_of_flips(self, Y_pred: Labelsets, empty: float) -> Floats:
        """Expected Jaccard of labelsets and of each with a label flipped, (n, 1 + L)."""
        n_labels = self.n_labels
        expected = np.empty((len(self), 1 + n_labels))
        of_nothing = empty * np.exp(self._log_prob(np.zeros_like(Y_pred)))
        for k, rows in _rows_by_size(Y_pred):
            nodes, coefficients, weights = points_of_flips(n_labels, k)
            sums = self._take(rows)._joint_means(Y_pred[rows], weights, square=0.0)
            of_flips = jaccard_of_flips(nodes, coefficients, *sums, Y_pred[rows] == 1)
            expected[rows, 0] = of_flips[:, 0] if k else of_nothing[rows]
            flipped = of_flips[:, 1:]
            if k == 1:
                flipped = np.where(Y_pred[rows] == 1, of_nothing[rows, np.newaxis], flipped)
            expected[rows, 1:] = flipped
        return expected

    def _joint_means(
        self, Y_pred: Labelsets, weights: Floats, *, square: float
    ) -> tuple[Floats, Floats]:
        """E[w**fn z**tp] at each point, (n, q, 2), and by label with y_j = 1."""
        totals = np.empty((len(self), len(weights), 2))
        with_label = np.empty((len(self), len(self._order), len(weights), 2))
        inputs = (self._network, self._by_position(Y_pred), _count(weights), square)
        for_rows(counting.joint_rows, len(self), *inputs, into=[totals, with_label])
        by_label = np.empty((len(self), self.n_labels, len(weights), 2))
        by_label[:, self._order[self._has_label]] = with_label[:, self._has_label]
        return totals, by_label

    def _covariance_sums(self) -> Floats:
        marginals = np.ascontiguousarray(self._sums()[0][:, self._order])
        sums = np.empty(marginals.shape)
        for_rows(kernels.covariance_rows, len(self), self._network, marginals, into=[sums])
        return self._by_label(sums)

    def _size_marginals(self) -> Floats:
        """Inverse Fourier transform of E[y_j w**|y|] over the (L + 1)th roots of unity w."""
        n_points = (self.n_labels + 1) // 2 + 1
        points = rotations(np.arange(n_points), self.n_labels + 1)
        weights = np.repeat(points[:, np.newaxis], 2, axis=1)
        nothing = np.zeros((len(self), self.n_labels), dtype=np.int8)
        transform = self._joint_means(nothing, weights, square=-1.0)[1].view(np.complex128)
        sizes = np.fft.irfft(transform[..., 0], self.n_labels + 1, axis=2)[:, :, 1:]
        return np.maximum(sizes, 0.0)

    def _probabilities(self) -> Floats:
        P = np.ones((len(self), 1))
        codes = np.zeros(1, dtype=np.int64)
        states = np.zeros(1, dtype=np.int64)
        for j, label in enumerate(self._order):
            columns = sum((states >> shift & 1) << i for i, shift in enumerate(self._shifts[j]))
            p = self._conditionals[:, j, columns]
            if label < 0:
                values = (p[:1] > 0).any(axis=0)  # of all instances
                states = (states >> 1) + values * 2 ** (self._memory - 1)
                continue
            P = np.concatenate([P * (1 - p), P * p], axis=1)
            codes = np.concatenate([codes, codes | 1 << label])
            states = np.concatenate([states >> 1, (states >> 1) + 2 ** (self._memory - 1)])
        by_code = np.empty_like(P)
        by_code[:, codes] = P
        return by_code


def _count(weights: Floats) -> Floats:
    """Weights (q, 3, 3) of a false negative, a true positive and an auxiliary position."""
    return np.concatenate([weights, np.broadcast_to(UNCOUNTED, (len(weights), 1, 3))], axis=1)


def _rows_by_size(Y_pred: Labelsets) -> Iterator[tuple[int, Indices]]:
    """Distinct numbers of predicted labels, each with its rows."""
    n_predicted = Y_pred.sum(axis=1)
    for k in np.unique(n_predicted).tolist():
        yield k, np.flatnonzero(n_predicted == k)
