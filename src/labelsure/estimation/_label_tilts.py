"""Label shift: labels have become more or less frequent, what each looks like has not.

Assumed is that P(x|y) stays and that P(y) changes by a factor for each label: P'(y) is in
proportion to P(y) times the factors of the labels that y has. Then the odds of each label given x
change by its factor, an added logit, and instances x become more frequent in proportion to
g(x) = product over labels of (1 - p + p times the factor), where p is the label's probability.

The factors are those under which the batch is most probable: sum of log g over the batch, less its
size times the log of the mean of g over the labelled instances. Expectation-maximisation converges
to the same where there is one label; here quasi-Newton steps find all of them together, so that
labels that occur together are not counted twice. As both sides are of the same probabilities,
nothing is found where nothing has changed, even if labels depend on each other beyond what the
classifier sees. A labelled instance then counts by the product of the factors of its labels.

The probabilities are calibrated first: by one slope for all labels and an offset for each.

Of a small batch, chance alone would find factors, and with many labels their product would leave
few labelled instances that count. So log-factors are held back by a penalty, and how strong that is
follows from the batch: where nothing has changed, a strong one makes it most probable.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logit

from labelsure._kernels.threads import one_blas_thread
from labelsure._runtime.typing import Floats
from labelsure.errors import InputError
from labelsure.estimation._calibration_sample import CalibrationSample
from labelsure.estimation._shift_test import View, label_column
from labelsure.estimation._weighted_estimates import (
    LARGEST_WEIGHT,
    Weights,
    draw_counts,
    refuse_few_rows,
)

PENALTIES = (1024.0, 256.0, 64.0, 16.0, 4.0, 1.0)
"""On the squares of log-factors, to choose from: as if each were known to be about 1, within a
factor of 1.03 at the first and of e at the last."""

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
            "not with a table or sparse labels."
        )
    truth = sample.true_labels().astype(np.float64)
    with one_blas_thread():
        reference = _logits(sample.view.columns(columns))
        slope, offsets = calibrate_logits(reference, truth)
        reference = slope * reference + offsets
        others = slope * _logits(batch.columns(columns)) + offsets
        penalty = choose_penalty(others, reference)
        log_factors = fit_factors(others, reference, penalty)
        values = _weigh(truth, log_factors)
        replicates = _replicate(reference, others, truth, log_factors, penalty)
    now = values @ truth / values.sum()
    return Weights(values, replicates), LabelShift(sample.label_names, truth.mean(axis=0), now)


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
        penalty = (offsets**2).sum() + (slope - 1) ** 2
        value = (np.logaddexp(0, scores) - truth * scores).sum() + OFFSET_PENALTY / 2 * penalty
        gaps = expit(scores) - truth
        by_slope = (gaps * logits).sum() + OFFSET_PENALTY * (slope - 1)
        return float(value), np.append(by_slope, gaps.sum(axis=0) + OFFSET_PENALTY * offsets)

    start = np.append(1.0, np.zeros(logits.shape[1]))
    found = minimize(loss, start, jac=True, method="L-BFGS-B")
    return float(found.x[0]), found.x[1:]


def fit_factors(batch: Floats, reference: Floats, penalty: float) -> Floats:
    """Return the log of the factor of each label under which a batch is most probable, (L,).

    Parameters
    ----------
    batch, reference
        (N, L) and (n, L) calibrated logits of the batch and of the labelled instances.
    penalty
        On the squares of log-factors.
    """
    return _minimise(batch, reference, penalty, np.zeros(batch.shape[1])).x


def choose_penalty(batch: Floats, reference: Floats) -> float:
    """Return the penalty under which a batch is most probable, whatever its log-factors are.

    A penalty says how far labels move: log-factors are normal with a variance of one by the
    penalty. How probable the batch is then follows by Laplace's approximation of the integral over
    them. Where nothing has moved, a large one is chosen, and the factors stay near 1.

    Parameters
    ----------
    batch, reference
        As for `fit_factors`.
    """
    start, losses = np.zeros(batch.shape[1]), []
    for penalty in PENALTIES:
        found = _minimise(batch, reference, penalty, start)
        start = found.x
        curvature = _curvature(batch, len(reference), start, penalty)
        log_volume = np.linalg.slogdet(curvature)[1] - len(start) * np.log(penalty)
        losses.append(found.fun + log_volume / 2)
    return PENALTIES[int(np.argmin(losses))]


def _minimise(batch: Floats, reference: Floats, penalty: float, start: Floats) -> Any:
    size = _common_size(len(batch), len(reference))

    def loss(at: Floats) -> tuple[float, Floats]:
        shares, log_mean = _shares(reference, at)
        value = size * (log_mean - _log_gains(batch, at).mean())
        gradient = size * (shares @ expit(reference + at) - expit(batch + at).mean(axis=0))
        return float(value + penalty / 2 * (at**2).sum()), gradient + penalty * at

    return minimize(loss, start, jac=True, method="L-BFGS-B")


def _common_size(n_batch: int, n_reference: int) -> float:
    """Return the size of a batch that says as much beside a reference without end."""
    return n_batch * n_reference / (n_batch + n_reference)


def _curvature(batch: Floats, n_reference: int, log_factors: Floats, penalty: float) -> Floats:
    """Return the second derivatives of the penalised loss, (L, L)."""
    rates = expit(batch + log_factors)
    centred = rates - rates.mean(axis=0)
    scale = _common_size(len(batch), n_reference) / len(batch)
    return scale * centred.T @ centred + penalty * np.eye(len(log_factors))


def _log_gains(logits: Floats, log_factors: Floats) -> Floats:
    """Return log g of each instance, (n,): how much more frequent such instances become."""
    gains = np.logaddexp(0, logits + log_factors) - np.logaddexp(0, logits)
    return gains.sum(axis=1)


def _shares(reference: Floats, log_factors: Floats) -> tuple[Floats, float]:
    """Return g of labelled instances, (n,), in proportion to 1 in all, and the log of its mean."""
    gains = _log_gains(reference, log_factors)
    largest = gains.max()
    shares = np.exp(gains - largest)
    return shares / shares.sum(), float(largest + np.log(shares.mean()))


def _weigh(truth: Floats, log_factors: Floats) -> Floats:
    """Return the product of the factors of each instance's labels, at most 30 times their mean."""
    scores = truth @ log_factors
    weights = np.exp(scores - scores.max(axis=0))
    weights /= weights.mean(axis=0)
    return np.minimum(weights, LARGEST_WEIGHT)


def _replicate(
    reference: Floats, batch: Floats, truth: Floats, log_factors: Floats, penalty: float
) -> Floats:
    """Return weights by resampled instances: one Newton step from the fitted factors each.

    What the penalty holds back is not known either: a normal draw with its variance stands for
    that, so that log-factors scatter as widely as they may lie.
    """
    left, right = draw_counts(len(reference), len(batch))
    q, of_batch = expit(reference + log_factors), expit(batch + log_factors)
    shares, _ = _shares(reference, log_factors)
    chosen = left * shares
    # What resampling does to the gradient, which was 0. The calibration is left as it is: both
    # sides have it, and it hardly matters.
    moved = chosen @ q / chosen.sum(axis=1, keepdims=True) - shares @ q
    size = _common_size(len(batch), len(reference))
    gradients = size * ((right - 1) @ of_batch / len(batch) - moved)
    held_back = np.random.default_rng(1).normal(size=gradients.shape) * penalty**0.5
    curvature = _curvature(batch, len(reference), log_factors, penalty)
    steps = np.linalg.solve(curvature, (gradients + held_back).T)
    return _weigh(truth, log_factors[:, np.newaxis] + steps).T * left
