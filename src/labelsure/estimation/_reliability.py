"""How reliable estimates are: the interval of a batch's mean, and estimated against actual."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import norm

from labelsure._notebook import count, make_html
from labelsure._plots import plot_reliability
from labelsure._typing import Floats
from labelsure.errors import InputError
from labelsure.metrics import align_values, check_accuracies, check_level
from labelsure.saving import expect, is_count, is_number

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


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
    >>> print(batch)
    Mean accuracy 0.850, between 0.780 and 0.920 with probability 0.95 (100 instances).
    """

    mean: float
    low: float
    high: float
    n_samples: int
    level: float
    spread: float
    quantity: str = "mean accuracy"

    def __str__(self) -> str:
        interval = f"between {self.low:.3f} and {self.high:.3f} with probability {self.level:g}"
        n_samples = count(self.n_samples, "instance")
        return f"{self.quantity.capitalize()} {self.mean:.3f}, {interval} ({n_samples})."

    def _repr_html_(self) -> str:
        return make_html(str(self))

    def check_loaded(self) -> None:
        """Raise an `InputError` if these cannot be an estimate."""
        limits = (self.low, self.mean, self.high)
        expect(
            all(is_number(limit, 0, 1) for limit in limits) and list(limits) == sorted(limits),
            "an estimate must lie within its interval, and that in [0, 1]",
        )
        expect(is_count(self.n_samples), "an estimate must be of some instances")
        expect(isinstance(self.quantity, str), "an estimate must say what is estimated")
        expect(is_number(self.spread, 0, 1), "the spread of an estimate must lie in [0, 1]")
        check_level(self.level)


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
        coins = float((estimated * (1 - estimated)).sum())
        residuals = float(((accuracy - estimated) ** 2).sum())
        return cls(float(_dispersion_ratio(coins, residuals)), float(len(estimated)))

    def variance(self, estimated: Floats) -> Floats:
        """Return the variance of each accuracy around its estimate, (n,).

        An estimate of 0 or 1 from n instances is moved off the edge as by one success and one
        failure more: n successes of n do not prove certainty.
        """
        inward = estimated
        if np.isfinite(self.n_samples):
            inward = (self.n_samples * estimated + 1) / (self.n_samples + 2)
        return self.ratio * inward * (1 - inward)

    def check_loaded(self) -> None:
        """Raise an `InputError` if these cannot be a dispersion."""
        expect(is_number(self.ratio) and self.ratio > 0, "a dispersion must be above 0")
        expect(self.n_samples > 0, "a dispersion must rest on some instances")


@dataclass(frozen=True)
class TrainingGain:
    """How much more accurate predictions are than those that an estimator was fitted to.

    The classifiers of folds learn from fewer instances than the one that predicts in the end. Like
    a dispersion, the gain of each prediction is relative to a coin's variance p(1 - p): what is
    certain gains nothing, and the order of predictions stays as it is.

    Parameters
    ----------
    mean
        Of the instances that it was measured on.
    ratio
        Of the gain to p(1 - p); from -1 to 1, so that estimates stay in [0, 1].
    variance
        Of that ratio: what is not known of it.

    Examples
    --------
    >>> from labelsure.estimation import TrainingGain
    >>> TrainingGain(ratio=0.1).add_to(np.array([0.0, 0.5, 1.0]))
    array([0.   , 0.525, 1.   ])
    """

    mean: float = 0.0
    ratio: float = 0.0
    variance: float = 0.0

    def add_to(self, estimated: Floats) -> Floats:
        """Return the estimates with the gain, (n,)."""
        return estimated + self.ratio * estimated * (1 - estimated)

    def mean_variance(self, estimated: Floats) -> float:
        """Return the variance that not knowing the gain leaves in the mean of the estimates."""
        return self.variance * float((estimated * (1 - estimated)).mean()) ** 2

    def check_loaded(self) -> None:
        """Raise an `InputError` if these cannot be a gain."""
        limited = is_number(self.mean, -1, 1) and is_number(self.ratio, -1, 1)
        expect(limited, "the mean and the ratio of a gain must lie in [-1, 1]")
        expect(is_number(self.variance, 0), "the variance of a gain must not be below 0")


def _dispersion_ratio(coins: Any, residuals: Any) -> Any:
    """Return the ratio of two sums of squares, drawn to 1 where there is little to go by."""
    return (residuals + PSEUDO_VARIANCE) / (coins + PSEUDO_VARIANCE)


def mean_interval(
    estimated: Floats,
    dispersion: Dispersion,
    fit_variance: float | None,
    gain: TrainingGain,
    level: float,
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
    gain
        What the estimates hold because the classifier learned from more instances.
    level
        In (0, 1).
    """
    check_level(level)
    if len(estimated) == 0:
        raise InputError("A batch must hold at least one instance, got none.")
    single = dispersion.variance(estimated)
    variance = float(single.mean()) / len(estimated) + gain.mean_variance(estimated)
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

    def plot(self, ax: Axes | None = None, *, label: str | None = None) -> Axes:
        """Draw actual against estimated accuracy with its interval, and the diagonal.

        Parameters
        ----------
        ax
            Where to draw; several results can share it. None makes a new figure.
        label
            For the legend; None shows the expected calibration error.
        """
        shown = f"calibration error {self.expected_calibration_error:.3f}"
        return plot_reliability(self.table, shown if label is None else label, ax)

    def _repr_html_(self) -> str:
        n_samples = count(int(self.table["n_samples"].sum()), "instance")
        error = self.expected_calibration_error
        return make_html(f"Expected calibration error {error:.3f} ({n_samples}).", self.table)


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
    mean = float(accuracy.mean())
    low, high = wilson_interval(mean, float(accuracy.std()), accuracy.size, level)
    return float(estimated.mean()), mean, float(low), float(high)


def wilson_interval(mean: Any, spread: Any, n_samples: Any, level: float) -> tuple[Floats, Floats]:
    """Return Wilson's interval of means, for as many coins as would scatter as the values do.

    Parameters
    ----------
    mean, spread
        Means of accuracies, and the standard deviations of what they are the means of.
    n_samples
        How many there are in each.
    level
        How often such an interval covers.
    """
    from statsmodels.stats.proportion import proportion_confint  # slow to import

    mean, spread, n_samples = np.asarray(mean), np.asarray(spread), np.asarray(n_samples)
    ratio = _dispersion_ratio(n_samples * mean * (1 - mean), n_samples * spread**2)
    n_coins = n_samples / ratio
    low, high = proportion_confint(mean * n_coins, n_coins, alpha=1 - level, method="wilson")
    return np.maximum(low, 0.0), np.minimum(high, 1.0)


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
