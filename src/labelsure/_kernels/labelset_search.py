"""Certified enumeration: the likely labelsets of a mixture of chains, and bounds on all others.

Branch and bound with iterative deepening. A node is a prefix of one chain; its probability bounds
that of every labelset below it, so a depth-first search that leaves prefixes below a threshold
alone finds *every* labelset with more. Pruned prefixes bound all other labelsets:

    P(y) <= mean over chains of share * (most probable prefix pruned)      for y not found

and that bound, with the mass found, bounds mode, top gap, entropy and collision from both sides.
The threshold falls by a factor of 4 a round until the goals are met.

    enumerate_row  the search of one instance: about L visits for each labelset found and chain,
                   each with O(L) multiplications; labelsets are kept in a hash table
    write_bounds   bounds on the whole distribution from the labelsets found
    meets_goals    whether the bounds meet the goals of the search

Bounds hold but for rounding, for which `ROUNDING` is added to the unseen mass.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from labelsure._kernels.compiling import fast_inner, inner, kernel

ROUNDING = 1e-12  # how far a sum of probabilities may be off
FIRST_THRESHOLD = 0.03
SHRINK = 0.25  # each round's threshold is this share of the last one's
LAST_THRESHOLD = 1e-15
LOG2 = 0.6931471805599453
PATIENCE = 40
"""A search that may end early does so where it visits more prefixes than L (this + 2 m labelsets
found), m being the number of chains. Where it finds labelsets, fewer do; where probabilities are
flat it finds none for long. No search of CAL500, Enron, Slashdot or random chains of any sharpness
that reached its goals without this ends early, and one in vain takes .03 ms."""
LARGE = 1e290  # no product of 1 + odds over a subset of labels overflows if that over all is less
STACK_LABELS = 64  # up to so many labels, each level of the stack keeps the odds of all labels

# Columns of `bounds`.
N_BOUNDS = 11
TOP, TOP_HIGH, RUNNER_UP, RUNNER_UP_HIGH, ENTROPY_LOW, ENTROPY_HIGH = range(6)
COLLISION_LOW, COLLISION_HIGH, UNSEEN_MASS, LARGEST_UNSEEN, N_CERTAIN = range(6, 11)


class Goals(NamedTuple):
    """Stopping rule of a search: `enough_mass`, or all of the others.

    Parameters
    ----------
    width
        Largest width of an interval of the normalised candidates.
    unseen
        Largest probability of all unseen labelsets together.
    enough_mass
        Probability of the labelsets found that suffices by itself.
    n_certain
        Least number of labelsets found that are more probable than any unseen one.
    """

    width: float
    unseen: float
    enough_mass: float
    n_certain: int

    @classmethod
    def of(cls, width: float, unseen: float, enough_mass: float, n_certain: int = 0) -> Goals:
        """Convert to one type each: other types would compile the kernels again."""
        return cls(float(width), float(unseen), float(enough_mass), int(n_certain))


@kernel
def write_bounds(P, bound, n_labels, bounds):
    """Bounds on top probabilities, entropy and collision from the probabilities of some labelsets.

    Parameters
    ----------
    P
        Probabilities of the labelsets found.
    bound
        Upper bound on the probability of any other labelset.
    n_labels
        Number of labels: there are 2**n_labels labelsets.
    bounds
        (N_BOUNDS,) written.
    """
    top = runner_up = mass = squares = entropy = 0.0
    for p in P:
        if p > top:
            runner_up = top
            top = p
        elif p > runner_up:
            runner_up = p
        mass += p
        squares += p * p
        if p > 0.0:
            entropy -= p * np.log(p)
    is_complete = n_labels < 60 and P.size == 1 << n_labels
    unseen_low = 0.0 if is_complete else max(0.0, 1.0 - mass - ROUNDING)
    unseen_high = 0.0 if is_complete else max(0.0, 1.0 - mass) + ROUNDING
    largest_unseen = min(bound, unseen_high)
    entropy_low = entropy_high = entropy
    if unseen_high > 0.0:
        # Entropy of a mass m on K labelsets is at most m log(K / m), which grows up to m = K / e.
        log_n_unseen = n_labels * LOG2
        if n_labels < 60:
            log_n_unseen = np.log(float((1 << n_labels) - P.size))
        mass = min(unseen_high, np.exp(min(log_n_unseen - 1.0, 700.0)))
        entropy_high += mass * (log_n_unseen - np.log(mass))
        if unseen_low > 0.0:
            entropy_low += unseen_low * np.log(1.0 / largest_unseen)
    bounds[TOP] = top
    bounds[TOP_HIGH] = max(top, largest_unseen)
    bounds[RUNNER_UP] = runner_up
    bounds[RUNNER_UP_HIGH] = max(runner_up, min(largest_unseen, 0.5))
    bounds[ENTROPY_LOW] = max(0.0, entropy_low)
    bounds[ENTROPY_HIGH] = min(n_labels * LOG2, max(entropy_high, 0.0))
    bounds[COLLISION_LOW] = squares
    bounds[COLLISION_HIGH] = min(1.0, squares + unseen_high * largest_unseen)
    bounds[UNSEEN_MASS] = unseen_high
    bounds[LARGEST_UNSEEN] = largest_unseen
    # Without unseen mass, the order of all other labelsets, of probability 0, is known as well.
    bounds[N_CERTAIN] = (largest_unseen < P).sum() if largest_unseen > 0.0 else np.inf


@inner
def _widest_interval(bounds, n_labels):
    """Largest width of the intervals of the normalised candidates."""
    if bounds[TOP] <= 0.0 or bounds[COLLISION_LOW] <= 0.0:
        return 1.0
    log_k = n_labels * LOG2
    top_gap = bounds[TOP_HIGH] - bounds[TOP] + bounds[RUNNER_UP_HIGH] - bounds[RUNNER_UP]
    entropy = (bounds[ENTROPY_HIGH] - bounds[ENTROPY_LOW]) / log_k
    min_entropy = np.log(bounds[TOP_HIGH] / bounds[TOP]) / log_k
    collision = bounds[COLLISION_HIGH] - bounds[COLLISION_LOW]
    collision_entropy = np.log(bounds[COLLISION_HIGH] / bounds[COLLISION_LOW]) / log_k
    return max(top_gap, entropy, min_entropy, 2.0 * collision, collision_entropy)


@kernel
def meets_goals(bounds, n_labels, goals):
    """Whether the bounds meet the stopping rule."""
    unseen = bounds[UNSEEN_MASS]
    if 1.0 - unseen >= goals.enough_mass:
        return True
    if bounds[N_CERTAIN] < goals.n_certain:
        return False
    return unseen <= goals.unseen and _widest_interval(bounds, n_labels) <= goals.width


@inner
def _probability_of_large_odds(members, work):
    """P(y) in one chain where a product of odds could overflow; `work` is overwritten.

    The reciprocal of a product of numbers >= 1, which overflows only where P underflows, in
    whatever order the compiler multiplies.
    """
    inverse = 1.0
    for member in members:
        inverse *= 1.0 + 1.0 / work[member]
    for member in members:
        work[member] = 0.0
    for j in range(work.size):
        inverse *= 1.0 + work[j]
    return 1.0 / inverse


@fast_inner
def mixture_probability(members, odds, factors, shares, work):
    """Mean over the chains of share * P(y) for the labelset y of these members.

    The odds of each label are a product of one factor for each earlier member (1 for the later
    ones): no exponentials.
    """
    total = 0.0
    for m in range(odds.shape[0]):
        for j in range(work.size):
            work[j] = odds[m, j]
        for member in members:
            for j in range(work.size):
                work[j] *= factors[m, member, j]
        set_odds = 1.0
        for member in members:
            set_odds *= work[member]
        all_odds = 1.0
        for j in range(work.size):
            all_odds *= 1.0 + work[j]
        if all_odds < LARGE:
            total += shares[m] * (set_odds / all_odds)
        else:
            total += shares[m] * _probability_of_large_odds(members, work)
    return total / odds.shape[0]


@inner
def find_slot(key, keys, slots):
    """Index of a key's slot in the hash table, or of the empty slot (-1) where it belongs."""
    # Half a word at a time: products of 32 bits fit, also as plain Python.
    half, factor = np.uint64(0xFFFFFFFF), np.uint64(2654435769)
    h = np.uint64(0)
    for word in key:
        h = ((h ^ (word & half)) * factor) & half
        h ^= h >> np.uint64(15)
        h = ((h ^ (word >> np.uint64(32))) * factor) & half
        h ^= h >> np.uint64(15)
    mask = slots.size - 1
    at = np.int64(h & np.uint64(mask))
    while slots[at] >= 0:
        same = True
        for w in range(key.size):
            if keys[slots[at], w] != key[w]:
                same = False
                break
        if same:
            break
        at = (at + 1) & mask
    return at


@fast_inner
def _set_label(odds, factor, child_odds, child_shares):
    """Odds of all labels, and 1 / (1 + odds), after one more label is set."""
    for j in range(odds.size):
        child_odds[j] = odds[j] * factor[j]
        child_shares[j] = 1.0 / (1.0 + child_odds[j])


@inner
def _odds_after(odds, factors, members, label):
    """Odds of a label when the members are set."""
    total = odds[label]
    for member in members:
        total *= factors[member, label]
    return total


@inner
def _search_chain(m, links, order, threshold, table, n_found, n_visits, stack):
    """Append every labelset of probability >= `threshold` in chain m, by depth-first search.

    At each label the prefix splits: "no" goes on in place, "yes" opens a new level of the stack, so
    the depth is the number of labels set, and a level keeps the odds of all labels after its path.

    Returns the number of labelsets in the table; the largest probability of a pruned prefix, which
    bounds that of all labelsets not found in this chain, or -1 if the search was cut short by a
    full table or after `n_visits` prefixes; and the number of visits left.

    Labelsets are appended here, not by a function: passing the arrays takes as long as the work.
    """
    (odds, factors, shares), (keys, P, slots) = links, table
    stack_odds, stack_shares = stack
    n_labels = order.size
    all_at_once = n_labels <= STACK_LABELS
    if all_at_once:
        _set_label(odds[m], np.ones(n_labels), stack_odds[0], stack_shares[0])
    key, work = np.zeros(keys.shape[1], dtype=np.uint64), np.empty(n_labels)
    members = np.empty(n_labels + 1, dtype=np.int64)
    position = np.zeros(n_labels + 1, dtype=np.int64)
    prefix = np.ones(n_labels + 1)
    depth = 0  # how many labels are set
    largest_pruned = 0.0
    while depth >= 0:
        j = position[depth]
        if j < n_labels:
            if n_visits <= 0:
                return n_found, -1.0, n_visits
            n_visits -= 1
            label = order[j]
            if all_at_once:
                zero = prefix[depth] * stack_shares[depth, label]
                one = zero * stack_odds[depth, label]
            else:
                label_odds = _odds_after(odds[m], factors[m], members[:depth], label)
                zero = prefix[depth] / (1.0 + label_odds)
                one = zero * label_odds
            prefix[depth] = zero
            position[depth] = j + 1
            if zero < threshold:
                largest_pruned = max(largest_pruned, zero)
                position[depth] = n_labels + 1  # nothing more below this prefix
            if one < threshold:
                largest_pruned = max(largest_pruned, one)
                continue
            if all_at_once:
                above, below = stack_odds[depth], stack_odds[depth + 1]
                _set_label(above, factors[m, label], below, stack_shares[depth + 1])
            key[label >> 6] |= np.uint64(1) << np.uint64(label & 63)
            members[depth] = label
            depth += 1
            position[depth] = j + 1
            prefix[depth] = one
            continue
        if j == n_labels:
            at = find_slot(key, keys, slots)
            if slots[at] < 0:
                if n_found == P.size:
                    return n_found, -1.0, n_visits
                slots[at] = n_found
                for w in range(key.size):
                    keys[n_found, w] = key[w]
                P[n_found] = mixture_probability(members[:depth], odds, factors, shares, work)
                n_found += 1
        depth -= 1
        if depth >= 0:
            label = members[depth]
            key[label >> 6] &= ~(np.uint64(1) << np.uint64(label & 63))
    return n_found, largest_pruned, n_visits


@kernel
def enumerate_row(odds, factors, shares, orders, goals, small, keys, P, bounds):
    """Enumerate one instance's labelsets until the goals are met or `keys` are full.

    Parameters
    ----------
    odds
        (m, L) of each label, in each chain, when no earlier label is set.
    factors
        (m, L, L) the odds of label j are multiplied by factors[m, i, j] if label i is set: 1
        unless i comes before j in the chain.
    shares
        (m,) the weight of each chain times m.
    orders
        (m, L) the label at each position.
    goals
        Stopping rule.
    small
        Bound on unseen labelsets from which on `PATIENCE` may end the search early.
    keys, P
        (budget, n_words) and (budget,), written.
    bounds
        (N_BOUNDS,) written by `write_bounds`.

    Returns
    -------
    The number of labelsets found.
    """
    n_chains, n_labels = orders.shape
    n_slots = 64
    while n_slots < 2 * P.size:
        n_slots *= 2
    slots = np.full(n_slots, -1, dtype=np.int64)
    n_stacked = n_labels + 1 if n_labels <= STACK_LABELS else 0
    stack = np.empty((n_stacked, n_labels)), np.empty((n_stacked, n_labels))
    bound = 1.0
    n_found = n_visited = 0
    threshold = FIRST_THRESHOLD
    write_bounds(P[:0], bound, n_labels, bounds)
    while threshold > LAST_THRESHOLD:
        total = 0.0
        for m in range(n_chains):
            if shares[m] == 0.0:
                continue
            links, table = (odds, factors, shares), (keys, P, slots)
            n_visits = n_labels * P.size
            if bound <= small:
                n_visits = min(n_visits, n_labels * (PATIENCE + 2 * n_chains * n_found) - n_visited)
            n_found, largest_pruned, n_left = _search_chain(
                m, links, orders[m], threshold / shares[m], table, n_found, n_visits, stack
            )
            n_visited += n_visits - n_left
            if largest_pruned < 0.0:
                # Cut short: labelsets found count, the bound is that of the last finished round.
                write_bounds(P[:n_found], bound, n_labels, bounds)
                return n_found
            total += shares[m] * largest_pruned
        bound = total / n_chains
        write_bounds(P[:n_found], bound, n_labels, bounds)
        if meets_goals(bounds, n_labels, goals):
            break
        threshold *= SHRINK
    return n_found
