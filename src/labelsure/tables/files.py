"""Tables in files of any size: cut into slices of some rows, which are read one at a time.

All commands and `read_dataset` read tables here, by one rule: text is UTF-8 unless an encoding is
named; values of CSV are text; keys that a JSONL row lacks are missing. Nothing is copied: a
compressed file is a stream, which one process reads from its beginning.
"""

from __future__ import annotations

import csv
import glob
import io
import json
import os
import re
import threading
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import unquote

import numpy as np
from scipy import sparse
from scipy.sparse import csr_array, get_index_dtype

from labelsure._runtime import limits as _limits
from labelsure._runtime import storage
from labelsure._runtime.typing import AnyPath, Integers
from labelsure.errors import (
    DataError,
    InputError,
    LabelsureError,
    RowsError,
    TooLargeError,
    UnknownNameError,
    hide_secrets,
    unknown_name,
    warn,
)
from labelsure.tables.values import decode_bytes, decode_table

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


_PLACE = "column of "
"""How the type of a sparse column calls its places; the number of columns follows."""


def list_rows(matrix: Any) -> pd.Series[Any]:
    """Return the rows of a CSR matrix as one column: Arrow's lists have the same layout.

    Examples
    --------
    >>> column = list_rows(sparse.csr_array([[0, 0.5], [0, 0]]))
    >>> column.tolist()
    [[{'column of 2': 1, 'value': 0.5}], []]
    >>> stack_rows(column[1:]).toarray()
    array([[0., 0.]])
    """
    import pandas as pd
    import pyarrow as pa

    values = [pa.array(matrix.indices, pa.int64()), pa.array(matrix.data.astype(np.float64))]
    pairs = pa.StructArray.from_arrays(values, [f"{_PLACE}{matrix.shape[1]}", "value"])
    lists = pa.LargeListArray.from_arrays(pa.array(matrix.indptr, pa.int64()), pairs)
    return pd.Series(lists, dtype=pd.ArrowDtype(lists.type))


def stack_rows(column: pd.Series[Any]) -> csr_array | None:
    """Return what `list_rows` made as a CSR array of floats; None for another column."""
    import pyarrow as pa

    kind = getattr(column.dtype, "pyarrow_dtype", None)
    if kind is None or not pa.types.is_large_list(kind) or _PLACE not in str(kind):
        return None
    lists = pa.Table.from_pandas(column.to_frame("rows"), preserve_index=False).column(0)
    lists = lists.combine_chunks()
    starts, pairs = lists.offsets.to_numpy(), lists.flatten()
    n_columns = int(kind.value_type.field(0).name.removeprefix(_PLACE))
    places, values = (pairs.field(j).to_numpy(zero_copy_only=False) for j in (0, 1))
    integers = get_index_dtype(maxval=max(n_columns, len(places)))
    parts = (values, places.astype(integers), (starts - starts[0]).astype(integers))
    return csr_array(parts, shape=(len(lists), n_columns))


VALUE_COLUMN = "value"
"""The column of rows that have no columns: lists in JSONL, arrays of one or three axes."""

UTF_8 = "utf-8"
NO_SEP = '"\r\n\0'


@dataclass(frozen=True)
class TextFormat:
    """Format of text files, as far as it is given.

    Parameters
    ----------
    sep
        Field separator of CSV; None: detect.
    encoding
        Python's name of the encoding; None: UTF-8, where a row that is not is a bad row.
    """

    sep: str | None = None
    encoding: str | None = None

    def __post_init__(self) -> None:
        """Check both."""
        sep, encoding = self.sep, self.encoding
        if sep is not None and not (len(sep) == 1 and sep.isascii() and sep not in NO_SEP):
            raise InputError(
                "`csv_sep` must be one ASCII character such as ';', no quotation mark and no line "
                f"break, got {sep!r}."
            )
        try:
            " ".encode(UTF_8 if encoding is None else encoding)
        except (LookupError, TypeError, ValueError) as error:
            raise InputError(
                "`encoding` must be an encoding of text that Python knows, such as 'latin-1' or "
                f"'cp1252', got {encoding!r}."
            ) from error

    def decode(self, content: bytes, what: str) -> str:
        """Return text. Raises ValueError."""
        if self.encoding is None:
            return decode_bytes(content, what)
        return content.decode(self.encoding)


UNKNOWN = TextFormat()

Partitions = tuple[tuple[str, str | None], ...]
"""Columns that the names of folders hold, such as ``year=2024``; None for a missing value."""


@dataclass(frozen=True)
class TableFile:
    """A file of a table, and how its rows are named.

    Parameters
    ----------
    path
        Its absolute path, or its address.
    source
        The named input and the path below it, which stay when folders move.
    partitions
        Values of columns that the names of its folders hold.
    text
        Format of its text.
    """

    path: str
    source: str = ""
    partitions: Partitions = ()
    text: TextFormat = TextFormat()

    @property
    def name(self) -> str:
        """The last part of its path, as messages about the file name it."""
        return storage.show_name(self.path)

    @property
    def state(self) -> tuple[Any, ...]:
        """Path, size and time, by which a changed file is noticed."""
        return tuple(storage.describe_file_state(self.path))

    @property
    def kind(self) -> FileKind:
        """How it is read."""
        return KINDS[storage.suffix_of(Path(storage.without_options(self.path)))]


@dataclass(frozen=True)
class FileSlice:
    """Some rows of one file: what one task reads, the same on every machine.

    Parameters
    ----------
    file
        Of which it is.
    number
        0, 1, ... over all files.
    first_row
        Of the slice in its file, from 0; a header is no row.
    n_rows
        How many rows it has.
    n_bytes
        How much its columns take, about.
    start
        In CSV and JSONL, where its bytes begin, once unpacked.
    line
        In CSV and JSONL, the line in which it begins, from 1.
    text
        In CSV and JSONL, what is known of the text of the file.
    group
        In Parquet and Feather, the row group that holds its rows.
    content
        Its bytes, if another process has read them.
    """

    file: TableFile
    number: int
    first_row: int
    n_rows: int
    n_bytes: int
    start: int = 0
    line: int | None = None
    text: TextScan | None = None
    group: int = 0
    content: bytes | None = field(default=None, repr=False)

    @property
    def where(self) -> str:
        """The file, as messages about rows name it."""
        return repr(self.file.source)

    def join(self, more: FileSlice, n_bytes: int) -> FileSlice | None:
        """Return the slice of both, if their rows follow each other and are not too many bytes."""
        is_next = (self.file, self.group) == (more.file, more.group)
        is_next &= self.first_row + self.n_rows == more.first_row
        if not is_next or self.n_bytes + more.n_bytes > n_bytes:
            return None
        n_rows = self.n_rows + more.n_rows
        return replace(self, n_rows=n_rows, n_bytes=self.n_bytes + more.n_bytes)

    def changed(self) -> DataError:
        """Return the error for a file that is not as it was when it was cut."""
        return DataError(
            f"The file {self.where} must stay as it is while it is read, but its rows from "
            f"{self.first_row} on (rows count from 0) have changed. Start again."
        )


class FileKind(Protocol):
    """A kind of table file: how it is cut into slices and how a slice is read."""

    def columns(self, file: TableFile) -> dict[str, str] | int | None:
        """Return the columns with their types, how many there are without names, or None.

        Files of one folder must have the same. None is for JSONL, where each row has its own.
        """

    def cut(self, file: TableFile, rows: int, columns: Sequence[str] | None) -> Iterator[FileSlice]:
        """Return the slices of a file, numbered from 0, each of at most `rows` rows."""

    def read(
        self, slice_: FileSlice, columns: Sequence[str] | None, bad: dict[int, str]
    ) -> pd.DataFrame:
        """Return the rows of a slice, those columns of it that there are, whatever their index.

        Rows that cannot be read are left out, and their reasons put into `bad` by position.
        """


@contextmanager
def _reading(where: str, what: str = "readable") -> Iterator[None]:
    """Say in a sentence that a file cannot be read, whatever library says so."""
    try:
        yield
    except LabelsureError:
        raise
    except Exception as error:  # a damaged file can make anything of Arrow, NumPy and SciPy
        raise DataError(
            f"The file {where} must be {what}, but it cannot be read: "
            f"{storage.first_line(error)}. Copy or save it again."
        ) from error


def _choose_columns(wanted: Sequence[str] | None, known: Sequence[Any]) -> list[Any]:
    """Return the columns to read: all of them for None, and otherwise those that are there."""
    return list(known) if wanted is None else [name for name in wanted if name in set(known)]


def unknown_column(name: object, columns: Iterable[Any], where: str = "") -> UnknownNameError:
    """Build the error for a column that a table does not have."""
    known = [str(one) for one in columns]
    hint = _suggest_sep(known)
    return UnknownNameError(f"{unknown_name('column', name, known, where)}{hint and f' {hint}.'}")


def _suggest_sep(names: Sequence[str]) -> str:
    """Return a hint where the header of CSV seems to be cut at the wrong sign, or nothing."""
    sign = next((one for one in ";\t|" if any(one in name for name in names)), "")
    advice = "pass it as `csv_sep`, or remove commas from the header"
    return f"{sign!r} may separate the columns: {advice}" if sign else ""


def check_column_count(n_columns: int, where: str, most: int | None = None) -> None:
    """Refuse a table of more columns than can be handled one by one."""
    most = _limits.MAX_COLUMNS if most is None else most
    if n_columns > most:
        raise TooLargeError(
            f"The table {where} must have at most {most} columns, it has {n_columns}. Leave out "
            "those that are not needed."
        )


def check_names(names: Sequence[str], where: str) -> list[str]:
    """Return the names of columns, unless there are too many or one is there twice."""
    check_column_count(len(names), where)
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise DataError(
            f"The columns of {where} must have names of their own, {twice!r} is there twice. "
            "Rename one of them."
        )
    return list(names)


_LOCK = threading.RLock()
_KEPT: dict[Any, Any] = {}  # the reader that was used last


def _keep_reader(key: Any, first: int, open_reader: Callable[[], Any]) -> Any:
    """Return a reader that only goes forward: the one used last, unless it is beyond `first`.

    Without it, to reach the last rows of a file would take as long as to read all of them.
    """
    reader = _KEPT.pop(key, None)
    if reader is None or reader.at > first:
        reader = open_reader()
    _KEPT.clear()
    _KEPT[key] = reader
    return reader


# Text: CSV, TSV, JSONL

BLOCK_BYTES = 2**22
"""Bytes that the scan holds at a time: more is not faster. A header fits into one block."""

UNNAMED = "(unnamed)"
"""The column of a header without a name, which pandas writes for the index."""

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
NO_TEXT = (b"\xff\xfe", b"\xfe\xff", b"\x1f\x8b", b"\x28\xb5\x2f\xfd")
NO_BYTE = -1


@dataclass(frozen=True)
class TextScan:
    """What one sweep over a text file finds.

    Parameters
    ----------
    names, sep
        The columns in the header of CSV, and what stands between values; "" for JSONL.
    """

    names: tuple[str, ...]
    sep: str

    @property
    def signs(self) -> tuple[int, int]:
        """The bytes between values and around them, as the kernel takes them."""
        return (ord(self.sep), ord('"')) if self.sep else (NO_BYTE, NO_BYTE)


@lru_cache(maxsize=4096)
def scan_text(
    file: TableFile, sep: str | None, every: int, state: tuple[Any, ...]
) -> tuple[TextScan, list[int], list[int], int]:
    """Return what a text file is, where every so many rows begin, their lines, how many rows.

    The last of the places is the end of the file.
    """
    from labelsure._kernels.row_starts import N_ROWS, N_STARTS, QUOTED, STATE, find_row_starts

    counts, offsets, lines = np.zeros(3, np.int64), list[int](), list[int]()
    with closing(storage.UnpackedFile(file.path)) as stream:
        content = stream.read(BLOCK_BYTES)
        if content.startswith(NO_TEXT):
            raise DataError(
                f"The file {file.name} must be text in UTF-8, it begins like UTF-16 or like a "
                "compressed file. Convert it, or let its name end in .gz or .zst."
            )
        begin = len(BYTE_ORDER_MARK) if content.startswith(BYTE_ORDER_MARK) else 0
        if sep is not None:
            sep = sep or _find_sep(content[begin:])
            starts = _starts_in(content[begin:], ord(sep), ord('"'))[1:2]
            end = begin + int(starts[0]) if len(starts) else len(content)
        header, at = content[begin:end] if sep else b"", end if sep else 0
        scan, line = TextScan((), sep or ""), 1 + content[:at].count(b"\n")
        while content:
            block = np.frombuffer(content, np.uint8)[at - stream.at + len(content) :]
            starts = np.empty(len(block) // every + 1, np.int64)
            find_row_starts(block, *scan.signs, every, counts, starts)
            starts, breaks = starts[: counts[N_STARTS]], np.flatnonzero(block == ord("\n"))
            offsets += (at + starts).tolist()
            lines += (line + np.searchsorted(breaks, starts)).tolist()
            at, line = at + len(block), line + len(breaks)
            content = stream.read(BLOCK_BYTES)
    n_rows = int(counts[N_ROWS])
    if counts[STATE] == QUOTED:
        raise DataError(
            f"Quotes in {file.name} must be closed, the file ends inside of them. Fix the row that "
            "has a single quotation mark, among rows "
            f"{max(0, (n_rows - 1) // every * every)} to {n_rows - 1} (rows count from 0), or copy "
            "the file again."
        )
    names = _read_header(header, sep, file) if sep else []
    return replace(scan, names=tuple(names)), [*offsets, at], lines, n_rows


def _read_header(content: bytes, sep: str, file: TableFile) -> list[str]:
    try:
        text = file.text.decode(content, "the header")
    except ValueError as error:
        raise DataError(f"The file {file.name} cannot be read: {error}.") from error
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=sep)
    values = next((line for line in lines if line), [])
    if not values:
        raise DataError(f"The file {file.name} must begin with a header line, it is empty.")
    return check_names([name.strip() or UNNAMED for name in values], file.name)


def _find_sep(content: bytes) -> str:
    """Return the first of comma, semicolon, tab and bar that the header has; or else a comma."""
    line = (content.lstrip(b"\r\n").splitlines()[:1] or [b""])[0]
    return next((sign for sign in ",;\t|" if sign.encode() in line), ",")


def _starts_in(content: bytes, sep: int, quote: int) -> Integers:
    """Return where each row of some bytes begins, the first of which begins a row."""
    from labelsure._kernels.row_starts import N_STARTS, find_row_starts

    block = np.frombuffer(content, np.uint8)
    starts, counts = np.empty(len(block) + 1, np.int64), np.zeros(3, np.int64)
    find_row_starts(block, sep, quote, 1, counts, starts)
    return starts[: counts[N_STARTS]]


def load_slice(slice_: FileSlice) -> FileSlice:
    """Return a slice with its bytes, where only one process can read the file: a stream."""
    if slice_.text is None or storage.find_codec(slice_.file.path) is None:
        return slice_
    try:
        return replace(slice_, content=_read_text(slice_))
    except DataError:  # which whoever reads the slice meets again, and reports
        return slice_


def _read_text(slice_: FileSlice) -> bytes:
    """Return the bytes of a slice of a text file."""
    if slice_.content is not None:
        return slice_.content
    end = slice_.start + slice_.n_bytes
    if storage.find_codec(slice_.file.path) is not None:
        with _LOCK:
            key = slice_.file.state
            stream = _keep_reader(key, slice_.start, lambda: storage.UnpackedFile(slice_.file.path))
            content: bytes = stream.read_range(slice_.start, end)
    else:
        with storage.open_file(slice_.file.path) as file:
            file.seek(slice_.start)
            content = file.read(slice_.n_bytes)
    if len(content) != slice_.n_bytes:
        raise slice_.changed()
    return content


@dataclass(frozen=True)
class TextFile:
    """CSV with a header line, every value of which is text and "" if it is not there; or JSONL.

    Parameters
    ----------
    sep
        What stands between values of CSV; "" for the first of comma, semicolon, tab and bar that
        the header has; None for JSONL.
    """

    sep: str | None = ""

    def columns(self, file: TableFile) -> dict[str, str] | None:
        """Return the names in the header, all of which are text; None for JSONL."""
        found = self._scan(file, SLICE_ROWS)[0]
        return None if self.sep is None else dict.fromkeys(found.names, "text")

    def cut(self, file: TableFile, rows: int, columns: Sequence[str] | None) -> Iterator[FileSlice]:
        """Return the slices of a file."""
        scan, offsets, lines, n_rows = self._scan(file, rows)
        for number, (start, end) in enumerate(pairwise(offsets)):
            first = number * rows
            n_taken = min(rows, n_rows - first)
            yield FileSlice(file, number, first, n_taken, end - start, start, lines[number], scan)

    def _scan(self, file: TableFile, rows: int) -> tuple[TextScan, list[int], list[int], int]:
        sep = None if self.sep is None else file.text.sep or self.sep
        return scan_text(file, sep, rows, file.state)

    def read(
        self, slice_: FileSlice, columns: Sequence[str] | None, bad: dict[int, str]
    ) -> pd.DataFrame:
        """Return the rows of a slice: of CSV those that have as many values as the header."""
        content, scan = _read_text(slice_), slice_.text
        assert scan is not None  # `cut` has found it
        if slice_.file.text.encoding is not None:
            with _reading(slice_.where, f"text in {slice_.file.text.encoding}"):
                content = content.decode(slice_.file.text.encoding).encode()
        found: dict[int, str] = {}
        frame = (_parse_csv if scan.sep else _parse_jsonl)(content, slice_, columns, found)
        lines = find_lines(slice_, [slice_.first_row + row for row in found])
        reasons = (f"line {line} {why}" for line, why in zip(lines, found.values(), strict=True))
        bad |= sorted(zip(found, reasons, strict=True))
        return frame


def _parse_csv(
    content: bytes, slice_: FileSlice, columns: Sequence[str] | None, bad: dict[int, str]
) -> pd.DataFrame:
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    assert slice_.text is not None  # `cut` has found it
    names = list(slice_.text.names)
    wanted = _choose_columns(columns, names)
    hint = _suggest_sep(names)

    def skip(row: Any) -> str:
        found = f"{row.actual_columns}{hint and f' ({hint})'}"
        bad[row.number - 1] = (
            f"must have {row.expected_columns} values like the header, it has {found}"
        )
        return "skip"

    with _reading(slice_.where):
        table = arrow_csv.read_csv(
            pa.BufferReader(content),
            read_options=arrow_csv.ReadOptions(
                column_names=names, use_threads=False, block_size=len(content) + 1
            ),
            parse_options=arrow_csv.ParseOptions(
                delimiter=slice_.text.sep, newlines_in_values=True, invalid_row_handler=skip
            ),
            convert_options=arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.binary()),
                include_columns=wanted or names[:1],  # none would mean all
                strings_can_be_null=False,
            ),
        )
    table, reasons = decode_table(table)
    if reasons:
        rows = np.delete(np.arange(slice_.n_rows), list(bad))
        bad |= {int(rows[row]): f"cannot be read: {reason}" for row, reason in reasons.items()}
    return table.to_pandas()[wanted]


def _parse_jsonl(
    content: bytes, slice_: FileSlice, columns: Sequence[str] | None, bad: dict[int, str]
) -> pd.DataFrame:
    """Return an object in each line, whose keys are columns; other values have one column."""
    import pandas as pd

    rows: list[dict[str, Any]] = []
    lines = filter(None, map(bytes.strip, content.replace(b"\r", b"\n").split(b"\n")))
    for number, line in enumerate(lines):
        try:
            text = decode_bytes(line.removeprefix(BYTE_ORDER_MARK), "it")
            value = json.loads(text, object_pairs_hook=_make_object)
            if b"\\ud" in line.lower():  # half of a surrogate pair, which no file can hold
                json.dumps(value, ensure_ascii=False).encode()
            rows.append(value if isinstance(value, dict) else {VALUE_COLUMN: value})
        except (ValueError, RecursionError) as error:
            why = storage.first_line(error)
            if isinstance(error, UnicodeEncodeError):
                why = f"it has half of a surrogate pair, \\u{ord(error.object[error.start]):04x}"
            bad[number] = f"must be JSON, but it is not: {why}"
    names = list(dict.fromkeys(key for row in rows for key in row))
    if columns is not None:
        names = [
            name
            for name in columns
            if name in names or _has_key(name, slice_.file, slice_.file.state)
        ]
    values = {name: pd.Series([row.get(name) for row in rows], dtype=object) for name in names}
    return pd.DataFrame(values, index=range(len(rows)))


def _make_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON. Raises ValueError if a key is there twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in found if names.count(name) > 1)
        raise ValueError(f"the key {twice!r} is there twice")
    return found


@lru_cache(maxsize=4096)
def _has_key(name: str, file: TableFile, state: tuple[Any, ...]) -> bool:
    """Whether some row of a JSONL file has a key: other slices than this one may have it."""
    forms = (json.dumps(name, ensure_ascii=ascii_only).encode() for ascii_only in (True, False))
    pattern = re.compile(rb"(?<!\\)(?:" + b"|".join(map(re.escape, forms)) + rb")\s*:")
    rest = b""
    with closing(storage.UnpackedFile(file.path)) as stream:
        while block := stream.read(BLOCK_BYTES):
            if pattern.search(rest + block):
                return True
            rest = block[block.rfind(b"\n") + 1 :]
    return False


# Arrays: .npy, and sparse matrices in .npz


@dataclass(frozen=True)
class ArrayFile:
    """One array, or the rows of a sparse matrix as one column of lists."""

    load: Callable[[TableFile, tuple[Any, ...]], Any]

    def columns(self, file: TableFile) -> dict[str, str] | int:
        """Return how many columns there are, or what the cells are."""
        array = self.load(file, file.state)
        if sparse.issparse(array):
            return {VALUE_COLUMN: f"what a row of {array.shape[1]} columns lists"}
        return int(array.shape[-1]) if array.ndim > 1 else 1

    def cut(self, file: TableFile, rows: int, columns: Sequence[str] | None) -> Iterator[FileSlice]:
        """Return the slices of a file."""
        array = self.load(file, file.state)
        size = array.nnz * 12 if sparse.issparse(array) else array.nbytes
        return _cut_rows(file, [array.shape[0]], rows, size / max(1, array.shape[0]))

    def read(
        self, slice_: FileSlice, columns: Sequence[str] | None, bad: dict[int, str]
    ) -> pd.DataFrame:
        """Return the rows of a slice: columns 0, 1, ..., or one column of values or arrays."""
        import pandas as pd

        array = self.load(slice_.file, slice_.file.state)
        rows: Any = array[slice_.first_row : slice_.first_row + slice_.n_rows]
        if sparse.issparse(array):
            frame = pd.DataFrame({VALUE_COLUMN: list_rows(rows)})
        elif array.ndim == 2:
            frame = pd.DataFrame(np.array(rows, dtype=rows.dtype.newbyteorder("=")))
        else:
            values = np.array(rows, dtype=rows.dtype.newbyteorder("="))
            frame = pd.DataFrame({VALUE_COLUMN: list(values) if values.ndim > 2 else values})
        return frame[_choose_columns(columns, list(frame.columns))]


def _cut_rows(
    file: TableFile, n_rows_of: Sequence[int], rows: int, bytes_of_row: float
) -> Iterator[FileSlice]:
    """Return slices none of which reaches over the end of a row group."""
    first = number = 0
    for group, n_rows in enumerate(n_rows_of):
        for at in range(first, first + n_rows, rows):
            n_taken = min(rows, first + n_rows - at)
            yield FileSlice(file, number, at, n_taken, int(bytes_of_row * n_taken), group=group)
            number += 1
        first += n_rows


def _load_array(file: TableFile, state: tuple[Any, ...]) -> Any:
    """Return an array, which stays on disk while some of its rows are read."""
    with (
        storage.open_file(file.path) as stream,
        _reading(file.name, "an array that `numpy.save` wrote"),
    ):
        if storage.is_address(file.path):
            array = np.load(io.BytesIO(stream.read()), allow_pickle=False)
        else:
            array = np.load(file.path, mmap_mode="r", allow_pickle=False)
    if array.dtype.kind not in "biuf" or array.ndim not in (1, 2, 3):
        raise DataError(
            f"The array in {file.name} must hold numbers in one, two or three axes, the first of "
            f"which counts the rows; got {array.dtype} with shape {array.shape}."
        )
    return array


@lru_cache(maxsize=2)  # the slices of one file come one after the other; beside it the truth
def _load_sparse(file: TableFile, state: tuple[Any, ...]) -> Any:
    """Return a CSR matrix whose indices rise, none twice."""
    wanted = "a sparse matrix that `scipy.sparse.save_npz` wrote"
    with storage.open_file(file.path) as stream, _reading(file.name, wanted):
        with zipfile.ZipFile(stream) as parts, np.load(stream, allow_pickle=False) as arrays:
            n_rows, n_columns = (int(size) for size in arrays["shape"])
            n_bytes = sum(part.file_size for part in parts.infolist()) + 8 * n_rows
        what = f"The numbers of {file.name}, which are read as a whole,"
        _limits.check_size(n_bytes, what, "Save its rows in several files.")
        check_column_count(n_columns, file.name, _limits.MAX_LISTED_COLUMNS)
        stream.seek(0)
        matrix = sparse.load_npz(stream).tocsr()
        matrix.check_format(full_check=True)
    if matrix.dtype.kind not in "biuf":
        raise DataError(f"The matrix in {file.name} must hold numbers, got {matrix.dtype}.")
    matrix.sort_indices()
    if not matrix.has_canonical_format:
        raise DataError(
            f"Each row of {file.name} must list a column once, some list one twice. Save the "
            "matrix after `sum_duplicates`, if that is what is meant."
        )
    return matrix


# Parquet and Feather

BATCH_ROWS, STREAM_BYTES = 2048, 2**20
"""Rows that are decoded, and bytes of a column that are read at a time: a row group may have any
number of rows."""

_INDEX_COLUMN = re.compile(r"__index_level_[0-9]+__")
"""How pandas calls an index without a name: row numbers are no feature, so it is left out."""


@dataclass(frozen=True)
class ArrowFile:
    """Parquet or Feather. Types follow from its schema: integers stay such beside missing ones.

    Parameters
    ----------
    format
        Its name.
    """

    format: str

    def columns(self, file: TableFile) -> dict[str, str]:
        """Return the columns with their types."""
        schema, _ = self.open(file)
        return {column.name: str(column.type) for column in schema}

    def open(self, file: TableFile) -> tuple[pa.Schema, Any]:
        """Return the schema and Arrow's reader."""
        with _reading(file.name, f"{self.format} as its name says"):
            return _open_arrow(file, self.format, file.state)

    def cut(self, file: TableFile, rows: int, columns: Sequence[str] | None) -> Iterator[FileSlice]:
        """Return the slices of a file, none of which reaches over the end of a row group."""
        schema, reader = self.open(file)
        wanted, n_bytes = set(_choose_columns(columns, schema.names)), 0
        if self.format == "Feather":
            groups: list[Any] = [reader.get_batch(j) for j in range(reader.num_record_batches)]
            n_bytes = sum(group.nbytes for group in groups[:1])
        else:
            groups = [reader.metadata.row_group(j) for j in range(reader.num_row_groups)]
            for place in range(groups[0].num_columns if groups else 0):
                chunk = groups[0].column(place)
                if chunk.path_in_schema.partition(".")[0] in wanted:
                    n_bytes += chunk.total_uncompressed_size
        n_rows_of = [group.num_rows for group in groups]
        # A few bytes of Parquet can stand for any number of equal values.
        bytes_of_row = max(8 * len(wanted), n_bytes / max(1, sum(n_rows_of[:1])))
        return _cut_rows(file, n_rows_of, rows, bytes_of_row)

    def read(
        self, slice_: FileSlice, columns: Sequence[str] | None, bad: dict[int, str]
    ) -> pd.DataFrame:
        """Return the rows of a slice."""
        schema, reader = self.open(slice_.file)
        wanted = _choose_columns(columns, schema.names)
        key = (id(reader), slice_.group, *wanted)
        with _LOCK, _reading(slice_.where):
            try:
                rows = _keep_reader(
                    key, slice_.first_row, lambda: _GroupReader(reader, slice_, wanted)
                )
                table = rows.take(slice_)
            except IndexError as error:  # there is no such group any more
                raise slice_.changed() from error
        table, reasons = decode_table(table)
        bad |= reasons
        return arrow_to_frame(table, slice_.where)


@lru_cache(maxsize=1)  # the slices of one file come one after the other
def _open_arrow(file: TableFile, format_: str, state: tuple[Any, ...]) -> tuple[pa.Schema, Any]:
    """Return the schema without an index that has no name, and the reader."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    source = storage.open_native(file.path)
    if format_ == "Parquet":
        reader = pq.ParquetFile(source, buffer_size=STREAM_BYTES, pre_buffer=False)
        schema = reader.schema_arrow
    else:
        reader = pa.ipc.open_file(source)
        schema = reader.schema
    check_names(schema.names, file.name)
    columns = [column for column in schema if not _INDEX_COLUMN.fullmatch(column.name)]
    return pa.schema(columns, schema.metadata), reader


class _GroupReader:
    """Goes through the wanted columns of one row group."""

    def __init__(self, reader: Any, slice_: FileSlice, wanted: list[str]) -> None:
        self._reader, self._wanted = reader, wanted
        self._rest: Any = ()
        if hasattr(reader, "get_batch"):
            sizes = [reader.get_batch(j).num_rows for j in range(slice_.group)]
            self._batches = iter([reader.get_batch(slice_.group)])
        else:
            sizes = [reader.metadata.row_group(j).num_rows for j in range(slice_.group)]
            groups = [slice_.group]
            self._batches = reader.iter_batches(BATCH_ROWS, row_groups=groups, columns=wanted)
        self.at = sum(sizes)

    def take(self, slice_: FileSlice) -> pa.Table:
        """Return rows of the file that are not before those which were taken last."""
        import pyarrow as pa

        parts = []
        while self.at < slice_.first_row + slice_.n_rows:
            if len(self._rest) == 0:
                batch = next(self._batches, None)
                if batch is None:
                    raise slice_.changed()
                self._rest = pa.Table.from_batches([batch]).select(self._wanted)
            is_before = self.at < slice_.first_row
            end = slice_.first_row if is_before else slice_.first_row + slice_.n_rows
            taken, self._rest = self._rest.slice(0, end - self.at), self._rest.slice(end - self.at)
            self.at += len(taken)
            parts += [] if is_before else [taken]
        return pa.concat_tables(parts)


def arrow_to_frame(table: pa.Table, where: str) -> pd.DataFrame:
    """Return a frame whose types do not depend on which values are in these rows."""
    import pandas as pd
    import pyarrow as pa

    nullable = {
        getattr(pa, f"{sign}int{bits}")(): getattr(pd, f"{sign.upper()}Int{bits}Dtype")()
        for sign in ("", "u")
        for bits in (8, 16, 32, 64)
    }
    nullable[pa.bool_()] = pd.BooleanDtype()
    with suppress(Exception):  # pandas has no such values, e.g. times in unknown zones
        return table.to_pandas(ignore_metadata=True, types_mapper=nullable.get)
    for name in table.column_names:
        try:
            table.column(name).to_pandas()
        except Exception as cause:
            raise DataError(
                f"Column {name!r} of {where} cannot be read ({storage.first_line(cause)}). "
                f"Write it as numbers or text, or leave it out with drop=[{name!r}]."
            ) from cause
    raise DataError(
        f"The file {where} cannot be read: pandas cannot hold some of its values. Write them as "
        "numbers or text."
    )


# Slices of files, folders, patterns and addresses

SLICE_ROWS = 2048
"""Rows of a slice, the least that is handed to a worker or held at a time."""

KINDS: dict[str, FileKind] = {
    ".csv": TextFile(),
    ".tsv": TextFile("\t"),
    ".parquet": ArrowFile("Parquet"),
    ".pq": ArrowFile("Parquet"),
    ".feather": ArrowFile("Feather"),
    ".jsonl": TextFile(None),
    ".ndjson": TextFile(None),
    ".npy": ArrayFile(_load_array),
    ".npz": ArrayFile(_load_sparse),
}
"""By suffix."""


def list_slices(
    inputs: AnyPath | Iterable[AnyPath],
    *,
    rows: int = SLICE_ROWS,
    text: TextFormat = UNKNOWN,
    columns: Sequence[str] | None = None,
) -> list[FileSlice]:
    r"""Return the slices of a file, of the files of a folder, or of several paths.

    `columns` are those that will be read, None for all: slices know their size in bytes by them.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "weather.csv"
    ...     _ = path.write_text("wind,rain\n3,1\n5,0\n4,1\n")
    ...     slices = list_slices(path, rows=2)
    ...     last = read_slice(slices[-1])
    >>> [(slice_.number, slice_.first_row, slice_.n_rows) for slice_ in slices]
    [(0, 0, 2), (1, 2, 1)]
    >>> last
      wind rain
    2    4    1
    """
    files = _find_files(inputs, text)
    for file in files[1:]:
        _check_same_columns(files[0], file, columns)
    cut = (slice_ for file in files for slice_ in file.kind.cut(file, rows, columns))
    return [replace(slice_, number=number) for number, slice_ in enumerate(cut)]


def read_slice(slice_: FileSlice, columns: Sequence[str] | None = None) -> pd.DataFrame:
    """Return the rows of one slice; their index is their position in the file, from 0.

    Values of CSV are text in every column, and those of JSONL are objects, so that their type does
    not depend on the slice. Raises a `RowsError` where some rows cannot be read.
    """
    frame, bad = read_rows(slice_, columns)
    if bad:
        raise RowsError(bad, slice_.where)
    return frame


def read_rows(
    slice_: FileSlice, columns: Sequence[str] | None = None
) -> tuple[pd.DataFrame, dict[int, str]]:
    """Return the rows of a slice that can be read, and why the others cannot, by position."""
    import pandas as pd

    bad: dict[int, str] = {}
    frame = slice_.file.kind.read(slice_, columns, bad)
    if len(frame) + len(bad) != slice_.n_rows:
        raise slice_.changed()
    index = pd.RangeIndex(slice_.first_row, slice_.first_row + slice_.n_rows)
    frame.index = index.delete(list(bad)) if bad else index
    for name, value in slice_.file.partitions:
        if name not in frame.columns and (columns is None or name in columns):
            frame[name] = pd.Series(value, frame.index, dtype="str")
    return frame, {slice_.first_row + row: reason for row, reason in bad.items()}


def find_lines(slice_: FileSlice, rows: Sequence[int]) -> list[int | None]:
    """Return the lines in which some rows of a slice begin; None where files have no lines."""
    if not rows or slice_.text is None or slice_.line is None:
        return [None] * len(rows)
    content = _read_text(slice_)
    starts = _starts_in(content, *slice_.text.signs)
    ends = [int(starts[row - slice_.first_row]) for row in rows]
    return [slice_.line + content.count(b"\n", 0, end) for end in ends]


def read_table(
    inputs: AnyPath | Iterable[AnyPath],
    columns: Sequence[str] | None = None,
    text: TextFormat = UNKNOWN,
) -> pd.DataFrame:
    """Return all rows of a file or a folder, as `read_slice` has them, counted from 0."""
    import pandas as pd

    slices = list_slices(inputs, text=text, columns=columns)
    if not slices:
        names = ", ".join(file.name for file in _find_files(inputs))
        raise DataError(f"The table must have at least one row, there is none in {names}.")
    n_bytes, what = sum(slice_.n_bytes for slice_ in slices), f"The values in {slices[0].file.name}"
    _limits.check_size(n_bytes, what, "Read fewer rows or columns.")
    return pd.concat([read_slice(slice_, columns) for slice_ in slices], ignore_index=True)


def list_columns(inputs: AnyPath, text: TextFormat = UNKNOWN) -> list[Any] | None:
    """Return the columns of a table, None for JSONL, whose rows have their own."""
    first = _find_files(inputs, text)[0]
    found = first.kind.columns(first)
    if found is None:
        return None
    own: list[Any] = list(range(found)) if isinstance(found, int) else list(found)
    return [*own, *(name for name, _ in first.partitions if name not in own)]


def list_index_columns(inputs: AnyPath) -> set[str]:
    """Return the columns of a Parquet file that pandas saved as the index of a DataFrame."""
    first = _find_files(inputs)[0]
    if not isinstance(first.kind, ArrowFile):
        return set()
    notes = (first.kind.open(first)[0].metadata or {}).get(b"pandas", b"{}")
    try:
        return {name for name in json.loads(notes)["index_columns"] if isinstance(name, str)}
    except (ValueError, KeyError, TypeError):
        return set()


def checksum_table(inputs: AnyPath | Iterable[AnyPath]) -> str:
    """Return the SHA-256 of the file, or of the checksums of several."""
    sums = [storage.checksum_file(file.path) for file in _find_files(inputs)]
    return sums[0] if len(sums) == 1 else storage.checksum_bytes("".join(sums).encode())


def _find_files(inputs: AnyPath | Iterable[AnyPath], text: TextFormat = UNKNOWN) -> list[TableFile]:
    given = [inputs] if isinstance(inputs, (str, PathLike)) else list(inputs)
    files = [file for one in given for file in _files_of(one)]
    if not files:
        raise InputError("`inputs` must name at least one file or folder, got none.")
    seen: set[str] = set()
    for file in files:
        place = file.path if storage.is_address(file.path) else os.path.realpath(file.path)
        if place in seen:
            raise InputError(f"Each file must be given once, {file.name} is there twice.")
        seen.add(place)
    if len({file.source for file in files}) < len(files):  # inputs of the same name
        files = [replace(file, source=_as_text(file.path)) for file in files]
    formats = {file.kind: file.name for file in files}
    if len(formats) > 1:
        raise InputError(
            f"All files must have one format, got {' and '.join(list(formats.values())[:2])}. Read "
            "them one after the other."
        )
    places = [
        path if storage.is_address(path := file.path) else os.path.abspath(path) for file in files
    ]
    return [replace(f, path=path, text=text) for f, path in zip(files, places, strict=True)]


def _files_of(given: AnyPath) -> list[TableFile]:
    """Return the files of a path, folder, pattern or address, sorted by name."""
    is_remote, options = storage.is_address(given), ""
    if is_remote:
        root, mark, options = str(given).partition("?")
        options = mark + options
    else:
        root = str(storage.expand_path(given))
    parts = re.split(r"[*[]" if is_remote else r"[*?[]", root, maxsplit=1)
    base = parts[0].rpartition("/")[0] if len(parts) > 1 else root
    names = _list_remote(root, base, options) if is_remote else _list_local(Path(root))
    if not names:
        raise DataError(
            f"{root!r} must name files with a table, there is none. Check the folder, pattern or "
            "address."
        )
    tables = [name for name in names if storage.suffix_of(Path(name)) in KINDS]
    if tables and len(tables) < len(names):
        others = ", ".join(storage.show_name(name) for name in names if name not in set(tables))
        warn(f"Files that are no tables were left out: {others}.", UserWarning)
        names = tables
    for name in names:  # the suffix first: it says more than that there is no such file
        if storage.suffix_of(Path(name)) not in KINDS:
            raise InputError(
                f"The name of a table must end in one of {', '.join(KINDS)}, also before .gz, .bz2 "
                f"or .zst, got {storage.show_name(name)}. Save it in one of these formats."
            )
        storage.open_file(f"{name}{options}").close()  # which says what is wrong with it
    return [
        TableFile(
            f"{name}{options}",
            _source_of(name, base),
            _partitions_of(name, base),
        )
        for name in names
    ]


def _list_local(path: Path) -> list[str]:
    if glob.has_magic(str(path)) and not path.exists():
        found = sorted(glob.glob(str(path), recursive=True))
        names = [n for n in found if "**" not in str(path) or Path(n).is_file()]
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
        own = [Path(folder, name) for name in sorted(entries) if name[0] not in "._"]
        links = [Path(folder, name) for name in folders if Path(folder, name).is_symlink()]
        odd = next((entry for entry in (*links, *own) if not entry.is_file()), None)
        if odd is not None:
            raise DataError(
                f"The folder {str(path)!r} must hold files and folders only, {odd.name!r} is a "
                "link to a folder, a broken link or a pipe. Remove it, or name the folders that "
                "have the files."
            )
        files += own
    return [str(file) for file in files]


def _list_remote(root: str, base: str, options: str) -> list[str]:
    """Return the addresses of a file, of the files of a folder, or of those that match."""
    from pyarrow.fs import FileSelector, FileType

    system, place = storage.open_system(f"{base}{options}")

    def find() -> list[Any]:
        if system.get_file_info(place).type == FileType.File:
            return [system.get_file_info(place)]
        found: list[Any] = system.get_file_info(FileSelector(place, recursive=True))
        return found

    signs = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*"}
    parts = re.split(r"(\*\*/|\*\*|\*)", root)
    pattern = "".join(signs.get(part, re.escape(part)) for part in parts)
    pattern += "" if root != base else "(?:/.*)?"
    found = []
    for entry in storage.ask_store(root, find):
        below = entry.path.removeprefix(place).strip("/")
        name = f"{base.rstrip('/')}/{below}" if below else base
        is_hidden = any(part[0] in "._" for part in below.split("/") if part)
        if entry.type == FileType.File and not is_hidden and re.fullmatch(pattern, name):
            found.append(name)
    return sorted(found)


def _source_of(file: str, base: str) -> str:
    """Return the last part of the input's name, and the path below it."""
    name = hide_secrets(base) if storage.is_address(base) else os.path.abspath(base)
    below = file if base in ("", ".") else file.removeprefix(base)
    return _as_text("/".join(part for part in (Path(name).name, below.strip("/")) if part))


def _as_text(name: str) -> str:
    """Return a name that any file can hold, also if its bytes are not UTF-8."""
    return hide_secrets(os.fsencode(name).decode("utf-8", "backslashreplace"))


def _partitions_of(file: str, root: str) -> Partitions:
    """Return what folders below `root` say by names such as ``year=2024``, as Hive calls them."""
    below = file.removeprefix(root).split("/")[:-1]
    pairs = (part.partition("=") for part in below if "=" in part)
    return tuple(
        (unquote(name), None if value == "__HIVE_DEFAULT_PARTITION__" else unquote(value))
        for name, _, value in pairs
    )


def _list_types(file: TableFile) -> dict[str, str]:
    """Return the types of a file's columns, those that the names of its folders hold among them."""
    own = file.kind.columns(file)
    types = own if isinstance(own, dict) else {"the number of columns": str(own)}
    return {**types, **{name: "the name of a folder" for name, _ in file.partitions}}


def _check_same_columns(first: TableFile, file: TableFile, columns: Sequence[str] | None) -> None:
    """Refuse files that are no parts of one table; their columns may be in another order."""
    expected, found = map(_list_types, (first, file))
    names = {**expected, **found} if columns is None else columns
    for name in names:
        kinds = {_widen(types[name]) if name in types else "missing" for types in (expected, found)}
        if len(kinds - {"null"}) > 1:
            raise DataError(
                f"All files of a table must have the same columns, but {name!r} is "
                f"{expected.get(name, 'missing')} in {first.name} and "
                f"{found.get(name, 'missing')} in {file.name}. Make them alike, or read them one "
                "after the other."
            )


NUMBERS = re.compile(r"u?int\d+|halffloat|float|double|decimal\d+\(.*\)")
TEXTS = re.compile(r"(large_)?(string|binary)(_view)?|fixed_size_binary.*|dictionary<.*")
"""Types of Arrow that hold the same values, by their names."""


def _widen(kind: str) -> str:
    """Return the name of all types whose values can stand in one column."""
    if NUMBERS.fullmatch(kind):
        return "number"
    return "text" if TEXTS.fullmatch(kind) else kind
