"""Kernels over tables of labelsets: the expected Jaccard of many predictions. Section 5."""

from __future__ import annotations

import numpy as np
from numba import njit

from labelsure._kernels import FAST, PLAIN


@njit(**FAST)
def _expected_jaccard(weights, hits, sizes, n_predicted, change, has, empty):
    """Return the mean Jaccard when `change` of the predicted labels' count is one label, `has`.

    `hits` are the true positives before the change; `has` is 1 for labelsets with that label.
    """
    k = n_predicted + change
    if k == 0.0:
        total = 0.0
        for i in range(weights.size):
            total += weights[i] if sizes[i] == 0.0 else 0.0
        return empty * total
    total = 0.0
    for i in range(weights.size):
        hit = hits[i] + change * has[i]
        total += weights[i] * hit / (sizes[i] + k - hit)
    return total


@njit(**PLAIN)
def _count(rows, predicted, hits, sizes):
    """Write how many labels each labelset has, and how many of them are predicted."""
    for i in range(rows.shape[0]):
        size = hit = 0
        for j in range(rows.shape[1]):
            size += rows[i, j]
            hit += rows[i, j] & predicted[j]
        sizes[i] = size
        hits[i] = hit


@njit(**PLAIN)
def jaccard_of_guesses_rows(start, stop, rows, weights, starts, guesses, empty, values):
    """Per row: the expected Jaccard of each of its guesses.

    Parameters
    ----------
    rows, weights, starts
        The labelsets of instance i are rows[starts[i] : starts[i + 1]].
    guesses
        (n, g, L)
    empty
        The Jaccard of two empty labelsets.
    values
        (n, g), written.
    """
    nothing = np.zeros(rows.shape[0])
    for i in range(start, stop):
        mine = slice(starts[i], starts[i + 1])
        hits, sizes = np.empty(starts[i + 1] - starts[i]), np.empty(starts[i + 1] - starts[i])
        for g in range(guesses.shape[1]):
            _count(rows[mine], guesses[i, g], hits, sizes)
            k = float(guesses[i, g].sum())
            values[i, g] = _expected_jaccard(
                weights[mine], hits, sizes, k, 0.0, nothing[: hits.size], empty
            )


@njit(**PLAIN)
def jaccard_of_flips_rows(start, stop, rows, weights, starts, predicted, empty, values):
    """Per row: the expected Jaccard of its prediction with label j flipped, for every j.

    Arguments as for the guesses; `predicted` is (n, L), and so are the values.
    """
    for i in range(start, stop):
        mine = slice(starts[i], starts[i + 1])
        by_label = rows[mine].T.astype(np.float64)  # each label's column in one piece
        hits, sizes = np.empty(starts[i + 1] - starts[i]), np.empty(starts[i + 1] - starts[i])
        _count(rows[mine], predicted[i], hits, sizes)
        k = float(predicted[i].sum())
        for j in range(rows.shape[1]):
            change = -1.0 if predicted[i, j] else 1.0
            values[i, j] = _expected_jaccard(
                weights[mine], hits, sizes, k, change, by_label[j], empty
            )
