"""Prevalence of labels in a batch under label shift.

On the calibration set a logistic regression on the logit of label j's probability gives its log-
odds; less those of its prevalence there, they are the log of the density ratio r(x) = p(x given
y_j = 1) / p(x given y_j = 0), which label shift leaves as it is. Of a batch with prevalence pi
the likelihood is the product of pi r(x) + 1 - pi. Its maximum is where the EM algorithm of
Saerens, Latinne and Decaestecker (2002) ends: the mean posterior probability is pi.

The interval is for the share of the batch itself, by the delta method: the batch tells pi by its
likelihood, less what its labels scatter around pi; and the density ratio is uncertain.
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

SMALLEST = 1e-6  # probability that is told from 0: its logit is -13.8
CERTAINTY = np.array([0.01, 1.0])
"""Of intercept 0 and slope 1, which say that the classifier is right: as if one such label had been
seen, of the intercept a hundredth of one."""
N_NEWTON, LARGEST_STEP, N_HALVINGS = 10, 2.0, 45
WIDEST = 12.0  # logit of prevalences that are tried
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
    """How much more probable inputs are where a label is true, as learned from a calibration set.

    Parameters
    ----------
    prevalence
        (L,) of each label on the calibration set.
    coefficients
        (2, L) intercept and slope of the log-ratio, a line in the logit of what is predicted.
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
        """Learn from a table that knows its labels."""
        truth = np.asarray(table.truth)
        x = _logits(table.marginals)
        start = np.repeat([[0.0], [1.0]], x.shape[1], axis=1)
        line = start
        for _ in range(N_NEWTON):
            p = expit(line[0] + line[1] * x)
            weights = p * (1 - p)
            a, b, c = ((weights * x**k).sum(axis=0) for k in range(3))
            a, c = a + CERTAINTY[0], c + CERTAINTY[1]
            inverse = np.stack([c, -b, a]) / (a * c - b**2)
            slopes = np.stack([(truth - p).sum(axis=0), ((truth - p) * x).sum(axis=0)])
            slopes = slopes - CERTAINTY[:, np.newaxis] * (line - start)
            step = np.stack(
                [(inverse[:2] * slopes).sum(axis=0), (inverse[1:] * slopes).sum(axis=0)]
            )
            line = line + step / np.maximum(1.0, np.abs(step).max(axis=0) / LARGEST_STEP)
        prevalence = (truth.sum(axis=0) + 0.5) / (len(truth) + 1)
        # The intercept moves with the prevalence; what both have in common cancels in the ratio.
        common = 1 / (len(truth) * prevalence * (1 - prevalence))
        covariances = inverse - np.stack([common, 0 * common, 0 * common])
        covariances *= [design_effect(residuals, clusters) for residuals in (truth - p).T]
        ratio = line - np.stack([logit(prevalence), 0 * prevalence])
        return cls(prevalence, ratio, covariances, table.label_names)

    def estimate(self, marginals: Floats, level: float) -> PrevalenceEstimates:
        """Prevalence of each label in a batch, with an interval."""
        check_level(level)
        x, n = _logits(marginals), len(marginals)
        log_ratio = self.coefficients[0] + self.coefficients[1] * x
        low, high = np.full((2, x.shape[1]), [[-WIDEST], [WIDEST]])
        for _ in range(N_HALVINGS):
            middle = (low + high) / 2
            is_below = (expit(log_ratio + middle) - expit(middle)).mean(axis=0) > 0
            low, high = np.where(is_below, middle, low), np.where(is_below, high, middle)
        found = expit(low)
        inside = np.clip(found, 0.5 / n, 1 - 0.5 / n)  # where the likelihood has a curvature
        ratio = np.exp(np.clip(log_ratio, -30, 30))
        mixed = inside * ratio + 1 - inside
        information = (((ratio - 1) / mixed) ** 2).sum(axis=0)
        by_line = np.stack([(ratio / mixed**2 * x**k).sum(axis=0) for k in range(2)]) / information
        products = np.stack([by_line[0] ** 2, 2 * by_line[0] * by_line[1], by_line[1] ** 2])
        of_ratio = np.maximum((products * self.covariances).sum(axis=0), 0.0)
        of_batch = np.maximum(1 / information - inside * (1 - inside) / n, 0.0)
        margin = ndtri((1 + level) / 2) * (of_ratio + of_batch) ** 0.5
        return PrevalenceEstimates(
            label=tuple(show_names(self.label_names, x.shape[1])),
            calibration=self.prevalence,
            prevalence=found,
            low=np.maximum(found - margin, 0.0),
            high=np.minimum(found + margin, 1.0),
        )


def _logits(marginals: Floats) -> Floats:
    return logit(np.clip(marginals, SMALLEST, 1 - SMALLEST))
