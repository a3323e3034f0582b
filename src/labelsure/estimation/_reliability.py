"""Reliability diagram: estimated against actual accuracy in bins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from labelsure._runtime.notebook import ColumnResult, count
from labelsure._runtime.plots import plot_reliability
from labelsure._runtime.typing import Floats, Integers
from labelsure.errors import InputError
from labelsure.labelsets.foreign import index_of
from labelsure.labelsets.names import read_vector
from labelsure.metrics.mean_tests import wilson_interval
from labelsure.metrics.registry import check_level

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False, repr=False)
class Reliability(ColumnResult):
    """Actual accuracy by bins of the estimate.

    Parameters
    ----------
    low, high
        Ends of each bin (low, high]; the first bin has its lower end.
    n_samples
        Number of rows in each bin.
    estimated, accuracy
        Mean estimated and actual accuracy in each bin; missing without rows.
    accuracy_low, accuracy_high
        Confidence interval of the mean accuracy.

    Examples
    --------
    >>> from labelsure import reliability
    >>> reliability([0.2, 0.2, 0.9], [0.0, 1.0, 1.0], bins=2).expected_calibration_error
    0.2333...
    """

    low: Floats
    high: Floats
    n_samples: Integers
    estimated: Floats
    accuracy: Floats
    accuracy_low: Floats
    accuracy_high: Floats

    @property
    def expected_calibration_error(self) -> float:
        """Mean over rows of the distance between estimated and actual accuracy of their bin."""
        gaps = np.abs(self.estimated - self.accuracy)
        return float(np.nansum(gaps * self.n_samples) / max(self.n_samples.sum(), 1))

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
        return plot_reliability(self.to_frame(), shown if label is None else label, ax)

    def _to_lists(self) -> dict[str, list[object]]:
        """Columns as lists of plain values, None for missing ones."""
        table = self.to_frame().astype(object)
        table = table.where(table.notna(), None)
        return {str(name): table[name].tolist() for name in table.columns}

    def __str__(self) -> str:
        n_samples = count(int(self.n_samples.sum()), "row")
        return f"Expected calibration error {self.expected_calibration_error:.3f} ({n_samples})."


def reliability(
    estimated: ArrayLike,
    accuracy: ArrayLike,
    bins: int | ArrayLike = 10,
    *,
    level: float = 0.95,
) -> Reliability:
    """Compare estimated with actual accuracies in bins: a reliability diagram.

    Parameters
    ----------
    estimated, accuracy
        (n,) estimated and actual accuracies in [0, 1].
    bins
        Number of bins of equal width on [0, 1], or their edges from 0 to 1.
    level
        Confidence level of the Wilson intervals for the mean accuracy of each bin.

    Returns
    -------
    Reliability
        Arrays with one entry per bin, `expected_calibration_error`, `to_frame` and `plot`.

    See Also
    --------
    AccuracyEstimator : Makes the estimates.
    accept_curve : Accuracy against the share accepted.

    Notes
    -----
    Intervals follow Wilson (1927), Probable inference, the law of succession, and statistical
    inference, Journal of the American Statistical Association 22.

    Examples
    --------
    >>> result = reliability([0.1, 0.2, 0.9, 0.8], [0, 0, 1, 0.5], bins=2)
    >>> result.to_frame()[["low", "high", "n_samples", "estimated", "accuracy"]]
       low  high  n_samples  estimated  accuracy
    0  0.0   0.5          2       0.15      0.00
    1  0.5   1.0          2       0.85      0.75
    >>> round(result.expected_calibration_error, 3)
    0.125
    """
    index = index_of(estimated)
    estimated = read_vector(estimated, "estimated", low=0, high=1)
    accuracy = read_vector(
        accuracy,
        "accuracy",
        n_samples=len(estimated),
        low=0,
        high=1,
        index=index,
        beside="`estimated`",
    )
    check_level(level)
    edges = _make_edges(bins)
    bin_of = np.clip(np.searchsorted(edges, estimated, side="left") - 1, 0, len(edges) - 2)
    n = np.bincount(bin_of, minlength=len(edges) - 1)
    with np.errstate(invalid="ignore"):  # bins without rows
        means = [np.bincount(bin_of, values, len(n)) / n for values in (estimated, accuracy)]
        squares = np.bincount(bin_of, (accuracy - means[1][bin_of]) ** 2, len(n))
        low, high = wilson_interval(means[1], np.sqrt(squares / n), n, level)
    return Reliability(edges[:-1], edges[1:], n, means[0], means[1], low, high)


def _make_edges(bins: int | ArrayLike) -> Floats:
    if isinstance(bins, (int, np.integer)) and bins >= 1:
        # Rounded so that 0.3 as an estimate and as an edge are the same number.
        return np.round(np.linspace(0, 1, int(bins) + 1), 12)
    edges = np.asarray(bins, dtype=np.float64)
    is_valid = edges.ndim == 1 and edges.size >= 2 and edges[0] == 0 and edges[-1] == 1
    if not is_valid or not (np.diff(edges) > 0).all():
        raise InputError(
            f"`bins` must be a number of intervals >= 1, or rising edges from 0 to 1, got {bins!r}."
        )
    return edges
