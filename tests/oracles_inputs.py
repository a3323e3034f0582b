"""Ranges of numeric columns as loops; nothing of the package is imported."""

import math


def column_range(values, tail=0.005):
    """Lower end, upper end and length; a length of 0 where all numbers are the same."""
    ranked = sorted(v for v in values if not math.isnan(v))
    skipped = int(tail * (len(ranked) - 1))
    low, high = ranked[skipped], ranked[-1 - skipped]
    return low, high, high - low if high > low else ranked[-1] - ranked[0]


def deviation(row, columns):
    """Largest distance of a number from its column's range, in lengths, and its column."""
    lengths = sorted(length for *_, length in columns if length > 0)
    middle = len(lengths) // 2
    typical = 1.0
    if lengths:
        typical = lengths[middle]
        if len(lengths) % 2 == 0:
            typical = (lengths[middle - 1] + lengths[middle]) / 2
    largest, place = 0.0, 0
    for j, (value, (low, high, length)) in enumerate(zip(row, columns, strict=True)):
        distance = 0.0 if math.isnan(value) else max(low - value, value - high, 0.0)
        distance /= length if length > 0 else typical
        if distance > largest:
            largest, place = distance, j
    return largest, place


def limit(rows, folds, tail=0.005, referred=0.005, least=0.5):
    """Quantile of the deviations of rows from the ranges of other folds."""
    found = []
    for row, fold in zip(rows, folds, strict=True):
        others = [other for other, k in zip(rows, folds, strict=True) if k != fold]
        columns = [column_range(column, tail) for column in zip(*others, strict=True)]
        found.append(deviation(row, columns)[0])
    rank = min(math.ceil((len(rows) + 1) * (1 - referred)), len(rows))
    return max(sorted(found)[rank - 1], least)
