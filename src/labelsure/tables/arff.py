"""ARFF files, dense or sparse, as Mulan, MEKA and Weka write them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from scipy import sparse

from labelsure._runtime.storage import decode
from labelsure.errors import DataError
from labelsure.tables.column_choice import (
    ColumnChoice,
    check_dense,
    check_distinct,
    encode_frame,
    encode_nominal,
    read_index,
    read_indicators,
    read_labels,
)
from labelsure.tables.dataset import Dataset
from labelsure.tables.files import check_column_count

# No pattern gives back what it has taken (++, *+), so that broken lines take no exponential time.
QUOTED = r"""'(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+\""""
_VALUE = rf"""(?:{QUOTED}|[^\s,{{}}'"]++)"""
_NOTHING = r"\s*+(?:%.*)?"
"""The end of a declaration: blanks, or a comment."""

_KEYWORD = re.compile(r"\s*+@(\w++)\s*+(.*)", re.DOTALL)
_ATTRIBUTE = re.compile(rf"""({QUOTED}|[^\s{{'"][^\s{{]*+)\s*+(.+)""", re.DOTALL)
_NOMINAL = re.compile(rf"\{{\s*+({_VALUE}(?:\s*+,\s*+{_VALUE})*+)\s*+\}}{_NOTHING}", re.DOTALL)
_NUMERIC = re.compile(rf"(?:numeric|real|integer)\b\s*+(?:\[[^\]]*+\])?{_NOTHING}", re.IGNORECASE)
_TEXT = re.compile(rf"(?:string|date(?:\s++(?:{QUOTED}|[^\s%]++))?){_NOTHING}", re.IGNORECASE)
_CELL = re.compile(rf"""((?:{QUOTED}|[^,'"])*+)(?:,|$)""", re.DOTALL)
_COMMENT = re.compile(rf"""((?:{QUOTED}|(?!\s%)[^'"])*+)\s%.*""", re.DOTALL)
_MEKA_COUNT = re.compile(r"(?:^|[\s:])-C\s++(-?[0-9]{1,9})(?![0-9])")

NUMERIC, TEXT, NOMINAL = "numeric", "text", "nominal"
ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}
"""What stands for other characters behind a backslash; all else stands for itself."""


@dataclass(frozen=True)
class Attribute:
    """One declared column; `values` are those of a nominal one, in their order."""

    name: str
    kind: str
    values: tuple[str, ...] = ()


def read_arff(content: bytes, choice: ColumnChoice, where: str) -> Dataset:
    """Return the data set that an ARFF file holds."""
    lines = decode(content).replace("\r\n", "\n").replace("\r", "\n").split("\n")
    relation, attributes, n_lines = _read_header(lines, where)
    names = [attribute.name for attribute in attributes]
    if choice.labels is None:
        choice = replace(choice, labels=_read_meka_labels(relation, names, where))
    elif isinstance(choice.labels, frozenset):
        _check_xml_labels(choice.labels, names, where)
    assigned = choice.assign(names)
    rows = [
        (number, row)
        for number, line in enumerate(lines[n_lines:], start=n_lines + 1)
        if (row := _strip_comment(line))
    ]
    if not rows:
        raise DataError(f"{where} must have rows after `@data`, it has none. Is it cut off?")
    table = ArffRows.read(rows, attributes, where)
    if table.is_sparse:
        check_dense(assigned, where)
    place = {name: j for j, name in enumerate(names)}
    labels = {name: table.categories(place[name]) for name in assigned.labels}
    Y, label_names = read_labels(pd.DataFrame(labels), choice.sep, where)
    if table.is_sparse:
        return Dataset(*table.features([place[name] for name in assigned.features], Y, label_names))
    columns = {name: table.categories(place[name]) for name in assigned.features}
    X = encode_frame(pd.DataFrame(columns, index=range(len(rows))), where)
    if assigned.index is not None:
        texts = [_read_text(token) for token in table.tokens[place[assigned.index]]]
        index = pd.Series(texts, dtype=object, name=assigned.index)
        X = X.set_axis(read_index(index, where), axis=0)
    return Dataset(X, Y, label_names)


def _read_header(lines: list[str], where: str) -> tuple[str, list[Attribute], int]:
    """Return the relation, the columns, and how many lines these take."""
    relation, line_of = "", dict[str, int]()
    attributes: list[Attribute] = []
    for number, line in enumerate(lines, start=1):
        keyword = _KEYWORD.match(line)
        if not keyword:
            if line.strip() and not line.lstrip().startswith("%"):
                raise DataError(
                    f"The header of {where} must consist of declarations and comments, got "
                    f"{_shorten(line)} in line {number}. Is it an ARFF file, and is there a line "
                    "`@data` before the rows?"
                )
            continue
        word, rest = keyword[1].lower(), keyword[2].strip()
        if word == "relation":
            quoted = re.match(QUOTED, rest)
            relation = _unquote(quoted[0] if quoted else rest.partition("%")[0].strip())
        elif word == "attribute":
            attribute = _read_attribute(rest, number, where)
            if line_of.setdefault(attribute.name, number) != number:
                raise DataError(
                    f"Attributes in {where} must have different names, but {attribute.name!r} is "
                    f"declared in line {line_of[attribute.name]} and in line {number}."
                )
            attributes.append(attribute)
            check_column_count(len(attributes), where)
        elif word == "data" and attributes:
            return relation, attributes, number
        elif word == "data":
            raise DataError(f"{where} must declare its columns with @attribute, it has none.")
        else:
            raise DataError(
                f"The header of {where} must have only @relation, @attribute and @data, got "
                f"@{word} in line {number}."
            )
    raise DataError(f"{where} must have a line `@data` before its rows, it has none. Is it ARFF?")


def _read_attribute(text: str, number: int, where: str) -> Attribute:
    match = _ATTRIBUTE.fullmatch(text)
    if not match:
        raise DataError(
            "An attribute must be declared like `name numeric`, `name string` or `name {a, b}`, "
            f"got {_shorten(text)} in line {number} of {where}."
        )
    name, kind = _unquote(match[1]), match[2]
    if _NUMERIC.fullmatch(kind):
        return Attribute(name, NUMERIC)
    if _TEXT.fullmatch(kind):
        return Attribute(name, TEXT)
    nominal = _NOMINAL.fullmatch(kind)
    values = [_unquote(value) for value in re.findall(_VALUE, nominal[1])] if nominal else []
    if not nominal or len(set(values)) < len(values):
        raise DataError(
            f"The type of attribute {_shorten(name)} in line {number} of {where} must be numeric, "
            f"real, integer, string, date or a list of different values like {{a, b}}, got "
            f"{_shorten(kind)}. Quote values that have blanks or commas in them."
        )
    return Attribute(name, NOMINAL, tuple(values))


def _unquote(token: str) -> str:
    """Return a token without its quotes and with escapes resolved."""
    if token[:1] not in ("'", '"'):
        return token
    return re.sub(r"\\(.)", lambda m: ESCAPES.get(m[1], m[1]), token[1:-1], flags=re.DOTALL)


def _shorten(text: str) -> str:
    """Quote a piece of a file for a message: its beginning is enough."""
    return repr(text if len(text) <= 60 else text[:57] + "...")


def _strip_comment(line: str) -> str:
    row = line.strip()
    if "%" not in row:
        return row
    comment = _COMMENT.fullmatch(row)
    return "" if row.startswith("%") else comment[1].strip() if comment else row


def _check_xml_labels(labels: frozenset[str], names: list[str], where: str) -> None:
    unknown = sorted(labels.difference(names))
    if unknown:
        near = get_close_matches(unknown[0], names, n=1)
        hint = f" The nearest attribute is {near[0]!r}." if near else ""
        raise DataError(
            f"Every label of the xml must be an attribute of {where}, {unknown[0]!r} is not.{hint} "
            "Correct the xml, or name the labels with `labels`."
        )


def _read_meka_labels(relation: str, names: list[str], where: str) -> frozenset[str]:
    match = _MEKA_COUNT.search(relation)
    if not match:
        raise DataError(
            f"The labels of {where} must be named: in an .xml of the same name beside it, as "
            "`-C 6` (or `-C -6`, from the end) in its relation, or with `labels`, e.g. labels=6."
        )
    count = int(match[1])
    if not 1 <= abs(count) <= len(names):
        raise DataError(
            f"The relation of {where} says `-C {count}`, but there are {len(names)} columns. Name "
            "the labels with `labels`."
        )
    return frozenset(names[:count] if count > 0 else names[count:])


# Rows

Rows = list[tuple[int, str]]
"""The number of each line, and what it holds without comments."""


def _bad_line(number: int, where: str, problem: str) -> DataError:
    return DataError(f"Line {number} of {where} {problem}. Fix or drop that line.")


def _split(text: str, number: int, where: str) -> list[str]:
    """Return the values between commas, still in their quotes."""
    if "'" not in text and '"' not in text:
        values = text.split(",")
        return [value.strip() for value in values] if " " in text or "\t" in text else values
    values, at = [], 0
    while cell := _CELL.match(text, at):
        values.append(cell[1].strip())
        at = cell.end()
        if not cell[0].endswith(","):
            return values
    raise _bad_line(
        number, where, "cannot be split into values: check its commas, quotes and braces"
    )


def _read_text(token: str) -> str | None:
    return None if token == "?" else _unquote(token)


@dataclass(frozen=True)
class ArffRows:
    """The values of each column, as they stand in the file.

    Parameters
    ----------
    attributes
        The columns.
    lines
        The number of each row's line.
    tokens
        The values of each column that has some, by its place.
    rows
        Whose values these are, in sparse files; those of other rows are 0, or the first of nominal
        ones. None in dense files, where every row has a value.
    where
        What the file is, for messages.
    """

    attributes: list[Attribute]
    lines: list[int]
    tokens: dict[int, Sequence[str]]
    rows: dict[int, list[int]] | None
    where: str

    @classmethod
    def read(cls, rows: Rows, attributes: list[Attribute], where: str) -> ArffRows:
        """Split rows into values."""
        lines, n_columns = [number for number, _ in rows], len(attributes)
        if rows[0][1].startswith("{"):
            tokens, places = defaultdict[int, list[str]](list), defaultdict[int, list[int]](list)
            for place, (number, row) in enumerate(rows):
                for j, token in _sparse_cells(row, number, n_columns, where).items():
                    tokens[j].append(token)
                    places[j].append(place)
            return cls(attributes, lines, dict(tokens), dict(places), where)
        table = [_dense_cells(row, number, n_columns, where) for number, row in rows]
        return cls(attributes, lines, dict(enumerate(zip(*table, strict=True))), None, where)

    @property
    def is_sparse(self) -> bool:
        """Whether rows list some of their values."""
        return self.rows is not None

    def values(self, j: int) -> Any:
        """Return the given values of a column: numbers, places of nominal ones, or texts."""
        attribute, tokens = self.attributes[j], self.tokens.get(j, ())
        if attribute.kind == TEXT:
            if self.is_sparse and tokens:
                raise DataError(
                    f"Sparse ARFF has no strings, but {attribute.name!r} in {self.where} is one. "
                    "Write the file with dense rows, or leave the column out with "
                    f"drop=[{attribute.name!r}]."
                )
            return [_read_text(token) for token in tokens]
        if attribute.kind == NUMERIC:
            texts = pa.array(tokens, pa.string())
            with suppress(pa.ArrowInvalid):  # far quicker than one by one
                numbers = pc.if_else(pc.equal(texts, "?"), None, texts).cast(pa.float64())
                return numbers.to_numpy(zero_copy_only=False)
        code_of = {value: code for code, value in enumerate(attribute.values)}
        values = np.full(len(tokens), np.nan)
        for i, token in enumerate(tokens):
            text = _unquote(token)
            try:
                if attribute.kind == NOMINAL and (text in code_of or token != "?"):
                    values[i] = code_of[text]
                elif token != "?":
                    values[i] = float("x" if "_" in text else text)
            except (KeyError, ValueError) as error:
                line = self.lines[i if self.rows is None else self.rows[j][i]]
                raise self._no_value(attribute, text, line) from error
        return values

    def _no_value(self, attribute: Attribute, text: str, line: int) -> DataError:
        if attribute.kind == NOMINAL:
            return DataError(
                f"The values of {attribute.name!r} in {self.where} must be among the declared ones "
                f"({', '.join(attribute.values[:10])}), got {text!r} in line {line}."
            )
        return DataError(
            f"Line {line} of {self.where} must have numbers (or ?) in its numeric columns, got "
            f"{text!r} in {attribute.name!r}. Fix or drop that line, or leave the column out with "
            f"drop=[{attribute.name!r}]."
        )

    def categories(self, j: int) -> Any:
        """Return a column with a value for each row: numbers, texts or categories."""
        attribute, values = self.attributes[j], self.values(j)
        if self.rows is not None:
            given, values = values, np.zeros(len(self.lines))
            values[self.rows.get(j, [])] = given
        if attribute.kind != NOMINAL:
            return pd.Series(values, dtype=object) if attribute.kind == TEXT else values
        codes = np.where(np.isnan(values), -1, values).astype(np.int64)
        return pd.Categorical.from_codes(codes, categories=pd.Index(attribute.values))

    def features(self, places: list[int], Y: Any, label_names: Any) -> tuple[Any, ...]:
        """Return sparse features, with the labelsets and the names of both."""
        names, columns, n_rows = list[str](), list[Any](), len(self.lines)
        for j in places:
            attribute = self.attributes[j]
            indicators = read_indicators(attribute.values)
            if attribute.kind != NOMINAL or (indicators is not None and indicators[0] == 0):
                values, rows = self.values(j), (self.rows or {}).get(j, [])
                column = sparse.csc_matrix((values, rows, [0, len(rows)]), (n_rows, 1))
                encoded = [(attribute.name, column)]
            else:
                codes = self.categories(j).codes.astype(np.int64)
                encoded = [
                    (name, sparse.csc_matrix(values[:, None]))
                    for name, values in encode_nominal(
                        attribute.name, codes, attribute.values, self.where
                    )
                ]
            names += [name for name, _ in encoded]
            columns += [column for _, column in encoded]
        check_distinct(names)
        X = sparse.hstack(columns, format="csc") if columns else sparse.csc_matrix((n_rows, 0))
        X.eliminate_zeros()
        return X.tocsr(), Y, label_names, tuple(names)


def _dense_cells(row: str, number: int, n_columns: int, where: str) -> list[str]:
    """Return the values of a row."""
    if row.startswith("{"):
        raise _bad_line(number, where, "cannot be sparse, the rows before it are not")
    values = _split(row, number, where)
    if len(values) != n_columns:
        problem = f"must have a value for each of the {n_columns} attributes, it has {len(values)}"
        raise _bad_line(number, where, problem)
    return values


def _sparse_cells(row: str, number: int, n_columns: int, where: str) -> dict[int, str]:
    """Return the values that a row lists by the places of their columns."""
    if not (row.startswith("{") and row.endswith("}")):
        raise _bad_line(number, where, "cannot be dense, the rows before it are sparse")
    listed = _split(row[1:-1], number, where) if row[1:-1].strip() else []
    cells = {}
    for cell in listed:
        index, *tokens = cell.split(None, 1) or [""]
        if not (index.isdecimal() and tokens):
            raise _bad_line(number, where, f"cannot have {_shorten(cell)} in place of `3 value`")
        cells[int(index[:10])] = tokens[0]
    if cells and max(cells) >= n_columns:
        problem = f"must have values of each of the {n_columns} attributes, got {max(cells)}"
        raise _bad_line(number, where, problem)
    if len(cells) < len(listed):
        raise _bad_line(number, where, "must give each attribute at most one value")
    return cells
