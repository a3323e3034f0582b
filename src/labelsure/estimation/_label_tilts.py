"""Label shift: labels have become more or less frequent, what each looks like has not.

Assumed is that P(x|y_j) stays and that each label's frequency changes. Then the odds of a label
given x change by one factor, an added logit, which is the one under which the batch is most
probable: what expectation-maximisation on the batch converges to, here by quasi-Newton steps on the
same likelihood, each label by itself. From the factors follow the labels' frequencies in the batch.

Labelled instances are then weighted so that their labels have these frequencies. Of all such
weights those are taken that differ least from each other: a product of a tilt for each label that
the instance has (exponential tilting), as labels that occur together must not count twice.

The probabilities are calibrated first: by one slope for all labels and an offset for each.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logit

from labelsure._kernels.threads import one_blas_thread
from labelsure._typing import Floats
from labelsure.errors import InputError
from labelsure.estimation._calibration_sample import CalibrationSample
from labelsure.estimation._shift_test import View, label_column
from labelsure.estimation._weighted_estimates import (
    LARGEST_WEIGHT,
    Weights,
    draw_counts,
    refuse_few_rows,
)

FACTOR_PENALTY = 1.0
"""On the squares of log-factors: as if each were known to be about 1, within a factor of e."""

TILT_PENALTY = 1.0  # likewise on log-tilts, where all labelled instances speak against it

OFFSET_PENALTY = 1.0  # on the squares of the offsets of labels
LARGEST_LOGIT = 9.0


@dataclass(frozen=True)
class LabelShift:
    """How frequent each label was, and how frequent it has become.

    Parameters
    ----------
    label_names
        One for each label.
    before, now
        (L,) the share of the instances that have it, of the labelled ones and of the batch.
    """

    label_names: tuple[str, ...]
    before: Floats
    now: Floats


def weigh_by_labels(sample: CalibrationSample, batch: View) -> tuple[Weights, LabelShift]:
    """Return weights by which labelled instances have the labels of a batch, and the shift.

    Parameters
    ----------
    sample
        The labelled instances.
    batch
        What is compared of the instances of the batch.
    """
    refuse_few_rows(len(batch))
    columns = [label_column(name) for name in sample.label_names]
    missing = [name for name in columns if name not in batch.names]
    if not columns or missing:
        raise InputError(
            "shift='labels' needs the probability of each label, for the labelled instances and "
            "for the batch, but they are not known. Fit and estimate with a LabelsetDistribution, "
            "not with a table."
        )
    truth = sample.true_labels().astype(np.float64)
    with one_blas_thread():
        reference = _logits(sample.view.columns(columns))
        slope, offsets = calibrate_logits(reference, truth)
        reference = slope * reference + offsets
        others = slope * _logits(batch.columns(columns)) + offsets
        before = smooth_rates(truth)
        log_factors = fit_factors(others, before)
        now = expit(logit(before) + log_factors)
        tilts = fit_tilts(truth, now)
        values = _weigh(truth, tilts)
        replicates = _replicate(reference, others, truth, log_factors, tilts)
    return Weights(values, replicates), LabelShift(sample.label_names, before, now)


def _logits(probabilities: Floats) -> Floats:
    return np.clip(logit(probabilities), -LARGEST_LOGIT, LARGEST_LOGIT)


def smooth_rates(truth: Floats, counts: Floats | None = None) -> Floats:
    """Return how frequent labels are, as if half an instance more had each, and half had none.

    Parameters
    ----------
    truth
        (n, L)
    counts
        (..., n) how often each instance counts; None for once.
    """
    n_true = truth.sum(axis=0) if counts is None else counts @ truth
    rates: Floats = (n_true + 0.5) / (len(truth) + 1)
    return rates


def calibrate_logits(logits: Floats, truth: Floats) -> tuple[float, Floats]:
    """Return a slope for all labels and an offset for each, by penalised likelihood.

    Parameters
    ----------
    logits, truth
        (n, L) of the labelled instances.
    """

    def loss(at: Floats) -> tuple[float, Floats]:
        slope, offsets = at[0], at[1:]
        scores = slope * logits + offsets
        penalty = (offsets**2).sum() + (slope - 1) ** 2
        value = (np.logaddexp(0, scores) - truth * scores).sum() + OFFSET_PENALTY / 2 * penalty
        gaps = expit(scores) - truth
        by_slope = (gaps * logits).sum() + OFFSET_PENALTY * (slope - 1)
        return float(value), np.append(by_slope, gaps.sum(axis=0) + OFFSET_PENALTY * offsets)

    start = np.append(1.0, np.zeros(logits.shape[1]))
    found = minimize(loss, start, jac=True, method="L-BFGS-B")
    return float(found.x[0]), found.x[1:]


def fit_factors(logits: Floats, before: Floats) -> Floats:
    """Return the log of the factor of each label's odds under which a batch is most probable, (L,).

    Parameters
    ----------
    logits
        (N, L) of the batch, calibrated.
    before
        (L,) how frequent the labels were.
    """
    n_batch, usual = len(logits), logit(before)
    alone = np.logaddexp(0, logits).sum() - n_batch * np.logaddexp(0, usual).sum()

    def loss(at: Floats) -> tuple[float, Floats]:
        gained = np.logaddexp(0, logits + at).sum() - n_batch * np.logaddexp(0, usual + at).sum()
        value = alone - gained + FACTOR_PENALTY / 2 * (at**2).sum()
        gradient = n_batch * expit(usual + at) - expit(logits + at).sum(axis=0)
        return float(value), gradient + FACTOR_PENALTY * at

    start = np.zeros(logits.shape[1])
    return minimize(loss, start, jac=True, method="L-BFGS-B").x


def fit_tilts(truth: Floats, wanted: Floats) -> Floats:
    """Return the log-tilt of each label by which weighted instances have the wanted labels, (L,).

    Parameters
    ----------
    truth
        (n, L) of the labelled instances.
    wanted
        (L,) how frequent labels shall be.
    """
    n_samples = len(truth)

    def loss(at: Floats) -> tuple[float, Floats]:
        scores = truth @ at
        largest = scores.max()
        relative = np.exp(scores - largest)
        value = n_samples * (largest + np.log(relative.mean()) - at @ wanted)
        gradient = n_samples * (relative @ truth / relative.sum() - wanted)
        return float(value + TILT_PENALTY / 2 * (at**2).sum()), gradient + TILT_PENALTY * at

    start = np.zeros(truth.shape[1])
    return minimize(loss, start, jac=True, method="L-BFGS-B").x


def _weigh(truth: Floats, tilts: Floats) -> Floats:
    """Return the product of the tilts of each instance's labels, at most 30 times their mean."""
    scores = truth @ tilts
    weights = np.exp(scores - scores.max(axis=0))
    weights /= weights.mean(axis=0)
    return np.minimum(weights, LARGEST_WEIGHT)


def _replicate(
    reference: Floats, batch: Floats, truth: Floats, log_factors: Floats, tilts: Floats
) -> Floats:
    """Return weights by resampled instances: one Newton step of each fit for each of them."""
    left, right = draw_counts(len(reference), len(batch))
    p, q = expit(reference), expit(batch + log_factors)
    # More of a label among the labelled instances makes it more probable in the batch as well.
    offset_steps = ((left - 1) @ (truth - p)) / ((p * (1 - p)).sum(axis=0) + OFFSET_PENALTY)
    usual, resampled = logit(smooth_rates(truth)), logit(smooth_rates(truth, left))
    moved = expit(resampled + log_factors) - expit(usual + log_factors)
    gradients = (right - 1) @ q + offset_steps * (q * (1 - q)).sum(axis=0) - len(batch) * moved
    steps = gradients / (len(batch) * q.var(axis=0) + FACTOR_PENALTY)
    now = expit(resampled + log_factors + steps)
    weights = _weigh(truth, tilts)
    means = weights @ truth / weights.sum()
    covariance = (truth * weights[:, np.newaxis]).T @ truth / weights.sum() - np.outer(means, means)
    curvature = covariance + TILT_PENALTY / len(truth) * np.eye(len(tilts))
    chosen = left * weights
    gaps = (
        now - chosen @ truth / chosen.sum(axis=1, keepdims=True) - TILT_PENALTY / len(truth) * tilts
    )
    tilt_steps = np.linalg.solve(curvature, gaps.T)
    return _weigh(truth, tilts[:, np.newaxis] + tilt_steps).T * left
