"""Tables in files of any size: cut into units of some rows, which are read one at a time.

All commands and `read_dataset` read tables here, by one rule: text is UTF-8, or else Latin-1 as a
whole; values of CSV are text; keys that a JSONL row lacks are missing.
"""

from __future__ import annotations

import codecs
import csv
import glob
import io
import json
import mmap
import os
import re
import tempfile
import threading
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from hashlib import sha256
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csr_array, get_index_dtype

from labelsure._runtime import limits as _limits
from labelsure._runtime.arguments import read_whole_number
from labelsure._runtime.storage import (
    checksum_bytes,
    expand_path,
    find_compression,
    first_line,
    is_address,
    read_bytes,
    suffix_of,
    unpack,
)
from labelsure._runtime.typing import AnyPath, Floats, Integers
from labelsure.errors import DataError, InputError, LabelsureError, RowsError, TooLargeError

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


@dataclass(frozen=True, eq=False)
class ListedCell:
    """What one row of a sparse matrix lists.

    Parameters
    ----------
    columns
        The numbers of the columns, rising.
    values
        One for each of these.
    n_columns
        How many columns there are in all.

    Examples
    --------
    >>> ListedCell(np.array([3, 7]), np.array([0.5, 1.0]), 100).tolist()
    {'columns': [3, 7], 'values': [0.5, 1.0]}
    """

    columns: Integers
    values: Floats
    n_columns: int

    def tolist(self) -> dict[str, list[Any]]:
        """Return it as plain values, as NumPy calls it."""
        return {"columns": self.columns.tolist(), "values": self.values.tolist()}


def stack_cells(cells: Sequence[ListedCell], n_columns: int) -> Any:
    """Return rows as one CSR array of floats.

    Examples
    --------
    >>> nothing = np.empty(0, dtype=int)
    >>> cells = [ListedCell(np.array([2]), np.array([0.5]), 4), ListedCell(nothing, nothing, 4)]
    >>> stack_cells(cells, 4).toarray()
    array([[0. , 0. , 0.5, 0. ],
           [0. , 0. , 0. , 0. ]])
    """
    starts = np.concatenate([[0], np.cumsum([len(cell.columns) for cell in cells], dtype=np.int64)])
    columns = [cell.columns for cell in cells] or [np.empty(0, np.int64)]
    values = [cell.values for cell in cells] or [np.empty(0)]
    integers = get_index_dtype(maxval=max(n_columns, int(starts[-1])))
    parts = (
        np.concatenate(values).astype(np.float64),
        np.concatenate(columns).astype(integers),
        starts.astype(integers),
    )
    return csr_array(parts, shape=(len(cells), n_columns))


VALUE_COLUMN = "value"
"""The column of rows that have no columns: lists in JSONL, arrays of one or three axes."""

Partitions = tuple[tuple[str, str | None], ...]
"""Columns that the names of folders hold, such as ``year=2024``; None for a missing value."""


@dataclass(frozen=True)
class Unit:
    """Some rows of one file: what one task reads, the same on every machine.

    Parameters
    ----------
    path
        Of the file, as it was named.
    number
        0, 1, ... over all files.
    first_row
        Of the unit in its file, from 0; a header is no row.
    n_rows
        How many rows it has.
    start, end
        In CSV and JSONL, where its bytes begin and end.
    line
        In CSV and JSONL, the line in which it begins, from 1.
    encoding
        Of the text in the file.
    row_group
        In Parquet and Feather, the row group that holds its rows.
    content
        Where an unpacked copy of the file is, if this machine has one.
    partitions
        Values of columns that the names of its folders hold.
    source
        The named input and the path below it, which stay when folders move.
    csv_sep
        What stands between values of CSV, if somebody says it.
    """

    path: str
    number: int
    first_row: int
    n_rows: int
    start: int | None = None
    end: int | None = None
    line: int | None = None
    encoding: str = "utf-8"
    row_group: int | None = None
    content: str | None = None
    partitions: Partitions = ()
    source: str = ""
    csv_sep: str = ""

    @property
    def where(self) -> str:
        """The file, as messages name it."""
        return repr(self.source)


@dataclass(frozen=True)
class TablePath:
    """A file, and how it was named."""

    file: Path
    name: str = ""
    partitions: Partitions = ()
    source: str = ""
    csv_sep: str = ""

    @property
    def where(self) -> str:
        """The file, as messages name it."""
        return repr(self.file.name)


class FileKind(ABC):
    """A kind of table file: how it is cut into units and how a unit is read."""

    @abstractmethod
    def columns(self, path: TablePath) -> dict[str, str] | int | None:
        """Return the columns with their types, how many there are without names, or None.

        Files of one folder must have the same. None is for JSONL, where each row has its own.
        """

    @abstractmethod
    def cut(self, path: TablePath, rows: int) -> Iterator[Unit]:
        """Return the units of a file, numbered from 0, each of at most `rows` rows."""

    @abstractmethod
    def read(self, unit: Unit, columns: Sequence[str] | None, bad: dict[int, str]) -> pd.DataFrame:
        """Return the rows of a unit, those columns of it that there are, whatever their index.

        Rows that cannot be read are left out, and their reasons put into `bad` by position.
        """


def _choose_columns(wanted: Sequence[str] | None, known: Sequence[Any]) -> list[Any]:
    """Return the columns to read: all of them for None, and otherwise those that are there."""
    return list(known) if wanted is None else [name for name in wanted if name in set(known)]


def check_column_count(n_columns: int, where: str, most: int | None = None) -> None:
    """Refuse a table of more columns than can be handled one by one."""
    most = _limits.MAX_COLUMNS if most is None else most
    if n_columns > most:
        raise TooLargeError(
            f"The table {where} must have at most {most} columns, it has {n_columns}. Leave out "
            "those that are not needed."
        )


def _check_names(names: Sequence[str], where: str) -> list[str]:
    """Return the names of columns, unless there are too many or one is there twice."""
    check_column_count(len(names), where)
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise DataError(
                f"The columns of {where} must have names of their own, {name!r} is there twice. "
                "Rename one of them."
            )
        seen.add(name)
    return list(names)


def _changed(unit: Unit) -> DataError:
    return DataError(
        f"The file {unit.where} must stay as it is while it is read, but its rows from "
        f"{unit.first_row} on (rows count from 0) have changed. Start again."
    )


MISSING = frozenset({"", "?", "na", "n/a", "nan", "-nan", "null"})
"""How files spell that a value is not there, in small letters."""


def mark_missing(column: pd.Series[Any]) -> pd.Series[Any]:
    """Return a column in which texts that say that a value is missing are None."""
    import pandas as pd

    if not (isinstance(column.dtype, pd.StringDtype) or column.dtype == object):
        return column
    is_missing = [isinstance(v, str) and v.strip().lower() in MISSING for v in column]
    return column.mask(np.array(is_missing, dtype=bool), None)


def holds_containers(column: pd.Series[Any]) -> bool:
    """Whether some value is a list, an array or an object with keys."""
    return column.dtype == object and any(
        isinstance(value, (list, tuple, dict, np.ndarray, ListedCell)) for value in column
    )


def says_missing(cell: Any) -> bool:
    """Whether a cell with names of labels says that they are missing; "" says that none is true."""
    return isinstance(cell, str) and cell.strip() != "" and cell.strip().lower() in MISSING


# Text: CSV, TSV, JSONL

BLOCK_BYTES = 2**22
"""Bytes that the scan holds at a time: more is not faster."""

UNNAMED = "(unnamed)"
"""The column of a header without a name, which pandas writes for the index."""

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
QUOTE = ord('"')
NO_SEP = '"\r\n\0'
NO_BYTE = -1


@dataclass(frozen=True)
class RowStarts:
    """What a scan over a text file finds.

    Parameters
    ----------
    offsets
        Where each `every`-th row begins, and at last where the file ends.
    lines
        The line of each of these rows, from 1.
    n_rows
        How many rows there are.
    in_quotes
        Whether the file ends inside of quotes.
    """

    offsets: list[int]
    lines: list[int]
    n_rows: int
    in_quotes: bool


def scan_rows(
    file: Path,
    every: int,
    *,
    delimiter: int = NO_BYTE,
    quote: int = NO_BYTE,
    start: int = 0,
    line: int = 1,
) -> RowStarts:
    """Return where every so many rows of a text file begin, in one sweep over its bytes."""
    from labelsure._kernels.row_starts import N_ROWS, N_STARTS, QUOTED, STATE, find_row_starts

    counts, offsets, lines, at = np.zeros(3, np.int64), list[int](), list[int](), start
    with open(file, "rb") as stream:
        stream.seek(start)
        while content := stream.read(BLOCK_BYTES):
            block = np.frombuffer(content, np.uint8)
            starts = np.empty(len(block) // every + 1, np.int64)
            find_row_starts(block, delimiter, quote, every, counts, starts)
            starts = starts[: counts[N_STARTS]]
            breaks = np.flatnonzero(block == ord("\n"))
            offsets += (at + starts).tolist()
            lines += (line + np.searchsorted(breaks, starts)).tolist()
            at, line = at + len(block), line + len(breaks)
    return RowStarts([*offsets, at], lines, int(counts[N_ROWS]), bool(counts[STATE] == QUOTED))


def _cut_rows(path: TablePath, found: RowStarts, rows: int, encoding: str) -> Iterator[Unit]:
    for number, first_row in enumerate(range(0, found.n_rows, rows)):
        yield Unit(
            str(path.file),
            number,
            first_row,
            min(rows, found.n_rows - first_row),
            start=found.offsets[number],
            end=found.offsets[number + 1],
            line=found.lines[number],
            encoding=encoding,
        )


def _read_range(unit: Unit) -> bytes:
    """Return the bytes of a unit of a text file, in UTF-8 where they can be."""
    start, end = unit.start or 0, unit.end or 0
    with open(unit.path, "rb") as stream:
        stream.seek(start)
        content = stream.read(end - start)
    if len(content) != end - start:
        raise _changed(unit)
    return content if unit.encoding == "utf-8" else content.decode(unit.encoding).encode()


def _state_of(file: Path) -> tuple[int, int]:
    """Return what shows that a file has changed; say what is wrong with one that is not there."""
    read_bytes(file, 0)
    status = file.stat()
    return status.st_mtime_ns, status.st_size


def find_encoding(file: Path) -> str:
    """Return "utf-8", or "latin-1" where some byte of a text file is not UTF-8."""
    return _find_encoding(file, _state_of(file))


@lru_cache(maxsize=4096)
def _find_encoding(file: Path, state: tuple[int, int]) -> str:
    decoder = codecs.getincrementaldecoder("utf-8")()
    with open(file, "rb") as stream:
        block = stream.read(BLOCK_BYTES)
        if block.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise DataError(
                f"The file {file.name!r} must be in UTF-8, it is in UTF-16. Convert it."
            )
        try:
            while block:
                decoder.decode(block)
                block = stream.read(BLOCK_BYTES)
            decoder.decode(b"", True)
        except UnicodeDecodeError:
            return "latin-1"
    return "utf-8"


@dataclass(frozen=True)
class _Header:
    names: list[str]
    delimiter: str
    end: int
    line: int


@dataclass(frozen=True)
class CsvFile(FileKind):
    """CSV with a header line: every value is text, and what is not there is "".

    Parameters
    ----------
    delimiter
        What stands between values; "" for the first of comma, semicolon, tab and bar that the
        header has.
    """

    delimiter: str = ""

    def columns(self, path: TablePath) -> dict[str, str]:
        """Return the names in the header; all of them are text."""
        header = self._read_header(path.file, find_encoding(path.file), path.csv_sep)
        return dict.fromkeys(header.names, "text")

    def cut(self, path: TablePath, rows: int) -> Iterator[Unit]:
        """Return the units of a file."""
        encoding = find_encoding(path.file)
        header = self._read_header(path.file, encoding, path.csv_sep)
        found = scan_rows(
            path.file,
            rows,
            delimiter=ord(header.delimiter),
            quote=QUOTE,
            start=header.end,
            line=header.line,
        )
        if found.in_quotes:
            raise DataError(
                f"Quotes in {path.where} must be closed, the file ends inside of them. Fix the "
                f"row that has a single quotation mark, among rows "
                f"{max(0, (found.n_rows - 1) // rows * rows)} to {found.n_rows - 1} (rows count "
                "from 0), or copy the file again."
            )
        return _cut_rows(path, found, rows, encoding)

    def read(self, unit: Unit, columns: Sequence[str] | None, bad: dict[int, str]) -> pd.DataFrame:
        """Return the rows of a unit that have as many values as the header."""
        header = self._read_header(Path(unit.path), unit.encoding, unit.csv_sep)
        return _parse_rows(_read_range(unit), header, columns, unit, bad)

    def find_lines(self, unit: Unit, rows: Sequence[int]) -> list[int]:
        """Return the lines of some rows of a unit, given by position."""
        header = self._read_header(Path(unit.path), unit.encoding, unit.csv_sep)
        return _lines_of(_read_range(unit), unit, rows, ord(header.delimiter), QUOTE)

    def _read_header(self, file: Path, encoding: str, given: str) -> _Header:
        return _read_header(file, given or self.delimiter, encoding, _state_of(file))


@lru_cache(maxsize=64)  # every unit of a file needs it
def _read_header(file: Path, delimiter: str, encoding: str, state: tuple[int, int]) -> _Header:
    first = read_bytes(file, BLOCK_BYTES)
    begin = len(BYTE_ORDER_MARK) if first.startswith(BYTE_ORDER_MARK) else 0
    delimiter = delimiter or _find_delimiter(first[begin:])
    starts = _starts_in(first[begin:], ord(delimiter), QUOTE)
    end = begin + int(starts[1]) if len(starts) > 1 else len(first)
    text = first[begin:end].decode(encoding)
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    values = next((line for line in lines if line), [])
    if not values:
        raise DataError(f"The file {file.name!r} must begin with a header line, it is empty.")
    names = [name.strip() or UNNAMED for name in values]
    return _Header(
        _check_names(names, repr(file.name)), delimiter, end, 1 + first[:end].count(b"\n")
    )


def _find_delimiter(content: bytes) -> str:
    """Return the first of comma, semicolon, tab and bar that the header has; or else a comma."""
    line = (content.lstrip(b"\r\n").splitlines()[:1] or [b""])[0]
    return next((sign for sign in ",;\t|" if sign.encode() in line), ",")


def _starts_in(content: bytes, delimiter: int, quote: int) -> Integers:
    """Return where each row of some bytes begins, the first of which begins a row."""
    from labelsure._kernels.row_starts import N_STARTS, find_row_starts

    block = np.frombuffer(content, np.uint8)
    starts, counts = np.empty(len(block) + 1, np.int64), np.zeros(3, np.int64)
    find_row_starts(block, delimiter, quote, 1, counts, starts)
    return starts[: counts[N_STARTS]]


def _lines_of(
    content: bytes, unit: Unit, rows: Sequence[int], delimiter: int, quote: int
) -> list[int]:
    starts = _starts_in(content, delimiter, quote)
    return [(unit.line or 1) + content.count(b"\n", 0, int(starts[row])) for row in rows]


def _parse_rows(
    content: bytes,
    header: _Header,
    columns: Sequence[str] | None,
    unit: Unit,
    bad: dict[int, str],
) -> pd.DataFrame:
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    wanted = _choose_columns(columns, header.names)
    found: list[Any] = []

    def skip(row: Any) -> str:
        found.append(row)
        return "skip"

    try:
        table = arrow_csv.read_csv(
            pa.BufferReader(content),
            read_options=arrow_csv.ReadOptions(
                column_names=header.names, use_threads=False, block_size=len(content) + 1
            ),
            parse_options=arrow_csv.ParseOptions(
                delimiter=header.delimiter, newlines_in_values=True, invalid_row_handler=skip
            ),
            convert_options=arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(header.names, pa.string()),
                include_columns=wanted or header.names[:1],  # none would mean all
                strings_can_be_null=False,
            ),
        )
    except (pa.ArrowException, OSError, ValueError) as error:
        raise DataError(f"The file {unit.where} cannot be read: {first_line(error)}.") from error
    rows = [row.number - 1 for row in found]
    lines = _lines_of(content, unit, rows, ord(header.delimiter), QUOTE) if rows else []
    for row, line, at in zip(found, lines, rows, strict=True):
        bad[at] = (
            f"line {line} must have {row.expected_columns} values like the header, it has "
            f"{row.actual_columns}"
        )
    return table.to_pandas()[wanted]


class JsonLinesFile(FileKind):
    """JSONL: an object in each line, whose keys are columns; other values have one column."""

    def columns(self, path: TablePath) -> None:
        """Return None: each row has its own keys."""

    def cut(self, path: TablePath, rows: int) -> Iterator[Unit]:
        """Return the units of a file."""
        encoding = find_encoding(path.file)
        return _cut_rows(path, scan_rows(path.file, rows), rows, encoding)

    def read(self, unit: Unit, columns: Sequence[str] | None, bad: dict[int, str]) -> pd.DataFrame:
        """Return the rows of a unit; None stands where a row does not have the key."""
        import pandas as pd

        content = _read_range(unit)
        rows: list[dict[str, Any]] = []
        lines = filter(None, map(bytes.strip, content.replace(b"\r", b"\n").split(b"\n")))
        for number, line in enumerate(lines):
            try:
                rows.append(_read_object(line))
            except (ValueError, RecursionError) as error:
                (at,) = self.find_lines(unit, [number])
                bad[number] = f"line {at} must be JSON, but it is not: {_why(error)}"
        names = list(dict.fromkeys(key for row in rows for key in row))
        if columns is not None:
            file = Path(unit.path)
            names = [name for name in columns if name in names or _has_key(file, name)]
        values = {name: pd.Series([row.get(name) for row in rows], dtype=object) for name in names}
        return pd.DataFrame(values, index=range(len(rows)))

    def find_lines(self, unit: Unit, rows: Sequence[int]) -> list[int]:
        """Return the lines of some rows of a unit, given by position."""
        return _lines_of(_read_range(unit), unit, rows, NO_BYTE, NO_BYTE)


def _read_object(line: bytes) -> dict[str, Any]:
    value = json.loads(line.removeprefix(BYTE_ORDER_MARK))
    if b"\\ud" in line.lower():  # half of a surrogate pair is no character: no file can hold it
        json.dumps(value, ensure_ascii=False).encode()
    return value if isinstance(value, dict) else {VALUE_COLUMN: value}


def _why(error: Exception) -> str:
    if isinstance(error, UnicodeEncodeError):
        return f"it has half of a surrogate pair, \\u{ord(error.object[error.start]):04x}"
    return first_line(error)


def _has_key(file: Path, name: str) -> bool:
    """Whether some row of a JSONL file has a key: other units than this one may have it."""
    return _search_key(file, name, _state_of(file))


@lru_cache(maxsize=4096)
def _search_key(file: Path, name: str, state: tuple[int, int]) -> bool:
    forms = {json.dumps(name, ensure_ascii=ascii_only).encode() for ascii_only in (True, False)}
    with open(file, "rb") as stream:
        if not state[1]:
            return False
        with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content:
            for form in forms:
                at = content.find(form)
                while at >= 0:
                    begin, end = content.rfind(b"\n", 0, at) + 1, content.find(b"\n", at)
                    end = len(content) if end < 0 else end
                    try:
                        if name in _read_object(content[begin:end]):
                            return True
                    except (ValueError, RecursionError):
                        pass
                    at = content.find(form, end)
    return False


# Arrays: .npy, and sparse matrices in .npz


def _cut_array(path: TablePath, n_rows: int, rows: int) -> Iterator[Unit]:
    for number, first_row in enumerate(range(0, n_rows, rows)):
        yield Unit(str(path.file), number, first_row, min(rows, n_rows - first_row))


class NpyFile(FileKind):
    """One array, which stays on disk while some of its rows are read."""

    def columns(self, path: TablePath) -> dict[str, str] | int:
        """Return how many columns there are."""
        array = _load_array(path.file)
        return array.shape[-1] if array.ndim > 1 else 1

    def cut(self, path: TablePath, rows: int) -> Iterator[Unit]:
        """Return the units of a file."""
        return _cut_array(path, len(_load_array(path.file)), rows)

    def read(self, unit: Unit, columns: Sequence[str] | None, bad: dict[int, str]) -> pd.DataFrame:
        """Return the rows of a unit: columns 0, 1, ..., or one column of values or arrays."""
        import pandas as pd

        array = _load_array(Path(unit.path))
        rows = np.array(array[unit.first_row : unit.first_row + unit.n_rows])
        rows = rows.astype(rows.dtype.newbyteorder("="), copy=False)
        if rows.ndim == 2:
            frame = pd.DataFrame(rows)
        else:
            frame = pd.DataFrame({VALUE_COLUMN: list(rows) if rows.ndim > 2 else rows})
        return frame[_choose_columns(columns, list(frame.columns))]


def _load_array(file: Path) -> NDArray[Any]:
    read_bytes(file, 0)  # which says what is wrong with a file that cannot be read
    try:
        array = np.load(file, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise _unreadable(file, error) from error
    if array.dtype.kind not in "biuf" or array.ndim not in (1, 2, 3):
        raise DataError(
            f"The array in {file.name!r} must hold numbers in one, two or three axes, the first "
            f"of which counts the rows; got {array.dtype} with shape {array.shape}."
        )
    return array


class NpzFile(FileKind):
    """A sparse matrix, which is read as a whole, once; its rows are one column of `ListedCell`."""

    def columns(self, path: TablePath) -> dict[str, str]:
        """Return what the cells are."""
        n_columns = _load_sparse(path.file, _state_of(path.file)).shape[1]
        return {VALUE_COLUMN: f"what a row of {n_columns} columns lists"}

    def cut(self, path: TablePath, rows: int) -> Iterator[Unit]:
        """Return the units of a file."""
        return _cut_array(path, _load_sparse(path.file, _state_of(path.file)).shape[0], rows)

    def read(self, unit: Unit, columns: Sequence[str] | None, bad: dict[int, str]) -> pd.DataFrame:
        """Return the rows of a unit."""
        import pandas as pd

        matrix = _load_sparse(Path(unit.path), _state_of(Path(unit.path)))
        rows = matrix[unit.first_row : unit.first_row + unit.n_rows]
        cells = [
            ListedCell(
                rows.indices[start:end].astype(np.int64), rows.data[start:end], rows.shape[1]
            )
            for start, end in pairwise(rows.indptr.tolist())
        ]
        frame = pd.DataFrame({VALUE_COLUMN: pd.Series(cells, dtype=object)})
        return frame[_choose_columns(columns, list(frame.columns))]


@lru_cache(maxsize=2)  # the units of one file come one after the other; beside it the truth
def _load_sparse(file: Path, state: tuple[int, int]) -> Any:
    """Return a CSR matrix whose indices rise, none twice."""
    try:
        with zipfile.ZipFile(file) as parts, np.load(file, allow_pickle=False) as arrays:
            n_rows, n_columns = (int(size) for size in arrays["shape"])
            n_bytes = sum(part.file_size for part in parts.infolist()) + 8 * n_rows
        what = f"The numbers of {file.name!r}, which are read as a whole,"
        _limits.check_size(n_bytes, what, "Save its rows in several files.")
        check_column_count(n_columns, repr(file.name), _limits.MAX_LISTED_COLUMNS)
        matrix = sparse.load_npz(file).tocsr()
        matrix.check_format(full_check=True)
    except LabelsureError:
        raise
    except Exception as error:  # whatever a damaged file makes of scipy
        raise _unreadable(file, error) from error
    if matrix.dtype.kind not in "biuf":
        raise DataError(f"The matrix in {file.name!r} must hold numbers, got {matrix.dtype}.")
    matrix.sort_indices()
    row = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    is_twice = (np.diff(row) == 0) & (np.diff(matrix.indices) == 0)
    if is_twice.any():
        at = int(np.flatnonzero(is_twice)[0])
        raise DataError(
            f"Each row of {file.name!r} must list a column once, row {row[at]} (rows count from 0) "
            f"lists {matrix.indices[at]} twice. Save the matrix after `sum_duplicates`, if that is "
            "what is meant."
        )
    return matrix


def _unreadable(file: Path, error: Exception) -> DataError:
    return DataError(
        f"The file {file.name!r} must hold an array as `numpy.save` writes it (.npy), or a sparse "
        f"matrix as `scipy.sparse.save_npz` does (.npz), but it cannot be read: "
        f"{first_line(error)}. Save it again."
    )


# Parquet and Feather

BATCH_ROWS = 2048
"""Rows that are decoded at a time."""

_INDEX_COLUMN = re.compile(r"__index_level_[0-9]+__")
"""How pandas calls an index without a name: row numbers are no feature, so it is left out."""


def _cut_groups(path: TablePath, n_rows_of: Sequence[int], rows: int) -> Iterator[Unit]:
    """Return units none of which reaches over the end of a row group."""
    first_row = number = 0
    for group, n_rows in enumerate(n_rows_of):
        for at in range(0, n_rows, rows):
            n_taken = min(rows, n_rows - at)
            yield Unit(str(path.file), number, first_row + at, n_taken, row_group=group)
            number += 1
        first_row += n_rows


class ParquetTable(FileKind):
    """A Parquet file. Types follow from its schema: integers stay such beside missing ones."""

    def columns(self, path: TablePath) -> dict[str, str]:
        """Return the columns with their types."""
        return _column_types(_open_parquet(path.file).schema_arrow, path.where)

    def cut(self, path: TablePath, rows: int) -> Iterator[Unit]:
        """Return the units of a file, none of which reaches over the end of a row group."""
        metadata = _open_parquet(path.file).metadata
        groups = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
        return _cut_groups(path, groups, rows)

    def read(self, unit: Unit, columns: Sequence[str] | None, bad: dict[int, str]) -> pd.DataFrame:
        """Return the rows of a unit."""
        wanted = None if columns is None else tuple(columns)
        key = (unit.path, unit.row_group, _state_of(Path(unit.path)), wanted)
        try:
            with _LOCK:
                table = _reader_for(key, unit).take(unit.first_row, unit.n_rows)
            return arrow_to_frame(table, unit.where)
        except LabelsureError:
            raise
        except (OSError, ValueError) as error:  # Arrow's errors are one of them
            raise DataError(
                f"The file {unit.where} cannot be read: {first_line(error)}."
            ) from error


def _open_source(file: Path) -> Any:
    """Return what Arrow opens: it takes no file name that is not UTF-8."""
    try:
        str(file).encode()
    except UnicodeEncodeError:
        import pyarrow as pa

        return pa.BufferReader(read_bytes(file))
    return file


def _open_parquet(file: Path) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    read_bytes(file, 0)  # which says what is wrong with a file that cannot be read
    try:
        return pq.ParquetFile(_open_source(file))
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _no_such_format(file, "Parquet", error) from error


def _no_such_format(file: Path, name: str, error: Exception) -> DataError:
    return DataError(
        f"The file {file.name!r} must be {name} as its name says, but it cannot be read: "
        f"{first_line(error)}. Copy it again."
    )


def _column_names(schema: pa.Schema, where: str) -> list[str]:
    return _check_names([name for name in schema.names if not _INDEX_COLUMN.fullmatch(name)], where)


def _column_types(schema: pa.Schema, where: str) -> dict[str, str]:
    return {name: str(schema.field(name).type) for name in _column_names(schema, where)}


class _GroupReader:
    """Goes through one row group; kept for the next unit, which is usually the next rows.

    Without it, to reach the last rows of a group would take as long as to read all of them.
    """

    def __init__(self, unit: Unit, columns: Sequence[str] | None) -> None:
        import pyarrow as pa

        opened = _open_parquet(Path(unit.path))
        schema = opened.schema_arrow  # made anew at each access, from all columns
        wanted = _choose_columns(columns, _column_names(schema, unit.where))
        self._unit = unit
        group = unit.row_group or 0
        if group >= opened.metadata.num_row_groups:
            raise _changed(unit)
        self.at = sum(opened.metadata.row_group(before).num_rows for before in range(group))
        self._batches = opened.iter_batches(BATCH_ROWS, row_groups=[group], columns=wanted)
        self._rest = pa.schema([schema.field(name) for name in wanted]).empty_table()
        self._wanted = wanted

    def take(self, first_row: int, n_rows: int) -> pa.Table:
        """Return rows of the file that are not before those which were taken last."""
        import pyarrow as pa

        self._skip(first_row - self.at)
        parts = []
        while n_rows > 0:
            parts.append(self._next(n_rows))
            n_rows -= len(parts[-1])
        return pa.concat_tables(parts)

    def _skip(self, n_rows: int) -> None:
        while n_rows > 0:
            n_rows -= len(self._next(n_rows))

    def _next(self, n_rows: int) -> pa.Table:
        import pyarrow as pa

        if len(self._rest) == 0:
            batch = next(self._batches, None)
            if batch is None:
                raise _changed(self._unit)
            self._rest = pa.Table.from_batches([batch]).select(self._wanted)
        taken, self._rest = self._rest.slice(0, n_rows), self._rest.slice(n_rows)
        self.at += len(taken)
        return taken


_LOCK = threading.Lock()
_READERS: dict[Any, _GroupReader] = {}  # one at most: that of the unit that was read last


def _reader_for(key: tuple[Any, ...], unit: Unit) -> _GroupReader:
    reader = _READERS.pop(key, None)
    if reader is None or reader.at > unit.first_row:
        reader = _GroupReader(unit, key[-1])
    _READERS.clear()
    _READERS[key] = reader
    return reader


class FeatherTable(FileKind):
    """A Feather file (Arrow's IPC format), whose record batches are row groups."""

    def columns(self, path: TablePath) -> dict[str, str]:
        """Return the columns with their types."""
        with _open_feather(path.file) as reader:
            return _column_types(reader.schema, path.where)

    def cut(self, path: TablePath, rows: int) -> Iterator[Unit]:
        """Return the units of a file, none of which reaches over the end of a batch."""
        with _open_feather(path.file) as reader:
            groups = [reader.get_batch(j).num_rows for j in range(reader.num_record_batches)]
        return _cut_groups(path, groups, rows)

    def read(self, unit: Unit, columns: Sequence[str] | None, bad: dict[int, str]) -> pd.DataFrame:
        """Return the rows of a unit."""
        file = Path(unit.path)
        first_row, table = _load_batch(file, unit.row_group or 0, _state_of(file))
        wanted = _choose_columns(columns, _column_names(table.schema, unit.where))
        rows = table.select(wanted).slice(unit.first_row - first_row, unit.n_rows)
        return arrow_to_frame(rows, unit.where)


def _open_feather(file: Path) -> Any:
    import pyarrow as pa

    read_bytes(file, 0)
    try:
        return pa.ipc.open_file(pa.memory_map(str(file)) if file.stat().st_size else b"")
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _no_such_format(file, "Feather", error) from error


@lru_cache(maxsize=1)  # the units of one batch come one after the other
def _load_batch(file: Path, group: int, state: tuple[int, int]) -> tuple[int, Any]:
    """Return the first row of a batch in its file, and the batch as a table."""
    import pyarrow as pa

    with _open_feather(file) as reader:
        first_row = sum(reader.get_batch(before).num_rows for before in range(group))
        batches = [reader.get_batch(group)] if group < reader.num_record_batches else []
        return first_row, pa.Table.from_batches(batches, reader.schema)


def arrow_to_frame(table: pa.Table, where: str) -> pd.DataFrame:
    """Return a frame whose types do not depend on which values are in these rows."""
    import pandas as pd
    import pyarrow as pa

    for position, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):  # categories would be those of these rows
            values = table.column(position).cast(field.type.value_type)
            table = table.set_column(position, field.name, values)
    nullable = {
        getattr(pa, f"{sign}int{bits}")(): getattr(pd, f"{sign.upper()}Int{bits}Dtype")()
        for sign in ("", "u")
        for bits in (8, 16, 32, 64)
    }
    nullable[pa.bool_()] = pd.BooleanDtype()
    try:
        return table.to_pandas(ignore_metadata=True, types_mapper=nullable.get)
    except Exception as error:  # pandas has no such values, e.g. times in unknown zones
        for name in table.column_names:
            try:
                table.column(name).to_pandas()
            except Exception as cause:
                raise DataError(
                    f"Column {name!r} of {where} cannot be read ({first_line(cause)}). Write it "
                    f"as numbers or text, or leave it out with drop=[{name!r}]."
                ) from cause
        raise DataError(f"The file {where} cannot be read: {first_line(error)}.") from error


# Units of files, folders, patterns and addresses

UNIT_ROWS = 2048
"""Rows of a unit. The last bits of a matrix product depend on how many rows it has, so units are
the same wherever they are computed. So many rows of a thousand features are 16 MiB, and scoring
them takes from a tenth of a second to some seconds, far longer than to hand a unit to a worker."""

MAX_UNIT_ROWS = 2**31
"""No file that fits into memory has more, and machine integers hold it."""

KINDS: dict[str, FileKind] = {
    ".csv": CsvFile(),
    ".tsv": CsvFile("\t"),
    ".parquet": ParquetTable(),
    ".pq": ParquetTable(),
    ".feather": FeatherTable(),
    ".jsonl": JsonLinesFile(),
    ".npy": NpyFile(),
    ".npz": NpzFile(),
}
"""By suffix."""


def list_units(
    inputs: AnyPath | Iterable[AnyPath], *, rows: int = UNIT_ROWS, csv_sep: str | None = None
) -> list[Unit]:
    r"""Return the units of a file, of the files of a folder, or of several paths.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "weather.csv"
    ...     _ = path.write_text("wind,rain\n3,1\n5,0\n4,1\n")
    ...     units = list_units(path, rows=2)
    ...     last = read_unit(units[-1])
    >>> [(unit.number, unit.first_row, unit.n_rows) for unit in units]
    [(0, 0, 2), (1, 2, 1)]
    >>> last
      wind rain
    2    4    1
    """
    read_whole_number(rows, "rows")
    return _cut_files(_find_files(inputs, csv_sep), min(rows, MAX_UNIT_ROWS))


def _cut_files(paths: list[TablePath], rows: int) -> list[Unit]:
    _check_same_columns(paths)
    found = [
        replace(
            unit,
            path=path.name,
            content=None if path.name == str(path.file) else str(path.file),
            partitions=path.partitions,
            source=path.source,
            csv_sep=path.csv_sep,
        )
        for path in paths
        for unit in _kind_of(path.file).cut(path, rows)
    ]
    return [replace(unit, number=number) for number, unit in enumerate(found)]


def read_unit(unit: Unit, columns: Sequence[str] | None = None) -> pd.DataFrame:
    """Return the rows of one unit; their index is their position in the file, from 0.

    Values of CSV are text in every column, and those of JSONL are objects, so that their type does
    not depend on the unit. Raises a `RowsError` where some rows cannot be read.
    """
    frame, bad = read_rows(unit, columns)
    if bad:
        raise RowsError(bad, unit.where)
    return frame


def read_rows(
    unit: Unit, columns: Sequence[str] | None = None
) -> tuple[pd.DataFrame, dict[int, str]]:
    """Return the rows of a unit that can be read, and why the others cannot, by position."""
    import pandas as pd

    opened = _open_unit(unit)
    bad: dict[int, str] = {}
    frame = _kind_of(Path(opened.path)).read(opened, columns, bad)
    if len(frame) + len(bad) != unit.n_rows:
        raise _changed(unit)
    index = pd.RangeIndex(unit.first_row, unit.first_row + unit.n_rows)
    frame.index = index.delete(list(bad)) if bad else index
    for name, value in unit.partitions:
        if name not in frame.columns and (columns is None or name in columns):
            frame[name] = pd.Series(value, frame.index, dtype="str")
    return frame, {unit.first_row + row: reason for row, reason in bad.items()}


def find_lines(unit: Unit, rows: Sequence[int]) -> list[int | None]:
    """Return the lines in which some rows of a unit begin; None where files have no lines."""
    opened = _open_unit(unit)
    kind = _kind_of(Path(opened.path))
    if not isinstance(kind, (CsvFile, JsonLinesFile)):
        return [None] * len(rows)
    return [*kind.find_lines(opened, [row - unit.first_row for row in rows])]


def read_table(
    inputs: AnyPath | Iterable[AnyPath],
    columns: Sequence[str] | None = None,
    csv_sep: str | None = None,
) -> pd.DataFrame:
    """Return all rows of a file or a folder, as `read_unit` has them, counted from 0."""
    import pandas as pd

    paths = _find_files(inputs, csv_sep)
    units = _cut_files(paths, UNIT_ROWS)
    if not units:
        names = ", ".join(path.where for path in paths)
        raise DataError(f"The table must have at least one row, there is none in {names}.")
    n_columns = len(columns or list_columns(paths[0]) or [VALUE_COLUMN])
    n_bytes = 8 * sum(unit.n_rows for unit in units) * n_columns
    # A few bytes of Parquet can stand for any number of equal values.
    _limits.check_size(n_bytes, f"The values in {paths[0].where}", "Read fewer rows or columns.")
    return pd.concat([read_unit(unit, columns) for unit in units], ignore_index=True)


def list_columns(path: AnyPath | TablePath) -> list[Any] | None:
    """Return the columns of a table, None for JSONL, whose rows have their own."""
    first = path if isinstance(path, TablePath) else _find_files(path)[0]
    found = _kind_of(first.file).columns(first)
    if found is None:
        return None
    own: list[Any] = list(range(found)) if isinstance(found, int) else list(found)
    return [*own, *(name for name, _ in first.partitions if name not in own)]


def list_index_columns(path: AnyPath) -> set[str]:
    """Return the columns of a Parquet file that pandas saved as the index of a DataFrame."""
    file = _find_files(path)[0].file
    if not isinstance(_kind_of(file), ParquetTable):
        return set()
    notes = (_open_parquet(file).schema_arrow.metadata or {}).get(b"pandas", b"{}")
    try:
        return {name for name in json.loads(notes)["index_columns"] if isinstance(name, str)}
    except (ValueError, KeyError, TypeError):
        return set()


def checksum_table(inputs: AnyPath | Iterable[AnyPath]) -> str:
    """Return the SHA-256 of the file, or of the checksums of several."""
    files = [
        path.file if is_address(path.name) else Path(path.name) for path in _find_files(inputs)
    ]
    sums = [checksum_bytes(read_bytes(file)) for file in files]
    return sums[0] if len(sums) == 1 else checksum_bytes("".join(sums).encode())


def with_absolute_path(unit: Unit) -> Unit:
    """Return a unit as a process with another working folder finds it."""
    if unit.content is not None or is_address(unit.path):
        return unit
    return replace(unit, content=str(Path(unit.path).absolute()))


def _open_unit(unit: Unit) -> Unit:
    """Return a unit of the file that holds its bytes, which another machine may have to fetch."""
    if unit.content is not None and Path(unit.content).exists():
        return replace(unit, path=unit.content)
    if unit.content is None:
        read_bytes(Path(unit.path), 0)  # which says what is wrong with a file that is not there
        return unit
    return replace(unit, path=str(_local_copy(unit.path)))


def _kind_of(file: Path) -> FileKind:
    """Return how a file is read, by its suffix."""
    suffix = suffix_of(file)
    if suffix not in KINDS:
        raise InputError(
            f"The name of a table must end in one of {', '.join(KINDS)}, also before .gz, .bz2 or "
            f".zst, got {file.name!r}. Save it in one of these formats."
        )
    return KINDS[suffix]


def check_csv_sep(csv_sep: str | None) -> str:
    """Return what stands between values of CSV, "" where nobody says it, or refuse it."""
    is_one = csv_sep is None or (len(csv_sep) == 1 and csv_sep.isascii() and csv_sep not in NO_SEP)
    if not is_one:
        raise InputError(
            "`csv_sep` must be one ASCII character such as ';', no quotation mark and no line "
            f"break, got {csv_sep!r}."
        )
    return csv_sep or ""


def _find_files(inputs: AnyPath | Iterable[AnyPath], csv_sep: str | None = None) -> list[TablePath]:
    given = [inputs] if isinstance(inputs, (str, PathLike)) else list(inputs)
    sep = check_csv_sep(csv_sep)
    paths = [replace(path, csv_sep=sep) for one in given for path in _files_of(one)]
    if not paths:
        raise InputError("`inputs` must name at least one file or folder, got none.")
    seen: set[Path] = set()
    for path in paths:
        if path.file.resolve() in seen:
            raise InputError(f"Each file must be given once, {path.where} is there twice.")
        seen.add(path.file.resolve())
    if len({path.source for path in paths}) < len(paths):  # inputs of the same name
        paths = [replace(path, source=_as_text(path.name)) for path in paths]
    kinds = {suffix_of(path.file): path.where for path in paths}
    if len(kinds) > 1:
        raise InputError(
            f"All files must have one format, got {' and '.join(list(kinds.values())[:2])}. Read "
            "them one after the other."
        )
    return paths


def _files_of(given: AnyPath) -> list[TablePath]:
    """Return the files of a path, folder, pattern or address, unpacked, sorted by name."""
    if is_address(given):
        names = _list_remote(str(given))
        root = str(given)
    else:
        root = str(expand_path(given))
        names = _list_local(Path(root))
    for file in names:
        _kind_of(Path(file))  # the suffix first: it says more than that there is no such file
    folders = re.split(r"[*?\[]", root, maxsplit=1)
    base = folders[0].rpartition("/")[0] if len(folders) > 1 else root
    return [
        TablePath(_local_copy(file), file, _partitions_of(file, base), _source_of(file, base))
        for file in names
    ]


def _list_local(path: Path) -> list[str]:
    if glob.has_magic(str(path)) and not path.exists():
        found = sorted(glob.glob(str(path), recursive=True))
        names = [n for n in found if "**" not in str(path) or Path(n).is_file()]
        if not names:
            raise DataError(f"No file matches the pattern {str(path)!r}. Check the folder.")
        return [file for name in names for file in _list_local(Path(name))]
    if not path.is_dir():
        return [str(path)]
    files: list[Path] = []

    def refuse(error: OSError) -> None:
        raise DataError(
            f"The folder {str(error.filename)!r} cannot be read: {error.strerror}."
        ) from error

    for folder, folders, entries in os.walk(path, onerror=refuse):
        folders[:] = sorted(name for name in folders if name[0] not in "._")
        links = [Path(folder, name) for name in folders if Path(folder, name).is_symlink()]
        own = [Path(folder, name) for name in sorted(entries) if name[0] not in "._"]
        for entry in (*links, *own):
            if not entry.is_file():
                what = "a link to a folder" if entry.is_dir() else "a link to nothing, or a pipe"
                raise DataError(
                    f"The folder {str(path)!r} must hold files and folders only, {entry.name!r} is "
                    f"{what}. Name the folders in which the files are, and move away what is none."
                )
        files += own
    if not files:
        raise DataError(
            f"The folder {str(path)!r} must hold files with a table, it holds none. Name the "
            "folder in which they are."
        )
    return [str(file) for file in files]


def _source_of(file: str, base: str) -> str:
    """Return the last part of the input's name, and the path below it."""
    name = base if is_address(base) else os.path.abspath(base)
    below = file if base in ("", ".") else file.removeprefix(base)
    return _as_text("/".join(part for part in (Path(name).name, below.strip("/")) if part))


def _as_text(name: str) -> str:
    """Return a name that any file can hold, also if its bytes are not UTF-8."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def _partitions_of(file: str, root: str) -> Partitions:
    """Return what folders below `root` say by names such as ``year=2024``, as Hive calls them."""
    below = file.removeprefix(root).split("/")[:-1]
    pairs = (part.partition("=") for part in below if "=" in part)
    return tuple(
        (unquote(name), None if value == "__HIVE_DEFAULT_PARTITION__" else unquote(value))
        for name, _, value in pairs
    )


@cache
def _scratch() -> tempfile.TemporaryDirectory[str]:
    """Return the folder of unpacked copies, which goes when the process ends."""
    return tempfile.TemporaryDirectory(prefix="labelsure-")


def _local_copy(name: str) -> Path:
    """Return a file of this machine that holds the rows: itself, or an unpacked copy."""
    return _copy(name, tuple(describe_file_state(name)))


@lru_cache(maxsize=4096)
def _copy(name: str, state: tuple[Any, ...]) -> Path:
    folder = Path(_scratch().name) / sha256(repr(state).encode()).hexdigest()[:16]
    file = Path(name)
    if is_address(name):
        folder.mkdir(exist_ok=True)
        system, place = open_system(name)
        file = folder / f"packed {file.name}"
        ask_store(name, lambda: system.get(place, str(file)))
    if suffix_of(Path(name)) in (".npz", ".npy", ".parquet", ".pq", ".feather"):
        compression = None
    else:
        compression = find_compression(read_bytes(file, 4), Path(name))
    if compression is None and not is_address(name):
        return file
    folder.mkdir(exist_ok=True)
    target = folder / Path(name).name
    if compression is None:
        return file.rename(target)
    with open(file, "rb") as packed, open(target, "wb") as unpacked:
        unpack(compression, packed, unpacked, Path(name))
    return target


def describe_file_state(name: str) -> list[Any]:
    """Return name, size and time of a file, by which a changed one is noticed."""
    if not is_address(name):
        modified, size = _state_of(Path(name))
        return [name, size, modified]
    system, place = open_system(name)
    found = ask_store(name, lambda: system.info(place))
    times = (found.get(key) for key in ("ETag", "etag", "mtime", "LastModified", "created"))
    return [name, found.get("size"), str(next((t for t in times if t is not None), ""))]


def _list_remote(address: str) -> list[str]:
    system, place = open_system(address)

    def find() -> list[str]:
        if glob.has_magic(place):
            return sorted(system.glob(place))
        return sorted(system.find(place)) if system.isdir(place) else [place]

    found = [name for name in ask_store(address, find) if Path(name).name[0] not in "._"]
    if not found:
        raise DataError(f"There is no file at {address!r}. Check the address.")
    return [str(system.unstrip_protocol(name)) for name in found]


def open_system(address: str) -> tuple[Any, str]:
    """Return the store of an address as fsspec opens it, and the place in it."""
    try:
        import fsspec  # type: ignore[import-untyped]
    except ImportError as error:
        raise InputError(
            f"The address {address!r} needs the package fsspec, which is not installed. Install "
            "it: pip install 'labelsure[remote]', or copy the files here."
        ) from error
    system, place = ask_store(address, lambda: fsspec.core.url_to_fs(address))
    return system, str(place)


def ask_store(address: str, ask: Any) -> Any:
    """Return what a store answers, or say in a sentence that it does not."""
    try:
        return ask()
    except FileNotFoundError as error:
        raise DataError(f"There is no file at {address!r}. Check the address.") from error
    except Exception as error:  # of whatever package opens such addresses
        raise InputError(
            f"The address {address!r} cannot be read ({type(error).__name__}: "
            f"{first_line(error)}). Check it, or copy the files here."
        ) from error


def _check_same_columns(paths: list[TablePath]) -> None:
    """Refuse files that are no parts of one table; their columns may be in another order."""
    first = paths[0]
    expected = _kind_of(first.file).columns(first)
    for path in paths[1:]:
        if [name for name, _ in path.partitions] != [name for name, _ in first.partitions]:
            raise DataError(
                f"The folders of a table must name the same columns, those of {first.name!r} and "
                f"{path.name!r} do not. Read them one after the other."
            )
        found = _kind_of(path.file).columns(path)
        if found == expected:
            continue
        if not isinstance(found, dict) or not isinstance(expected, dict):
            raise DataError(
                f"All files of a table must have the same number of columns, {first.where} has "
                f"{expected} and {path.where} has {found}."
            )
        name = next(name for name in {**expected, **found} if expected.get(name) != found.get(name))
        raise DataError(
            f"All files of a table must have the same columns, but {name!r} is "
            f"{expected.get(name, 'missing')} in {first.where} and "
            f"{found.get(name, 'missing')} in {path.where}. Make them alike, or read them one "
            "after the other."
        )
