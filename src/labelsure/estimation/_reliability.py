"""Reliability: whether predictions with an estimated accuracy of 0.8 have one of 0.8."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from labelsure._typing import Floats
from labelsure.errors import InputError
from labelsure.estimation._interval import Dispersion, check_level
from labelsure.metrics import check_accuracies

if TYPE_CHECKING:
    import pandas as pd


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
