"""The header of an ARFF file, with all that occurs in files in use.

liac-arff refuses tabs, comments behind a declaration, dates and escaped names, and needs
exponential time for some broken lists of values. So declarations are read here, without
backtracking (possessive quantifiers), and liac-arff reads the rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

import arff

from labelsure.errors import DataError
from labelsure.tables.datasets._columns import check_column_count

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
