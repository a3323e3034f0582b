"""Slow and obvious versions of precision, recall and F1 of each label and of a batch."""

from __future__ import annotations

import math


def ratio(numerator, denominator, empty):
    return numerator / denominator if denominator else empty


def measures_of_counts(tp, fp, fn, empty):
    return {
        "precision": ratio(tp, tp + fp, empty),
        "recall": ratio(tp, tp + fn, empty),
        "f1": ratio(2 * tp, 2 * tp + fp + fn, empty),
    }


def label_counts(Y_true, Y_pred):
    """(tp, fp, fn) of each label."""
    counts = []
    for j in range(len(Y_pred[0])):
        pairs = [(true[j], pred[j]) for true, pred in zip(Y_true, Y_pred, strict=True)]
        counts.append((pairs.count((1, 1)), pairs.count((0, 1)), pairs.count((1, 0))))
    return counts


def label_measures(Y_true, Y_pred, empty):
    """One dictionary of the three measures for each label."""
    return [measures_of_counts(*counts, empty) for counts in label_counts(Y_true, Y_pred)]


def batch_measures(Y_true, Y_pred, empty):
    """Micro and macro averages by name."""
    counts = label_counts(Y_true, Y_pred)
    by_label = label_measures(Y_true, Y_pred, empty)
    micro = measures_of_counts(*(sum(column) for column in zip(*counts, strict=True)), empty)
    averages = {f"micro-{name}": value for name, value in micro.items()}
    for name in micro:
        averages[f"macro-{name}"] = sum(of_label[name] for of_label in by_label) / len(by_label)
    return averages


def fit_line(probabilities, truth, n_steps=60):
    """Intercept and slope of a logistic regression on logits, drawn to 0 and 1 by a little.

    Newton's steps on the log-likelihood less 0.005 a**2 and 0.5 (b - 1)**2.
    """
    x = [_clipped_logit(p) for p in probabilities]
    a, b = 0.0, 1.0
    for _ in range(n_steps):
        slope = [-0.01 * a, -(b - 1)]
        curve = [0.01, 0.0, 1.0]
        for value, y in zip(x, truth, strict=True):
            p = 1 / (1 + math.exp(-a - b * value))
            slope[0] += y - p
            slope[1] += (y - p) * value
            for k in range(3):
                curve[k] += p * (1 - p) * value**k
        below = curve[0] * curve[2] - curve[1] ** 2
        step = (curve[2] * slope[0] - curve[1] * slope[1]) / below
        b += (curve[0] * slope[1] - curve[1] * slope[0]) / below
        a += step
    return a, b


def em_prevalence(probabilities, line, before, n_steps=3000):
    """The prevalence of a batch by EM: posteriors by the prevalence, then their mean."""
    odds = [math.exp(line[0] + line[1] * _clipped_logit(p)) for p in probabilities]
    ratios = [value * (1 - before) / before for value in odds]
    found = before
    for _ in range(n_steps):
        posteriors = [found * r / (found * r + 1 - found) for r in ratios]
        found = sum(posteriors) / len(posteriors)
    return found


def prevalence_variance(probabilities, line, before, found, step=1e-4):
    """The variance of a batch's share: that of the maximum, less the scatter of the labels.

    The curvature of the log-likelihood is taken from its values at three prevalences.
    """
    odds = [math.exp(line[0] + line[1] * _clipped_logit(p)) for p in probabilities]
    ratios = [value * (1 - before) / before for value in odds]

    def log_likelihood(share):
        return sum(math.log(share * r + 1 - share) for r in ratios)

    below, above = log_likelihood(found - step), log_likelihood(found + step)
    curvature = (below + above - 2 * log_likelihood(found)) / step**2
    return -1 / curvature - found * (1 - found) / len(ratios)


def _clipped_logit(p):
    p = min(max(p, 1e-6), 1 - 1e-6)
    return math.log(p / (1 - p))
