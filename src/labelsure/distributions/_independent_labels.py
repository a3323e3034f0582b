"""`IndependentLabels`, and the closed forms that it shares with `SparseIndependentLabels`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit

from labelsure._runtime import limits as _limits
from labelsure._runtime.limits import check_size, cut_rows
from labelsure._runtime.typing import (
    Array,
    Floats,
    Indices,
    Labelsets,
    LabelsetsLike,
    Mask,
    Names,
    Rows,
)
from labelsure.distributions._answers import (
    Best,
    Expected,
    Guesses,
    Optimum,
    Summary,
    TopLabelsets,
    each_guess,
)
from labelsure.distributions._base import LabelsetDistribution
from labelsure.distributions._listed_labels import BEST_SIZES, ListedLabels, UnlistedLabels
from labelsure.distributions._probabilities import (
    as_floats,
    check_unit_interval,
    log_prob_of_logits,
)
from labelsure.distributions.candidates import Profile
from labelsure.errors import InputError
from labelsure.labelsets.codes import fill_with_lowest
from labelsure.labelsets.foreign import index_of
from labelsure.labelsets.names import order_columns
from labelsure.metrics.registry import EXACT, Metric

WAITING_BYTES = 512
"""Memory of the search for the most probable labelsets for each of them: two entries of a heap,
with the flips of each."""

FLIP_BYTES = 128
"""Memory of the labels that change from the mode to one of the most probable labelsets."""


class Independent(LabelsetDistribution):
    """Closed forms of independent labels, for dense and for sparse marginals."""

    _is_independent = True
    _p: Any
    _logits: Any = None

    @property
    @abstractmethod
    def listed(self) -> ListedLabels:
        """The labels as their closed forms need them."""

    @abstractmethod
    def _mark(self, Y: LabelsetsLike) -> tuple[ListedLabels, NDArray[np.int8]]:
        """The labels, and for each of them whether a labelset has it."""

    @abstractmethod
    def _rows_of(self, is_chosen: Mask) -> Labelsets:
        """Labelsets of the chosen ones among the listed labels."""

    def _log_prob(self, Y: Labelsets) -> Floats:
        listed, marks = self._mark(Y)
        return listed.log_prob(marks)

    def _summary(self, metrics: Sequence[Metric], empty: float) -> Summary:
        profile = Profile(*self.listed.profile(), self.n_labels)
        return self._summarise(profile, self._mode(), metrics, empty)

    def _mode(self) -> Labelsets:
        return self._rows_of(self.listed.is_likely)

    def _expected(
        self, metrics: Sequence[Metric], guesses: Guesses, empty: float
    ) -> list[Expected]:
        return [self._expect(metric, guesses, empty) for metric in metrics]

    def _expect(self, metric: Metric, guesses: Guesses, empty: float) -> Expected:
        if metric == EXACT:
            return self._simple(metric, guesses)
        marked = map(self._mark, each_guess(guesses))
        columns = [listed.expected(metric, marks, empty, self.n_labels) for listed, marks in marked]
        return Expected.exactly(np.stack(columns, axis=1))

    def _best(self, metric: Metric, empty: float) -> Iterator[tuple[Indices, Best]]:
        """Most probable labels, as many as are best, where that is optimal."""
        if metric not in BEST_SIZES:
            yield from super()._best(metric, empty)
            return
        is_chosen, gaps = self.listed.choose(metric, empty)
        yield np.arange(len(self)), Optimum(self._rows_of(is_chosen), gaps)

    # Quantities of every single label need dense rows, which must fit in memory.

    def _marginals(self) -> Expected:
        return Expected.exactly(self._with_dense_rows()._p.astype(np.float64))

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
        marginals = self._marginals().value
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

    def __init__(self, marginals: ArrayLike, label_names: Names = None) -> None:
        values, names = order_columns(marginals, label_names, "marginals")
        array = as_floats(values, "marginals")
        if array.ndim != 2 or array.shape[1] == 0:
            raise wrong_shape("marginals", array)
        array = check_unit_interval(array, "marginals")
        super().__init__(array.shape[0], array.shape[1], names)
        self._p = array.copy()
        self._index = index_of(marginals)

    @classmethod
    def from_logits(cls, logits: ArrayLike, label_names: Names = None) -> Self:
        """Distributions whose marginals have these logits.

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
        if array.ndim != 2 or array.shape[1] == 0:
            raise wrong_shape("logits", array)
        new = cls._from_checked(expit(array), array, names)
        new._index = index_of(logits)
        return new

    @classmethod
    def _from_checked(cls, marginals: Floats, logits: Floats | None, label_names: Names) -> Self:
        new = cls.__new__(cls)
        new._p, new._logits = marginals, logits
        LabelsetDistribution.__init__(new, len(marginals), marginals.shape[1], label_names)
        return new

    def _take(self, rows: Rows) -> Self:
        # In one piece, as kernels are compiled for: every other row would compile them anew.
        marginals = np.ascontiguousarray(self._p[rows])
        logits = None if self._logits is None else self._logits[rows]
        return self._from_checked(marginals, logits, self.label_names)

    def _with_dense_rows(self) -> IndependentLabels:
        return self

    def _top(self, k: int) -> TopLabelsets:
        check_size(
            k * (WAITING_BYTES + 2 * self.n_labels),
            f"The search for the `k` most probable labelsets of {self.n_labels} labels",
            "Ask for fewer.",
        )
        labelsets = np.repeat(self._mode()[:, np.newaxis], k, axis=1)
        logs = np.empty((len(self), k))
        for rows in cut_rows(len(self), k * FLIP_BYTES, _limits.DECISION_BYTES):
            mine, found = labelsets[rows], self._take(rows).listed.top(self.n_labels, k)
            row, rank, place = np.nonzero(found.flipped >= 0)
            mine[row, rank, found.flipped[row, rank, place]] ^= 1
            fill_with_lowest(mine, found.n_found)
            logs[rows] = found.logs
        return TopLabelsets(labelsets, logs)

    def _sample(self, size: int, generator: np.random.Generator) -> Labelsets:
        uniforms = generator.random((len(self), size, self.n_labels))
        return (uniforms < self._p[:, np.newaxis, :]).astype(np.int8)

    def _mark(self, Y: LabelsetsLike) -> tuple[ListedLabels, NDArray[np.int8]]:
        return self.listed, Y.reshape(-1)

    @property
    def listed(self) -> ListedLabels:
        """All labels as listed ones."""
        starts = np.arange(len(self) + 1) * self.n_labels
        unlisted = UnlistedLabels(np.zeros(len(self), dtype=np.int64))
        logits = None if self._logits is None else self._logits.ravel()
        return ListedLabels(self._p.reshape(-1), starts, unlisted, logits)

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


def wrong_shape(name: str, values: Array) -> InputError:
    """Error for an array that is not (n, L)."""
    return InputError(
        f"`{name}` must have shape (n_samples, n_labels) with at least one label, got shape "
        f"{values.shape}. One instance is one row: `[{name}]`."
    )
