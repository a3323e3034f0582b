"""A batch of which a few instances are labelled: estimates that no shift can mislead.

Prediction-powered inference: the mean estimate of all instances, corrected by the mean error of the
estimates on the labelled ones. It is valid under any shift if the labelled instances are a random
sample of the batch.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import stdtrit

from labelsure._runtime.typing import Floats, Indices
from labelsure.distributions._bridge import LabelsetDistribution
from labelsure.distributions._probabilities import make_generator
from labelsure.errors import InputError
from labelsure.estimation._batch_estimates import BatchSums, Estimate
from labelsure.labelsets.names import align_values, counts_rows
from labelsure.labelsets.rows import index_of
from labelsure.metrics.mean_tests import Betting
from labelsure.metrics.registry import Counts, check_level, counts

MIN_LABELLED = 10
"""Instances: with fewer, an interval says next to nothing."""

MIN_FAILURES = 8.0
"""Sum of squared deviations from which Student's interval is used; a failure adds about 1.

Below, failures that nobody has seen may matter more than what was seen: with a failure probability
of 1/n Student's interval covers in two thirds of the cases at any n. Chosen by simulation
(`docs/howto/shift.md`)."""


def few_labels_interval(
    sums: BatchSums, accuracy: Floats, estimated: Floats, *, share: float, level: float
) -> Estimate:
    """Return the mean accuracy of a batch of which random instances are labelled."""
    check_level(level)
    n_labelled, n_samples = len(accuracy), sums.n_samples
    if n_labelled < MIN_LABELLED:
        raise InputError(
            f"At least {MIN_LABELLED} instances must be labelled for an interval, got "
            f"{n_labelled}. Label more rows drawn at random."
        )
    rest, known = accuracy - share * estimated, share * sums.total / n_samples
    mean = known + float(rest.mean())
    basis = f"{n_labelled:,} rows labelled, drawn at random"
    failures = float(((rest - rest.mean()) ** 2).sum())
    if failures >= MIN_FAILURES or n_labelled == n_samples:
        variance = (1 / n_labelled - 1 / n_samples) * float(rest.var(ddof=1))
        margin = float(stdtrit(n_labelled - 1, (1 + level) / 2)) * variance**0.5
        low, high = mean - margin, mean + margin
    else:
        ends = _betting_bounds(rest, share, n_samples, (1 - level) / 2)
        low, high = known + ends[0], known + ends[1]
        basis += "; interval by betting"
    low, high = max(0.0, low), min(1.0, high)
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


def _betting_bounds(rest: Floats, share: float, n_all: int, error: float) -> tuple[float, float]:
    """Bound the mean of accuracies less estimates, which lie in [-share, 1], from both sides.

    Betting needs an order that has nothing to do with the outcomes: rows of a file may be sorted.
    """
    outcomes = (make_generator(0).permutation(rest) + share) / (1 + share)
    test = Betting()
    low = (1 + share) * test.lower_bound(outcomes, error, n_all) - share
    return low, 1 - (1 + share) * test.lower_bound(1 - outcomes, error, n_all)


def read_few_labels(dist: Any, decisions: Any, Y_true: Any, rows: Any) -> tuple[Indices, Counts]:
    """Return which instances of a batch are labelled, and tp, fp, fn and tn of each."""
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
    truth = dist[places].align(Y_true, "Y_true")
    return places, counts(truth, decisions[places])


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
