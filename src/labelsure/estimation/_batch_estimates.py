"""The mean accuracy of a batch and its interval, without labels or with a few.

Without labels, the interval follows from sums over the batch (`BatchSums`). With a few it is
prediction-powered inference: the mean estimate of all rows, corrected by the mean error of the
estimates on the labelled ones. That is valid under any shift if the labelled rows are a random
sample of the batch.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from scipy.special import stdtrit

from labelsure._runtime.arguments import read_choice
from labelsure._runtime.notebook import make_html
from labelsure._runtime.typing import Floats, Indices, Labelsets, LabelsetsLike, RowIndex
from labelsure.distributions._base import LabelsetDistribution
from labelsure.distributions._probabilities import make_generator
from labelsure.errors import InputError
from labelsure.labelsets.foreign import index_of
from labelsure.labelsets.names import counts_rows
from labelsure.metrics.mean_tests import Betting
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
        batch, such as micro-F1, to which rows have no estimates of their own.
    quantity
        What is estimated, such as "mean F1".
    basis
        How the estimate was made, in words.
    effective_size
        Effective sample size of the importance-weighted calibration set; None without weights.
    n_labelled
        How many rows of the batch itself were labelled.
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

    _figure: ClassVar[str] = "{:.3f}"

    def __str__(self) -> str:
        name = (self.quantity[:1].upper() + self.quantity[1:]).replace("-f1", "-F1")
        mean, low, high = map(self._figure.format, (self.mean, self.low, self.high))
        interval = f"{100 * self.level:g}% interval {low} to {high}"
        details = [f"{interval}, n = {self.n_samples:,}", self.basis]
        if self.shift is not None:
            details.append(self.shift.brief)
        sentence = f"{name} {mean} ({'; '.join(detail for detail in details if detail)})."
        return f"{sentence} Not tested for shift: {self.untested}." if self.untested else sentence

    def _repr_html_(self) -> str:
        import pandas as pd

        row = {self.quantity: self.mean, "low": self.low, "high": self.high, "n": self.n_samples}
        return make_html(str(self), pd.DataFrame(row, [""]))


@dataclass(frozen=True)
class BatchSums:
    """Sums over a batch from which its estimate follows; sums of parts can be added.

    Parameters
    ----------
    n_samples
        Number of rows.
    total
        Sum of their estimates p.
    bernoulli_variance
        Sum of p(1 - p).
    deviations
        Sum of (p - mean)**2.
    slopes
        (m,) derivatives of the total by the coefficients of the model of accuracy.
    lowest, highest
        Smallest and largest estimate.
    """

    n_samples: int
    total: float
    bernoulli_variance: float
    deviations: float
    slopes: Floats
    lowest: float = np.inf
    highest: float = -np.inf

    @classmethod
    def of(cls, estimated: Floats, slopes: Floats) -> BatchSums:
        """Sums of (n,) estimates."""
        bernoulli_variance = float((estimated * (1 - estimated)).sum())
        n_samples, total = len(estimated), float(estimated.sum())
        deviations = float(((estimated - total / max(n_samples, 1)) ** 2).sum())
        ends = float(estimated.min(initial=np.inf)), float(estimated.max(initial=-np.inf))
        return cls(n_samples, total, bernoulli_variance, deviations, slopes, *ends)

    def __add__(self, other: BatchSums) -> BatchSums:
        n_samples = self.n_samples + other.n_samples
        between = 0.0
        if self.n_samples and other.n_samples:  # the means of the parts differ, too
            gap = self.total / self.n_samples - other.total / other.n_samples
            between = gap**2 * self.n_samples * other.n_samples / n_samples
        return BatchSums(
            n_samples,
            self.total + other.total,
            self.bernoulli_variance + other.bernoulli_variance,
            self.deviations + other.deviations + between,
            self.slopes + other.slopes,
            min(self.lowest, other.lowest),
            max(self.highest, other.highest),
        )


MIN_CLUSTERS = 10
"""Minimum number of clusters of dependent calibration rows: fewer do not show how strong the
dependence within clusters is."""


@dataclass(frozen=True)
class Scatter:
    """Residual variance of calibration accuracies around out-of-fold estimates.

    Parameters
    ----------
    ratio
        Variance of an accuracy relative to p(1 - p) of its estimate p.
    n_rows, n_clusters
        Calibration rows, and clusters of dependent rows; equal for independent rows.
    design_effect
        Variance of a mean relative to that of as many independent rows.
    """

    ratio: float
    n_rows: int
    n_clusters: int
    design_effect: float = 1.0

    def single_variance(self, sums: BatchSums) -> float:
        """Mean over a batch of the variance of one accuracy around its estimate.

        Each estimate p is shrunk to q = (n p + 1) / (n + 2), as by one success and one failure
        more: n successes of n do not prove certainty. Then
        q(1 - q) = (n^2 p(1 - p) + n + 1) / (n + 2)^2.
        """
        n = self.n_clusters
        variance = (n**2 * sums.bernoulli_variance / sums.n_samples + n + 1) / (n + 2) ** 2
        return self.ratio * variance

    @property
    def too_few(self) -> bool:
        """Whether the clusters are too few for an interval."""
        return self.n_clusters < min(MIN_CLUSTERS, self.n_rows)


def mean_interval(sums: BatchSums, scatter: Scatter, fit_variance: float, level: float) -> Estimate:
    """Mean of the estimates with an interval for the batch's mean accuracy.

    The rows of the batch are assumed to be clustered as those of the calibration set.
    """
    check_level(level)
    n_samples, n_fitted = sums.n_samples, scatter.n_clusters
    single_variance = scatter.single_variance(sums)
    # At least the variance of the mean of all calibration accuracies.
    fit_variance = max(fit_variance, single_variance * scatter.design_effect / scatter.n_rows)
    variance = single_variance * min(scatter.design_effect, n_samples) / n_samples + fit_variance
    mean = sums.total / n_samples
    # Student: the variance is estimated from as many residuals.
    margin = float(stdtrit(max(n_fitted - 1, 1), (1 + level) / 2)) * variance**0.5
    margin = 1.0 if scatter.too_few else margin
    low, high = max(0.0, mean - margin), min(1.0, mean + margin)
    spread = (sums.deviations / n_samples) ** 0.5
    return Estimate(mean, low, high, n_samples, level, spread)


MIN_LABELLED = 10
"""Minimum number of labelled rows: with fewer the interval is too wide to be of use."""

DRAWN = "{:,} rows labelled, assumed drawn at random"

INTERVALS = ("pseudo-rows", "betting")
"""Methods for the interval of a batch with a few labels: approximate and narrow, or a bound that is
proved for every distribution of accuracies (`docs/howto/shift.md` compares them)."""


def check_enough_labels(n_labelled: int) -> None:
    """Raise InputError for fewer labelled rows than an interval needs."""
    if n_labelled < MIN_LABELLED:
        raise InputError(
            f"At least {MIN_LABELLED} rows must be labelled for an interval, got "
            f"{n_labelled}. Label more rows drawn at random."
        )


def few_labels_interval(
    sums: BatchSums,
    accuracy: Floats,
    estimated: Floats,
    *,
    lambda_: float,
    level: float,
    interval: str = "pseudo-rows",
    ends: tuple[float, float] = (0.0, 1.0),
) -> Estimate:
    """Prediction-powered mean accuracy of a batch of which random rows are labelled.

    Accuracies lie between `ends`. The mean is unbiased for any batch and any power-tuning
    coefficient `lambda_`, which was fixed on other rows: mean(lambda_ * estimated) of all rows +
    mean(accuracy - lambda_ * estimated) of the labelled ones.
    """
    check_level(level)
    read_choice(interval, "interval", INTERVALS)
    n_labelled, n_samples = len(accuracy), sums.n_samples
    check_enough_labels(n_labelled)
    rectifier, proxy = accuracy - lambda_ * estimated, lambda_ * sums.total / n_samples
    mean = proxy + float(rectifier.mean())
    basis = DRAWN.format(n_labelled)
    span = ends[0] - lambda_ * sums.highest, ends[1] - lambda_ * sums.lowest  # range of residuals
    if interval == "betting":
        bounds = _betting_bounds(rectifier, span, n_samples, (1 - level) / 2)
        basis += "; interval by betting"
    else:
        # A range of 1 also for differences, which are seldom 1 or -1 (`benchmarks.compare_models`).
        slack = (ends[1] - ends[0] - 1) / 2
        bounds = _pseudo_row_bounds(rectifier, (span[0] + slack, span[1] - slack), n_samples, level)
    low, high = max(ends[0], proxy + bounds[0]), min(ends[1], proxy + bounds[1])
    return Estimate(
        float(np.clip(mean, low, high)),
        low,
        high,
        n_samples,
        level,
        (sums.deviations / n_samples) ** 0.5,
        n_labelled=n_labelled,
        basis=basis,
    )


def _pseudo_row_bounds(
    rectifier: Floats, span: tuple[float, float], n_all: int, level: float
) -> tuple[float, float]:
    """Student's interval of a batch's mean residual, with a pseudo-row at each end of `span`.

    In the manner of Agresti and Coull (1998): failures that were not observed may matter more than
    those that were. Centre and variance of the unlabelled rows are those of k + 2 residuals, k of
    which are real; the labelled rows are fixed (finite-population correction).
    """
    k = len(rectifier)
    padded, unlabelled_share = np.append(rectifier, span), 1 - k / n_all
    centre = float(rectifier.mean() + unlabelled_share * (padded.mean() - rectifier.mean()))
    variance = float(padded.var(ddof=1)) * unlabelled_share / k
    margin = float(stdtrit(k - 1, (1 + level) / 2)) * variance**0.5
    return centre - margin, centre + margin


def _betting_bounds(
    rectifier: Floats, span: tuple[float, float], n_all: int, error: float
) -> tuple[float, float]:
    """Two-sided betting bounds of a batch's mean residual; residuals lie in `span`.

    Betting needs an order that is independent of the outcomes, hence the shuffle: files may be
    sorted.
    """
    start, width = span[0], max(span[1] - span[0], 1e-12)
    outcomes = np.clip((make_generator(0).permutation(rectifier) - start) / width, 0.0, 1.0)
    test = Betting()
    low, high = (test.lower_bound(values, error, n_all) for values in (outcomes, 1 - outcomes))
    return start + width * low, start + width * (1 - high)


def read_few_labels(
    dist: object, decisions: object, Y_true: LabelsetsLike, rows: object
) -> tuple[Indices, Labelsets]:
    """Positions of the labelled rows, (k,), ascending, and their labelsets, (k, L).

    Ascending, so that results do not depend on the order of the labelled rows.
    """
    if not isinstance(dist, LabelsetDistribution) or decisions is None:
        raise InputError(
            "`dist` must be a LabelsetDistribution with `Y_true` and `rows`, got "
            f"{type(dist).__name__}. Pass the distribution of the batch."
        )
    if Y_true is None:
        raise InputError("`Y_true` must be given with `rows`: the truth of these rows.")
    if rows is None:
        rows = _find_rows(dist.index, Y_true)
    positions = check_rows(rows, len(dist))
    truth = dist[positions]._align_truth(Y_true)
    order = np.argsort(positions)
    return positions[order], truth[order]


def _find_rows(index: RowIndex, Y_true: LabelsetsLike) -> Indices:
    """Positions in a batch of the rows of the DataFrame `Y_true`, by index, (k,)."""
    ids = index_of(Y_true)
    is_named = hasattr(Y_true, "columns")
    if index is None or ids is None or not is_named or (counts_rows(index) and counts_rows(ids)):
        raise InputError(
            "`rows` must be the positions of the labelled rows in the batch, got None. Pass "
            "`rows`, or make `Y_true` a DataFrame whose index names rows of the batch."
        )
    if not index.is_unique:
        raise InputError("The index of the batch must name each row once. Pass `rows`.")
    positions = index.get_indexer(ids)
    if (positions < 0).any():
        raise InputError(
            f"Each row of `Y_true` must be in the batch, {ids[positions < 0][0]!r} is not. Check "
            "its index."
        )
    return np.asarray(positions, dtype=np.intp)


def check_rows(rows: object, n_samples: int) -> Indices:
    """Positions of the labelled rows in the batch, (k,). Raises InputError."""
    positions = np.asarray(rows)
    positions = positions.astype(np.intp) if positions.shape == (0,) else positions
    if positions.ndim != 1 or positions.dtype.kind not in "iu":
        raise InputError(
            "`rows` must be the positions of the labelled rows in the batch, whole numbers from "
            f"0, got {positions.dtype} of shape {positions.shape}. For a mask pass "
            "`numpy.flatnonzero(mask)`."
        )
    if len(positions) and not (positions.min() >= 0 and positions.max() < n_samples):
        raise InputError(
            f"`rows` must lie from 0 to {n_samples - 1}, got {positions.min()} to "
            f"{positions.max()}."
        )
    if len(np.unique(positions)) < len(positions):
        raise InputError(
            "`rows` must name each labelled row once, got some twice. Keep one labelset for each "
            "row."
        )
    return positions.astype(np.intp)
