"""Rows of a batch: picked by position, put in order by the names that their index gives them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from labelsure._runtime.typing import Indices, Rows
from labelsure.errors import InputError
from labelsure.labelsets.rows import index_of

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "align_rows",
    "align_values",
    "counts_rows",
    "list_some",
    "pick_rows",
    "read_groups",
    "wrong_index",
]

N_LISTED = 5  # names that a message lists before it only counts


def pick_rows(rows: Any, n_samples: int, index: pd.Index | None = None) -> Rows:
    """Return an index, a slice, indices or a mask as what picks some rows of an array.

    A mask that is a Series is brought into the order of the rows' `index`.

    Examples
    --------
    >>> pick_rows(-1, 3), pick_rows([True, False, True], 3)
    (slice(2, 3, None), array([0, 2]))
    """
    if isinstance(rows, (int, np.integer)):
        if not -n_samples <= rows < n_samples:
            raise IndexError(f"Row {rows} is out of range for {n_samples} instances.")
        first = int(rows) % n_samples
        return slice(first, first + 1)
    if isinstance(rows, slice):
        return rows
    if getattr(getattr(rows, "dtype", None), "kind", "") == "b":
        rows = np.asarray(align_values(rows, index, name="mask"))
    taken = np.atleast_1d(np.arange(n_samples)[rows])
    if taken.ndim > 1:
        raise IndexError(
            f"Rows must be an index, a slice, indices or a mask, got {taken.ndim} axes."
        )
    return taken


def wrong_index(index: pd.Index, n_samples: int) -> InputError:
    """Return the error for names of rows of which there are too few or too many."""
    return InputError(
        f"`index` must have one entry for each of the {n_samples} instances, got {len(index)}."
    )


def align_rows(
    own: pd.Index | None, wanted: pd.Index | None, *, name: str, beside: str
) -> Indices | None:
    """Return the order that brings rows into that of another index; None where it is the same.

    Parameters
    ----------
    own, wanted
        Both indices. Where one is None, or counts the rows from 0 while the other has other
        entries, rows stay as they are.
    name, beside
        What both sides are called, for the messages.
    """
    if own is None or wanted is None or own.equals(wanted):
        return None
    if counts_rows(own) or counts_rows(wanted):
        if len(own) == len(wanted) and all(
            counts_rows(index, in_order=False) for index in (own, wanted)
        ):
            raise InputError(
                f"The rows of `{name}` and of {beside} must be in one order: the index of one is "
                "0, 1, 2, ..., that of the other the same numbers in another order, so that rows "
                "could go by index or by position. Bring one into the order of the other with "
                "`.loc`, or reset both indices to go by position."
            )
        return None
    for which, index in ((f"`{name}`", own), (beside, wanted)):
        if not index.is_unique:
            twice = index[index.duplicated()][0]
            raise InputError(
                f"The index of {which} must name each row once to be compared with another, "
                f"{twice!r} is there twice. Reset both indices to go by position."
            )
    if own.nlevels != wanted.nlevels:
        raise InputError(
            f"The index of `{name}` must have the levels of that of {beside}, got {own.nlevels} "
            f"and {wanted.nlevels}. Reset both indices to go by position."
        )
    if len(own) != len(wanted) or not wanted.isin(own).all():
        missing = [str(entry) for entry in wanted.difference(own, sort=False)]
        unknown = [str(entry) for entry in own.difference(wanted, sort=False)]
        parts = [
            f"{what} {list_some(entries)}"
            for what, entries in (("missing are", missing), ("unknown are", unknown))
            if entries
        ]
        raise InputError(
            f"The rows of `{name}` must be those of {beside}, in any order; {'; '.join(parts)}. "
            "Select the same rows, or reset both indices to go by position."
        )
    return np.asarray(own.get_indexer(wanted), dtype=np.intp)


def align_values(
    values: Any, index: pd.Index | None, *, name: str, beside: str = "the distribution"
) -> Any:
    """Return values, one for each row, in the order of an index; as they are where one has none.

    Parameters
    ----------
    values
        An array, a list or a Series.
    index
        That of the rows that the values belong to.
    name, beside
        What both sides are called, for the messages.
    """
    order = align_rows(index_of(values), index, name=name, beside=beside)
    return values if order is None else np.asarray(values)[order]


def counts_rows(index: pd.Index, *, in_order: bool = True) -> bool:
    """Whether an index only counts the rows from 0, in this order or also in another."""
    if index.nlevels > 1 or index.dtype.kind not in "iu":
        return False
    numbers = index.to_numpy()
    return np.array_equal(numbers if in_order else np.sort(numbers), np.arange(len(index)))


def list_some(names: Sequence[str]) -> str:
    """Return the first names, and how many more there are, for messages.

    Examples
    --------
    >>> list_some(["a", "b"]), list_some("abcdefg")
    ("'a', 'b'", "'a', 'b', 'c', 'd', 'e' and 2 more")
    """
    shown = ", ".join(repr(name) for name in names[:N_LISTED])
    more = len(names) - N_LISTED
    return f"{shown} and {more} more" if more > 0 else shown


def read_groups(groups: Any, name: str) -> NDArray[np.str_]:
    """Return groups as names, or say which instance has none.

    Parameters
    ----------
    groups
        One for each instance.
    name
        What the user calls them.
    """
    import pandas as pd

    values = np.asarray(groups)
    missing = np.flatnonzero(pd.isna(values))
    if missing.size:
        raise InputError(
            f"`{name}` must name the group of each instance, got none in row {missing[0]}. Name "
            "it, or leave the row out."
        )
    return values.astype(str)
