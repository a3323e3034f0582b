"""Slow and obvious versions of what `labelsure.estimation` and `selection` compute."""

from __future__ import annotations

import math
from itertools import pairwise


def ridge_gradient(rows, targets, coefficients, penalty, n_free):
    """Gradient of glmnet's ridge objective on given (standardised) rows, intercept last."""
    n_classes = len(targets[0])
    total = sum(sum(t) for t in targets)
    d = len(rows[0])
    gradient = [[0.0] * d for _ in range(n_free)]
    for x, t in zip(rows, targets, strict=True):
        eta = [sum(a * b for a, b in zip(x, coefficients[k], strict=True)) for k in range(n_free)]
        eta += [0.0] * (n_classes - n_free)
        top = max(eta)
        z = sum(math.exp(e - top) for e in eta)
        for k in range(n_free):
            p = math.exp(eta[k] - top) / z
            for j in range(d):
                gradient[k][j] += (sum(t) * p - t[k]) * x[j] / total
    for k in range(n_free):
        for j in range(d - 1):
            gradient[k][j] += penalty * coefficients[k][j]
    return gradient


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


def hoeffding_bentkus(mean, n, target):
    """P-value of "the mean accuracy is below the target" as in Learn-then-Test."""
    risk, alpha = 1 - mean, 1 - target
    low = min(risk, alpha)
    h = (low * math.log(low / alpha) if low > 0 else 0.0) + (1 - low) * math.log(
        (1 - low) / (1 - alpha)
    )
    bentkus = math.e * binomial_cdf(math.ceil(n * risk - 1e-9), n, alpha)
    return min(1.0, math.exp(-n * h), bentkus)


def sequences(p_values, starts, level):
    """Thresholds that pass when each start goes down until a failure, levels shared."""
    passed = [False] * len(p_values)
    for start in starts:
        i = start
        while i >= 0 and p_values[i] <= level / len(starts):
            passed[i] = True
            i -= 1
    return passed
