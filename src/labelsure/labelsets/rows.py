"""Rows of labelsets, in both of their forms: checked, counted, compared; the names of their labels.

Labelsets are an (n, L) array of zeros and ones. Where there are very many labels, of which each
instance has few, they are a `scipy.sparse.csr_array` of ones: indices in order, none twice, no
zeros kept (`sparse_rows`). The questions here have an answer for both, so that nobody else has to
tell them apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, issparse, vstack

from labelsure._runtime.typing import Integers, LabelNames, Labelsets, Mask
from labelsure.errors import InputError
from labelsure.labelsets.sparse import key_sparse_rows, make_sparse

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "MAX_INTEGER_LABELS",
    "MAX_WRITTEN_NAMES",
    "abbreviate_names",
    "as_table",
    "check_label_names",
    "check_labelsets",
    "check_shape",
    "code_keys",
    "codes_of",
    "count_axes",
    "count_labels",
    "count_rows",
    "count_shared",
    "differing_rows",
    "from_codes",
    "index_of",
    "is_sparse",
    "names_in",
    "no_labels",
    "read_numbers",
    "read_zeros_and_ones",
    "refuse_masked",
    "refuse_other_labels",
    "row_keys",
    "show_names",
    "stack_rows",
    "take_rows",
]

MAX_INTEGER_LABELS = 63
"""Up to this many labels a code is an int64; beyond, a row of packed bytes."""

MAX_WRITTEN_NAMES = 10_000
"""More labels than this are shown by the first and the last, and have one entry of classes."""


def count_rows(values: Any) -> int:
    """Return the number of instances of an array, table, sparse matrix or list."""
    if hasattr(values, "__len__") and not hasattr(values, "shape"):
        return len(values)
    table = values if hasattr(values, "shape") else np.asarray(values)
    return int(table.shape[0])


def take_rows(values: Any, rows: Any) -> Any:
    """Return instances by position, in the form that they have.

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


def check_label_names(label_names: Iterable[Any] | None, n_labels: int) -> LabelNames:
    """Return `n_labels` distinct names as strings; None where labels have no names.

    Examples
    --------
    >>> check_label_names(["cat", 7], 2)
    ('cat', '7')
    """
    if label_names is None:
        return None
    if isinstance(label_names, str):
        raise InputError(
            f"`label_names` must be a sequence of names, got the single string {label_names!r}. "
            "Split it, e.g. `label_names.split(',')`."
        )
    if not isinstance(label_names, Iterable):
        raise InputError(
            f"`label_names` must be a sequence of names, got {label_names!r}. "
            "Pass one name for each label, or None."
        )
    names = tuple(str(name) for name in label_names)
    if len(names) != n_labels:
        raise InputError(
            f"`label_names` must have one name for each of the {n_labels} labels, "
            f"got {len(names)}. Name every label, in the order of the columns."
        )
    if len(set(names)) < n_labels:
        seen: set[str] = set()
        twice = next(name for name in names if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise InputError(
            f"`label_names` must be distinct, got {twice!r} twice. Rename one of them."
        )
    return names


def show_names(label_names: Sequence[str] | None, labels: int | Iterable[int]) -> list[str]:
    """Return the names of the first labels, or of given ones; y0, y1, ... where there are none.

    Examples
    --------
    >>> show_names(("cat", "dog"), [1]), show_names(None, 3)
    (['dog'], ['y0', 'y1', 'y2'])
    """
    places = range(labels) if isinstance(labels, int) else labels
    return [f"y{j}" if label_names is None else label_names[j] for j in places]


def abbreviate_names(label_names: Sequence[str] | None, n_labels: int) -> list[str]:
    """Return all names; of very many labels the first and the last.

    Examples
    --------
    >>> abbreviate_names(("cat", "dog"), 2), abbreviate_names(None, 1_000_000)
    (['cat', 'dog'], ['y0', '...', 'y999999'])
    """
    if n_labels <= MAX_WRITTEN_NAMES:
        return show_names(label_names, n_labels)
    first, last = show_names(label_names, [0, n_labels - 1])
    return [first, "...", last]


def refuse_other_labels(
    label_names: LabelNames, n_labels: int, known: LabelNames, n_known: int, beside: str
) -> None:
    """Refuse a distribution with another number of labels, or other names where both have some."""
    if n_labels != n_known:
        raise InputError(f"`dist` must have the {n_known} labels of {beside}, got {n_labels}.")
    if label_names is None or known is None or label_names == known:
        return
    place = next(j for j, name in enumerate(known) if label_names[j] != name)
    raise InputError(
        f"`dist` must have the labels of {beside}, in their order, got {label_names[place]!r} "
        f"instead of {known[place]!r} in column {place}. Put its columns in that order."
    )


def check_labelsets(
    Y: Any,
    *,
    name: str = "Y",
    n_samples: int | None = None,
    n_labels: int | None = None,
) -> Labelsets:
    """Return `Y` as an (n, L) int8 array of zeros and ones, or say what is wrong with it.

    Parameters
    ----------
    Y
        Array-like, DataFrame or scipy sparse matrix of zeros and ones (or booleans).
    name
        What the caller calls it, for the messages.
    n_samples, n_labels
        The shape that it must have, where that is known.

    Examples
    --------
    >>> check_labelsets([[True, False], [False, False]])
    array([[1, 0],
           [0, 0]], dtype=int8)
    """
    array = read_numbers(Y, name)
    check_shape(array.shape, name, n_samples, n_labels)
    return read_zeros_and_ones(array, name)


def check_shape(
    shape: tuple[int, ...], name: str, n_samples: int | None, n_labels: int | None
) -> None:
    """Refuse labelsets of another shape than (n, L), or than is asked for."""
    if len(shape) != 2 or shape[1] == 0:
        raise InputError(
            f"`{name}` must have shape (n_samples, n_labels) with at least one label, got shape "
            f"{shape}. A single labelset is one row: `[{name}]`."
        )
    if n_labels is not None and shape[1] != n_labels:
        raise InputError(
            f"`{name}` must have {n_labels} labels (columns), got {shape[1]}. "
            "Pass the columns that the distribution was made for, in the same order."
        )
    if n_samples is not None and shape[0] != n_samples:
        raise InputError(
            f"`{name}` must have {n_samples} rows, got {shape[0]}. "
            "Pass one labelset for each instance."
        )


def read_numbers(Y: Any, name: str) -> NDArray[Any]:
    """Return numbers or booleans in any form as an array, or say what they are instead."""
    if hasattr(Y, "toarray"):  # scipy sparse
        Y = Y.toarray()
    refuse_masked(Y, name)
    try:
        array = np.asarray(Y)
    except ValueError as error:  # rows of different lengths
        raise InputError(
            f"`{name}` must be a rectangular array of zeros and ones, got rows of different "
            "lengths. For sets of label names use `labelsure.labelsets.from_names`."
        ) from error
    if array.dtype.kind not in "biuf" and not (array.dtype == object and _all_numbers(array)):
        raise InputError(
            f"`{name}` must be a numeric or boolean array, got dtype {array.dtype}. For sets of "
            "label names use `labelsure.labelsets.from_names`."
        )
    return array


def read_zeros_and_ones(array: NDArray[Any], name: str) -> Labelsets:
    """Return an array of int8 of zeros and ones, or say where there is something else."""
    # A cast could make 0.5 a 0 and 256 a 0, so the values are compared before it.
    ones = array == 1
    bad = ~(ones | (array == 0))
    if bad.any():
        at = tuple(np.argwhere(bad)[0])
        axes = ("row", "column") if array.ndim == 2 else ("row", "guess", "column")
        where = ", ".join(f"{axis} {i}" for axis, i in zip(axes, at, strict=True))
        raise not_zero_or_one(array[at], name, where)
    return ones.astype(np.int8)


def not_zero_or_one(value: Any, name: str, where: str) -> InputError:
    """Return the error for a value that says neither that a label is present nor that it is not."""
    if value != value:
        fix = (
            "A missing label is not an absent one: fill it in, or drop that row from everything "
            "that goes with it."
        )
    elif 0 < value < 1:
        fix = (
            "This looks like probabilities, which belong into a distribution "
            f"(`as_distribution`): pass labels of 0 and 1 as `{name}`."
        )
    else:
        fix = "Write 1 for a label that is present and 0 for one that is not."
    return InputError(f"`{name}` must contain only 0 and 1, got {value} in {where}. {fix}")


def _all_numbers(array: NDArray[Any]) -> bool:
    return all(isinstance(value, (bool, int, float, np.number, np.bool_)) for value in array.flat)


def refuse_masked(values: Any, name: str) -> None:
    """Refuse a masked array, or a list of them, of which something is masked.

    NumPy forgets the mask when such an array becomes a plain one.
    """
    for part in values if isinstance(values, (list, tuple)) else [values]:
        if isinstance(part, np.ma.MaskedArray) and np.ma.is_masked(part):
            raise InputError(
                f"`{name}` must be known everywhere, got a masked array of which "
                f"{np.ma.getmaskarray(part).sum()} values are masked. Fill them in with "
                "`.filled(...)`, or drop their rows."
            )


def count_axes(values: Any) -> int:
    """Return how many axes an array has, 2 for lists of different lengths."""
    try:
        return np.ndim(values)
    except ValueError:
        return 2


def as_table(source: Any) -> Any:
    """Return a table of another library as a DataFrame or a Series; anything else as it is.

    Polars, PyArrow, DuckDB and others hand out their columns by the Arrow PyCapsule interface.
    """
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


def names_in(Y: Any) -> list[str] | None:
    """Return the column names of a table, None for anything else."""
    columns = getattr(Y, "column_names", getattr(Y, "columns", None))  # PyArrow's, all others'
    return None if columns is None else [str(column) for column in columns]


def index_of(source: Any) -> pd.Index | None:
    """Return the index of a DataFrame or Series, None for anything else."""
    index: pd.Index | None = getattr(source, "index", None)
    return index if hasattr(index, "get_indexer") else None  # a list has a method of this name


def is_sparse(Y: Any) -> bool:
    """Whether labelsets are rows of a scipy sparse array or matrix."""
    return bool(issparse(Y))


def count_labels(Y: Labelsets) -> Integers:
    """Return how many labels each labelset has, (n,).

    Examples
    --------
    >>> count_labels(np.array([[1, 0, 1], [0, 0, 0]], dtype=np.int8))
    array([2, 0])
    """
    if is_sparse(Y):
        return np.diff(Y.indptr).astype(np.int64)  # type: ignore[attr-defined]
    return Y.sum(axis=1, dtype=np.int64)


def count_shared(first: Labelsets, second: Labelsets) -> Integers:
    """Return how many labels two labelsets have in common, row by row, (n,).

    Examples
    --------
    >>> some, others = (np.array(rows, dtype=np.int8) for rows in ([[1, 1, 0]], [[1, 0, 1]]))
    >>> count_shared(some, others)
    array([1])
    """
    if not is_sparse(first) and not is_sparse(second):
        return (first & second).sum(axis=1)
    shared = make_sparse(first).multiply(make_sparse(second))  # type: ignore[attr-defined]
    return count_labels(csr_array(shared))


def differing_rows(first: Labelsets, second: Labelsets) -> Mask:
    """Say of each row whether two labelsets differ, (n,)."""
    if not is_sparse(first) and not is_sparse(second):
        return (first != second).any(axis=1)
    shared = count_shared(first, second)
    return (shared != count_labels(first)) | (shared != count_labels(second))


def no_labels(Y: Labelsets) -> Labelsets:
    """Return as many empty labelsets as there are rows, in the same form."""
    if is_sparse(Y):
        return csr_array(Y.shape, dtype=np.int8)
    return np.zeros_like(Y)


def stack_rows(parts: Sequence[Labelsets]) -> Labelsets:
    """Put the rows of several labelsets below each other, sparse if one of them is."""
    if not any(is_sparse(part) for part in parts):
        return np.concatenate(parts)
    return make_sparse(vstack([make_sparse(part) for part in parts], format="csr"))


def row_keys(Y: Labelsets) -> NDArray[Any]:
    """Return one key for each row that sorts and compares like its code, in either form."""
    return key_sparse_rows(Y) if is_sparse(Y) else code_keys(Y)


def codes_of(rows: Labelsets) -> NDArray[Any]:
    """Return the same for rows that are known to be labelsets, which are not checked again."""
    if rows.shape[1] > MAX_INTEGER_LABELS:
        return np.packbits(rows.view(np.uint8), axis=1, bitorder="little")
    return rows.astype(np.int64) @ (np.int64(1) << np.arange(rows.shape[1], dtype=np.int64))


def from_codes(codes: ArrayLike, n_labels: int) -> Labelsets:
    """Return the labelsets of `codes` as an (n, L) array: the inverse of `to_codes`.

    Examples
    --------
    >>> from_codes([1, 6], n_labels=3)
    array([[1, 0, 0],
           [0, 1, 1]], dtype=int8)
    """
    if n_labels < 1:
        raise InputError(f"`n_labels` must be at least 1, got {n_labels}.")
    array = np.asarray(codes)
    if array.dtype.kind not in "iu" and array.size:
        raise InputError(f"`codes` must be integers, got dtype {array.dtype}. Use `to_codes`.")
    if n_labels > MAX_INTEGER_LABELS:
        return _from_packed(array, n_labels)
    if array.ndim != 1:
        raise InputError(
            f"`codes` of {n_labels} labels must be a vector of integers, got shape {array.shape}. "
            f"Packed rows are for more than {MAX_INTEGER_LABELS} labels."
        )
    array = array.astype(np.int64)
    out_of_range = (array < 0) | (array >= 1 << n_labels)
    if out_of_range.any():
        raise InputError(
            f"`codes` of {n_labels} labels must lie in [0, {1 << n_labels}), "
            f"got {array[out_of_range][0]}. Check the number of labels."
        )
    return ((array[:, np.newaxis] >> np.arange(n_labels)) & 1).astype(np.int8)


def _from_packed(array: NDArray[Any], n_labels: int) -> Labelsets:
    width = -(-n_labels // 8)
    if array.ndim != 2 or array.shape[1] != width:
        raise InputError(
            f"`codes` of {n_labels} labels must be packed rows of {width} bytes, got shape "
            f"{array.shape}. Make them with `to_codes`."
        )
    bits = np.unpackbits(array.astype(np.uint8), axis=1, bitorder="little")
    if (array != array.astype(np.uint8)).any() or bits[:, n_labels:].any():
        raise InputError(
            f"`codes` of {n_labels} labels must be bytes, from 0 to 255, that set no bit beyond "
            "the last label. Make them with `to_codes`, and check the number of labels."
        )
    return np.ascontiguousarray(bits[:, :n_labels]).view(np.int8)


def code_keys(Y: Labelsets) -> NDArray[Any]:
    """Return one key for each row that sorts and compares like its code, at any L."""
    if Y.shape[1] <= MAX_INTEGER_LABELS:
        return codes_of(Y)
    highest_first = np.ascontiguousarray(codes_of(Y)[:, ::-1])
    return highest_first.view(f"S{highest_first.shape[1]}").ravel()
