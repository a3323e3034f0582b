"""Labelsets: rows of zeros and ones, their codes, and the names of their labels.

A labelset of L labels is a row of L zeros and ones. Its *code* has the same bits, label 0 being
the lowest: an integer up to 63 labels, a row of packed bytes beyond.
"""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from labelsure._typing import Indices, Labelsets
from labelsure.errors import InputError, unknown_name

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "MAX_INTEGER_LABELS",
    "OPEN",
    "check_guesses",
    "check_label_names",
    "check_label_order",
    "check_labelsets",
    "code_keys",
    "codes_of",
    "count_axes",
    "fill_with_lowest",
    "from_codes",
    "from_names",
    "given_names",
    "index_of",
    "names_in",
    "refuse_masked",
    "to_codes",
    "to_digits",
    "to_names",
]

MAX_INTEGER_LABELS = 63
"""Up to this many labels a code is an int64; beyond, a row of packed bytes."""

OPEN = -1  # the value of a label that an answer leaves open


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
    array = _as_array(Y, name)
    if array.ndim != 2 or array.shape[1] == 0:
        raise InputError(
            f"`{name}` must have shape (n_samples, n_labels) with at least one label, got shape "
            f"{array.shape}. A single labelset is one row: `[{name}]`."
        )
    if n_labels is not None and array.shape[1] != n_labels:
        raise InputError(
            f"`{name}` must have {n_labels} labels (columns), got {array.shape[1]}. "
            "Pass the columns that the distribution was made for, in the same order."
        )
    if n_samples is not None and array.shape[0] != n_samples:
        raise InputError(
            f"`{name}` must have {n_samples} rows, got {array.shape[0]}. "
            "Pass one labelset for each instance."
        )
    return _as_zeros_and_ones(array, name)


def check_guesses(guesses: Any, *, name: str, n_samples: int, n_labels: int) -> Labelsets:
    """Return several labelsets for each instance as an (n, g, L) int8 array of zeros and ones.

    Examples
    --------
    >>> check_guesses([[[1, 0], [1, 1]]], name="guesses", n_samples=1, n_labels=2).shape
    (1, 2, 2)
    """
    array = _as_array(guesses, name)
    if array.ndim != 3 or array.shape[1] == 0 or array.shape[::2] != (n_samples, n_labels):
        raise InputError(
            f"`{name}` with several labelsets for each instance must have shape ({n_samples}, "
            f"n_guesses, {n_labels}) and at least one guess, got shape {array.shape}."
        )
    return _as_zeros_and_ones(array, name)


def _as_zeros_and_ones(array: NDArray[Any], name: str) -> Labelsets:
    # A cast could make 0.5 a 0 and 256 a 0, so the values are compared before it.
    ones = array == 1
    bad = ~(ones | (array == 0))
    if bad.any():
        at = tuple(np.argwhere(bad)[0])
        axes = ("row", "column") if array.ndim == 2 else ("row", "guess", "column")
        where = ", ".join(f"{axis} {i}" for axis, i in zip(axes, at, strict=True))
        raise InputError(
            f"`{name}` must contain only 0 and 1, got {array[at]} in {where}. Binarise it first, "
            f"e.g. `({name} > 0).astype(int)`."
        )
    return ones.astype(np.int8)


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


def _as_array(Y: Any, name: str) -> NDArray[Any]:
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


def _all_numbers(array: NDArray[Any]) -> bool:
    return all(isinstance(value, (bool, int, float, np.number, np.bool_)) for value in array.flat)


def check_label_names(label_names: Iterable[Any] | None, n_labels: int) -> tuple[str, ...]:
    """Return `n_labels` distinct names as strings; ``None`` gives y0, y1, ...

    Examples
    --------
    >>> check_label_names(None, 3)
    ('y0', 'y1', 'y2')
    """
    if label_names is None:
        return tuple(f"y{j}" for j in range(n_labels))
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
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(
            f"`label_names` must be distinct, got {twice!r} twice. Rename one of them."
        )
    return names


def check_label_order(
    order: Any, n_labels: int | None = None, *, name: str, alternatives: str = ""
) -> Indices:
    """Return an order of the labels as an array, or say what is wrong with it.

    Parameters
    ----------
    order
        Every label index once.
    n_labels
        How many labels there are; None means as many as the order names.
    name
        What the caller calls it, for the messages.
    alternatives
        What the argument may be instead, e.g. "None, 'random'", for the messages.

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
    if alternatives:
        raise InputError(
            f"`{name}` must be {alternatives} or every label index from 0 to {size - 1} once, "
            f"got {reprlib.repr(order)}."
        )
    raise InputError(
        f"`{name}` must name every label index once, a permutation of 0 to L - 1 such as "
        f"[2, 0, 1], got {reprlib.repr(order)}. In the order of the columns it is "
        "`range(n_labels)`."
    )


def count_axes(values: Any) -> int:
    """Return how many axes an array has, 2 for lists of different lengths."""
    try:
        return np.ndim(values)
    except ValueError:
        return 2


def names_in(Y: Any) -> list[str] | None:
    """Return the column names of a DataFrame, None for anything else."""
    columns = getattr(Y, "columns", None)
    return None if columns is None else [str(column) for column in columns]


def given_names(label_names: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return names that somebody gave; None for y0, y1, ..., which only count the labels.

    Examples
    --------
    >>> given_names(("cat", "dog")), given_names(("y0", "y1"))
    (('cat', 'dog'), None)
    """
    return None if label_names == check_label_names(None, len(label_names)) else label_names


def index_of(source: Any) -> pd.Index | None:
    """Return the index of a DataFrame or Series, None where it only counts the rows from 0."""
    index = getattr(source, "index", None)
    if index is None or not hasattr(index, "get_indexer"):  # a list has a method of this name
        return None
    counts_rows = index.dtype.kind in "iu" and index.equals(type(index)(range(len(index))))
    return None if counts_rows else index


def to_codes(Y: ArrayLike) -> NDArray[Any]:
    """Return the code of each row: (n,) int64 up to 63 labels, (n, ceil(L/8)) uint8 beyond.

    Examples
    --------
    >>> to_codes([[1, 0, 0], [0, 1, 1]])
    array([1, 6])
    """
    return codes_of(check_labelsets(Y))


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


def fill_with_lowest(rows: Labelsets, n_filled: int) -> None:
    """Fill `rows` from `n_filled` on with the labelsets of lowest code that are not there yet."""
    if n_filled == len(rows):
        return
    n_bits = max(1, (len(rows) - 1).bit_length())  # so many codes leave enough that are not there
    low = rows[:n_filled][~rows[:n_filled, n_bits:].any(axis=1), :n_bits]
    codes = np.setdiff1d(np.arange(len(rows)), codes_of(low))[: len(rows) - n_filled]
    rows[n_filled:, n_bits:] = 0
    for bit in range(n_bits):
        rows[n_filled:, bit] = codes >> bit & 1


def to_names(Y: ArrayLike, label_names: Sequence[str] | None = None) -> list[tuple[str, ...]]:
    """Return the names of the labels that are set, one tuple for each row.

    Examples
    --------
    >>> to_names([[1, 0, 1], [0, 0, 0]], ["even", "prime", "round"])
    [('even', 'round'), ()]
    """
    rows = check_labelsets(Y)
    names = check_label_names(label_names, rows.shape[1])
    named = iter([names[j] for j in np.nonzero(rows)[1]])  # row by row
    return [tuple(islice(named, n_set)) for n_set in rows.sum(axis=1)]


def to_digits(Y: Labelsets) -> list[str]:
    """Return each labelset as a string of zeros and ones, label 0 first.

    Examples
    --------
    >>> to_digits(np.array([[1, 0, 1]], dtype=np.int8))
    ['101']
    """
    digits = (Y + ord("0")).astype(np.uint8)
    return [row.tobytes().decode("ascii") for row in digits]


def from_names(labelsets: Iterable[Iterable[str]], label_names: Sequence[str]) -> Labelsets:
    """Return sets of label names as rows of zeros and ones: the inverse of `to_names`.

    Examples
    --------
    >>> from_names([{"even"}, set()], ["even", "prime"])
    array([[1, 0],
           [0, 0]], dtype=int8)
    """
    position = {name: j for j, name in enumerate(check_label_names(label_names, len(label_names)))}
    sets = [list(labels) for labels in labelsets]
    rows = np.zeros((len(sets), len(position)), dtype=np.int8)
    for row, labels in zip(rows, sets, strict=True):
        for label in labels:
            if label not in position:
                raise unknown_name("label", label, position)
            row[position[label]] = 1
    return rows
