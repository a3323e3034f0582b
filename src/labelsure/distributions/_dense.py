"""`DenseDistribution`: all 2**L probabilities of each instance, written out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from labelsure._kernels import dense_sweeps as kernels
from labelsure._kernels.profile_sums import dense_profile_rows
from labelsure._kernels.threads import for_rows
from labelsure._runtime import limits as _limits
from labelsure._runtime.typing import Floats, Integers, Labelsets, Rows
from labelsure.distributions._answers import MaxMarginals, Summary, TopLabelsets
from labelsure.distributions._bridge import LabelsetDistribution
from labelsure.distributions._probabilities import as_floats, check_row_sums
from labelsure.distributions._reciprocals import unit_interval
from labelsure.distributions.candidates import Profile, log
from labelsure.errors import InputError
from labelsure.labelsets.rows import as_table, codes_of, from_codes, index_of
from labelsure.metrics.registry import EXACT, F1, HAMMING, JACCARD, Metric


class DenseDistribution(LabelsetDistribution):
    """Distributions given by all their probabilities.

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
                "`probabilities` must have shape (n_samples, 2**n_labels), a column for every "
                f"labelset in the order of the codes, got shape {P.shape}. For a few labelsets "
                "use `LabelsetTable`, for marginals `IndependentLabels`."
            )
        super().__init__(P.shape[0], n_labels, label_names)
        totals, n_bad = np.empty(len(P)), np.empty(len(P), dtype=np.int64)
        for_rows(kernels.check_rows, len(P), P, into=[totals, n_bad])
        check_row_sums(totals, n_bad, P.dtype, name="probabilities", normalise=normalise)
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

    def _max_marginals(self, log_at_least: float) -> MaxMarginals:
        maxima = np.empty((len(self), self.n_labels, 2))
        for_rows(kernels.maximum_rows, len(self), self._P, into=[maxima])
        return MaxMarginals.exactly(log(maxima))

    def _log_prob(self, Y: Labelsets) -> Floats:
        return log(self._P[np.arange(len(self)), codes_of(Y)])

    def _summary(self, metrics: list[Metric], empty: float) -> Summary:
        values, codes = np.empty((len(self), 4)), np.empty(len(self), dtype=np.int64)
        for_rows(dense_profile_rows, len(self), self._P, into=[values, codes])
        top, runner_up, entropy, collision = values.T.copy()
        profile = Profile.from_values(top, runner_up, entropy, collision, self.n_labels)
        mode = from_codes(codes, self.n_labels)
        expected = self._expected_of_all(metrics, mode, empty)
        return Summary(profile, mode, {m.name: e for m, e in zip(metrics, expected, strict=True)})

    def _top(self, k: int) -> TopLabelsets:
        codes = np.empty((len(self), k), dtype=np.int64)
        for_rows(kernels.top_rows, len(self), self._P, into=[codes])
        codes.sort(axis=1)  # equally probable ones stay in this order
        probabilities = np.take_along_axis(self._P, codes, axis=1).astype(np.float64)
        order = np.argsort(-probabilities, axis=1, kind="stable")
        labelsets = self._labelsets_of(np.take_along_axis(codes, order, axis=1))
        return TopLabelsets(labelsets, log(np.take_along_axis(probabilities, order, axis=1)))

    def _sample(self, size: int, generator: np.random.Generator) -> Labelsets:
        codes = np.empty((len(self), size), dtype=np.int64)
        uniforms = generator.random((len(self), size))
        for_rows(kernels.sample_rows, len(self), self._P, uniforms, into=[codes])
        return self._labelsets_of(codes)

    def _labelsets_of(self, codes: Integers) -> Labelsets:
        return from_codes(codes.ravel(), self.n_labels).reshape(*codes.shape, self.n_labels)

    def _expected_by_counts(self, metric: Metric, Y_pred: Labelsets, empty: float) -> Floats:
        return self._expected_of_all([metric], Y_pred, empty)[0]

    def _expected_of_all(
        self, metrics: list[Metric], Y_pred: Labelsets, empty: float
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

    def _best(self, metric: Metric, empty: float) -> Labelsets | None:
        if not has_dense_best(metric, self.n_labels):
            return None
        best = np.empty(len(self), dtype=np.int64)
        kernel, arguments = _BEST_ROWS.get(metric, _compare_all_pairs)(metric, self.n_labels, empty)
        for_rows(kernel, len(self), self._P, *arguments, into=[best])
        return from_codes(best, self.n_labels)


Kernel = tuple[Callable[..., None], tuple[Any, ...]]
"""A kernel and its arguments between the probabilities and the codes that it writes."""


def _transform_jaccard(metric: Metric, n_labels: int, empty: float) -> Kernel:
    return kernels.best_jaccard_rows, (empty, *unit_interval(n_labels - 1))


def _compare_all_pairs(metric: Metric, n_labels: int, empty: float) -> Kernel:
    return kernels.best_by_pairs_rows, (_metric_of_every_count(metric, n_labels, empty),)


_BEST_ROWS: dict[Metric, Callable[[Metric, int, float], Kernel]] = {JACCARD: _transform_jaccard}
"""Metrics whose best labelset is found for any number of labels; others need all pairs."""

_BEST_WITHOUT_PAIRS = frozenset({EXACT, HAMMING, F1})
"""Metrics whose best labelset follows from the mode, the marginals or `size_marginals`, in far less
time than from all pairs: `labelsure.decide` finds it so for all kinds."""


def has_dense_best(metric: Metric, n_labels: int) -> bool:
    """Whether `DenseDistribution.best` has its own way for a metric and a number of labels."""
    by_pairs = metric not in _BEST_WITHOUT_PAIRS and n_labels <= _limits.ALL_PAIRS_LABELS
    return metric in _BEST_ROWS or by_pairs


def _metric_of_every_count(metric: Metric, n_labels: int, empty: float) -> Floats:
    """Return values[k, tp, fn]; what cannot happen stays 0."""
    values = np.zeros((n_labels + 1,) * 3)
    for k in range(n_labels + 1):
        table = metric.table(n_labels, k, empty=empty)
        values[k, : table.shape[0], : table.shape[1]] = table
    return values
