"""Which columns of a file are labels, features or row names, and label values as 0 and 1."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd

from labelsure._runtime import limits as _limits
from labelsure._runtime.typing import Floats, Integers, Labelsets
from labelsure.errors import DataError, InputError, unknown_name
from labelsure.labelsets.names import read_labelsets
from labelsure.tables.files import mark_missing, says_missing

LabelChoice = int | str | Iterable[str]
"""A count (negative: from the end), names or patterns, or first20, last20, top20."""

INDICATORS = {"0": 0, "1": 1, "0.0": 0, "1.0": 1, "false": 0, "true": 1, "no": 0, "yes": 1}
"""How files spell that an instance does not have a label, or has it."""

MIN_ROWS_OF_ID = 20
"""In fewer rows the values of an ordinary nominal feature can all be different by chance."""

Column = tuple[str, Floats]
"""A name and its values."""

_SLICE = re.compile(r"(first|last|top)([1-9][0-9]{0,8})")


def choose_labels(
    choice: LabelChoice,
    names: Sequence[str],
    *,
    what: str,
    counts: Integers | None = None,
) -> list[int]:
    """Return the positions of the chosen names.

    Names come in the order of `choice`, whatever a pattern or a number chooses in that of `names`.
    """
    if isinstance(choice, (int, np.integer)) and not isinstance(choice, bool):
        return _from_one_end(int(choice), len(names), what)
    if isinstance(choice, str):
        ends = _SLICE.fullmatch(choice)
        if ends and choice not in names:
            return _slice(ends[1], int(ends[2]), len(names), what, counts)
    try:
        parts = split_names(choice, names)
        counted = Counter(parts)
    except TypeError as error:
        raise InputError(
            f"`labels` must be names, a pattern or a number of {what}s, got {choice!r}."
        ) from error
    twice = next((part for part, count in counted.items() if count > 1), None)
    if twice is not None:
        raise InputError(
            f"`labels` must name each {what} once, {twice!r} is there twice. Leave one out."
        )
    chosen = match_names(parts, names, what=what)
    if not chosen:
        raise InputError(f"`labels` must name at least one {what}, got {choice!r}.")
    return chosen


def split_names(choice: Any, names: Sequence[str]) -> list[Any]:
    """Return the names and patterns in a list, or in one string with commas."""
    if not isinstance(choice, str):
        return list(choice)
    return [choice] if choice in names else [part.strip() for part in choice.split(",")]


def match_names(parts: Iterable[Any], names: Sequence[str], *, what: str) -> list[int]:
    """Return the positions of names and of whatever patterns match, each once."""
    position = {name: j for j, name in enumerate(names)}
    return list(dict.fromkeys(j for part in parts for j in _matches(part, position, what)))


def _matches(part: Any, position: dict[str, int], what: str) -> list[int]:
    if part in position:
        return [position[part]]
    found = [j for name, j in position.items() if fnmatchcase(name, str(part))]
    if not found:
        raise unknown_name(what, part, position)
    return found


def _from_one_end(count: int, n_names: int, what: str) -> list[int]:
    if count == 0 or abs(count) > n_names:
        raise InputError(
            f"`labels` must be a number from 1 to {n_names}, the number of {what}s, or its "
            f"negative to count from the end, got {count}."
        )
    return list(range(count)) if count > 0 else list(range(n_names + count, n_names))


def _slice(end: str, count: int, n_names: int, what: str, counts: Integers | None) -> list[int]:
    if end != "top":
        return _from_one_end(count if end == "first" else -count, n_names, what)
    if counts is None:
        raise InputError(
            f"`labels` cannot be 'top{count}' before it is known which {what}s are labels. "
            "Read the file with all its labels, then call `select_labels` on it."
        )
    positions = _from_one_end(count, n_names, what)  # checks the count
    most_frequent = np.argsort(-counts, kind="stable")[: len(positions)]
    return sorted(most_frequent.tolist())


def read_xml_labels(content: bytes, where: str) -> list[str]:
    """Return the names of the labels, in whatever order and nesting they come."""
    if b"<!DOCTYPE" in content.replace(b"\0", b""):  # entities can grow without end
        raise DataError(f"{where} must not have declarations (`<!...>`) in it. Remove them.")
    try:
        elements = ElementTree.fromstring(content).iter()
    except (ElementTree.ParseError, LookupError, ValueError) as error:
        raise DataError(f"{where} must be xml that names labels, but {error}.") from error
    names = [one.get("name", "") for one in elements if one.tag.rpartition("}")[2] == "label"]
    if not names or not all(names):
        raise DataError(
            f'{where} must name labels as `<label name="..."></label>` inside of `<labels>`, '
            f"it has {sum(map(bool, names))} such names for {len(names)} labels."
        )
    return names


def read_label_columns(columns: pd.DataFrame, where: str) -> Labelsets:
    """Return label columns as zeros and ones, or name the row and column that is neither."""
    Y = np.empty(columns.shape, dtype=np.int8)
    for j, name in enumerate(columns.columns):
        column = mark_missing(columns.iloc[:, j])
        missing = column.isna().to_numpy()
        if missing.any():
            raise DataError(
                f"Every label in {where} must be given, label {str(name)!r} is missing in row "
                f"{missing.argmax()} (rows count from 0). Fill it in or drop that row."
            )
        values = _read_label_column(column)
        if (values < 0).any():
            row = int((values < 0).argmax())
            raise DataError(
                f"Labels in {where} must be 0 or 1 (or false and true, no and yes), "
                f"got {column.iloc[row]} in row {row} (rows count from 0) of label "
                f"{str(name)!r}. If that column is a feature, name the labels with `labels`; if it "
                "holds the names of labels, say what stands between them, e.g. sep=';'."
            )
        Y[:, j] = values
    return Y


def _read_label_column(column: pd.Series[Any]) -> Labelsets:
    """Return 0, 1, or -1 for what is neither."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        of_category = [INDICATORS.get(str(c).lower(), -1) for c in column.cat.categories]
        return np.array(of_category, dtype=np.int8)[column.cat.codes.to_numpy()]
    if pd.api.types.is_numeric_dtype(column.dtype):  # bool among them
        values = column.to_numpy()
        return np.where(values == 1, 1, np.where(values == 0, 0, -1)).astype(np.int8)
    spelled = (str(value).strip().lower() for value in column)
    return np.array([INDICATORS.get(value, -1) for value in spelled], dtype=np.int8)


def check_repeated(name: str, codes: Integers, values: Sequence[str], where: str) -> None:
    """Refuse a nominal feature that has a different value in every row, as an id has."""
    n_rows = int((codes >= 0).sum())
    if n_rows < MIN_ROWS_OF_ID or len(values) < n_rows:
        return
    if len(np.unique(codes[codes >= 0])) == n_rows:
        raise DataError(
            f"The nominal column {name!r} of {where} must repeat some of its values to be a "
            f"feature, all {n_rows} are different, as those of an id are. Pass index={name!r} to "
            f"name the rows by it, or drop=[{name!r}] to leave it out."
        )


def encode_codes(name: str, codes: Integers, values: Sequence[str]) -> list[Column]:
    """Return the one-hot columns ``name=value`` of one nominal feature.

    Two values need a single column. Where they are 0 and 1, or false and true, it has the name of
    the feature and those numbers, in whatever order the file declares them.
    """
    missing = codes < 0
    indicators = read_indicators(values)
    if indicators is not None:
        return [(name, np.where(missing, np.nan, indicators[codes]))]
    _limits.check_size(
        8 * len(codes) * len(values),
        f"The one-hot columns of {name!r}, which has {len(values)} values,",
        f"Leave it out with drop=[{name!r}].",
    )
    shown = range(1, 2) if len(values) == 2 else range(len(values))
    return [(f"{name}={values[k]}", np.where(missing, np.nan, codes == k)) for k in shown]


def read_indicators(values: Sequence[str]) -> Floats | None:
    """Return 0 or 1 for each of two values that mean no and yes, None for other values."""
    numbers = [INDICATORS.get(value.lower(), -1) for value in values]
    return np.array(numbers, dtype=np.float64) if sorted(numbers) == [0, 1] else None


def encode_frame(frame: pd.DataFrame, where: str) -> pd.DataFrame:
    """Return a frame with categories as one-hot columns and numbers as floats; text stays."""
    columns: list[tuple[str, Any]] = []
    for name, column in frame.items():
        if isinstance(column.dtype, pd.CategoricalDtype):
            values = [str(value) for value in column.cat.categories]
            codes = column.cat.codes.to_numpy().astype(np.int64)
            check_repeated(str(name), codes, values, where)
            columns += encode_codes(str(name), codes, values)
        elif pd.api.types.is_numeric_dtype(column.dtype):
            columns.append((str(name), column.to_numpy(dtype=np.float64, na_value=np.nan)))
        else:
            columns.append((str(name), column))
    check_distinct([name for name, _ in columns])
    return pd.DataFrame(dict(columns), index=frame.index)


def check_distinct(names: list[str]) -> None:
    """Refuse a one-hot column that has the name of another feature."""
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise DataError(
            f"One-hot columns must have names of their own, but {twice!r} is there twice. Rename "
            "that feature."
        )


_WHOLE_NUMBER = re.compile(r"0|-?[1-9][0-9]{0,17}")
"""As it is written in one way only, and fits into 64 bits."""


@dataclass(frozen=True)
class AssignedColumns:
    """The names of the columns of one file, by what they are.

    Parameters
    ----------
    labels, features
        In the order in which they are read.
    index
        The column that names the rows; None where rows are only counted.
    """

    labels: list[str]
    features: list[str]
    index: str | None = None


@dataclass(frozen=True)
class ColumnChoice:
    """Which columns are what, as the user says it, before a file is seen.

    Parameters
    ----------
    labels
        Which columns are labels; a frozenset of names takes them in the order of the columns.
    index
        The column whose values name the rows.
    drop
        Names or patterns of columns that are left out.
    sep
        What stands between the names in a column of label names.
    """

    labels: LabelChoice | frozenset[str] | None = None
    index: str | None = None
    drop: str | tuple[str, ...] = ()
    sep: str | None = None

    @classmethod
    def read(cls, labels: Any, index: Any, drop: Any, sep: Any) -> ColumnChoice:
        """Check the types of the arguments; whether the columns exist is known later."""
        if isinstance(labels, Iterable) and not isinstance(labels, (str, frozenset)):
            labels = list(labels)
        if index is not None and not isinstance(index, str):
            raise InputError(f"`index` must be the name of one column, got {index!r}.")
        if sep is not None and not (isinstance(sep, str) and sep):
            raise InputError(
                f"`sep` must be the text between two label names, e.g. ';', got {sep!r}."
            )
        if drop is None:
            drop = ()
        elif not isinstance(drop, (str, Iterable)):
            raise _no_names("drop", drop)
        elif not isinstance(drop, str):
            drop = tuple(drop)
        for name, choice in (("labels", labels), ("drop", drop)):
            if isinstance(choice, (list, tuple)) and not all(
                isinstance(c, Hashable) for c in choice
            ):
                raise _no_names(name, choice)
        return cls(labels, index, drop, sep)

    def assign(self, names: Sequence[str]) -> AssignedColumns:
        """Return what each column of a file is.

        The column of `index` and those of `drop` are taken out first, so that numbers and patterns
        in `labels` speak of the others.
        """
        left = self.assign_features(names)
        if isinstance(self.labels, frozenset):
            labels = [name for name in left.features if name in self.labels]
            if not labels:
                raise InputError("`drop` and `index` must leave at least one label, all are gone.")
        else:
            wanted = () if self.labels is None else self.labels
            chosen = choose_labels(wanted, left.features, what="column")
            labels = [left.features[j] for j in chosen]
        if self.sep is not None and len(labels) != 1:
            raise InputError(
                f"`sep` needs one column that holds label names, `labels` stands for {len(labels)} "
                "columns. Name that column alone, e.g. labels='tags'."
            )
        is_label = set(labels)
        features = [name for name in left.features if name not in is_label]
        return AssignedColumns(labels, features, left.index)

    def assign_features(self, names: Sequence[str]) -> AssignedColumns:
        """Return what each column is where none of them is a label; arguments as in `assign`."""
        if self.index is not None and self.index not in names:
            raise unknown_name("column", self.index, names)
        self._check_one_role(names)
        others = [name for name in names if name != self.index]
        parts = split_names(self.drop, others)
        dropped = {others[j] for j in match_names(parts, others, what="column")}
        return AssignedColumns([], [name for name in others if name not in dropped], self.index)

    def _check_one_role(self, names: Sequence[str]) -> None:
        """Refuse a column that two arguments name; patterns are only about the others."""
        named: dict[str, list[Any]] = {"drop": split_names(self.drop, names)}
        if isinstance(self.labels, (str, list)):
            named["labels"] = split_names(self.labels, names)
        if self.index is not None:
            named["index"] = [self.index]
        roles: dict[Any, str] = {}
        for role, columns in named.items():
            for column in dict.fromkeys(columns):
                if column in roles and column in names:
                    raise InputError(
                        f"A column must have one role, {column!r} is in `{roles[column]}` and in "
                        f"`{role}`. Take it out of one of them."
                    )
                roles[column] = role


def _no_names(argument: str, choice: Any) -> InputError:
    return InputError(
        f"`{argument}` must be names or patterns of columns, e.g. ['notes'], got {choice!r}."
    )


def choose_features(frame: pd.DataFrame, choice: ColumnChoice, where: str) -> pd.DataFrame:
    """Return a frame of features without the columns to drop, its rows named by the index."""
    columns = choice.assign_features([str(name) for name in frame.columns])
    features = frame.set_axis([str(name) for name in frame.columns], axis=1)
    chosen = features[columns.features]
    if columns.index is None:
        return chosen
    return chosen.set_axis(read_index(features[columns.index], where), axis=0)


def check_dense(columns: AssignedColumns, where: str) -> None:
    """Refuse names for the rows of a sparse matrix."""
    if columns.index is not None:
        raise DataError(
            f"The rows of {where} must be dense to be named by `index`, a sparse matrix has no "
            f"names of rows. Leave the column out with drop=[{columns.index!r}]."
        )


def read_labels(
    columns: pd.DataFrame, sep: str | None, where: str
) -> tuple[Labelsets, tuple[str, ...]]:
    """Return labelsets and label names: of columns of zeros and ones, or of one column of names."""
    names = tuple(str(name) for name in columns.columns)
    if len(names) == 1 and (sep is not None or holds_lists(columns.iloc[:, 0])):
        return _read_label_names(columns.iloc[:, 0], sep, where)
    return read_label_columns(columns, where), names


def holds_lists(column: pd.Series[Any]) -> bool:
    """Whether a column holds lists, also as JSON such as ``["a", "b"]`` in a text file."""
    return any(isinstance(value, (list, tuple, np.ndarray)) for value in column) or _spells_lists(
        column
    )


def _spells_lists(cells: Iterable[Any]) -> bool:
    """Whether all cells are texts in brackets or empty, and not all empty."""
    texts = [cell.strip() if isinstance(cell, str) else None for cell in cells]
    return any(texts) and all(
        text == "" or (text or "x")[0] + (text or "x")[-1] == "[]" for text in texts
    )


def read_json_lists(cells: list[Any], title: str) -> list[Any]:
    """Return the lists that texts spell as JSON, other cells as they are."""
    if not _spells_lists(cells):
        return cells
    read = []
    for row, cell in enumerate(cells):
        try:
            read.append(json.loads(cell or "[]"))
        except ValueError as error:
            raise DataError(
                f'{title} must hold JSON lists such as ["a", "b"], got {cell!r} in row {row} '
                "(rows count from 0). Fix or drop this row."
            ) from error
    return read


def _read_label_names(
    column: pd.Series[Any], sep: str | None, where: str
) -> tuple[Labelsets, tuple[str, ...]]:
    title = f"Column {str(column.name)!r} of {where}"
    values = read_json_lists(list(column), title)
    for row, value in enumerate(values):
        _check_label_names(value, sep, f"row {row} (rows count from 0)", title)
    names: list[str] | None = None
    if holds_lists(column):
        values = [_split_text(value, sep, row, title) for row, value in enumerate(values)]
        found = {str(label): label for value in values for label in value}
        names = sorted(found, key=lambda name: _order_of(found[name]))
        values = [[str(label) for label in value] for value in values]
    if not any(value.replace(sep, "").strip() if names is None else value for value in values):
        raise DataError(f"{title} must name at least one label, it is empty in every row.")
    read = read_labelsets(values, names, name=str(column.name), sep=sep)
    return read.labelsets, read.label_names or ()


def _order_of(label: Any) -> tuple[bool, float, str]:
    """Return what sorts numbers by value, so that 10 comes after 9, and before texts."""
    is_number = isinstance(label, (int, float, np.number)) and not isinstance(label, bool)
    return not is_number, label if is_number else 0.0, str(label)


def _split_text(value: Any, sep: str | None, row: int, title: str) -> Any:
    """Return the names in a text that stands among lists of names; a list as it is."""
    if not isinstance(value, str):
        return value
    if sep is None:
        raise DataError(
            f"{title} must hold a list of label names in every row, got the text {value!r} in row "
            f"{row} (rows count from 0). Write a list, or say what stands between names by `sep`."
        )
    return [label.strip() for label in value.split(sep) if label.strip()]


def _check_label_names(value: Any, sep: str | None, row: str, title: str) -> None:
    is_list = isinstance(value, (list, tuple, np.ndarray))
    labels = list(value) if is_list else [value]
    if not all(pd.api.types.is_scalar(label) for label in labels):
        raise DataError(f"{title} must hold lists of label names, got {value!r} in {row}.")
    if any(pd.isna(label) for label in labels) or (not is_list and says_missing(value)):
        raise DataError(
            f"{title} must say for every row which labels it has, one is missing in {row}. Leave "
            "it empty where there are none, or drop that row."
        )
    if not is_list and not isinstance(value, str):
        raise DataError(
            f"{title} must hold text with label names between {sep!r}, got {value} in {row}. "
            "Columns of zeros and ones are read without `sep`."
        )


def read_index(column: pd.Series[Any], where: str, what: str = "the `index`") -> pd.Index:
    """Return the names of rows: whole numbers as such, anything else as text."""
    title = f"Column {str(column.name)!r} of {where}"
    missing = mark_missing(column).isna().tolist()
    if any(missing):
        raise DataError(
            f"{title} must name every row to be {what}, it is missing in row "
            f"{missing.index(True)} (rows count from 0). Fill it in or drop that row."
        )
    values = _read_row_names(list(column))
    first_row: dict[Any, int] = {}
    for row, value in enumerate(values):
        if first_row.setdefault(value, row) != row:
            raise DataError(
                f"{title} must have a different value in every row to be {what}, {value!r} is in "
                f"rows {first_row[value]} and {row} (rows count from 0). Name another column, or "
                "leave this one out with `drop`."
            )
    return pd.Index(values, name=str(column.name))


def _read_row_names(values: list[Any]) -> list[int] | list[str]:
    # 007 and 7 are different names, so text becomes a number only where nothing of it is lost.
    texts = [
        str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
        for value in values
    ]
    if all(_WHOLE_NUMBER.fullmatch(text) for text in texts):
        return [int(text) for text in texts]
    return texts
