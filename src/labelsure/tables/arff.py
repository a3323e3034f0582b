"""ARFF files, dense or sparse, as Mulan, MEKA and Weka write them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd
from scipy import sparse

from labelsure._runtime.typing import Column, Floats, Integers, Labelsets, Mask
from labelsure.errors import DataError, unknown_name
from labelsure.tables.column_choice import (
    INDICATORS,
    ColumnChoice,
    encode_column,
    join_encoded,
    read_index,
    read_labels,
)
from labelsure.tables.files import check_column_count, check_names
from labelsure.tables.values import read_numbers

# No pattern gives back what it has taken (++, *+), so that broken lines take no exponential time.
QUOTED = r"""'(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+\""""
_VALUE = rf"""(?:{QUOTED}|[^\s,{{}}'"]++)"""
_END = r"\s*+(?:%.*)?"
"""The end of a declaration: blanks, or a comment."""

_KEYWORD = re.compile(r"\s*+@(\w++)\s*+(.*)", re.DOTALL)
_ATTRIBUTE = re.compile(rf"""({QUOTED}|[^\s{{'"][^\s{{]*+)\s*+(.+)""", re.DOTALL)
_NOMINAL = re.compile(rf"\{{\s*+({_VALUE}(?:\s*+,\s*+{_VALUE})*+)\s*+\}}{_END}", re.DOTALL)
_NUMERIC = re.compile(rf"(?:numeric|real|integer)\b\s*+(?:\[[^\]]*+\])?{_END}", re.IGNORECASE)
_TEXT = re.compile(rf"(?:string|date(?:\s++(?:{QUOTED}|[^\s%]++))?){_END}", re.IGNORECASE)
_CELL = re.compile(rf"""((?:{QUOTED}|[^,'"])*+)(?:,|$)""", re.DOTALL)
_COMMENT = re.compile(rf"""((?:{QUOTED}|(?!\s%)[^'"])*+)\s%.*""", re.DOTALL)
_DIGITS = re.compile(r"[0-9.eE+\-\n]*+")
_MEKA_COUNT = re.compile(r"(?:^|[\s:])-C\s++(-?[0-9]{1,9})(?![0-9])")

MAX_DIGITS = 10  # of a column number
NUMERIC, TEXT, NOMINAL = "numeric", "text", "nominal"
ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}
"""Characters that escapes stand for; any other escaped character is itself."""


@dataclass
class Attribute:
    """A declared column, and its values as written in the file.

    Parameters
    ----------
    name, kind
        As it is declared.
    values
        Of a nominal one, in their order.
    tokens, rows
        The values in the file and their rows. In sparse files other rows have 0, or the first of
        the nominal values.
    numbers, is_bad
        Tokens as numbers or positions in `values`, and a mask of those that are neither.
    """

    name: str
    kind: str
    values: tuple[str, ...] = ()
    tokens: Sequence[str] = ()
    rows: Integers = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    numbers: Floats = field(default_factory=lambda: np.zeros(0))
    is_bad: Mask = field(default_factory=lambda: np.zeros(0, dtype=bool))

    def check(self, lines: list[int], where: str) -> Floats:
        """Number of each token. Raises DataError if one has none."""
        if self.is_bad.any():
            at = int(self.is_bad.argmax())
            must = {
                NOMINAL: f"one of the declared values ({', '.join(self.values[:10])})",
                NUMERIC: "a finite number or ?",
                TEXT: "a number (sparse ARFF has no strings)",
            }
            raise DataError(
                f"Line {lines[self.rows[at]]} of {where} must have {must[self.kind]} in "
                f"{self.name!r}, got {_unquote(self.tokens[at])!r}. Fix or drop that line, or "
                f"leave the column out with drop=[{self.name!r}]."
            )
        return self.numbers

    def read(
        self, lines: list[int], is_sparse: bool, where: str
    ) -> Floats | Column | pd.Categorical[str]:
        """Value of each row: a number, a text or a category."""
        if self.kind == TEXT and not is_sparse:
            return pd.Series([_read_text(token) for token in self.tokens], dtype=object)
        values = np.zeros(len(lines))
        values[self.rows] = self.check(lines, where)
        if self.kind != NOMINAL:
            return values
        codes = np.where(np.isnan(values), -1, values).astype(np.int64)
        return pd.Categorical.from_codes(codes, categories=pd.Index(self.values))

    def encode(self, lines: list[int], where: str) -> Iterator[tuple[str, Integers, Floats]]:
        """Yield (name, rows, values) of a sparse feature, or of each of its one-hot columns."""
        indicators = [INDICATORS.get(value.lower()) for value in self.values]
        if self.kind != NOMINAL or indicators == [0, 1]:  # 0 where nothing is listed
            yield self.name, self.rows, self.check(lines, where)
            return
        for name, values in encode_column(self.name, self.read(lines, True, where), where):
            rows = np.flatnonzero(values)
            yield name, rows, values[rows]


def read_arff(
    text: str, choice: ColumnChoice, where: str
) -> tuple[object, Labelsets, tuple[str, ...], tuple[str, ...]]:
    """Features and labelsets of an ARFF file, with names of labels and of features."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    relation, attributes, n_lines = _read_header(lines, where)
    names = check_names([attribute.name for attribute in attributes], where)
    if choice.labels is None:
        choice = replace(choice, labels=_read_meka_labels(relation, names, where))
    elif isinstance(choice.labels, frozenset):
        unknown = next(iter(sorted(choice.labels.difference(names))), None)
        if unknown is not None:
            raise unknown_name(f"attribute of {where}, which the xml names,", unknown, names)
    assigned = choice.assign(names)
    rows = {
        number: row
        for number, line in enumerate(lines[n_lines:], start=n_lines + 1)
        if (row := _strip_comment(line))
    }
    if not rows:
        raise DataError(f"{where} must have rows after `@data`, it has none. Is it cut off?")
    is_sparse = _split_rows(rows, attributes, where)
    attribute_of, line_numbers = dict(zip(names, attributes, strict=True)), [*rows]

    def read(name: str) -> Floats | Column | pd.Categorical[str]:
        return attribute_of[name].read(line_numbers, is_sparse, where)

    Y, label_names = read_labels(
        pd.DataFrame({n: read(n) for n in assigned.labels}), choice.sep, where
    )
    if not is_sparse:
        features = (pair for n in assigned.features for pair in encode_column(n, read(n), where))
        frame = join_encoded(features, where, pd.RangeIndex(len(rows)))
        if assigned.index is not None:
            tokens = attribute_of[assigned.index].tokens
            ids = pd.Series([*map(_read_text, tokens)], dtype=object, name=assigned.index)
            frame = frame.set_axis(read_index(ids, where), axis=0)
        return frame, Y, label_names, tuple(frame.columns)
    if assigned.index is not None:
        raise DataError(
            f"The rows of {where} must be dense to be named by `index`, a sparse matrix has no "
            f"names of rows. Leave the column out with drop=[{assigned.index!r}]."
        )
    encoded = [
        cells for n in assigned.features for cells in attribute_of[n].encode(line_numbers, where)
    ]
    feature_names = check_names(
        [name for name, _, _ in encoded], f"{where}, one-hot columns among them,"
    )
    return _stack_columns(encoded, len(rows)), Y, label_names, tuple(feature_names)


def _stack_columns(columns: list[tuple[str, Integers, Floats]], n_rows: int) -> sparse.csr_matrix:
    """CSR matrix of columns (name, rows, values), without stored zeros."""
    rows = np.concatenate([np.zeros(0, dtype=np.int64), *(rows for _, rows, _ in columns)])
    values = np.concatenate([np.zeros(0), *(values for _, _, values in columns)])
    numbers = np.repeat(np.arange(len(columns)), [len(rows) for _, rows, _ in columns])
    X = sparse.csr_matrix((values, (rows, numbers)), (n_rows, len(columns)))
    X.eliminate_zeros()
    return X


def _read_header(lines: list[str], where: str) -> tuple[str, list[Attribute], int]:
    """Relation, attributes, and number of lines of the header."""
    relation, attributes = "", list[Attribute]()
    for number, line in enumerate(lines, start=1):
        keyword = _KEYWORD.match(line)
        word, content = (keyword[1].lower(), keyword[2].strip()) if keyword else ("", line.strip())
        if word == "relation":
            quoted = re.match(QUOTED, content)
            relation = _unquote(quoted[0] if quoted else content.partition("%")[0].strip())
        elif word == "attribute":
            attributes.append(_read_attribute(content, number, where))
            check_column_count(len(attributes), where)
        elif word == "data" and attributes:
            return relation, attributes, number
        elif word == "data":
            raise DataError(f"{where} must declare its columns with @attribute, it has none.")
        elif word or (content and not content.startswith("%")):
            raise DataError(
                f"The header of {where} must consist of declarations (@relation, @attribute) and "
                f"comments, got {_shorten(line)} in line {number}. Is it an ARFF file, and is "
                "there a line `@data` before the rows?"
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
    if _NUMERIC.fullmatch(kind) or _TEXT.fullmatch(kind):
        return Attribute(name, NUMERIC if _NUMERIC.fullmatch(kind) else TEXT)
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
    """Token without its quotes and with escapes resolved."""
    if token[:1] not in ("'", '"'):
        return token
    return re.sub(r"\\(.)", lambda m: ESCAPES.get(m[1], m[1]), token[1:-1], flags=re.DOTALL)


def _read_text(token: str) -> str | None:
    return None if token == "?" else _unquote(token)


def _shorten(text: str) -> str:
    """Text in quotes, cut to 60 characters."""
    return repr(text if len(text) <= 60 else text[:57] + "...")


def _strip_comment(line: str) -> str:
    row = line.strip()
    if "%" not in row:
        return row
    comment = _COMMENT.fullmatch(row)
    return "" if row.startswith("%") else comment[1].strip() if comment else row


def _read_meka_labels(relation: str, names: list[str], where: str) -> frozenset[str]:
    match = _MEKA_COUNT.search(relation)
    count = int(match[1]) if match else 0
    if not 1 <= abs(count) <= len(names):
        raise DataError(
            f"The labels of {where} must be named: in an .xml of the same name beside it, as "
            f"`-C 6` (or `-C -6`, from the end; at most {len(names)}) in its relation, got "
            f"{_shorten(relation)}, or with `labels`, e.g. labels=6."
        )
    return frozenset(names[:count] if count > 0 else names[count:])


# Rows


def _bad_line(number: int, where: str, problem: str) -> DataError:
    return DataError(f"Line {number} of {where} {problem}. Fix or drop that line.")


def _split_tokens(text: str, number: int, where: str) -> list[str]:
    """Tokens between commas, with their quotes."""
    if "'" not in text and '"' not in text:
        tokens = text.split(",")
        return [value.strip() for value in tokens] if " " in text or "\t" in text else tokens
    tokens, start = [], 0
    while cell := _CELL.match(text, start):
        tokens.append(cell[1].strip())
        start = cell.end()
        if not cell[0].endswith(","):
            return tokens
    problem = "cannot be split into values: check its commas, quotes and braces"
    raise _bad_line(number, where, problem)


def _split_rows(rows: dict[int, str], attributes: list[Attribute], where: str) -> bool:
    """Set tokens, rows and numbers of all attributes; whether the rows, by line, are sparse."""
    is_sparse = next(iter(rows.values())).startswith("{")
    for number, row in rows.items():
        if (row[0] + row[-1] == "{}") != is_sparse:
            kinds = ("sparse", "dense") if is_sparse else ("dense", "sparse")
            problem = f"cannot be {kinds[1]}, the rows before it are {kinds[0]}"
            raise _bad_line(number, where, problem)
    if is_sparse:
        _assign_sparse(rows, attributes, where)
    else:
        _assign_dense(rows, attributes, where)
    _read_tokens(attributes, is_sparse)
    return is_sparse


def _assign_dense(rows: dict[int, str], attributes: list[Attribute], where: str) -> None:
    split = [_split_tokens(row, number, where) for number, row in rows.items()]
    for number, tokens in zip(rows, split, strict=True):
        if len(tokens) != len(attributes):
            problem = f"must have a value for each of the {len(attributes)} attributes, it has "
            raise _bad_line(number, where, f"{problem}{len(tokens)}")
    all_rows = np.arange(len(rows))
    for attribute, column in zip(attributes, zip(*split, strict=True), strict=True):
        attribute.tokens, attribute.rows = column, all_rows


def _assign_sparse(rows: dict[int, str], attributes: list[Attribute], where: str) -> None:
    cells = [row[1:-1].strip() for row in rows.values()]
    n_cells = [cell.count(",") + 1 if cell else 0 for cell in cells]
    columns, tokens = _split_plain(",".join(filter(None, cells)))
    cell_rows = np.repeat(np.arange(len(rows)), n_cells)
    keys = (
        np.sort(cell_rows * len(attributes) + columns) if len(columns) == len(cell_rows) else None
    )
    if keys is None or (np.diff(keys) == 0).any() or columns.max(initial=0) >= len(attributes):
        split = [_split_sparse(row, n, len(attributes), where) for n, row in rows.items()]
        cell_rows = np.repeat(np.arange(len(rows)), [*map(len, split)])
        columns = np.array([place for row in split for place in row], dtype=np.int64)
        tokens = [token for row in split for token in row.values()]
    # Small integers are sorted by their digits.
    order = np.argsort(columns.astype(np.min_scalar_type(len(attributes))), kind="stable")
    ends = np.searchsorted(columns[order], np.arange(len(attributes) + 1))
    cell_rows, sorted_tokens = cell_rows[order], np.array(tokens, dtype=object)[order].tolist()
    for attribute, start, end in zip(attributes, ends[:-1], ends[1:], strict=True):
        attribute.rows, attribute.tokens = cell_rows[start:end], sorted_tokens[start:end]


def _split_plain(text: str) -> tuple[Integers, list[str]]:
    """Column numbers and tokens of sparse cells; empty if any cell has quotes or another form."""
    words = text.replace(",", " , ").split()
    columns, tokens = words[::3], words[1::3]
    if (
        "".join(columns).isdecimal()
        and max(map(len, columns)) <= MAX_DIGITS
        and words[2::3].count(",") == len(columns) - 1 == len(tokens) - 1
        and not any(mark in text for mark in "'\"")
        and "," not in set(tokens)
    ):
        return np.array([*map(int, columns)], dtype=np.int64), tokens
    return np.zeros(0, dtype=np.int64), []


def _split_sparse(row: str, number: int, n_columns: int, where: str) -> dict[int, str]:
    """Tokens of a sparse row by column number."""
    pairs = _split_tokens(row[1:-1], number, where) if row[1:-1].strip() else []
    token_of = {}
    for cell in pairs:
        index, *tokens = cell.split(None, 1) or [""]
        if not (index.isdecimal() and tokens):
            raise _bad_line(number, where, f"cannot have {_shorten(cell)} in place of `3 value`")
        token_of[int(index[:MAX_DIGITS])] = tokens[0]
    if len(token_of) < len(pairs) or max(token_of, default=0) >= n_columns:
        got = ", ".join(cell.split(None, 1)[0] for cell in pairs[:10])
        problem = f"must give each of the {n_columns} attributes at most one value, got {got}"
        raise _bad_line(number, where, problem)
    return token_of


def _read_tokens(attributes: list[Attribute], is_sparse: bool) -> None:
    """Set `numbers` and `is_bad` of attributes; all numeric tokens are parsed in one call."""
    numeric = [a for a in attributes if a.kind == NUMERIC or (a.kind == TEXT and is_sparse)]
    for attribute in attributes:
        if attribute.kind == NOMINAL:
            code_of = {"?": np.nan} | {value: code for code, value in enumerate(attribute.values)}
            tokens = attribute.tokens
            if len(set(tokens)) == 1:  # sparse files list ones
                codes = len(tokens) * [code_of.get(_unquote(tokens[0]), -1)]
            else:
                codes = [code_of.get(text, -1) for text in _unquote_all(tokens)]
            attribute.numbers = np.array(codes, dtype=np.float64)
            attribute.is_bad = attribute.numbers < 0
    numbers, is_bad = _read_numbers([token for a in numeric for token in a.tokens])
    end = 0
    for attribute in numeric:
        start, end = end, end + len(attribute.tokens)
        attribute.numbers, attribute.is_bad = numbers[start:end], is_bad[start:end]


def _read_numbers(tokens: list[str]) -> tuple[Floats, Mask]:
    """(n,) numbers, NaN for "?", and a mask of tokens that are no finite number."""
    if _DIGITS.fullmatch("\n".join(tokens)):  # the usual case, many times as quick
        with suppress(ValueError):
            numbers = np.array([*map(float, tokens)], dtype=np.float64)
            return numbers, np.isinf(numbers)
    texts = ["" if text == "?" else text for text in _unquote_all(tokens)]
    return read_numbers(pd.Series(texts, dtype="str"))


def _unquote_all(tokens: Sequence[str]) -> Sequence[str]:
    text = "".join(tokens)
    is_plain = "'" not in text and '"' not in text
    return tokens if is_plain else [*map(_unquote, tokens)]
