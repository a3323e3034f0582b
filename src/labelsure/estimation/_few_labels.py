"""A batch of which a few instances are labelled: estimates that no shift can mislead.

The estimates of all instances say most, and the labelled ones by how much these are wrong here
(prediction-powered inference). That holds whatever the batch is like, if chance has chosen which
instances are labelled.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import stdtrit

from labelsure._runtime.notebook import count
from labelsure._runtime.typing import Floats, Indices
from labelsure.distributions._bridge import LabelsetDistribution
from labelsure.distributions._probabilities import make_generator
from labelsure.errors import InputError
from labelsure.estimation._batch_estimates import Estimate
from labelsure.labelsets.names import align_values, counts_rows
from labelsure.labelsets.rows import index_of
from labelsure.metrics.mean_tests import Betting, sparse_lower_bound
from labelsure.metrics.registry import Counts, check_level, counts

if TYPE_CHECKING:
    import pandas as pd

    from labelsure.estimation._batch_estimates import BatchSums

MIN_LABELLED = 10
"""Instances: with fewer, an interval says next to nothing."""

MIN_FAILURES = 8.0
"""Sum of squared deviations from which Student's interval is used; a failure adds about 1.

Below, failures that nobody has seen may matter more than what was seen: with a failure probability
of 1/n Student's interval covers in two thirds of the cases at any n. Chosen by simulation
(`docs/shift.md`)."""


@dataclass(frozen=True)
class LabelledMean:
    """A mean accuracy by a few labels, and what its interval rests on.

    Parameters
    ----------
    mean
        Of the batch or of the population.
    error
        Its standard error.
    failures
        Sum of squared deviations of what estimates leave, of which a failure among predictions
        that are right adds about 1.
    """

    mean: float
    error: float
    failures: float


def batch_mean(accuracy: Floats, estimated: Floats, total: Estimated, share: float) -> LabelledMean:
    """Return the mean accuracy of the batch itself, rows having been drawn at random.

    Parameters
    ----------
    accuracy, estimated
        (n,) of the labelled instances.
    total
        Of the estimates of all N instances.
    share
        What estimates are multiplied by, chosen without these labels.
    """
    n_labelled = len(accuracy)
    rest = accuracy - share * estimated
    variance = (1 / n_labelled - 1 / total.n_samples) * rest.var(ddof=1)
    mean = share * total.mean + float(rest.mean())
    return LabelledMean(mean, float(variance) ** 0.5, _sum_squares(rest))


def population_mean(
    accuracy: Floats, estimated: Floats, total: Estimated, share: float
) -> LabelledMean:
    """Return the mean accuracy of what the batch was drawn from (prediction-powered inference).

    Estimates of the labelled instances have errors of their own there, so that the share is
    divided by 1 + n / (N - n), as PPI++ does.

    Parameters
    ----------
    accuracy, estimated, total, share
        As for `batch_mean`.
    """
    n_labelled, n_rest = len(accuracy), total.n_samples - len(accuracy)
    if n_rest == 0:
        error = float(accuracy.var(ddof=1)) / n_labelled
        return LabelledMean(float(accuracy.mean()), error**0.5, _sum_squares(accuracy))
    share /= 1 + n_labelled / n_rest
    mean, variance = total.without(estimated)
    rest = accuracy - share * estimated
    error = float(rest.var(ddof=1)) / n_labelled + share**2 * variance / n_rest
    return LabelledMean(share * mean + float(rest.mean()), error**0.5, _sum_squares(rest))


def included_mean(
    accuracy: Floats,
    estimated: Floats,
    inclusion: Floats,
    total: Estimated,
    share: float,
    *,
    population: bool,
) -> LabelledMean:
    """Return the mean where each row had a probability of its own to be drawn (Hajek's).

    Parameters
    ----------
    accuracy, estimated, total, share
        As for `batch_mean`.
    inclusion
        (n,) with which probability each labelled row was drawn, independently of the others.
    population
        Whether the mean of what the batch was drawn from is wanted.
    """
    weights = 1 / inclusion
    n_labelled = len(accuracy)
    rest = accuracy - share * estimated
    mean = float(weights @ rest / weights.sum())
    spread = ((1 - inclusion) * weights**2 * (rest - mean) ** 2).sum() / weights.sum() ** 2
    variance = float(spread) * n_labelled / (n_labelled - 1)
    if population:
        gaps = accuracy - weights @ accuracy / weights.sum()
        variance += float(weights @ gaps**2 / weights.sum()) / total.n_samples
    failures = float(((weights / weights.max() * (rest - mean)) ** 2).sum())
    return LabelledMean(share * total.mean + mean, variance**0.5, failures)


def _sum_squares(rest: Floats) -> float:
    return float(((rest - rest.mean()) ** 2).sum())


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


@dataclass(frozen=True)
class Inclusion:
    """With which probabilities rows were drawn to be labelled.

    Parameters
    ----------
    chances
        (n,) of the labelled rows.
    least
        The least of all rows of the batch; None where only those of the labelled ones are known.
    """

    chances: Floats
    least: float | None


def few_labels_interval(
    sums: BatchSums,
    accuracy: Floats,
    estimated: Floats,
    inclusion: Inclusion | None,
    *,
    share: float,
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
        None if all rows had the same probability to be labelled.
    share
        What estimates are multiplied by, from 0 to 1, chosen without these labels.
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
        found = included_mean(
            accuracy, estimated, inclusion.chances, total, share, population=population
        )
    else:
        by = population_mean if population else batch_mean
        found = by(accuracy, estimated, total, share)
    basis = f"{count(n_labelled, 'instance')} of it labelled, drawn at random"
    is_known = n_labelled == total.n_samples and inclusion is None and not population
    if found.failures >= MIN_FAILURES or is_known:
        margin = float(stdtrit(n_labelled - 1, (1 + level) / 2)) * found.error
        low, high = found.mean - margin, found.mean + margin
    else:
        if population:
            share = 0.0  # the estimates of the population are not known
        rest, known, error = accuracy - share * estimated, share * total.mean, (1 - level) / 2
        if inclusion is None:
            n_all = 0 if population else total.n_samples
            ends = _betting_bounds(rest, share, n_all, error)
        else:
            ends = _included_bounds(rest, share, inclusion, total.n_samples, error)
        low, high = known + ends[0], known + ends[1]
        basis += "; the interval assumes no distribution of accuracies"
    low, high = max(0.0, float(low)), min(1.0, float(high))
    return Estimate(
        float(np.clip(found.mean, low, high)),
        low,
        high,
        sums.n_samples,
        level,
        (sums.deviations / sums.n_samples) ** 0.5,
        "mean accuracy of the population" if population else "mean accuracy",
        n_labelled=n_labelled,
        basis=basis,
    )


def _betting_bounds(rest: Floats, share: float, n_all: int, error: float) -> tuple[float, float]:
    """Bound the mean of accuracies less estimates, which lie in [-share, 1], from both sides.

    Betting needs an order that has nothing to do with the outcomes: rows of a file may be sorted.
    """
    outcomes = (make_generator(0).permutation(rest) + share) / (1 + share)
    test = Betting()
    low = (1 + share) * test.lower_bound(outcomes, error, n_all) - share
    return low, 1 - (1 + share) * test.lower_bound(1 - outcomes, error, n_all)


def _included_bounds(
    rest: Floats, share: float, inclusion: Inclusion, n_all: int, error: float
) -> tuple[float, float]:
    """Likewise where each row had a probability of its own to be drawn."""
    if inclusion.least is None:
        raise InputError(
            "`inclusion` must have a probability for each row of the batch, not only for the "
            "labelled ones, where accuracies scatter this little: the interval needs the largest "
            f"weight that a row could have had. Pass {n_all} probabilities, or label more rows."
        )
    values = rest / inclusion.chances
    least, most = -share / inclusion.least, 1 / inclusion.least
    low = sparse_lower_bound(values, n_all, least, most, error)
    return low, -sparse_lower_bound(-values, n_all, -most, -least, error)


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


def check_inclusion(inclusion: Any, rows: Indices, n_samples: int) -> Inclusion | None:
    """Return the probabilities with which rows were drawn, None if all are alike, or refuse.

    Parameters
    ----------
    inclusion
        None, one number, one for each labelled row, or one for each row of the batch.
    rows
        (n,) which are labelled.
    n_samples
        The size of the batch.
    """
    if inclusion is None:
        return None
    chances = np.asarray(inclusion, dtype=np.float64)
    shapes = ((), (len(rows),), (n_samples,))
    if chances.shape not in shapes or not ((chances > 0) & (chances <= 1)).all():
        raise InputError(
            "`inclusion` must have the probability with which each labelled row was drawn, or each "
            f"row of the batch: {len(rows)} or {n_samples} numbers above 0 and up to 1, got shape "
            f"{chances.shape} with values from {chances.min(initial=np.inf):g} to "
            f"{chances.max(initial=-np.inf):g}. Rows that could not be drawn must have been drawn "
            "by nobody."
        )
    if np.ptp(chances) == 0 and chances.shape != (len(rows),):
        return None  # as many rows, drawn at random
    if chances.shape == (n_samples,):
        return Inclusion(chances[rows], float(chances.min()))
    return Inclusion(chances, None)


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
