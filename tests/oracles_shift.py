"""Formulas of batches that differ from the labelled instances, as loops over rows."""

import numpy as np


def standardised(columns):
    """Columns with mean 0 and standard deviation 1."""
    found = []
    for column in columns:
        centre = _mean(column)
        scale = _mean([(x - centre) ** 2 for x in column]) ** 0.5
        found.append([(x - centre) / scale for x in column])
    return found


def squared_distance(rows, is_batch, ridge=0.05, largest=3.0):
    """Mahalanobis' distance of two means, squared: of columns and their squares, with a ridge.

    Scores are cut at `largest` before they are squared.
    """
    scores = [
        [max(-largest, min(largest, x)) for x in column]
        for column in standardised(list(zip(*rows, strict=True)))
    ]
    columns = standardised(scores + [[x * x for x in column] for column in scores])
    gaps, covariance = [], []
    for j, left in enumerate(columns):
        inside = _mean([x for x, part in zip(left, is_batch, strict=True) if part])
        outside = _mean([x for x, part in zip(left, is_batch, strict=True) if not part])
        gaps.append(inside - outside)
        covariance.append(
            [
                _mean([x * y for x, y in zip(left, right, strict=True)]) + ridge * (j == k)
                for k, right in enumerate(columns)
            ]
        )
    return float(np.array(gaps) @ np.linalg.solve(covariance, gaps))


def largest_gap(left, right):
    """Kolmogorov and Smirnov's distance."""
    gaps = []
    for value in [*left, *right]:
        share_left = sum(x <= value for x in left) / len(left)
        share_right = sum(x <= value for x in right) / len(right)
        gaps.append(abs(share_left - share_right))
    return max(gaps)


def weighted_mean(batch_estimates, weights, accuracy, estimates):
    """The mean estimate of a batch, plus the weighted mean of what it leaves out."""
    mean = sum(batch_estimates) / len(batch_estimates)
    total = sum(weights)
    for w, a, f in zip(weights, accuracy, estimates, strict=True):
        mean += w * (a - f) / total
    return mean


def effective_size(weights):
    """How many instances of equal weight are worth as much."""
    return sum(weights) ** 2 / sum(w * w for w in weights)


def _mean(values):
    return sum(values) / len(values)


def _covariance(left, right, divisor):
    a, b = _mean(left), _mean(right)
    return sum((x - a) * (y - b) for x, y in zip(left, right, strict=True)) / divisor


def power_tuning(accuracy, estimated):
    """How far estimates count: the slope of accuracies on them, within [0, 1]."""
    below = _covariance(estimated, estimated, len(estimated))
    return min(max(_covariance(accuracy, estimated, len(estimated)) / below, 0.0), 1.0)


def batch_mean(accuracy, estimated, everything, share):
    """The mean of the batch itself from n of N labels drawn at random, and its standard error."""
    n, N = len(accuracy), len(everything)
    rest = [a - share * f for a, f in zip(accuracy, estimated, strict=True)]
    variance = (1 / n - 1 / N) * _covariance(rest, rest, n - 1)
    return share * _mean(everything) + _mean(rest), variance**0.5


def pseudo_row_interval(accuracy, estimated, everything, share, quantile):
    """Student's interval of the batch's mean with one pseudo-row at each end of the residuals."""
    n, N = len(accuracy), len(everything)
    rest = [a - share * f for a, f in zip(accuracy, estimated, strict=True)]
    padded = [*rest, 0 - share * max(everything), 1 - share * min(everything)]
    # Of the batch's sum of residuals n are known; the others are estimated.
    centre = (sum(rest) + (N - n) * _mean(padded)) / N
    margin = quantile * ((1 / n - 1 / N) * _covariance(padded, padded, n + 1)) ** 0.5
    known = share * _mean(everything)
    return max(0.0, known + centre - margin), min(1.0, known + centre + margin)


def sum_of_ranks(values, rows):
    """The sum of the ranks of some values among all; equal values share their mean rank."""
    total = 0.0
    for row in rows:
        below = sum(value < values[row] for value in values)
        equal = sum(value == values[row] for value in values)
        total += below + (equal + 1) / 2
    return total
