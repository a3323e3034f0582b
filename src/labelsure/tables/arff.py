"""ARFF files, dense or sparse, as Mulan, MEKA and Weka write them."""

from __future__ import annotations

import re
from collections.abc import Callable
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
from labelsure._runtime.typing import Floats, Integers
from labelsure.errors import DataError
from labelsure.tables.column_choice import (
    AssignedColumns,
    ColumnChoice,
    check_dense,
    check_distinct,
    check_repeated,
    encode_codes,
    encode_frame,
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
    if rows[0][1].startswith("{"):
        return _read_sparse(rows, attributes, assigned, choice.sep, where)
    return _read_dense(rows, attributes, assigned, choice.sep, where)


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


def _reader_of(attribute: Attribute, where: str) -> Callable[[str, int], Any]:
    """Return what makes a number of a value, its place for nominal ones, or a text."""
    code_of = {value: code for code, value in enumerate(attribute.values)}

    def read_code(token: str, number: int) -> float:
        code = code_of.get(_unquote(token))
        if code is not None:
            return code
        if token == "?":
            return np.nan
        raise DataError(
            f"The values of {attribute.name!r} in {where} must be among the declared ones "
            f"({', '.join(attribute.values[:10])}), got {_unquote(token)!r} in line {number}."
        )

    def read_number(token: str, number: int) -> float:
        value = _unquote(token)
        try:
            return np.nan if token == "?" else float("x" if "_" in value else value)
        except ValueError as error:
            raise DataError(
                f"Line {number} of {where} must have numbers (or ?) in its numeric columns, got "
                f"{value!r} in {attribute.name!r}. Fix or drop that line, or leave the column out "
                f"with drop=[{attribute.name!r}]."
            ) from error

    def read_text(token: str, number: int) -> str | None:
        return None if token == "?" else _unquote(token)

    return {NUMERIC: read_number, NOMINAL: read_code, TEXT: read_text}[attribute.kind]


def _read_column(attribute: Attribute, tokens: Any, numbers: list[int], where: str) -> Any:
    """Return numbers, texts or categories of a dense column."""
    if attribute.kind == NUMERIC:
        texts = pa.array(tokens)
        with suppress(pa.ArrowInvalid):  # far quicker than one by one
            numbers_read = pc.if_else(pc.equal(texts, "?"), None, texts).cast(pa.float64())
            return numbers_read.to_numpy(zero_copy_only=False)
    read = _reader_of(attribute, where)
    values = [read(token, number) for token, number in zip(tokens, numbers, strict=True)]
    return _as_column(attribute, values)


def _as_column(attribute: Attribute, values: Any) -> Any:
    """Return numbers as they are, and places as categories."""
    if attribute.kind != NOMINAL:
        return pd.Series(values, dtype=object) if attribute.kind == TEXT else np.array(values)
    categories = pd.Index(attribute.values)
    return pd.Categorical.from_codes(_as_codes(np.array(values)), categories=categories)


def _as_codes(values: Floats) -> Integers:
    return np.where(np.isnan(values), -1, values).astype(np.int64)


def _read_dense(
    rows: Rows,
    attributes: list[Attribute],
    assigned: AssignedColumns,
    sep: str | None,
    where: str,
) -> Dataset:
    table = []
    for number, row in rows:
        values = _split(row, number, where)
        if row.startswith("{"):
            raise _bad_line(number, where, "cannot be sparse, the rows before it are not")
        if len(values) != len(attributes):
            raise _bad_line(
                number,
                where,
                f"must have a value for each of the {len(attributes)} attributes, it has "
                f"{len(values)}",
            )
        table.append(values)
    numbers = [number for number, _ in rows]
    used, columns = {*assigned.labels, *assigned.features}, {}
    index: Any = None
    for attribute, tokens in zip(attributes, zip(*table, strict=True), strict=True):
        if attribute.name in used:
            columns[attribute.name] = _read_column(attribute, tokens, numbers, where)
        elif attribute.name == assigned.index:
            texts = [None if token == "?" else _unquote(token) for token in tokens]
            index = read_index(pd.Series(texts, dtype=object, name=assigned.index), where)
    frame = pd.DataFrame(columns, index=range(len(rows)))
    Y, label_names = read_labels(frame[assigned.labels], sep, where)
    X = encode_frame(frame[assigned.features], where)
    return Dataset(X if index is None else X.set_axis(index, axis=0), Y, label_names)


def _read_sparse(
    rows: Rows,
    attributes: list[Attribute],
    assigned: AssignedColumns,
    sep: str | None,
    where: str,
) -> Dataset:
    """Read rows of numbered values; those left out are 0, or the first of nominal ones."""
    check_dense(assigned, where)
    place = {attribute.name: j for j, attribute in enumerate(attributes)}
    readers = {
        place[name]: _reader_of(attributes[place[name]], where)
        for name in (*assigned.labels, *assigned.features)
    }
    data, columns, ends = list[Any](), list[int](), [0]
    for number, row in rows:
        for j, token in _sparse_cells(row, number, len(attributes), where).items():
            if j in readers:
                if attributes[j].kind == TEXT:
                    name = attributes[j].name
                    raise DataError(
                        f"Sparse ARFF has no strings, but {name!r} in {where} is one. Write the "
                        f"file with dense rows, or leave the column out with drop=[{name!r}]."
                    )
                data.append(readers[j](token, number))
                columns.append(j)
        ends.append(len(data))
    shape = (len(rows), len(attributes))
    matrix = sparse.csr_matrix((np.array(data, dtype=float), columns, ends), shape=shape).tocsc()
    matrix.eliminate_zeros()

    def dense(j: int) -> Floats:
        return np.asarray(matrix[:, [j]].toarray().ravel())

    labels = {
        name: _as_column(attributes[place[name]], dense(place[name])) for name in assigned.labels
    }
    Y, label_names = read_labels(pd.DataFrame(labels), sep, where)
    kept, names, places, blocks = list[int](), list[str](), list[int](), list[Any]()
    for j in (place[name] for name in assigned.features):
        attribute = attributes[j]
        indicators = read_indicators(attribute.values)
        if attribute.kind == NUMERIC or (indicators is not None and indicators[0] == 0):
            kept.append(j)
            continue
        codes = _as_codes(dense(j))
        check_repeated(attribute.name, codes, attribute.values, where)
        for name, column in encode_codes(attribute.name, codes, attribute.values):
            blocks.append(sparse.csc_matrix(column[:, None]))
            names.append(name)
            places.append(j)
    names = [*(attributes[j].name for j in kept), *names]
    check_distinct(names)
    order = np.argsort([*kept, *places], kind="stable")
    X = sparse.hstack([matrix[:, kept], *blocks], format="csc")[:, order].tocsr()
    return Dataset(X, Y, label_names, tuple(names[j] for j in order))


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
