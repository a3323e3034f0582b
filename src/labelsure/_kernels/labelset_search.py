"""Certified enumeration: the likely labelsets of a mixture of chains, and bounds on all others.

Branch and bound with iterative deepening. A node is a prefix of one chain; its probability bounds
that of every labelset below it, so a depth-first search that leaves prefixes below a threshold
alone finds *every* labelset with more. What was left alone bounds what was not found:

    P(y) <= mean over chains of share * (largest prefix left alone)      for y not found

and that bound, with the mass found, bounds mode, top gap, entropy and collision from both sides.
The threshold falls by a factor of 4 a round until the goals are met.

    enumerate_row  the search of one instance: about L visits for each labelset found and chain,
                   each with O(L) multiplications; labelsets are kept in a hash table
    write_bounds   bounds on the whole distribution from the labelsets seen
    meets_goals    whether these are good enough

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
LARGE = 1e290  # a product of odds up to here is a number, and so are those of some of them
STACK_LABELS = 64  # up to so many labels a path keeps the odds of all of them

# What `write_bounds` writes, by position.
N_BOUNDS = 11
TOP, TOP_HIGH, RUNNER_UP, RUNNER_UP_HIGH, ENTROPY_LOW, ENTROPY_HIGH = range(6)
COLLISION_LOW, COLLISION_HIGH, UNSEEN_MASS, LARGEST_UNSEEN, N_CERTAIN = range(6, 11)


class Goals(NamedTuple):
    """When a search may stop: once width, unseen mass and best labelsets are known well enough.

    Parameters
    ----------
    width
        The candidates' intervals are at most so wide.
    unseen
        All unseen labelsets together have at most this.
    enough_mass
        Good enough by itself: the labelsets seen have this mass.
    n_certain
        So many labelsets seen are more probable than any unseen one.
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
    """Write what the probabilities `P` of some labelsets say of the whole distribution.

    Parameters
    ----------
    P
        Probabilities of the labelsets seen.
    bound
        No labelset that was not seen has more.
    n_labels
        There are 2**n_labels labelsets.
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
    all_seen = n_labels < 60 and P.size == 1 << n_labels
    rest_low = 0.0 if all_seen else max(0.0, 1.0 - mass - ROUNDING)
    rest_high = 0.0 if all_seen else max(0.0, 1.0 - mass) + ROUNDING
    unseen = min(bound, rest_high)
    entropy_low = entropy_high = entropy
    if rest_high > 0.0:
        # Of so little mass on so many labelsets, the flattest split has the largest entropy.
        log_rest = n_labels * LOG2
        if n_labels < 60:
            log_rest = np.log(float((1 << n_labels) - P.size))
        mass = min(rest_high, np.exp(min(log_rest - 1.0, 700.0)))
        entropy_high += mass * (log_rest - np.log(mass))
        if rest_low > 0.0:
            entropy_low += rest_low * np.log(1.0 / unseen)
    bounds[TOP] = top
    bounds[TOP_HIGH] = max(top, unseen)
    bounds[RUNNER_UP] = runner_up
    bounds[RUNNER_UP_HIGH] = max(runner_up, min(unseen, 0.5))
    bounds[ENTROPY_LOW] = max(0.0, entropy_low)
    bounds[ENTROPY_HIGH] = min(n_labels * LOG2, max(entropy_high, 0.0))
    bounds[COLLISION_LOW] = squares
    bounds[COLLISION_HIGH] = min(1.0, squares + rest_high * unseen)
    bounds[UNSEEN_MASS] = rest_high
    bounds[LARGEST_UNSEEN] = unseen
    # Where nothing unseen has any probability, also the labelsets that are not listed are known.
    bounds[N_CERTAIN] = (unseen < P).sum() if unseen > 0.0 else np.inf


@inner
def _widest_interval(bounds, n_labels):
    """Return the width of the widest interval among the normalised candidates."""
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
    """Whether the bounds are good enough."""
    unseen = bounds[UNSEEN_MASS]
    if 1.0 - unseen >= goals.enough_mass:
        return True
    if bounds[N_CERTAIN] < goals.n_certain:
        return False
    return unseen <= goals.unseen and _widest_interval(bounds, n_labels) <= goals.width


@inner
def _probability_of_large_odds(members, work):
    """Return P(y) in one chain where a product of odds could overflow; `work` is used up.

    As one over a product of numbers of at least 1, which overflows only where P is too small for a
    number, in whatever order the compiler multiplies.
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
    """Return the mean over the chains of share * P(y); `members` are y's labels.

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
    """Return the place of a key in the hash table: where it is, or where it belongs."""
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
    """Write the odds of all labels, and the shares 1/(1 + odds), when one more label is set."""
    for j in range(odds.size):
        child_odds[j] = odds[j] * factor[j]
        child_shares[j] = 1.0 / (1.0 + child_odds[j])


@inner
def _odds_after(odds, factors, members, label):
    """Return the odds of a label when the members are set: only those that are asked for."""
    total = odds[label]
    for member in members:
        total *= factors[member, label]
    return total


@inner
def _search_chain(m, links, order, threshold, found, n_found, n_visits, stack):
    """Find every labelset with at least `threshold` in chain m, depth first.

    At each label the prefix splits: "no" goes on in place, "yes" opens a new level of the stack, so
    the depth is the number of labels set, and a level keeps the odds of all labels after its path.

    New ones are appended to what is found, until there is no more room, or until flat
    probabilities would make it visit more than `n_visits` prefixes. Returns how many there are
    now; the largest probability of a prefix that was left alone: what was not found has no more
    than that in this chain, -1 when the search was cut short; and how many visits are left.

    New ones are appended here, not by a function: handing over arrays takes as long as that.
    """
    (odds, factors, shares), (keys, P, slots) = links, found
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
    left_alone = 0.0
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
                left_alone = max(left_alone, zero)
                position[depth] = n_labels + 1  # nothing more below this prefix
            if one < threshold:
                left_alone = max(left_alone, one)
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
    return n_found, left_alone, n_visits


@kernel
def enumerate_row(odds, factors, shares, orders, goals, small, keys, P, bounds):
    """Enumerate one instance's labelsets until the goals are met or `keys` are full.

    Parameters
    ----------
    odds
        (m, L) of each label, in each chain, when no earlier label is set.
    factors
        (m, L, L) factors[m, i, j] is what label i, set, multiplies the odds of label j with: 1
        unless it comes earlier in the chain.
    shares
        (m,) the weight of each chain times m.
    orders
        (m, L) the label at each position.
    goals
        When to stop.
    small
        Once no labelset unseen can have more than this, a search that finds little ends early.
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
            links, found = (odds, factors, shares), (keys, P, slots)
            n_visits = n_labels * P.size
            if bound <= small:
                n_visits = min(n_visits, n_labels * (PATIENCE + 2 * n_chains * n_found) - n_visited)
            n_found, left_alone, n_left = _search_chain(
                m, links, orders[m], threshold / shares[m], found, n_found, n_visits, stack
            )
            n_visited += n_visits - n_left
            if left_alone < 0.0:
                # Cut short: what was found counts, the bound is that of the last finished round.
                write_bounds(P[:n_found], bound, n_labels, bounds)
                return n_found
            total += shares[m] * left_alone
        bound = total / n_chains
        write_bounds(P[:n_found], bound, n_labels, bounds)
        if meets_goals(bounds, n_labels, goals):
            break
        threshold *= SHRINK
    return n_found
