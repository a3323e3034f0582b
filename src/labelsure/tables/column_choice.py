"""Choice of label, feature and index columns of a file, and label values as 0 and 1."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd

from labelsure._runtime import limits as _limits
from labelsure._runtime.typing import Column, Integers, Labelsets
from labelsure.errors import DataError, InputError, unknown_name
from labelsure.labelsets.answers import parse_cell
from labelsure.labelsets.names import read_labelsets
from labelsure.tables.files import check_names, stack_rows, unknown_column
from labelsure.tables.values import CONTAINERS, MISSING, find_missing, spell_ids

LabelChoice = int | str | Iterable[str]
"""A count (negative: from the end), names or patterns, or first20, last20, top20."""

INDICATORS = {"0": 0, "1": 1, "0.0": 0, "1.0": 1, "false": 0, "true": 1, "no": 0, "yes": 1}
"""Values of a label column, by their lower-case spelling."""

MIN_ROWS_OF_ID = 20
"""Rows from which on distinct values show an id: fewer values can be distinct by chance."""

_SLICE = re.compile(r"(first|last|top)([1-9][0-9]{0,8})")


def holds_containers(column: Column) -> bool:
    """Whether some value is a list, an array or an object with keys."""
    is_nested = column.dtype == object and any(isinstance(value, CONTAINERS) for value in column)
    return is_nested or stack_rows(column) is not None


def choose_labels(
    choice: LabelChoice,
    names: Sequence[str],
    *,
    what: str,
    counts: Integers | None = None,
) -> list[int]:
    """Positions of the chosen names, in the order of `choice`.

    Matches of one pattern, and names chosen by a number, are in the order of `names`.
    """
    order = np.arange(len(names))
    ends = _SLICE.fullmatch(choice) if isinstance(choice, str) and choice not in names else None
    if ends:
        if ends[1] == "top" and counts is None:
            raise InputError(
                f"`labels` cannot be {choice!r} before it is known which {what}s are labels. Read "
                "the file with all its labels, then call `select_labels` on it."
            )
        if ends[1] == "top":
            order = np.argsort(-np.asarray(counts), kind="stable")
        choice = -int(ends[2]) if ends[1] == "last" else int(ends[2])
    if isinstance(choice, (int, np.integer)) and not isinstance(choice, bool):
        if not 1 <= abs(choice) <= len(names):
            raise InputError(
                f"`labels` must be a number from 1 to {len(names)}, the number of {what}s, or its "
                f"negative to count from the end, got {choice}."
            )
        return sorted((order[:choice] if choice > 0 else order[choice:]).tolist())
    if not isinstance(choice, Iterable):
        raise InputError(
            f"`labels` must be names, a pattern or a number of {what}s, got {choice!r}."
        )
    patterns = split_names(choice, names)
    repeats = len({*map(str, patterns)}) < len(patterns)  # counting takes quadratic time
    duplicate = next((p for p in patterns if repeats and patterns.count(p) > 1), None)
    if duplicate is not None or not patterns:
        got = f"{duplicate!r} is there twice. Leave one out" if patterns else f"got {choice!r}"
        raise InputError(f"`labels` must name at least one {what} and each once, {got}.")
    return match_names(patterns, names, what=what)


def split_names(choice: Any, names: Sequence[str]) -> list[Any]:
    """Names and patterns in a list, or in one string, as in a line of CSV."""
    if not isinstance(choice, str):
        return list(choice)
    patterns = next(csv.reader([choice], skipinitialspace=True), [""])
    return [choice] if choice in names else [pattern.strip() for pattern in patterns]


def match_names(patterns: Iterable[object], names: Sequence[str], *, what: str) -> list[int]:
    """Distinct positions of the names that are equal to a pattern or match it."""
    position = {name: j for j, name in enumerate(names)}
    positions = dict[int, None]()
    for pattern in map(str, patterns):
        exact = [position[pattern]] if pattern in position else []
        matches = exact or [j for name, j in position.items() if fnmatchcase(name, pattern)]
        if not matches:
            if what == "column":
                raise unknown_column(pattern, position)
            raise unknown_name(what, pattern, position)
        positions |= dict.fromkeys(matches)
    return list(positions)


def read_xml_labels(content: bytes, where: str) -> list[str]:
    """Label names in an xml file, in their order, at any depth."""
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
    """Label columns as zeros and ones. Raises DataError for other values."""
    Y = np.empty(columns.shape, dtype=np.int8)
    for j, name in enumerate(columns.columns):
        column = columns.iloc[:, j]
        missing = find_missing(column)
        if missing.any():
            raise DataError(
                f"Every label in {where} must be given, label {str(name)!r} is missing in row "
                f"{missing.argmax()} (rows count from 0). Fill it in or drop that row."
            )
        codes, values = pd.factorize(column.map(str) if column.dtype == object else column)
        indicators = [INDICATORS.get(str(value).strip().lower(), -1) for value in values]
        Y[:, j] = np.array(indicators, dtype=np.int8)[codes]
        if (Y[:, j] < 0).any():
            row = int((Y[:, j] < 0).argmax())
            raise DataError(
                f"Labels in {where} must be 0 or 1 (or false and true, no and yes), got "
                f"{column.iloc[row]} in row {row} (rows count from 0) of label {str(name)!r}. If "
                "that column is a feature, name the labels with `labels`; if it holds label "
                "names, say what separates them with `sep`, e.g. ';'."
            )
    return Y


def is_id_column(column: Any) -> bool:
    """Whether a column is nominal and its values are distinct, as those of an id are."""
    values = pd.Series(column).dropna()
    is_nominal = isinstance(column.dtype, pd.CategoricalDtype)
    return is_nominal and len(values) >= MIN_ROWS_OF_ID and values.is_unique


def encode_column(name: str, column: Any, where: str) -> list[tuple[str, Any]]:
    """(name, values) of a feature: floats, text, or one-hot columns ``name=value`` of a category.

    Two categories need a single column. If they are 0 and 1, or false and true, it has the name of
    the feature and these values, whatever the order in which the file declares them.
    """
    dtype = column.dtype
    if not isinstance(dtype, pd.CategoricalDtype):
        is_number = pd.api.types.is_numeric_dtype(dtype)
        return [(name, np.asarray(column, dtype=np.float64) if is_number else column)]
    values, codes = [str(value) for value in dtype.categories], pd.Categorical(column).codes
    if is_id_column(column):
        raise DataError(
            f"The nominal column {name!r} of {where} must repeat some of its values to be a "
            f"feature, all {(codes >= 0).sum()} are different, as those of an id are. Pass "
            f"index={name!r} to name the rows by it, or drop=[{name!r}] to leave it out."
        )
    numbers = np.array([INDICATORS.get(value.lower(), -1) for value in values], dtype=np.float64)
    if sorted(numbers) == [0, 1]:
        return [(name, np.where(codes < 0, np.nan, numbers[codes]))]
    _limits.check_size(
        8 * len(codes) * len(values),
        f"The one-hot columns of {name!r}, which has {len(values)} values,",
        f"Leave it out with drop=[{name!r}].",
    )
    coded = range(1, 2) if len(values) == 2 else range(len(values))
    return [(f"{name}={values[k]}", np.where(codes < 0, np.nan, codes == k)) for k in coded]


def join_encoded(
    columns: Iterable[tuple[str, object]], where: str, index: pd.Index
) -> pd.DataFrame:
    """Encoded features as one frame."""
    pairs = list(columns)
    check_names([name for name, _ in pairs], f"{where}, one-hot columns among them,")
    return pd.DataFrame(dict(pairs), index=index)


_WHOLE_NUMBER = re.compile(r"0|-?[1-9][0-9]{0,17}")
"""Integer of 64 bits without leading zeros, so that its spelling is unique."""


@dataclass(frozen=True)
class AssignedColumns:
    """Names of the columns of one file, by their use.

    Parameters
    ----------
    labels, features
        Names in the order of reading.
    index
        Column of row names; None where rows are only counted.
    """

    labels: list[str]
    features: list[str]
    index: str | None = None


@dataclass(frozen=True)
class ColumnChoice:
    """Choice of label, index and dropped columns, before a file is read.

    Parameters
    ----------
    labels
        Label columns; those of a frozenset of names are in the order of the file.
    index
        Column of row names.
    drop
        Names or patterns of columns to leave out.
    sep
        Separator of names in a column of label names.
    """

    labels: LabelChoice | Path | None = None
    index: str | None = None
    drop: str | Iterable[str] = ()
    sep: str | None = None

    def __post_init__(self) -> None:
        """Check the types of the arguments; `assign` checks that the columns exist."""
        if self.index is not None and not isinstance(self.index, str):
            raise InputError(f"`index` must be the name of one column, got {self.index!r}.")
        if self.sep is not None and not (isinstance(self.sep, str) and self.sep):
            raise InputError(
                f"`sep` must be the text between two label names, e.g. ';', got {self.sep!r}."
            )
        for name in ("labels", "drop"):  # iterators can be read once
            choice: Any = getattr(self, name)
            if isinstance(choice, Iterable) and not isinstance(choice, (str, frozenset)):
                object.__setattr__(self, name, tuple(choice))
        if not isinstance(self.drop, (str, tuple)):
            raise InputError(
                f"`drop` must be names or patterns of columns, e.g. ['notes'], got {self.drop!r}."
            )

    def assign(self, names: Sequence[str]) -> AssignedColumns:
        """Columns of a file by their use.

        Numbers and patterns in `labels` apply to the columns without `index` and `drop`.
        """
        if self.index is not None and self.index not in names:
            raise unknown_column(self.index, names)
        others = [name for name in names if name != self.index]
        role_of = {} if self.index is None else {self.index: "index"}
        _refuse_second_role(self.drop, "drop", names, role_of)
        patterns = split_names(self.drop, others)
        dropped = {others[j] for j in match_names(patterns, others, what="column")}
        remaining = [name for name in others if name not in dropped]
        _refuse_second_role(
            self.labels, "labels", names, {**role_of, **dict.fromkeys(dropped, "drop")}
        )
        if isinstance(self.labels, frozenset):
            labels = [name for name in remaining if name in self.labels]
            if not labels:
                raise InputError("`drop` and `index` must leave at least one label, all are gone.")
        else:
            chosen: Any = () if self.labels is None else self.labels
            labels = [remaining[j] for j in choose_labels(chosen, remaining, what="column")]
        if self.sep is not None and len(labels) != 1:
            raise InputError(
                f"`sep` needs one column that holds label names, `labels` stands for {len(labels)} "
                "columns. Name that column alone, e.g. labels='tags'."
            )
        is_label = set(labels)
        return AssignedColumns(labels, [n for n in remaining if n not in is_label], self.index)


def _refuse_second_role(
    choice: object, role: str, names: Sequence[str], role_of: Mapping[str, str]
) -> None:
    """Raise InputError if a choice names a column of another role."""
    patterns = split_names(choice, names) if isinstance(choice, (str, tuple)) else []
    duplicate = next((pattern for pattern in map(str, patterns) if pattern in role_of), None)
    if duplicate is not None:
        raise InputError(
            f"A column must have one role, {duplicate!r} is in `{role_of[duplicate]}` and in "
            f"`{role}`. Leave it out of one."
        )


def read_labels(
    columns: pd.DataFrame, sep: str | None, where: str, *, names_required: bool = False
) -> tuple[Labelsets, tuple[str, ...]]:
    """Labelsets and label names, from columns of zeros and ones or one column of names."""
    cells = read_label_cells(columns, sep, where, names_required=names_required)
    if cells is None:
        return read_label_columns(columns, where), tuple(str(name) for name in columns.columns)
    label_of = {str(label): label for cell in cells for label in cell}
    if not label_of:
        title = f"Column {str(columns.columns[0])!r} of {where}"
        raise DataError(f"{title} must name at least one label, it is empty in every row.")
    names = sorted(label_of, key=lambda name: _order_of(label_of[name]))
    read = read_labelsets([[str(label) for label in cell] for cell in cells], names)
    return read.labelsets, tuple(names)


def _order_of(label: Any) -> tuple[bool, float, str]:
    """Sort key: numbers by value, so that 10 comes after 9, before texts."""
    is_number = isinstance(label, (int, float)) and not isinstance(label, bool)
    return not is_number, label if is_number else 0.0, str(label)


def read_label_cells(
    columns: pd.DataFrame, sep: str | None, where: str, *, names_required: bool = False
) -> list[list[object]] | None:
    """Labels listed in each cell of one column; None for columns of zeros and ones.

    Cells are lists, JSON such as ``["a", "b"]``, or names separated by `sep`.
    """
    if columns.shape[1] != 1:
        if sep is None:
            return None
        raise InputError(
            f"`sep` needs one column of {where} that holds names of labels, it has "
            f"{columns.shape[1]}. Name it with `label_column`."
        )
    column = columns.iloc[:, 0]
    title, cells = (
        f"Column {str(column.name)!r} of {where}",
        [parse_cell(one) for one in column.tolist()],
    )
    if sep is None and not any(isinstance(cell, list) for cell in cells):
        if names_required:
            raise InputError(
                f"{title} must hold lists of label names, it holds text. Say what separates the "
                "names with `sep`, e.g. ';'."
            )
        return None
    rows: list[list[Any]] = []
    for row, cell in enumerate(cells):
        text, labels = cell.strip() if isinstance(cell, str) else None, cell
        if text == "":
            labels = []
        elif text and sep and text.lower() not in MISSING and text[0] + text[-1] != "[]":
            labels = [label.strip() for label in text.split(sep) if label.strip()]
        if not isinstance(labels, list) or any(
            isinstance(x, (list, dict)) or pd.isna(x) for x in labels
        ):
            form = "a list of names" if sep is None else f"names with {sep!r} between them"
            raise DataError(
                f"{title} must say for every row which labels it has, as {form}, got {cell!r} in "
                f"row {row} (rows count from 0). Leave it empty where there are none, or fix or "
                "drop that row."
            )
        rows.append(labels)
    return rows


def read_index(column: Column, where: str, what: str = "the `index`") -> pd.Index:
    """Row names: integers if all values are, otherwise text. Raises DataError unless unique."""
    title = f"Column {str(column.name)!r} of {where}"
    missing = find_missing(column).tolist()
    if any(missing):
        raise DataError(
            f"{title} must name every row to be {what}, it is missing in row "
            f"{missing.index(True)} (rows count from 0). Fill it in or drop that row."
        )
    names, reasons = spell_ids(column)
    for row, reason in reasons.items():
        raise DataError(f"{title} must have one value in each row, in row {row} {reason}.")
    values: list[Any] = [str(name) for name in names]
    # 007 and 7 are different names, so text becomes a number only where nothing of it is lost.
    if all(_WHOLE_NUMBER.fullmatch(text) for text in values):
        values = [int(text) for text in values]
    index = pd.Index(values, name=str(column.name))
    if not index.is_unique:
        twice = values[int(index.duplicated().argmax())]
        rows = [row for row, value in enumerate(values) if value == twice]
        raise DataError(
            f"{title} must have a different value in every row to be {what}, {twice!r} is in rows "
            f"{rows[0]} and {rows[1]} (rows count from 0). Name another column, or leave this one "
            "out with `drop`."
        )
    return index
