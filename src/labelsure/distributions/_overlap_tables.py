"""Overlap tables: how many predicted and how many other labels are true, of any distribution."""

from __future__ import annotations

import numpy as np

from labelsure import _limits
from labelsure._kernels import dense_sweeps
from labelsure._kernels.threads import for_rows
from labelsure._typing import Floats, Labelsets
from labelsure.distributions._bridge import LabelsetDistribution
from labelsure.errors import TooLargeError
from labelsure.labelsets import codes_of
from labelsure.metrics import Metric


def count_overlaps(dist: LabelsetDistribution, predicted: Labelsets) -> Floats:
    """Return P(a predicted labels are true and b others are), (n, L + 1, L + 1).

    Parameters
    ----------
    dist
        A distribution whose expected accuracies are exact.
    predicted
        (n, L) predictions.

    Examples
    --------
    >>> from labelsure import IndependentLabels
    >>> count_overlaps(IndependentLabels([[0.9]]), np.array([[1]], dtype=np.int8))
    array([[[0.1, 0. ],
            [0.9, 0. ]]])
    """
    from labelsure.distributions._independent_labels import IndependentLabels  # a kind is above

    if isinstance(dist, IndependentLabels):
        hits, misses = dist.listed.count_hits(predicted.reshape(-1), dist.n_labels)
        return hits[:, :, np.newaxis] * misses[:, np.newaxis]
    overlap = np.zeros((len(dist), dist.n_labels + 1, dist.n_labels + 1))
    if dist.n_labels <= _limits.CHEAP_DENSE_LABELS:
        P = dist._probabilities()
        for_rows(dense_sweeps.overlap_rows, len(dist), P, codes_of(predicted), into=[overlap])
        return overlap
    n_predicted = int(predicted.sum(axis=1).max(initial=0))
    n_others = int((predicted == 0).sum(axis=1).max(initial=0))
    for a in range(n_predicted + 1):
        for b in range(n_others + 1):
            overlap[:, a, b] = _probability_of_counts(dist, predicted, a, b)
    return overlap


def _probability_of_counts(
    dist: LabelsetDistribution, predicted: Labelsets, a: int, b: int
) -> Floats:
    counted = Metric("overlap", lambda tp, fp, fn, tn: ((tp == a) & (fn == b)) * 1.0, (0.0, 1.0))
    found = dist._expected(counted, predicted, 1.0)
    if not np.array_equal(found.low, found.high):
        raise TooLargeError(
            f"A block of {dist.n_labels} chained labels has no exact expected accuracies. Use "
            "smaller blocks, or a trellis."
        )
    return found.value.reshape(len(dist))


def add_independent(first: Floats, second: Floats) -> Floats:
    """Return the overlap table of two independent blocks together, row by row."""
    n_hits, n_misses = first.shape[1:]
    total = np.zeros((len(first), n_hits + second.shape[1] - 1, n_misses + second.shape[2] - 1))
    for a in range(second.shape[1]):
        for b in range(second.shape[2]):
            total[:, a : a + n_hits, b : b + n_misses] += first * second[:, a, b, None, None]
    return total
