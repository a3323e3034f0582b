"""`InputRanges`: detection of rows with numbers far outside the calibration data."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self, cast

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.compose import ColumnTransformer

from labelsure._runtime.limits import DECISION_BYTES, cut_rows
from labelsure._runtime.typing import (
    Estimator,
    Features,
    FeaturesLike,
    Floats,
    Indices,
    Mask,
)
from labelsure.classifiers._inner_models import first_step, innermost
from labelsure.classifiers._precomputed import PrecomputedProbabilities
from labelsure.distributions._probabilities import make_generator
from labelsure.labelsets.foreign import as_table, count_rows, take_rows
from labelsure.saving import CompactState

if TYPE_CHECKING:
    import pandas as pd

TAIL = 0.005
"""Share of rows left out at each end of a column's range."""

REFERRED = 0.005
"""Share of rows of `fit` that may lie outside. `benchmarks.input_ranges`: nine sets, at most 0.5%
outside of q=.005; a limit of 1.5 times as much finds up to .15 less of columns times ten."""

LEAST_LIMIT = 0.5
"""Smallest limit, in lengths of a column's range."""

N_FOLDS = 5
MAX_ROWS, MAX_CELLS = 10_000, 2**23
"""Largest numbers of rows and of cells that ranges are computed from."""


@dataclass(frozen=True)
class InputRanges(CompactState):
    """Ranges of numeric columns, and how far outside of one a row may lie.

    The deviation of a number is its distance from the range of its column, [q, 1 - q] quantiles,
    relative to the length of that range; the deviation of a row is the largest of its numbers. The
    limit is a quantile of deviations from ranges of other rows, by folds.

    Parameters
    ----------
    names
        Columns that are compared; None for all columns of an array.
    low, high, scale
        (d,) ends of the range of each column, and its length.
    limit
        Largest deviation of a row within.
    """

    names: list[str] | None
    low: Floats
    high: Floats
    scale: Floats
    limit: float

    @classmethod
    def fit(
        cls, X: FeaturesLike, rows: Indices, estimator: Estimator, seed: int | None
    ) -> Self | None:
        """Ranges of the rows at some positions; None where X has no numeric columns."""
        takes_numbers, names = _choose_columns(X, estimator)
        drawn = make_generator(seed).permutation(rows)[:MAX_ROWS]
        values = _read_numbers(take_rows(X, drawn), names) if takes_numbers else None
        if values is None or 0 in values.shape:
            return None
        values = values[: max(MAX_CELLS // values.shape[1], N_FOLDS)]
        n_rows = values.shape[0]
        deviations, folds = np.zeros(n_rows), np.arange(n_rows) % N_FOLDS
        for fold in range(N_FOLDS if n_rows >= N_FOLDS else 0):
            is_own = folds == fold
            others = cls(names, *_quantile_ranges(values[~is_own]), math.inf)
            deviations[is_own] = others._deviate(values[is_own])[0]
        rank = min(math.ceil((n_rows + 1) * (1 - REFERRED)), n_rows)
        limit = max(float(np.sort(deviations)[rank - 1]), LEAST_LIMIT)
        return cls(names, *_quantile_ranges(values), limit)

    def find_outside(
        self, X: FeaturesLike, column_names: list[str] | None = None
    ) -> NDArray[np.object_]:
        """Name of the column by which each row is outside, (n,); None for rows within."""
        if count_rows(X) == 0:
            return np.empty(0, dtype=object)
        values = _read_numbers(X, self.names)
        assert values is not None  # the model has read X
        candidates = np.flatnonzero(self._may_be_outside(values))
        deviations, columns = self._deviate(values[candidates])
        names = self.names or column_names
        outside = np.full(values.shape[0], None, dtype=object)
        is_outside = deviations > self.limit
        for row, column in zip(candidates[is_outside], columns[is_outside], strict=True):
            outside[row] = f"column {column}" if names is None else names[column]
        return outside

    def _may_be_outside(self, values: Features) -> Mask:
        """Mask of a superset of the rows outside, (n,): limits are reduced by one rounding step."""
        margin = self.limit * self.scale
        low = np.nextafter(self.low - margin, np.inf)
        high = np.nextafter(self.high + margin, -np.inf)
        is_outside = np.zeros(values.shape[0], dtype=bool)
        for rows in cut_rows(values.shape[0], 8 * values.shape[1], DECISION_BYTES):
            block = values[rows]
            block = block.toarray() if sparse.issparse(block) else block
            is_outside[rows] = ((block < low) | (block > high)).any(axis=1)
        return is_outside

    def _deviate(self, values: Features) -> tuple[Floats, NDArray[np.intp]]:
        """Largest deviation of each row, (n,), and its column, (n,); 0 for missing numbers."""
        n_rows, n_columns = values.shape
        largest, columns = np.zeros(n_rows), np.zeros(n_rows, dtype=np.intp)
        for rows in cut_rows(n_rows, 8 * n_columns, DECISION_BYTES):
            block = values[rows]
            block = block.toarray() if sparse.issparse(block) else block
            deviations = np.fmax(np.maximum(self.low - block, block - self.high), 0.0) / self.scale
            columns[rows] = deviations.argmax(axis=1)
            largest[rows] = deviations.max(axis=1)
        return largest, columns


def _choose_columns(X: FeaturesLike, estimator: Estimator) -> tuple[bool, list[str] | None]:
    """Whether X has numbers to compare, and the names of their columns; None for all.

    Columns that the model drops, such as identifiers, are not compared.
    """
    first, table = first_step(estimator), as_table(X)
    if isinstance(innermost(estimator), PrecomputedProbabilities):
        return False, None
    if hasattr(first, "describe_columns"):
        names = [role["name"] for role in first.describe_columns() if role["role"] == "number"]
        return bool(names), names
    if not hasattr(table, "select_dtypes"):
        return True, None
    names = list(table.select_dtypes("number").columns)
    if isinstance(first, ColumnTransformer):
        steps = [step for step in first.transformers_ if step[1] != "drop"]
        lists = [list(columns) for *_, columns in steps if isinstance(columns, (list, np.ndarray))]
        kept = [name for columns in lists for name in columns]
        names = [name for name in names if name in kept]
    return bool(names), names


def _read_numbers(X: FeaturesLike, names: list[str] | None) -> Features:
    """Numeric columns, (n, d); None if X has none."""
    if sparse.issparse(X):
        return sparse.csr_array(X)
    table = as_table(X)
    if names is not None:
        frame: pd.DataFrame = table[names]
        try:
            return cast(Floats, frame.to_numpy(np.float64, na_value=np.nan))
        except (TypeError, ValueError):  # texts, which a pipeline may read itself
            import pandas as pd

            numbers = frame.apply(pd.to_numeric, errors="coerce")
            return cast(Floats, numbers.to_numpy(np.float64, na_value=np.nan))
    values = np.asarray(table)
    is_numeric = values.ndim == 2 and values.dtype.kind in "iuf"
    return values.astype(np.float64, copy=False) if is_numeric else None


def _quantile_ranges(values: Features) -> tuple[Floats, Floats, Floats]:
    """Lower and upper quantile of each column, and their distance, (d,) each.

    The length of a column with equal quantiles is max - min; of a constant column, the median
    length of the others.
    """
    n_rows = values.shape[0]
    skipped = int(TAIL * (n_rows - 1))
    ranks = [0, skipped, n_rows - 1 - skipped, n_rows - 1]
    statistics = _sparse_order_statistics if sparse.issparse(values) else _order_statistics
    first, low, high, last = statistics(values, ranks)
    scale = np.where(high > low, high - low, last - first)
    typical = float(np.median(scale[scale > 0])) if (scale > 0).any() else 1.0
    return low, high, np.where(scale > 0, scale, typical)


def _order_statistics(values: Features, ranks: list[int]) -> Floats:
    """Order statistics of each column, (ranks, d); quantiles where numbers are missing."""
    if np.isnan(values).any():
        shares = np.array(ranks) / max(len(values) - 1, 1)
        empty = np.isnan(values).all(axis=0)
        return cast(Floats, np.nanquantile(np.where(empty, 0.0, values), shares, axis=0))
    return cast(Floats, np.partition(values, ranks, axis=0)[ranks])


def _sparse_order_statistics(values: object, ranks: list[int]) -> Floats:
    """Order statistics of each sparse column, (ranks, d), with implicit zeros."""
    columns = sparse.csc_array(values)
    lengths = np.diff(columns.indptr)
    column = np.repeat(np.arange(columns.shape[1]), lengths)
    ranked = np.append(columns.data[np.lexsort((columns.data, column))], 0.0)
    n_negative = np.bincount(column, columns.data < 0, columns.shape[1]).astype(np.intp)
    n_zeros = columns.shape[0] - lengths
    statistics = []
    for rank in ranks:
        nonzero_rank = rank - n_zeros
        position = np.where(
            rank < n_negative, rank, np.where(nonzero_rank >= n_negative, nonzero_rank, -1)
        )
        statistics.append(
            np.where(position < 0, 0.0, ranked[columns.indptr[:-1] * (position >= 0) + position])
        )
    return np.array(statistics, dtype=np.float64)
