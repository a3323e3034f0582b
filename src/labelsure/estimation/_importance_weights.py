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
"""Density ratio at which weights are clipped: such rows are hardly represented in the calibration
set."""

MIN_EFFECTIVE_SIZE = 50
"""Minimum effective sample size of the weighted rows: below it the bootstrap is unreliable."""

MAX_CLIPPED_SHARE = 0.2
"""Largest share of batch rows whose density ratio may exceed `LARGEST_WEIGHT`."""

ASSUMPTION = "assumes covariate shift only"
"""Assumption of weighted estimates: p(accuracy given the compared columns) is unchanged."""


@dataclass(frozen=True)
class Weights:
    """Importance weights of the calibration rows for a batch.

    Parameters
    ----------
    values
        (n,) clipped density ratios, at least 0.
    replicates
        (replicates, n) weights of bootstrap samples, times the count of each row in the sample.
    """

    values: Floats
    replicates: Floats

    @property
    def effective_size(self) -> float:
        """Kish's effective sample size, (sum of w)^2 / sum of w^2."""
        return float(self.values.sum() ** 2 / (self.values**2).sum())


def weigh_by_inputs(calibration_view: pd.DataFrame, batch_view: pd.DataFrame) -> Weights:
    """Density-ratio weights of the calibration rows for a batch. Raises NotEstimableError."""
    if len(batch_view) < MIN_ROWS:
        raise NotEstimableError(
            f"A batch must have at least {MIN_ROWS} rows to be compared with the calibration set, "
            f"got {len(batch_view)}. Use a larger batch, or label some of its rows.",
            0.0,
        )
    _, reference, batch = common_columns(calibration_view, batch_view)
    with one_blas_thread():
        separator = Separator.fit(reference, batch)
        ratio = np.log(len(reference) / len(batch))
        batch_weights = np.exp(separator.log_odds(batch) + ratio)
        clipped_share = float((batch_weights > LARGEST_WEIGHT).mean())
        values = _clip_weights(separator.log_odds(reference) + ratio)
        replicates = _bootstrap_weights(separator, reference, batch, ratio)
    weights = Weights(values, replicates)
    if clipped_share > MAX_CLIPPED_SHARE:
        raise NotEstimableError(
            "The accuracy of this batch is not estimable from the calibration set: "
            f"{clipped_share:.0%} of its rows lie where there are hardly any calibration rows (at "
            f"most {MAX_CLIPPED_SHARE:.0%} may). Label some rows drawn at random, and pass them as "
            "`Y_true` and `rows`.",
            weights.effective_size,
        )
    return weights


def _clip_weights(log_weights: Floats) -> Floats:
    return np.exp(np.minimum(log_weights, np.log(LARGEST_WEIGHT)))


def draw_counts(n_reference: int, n_batch: int) -> tuple[Floats, Floats]:
    """Multinomial bootstrap counts of the rows of both samples, (replicates, n) each."""
    rng = np.random.default_rng(0)
    left, right = (
        rng.multinomial(n, np.full(n, 1 / n), N_REPLICATES).astype(np.float64)
        for n in (n_reference, n_batch)
    )
    return left, right


def _bootstrap_weights(
    separator: Separator, reference: Floats, batch: Floats, ratio: float
) -> Floats:
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
    return _clip_weights(log_weights + ratio) * left


def weighted_interval(
    sums: BatchSums, residuals: Floats, weights: Weights, level: float
) -> Estimate:
    """Doubly robust mean accuracy of a batch. Raises NotEstimableError.

    Residuals are actual minus estimated accuracies of the calibration rows, (n,).
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
    mean_residual = float(weights.values @ residuals / weights.values.sum())
    replicates = (weights.replicates @ residuals) / weights.replicates.sum(axis=1)
    residual_variance = float(
        weights.values @ (residuals - mean_residual) ** 2 / weights.values.sum()
    )
    variance = float(replicates.var(ddof=1)) + residual_variance / n_samples
    mean = float(np.clip(sums.total / n_samples + mean_residual, 0.0, 1.0))
    margin = float(stdtrit(size - 1, (1 + level) / 2)) * variance**0.5
    low, high = max(0.0, mean - margin), min(1.0, mean + margin)
    spread = (sums.deviations / n_samples) ** 0.5
    return Estimate(
        mean, low, high, n_samples, level, spread, effective_size=size, basis=ASSUMPTION
    )
