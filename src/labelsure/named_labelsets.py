"""Labelsets as people have them: frames, names, lists; put in order by label name and by row.

Whatever a truth or a prediction comes as, `read_labelsets` returns rows of zeros and ones with the
names that came along. `align_labelsets` puts them into the order of what they are compared with:
by name where both sides have names, and otherwise it refuses whatever could be misread.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from labelsure._notebook import N_ROWS, count, make_html
from labelsure._storage import name_classes_publicly
from labelsure._typing import Indices, Labelsets
from labelsure.errors import InputError, unknown_name
from labelsure.labelset_rows import is_sparse
from labelsure.labelsets import (
    check_label_names,
    check_labelsets,
    check_sparse_labelsets,
    from_indices,
    index_of,
    names_in,
    show_names,
    to_names,
)
from labelsure.named_rows import align_rows, list_some

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "NamedLabelsets",
    "align_labelsets",
    "check_sep",
    "holds_names",
    "match_labels",
    "read_labelsets",
    "shared_label_names",
    "write_names",
]


@dataclass(frozen=True)
class NamedLabelsets:
    """Labelsets with the names that came with them.

    Parameters
    ----------
    rows
        (n, L) zeros and ones.
    label_names
        One for each column; None where nobody named them.
    index
        One entry for each row; None where rows are only counted.

    Examples
    --------
    >>> from labelsure import read_labelsets
    >>> read_labelsets([["cat"], ["dog", "cat"]]).label_names
    ('cat', 'dog')
    """

    rows: Labelsets
    label_names: tuple[str, ...] | None = None
    index: pd.Index | None = None

    def _repr_html_(self) -> str:
        import pandas as pd

        sizes = f"{count(len(self.rows), 'labelset')} of {count(self.rows.shape[1], 'label')}"
        names = show_names(self.label_names, self.rows.shape[1])
        return make_html(f"{sizes}.", pd.DataFrame(self.rows, self.index, names).head(N_ROWS))


def read_labelsets(
    Y: Any,
    label_names: Iterable[Any] | None = None,
    *,
    name: str = "Y",
    sep: str | None = None,
    sparse: bool = False,
) -> NamedLabelsets:
    """Read labelsets in any of the forms that people have them in.

    Parameters
    ----------
    Y
        - (n, L) zeros and ones or booleans: array, lists, sparse matrix, DataFrame (whose columns
          name the labels);
        - for each instance the names of its labels: a list of lists or sets, a Series of them, or,
          with `sep`, strings such as ``"a;b"``.
    label_names
        The labels that names may be, in the order of the columns. None: the columns of a
        DataFrame, or else all names that occur, sorted.
    name
        What the caller calls it, for the messages.
    sep
        What stands between the names in a string.
    sparse
        Whether the rows are wanted as a `scipy.sparse.csr_array`, for very many labels.

    Examples
    --------
    >>> read_labelsets([{"cat"}, set(), {"dog", "cat"}]).rows
    array([[1, 0],
           [0, 0],
           [1, 1]], dtype=int8)
    >>> read_labelsets(["dog;cat", ""], ["cat", "dog"], sep=";").rows
    array([[1, 1],
           [0, 0]], dtype=int8)
    """
    index = index_of(Y)
    sets = _name_sets(Y, name, sep)
    if sets is None:
        _refuse_missing(Y, name)
        rows = check_sparse_labelsets(Y, name=name) if sparse else check_labelsets(Y, name=name)
        own = names_in(Y) if label_names is None else label_names
        names = None if own is None else check_label_names(own, rows.shape[1])
        return NamedLabelsets(rows, names, index)
    if label_names is None:
        known = sorted({label for labels in sets for label in labels})
        if not known:
            raise InputError(
                f"`{name}` must name at least one label, got only empty labelsets. Pass the names "
                "of all labels as `label_names`."
            )
        label_names = known
    names = tuple(str(label) for label in label_names)
    return NamedLabelsets(_rows_of(sets, names, name, sparse), names, index)


def shared_label_names(first: Any, second: Any) -> tuple[str, ...] | None:
    """Return the label names by which two sources of labelsets are compared; None for positions.

    The columns of a DataFrame if one of them is one; otherwise, where both are lists of names, all
    names that occur.
    """
    for source in (first, second):
        if not holds_names(source):
            names = names_in(source)
            return None if names is None else tuple(names)
    sets = [_name_sets(source, "Y", None) or [] for source in (first, second)]
    return tuple(sorted({label for some in sets for labels in some for label in labels}))


def holds_names(Y: Any) -> bool:
    """Whether Y says for each instance which labels it has, by lists or sets of their names."""
    if hasattr(Y, "toarray") or getattr(Y, "ndim", 1) != 1:
        is_column = hasattr(Y, "columns") and Y.shape[1] == 1
        return is_column and any(map(_is_collection_of_names, Y.iloc[:, 0]))
    return isinstance(Y, Iterable) and any(map(_is_collection_of_names, Y))


def _name_sets(Y: Any, name: str, sep: str | None) -> list[list[str]] | None:
    """Return each instance's label names; None where Y holds zeros and ones."""
    if hasattr(Y, "toarray") or hasattr(Y, "columns"):
        entries: Sequence[Any] = ()
        if hasattr(Y, "columns") and Y.shape[1] == 1 and Y.iloc[:, 0].dtype.kind not in "biuf":
            entries = list(Y.iloc[:, 0])
    elif isinstance(Y, np.ndarray) and Y.ndim != 1:
        entries = ()
    else:
        try:
            entries = list(Y)
        except TypeError:
            entries = ()
    holds_names = [isinstance(entry, str) or _is_collection_of_names(entry) for entry in entries]
    if not any(holds_names):
        return None
    return [_names_of(entry, i, name, sep) for i, entry in enumerate(entries)]


def _is_collection_of_names(entry: Any) -> bool:
    if isinstance(entry, (set, frozenset)):
        return True
    if not isinstance(entry, (list, tuple, np.ndarray)):
        return False
    return any(isinstance(label, str) for label in entry)


def _names_of(entry: Any, row: int, name: str, sep: str | None) -> list[str]:
    if isinstance(entry, str):
        if sep is None:
            raise InputError(
                f"`{name}` must be zeros and ones, or a list of label names for each instance, got "
                f"the text {entry!r} in row {row}. If it holds several names, say what stands "
                "between them, e.g. sep=';'."
            )
        return [label.strip() for label in entry.split(sep) if label.strip()]
    if entry is None or isinstance(entry, float):
        raise InputError(
            f"`{name}` must say for every instance which labels it has, row {row} is missing. "
            "Write an empty list where there are none, or drop that row."
        )
    if not isinstance(entry, Iterable):
        raise InputError(
            f"`{name}` must be a list of label names for each instance, got {entry!r} in row {row}."
        )
    return [str(label) for label in entry]


def _rows_of(sets: list[list[str]], names: tuple[str, ...], name: str, sparse: bool) -> Labelsets:
    check_label_names(names, len(names))
    position = {label: j for j, label in enumerate(names)}
    places = [[position.get(label, -1) for label in labels] for labels in sets]
    for i, found in enumerate(places):
        if -1 in found:
            unknown = sets[i][found.index(-1)]
            raise unknown_name(f"label in row {i} of `{name}`:", unknown, position)
    if sparse:
        return from_indices(places, len(position))
    rows = np.zeros((len(sets), len(position)), dtype=np.int8)
    for row, found in zip(rows, places, strict=True):
        row[found] = 1
    return rows


def _refuse_missing(Y: Any, name: str) -> None:
    """Refuse labels that nobody has checked, by name and row."""
    if not hasattr(Y, "isna"):
        return
    missing = Y.isna().to_numpy()
    if missing.any():
        row, column = np.argwhere(missing.reshape(len(Y), -1))[0]
        label = str(Y.columns[column]) if hasattr(Y, "columns") else str(Y.name)
        n_rows = int(missing.reshape(len(Y), -1).any(axis=1).sum())
        raise InputError(
            f"`{name}` must be known for every label, {label!r} is missing in row {row} (and "
            f"{n_rows} rows in all have a label that is missing). Fill them in, or drop these "
            f"rows, e.g. `{name}.dropna()`, from everything that goes with them."
        )


def align_labelsets(
    Y: Any,
    *,
    name: str,
    n_samples: int,
    n_labels: int,
    label_names: tuple[str, ...] | None = None,
    index: pd.Index | None = None,
    beside: str = "the distribution",
    sparse: bool = False,
) -> Labelsets:
    """Return labelsets in the order of what they are compared with, or refuse them.

    Parameters
    ----------
    Y
        Anything that `read_labelsets` reads.
    name
        What the caller calls it, for the messages.
    n_samples, n_labels
        The shape that it must have.
    label_names
        Those of the other side; None where it has none, so that columns count by position.
    index
        That of the other side; None where its rows are only counted.
    beside
        What the other side is, for the messages.
    sparse
        Whether the other side has sparse rows, so that these are wanted.
    """
    check = check_sparse_labelsets if sparse else check_labelsets
    is_plain = isinstance(Y, np.ndarray) and Y.ndim == 2
    if is_plain or (sparse and is_sparse(Y)):  # the usual case needs no further look
        return check(Y, name=name, n_samples=n_samples, n_labels=n_labels)
    has_columns = names_in(Y) is not None
    read = read_labelsets(Y, None if has_columns else label_names, name=name, sparse=sparse)
    rows = read.rows
    if has_columns and read.label_names is not None and label_names is not None:
        rows = rows[:, match_labels(read.label_names, label_names, name, beside)]
    rows = check(rows, name=name, n_samples=n_samples, n_labels=n_labels)
    order = align_rows(read.index, index, name=name, beside=beside)
    return rows if order is None else rows[order]


def match_labels(own: tuple[str, ...], wanted: tuple[str, ...], name: str, beside: str) -> Indices:
    """Return the positions of the wanted labels, or refuse names that are not the same.

    Parameters
    ----------
    own, wanted
        The names of the columns, and those that they must have in any order.
    name, beside
        What both sides are called, for the messages.
    """
    position = {label: j for j, label in enumerate(own)}
    missing = [label for label in wanted if label not in position]
    known = set(wanted)
    unknown = [label for label in own if label not in known]
    if missing or unknown:
        parts = [
            f"{what} {list_some(labels)}"
            for what, labels in (("missing are", missing), ("unknown are", unknown))
            if labels
        ]
        raise InputError(
            f"The columns of `{name}` must be the labels of {beside}, in any order; "
            f"{'; '.join(parts)}. Rename or drop columns, or pass an array to go by position."
        )
    return np.array([position[label] for label in wanted], dtype=np.intp)


def write_names(rows: Any, label_names: Sequence[str] | None, sep: str | None = None) -> list[Any]:
    """Return the names of the labels that are set, as `read_labelsets` reads them.

    Parameters
    ----------
    rows
        (n, L) zeros and ones, or a mask.
    label_names
        One for each column; None writes y0, y1, ...
    sep
        What stands between them in a text, see `check_sep`; None for tuples of names.

    Examples
    --------
    >>> write_names([[1, 1], [0, 0]], ["cat", "dog"]), write_names([[1, 1]], ["cat", "dog"], ";")
    ([('cat', 'dog'), ()], ['cat;dog'])
    """
    names = to_names(rows, label_names)
    return list(names) if sep is None else [sep.join(labels) for labels in names]


def check_sep(sep: str | None, label_names: Sequence[str] | None) -> None:
    """Refuse what does not give the names back when the text is read, as `read_labelsets` does."""
    if sep is None:
        return
    if not isinstance(sep, str) or not sep:
        raise InputError(
            f"`sep` must be the text between names of labels, e.g. ';', or None for tuples of "
            f"names, got {sep!r}."
        )
    for name in label_names or ["y0123456789"]:  # labels without names are shown by these
        if not name or name != name.strip() or f"{name}{sep}{name}".split(sep) != [name, name]:
            raise InputError(
                f"`sep` must stand between names of labels that can be told apart again: not "
                f"empty, without spaces around and without {sep!r}, got the label {name!r}. Choose "
                "another `sep`, rename the label, or leave `sep` out for tuples of names."
            )


name_classes_publicly(__name__)
