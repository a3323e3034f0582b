"""Rows of a batch: picked by position, put in order by the names that their index gives them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from labelsure._typing import Indices, Rows
from labelsure.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["align_rows", "list_some", "pick_rows", "read_groups", "wrong_index"]

N_LISTED = 5  # names that a message lists before it only counts


def pick_rows(rows: Any, n_samples: int) -> Rows:
    """Return an index, a slice, indices or a mask as what picks some rows of an array.

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
        Both indices; where one is None, rows are only counted and stay as they are.
    name, beside
        What both sides are called, for the messages.
    """
    if own is None or wanted is None or own.equals(wanted):
        return None
    for which, index in ((f"`{name}`", own), (beside, wanted)):
        if not index.is_unique:
            twice = index[index.duplicated()][0]
            raise InputError(
                f"The index of {which} must name each row once to be compared with another, "
                f"{twice!r} is there twice. Reset both indices to go by position."
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
