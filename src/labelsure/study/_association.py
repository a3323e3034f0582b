"""Kendall's and Pearson's correlation with their influence functions.

Two scores of the same instances are compared with one outcome: their correlations depend on each
other. What a single instance adds to each is its influence, and the spread of the *difference* of
two influences gives the standard error of the difference, whatever the dependence.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.stats import kendalltau, norm

from labelsure._kernels.concordance import net_concordance
from labelsure._typing import Floats, Integers


@dataclass(frozen=True)
class Association:
    """A correlation and what each instance adds to it.

    Parameters
    ----------
    value
        The correlation; NaN where it is undefined.
    influence
        (n,) the influence function at each instance, mean 0.
    """

    value: float
    influence: Floats

    @property
    def defined(self) -> bool:
        """Whether both sides vary, so that there is a correlation."""
        return not np.isnan(self.value)


@dataclass(frozen=True)
class Difference:
    """The difference of two correlations with one outcome.

    Parameters
    ----------
    value, standard_error, p_value
        All NaN where one of the correlations is undefined; the p-value is two-sided.
    """

    value: float
    standard_error: float
    p_value: float


def kendall_association(score: Floats, outcome: Floats) -> Association:
    """Return Kendall's tau-b; undefined if the score or the outcome is constant."""
    if not (_varies(score) and _varies(outcome)):
        return _undefined(len(score))
    n = len(score)
    x, y = _dense_ranks(score), _dense_ranks(outcome)
    tau = float(kendalltau(x, y).statistic)
    concordance = _net_concordance(x, y) / (n - 1)
    differs_x, differs_y = _share_that_differs(x), _share_that_differs(y)
    mean_x, mean_y = differs_x.mean(), differs_y.mean()
    influence = 2 * (
        (concordance - concordance.mean()) / np.sqrt(mean_x * mean_y)
        - tau / 2 * ((differs_x - mean_x) / mean_x + (differs_y - mean_y) / mean_y)
    )
    return Association(tau, influence)


def pearson_association(score: Floats, outcome: Floats) -> Association:
    """Return Pearson's r; undefined if the score or the outcome is constant."""
    if not (_varies(score) and _varies(outcome)):
        return _undefined(len(score))
    x, y = _standardised(score), _standardised(outcome)
    r = float(np.clip((x * y).mean(), -1, 1))
    return Association(r, x * y - r / 2 * (x**2 + y**2))


ASSOCIATIONS: dict[str, Callable[[Floats, Floats], Association]] = {
    "kendall": kendall_association,
    "pearson": pearson_association,
}
"""The correlations by name."""


def difference(of: Association, to: Association) -> Difference:
    """Return how far one correlation is above another, with a two-sided test of no difference."""
    if not (of.defined and to.defined):
        return Difference(np.nan, np.nan, np.nan)
    value = of.value - to.value
    spread = np.std(of.influence - to.influence, ddof=1)
    error = float(spread / np.sqrt(len(of.influence)))
    if error < 1e-14:  # every instance adds the same to both: equal, or apart beyond doubt
        return Difference(value, error, 1.0 if abs(value) < 1e-12 else 0.0)
    return Difference(value, error, float(2 * norm.sf(abs(value) / error)))


def _undefined(n: int) -> Association:
    return Association(np.nan, np.full(n, np.nan))


def _varies(values: Floats) -> bool:
    return len(values) > 1 and bool(values.min() < values.max())


def _dense_ranks(values: Floats) -> Integers:
    return np.unique(values, return_inverse=True)[1].astype(np.int64)


def _share_that_differs(ranks: Integers) -> Floats:
    n = len(ranks)
    return (n - np.bincount(ranks)[ranks]) / (n - 1)


def _net_concordance(x: Integers, y: Integers) -> Floats:
    """Return each instance's concordant minus discordant pairs."""
    net = np.zeros(len(x), dtype=np.int64)
    order = np.argsort(x, kind="stable")
    net_concordance(order, x, y, net)
    net_concordance(order[::-1].copy(), x.max() - x, y.max() - y, net)
    return net.astype(np.float64)


def _standardised(values: Floats) -> Floats:
    # Scores near 1e-300 have squares of 0: bring them to a common size first.
    values = values / np.abs(values).max()
    centred = values - values.mean()
    return centred / np.sqrt((centred**2).mean())
