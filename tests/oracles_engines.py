"""Loop-only versions of what engines and counts say. Imports nothing from the package."""

import math

import numpy as np

EULER = 0.57721566490153286
ROUNDING = 1e-12


def prefix_chain_joint(order, conditional):
    """P(y) for every labelset, in the order of the codes, from conditional(position, prefix)."""
    n_labels = len(order)
    joint = []
    for code in range(2**n_labels):
        prefix, probability = [], 1.0
        for position in range(n_labels):
            bit = code >> int(order[position]) & 1
            p = conditional(position, prefix)
            probability *= p if bit else 1 - p
            prefix.append(bit)
        joint.append(probability)
    return joint


def squared_conditional(conditional):
    """The same conditionals with their odds squared."""

    def squared(position, prefix):
        p = conditional(position, prefix)
        return p * p / (p * p + (1 - p) * (1 - p))

    return squared


def path(order, conditional, code):
    """What the links of a chain say along the path to a labelset.

    Returns its log-probability; how far that is above the sum of -(binary entropies) of the links;
    and P(y_j = 1 | labels before) of each label j.
    """
    log_prob, average, given = 0.0, 0.0, [0.0] * len(order)
    prefix = []
    for position, label in enumerate(order):
        p = conditional(position, prefix)
        bit = code >> int(label) & 1
        log_prob += math.log(p if bit else 1 - p)
        average += p * math.log(p) + (1 - p) * math.log(1 - p)
        given[label] = p
        prefix.append(bit)
    return log_prob, log_prob - average, given


def mean_weight(P, Q, enumerated=()):
    """The mean of P**2 / Q over draws from Q, those of enumerated codes counting 0."""
    total = 0.0
    for code in range(len(P)):
        if code not in enumerated and Q[code] > 0:
            total += Q[code] * (P[code] * P[code] / Q[code])
    return total


def log_collision_of_blocks(blocks):
    """Log of sum P**2 for a mean of products: blocks[b][m] are chain m's probabilities in block b.

    The sum over y of P_k(y) P_l(y) is a product over blocks.
    """
    n_chains = len(blocks[0])
    total = 0.0
    for k in range(n_chains):
        for other in range(n_chains):
            product = 1.0
            for block in blocks:
                product *= math.fsum(p * q for p, q in zip(block[k], block[other], strict=True))
            total += product
    return math.log(total / n_chains**2)


def two_largest(P):
    first = second = 0.0
    for p in P:
        if p > first:
            first, second = p, first
        elif p > second:
            second = p
    return first, second


def certified(seen, eps, n_labels):
    """Intervals of p1, p2, H and S when `seen` was enumerated and the others have at most eps."""
    first, second = two_largest(seen)
    rest = 2**n_labels - len(seen)
    mass = math.fsum(seen)
    H = math.fsum(-p * math.log(p) for p in seen if p > 0)
    S = math.fsum(p * p for p in seen)
    if rest == 0:
        return (first, first), (second, second), (H, H), (S, S)
    rho_lo = max(0.0, 1 - mass - ROUNDING)
    rho_hi = max(0.0, 1 - mass) + ROUNDING
    c = min(eps, rho_hi)
    g = min(rho_hi, rest / math.e)
    H_lo = H + rho_lo * math.log(1 / c) if rho_lo > 0 else H
    H_hi = min(H + g * math.log(rest / g), n_labels * math.log(2))
    return (
        (first, max(first, c)),
        (second, max(second, min(c, 0.5))),
        (H_lo, H_hi),
        (S, min(1.0, S + rho_hi * c)),
    )


def counted(draws):
    """How often each different draw came."""
    counts = {}
    for draw in draws:
        counts[tuple(draw)] = counts.get(tuple(draw), 0) + 1
    return list(counts.values())


def plugin(counts):
    n = sum(counts)
    return -sum(c / n * math.log(c / n) for c in counts)


def miller_madow(counts):
    return plugin(counts) + (len(counts) - 1) / (2 * sum(counts))


def grassberger(counts):
    """With G_1 = -gamma - log 2, and G_2k = G_2k+1 = G_1 + 2 (1 + 1/3 + ... + 1/(2k - 1))."""
    n = sum(counts)
    total = 0.0
    for c in counts:
        G = -EULER - math.log(2)
        for k in range(c // 2):
            G += 2 / (2 * k + 1)
        total += c * G
    return math.log(n) - total / n


def chao_shen(counts):
    n = sum(counts)
    singletons = sum(1 for c in counts if c == 1)
    if singletons == n:
        singletons = n - 1
    coverage = 1 - singletons / n
    total = 0.0
    for c in counts:
        p = coverage * c / n
        total -= p * math.log(p) / (1 - (1 - p) ** n)
    return total


def share_of_equal_pairs(draws):
    equal = pairs = 0
    for i, first in enumerate(draws):
        for second in draws[i + 1 :]:
            equal += tuple(first) == tuple(second)
            pairs += 1
    return equal / pairs


def most_probable(P, k):
    """The codes of the k largest probabilities, of equal ones the lowest code first."""
    left, best = list(range(len(P))), []
    for _ in range(k):
        first = left[0]
        for code in left:
            if P[code] > P[first]:
                first = code
        best.append(first)
        left.remove(first)
    return best


# Larger oracles: one array operation a label instead of loops over 2**17 labelsets.


def all_labelsets(n_labels):
    """(2**L, L) zeros and ones in the order of the codes."""
    return (np.arange(2**n_labels)[:, np.newaxis] >> np.arange(n_labels)) & 1


def chain_joint(order, conditional):
    """P(y) in the order of the codes, prefix by prefix; conditional(j, prefixes) is P(1)."""
    q, codes = np.ones(1), np.zeros(1, dtype=int)
    for j, label in enumerate(order):
        p = conditional(j, (codes[:, np.newaxis] >> order[:j]) & 1)
        q = np.concatenate([q * (1 - p), q * p])
        codes = np.concatenate([codes, codes | 1 << label])
    joint = np.empty(len(q))
    joint[codes] = q
    return joint


def accuracies(metric, truths, y):
    """The accuracy of one prediction for each of many truths; Jaccard and F1 of nothing are 1."""
    tp, fn = truths @ y, truths @ (1 - y)
    fp = y.sum() - tp
    tn = truths.shape[1] - tp - fp - fn
    if metric == "exact":
        return (fp + fn == 0) * 1.0
    if metric == "hamming":
        return (tp + tn) / truths.shape[1]
    over = {"jaccard": tp + fp + fn, "f1": (2 * tp + fp + fn) / 2}[metric]
    return np.where(over == 0, 1.0, tp / np.maximum(over, 0.5))


def best_f1(P, truths):
    """The largest expected F1: for each size the best labels by P(y_j = 1, |y| = s)."""
    n_labels, sizes = truths.shape[1], truths.sum(axis=1)
    best = P[0]
    for k in range(1, n_labels + 1):
        gains = (P * 2 / (sizes + k)) @ truths
        best = max(best, np.sort(gains)[::-1][:k].sum())
    return best
