"""The mean accuracy of a batch without labels, as an interval."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import norm

from labelsure._typing import Floats
from labelsure.errors import InputError

PSEUDO_VARIANCE = 0.25  # of one fair coin: what is believed before any residual is seen


@dataclass(frozen=True)
class Estimate:
    """The estimated mean accuracy of a batch and an interval for the mean that will come out.

    Parameters
    ----------
    mean
        The mean of the estimates.
    low, high
        The interval, within [0, 1].
    n_samples
        The size of the batch.
    level
        How often such an interval covers the batch's mean accuracy.
    spread
        The standard deviation of the estimates within the batch.

    Examples
    --------
    `AccuracyEstimator.estimate` returns one; here nothing is fitted.

    >>> from labelsure import AccuracyEstimator, IndependentLabels
    >>> dist = IndependentLabels([[0.9, 0.2]] * 100)
    >>> batch = AccuracyEstimator("hamming", model="plugin").estimate(dist)
    >>> print(f"{batch.mean:.2f}, from {batch.low:.2f} to {batch.high:.2f}")
    0.85, from 0.78 to 0.92
    """

    mean: float
    low: float
    high: float
    n_samples: int
    level: float
    spread: float


@dataclass(frozen=True)
class Dispersion:
    """How far accuracies scatter around their estimates, relative to a coin's variance p(1 - p).

    Parameters
    ----------
    ratio
        Of the squared residuals to those of coins with the same probabilities.
    n_samples
        How many residuals it rests on; infinite where it is assumed.
    """

    ratio: float = 1.0
    n_samples: float = np.inf

    @classmethod
    def of_residuals(cls, estimated: Floats, accuracy: Floats) -> Dispersion:
        """Measure it on the instances that a model was fitted to."""
        coins = float((estimated * (1 - estimated)).sum()) + PSEUDO_VARIANCE
        residuals = float(((accuracy - estimated) ** 2).sum()) + PSEUDO_VARIANCE
        return cls(residuals / coins, float(len(estimated)))

    def variance(self, estimated: Floats) -> Floats:
        """Return the variance of each accuracy around its estimate, (n,).

        An estimate of 0 or 1 from n instances is moved off the edge as by one success and one
        failure more: n successes of n do not prove certainty.
        """
        inward = estimated
        if np.isfinite(self.n_samples):
            inward = (self.n_samples * estimated + 1) / (self.n_samples + 2)
        return self.ratio * inward * (1 - inward)


def mean_interval(
    estimated: Floats, dispersion: Dispersion, fit_variance: float | None, level: float
) -> Estimate:
    """Return the mean of the estimates with an interval for the batch's mean accuracy.

    Parameters
    ----------
    estimated
        (n,) estimates.
    dispersion
        Of accuracies around estimates.
    fit_variance
        What fitting leaves in the mean; None where nothing was fitted.
    level
        In (0, 1).
    """
    check_level(level)
    if len(estimated) == 0:
        raise InputError("A batch must hold at least one instance, got none.")
    single = dispersion.variance(estimated)
    variance = float(single.mean()) / len(estimated)
    if fit_variance is not None:
        # A mean cannot be known better than from as many instances as were fitted to.
        variance += max(fit_variance, float(single.mean()) / dispersion.n_samples)
    mean = float(estimated.mean())
    margin = float(norm.ppf((1 + level) / 2)) * variance**0.5
    low, high = max(0.0, mean - margin), min(1.0, mean + margin)
    return Estimate(mean, low, high, len(estimated), level, float(estimated.std()))


def check_level(level: float) -> float:
    """Return `level` if it is a probability strictly between 0 and 1, or say what is wrong."""
    if not isinstance(level, (int, float, np.floating)) or not 0 < level < 1:
        raise InputError(
            f"`level` must be a probability between 0 and 1, both excluded, got {level!r}. "
            "Usual choices are 0.9, 0.95 and 0.99."
        )
    return float(level)
