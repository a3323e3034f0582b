"""Joints of chains of logistic regressions: all 2**L probabilities without exponentials.

`joint_rows` writes the weighted mean of m chains. A chain's joint grows by prefixes, each split by
the odds of the next label; the odds after a prefix are products of exp(weights) of the labels that
are set, so they come from tables: 1.5 divisions and no exponential for each labelset and chain,
O(m 2**L). All factors are positive: relative errors stay within about L roundings. Where odds could
overflow, logits are added instead.

How a row of 2**L probabilities is made, here with L = 5 labels in blocks of 2**3 labelsets.

Labels 3 and 4 come early in all chains: they are *fixed* in a block. The others *vary*, and the
later they come in the chains, the higher is their bit in the block.

    high_code   block: bits of labels 1, 2 and 0, of which label 1 comes last in the chains
    y4 y3       000   001   010   011   100   101   110   111
     0  0     |     |     |     |     |     |     |     |     |   every chain is added to a
     0  1     |     |     |     |     |     |     |     |     |   block while it is in the cache,
     1  0     |     |     |     |     |     |     |     |     |   then `_write_block` writes it
     1  1     |     |     |     |     |     |     |     |     |   to its places in the row

A chain adds itself by growing prefixes, two labels at a time. Each prefix is split into four
*parts* (neither label, the first, the second, both), and these move to the places that the two
new bits give them, so that bits are in the order of the block, not of the chain:

    q       | prefix |
    parts   | neither | first | second | both |      a fixed label keeps half of the parts
    spare   | ... | ... | ... | ... |                which is `q` of the next two labels

The odds of a label after each prefix are a product of two small tables:

    code of a prefix    [ high bits | low bits, LOW of them ]
    odds                high_table[high bits] * low_table[low bits]
"""

from __future__ import annotations

import numpy as np

from labelsure._kernels.compiling import fast_inner, inner, kernel
from labelsure._runtime.typing import Floats, Indices

BlockPlan = tuple[Floats, Floats, Indices, Indices, tuple[Indices, ...], Indices]
"""Weights, odds factors, bits by position, positions by bit, scatter indices, fixed labels."""

BLOCK_LABELS = 18  # labels that vary within a block of labelsets, which fits the shared cache
LINE_LABELS = 3  # labels whose bits tell the entries of one line of memory apart
LOW = 9  # labels that vary within the part of a block that is worked on at a time
PART = 1 << LOW  # prefixes worked on at a time: buffers of 4 KiB
LONG_RUN = 32  # contiguous entries from which on they are copied in a loop of their own
NO_BIT = 62  # a zero inserted there changes no code
SAFE_LOGIT = 700.0  # exp of this is still a float
SAFE_PAIR = 300.0  # exp of this leaves room to divide a small probability by it


@inner
def _fill_products(first, factors, table):
    """table[c] = first * (product of the factors whose bits are set in c), c < 2**n_factors."""
    table[0] = first
    size = 1
    for factor in factors:
        for c in range(size):
            table[size + c] = table[c] * factor
        size *= 2


@inner
def _fill_sums(first, terms, table):
    """table[c] = first + (sum of the terms whose bits are set in c), c < 2**n_terms."""
    table[0] = first
    size = 1
    for term in terms:
        for c in range(size):
            table[size + c] = table[c] + term
        size *= 2


@fast_inner
def _split_by_odds(q, odds, factor, other_factor, link, parts):
    """Joint of each prefix with its next two labels from their odds a and b, with one division.

    P(0, 0), P(1, 0), P(0, 1), P(1, 1) are the four rows of `parts`, q (1 + b l), q a (1 + b),
    q (1 + b l) b and q a (1 + b) b l over (1 + a) (1 + b) (1 + b l): the first label multiplies the
    odds of the second by l = `link`. Rows of `odds` and `parts` are a constant stride apart, so
    that the compiler knows that they do not overlap.
    """
    for c in range(q.size):
        first = odds[c] * factor
        second = odds[PART + c] * other_factor
        linked = second * link
        share = q[c] / ((1.0 + first) * ((1.0 + second) * (1.0 + linked)))
        zero = share * (1.0 + linked)
        one = share * (1.0 + second) * first
        parts[c] = zero
        parts[PART + c] = one
        parts[2 * PART + c] = zero * second
        parts[3 * PART + c] = one * linked


@inner
def _split_by_logits(q, logits, shift, other_shift, link, parts):
    """As `_split_by_odds`, from logits, where products of odds could overflow."""
    for c in range(q.size):
        zero, one = _split_by_logit(q[c], logits[c] + shift)
        second = logits[PART + c] + other_shift
        parts[c], parts[2 * PART + c] = _split_by_logit(zero, second)
        parts[PART + c], parts[3 * PART + c] = _split_by_logit(one, second + link)


@inner
def _split_by_logit(q, logit):
    """Products of q with P(0) and P(1) of a label with this logit, without overflow."""
    small = np.exp(-abs(logit))
    likely = q / (1.0 + small)
    unlikely = likely * small
    return (unlikely, likely) if logit > 0 else (likely, unlikely)


@inner
def _insert_zero(code, bit):
    """Code with a zero inserted at this bit: higher bits move up by one."""
    return 2 * code - (code & ((1 << bit) - 1))


@inner
def _move_prefixes(part, places, start, run, add, target):
    """Scatter: target[start + places[c]] = part[c], or += part[c] where `add`.

    Each `run` entries from a multiple of `run` on are contiguous in the target as well.
    """
    if run >= LONG_RUN:
        for c in range(0, part.size, run):
            first = start + places[c]
            source, into = part[c : c + run], target[first : first + run]
            if add:
                for k in range(run):
                    into[k] += source[k]
            else:
                for k in range(run):
                    into[k] = source[k]
    else:
        for c in range(part.size):
            place = np.uint64(start + places[c])  # not one to be counted from the end
            if add:
                target[place] += part[c]
            else:
                target[place] = part[c]


@inner
def _place_prefixes(parts, size, places, start, first, second, add, target):
    """Scatter prefixes that two labels have split to their codes in the block.

    The bit of a label does not depend on its position in the chain, so that all chains end in the
    same order of codes and can be added.

    Parameters
    ----------
    parts
        Probabilities with neither label, the first, the second and both.
    places
        Codes of the prefixes, less `start`, when the new labels that vary have the value 0.
    first, second
        Whether a label varies, and its bit or its only value.
    """
    first_varies, first_bit = first
    second_varies, second_bit = second
    run = 1 << min(first_bit if first_varies else NO_BIT, second_bit if second_varies else NO_BIT)
    run = min(size, run)
    for part in range(4):  # in one place: four copies of the compiled loop would take four times as
        has_first, has_second = part & 1, part >> 1  # long to compile
        if not first_varies and has_first != first_bit:
            continue
        if not second_varies and has_second != second_bit:
            continue
        offset = start
        if first_varies:
            offset += has_first << first_bit
        if second_varies:
            offset += has_second << second_bit
        _move_prefixes(parts[part * PART : part * PART + size], places, offset, run, add, target)


@inner
def _gather_terms(j, n_prefix, chain, high_code, n_low, terms, factors):
    """Logit of the label at position `j`, and (varies, its bit in the prefix or its fixed value).

    The logit is that with no varying label set among the positions before `n_prefix`; the k-th
    varying label there adds terms[k] to it, which multiplies the odds by factors[k] (both written).
    """
    if j < 0:
        return -np.inf, (False, 0)  # a label that is never set, where the number of labels is odd
    base, weights, odds, order, positions = chain
    logit = base[j]
    n_before = bit = 0
    for label in range(n_low):
        position = positions[label]
        if position < n_prefix:
            terms[n_before] = weights[j, position]
            factors[n_before] = odds[j, position]
            n_before += 1
            bit += label < order[j]
    for label in range(n_low, order.size):
        if positions[label] < n_prefix and (high_code >> (label - n_low)) & 1:
            logit += weights[j, positions[label]]
    if order[j] < n_low:
        return logit, (True, bit)
    return logit, (False, (high_code >> (order[j] - n_low)) & 1)


@inner
def _make_tables(by_odds, logit, terms, factors, low_table, high_table):
    """Tables of a label's odds after a prefix, low_table[low bits] * high_table[high bits].

    Not `by_odds`, these are tables of logits and are added.
    """
    low = min(terms.size, LOW)
    if by_odds:
        _fill_products(1.0, factors[:low], low_table)
        _fill_products(np.exp(logit), factors[low:], high_table)
    else:
        _fill_sums(0.0, terms[:low], low_table)
        _fill_sums(logit, terms[low:], high_table)


@inner
def _add_chain(chain, share, high_code, n_low, block, q, spare, work):
    """Add share * P(y) of one chain to block[y], two positions of the chain at a time.

    Labels are numbered by their bits in the block; those from `n_low` on are fixed to the bits of
    `high_code`. `q` and `spare` are work arrays of the size of the block.
    """
    low_tables, high_tables, parts, terms, factors, places = work
    weights, order = chain[1], chain[3]
    n_labels = order.size
    q[0] = share
    n_before = 0  # varying labels in the prefixes
    for j in range(-(n_labels % 2), n_labels, 2):
        logit, first = _gather_terms(j, j, chain, high_code, n_low, terms[0], factors[0])
        other, second = _gather_terms(j + 1, j, chain, high_code, n_low, terms[1], factors[1])
        if first[0] and second[0]:  # each was given its bit as if the other were not there
            if order[j] < order[j + 1]:
                second = (True, second[1] + 1)
            else:
                first = (True, first[1] + 1)
        link = weights[j + 1, j] if j >= 0 else 0.0
        reach = abs(logit) + 2.0 * abs(other) + abs(link)
        for k in range(n_before):
            reach += abs(terms[0, k]) + 2.0 * abs(terms[1, k])
        by_odds = reach <= SAFE_PAIR
        for k, start in enumerate((logit, other)):
            _make_tables(
                by_odds,
                start,
                terms[k, :n_before],
                factors[k, :n_before],
                low_tables[k * PART : (k + 1) * PART],
                high_tables[k],
            )
        first_bit, second_bit = first[1] if first[0] else NO_BIT, second[1] if second[0] else NO_BIT
        low_bit, high_bit = min(first_bit, second_bit), max(first_bit, second_bit)
        size = 1 << min(n_before, LOW)
        for c in range(size):
            places[c] = _insert_zero(_insert_zero(c, low_bit), high_bit)
        last = j == n_labels - 2
        for high in range((1 << n_before) // size):
            prefixes = q[high * size : (high + 1) * size]
            one, two = high_tables[0, high], high_tables[1, high]
            if by_odds:
                _split_by_odds(prefixes, low_tables, one, two, np.exp(link), parts)
            else:
                _split_by_logits(prefixes, low_tables, one, two, link, parts)
            start = _insert_zero(_insert_zero(high * size, low_bit), high_bit)
            _place_prefixes(
                parts, size, places, start, first, second, last, block if last else spare
            )
        q, spare = spare, q
        n_before += first[0] + second[0]


@inner
def _deposit_bits(code, bits):
    """Sum over k of (bit k of `code`) * 2**bits[k]."""
    total = 0
    for k in range(bits.size):
        total |= ((code >> k) & 1) << bits[k]
    return total


@inner
def _write_block(block, places, fixed_code, row):
    """Copy a block to its row, permuting bits from the order of the block to that of the labels.

    In the order of the row: random access to the block, which is in the cache, is cheap.
    """
    labels, bits, to, source = places
    for high in range(block.size // to.size):
        start = fixed_code + _deposit_bits(high, labels[LOW:])
        first = _deposit_bits(high, bits[LOW:])
        for c in range(to.size):
            row[np.uint64(start + to[c])] = block[np.uint64(first + source[c])]


@kernel
def joint_rows(start, stop, bases, shares, plan, P):
    """Per row: the mean over chains of share * joint, in code order.

    All chains are added to a block of labelsets, those that agree in some labels, while it is in
    the processor's cache.

    Parameters
    ----------
    bases
        (n, m, L) logit at each position of each chain when no earlier label is set.
    shares
        (n, m) the weight of each chain times m.
    plan
        Result of `plan_blocks` for the chains.
    P
        (n, 2**L), written.
    """
    weights, odds, label_bits, positions, places, fixed = plan
    n_chains, n_labels = label_bits.shape
    n_low = n_labels - fixed.size
    size = 1 << n_low
    block, q, spare = np.empty(size), np.empty(size), np.empty(size)
    work = (
        np.empty(2 * PART),
        np.empty((2, max(1, size // PART))),
        np.empty(4 * PART),
        np.empty((2, n_low)),
        np.empty((2, n_low)),
        np.empty(PART, dtype=np.int64),
    )
    for i in range(start, stop):
        for high_code in range(1 << fixed.size):
            for c in range(size):
                block[c] = 0.0
            for m in range(n_chains):
                if shares[i, m] == 0.0:
                    continue
                chain = bases[i, m], weights[m], odds[m], label_bits[m], positions[m]
                share = shares[i, m] / n_chains
                _add_chain(chain, share, high_code, n_low, block, q, spare, work)
            _write_block(block, places, _deposit_bits(high_code, fixed), P[i])


# The plan is made once for many instances, and by numpy: sorting is slow to compile.


def plan_blocks(weights: Floats, orders: Indices, block_labels: int = BLOCK_LABELS) -> BlockPlan:
    """Layout of blocks of labelsets for `joint_rows`, the same for all instances.

    Parameters
    ----------
    weights
        (m, L, L) weights[m, j, i] is added to the logit at position j if position i < j is set.
    orders
        (m, L) the label at each position.
    block_labels
        Number of labels that vary in a block.

    Returns
    -------
    The weights; their exponentials, (m, L, L); the bit of the label at each position, and the
    position of each bit, (m, L); labels that vary, their bits, and tables of codes in the row and
    in the block; the fixed labels in the order of their bits.
    """
    n_low = min(orders.shape[1], block_labels)
    bits = _choose_bits(orders, n_low)
    varying, fixed = np.flatnonzero(bits < n_low), np.argsort(bits)[n_low:]
    places = varying, bits[varying], _tabulate_deposits(varying), _tabulate_deposits(bits[varying])
    label_bits = bits[orders]
    odds = np.exp(np.minimum(weights, SAFE_LOGIT))
    return weights, odds, label_bits, np.argsort(label_bits, axis=1), places, fixed


def _choose_bits(orders: Indices, n_low: int) -> Indices:
    """Bit of each label in the code of a block, (L,): from `n_low` on if its value is fixed.

    Work on prefixes doubles from position to position. A fixed label doubles all work before it,
    once for each value, and a label with a low bit gives strided writes when it is inserted: both
    cost least for labels that come early in all chains.
    """
    n_labels = orders.shape[1]
    lateness = (2.0 ** np.argsort(orders, axis=1)).sum(axis=0)
    costs = lateness.copy()
    costs[:LINE_LABELS] += lateness.sum()  # a block should fill the lines of memory it touches
    fixed = np.argsort(costs, kind="stable")[: n_labels - n_low]
    by_lateness = np.argsort(lateness, kind="stable")
    bits = np.empty(n_labels, dtype=np.int64)
    bits[by_lateness[~np.isin(by_lateness, fixed)]] = np.arange(n_low)
    bits[fixed] = np.arange(n_low, n_labels)
    return bits


def _tabulate_deposits(bits: Indices) -> Indices:
    """`_deposit_bits` of all codes of at most `LOW` bits, (2**min(len(bits), LOW),)."""
    table = np.zeros(1, dtype=np.int64)
    for bit in bits[:LOW]:
        table = np.concatenate([table, table + (1 << bit)])
    return table
