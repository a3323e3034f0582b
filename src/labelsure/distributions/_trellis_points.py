"""Where a trellis evaluates generating functions, and how expectations are made of the values.

Section numbers are those of `docs/algorithms.md`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from labelsure._runtime.typing import Floats, Indices, Mask
from labelsure.distributions._reciprocals import sum_of_powers
from labelsure.metrics.registry import F1, JACCARD, Metric

Points = tuple[Floats, Floats]
"""Weights (q, 2, 3) of a false negative and a true positive at each point, coefficients (q, 2)."""


def join_points(metrics: Sequence[Metric], n_labels: int, k: int, empty: float) -> Points:
    """Return the points of several metrics, with coefficients (q, metrics, 2)."""
    points = [_points_of(metric, n_labels, k, empty) for metric in metrics]
    coefficients = np.zeros((sum(len(weights) for weights, _ in points), len(metrics), 2))
    first = 0
    for column, (weights, own) in enumerate(points):
        coefficients[first : first + len(weights), column] = own
        first += len(weights)
    return np.concatenate([weights for weights, _ in points]), coefficients


def _points_of(metric: Metric, n_labels: int, k: int, empty: float) -> Points:
    """Return where to evaluate the generating function of (tp, fn), and what to add up.

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
    """Return weights by which a true positive counts hit * z, with the derivative at z = 1."""
    weights = np.zeros((len(missed), 2, 3))
    weights[:, 0, 0] = missed
    weights[:, 1, 0] = weights[:, 1, 2] = hit
    return weights


def _take_derivative(coefficients: Floats) -> Floats:
    """Return coefficients of both parts of a value, where only the derivative counts."""
    return np.column_stack([np.zeros_like(coefficients), coefficients])


def points_of_flips(n_labels: int, k: int) -> tuple[Floats, Floats, Floats]:
    """Return t, c and the weights at each t for the Jaccard of k labels and of k - 1 and k + 1.

    The sum over t of c t**(u - max(1, k - 1)) is 1/u for every denominator that these can have.
    """
    nodes, coefficients = sum_of_powers(max(1, k - 1), n_labels)
    return nodes, coefficients, _weigh(nodes, np.ones_like(nodes))


def jaccard_of_flips(
    nodes: Floats, coefficients: Floats, totals: Floats, with_label: Floats, is_set: Mask
) -> Floats:
    """Return the expected Jaccard of predictions of k labels and of each with a label flipped.

    A label that is put in is no longer missed, one that is taken out may be: at every t all these
    follow from E[t**fn] and E[tp t**fn], over all labelsets and over those with that label.

    Parameters
    ----------
    nodes, coefficients
        Of `points_of_flips`.
    totals
        (n, q, 2) E[t**fn] and E[tp t**fn].
    with_label
        (n, L, q, 2) E[y_j t**fn] and E[y_j tp t**fn].
    is_set
        (n, L) the predictions, all with as many labels.

    Returns
    -------
    (n, 1 + L) values. The one of the empty labelset is not among them: what is there is
    meaningless.
    """
    k = int(is_set[0].sum())
    powers = coefficients * nodes ** (k - max(1, k - 1))
    value, derivative = with_label[..., 0], with_label[..., 1]
    without = totals[:, np.newaxis, :, 1] - derivative
    put_in = (without + (derivative + value) / nodes) @ (powers * nodes)
    taken_out = (without + (derivative - value) * nodes) @ (powers / nodes)
    return np.column_stack([totals[..., 1] @ powers, np.where(is_set, taken_out, put_in)])


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
    points = [rotations(n_hits * turns, n_counts), rotations(turns, n_counts)]
    return np.stack(points, axis=1), np.column_stack([transform.real, transform.imag])


def rotations(numerators: Indices, denominator: int) -> Floats:
    """Return the roots of unity exp(-2 pi i numerator / denominator) as weights (a, b, c)."""
    angle = -2 * np.pi * (numerators % denominator) / denominator
    return np.column_stack([np.cos(angle), -np.sin(angle), np.sin(angle)])
