"""`SparseIndependentLabels`: independent labels of which few are listed for each instance."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy.sparse import csr_array
from scipy.special import expit, logit

from labelsure._runtime import limits as _limits
from labelsure._runtime.limits import check_size
from labelsure._runtime.typing import Floats, Indices, Integers, Labelsets, Rows
from labelsure.distributions._answers import (
    Expected,
    Guesses,
    MaxMarginals,
    TopLabelsets,
    each_guess,
)
from labelsure.distributions._bridge import LabelsetDistribution
from labelsure.distributions._listed_labels import ListedLabels, Rest, has_best_size, sum_rows
from labelsure.distributions._sparse_draws import draw_rows, find_top_rows
from labelsure.distributions._sparse_marginals import (
    MatchedLabels,
    check_floor,
    check_probabilities,
    keep_listed,
    read_listed,
    read_top,
)
from labelsure.distributions.candidates import Profile, log
from labelsure.errors import InputError
from labelsure.labelsets.rows import count_labels
from labelsure.labelsets.sparse import StackedLabelsets, make_sparse, sparse_ones
from labelsure.metrics.registry import EXACT, F1, HAMMING, JACCARD, Metric

if TYPE_CHECKING:
    from labelsure.distributions._independent_labels import IndependentLabels

FEW_LABELS = 64
"""Up to here decisions are made by the dense marginals: what is not listed may be predicted."""


class SparseIndependentLabels(LabelsetDistribution):
    """Distributions of independent labels, very many, of which few are listed for each instance.

    Tagging systems and others of extreme classification give some hundred scores out of 10**4 to
    10**6 labels. Everything here costs what is listed: labelsets come as a
    `scipy.sparse.csr_array`, and so may truths and predictions. See `docs/million_labels.md`.

    Parameters
    ----------
    marginals
        (n, L) P(y_j = 1) of the listed labels: sparse in any format of scipy, or an array.
    n_labels
        How many labels there are; None means as many as `marginals` has columns.
    floor
        How probable each label is that is not listed, less than 1/2. Listed ones are at least as
        probable, and none is certain, so that no labelset is impossible; 0 takes them as they are.
        `suggest_floor` finds one from labelled instances.
    label_names
        One for each label; None where they have none.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> marginals = csr_array(([0.9, 0.2], ([0, 0], [7, 123_456])), shape=(1, 1_000_000))
    >>> dist = SparseIndependentLabels(marginals)
    >>> dist.mode().indices.tolist(), dist.profile().top.round(3)
    ([7], array([0.678]))
    """

    sparse_rows = True

    _p: csr_array
    _logits: csr_array | None

    def __init__(
        self,
        marginals: Any,
        n_labels: int | None = None,
        *,
        floor: float = _limits.PROBABILITY_FLOOR,
        label_names: Iterable[Any] | None = None,
    ) -> None:
        floor = check_floor(floor)
        rows = check_probabilities(read_listed(marginals, n_labels, "marginals"), "marginals")
        super().__init__(rows.shape[0], rows.shape[1], label_names)
        self._floor, self._floor_logit = floor, float(logit(floor))
        most = 1 - min(floor, _limits.PROBABILITY_FLOOR)
        # What is not above the floor is as if it were not listed.
        self._p = keep_listed(rows, np.minimum(rows.data, most), rows.data > floor)
        self._logits = None
        self.labelset_bytes = _bytes_of_row(self._p)

    @classmethod
    def from_top(
        cls,
        indices: Any,
        scores: Any,
        n_labels: int,
        *,
        floor: float = _limits.PROBABILITY_FLOOR,
        label_names: Iterable[Any] | None = None,
    ) -> Self:
        """Make the distributions of top-k arrays.

        Parameters
        ----------
        indices
            (n, k) the listed labels of each instance, in any order; -1 where it has fewer.
        scores
            (n, k) how probable each of them is.
        n_labels, floor, label_names
            As for the class.

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
        logits: Any,
        n_labels: int | None = None,
        *,
        floor: float = _limits.PROBABILITY_FLOOR,
        label_names: Iterable[Any] | None = None,
    ) -> Self:
        """Make the distributions whose listed labels have these logits.

        Parameters
        ----------
        logits
            (n, L) log of the odds P(y_j = 1) / P(y_j = 0), sparse. A zero that is stored is a label
            of probability 1/2; what is not stored has the floor.
        n_labels, floor, label_names
            As for the class.
        """
        rows = read_listed(logits, n_labels, "logits")
        if np.isnan(rows.data).any():
            at = int(np.flatnonzero(np.isnan(rows.data))[0])
            row = int(np.searchsorted(rows.indptr, at, side="right")) - 1
            raise InputError(f"`logits` must be numbers, got NaN in row {row}. Mend that row.")
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
        """How probable each label is that is not listed."""
        return self._floor

    @property
    def n_listed(self) -> Integers:
        """How many labels are listed of each instance, (n,)."""
        return count_labels(self._p)

    def _with_dense_rows(self) -> IndependentLabels:
        from labelsure.distributions._independent_labels import IndependentLabels  # few need it

        check_size(
            8 * len(self) * self.n_labels,
            f"All {self.n_labels} labels of {len(self)} instances, which this question is about,",
            "Ask for fewer instances (`dist[:10]`), or something that sparse labels answer: see "
            "`docs/million_labels.md`.",
        )
        floor, listed = self._floor, self._p
        if self._logits is not None:
            floor, listed = self._floor_logit, self._logits
        values = np.full((len(self), self.n_labels), floor)
        values[self._instances(), listed.indices] = listed.data
        make = IndependentLabels if self._logits is None else IndependentLabels.from_logits
        return make(values, self.label_names)._with_index(self.index)

    def _instances(self) -> Indices:
        """Return the instance of each listed entry."""
        return np.repeat(np.arange(len(self)), self.n_listed)

    def _take(self, rows: Rows) -> Self:
        new = copy(self)
        new._p = self._p[rows]
        new._logits = None if self._logits is None else self._logits[rows]
        new._n_samples = new._p.shape[0]
        new.labelset_bytes = _bytes_of_row(new._p)
        return new

    @property
    def listed(self) -> ListedLabels:
        """The listed labels and the rest, as their closed forms need them."""
        rest = Rest(self.n_labels - self.n_listed, self._floor)
        return ListedLabels(self._p.data, self._p.indptr.astype(np.intp), rest)

    def listed_marginals(self) -> csr_array:
        """Return P(y_j = 1) of the listed labels, sparse; all others have the floor."""
        return self._p.copy()

    def _marginals(self) -> Floats:
        return self._with_dense_rows()._marginals()

    def _log_prob(self, Y: Labelsets) -> Floats:
        matched = MatchedLabels.of(self._p, Y)
        listed = matched.widen(self.listed)
        places = matched.places_after()
        if self._logits is None:
            logs = log(1 - listed.marginals)
            logs[places] = log(listed.marginals[places])
        else:
            logits = matched.insert(self._logits.data, self._floor_logit)
            logs = -np.logaddexp(0.0, logits)
            logs[places] = -np.logaddexp(0.0, -logits[places])
        of_listed = sum_rows(logs, listed.starts)
        return of_listed + listed.rest.sizes * np.log1p(-self._floor)

    def _profile_and_mode(self) -> tuple[Profile, Labelsets]:
        log_top, flip_odds, entropy, log_collision = self.listed.profile()
        log_flip = log(flip_odds)
        if self._logits is not None:
            log_flip = self._cheapest_flips()
        profile = Profile(log_top, log_top + log_flip, entropy, log_collision, self.n_labels)
        return profile, self._mode()

    def _cheapest_flips(self) -> Floats:
        """Return by how much the log-probability falls at least when a label is flipped, (n,)."""
        costs = np.where(self.n_listed < self.n_labels, self._floor_logit, -np.inf)
        np.maximum.at(costs, self._instances(), -np.abs(self._logits.data))  # type: ignore[union-attr]
        return costs

    def _mode(self) -> Labelsets:
        return self._rows_of(self._p.data > 0.5)

    def _rows_of(self, is_chosen: Any) -> Labelsets:
        """Return sparse rows of some of the listed labels."""
        chosen = keep_listed(self._p, self._p.data, is_chosen)
        return sparse_ones(chosen.indices, chosen.indptr, self.n_labels)

    def _top(self, k: int) -> TopLabelsets:
        # The same rounding as for dense labels, so that the same labelsets tie.
        logits = log(self._p.data) - log(1 - self._p.data)
        of_rest = float(log(self._floor) - log(1 - self._floor))
        if self._logits is not None:
            logits, of_rest = self._logits.data, self._floor_logit
        rows = find_top_rows(self._p, logits, of_rest, k)
        stacked = StackedLabelsets(rows, k)
        logs = [self._log_prob(stacked[:, rank]) for rank in range(k)]
        return TopLabelsets(stacked, np.stack(logs, axis=1))  # type: ignore[arg-type]

    def _sample(self, size: int, generator: np.random.Generator) -> Any:
        return StackedLabelsets(draw_rows(self._p, self._floor, size, generator), size)

    def _expected(self, metric: Metric, guesses: Guesses, empty: float) -> Expected:
        columns = [self._expected_of_one(metric, Y, empty) for Y in each_guess(guesses)]
        return Expected.exactly(np.stack(columns, axis=1))

    def _expected_of_one(self, metric: Metric, Y: Any, empty: float) -> Floats:
        if metric == EXACT:
            return np.exp(self._log_prob(Y))
        matched = MatchedLabels.of(self._p, Y)
        listed = matched.widen(self.listed)
        if metric != HAMMING:
            return listed.expected(metric, matched.marks(self._p.nnz), empty, self.n_labels)
        n_true = sum_rows(listed.marginals, listed.starts) + listed.rest.sizes * self._floor
        hits = sum_rows(listed.marginals[matched.places_after()], matched.starts)
        # Right are those predicted and true, and those neither.
        return (self.n_labels - count_labels(Y) - n_true + 2 * hits) / self.n_labels

    def _best(self, metric: Metric, empty: float) -> tuple[Labelsets, Floats] | None:
        """Predict the most probable listed labels; say what predicting others could add at most."""
        if not has_best_size(metric):
            return None
        if self.n_labels <= FEW_LABELS:
            best = self._with_dense_rows()._best(metric, empty)
            return None if best is None else (make_sparse(best[0]), best[1])
        is_chosen, worth = self.listed.choose(metric, empty)
        n_true = sum_rows(self._p.data, self._p.indptr) + self.listed.rest.sizes * self._floor
        gaps = _GAPS[metric](worth, n_true, self.listed.rest)
        return self._rows_of(is_chosen), gaps

    def _temper(self, temperature: float) -> Self:
        logits = self._p.copy() if self._logits is None else self._logits.copy()
        logits.data = (logit(logits.data) if self._logits is None else logits.data) / temperature
        new = copy(self)
        new._set_logits(logits, self._floor_logit / temperature)
        return new

    # What is about all labels, one by one, is answered where they fit into memory.

    def _max_marginals(self, log_at_least: float = -np.inf) -> MaxMarginals:
        return self._with_dense_rows()._max_marginals(log_at_least)

    def _size_marginals(self) -> Floats:
        return self._with_dense_rows()._size_marginals()

    def _probabilities(self) -> Floats:
        return self._with_dense_rows()._probabilities()


def _bytes_of_row(listed: csr_array) -> int:
    """Return about how much memory a labelset takes, of which all listed labels are set."""
    return 16 + 9 * int(np.diff(listed.indptr).max(initial=0))


# What predicting labels of the rest could add at most, (n,). A prediction of k labels with r more
# of the rest, u of them true, has an F1 of at most that without them plus 2 u / (k + r + 1): it
# gains less than twice the floor. For Jaccard it is u / (k + r), and less than the floor. It also
# loses a share r / (k + r + s) of what it was worth where s labels are true. That is more than it
# gains if the best is worth enough: s is above any c with a probability of n_true / c at most.


def _gap_of_f1(worth: Floats, n_true: Floats, rest: Rest) -> Floats:
    if rest.floor == 0:
        return np.zeros(len(worth))
    c = np.maximum(1.0, np.sqrt(n_true / (2 * rest.floor)))
    is_best = worth >= 2 * rest.floor * (1 + c) + n_true / c
    return np.where(is_best | (rest.sizes == 0), 0.0, 2 * rest.floor)


def _gap_of_jaccard(worth: Floats, n_true: Floats, rest: Rest) -> Floats:
    if rest.floor == 0:
        return np.zeros(len(worth))
    c = np.maximum(1.0, np.sqrt(n_true / rest.floor))
    is_best = worth >= rest.floor * (2 + c) + n_true / c + rest.sizes * rest.floor
    return np.where(is_best | (rest.sizes == 0), 0.0, rest.floor)


_GAPS = {F1: _gap_of_f1, JACCARD: _gap_of_jaccard}


def suggest_floor(dist: SparseIndependentLabels, Y_true: Any) -> float:
    """Return the floor that labelled instances suggest: how often a label is true if not listed.

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
    n_missed = int(MatchedLabels.of(dist._p, truth).n_inserted.sum())
    n_unlisted = int((dist.n_labels - dist.n_listed).sum())
    return float(min((n_missed + 0.5) / max(n_unlisted, 1), 0.25))
