"""Prevalence of labels in a batch under label shift.

On the calibration set a logistic regression on the logit of label j's probability gives its log-
odds; less those of its prevalence there, they are the log of the density ratio r(x) = p(x given
y_j = 1) / p(x given y_j = 0), which label shift leaves as it is. Of a batch with prevalence pi
the likelihood is the product of pi r(x) + 1 - pi. Its maximum is where the EM algorithm of
Saerens, Latinne and Decaestecker (2002) ends: the mean posterior probability is pi.

The interval is for the share of the batch itself, by the delta method: the inverse information of
the likelihood, minus the binomial variance of the batch's labels around pi, plus the variance due
to the fitted density ratio.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit, logit, ndtri

from labelsure._runtime.notebook import ColumnResult, count
from labelsure._runtime.typing import Floats, Indices, LabelNames
from labelsure.estimation.score_table import ScoreTable
from labelsure.labelsets.label_names import show_names
from labelsure.metrics.clusters import design_effect
from labelsure.metrics.registry import check_level

if TYPE_CHECKING:
    import pandas as pd

SMALLEST = 1e-6  # probabilities are clipped to [1e-6, 1 - 1e-6], logits of 13.8
CERTAINTY = np.array([0.01, 1.0])
"""Prior precisions of intercept and slope around 0 and 1, a calibrated classifier."""
N_NEWTON, LARGEST_STEP, N_HALVINGS = 10, 2.0, 45
WIDEST = 12.0  # largest logit of a prevalence
ASSUMPTION = "assumes label shift"


@dataclass(frozen=True, eq=False, repr=False)
class PrevalenceEstimates(ColumnResult):
    """How often each label is true in a batch under label shift, with intervals.

    Parameters
    ----------
    label
        Names of the labels.
    calibration
        (L,) prevalence on the calibration set.
    prevalence, low, high
        (L,) prevalence in the batch: estimate and interval.
    """

    label: tuple[str, ...]
    calibration: Floats
    prevalence: Floats
    low: Floats
    high: Floats

    _index = "label"

    def to_frame(self) -> pd.DataFrame:
        """Table with a row for each label."""
        return super().to_frame().rename_axis(columns=ASSUMPTION)

    def __str__(self) -> str:
        return f"Prevalence of {count(len(self.label), 'label')} ({ASSUMPTION})."


@dataclass(frozen=True)
class DensityRatios:
    """Density ratios p(x given y_j = 1) / p(x given y_j = 0), fitted to a calibration set.

    Parameters
    ----------
    prevalence
        (L,) prevalence on the calibration set.
    coefficients
        (2, L) intercept and slope of the log-ratio as a function of the predicted logit.
    covariances
        (3, L) variance of the intercept, covariance, variance of the slope.
    label_names
        One for each label, or None.
    """

    prevalence: Floats
    coefficients: Floats
    covariances: Floats
    label_names: LabelNames

    @classmethod
    def fit(cls, table: ScoreTable, clusters: Indices) -> DensityRatios:
        """Fit to a table with truth by Newton's method, all labels at once."""
        truth = np.asarray(table.truth)
        x = _clipped_logits(table.marginals)
        prior_mean = np.repeat([[0.0], [1.0]], x.shape[1], axis=1)
        coefficients = prior_mean
        for _ in range(N_NEWTON):
            p = expit(coefficients[0] + coefficients[1] * x)
            weights = p * (1 - p)
            a, b, c = ((weights * x**k).sum(axis=0) for k in range(3))
            a, c = a + CERTAINTY[0], c + CERTAINTY[1]
            inverse = np.stack([c, -b, a]) / (a * c - b**2)
            slopes = np.stack([(truth - p).sum(axis=0), ((truth - p) * x).sum(axis=0)])
            slopes = slopes - CERTAINTY[:, np.newaxis] * (coefficients - prior_mean)
            step = np.stack(
                [(inverse[:2] * slopes).sum(axis=0), (inverse[1:] * slopes).sum(axis=0)]
            )
            coefficients = coefficients + step / np.maximum(
                1.0, np.abs(step).max(axis=0) / LARGEST_STEP
            )
        prevalence = (truth.sum(axis=0) + 0.5) / (len(truth) + 1)
        # The variance of the logit prevalence cancels in the ratio.
        common = 1 / (len(truth) * prevalence * (1 - prevalence))
        covariances = inverse - np.stack([common, 0 * common, 0 * common])
        covariances *= [design_effect(residuals, clusters) for residuals in (truth - p).T]
        ratio = coefficients - np.stack([logit(prevalence), 0 * prevalence])
        return cls(prevalence, ratio, covariances, table.label_names)

    def estimate(self, marginals: Floats, level: float) -> PrevalenceEstimates:
        """Prevalence of each label in a batch, with an interval."""
        check_level(level)
        x, n = _clipped_logits(marginals), len(marginals)
        log_ratio = self.coefficients[0] + self.coefficients[1] * x
        low, high = np.full((2, x.shape[1]), [[-WIDEST], [WIDEST]])
        for _ in range(N_HALVINGS):
            midpoint = (low + high) / 2
            is_below = (expit(log_ratio + midpoint) - expit(midpoint)).mean(axis=0) > 0
            low, high = np.where(is_below, midpoint, low), np.where(is_below, high, midpoint)
        prevalence = expit(low)
        clipped = np.clip(prevalence, 0.5 / n, 1 - 0.5 / n)  # where the likelihood has a curvature
        ratio = np.exp(np.clip(log_ratio, -30, 30))
        mixture = clipped * ratio + 1 - clipped
        information = (((ratio - 1) / mixture) ** 2).sum(axis=0)
        gradient = (
            np.stack([(ratio / mixture**2 * x**k).sum(axis=0) for k in range(2)]) / information
        )
        products = np.stack([gradient[0] ** 2, 2 * gradient[0] * gradient[1], gradient[1] ** 2])
        ratio_variance = np.maximum((products * self.covariances).sum(axis=0), 0.0)
        batch_variance = np.maximum(1 / information - clipped * (1 - clipped) / n, 0.0)
        margin = ndtri((1 + level) / 2) * (ratio_variance + batch_variance) ** 0.5
        return PrevalenceEstimates(
            label=tuple(show_names(self.label_names, x.shape[1])),
            calibration=self.prevalence,
            prevalence=prevalence,
            low=np.maximum(prevalence - margin, 0.0),
            high=np.minimum(prevalence + margin, 1.0),
        )


def _clipped_logits(marginals: Floats) -> Floats:
    return logit(np.clip(marginals, SMALLEST, 1 - SMALLEST))
