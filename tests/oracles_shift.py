"""Formulas of batches that differ from the labelled instances, as loops over rows."""


def auc(reference, batch):
    """How often a score of the batch is above one of the reference; a tie counts half."""
    wins = 0.0
    for high in batch:
        for low in reference:
            wins += 1.0 if high > low else 0.5 if high == low else 0.0
    return wins / (len(reference) * len(batch))


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


def share_of_estimates(accuracy, estimated):
    """How far estimates count: the slope of accuracies on them, within [0, 1]."""
    below = _covariance(estimated, estimated, len(estimated))
    return min(max(_covariance(accuracy, estimated, len(estimated)) / below, 0.0), 1.0)


def batch_mean(accuracy, estimated, everything, share):
    """The mean of the batch itself from n of N labels drawn at random, and its standard error."""
    n, N = len(accuracy), len(everything)
    rest = [a - share * f for a, f in zip(accuracy, estimated, strict=True)]
    variance = (1 / n - 1 / N) * _covariance(rest, rest, n - 1)
    return share * _mean(everything) + _mean(rest), variance**0.5
