"""Label shift: labels have become more or less frequent, what each looks like has not.

Assumed is that P(x|y) stays and that P(y) changes by a factor for each label: P'(y) is in
proportion to P(y) times t_j for every label j that y has. Then P'(y|x) changes by the same factors,
which for independent labels is an added logit. The factors are those under which the batch is most
probable (what expectation-maximisation converges to; here by quasi-Newton steps on the same
likelihood). A labelled instance then counts by the product of the factors of its labels.

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

TILT_PENALTY = 1.0
"""On the squares of log-factors: as if each were known to be about 1, within a factor of e."""

OFFSET_PENALTY = 1.0  # on the squares of the offsets of labels
LARGEST_LOGIT = 9.0


@dataclass(frozen=True)
class LabelTilts:
    """By which factor the odds of each label have changed.

    Parameters
    ----------
    label_names
        One for each label.
    log_factors
        (L,) their logarithms.
    """

    label_names: tuple[str, ...]
    log_factors: Floats


def weigh_by_labels(sample: CalibrationSample, batch: View) -> tuple[Weights, LabelTilts]:
    """Return weights by which labelled instances have the labels of a batch, and the tilts.

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
        log_factors = fit_tilts(others, truth)
        values = _weigh(truth, log_factors)
        replicates = _replicate(reference, others, truth, log_factors)
    return Weights(values, replicates), LabelTilts(sample.label_names, log_factors)


def _logits(probabilities: Floats) -> Floats:
    return np.clip(logit(probabilities), -LARGEST_LOGIT, LARGEST_LOGIT)


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
        value = (np.logaddexp(0, scores) - truth * scores).sum() + OFFSET_PENALTY / 2 * (
            (offsets**2).sum() + (slope - 1) ** 2
        )
        gaps = expit(scores) - truth
        by_offset = gaps.sum(axis=0) + OFFSET_PENALTY * offsets
        return float(value), np.append(
            (gaps * logits).sum() + OFFSET_PENALTY * (slope - 1), by_offset
        )

    start = np.append(1.0, np.zeros(logits.shape[1]))
    found = minimize(loss, start, jac=True, method="L-BFGS-B")
    return float(found.x[0]), found.x[1:]


def fit_tilts(logits: Floats, truth: Floats) -> Floats:
    """Return the log-factor of each label under which a batch is most probable, (L,).

    Parameters
    ----------
    logits
        (N, L) of the batch, calibrated.
    truth
        (n, L) of the labelled instances.
    """
    n_batch = len(logits)

    def loss(at: Floats) -> tuple[float, Floats]:
        scores = truth @ at
        largest = scores.max()
        relative = np.exp(scores - largest)
        log_total = largest + np.log(relative.mean())
        tilted_means = relative @ truth / relative.sum()
        gained = np.logaddexp(0, logits + at) - np.logaddexp(0, logits)
        value = n_batch * log_total - gained.sum() + TILT_PENALTY / 2 * (at**2).sum()
        gradient = n_batch * tilted_means - expit(logits + at).sum(axis=0) + TILT_PENALTY * at
        return float(value), gradient

    start = np.zeros(logits.shape[1])
    return minimize(loss, start, jac=True, method="L-BFGS-B").x


def _weigh(truth: Floats, log_factors: Floats) -> Floats:
    """Return the product of the factors of each instance's labels, at most 30 times their mean."""
    scores = truth @ log_factors
    weights = np.exp(scores - scores.max(axis=0))
    weights /= weights.mean(axis=0)
    return np.minimum(weights, LARGEST_WEIGHT)


def _replicate(reference: Floats, batch: Floats, truth: Floats, log_factors: Floats) -> Floats:
    """Return weights by resampled instances: one Newton step from the fitted tilts each."""
    left, right = draw_counts(len(reference), len(batch))
    p = expit(reference)
    # Offsets first: more of a label among the labelled instances makes it more probable everywhere.
    offset_steps = ((left - 1) @ (truth - p)) / ((p * (1 - p)).sum(axis=0) + OFFSET_PENALTY)
    q = expit(batch + log_factors)
    weights = _weigh(truth, log_factors)
    means = weights @ truth / weights.sum()
    resampled = left * weights
    moved = resampled @ truth / resampled.sum(axis=1, keepdims=True) - means
    gradients = (right - 1) @ q + offset_steps * (q * (1 - q)).sum(axis=0) - len(batch) * moved
    centred = q - q.mean(axis=0)
    curvature = centred.T @ centred + TILT_PENALTY * np.eye(len(log_factors))
    steps = np.linalg.solve(curvature, gradients.T)
    return _weigh(truth, log_factors[:, np.newaxis] + steps).T * left
