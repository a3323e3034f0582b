"""Beam search in chains of logistic regressions: labelsets that are likely in each chain.

Label by label, the `width` likeliest prefixes of a chain are kept. A labelset that is not found
lies below a pruned prefix in every chain, so that

    P(y) <= mean over chains of share * (most probable prefix pruned)      for y not found

Of the labelsets found, only those are evaluated under the mixture whose *score*, the part of P(y)
that comes from the chains that found them, is large. A chain costs O(width L |y|): the odds of the
next label after a prefix are a product over the labels set in it. Probabilities within a beam are
relative to the largest, so they do not underflow.
"""

from __future__ import annotations

import numpy as np

from labelsure._kernels.compiling import fast_inner, inner, kernel
from labelsure._kernels.labelset_search import find_slot, mixture_probability

MIN_SCALE = 1e-300  # a scale that underflowed to 0 would prove that nothing was pruned
HALVINGS = 60  # of an interval, after which its ends differ by rounding
MIN_RELATIVE_SCORE = 0.2
"""Beyond as many labelsets as are kept, those are evaluated whose score is at least this share of
the k-th largest. The score of the mode was at least .3 of the largest in 1,500 rows of 16 labels:
1 to 10 random chains, flat and sharp, and chains fitted to CAL500, Enron and Yeast."""


@fast_inner
def _count_above(values, threshold):
    count = 0
    for i in range(values.size):
        count += values[i] > threshold
    return count


@inner
def _choose_children(children, width, largest, chosen):
    """Number of chosen children, and the largest probability of the others.

    Writes the indices of the `width` largest to `chosen`, in ascending order, by bisection of a
    threshold in [0, largest]. Probabilities within largest * 2**-60 of each other count as equal:
    of these the first are taken.
    """
    low, high, n_above = 0.0, largest, 0
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        n = _count_above(children, middle)
        if n > width:
            low = middle
        else:
            high, n_above = middle, n
            if n == width:
                break
    n_equal, n_chosen, largest_other = width - n_above, 0, 0.0
    for c in range(children.size):
        child = children[c]
        is_equal = (child > low) & (child <= high) & (n_equal > 0)
        is_chosen = (child > high) | is_equal
        n_equal -= is_equal
        chosen[n_chosen] = c
        n_chosen += is_chosen
        largest_other = max(largest_other, 0.0 if is_chosen else child)
    return n_chosen, largest_other


@fast_inner
def _split_prefixes(q, odds, children):
    """children[2 c] = q[c] / (1 + odds[c]) and children[2 c + 1] = q[c] odds[c] / (1 + odds[c])."""
    for c in range(q.size):
        children[2 * c] = q[c] / (1.0 + odds[c])
        children[2 * c + 1] = q[c] / (1.0 + 1.0 / odds[c])


@inner
def _search_beam(m, odds, factors, order, width, nodes, work):
    """Size n of the final beam of chain m, its scale, and the largest pruned prefix probability.

    Labelset c < n is the linked list of nodes from last[c] back to node 0, which has no label, and
    its probability is scale * q[c].
    """
    label_of, before = nodes
    last, q, parents, label_odds, children, chosen = work
    n, n_nodes, scale, pruned = 1, 1, 1.0, 0.0
    q[0], last[0] = 1.0, 0
    for label in order:
        for c in range(n):
            node, label_odds[c], parents[c] = last[c], odds[m, label], last[c]
            while node > 0:
                label_odds[c] *= factors[m, label_of[node], label]
                node = before[node]
        _split_prefixes(q[:n], label_odds, children)
        n, largest = 2 * n, 0.0
        for c in range(n):
            largest = max(largest, children[c])
            chosen[c] = c
        if n > width:
            n, largest_other = _choose_children(children[:n], width, largest, chosen)
            pruned = max(pruned, scale * largest_other)
        for c in range(n):
            last[c] = parents[chosen[c] >> 1]
            if chosen[c] & 1:
                label_of[n_nodes], before[n_nodes] = label, last[c]
                last[c] = n_nodes
                n_nodes += 1
            q[c] = children[chosen[c]] / largest
        scale = max(scale * largest, MIN_SCALE)
    return n, scale, pruned


@inner
def _write_key(node, nodes, key):
    """Bit set (uint64 words) of the labels in the linked list that ends at `node`, into key."""
    label_of, before = nodes
    for w in range(key.size):
        key[w] = np.uint64(0)
    while node > 0:
        key[label_of[node] >> 6] |= np.uint64(1) << np.uint64(label_of[node] & 63)
        node = before[node]


@inner
def _list_labels(key, labels):
    """Number n of labels in a bit set; they are written to labels[:n], ascending."""
    n = 0
    for label in range(labels.size):
        labels[n] = label
        n += int((key[label >> 6] >> np.uint64(label & 63)) & np.uint64(1))
    return n


@kernel
def beam_rows(
    start, stop, odds, factors, shares, orders, width, n_best, labelsets, lengths, unseen
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
    n_best
        Rank k of the score that `MIN_RELATIVE_SCORE` multiplies.
    labelsets
        (n, at least k, L) written: distinct labelsets, the most probable first.
    lengths
        (n,) written: number of labelsets.
    unseen
        (n,) written: upper bound on the probability of any other labelset.
    """
    n_chains, n_labels = orders.shape
    n_most, n_slots = n_chains * width, 64
    while n_slots < 2 * n_most:
        n_slots *= 2
    last, q = np.empty(2 * width, dtype=np.int64), np.empty(2 * width)
    parents, chosen = np.empty(width, dtype=np.int64), np.empty(2 * width + 1, dtype=np.int64)
    work = (last, q, parents, np.empty(width), np.empty(2 * width), chosen)
    nodes = np.empty((2, width * n_labels + 1), dtype=np.int64)
    keys = np.empty((n_most, (n_labels + 63) >> 6), dtype=np.uint64)
    # A labelset outside the beam of a chain has at most that chain's pruned probability:
    # n_chains * P(y) <= total + bounds, total being the bound of labelsets that no chain found.
    scores, bounds, P = np.empty(n_most), np.empty(n_most), np.empty(n_most)
    slots, labels = np.empty(n_slots, dtype=np.int64), np.empty(n_labels, dtype=np.int64)
    label_odds = np.empty(n_labels)
    for i in range(start, stop):
        total, n_found = 0.0, 0
        for s in range(n_slots):
            slots[s] = -1
        for m in range(n_chains):
            if shares[i, m] == 0.0:
                continue
            n, scale, pruned = _search_beam(m, odds[i], factors, orders[m], width, nodes, work)
            total += shares[i, m] * pruned
            for c in range(n):
                _write_key(last[c], nodes, keys[n_found])
                place = find_slot(keys[n_found], keys, slots)
                if slots[place] < 0:
                    slots[place] = n_found
                    scores[n_found] = bounds[n_found] = 0.0
                    n_found += 1
                scores[slots[place]] += shares[i, m] * scale * q[c]
                bounds[slots[place]] += shares[i, m] * (scale * q[c] - pruned)
        best = np.argsort(-scores[:n_found])
        least, largest = MIN_RELATIVE_SCORE * scores[best[min(n_best, n_found) - 1]], total
        n_evaluated = 0
        for f in best:
            if scores[f] < least and n_evaluated >= labelsets.shape[1]:
                largest = max(largest, total + bounds[f])
            else:
                members = labels[: _list_labels(keys[f], labels)]
                p = mixture_probability(members, odds[i], factors, shares[i], label_odds)
                P[n_evaluated] = max(p, scores[f] / n_chains)  # the score, where p underflows
                n_evaluated += 1
        # Those that were evaluated come first in `best`.
        kept = np.argsort(-P[:n_evaluated], kind="mergesort")
        lengths[i] = min(n_evaluated, labelsets.shape[1])
        for c in range(lengths[i]):
            key = keys[best[kept[c]]]
            for label in range(n_labels):
                word = key[label >> 6] >> np.uint64(label & 63)
                labelsets[i, c, label] = np.int8(word & np.uint64(1))
        if lengths[i] < n_evaluated:
            largest = max(largest, n_chains * P[kept[lengths[i]]])
        unseen[i] = largest / n_chains
