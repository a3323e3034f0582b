"""Rows, columns and indices of arrays and tables of other libraries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from labelsure._runtime.typing import Labelsets, LabelsetsLike
from labelsure.errors import InputError
from labelsure.labelsets.sparse import is_sparse

if TYPE_CHECKING:
    import pandas as pd


def count_rows(values: object) -> int:
    """Number of instances of an array, table, sparse matrix or list."""
    if hasattr(values, "__len__") and not hasattr(values, "shape"):
        return len(values)
    table = values if hasattr(values, "shape") else np.asarray(values)
    return int(table.shape[0])


def take_rows(values: Any, rows: Any) -> Any:
    """Instances by position, in the type of the input.

    Examples
    --------
    >>> take_rows(["a", "b", "c"], [2, 0])
    ['c', 'a']
    """
    if hasattr(values, "iloc"):
        return values.iloc[rows]
    if type(values).__module__.startswith("pyarrow"):
        return values.take(rows)
    if hasattr(values, "shape"):
        return values[rows]
    return np.asarray(values)[rows] if hasattr(values, "__array__") else [values[i] for i in rows]


def count_axes(values: Any) -> int:
    """Number of axes of an array; 2 for lists of different lengths."""
    try:
        return np.ndim(values)
    except ValueError:
        return 2


def refuse_masked(values: object, name: str) -> None:
    """Raise InputError for a masked array, or a list of them, with a masked value.

    NumPy drops the mask when such an array becomes a plain one.
    """
    for part in values if isinstance(values, (list, tuple)) else [values]:
        if isinstance(part, np.ma.MaskedArray) and np.ma.is_masked(part):
            raise InputError(
                f"`{name}` must have no masked values, got {np.ma.getmaskarray(part).sum()}. Fill "
                "them with `.filled(...)`, or drop their rows."
            )


def refuse_dicts(Y: object, name: str) -> None:
    """Raise InputError for a dict of columns, or a list of dicts."""
    is_dict = isinstance(Y, Mapping) and not is_sparse(Y)  # a `dok_array` is one
    if is_dict or (isinstance(Y, (list, tuple)) and Y and isinstance(Y[0], Mapping)):
        got = "a dict" if is_dict else "a list of dicts"
        raise InputError(
            f"`{name}` must be an array, a table or lists of label names, got {got}. Make a table "
            f"of it: `pandas.DataFrame({name})`."
        )


class NamedArray(np.ndarray):
    """Zeros and ones that keep the names of their columns when rows are selected."""

    label_names: tuple[str, ...] | None = None

    def __getitem__(self, key: Any) -> Any:
        selected = super().__getitem__(key)
        axes = key[1:] if isinstance(key, tuple) else ()
        all_columns = all(
            part is Ellipsis or (isinstance(part, slice) and part == slice(None)) for part in axes
        )
        if all_columns and isinstance(selected, NamedArray) and selected.ndim == self.ndim:
            selected.label_names = self.label_names
        return selected

    def __repr__(self) -> str:
        return repr(np.asarray(self))


def name_columns(Y: Labelsets, label_names: tuple[str, ...] | None) -> Labelsets:
    """Array with the names of its columns; sparse labelsets are returned without names."""
    if is_sparse(Y):
        return Y
    named = np.asarray(Y).view(NamedArray)
    named.label_names = label_names
    return named


def as_table(source: Any) -> Any:
    """DataFrame or Series of a table of another library; anything else unchanged.

    Polars, PyArrow, DuckDB and others export their columns by the Arrow PyCapsule interface.
    """
    if isinstance(source, NamedArray) and source.label_names is not None:
        import pandas as pd

        return pd.DataFrame(np.asarray(source), columns=list(source.label_names))
    if not hasattr(source, "__arrow_c_stream__") or hasattr(source, "iloc"):
        return source
    import pandas as pd
    import pyarrow as pa

    def as_series(column: Any) -> Any:  # lists of names stay lists: pandas has no type for them
        nested = pa.types.is_nested(column.type)
        return pd.Series(column.to_pylist(), dtype=object) if nested else column.to_pandas()

    if names_in(source) is None:
        return as_series(pa.chunked_array(source)).rename(getattr(source, "name", None))
    table = pa.table(source)
    columns = {name: as_series(table[name]) for name in table.column_names}
    return pd.DataFrame(columns, range(len(table)))


def names_in(Y: LabelsetsLike) -> list[str] | None:
    """Column names of a table, None for anything else."""
    columns = getattr(Y, "column_names", getattr(Y, "columns", None))  # PyArrow's, all others'
    return None if columns is None else [str(column) for column in columns]


def index_of(source: object) -> pd.Index | None:
    """Index of a DataFrame or Series, None for anything else."""
    index: pd.Index | None = getattr(source, "index", None)
    return index if hasattr(index, "get_indexer") else None  # a list has a method of this name
