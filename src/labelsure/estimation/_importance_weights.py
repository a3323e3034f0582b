"""Importance weights: the mean accuracy of a batch under covariate shift.

Under covariate shift the estimate is the mean estimate of the batch plus the weighted mean
residual of the calibration set (doubly robust: right if the estimator or the weights are).
Weights are the odds of a classifier that separates batch and calibration set (`Separator`). They
rest on inputs, not on labels, so that fitting them does not make residuals look smaller. The
interval contains the sampling error of both samples, by a bootstrap (one Newton step of the
classifier for each replicate), and that of the outcomes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit, stdtrit

from labelsure._kernels.threads import one_blas_thread
from labelsure._runtime.typing import Floats
from labelsure.errors import NotEstimableError
from labelsure.estimation._batch_estimates import BatchSums, Estimate
from labelsure.estimation._shift import MIN_ROWS, Separator, common_columns
from labelsure.metrics.registry import check_level

if TYPE_CHECKING:
    import pandas as pd

N_REPLICATES = 200  # of the bootstrap

LARGEST_WEIGHT = 30.0
"""A kind of row that is more frequent in the batch by this factor is hardly there among the
labelled ones: larger weights are cut."""

MIN_EFFECTIVE_SIZE = 50
"""Of the weighted labelled rows: with fewer, the bootstrap itself cannot be trusted."""

MAX_CUT_SHARE = 0.2
"""Of the batch, whose weights would be larger."""

ASSUMPTION = "assumes covariate shift only"
"""What a weighted estimate rests on: p(accuracy given what is seen of a row) is unchanged."""


@dataclass(frozen=True)
class Weights:
    """How much each labelled row counts for a batch.

    Parameters
    ----------
    values
        (n,) at least 0.
    replicates
        (replicates, n) the same by resampled rows, times how often each was chosen.
    """

    values: Floats
    replicates: Floats

    @property
    def effective_size(self) -> float:
        """How many rows of equal weight would be worth as much."""
        return float(self.values.sum() ** 2 / (self.values**2).sum())


def weigh_by_inputs(known: pd.DataFrame, batch: pd.DataFrame) -> Weights:
    """Density-ratio weights of the labelled rows for a batch. Raises NotEstimableError."""
    if len(batch) < MIN_ROWS:
        raise NotEstimableError(
            f"A batch must have at least {MIN_ROWS} rows to be compared with the calibration set, "
            f"got {len(batch)}. Use a larger batch, or label some of its rows.",
            0.0,
        )
    _, reference, others = common_columns(known, batch)
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
            "The accuracy of this batch is not estimable from the calibration set: "
            f"{share_cut:.0%} of its rows lie where there are hardly any calibration rows (at most "
            f"{MAX_CUT_SHARE:.0%} may). Label some rows drawn at random, and pass them as `Y_true` "
            "and `rows`.",
            weights.effective_size,
        )
    return weights


def _cut(log_weights: Floats) -> Floats:
    return np.exp(np.minimum(log_weights, np.log(LARGEST_WEIGHT)))


def draw_counts(n_reference: int, n_batch: int) -> tuple[Floats, Floats]:
    """Bootstrap counts of the rows of both samples, (replicates, n) each."""
    rng = np.random.default_rng(0)
    left, right = (
        rng.multinomial(n, np.full(n, 1 / n), N_REPLICATES).astype(np.float64)
        for n in (n_reference, n_batch)
    )
    return left, right


def _replicate(separator: Separator, reference: Floats, batch: Floats, ratio: float) -> Floats:
    """Bootstrap weights, (replicates, n): one Newton step from the fitted separator each."""
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
    residuals: Floats,
    weights: Weights,
    level: float,
) -> Estimate:
    """Doubly robust mean accuracy of a batch. Raises NotEstimableError.

    Residuals are by how much these were more accurate than estimated, (n,).
    """
    check_level(level)
    size = weights.effective_size
    if size < MIN_EFFECTIVE_SIZE:
        raise NotEstimableError(
            "The accuracy of this batch is not estimable from the calibration set: the effective "
            f"sample size of its weighted rows must be at least {MIN_EFFECTIVE_SIZE}, got "
            f"{size:.0f} (of {len(residuals)}). Label some rows drawn at random, and pass them as "
            "`Y_true` and `rows`.",
            size,
        )
    n_samples = sums.n_samples
    above = float(weights.values @ residuals / weights.values.sum())
    replicates = (weights.replicates @ residuals) / weights.replicates.sum(axis=1)
    single = float(weights.values @ (residuals - above) ** 2 / weights.values.sum())
    variance = float(replicates.var(ddof=1)) + single / n_samples
    mean = float(np.clip(sums.total / n_samples + above, 0.0, 1.0))
    margin = float(stdtrit(size - 1, (1 + level) / 2)) * variance**0.5
    low, high = max(0.0, mean - margin), min(1.0, mean + margin)
    spread = (sums.deviations / n_samples) ** 0.5
    return Estimate(
        mean, low, high, n_samples, level, spread, effective_size=size, basis=ASSUMPTION
    )
