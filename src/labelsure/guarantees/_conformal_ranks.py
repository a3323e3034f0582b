"""Thresholds that labelled instances set: for a coverage, for a recall, for a precision.

Each is a function of numbers alone, so that loops can be held against it.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import betaincinv

from labelsure._runtime.typing import Floats, Labelsets
from labelsure.guarantees._families import FAMILIES
from labelsure.metrics.mean_tests import MEAN_TESTS

ROUNDING = 1e-9  # of a product such as 10 * 0.9, which is not quite a whole number


def rank_for_coverage(n_samples: int, coverage: float) -> int:
    """Return which of the sorted scores covers a new one with probability `coverage`.

    A new score is as likely to be of any rank among n + 1, so that it is at most the k-th smallest
    of the n others with probability k / (n + 1). Above n no score is large enough.

    Examples
    --------
    >>> rank_for_coverage(99, 0.9), rank_for_coverage(5, 0.9)
    (90, 6)
    """
    return math.ceil((n_samples + 1) * coverage - ROUNDING)


def quantile_for_coverage(scores: Floats, coverage: float) -> float:
    """Return what a new score is at most with probability `coverage`; infinite if none will do.

    Examples
    --------
    >>> quantile_for_coverage(np.arange(99.0), 0.9)
    89.0
    """
    rank = rank_for_coverage(len(scores), coverage)
    return float(np.sort(scores)[rank - 1]) if rank <= len(scores) else math.inf


def coverage_interval(n_samples: int, coverage: float, level: float) -> tuple[float, float]:
    """Return between which coverages the one that these instances lead to lies.

    Over new instances, the coverage is a random number: it depends on the labelled instances and
    has a Beta distribution, whatever the model.

    Examples
    --------
    >>> [round(end, 3) for end in coverage_interval(999, 0.9, 0.95)]
    [0.881, 0.918]
    """
    rank = rank_for_coverage(n_samples, coverage)
    if rank > n_samples:
        return 1.0, 1.0
    tail = (1 - level) / 2
    low, high = betaincinv(rank, n_samples + 1 - rank, [tail, 1 - tail])
    return float(low), float(high)


def threshold_for_recall(values: Floats, weights: Floats, n_samples: int, recall: float) -> float:
    """Return the highest threshold at which few enough true labels are missed.

    A true label is missed where its value is below the threshold. The share of an instance's true
    labels that is missed is a loss between 0 and 1 that only rises with the threshold, so that its
    mean over new instances is at most 1 - recall if, over n labelled ones, n / (n + 1) times their
    mean plus 1 / (n + 1) is (conformal risk control, Angelopoulos and others).

    Parameters
    ----------
    values
        (m,) one for each true label of each labelled instance.
    weights
        (m,) 1 over the number of true labels of that instance.
    n_samples
        The number of labelled instances, those without true labels included: they miss none.
    recall
        The mean share of true labels to find.

    Examples
    --------
    >>> threshold_for_recall(np.array([0.2, 0.6, 0.9]), np.array([0.5, 0.5, 1.0]), 9, 0.85)
    0.6
    """
    most = (n_samples + 1) * (1 - recall) - 1 + ROUNDING
    if most < 0:
        return -math.inf
    order = np.argsort(values, kind="stable")
    missed = np.cumsum(weights[order])  # by thresholds above this value, ties not yet together
    last = np.append(values[order][1:] != values[order][:-1], True)[: len(values)]
    too_many = last & (missed > most)
    return float(values[order][np.argmax(too_many)]) if too_many.any() else math.inf


def threshold_for_precision(
    certainties: Floats, truth: Labelsets, precision: float, level: float
) -> float:
    """Return the lowest threshold whose labels are proved to be right often enough.

    For each threshold, the instances that have a label with at least that certainty are a sample of
    those that will have one, and the share of these labels that is true is their outcome.
    Thresholds are tested as `AcceptPolicy` does it.

    Parameters
    ----------
    certainties
        (n, L) numbers in [0, 1], instances in an order that has nothing to do with the outcomes.
    truth
        (n, L)
    precision
        The mean share of certain labels that shall be right.
    level
        The probability with which it is.

    Returns
    -------
    The threshold; infinite if none is proved
    """
    family, test = FAMILIES["sequences"], MEAN_TESTS["bounded"]
    grid = family.grid()
    single = family.single_level(grid, precision, 1 - level)

    def p_value(i: int) -> float:
        chosen = certainties >= grid[i]
        n_chosen = chosen.sum(axis=1)
        some = n_chosen > 0
        outcomes = (chosen & (truth == 1)).sum(axis=1)[some] / n_chosen[some]
        return test.p_value(outcomes, precision, single)

    passed = family.passed(p_value, grid, precision, 1 - level)
    return float(grid[np.argmax(passed)]) if passed.any() else math.inf
