"""The first k labels of a ranking: precision, its expected value, nDCG, and rare labels."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from labelsure._typing import Floats, Integers, Mask
from labelsure.distributions import LabelsetDistribution, check_distribution
from labelsure.errors import InputError
from labelsure.labelsets import check_sparse_labelsets, refuse_masked

if TYPE_CHECKING:
    import pandas as pd

USUAL_KS = (1, 3, 5)
"""What papers on very many labels report."""

NOT_LISTED = -1
"""In place of a label, where a sparse row lists fewer than k."""


def precision_at_k(scores: Any, Y_true: Any, k: int) -> Floats:
    """Return the share of true labels among the first k of each instance, (n,).

    Papers report its mean, P@k.

    Parameters
    ----------
    scores
        What labels are ranked by, the highest first, and of equal ones the first: a batch of
        distributions, whose marginals count; an (n, L) array; or a scipy sparse matrix, which
        ranks what it lists. A label that is not listed is no hit: with fewer than k in a row,
        the sum of hits is divided by k all the same.
    Y_true
        (n, L) the truth, dense or sparse.
    k
        How many labels.

    Examples
    --------
    >>> from labelsure import precision_at_k
    >>> precision_at_k([[0.2, 0.9, 0.5]], [[1, 1, 0]], k=2)
    array([0.5])
    """
    return _Ranking.read(scores, Y_true, k).precision(k)


def expected_precision_at_k(dist: Any, k: int) -> Floats:
    """Return the expected precision of the k most probable labels of each instance, (n,).

    It is the mean of their probabilities, for every kind of distribution: the expected number of
    hits is a sum over labels, whether these depend on each other or not.

    Parameters
    ----------
    dist
        A batch of n distributions; or probabilities of labels, an (n, L) array or a scipy sparse
        matrix. Labels that a sparse matrix does not list add nothing.
    k
        How many labels.

    Examples
    --------
    >>> from labelsure import expected_precision_at_k
    >>> expected_precision_at_k([[0.25, 0.75, 0.5]], k=2)
    array([0.625])
    """
    marginals = _read_scores(dist)
    low, high = _range_of(marginals)
    if low < 0 or high > 1:
        raise InputError(
            "An expected precision needs probabilities of labels, between 0 and 1, got "
            f"{low if low < 0 else high:g}. Pass a distribution, or make probabilities of scores."
        )
    _check_k(k, marginals.shape[1])
    _, values = _find_first(marginals, k)
    return values.sum(axis=1) / k


def ndcg_at_k(scores: Any, Y_true: Any, k: int) -> Floats:
    """Return how early true labels come among the first k of each instance, (n,): nDCG@k.

    A hit at rank r counts 1/log2(r + 1); the sum is divided by that of the best ranking. Without
    true labels it is 0, as in scikit-learn.

    Parameters
    ----------
    scores, Y_true, k
        As for `precision_at_k`.

    Examples
    --------
    >>> from labelsure import ndcg_at_k
    >>> ndcg_at_k([[0.2, 0.9, 0.5]], [[0, 1, 0]], k=2)
    array([1.])
    """
    return _Ranking.read(scores, Y_true, k).ndcg(k)


def label_propensities(Y_train: Any, *, a: float = 0.55, b: float = 1.5) -> Floats:
    """Return how probable it is that a label is noted where it is true, (L,), by its frequency.

    Rare labels are overlooked more often than others. This is the model of Jain, Prabhu and Varma
    (2016): 1 / (1 + C (n_j + b)**-a) with C = (log n - 1) (b + 1)**a, where n_j of n instances
    have label j.

    Parameters
    ----------
    Y_train
        (n, L) labelsets of at least three instances, dense or sparse: those that a classifier was
        trained on.
    a, b
        The usual values; papers have 0.5 and 0.4 for Wikipedia, 0.6 and 2.6 for Amazon.

    Examples
    --------
    >>> from labelsure.thresholds import label_propensities
    >>> label_propensities([[1, 0], [1, 0], [1, 1]]).round(3)
    array([0.933, 0.91 ])
    """
    true = _read_truth(Y_train, "Y_train")
    n_samples = true.shape[0]
    if n_samples < 3:
        raise InputError(f"`Y_train` must have at least three instances, got {n_samples}.")
    if not (a > 0 and b > 0 and np.isfinite([a, b]).all()):
        raise InputError(f"`a` and `b` must be positive numbers, got {a!r} and {b!r}.")
    counts = np.bincount(true.indices, minlength=true.shape[1])
    weight = (np.log(n_samples) - 1) * (b + 1) ** a
    return np.asarray(1 / (1 + weight * (counts + b) ** -a))


def propensity_scored_precision_at_k(scores: Any, Y_true: Any, k: int, propensities: Any) -> float:
    """Return what the hits among the first k labels are worth if rare labels count more: PSP@k.

    A hit counts 1 / propensity; the sum over all instances is divided by that of the best rankings.

    Parameters
    ----------
    scores, Y_true, k
        As for `precision_at_k`.
    propensities
        (L,) as `label_propensities` returns them.

    Examples
    --------
    >>> from labelsure.thresholds import propensity_scored_precision_at_k
    >>> propensity_scored_precision_at_k([[0.2, 0.9]], [[1, 1]], 1, [0.5, 1.0])
    0.5
    """
    ranking = _Ranking.read(scores, Y_true, k)
    return ranking.propensity_scored(k, _check_propensities(propensities, ranking.n_labels))


def ranking_table(
    scores: Any, Y_true: Any, ks: Iterable[int] = USUAL_KS, *, propensities: Any = None
) -> pd.DataFrame:
    """Return the measures of the first k labels that papers on very many labels report.

    Parameters
    ----------
    scores, Y_true
        As for `precision_at_k`.
    ks
        Which k.
    propensities
        (L,) as `label_propensities` returns them; None leaves out the column that needs them.

    Returns
    -------
    DataFrame
        One row for each k: ``precision``, the mean P@k; ``expected_precision``, what the
        distributions say it is, where `scores` are distributions; ``ndcg``, the mean nDCG@k;
        ``propensity_scored``, PSP@k.

    Examples
    --------
    >>> from labelsure import IndependentLabels, ranking_table
    >>> dist = IndependentLabels([[0.2, 0.9, 0.5], [0.75, 0.5, 0.25]])
    >>> ranking_table(dist, [[0, 1, 0], [1, 0, 1]], ks=[1, 2])
       precision  expected_precision      ndcg
    k
    1        1.0              0.8250  1.000000
    2        0.5              0.6625  0.806574
    """
    import pandas as pd

    listed = list(ks)
    if not listed:
        raise InputError("`ks` must name at least one k, got none.")
    ranking = _Ranking.read(scores, Y_true, *listed)
    columns = {"precision": [float(ranking.precision(k).mean()) for k in listed]}
    if isinstance(scores, LabelsetDistribution):
        expected = ranking.values.cumsum(axis=1).mean(axis=0)
        columns["expected_precision"] = [float(expected[k - 1] / k) for k in listed]
    columns["ndcg"] = [float(ranking.ndcg(k).mean()) for k in listed]
    if propensities is not None:
        checked = _check_propensities(propensities, ranking.n_labels)
        columns["propensity_scored"] = [ranking.propensity_scored(k, checked) for k in listed]
    return pd.DataFrame(columns, index=pd.Index(listed, name="k"))


class _Ranking:
    """The first labels of each instance, and which of them are true.

    Parameters
    ----------
    labels
        (n, k) in order, `NOT_LISTED` where there are no more.
    values
        (n, k) their scores, 0 where there are no more.
    true
        (n, L) the truth, a CSR array.
    """

    def __init__(self, labels: Integers, values: Floats, true: Any) -> None:
        self.labels, self.values, self.true = labels, values, true
        self.n_labels = int(true.shape[1])
        self.hits = _find_hits(labels, true)

    @classmethod
    def read(cls, scores: Any, Y_true: Any, *ks: Any) -> _Ranking:
        """Check scores, truth and every k; rank as many labels as the largest needs."""
        ranked = _read_scores(scores)
        for k in ks:
            _check_k(k, ranked.shape[1])
        if isinstance(scores, LabelsetDistribution):
            Y_true = scores.align(Y_true, "Y_true")
        true = _read_truth(Y_true, "Y_true", ranked.shape)
        if ranked.shape[0] == 0:
            raise InputError("A ranking needs at least one instance, got none.")
        return cls(*_find_first(ranked, max(ks)), true)

    def precision(self, k: int) -> Floats:
        return self.hits[:, :k].sum(axis=1) / k

    def ndcg(self, k: int) -> Floats:
        discounts = 1 / np.log2(np.arange(2, k + 2))
        best = np.append(0.0, discounts.cumsum())[np.minimum(np.diff(self.true.indptr), k)]
        gains = self.hits[:, :k] @ discounts
        return np.divide(gains, best, out=np.zeros(len(gains)), where=best > 0)

    def propensity_scored(self, k: int, propensities: Floats) -> float:
        worth = np.append(1 / propensities, 0.0)  # of a label that is not listed: nothing
        found = (worth[self.labels[:, :k]] * self.hits[:, :k]).sum()
        weighted = sparse.csr_array(
            (worth[self.true.indices], self.true.indices, self.true.indptr), self.true.shape
        )
        best = _find_first(weighted, k)[1].sum()
        if best == 0:
            raise InputError("`Y_true` must have at least one true label, it has none.")
        return float(found / best)


def _find_first(scores: Any, k: int) -> tuple[Integers, Floats]:
    """Return the first k labels of each row and their scores, (n, k) each."""
    if not sparse.issparse(scores):
        order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
        return order, np.take_along_axis(scores, order, axis=1)
    n_listed = np.diff(scores.indptr)
    row = np.repeat(np.arange(scores.shape[0]), n_listed)
    order = np.lexsort((scores.indices, -scores.data, row))
    rank = np.arange(len(row)) - np.repeat(scores.indptr[:-1], n_listed)
    is_first = rank < k
    at = row[is_first], rank[is_first]
    labels = np.full((scores.shape[0], k), NOT_LISTED, dtype=np.int64)
    values = np.zeros(labels.shape)
    labels[at] = scores.indices[order[is_first]]
    values[at] = scores.data[order[is_first]]
    return labels, values


def _find_hits(labels: Integers, true: Any) -> Mask:
    """Return which labels are true, (n, k)."""
    # One number for each pair of an instance and a label.
    step = np.int64(true.shape[1])
    rows = np.repeat(np.arange(true.shape[0], dtype=np.int64), np.diff(true.indptr))
    pairs = np.arange(len(labels), dtype=np.int64)[:, np.newaxis] * step + labels
    return (labels != NOT_LISTED) & np.isin(pairs, rows * step + true.indices)


def _read_scores(scores: Any) -> Any:
    """Return an (n, L) array of numbers, or a CSR array in canonical form."""
    if isinstance(scores, LabelsetDistribution):
        return check_distribution(scores).marginals()
    refuse_masked(scores, "scores")
    is_sparse = sparse.issparse(scores)
    if is_sparse:
        read = sparse.csr_array(scores, dtype=np.float64, copy=True)
        read.sum_duplicates()
    else:
        try:
            read = np.asarray(scores, dtype=np.float64)
        except (TypeError, ValueError):
            read = np.empty(0)
    if read.ndim != 2 or read.shape[1] == 0:
        raise InputError(
            "`scores` must be distributions, or numbers of shape (n_samples, n_labels), got "
            f"{type(scores).__name__}{f' of shape {read.shape}' if read.size else ''}."
        )
    if not np.isfinite(read.data if is_sparse else read).all():
        raise InputError("`scores` must be finite numbers, got NaN or infinity. Drop such rows.")
    return read


def _range_of(marginals: Any) -> tuple[float, float]:
    values = marginals.data if sparse.issparse(marginals) else marginals.ravel()
    return float(values.min(initial=0.0)), float(values.max(initial=0.0))


def _read_truth(Y: Any, name: str, shape: tuple[int, int] | None = None) -> Any:
    """Return labelsets as a CSR array of ones."""
    n_samples, n_labels = (None, None) if shape is None else shape
    return check_sparse_labelsets(Y, name=name, n_samples=n_samples, n_labels=n_labels)


def _check_k(k: Any, n_labels: int) -> None:
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or not 1 <= k <= n_labels:
        raise InputError(f"`k` must be a number of labels from 1 to {n_labels}, got {k!r}.")


def _check_propensities(propensities: Any, n_labels: int) -> Floats:
    values = np.asarray(propensities, dtype=np.float64)
    if values.shape != (n_labels,) or not ((values > 0) & (values <= 1)).all():
        raise InputError(
            f"`propensities` must be {n_labels} numbers above 0 and at most 1, one for each label. "
            "Make them with `label_propensities`."
        )
    return values
