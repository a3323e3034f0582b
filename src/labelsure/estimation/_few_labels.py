"""A batch of which a few instances are labelled: estimates that no shift can mislead.

The estimates of all instances say most, and the labelled ones by how much these are wrong here
(prediction-powered inference). That holds whatever the batch is like, if chance has chosen which
instances are labelled.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import t as student

from labelsure._notebook import count
from labelsure._typing import Floats, Indices
from labelsure.distributions import LabelsetDistribution
from labelsure.errors import InputError
from labelsure.estimation._batch_estimates import Estimate
from labelsure.labelset_rows import index_of
from labelsure.metrics import Counts, check_level, counts
from labelsure.named_rows import align_values, counts_rows

if TYPE_CHECKING:
    import pandas as pd

    from labelsure.estimation._batch_estimates import BatchSums

MIN_LABELLED = 10
"""Instances: with fewer, neither the share of the estimates nor the interval means anything."""


@dataclass(frozen=True)
class LabelledMean:
    """A mean accuracy by a few labels: the value, its standard error, how far estimates count.

    Parameters
    ----------
    mean
        Of the batch or of the population.
    error
        Its standard error.
    share
        What the estimates are multiplied by: 0 where they say nothing, 1 where all is in them.
    """

    mean: float
    error: float
    share: float


def batch_mean(accuracy: Floats, estimated: Floats, total: Estimated) -> LabelledMean:
    """Return the mean accuracy of the batch itself, rows having been drawn at random.

    Parameters
    ----------
    accuracy, estimated
        (n,) of the labelled instances.
    total
        Of the estimates of all N instances.
    """
    n_labelled = len(accuracy)
    share = _share(accuracy, estimated, 1.0)
    rest = accuracy - share * estimated
    variance = (1 / n_labelled - 1 / total.n_samples) * _variance(rest, accuracy)
    return LabelledMean(share * total.mean + float(rest.mean()), variance**0.5, share)


def population_mean(accuracy: Floats, estimated: Floats, total: Estimated) -> LabelledMean:
    """Return the mean accuracy of what the batch was drawn from (PPI++, power-tuned).

    Parameters
    ----------
    accuracy, estimated, total
        As for `batch_mean`.
    """
    n_labelled, n_rest = len(accuracy), total.n_samples - len(accuracy)
    if n_rest == 0:
        return LabelledMean(
            float(accuracy.mean()), (_variance(accuracy, accuracy) / n_labelled) ** 0.5, 0.0
        )
    mean, variance = total.without(estimated)
    share = _share(accuracy, estimated, 1 + n_labelled / n_rest, total.variance)
    rest = accuracy - share * estimated
    error = _variance(rest, accuracy) / n_labelled + share**2 * variance / n_rest
    return LabelledMean(share * mean + float(rest.mean()), error**0.5, share)


def included_mean(
    accuracy: Floats, estimated: Floats, inclusion: Floats, total: Estimated, *, population: bool
) -> LabelledMean:
    """Return the mean where each row had a probability of its own to be drawn (Hajek's).

    Parameters
    ----------
    accuracy, estimated, total
        As for `batch_mean`.
    inclusion
        (n,) with which probability each labelled row was drawn, independently of the others.
    population
        Whether the mean of what the batch was drawn from is wanted.
    """
    weights = 1 / inclusion
    weights_total = weights.sum()

    def mean_of(values: Floats) -> float:
        return float(weights @ values / weights_total)

    centred, gaps = estimated - mean_of(estimated), accuracy - mean_of(accuracy)
    below = mean_of(centred**2)
    share = float(np.clip(mean_of(centred * gaps) / below, 0, 1)) if below > 0 else 0.0
    rest = accuracy - share * estimated
    mean = mean_of(rest)
    n_labelled = len(accuracy)
    spread = ((1 - inclusion) * weights**2 * (rest - mean) ** 2).sum() / weights_total**2
    floor = _unseen_variance(accuracy) / n_labelled
    variance = max(float(spread) * n_labelled / (n_labelled - 1), floor)
    if population:
        variance += max(mean_of(gaps**2) / total.n_samples, 0.0)
    return LabelledMean(share * total.mean + mean, variance**0.5, share)


def _share(
    accuracy: Floats, estimated: Floats, factor: float, variance: float | None = None
) -> float:
    """Return how far estimates count: cov / (var * factor), within [0, 1]."""
    below = float(estimated.var()) if variance is None else variance
    if below <= 0:
        return 0.0
    covariance = float(((accuracy - accuracy.mean()) * (estimated - estimated.mean())).mean())
    return float(np.clip(covariance / (below * factor), 0.0, 1.0))


def _variance(rest: Floats, accuracy: Floats) -> float:
    """Return the variance of what estimates leave, not below what may not have been seen."""
    return max(float(rest.var(ddof=1)), _unseen_variance(accuracy))


def _unseen_variance(accuracy: Floats) -> float:
    """Return 0 where accuracies differ; if all are alike that does not prove them to be certain.

    One success and one failure are added to them.
    """
    if np.ptp(accuracy) > 0:
        return 0.0
    n_labelled = len(accuracy)
    p = (n_labelled * accuracy[0] + 1) / (n_labelled + 2)
    return float(p * (1 - p))


@dataclass(frozen=True)
class Estimated:
    """The estimates of all instances of a batch, of which the mean and the variance count.

    Parameters
    ----------
    n_samples
        How many.
    mean, variance
        Of the estimates; the variance with n - 1 in the denominator.
    """

    n_samples: int
    mean: float
    variance: float

    @classmethod
    def of_sums(cls, sums: BatchSums) -> Estimated:
        """Take them from the sums of a batch."""
        n_samples = sums.n_samples
        return cls(n_samples, sums.total / n_samples, sums.deviations / max(n_samples - 1, 1))

    def without(self, estimated: Floats) -> tuple[float, float]:
        """Return mean and variance of the other instances, those of some being known."""
        n_rest = self.n_samples - len(estimated)
        mean = (self.n_samples * self.mean - estimated.sum()) / n_rest
        squares = (self.n_samples - 1) * self.variance + self.n_samples * self.mean**2
        deviations = squares - (estimated**2).sum() - n_rest * mean**2
        return float(mean), float(max(deviations, 0.0) / n_rest)


def few_labels_interval(
    sums: BatchSums,
    accuracy: Floats,
    estimated: Floats,
    inclusion: Any,
    *,
    population: bool,
    level: float,
) -> Estimate:
    """Return the mean accuracy of a batch of which some instances are labelled.

    Parameters
    ----------
    sums
        Of all instances of the batch.
    accuracy, estimated
        (n,) of the labelled ones.
    inclusion
        None, one probability, or one for each of these.
    population
        Whether the mean of what the batch was drawn from is wanted.
    level
        In (0, 1).
    """
    check_level(level)
    n_labelled = len(accuracy)
    if n_labelled < MIN_LABELLED:
        raise InputError(
            f"At least {MIN_LABELLED} instances must be labelled for an interval, got "
            f"{n_labelled}. Label more rows drawn at random."
        )
    total = Estimated.of_sums(sums)
    if inclusion is not None:
        chances = check_inclusion(inclusion, n_labelled)
        found = included_mean(accuracy, estimated, chances, total, population=population)
    else:
        by = population_mean if population else batch_mean
        found = by(accuracy, estimated, total)
    mean = float(np.clip(found.mean, 0.0, 1.0))
    margin = float(student.ppf((1 + level) / 2, n_labelled - 1)) * found.error
    spread = (sums.deviations / sums.n_samples) ** 0.5
    return Estimate(
        mean,
        max(0.0, mean - margin),
        min(1.0, mean + margin),
        sums.n_samples,
        level,
        spread,
        "mean accuracy of the population" if population else "mean accuracy",
        n_labelled=n_labelled,
        basis=f"{count(n_labelled, 'instance')} of it labelled, drawn at random",
    )


@dataclass(frozen=True)
class FewLabels:
    """Which instances of a batch are labelled, and how their predictions compare with the truth.

    Parameters
    ----------
    rows
        (n,) their positions.
    counts
        tp, fp, fn and tn of each.
    index
        Their names; None where they have none.
    """

    rows: Indices
    counts: Counts
    index: pd.Index | None = None


def read_few_labels(dist: Any, decisions: Any, Y_true: Any, rows: Any) -> FewLabels:
    """Return which instances of a batch are labelled, aligned by name where names are there.

    Parameters
    ----------
    dist
        The batch, a `LabelsetDistribution`.
    decisions
        (N, L) what was predicted for each instance.
    Y_true, rows
        As of `AccuracyEstimator.estimate`.
    """
    if not isinstance(dist, LabelsetDistribution) or decisions is None:
        raise InputError(
            "`dist` must be a LabelsetDistribution where a few labels are given, got "
            f"{type(dist).__name__}. A table that knows the truth needs no estimate."
        )
    if Y_true is None:
        raise InputError("`Y_true` must be given with `rows`: the truth of these instances.")
    if rows is None:
        rows = _find_rows(dist.index, Y_true)
    if getattr(getattr(rows, "dtype", None), "kind", "") == "b":
        rows = align_values(rows, dist.index, name="rows")
    places = check_rows(rows, len(dist))
    labelled = dist[places]
    truth = labelled.align(Y_true, "Y_true")
    index = index_of(Y_true) if labelled.index is None else labelled.index
    return FewLabels(places, counts(truth, decisions[places]), index)


def _find_rows(index: Any, Y_true: Any) -> Indices:
    """Return where the rows of a DataFrame are in a batch, by their names."""
    own: Any = index_of(Y_true)
    is_named = index is not None and own is not None and hasattr(Y_true, "columns")
    if not is_named or (counts_rows(index) and counts_rows(own)):
        raise InputError(
            "`rows` must say which instances of the batch `Y_true` is about: their positions. Only "
            "a DataFrame names its rows by its index, if the batch has one."
        )
    if not index.is_unique:
        raise InputError("The index of the batch must name each instance once. Pass `rows`.")
    places = index.get_indexer(own)
    if (places < 0).any():
        raise InputError(
            f"Each row of `Y_true` must be in the batch, {own[places < 0][0]!r} is not."
        )
    return np.asarray(places, dtype=np.intp)


def check_inclusion(inclusion: Any, n_labelled: int) -> Floats:
    """Return the probability with which each labelled row was drawn, (n,), or refuse."""
    chances = np.asarray(inclusion, dtype=np.float64)
    if chances.ndim == 0:
        chances = np.full(n_labelled, chances)
    if chances.shape != (n_labelled,) or not ((chances > 0) & (chances <= 1)).all():
        raise InputError(
            "`inclusion` must have the probability with which each labelled row was drawn, "
            f"{n_labelled} numbers above 0 and up to 1, got shape {chances.shape} with values "
            f"from {chances.min(initial=np.inf):g} to {chances.max(initial=-np.inf):g}. Rows that "
            "could not be drawn must have been drawn by nobody."
        )
    return chances


def check_rows(rows: Any, n_samples: int) -> Indices:
    """Return which instances are labelled as positions in the batch, or refuse."""
    places = np.asarray(rows)
    if places.dtype == bool:
        if places.shape != (n_samples,):
            raise InputError(
                f"`rows` as a mask must have one entry for each of the {n_samples} instances, got "
                f"shape {places.shape}."
            )
        return np.flatnonzero(places)
    if places.ndim != 1 or places.dtype.kind not in "iu":
        raise InputError(
            "`rows` must be the positions of the labelled instances in the batch, whole numbers "
            f"from 0, or a mask, got {places.dtype} of shape {places.shape}."
        )
    if len(places) and not (places.min() >= 0 and places.max() < n_samples):
        raise InputError(
            f"`rows` must lie from 0 to {n_samples - 1}, got {places.min()} to {places.max()}."
        )
    if len(np.unique(places)) < len(places):
        raise InputError(
            "`rows` must name each labelled instance once, got some twice. Two opinions on one "
            "instance are not two instances."
        )
    return places.astype(np.intp)
