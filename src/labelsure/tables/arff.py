"""ARFF files: declarations are read here, without backtracking; liac-arff reads the rows.

liac-arff refuses tabs, comments behind a declaration, dates and escaped names, and needs
exponential time for some broken lists of values.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import arff
import numpy as np
import pandas as pd
from scipy import sparse

from labelsure._runtime.storage import decode
from labelsure._runtime.typing import Floats, Integers
from labelsure.errors import DataError
from labelsure.tables.column_choice import (
    MIN_ROWS_OF_ID,
    AssignedColumns,
    ColumnChoice,
    check_column_count,
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

QUOTED = r"""'(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+\""""
_VALUE = rf"""(?:{QUOTED}|[^\s,{{}}'"]++)"""
_NOTHING = r"\s*+(?:%.*)?"
"""The end of a declaration: blanks, or a comment."""

_KEYWORD = re.compile(r"\s*+@(\w++)\s*+(.*)", re.DOTALL)
_ATTRIBUTE = re.compile(rf"""({QUOTED}|[^\s{{'"][^\s{{]*+)\s*+(.+)""", re.DOTALL)
_NOMINAL = re.compile(rf"\{{\s*+({_VALUE}(?:\s*+,\s*+{_VALUE})*+)\s*+\}}{_NOTHING}", re.DOTALL)
_NUMERIC = re.compile(rf"(?:numeric|real|integer)\b\s*+(?:\[[^\]]*+\])?{_NOTHING}", re.IGNORECASE)
_TEXT = re.compile(rf"(?:string|date(?:\s++(?:{QUOTED}|[^\s%]++))?){_NOTHING}", re.IGNORECASE)

EXAMPLES = "`name numeric`, `name string` or `name {a, b}`"


@dataclass(frozen=True)
class Attribute:
    """One declared column.

    Parameters
    ----------
    name
        Without quotes and escapes.
    kind
        ``"numeric"``, ``"text"`` or ``"nominal"``.
    values
        Of a nominal one, in the order of their declaration.
    """

    name: str
    kind: str
    values: tuple[str, ...] = ()


@dataclass(frozen=True)
class Header:
    """What stands before the data, and how many lines it takes."""

    relation: str
    attributes: list[Attribute]
    n_lines: int


def read_header(lines: list[str], where: str) -> Header:
    """Read up to and including the @data line.

    Parameters
    ----------
    lines
        Of the whole file.
    where
        The name of the file, for the messages.
    """
    relation, attributes = "", list[Attribute]()
    first_line: dict[str, int] = {}
    for number, line in enumerate(lines, start=1):
        keyword = _KEYWORD.match(line)
        if not keyword:
            _check_declaration(line, number, where)
            continue
        word, rest = keyword[1].lower(), keyword[2].strip()
        if word == "relation":
            relation = _read_relation(rest)
        elif word == "attribute":
            attribute = _read_attribute(rest, number, where)
            if attribute.name in first_line:
                raise DataError(
                    f"Attributes in {where} must have different names, but {attribute.name!r} is "
                    f"declared in line {first_line[attribute.name]} and in line {number}."
                )
            first_line[attribute.name] = number
            attributes.append(attribute)
            check_column_count(len(attributes), where)
        elif word == "data":
            return _check_attributes(Header(relation, attributes, number), where)
        else:
            raise DataError(
                f"The header of {where} must have only @relation, @attribute and @data, got "
                f"@{word} in line {number}."
            )
    raise DataError(f"{where} must have a line `@data` before its rows, it has none. Is it ARFF?")


def _check_declaration(line: str, number: int, where: str) -> None:
    if line.strip() and not line.lstrip().startswith("%"):
        raise DataError(
            f"The header of {where} must consist of declarations and comments, got "
            f"{_shorten(line)} in line {number}. Is it an ARFF file, and is there a line `@data` "
            "before the rows?"
        )


def _check_attributes(header: Header, where: str) -> Header:
    if not header.attributes:
        raise DataError(f"{where} must declare its columns with @attribute, it has none.")
    return header


def _read_relation(text: str) -> str:
    quoted = re.match(QUOTED, text)
    name = quoted[0] if quoted else text.partition("%")[0].strip()
    try:
        return unquote([name])[0]
    except _UnknownEscape:
        return name  # an odd name does no harm


def _read_attribute(text: str, number: int, where: str) -> Attribute:
    match = _ATTRIBUTE.fullmatch(text)
    if not match:
        raise DataError(
            f"An attribute must be declared like {EXAMPLES}, got {_shorten(text)} in line {number} "
            f"of {where}."
        )
    try:
        name, kind = unquote([match[1]])[0], match[2]
        if _NUMERIC.fullmatch(kind):
            return Attribute(name, "numeric")
        if _TEXT.fullmatch(kind):
            return Attribute(name, "text")
        nominal = _NOMINAL.fullmatch(kind)
        values = unquote(re.findall(_VALUE, nominal[1])) if nominal else []
    except _UnknownEscape as error:
        raise DataError(
            f"Quoted text in line {number} of {where} must have only escapes that ARFF knows, got "
            f"{error}."
        ) from error
    if not nominal or len(set(values)) < len(values):
        raise DataError(
            f"The type of attribute {_shorten(name)} in line {number} of {where} must be numeric, "
            f"real, integer, string, date or a list of different values like {{a, b}}, got "
            f"{_shorten(kind)}. Quote values that have blanks or commas in them."
        )
    return Attribute(name, "nominal", tuple(values))


class _UnknownEscape(Exception):
    """Quoted text with an escape that ARFF does not have."""


def unquote(tokens: Iterable[str]) -> list[str]:
    """Return tokens without their quotes, with escapes resolved as liac-arff does in rows."""
    tokens = list(tokens)
    if not any(token[:1] in ("'", '"') for token in tokens):
        return tokens
    declared = "".join(f"@attribute a{j} string\n" for j in range(len(tokens)))
    try:
        # A list of tokens is a row of strings.
        row = arff.loads(f"@relation r\n{declared}@data\n{','.join(tokens)}")["data"][0]
        values = [
            token if value is None else value for token, value in zip(tokens, row, strict=True)
        ]
        "".join(values).encode()  # an escape can make half a character, which no name may have
    except (arff.ArffException, ValueError, IndexError) as error:
        raise _UnknownEscape(_shorten(",".join(tokens))) from error
    return values


def _shorten(text: str) -> str:
    """Quote a piece of a file for a message: its beginning is enough."""
    return repr(text if len(text) <= 60 else text[:57] + "...")


_MEKA_COUNT = re.compile(r"(?:^|[\s:])-C\s++(-?[0-9]{1,9})(?![0-9])")
_COMMENT = re.compile(rf"""((?:{QUOTED}|(?!\s%)[^'"])*+)\s%.*""", re.DOTALL)


@dataclass(frozen=True)
class ArffRows:
    """The rows of an ARFF file, still with labels and features side by side.

    Parameters
    ----------
    attributes
        One for each column.
    rows
        Values, or dictionaries from column to value where the file is sparse.
    line_numbers
        The line that each row stands in.
    is_sparse
        Whether values that are left out are zeros.
    where
        The name of the file, for the messages.
    """

    attributes: list[Attribute]
    rows: list[Any]
    line_numbers: list[int]
    is_sparse: bool
    where: str


def read_arff(content: bytes, choice: ColumnChoice, nominal: str, where: str) -> Dataset:
    """Return the data set that an ARFF file holds.

    Parameters
    ----------
    content
        The file, decompressed.
    choice
        Which columns are what. Labels that are a frozenset are those of an xml; None takes the
        number that MEKA writes into the name of the relation.
    nominal
        How nominal features become numbers.
    where
        The name of the file, for the messages.
    """
    lines = decode(content).replace("\r\n", "\n").replace("\r", "\n").split("\n")
    header = read_header(lines, where)
    names = [attribute.name for attribute in header.attributes]
    if choice.labels is None:
        choice = choice.with_labels(_read_meka_labels(header, where))
    elif isinstance(choice.labels, frozenset):
        _check_xml_labels(choice.labels, names, where)
    columns = choice.assign(names)
    table = _read_rows(lines, header, columns, where)
    build = _make_sparse_dataset if table.is_sparse else _make_dense_dataset
    return build(table, columns, nominal, choice.sep)


def _check_xml_labels(labels: frozenset[str], names: list[str], where: str) -> None:
    unknown = sorted(labels.difference(names))
    if unknown:
        near = get_close_matches(unknown[0], names, n=1)
        hint = f" The nearest attribute is {near[0]!r}." if near else ""
        raise DataError(
            f"Every label of the xml must be an attribute of {where}, {unknown[0]!r} is not.{hint} "
            "Correct the xml, or name the labels with `labels`."
        )


def _read_meka_labels(header: Header, where: str) -> frozenset[str]:
    match = _MEKA_COUNT.search(header.relation)
    if not match:
        raise DataError(
            f"The labels of {where} must be named: in an .xml of the same name beside it, as "
            "`-C 6` (or `-C -6`, from the end) in its relation, or with `labels`, e.g. labels=6."
        )
    count = int(match[1])
    if not 1 <= abs(count) <= len(header.attributes):
        raise DataError(
            f"The relation of {where} says `-C {count}`, but there are "
            f"{len(header.attributes)} columns. Name the labels with `labels`."
        )
    labels = header.attributes[:count] if count > 0 else header.attributes[count:]
    return frozenset(attribute.name for attribute in labels)


def _read_rows(lines: list[str], header: Header, columns: AssignedColumns, where: str) -> ArffRows:
    line_numbers: list[int] = []
    # Numbers that are no labels and no features are text: what is left out cannot be wrong, and
    # the name of a row can begin with zeros.
    as_numbers = {*columns.labels, *columns.features}

    def prepared() -> Iterator[str]:
        yield "@relation r"
        for j, attribute in enumerate(header.attributes):
            # Values of nominal columns are looked up later: there the line can be named.
            is_number = attribute.kind == "numeric" and attribute.name in as_numbers
            yield f"@attribute a{j} {'numeric' if is_number else 'string'}"
        yield "@data"
        for number, line in enumerate(lines[header.n_lines :], start=header.n_lines + 1):
            row = _strip_comment(line)
            if row:
                line_numbers.append(number)
                yield row

    is_sparse = _find_first_row(lines, header, where).startswith("{")
    kind = arff.LOD_GEN if is_sparse else arff.DENSE_GEN
    try:
        rows = list(arff.ArffDecoder().decode(prepared(), return_type=kind)["data"])
    except (arff.ArffException, csv.Error, ValueError, IndexError, RuntimeError) as error:
        number = line_numbers[-1]
        raise _make_row_error(error, lines[number - 1], number, header, where) from error
    if is_sparse:
        _check_repeats(lines, rows, line_numbers, where)
    return ArffRows(header.attributes, rows, line_numbers, is_sparse, where)


def _check_repeats(lines: list[str], rows: list[Any], line_numbers: list[int], where: str) -> None:
    """Refuse sparse rows that give one attribute two values: liac-arff takes the last."""
    for row, number in zip(rows, line_numbers, strict=True):
        text = _strip_comment(lines[number - 1])
        is_plain = "'" not in text and '"' not in text
        if is_plain and row and text.count(",") + 1 != len(row):
            raise DataError(
                f"Line {number} of {where} must give each attribute at most one value, one comes "
                "twice. Fix or drop that line."
            )


def _strip_comment(line: str) -> str:
    row = line.strip()
    if "%" not in row:
        return row
    if row.startswith("%"):
        return ""
    comment = _COMMENT.fullmatch(row)
    return comment[1].strip() if comment else row


def _find_first_row(lines: list[str], header: Header, where: str) -> str:
    for line in lines[header.n_lines :]:
        row = _strip_comment(line)
        if row:
            return row
    raise DataError(f"{where} must have rows after `@data`, it has none. Is it cut off?")


def _make_row_error(
    error: Exception, line: str, number: int, header: Header, where: str
) -> DataError:
    n_columns = len(header.attributes)
    if isinstance(error, arff.BadDataFormat):
        came = "" if re.search(r"['\"{]", line) else f", it has {line.count(',') + 1}"
        problem = f"must have a value for each of the {n_columns} attributes{came}"
    elif isinstance(error, arff.BadNumericalValue):
        return _make_number_error(_strip_comment(line), number, header, where)
    else:
        problem = "cannot be split into values: check its commas, quotes and braces"
    return DataError(f"Line {number} of {where} {problem}. Fix or drop that line.")


def _make_number_error(row: str, number: int, header: Header, where: str) -> DataError:
    """Return the error for text in a numeric column, which liac-arff does not name."""
    declared = "".join(f"@attribute a{j} string\n" for j in range(len(header.attributes)))
    kind = arff.LOD if row.startswith("{") else arff.DENSE
    text = f"@relation r\n{declared}@data\n{row}"
    values = arff.ArffDecoder().decode(text, return_type=kind)["data"][0]
    for j, value in values.items() if isinstance(values, dict) else enumerate(values):
        attribute = header.attributes[j]
        if attribute.kind == "numeric" and not _is_number(value):
            return DataError(
                f"Line {number} of {where} must have numbers (or ?) in its numeric columns, got "
                f"{value!r} in {attribute.name!r}. Fix or drop that line, or leave the column out "
                f"with drop=[{attribute.name!r}]."
            )
    return DataError(
        f"Line {number} of {where} must have numbers (or ?) in its numeric columns, one is "
        "something else. Fix or drop that line."
    )


def _is_number(value: str | None) -> bool:
    try:
        float(value or 0)
    except ValueError:
        return False
    return True


def _make_dense_dataset(
    table: ArffRows, assigned: AssignedColumns, nominal: str, sep: str | None
) -> Dataset:
    used = {*assigned.labels, *assigned.features}
    frame = pd.DataFrame(
        {
            attribute.name: _make_column(attribute, values, table)
            for attribute, values in zip(
                table.attributes, zip(*table.rows, strict=True), strict=True
            )
            if attribute.name in used
        }
    )
    Y, label_names = read_labels(frame[assigned.labels], sep, table.where)
    X = encode_frame(frame[assigned.features], nominal, table.where)
    if assigned.index is not None:
        j = [attribute.name for attribute in table.attributes].index(assigned.index)
        values = [row[j] for row in table.rows]
        X.index = read_index(pd.Series(values, dtype=object, name=assigned.index), table.where)
    return Dataset(X, Y, label_names)


def _make_column(attribute: Attribute, values: tuple[Any, ...], table: ArffRows) -> Any:
    if attribute.kind == "numeric":
        return np.array(values, dtype=np.float64)  # None becomes NaN
    if attribute.kind == "text":
        return pd.Series(values, dtype=object)
    codes = _read_codes(attribute, values, table.line_numbers, table.where)
    return pd.Categorical.from_codes(codes, categories=pd.Index(attribute.values))


def _read_codes(attribute: Attribute, values: Any, line_numbers: list[int], where: str) -> Integers:
    """Return the positions of values in their declaration, -1 for None."""
    code_of: dict[str | None, int] = {value: code for code, value in enumerate(attribute.values)}
    code_of[None] = -1
    codes = [code_of.get(value, -2) for value in values]
    if -2 in codes:
        at = codes.index(-2)
        raise DataError(
            f"The values of {attribute.name!r} in {where} must be among the declared ones "
            f"({', '.join(attribute.values[:10])}), got {values[at]!r} in line {line_numbers[at]}."
        )
    return np.array(codes, dtype=np.int64)


def _make_sparse_dataset(
    table: ArffRows, assigned: AssignedColumns, nominal: str, sep: str | None
) -> Dataset:
    check_dense(assigned, table.where)
    position = {attribute.name: j for j, attribute in enumerate(table.attributes)}
    used = {position[name] for name in (*assigned.labels, *assigned.features)}
    matrix = _make_sparse_matrix(table, used)
    labels = pd.DataFrame(
        {name: _make_dense_column(table, matrix, position[name]) for name in assigned.labels}
    )
    Y, label_names = read_labels(labels, sep, table.where)
    features = [position[name] for name in assigned.features]
    X, names = _make_sparse_features(table, matrix, features, nominal)
    return Dataset(X, Y, label_names, tuple(names))


def _make_sparse_matrix(table: ArffRows, used: set[int]) -> Any:
    """Return numbers, and codes of nominal values; a value left out is 0, the first code.

    Columns that are not used are empty.
    """
    by_column: list[tuple[list[int], list[Any]]] = [([], []) for _ in table.attributes]
    for i, row in enumerate(table.rows):
        for j, value in row.items():
            if j in used:
                by_column[j][0].append(i)
                by_column[j][1].append(value)
    counts = [len(rows) for rows, _ in by_column]
    data = np.empty(sum(counts))
    ends = np.cumsum(counts)
    for j in used:
        rows, values = by_column[j]
        read = _read_sparse_values(table.attributes[j], rows, values, table)
        data[ends[j] - len(rows) : ends[j]] = read
    indices = np.array([i for rows, _ in by_column for i in rows], dtype=np.int32)
    indptr = np.concatenate([[0], ends]).astype(np.int32)
    shape = (len(table.rows), len(table.attributes))
    matrix = sparse.csc_matrix((data, indices, indptr), shape=shape)
    matrix.eliminate_zeros()
    return matrix


def _read_sparse_values(
    attribute: Attribute, rows: list[int], values: list[Any], table: ArffRows
) -> Floats:
    if attribute.kind == "numeric":
        return np.array(values, dtype=np.float64)
    if attribute.kind == "nominal":
        line_numbers = [table.line_numbers[i] for i in rows]
        codes = _read_codes(attribute, values, line_numbers, table.where)
        return np.where(codes < 0, np.nan, codes)
    raise DataError(
        f"Sparse ARFF has no strings, but {attribute.name!r} in {table.where} is one. "
        f"Write the file with dense rows, or leave the column out with drop=[{attribute.name!r}]."
    )


def _make_dense_column(table: ArffRows, matrix: Any, j: int) -> Any:
    values = matrix[:, [j]].toarray().ravel()
    attribute = table.attributes[j]
    if attribute.kind == "numeric":
        return values
    return pd.Categorical.from_codes(_restore_codes(values), categories=pd.Index(attribute.values))


def _restore_codes(values: Floats) -> Integers:
    return np.where(np.isnan(values), -1, values).astype(np.int64)


def _make_sparse_features(
    table: ArffRows, matrix: Any, features: list[int], nominal: str
) -> tuple[Any, list[str]]:
    blocks, names = [], []
    run: list[int] = []  # neighbouring columns that need no encoding are copied together
    for j in features:
        attribute = table.attributes[j]
        keeps_codes = _keeps_codes(attribute, nominal)
        if not keeps_codes or len(attribute.values) >= MIN_ROWS_OF_ID:
            codes = _restore_codes(matrix[:, [j]].toarray().ravel())
            check_repeated(attribute.name, codes, attribute.values, table.where)
        if keeps_codes:
            run.append(j)
            names.append(attribute.name)
            continue
        encoded = encode_codes(attribute.name, codes, attribute.values, nominal)
        blocks += [matrix[:, run], *(sparse.csc_matrix(column[:, None]) for _, column in encoded)]
        names += [name for name, _ in encoded]
        run = []
    check_distinct(names)
    return sparse.hstack([*blocks, matrix[:, run]], format="csr"), names


def _keeps_codes(attribute: Attribute, nominal: str) -> bool:
    """Whether the codes of a column are its numbers already."""
    if attribute.kind == "numeric":
        return True
    indicators = read_indicators(attribute.values)
    if indicators is not None:
        return bool(indicators[0] == 0)
    return nominal == "ordinal"
