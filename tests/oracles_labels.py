"""Slow and obvious versions of precision, recall and F1 of each label and of a batch."""

from __future__ import annotations


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
