"""Thresholds and rankings as obvious loops; nothing of the package is imported here."""

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


def first_labels(scores, k):
    """At most k labels of a dictionary of scores, the highest first, ties by the lower number."""
    return sorted(scores, key=lambda label: (-scores[label], label))[:k]


def precision_at_k(scores, true, k):
    """The share of true labels among the first k; a label that is not listed is no hit."""
    return sum(label in true for label in first_labels(scores, k)) / k
