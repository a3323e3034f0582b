"""Independent labels of which few are listed: storage, reading and questions of sparse labels."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from scipy.special import expit, logit

from labelsure._runtime import limits as _limits
from labelsure._runtime.arguments import read_number
from labelsure._runtime.limits import check_size
from labelsure._runtime.typing import (
    Floats,
    Indices,
    Integers,
    Labelsets,
    LabelsetsLike,
    Mask,
    Names,
    Rows,
)
from labelsure.distributions._answers import Best, Optimum, TopLabelsets
from labelsure.distributions._base import LabelsetDistribution
from labelsure.distributions._independent_labels import Independent, IndependentLabels
from labelsure.distributions._listed_labels import BEST_SIZES, ListedLabels, UnlistedLabels
from labelsure.distributions._probabilities import as_floats, clip_rounding
from labelsure.errors import InputError
from labelsure.labelsets.codes import fill_with_lowest
from labelsure.labelsets.sparse import (
    StackedLabelsets,
    count_labels,
    is_sparse,
    make_sparse,
    sparse_ones,
)
from labelsure.metrics.registry import Metric

FEW_LABELS = 64
"""Up to here decisions are made by the dense marginals: an unlisted label may be predicted."""


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
        marginals: ArrayLike,
        n_labels: int | None = None,
        *,
        floor: float = _limits.PROBABILITY_FLOOR,
        label_names: Names = None,
    ) -> None:
        floor = read_number(floor, "floor", 0, 0.5, ends="[)")
        rows = check_probabilities(read_listed(marginals, n_labels, "marginals"))
        super().__init__(rows.shape[0], rows.shape[1], label_names)
        self._floor, self._floor_logit = floor, float(logit(floor))
        most = 1 - min(floor, _limits.PROBABILITY_FLOOR)
        # A probability that is not above the floor counts as unlisted.
        self._p = keep_listed(rows, np.minimum(rows.data, most), rows.data > floor)
        self.labelset_bytes = _bytes_of_row(self._p)

    @classmethod
    def from_top(
        cls,
        indices: object,
        scores: object,
        n_labels: int,
        *,
        floor: float = _limits.PROBABILITY_FLOOR,
        label_names: Names = None,
    ) -> Self:
        """Distributions of top-k arrays.

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
        logits: object,
        n_labels: int | None = None,
        *,
        floor: float = _limits.PROBABILITY_FLOOR,
        label_names: Names = None,
    ) -> Self:
        """Distributions whose listed labels have these logits.

        Parameters
        ----------
        logits
            (n, L) log of the odds P(y_j = 1) / P(y_j = 0), sparse. A zero that is stored is a label
            of probability 1/2; others have the floor.
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
        """Probability of each label that is not listed."""
        return self._floor

    @property
    def n_listed(self) -> Integers:
        """Number of listed labels of each instance, (n,)."""
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
        """Listed and unlisted labels, as their closed forms take them."""
        unlisted = UnlistedLabels(self.n_labels - self.n_listed, self._floor, self._floor_logit)
        logits = None if self._logits is None else self._logits.data
        starts = self._p.indptr.astype(np.intp)
        return ListedLabels(self._p.data, starts, unlisted, logits, self._p.indices)

    def listed_marginals(self) -> csr_array:
        """P(y_j = 1) of the listed labels, sparse; all others have the floor."""
        return self._p.copy()

    def _mark(self, Y: LabelsetsLike) -> tuple[ListedLabels, NDArray[np.int8]]:
        return self.listed.match(Y)

    def _rows_of(self, is_chosen: Mask) -> Labelsets:
        chosen = np.flatnonzero(is_chosen)
        starts = np.searchsorted(chosen, self._p.indptr)
        return sparse_ones(self._p.indices[chosen], starts, self.n_labels)

    def _top(self, k: int) -> TopLabelsets:
        rows, logs = find_top_rows(self.listed, self.n_labels, k)
        return TopLabelsets(StackedLabelsets(rows, k), logs)  # type: ignore[arg-type]

    def _sample(self, size: int, generator: np.random.Generator) -> Any:
        return StackedLabelsets(draw_rows(self._p, self._floor, size, generator), size)

    def _best(self, metric: Metric, empty: float) -> Iterator[tuple[Indices, Best]]:
        """Most probable listed labels; the gap bounds the gain by others."""
        if metric not in BEST_SIZES or self.n_labels > FEW_LABELS:
            yield from super()._best(metric, empty)
            return
        is_chosen, gaps = self._with_dense_rows().listed.choose(metric, empty)
        chosen = is_chosen.reshape(len(self), self.n_labels).astype(np.int8)
        yield np.arange(len(self)), Optimum(make_sparse(chosen), gaps)

    def _temper(self, temperature: float) -> Self:
        logits = self._p.copy() if self._logits is None else self._logits.copy()
        logits.data = (logit(logits.data) if self._logits is None else logits.data) / temperature
        new = copy(self)
        new._set_logits(logits, self._floor_logit / temperature)
        return new


def with_dense_rows(dist: LabelsetDistribution) -> LabelsetDistribution:
    """Distributions with arrays as labelsets. Raises TooLargeError if these are too large."""
    return dist._with_dense_rows() if isinstance(dist, SparseIndependentLabels) else dist


def listed_marginals(dist: LabelsetDistribution) -> Any:
    """P(y_j = 1), (n, L); where labelsets are sparse, the listed ones, sparse."""
    if isinstance(dist, SparseIndependentLabels):
        return dist.listed_marginals()
    return dist._marginals().value


def _bytes_of_row(listed: csr_array) -> int:
    """Approximate bytes of a labelset of which all listed labels are set."""
    return 16 + 9 * int(np.diff(listed.indptr).max(initial=0))


def suggest_floor(dist: SparseIndependentLabels, Y_true: LabelsetsLike) -> float:
    """Floor estimated from labelled instances: the relative frequency of true unlisted labels.

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
    n_unlisted = int(dist.listed.unlisted.sizes.sum())
    n_missed = n_unlisted - int(dist._mark(truth)[0].unlisted.sizes.sum())
    return float(min((n_missed + 0.5) / max(n_unlisted, 1), 0.25))


# Storage: listed numbers as sparse rows, and labelsets of them.

WITH_DUPLICATES = ("coo", "csr", "csc", "bsr")
"""Formats of scipy in which an entry can be there twice, which scipy would add up."""


def read_listed(values: Any, n_labels: int | None, name: str) -> csr_array:
    """Listed numbers as a new `csr_array` of floats, with stored zeros. Raises InputError."""
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


def read_top(indices: object, scores: object, n_labels: int) -> csr_array:
    """Top-k arrays as sparse rows: the listed labels of each instance with their scores."""
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
    """Listed probabilities, clipped to [0, 1] where rounding left it. Raises InputError."""
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


def keep_listed(
    rows: csr_array, values: NDArray[np.generic], is_kept: NDArray[np.bool_]
) -> csr_array:
    """Sparse rows of some of the entries, with other values."""
    kept = np.flatnonzero(is_kept)
    starts = np.searchsorted(kept, rows.indptr)
    return csr_array((values[kept], rows.indices[kept], starts), rows.shape)


def draw_rows(listed: csr_array, floor: float, size: int, generator: Any) -> Labelsets:
    """Drawn labelsets, those of an instance one after the other: (n * size, L) sparse rows."""
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
    """Labels of these ranks among those that are not listed.

    Examples
    --------
    >>> unlisted_labels(np.array([0, 1, 2]), np.array([0, 2]))
    array([1, 3, 4])
    """
    # Before a listed label there are as many others as its index, but for those listed before.
    n_before = listed - np.arange(len(listed))
    return ranks + np.searchsorted(n_before, ranks, side="right")


def find_top_rows(listed: ListedLabels, n_labels: int, k: int) -> tuple[Labelsets, Floats]:
    """K most probable labelsets of each instance, one after the other, and log-probabilities.

    Sparse rows (n * k, L), and log-probabilities (n, k).
    """
    assert listed.labels is not None
    found, n_samples = listed.top(n_labels, k), len(listed)
    # Every possible labelset begins as the mode; a label that is there twice was taken away.
    instance = np.repeat(np.arange(n_samples), listed.lengths)[listed.is_likely]
    in_mode = listed.labels[listed.is_likely].astype(np.int64)
    member, rank = np.nonzero((np.arange(k) < found.n_found[:, np.newaxis])[instance])
    row, changed, place = np.nonzero(found.flipped >= 0)
    rows = np.concatenate([instance[member] * k + rank, row * k + changed])
    labels = np.concatenate([in_mode[member], found.flipped[row, changed, place]])
    order = np.lexsort((labels, rows))
    rows, labels = rows[order], labels[order]
    is_twice = np.zeros(len(rows) + 1, dtype=bool)
    is_twice[1:-1] = (rows[1:] == rows[:-1]) & (labels[1:] == labels[:-1])
    is_kept = ~(is_twice[1:] | is_twice[:-1])
    rows, labels = rows[is_kept], labels[is_kept]
    more_rows, more_labels = _lowest_codes(rows, labels, found.n_found, k)
    rows, labels = np.concatenate([rows, more_rows]), np.concatenate([labels, more_labels])
    return _sort_rows(rows, labels, (n_samples * k, n_labels)), found.logs


def _lowest_codes(
    rows: Indices, labels: Indices, n_found: Integers, k: int
) -> tuple[Indices, Indices]:
    """Labels of the lowest codes that fill up the labelsets found, up to k, by row."""
    short = np.flatnonzero(n_found < k)
    n_low = max(1, (k - 1).bit_length())  # labels that the lowest k codes can have
    place = np.full(len(n_found), -1)
    place[short] = np.arange(len(short))
    is_short = place[rows // k] >= 0
    rows, labels = rows[is_short], labels[is_short]
    low = np.zeros((len(short), k, n_low + 1), dtype=np.int8)  # the last column: any other label
    low[place[rows // k], rows % k, np.minimum(labels, n_low)] = 1
    fill_with_lowest(low, n_found[short])
    row, rank, label = np.nonzero(low)
    is_new = rank >= n_found[short][row]
    return short[row[is_new]] * k + rank[is_new], label[is_new]


def _sort_rows(rows: Indices, labels: Indices, shape: tuple[int, int]) -> Labelsets:
    order = np.lexsort((labels, rows))
    starts = np.append(0, np.cumsum(np.bincount(rows, minlength=shape[0])))
    return sparse_ones(labels[order], starts, shape[1])
