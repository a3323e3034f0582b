"""Labels ranked by their probability, and the precision of the first k of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from labelsure._runtime.arguments import read_whole_number
from labelsure._runtime.typing import Floats, Integers, LabelsetsLike
from labelsure.distributions._base import LabelsetDistribution, check_distribution
from labelsure.distributions._probabilities import as_floats
from labelsure.distributions._sparse_labels import listed_marginals
from labelsure.errors import InputError
from labelsure.labelsets.reading import read_rows

NOT_LISTED = -1
"""Placeholder of a label where a sparse row lists fewer than k."""


def rank_labels(dist: LabelsetDistribution) -> Integers:
    """Rank of each label by its probability, (n, L): 1 for the most probable one.

    Of equally probable labels the first comes first.

    Parameters
    ----------
    dist
        A batch of n distributions.

    Examples
    --------
    >>> from labelsure import IndependentLabels
    >>> rank_labels(IndependentLabels([[0.2, 0.9, 0.5]]))
    array([[3, 1, 2]])
    """
    marginals = check_distribution(dist).marginals()
    order = np.argsort(-marginals, axis=1, kind="stable")
    return np.argsort(order, axis=1) + 1


def precision_at_k(scores: object, Y_true: LabelsetsLike, k: int) -> Floats:
    """Share of true labels among the first k of each instance, (n,).

    Of equal scores the first label comes first. A label that a sparse row does not list is no
    hit: with fewer than k in a row, the number of hits is divided by k all the same.

    Parameters
    ----------
    scores
        Scores that rank the labels, the highest first: a batch of distributions, which rank by
        marginals; an (n, L) array; or a scipy sparse matrix.
    Y_true
        (n, L) the truth, dense or sparse.
    k
        Number of labels.

    Examples
    --------
    >>> from labelsure.decisions import precision_at_k
    >>> precision_at_k([[0.2, 0.9, 0.5]], [[1, 1, 0]], k=2)
    array([0.5])
    """
    ranked = _read_scores(scores)
    labels, _ = _top_k(ranked, k)
    if isinstance(scores, LabelsetDistribution):
        Y_true = scores.align(Y_true, "Y_true")
    n_samples, n_labels = ranked.shape
    true: Any = read_rows(Y_true, "Y_true", n_samples=n_samples, n_labels=n_labels, sparse=True)
    is_true = true[np.arange(n_samples)[:, np.newaxis], labels].toarray()
    return np.asarray((is_true * (labels != NOT_LISTED)).sum(axis=1) / k)


def expected_precision_at_k(dist: object, k: int) -> Floats:
    """Expected precision of the k most probable labels of each instance, (n,).

    It is the mean of their probabilities, for any distribution: the expected number of
    hits is a sum over labels, whether these depend on each other or not.

    Parameters
    ----------
    dist
        A batch of n distributions; or probabilities of labels, an (n, L) array or a scipy sparse
        matrix. Labels that are not listed have the floor of a distribution, and probability 0 in
        a matrix.
    k
        Number of labels.

    Examples
    --------
    >>> from labelsure.decisions import expected_precision_at_k
    >>> expected_precision_at_k([[0.25, 0.75, 0.5]], k=2)
    array([0.625])
    """
    marginals = _read_scores(dist)
    values = marginals.data if sparse.issparse(marginals) else marginals.ravel()
    low, high = values.min(initial=0.0), values.max(initial=0.0)
    if low < 0 or high > 1:
        raise InputError(
            "An expected precision needs probabilities between 0 and 1, got "
            f"{low if low < 0 else high:g}. Pass a distribution, or calibrate the scores."
        )
    labels, first = _top_k(marginals, k)
    if isinstance(dist, LabelsetDistribution):
        first[labels == NOT_LISTED] = dist._floor
    return np.asarray(first.sum(axis=1) / k)


def _top_k(scores: Any, k: Any) -> tuple[Integers, Floats]:
    """Labels with the k highest scores of each row, and these scores, (n, k) each."""
    n_samples, n_labels = scores.shape
    read_whole_number(k, "k", most=n_labels)
    if not sparse.issparse(scores):
        order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
        return order, np.take_along_axis(scores, order, axis=1)
    n_listed = np.diff(scores.indptr)
    row = np.repeat(np.arange(n_samples), n_listed)
    order = np.lexsort((scores.indices, -scores.data, row))
    rank = np.arange(len(row)) - np.repeat(scores.indptr[:-1], n_listed)
    is_first = rank < k
    at = row[is_first], rank[is_first]
    labels = np.full((n_samples, k), NOT_LISTED, dtype=np.int64)
    values = np.zeros(labels.shape)
    labels[at] = scores.indices[order[is_first]]
    values[at] = scores.data[order[is_first]]
    return labels, values


def _read_scores(scores: object) -> Any:
    """Scores as an (n, L) array, or as a CSR array in canonical form."""
    if isinstance(scores, LabelsetDistribution):
        return listed_marginals(scores)
    is_sparse = sparse.issparse(scores)
    if is_sparse:
        values = sparse.csr_array(scores, dtype=np.float64, copy=True)
        values.sum_duplicates()
    else:
        values = as_floats(scores, "scores").astype(np.float64, copy=False)
    if values.ndim != 2 or values.shape[1] == 0:
        raise InputError(
            "`scores` must be distributions, or numbers of shape (n_samples, n_labels), got shape "
            f"{values.shape}."
        )
    if not np.isfinite(values.data if is_sparse else values).all():
        raise InputError("`scores` must be finite numbers, got NaN or infinity. Drop such rows.")
    return values
