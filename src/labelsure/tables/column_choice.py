"""Which columns of a file are labels, features or row names, and label values as 0 and 1."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Hashable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from labelsure._runtime import limits as _limits
from labelsure._runtime.typing import Floats, Integers, Labelsets, Mask
from labelsure.errors import DataError, InputError, unknown_name
from labelsure.labelsets.names import read_labelsets
from labelsure.tables.files import check_names, stack_rows

LabelChoice = int | str | Iterable[str]
"""A count (negative: from the end), names or patterns, or first20, last20, top20."""

INDICATORS = {"0": 0, "1": 1, "0.0": 0, "1.0": 1, "false": 0, "true": 1, "no": 0, "yes": 1}
"""How files spell that an instance does not have a label, or has it."""

MISSING = frozenset({"", "?", "na", "n/a", "nan", "-nan", "null"})
"""How files spell that a value is not there, in small letters."""

MIN_ROWS_OF_ID = 20
"""In fewer rows the values of an ordinary nominal feature can all be different by chance."""

_SLICE = re.compile(r"(first|last|top)([1-9][0-9]{0,8})")


def find_missing(column: pd.Series[Any]) -> Mask:
    """Return which values are missing, by a text that says so among others."""
    absent: Mask = column.isna().to_numpy(dtype=bool)
    if not (isinstance(column.dtype, pd.StringDtype) or column.dtype == object):
        return absent
    spelled = [isinstance(value, str) and value.strip().lower() in MISSING for value in column]
    return absent | np.array(spelled, dtype=bool)


def read_texts(column: pd.Series[Any]) -> tuple[Any, Mask]:
    """Return the values as text without spaces around them, and which of them are missing."""
    missing = find_missing(column)
    values = zip(column, missing, strict=True)
    texts = ["" if is_missing else str(value).strip() for value, is_missing in values]
    return np.array(texts, dtype=object), missing


def read_numbers(column: pd.Series[Any]) -> tuple[Floats, Mask]:
    """Return the values as floats, NaN where they are missing, and which are no finite numbers."""
    if pd.api.types.is_numeric_dtype(column.dtype):  # bool among them
        values = column.to_numpy(dtype=np.float64, na_value=np.nan)
        return values, np.isinf(values)
    if isinstance(column.dtype, pd.StringDtype):
        # Arrow is far quicker than Python one by one, with the same bits: both round correctly.
        strings = pa.array(column, from_pandas=True)
        with suppress(pa.ArrowInvalid):
            numbers = pc.if_else(pc.equal(strings, ""), None, strings).cast(pa.float64())
            values = np.array(numbers.to_numpy(zero_copy_only=False))
            return values, np.isinf(values)
    texts, missing = read_texts(column)
    values = np.full(len(texts), np.nan)
    for at in np.flatnonzero(~missing):
        with suppress(ValueError):  # Python reads 1_000 as a number
            values[at] = float("x" if "_" in texts[at] else texts[at])
    return values, ~missing & ~np.isfinite(values)


def holds_containers(column: pd.Series[Any]) -> bool:
    """Whether some value is a list, an array or an object with keys."""
    kinds = (list, tuple, dict, np.ndarray)
    is_some = column.dtype == object and any(isinstance(value, kinds) for value in column)
    return is_some or stack_rows(column) is not None


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
    parts = split_names(choice, names)
    twice = next((part for part in parts if parts.count(part) > 1), None)
    if twice is not None or not parts:
        got = f"{twice!r} is there twice. Leave one out" if parts else f"got {choice!r}"
        raise InputError(f"`labels` must name at least one {what} and each once, {got}.")
    return match_names(parts, names, what=what)


def split_names(choice: Any, names: Sequence[str]) -> list[Any]:
    """Return the names and patterns in a list, or in one string, as in a line of CSV."""
    if not isinstance(choice, str):
        return list(choice)
    parts = next(csv.reader([choice], skipinitialspace=True), [""])
    return [choice] if choice in names else [part.strip() for part in parts]


def match_names(parts: Iterable[Any], names: Sequence[str], *, what: str) -> list[int]:
    """Return the positions of names and of whatever patterns match, each once."""
    position = {name: j for j, name in enumerate(names)}
    found = dict[int, None]()
    for part in parts:
        own = [position[part]] if part in position else []
        matches = own or [j for name, j in position.items() if fnmatchcase(name, str(part))]
        if not matches:
            raise unknown_name(what, part, position)
        found |= dict.fromkeys(matches)
    return list(found)


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
        column = columns.iloc[:, j]
        missing = find_missing(column)
        if missing.any():
            raise DataError(
                f"Every label in {where} must be given, label {str(name)!r} is missing in row "
                f"{missing.argmax()} (rows count from 0). Fill it in or drop that row."
            )
        codes, values = pd.factorize(column.map(str) if column.dtype == object else column)
        spelled = [INDICATORS.get(str(value).strip().lower(), -1) for value in values]
        Y[:, j] = np.array(spelled, dtype=np.int8)[codes]
        if (Y[:, j] < 0).any():
            row = int((Y[:, j] < 0).argmax())
            raise DataError(
                f"Labels in {where} must be 0 or 1 (or false and true, no and yes), "
                f"got {column.iloc[row]} in row {row} (rows count from 0) of label "
                f"{str(name)!r}. If that column is a feature, name the labels with `labels`; if it "
                "holds the names of labels, say what stands between them, e.g. sep=';'."
            )
    return Y


def encode_nominal(
    name: str, codes: Integers, values: Sequence[str], where: str
) -> list[tuple[str, Floats]]:
    """Return the one-hot columns ``name=value`` of one nominal feature; codes below 0 are missing.

    Two values need a single column. Where they are 0 and 1, or false and true, it has the name of
    the feature and those numbers, in whatever order the file declares them.
    """
    given = codes[codes >= 0]
    if MIN_ROWS_OF_ID <= len(given) == len(np.unique(given)):
        raise DataError(
            f"The nominal column {name!r} of {where} must repeat some of its values to be a "
            f"feature, all {len(given)} are different, as those of an id are. Pass index={name!r} "
            f"to name the rows by it, or drop=[{name!r}] to leave it out."
        )
    indicators = read_indicators(values)
    if indicators is not None:
        return [(name, np.where(codes < 0, np.nan, indicators[codes]))]
    _limits.check_size(
        8 * len(codes) * len(values),
        f"The one-hot columns of {name!r}, which has {len(values)} values,",
        f"Leave it out with drop=[{name!r}].",
    )
    shown = range(1, 2) if len(values) == 2 else range(len(values))
    return [(f"{name}={values[k]}", np.where(codes < 0, np.nan, codes == k)) for k in shown]


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
            columns += encode_nominal(str(name), codes, values, where)
        elif pd.api.types.is_numeric_dtype(column.dtype):
            columns.append((str(name), column.to_numpy(dtype=np.float64, na_value=np.nan)))
        else:
            columns.append((str(name), column))
    check_names([name for name, _ in columns], f"{where}, one-hot columns among them,")
    return pd.DataFrame(dict(columns), index=frame.index)


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

    labels: LabelChoice | Path | None = None
    index: str | None = None
    drop: str | Iterable[str] = ()
    sep: str | None = None

    def __post_init__(self) -> None:
        """Check the types of the arguments; whether the columns exist is known later."""
        if self.index is not None and not isinstance(self.index, str):
            raise InputError(f"`index` must be the name of one column, got {self.index!r}.")
        if self.sep is not None and not (isinstance(self.sep, str) and self.sep):
            raise InputError(
                f"`sep` must be the text between two label names, e.g. ';', got {self.sep!r}."
            )
        for name, choice in (("labels", self.labels), ("drop", self.drop)):
            is_fine = name == "labels" or isinstance(choice, str)
            if isinstance(choice, Iterable) and not isinstance(choice, (str, frozenset)):
                choice = tuple(choice)
                object.__setattr__(self, name, choice)
                is_fine = all(isinstance(part, Hashable) for part in choice)
            if not is_fine:
                raise InputError(
                    f"`{name}` must be names or patterns of columns, e.g. ['notes'], got "
                    f"{choice!r}."
                )

    def assign(self, names: Sequence[str], *, has_labels: bool = True) -> AssignedColumns:
        """Return what each column of a file is, or of one in which no column is a label.

        The column of `index` and those of `drop` are taken out first, so that numbers and patterns
        in `labels` speak of the others.
        """
        if self.index is not None and self.index not in names:
            raise unknown_name("column", self.index, names)
        self._check_one_role(names)
        others = [name for name in names if name != self.index]
        parts = split_names(self.drop, others)
        dropped = {others[j] for j in match_names(parts, others, what="column")}
        left = [name for name in others if name not in dropped]
        if not has_labels:
            return AssignedColumns([], left, self.index)
        if isinstance(self.labels, frozenset):
            labels = [name for name in left if name in self.labels]
            if not labels:
                raise InputError("`drop` and `index` must leave at least one label, all are gone.")
        else:
            chosen: Any = () if self.labels is None else self.labels
            labels = [left[j] for j in choose_labels(chosen, left, what="column")]
        if self.sep is not None and len(labels) != 1:
            raise InputError(
                f"`sep` needs one column that holds label names, `labels` stands for {len(labels)} "
                "columns. Name that column alone, e.g. labels='tags'."
            )
        is_label = set(labels)
        return AssignedColumns(labels, [n for n in left if n not in is_label], self.index)

    def _check_one_role(self, names: Sequence[str]) -> None:
        """Refuse a column that two arguments name; patterns are only about the others."""
        named = {"drop": split_names(self.drop, names)}
        if isinstance(self.labels, (str, tuple)):
            named["labels"] = split_names(self.labels, names)
        named["index"] = [] if self.index is None else [self.index]
        roles: dict[Any, str] = {}
        for role, columns in named.items():
            for column in dict.fromkeys(columns):
                if roles.setdefault(column, role) != role and column in names:
                    raise InputError(
                        f"A column must have one role, {column!r} is in `{roles[column]}` and in "
                        f"`{role}`. Take it out of one of them."
                    )

    def choose_features(self, frame: pd.DataFrame, where: str) -> pd.DataFrame:
        """Return a frame of features without the columns to drop, its rows named by the index."""
        named = frame.set_axis([str(name) for name in frame.columns], axis=1)
        columns = self.assign(list(named.columns), has_labels=False)
        chosen = named[columns.features]
        if columns.index is None:
            return chosen
        return chosen.set_axis(read_index(named[columns.index], where), axis=0)


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
    cells = None
    if columns.shape[1] == 1:
        cells = read_label_cells(columns.iloc[:, 0], sep, where)
    if cells is None:
        return read_label_columns(columns, where), tuple(str(name) for name in columns.columns)
    found = {str(label): label for cell in cells for label in cell}
    if not found:
        title = f"Column {str(columns.columns[0])!r} of {where}"
        raise DataError(f"{title} must name at least one label, it is empty in every row.")
    names = sorted(found, key=lambda name: _order_of(found[name]))
    read = read_labelsets([[str(label) for label in cell] for cell in cells], names)
    return read.labelsets, tuple(names)


def _order_of(label: Any) -> tuple[bool, float, str]:
    """Return what sorts numbers by value, so that 10 comes after 9, and before texts."""
    is_number = isinstance(label, (int, float)) and not isinstance(label, bool)
    return not is_number, label if is_number else 0.0, str(label)


def read_label_cells(column: pd.Series[Any], sep: str | None, where: str) -> list[list[Any]] | None:
    """Return the labels that each cell names; None where no `sep` is given and no cell is a list.

    Lists may also be JSON such as ``["a", "b"]``, in a text file.
    """
    cells = [
        value.tolist() if isinstance(value, np.ndarray) else value for value in column.tolist()
    ]
    texts = [cell.strip() if isinstance(cell, str) else None for cell in cells]
    is_json = any(texts) and all(
        text == "" or (text or "x")[0] + (text or "x")[-1] == "[]" for text in texts
    )
    if sep is None and not is_json and not any(isinstance(cell, (list, tuple)) for cell in cells):
        return None
    title, rows = f"Column {str(column.name)!r} of {where}", []
    for row, cell in enumerate(cells):
        at = f"in row {row} (rows count from 0)"
        if is_json:
            try:
                cell = json.loads(cell or "[]")
            except ValueError as error:
                raise DataError(
                    f'{title} must hold JSON lists such as ["a", "b"], got {cell!r} {at}. Fix or '
                    "drop this row."
                ) from error
        labels = list(cell) if isinstance(cell, (list, tuple)) else [cell]
        if not all(pd.api.types.is_scalar(label) for label in labels):
            raise DataError(f"{title} must hold lists of label names, got {cell!r} {at}.")
        is_text = isinstance(cell, str)
        is_missing = is_text and cell.strip() != "" and cell.strip().lower() in MISSING
        if is_missing or any(pd.isna(label) for label in labels):
            raise DataError(
                f"{title} must say for every row which labels it has, one is missing {at}. Leave "
                "it empty where there are none, or drop that row."
            )
        if is_text and sep is not None:
            labels = [label.strip() for label in cell.split(sep) if label.strip()]
        elif not isinstance(cell, (list, tuple)):
            must = "a list" if sep is None else f"text with label names between {sep!r}"
            raise DataError(
                f"{title} must hold {must} in every row, got {cell!r} {at}. Write lists of label "
                "names, or say what stands between names by `sep`."
            )
        rows.append(labels)
    return rows


def read_index(column: pd.Series[Any], where: str, what: str = "the `index`") -> pd.Index:
    """Return the names of rows: whole numbers as such, anything else as text."""
    title = f"Column {str(column.name)!r} of {where}"
    missing = find_missing(column).tolist()
    if any(missing):
        raise DataError(
            f"{title} must name every row to be {what}, it is missing in row "
            f"{missing.index(True)} (rows count from 0). Fill it in or drop that row."
        )
    # 007 and 7 are different names, so text becomes a number only where nothing of it is lost.
    values: list[Any] = [
        str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
        for value in column
    ]
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
