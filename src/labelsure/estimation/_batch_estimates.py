"""The mean accuracy of a batch and its interval: what they follow from, and how."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import stdtrit

from labelsure._runtime.notebook import make_html
from labelsure._runtime.typing import Floats
from labelsure.metrics.mean_tests import dispersion_ratio
from labelsure.metrics.registry import check_level

if TYPE_CHECKING:
    from labelsure.estimation._shift import ShiftTest


@dataclass(frozen=True)
class Estimate:
    """Estimated mean accuracy of a batch, with a confidence interval.

    Parameters
    ----------
    mean
        The mean of the estimates.
    low, high
        The interval, within [0, 1].
    n_samples
        The size of the batch.
    level
        Confidence level of the interval.
    spread
        The standard deviation of the estimates within the batch; NaN for a measure of the whole
        batch, such as micro-F1, to which instances have no estimates of their own.
    quantity
        What is estimated, such as "mean F1".
    basis
        How the estimate was made, in words.
    effective_size
        Effective sample size of the importance-weighted calibration set; None without weights.
    n_labelled
        How many instances of the batch itself were labelled.
    shift
        The `ShiftTest` of the batch, where there was one.
    untested
        Why the shift test was skipped; empty if it ran or was not requested.

    See Also
    --------
    AccuracyEstimator.estimate : Returns one.
    AccuracyAwareClassifier.estimate : Returns one, from features.

    Examples
    --------
    `AccuracyEstimator.estimate` returns one; here nothing is fitted.

    >>> from labelsure import AccuracyEstimator, IndependentLabels
    >>> dist = IndependentLabels([[0.9, 0.2]] * 100)
    >>> batch = AccuracyEstimator("hamming", model="plugin").estimate(dist, shift="ignore")
    >>> print(batch)
    Mean Hamming 0.850 (95% interval 0.780 to 0.920, n = 100; not calibrated).
    """

    mean: float
    low: float
    high: float
    n_samples: int
    level: float
    spread: float
    quantity: str = "mean accuracy"
    basis: str = ""
    effective_size: float | None = None
    n_labelled: int = 0
    shift: ShiftTest | None = field(default=None, compare=False, repr=False)
    untested: str = field(default="", compare=False, repr=False)

    def __str__(self) -> str:
        name = (self.quantity[:1].upper() + self.quantity[1:]).replace("-f1", "-F1")
        interval = f"{100 * self.level:g}% interval {self.low:.3f} to {self.high:.3f}"
        rests = [f"{interval}, n = {self.n_samples:,}", self.basis]
        if self.shift is not None:
            found = f"shift detected, AUC {self.shift.auc:.2f}"
            rests.append(found if self.shift.found else "no shift detected")
        said = f"{name} {self.mean:.3f} ({'; '.join(part for part in rests if part)})."
        return f"{said} Not tested for shift: {self.untested}." if self.untested else said

    def _repr_html_(self) -> str:
        return make_html(str(self))


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
        """Measure it on labelled instances, estimated by models that were not fitted to them."""
        coins = float((estimated * (1 - estimated)).sum())
        residuals = float(((accuracy - estimated) ** 2).sum())
        return cls(float(dispersion_ratio(coins, residuals)), float(len(estimated)))

    def mean_variance(self, coins: float) -> float:
        """Return the mean variance of accuracies around their estimates.

        An estimate p from n instances is moved off the edges as by one success and one failure
        more, to (n p + 1) / (n + 2): n successes of n do not prove certainty.
        """
        n = self.n_samples
        if np.isfinite(n):
            coins = (n**2 * coins + n + 1) / (n + 2) ** 2
        return self.ratio * coins


@dataclass(frozen=True)
class BatchSums:
    """What the estimate of a batch follows from: sums, so that a batch can be seen in parts.

    Parameters
    ----------
    n_samples
        How many instances.
    total
        The sum of their estimates p.
    coins
        The sum of p(1 - p).
    deviations
        The sum of (p - mean)**2.
    slopes
        (m,) what a model of accuracy needs to say how well the mean is known.

    Examples
    --------
    >>> whole, none = np.array([0.2, 0.4, 0.9]), np.empty(0)
    >>> first, last = BatchSums.of(whole[:1], none), BatchSums.of(whole[1:], none)
    >>> round((first + last).deviations, 6) == round(BatchSums.of(whole, none).deviations, 6)
    True
    """

    n_samples: int
    total: float
    coins: float
    deviations: float
    slopes: Floats

    @classmethod
    def of(cls, estimated: Floats, slopes: Floats) -> BatchSums:
        """Sum up the (n,) estimates of some instances."""
        coins = float((estimated * (1 - estimated)).sum())
        n_samples, total = len(estimated), float(estimated.sum())
        deviations = float(((estimated - total / max(n_samples, 1)) ** 2).sum())
        return cls(n_samples, total, coins, deviations, slopes)

    def __add__(self, other: BatchSums) -> BatchSums:
        n_samples = self.n_samples + other.n_samples
        between = 0.0
        if self.n_samples and other.n_samples:  # the means of the parts differ, too
            gap = self.total / self.n_samples - other.total / other.n_samples
            between = gap**2 * self.n_samples * other.n_samples / n_samples
        return BatchSums(
            n_samples,
            self.total + other.total,
            self.coins + other.coins,
            self.deviations + other.deviations + between,
            self.slopes + other.slopes,
        )


def mean_interval(
    sums: BatchSums,
    dispersion: Dispersion,
    fit_variance: float | None,
    level: float,
) -> Estimate:
    """Return the mean of the estimates with an interval for the batch's mean accuracy."""
    check_level(level)
    n_samples, coins = sums.n_samples, sums.coins / sums.n_samples
    single = dispersion.mean_variance(coins)
    variance = single / n_samples
    if fit_variance is not None:
        # A mean cannot be known better than from as many instances as were fitted to.
        variance += max(fit_variance, single / dispersion.n_samples)
    mean = sums.total / n_samples
    # The variance itself is estimated, from as many residuals; infinitely many are a normal law.
    margin = float(stdtrit(max(dispersion.n_samples - 1, 1), (1 + level) / 2)) * variance**0.5
    low, high = max(0.0, mean - margin), min(1.0, mean + margin)
    spread = (sums.deviations / n_samples) ** 0.5
    return Estimate(mean, low, high, n_samples, level, spread)
