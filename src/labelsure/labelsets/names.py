"""Input validation and alignment of labelsets: tables, lists of names, index and columns.

`read_labelsets` reads a truth or a prediction in any form as a batch: rows of zeros and ones with
the label names and the index of the input. `align_labelsets` puts labelsets into the order of a
batch, `align_pair` a truth and a prediction into one order. Labels go by name where both sides have
names, and by position where one of them is an array; names that instances list have no positions,
so that they are refused beside labels without names. Rows go by index where both sides have one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from labelsure._runtime.notebook import N_ROWS, count, list_names, make_html
from labelsure._runtime.typing import (
    Array,
    Floats,
    Indices,
    LabelNames,
    Labelsets,
    LabelsetsLike,
    Names,
    Rows,
    RowsLike,
)
from labelsure.errors import InputError, unknown_name
from labelsure.labelsets.foreign import as_table, index_of, names_in, refuse_dicts, refuse_masked
from labelsure.labelsets.label_names import check_label_names, is_missing, read_names
from labelsure.labelsets.lists import from_indices, name_rows
from labelsure.labelsets.reading import check_shape, read_rows
from labelsure.labelsets.sparse import is_sparse, make_sparse

if TYPE_CHECKING:
    import pandas as pd


FLAGS = ({"0", "1"}, {"0.0", "1.0"}, {"False", "True"}, {"no", "yes"}, {"n", "y"})
"""Texts for absent and present labels, which a label of that name is hardly ever listed twice."""


class Batch(Protocol):
    """Instances that labelsets belong to: a `NamedLabelsets`, distributions, partial answers."""

    def __len__(self) -> int: ...

    @property
    def n_labels(self) -> int:
        """The number of labels, L."""

    @property
    def label_names(self) -> LabelNames:
        """One for each label; None where they have none, so that columns go by position."""

    @property
    def index(self) -> pd.Index | None:
        """Row names; None where rows have none."""


@dataclass(frozen=True, eq=False, repr=False)
class NamedLabelsets:
    """Labelsets with label names and row names, accepted wherever labelsets are.

    Parameters
    ----------
    labelsets
        (n, L) zeros and ones, which `numpy.asarray` gives; sparse for very many labels.
    label_names
        One for each column; None where columns have no names.
    index
        Row names; None where rows have none.

    Examples
    --------
    >>> from labelsure import read_labelsets
    >>> read_labelsets([["cat"], ["dog", "cat"]]).label_names
    ('cat', 'dog')
    """

    labelsets: Labelsets
    label_names: LabelNames = None
    index: pd.Index | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """The number of labelsets, and of labels."""
        n_samples, n_labels = self.labelsets.shape
        return n_samples, n_labels

    @property
    def n_labels(self) -> int:
        """The number of labels, L."""
        return self.shape[1]

    @property
    def columns(self) -> LabelNames:
        """The label names, under the name of that attribute of a table."""
        return self.label_names

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """Dense array of the labelsets."""
        dense = self.labelsets.toarray() if is_sparse(self.labelsets) else self.labelsets  # type: ignore[attr-defined]
        return np.array(dense, dtype=dtype, copy=copy)

    def __repr__(self) -> str:
        n_samples, n_labels = self.shape
        return f"{type(self).__name__}(n_samples={n_samples}, n_labels={n_labels})"

    def __getitem__(self, rows: RowsLike) -> Self:
        """Labelsets of some rows: an index, a slice, indices or a mask."""
        return take_rows(self, rows)

    def to_frame(self, *, sep: str | None = None) -> pd.DataFrame:
        """Label names of each instance as a table, a row an instance.

        Parameters
        ----------
        sep
            Separator between label names, e.g. ";" for CSV; None for tuples of names.
        """
        import pandas as pd

        check_sep(sep, self.label_names)
        named = name_rows(self.labelsets, self.label_names, sep)
        index = pd.RangeIndex(len(self)) if self.index is None else self.index
        return pd.DataFrame({"labels": named}).set_axis(index)

    def _repr_html_(self) -> str:
        sizes = f"{count(len(self), 'labelset')} of {count(self.shape[1], 'label')}"
        return make_html(f"{sizes}.", self[:N_ROWS].to_frame())


def read_labelsets(
    Y: LabelsetsLike,
    label_names: Names = None,
    *,
    name: str = "Y",
    sep: str | None = None,
    sparse: bool = False,
) -> NamedLabelsets:
    """Read labelsets from arrays, tables, sparse matrices or lists of label names.

    Parameters
    ----------
    Y
        - (n, L) zeros and ones or booleans: array, lists, sparse matrix, or a DataFrame of pandas,
          Polars or another library that speaks Arrow (whose columns name the labels); a
          result of this function or of `labelsure.decide`;
        - for each instance the names of its labels: a list of lists or sets, a Series of them, or,
          with `sep`, strings such as ``"a;b"``.
    label_names
        The labels in the order of the returned columns: columns of a DataFrame are sorted into it,
        columns of an array have it. None: the columns of a DataFrame, or else all names that occur,
        sorted.
    name
        Name of the argument in messages.
    sep
        Separator between the names in a string.
    sparse
        Return the rows as a `scipy.sparse.csr_array`, for very many labels.

    Returns
    -------
    NamedLabelsets
        `labelsets`, (n, L) zeros and ones; `label_names`; and `index`, the names of the rows.

    See Also
    --------
    read_dataset : Read features and labelsets from a file.
    accuracy : Takes labelsets in all of these forms.

    Examples
    --------
    >>> read_labelsets([{"cat"}, set(), {"dog", "cat"}]).labelsets
    array([[1, 0],
           [0, 0],
           [1, 1]], dtype=int8)
    >>> read_labelsets(["dog;cat", ""], ["cat", "dog"], sep=";").labelsets
    array([[1, 1],
           [0, 0]], dtype=int8)
    """
    parsed = ParsedLabelsets.read(Y, name, sep)
    names = parsed.label_names if label_names is None else read_names(label_names)
    if parsed.sets is not None and names is None:
        names = parsed.names_in_sets
        if not names:
            raise InputError(
                f"`{name}` must name at least one label, got only empty labelsets. Pass "
                "`label_names`."
            )
    rows = parsed.to_rows(names, beside="`label_names`", sparse=sparse)
    return NamedLabelsets(rows, check_label_names(names, rows.shape[1]), parsed.index)


@dataclass(frozen=True)
class ParsedLabelsets:
    """Parsed label input, not yet aligned to label names.

    Parameters
    ----------
    name
        Name of the argument in messages.
    values
        Zeros and ones in any form.
    sets
        The label names of each instance instead; None for zeros and ones.
    label_names
        The columns of a table; None where columns have no names, or for sets of names.
    index
        One entry for each row; None where rows have no names.
    """

    name: str
    values: Any
    sets: list[list[str]] | None
    label_names: LabelNames
    index: pd.Index | None

    @classmethod
    def read(cls, Y: LabelsetsLike, name: str, sep: str | None = None) -> ParsedLabelsets:
        """Labelsets in any form, parsed; the arguments are those of `read_labelsets`."""
        if isinstance(Y, NamedLabelsets):
            return cls(name, Y.labelsets, None, Y.label_names, Y.index)
        refuse_dicts(Y, name)
        index, values = index_of(Y), as_table(Y)
        sets = _parse_name_sets(values, name, sep)
        columns = None if sets is not None else names_in(values)
        names = None if columns is None else check_label_names(columns, len(columns))
        return cls(name, values, sets, names, index)

    @property
    def names_in_sets(self) -> tuple[str, ...]:
        """All names in the sets, sorted."""
        return tuple(sorted({label for labels in self.sets or () for label in labels}))

    def to_rows(self, label_names: LabelNames, *, beside: str, sparse: bool) -> Labelsets:
        """Rows with columns in the order of these names; None leaves them in place."""
        if self.sets is not None:
            if label_names is None:
                raise InputError(
                    f"`{self.name}` lists names, and {beside} has none: pass `label_names=` or a "
                    f"DataFrame there, or zeros and ones as `{self.name}`."
                )
            return _encode_sets(self.sets, label_names, self.name, sparse)
        if _is_ambiguous(self.values, label_names or ()):
            raise InputError(
                f"`{self.name}` must be an array of zeros and ones, or lists of names as text, "
                "where labels are called 0 and 1: a list of numbers can mean both, got "
                f"{self.values[0]!r} in row 0. Write numpy.array([[0, 1]]) or [['0', '1']]."
            )
        rows = read_rows(self.values, self.name, sparse=sparse)
        if self.label_names is None or label_names is None or self.label_names == label_names:
            return rows
        rows = rows[:, match_labels(self.label_names, label_names, self.name, beside)]
        return make_sparse(rows) if sparse else rows

    def to_batch(self, like: Batch, *, beside: str, sparse: bool) -> Labelsets:
        """Rows in the order of the labels and instances of a batch."""
        rows = self.to_rows(like.label_names, beside=beside, sparse=sparse)
        check_shape(rows.shape, self.name, len(like), like.n_labels)
        order = align_rows(self.index, like.index, name=self.name, beside=beside)
        return rows if order is None else rows[order]


def align_pair(Y_true: LabelsetsLike, Y_pred: LabelsetsLike) -> tuple[Labelsets, Labelsets]:
    """Truth and prediction with the rows and columns of the first.

    Raises InputError if they differ.

    The labels of two lists of names are all names that occur in either.
    """
    one, other = ParsedLabelsets.read(Y_true, "Y_true"), ParsedLabelsets.read(Y_pred, "Y_pred")
    sparse = is_sparse(one.values) or is_sparse(other.values)
    labels = other.label_names if one.label_names is None else one.label_names
    if one.sets is not None and other.sets is not None:
        labels = tuple(sorted({*one.names_in_sets, *other.names_in_sets}))
        if not labels:
            raise InputError(
                "`Y_true` or `Y_pred` must name a label, got only empty labelsets. Read them by "
                "`read_labelsets` with `label_names=`."
            )
    rows = one.to_rows(labels, beside="`Y_pred`", sparse=sparse)
    batch = NamedLabelsets(rows, labels, one.index)
    return rows, other.to_batch(batch, beside="`Y_true`", sparse=sparse)


def order_columns(source: Any, label_names: Names, name: str) -> tuple[Any, Any]:
    """Scores with columns in the order of label names, and these names."""
    table = as_table(source)
    columns = names_in(table)
    if columns is None or label_names is None:
        return table, columns if label_names is None else label_names
    wanted = read_names(label_names)
    assert wanted is not None
    return table.iloc[:, match_labels(tuple(columns), wanted, name, "`label_names`")], wanted


def _is_ambiguous(values: object, label_names: Sequence[str]) -> bool:
    """Whether lists of 0 and 1 can also be label names, which would give other rows."""
    if not isinstance(values, (list, tuple)) or label_names in ((), ("1",)):
        return False
    if not {*label_names} <= {"0", "1"} or not all(
        isinstance(row, (list, tuple)) for row in values
    ):
        return False
    rows = [[str(entry) for entry in row] for row in values]
    return bool(rows) and all(
        len({*row}) == len(row) == len(label_names) and {*row} <= {*label_names} for row in rows
    )


def _parse_name_sets(Y: LabelsetsLike, name: str, sep: str | None) -> list[list[str]] | None:
    """Label names of each instance; None where Y holds zeros and ones."""
    entries: Sequence[Any] = ()
    if hasattr(Y, "columns"):
        if Y.shape[1] == 1 and Y.iloc[:, 0].dtype.kind not in "biuf":
            entries = list(Y.iloc[:, 0])
    elif isinstance(Y, np.ndarray):
        entries = list(Y) if Y.ndim == 1 or (Y.ndim == 2 and Y.dtype.kind in "OUT") else ()
    elif isinstance(Y, Iterable) and not hasattr(Y, "toarray"):
        entries = list(Y)
    are_names = any(isinstance(entry, str) or lists_names(entry) for entry in entries)
    if not are_names and not (entries and all(map(_is_empty, entries))):
        return None
    sets = [_parse_names(entry, i, name, sep) for i, entry in enumerate(entries)]
    named = {label for labels in sets for label in labels}
    if any(named <= flags for flags in FLAGS) and any(len({*row}) < len(row) for row in sets):
        raise InputError(
            f"`{name}` must hold numbers or label names, got texts that are flags: "
            f"{list_some(sorted(named))}. Compare them with the text for a label that is present, "
            "e.g. `numpy.asarray(Y) == '1'`."
        )
    return sets


def lists_names(entry: Any) -> bool:
    """Whether an entry is a set, or a sequence that contains a text."""
    is_list = isinstance(entry, (list, tuple, np.ndarray))
    return isinstance(entry, (set, frozenset)) or (
        is_list and any(isinstance(label, str) for label in entry)
    )


def _is_empty(entry: object) -> bool:
    return isinstance(entry, (list, tuple, np.ndarray)) and np.ndim(entry) > 0 and len(entry) == 0


def _parse_names(entry: object, row: int, name: str, sep: str | None) -> list[str]:
    if isinstance(entry, str):
        if sep is None:
            raise InputError(
                f"`{name}` must be zeros and ones, or a list of label names for each instance, got "
                f"the text {entry!r} in row {row}. Split texts by `read_labelsets(..., sep=';')`."
            )
        return [label.strip() for label in entry.split(sep) if label.strip()]
    if not isinstance(entry, Iterable):
        raise InputError(
            f"`{name}` must be a list of label names for each instance, got {entry!r} in row "
            f"{row}. Write an empty list for no labels."
        )
    labels = list(entry)
    if any(map(is_missing, labels)):
        raise InputError(
            f"`{name}` must list label names, got a missing one in row {row}. Leave it out."
        )
    return [str(label) for label in labels]


def _encode_sets(
    sets: list[list[str]], names: tuple[str, ...], name: str, sparse: bool
) -> Labelsets:
    check_label_names(names, len(names))
    position = {label: j for j, label in enumerate(names)}
    indices = [[position.get(label, -1) for label in labels] for labels in sets]
    for i, labels_of_row in enumerate(indices):
        if -1 in labels_of_row:
            unknown = sets[i][labels_of_row.index(-1)]
            raise unknown_name(f"label in row {i} of `{name}`:", unknown, position)
    if sparse:
        return from_indices(indices, len(position))
    rows = np.zeros((len(sets), len(position)), dtype=np.int8)
    for row, labels_of_row in zip(rows, indices, strict=True):
        row[labels_of_row] = 1
    return rows


def align_labelsets(
    Y: LabelsetsLike,
    like: Batch,
    *,
    name: str,
    beside: str = "the distribution",
    sparse: bool = False,
) -> Labelsets:
    """Labelsets in the order of the labels and instances of a batch.

    Raises InputError if labels or instances differ.
    """
    is_plain = type(Y) is np.ndarray and Y.ndim == 2 and Y.dtype.kind in "biuf"
    if is_plain or (sparse and is_sparse(Y)):  # the usual case, without parsing
        return read_rows(Y, name, n_samples=len(like), n_labels=like.n_labels, sparse=sparse)
    return ParsedLabelsets.read(Y, name).to_batch(like, beside=beside, sparse=sparse)


def match_labels(own: tuple[str, ...], wanted: tuple[str, ...], name: str, beside: str) -> Indices:
    """Positions of the wanted labels, (L,). Raises InputError unless both have the same names."""
    position = {label: j for j, label in enumerate(own)}
    if position.keys() != set(wanted):
        raise InputError(
            f"The columns of `{name}` must be the labels of {beside}, in any order; "
            f"{_list_differences(own, wanted)}. Rename or drop columns, or pass an array to match "
            "them by position."
        )
    return np.array([position[label] for label in wanted], dtype=np.intp)


def _list_differences(own: Iterable[object], wanted: Iterable[object]) -> str:
    """Missing and unknown names as text, for messages."""
    present, expected = dict.fromkeys(map(str, own)), dict.fromkeys(map(str, wanted))
    sides = {
        "missing are": [name for name in expected if name not in present],
        "unknown are": [name for name in present if name not in expected],
    }
    return "; ".join(f"{relation} {list_some(names)}" for relation, names in sides.items() if names)


def check_sep(sep: str | None, label_names: Sequence[str] | None) -> None:
    """Raise InputError unless names that are joined by `sep` can be split again."""
    if sep is None:
        return
    names = label_names or ["y0123456789"]  # labels without names are shown by these
    for name in names:
        if (
            not (isinstance(sep, str) and sep and name)
            or name != name.strip()
            or f"{name}{sep}{name}".split(sep) != [name, name]
        ):
            raise InputError(
                "`sep` must separate label names, or be None. Names must not be empty, begin or "
                f"end with spaces, or contain it: got sep={sep!r} and the label {name!r}."
            )


def take_rows(batch: Any, rows: Any) -> Any:
    """Copy of a dataclass with some rows; all fields but `label_names` have one entry a row."""
    taken = pick_rows(rows, len(batch), batch.index)
    parts = {field.name: getattr(batch, field.name) for field in fields(batch)}
    del parts["label_names"]
    selected = {name: part if part is None else part[taken] for name, part in parts.items()}
    return replace(batch, **selected)


def pick_rows(rows: Any, n_samples: int, index: pd.Index | None = None) -> Rows:
    """Slice or row numbers for an index, a slice, indices or a mask.

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
    """Error for an index with too few or too many entries."""
    return InputError(
        f"`index` must have one entry for each of the {n_samples} instances, got {len(index)}."
    )


def align_rows(
    own: pd.Index | None, wanted: pd.Index | None, *, name: str, beside: str
) -> Indices | None:
    """Order that brings rows into that of another index; None where they are in it already.

    Raises InputError if the two have different rows.
    """
    if own is None or wanted is None or own.equals(wanted):
        return None
    if counts_rows(own) or counts_rows(wanted):
        if len(own) == len(wanted) and all(
            counts_rows(index, in_order=False) for index in (own, wanted)
        ):
            raise InputError(
                f"The rows of `{name}` and {beside} must be in one order: one index is 0, 1, 2, "
                "..., the other has the same numbers in another order. Reorder one with `.loc`, or "
                "reset both to match rows by position."
            )
        return None
    for which, index in ((f"`{name}`", own), (beside, wanted)):
        if not index.is_unique or own.nlevels != wanted.nlevels:
            twice = [] if index.is_unique else [index[index.duplicated()][0]]
            got = f"{twice[0]!r} twice" if twice else f"{own.nlevels} and {wanted.nlevels} levels"
            raise InputError(
                f"The index of {which} must name each row once, with the levels of the other, got "
                f"{got}. Reset both indices to match rows by position."
            )
    if len(own) != len(wanted) or not wanted.isin(own).all():
        raise InputError(
            f"The rows of `{name}` must be those of {beside}, in any order; "
            f"{_list_differences(own, wanted)}. Select the same rows, or reset both indices to "
            "match rows by position."
        )
    return np.asarray(own.get_indexer(wanted), dtype=np.intp)


def align_values(
    values: object, index: pd.Index | None, *, name: str, beside: str = "the distribution"
) -> Any:
    """Values, one for each row, in the order of an index; unchanged where one has no index."""
    order = align_rows(index_of(values), index, name=name, beside=beside)
    return values if order is None else np.asarray(values)[order]


def counts_rows(index: pd.Index, *, in_order: bool = True) -> bool:
    """Whether an index is 0, 1, ..., n - 1, in this order or (`in_order=False`) in any."""
    if index.nlevels > 1 or index.dtype.kind not in "iu":
        return False
    numbers = index.to_numpy()
    return np.array_equal(numbers if in_order else np.sort(numbers), np.arange(len(index)))


def list_some(names: Sequence[str]) -> str:
    """The first names and the number of the others, for messages.

    Examples
    --------
    >>> list_some(["a", "b"]), list_some("abcdefg")
    ("'a', 'b'", "'a', 'b', 'c', 'd', 'e' and 2 more")
    """
    return list_names([repr(name) for name in names])


def read_groups(groups: object, name: str = "groups") -> NDArray[np.str_]:
    """Groups as text, (n,). Raises InputError where one is missing."""
    import pandas as pd

    values = np.asarray(groups)
    missing = np.flatnonzero(pd.isna(values))
    if missing.size:
        raise InputError(
            f"`{name}` must name the {name[:-1]} of each instance, got none in row {missing[0]}."
        )
    return values.astype(str)


def read_vector(
    values: object,
    name: str,
    *,
    n_samples: int | None = None,
    low: float = -np.inf,
    high: float = np.inf,
    index: pd.Index | None = None,
    beside: str = "the instances",
) -> Floats:
    """One number for each instance, (n,), in the order of an index.

    Raises InputError for another shape, NaN or a number outside of [low, high].

    Examples
    --------
    >>> read_vector([1, 2, 0], "sample_weight", n_samples=3, low=0)
    array([1., 2., 0.])
    """
    refuse_masked(values, name)
    values = align_values(values, index, name=name, beside=beside)
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"`{name}` must be numbers, one for each instance: {error}.") from error
    if array.ndim != 1 or (n_samples is not None and len(array) != n_samples):
        size = "" if n_samples is None else f"{n_samples} numbers, "
        raise InputError(
            f"`{name}` must be a vector of {size}one for each of {beside}, got shape {array.shape}."
        )
    bad = np.flatnonzero(~((array >= low) & (array <= high)))
    if bad.size:
        wanted = f"lie in [{low:g}, {high:g}]" if np.isfinite(high) else f"be at least {low:g}"
        wanted = wanted if np.isfinite(low) else "not be NaN"
        raise InputError(f"`{name}` must {wanted}, got {array[bad[0]]} in row {bad[0]}.")
    return array


def check_weights(sample_weight: object, n_samples: int, index: pd.Index | None = None) -> Floats:
    """Weights of the instances, (n,). Raises InputError unless finite and one is above 0."""
    weights = read_vector(sample_weight, "sample_weight", n_samples=n_samples, low=0, index=index)
    if not (np.isfinite(weights).all() and weights.any()):
        raise InputError(
            "`sample_weight` must be finite with some weight above zero, got a maximum of "
            f"{weights.max(initial=0.0)}."
        )
    return weights
