"""Kernels for chains of logistic regressions: all 2**L probabilities without exponentials.

Section numbers are those of `docs/algorithms.md`.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from labelsure._kernels.options import FAST, PLAIN

LOW = 9  # labels in the part of a code that is worked on at a time: buffers of 4 KiB
SAFE_LOGIT = 700.0  # exp of this is still a float


@njit(**PLAIN)
def _doubled(first, factors, table):
    """Write first * (product of the factors whose bits are set) for every code into table."""
    table[0] = first
    size = 1
    for factor in factors:
        for c in range(size):
            table[size + c] = table[c] * factor
        size *= 2


@njit(**PLAIN)
def _doubled_sums(first, terms, table):
    """Write first + (sum of the terms whose bits are set) for every code into table."""
    table[0] = first
    size = 1
    for term in terms:
        for c in range(size):
            table[size + c] = table[c] + term
        size *= 2


@njit(**FAST)
def _split_by_odds(q, odds, factor, zeros, ones):
    """Split each prefix's probability by the odds of its next label."""
    for c in range(q.size):
        odd = odds[c] * factor
        zero = q[c] / (1.0 + odd)
        zeros[c] = zero
        ones[c] = zero * odd


@njit(**PLAIN)
def _split_by_logits(q, logits, shift, zeros, ones):
    """Do the same where products of odds could overflow."""
    for c in range(q.size):
        logit = logits[c] + shift
        small = np.exp(-abs(logit))
        likely = q[c] / (1.0 + small)
        unlikely = likely * small
        zeros[c] = unlikely if logit > 0 else likely
        ones[c] = likely if logit > 0 else unlikely


@njit(**PLAIN)
def _interleave(zeros, ones, rank, target):
    """Write zeros and ones alternately, 2**rank at a time: the new bit has that rank."""
    if rank == 0:
        for c in range(zeros.size):
            target[2 * c] = zeros[c]
            target[2 * c + 1] = ones[c]
    elif rank == 1:
        for c in range(zeros.size // 2):
            for j in range(2):
                target[4 * c + j] = zeros[2 * c + j]
                target[4 * c + 2 + j] = ones[2 * c + j]
    else:
        step = 1 << rank
        for first in range(0, zeros.size, step):
            low, high = target[2 * first : 2 * first + step], target[2 * first + step :]
            zero, one = zeros[first : first + step], ones[first : first + step]
            for j in range(step):
                low[j] = zero[j]
                high[j] = one[j]


@njit(**PLAIN)
def _interleave_add(zeros, ones, rank, target):
    """Add instead of write."""
    if rank == 0:
        for c in range(zeros.size):
            target[2 * c] += zeros[c]
            target[2 * c + 1] += ones[c]
    elif rank == 1:
        for c in range(zeros.size // 2):
            for j in range(2):
                target[4 * c + j] += zeros[2 * c + j]
                target[4 * c + 2 + j] += ones[2 * c + j]
    else:
        step = 1 << rank
        for first in range(0, zeros.size, step):
            low, high = target[2 * first : 2 * first + step], target[2 * first + step :]
            zero, one = zeros[first : first + step], ones[first : first + step]
            for j in range(step):
                low[j] += zero[j]
                high[j] += one[j]


@njit(**PLAIN)
def _write(values, target):
    for c in range(values.size):
        target[c] = values[c]


@njit(**PLAIN)
def _add(values, target):
    for c in range(values.size):
        target[c] += values[c]


@njit(**PLAIN)
def _insert_label(q, terms, base, rank, add, target, work):
    """Split the probabilities `q` of all prefixes by one more label, which gets bit `rank`.

    Bits are in the order of the labels, not of the chain: so the joint of a finished chain needs
    no permutation. `terms` are what each earlier label adds to the logit, in that same order.
    """
    n_before = terms.size
    low = min(n_before, LOW)
    block = 1 << low
    low_table, zeros, ones = work[0, :block], work[1, :block], work[2, :block]
    high_table = np.empty(q.size >> low)
    by_odds = abs(base) + np.abs(terms).sum() <= SAFE_LOGIT
    if by_odds:
        factors = np.exp(terms)
        _doubled(1.0, factors[:low], low_table)
        _doubled(np.exp(base), factors[low:], high_table)
    else:
        _doubled_sums(0.0, terms[:low], low_table)
        _doubled_sums(base, terms[low:], high_table)
    for high in range(high_table.size):
        source = q[high * block : (high + 1) * block]
        if by_odds:
            _split_by_odds(source, low_table, high_table[high], zeros, ones)
        else:
            _split_by_logits(source, low_table, high_table[high], zeros, ones)
        if rank < low:
            target_block = target[2 * high * block : 2 * (high + 1) * block]
            if add:
                _interleave_add(zeros, ones, rank, target_block)
            else:
                _interleave(zeros, ones, rank, target_block)
        else:
            upper = (high >> (rank - low)) << (rank - low)  # the bits above the new one
            first = ((upper << 1) | (high - upper)) * block
            second = first + (1 << rank)
            if add:
                _add(zeros, target[first : first + block])
                _add(ones, target[second : second + block])
            else:
                _write(zeros, target[first : first + block])
                _write(ones, target[second : second + block])


@njit(**PLAIN)
def _add_chain(base, weights, order, share, P, q, spare, work):
    """Add share * P(y) of one chain, for every labelset y in code order, to P."""
    n_labels = order.size
    position = np.empty(n_labels, dtype=np.int64)
    for j in range(n_labels):
        position[order[j]] = j
    terms = np.empty(n_labels)
    q[0] = share
    for j in range(n_labels):
        n_before = 0
        rank = 0
        for label in range(n_labels):
            if position[label] < j:
                terms[n_before] = weights[j, position[label]]
                n_before += 1
                rank += label < order[j]
        last = j == n_labels - 1
        target = P if last else spare
        _insert_label(q[: 1 << j], terms[:j], base[j], rank, last, target, work)
        q, spare = spare, q


@njit(**PLAIN)
def joint_rows(start, stop, bases, weights, orders, P):
    """Per row: the mean of all chains' joints, in code order. Section 4.

    Parameters
    ----------
    bases
        (n, m, L) logit at each position of each chain when no earlier label is set.
    weights
        (m, L, L) what an earlier position adds to the logit of a later one.
    orders
        (m, L) the label at each position.
    P
        (n, 2**L), written.
    """
    n_chains, n_labels = orders.shape
    q, spare = np.empty(1 << (n_labels - 1)), np.empty(1 << (n_labels - 1))
    work = np.empty((3, 1 << LOW))
    for i in range(start, stop):
        P[i] = 0.0
        for m in range(n_chains):
            _add_chain(bases[i, m], weights[m], orders[m], 1.0 / n_chains, P[i], q, spare, work)
