"""Estimates of a batch that is not like the labelled instances, by weights on these.

The mean estimate of the batch, plus what labelled instances that count by their weights came out
above their estimates: right if either the estimator or the weights are (doubly robust). Weights
are how many times more often such instances occur in the batch than among the labelled ones: the
odds of a classifier that tells one from the other. They rest on what can be seen of both, not on
the labels, so that fitting them does not make the residuals look smaller.

The interval is for the mean accuracy that the batch will have. It holds what the chance in both
samples does to the weights and to the weighted mean, by a bootstrap of both (one Newton step of the
classifier for each replicate), and the chance in the batch's own outcomes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, stdtrit

from labelsure._kernels.threads import one_blas_thread
from labelsure._runtime.typing import Floats
from labelsure.errors import NotEstimableError
from labelsure.estimation._batch_estimates import BatchSums, Estimate, TrainingGain
from labelsure.estimation._calibration_sample import CalibrationSample
from labelsure.estimation._shift_test import MIN_ROWS, Separator, View
from labelsure.metrics.registry import check_level

N_REPLICATES = 200

LARGEST_WEIGHT = 30.0
"""A kind of instance that is more frequent in the batch by this factor is hardly there among the
labelled ones: larger weights are cut."""

MIN_EFFECTIVE_SIZE = 50
"""Of the weighted labelled instances: with fewer, the bootstrap itself cannot be trusted."""

MAX_CUT_SHARE = 0.2
"""Of the batch, whose weights would be larger."""


BASES = {
    "weighted": "if what is seen of an instance says how accurate its prediction is, as before",
    "labels": "if labels have become more or less frequent, but look as before",
}
"""By name of the way: what its number rests on."""


@dataclass(frozen=True)
class Weights:
    """How much each labelled instance counts for a batch.

    Parameters
    ----------
    values
        (n,) at least 0.
    replicates
        (replicates, n) the same by resampled instances, times how often each was chosen.
    """

    values: Floats
    replicates: Floats

    @property
    def effective_size(self) -> float:
        """How many instances of equal weight would be worth as much."""
        return float(self.values.sum() ** 2 / (self.values**2).sum())


def weigh_by_inputs(sample: CalibrationSample, batch: View) -> Weights:
    """Return weights by which labelled instances look like a batch, or refuse.

    Parameters
    ----------
    sample
        The labelled instances.
    batch
        What is compared of the instances of the batch.
    """
    refuse_few_rows(len(batch))
    names = [name for name in sample.view.names if name in batch.names]
    reference, others = sample.view.columns(names), batch.columns(names)
    with one_blas_thread():
        separator = Separator.fit(reference, others)
        ratio = np.log(len(reference) / len(others))
        of_batch = np.exp(separator.log_odds(others) + ratio)
        share_cut = float((of_batch > LARGEST_WEIGHT).mean())
        values = _cut(separator.log_odds(reference) + ratio)
        replicates = _replicate(separator, reference, others, ratio)
    weights = Weights(values, replicates)
    if share_cut > MAX_CUT_SHARE:
        raise NotEstimableError(
            "The accuracy of this batch is not estimable from the labelled instances: "
            f"{share_cut:.0%} of it are of kinds that are hardly among them (at most "
            f"{MAX_CUT_SHARE:.0%} may be). Label some rows drawn at random, and pass them as "
            "`Y_true` and `rows`.",
            weights.effective_size,
        )
    return weights


def refuse_few_rows(n_rows: int) -> None:
    """Refuse to weigh by a batch that says too little about itself."""
    if n_rows < MIN_ROWS:
        raise NotEstimableError(
            f"A batch must have at least {MIN_ROWS} instances to see how it differs from the "
            f"labelled ones, got {n_rows}. Take a larger batch, or label a few of it.",
            0.0,
        )


def _cut(log_weights: Floats) -> Floats:
    return np.exp(np.minimum(log_weights, np.log(LARGEST_WEIGHT)))


def draw_counts(
    n_reference: int, n_batch: int, n_replicates: int = N_REPLICATES
) -> tuple[Floats, Floats]:
    """Return how often each instance of both samples is chosen, (replicates, n) each."""
    rng = np.random.default_rng(0)
    left, right = (
        rng.multinomial(n, np.full(n, 1 / n), n_replicates).astype(np.float64)
        for n in (n_reference, n_batch)
    )
    return left, right


def _replicate(separator: Separator, reference: Floats, batch: Floats, ratio: float) -> Floats:
    """Return weights by resampled instances: one Newton step from the fitted separator each."""
    left, right = draw_counts(len(reference), len(batch))
    rows = separator.design(np.concatenate([reference, batch]))
    p = expit(rows @ separator.coefficients)
    is_batch = np.repeat([0.0, 1.0], [len(reference), len(batch)])
    ridge = np.append(np.full(rows.shape[1] - 1, Separator.PENALTY), 0.0)
    curvature = (rows * (p * (1 - p))[:, np.newaxis]).T @ rows + np.diag(ridge)
    gradients = ((np.hstack([left, right]) - 1) * (is_batch - p)) @ rows
    steps = np.linalg.solve(curvature, gradients.T)
    log_weights = (rows[: len(reference)] @ (separator.coefficients[:, np.newaxis] + steps)).T
    return _cut(log_weights + ratio) * left


def weighted_interval(
    sums: BatchSums,
    sample: CalibrationSample,
    weights: Weights,
    gain: TrainingGain,
    level: float,
    basis: str,
) -> Estimate:
    """Return the mean accuracy of a batch by weighted labelled instances, or refuse.

    Parameters
    ----------
    sums
        Of the batch, which is not empty.
    sample, weights
        The labelled instances, and how much each counts.
    gain
        What the estimates of the batch hold because the classifier learned from more instances.
    level
        In (0, 1).
    basis
        What the number rests on, in words.
    """
    check_level(level)
    size = weights.effective_size
    if size < MIN_EFFECTIVE_SIZE:
        raise NotEstimableError(
            "The accuracy of this batch is not estimable from the labelled instances: those like "
            f"it amount to {size:.0f} of {len(sample)}, at least {MIN_EFFECTIVE_SIZE} are needed. "
            "Label some rows drawn at random, and pass them as `Y_true` and `rows`.",
            size,
        )
    n_samples, residuals = sums.n_samples, sample.residuals
    above = float(weights.values @ residuals / weights.values.sum())
    replicates = (weights.replicates @ residuals) / weights.replicates.sum(axis=1)
    single = float(weights.values @ (residuals - above) ** 2 / weights.values.sum())
    variance = float(replicates.var(ddof=1)) + single / n_samples
    variance += gain.mean_variance(sums.coins / n_samples)
    mean = float(np.clip(sums.total / n_samples + above, 0.0, 1.0))
    margin = float(stdtrit(size - 1, (1 + level) / 2)) * variance**0.5
    low, high = max(0.0, mean - margin), min(1.0, mean + margin)
    spread = (sums.deviations / n_samples) ** 0.5
    return Estimate(mean, low, high, n_samples, level, spread, effective_size=size, basis=basis)
