"""The study's formulas as obvious loops. Nothing here comes from the package."""

import math


def sign(value):
    return int(value > 0) - int(value < 0)


def kendall_tau_b(x, y):
    n = len(x)
    concordant = tied_x = tied_y = 0
    for i in range(n):
        for j in range(i):
            concordant += sign(x[i] - x[j]) * sign(y[i] - y[j])
            tied_x += x[i] == x[j]
            tied_y += y[i] == y[j]
    pairs = n * (n - 1) / 2
    return concordant / math.sqrt((pairs - tied_x) * (pairs - tied_y))


def pearson_r(x, y):
    n = len(x)
    mean_x, mean_y = sum(x) / n, sum(y) / n
    cross = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True))
    square_x = sum((a - mean_x) ** 2 for a in x)
    square_y = sum((b - mean_y) ** 2 for b in y)
    return cross / math.sqrt(square_x * square_y)


def jackknife_error(statistic, columns):
    """Standard error of a statistic of several columns, leaving out one row at a time."""
    n = len(columns[0])
    without = [
        statistic(*([*column[:i], *column[i + 1 :]] for column in columns)) for i in range(n)
    ]
    mean = sum(without) / n
    return math.sqrt((n - 1) / n * sum((value - mean) ** 2 for value in without))


def closest(bounds, intervals):
    """Which intervals are nearest to the bounds, by the sum of both ends' distances."""
    low, high = bounds
    distances = [
        None if a is None else round(abs(a - low) + abs(b - high), 9) for a, b in intervals
    ]
    least = min(distance for distance in distances if distance is not None)
    return [distance == least for distance in distances]


T_QUANTILES = {1: 12.7062047362, 2: 4.3026527297, 3: 3.1824463053}
"""The 97.5% quantiles of Student's t with so many degrees of freedom, from a printed table."""


def interval_over_repeats(values, test_to_training):
    """Mean and 95% interval of a number of each repeat (Nadeau and Bengio's correction)."""
    n = len(values)
    mean = sum(values) / n
    variance = sum((value - mean) ** 2 for value in values) / (n - 1)
    reach = T_QUANTILES[n - 1] * math.sqrt(variance * (1 / n + test_to_training))
    return mean, mean - reach, mean + reach


def claim_holds(sign, estimate, p, level, bound):
    """Whether a number is as the paper says: above a bound, below it, or no evidence of either."""
    if math.isnan(estimate):
        return False
    if sign == 0 and level == 1:
        return estimate == bound
    if sign == 0:
        return not p < level
    if sign == 1 and not estimate > bound:
        return False
    if sign == -1 and not estimate < bound:
        return False
    if level == 1:
        return True
    return p < level


def verdict(claims):
    """The verdict on claims (sign, estimate, p, level, bound)."""
    n_known = 0
    for claim in claims:
        if not math.isnan(claim[1]):
            n_known += 1
            if not claim_holds(*claim):
                return "does not hold"
    if n_known == 0:
        return "not applicable"
    if n_known < len(claims):
        return "undecided"
    return "holds"


def stable(sign, bound, values, test_to_training):
    """Whether the interval over splits leaves the sign."""
    if len(values) < 2:
        return "one split"
    _, low, high = interval_over_repeats(values, test_to_training)
    if sign == 0:
        return "yes" if low <= bound and high >= bound else "no"
    return "yes" if low > bound or high < bound else "no"


def prediction_interval(values):
    """Where one more split of the same data should fall, with 95%."""
    n = len(values)
    mean = sum(values) / n
    variance = sum((value - mean) ** 2 for value in values) / (n - 1)
    reach = T_QUANTILES[n - 1] * math.sqrt(variance * (1 + 1 / n))
    return mean - reach, mean + reach


def ranks(values):
    """Ranks from 1, ties at their mean."""
    return [
        sum(other < value for other in values) + (sum(other == value for other in values) + 1) / 2
        for value in values
    ]


def spearman(x, y):
    return pearson_r(ranks(x), ranks(y))


def errors_of_intervals(rows):
    """Mean distance of the middle of actual accuracy from that of estimates, by model."""
    gaps = {}
    for row in rows:
        if not math.isnan(row["low"]):
            actual = (row["low"] + row["high"]) / 2
            estimated = (row["predicted_low"] + row["predicted_high"]) / 2
            gaps.setdefault(row["model"], []).append(abs(actual - estimated))
    return {model: sum(some) / len(some) for model, some in gaps.items()}
