"""CSV, TSV and JSONL: rows between bytes that one scan over the file finds."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from labelsure._runtime.storage import first_line, read_bytes
from labelsure._runtime.typing import Integers
from labelsure.errors import DataError, InputError
from labelsure.tables.table_files._file_kind import (
    VALUE_COLUMN,
    FileKind,
    TablePath,
    Unit,
    changed,
    check_columns,
    check_names,
)

if TYPE_CHECKING:
    import pandas as pd

BLOCK_BYTES = 2**22
"""Bytes that the scan holds at a time: more is not faster."""

UNNAMED = "(unnamed)"
"""The column of a header without a name, which pandas writes for the index."""

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
QUOTE = ord('"')
NO_BYTE = -1


@dataclass(frozen=True)
class RowStarts:
    """What a scan over a text file finds.

    Parameters
    ----------
    offsets
        Where each `every`-th row begins, and at last where the file ends.
    n_rows
        How many rows there are.
    in_quotes
        Whether the file ends inside of quotes.
    """

    offsets: list[int]
    n_rows: int
    in_quotes: bool


def scan_rows(
    file: Path, every: int, *, delimiter: int = NO_BYTE, quote: int = NO_BYTE, start: int = 0
) -> RowStarts:
    """Return where the rows of a text file begin, in one sweep over its bytes.

    Parameters
    ----------
    file
        Its path.
    every
        Only the start of every so many rows is kept.
    delimiter, quote
        The bytes between values and around them; -1 for none.
    start
        Where the first row begins.
    """
    from labelsure._kernels.row_starts import N_ROWS, N_STARTS, QUOTED, STATE, find_row_starts

    read_bytes(file, 0)  # which says what is wrong with a file that cannot be read
    counts, offsets, at = np.zeros(3, np.int64), [], start
    with open(file, "rb") as stream:
        stream.seek(start)
        while content := stream.read(BLOCK_BYTES):
            block = np.frombuffer(content, np.uint8)
            starts = np.empty(len(block) // every + 1, np.int64)
            find_row_starts(block, delimiter, quote, every, counts, starts)
            offsets += (at + starts[: counts[N_STARTS]]).tolist()
            at += len(block)
    return RowStarts([*offsets, at], int(counts[N_ROWS]), bool(counts[STATE] == QUOTED))


def cut_rows(path: TablePath, found: RowStarts, rows: int) -> Iterator[Unit]:
    """Return the units of a text file.

    Parameters
    ----------
    path
        The file.
    found
        The starts of every `rows`-th row.
    rows
        Of a unit.
    """
    for number, first_row in enumerate(range(0, found.n_rows, rows)):
        yield Unit(
            str(path.file),
            number,
            first_row,
            min(rows, found.n_rows - first_row),
            start=found.offsets[number],
            end=found.offsets[number + 1],
        )


def read_range(unit: Unit) -> bytes:
    """Return the bytes of a unit of a text file.

    Parameters
    ----------
    unit
        With `start` and `end`.
    """
    if unit.start is None or unit.end is None:
        raise InputError(f"The unit of {unit.where} must have `start` and `end`. Use `list_units`.")
    start, end = unit.start, unit.end
    with open(unit.path, "rb") as stream:
        stream.seek(start)
        content = stream.read(end - start)
    if len(content) != end - start:
        raise changed(unit)
    return content


@dataclass(frozen=True)
class _Header:
    """The first line of a CSV file: the names, what stands between them, and where it ends."""

    names: list[str]
    delimiter: str
    end: int


@dataclass(frozen=True)
class CsvFile(FileKind):
    """CSV in UTF-8 with a header line: every value is text, and what is not there is "".

    Parameters
    ----------
    delimiter
        What stands between values; "" for a comma or, if the header has none, a semicolon.
    """

    delimiter: str = ""

    def columns(self, path: TablePath) -> dict[str, str]:
        """Return the names in the header; all of them are text."""
        return dict.fromkeys(self._read_header(path.file).names, "text")

    def cut(self, path: TablePath, rows: int) -> Iterator[Unit]:
        """Return the units of a file."""
        header = self._read_header(path.file)
        found = scan_rows(
            path.file, rows, delimiter=ord(header.delimiter), quote=QUOTE, start=header.end
        )
        if found.in_quotes:
            raise DataError(
                f"Quotes in {path.where} must be closed, the file ends inside of them. Mend the "
                f"row that has a single quotation mark, among rows "
                f"{max(0, (found.n_rows - 1) // rows * rows)} to {found.n_rows - 1} (rows count "
                "from 0), or copy the file again."
            )
        return cut_rows(path, found, rows)

    def read(self, unit: Unit, columns: Sequence[str] | None) -> pd.DataFrame:
        """Return the rows of a unit."""
        header = self._read_header(Path(unit.path))
        wanted = check_columns(columns, header.names, unit.where)
        content = read_range(unit)
        _check_encoding(content, unit, header.delimiter)
        return _parse_rows(content, header, wanted, unit)

    def _read_header(self, file: Path) -> _Header:
        read_bytes(file, 0)  # which says what is wrong with a file that cannot be read
        status = file.stat()
        return _read_header(file, self.delimiter, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=64)  # every unit of a file needs it
def _read_header(file: Path, delimiter: str, modified: int, size: int) -> _Header:
    first = read_bytes(file, BLOCK_BYTES)
    if first.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise DataError(f"The file {file.name!r} must be in UTF-8, it is in UTF-16. Convert it.")
    begin = len(BYTE_ORDER_MARK) if first.startswith(BYTE_ORDER_MARK) else 0
    delimiter = delimiter or _find_delimiter(first[begin:])
    end = _end_of_header(first, begin, delimiter)
    try:
        text = first[begin:end].decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(
            f"The header of {file.name!r} must be in UTF-8, byte {error.start} is not. Convert "
            "the file, e.g. by `iconv -f latin1 -t utf-8`."
        ) from error
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    values = next((line for line in lines if line), [])
    if not values:
        raise DataError(f"The file {file.name!r} must begin with a header line, it is empty.")
    names = [name.strip() or UNNAMED for name in values]
    return _Header(check_names(names, repr(file.name)), delimiter, end)


def _find_delimiter(content: bytes) -> str:
    """Return a semicolon where the first line has some and no comma; otherwise a comma."""
    line = content.lstrip(b"\r\n").splitlines()[:1] or [b""]
    return ";" if b";" in line[0] and b"," not in line[0] else ","


def _end_of_header(content: bytes, begin: int, delimiter: str) -> int:
    """Return where the second row begins, or the file ends."""
    starts = _starts_in(content[begin:], delimiter)
    return begin + int(starts[1]) if len(starts) > 1 else len(content)


def _starts_in(content: bytes, delimiter: str) -> Integers:
    """Return where each row of some bytes begins, the first of which begins a row."""
    from labelsure._kernels.row_starts import N_STARTS, find_row_starts

    block = np.frombuffer(content, np.uint8)
    starts, counts = np.empty(len(block) + 1, np.int64), np.zeros(3, np.int64)
    find_row_starts(block, ord(delimiter), QUOTE, 1, counts, starts)
    return starts[: counts[N_STARTS]]


def _check_encoding(content: bytes, unit: Unit, delimiter: str) -> None:
    try:
        content.decode("utf-8")
    except UnicodeDecodeError as error:
        row = unit.first_row + len(_starts_in(content[: error.start + 1], delimiter)) - 1
        raise DataError(
            f"The file {unit.where} must be in UTF-8, row {row} (rows count from 0) is not. "
            "Convert the file, e.g. by `iconv -f latin1 -t utf-8`."
        ) from error


def _parse_rows(content: bytes, header: _Header, wanted: list[str], unit: Unit) -> pd.DataFrame:
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    bad_rows: list[Any] = []

    def stop_at(row: Any) -> str:
        bad_rows.append(row)
        return "error"

    try:
        table = arrow_csv.read_csv(
            pa.BufferReader(content),
            read_options=arrow_csv.ReadOptions(
                column_names=header.names, use_threads=False, block_size=len(content) + 1
            ),
            parse_options=arrow_csv.ParseOptions(
                delimiter=header.delimiter, newlines_in_values=True, invalid_row_handler=stop_at
            ),
            convert_options=arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(header.names, pa.string()),
                include_columns=wanted,
                strings_can_be_null=False,
            ),
        )
    except (pa.ArrowException, OSError, ValueError) as error:
        if bad_rows:
            raise DataError(
                f"Row {unit.first_row + bad_rows[0].number - 1} of {unit.where} (rows count from "
                f"0) must have {bad_rows[0].expected_columns} values like the header, it has "
                f"{bad_rows[0].actual_columns}. Mend or drop that row."
            ) from error
        raise DataError(f"The file {unit.where} cannot be read: {first_line(error)}.") from error
    return table.to_pandas()


class JsonLinesFile(FileKind):
    """JSONL: an object in each line, whose keys are columns; other values have one column."""

    def columns(self, path: TablePath) -> None:
        """Return None: each row has its own keys."""

    def cut(self, path: TablePath, rows: int) -> Iterator[Unit]:
        """Return the units of a file."""
        return cut_rows(path, scan_rows(path.file, rows), rows)

    def read(self, unit: Unit, columns: Sequence[str] | None) -> pd.DataFrame:
        """Return the rows of a unit; None stands where a row does not have the key."""
        import pandas as pd

        rows = [
            _read_object(line, unit.first_row + number, unit)
            for number, line in enumerate(filter(None, _split_lines(read_range(unit))))
        ]
        names = list(columns or dict.fromkeys(key for row in rows for key in row))
        values = {name: pd.Series([row.get(name) for row in rows], dtype=object) for name in names}
        return pd.DataFrame(values, index=range(len(rows)))


def _split_lines(content: bytes) -> list[bytes]:
    return [line.strip() for line in content.replace(b"\r", b"\n").split(b"\n")]


def _find_line(file: Path, row: int) -> int:
    """Return the line of a row of JSONL, from 1, blank lines counted."""
    with open(file, "rb") as stream:
        lines = (number for number, line in enumerate(stream, start=1) if line.strip())
        return next(islice(lines, row, None), row + 1)


def _read_object(line: bytes, row: int, unit: Unit) -> dict[str, Any]:
    try:
        value = json.loads(line.removeprefix(BYTE_ORDER_MARK))
    except (ValueError, RecursionError) as error:
        raise DataError(
            f"Row {row} of {unit.where} (rows count from 0, this is line "
            f"{_find_line(Path(unit.path), row)}) must be JSON on one line, but it is not: "
            f"{first_line(error)}. Fix or drop that row."
        ) from error
    return value if isinstance(value, dict) else {VALUE_COLUMN: value}
