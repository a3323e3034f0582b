"""Beam search in chains of logistic regressions: labelsets that are likely in each chain.

Label by label, the `width` likeliest prefixes of a chain are kept. A labelset that is not found
lies below a pruned prefix in every chain, so that

    P(y) <= mean over chains of share * (most probable prefix pruned)      for y not found

A chain costs O(width L |y|): the odds of the next label after a prefix are a product over the
labels set in it. Probabilities within a beam are relative to the largest, so they do not underflow.
"""

from __future__ import annotations

import numpy as np

from labelsure._kernels.compiling import inner, kernel
from labelsure._kernels.labelset_search import find_slot, mixture_probability

LEAST_SCALE = 1e-300  # a scale that underflowed to 0 would prove that nothing was pruned


@inner
def _choose_children(children, n_children, width, chosen):
    """Write the places of the `width` largest, of equal ones the first; return the largest left."""
    threshold = -np.partition(-children[:n_children], width - 1)[width - 1]
    n_above = 0
    for c in range(n_children):
        n_above += children[c] > threshold
    n_equal, n_chosen, left = width - n_above, 0, 0.0
    for c in range(n_children):
        if children[c] > threshold or (children[c] == threshold and n_equal > 0):
            n_equal -= children[c] == threshold
            chosen[n_chosen] = c
            n_chosen += 1
        else:
            left = max(left, children[c])
    return left


@inner
def _search_beam(m, odds, factors, order, width, work):
    """Write the likeliest labelsets of chain m, as the labels set in each and their numbers.

    Returns which of two buffers holds them, how many they are, and the largest probability of a
    prefix that was pruned.
    """
    members, n_members, q, children, chosen = work
    n, here, scale, pruned = 1, 0, 1.0, 0.0
    q[0, 0], n_members[0, 0] = 1.0, 0
    for label in order:
        there, n_children, largest = 1 - here, 2 * n, 0.0
        for c in range(n):
            of_label = odds[m, label]
            for k in range(n_members[here, c]):
                of_label *= factors[m, members[here, c, k], label]
            children[2 * c] = q[here, c] / (1.0 + of_label)
            children[2 * c + 1] = q[here, c] / (1.0 + 1.0 / of_label)
            largest = max(largest, children[2 * c], children[2 * c + 1])
        if n_children > width:
            left = _choose_children(children, n_children, width, chosen)
            pruned = max(pruned, scale * left)
            n = width
        else:
            for c in range(n_children):
                chosen[c] = c
            n = n_children
        for c in range(n):
            parent, is_set = chosen[c] >> 1, chosen[c] & 1
            size = n_members[here, parent]
            for k in range(size):
                members[there, c, k] = members[here, parent, k]
            if is_set:
                members[there, c, size] = label
            n_members[there, c] = size + is_set
            q[there, c] = children[chosen[c]] / largest
        scale = max(scale * largest, LEAST_SCALE)
        here = there
    return here, n, pruned


@inner
def _write_labelsets(kept, P, keys, labelsets, probabilities):
    """Write the most probable labelsets with their probabilities; return the largest of others."""
    n_kept = min(probabilities.size, kept.size)
    for c in range(n_kept):
        probabilities[c] = P[kept[c]]
        for label in range(labelsets.shape[1]):
            word = keys[kept[c], label >> 6] >> np.uint64(label & 63)
            labelsets[c, label] = np.int8(word & np.uint64(1))
    return P[kept[n_kept]] if n_kept < kept.size else 0.0


@kernel
def beam_rows(
    start, stop, odds, factors, shares, orders, width, labelsets, probabilities, lengths, unseen
):
    """Per row: the most probable labelsets of beam searches in all chains.

    Parameters
    ----------
    odds, factors, orders
        As `LinearStack` has them.
    shares
        (n, m) the weight of each chain times m.
    width
        Number of prefixes kept in each chain.
    labelsets, probabilities
        (n, k, L) and (n, k), written: distinct labelsets and their probabilities under the mixture,
        the largest first.
    lengths
        (n,) written: how many of the k were found.
    unseen
        (n,) written: no other labelset has more.
    """
    n_chains, n_labels = orders.shape
    n_words, n_most, n_slots = (n_labels + 63) >> 6, n_chains * width, 64
    while n_slots < 2 * n_most:
        n_slots *= 2
    work = (
        np.empty((2, width, n_labels), dtype=np.int64),
        np.empty((2, width), dtype=np.int64),
        np.empty((2, width)),
        np.empty(2 * width),
        np.empty(2 * width, dtype=np.int64),
    )
    members, n_members, of_label = work[0], work[1], np.empty(n_labels)
    keys, P = np.empty((n_most, n_words), dtype=np.uint64), np.empty(n_most)
    slots = np.empty(n_slots, dtype=np.int64)
    for i in range(start, stop):
        total, n_found = 0.0, 0
        for s in range(n_slots):
            slots[s] = -1
        for m in range(n_chains):
            if shares[i, m] == 0.0:
                continue
            at, n, pruned = _search_beam(m, odds[i], factors, orders[m], width, work)
            total += shares[i, m] * pruned
            for c in range(n):
                labels, key = members[at, c, : n_members[at, c]], keys[n_found]
                for w in range(n_words):
                    key[w] = np.uint64(0)
                for label in labels:
                    key[label >> 6] |= np.uint64(1) << np.uint64(label & 63)
                place = find_slot(key, keys, slots)
                if slots[place] < 0:
                    slots[place] = n_found
                    P[n_found] = mixture_probability(labels, odds[i], factors, shares[i], of_label)
                    n_found += 1
        kept = np.argsort(-P[:n_found], kind="mergesort")
        largest = _write_labelsets(kept, P, keys, labelsets[i], probabilities[i])
        lengths[i] = min(n_found, probabilities.shape[1])
        unseen[i] = max(total / n_chains, largest)
