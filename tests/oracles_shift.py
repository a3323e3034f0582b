"""Formulas of batches that differ from the labelled instances, as loops over rows."""

import math


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


def frequency_by_em(probabilities, before, n_steps=5000):
    """How frequent one label has become: expectation-maximisation on the batch."""
    now = before
    for _ in range(n_steps):
        total = 0.0
        for p in probabilities:
            yes, no = p * now / before, (1 - p) * (1 - now) / (1 - before)
            total += yes / (yes + no)
        now = total / len(probabilities)
    return now


def tilt_likelihood(batch, reference, log_factors, penalty):
    """How probable a batch is if the odds of each label have changed by a factor.

    It counts as a batch that says as much beside a reference without end.
    """

    def gain(row):
        product = 1.0
        for p, factor in zip(row, log_factors, strict=True):
            product *= 1 - p + p * math.exp(factor)
        return product

    mean = sum(gain(row) for row in reference) / len(reference)
    share = len(reference) / (len(batch) + len(reference))
    value = share * sum(math.log(gain(row) / mean) for row in batch)
    return value - penalty / 2 * sum(factor**2 for factor in log_factors)


def tilt_evidence(batch, reference, penalty, n_steps=200):
    """The log of how probable a batch is, over all log-factors of one label, by a fine sum.

    Log-factors are normal with a variance of one by the penalty, which `tilt_likelihood` has but
    for its constant.
    """
    reach = 6 / math.sqrt(penalty)
    width = 2 * reach / n_steps
    total = 0.0
    for k in range(n_steps):
        at = -reach + (k + 0.5) * width
        total += math.exp(tilt_likelihood(batch, reference, [at], penalty)) * width
    return math.log(total * math.sqrt(penalty / (2 * math.pi)))


def tilt_covariance(rates, n_reference, penalty):
    """How uncertain the log-factors of two labels are: the inverse of the second derivatives."""
    n = len(rates)
    share = n_reference / (n + n_reference)
    curvature = [[0.0, 0.0], [0.0, 0.0]]
    means = [_mean([row[j] for row in rates]) for j in range(2)]
    for i in range(2):
        for j in range(2):
            for row in rates:
                curvature[i][j] += share * (row[i] - means[i]) * (row[j] - means[j])
        curvature[i][i] += penalty
    (a, b), (c, d) = curvature
    determinant = a * d - b * c
    return [[d / determinant, -b / determinant], [-c / determinant, a / determinant]]


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


def population_mean(accuracy, estimated, unlabelled, share):
    """Prediction-powered inference for a mean: the value and its standard error."""
    n, N = len(accuracy), len(unlabelled)
    share = share / (1 + n / N)
    rest = [a - share * f for a, f in zip(accuracy, estimated, strict=True)]
    variance = _covariance(rest, rest, n - 1) / n
    variance += share**2 * _covariance(unlabelled, unlabelled, N) / N
    return share * _mean(unlabelled) + _mean(rest), variance**0.5


def included_mean(accuracy, estimated, inclusion, everything, share):
    """The mean of the batch where each row had a probability of its own to be labelled."""
    weights = [1 / p for p in inclusion]
    total = sum(weights)

    def mean(values):
        return sum(w * x for w, x in zip(weights, values, strict=True)) / total

    rest = [y - share * x for x, y in zip(estimated, accuracy, strict=True)]
    centre, variance = mean(rest), 0.0
    for w, p, e in zip(weights, inclusion, rest, strict=True):
        variance += (1 - p) * w**2 * (e - centre) ** 2 / total**2
    n = len(accuracy)
    return share * _mean(everything) + centre, (variance * n / (n - 1)) ** 0.5
