"""Sums over independent labels: closed forms and short integrals from the marginals.

Layout: the listed labels of instance i are marginals[starts[i] : starts[i + 1]]. Its *unlisted*
labels all have one small probability; the number of them that are true has a binomial
distribution. `unlisted` holds a row for each distinct number of unlisted labels: the row of each
instance, the first count of each row, and P(count) from there on, (rows, counts).

    count_rows             distributions of true positives and false negatives: Poisson-binomial,
                           by convolution with two labels at a time, O(L**2)
    expected_jaccard_rows  E[tp] E[1 / (k + fn)], true positives and misses being independent
    expected_f1_rows       from both distributions, O(k L)
    best_jaccard_sizes     optimum of Jaccard and of F1, which the k most probable labels reach for
    best_f1_sizes          some k: all k at once by Gauss-Legendre quadrature of generating
                           functions, O(L**2), exact but for rounding
    find_labels_rows       indices of queried labels in sparse rows, by merging

All terms of a convolution are positive: relative errors stay within about L roundings.
"""

from __future__ import annotations

import numpy as np

from labelsure._kernels.compiling import fast_inner, fast_kernel
from labelsure._runtime.limits import TIE


@fast_inner
def _convolve_labels(p, n, pmf, size, spare):
    """New size of pmf[:size], the distribution of a count, convolved with n Bernoulli(p).

    Two labels at a time are a polynomial none + one t + both t**2, from one array into another and
    back: half the passes over the array, and loops that vectorise.
    """
    for b in range(size, size + n + 1):
        pmf[b] = 0.0
    done = 0
    if n % 2:
        for b in range(size, 0, -1):
            pmf[b] = (1.0 - p[0]) * pmf[b] + p[0] * pmf[b - 1]
        pmf[0] *= 1.0 - p[0]
        done = 1
        size += 1
    while done < n:
        none = (1.0 - p[done]) * (1.0 - p[done + 1])
        both = p[done] * p[done + 1]
        one = p[done] * (1.0 - p[done + 1]) + (1.0 - p[done]) * p[done + 1]
        old, older, oldest = pmf[2 : size + 2], pmf[1 : size + 1], pmf[:size]
        new = spare[2 : size + 2]
        spare[0] = none * pmf[0]
        spare[1] = none * pmf[1] + one * pmf[0]
        for b in range(new.size):
            new[b] = none * old[b] + one * older[b] + both * oldest[b]
        done += 2
        size += 2
        for b in range(size):  # a loop: checks of what slices hold take seconds to compile
            pmf[b] = spare[b]
    return size


@fast_inner
def _count_pmf(p, n, pmf, spare):
    """Poisson-binomial distribution of independent p[:n] into pmf[: n + 1]; its size n + 1."""
    pmf[0] = 1.0
    return _convolve_labels(p, n, pmf, 1, spare)


@fast_inner
def _misses_pmf(p, n, unlisted_pmf, pmf, spare):
    """Distribution of false negatives into pmf: p[:n] and the unlisted labels; its size.

    pmf[b] is the probability of b more than the first count of `unlisted_pmf`.
    """
    for b in range(unlisted_pmf.size):
        pmf[b] = unlisted_pmf[b]
    return _convolve_labels(p, n, pmf, unlisted_pmf.size, spare)


@fast_inner
def _split_marginals(marginals, predicted, inside, outside):
    """Number of predicted labels; their marginals are copied to `inside`, others to `outside`."""
    k = 0
    n_outside = 0
    for j in range(marginals.size):
        if predicted[j]:
            inside[k] = marginals[j]
            k += 1
        else:
            outside[n_outside] = marginals[j]
            n_outside += 1
    return k


@fast_inner
def _longest_row(starts, start, stop):
    longest = 0
    for i in range(start, stop):
        longest = max(longest, starts[i + 1] - starts[i])
    return longest


@fast_kernel
def count_rows(start, stop, marginals, predicted, starts, unlisted, hits, misses):
    """Per row: the distributions of true positives and of false negatives."""
    row_of, first_counts, pmfs = unlisted
    longest = _longest_row(starts, start, stop)
    inside, outside = np.empty(longest), np.empty(longest)
    size = longest + pmfs.shape[1] + 3
    pmf, spare = np.empty(size), np.empty(size)
    for i in range(start, stop):
        listed = slice(starts[i], starts[i + 1])
        k = _split_marginals(marginals[listed], predicted[listed], inside, outside)
        n_others = starts[i + 1] - starts[i] - k
        n_hits = _count_pmf(inside, k, pmf, spare)
        for a in range(hits.shape[1]):
            hits[i, a] = pmf[a] if a < n_hits else 0.0
        first = first_counts[row_of[i]]
        n_misses = _misses_pmf(outside, n_others, pmfs[row_of[i]], pmf, spare)
        for b in range(misses.shape[1]):
            misses[i, b] = pmf[b - first] if first <= b < first + n_misses else 0.0


@fast_kernel
def expected_jaccard_rows(start, stop, marginals, predicted, starts, unlisted, empty, expected):
    """Per row: E[tp / (k + fn)] = E[tp] E[1 / (k + fn)], hits and misses being independent."""
    row_of, first_counts, pmfs = unlisted
    longest = _longest_row(starts, start, stop)
    inside, outside = np.empty(longest), np.empty(longest)
    size = longest + pmfs.shape[1] + 3
    pmf, spare = np.empty(size), np.empty(size)
    for i in range(start, stop):
        listed = slice(starts[i], starts[i + 1])
        k = _split_marginals(marginals[listed], predicted[listed], inside, outside)
        n_others = starts[i + 1] - starts[i] - k
        first = first_counts[row_of[i]]
        if k == 0:
            none = pmfs[row_of[i], 0] if first == 0 else 0.0
            for j in range(n_others):
                none *= 1.0 - outside[j]
            expected[i] = empty * none
            continue
        hits = 0.0
        for j in range(k):
            hits += inside[j]
        n_misses = _misses_pmf(outside, n_others, pmfs[row_of[i]], pmf, spare)
        inverse = 0.0
        for b in range(n_misses):
            inverse += pmf[b] / (k + first + b)
        expected[i] = hits * inverse


@fast_kernel
def expected_f1_rows(start, stop, marginals, predicted, starts, unlisted, empty, expected):
    """Per row: E[2 tp / (tp + k + fn)] from the two count distributions."""
    row_of, first_counts, pmfs = unlisted
    longest = _longest_row(starts, start, stop)
    inside, outside = np.empty(longest), np.empty(longest)
    size = longest + pmfs.shape[1] + 3
    hits, misses, spare = np.empty(size), np.empty(size), np.empty(size)
    for i in range(start, stop):
        listed = slice(starts[i], starts[i + 1])
        k = _split_marginals(marginals[listed], predicted[listed], inside, outside)
        n_others = starts[i + 1] - starts[i] - k
        first = first_counts[row_of[i]]
        _count_pmf(inside, k, hits, spare)
        n_misses = _misses_pmf(outside, n_others, pmfs[row_of[i]], misses, spare)
        total = empty * misses[0] if k == 0 and first == 0 else 0.0
        for a in range(1, k + 1):
            inverse = 0.0
            for b in range(n_misses):
                inverse += misses[b] / (a + k + first + b)
            total += hits[a] * 2.0 * a * inverse
        expected[i] = total


@fast_inner
def _write_best_size(values, n, size, best, i):
    """size[i] = first k <= n with values[k] within `TIE` of the maximum, best[i] = the maximum."""
    highest = values[0]
    for k in range(1, n + 1):
        highest = max(highest, values[k])
    k = 0
    while values[k] < highest - TIE:
        k += 1
    size[i] = k
    best[i] = highest


@fast_kernel
def best_jaccard_sizes(start, stop, descending, empty, nodes, weights, unlisted, sizes, best):
    """Per row: optimal number k of most probable labels under Jaccard, and its expected value.

    E[1/(k + fn)] is the integral over t of t**(k-1) times the product over the other labels of
    1 - p + p t. From one k to the next that integrand only gains the factor
    t / (1 - p + p t) <= 1: nothing overflows, and what underflows is negligible. `unlisted` has the
    row of each instance, and for each row the product over the unlisted labels at each node and 0.
    """
    row_of, at_nodes, at_zero = unlisted
    n_labels = descending.shape[1]
    integrand, values = np.empty(nodes.size), np.empty(n_labels + 1)
    for i in range(start, stop):
        p = descending[i]
        for q in range(nodes.size):
            integrand[q] = weights[q] * at_nodes[row_of[i], q]
        none = (1.0 - p[0]) * at_zero[row_of[i]]
        for j in range(1, n_labels):
            none *= 1.0 - p[j]
            for q in range(nodes.size):
                integrand[q] *= 1.0 - p[j] + p[j] * nodes[q]
        values[0] = empty * none
        hits = 0.0
        for k in range(1, n_labels + 1):
            hits += p[k - 1]
            if k > 1:
                for q in range(nodes.size):
                    integrand[q] *= nodes[q] / (1.0 - p[k - 1] + p[k - 1] * nodes[q])
            inverse = 0.0
            for q in range(nodes.size):
                inverse += integrand[q]
            values[k] = hits * inverse
        _write_best_size(values, n_labels, sizes, best, i)


@fast_kernel
def best_f1_sizes(start, stop, descending, empty, nodes, weights, unlisted, sizes, best):
    """Per row: optimal number k of most probable labels under F1, and its expected value.

    E[2 tp / (|y| + k)] is the integral over t of 2 t**k G(t) times the sum over the k labels of
    p / (1 - p + p t), G(t) being the product over all labels of 1 - p + p t.
    """
    row_of, at_nodes, at_zero = unlisted
    n_labels = descending.shape[1]
    integrand, hits = np.empty(nodes.size), np.empty(nodes.size)
    values = np.empty(n_labels + 1)
    for i in range(start, stop):
        p = descending[i]
        for q in range(nodes.size):
            integrand[q] = weights[q] * at_nodes[row_of[i], q]
            hits[q] = 0.0
        none = at_zero[row_of[i]]
        for j in range(n_labels):
            none *= 1.0 - p[j]
            for q in range(nodes.size):
                integrand[q] *= 1.0 - p[j] + p[j] * nodes[q]
        values[0] = empty * none
        for k in range(1, n_labels + 1):
            for q in range(nodes.size):
                integrand[q] *= nodes[q]
                hits[q] += p[k - 1] / (1.0 - p[k - 1] + p[k - 1] * nodes[q])
            total = 0.0
            for q in range(nodes.size):
                total += integrand[q] * hits[q]
            values[k] = 2.0 * total
        _write_best_size(values, n_labels, sizes, best, i)


@fast_kernel
def find_labels_rows(start, stop, listed, listed_starts, queried, query_starts, places):
    """Per row: index of each queried label among the listed ones; both are in ascending order.

    A label that is not listed gets -1 - (index at row_of it would be inserted).
    """
    for i in range(start, stop):
        at, end = listed_starts[i], listed_starts[i + 1]
        for a in range(query_starts[i], query_starts[i + 1]):
            while at < end and listed[at] < queried[a]:
                at += 1
            places[a] = at if at < end and listed[at] == queried[a] else -at - 1
