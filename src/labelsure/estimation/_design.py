"""Both sides of a ridge regression: its columns, and the response that they explain.

Columns are kept as dense blocks of rows that share a slope group. With slopes by group most
columns are zero in most rows: a row of one data set touches only that data set's slopes and
offset. Blocks of the columns that are not zero make a Newton step some twenty times cheaper than
one dense matrix would.

Every response is a count for each of several classes, whose rates sum to one, and every accuracy
is a quotient of two sums of rates. `docs/algorithms.md`, section 9.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from labelsure._runtime.typing import Floats, Indices
from labelsure.errors import InputError, unknown_name
from labelsure.metrics.registry import EXACT, F1, HAMMING, JACCARD, Counts, Metric

BLOCK_ROWS = 2**12  # so that a block with all folds fits a core's cache


@dataclass(frozen=True)
class Inputs:
    """What a model predicts from.

    Parameters
    ----------
    features
        (n, number of features)
    slope, offset
        (n,) numbers of each instance's groups, 0 where there are none.
    """

    features: Floats
    slope: Indices
    offset: Indices

    def __len__(self) -> int:
        return len(self.features)


@dataclass(frozen=True)
class Layout:
    """Where each coefficient is: slopes by group, offsets of these groups, offsets, intercept.

    Parameters
    ----------
    n_features
        Slopes of each slope group.
    n_slope_groups, n_offset_groups
        0 where there are no groups: one slope for each feature, no offsets.
    """

    n_features: int
    n_slope_groups: int
    n_offset_groups: int

    @property
    def n_columns(self) -> int:
        """All coefficients; the last is the intercept, the only one without a penalty."""
        n_slopes = self.n_features * max(1, self.n_slope_groups)
        return n_slopes + self.n_slope_groups + self.n_offset_groups + 1

    def columns(self, slope_group: int) -> Indices:
        """Return the columns that are not zero in the rows of a slope group."""
        first = slope_group * self.n_features
        slopes = np.arange(first, first + self.n_features)
        n_slopes = self.n_features * max(1, self.n_slope_groups)
        own_offset = [n_slopes + slope_group] if self.n_slope_groups else []
        rest = np.arange(n_slopes + self.n_slope_groups, self.n_columns)
        return np.concatenate([slopes, own_offset, rest]).astype(np.intp)

    def penalised(self) -> Floats:
        """Return 1 for each column that the penalty holds back, 0 for the intercept."""
        return np.append(np.ones(self.n_columns - 1), 0.0)


@dataclass(frozen=True)
class Block:
    """Some rows and the columns that are not zero in them.

    Parameters
    ----------
    rows
        Indices of the instances, or a slice.
    columns
        (c,) indices of the coefficients.
    values
        (number of rows, c)
    """

    rows: Indices | slice
    columns: Indices
    values: Floats


def make_blocks(
    features: Floats, slope: Indices, offset: Indices, layout: Layout
) -> Iterator[Block]:
    """Yield all rows, at most `BLOCK_ROWS` at a time, each block of one slope group."""
    for group in range(max(1, layout.n_slope_groups)):
        columns = layout.columns(group)
        if layout.n_slope_groups:
            members = np.flatnonzero(slope == group)
        for first in range(0, len(members) if layout.n_slope_groups else len(slope), BLOCK_ROWS):
            rows = slice(first, min(first + BLOCK_ROWS, len(slope)))
            chosen = members[first : first + BLOCK_ROWS] if layout.n_slope_groups else rows
            values = _local_values(features[chosen], offset[chosen], columns.size, layout)
            yield Block(chosen, columns, values)


def _local_values(features: Floats, offset: Indices, n_columns: int, layout: Layout) -> Floats:
    # Column after column: what multiplies all columns of a row then runs along the rows.
    values = np.zeros((len(features), n_columns), order="F")
    values[:, : layout.n_features] = features
    if layout.n_slope_groups:
        values[:, layout.n_features] = 1.0
    if layout.n_offset_groups:
        first = n_columns - 1 - layout.n_offset_groups
        values[np.arange(len(features)), first + offset] = 1.0
    values[:, -1] = 1.0
    return values


def column_scales(design: list[Block], weights: Floats, layout: Layout) -> Floats:
    """Return each column's weighted standard deviation, infinite for a constant one.

    A column divided by infinity is zero, and so is its coefficient. Columns are not centred: with
    a free intercept that would change nothing but the intercept, and the zeros would be lost.
    """
    total = weights.sum()
    mean, square = np.zeros(layout.n_columns), np.zeros(layout.n_columns)
    for block in design:
        mean[block.columns] += weights[block.rows] @ block.values / total
        square[block.columns] += weights[block.rows] @ block.values**2 / total
    variance = square - mean**2
    scales = np.full(layout.n_columns, np.inf)
    varies = variance > 1e-14 * square
    scales[varies] = np.sqrt(variance[varies])
    scales[-1] = 1.0
    return scales


def scale_columns(design: list[Block], scales: Floats) -> list[Block]:
    """Return the blocks with every column divided by its scale."""
    return [Block(b.rows, b.columns, b.values / scales[b.columns]) for b in design]


@dataclass(frozen=True)
class Part:
    """What several fits see of one block of rows.

    Parameters
    ----------
    block
        The rows and their columns.
    targets
        (K, rows, 1) counts of each class.
    totals
        (rows, 1) the sums over classes.
    used
        (rows, fits) 1 for the rows that a fit sees, 0 for the others.
    """

    block: Block
    targets: Floats
    totals: Floats
    used: Floats


def make_parts(design: list[Block], targets: Floats, used: Floats) -> list[Part]:
    """Return the blocks with what belongs to their rows.

    Parameters
    ----------
    design
        Blocks of columns.
    targets
        (n, K) counts of each class.
    used
        (n, fits) 1 for the rows that a fit sees, 0 for the others.
    """
    parts = []
    for block in design:
        of_rows = targets[block.rows]
        by_class = np.ascontiguousarray(of_rows.T)[:, :, np.newaxis]
        totals = of_rows.sum(axis=1, keepdims=True)
        parts.append(Part(block, by_class, totals, np.ascontiguousarray(used[block.rows])))
    return parts


def linear_predictors(block: Block, coefficients: Floats) -> Floats:
    """Return the linear predictors, (n_free, rows, fits)."""
    local = np.ascontiguousarray(coefficients[:, :, block.columns].transpose(1, 2, 0))
    return block.values @ local


def class_rates(block: Block, coefficients: Floats) -> Floats:
    """Return the rates of the classes that have a linear predictor, (n_free, rows, fits)."""
    rates = linear_predictors(block, coefficients)
    if len(rates) == 1:  # 1 / (1 + exp(-x)), without an overflow and faster
        rates *= 0.5
        np.tanh(rates, out=rates)
        rates += 1.0
        rates *= 0.5
        return rates
    rates -= rates.max(axis=0)
    np.exp(rates, out=rates)
    rates /= rates.sum(axis=0)
    return rates


def log_rates(block: Block, coefficients: Floats, n_classes: int) -> Floats:
    """Return the log of each class's rate, (K, rows, fits), of several fits' coefficients."""
    n_fits, n_free, _ = coefficients.shape
    logs = np.zeros((n_classes, len(block.values), n_fits))
    for k in range(n_free):
        np.matmul(block.values, coefficients[:, k, block.columns].T, out=logs[k])
    logs -= logs.max(axis=0)
    logs -= np.log(np.exp(logs).sum(axis=0))
    return logs


@dataclass(frozen=True)
class Response:
    """A response with K classes and the accuracy that follows from their rates.

    Parameters
    ----------
    name
        What the fitted model remembers.
    targets
        Takes the four counts and the (n,) accuracies, returns (n, K) counts, which may be
        fractions.
    numerator, denominator
        The accuracy is (numerator @ rates) / (denominator @ rates).
    n_free
        How many classes have a linear predictor of their own; that of the others is 0.
    """

    name: str
    targets: Callable[[Counts, Floats], Floats]
    numerator: tuple[float, ...]
    denominator: tuple[float, ...]
    n_free: int

    @property
    def n_classes(self) -> int:
        """The number of classes, K."""
        return len(self.numerator)

    def accuracy(self, rates: Floats) -> Floats:
        """Return the accuracy that (n, K) rates amount to."""
        return (rates @ self.numerator) / (rates @ self.denominator)

    def slopes(self, rates: Floats) -> Floats:
        """Return (n, n_free) derivatives of the accuracy by each linear predictor."""
        below = (rates @ self.denominator)[:, np.newaxis]
        value = self.accuracy(rates)[:, np.newaxis]
        by_class = rates * (np.array(self.numerator) - value * np.array(self.denominator)) / below
        return by_class[:, : self.n_free]


def _shares(counts: Counts, values: Floats) -> Floats:
    return np.column_stack([values, 1 - values])


def _labels(counts: Counts, values: Floats) -> Floats:
    tp, fp, fn, tn = counts
    return np.column_stack([tp + tn, fp + fn]).astype(np.float64)


def _four_counts(counts: Counts, values: Floats) -> Floats:
    return np.column_stack(counts).astype(np.float64)


FRACTIONAL = Response("fractional", _shares, (1, 0), (1, 1), n_free=1)
BINOMIAL = Response("binomial", _labels, (1, 0), (1, 1), n_free=1)
JACCARD_RATES = Response("jaccard rates", _four_counts, (1, 0, 0, 0), (1, 1, 1, 0), n_free=4)
F1_RATES = Response("f1 rates", _four_counts, (2, 0, 0, 0), (2, 1, 1, 0), n_free=4)

RESPONSES = {r.name: r for r in (FRACTIONAL, BINOMIAL, JACCARD_RATES, F1_RATES)}

_BY_RATES = {EXACT: FRACTIONAL, HAMMING: BINOMIAL, JACCARD: JACCARD_RATES, F1: F1_RATES}
_BY_VALUE = {HAMMING: BINOMIAL}
RESPONSE_KINDS = ("value", "rates")
RATE_METRICS = tuple(metric.name for metric in _BY_RATES)
"""The metrics that can be modelled by rates."""


def choose_response(metric: Metric, kind: str) -> Response:
    """Return how a metric is modelled.

    Parameters
    ----------
    metric
        The accuracy.
    kind
        "value": by its realised value, which for Hamming is a count of labels. "rates": by the
        rates that it is a quotient of, as the paper does.
    """
    if kind not in RESPONSE_KINDS:
        raise unknown_name("response", kind, RESPONSE_KINDS)
    if kind == "value":
        return _BY_VALUE.get(metric, FRACTIONAL)
    if metric not in _BY_RATES:
        raise InputError(
            "`response='rates'` needs a metric that is a quotient of rates, one of "
            f"{', '.join(RATE_METRICS)}, got {metric.name!r}. Use "
            "response='value'."
        )
    return _BY_RATES[metric]


AS_PAPER = "paper"


def check_penalty(penalty: Any) -> float | None:
    """Return the penalty of the ridge, None where it is to be chosen, or refuse it."""
    if penalty is None or (isinstance(penalty, str) and penalty == AS_PAPER):
        return None
    if not isinstance(penalty, (int, float, np.number)) or not penalty > 0:
        raise InputError(
            f"`penalty` must be a number greater than 0, None to choose it by cross-validation, "
            f"or {AS_PAPER!r} to choose it as the paper does, got {penalty!r}."
        )
    return float(penalty)


def check_values(values: Floats, metric: Metric) -> Floats:
    """Return accuracies that lie in [0, 1], as every model needs them, or say which do not."""
    outside = (values < 0) | (values > 1)
    if outside.any():
        raise InputError(
            f"The metric {metric.name!r} must have values in [0, 1] to be estimated, got "
            f"{values[outside][0]:g}. Rescale it."
        )
    return values
