"""Strict reader of values: bytes are UTF-8, lists are no text, and a number has one spelling.

A value that is none of these makes its row a bad row; nothing is guessed from its Python repr.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from decimal import Decimal, InvalidOperation
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from labelsure._runtime.typing import Column, Floats, Mask

if TYPE_CHECKING:
    import pyarrow as pa

MISSING = frozenset({"", "?", "na", "n/a", "nan", "-nan", "null"})
"""Lower-case spellings of missing values."""

CONTAINERS = (list, tuple, set, dict, np.ndarray)

MAX_EXACT = 10**15
"""Limit below which whole floats are written as integers: they are exact up to 2**53, 9e15."""


def decode_bytes(content: bytes, what: str) -> str:
    """Text of bytes in UTF-8. Raises ValueError."""
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{what} must be UTF-8, but it has the byte 0x{content[error.start]:02x}; if all text "
            "of the file has another encoding, name it with `encoding`"
        ) from error


def decode_table(table: pa.Table) -> tuple[pa.Table, dict[int, str]]:
    """Table without rows whose bytes are not UTF-8, and the reasons of these rows by position."""
    import pyarrow as pa

    reasons: dict[int, str] = {}
    for place, field in enumerate(table.schema):
        kind = _text_type(field.type)
        if kind == field.type:
            continue
        column = table.column(place)
        try:
            texts = column.cast(kind)
        except pa.ArrowInvalid:
            texts = pa.array(_decode_cells(column, repr(field.name), reasons), kind)
        table = table.set_column(place, field.name, texts)
    if reasons:
        table = table.filter(np.isin(np.arange(len(table)), list(reasons), invert=True))
    return table, dict(sorted(reasons.items()))


def _decode_cells(column: Any, what: str, reasons: dict[int, str]) -> list[Any]:
    def decode(value: object) -> Any:
        if isinstance(value, list):
            return [decode(one) for one in value]
        return decode_bytes(value, what) if isinstance(value, bytes) else value

    texts: list[Any] = []
    for row, cell in enumerate(column.to_pylist()):
        try:
            texts.append(decode(cell))
        except ValueError as error:
            reasons.setdefault(row, str(error))
            texts.append(None)
    return texts


def _text_type(kind: pa.DataType) -> pa.DataType:
    """Arrow type with text in place of bytes, in lists as well."""
    import pyarrow as pa

    is_bytes = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view)
    if any(test(kind) for test in is_bytes) or pa.types.is_fixed_size_binary(kind):
        return pa.large_string() if pa.types.is_large_binary(kind) else pa.string()
    if pa.types.is_dictionary(kind):  # categories would be those of these rows
        return _text_type(kind.value_type)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        inner = _text_type(kind.value_type)
        make: Callable[[Any], Any] = pa.list_ if pa.types.is_list(kind) else pa.large_list
        return kind if inner == kind.value_type else make(inner)
    return kind


def find_missing(column: Column) -> Mask:
    """Mask of missing values, texts such as "NA" among them."""
    import pandas as pd

    absent: Mask = column.isna().to_numpy(dtype=bool)
    if not (isinstance(column.dtype, pd.StringDtype) or column.dtype == object):
        return absent
    spelled = [isinstance(value, str) and value.strip().lower() in MISSING for value in column]
    return absent | np.array(spelled, dtype=bool)


def spell(value: object) -> str:
    r"""Value as text, a number in its shortest form. Raises ValueError.

    Examples
    --------
    >>> [spell(value) for value in (10, 10.0, Decimal("10.00"), np.float32(0.1), b"\xc3\xa9")]
    ['10', '10', '10', '0.1', 'é']
    """
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, bytes):
        return decode_bytes(value, "it").strip()
    if isinstance(value, CONTAINERS):
        raise ValueError(f"it must be one value, got a {type(value).__name__}")
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value))
    if isinstance(value, Decimal) and value.is_finite():
        is_whole = value == value.to_integral_value()
        return str(int(value)) if is_whole else str(float(value))
    if isinstance(value, (float, np.floating)) and abs(float(value)) < MAX_EXACT:
        return str(int(value)) if value == int(value) else str(value)
    if isinstance(value, date):
        return str(value).removesuffix(" 00:00:00")
    return str(value).strip()


def spell_ids(column: Column) -> tuple[Column, dict[int, str]]:
    """Row names, and by position the reasons of values that are no name.

    Integers and texts stay as they are; other values get one spelling, missing ones are None.
    """
    import pandas as pd

    if pd.api.types.is_integer_dtype(column.dtype):
        return column, {}
    names, reasons = [], dict[int, str]()
    for row, value in enumerate(column.tolist()):
        name = None
        try:
            is_present = isinstance(value, CONTAINERS) or not pd.isna(value)
            name = value if isinstance(value, str) else spell(value) if is_present else None
        except ValueError as error:
            reasons[row] = str(error)
        names.append(name)
    return pd.Series(names, column.index, dtype=object, name=column.name), reasons


def spell_number(text: str) -> str:
    """Text of a number in its shortest form; other text as it is.

    Examples
    --------
    >>> [spell_number(text) for text in ("10.00", "1e1", "0.10", "1_0", "red")]
    ['10', '10', '0.1', '1_0', 'red']
    """
    with suppress(InvalidOperation):
        if "_" not in text and (number := Decimal(text)).is_finite():
            return spell(number)
    return text


@dataclass(frozen=True)
class Texts:
    """The values of a column as text without spaces around them.

    Parameters
    ----------
    values
        One for each row; "" where it is missing or no text.
    missing, is_number
        (n,) masks of missing values, and of values whose type is a number.
    reasons
        Reasons of values that are no text, by position.
    """

    values: Any
    missing: Mask
    is_number: Mask
    reasons: Mapping[int, str]


def read_texts(column: Column) -> Texts:
    """Values of a column as text."""
    missing, reasons = find_missing(column), dict[int, str]()
    is_typed = isinstance(column.dtype, np.dtype) and column.dtype.kind == "f"
    # NumPy's own floats: a float32 spells 0.1, which as a float64 has other digits.
    values = column.to_numpy() if is_typed else column
    texts = np.full(len(column), "", dtype=object)
    is_number = np.zeros(len(column), dtype=bool)
    for row, value in enumerate(values):
        if not missing[row]:
            try:
                texts[row] = spell(value)
            except ValueError as error:
                reasons[row] = str(error)
            is_bool = isinstance(value, (bool, np.bool_))
            is_number[row] = isinstance(value, (Real, Decimal)) and not is_bool
    return Texts(texts, missing, is_number, reasons)


def read_numbers(column: Column) -> tuple[Floats, Mask]:
    """Values as floats, NaN where missing, and a mask of those that are no finite numbers."""
    import pandas as pd
    import pyarrow as pa
    import pyarrow.compute as pc

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
    texts = read_texts(column)
    values = np.full(len(column), np.nan)
    for row in np.flatnonzero(~texts.missing):
        text = texts.values[row]
        with suppress(ValueError):  # Python reads 1_000 as a number
            values[row] = float("x" if "_" in text else text)
    return values, ~texts.missing & ~np.isfinite(values)
