"""Slow and obvious versions of every formula of the core: loops over plain lists of floats.

A distribution is a list of 2**L probabilities in the order of the codes, a labelset a tuple of
zeros and ones. Nothing of the package is imported here.
"""

import math
from functools import cache
from itertools import product

TIE = 1e-12


@cache
def all_labelsets(n_labels):
    """Every labelset, in the order of the codes: label 0 is the lowest bit."""
    return [bits[::-1] for bits in product((0, 1), repeat=n_labels)]


def code_of(labelset):
    code = 0
    for j, bit in enumerate(labelset):
        code += bit * 2**j
    return code


def n_labels_of(P):
    n_labels = 0
    while 2**n_labels < len(P):
        n_labels += 1
    return n_labels


# Metrics


def counts(y_true, y_pred):
    tp = fp = fn = tn = 0
    for true, predicted in zip(y_true, y_pred, strict=True):
        if true and predicted:
            tp += 1
        elif predicted:
            fp += 1
        elif true:
            fn += 1
        else:
            tn += 1
    return tp, fp, fn, tn


def exact(tp, fp, fn, tn, empty):
    return 1.0 if fp == 0 and fn == 0 else 0.0


def hamming(tp, fp, fn, tn, empty):
    return (tp + tn) / (tp + fp + fn + tn)


def jaccard(tp, fp, fn, tn, empty):
    return tp / (tp + fp + fn) if tp + fp + fn else empty


def f1(tp, fp, fn, tn, empty):
    return 2 * tp / (2 * tp + fp + fn) if tp + fp + fn else empty


def recall(tp, fp, fn, tn, empty=1.0):
    if tp + fn:
        return tp / (tp + fn)
    return 0.0 if fp else empty


def precision(tp, fp, fn, tn, empty=1.0):
    if tp + fp:
        return tp / (tp + fp)
    return 0.0 if fn else empty


METRICS = {
    "exact": exact,
    "hamming": hamming,
    "jaccard": jaccard,
    "f1": f1,
    "recall": recall,
    "precision": precision,
}


@cache
def accuracy(y_true, y_pred, metric, empty=1.0):
    """`metric` is a name, or a function of (tp, fp, fn, tn) that needs no `empty`."""
    if metric in METRICS:
        return METRICS[metric](*counts(y_true, y_pred), empty)
    return metric(*counts(y_true, y_pred))


# One distribution


def profile(P):
    """Largest, second largest, entropy, sum of squares."""
    descending = sorted(P, reverse=True)
    entropy = -math.fsum(p * math.log(p) for p in P if p > 0)
    return descending[0], descending[1], entropy, math.fsum(p * p for p in P)


def candidates(P):
    """The seven candidates and the effective sample size of a distribution over K outcomes."""
    K = len(P)
    top, runner_up, entropy, collision = profile(P)
    return {
        "HP": (K * top - 1) / (K - 1),
        "TG": top - runner_up,
        "SE": 1 - entropy / math.log(K),
        "CE": 1 + math.log(collision) / math.log(K),
        "ME": 1 + math.log(top) / math.log(K),
        "GI": (collision - 1 / K) / (1 - 1 / K),
        "CS": sum((p - 1 / K) ** 2 / (1 / K) for p in P) / (K - 1),
        "ESS": 1 / collision,
    }


def statistics(P):
    """What the paper calls H: the candidates before they are scaled; TG and ESS have none."""
    K = len(P)
    top, runner_up, entropy, collision = profile(P)
    return {
        "HP": top,
        "TG": top - runner_up,
        "SE": entropy,
        "CE": -math.log(collision),
        "ME": -math.log(top),
        "GI": math.fsum(p * (1 - p) for p in P),
        "CS": sum((p - 1 / K) ** 2 / (1 / K) for p in P),
        "ESS": 1 / collision,
    }


def marginals(P):
    n_labels = n_labels_of(P)
    sums = [[] for _ in range(n_labels)]
    for y, p in zip(all_labelsets(n_labels), P, strict=True):
        for j in range(n_labels):
            if y[j]:
                sums[j].append(p)
    return [math.fsum(terms) for terms in sums]


def top(P, k):
    """The k most probable labelsets, of equal ones the lowest code first, and probabilities.

    Probabilities are equal that differ by rounding alone: the next labelset is the first that is
    within 1e-12 of the largest that is left.
    """
    left, codes = list(range(len(P))), []
    for _ in range(k):
        largest = max(P[code] for code in left)
        codes.append(next(code for code in left if P[code] >= largest * (1 - 1e-12)))
        left.remove(codes[-1])
    labelsets = all_labelsets(n_labels_of(P))
    return [labelsets[code] for code in codes], [P[code] for code in codes]


def mode(P):
    return top(P, 1)[0][0]


def size_marginals(P):
    """P(y_j = 1 and |y| = s), s - 1 being the second index."""
    n_labels = n_labels_of(P)
    by_size = [[0.0] * n_labels for _ in range(n_labels)]
    for y, p in zip(all_labelsets(n_labels), P, strict=True):
        for j in range(n_labels):
            if y[j]:
                by_size[j][sum(y) - 1] += p
    return by_size


def expected_accuracy(P, y_pred, metric, empty=1.0):
    labelsets = all_labelsets(n_labels_of(P))
    return math.fsum(
        p * accuracy(y, y_pred, metric, empty) for y, p in zip(labelsets, P, strict=True)
    )


def best_prediction(P, metric, empty=1.0):
    """The prediction with the highest expected accuracy, on a tie the lowest code; its value."""
    predictions = all_labelsets(n_labels_of(P))
    values = [expected_accuracy(P, y_pred, metric, empty) for y_pred in predictions]
    for y_pred, value in zip(predictions, values, strict=True):
        if value >= max(values) - TIE:
            return y_pred, value
    raise AssertionError("the largest value is at least the largest value")


def jaccard_upper_bound(P, empty=1.0):
    """No prediction's expected Jaccard is above this: |y or p| is at least max(|y|, |p|)."""
    n_labels = n_labels_of(P)
    by_size = size_marginals(P)
    bound = empty * P[0]
    for k in range(1, n_labels + 1):
        worths = [
            sum(by_size[j][s - 1] / max(s, k) for s in range(1, n_labels + 1))
            for j in range(n_labels)
        ]
        bound = max(bound, sum(sorted(worths, reverse=True)[:k]))
    return bound


# Independent labels


def joint_of_independent(p):
    P = []
    for y in all_labelsets(len(p)):
        probability = 1.0
        for j in range(len(p)):
            probability *= p[j] if y[j] else 1 - p[j]
        P.append(probability)
    return P


def poisson_binomial(p):
    """P(B = b) of the number of ones among independent labels."""
    pmf = [1.0]
    for q in p:
        longer = [0.0] * (len(pmf) + 1)
        for b, value in enumerate(pmf):
            longer[b] += value * (1 - q)
            longer[b + 1] += value * q
        pmf = longer
    return pmf


def expected_accuracy_independent(p, y_pred, metric, empty=1.0):
    """From the numbers of hits and misses, which are independent of each other."""
    inside = [q for q, bit in zip(p, y_pred, strict=True) if bit]
    outside = [q for q, bit in zip(p, y_pred, strict=True) if not bit]
    function = METRICS.get(metric)
    terms = []
    for tp, hit in enumerate(poisson_binomial(inside)):
        for fn, miss in enumerate(poisson_binomial(outside)):
            cell = (tp, len(inside) - tp, fn, len(outside) - fn)
            terms.append(hit * miss * (function(*cell, empty) if function else metric(*cell)))
    return math.fsum(terms)


def profile_independent(p):
    """Log of the largest, log of the second largest, entropy, log of the sum of squares."""
    log_top = math.fsum(math.log(max(q, 1 - q)) for q in p)
    flip = max(min(q, 1 - q) / max(q, 1 - q) for q in p)
    log_runner_up = log_top + math.log(flip) if flip > 0 else -math.inf
    entropy = -math.fsum(x * math.log(x) for q in p for x in (q, 1 - q) if x > 0)
    return log_top, log_runner_up, entropy, math.fsum(math.log(q * q + (1 - q) ** 2) for q in p)


# Tables: a list of (labelset, probability), where a labelset may be there twice


def joint_of_table(pairs, n_labels):
    P = [0.0] * 2**n_labels
    for labelset, probability in pairs:
        P[code_of(labelset)] += probability
    return P


def expected_accuracy_table(pairs, y_pred, metric, empty=1.0):
    return math.fsum(p * accuracy(tuple(y), tuple(y_pred), metric, empty) for y, p in pairs)


# Weighted labelsets: for each instance a list of (labelset, weight), where one may be there twice


def merged(instances):
    """The labelsets of each instance with the sums of their weights, in falling order."""
    merged = []
    for pairs in instances:
        sums = {}
        for labelset, weight in pairs:
            sums[labelset] = sums.get(labelset, 0) + weight
        positive = [(labelset, weight) for labelset, weight in sums.items() if weight > 0]
        merged.append(sorted(positive, key=lambda pair: (-pair[1], code_of(pair[0]))))
    return merged


def top_of_merged(pairs, n_labels, k):
    """The k labelsets of largest weight; beyond them those of lowest code, with weight 0."""
    best = list(pairs[:k])
    for code in range(2 ** min(n_labels, 20)):
        if len(best) == k:
            break
        labelset = tuple(code >> j & 1 for j in range(n_labels))
        if labelset not in [y for y, _ in pairs]:
            best.append((labelset, 0))
    return best


# A table with a row for each instance.


def named(labelset, names):
    """The names of the labels that are set."""
    return tuple(names[j] for j in range(len(names)) if labelset[j] == 1)


def instance_row(P, y_pred, names, k):
    """What a table says of one instance, by the names of the columns; top labelsets aside."""
    row = {"predicted": named(y_pred, names), "probability": P[code_of(y_pred)]}
    ranked = sorted(P, reverse=True)
    for i in range(min(k, len(P))):
        row[f"top_{i + 1}_probability"] = ranked[i]
    for j, p in enumerate(marginals(P)):
        row["probability_" + names[j]] = p
    return row
