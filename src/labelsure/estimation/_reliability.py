"""How reliable estimates are: the interval of a batch's mean, and estimated against actual."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import norm

from labelsure._typing import Floats
from labelsure.errors import InputError
from labelsure.metrics import align_values, check_accuracies, check_level

if TYPE_CHECKING:
    import pandas as pd


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
        The standard deviation of the estimates within the batch; NaN for a measure of the whole
        batch, such as micro-F1, to which instances have no estimates of their own.

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


@dataclass(frozen=True)
class Reliability:
    """The interval table and its summary.

    Parameters
    ----------
    table
        One row for each interval (low, high] of the estimate, the first with its lower end:
        `n_samples` in it, mean `estimated`, mean `accuracy`, and the interval of that mean from
        `accuracy_low` to `accuracy_high`; missing where there are no instances.
    expected_calibration_error
        The mean over instances of the distance between estimated and actual accuracy of their
        interval.

    Examples
    --------
    >>> from labelsure import reliability
    >>> reliability([0.2, 0.2, 0.9], [0.0, 1.0, 1.0], bins=2).expected_calibration_error
    0.2333...
    """

    table: pd.DataFrame
    expected_calibration_error: float


def reliability(
    estimated: ArrayLike,
    accuracy: ArrayLike,
    bins: int | ArrayLike = 10,
    *,
    level: float = 0.95,
) -> Reliability:
    """Compare estimated with actual accuracies, interval by interval.

    Parameters
    ----------
    estimated, accuracy
        (n,) numbers in [0, 1].
    bins
        A number of intervals of equal width on [0, 1], or their edges from 0 to 1.
    level
        Of the intervals for the mean accuracy (Wilson's, with the variance that is there).

    Returns
    -------
    Reliability

    Examples
    --------
    >>> result = reliability([0.1, 0.2, 0.9, 0.8], [0, 0, 1, 0.5], bins=2)
    >>> result.table[["low", "high", "n_samples", "estimated", "accuracy"]]
       low  high  n_samples  estimated  accuracy
    0  0.0   0.5          2       0.15      0.00
    1  0.5   1.0          2       0.85      0.75
    >>> round(result.expected_calibration_error, 3)
    0.125
    """
    import pandas as pd

    accuracy = align_values(accuracy, estimated, name="accuracy", beside="`estimated`")
    estimated = check_accuracies(estimated, "estimated")
    accuracy = check_accuracies(accuracy, "accuracy")
    if len(estimated) != len(accuracy):
        raise InputError(
            "`estimated` and `accuracy` must have one entry for each instance, got "
            f"{len(estimated)} and {len(accuracy)}."
        )
    check_level(level)
    edges = _make_edges(bins)
    bin_of = np.clip(np.searchsorted(edges, estimated, side="left") - 1, 0, len(edges) - 2)
    rows = []
    for b, (low, high) in enumerate(pairwise(edges)):
        mine = bin_of == b
        rows.append(
            (
                low,
                high,
                int(mine.sum()),
                *_describe_interval(estimated[mine], accuracy[mine], level),
            )
        )
    columns = ["low", "high", "n_samples", "estimated", "accuracy", "accuracy_low"]
    table = pd.DataFrame(rows, columns=[*columns, "accuracy_high"])
    gaps = (table["estimated"] - table["accuracy"]).abs()
    error = float((gaps * table["n_samples"]).sum() / max(len(accuracy), 1))
    return Reliability(table, error)


def _describe_interval(
    estimated: Floats, accuracy: Floats, level: float
) -> tuple[float, float, float, float]:
    if estimated.size == 0:
        return (np.nan,) * 4
    return float(estimated.mean()), float(accuracy.mean()), *_wilson(accuracy, level)


def _wilson(accuracy: Floats, level: float) -> tuple[float, float]:
    """Return Wilson's interval, for as many coins as would scatter as these values do."""
    from statsmodels.stats.proportion import proportion_confint  # slow to import

    mean = float(accuracy.mean())
    ratio = Dispersion.of_residuals(np.full(accuracy.size, mean), accuracy).ratio
    n_coins = accuracy.size / ratio
    low, high = proportion_confint(mean * n_coins, n_coins, alpha=1 - level, method="wilson")
    return max(0.0, float(low)), min(1.0, float(high))


def _make_edges(bins: int | ArrayLike) -> Floats:
    if isinstance(bins, (int, np.integer)) and bins >= 1:
        # Rounded so that 0.3 as an estimate and as an edge are the same number.
        return np.round(np.linspace(0, 1, int(bins) + 1), 12)
    edges = np.asarray(bins, dtype=np.float64)
    proper = edges.ndim == 1 and edges.size >= 2 and edges[0] == 0 and edges[-1] == 1
    if not proper or not (np.diff(edges) > 0).all():
        raise InputError(
            f"`bins` must be a number of intervals >= 1, or rising edges from 0 to 1, got {bins!r}."
        )
    return edges
