"""The mean accuracy of a batch and its interval: what they follow from, and how."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from scipy.special import stdtrit

from labelsure._runtime.notebook import make_html
from labelsure._runtime.typing import Floats
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
    >>> from labelsure import Estimate
    >>> print(Estimate(0.57, 0.552, 0.588, 2158, level=0.95, spread=0.2, quantity="mean F1"))
    Mean F1 0.570 (95% interval 0.552 to 0.588, n = 2,158).
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
        import pandas as pd

        row = {self.quantity: self.mean, "low": self.low, "high": self.high, "n": self.n_samples}
        return make_html(str(self), pd.DataFrame(row, [""]))


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
    sums: BatchSums, ratio: float, n_fitted: int, fit_variance: float, level: float
) -> Estimate:
    """Return the mean of the estimates with an interval for the batch's mean accuracy.

    Accuracies scatter around their estimates by `ratio` times a coin's variance p(1 - p), measured
    on `n_fitted` rows. Each p is moved off the edges as by one success and one failure more: n
    successes of n do not prove certainty.
    """
    check_level(level)
    n_samples = sums.n_samples
    coins = (n_fitted**2 * sums.coins / n_samples + n_fitted + 1) / (n_fitted + 2) ** 2
    single = ratio * coins
    # A mean cannot be known better than from as many instances as were fitted to.
    variance = single / n_samples + max(fit_variance, single / n_fitted)
    mean = sums.total / n_samples
    # The variance itself is estimated, from as many residuals.
    margin = float(stdtrit(max(n_fitted - 1, 1), (1 + level) / 2)) * variance**0.5
    low, high = max(0.0, mean - margin), min(1.0, mean + margin)
    spread = (sums.deviations / n_samples) ** 0.5
    return Estimate(mean, low, high, n_samples, level, spread)
