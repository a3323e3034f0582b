"""What each column of a file is: a label, a feature, the name of the row, or nothing to read."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from labelsure._runtime.typing import Labelsets
from labelsure.errors import DataError, InputError, unknown_name
from labelsure.labelsets.names import read_labelsets
from labelsure.tables.datasets._columns import (
    LabelChoice,
    choose_labels,
    match_names,
    read_label_columns,
    split_names,
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

    def with_labels(self, labels: LabelChoice | frozenset[str] | None) -> ColumnChoice:
        """Return the same choice with other labels."""
        return replace(self, labels=labels)

    def assign(self, names: Sequence[str]) -> AssignedColumns:
        """Return what each column of a file is.

        The column of `index` and those of `drop` are taken out first, so that numbers and patterns
        in `labels` speak of the others.

        Parameters
        ----------
        names
            All columns of the file.
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
    """Return a frame of features without the columns to drop, its rows named by the index.

    Parameters
    ----------
    frame
        Has no labels in it.
    choice
        Which of its columns are what.
    where
        Where it comes from, for the messages.
    """
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
    """Return labelsets and label names: of columns of zeros and ones, or of one column of names.

    Parameters
    ----------
    columns
        Those that are labels.
    sep
        What stands between the names in a column of text; None where that is not how they come.
    where
        The file that they come from, for the messages.
    """
    names = tuple(str(name) for name in columns.columns)
    if len(names) == 1 and (sep is not None or _holds_lists(columns.iloc[:, 0])):
        return _read_label_names(columns.iloc[:, 0], sep, where)
    return read_label_columns(columns, where), names


def _holds_lists(column: pd.Series[Any]) -> bool:
    return column.dtype == object and any(
        isinstance(value, (list, tuple, np.ndarray)) for value in column
    )


def _read_label_names(
    column: pd.Series[Any], sep: str | None, where: str
) -> tuple[Labelsets, tuple[str, ...]]:
    title = f"Column {str(column.name)!r} of {where}"
    values = list(column)
    for row, value in enumerate(values):
        _check_label_names(value, sep, f"row {row} (rows count from 0)", title)
    names: list[str] | None = None
    if _holds_lists(column):
        values = [_split_text(value, sep, row, title) for row, value in enumerate(values)]
        labels = sorted({label for value in values for label in value})
        names = [str(label) for label in labels]  # after sorting, so that 10 comes after 9
        values = [[str(label) for label in value] for value in values]
    if not any(value.replace(sep, "").strip() if names is None else value for value in values):
        raise DataError(f"{title} must name at least one label, it is empty in every row.")
    read = read_labelsets(values, names, name=str(column.name), sep=sep)
    return read.rows, read.label_names or ()


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
    if any(pd.isna(label) for label in labels):
        raise DataError(
            f"{title} must say for every row which labels it has, one is missing in {row}. Leave "
            "it empty where there are none, or drop that row."
        )
    if not is_list and not isinstance(value, str):
        raise DataError(
            f"{title} must hold text with label names between {sep!r}, got {value!r} in {row}. "
            "Columns of zeros and ones are read without `sep`."
        )


def read_index(column: pd.Series[Any], where: str, what: str = "the `index`") -> pd.Index:
    """Return the names of rows: whole numbers as such, anything else as text.

    Parameters
    ----------
    column
        What the file has.
    where
        The file that it comes from, for the messages.
    what
        What the column is to be, for the messages.
    """
    title = f"Column {str(column.name)!r} of {where}"
    missing = [bool(pd.isna(value)) or value == "" for value in column]
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
