"""Input validation of labelsets: (n, L) zeros and ones, as an int8 array or as sparse rows.

A labelset of L labels is a row of L zeros and ones, n of them an (n, L) array of int8. Where there
are very many labels, of which each instance has few, they are a `scipy.sparse.csr_array` of ones:
indices in order, none twice, no zeros kept.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelsure._runtime.typing import Array, Labelsets, LabelsetsLike
from labelsure.errors import InputError
from labelsure.labelsets.foreign import refuse_masked
from labelsure.labelsets.sparse import StackedLabelsets, is_sparse, make_sparse

OPEN = -1  # value of an open label


def read_rows(
    Y: LabelsetsLike,
    name: str = "Y",
    *,
    n_samples: int | None = None,
    n_labels: int | None = None,
    sparse: bool | None = None,
) -> Labelsets:
    """(n, L) zeros and ones as an int8 array or as sparse rows. Raises InputError for other input.

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
        rows = rows.copy()  # changed in place below
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
    """Several labelsets for each instance: (n, g, L) int8, or a list of g sparse rows.

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
    """Raise InputError for a shape other than (n, L) with the required numbers."""
    if len(shape) != 2 or shape[1] == 0:
        raise InputError(
            f"`{name}` must have shape (n_samples, n_labels) with at least one label, got shape "
            f"{shape}. A single labelset is one row: `[{name}]`."
        )
    required = (n_samples, "rows"), (n_labels, "labels (columns)")
    for (number, noun), size in zip(required, shape, strict=True):
        if number is not None and size != number:
            raise InputError(f"`{name}` must have {number} {noun}, got {size}.")


def _read_numbers(Y: LabelsetsLike, name: str) -> NDArray[np.generic]:
    """Array of numbers or booleans in any form. Raises InputError for other input."""
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
        received = f"dtype {array.dtype}"
    except ValueError:
        array, received = np.empty(0, dtype=object), "rows of different lengths"
    if array.dtype.kind in "biuf":
        return array
    for at, value in np.ndenumerate(array) if array.ndim and array.dtype.kind in "OSU" else ():
        if value is None or isinstance(value, (str, bytes)):
            row, *column = at
            where = f"row {row}" + "".join(f", column {j}" for j in column[:1])
            raise _not_zero_or_one(np.nan if value is None else value, name, where)
    if array.dtype == object and array.size and _all_numbers(array):
        return array
    raise InputError(
        f"`{name}` must be a rectangular array of zeros and ones, got {received}. Read label names "
        "by `labelsure.read_labelsets`."
    )


def _read_zeros_and_ones(array: Array, name: str, axes: tuple[str, ...]) -> Labelsets:
    # A cast could make 0.5 a 0 and 256 a 0, so the values are compared before it.
    ones = array == 1
    bad = ~(ones | (array == 0))
    if bad.any():
        at = tuple(np.argwhere(bad)[0])
        where = ", ".join(f"{axis} {i}" for axis, i in zip(axes, at, strict=True))
        raise _not_zero_or_one(array[at], name, where)
    return ones.astype(np.int8)


def _not_zero_or_one(value: Any, name: str, where: str) -> InputError:
    """Error for a value that is neither 0 nor 1, with a fix that suits the value."""
    fix = "Write 1 for a label that is present and 0 for one that is not."
    if isinstance(value, (str, bytes)):
        value = repr(np.asarray(value).item())  # not as numpy's own type
        fix = "Compare texts, e.g. `Y == '1'`, or pass lists of label names."
    elif value != value:
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


def _all_numbers(array: NDArray[np.generic]) -> bool:
    return all(isinstance(value, (bool, int, float, np.number, np.bool_)) for value in array.flat)
