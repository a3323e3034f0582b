"""Clusters of dependent rows, such as ten photos of one event.

Tests and estimates go by cluster: one outcome of each (`cluster_outcomes`), sums over the rows of
each (`sum_by_cluster`), folds of whole clusters. Clusters of one row give the results of
independent rows.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from labelsure._runtime.typing import Floats, Indices, RowIndex
from labelsure.errors import InputError
from labelsure.labelsets.names import align_values, read_groups


def read_clusters(clusters: ArrayLike, index: RowIndex, n_samples: int, beside: str) -> Indices:
    """Number of the cluster of each row, (n,), see `number_clusters`.

    Raises InputError unless there is one entry for each row.
    """
    names = np.asarray(align_values(clusters, index, name="clusters", beside=beside))
    if names.shape != (n_samples,):
        raise InputError(
            f"`clusters` must have one entry for each of the {n_samples} rows, got shape "
            f"{names.shape}."
        )
    return number_clusters(read_groups(names, "clusters"))


def number_clusters(names: ArrayLike) -> Indices:
    """Clusters as numbers from 0 in order of first appearance, (n,).

    Examples
    --------
    >>> number_clusters(["b", "a", "b", "c"])
    array([0, 1, 0, 2])
    """
    _, first, codes = np.unique(np.asarray(names), return_index=True, return_inverse=True)
    return np.asarray(np.argsort(np.argsort(first))[codes], dtype=np.intp)


def first_rows(clusters: Indices, most: int) -> Indices:
    """Positions of the first `most` rows of each cluster, in ascending order.

    Examples
    --------
    >>> first_rows(np.array([0, 1, 0, 0, 1]), 2)
    array([0, 1, 2, 4])
    """
    by_cluster = np.argsort(clusters, kind="stable")
    ordered = clusters[by_cluster]
    rank = np.arange(len(ordered)) - np.searchsorted(ordered, ordered)
    return np.sort(by_cluster[rank < most])


def sum_by_cluster(values: object, clusters: Indices) -> Floats:
    """Sum (n, ...) values over the rows of each cluster, (k, ...); sparse stays sparse."""
    n_samples = len(clusters)
    rows = csr_array((np.ones(n_samples), clusters, np.arange(n_samples + 1)))
    return rows.T.tocsr() @ values


def cluster_outcomes(outcomes: Floats, clusters: Indices, target: float, size: int) -> Floats:
    """Outcome in [0, 1] of each cluster that has rows, whose mean is compared with the target.

    A cluster counts as `size` rows, missing ones being at the target: its outcome u is
    target + sum(outcome - target) / size. So the mean of u is above the target if and only if the
    mean of all rows is. Clusters with more than `size` rows have none in [0, 1].
    """
    n_rows = np.bincount(clusters)
    sums = np.bincount(clusters, outcomes)
    u: Floats = ((sums + (size - n_rows) * target) / size)[n_rows > 0]
    return u


def design_effect(residuals: Floats, clusters: Indices) -> float:
    """Variance of a sum of residuals, relative to that of as many independent rows; at least 1."""
    squares = float((residuals**2).sum())
    n_samples, sums = len(residuals), np.bincount(clusters, residuals)
    if squares == 0 or len(sums) in (1, n_samples):
        return 1.0
    # Both sums of squares are divided by their number less one: residuals have a mean.
    correction = len(sums) * (n_samples - 1) / ((len(sums) - 1) * n_samples)
    return max(1.0, correction * float((sums**2).sum()) / squares)


def cluster_size_quantile(clusters: Indices) -> int:
    """0.9 quantile of the numbers of rows of clusters."""
    sizes = np.unique(clusters, return_counts=True)[1]
    return int(np.quantile(sizes, 0.9, method="inverted_cdf"))
