"""Independent labels of which few are listed, as loops over dictionaries {label: probability}."""

import math
from itertools import combinations


def log_prob(listed, floor, n_labels, labelset):
    total = 0.0
    for label, p in listed.items():
        total += math.log(p if label in labelset else 1 - p)
    n_others = len(set(labelset) - set(listed))
    total += n_others * math.log(floor) if n_others else 0.0
    return total + (n_labels - len(listed) - n_others) * math.log1p(-floor)


def profile(listed, floor, n_labels):
    """(log_top, log_runner_up, entropy, log_collision), every label by itself."""
    log_top = entropy = log_collision = 0.0
    flip = 0.0
    for label in range(n_labels):
        p = listed.get(label, floor)
        q, r = max(p, 1 - p), min(p, 1 - p)
        log_top += math.log(q)
        flip = max(flip, r / q)
        entropy -= q * math.log(q) + (r * math.log(r) if r else 0.0)
        log_collision += math.log(q * q + r * r)
    return log_top, log_top + math.log(flip), entropy, log_collision


def number_of_ones(probabilities):
    """P(b of these labels are true), a dictionary."""
    found = {0: 1.0}
    for p in probabilities:
        new = {}
        for b, weight in found.items():
            new[b] = new.get(b, 0.0) + weight * (1 - p)
            new[b + 1] = new.get(b + 1, 0.0) + weight * p
        found = new
    return found


def number_of_rest(n_rest, floor, most=40):
    """P(b of the labels that are not listed are true), b up to `most`."""
    return {
        b: math.comb(n_rest, b) * floor**b * math.exp((n_rest - b) * math.log1p(-floor))
        for b in range(min(n_rest, most) + 1)
    }


def expected_accuracy(listed, floor, n_labels, predicted, metric, empty):
    """The mean of metric(tp, fp, fn, tn, empty) over all numbers of hits and misses."""
    hits = number_of_ones([listed.get(label, floor) for label in predicted])
    misses = number_of_ones([p for label, p in listed.items() if label not in predicted])
    n_rest = n_labels - len(set(listed) | set(predicted))
    rest = number_of_rest(n_rest, floor)
    k, total = len(predicted), 0.0
    for tp, of_hits in hits.items():
        for of_listed, of_misses in misses.items():
            for of_others, of_rest in rest.items():
                fn = of_listed + of_others
                weight = of_hits * of_misses * of_rest
                total += weight * metric(tp, k - tp, fn, n_labels - k - fn, empty)
    return total


def best_prediction(listed, floor, n_labels, metric, empty):
    """The best set of listed labels and its value, from all of them."""
    best = (-1.0, ())
    for size in range(len(listed) + 1):
        for labels in combinations(sorted(listed), size):
            value = expected_accuracy(listed, floor, n_labels, labels, metric, empty)
            if value > best[0] + 1e-12:
                best = (value, labels)
    return best
