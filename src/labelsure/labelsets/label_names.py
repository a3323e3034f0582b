"""Names and order of labels: validation and display."""

from __future__ import annotations

import reprlib
from collections import Counter
from collections.abc import Iterable, Sequence, Set

import numpy as np

from labelsure._runtime.typing import Indices, LabelNames, Names
from labelsure.errors import InputError

MAX_WRITTEN_NAMES = 10_000
"""Number of labels up to which all names are shown, and each label has an entry in `classes_`."""


def is_missing(name: object) -> bool:
    """Whether a name is None, NaN or the missing value of pandas."""
    return name is None or type(name).__name__ == "NAType" or name != name


def read_names(label_names: Names) -> LabelNames:
    """Label names as strings. Raises InputError for a text, a set or a missing name."""
    if label_names is None:
        return None
    if isinstance(label_names, (str, Set)) or not isinstance(label_names, Iterable):
        got = "a set, which has no order" if isinstance(label_names, Set) else repr(label_names)
        raise InputError(f"`label_names` must be a list of names, got {got}.")
    entries = list(label_names)
    if any(map(is_missing, entries)):
        raise InputError(
            f"`label_names` must name every label, got {reprlib.repr(entries)}. Fill in all names."
        )
    return tuple(str(name) for name in entries)


def check_label_names(label_names: Names, n_labels: int) -> LabelNames:
    """Label names as distinct strings; None where labels have no names.

    Examples
    --------
    >>> check_label_names(["cat", 7], 2)
    ('cat', '7')
    """
    names = read_names(label_names)
    if names is None or len(names) == n_labels == len(set(names)):
        return names
    twice = [name for name, n_times in Counter(names).items() if n_times > 1]
    got = f"{len(names)} names" if len(names) != n_labels else f"{twice[0]!r} twice"
    raise InputError(
        f"`label_names` must be {n_labels} distinct names, one for each column, got {got}."
    )


def show_names(label_names: Sequence[str] | None, labels: int | Iterable[int]) -> list[str]:
    """Names of the first labels, or of some; y0, y1, ... for labels without names.

    Examples
    --------
    >>> show_names(("cat", "dog"), [1]), show_names(None, 3)
    (['dog'], ['y0', 'y1', 'y2'])
    """
    places = range(labels) if isinstance(labels, int) else labels
    return [f"y{j}" if label_names is None else label_names[j] for j in places]


def abbreviate_names(label_names: Sequence[str] | None, n_labels: int) -> list[str]:
    """All names; of very many labels the first and the last.

    Examples
    --------
    >>> abbreviate_names(("cat", "dog"), 2), abbreviate_names(None, 1_000_000)
    (['cat', 'dog'], ['y0', '...', 'y999999'])
    """
    if n_labels <= MAX_WRITTEN_NAMES:
        return show_names(label_names, n_labels)
    first, last = show_names(label_names, [0, n_labels - 1])
    return [first, "...", last]


def check_same_labels(
    label_names: LabelNames, n_labels: int, expected: LabelNames, n_expected: int, beside: str
) -> None:
    """Raise InputError for another number of labels, or other names where both sides have names."""
    if n_labels != n_expected:
        raise InputError(f"`dist` must have the {n_expected} labels of {beside}, got {n_labels}.")
    if label_names is None or expected is None or label_names == expected:
        return
    column = next(j for j, name in enumerate(expected) if label_names[j] != name)
    raise InputError(
        f"`dist` must have the labels of {beside} in their order, got {label_names[column]!r} "
        f"instead of {expected[column]!r} in column {column}."
    )


def check_label_order(order: object, n_labels: int | None = None, *, name: str) -> Indices:
    """Order of the labels as an array, (L,). Raises InputError unless it is a permutation.

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
