"""Slow and obvious versions of what `labelsure.estimation` and `selection` compute."""

from __future__ import annotations

import itertools
import math
from itertools import pairwise
from statistics import NormalDist

from scipy.stats import t as student


def ridge_objective(rows, targets, coefficients, penalty):
    """Glmnet's ridge objective of class counts on standardised rows, intercepts last."""
    total, loss = sum(sum(t) for t in targets), 0.0
    for x, t in zip(rows, targets, strict=True):
        eta = [sum(a * b for a, b in zip(x, row, strict=True)) for row in coefficients]
        log_z = math.log(sum(math.exp(e) for e in eta))
        loss -= sum(count * (e - log_z) for count, e in zip(t, eta, strict=True)) / total
    return loss + penalty / 2 * sum(b**2 for row in coefficients for b in row[:-1])


def ridge_gradient(rows, values, coefficients, C):
    """Gradient of a ridge-penalised logistic regression of accuracies, intercept last."""
    gradient = [b / C for b in coefficients[:-1]] + [0.0]
    for x, value in zip(rows, values, strict=True):
        p = 1 / (1 + math.exp(-sum(a * b for a, b in zip(x, coefficients, strict=True))))
        for j, a in enumerate(x):
            gradient[j] += (p - value) * a
    return gradient


def accept_path(pairs, grid, error):
    """Threshold, share, mean and bound, the highest threshold first."""
    n = len(pairs)
    ranked = sorted((score for score, _ in pairs), reverse=True)
    if grid is None:  # strictly above the order statistics; everything at last
        limits = [ranked[n * tenths // 10] for tenths in range(1, 10)] + [-math.inf]
        thresholds = [math.nextafter(t, math.inf) if t > -math.inf else t for t in limits]
    else:
        thresholds = grid
    rows = []
    for threshold in sorted(set(thresholds), reverse=True):
        values = [accuracy for score, accuracy in pairs if score >= threshold]
        mean = sum(values) / len(values) if values else math.nan
        bound = binomial_bound(sum(values), len(values), error / len(thresholds))
        rows.append((threshold, len(values) / n, mean, bound))
    return rows


def accept_curve(score, accuracy):
    """(threshold, n, mean, standard deviation, area) for each distinct score, the highest first."""
    rows = []
    for t in sorted(set(score), reverse=True):
        accepted = [a for s, a in zip(score, accuracy, strict=True) if s >= t]
        mean = sum(accepted) / len(accepted)
        spread = math.sqrt(sum((a - mean) ** 2 for a in accepted) / len(accepted))
        rows.append((t, len(accepted), mean, spread))
    out = []
    for i, (t, n, mean, spread) in enumerate(rows):
        area, before = 0.0, 0
        for _, m, value, _ in rows[: i + 1]:
            area += (m - before) * value
            before = m
        out.append((t, n, mean, spread, area / n))
    return out


def wilson(values, z):
    """Wilson's interval of a mean, z standard errors wide.

    Values anywhere in [0, 1] count as the number of coins that would scatter as much, where the
    variance of one fair coin, 1/4, is added to both sums of squares.
    """
    n = len(values)
    mean = sum(values) / n
    found = sum((v - mean) ** 2 for v in values) + 0.25
    coins = sum(mean * (1 - mean) for _ in values) + 0.25
    n_coins = n * coins / found
    middle = (mean + z**2 / (2 * n_coins)) / (1 + z**2 / n_coins)
    margin = z * math.sqrt(mean * (1 - mean) / n_coins + z**2 / (4 * n_coins**2))
    margin /= 1 + z**2 / n_coins
    return max(0.0, middle - margin), min(1.0, middle + margin)


def calibration_error(estimated, accuracy, edges):
    """Mean over instances of |mean estimate - mean accuracy| of their interval (a, b]."""
    n = len(estimated)
    total = 0.0
    for a, b in pairwise(edges):
        mine = [
            i for i, e in enumerate(estimated) if a < e <= b or (a == edges[0] and e == edges[0])
        ]
        if mine:
            mean_e = sum(estimated[i] for i in mine) / len(mine)
            mean_a = sum(accuracy[i] for i in mine) / len(mine)
            total += len(mine) / n * abs(mean_e - mean_a)
    return total


def binomial_cdf(k, n, p):
    return sum(math.comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(int(k) + 1))


def normal_quantile(p):
    """z with P(Z <= z) = p, by bisection."""
    low, high = -40.0, 40.0
    for _ in range(200):
        middle = (low + high) / 2
        if 0.5 * math.erfc(-middle / math.sqrt(2)) < p:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def largest_capital(outcomes, target, error, n_all=None, cap=0.98, beyond=1.01):
    """The largest capital on the way when 1 is staked on outcomes being above the target.

    With `n_all` they are drawn without replacement from so many, whose mean would be the target.
    """
    n, capital, largest = len(outcomes), 1.0, 1.0
    seen = []
    for i, x in enumerate(outcomes):
        p = capital * error / beyond
        if p >= 1:
            break
        # Begun as by one outcome of a fair coin: mean 1/2, variance 1/4.
        running, squares = 0.5, 0.25
        for k, y in enumerate(seen):
            running += y
            squares += (y - running / (k + 2)) ** 2
        variance = squares / (len(seen) + 1)
        z = normal_quantile(p)
        density = math.exp(-z * z / 2) / math.sqrt(2 * math.pi)
        left, mean_left = n - i, target
        if n_all is not None:
            left *= (n_all - i) / (n_all - n + 1)
            mean_left = (n_all * target - sum(seen)) / (n_all - i)
        seen.append(x)
        if mean_left <= 0:
            return math.inf
        if mean_left >= 1:
            continue
        stake = min(density / p / math.sqrt(left * variance), cap / mean_left)
        capital *= 1 + stake * (x - mean_left)
        largest = max(largest, capital)
    return largest


def binomial_bound(n_ones, n, error):
    """The smallest mean that explains so many ones with probability `error`, by bisection."""
    low, high = 0.0, 1.0
    for _ in range(100):
        middle = (low + high) / 2
        at_least = 1 - (binomial_cdf(n_ones - 1, n, middle) if n_ones else 0.0)
        if at_least < error:
            low = middle
        else:
            high = middle
    return math.floor(1000 * low + 1e-9) / 1000  # rounded down to three digits


def fallback(p_values, levels):
    """Rejected hypotheses, from the last down; levels are handed on while they are rejected."""
    rejected = [False] * len(p_values)
    have = 0.0
    for i in range(len(p_values) - 1, -1, -1):
        have += levels[i]
        if have > 0 and p_values[i] <= have:
            rejected[i] = True
        else:
            have = 0.0
    return rejected


def mean_interval(estimates, ratio, n_fitted, fit_variance, level):
    """Mean, low and high of a batch, from the estimate of every instance."""
    n = len(estimates)
    mean = sum(estimates) / n
    single = 0.0
    for p in estimates:
        inward = p if n_fitted == math.inf else (n_fitted * p + 1) / (n_fitted + 2)
        single += ratio * inward * (1 - inward) / n
    variance = single / n
    if fit_variance is not None:
        variance += max(fit_variance, single / n_fitted)
    quantile = NormalDist().inv_cdf((1 + level) / 2)
    if n_fitted < math.inf:
        quantile = student.ppf((1 + level) / 2, n_fitted - 1)
    margin = quantile * math.sqrt(variance)
    return mean, max(0.0, mean - margin), min(1.0, mean + margin)


def labelset_frequency(decision, truths):
    """log((count + 1/2) / (n + 1)) of a labelset among those of n instances."""
    count = 0
    for truth in truths:
        if list(truth) == list(decision):
            count += 1
    return math.log((count + 0.5) / (len(truths) + 1))


def thresholded_confidence(known, accuracy, new):
    """ATC: the share of new confidences that reach the threshold of the known ones."""
    n_above = round(sum(accuracy) / len(accuracy) * len(known))
    ranked = sorted(known, reverse=True)
    if n_above == 0:
        return sum(1 for confidence in new if confidence > ranked[0]) / len(new)
    return sum(1 for confidence in new if confidence >= ranked[n_above - 1]) / len(new)


def permutation_tail(reference, batch):
    """The chance that a random part of all values has a sum as large, or as small: twice the less.

    All parts of the size of the batch are listed.
    """
    values = [*reference, *batch]
    parts = [sum(part) for part in itertools.combinations(values, len(batch))]
    above = sum(part >= sum(batch) - 1e-9 for part in parts) / len(parts)
    below = sum(part <= sum(batch) + 1e-9 for part in parts) / len(parts)
    return min(1.0, 2 * min(above, below))


def spent(chunk):
    """The part of the level that chunk 1, 2, ... gets."""
    return 1 / (1 + math.log(chunk)) - 1 / (1 + math.log(chunk + 1))


def capital_against(mean, chunks, share, n_stakes=7):
    """What gamblers have who bet that outcomes are below the mean, after chunks of outcomes.

    One begins at each chunk with a part of 1, shared equally by the stakes 0.98, 0.49, ... of what
    the worst outcome, 1 + share, can cost; parts of chunks to come are kept.
    """
    total = 0.0
    for first in range(len(chunks)):
        for k in range(n_stakes):
            stake = 0.98 / 2**k / max(1 + share - mean, 0.001)
            capital = spent(first + 1) / n_stakes
            for outcomes in chunks[first:]:
                for outcome in outcomes:
                    capital *= 1 + stake * (mean - outcome)
            total += capital
    return total + 1 - sum(spent(t + 1) for t in range(len(chunks)))


def capital_above(mean, values, n_stakes=7):
    """What gamblers have who bet that values are above the mean; a tenth is kept."""
    total = 0.1
    for k in range(n_stakes):
        stake = 0.98 / 2**k / max(mean, 0.001)
        capital = 0.9 / n_stakes
        for value in values:
            capital *= 1 + stake * (value - mean)
        total += capital
    return total


def paired_margin(accuracy, estimated, inflation, n_batch, quantile):
    """Half an interval for the difference of two models, by pairs (first, second) of rows."""
    residuals = [(a - b) - (c - d) for (a, b), (c, d) in zip(accuracy, estimated, strict=True)]
    mean = sum(residuals) / len(residuals)
    squares = sum((r - mean) ** 2 for r in residuals) + 1  # one residual at the end of the range
    single = squares / len(residuals)
    return quantile * math.sqrt(single * inflation / len(residuals) + single / n_batch)
