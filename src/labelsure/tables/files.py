"""Tables in files of any size: cut into units of some rows, which are read one at a time."""

from __future__ import annotations

import csv
import io
import json
import re
import threading
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice, pairwise
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csr_array, get_index_dtype

from labelsure._runtime import limits as _limits
from labelsure._runtime.storage import COMPRESSIONS, expand_path, first_line, read_bytes
from labelsure._runtime.typing import AnyPath, Floats, Integers
from labelsure.errors import DataError, InputError, LabelsureError, TooLargeError, unknown_name

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


@dataclass(frozen=True, eq=False)
class ListedCell:
    """What one row lists.

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

    Parameters
    ----------
    cells
        The rows.
    n_columns
        Of the array.

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


@dataclass(frozen=True)
class Unit:
    """Some rows of one file: what one task reads, the same on every machine.

    Parameters
    ----------
    path
        Of the file.
    number
        0, 1, ... over all files.
    first_row
        Of the unit in its file, from 0; a header is no row.
    n_rows
        How many rows it has.
    start, end
        In CSV and JSONL, where its bytes begin and end.
    row_group
        In Parquet, the row group that holds its rows.
    array
        In .npz, the name of the array.
    """

    path: str
    number: int
    first_row: int
    n_rows: int
    start: int | None = None
    end: int | None = None
    row_group: int | None = None
    array: str | None = None

    @property
    def where(self) -> str:
        """The file, as messages name it."""
        return repr(Path(self.path).name)


@dataclass(frozen=True)
class TablePath:
    """A file, and which of the arrays in it.

    Parameters
    ----------
    file
        Its path.
    array
        The name of an array in an .npz file; None for the only one, and for other files.
    """

    file: Path
    array: str | None = None

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
    def read(self, unit: Unit, columns: Sequence[str] | None) -> pd.DataFrame:
        """Return the rows of a unit, those columns of it, whatever their index."""


def check_columns(wanted: Sequence[Any] | None, known: Sequence[Any], where: str) -> list[Any]:
    """Return the columns to read, all of them for None; refuse those that are not there.

    Parameters
    ----------
    wanted
        The names of the columns to read.
    known
        Those of the file.
    where
        The file, as messages name it.
    """
    if wanted is None:
        return list(known)
    missing = [name for name in wanted if name not in known]
    if missing:
        raise unknown_name(f"column of {where}", missing[0], [str(name) for name in known])
    return list(wanted)


def check_names(names: Sequence[str], where: str) -> list[str]:
    """Return the names of columns, unless there are too many or one is there twice.

    Parameters
    ----------
    names
        In the order of the file.
    where
        The file, as messages name it.
    """
    if len(names) > _limits.MAX_COLUMNS:
        raise TooLargeError(
            f"The table {where} must have at most {_limits.MAX_COLUMNS} columns, it has "
            f"{len(names)}. Leave out those that are not needed."
        )
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise DataError(
                f"The columns of {where} must have names of their own, {name!r} is there twice. "
                "Rename one of them."
            )
        seen.add(name)
    return list(names)


def changed(unit: Unit) -> DataError:
    """Build the error for a file that is not what it was when its units were listed.

    Parameters
    ----------
    unit
        The one that cannot be read.
    """
    return DataError(
        f"The file {unit.where} must stay as it is while it is read, but its rows from "
        f"{unit.first_row} on (rows count from 0) have changed. Start again."
    )


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


def cut_array(path: TablePath, n_rows: int, rows: int) -> Iterator[Unit]:
    """Return the units of an array.

    Parameters
    ----------
    path
        Its file.
    n_rows, rows
        Of the array, and of a unit.
    """
    for number, first_row in enumerate(range(0, n_rows, rows)):
        n_taken = min(rows, n_rows - first_row)
        yield Unit(str(path.file), number, first_row, n_taken, array=path.array)


class NpyFile(FileKind):
    """One array, which stays on disk while some of its rows are read."""

    def load(self, path: TablePath) -> NDArray[Any]:
        """Return the array of a file."""
        read_bytes(path.file, 0)  # which says what is wrong with a file that cannot be read
        try:
            array = np.load(path.file, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            raise _unreadable(path, error) from error
        return _check_array(array, path)

    def columns(self, path: TablePath) -> dict[str, str] | int:
        """Return how many columns there are."""
        array = self.load(path)
        return array.shape[-1] if array.ndim > 1 else 1

    def cut(self, path: TablePath, rows: int) -> Iterator[Unit]:
        """Return the units of a file."""
        return cut_array(path, len(self.load(path)), rows)

    def read(self, unit: Unit, columns: Sequence[str] | None) -> pd.DataFrame:
        """Return the rows of a unit: columns 0, 1, ..., or one column of values or arrays."""
        import pandas as pd

        array = self.load(TablePath(Path(unit.path), unit.array))
        rows = np.array(array[unit.first_row : unit.first_row + unit.n_rows])
        if rows.ndim == 2:
            frame = pd.DataFrame(rows)
        else:
            frame = pd.DataFrame({VALUE_COLUMN: list(rows) if rows.ndim > 2 else rows})
        return frame[check_columns(columns, list(frame.columns), unit.where)]


SPARSE_PARTS = frozenset({"format", "shape", "data"})
"""What `scipy.sparse.save_npz` writes for every kind of matrix, beside indices of some kind."""


class NpzFile(NpyFile):
    """One array of a zip file, or a sparse matrix, which is read as a whole, once."""

    def columns(self, path: TablePath) -> dict[str, str] | int:
        """Return how many columns an array has, or what the cells of a sparse matrix are."""
        if not _is_sparse(path):
            return super().columns(path)
        return {VALUE_COLUMN: f"what a row of {self._load_matrix(path).shape[1]} columns lists"}

    def cut(self, path: TablePath, rows: int) -> Iterator[Unit]:
        """Return the units of a file."""
        n_rows = self._load_matrix(path).shape[0] if _is_sparse(path) else len(self.load(path))
        return cut_array(path, n_rows, rows)

    def read(self, unit: Unit, columns: Sequence[str] | None) -> pd.DataFrame:
        """Return the rows of a unit; those of a sparse matrix are one column of `ListedCell`."""
        path = TablePath(Path(unit.path), unit.array)
        if not _is_sparse(path):
            return super().read(unit, columns)
        import pandas as pd

        matrix = self._load_matrix(path)
        n_columns = matrix.shape[1]
        rows = matrix[unit.first_row : unit.first_row + unit.n_rows]
        cells = [
            ListedCell(rows.indices[start:end].astype(np.int64), rows.data[start:end], n_columns)
            for start, end in pairwise(rows.indptr.tolist())
        ]
        frame = pd.DataFrame({VALUE_COLUMN: pd.Series(cells, dtype=object)})
        return frame[check_columns(columns, list(frame.columns), unit.where)]

    def _load_matrix(self, path: TablePath) -> Any:
        status = path.file.stat()
        return _load_sparse(path, status.st_mtime_ns, status.st_size)

    def load(self, path: TablePath) -> NDArray[Any]:
        """Return the array that the path names, or the only one."""
        read_bytes(path.file, 0)
        status = path.file.stat()
        return _load_zipped(path, status.st_mtime_ns, status.st_size)


def _is_sparse(path: TablePath) -> bool:
    """Whether a file holds a sparse matrix, and not one of its parts is asked for by name."""
    read_bytes(path.file, 0)
    if path.array is not None:
        return False
    try:
        with zipfile.ZipFile(path.file) as file:
            return {f"{name}.npy" for name in SPARSE_PARTS} <= set(file.namelist())
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise _unreadable(path, error) from error


@lru_cache(maxsize=2)  # the units of one file come one after the other; beside it the truth
def _load_sparse(path: TablePath, modified: int, size: int) -> Any:
    """Return a CSR matrix whose indices rise, none twice."""
    try:
        with zipfile.ZipFile(path.file) as file, np.load(path.file, allow_pickle=False) as parts:
            n_rows, n_columns = (int(size) for size in parts["shape"])
            _limits.check_size(
                sum(part.file_size for part in file.infolist()) + 8 * n_rows,
                f"The numbers of {path.where}, which are read as a whole,",
                "Save its rows in several files.",
            )
        if n_columns > _limits.MAX_LISTED_COLUMNS:
            raise TooLargeError(
                f"The matrix in {path.where} must have at most {_limits.MAX_LISTED_COLUMNS} "
                f"columns, it has {n_columns}. Leave out those that are not needed."
            )
        matrix = sparse.load_npz(path.file).tocsr()
        matrix.check_format(full_check=True)
    except LabelsureError:
        raise
    except Exception as error:  # whatever a damaged file makes of scipy
        raise _unreadable(path, error) from error
    if matrix.dtype.kind not in "biuf":
        raise DataError(f"The sparse matrix in {path.where} must hold numbers, got {matrix.dtype}.")
    matrix.sort_indices()
    row = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    is_twice = (np.diff(row) == 0) & (np.diff(matrix.indices) == 0)
    if is_twice.any():
        at = int(np.flatnonzero(is_twice)[0])
        raise DataError(
            f"Each row of {path.where} must list a column once, row {row[at]} (rows count from 0) "
            f"lists {matrix.indices[at]} twice. Save the matrix after `sum_duplicates`, if that is "
            "what is meant."
        )
    return matrix


@lru_cache(maxsize=1)  # the units of one file come one after the other
def _load_zipped(path: TablePath, modified: int, size: int) -> NDArray[Any]:
    try:
        with np.load(path.file, allow_pickle=False) as arrays:
            name = _choose_array(path, list(arrays.files))
            with zipfile.ZipFile(path.file) as file:
                _limits.check_size(
                    file.getinfo(f"{name}.npy").file_size,
                    f"The array {name!r} of {path.where}, which is read as a whole,",
                    "Save it as .npy or Parquet.",
                )
            return _check_array(arrays[name], path)
    except LabelsureError:
        raise
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile) as error:
        raise _unreadable(path, error) from error


def _choose_array(path: TablePath, names: list[str]) -> str:
    if path.array is None and len(names) == 1:
        return names[0]
    if path.array in names:
        return str(path.array)
    listed = ", ".join(names) or "none"
    example = f"{path.file.name}:{names[0]}" if names else "another file"
    asked = "several" if path.array is None else f"{path.array!r}"
    raise InputError(
        f"The file {path.where} must hold one array, or be followed by the name of one, got "
        f"{asked}; it holds {listed}. Write e.g. {example!r}."
    )


def _check_array(array: NDArray[Any], path: TablePath) -> NDArray[Any]:
    if array.dtype.kind not in "biuf" or array.ndim not in (1, 2, 3):
        raise DataError(
            f"The array in {path.where} must hold numbers in one, two or three axes, the first "
            f"of which counts the rows; got {array.dtype} with shape {array.shape}."
        )
    return array


def _unreadable(path: TablePath, error: Exception) -> DataError:
    return DataError(
        f"The file {path.where} must hold numbers as `numpy.save`, `numpy.savez` or "
        f"`scipy.sparse.save_npz` writes them, but it cannot be read: {first_line(error)}. Save it "
        "again."
    )


BATCH_ROWS = 2048
"""Rows that are decoded at a time."""

_INDEX_COLUMN = re.compile(r"__index_level_[0-9]+__")
"""How pandas calls an index without a name: row numbers are no feature, so it is left out."""


class ParquetTable(FileKind):
    """A Parquet file. Types follow from its schema: integers stay such beside missing ones."""

    def columns(self, path: TablePath) -> dict[str, str]:
        """Return the columns with their types."""
        schema = _open(path.file).schema_arrow
        return {name: str(schema.field(name).type) for name in _column_names(schema, path.where)}

    def cut(self, path: TablePath, rows: int) -> Iterator[Unit]:
        """Return the units of a file, none of which reaches over the end of a row group."""
        metadata, first_row, number = _open(path.file).metadata, 0, 0
        for group in range(metadata.num_row_groups):
            n_rows = metadata.row_group(group).num_rows
            for at in range(0, n_rows, rows):
                n_taken = min(rows, n_rows - at)
                yield Unit(str(path.file), number, first_row + at, n_taken, row_group=group)
                number += 1
            first_row += n_rows

    def read(self, unit: Unit, columns: Sequence[str] | None) -> pd.DataFrame:
        """Return the rows of a unit."""
        status = Path(unit.path).stat()
        key = (unit.path, unit.row_group, status.st_mtime_ns, status.st_size)
        wanted = None if columns is None else tuple(columns)
        try:
            with _LOCK:
                table = _reader_for((*key, wanted), unit).take(unit.first_row, unit.n_rows)
        except LabelsureError:
            raise
        except (OSError, ValueError) as error:  # Arrow's errors are one of them
            raise DataError(
                f"The file {unit.where} cannot be read: {first_line(error)}."
            ) from error
        return _to_frame(table)


def _open(file: Path) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    read_bytes(file, 0)  # which says what is wrong with a file that cannot be read
    try:
        return pq.ParquetFile(file)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise DataError(
            f"The file {file.name!r} must be Parquet as its name says, but it cannot be read: "
            f"{first_line(error)}. Copy it again."
        ) from error


def _column_names(schema: pa.Schema, where: str) -> list[str]:
    return check_names([name for name in schema.names if not _INDEX_COLUMN.fullmatch(name)], where)


class _GroupReader:
    """Goes through one row group; kept for the next unit, which is usually the next rows.

    Without it, to reach the last rows of a group would take as long as to read all of them.

    Parameters
    ----------
    unit
        Names the file and the row group.
    columns
        The columns to read; None for all.
    """

    def __init__(self, unit: Unit, columns: Sequence[str] | None) -> None:
        import pyarrow as pa

        opened = _open(Path(unit.path))
        known = _column_names(opened.schema_arrow, unit.where)
        wanted = check_columns(columns, known, unit.where)
        self._unit = unit
        group = unit.row_group or 0
        if group >= opened.metadata.num_row_groups:
            raise changed(unit)
        self.at = sum(opened.metadata.row_group(before).num_rows for before in range(group))
        self._batches = opened.iter_batches(BATCH_ROWS, row_groups=[group], columns=wanted)
        fields = [opened.schema_arrow.field(name) for name in wanted]
        self._rest = pa.schema(fields).empty_table()
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
                raise changed(self._unit)
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


def _to_frame(table: pa.Table) -> pd.DataFrame:
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
    return table.to_pandas(ignore_metadata=True, types_mapper=nullable.get)


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
    ".jsonl": JsonLinesFile(),
    ".npy": NpyFile(),
    ".npz": NpzFile(),
}
"""By suffix."""


def list_units(inputs: AnyPath | Iterable[AnyPath], *, rows: int = UNIT_ROWS) -> list[Unit]:
    r"""Return the units of a file, of the files of a folder, or of several paths.

    Parameters
    ----------
    inputs
        A file, a folder of files of one format, or several of these. The suffix says the format:
        .csv, .tsv, .parquet, .jsonl, .npy or .npz. ``data.npz:scores`` is one array of several.
        Files of a folder are taken in the order of their names.
    rows
        How many rows a unit has; the last one of a file or row group may have fewer.

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
    if isinstance(rows, bool) or not isinstance(rows, int) or rows < 1:
        raise InputError(f"`rows` must be a whole number of rows, at least 1, got {rows!r}.")
    rows = min(rows, MAX_UNIT_ROWS)
    paths = _find_files(inputs)
    _check_same_columns(paths)
    found = [unit for path in paths for unit in kind_of(path.file).cut(path, rows)]
    return [replace(unit, number=number) for number, unit in enumerate(found)]


def read_unit(unit: Unit, columns: Sequence[str] | None = None) -> pd.DataFrame:
    """Return the rows of one unit; their index is their position in the file, from 0.

    Values of CSV are text in every column, and those of JSONL are objects, so that their type does
    not depend on the unit.

    Parameters
    ----------
    unit
        One of `list_units`.
    columns
        The columns to read; None for all.
    """
    import pandas as pd

    read_bytes(Path(unit.path), 0)  # which says what is wrong with a file that cannot be read
    frame = kind_of(Path(unit.path)).read(unit, columns)
    if len(frame) != unit.n_rows:
        raise changed(unit)
    frame.index = pd.RangeIndex(unit.first_row, unit.first_row + unit.n_rows)
    return frame


def read_table(inputs: AnyPath | Iterable[AnyPath]) -> pd.DataFrame:
    """Return all rows of a file or a folder, as `read_unit` has them, counted from 0.

    Parameters
    ----------
    inputs
        As for `list_units`.
    """
    import pandas as pd

    units = list_units(inputs)
    if not units:
        names = ", ".join(path.where for path in _find_files(inputs))
        raise DataError(f"The table must have at least one row, there is none in {names}.")
    return pd.concat([read_unit(unit) for unit in units], ignore_index=True)


def kind_of(file: Path) -> FileKind:
    """Return how a file is read, by its suffix.

    Parameters
    ----------
    file
        Its path.
    """
    suffix = file.suffix.lower()
    if suffix in COMPRESSIONS:
        raise InputError(
            f"The file {file.name!r} must be unpacked to be read a part at a time. Unpack it, e.g. "
            f"by {'gunzip' if suffix == '.gz' else 'bunzip2'}, or save it as Parquet, which is "
            "compressed inside."
        )
    if suffix not in KINDS:
        raise InputError(
            f"The name of a table must end in one of {', '.join(KINDS)}, got {file.name!r}. Save "
            "it in one of these formats."
        )
    return KINDS[suffix]


def _find_files(inputs: AnyPath | Iterable[AnyPath]) -> list[TablePath]:
    given = [inputs] if isinstance(inputs, (str, PathLike)) else list(inputs)
    paths = [path for one in given for path in _files_of(_split_array(one))]
    if not paths:
        raise InputError("`inputs` must name at least one file or folder, got none.")
    seen: set[tuple[Path, str | None]] = set()
    for path in paths:
        key = (path.file.resolve(), path.array)
        if key in seen:
            raise InputError(f"Each file must be given once, {path.where} is there twice.")
        seen.add(key)
    kinds = {path.file.suffix.lower(): path.where for path in paths}
    if len(kinds) > 1:
        raise InputError(
            f"All files must have one format, got {' and '.join(list(kinds.values())[:2])}. Read "
            "them one after the other."
        )
    return paths


def _split_array(given: AnyPath) -> TablePath:
    """Return the file and the array of ``data.npz:scores``."""
    scheme, mark, _ = str(given).partition("://")
    if mark and scheme.isalnum():
        raise InputError(
            f"The input must be a file or folder of this machine, got {str(given)!r}. Copy it "
            "here, or mount it."
        )
    name, colon, array = str(given).rpartition(":")
    if colon and name.lower().endswith(".npz"):
        return TablePath(expand_path(name), array)
    return TablePath(expand_path(given))


def _files_of(path: TablePath) -> list[TablePath]:
    """Return the file itself, or the files of the folder, sorted by name."""
    if not path.file.is_dir():
        kind_of(path.file)  # the suffix first: it says more than that there is no such file
        read_bytes(path.file, 0)  # which says what is wrong with a file that is not there
        return [path]
    try:
        entries = sorted(path.file.iterdir(), key=lambda entry: entry.name)
    except OSError as error:
        raise DataError(
            f"The folder {str(path.file)!r} cannot be read: {error.strerror}."
        ) from error
    files = [entry for entry in entries if entry.name[0] not in "._"]
    for entry in files:
        if not entry.is_file():
            what = "a folder" if entry.is_dir() else "a link to nothing, a pipe or a device"
            raise DataError(
                f"The folder {str(path.file)!r} must hold files only, {entry.name!r} is {what}. "
                "Name the folders in which the files are, and move away what is no file."
            )
    if not files:
        raise DataError(
            f"The folder {str(path.file)!r} must hold files with a table, it holds none. Name the "
            "folder in which they are."
        )
    for file in files:
        kind_of(file)
    return [TablePath(file, path.array) for file in files]


def _check_same_columns(paths: list[TablePath]) -> None:
    """Refuse files that are no parts of one table; their columns may be in another order."""
    first = paths[0]
    expected = kind_of(first.file).columns(first)
    for path in paths[1:]:
        found = kind_of(path.file).columns(path)
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
