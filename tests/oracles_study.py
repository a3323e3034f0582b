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
