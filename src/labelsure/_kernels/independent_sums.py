"""Kernels for independent labels: closed forms from the marginals. Section 2."""

from __future__ import annotations

import numpy as np

from labelsure._kernels.compiling import fast_inner, fast_kernel


@fast_inner
def _distribute_count(p, n, pmf, spare):
    """Write P(B = b) of the number B of ones among independent p[:n] into pmf[: n + 1].

    Two labels at a time, from one array into another and back: half the passes over the array,
    and loops that vectorise.
    """
    for b in range(n + 1):
        pmf[b] = 0.0
    pmf[0] = 1.0
    done = 0
    if n % 2:
        pmf[0], pmf[1] = 1.0 - p[0], p[0]
        done = 1
    while done < n:
        none = (1.0 - p[done]) * (1.0 - p[done + 1])
        both = p[done] * p[done + 1]
        one = p[done] * (1.0 - p[done + 1]) + (1.0 - p[done]) * p[done + 1]
        old, older, oldest = pmf[2 : done + 3], pmf[1 : done + 2], pmf[: done + 1]
        new = spare[2 : done + 3]
        spare[0] = none * pmf[0]
        spare[1] = none * pmf[1] + one * pmf[0]
        for b in range(new.size):
            new[b] = none * old[b] + one * older[b] + both * oldest[b]
        done += 2
        for b in range(done + 1):  # a loop: checks of what slices hold take seconds to compile
            pmf[b] = spare[b]


@fast_inner
def _split_marginals(marginals, predicted, inside, outside):
    """Copy the marginals of predicted and other labels apart; return how many are predicted."""
    k = 0
    rest = 0
    for j in range(marginals.size):
        if predicted[j]:
            inside[k] = marginals[j]
            k += 1
        else:
            outside[rest] = marginals[j]
            rest += 1
    return k


@fast_kernel
def count_rows(start, stop, marginals, predicted, hits, misses):
    """Per row: the distributions of true positives and of false negatives."""
    n_labels = marginals.shape[1]
    inside, outside = np.empty(n_labels), np.empty(n_labels)
    pmf, spare = np.empty(n_labels + 3), np.empty(n_labels + 3)
    for i in range(start, stop):
        k = _split_marginals(marginals[i], predicted[i], inside, outside)
        _distribute_count(inside, k, pmf, spare)
        for a in range(n_labels + 1):
            hits[i, a] = pmf[a] if a <= k else 0.0
        _distribute_count(outside, n_labels - k, pmf, spare)
        for b in range(n_labels + 1):
            misses[i, b] = pmf[b] if b <= n_labels - k else 0.0


@fast_kernel
def expected_jaccard_rows(start, stop, marginals, predicted, empty, expected):
    """Per row: E[tp / (k + fn)] = E[tp] E[1 / (k + fn)], hits and misses being independent."""
    n_labels = marginals.shape[1]
    inside, outside = np.empty(n_labels), np.empty(n_labels)
    pmf, spare = np.empty(n_labels + 3), np.empty(n_labels + 3)
    for i in range(start, stop):
        k = _split_marginals(marginals[i], predicted[i], inside, outside)
        if k == 0:
            none = 1.0
            for j in range(n_labels):
                none *= 1.0 - outside[j]
            expected[i] = empty * none
            continue
        hits = 0.0
        for j in range(k):
            hits += inside[j]
        _distribute_count(outside, n_labels - k, pmf, spare)
        inverse = 0.0
        for b in range(n_labels - k + 1):
            inverse += pmf[b] / (k + b)
        expected[i] = hits * inverse


@fast_kernel
def expected_f1_rows(start, stop, marginals, predicted, empty, expected):
    """Per row: E[2 tp / (tp + k + fn)] from the two count distributions."""
    n_labels = marginals.shape[1]
    inside, outside = np.empty(n_labels), np.empty(n_labels)
    hits, misses = np.empty(n_labels + 3), np.empty(n_labels + 3)
    spare = np.empty(n_labels + 3)
    for i in range(start, stop):
        k = _split_marginals(marginals[i], predicted[i], inside, outside)
        _distribute_count(inside, k, hits, spare)
        _distribute_count(outside, n_labels - k, misses, spare)
        total = 0.0 if k else empty * misses[0]
        for a in range(1, k + 1):
            inverse = 0.0
            for b in range(n_labels - k + 1):
                inverse += misses[b] / (a + k + b)
            total += hits[a] * 2.0 * a * inverse
        expected[i] = total


@fast_kernel
def jaccard_by_size_rows(start, stop, descending, empty, nodes, weights, values):
    """Per row: the expected Jaccard of the k most probable labels, for every k from 0 to L.

    E[1/(k + fn)] is the integral over t of t**(k-1) times the product over the other labels of
    1 - p + p t. From one k to the next that integrand only gains the factor
    t / (1 - p + p t) <= 1: nothing overflows, and what underflows is negligible.
    """
    n_labels = descending.shape[1]
    integrand = np.empty(nodes.size)
    for i in range(start, stop):
        p = descending[i]
        for q in range(nodes.size):
            integrand[q] = weights[q]
        none = 1.0 - p[0]
        for j in range(1, n_labels):
            none *= 1.0 - p[j]
            for q in range(nodes.size):
                integrand[q] *= 1.0 - p[j] + p[j] * nodes[q]
        values[i, 0] = empty * none
        hits = 0.0
        for k in range(1, n_labels + 1):
            hits += p[k - 1]
            if k > 1:
                for q in range(nodes.size):
                    integrand[q] *= nodes[q] / (1.0 - p[k - 1] + p[k - 1] * nodes[q])
            inverse = 0.0
            for q in range(nodes.size):
                inverse += integrand[q]
            values[i, k] = hits * inverse


@fast_kernel
def f1_by_size_rows(start, stop, descending, empty, nodes, weights, values):
    """Per row: the expected F1 of the k most probable labels, for every k from 0 to L.

    E[2 tp / (|y| + k)] is the integral over t of 2 t**k G(t) times the sum over the k labels of
    p / (1 - p + p t), G(t) being the product over all labels of 1 - p + p t.
    """
    n_labels = descending.shape[1]
    integrand, hits = np.empty(nodes.size), np.empty(nodes.size)
    for i in range(start, stop):
        p = descending[i]
        for q in range(nodes.size):
            integrand[q] = weights[q]
            hits[q] = 0.0
        none = 1.0
        for j in range(n_labels):
            none *= 1.0 - p[j]
            for q in range(nodes.size):
                integrand[q] *= 1.0 - p[j] + p[j] * nodes[q]
        values[i, 0] = empty * none
        for k in range(1, n_labels + 1):
            for q in range(nodes.size):
                integrand[q] *= nodes[q]
                hits[q] += p[k - 1] / (1.0 - p[k - 1] + p[k - 1] * nodes[q])
            total = 0.0
            for q in range(nodes.size):
                total += integrand[q] * hits[q]
            values[i, k] = 2.0 * total
