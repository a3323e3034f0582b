"""Kernels for answers that leave labels open. Section 15."""

from __future__ import annotations

import numpy as np

from labelsure._kernels.compiling import fast_inner, fast_kernel, inner, kernel
from labelsure._limits import TIE


@inner
def _choose_ends(worth, ends):
    """Write the best (n_set, first_absent): of equally good ones with the fewest open labels."""
    best = -np.inf
    for first in range(worth.shape[0]):
        for last in range(first, worth.shape[0]):
            best = max(best, worth[first, last])
    fewest = worth.shape[0]
    for first in range(worth.shape[0]):
        for last in range(first, worth.shape[0]):
            if worth[first, last] >= best - TIE and last - first < fewest:
                fewest = last - first
                ends[0], ends[1] = first, last


@fast_inner
def _add_label(p, n_before, pmf):
    """Change the distribution of a count of n labels to that with one label more."""
    pmf[n_before + 1] = p * pmf[n_before]
    for b in range(n_before, 0, -1):
        pmf[b] = (1.0 - p) * pmf[b] + p * pmf[b - 1]
    pmf[0] *= 1.0 - p


@fast_inner
def _mean_inverse(pmf, n_counted, x, inverses):
    """Return E[1 / (x + B)], B being the count with this distribution."""
    total = 0.0
    shifted = inverses[x : x + n_counted + 1]
    for b in range(shifted.size):
        total += pmf[b] * shifted[b]
    return total


@inner
def _write_inverses(inverses):
    inverses[0] = 0.0
    for x in range(1, inverses.size):
        inverses[x] = 1.0 / x


@fast_kernel
def partial_jaccard_rows(start, stop, descending, costs, empty, ends):
    """Per row: the best answer that sets the first labels, leaves some open, denies the rest.

    Labels come by falling probability. ends[i] is how many are set, and the first that is absent.
    E[tp / (k + fn)] is the product of E[tp] and E[1 / (k + fn)], labels being independent.
    """
    n_labels = descending.shape[1]
    worth = np.empty((n_labels + 1, n_labels + 1))
    pmf, inverses = np.empty(n_labels + 2), np.empty(2 * n_labels + 2)
    _write_inverses(inverses)
    for i in range(start, stop):
        p = descending[i]
        pmf[0] = 1.0
        for last in range(n_labels, -1, -1):
            n_absent = n_labels - last
            if n_absent > 0:
                _add_label(p[last], n_absent - 1, pmf)
            worth[0, last] = -costs[last] if last > 0 else empty * pmf[0]
            hits = 0.0
            for k in range(1, last + 1):
                hits += p[k - 1]
                inverse = _mean_inverse(pmf, n_absent, k, inverses)
                worth[k, last] = hits * inverse - costs[last - k]
        _choose_ends(worth, ends[i])


@fast_kernel
def partial_f1_rows(start, stop, descending, costs, empty, ends):
    """Per row: the same under F1, the mean of 2 tp / (tp + k + fn).

    E[1 / (x + fn)] for each x first, then the mean over the true positives.
    """
    n_labels = descending.shape[1]
    worth = np.empty((n_labels + 1, n_labels + 1))
    hits = np.zeros((n_labels + 1, n_labels + 2))  # hits[k, a] = P(a of the first k are true)
    pmf, inverses = np.empty(n_labels + 2), np.empty(3 * n_labels + 2)
    by_sum = np.empty(2 * n_labels + 1)
    _write_inverses(inverses)
    hits[0, 0] = 1.0
    for i in range(start, stop):
        p = descending[i]
        for k in range(1, n_labels + 1):
            for a in range(k):
                hits[k, a] = hits[k - 1, a]
            _add_label(p[k - 1], k - 1, hits[k])
        pmf[0] = 1.0
        for last in range(n_labels, -1, -1):
            n_absent = n_labels - last
            if n_absent > 0:
                _add_label(p[last], n_absent - 1, pmf)
            for x in range(1, 2 * last + 1):
                by_sum[x] = _mean_inverse(pmf, n_absent, x, inverses)
            worth[0, last] = -costs[last] if last > 0 else empty * pmf[0]
            for k in range(1, last + 1):
                total = 0.0
                for a in range(1, k + 1):
                    total += a * hits[k, a] * by_sum[k + a]
                worth[k, last] = 2.0 * total - costs[last - k]
        _choose_ends(worth, ends[i])


@inner
def _count_pairs(rows, answer, hits, misses):
    """Write how many labels of each labelset an answer sets, and how many it denies."""
    for r in range(rows.shape[0]):
        hit = missed = 0
        for j in range(rows.shape[1]):
            if rows[r, j]:
                hit += answer[j] == 1
                missed += answer[j] == 0
        hits[r] = hit
        misses[r] = missed


@inner
def _find_change(first, second):
    """Return in how many labels two answers differ, and the last of these."""
    n_different = label = 0
    for j in range(first.size):
        if first[j] != second[j]:
            n_different += 1
            label = j
    return n_different, label


@fast_inner
def _expect_changed(weights, hits, misses, has, more_hits, more_misses, worth):
    """Return the mean worth where the labelsets that have a label gain so many hits and misses."""
    total = 0.0
    for r in range(weights.size):
        total += weights[r] * worth[hits[r] + more_hits * has[r], misses[r] + more_misses * has[r]]
    return total


@kernel
def decided_rows(start, stop, rows, weights, starts, answers, worth, worth_of, values):
    """Per row: the mean over its labelsets of what each of its answers is worth.

    An answer that differs from the row's first one by a single label takes one pass over that
    label's column; for any other the counts are made anew.

    Parameters
    ----------
    rows, weights, starts
        The labelsets of instance i are rows[starts[i] : starts[i + 1]].
    answers
        (n, g, L) of 1, 0 and -1 for open labels.
    worth
        (m, L + 1, L + 1) the metric for every number of hits and misses,
    worth_of
        (n, g) which of these m tables is an answer's.
    values
        (n, g), written.
    """
    for i in range(start, stop):
        mine, shares = rows[starts[i] : starts[i + 1]], weights[starts[i] : starts[i + 1]]
        first_hits = np.empty(shares.size, np.int64)
        first_misses = np.empty(shares.size, np.int64)
        hits, misses = np.empty(shares.size, np.int64), np.empty(shares.size, np.int64)
        has = np.zeros(shares.size, np.int64)
        first = answers[i, 0]
        _count_pairs(mine, first, first_hits, first_misses)
        table = worth[worth_of[i, 0]]
        values[i, 0] = _expect_changed(shares, first_hits, first_misses, has, 0, 0, table)
        for g in range(1, answers.shape[1]):
            answer, table = answers[i, g], worth[worth_of[i, g]]
            n_different, label = _find_change(first, answer)
            if n_different == 1:
                more_hits = int(answer[label] == 1) - int(first[label] == 1)
                more_misses = int(answer[label] == 0) - int(first[label] == 0)
                for r in range(has.size):
                    has[r] = mine[r, label]
                values[i, g] = _expect_changed(
                    shares, first_hits, first_misses, has, more_hits, more_misses, table
                )
            else:
                _count_pairs(mine, answer, hits, misses)
                values[i, g] = _expect_changed(shares, hits, misses, has, 0, 0, table)
