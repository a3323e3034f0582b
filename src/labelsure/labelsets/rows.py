"""Labelsets as rows: checked, counted, compared; as codes, as texts, and the names of their labels.

A labelset of L labels is a row of L zeros and ones, n of them an (n, L) array of int8. Where there
are very many labels, of which each instance has few, they are a `scipy.sparse.csr_array` of ones:
indices in order, none twice, no zeros kept. The questions here have an answer for both forms, so
that nobody else has to tell them apart. The *code* of a labelset has the same bits, label 0 being
the lowest: an integer up to 63 labels, a row of packed bytes beyond.
"""

from __future__ import annotations

import reprlib
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, issparse, vstack

from labelsure._runtime.typing import Indices, Integers, LabelNames, Labelsets, Mask
from labelsure.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

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
    is_list = isinstance(label_names, Iterable) and not isinstance(label_names, str)
    names = tuple(str(name) for name in label_names) if is_list else ()
    if len(names) == n_labels == len(set(names)):
        return names
    got = repr(label_names)
    if is_list:
        twice = [name for name, n_times in Counter(names).items() if n_times > 1]
        got = f"{len(names)} names" if len(names) != n_labels else f"{twice[0]!r} twice"
    raise InputError(
        f"`label_names` must be {n_labels} distinct names, one for each column, got {got}."
    )


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
        f"`dist` must have the labels of {beside} in their order, got {label_names[place]!r} "
        f"instead of {known[place]!r} in column {place}."
    )


def read_rows(
    Y: Any,
    name: str = "Y",
    *,
    n_samples: int | None = None,
    n_labels: int | None = None,
    sparse: bool | None = None,
) -> Labelsets:
    """Return (n, L) zeros and ones as an int8 array or as sparse rows, or say what is wrong.

    Examples
    --------
    >>> read_rows([[True, False], [False, False]])
    array([[1, 0],
           [0, 0]], dtype=int8)
    """
    if not is_sparse(Y) or sparse is False:
        array = _read_numbers(Y, name)
        check_shape(array.shape, name, n_samples, n_labels)
        rows = _read_zeros_and_ones(array, name, ("row", "column"))
        return make_sparse(rows) if sparse else rows
    check_shape(Y.shape, name, n_samples, n_labels)
    rows = Y.tocsr()
    if not rows.has_canonical_format:
        rows = rows.copy()  # what follows is done in place
        rows.sum_duplicates()
    ones = _read_numbers(rows.data, name) == 1
    bad = np.flatnonzero(~(ones | (rows.data == 0)))
    if bad.size:
        cells = rows.tocoo()
        row, column = cells.row[bad[0]], cells.col[bad[0]]
        raise _not_zero_or_one(rows.data[bad[0]], name, f"row {row}, column {column}")
    return make_sparse(rows)


def read_guesses(
    guesses: Any, name: str, n_samples: int, n_labels: int, *, sparse: bool = False
) -> Any:
    """Return several labelsets for each instance: (n, g, L) int8, or a list of g sparse rows.

    Examples
    --------
    >>> read_guesses([[[1, 0], [1, 1]]], "guesses", 1, 2).shape
    (1, 2, 2)
    """
    is_stacked = sparse and isinstance(guesses, StackedLabelsets)
    array = guesses if is_stacked else _read_numbers(guesses, name)
    if array.ndim != 3 or array.shape[1] == 0 or array.shape[::2] != (n_samples, n_labels):
        raise InputError(
            f"`{name}` must have shape ({n_samples}, n_guesses, {n_labels}) with at least one "
            f"guess, got shape {array.shape}."
        )
    if not is_stacked:
        array = _read_zeros_and_ones(array, name, ("row", "guess", "column"))
    return [make_sparse(array[:, g]) for g in range(array.shape[1])] if sparse else array


def check_shape(
    shape: tuple[int, ...], name: str, n_samples: int | None, n_labels: int | None
) -> None:
    """Refuse labelsets of another shape than (n, L), or than is asked for."""
    if len(shape) != 2 or shape[1] == 0:
        raise InputError(
            f"`{name}` must have shape (n_samples, n_labels) with at least one label, got shape "
            f"{shape}. A single labelset is one row: `[{name}]`."
        )
    wanted = (n_samples, "rows"), (n_labels, "labels (columns)")
    for (number, what), found in zip(wanted, shape, strict=True):
        if number is not None and found != number:
            raise InputError(f"`{name}` must have {number} {what}, got {found}.")


def _read_numbers(Y: Any, name: str) -> NDArray[Any]:
    """Return numbers or booleans in any form as an array, or say what they are instead."""
    if hasattr(Y, "toarray"):  # scipy sparse
        Y = Y.toarray()
    refuse_masked(Y, name)
    missing = np.asarray(Y.isna()) if hasattr(Y, "isna") else np.zeros(0, dtype=bool)
    if missing.any():
        row, *column = np.argwhere(missing)[0]
        label = Y.columns[column[0]] if column else Y.name
        raise _not_zero_or_one(np.nan, name, f"row {row} for {str(label)!r}")
    try:
        array = np.asarray(Y)
        found = f"dtype {array.dtype}"
    except ValueError:
        array, found = np.empty(0, dtype=object), "rows of different lengths"
    if array.dtype.kind in "biuf" or (array.dtype == object and array.size and _all_numbers(array)):
        return array
    raise InputError(
        f"`{name}` must be a rectangular array of zeros and ones, got {found}. Read label names by "
        "`labelsure.read_labelsets`."
    )


def _read_zeros_and_ones(array: NDArray[Any], name: str, axes: tuple[str, ...]) -> Labelsets:
    # A cast could make 0.5 a 0 and 256 a 0, so the values are compared before it.
    ones = array == 1
    bad = ~(ones | (array == 0))
    if bad.any():
        at = tuple(np.argwhere(bad)[0])
        where = ", ".join(f"{axis} {i}" for axis, i in zip(axes, at, strict=True))
        raise _not_zero_or_one(array[at], name, where)
    return ones.astype(np.int8)


def _not_zero_or_one(value: Any, name: str, where: str) -> InputError:
    """Return the error for a value that says neither that a label is present nor that it is not."""
    fix = "Write 1 for a label that is present and 0 for one that is not."
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
                f"`{name}` must have no masked values, got {np.ma.getmaskarray(part).sum()}. Fill "
                "them with `.filled(...)`, or drop their rows."
            )


def count_axes(values: Any) -> int:
    """Return how many axes an array has, 2 for lists of different lengths."""
    try:
        return np.ndim(values)
    except ValueError:
        return 2


class NamedArray(np.ndarray):
    """Zeros and ones that keep the names of their columns as long as only rows are taken."""

    label_names: tuple[str, ...] | None = None

    def __getitem__(self, key: Any) -> Any:
        some = super().__getitem__(key)
        others = key[1:] if isinstance(key, tuple) else ()
        all_columns = all(
            part is Ellipsis or (isinstance(part, slice) and part == slice(None)) for part in others
        )
        if all_columns and isinstance(some, NamedArray) and some.ndim == self.ndim:
            some.label_names = self.label_names
        return some

    def __repr__(self) -> str:
        return repr(np.asarray(self))


def name_columns(Y: Labelsets, label_names: tuple[str, ...] | None) -> Labelsets:
    """Return the array with the names of its columns; sparse labelsets have no place for them."""
    if is_sparse(Y):
        return Y
    named = np.asarray(Y).view(NamedArray)
    named.label_names = label_names
    return named


def as_table(source: Any) -> Any:
    """Return a table of another library as a DataFrame or a Series; anything else as it is.

    Polars, PyArrow, DuckDB and others hand out their columns by the Arrow PyCapsule interface.
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
    """Return the code of each row: (n,) int64 up to 63 labels, (n, ceil(L/8)) uint8 beyond.

    Examples
    --------
    >>> codes_of(np.array([[1, 0, 0], [0, 1, 1]], dtype=np.int8))
    array([1, 6])
    """
    if rows.shape[1] > MAX_INTEGER_LABELS:
        return np.packbits(rows.view(np.uint8), axis=1, bitorder="little")
    return rows.astype(np.int64) @ (np.int64(1) << np.arange(rows.shape[1], dtype=np.int64))


def from_codes(codes: ArrayLike, n_labels: int) -> Labelsets:
    """Return the labelsets of `codes` as an (n, L) array: the inverse of `codes_of`.

    Examples
    --------
    >>> from_codes([1, 6], n_labels=3)
    array([[1, 0, 0],
           [0, 1, 1]], dtype=int8)
    """
    array = np.asarray(codes)
    if n_labels > MAX_INTEGER_LABELS:
        bits = np.unpackbits(array, axis=1, bitorder="little")
        return np.ascontiguousarray(bits[:, :n_labels]).view(np.int8)
    array = array.astype(np.int64)
    return ((array[:, np.newaxis] >> np.arange(n_labels)) & 1).astype(np.int8)


def code_keys(Y: Labelsets) -> NDArray[Any]:
    """Return one key for each row that sorts and compares like its code, at any L."""
    if Y.shape[1] <= MAX_INTEGER_LABELS:
        return codes_of(Y)
    highest_first = np.ascontiguousarray(codes_of(Y)[:, ::-1])
    return highest_first.view(f"S{highest_first.shape[1]}").ravel()


def sparse_ones(indices: NDArray[Any], starts: NDArray[Any], n_labels: int) -> Labelsets:
    """Return sparse rows from the labels of all rows, in order, and where each row starts."""
    ones = np.ones(len(indices), dtype=np.int8)
    rows = csr_array((ones, indices, starts), shape=(len(starts) - 1, n_labels))
    rows.has_canonical_format = True
    return rows


def make_sparse(Y: Any) -> Labelsets:
    """Return checked labelsets as sparse rows of ones; `Y` itself where it is that.

    Examples
    --------
    >>> make_sparse(np.array([[0, 1, 1], [0, 0, 0]], dtype=np.int8)).indices
    array([1, 2], dtype=int32)
    """
    rows = csr_array(Y)
    is_ones = rows.dtype == np.int8 and bool((rows.data == 1).all())
    if is_ones and rows.has_canonical_format:
        return rows
    rows = csr_array(Y, dtype=np.int8, copy=True)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    return sparse_ones(rows.indices, rows.indptr, rows.shape[1])


class StackedLabelsets:
    """Several sparse labelsets for each instance: what an (n, g, L) array is of dense ones.

    Parameters
    ----------
    rows
        (n * g, L) sparse rows, those of an instance one after the other.
    n_each
        g, how many each instance has.

    Examples
    --------
    >>> rows = make_sparse(np.eye(4, dtype=np.int8))
    >>> stacked = StackedLabelsets(rows, 2)
    >>> stacked.shape, stacked[:, 1].indices, stacked[1].indices
    ((2, 2, 4), array([1, 3], dtype=int32), array([2, 3], dtype=int32))
    """

    ndim = 3

    def __init__(self, rows: Labelsets, n_each: int) -> None:
        self.rows = rows
        self.n_each = n_each

    @property
    def shape(self) -> tuple[int, int, int]:
        """Instances, labelsets of each, labels."""
        n_rows, n_labels = self.rows.shape
        return n_rows // max(1, self.n_each), self.n_each, n_labels

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, at: int | tuple[slice, int]) -> Labelsets:
        """Return all labelsets of an instance, `[i]`, or one of each instance, `[:, rank]`."""
        numbers = np.arange(self.rows.shape[0]).reshape(self.shape[:2])
        return self.rows[numbers[at]]


def key_sparse_rows(Y: Labelsets) -> NDArray[Any]:
    """Return one key for each row that sorts like its code: its labels, the last one first."""
    starts: Any = Y.indptr  # type: ignore[attr-defined]
    labels = Y.indices.astype(">i8")  # type: ignore[attr-defined]
    keys = np.empty(Y.shape[0], dtype=object)
    for i in range(len(keys)):
        keys[i] = labels[starts[i] : starts[i + 1]][::-1].tobytes()
    return keys


OPEN = -1  # the value of a label that an answer leaves open


def fill_with_lowest(rows: Labelsets, n_filled: Integers) -> None:
    """Fill (m, k, L) rows, each from its `n_filled` on, with the lowest codes not there yet."""
    n_rows, n_labels = rows.shape[1:]
    n_bits = max(1, (n_rows - 1).bit_length())  # so many codes leave enough that are not there
    bits = np.arange(n_bits)
    for n_known in np.unique(n_filled[n_filled < n_rows]).tolist():
        mine = np.flatnonzero(n_filled == n_known)
        known = rows[mine, :n_known]
        owner, place = np.nonzero(~known[:, :, n_bits:].any(axis=2))
        is_known = np.zeros((len(mine), 2**n_bits), dtype=bool)
        is_known[owner, known[owner, place, :n_bits] @ (1 << bits)] = True
        codes = np.argsort(is_known, axis=1, kind="stable")[:, : n_rows - n_known]
        missing = np.zeros((*codes.shape, n_labels), dtype=np.int8)
        missing[:, :, :n_bits] = codes[:, :, np.newaxis] >> bits & 1
        rows[mine, n_known:] = missing


def check_label_order(order: Any, n_labels: int | None = None, *, name: str) -> Indices:
    """Return an order of the labels as an array, or say what is wrong with it.

    Examples
    --------
    >>> check_label_order([2, 0, 1], name="order")
    array([2, 0, 1])
    """
    try:
        array = np.asarray(order)
    except ValueError:  # lists of different lengths
        array = np.empty((0, 0))
    size = array.size if n_labels is None else n_labels
    whole = array.ndim == 1 and array.dtype.kind in "iu" and array.size == size > 0
    if whole and np.array_equal(np.sort(array), np.arange(size)):
        return array.astype(np.intp)
    last = "L - 1" if n_labels is None else n_labels - 1
    raise InputError(f"`{name}` must be a permutation of 0 to {last}, got {reprlib.repr(order)}.")


def to_names(
    Y: ArrayLike, label_names: Sequence[str] | None = None, sep: str | None = None
) -> list[Any]:
    """Return the names of the labels that are set, as `labelsure.read_labelsets` reads them.

    Parameters
    ----------
    Y
        (n, L) zeros and ones, or a mask.
    label_names
        One for each column; None writes y0, y1, ...
    sep
        What stands between the names in a text; None for tuples of names.

    Examples
    --------
    >>> to_names([[1, 0, 1], [0, 0, 0]], ["even", "prime", "round"])
    [('even', 'round'), ()]
    >>> to_names([[1, 1]], ["cat", "dog"], sep=";")
    ['cat;dog']
    """
    rows = read_rows(Y)
    names = check_label_names(label_names, rows.shape[1])
    named = iter(show_names(names, rows.nonzero()[1].tolist()))  # row by row
    found = [tuple(islice(named, n_set)) for n_set in count_labels(rows)]
    return found if sep is None else [sep.join(labels) for labels in found]


def from_indices(labelsets: Iterable[Iterable[int]], n_labels: int) -> Labelsets:
    """Return lists of label indices as sparse rows, which cost no more than what is listed.

    Parameters
    ----------
    labelsets
        For each instance the indices of its labels, from 0, in any order.
    n_labels
        How many labels there are.

    Returns
    -------
    scipy.sparse.csr_array of shape (n, n_labels)

    Examples
    --------
    >>> rows = from_indices([[7, 2], []], n_labels=1_000_000)
    >>> rows.shape, rows.indices
    ((2, 1000000), array([2, 7]))
    """
    lists = [np.unique(np.asarray(list(labels))) for labels in labelsets]
    for i, labels in enumerate(lists):
        if labels.size and (
            labels.dtype.kind not in "iu" or labels[0] < 0 or labels[-1] >= n_labels
        ):
            raise InputError(
                f"`labelsets` must hold label indices from 0 to {n_labels - 1}, got "
                f"{labels.tolist()[:5]} in row {i}. For names use `labelsure.read_labelsets`."
            )
    starts = np.cumsum([0, *(len(labels) for labels in lists)])
    indices = np.concatenate([np.empty(0, dtype=np.int64), *lists]).astype(np.int64)
    return sparse_ones(indices, starts, n_labels)


def to_indices(Y: ArrayLike) -> list[list[int]]:
    """Return the indices of the labels that are set, one list for each row.

    Examples
    --------
    >>> to_indices([[1, 0, 1], [0, 0, 0]])
    [[0, 2], []]
    """
    rows = read_rows(Y, sparse=True)
    labels = iter(rows.indices.tolist())  # type: ignore[attr-defined]
    return [list(islice(labels, n_set)) for n_set in count_labels(rows)]


def to_text(Y: Labelsets) -> list[str]:
    """Return each labelset as a text: a digit for each label, or the indices of sparse rows.

    Examples
    --------
    >>> to_text(np.array([[1, 0, 1]], dtype=np.int8)), to_text(from_indices([[7, 123], []], 1000))
    (['101'], ['{7 123}', '{}'])
    """
    if not is_sparse(Y):
        return [row.tobytes().decode("ascii") for row in (Y + ord("0")).astype(np.uint8)]
    return ["{" + " ".join(map(str, labels)) + "}" for labels in to_indices(Y)]
