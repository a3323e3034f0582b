"""Loop-only versions of what trellises compute. Imports nothing from the package."""

import math

TIE = 1e-12  # of log-probabilities


def joint(conditionals, parents, order):
    """P(y) for every labelset of one instance, as a list in the order of the codes.

    `conditionals[j]` lists P(label = 1) for every way that the parents of position j can be.
    """
    n_labels = len(order)
    probabilities = []
    for code in range(2**n_labels):
        y = [(code >> label) & 1 for label in order]  # by position
        probability = 1.0
        for j in range(n_labels):
            column = 0
            for i, parent in enumerate(parents[j]):
                column += y[parent] * 2**i
            p = conditionals[j][column]
            probability *= p if y[j] else 1 - p
        probabilities.append(probability)
    return probabilities


def size(code):
    return bin(code).count("1")


def marginals(P, n_labels):
    return [sum(p for code, p in enumerate(P) if code >> j & 1) for j in range(n_labels)]


def entropy(P):
    return -sum(p * math.log(p) for p in P if p > 0)


def collision(P):
    return sum(p * p for p in P)


def ranking(P):
    """All codes, most probable first; those within TIE of the first of a group by code."""
    by_probability = sorted(range(len(P)), key=lambda code: -P[code])
    ranked, group = [], []
    for code in by_probability:
        if group and not equal(P[code], P[group[0]]):
            ranked += sorted(group)
            group = []
        group.append(code)
    return ranked + sorted(group)


def equal(p, q):
    if p == 0 or q == 0:
        return p == q
    return abs(math.log(p) - math.log(q)) <= TIE


def expected(P, metric, predicted, n_labels, empty=1.0):
    """The mean of metric(tp, fp, fn, tn) when `predicted` is a code; 0/0 is worth `empty`."""
    total = 0.0
    for code, p in enumerate(P):
        tp = size(code & predicted)
        fp = size(predicted) - tp
        fn = size(code) - tp
        if tp + fp + fn == 0 and metric in (jaccard, f1):
            total += p * empty
        else:
            total += p * metric(tp, fp, fn, n_labels - tp - fp - fn)
    return total


def exact(tp, fp, fn, tn):
    return 1.0 if fp + fn == 0 else 0.0


def hamming(tp, fp, fn, tn):
    return (tp + tn) / (tp + fp + fn + tn)


def jaccard(tp, fp, fn, tn):
    return tp / (tp + fp + fn)


def f1(tp, fp, fn, tn):
    return 2 * tp / (2 * tp + fp + fn)


def size_marginals(P, n_labels):
    """[j][s - 1]: P(y_j = 1 and |y| = s)."""
    table = [[0.0] * n_labels for _ in range(n_labels)]
    for code, p in enumerate(P):
        for j in range(n_labels):
            if code >> j & 1:
                table[j][size(code) - 1] += p
    return table


def covariance_sums(P, n_labels):
    """[j]: the sum over i of |Cov(y_i, y_j)|."""
    mean = marginals(P, n_labels)
    sums = []
    for j in range(n_labels):
        total = 0.0
        for i in range(n_labels):
            both = sum(p for code, p in enumerate(P) if code >> i & 1 and code >> j & 1)
            total += abs(both - mean[i] * mean[j])
        sums.append(total)
    return sums


def jaccard_bound(P, k, n_labels):
    """What no prediction of k labels exceeds in expected Jaccard, from means and covariances."""
    mean, spread = marginals(P, n_labels), covariance_sums(P, n_labels)
    c = k + sum(mean) - sum(sorted(mean, reverse=True)[:k])
    worth = sorted((m / c - r / c**2 for m, r in zip(mean, spread, strict=True)), reverse=True)
    return sum(worth[:k]) + sum(spread) / c**2
