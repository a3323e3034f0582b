"""What a classifier gains from learning from all instances, not only from those of some folds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaincinv
from sklearn.base import clone

from labelsure._runtime.typing import Floats
from labelsure.estimation._batch_estimates import TrainingGain
from labelsure.estimation._estimator import AccuracyEstimator
from labelsure.estimation.score_table import ScoreTable

LEARNING_EXPONENT = 0.5
"""What is missing to the accuracy that more and more instances lead to is taken to fall as the
number of instances to the power of minus this."""

FACTOR_ERROR = 1 / 3
"""The relative standard deviation of the factor: other exponents, from 1/4 to 2, have factors
between 1.1 times and half of it."""

SHARED_CLASSIFIERS = 1 / 4
"""Residuals of a fold share a classifier, which is not the one that predicts in the end. How much
predictions change with the classifier shows in those of half the instances: this part of their
variance is added. It was chosen by simulation, as no unbiased estimate exists."""


CHANCE_LEVEL = 0.95
"""Residuals of different classifiers differ by chance, too. By how much more they do is counted
only if chance would not make them differ so much with this probability: folds are few and small."""


@dataclass(frozen=True)
class HalfTrained:
    """The same instances, predicted by classifiers of folds and by ones of half the instances.

    Parameters
    ----------
    by_whole
        Predictions by classifiers that were fitted to all training instances of a fold.
    by_half
        By classifiers that were fitted to half of these.
    share
        The training instances of a fold, of all.
    sizes
        How many instances each fold has; they stand in this order in both tables.
    """

    by_whole: ScoreTable
    by_half: ScoreTable
    share: float
    sizes: tuple[int, ...]


def extrapolation_factor(share: float) -> float:
    """Return the gain from a share of the instances to all, of that from half the share to it.

    Parameters
    ----------
    share
        Above 0, at most 1.

    Examples
    --------
    >>> round(extrapolation_factor(0.8), 3), round(extrapolation_factor(0.9), 3)
    (0.255, 0.124)
    """
    by_half, by_whole = (part**-LEARNING_EXPONENT for part in (share / 2, share))
    return (by_whole - 1) / (by_half - by_whole)


def variance_between(residuals: Sequence[Floats], sizes: Sequence[int]) -> float:
    """Return the variance of mean residuals between classifiers, beyond what chance explains.

    A learner whose confidence means one thing on some training instances and another on others, as
    that of a few neighbours may, has an accuracy that no other classifier tells exactly.

    Parameters
    ----------
    residuals
        Groups of residuals, one after the other for each classifier; of a group, the classifiers
        learned from equally many instances.
    sizes
        How many residuals each classifier of a group has.

    Returns
    -------
    0 where the classifiers do not differ more than chance allows.

    Examples
    --------
    >>> round(variance_between([np.array([0.1, 0.2, -0.1, -0.2])], [2, 2]), 3)
    0.043
    """
    statistic, total, n_free = 0.0, 0.0, 0
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(int)
    for group in residuals:
        means = np.add.reduceat(group, starts) / sizes
        within = group - np.repeat(means, sizes)
        n_within = max(len(group) - len(means), 1)
        chance = (within**2).sum() / n_within / np.asarray(sizes)
        deviations = (means - means.mean()) ** 2
        if not chance.min() > 0:  # classifiers that are always right, or one instance for each
            continue
        statistic += float((deviations / chance).sum())
        total += float(deviations.sum() - (1 - 1 / len(means)) * chance.sum())
        n_free += len(means) - 1
    if n_free == 0 or statistic <= 2 * gammaincinv(n_free / 2, CHANCE_LEVEL):
        return 0.0
    return max(total / n_free, 0.0)


def measure_training_gain(estimator: AccuracyEstimator, found: HalfTrained) -> TrainingGain:
    """Return by how much an estimator is too low for a classifier that learned from everything.

    One step below it can be seen: an estimator that is fitted to the predictions of classifiers of
    half the instances judges those of twice as many, and is too low by something. The step that
    cannot be seen is a fraction of that.

    Parameters
    ----------
    estimator
        Fitted to predictions of all folds.
    found
        Predictions of some folds.
    """
    if not estimator.model_.learns:  # nothing that folds could have taught it
        return TrainingGain()
    judge = clone(estimator).set_params(penalty=estimator.penalty_)
    judge.fit(ScoreTable(found.by_half.to_frame()))
    of_halves = _residuals(judge, found.by_half)
    excess = _residuals(judge, found.by_whole) - of_halves
    factor = extrapolation_factor(found.share)
    mean = factor * float(excess.mean())
    # An instance's excess goes with its residual, of which it is a part: hence the factor itself.
    variance = factor * (1 + factor) * float(excess.var()) / len(excess)
    variance += SHARED_CLASSIFIERS * float(excess.var()) / estimator.dispersion_.n_samples
    variance += (FACTOR_ERROR * mean) ** 2
    # The last classifier has a deviation of its own, and the mean of those of the folds has one.
    between = variance_between([_residuals(estimator, found.by_whole), of_halves], found.sizes)
    variance += (1 + 1 / len(found.sizes)) * between
    estimated = estimator.predict(found.by_whole)
    coins = float((estimated * (1 - estimated)).mean())
    if coins == 0:  # all is certain
        return TrainingGain()
    return TrainingGain(mean, float(np.clip(mean / coins, -1, 1)), variance / coins**2)


def add_training_gain(
    estimator: AccuracyEstimator, table: ScoreTable, found: HalfTrained | None, level: float
) -> AccuracyEstimator:
    """Return the estimator, with the gain in what it says from now on.

    Parameters
    ----------
    estimator
        Fitted to the table.
    table
        Predictions of all folds.
    found
        Predictions of some folds; None where there is nothing to gain.
    level
        Confidence level of the estimator's reference.
    """
    if found is not None:
        estimator.training_gain_ = measure_training_gain(estimator, found)
    if found is not None or level != estimator.reference_.level:
        estimator.reference_ = estimator.estimate(table, level=level, shift="ignore")
    return estimator


def _residuals(estimator: AccuracyEstimator, table: ScoreTable) -> Floats:
    return table.accuracy(estimator.metric, estimator.empty) - estimator.predict(table)
