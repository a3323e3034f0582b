"""Cells of tables that hold what a row of a sparse matrix lists: columns by number, with values.

Files of such rows are cut, read and joined as all others; only what uses the rows stacks them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array, get_index_dtype

from labelsure._runtime.typing import Floats, Integers

__all__ = ["ListedCell", "stack_cells"]


@dataclass(frozen=True, eq=False)
class ListedCell:
    """What one row lists.

    Parameters
    ----------
    columns
        The numbers of the columns, rising.
    values
        One for each of these.
    n_columns
        How many columns there are in all.

    Examples
    --------
    >>> ListedCell(np.array([3, 7]), np.array([0.5, 1.0]), 100).tolist()
    {'columns': [3, 7], 'values': [0.5, 1.0]}
    """

    columns: Integers
    values: Floats
    n_columns: int

    def tolist(self) -> dict[str, list[Any]]:
        """Return it as plain values, as NumPy calls it."""
        return {"columns": self.columns.tolist(), "values": self.values.tolist()}


def stack_cells(cells: Sequence[ListedCell], n_columns: int) -> Any:
    """Return rows as one CSR array of floats.

    Parameters
    ----------
    cells
        The rows.
    n_columns
        Of the array.

    Examples
    --------
    >>> nothing = np.empty(0, dtype=int)
    >>> cells = [ListedCell(np.array([2]), np.array([0.5]), 4), ListedCell(nothing, nothing, 4)]
    >>> stack_cells(cells, 4).toarray()
    array([[0. , 0. , 0.5, 0. ],
           [0. , 0. , 0. , 0. ]])
    """
    starts = np.concatenate([[0], np.cumsum([len(cell.columns) for cell in cells], dtype=np.int64)])
    columns = [cell.columns for cell in cells] or [np.empty(0, np.int64)]
    values = [cell.values for cell in cells] or [np.empty(0)]
    integers = get_index_dtype(maxval=max(n_columns, int(starts[-1])))
    parts = (
        np.concatenate(values).astype(np.float64),
        np.concatenate(columns).astype(integers),
        starts.astype(integers),
    )
    return csr_array(parts, shape=(len(cells), n_columns))
