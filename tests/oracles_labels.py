"""Slow and obvious versions of precision, recall and F1 of each label and of a batch."""

from __future__ import annotations

from itertools import product


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


def every_truth(P, labelsets):
    """Every truth of a batch with its probability; row i of P goes over `labelsets`."""
    for codes in product(range(len(labelsets)), repeat=len(P)):
        probability = 1.0
        for row, code in zip(P, codes, strict=True):
            probability *= row[code]
        yield [labelsets[code] for code in codes], probability


def expected_measures(P, labelsets, Y_pred, empty):
    """Expected measures of each label, expected numbers of true ones, and expected averages."""
    n_labels = len(Y_pred[0])
    by_label = [{"precision": 0.0, "recall": 0.0, "f1": 0.0, "n_true": 0.0} for _ in Y_pred[0]]
    averages: dict[str, float] = {}
    for Y_true, probability in every_truth(P, labelsets):
        for j, found in enumerate(label_measures(Y_true, Y_pred, empty)):
            found["n_true"] = sum(true[j] for true in Y_true)
            for name, value in found.items():
                by_label[j][name] += probability * value
        for name, value in batch_measures(Y_true, Y_pred, empty).items():
            averages[name] = averages.get(name, 0.0) + probability * value
    assert len(by_label) == n_labels
    return by_label, averages


def sum_of_coins(probabilities):
    """The probability of each number of heads, coin by coin."""
    heads = [1.0]
    for p in probabilities:
        heads = [
            (heads[k] * (1 - p) if k < len(heads) else 0.0) + (heads[k - 1] * p if k else 0.0)
            for k in range(len(heads) + 1)
        ]
    return heads
