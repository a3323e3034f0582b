"""Labelsets: rows of zeros and ones, their codes, and the names of their labels.

A labelset of L labels is a row of L zeros and ones. Its *code* has the same bits, label 0 being
the lowest: an integer up to 63 labels, a row of packed bytes beyond. Where there are very many
labels, rows are those of a `scipy.sparse.csr_array`: `from_indices` makes them, and
`labelset_rows` has what is asked of either form.
"""

from __future__ import annotations

import re
import reprlib
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from labelsure._runtime.typing import Indices, Integers, Labelsets
from labelsure.errors import InputError, unknown_name
from labelsure.labelsets.rows import (
    MAX_INTEGER_LABELS,
    check_label_names,
    check_labelsets,
    check_shape,
    code_keys,
    codes_of,
    count_axes,
    count_labels,
    from_codes,
    index_of,
    is_sparse,
    names_in,
    not_zero_or_one,
    read_numbers,
    read_zeros_and_ones,
    refuse_masked,
    show_names,
)
from labelsure.labelsets.sparse import StackedLabelsets, make_sparse, sparse_ones

__all__ = [
    "MAX_INTEGER_LABELS",
    "OPEN",
    "check_guesses",
    "check_label_names",
    "check_label_order",
    "check_labelsets",
    "check_rows",
    "check_sparse_labelsets",
    "code_keys",
    "codes_of",
    "count_axes",
    "fill_with_lowest",
    "from_codes",
    "from_indices",
    "from_names",
    "from_text",
    "index_of",
    "names_in",
    "refuse_masked",
    "show_names",
    "to_codes",
    "to_digits",
    "to_indices",
    "to_names",
    "to_text",
]

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


def to_digits(Y: Labelsets) -> list[str]:
    """Return each labelset as a string of zeros and ones, label 0 first.

    Examples
    --------
    >>> to_digits(np.array([[1, 0, 1]], dtype=np.int8))
    ['101']
    """
    digits = (Y + ord("0")).astype(np.uint8)
    return [row.tobytes().decode("ascii") for row in digits]


def check_sparse_labelsets(
    Y: Any,
    *,
    name: str = "Y",
    n_samples: int | None = None,
    n_labels: int | None = None,
) -> Labelsets:
    """Return `Y` as sparse rows of ones, or say what is wrong with it.

    Parameters
    ----------
    Y
        As for `check_labelsets`. Where it is sparse, no array of all labels is made.
    name, n_samples, n_labels
        Likewise.

    Examples
    --------
    >>> check_sparse_labelsets([[0, 1, 1], [0, 0, 0]]).indices
    array([1, 2], dtype=int32)
    """
    if not is_sparse(Y):
        return make_sparse(check_labelsets(Y, name=name, n_samples=n_samples, n_labels=n_labels))
    check_shape(Y.shape, name, n_samples, n_labels)
    rows = Y.tocsr()
    if not rows.has_canonical_format:
        rows = rows.copy()  # what follows is done in place
        rows.sum_duplicates()
    if rows.dtype.kind not in "biuf":
        raise InputError(
            f"`{name}` must be a numeric or boolean sparse array, got dtype {rows.dtype}."
        )
    bad = np.flatnonzero(~((rows.data == 1) | (rows.data == 0)))
    if bad.size:
        at = int(bad[0])
        row = int(np.searchsorted(rows.indptr, at, side="right")) - 1
        raise not_zero_or_one(rows.data[at], name, f"row {row}, column {rows.indices[at]}")
    return make_sparse(rows)


def check_rows(Y: Any, *, name: str = "Y", n_samples: int | None = None) -> Labelsets:
    """Return labelsets in the form that they have, or say what is wrong with them."""
    check = check_sparse_labelsets if is_sparse(Y) else check_labelsets
    return check(Y, name=name, n_samples=n_samples)


def check_guesses(
    guesses: Any, *, name: str, n_samples: int, n_labels: int, sparse: bool = False
) -> Any:
    """Return several labelsets for each instance as an (n, g, L) int8 array of zeros and ones.

    With `sparse` they may also be `StackedLabelsets`, which are returned as they are.

    Examples
    --------
    >>> check_guesses([[[1, 0], [1, 1]]], name="guesses", n_samples=1, n_labels=2).shape
    (1, 2, 2)
    """
    is_stacked = sparse and isinstance(guesses, StackedLabelsets)
    array = guesses if is_stacked else read_numbers(guesses, name)
    if array.ndim != 3 or array.shape[1] == 0 or array.shape[::2] != (n_samples, n_labels):
        raise InputError(
            f"`{name}` with several labelsets for each instance must have shape ({n_samples}, "
            f"n_guesses, {n_labels}) and at least one guess, got shape {array.shape}."
        )
    return array if is_stacked else read_zeros_and_ones(array, name)


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


def to_codes(Y: ArrayLike) -> NDArray[Any]:
    """Return the code of each row: (n,) int64 up to 63 labels, (n, ceil(L/8)) uint8 beyond.

    Examples
    --------
    >>> to_codes([[1, 0, 0], [0, 1, 1]])
    array([1, 6])
    """
    return codes_of(check_labelsets(Y))


def to_names(Y: ArrayLike, label_names: Sequence[str] | None = None) -> list[tuple[str, ...]]:
    """Return the names of the labels that are set, one tuple for each row.

    Examples
    --------
    >>> to_names([[1, 0, 1], [0, 0, 0]], ["even", "prime", "round"])
    [('even', 'round'), ()]
    """
    rows = check_rows(Y)
    names = check_label_names(label_names, rows.shape[1])
    named = iter(show_names(names, rows.nonzero()[1].tolist()))  # row by row
    return [tuple(islice(named, n_set)) for n_set in count_labels(rows)]


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
                f"`labelsets` must hold indices of labels, whole numbers from 0 to {n_labels - 1}, "
                f"got {labels.tolist()[:5]} in row {i}. For names of labels use `from_names`."
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
    rows = check_sparse_labelsets(Y)
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
        return to_digits(Y)
    return ["{" + " ".join(map(str, labels)) + "}" for labels in to_indices(Y)]


def from_text(texts: Sequence[str], n_labels: int | None = None) -> Labelsets | None:
    """Return the labelsets that `to_text` has written; None where the texts are something else.

    Parameters
    ----------
    texts
        One for each instance.
    n_labels
        How many labels there are; digits say so themselves.

    Examples
    --------
    >>> from_text(["101", "000"])
    array([[1, 0, 1],
           [0, 0, 0]], dtype=int8)
    >>> from_text(["{7 123}", "{}"], 1000).indices
    array([  7, 123])
    """
    lengths = {len(text) for text in texts}
    if len(lengths) == 1 and not set("".join(texts)) - {"0", "1"}:
        bits = np.frombuffer("".join(texts).encode("ascii"), dtype=np.uint8) - ord("0")
        return bits.reshape(len(texts), lengths.pop()).astype(np.int8)
    if n_labels is None or not all(re.fullmatch(r"\{(\d+( \d+)*)?\}", text) for text in texts):
        return None
    lists = [[int(label) for label in text[1:-1].split()] for text in texts]
    return from_indices(lists, n_labels) if texts else None


def from_names(labelsets: Iterable[Iterable[str]], label_names: Sequence[str]) -> Labelsets:
    """Return sets of label names as rows of zeros and ones: the inverse of `to_names`.

    Examples
    --------
    >>> from_names([{"even"}, set()], ["even", "prime"])
    array([[1, 0],
           [0, 0]], dtype=int8)
    """
    check_label_names(label_names, len(label_names))
    position = {name: j for j, name in enumerate(label_names)}
    sets = [list(labels) for labels in labelsets]
    rows = np.zeros((len(sets), len(position)), dtype=np.int8)
    for row, labels in zip(rows, sets, strict=True):
        for label in labels:
            if label not in position:
                raise unknown_name("label", label, position)
            row[position[label]] = 1
    return rows
