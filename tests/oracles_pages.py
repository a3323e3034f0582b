"""What a page of a model shows, as loops over predictions. Imports nothing of the package."""

from __future__ import annotations


def accept_by_loops(estimated, accuracy, threshold):
    """Return how many predictions a threshold accepts, and their mean accuracy (0 of none)."""
    taken = [a for e, a in zip(estimated, accuracy, strict=True) if e >= threshold]
    return len(taken), sum(taken) / len(taken) if taken else 0.0


def count_confusions_by_loops(Y_true, Y_pred):
    """Return {(missed label, added label): number of predictions}."""
    counts = {}
    for true, predicted in zip(Y_true, Y_pred, strict=True):
        for i in range(len(true)):
            for j in range(len(true)):
                if true[i] and not predicted[i] and predicted[j] and not true[j]:
                    counts[i, j] = counts.get((i, j), 0) + 1
    return counts
