"""Sweeps over weighted labelsets: the ones that were listed, enumerated or drawn.

Layout: the labelsets of instance i are rows[starts[i] : starts[i + 1]], zeros and ones, with their
weights.

    jaccard_rows  expected Jaccard of g guesses: O(N) for a guess that is one flip away from the
                  first one, N being the instance's labelsets, and O(N L) for any other
"""

from __future__ import annotations

import numpy as np

from labelsure._kernels.compiling import fast_inner, inner, kernel


@fast_inner
def _expect_jaccard(weights, hits, sizes, n_predicted, change, column, empty):
    """Weighted mean Jaccard of a prediction of `n_predicted` labels after one label changes.

    `change` is 1 if that label is added, -1 if it is removed, 0 for no change; `column` holds the
    values of that label in the labelsets. `hits` are the true positives before the change.
    """
    k = n_predicted + change
    if k == 0.0:
        total = 0.0
        for i in range(weights.size):
            total += weights[i] if sizes[i] == 0.0 else 0.0
        return empty * total
    total = 0.0
    for i in range(weights.size):
        hit = hits[i] + change * column[i]
        total += weights[i] * hit / (sizes[i] + k - hit)
    return total


@inner
def _count_labels(labelset):
    count = 0
    for j in range(labelset.size):
        count += int(labelset[j])
    return float(count)


@inner
def _count_hits(rows, predicted, hits):
    """hits[i] = number of predicted labels in rows[i]."""
    for i in range(rows.shape[0]):
        hit = 0
        for j in range(rows.shape[1]):
            hit += int(rows[i, j] & predicted[j])  # as plain Python an int8 would overflow
        hits[i] = hit


@inner
def _compare_guesses(first, second):
    """Hamming distance of two guesses, and the sum of the indices of the labels that differ."""
    n_different = total = 0
    for j in range(first.size):
        different = int(first[j] ^ second[j])
        n_different += different
        total += different * j
    return n_different, total


@kernel
def jaccard_rows(start, stop, rows, weights, starts, guesses, empty, values):
    """Per row: the expected Jaccard of each of its guesses.

    A guess that differs from the row's first one by a single label takes one pass over that
    label's column; for any other the true positives are counted anew. `empty` is the Jaccard of two
    empty labelsets.
    """
    for i in range(start, stop):
        labelsets, shares = rows[starts[i] : starts[i + 1]], weights[starts[i] : starts[i + 1]]
        first_hits, hits = np.empty(shares.size), np.empty(shares.size)
        sizes, column = np.empty(shares.size), np.zeros(shares.size)
        for r in range(sizes.size):
            sizes[r] = _count_labels(labelsets[r])
        first = guesses[i, 0]
        _count_hits(labelsets, first, first_hits)
        k = _count_labels(first)
        values[i, 0] = _expect_jaccard(shares, first_hits, sizes, k, 0.0, column, empty)
        for g in range(1, guesses.shape[1]):
            guess = guesses[i, g]
            n_different, label = _compare_guesses(first, guess)
            if n_different == 1:
                change = -1.0 if first[label] else 1.0
                for r in range(column.size):
                    column[r] = labelsets[r, label]
                values[i, g] = _expect_jaccard(shares, first_hits, sizes, k, change, column, empty)
            else:
                _count_hits(labelsets, guess, hits)
                k_guess = _count_labels(guess)
                values[i, g] = _expect_jaccard(shares, hits, sizes, k_guess, 0.0, column, empty)
