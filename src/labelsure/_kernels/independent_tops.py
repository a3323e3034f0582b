"""The k most probable labelsets of independent labels, dense or sparse.

A labelset is the mode with some labels flipped, and each flip costs the label's absolute log-odds.
The k cheapest sets of flips come from a heap (Lawler, 1972): with flips in ascending order of cost,
the sets that follow {..., i} are {..., i, i + 1} and {..., i + 1}.

Costs are counted in units of 2 `TIE` and rounded to whole numbers, whose sums are exact up to 2**53
units, a log-probability of 18,000. So ties are transitive and do not depend on the order of sums.
Labelsets of equal cost come in the order of their codes: a flip has the signed code -(label + 1)
where it takes the label away and label + 1 where it adds it. A flip that costs nothing adds its
label, as a tie goes to 0. So both successors of a set follow it in (cost, code).

All subsets of a set of flips come before it: sets among the first k have at most log2(k) flips, all
of them among the k - 1 cheapest.
"""

from __future__ import annotations

import numpy as np

from labelsure._kernels.compiling import inner, kernel
from labelsure._runtime.limits import TIE

UNIT = 2.0 * TIE
NEAR_HALF = TIE / 4.0  # from one half: log-odds of at most `TIE`
PRODUCT = 512  # factors of at least one half that are multiplied before a log is taken


@inner
def _flip_cost(odds):
    """Cost of a flip in units of 2 `TIE`: |odds| rounded, but 0 if at most `TIE` and else >= 1."""
    size = abs(odds)
    return max(1.0, np.rint(size / UNIT)) if size > TIE else 0.0


@inner
def _insert(units, signed, odds, flips, n):
    """New number of flips after insertion into the sorted arrays of the n cheapest."""
    costs, codes, of_flips = flips
    at = n
    if n == costs.size:  # full: the most expensive one is dropped
        at = n - 1
        if units > costs[at] or (units == costs[at] and signed > codes[at]):
            return n
    while at > 0 and (costs[at - 1] > units or (costs[at - 1] == units and codes[at - 1] > signed)):
        costs[at], codes[at], of_flips[at] = costs[at - 1], codes[at - 1], of_flips[at - 1]
        at -= 1
    costs[at], codes[at], of_flips[at] = units, signed, odds
    return min(n + 1, costs.size)


@inner
def _last_difference(first, second, codes):
    """Signed code of the highest label that only the first set of flips changes, or 0."""
    highest = 0
    for flip in first:
        is_shared = False
        for other in second:
            is_shared |= flip == other
        if not is_shared and abs(codes[flip]) > abs(highest):
            highest = codes[flip]
    return highest


@inner
def _comes_first(a, b, costs, sizes, members, codes):
    """Whether a set of flips costs less than another or, at the same cost, has a lower code."""
    if costs[a] != costs[b]:
        return costs[a] < costs[b]
    one, other = members[a, : sizes[a]], members[b, : sizes[b]]
    of_a, of_b = _last_difference(one, other, codes), _last_difference(other, one, codes)
    return of_a < 0 if abs(of_a) > abs(of_b) else of_b > 0


@inner
def _push(entry, heap, n, costs, sizes, members, codes):
    at = n
    while at > 0:
        parent = (at - 1) // 2
        if not _comes_first(entry, heap[parent], costs, sizes, members, codes):
            break
        heap[at] = heap[parent]
        at = parent
    heap[at] = entry


@inner
def _pop(heap, n, costs, sizes, members, codes):
    first, last = heap[0], heap[n - 1]
    at = 0
    while 2 * at + 1 < n - 1:
        child = 2 * at + 1
        if child + 1 < n - 1 and _comes_first(
            heap[child + 1], heap[child], costs, sizes, members, codes
        ):
            child += 1
        if not _comes_first(heap[child], last, costs, sizes, members, codes):
            break
        heap[at] = heap[child]
        at = child
    heap[at] = last
    return first


@inner
def _cheapest_sets(flips, n_flips, log_top, entries, flipped, logs):
    """Number of labelsets; writes the flipped labels and the log-probability of each, best first.

    `entries` are work arrays for sets of flips: cost, cost without the last flip, size and members
    of each, and the heap of their indices.
    """
    prices, codes, odds = flips
    costs, base_costs, sizes, members, heap = entries
    n_sets, n_entries, n_waiting = 1, 0, 0
    logs[0] = log_top
    if n_flips > 0:
        costs[0], base_costs[0], sizes[0], members[0, 0] = prices[0], 0.0, 1, 0
        heap[0] = 0
        n_entries = n_waiting = 1
    while n_waiting > 0 and n_sets < logs.size:
        entry = _pop(heap, n_waiting, costs, sizes, members, codes)
        n_waiting -= 1
        n = sizes[entry]
        total = 0.0
        for m in range(n):
            flip = members[entry, m]
            flipped[n_sets, m] = abs(codes[flip]) - 1
            total += odds[flip]
        logs[n_sets] = log_top - total
        n_sets += 1
        last = members[entry, n - 1]
        if last + 1 == n_flips:
            continue
        for is_exchange in range(2):
            if not is_exchange and n == members.shape[1]:
                continue
            size = n if is_exchange else n + 1
            for m in range(size - 1):
                members[n_entries, m] = members[entry, m]
            members[n_entries, size - 1] = last + 1
            sizes[n_entries] = size
            base_costs[n_entries] = base_costs[entry] if is_exchange else costs[entry]
            costs[n_entries] = base_costs[n_entries] + prices[last + 1]
            _push(n_entries, heap, n_waiting, costs, sizes, members, codes)
            n_entries += 1
            n_waiting += 1
    return n_sets


@kernel
def top_rows(start, stop, listed, unlisted, n_labels, flipped, logs, n_found):
    """Per row: the labels in which each of the k most probable labelsets differs from the mode.

    Parameters
    ----------
    listed
        Marginals; logits, or none where there are only marginals; labels, or none where all labels
        of each row are listed; and where the rows start.
    unlisted
        Probability and log-odds of a label that is not listed.
    n_labels
        Number of labels.
    flipped
        (n, k, width), -1 before the call: the first entries of each row are overwritten.
    logs
        (n, k) written: log-probabilities.
    n_found
        (n,) written: the number of labelsets, less than k where fewer are possible.
    """
    marginals, logits, labels, starts = listed
    floor, floor_odds = unlisted
    k, width = flipped.shape[1:]
    n_cheapest = min(k - 1, n_labels)
    flips = (
        np.empty(n_cheapest), np.empty(n_cheapest, dtype=np.int64), np.empty(n_cheapest)
    )  # fmt: skip
    entries = (
        np.empty(2 * k), np.empty(2 * k), np.empty(2 * k, dtype=np.int64),
        np.empty((2 * k, width), dtype=np.int64), np.empty(2 * k, dtype=np.int64),
    )  # fmt: skip
    for i in range(start, stop):
        n_flips = 0
        n_others = n_labels - (starts[i + 1] - starts[i])
        log_top = n_others * np.log1p(-floor) if n_others > 0 else 0.0
        product = 1.0
        farthest = 0.5  # from one half; beyond, a label is not among the cheapest
        for a in range(starts[i], starts[i + 1]):
            label = labels[a] if labels.size else a - starts[i]
            p = np.float64(marginals[a])
            if logits.size:
                odds = logits[a]
                is_one = odds > TIE
                log_top -= np.log1p(np.exp(-abs(odds)))
                if n_cheapest == 0 or np.isinf(odds):
                    continue
            else:
                is_one = p > 0.5 + NEAR_HALF
                product *= p if is_one else 1.0 - p
                if (a - starts[i]) % PRODUCT == PRODUCT - 1:
                    log_top += np.log(product)
                    product = 1.0
                # Log-odds are at least four times as far apart as probabilities.
                if n_cheapest == 0 or abs(p - 0.5) > farthest + TIE or p == 0.0 or p == 1.0:
                    continue
                odds = np.log(p) - np.log(1.0 - p)
            signed = -(label + 1) if is_one else label + 1
            n_flips = _insert(_flip_cost(odds), signed, abs(odds), flips, n_flips)
            if n_flips == n_cheapest:
                farthest = 0.5 * np.tanh(0.5 * flips[2][n_flips - 1])
        log_top += np.log(product)
        if n_others > 0 and not np.isinf(floor_odds):
            units = _flip_cost(floor_odds)
            at, label, n_tried = starts[i], 0, 0
            while n_tried < n_cheapest and label < n_labels:
                if at < starts[i + 1] and labels[at] == label:
                    at += 1
                else:
                    n_flips = _insert(units, label + 1, abs(floor_odds), flips, n_flips)
                    n_tried += 1
                label += 1
        n_found[i] = _cheapest_sets(flips, n_flips, log_top, entries, flipped[i], logs[i])
