"""Thresholds and rankings as obvious loops; nothing of the package is imported here."""

import math

import oracles


def predict(row, thresholds):
    return tuple(int(p >= t) for p, t in zip(row, thresholds, strict=True))


def mean_accuracy(marginals, true, thresholds, metric, empty):
    total = 0.0
    for row, y in zip(marginals, true, strict=True):
        total += oracles.accuracy(y, predict(row, thresholds), metric, empty)
    return total / len(true)


def possible_thresholds(values):
    """Every threshold that lets other values through than the others do."""
    return [*sorted(set(values)), float("inf")]


def best_single(marginals, true, metric, empty):
    """The highest mean accuracy that one threshold for all labels reaches."""
    tried = possible_thresholds([p for row in marginals for p in row])
    n_labels = len(marginals[0])
    return max(mean_accuracy(marginals, true, [t] * n_labels, metric, empty) for t in tried)


def improves_by_one_label(marginals, true, thresholds, metric, empty):
    """By how much the mean accuracy rises when the threshold of one label is chosen anew."""
    before = mean_accuracy(marginals, true, thresholds, metric, empty)
    best = before
    for j in range(len(thresholds)):
        for t in possible_thresholds([row[j] for row in marginals]):
            changed = [*thresholds[:j], t, *thresholds[j + 1 :]]
            best = max(best, mean_accuracy(marginals, true, changed, metric, empty))
    return best - before


def smallest_size_difference(marginals, true):
    """How near the number of predicted labels comes to that of true ones, for any threshold."""
    n_true = sum(sum(y) for y in true)
    flat = [p for row in marginals for p in row]
    return min(abs(sum(p >= t for p in flat) - n_true) for t in possible_thresholds(flat))


def top_labels(row, k):
    order = sorted(range(len(row)), key=lambda j: (-row[j], j))
    return tuple(int(j in order[:k]) for j in range(len(row)))


def best_top_k(marginals, true, metric, empty):
    """The highest mean accuracy of the k most probable labels, over k."""
    means = []
    for k in range(len(marginals[0]) + 1):
        total = 0.0
        for row, y in zip(marginals, true, strict=True):
            total += oracles.accuracy(y, top_labels(row, k), metric, empty)
        means.append(total / len(true))
    return max(means)


def ranking_loss(row, y):
    """The share of pairs of a true and another label in the wrong order; ties are wrong."""
    pairs = [(row[i], row[j]) for i in range(len(y)) if y[i] for j in range(len(y)) if not y[j]]
    return sum(a <= b for a, b in pairs) / len(pairs) if pairs else 0.0


def coverage(row, y):
    """How many labels are at least as probable as the least probable true one."""
    least = min((p for p, true in zip(row, y, strict=True) if true), default=None)
    return 0 if least is None else sum(p >= least for p in row)


def average_precision(row, y):
    """The mean over true labels of the share of true ones among those at least as probable."""
    if sum(y) in (0, len(y)):
        return 1.0
    shares = []
    for p, true in zip(row, y, strict=True):
        if true:
            above = [other for q, other in zip(row, y, strict=True) if q >= p]
            shares.append(sum(above) / len(above))
    return sum(shares) / len(shares)


def first_labels(scores, k):
    """At most k labels of a dictionary of scores, the highest first, ties by the lower number."""
    return sorted(scores, key=lambda label: (-scores[label], label))[:k]


def precision_at_k(scores, true, k):
    """The share of true labels among the first k; a label that is not listed is no hit."""
    return sum(label in true for label in first_labels(scores, k)) / k


def ndcg_at_k(scores, true, k):
    """Hits discounted by rank, as a share of what the best ranking has; 0 without true labels."""
    if not true:
        return 0.0
    gain = sum(
        1 / math.log2(rank + 1)
        for rank, label in enumerate(first_labels(scores, k), start=1)
        if label in true
    )
    return gain / sum(1 / math.log2(rank + 1) for rank in range(1, min(k, len(true)) + 1))


def propensity(n_instances, n_with_label, a, b):
    """How probable it is that somebody noted a label that is true, by how often it was noted."""
    c = (math.log(n_instances) - 1) * (b + 1) ** a
    return 1 / (1 + c * math.exp(-a * math.log(n_with_label + b)))


def propensity_scored_precision_at_k(rows, truths, propensities, k):
    """What hits are worth, as a share of what the best k labels of each instance are worth."""
    found = best = 0.0
    for scores, true in zip(rows, truths, strict=True):
        found += sum(1 / propensities[j] for j in first_labels(scores, k) if j in true)
        best += sum(sorted((1 / propensities[j] for j in true), reverse=True)[:k])
    return found / best
