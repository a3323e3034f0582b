"""Tables in files of any size: a stream of chunks, by Arrow's readers.

All commands and `read_dataset` read tables here, by one rule: text is UTF-8 unless an encoding is
named; values of CSV are text; keys that a JSONL row lacks are missing. Nothing is copied, and no
file is read twice unless it has bad rows, whose lines a second pass counts.
"""

from __future__ import annotations

import codecs
import csv
import glob
import io
import json
import os
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import unquote

import numpy as np
from scipy import sparse
from scipy.sparse import csr_array, get_index_dtype

from labelsure._runtime import limits as _limits
from labelsure._runtime import storage
from labelsure._runtime.typing import AnyPath, Column, Indices
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


_INDEX_FIELD = "column of "
"""Arrow field of the column indices of a sparse row; the number of columns follows."""


def list_rows(matrix: Any) -> Column:
    """Rows of a CSR matrix as one column: Arrow's lists have the same layout.

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
    pairs = pa.StructArray.from_arrays(values, [f"{_INDEX_FIELD}{matrix.shape[1]}", "value"])
    lists = pa.LargeListArray.from_arrays(pa.array(matrix.indptr, pa.int64()), pairs)
    return pd.Series(lists, dtype=pd.ArrowDtype(lists.type))


def stack_rows(column: Column) -> csr_array | None:
    """CSR array of a column that `list_rows` made; None for another column."""
    import pyarrow as pa

    kind = getattr(column.dtype, "pyarrow_dtype", None)
    if kind is None or not pa.types.is_large_list(kind) or _INDEX_FIELD not in str(kind):
        return None
    lists = pa.Table.from_pandas(column.to_frame("rows"), preserve_index=False).column(0)
    lists = lists.combine_chunks()
    starts, pairs = lists.offsets.to_numpy(), lists.flatten()
    n_columns = int(kind.value_type.field(0).name.removeprefix(_INDEX_FIELD))
    indices, values = (pairs.field(j).to_numpy(zero_copy_only=False) for j in (0, 1))
    integers = get_index_dtype(maxval=max(n_columns, len(indices)))
    arrays = (values, indices.astype(integers), (starts - starts[0]).astype(integers))
    return csr_array(arrays, shape=(len(lists), n_columns))


VALUE_COLUMN = "value"
"""The column of rows that have no columns: lists in JSONL, arrays of one or three axes."""

UTF_8 = "utf-8"
NO_SEP = '"\r\n\0'


@dataclass(frozen=True)
class TextFormat:
    """Field separator and encoding of text files.

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
        """Raise InputError for a separator or an encoding that cannot be used."""
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
        """Text of bytes. Raises ValueError."""
        if self.encoding is None:
            return decode_bytes(content, what)
        return content.decode(self.encoding)


UNKNOWN = TextFormat()

Partitions = tuple[tuple[str, str | None], ...]
"""Hive partitions: names and values of columns in folder names such as ``year=2024``."""


@dataclass(frozen=True)
class TableFile:
    """One file of a table, with its name in outputs and its text format.

    Parameters
    ----------
    path
        Its absolute path, or its address.
    source
        Name of the input and path below it, which stay the same when folders move.
    partitions
        Columns in the names of its folders.
    text
        Format of its text.
    keys
        Wanted columns that occur in any row of a JSONL table.
    """

    path: str
    source: str = ""
    partitions: Partitions = ()
    text: TextFormat = TextFormat()
    keys: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Last part of the path in quotes, for messages."""
        return storage.show_name(self.path)

    @property
    def state(self) -> tuple[object, ...]:
        """Path, size and modification time, which differ after a change."""
        return tuple(storage.describe_file_state(self.path))

    @property
    def kind(self) -> FileKind:
        """Reader of its format."""
        return KINDS[storage.suffix_of(Path(storage.without_options(self.path)))]


CHUNK_ROWS, CHUNK_BYTES = 100_000, 2**23
"""Maximum rows and bytes of a chunk; a longer row makes a longer chunk."""

N_CHUNKS, FEWEST_ROWS, FEWEST_BYTES = 16, 2048, 2**18
"""Minimum chunks of a file, unless these had fewer rows or bytes than the other two: processes
share one file, and a killed run loses little."""


@dataclass(frozen=True)
class Chunk:
    """Consecutive rows of one file, unparsed: `read` parses them, in a worker process.

    Parameters
    ----------
    file
        The file.
    number
        Number of the chunk in its file, from 0.
    first_row
        Position of the first row in the file, from 0; a header is no row.
    n_rows
        Number of rows, bad ones included.
    content
        An Arrow table, bytes of JSONL, or an array.
    bad
        Reasons of rows that could not be split into values, by position in the file.
    columns
        Wanted columns; None for all.
    """

    file: TableFile
    number: int
    first_row: int
    n_rows: int
    content: Any = field(repr=False)
    bad: Mapping[int, str] = field(default_factory=dict)
    columns: Sequence[str] | None = None

    @property
    def where(self) -> str:
        """Source of the file in quotes, for messages about rows."""
        return repr(self.file.source)

    def read(self) -> tuple[pd.DataFrame, dict[int, str]]:
        """Readable rows, and reasons of the other rows, both by position in the file."""
        import pandas as pd

        rows = pd.RangeIndex(self.first_row, self.first_row + self.n_rows)
        if self.bad:
            rows = rows.delete([row - self.first_row for row in self.bad])
        frame, reasons = self.file.kind.parse(self)
        bad = {**self.bad, **{int(rows[place]): why for place, why in reasons.items()}}
        frame.index = rows.delete(list(reasons)) if reasons else rows
        for name, value in self.file.partitions:
            if name not in frame.columns and (self.columns is None or name in self.columns):
                frame[name] = pd.Series(value, frame.index, dtype="str")
        return frame, dict(sorted(bad.items()))


Piece = tuple[Any, int, Mapping[int, str]]
"""Content, number of rows, and reasons of bad rows of a chunk."""


class FileKind(Protocol):
    """Reader of one format: streams a file, and parses chunks."""

    def columns(self, file: TableFile) -> dict[str, str] | int | None:
        """Types of the columns by name, the number of columns without names, or None.

        Files of one folder must have the same. None is for JSONL, where each row has its own.
        """

    def stream(self, file: TableFile, columns: Sequence[str] | None) -> Iterator[Piece]:
        """Yield the rows of a file from the first to the last."""

    def parse(self, chunk: Chunk) -> tuple[pd.DataFrame, dict[int, str]]:
        """Wanted columns that the file has, with any index, and reasons of bad rows.

        Bad rows are left out; their reasons are by position in the content.
        """


def _rows_of_chunk(n_rows: int, bytes_of_row: float) -> int:
    """Number of rows of a chunk, for files whose size is known."""
    most = min(CHUNK_ROWS, int(CHUNK_BYTES / max(1.0, bytes_of_row)))
    return max(1, min(most, max(FEWEST_ROWS, -(-n_rows // N_CHUNKS))))


@contextmanager
def _reading(where: str, what: str = "readable") -> Iterator[None]:
    """Raise DataError for any exception of another library that reads a file."""
    try:
        yield
    except LabelsureError:
        raise
    except Exception as error:  # a damaged file can make anything of Arrow, NumPy and SciPy
        raise DataError(
            f"The file {where} must be {what}, but it cannot be read: "
            f"{storage.first_line(error)}. Copy or save it again."
        ) from error


def _choose_columns(wanted: Sequence[str] | None, existing: Sequence[Any]) -> list[Any]:
    """Those of the wanted columns that exist, in their order; all for None."""
    if wanted is None:
        return list(existing)
    names = set(existing)
    return [name for name in wanted if name in names]


def unknown_column(name: object, columns: Iterable[object], where: str = "") -> UnknownNameError:
    """Error for a column that a table does not have."""
    names = [str(one) for one in columns]
    hint = _suggest_sep(names)
    return UnknownNameError(f"{unknown_name('column', name, names, where)}{hint and f' {hint}.'}")


def _suggest_sep(names: Sequence[str]) -> str:
    """Hint where the header of CSV seems to have another separator; "" otherwise."""
    sign = next((one for one in ";\t|" if any(one in name for name in names)), "")
    advice = "pass it as `csv_sep`, or remove commas from the header"
    return f"{sign!r} may separate the columns: {advice}" if sign else ""


def check_column_count(n_columns: int, where: str, most: int | None = None) -> None:
    """Raise TooLargeError for a table of too many columns."""
    most = _limits.MAX_COLUMNS if most is None else most
    if n_columns > most:
        raise TooLargeError(
            f"The table {where} must have at most {most} columns, it has {n_columns}. Leave out "
            "those that are not needed."
        )


def check_names(names: Sequence[str], where: str) -> list[str]:
    """Column names as a list. Raises TooLargeError or, unless they are unique, DataError."""
    check_column_count(len(names), where)
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise DataError(
            f"The columns of {where} must have names of their own, {twice!r} is there twice. "
            "Rename one of them."
        )
    return list(names)


# Text: CSV, TSV, JSONL

BLOCK_BYTES = 2**20
"""Bytes that Arrow parses at a time. It reads up to 32 such blocks ahead."""

HEADER_BYTES, MAX_ROW_BYTES = 2**22, 2**26
"""Maximum bytes of a header, and of a row of CSV."""

UNNAMED = "(unnamed)"
"""Name of a column with an empty header, which pandas writes for the index."""

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
NO_TEXT = (b"\xff\xfe", b"\xfe\xff", b"\x1f\x8b", b"\x28\xb5\x2f\xfd")

LAST_ROW = "\ue8f1\ue0b0\uf2c4\ue95e"
"""Sentinel: a row of too many values, appended to the file. If it is lost, quotes are open."""

LINE = "line {line} "
"""Start of reasons in text files, a placeholder that `name_lines` fills in."""


class ArrowStream:
    """Text stream for Arrow, none of whose blocks ends within a line end of two characters.

    Arrow drops a line feed at the start of a block if the block before it ends with a carriage
    return, also between quotes.
    """

    closed = False  # which Arrow asks for

    def __init__(self, stream: TextStream) -> None:
        self._stream, self._next = stream, b""

    def read(self, n_bytes: int) -> bytes:
        """The next bytes, and one more where they end between the two characters."""
        block = self._next + self._stream.read(n_bytes - len(self._next))
        self._next = self._stream.read(1) if block.endswith(b"\r") else b""
        if self._next == b"\n":
            block, self._next = block + self._next, b""
        return block

    def close(self) -> None:
        """Leave the text stream open."""


class TextStream:
    """A text file as UTF-8, decompressed and without a byte order mark.

    Parameters
    ----------
    file
        The file to read.
    end
        Bytes to append.
    """

    def __init__(self, file: TableFile, end: bytes = b"") -> None:
        self._file, self._end = storage.UnpackedFile(file.path), end
        self._name, self._encoding = file.name, file.text.encoding
        self._decoder = None
        if self._encoding is not None:
            self._decoder = codecs.getincrementaldecoder(self._encoding)()
        self._buffer, self._is_over, self._is_begun = b"", False, False

    def _begin(self) -> None:
        start, self._is_begun = self._file.read(4), True
        encoding = codecs.lookup(self._encoding or UTF_8).name
        if start.startswith(NO_TEXT) and not encoding.startswith(("utf-16", "utf-32")):
            raise DataError(
                f"The file {self._name} must be text in {encoding.upper()}, it begins like UTF-16 "
                "or like a compressed file. Convert it, name its encoding with `encoding`, or let "
                "its name end in .gz or .zst."
            )
        if start.startswith(BYTE_ORDER_MARK) and not encoding.startswith(UTF_8):
            raise DataError(
                f"The file {self._name} must be text in {encoding}, it begins with the byte order "
                "mark of UTF-8. Leave out `encoding`."
            )
        self._buffer = self._recode(start).removeprefix(BYTE_ORDER_MARK)

    def _recode(self, content: bytes) -> bytes:
        if self._decoder is None:
            return content
        with _reading(self._name, f"text in {self._encoding}"):
            return self._decoder.decode(content, final=not content).encode()

    def read(self, n_bytes: int) -> bytes:
        """The next bytes, fewer at the end only."""
        if not self._is_begun:
            self._begin()
        while len(self._buffer) < n_bytes and not self._is_over:
            content = self._file.read(n_bytes - len(self._buffer))
            self._is_over = not content
            self._buffer += self._recode(content) + (self._end if self._is_over else b"")
        block, self._buffer = self._buffer[:n_bytes], self._buffer[n_bytes:]
        return block

    def lines(self) -> Iterator[bytes]:
        """Yield the lines with their ends."""
        partial_line = b""
        while block := self.read(BLOCK_BYTES):
            *lines, partial_line = (partial_line + block).splitlines(keepends=True)
            yield from lines
        yield from partial_line.splitlines(keepends=True)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


@lru_cache(maxsize=4096)
def _read_header(
    file: TableFile, sep: str, state: tuple[object, ...]
) -> tuple[tuple[str, ...], str, int]:
    """Columns of CSV, separator, and number of bytes before the first row."""
    with closing(TextStream(file)) as stream:
        content = stream.read(HEADER_BYTES)
    sep, n_bytes = sep or _find_sep(content), 0
    if b"\0" in re.split(rb"[\r\n]", content.lstrip(b"\r\n"), maxsplit=1)[0]:
        raise DataError(
            f"The header of {file.name} must be text, it has NUL bytes, as UTF-16 has. Name the "
            "encoding with `encoding`, such as 'utf-16-le', or copy the file again."
        )

    def lines() -> Iterator[str]:
        nonlocal n_bytes
        for line in content.splitlines(keepends=True):
            n_bytes += len(line)
            yield line.decode("latin-1")
        yield LAST_ROW

    values = next((row for row in csv.reader(lines(), delimiter=sep) if row), [])
    if values == [LAST_ROW]:
        raise DataError(f"The file {file.name} must begin with a header line, it is empty.")
    if values[-1].endswith(LAST_ROW):
        raise DataError(
            f"Quotes in {file.name} must be closed, the file ends inside of them. Fix the header, "
            "which has a single quotation mark, or copy the file again."
        )
    try:
        names = [decode_bytes(value.encode("latin-1"), "the header").strip() for value in values]
    except ValueError as error:
        raise DataError(f"The file {file.name} cannot be read: {error}.") from error
    return tuple(check_names([name or UNNAMED for name in names], file.name)), sep, n_bytes


def _find_sep(content: bytes) -> str:
    """First of comma, semicolon, tab and bar that the header has; by default a comma."""
    line = (content.lstrip(b"\r\n").splitlines()[:1] or [b""])[0]
    return next((sign for sign in ",;\t|" if sign.encode() in line), ",")


def _text_bytes_of_chunk(file: TableFile) -> int:
    n_bytes: int = storage.describe_file_state(file.path)[1]
    return min(CHUNK_BYTES, max(FEWEST_BYTES, n_bytes // N_CHUNKS))


@dataclass(frozen=True)
class CsvFile:
    """CSV with a header line; values are text, "" where missing.

    Parameters
    ----------
    sep
        Field separator; "" for the first of comma, semicolon, tab and bar in the header.
    """

    sep: str = ""

    def header(self, file: TableFile) -> tuple[tuple[str, ...], str, int]:
        """Columns, separator, and number of bytes before the first row."""
        return _read_header(file, file.text.sep or self.sep, file.state)

    def columns(self, file: TableFile) -> dict[str, str]:
        """Names in the header, all of which are text."""
        return dict.fromkeys(self.header(file)[0], "text")

    def stream(self, file: TableFile, columns: Sequence[str] | None) -> Iterator[Piece]:
        """Yield the rows; those with too many or too few values are bad."""
        most = _text_bytes_of_chunk(file)
        pieces: list[Piece] = []
        n_bytes = n_rows = 0
        for size, piece in self._read_blocks(file, columns, min(most, BLOCK_BYTES)):
            for subpiece in _split(piece, n_rows):
                n_collected = sum(rows for _, rows, _ in pieces)
                if pieces and (n_bytes + size > most or n_collected + subpiece[1] > CHUNK_ROWS):
                    yield _join(pieces)
                    pieces, n_bytes = [], 0
                pieces.append(subpiece)
                n_bytes += size
            n_rows += piece[1]
        if n_rows:
            yield _join(pieces)

    def _read_blocks(
        self, file: TableFile, columns: Sequence[str] | None, n_bytes: int
    ) -> Iterator[tuple[int, Piece]]:
        """Yield (block size, piece); reads again with larger blocks where a row is longer."""
        import pyarrow as pa

        n_rows = 0
        while True:
            try:
                for piece in self._parse_blocks(file, columns, n_bytes, n_rows):
                    yield n_bytes, piece
                    n_rows += piece[1]
                return
            except pa.ArrowInvalid as error:
                if "straddl" not in str(error):
                    raise
                if n_bytes >= MAX_ROW_BYTES:
                    raise _open_quotes(file, n_rows) from error
                n_bytes *= 8

    def _parse_blocks(
        self, file: TableFile, columns: Sequence[str] | None, n_bytes: int, first_row: int
    ) -> Iterator[Piece]:
        """Yield one piece for each block of `n_bytes`, from row `first_row` on."""
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        names, sep, n_skipped = self.header(file)
        wanted = _choose_columns(columns, names)
        hint, last = _suggest_sep(names), f"\n{LAST_ROW}{sep * len(names)}\n"
        bad, is_closed = dict[int, str](), False

        def skip(row: Any) -> str:
            nonlocal is_closed
            if row.text == last.strip("\n"):
                is_closed = True
            else:
                count = f"{row.actual_columns}{hint and f' ({hint})'}"
                must = f"must have {row.expected_columns} values like the header"
                bad[row.number - 1] = f"{LINE}{must}, it has {count}"
            return "skip"

        end, pending = 0, list[Piece]()
        with closing(TextStream(file, last.encode())) as stream:
            stream.read(n_skipped)
            with closing(
                arrow_csv.open_csv(
                    pa.PythonFile(ArrowStream(stream), "r"),
                    read_options=arrow_csv.ReadOptions(
                        column_names=list(names), use_threads=False, block_size=n_bytes
                    ),
                    parse_options=arrow_csv.ParseOptions(
                        delimiter=sep, newlines_in_values=True, invalid_row_handler=skip
                    ),
                    convert_options=arrow_csv.ConvertOptions(
                        column_types=dict.fromkeys(names, pa.binary()),
                        include_columns=wanted or list(names[:1]),  # none would mean all
                        strings_can_be_null=False,
                    ),
                )
            ) as reader:
                batches = iter(reader)
                while True:
                    try:
                        batch = next(batches, None)
                    except pa.ArrowInvalid:  # a row is longer than a block
                        yield from pending
                        raise
                    if batch is None:
                        break
                    yield from pending  # the last rows stay until quotes are known to be closed
                    numbers = _good_rows(end, len(batch), bad)
                    begin, end = end, int(numbers[-1]) + 1 if len(numbers) else end
                    at = int(np.searchsorted(numbers, first_row))
                    begin = max(begin, first_row)
                    reasons = {row: why for row, why in bad.items() if begin <= row < end}
                    table = pa.Table.from_batches([batch]).slice(at)
                    pending = [(table, end - begin, reasons)] if end > begin else []
        if not is_closed:
            raise _open_quotes(file, max([end - 1, *bad]))
        trailing_bad = {row: why for row, why in sorted(bad.items()) if row >= max(end, first_row)}
        if trailing_bad:  # bad rows after the last good one
            pending.append((None, max(trailing_bad) + 1 - max(end, first_row), trailing_bad))
        yield from pending

    def parse(self, chunk: Chunk) -> tuple[pd.DataFrame, dict[int, str]]:
        """Wanted columns, and reasons of rows that are not UTF-8."""
        import pandas as pd

        wanted = _choose_columns(chunk.columns, self.header(chunk.file)[0])
        if chunk.content is None:
            return pd.DataFrame({name: pd.Series(dtype="str") for name in wanted}), {}
        table, reasons = decode_table(chunk.content)
        frame = table.to_pandas()[wanted]
        return frame, {row: f"{LINE}cannot be read: {why}" for row, why in reasons.items()}

    def find(self, file: TableFile, rows: set[int]) -> Iterator[FoundRow]:
        """Yield position, line and values of some rows, parsed by the csv module."""
        names, sep, _ = self.header(file)
        number = -1
        with closing(TextStream(file)) as stream, _any_field_size():
            lines = (line.decode("latin-1") for line in stream.lines())
            reader = csv.reader(lines, delimiter=sep)
            next(row for row in reader if row)
            before = reader.line_num
            for row in reader:
                number += bool(row)
                if row and number in rows:
                    values = None
                    with suppress(ValueError):
                        texts = [cell.encode("latin-1").decode() for cell in row]
                        values = dict(zip(names, texts, strict=True))
                    yield number, before + 1, values
                before = reader.line_num


def _good_rows(first: int, n_rows: int, bad: Mapping[int, str]) -> Indices:
    """(n_rows,) positions of the next rows that are not bad, from `first` on."""
    skipped = [row for row in bad if row >= first]
    numbers = np.arange(first, first + n_rows + len(skipped))
    return numbers[~np.isin(numbers, skipped)][:n_rows]


def _open_quotes(file: TableFile, row: int) -> DataError:
    return DataError(
        f"Quotes in {file.name} must be closed, the file ends inside of them. Fix row {row} (rows "
        "count from 0), which has a single quotation mark, or copy the file again."
    )


def _split(piece: Piece, first_row: int) -> Iterator[Piece]:
    """Yield a piece in pieces of at most CHUNK_ROWS rows."""
    table, n_rows, bad = piece
    at = 0
    for start in range(first_row, first_row + n_rows, CHUNK_ROWS):
        end = min(start + CHUNK_ROWS, first_row + n_rows)
        reasons = {row: why for row, why in bad.items() if start <= row < end}
        n_good = end - start - len(reasons)
        yield (None if table is None else table.slice(at, n_good)), end - start, reasons
        at += n_good


def _join(pieces: Sequence[Piece]) -> Piece:
    import pyarrow as pa

    tables = [table for table, _, _ in pieces if table is not None]
    bad = {row: why for _, _, reasons in pieces for row, why in reasons.items()}
    return pa.concat_tables(tables) if tables else None, sum(n for _, n, _ in pieces), bad


@contextmanager
def _any_field_size() -> Iterator[None]:
    before = csv.field_size_limit(2**31 - 1)
    try:
        yield
    finally:
        csv.field_size_limit(before)


class JsonFile:
    """JSONL: an object in each line, whose keys are columns; other values have one column."""

    def columns(self, file: TableFile) -> None:
        """None: each row has its own."""

    def stream(self, file: TableFile, columns: Sequence[str] | None) -> Iterator[Piece]:
        """Yield non-blank lines, unparsed: parsing takes as long as scoring, so workers do it."""
        n_bytes, partial_line = _text_bytes_of_chunk(file), b""
        with closing(TextStream(file)) as stream:
            while block := stream.read(n_bytes):
                end = 1 + max(block.rfind(b"\n"), block.rfind(b"\r"))
                yield from self._split(partial_line + block[:end]) if end else ()
                partial_line = block[end:] if end else partial_line + block
        yield from self._split(partial_line)

    def _split(self, content: bytes) -> Iterator[Piece]:
        lines = [line for line in map(bytes.strip, content.splitlines()) if line]
        for at in range(0, len(lines), CHUNK_ROWS):
            chunk_lines = lines[at : at + CHUNK_ROWS]
            yield b"\n".join(chunk_lines), len(chunk_lines), {}

    def parse(self, chunk: Chunk) -> tuple[pd.DataFrame, dict[int, str]]:
        """A column of objects for each key."""
        import pandas as pd

        rows, bad = list[dict[str, Any]](), dict[int, str]()
        for number, line in enumerate(chunk.content.split(b"\n")):
            try:
                rows.append(_parse_line(line))
            except (ValueError, RecursionError) as error:
                why = storage.first_line(error)
                if isinstance(error, UnicodeEncodeError):
                    why = (
                        f"it has half of a surrogate pair, \\u{ord(error.object[error.start]):04x}"
                    )
                bad[number] = f"{LINE}must be JSON, but it is not: {why}"
        names = dict.fromkeys(key for row in rows for key in row)
        if chunk.columns is not None:
            names = dict.fromkeys(
                name for name in chunk.columns if name in names or name in chunk.file.keys
            )
        values = {name: pd.Series([row.get(name) for row in rows], dtype=object) for name in names}
        return pd.DataFrame(values, index=range(len(rows))), bad

    def find(self, file: TableFile, rows: set[int]) -> Iterator[FoundRow]:
        """Yield position, line and values of some rows."""
        number = -1
        with closing(TextStream(file)) as stream:
            for line, content in enumerate(stream.lines(), 1):
                number += bool(content.strip())
                if content.strip() and number in rows:
                    values = None
                    with suppress(ValueError, RecursionError):
                        values = _parse_line(content.strip())
                    yield number, line, values


def _parse_line(line: bytes) -> dict[str, object]:
    """Object in a line of JSONL. Raises ValueError or RecursionError."""
    value = json.loads(decode_bytes(line, "it"), object_pairs_hook=_make_object)
    if b"\\ud" in line.lower():  # half of a surrogate pair, which no file can hold
        json.dumps(value, ensure_ascii=False).encode()
    return value if isinstance(value, dict) else {VALUE_COLUMN: value}


def _make_object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Object of JSON. Raises ValueError for duplicate keys."""
    values = dict(pairs)
    if len(values) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in values if names.count(name) > 1)
        raise ValueError(f"the key {twice!r} is there twice")
    return values


def _has_key(name: str, file: TableFile) -> bool:
    """Whether some row of a JSONL file has a key."""
    forms = (json.dumps(name, ensure_ascii=ascii_only).encode() for ascii_only in (True, False))
    pattern = re.compile(rb"(?<!\\)(?:" + b"|".join(map(re.escape, forms)) + rb")\s*:")
    partial_line = b""
    with closing(TextStream(file)) as stream:
        while block := stream.read(BLOCK_BYTES):
            if pattern.search(partial_line + block):
                return True
            partial_line = block[block.rfind(b"\n") + 1 :]
    return False


# Arrays: .npy, and sparse matrices in .npz


@dataclass(frozen=True)
class ArrayFile:
    """One array, or the rows of a sparse matrix as one column of lists."""

    load: Callable[[TableFile, tuple[object, ...]], Any]

    def columns(self, file: TableFile) -> dict[str, str] | int:
        """Number of columns; for sparse rows the type of their one column."""
        array = self.load(file, file.state)
        if sparse.issparse(array):
            return {VALUE_COLUMN: f"what a row of {array.shape[1]} columns lists"}
        return int(array.shape[-1]) if array.ndim > 1 else 1

    def stream(self, file: TableFile, columns: Sequence[str] | None) -> Iterator[Piece]:
        """Yield the rows of an array in native byte order, or of a sparse matrix."""
        array = self.load(file, file.state)
        n_rows, is_sparse = array.shape[0], sparse.issparse(array)
        size = array.nnz * 12 if is_sparse else array.nbytes
        most = _rows_of_chunk(n_rows, size / max(1, n_rows))
        for at in range(0, n_rows, most):
            rows: Any = array[at : at + most]
            if not is_sparse:
                rows = np.array(rows, dtype=rows.dtype.newbyteorder("="))
            yield rows, rows.shape[0], {}

    def parse(self, chunk: Chunk) -> tuple[pd.DataFrame, dict[int, str]]:
        """Columns 0, 1, ..., or one column of values or arrays."""
        import pandas as pd

        rows = chunk.content
        if sparse.issparse(rows):
            frame = pd.DataFrame({VALUE_COLUMN: list_rows(rows)})
        elif rows.ndim == 2:
            frame = pd.DataFrame(rows)
        else:
            frame = pd.DataFrame({VALUE_COLUMN: list(rows) if rows.ndim > 2 else rows})
        return frame[_choose_columns(chunk.columns, list(frame.columns))], {}


def _load_array(file: TableFile, state: tuple[object, ...]) -> Any:
    """Numeric array with 1 to 3 axes, memory-mapped if the file is local."""
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


@lru_cache(maxsize=2)  # a file, and beside it the truth
def _load_sparse(file: TableFile, state: tuple[object, ...]) -> Any:
    """CSR matrix in canonical format."""
    wanted = "a sparse matrix that `scipy.sparse.save_npz` wrote"
    with storage.open_file(file.path) as stream, _reading(file.name, wanted):
        with zipfile.ZipFile(stream) as archive, np.load(stream, allow_pickle=False) as arrays:
            n_rows, n_columns = (int(size) for size in arrays["shape"])
            n_bytes = sum(part.file_size for part in archive.infolist()) + 8 * n_rows
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

STREAM_BYTES = 2**20
"""Bytes of a column that are read at a time: a row group may have any number of rows."""

_INDEX_COLUMN = re.compile(r"__index_level_[0-9]+__")
"""Name that pandas gives to an unnamed index: row numbers are no feature, so it is left out."""


@dataclass(frozen=True)
class ArrowFile:
    """Parquet or Feather. Types follow from its schema: integers stay such beside missing ones.

    Parameters
    ----------
    format
        "Parquet" or "Feather".
    """

    format: str

    def columns(self, file: TableFile) -> dict[str, str]:
        """Types of the columns by name."""
        with self.open(file) as (schema, _):
            return {column.name: str(column.type) for column in schema}

    @contextmanager
    def open(self, file: TableFile) -> Iterator[tuple[pa.Schema, Any]]:
        """Yield the schema, without the unnamed index of pandas, and Arrow's reader."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        with ExitStack() as stack:
            with _reading(file.name, f"{self.format} as its name says"):
                source = stack.enter_context(closing(storage.open_native(file.path)))
                if self.format == "Parquet":
                    reader = pq.ParquetFile(source, buffer_size=STREAM_BYTES, pre_buffer=False)
                    schema = stack.enter_context(reader).schema_arrow
                else:
                    reader = pa.ipc.open_file(source)
                    schema = reader.schema
                check_names(schema.names, file.name)
            columns = [column for column in schema if not _INDEX_COLUMN.fullmatch(column.name)]
            yield pa.schema(columns, schema.metadata), reader

    def stream(self, file: TableFile, columns: Sequence[str] | None) -> Iterator[Piece]:
        """Yield the wanted columns, some rows of a row group or record batch at a time."""
        import pyarrow as pa

        with self.open(file) as (schema, reader):
            wanted = _choose_columns(columns, schema.names)
            batches = (self._read_groups if self.format == "Parquet" else self._read_batches)(
                reader, wanted
            )
            while True:
                with _reading(repr(file.source)):
                    batch = next(batches, None)
                if batch is None:
                    return
                yield pa.Table.from_batches([batch]).select(wanted), len(batch), {}

    def _read_groups(self, reader: Any, wanted: list[str]) -> Iterator[Any]:
        meta, n_bytes, names = reader.metadata, 0, set(wanted)
        if meta.num_row_groups:
            first = meta.row_group(0)
            for place in range(first.num_columns):
                chunk = first.column(place)
                if chunk.path_in_schema.partition(".")[0] in names:
                    n_bytes += chunk.total_uncompressed_size
            # A few bytes of Parquet can stand for any number of equal values.
            bytes_of_row = max(8 * len(wanted), n_bytes / max(1, first.num_rows))
            most = _rows_of_chunk(meta.num_rows, bytes_of_row)
            yield from reader.iter_batches(most, columns=wanted, use_threads=False)

    def _read_batches(self, reader: Any, wanted: list[str]) -> Iterator[Any]:
        for number in range(reader.num_record_batches):
            batch = reader.get_batch(number)
            n_bytes = batch.select(wanted).nbytes
            most = _rows_of_chunk(len(batch), n_bytes / max(1, len(batch)))
            yield from (batch.slice(at, most) for at in range(0, len(batch), most))

    def parse(self, chunk: Chunk) -> tuple[pd.DataFrame, dict[int, str]]:
        """Wanted columns, and reasons of rows that are not UTF-8."""
        table, reasons = decode_table(chunk.content)
        return arrow_to_frame(table, chunk.where), reasons


def arrow_to_frame(table: pa.Table, where: str) -> pd.DataFrame:
    """DataFrame whose types follow from the schema, not from the values."""
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


# Files, folders, patterns and addresses

KINDS: dict[str, FileKind] = {
    ".csv": CsvFile(),
    ".tsv": CsvFile("\t"),
    ".parquet": ArrowFile("Parquet"),
    ".pq": ArrowFile("Parquet"),
    ".feather": ArrowFile("Feather"),
    ".jsonl": JsonFile(),
    ".ndjson": JsonFile(),
    ".npy": ArrayFile(_load_array),
    ".npz": ArrayFile(_load_sparse),
}
"""Readers of formats, by suffix."""


def list_files(
    inputs: AnyPath | Iterable[AnyPath],
    columns: Sequence[str] | None = None,
    text: TextFormat = UNKNOWN,
) -> list[TableFile]:
    """Files of a path, a folder or several paths, which must be parts of one table.

    `columns` are those that will be read, None for all; others may differ.
    """
    files = _find_files(inputs, text)
    for file in files[1:]:
        _check_same_columns(files[0], file, columns)
    if isinstance(files[0].kind, JsonFile):
        keys = [name for name in columns or () if any(_has_key(name, file) for file in files)]
        files = [replace(file, keys=tuple(keys)) for file in files]
    return files


def read_chunks(file: TableFile, columns: Sequence[str] | None = None) -> Iterator[Chunk]:
    r"""Yield the rows of a file, some at a time, by one stream from its beginning to its end.

    Values of CSV are text in every column, and those of JSONL are objects, so that their type does
    not depend on the chunk. Chunks follow from the file and the columns alone.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "weather.csv"
    ...     _ = path.write_text("wind,rain\n3,1\n5\n4,1\n")
    ...     (file,) = list_files(path)
    ...     (chunk,) = read_chunks(file)
    ...     frame, bad = chunk.read()
    >>> frame
      wind rain
    0    3    1
    2    4    1
    >>> bad
    {1: 'line {line} must have 2 values like the header, it has 1'}
    """
    state, first = file.state, 0
    pieces = file.kind.stream(file, columns)
    with closing(pieces):  # type: ignore[type-var]  # a generator
        try:
            for number, (content, n_rows, bad) in enumerate(pieces):
                yield Chunk(file, number, first, n_rows, content, bad, columns)
                first += n_rows
        except LabelsureError:
            check_unchanged(file, state)  # which may be the cause
            raise
    check_unchanged(file, state)


def check_unchanged(file: TableFile, state: tuple[object, ...]) -> None:
    """Raise DataError for a file that has changed since `state`."""
    if file.state != state:
        raise DataError(
            f"The file {file.source!r} must stay as it is while it is read, but it has changed. "
            "Start again."
        )


FoundRow = tuple[int, int | None, dict[str, Any] | None]
"""Position of a row, the line in which it begins, and its values where they can be read."""


def find_rows(file: TableFile, rows: Iterable[int]) -> Iterator[FoundRow]:
    """Yield position, line and all values of some rows, in a second pass over the file."""
    wanted, kind = set(rows), file.kind
    if not wanted:
        return
    if isinstance(kind, (CsvFile, JsonFile)):
        yield from kind.find(file, wanted)
        return
    for chunk in read_chunks(file):
        frame, bad = chunk.read()
        readable = frame[frame.index.isin(wanted)]
        values: dict[Any, Any] = dict(zip(readable.index, readable.to_dict("records"), strict=True))
        for row in sorted(wanted.intersection([*readable.index, *bad])):
            yield row, None, values.get(row)


def name_lines(file: TableFile, reasons: Mapping[int, str]) -> dict[int, str]:
    """Reasons of rows with line numbers filled in."""
    rows = [row for row, why in reasons.items() if why.startswith(LINE)]
    lines = {row: line for row, line, _ in find_rows(file, rows)}
    return {
        row: why.replace("{line}", str(lines[row]), 1) if row in lines else why
        for row, why in reasons.items()
    }


def read_table(
    inputs: AnyPath | Iterable[AnyPath],
    columns: Sequence[str] | None = None,
    text: TextFormat = UNKNOWN,
) -> pd.DataFrame:
    """All rows of a file or a folder, counted from 0. Raises a RowsError for bad rows."""
    import pandas as pd

    files = list_files(inputs, columns, text)
    frames, n_bytes = list[pd.DataFrame](), 0
    for file in files:
        for chunk in read_chunks(file, columns):
            frame, bad = chunk.read()
            if bad:
                raise RowsError(name_lines(file, bad), chunk.where)
            frames.append(frame)
            n_bytes += int(frame.memory_usage().sum())
            _limits.check_size(n_bytes, f"The values in {file.name}", "Read fewer rows or columns.")
    if not frames:
        names = ", ".join(file.name for file in files)
        raise DataError(f"The table must have at least one row, there is none in {names}.")
    return pd.concat(frames, ignore_index=True)


def list_columns(inputs: AnyPath, text: TextFormat = UNKNOWN) -> list[Any] | None:
    """Columns of a table; None for JSONL, whose rows have their own."""
    first = _find_files(inputs, text)[0]
    columns = first.kind.columns(first)
    if columns is None:
        return None
    names: list[str | int] = list(range(columns)) if isinstance(columns, int) else list(columns)
    return [*names, *(name for name, _ in first.partitions if name not in names)]


def list_index_columns(inputs: AnyPath) -> set[str]:
    """Columns of a Parquet file that pandas saved as the index of a DataFrame."""
    first = _find_files(inputs)[0]
    if not isinstance(first.kind, ArrowFile):
        return set()
    with first.kind.open(first) as (schema, _):
        metadata = (schema.metadata or {}).get(b"pandas", b"{}")
    try:
        return {name for name in json.loads(metadata)["index_columns"] if isinstance(name, str)}
    except (ValueError, KeyError, TypeError):
        return set()


def checksum_table(inputs: AnyPath | Iterable[AnyPath]) -> str:
    """SHA-256 of the file, or of the checksums of several."""
    digests = [storage.checksum_file(file.path) for file in _find_files(inputs)]
    return digests[0] if len(digests) == 1 else storage.checksum_bytes("".join(digests).encode())


def list_inputs(inputs: AnyPath | Iterable[AnyPath]) -> list[AnyPath]:
    """One input or several, as a list."""
    return [inputs] if isinstance(inputs, (str, PathLike)) else list(inputs)


def _find_files(inputs: AnyPath | Iterable[AnyPath], text: TextFormat = UNKNOWN) -> list[TableFile]:
    files = [file for one in list_inputs(inputs) for file in _files_of(one)]
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


def _files_of(path: AnyPath) -> list[TableFile]:
    """Files of a path, folder, pattern or address, sorted by name."""
    is_remote, options = storage.is_address(path), ""
    if is_remote:
        root, mark, options = str(path).partition("?")
        options = mark + options
    else:
        root = str(storage.expand_path(path))
    segments = re.split(r"[*[]" if is_remote else r"[*?[]", root, maxsplit=1)
    base = segments[0].rpartition("/")[0] if len(segments) > 1 else root
    names = _list_remote(root, base, options) if is_remote else _list_local(Path(root))
    if not names:
        raise DataError(
            f"{root!r} must name files with a table, there is none. Check the folder, pattern or "
            "address."
        )
    tables = [name for name in names if storage.suffix_of(Path(name)) in KINDS]
    if tables and len(tables) < len(names):
        chosen = set(tables)
        others = ", ".join(storage.show_name(name) for name in names if name not in chosen)
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
        matches = sorted(glob.glob(str(path), recursive=True))
        names = [n for n in matches if "**" not in str(path) or Path(n).is_file()]
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
        paths = [Path(folder, name) for name in sorted(entries) if name[0] not in "._"]
        links = [Path(folder, name) for name in folders if Path(folder, name).is_symlink()]
        odd = next((entry for entry in (*links, *paths) if not entry.is_file()), None)
        if odd is not None:
            raise DataError(
                f"The folder {str(path)!r} must hold files and folders only, {odd.name!r} is a "
                "link to a folder, a broken link or a pipe. Remove it, or name the folders that "
                "have the files."
            )
        files += paths
    return [str(file) for file in files]


def _list_remote(root: str, base: str, options: str) -> list[str]:
    """Sorted addresses of a file, of the files of a folder, or of those that match."""
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
    for entry in storage.call_store(root, find):
        below = entry.path.removeprefix(place).strip("/")
        name = f"{base.rstrip('/')}/{below}" if below else base
        is_hidden = any(part[0] in "._" for part in below.split("/") if part)
        if entry.type == FileType.File and not is_hidden and re.fullmatch(pattern, name):
            found.append(name)
    return sorted(found)


def _source_of(file: str, base: str) -> str:
    """Last part of the input's name, and the path below it."""
    name = hide_secrets(base) if storage.is_address(base) else os.path.abspath(base)
    below = file if base in ("", ".") else file.removeprefix(base)
    return _as_text("/".join(part for part in (Path(name).name, below.strip("/")) if part))


def _as_text(name: str) -> str:
    """Name in UTF-8, with other bytes escaped and secrets hidden."""
    return hide_secrets(os.fsencode(name).decode("utf-8", "backslashreplace"))


def _partitions_of(file: str, root: str) -> Partitions:
    """Hive partitions: values of columns in the names of folders, such as ``year=2024``."""
    below = file.removeprefix(root).split("/")[:-1]
    pairs = (part.partition("=") for part in below if "=" in part)
    return tuple(
        (unquote(name), None if value == "__HIVE_DEFAULT_PARTITION__" else unquote(value))
        for name, _, value in pairs
    )


def _list_types(file: TableFile) -> dict[str, str]:
    """Types of a file's columns by name, its partitions among them."""
    columns = file.kind.columns(file)
    types = columns if isinstance(columns, dict) else {"the number of columns": str(columns)}
    return {**types, **{name: "the name of a folder" for name, _ in file.partitions}}


def _check_same_columns(first: TableFile, file: TableFile, columns: Sequence[str] | None) -> None:
    """Raise DataError unless two files have the same columns, in any order."""
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
"""Names of Arrow types whose values can be in one column."""


def _widen(kind: str) -> str:
    """Name shared by all types whose values can be in one column."""
    if NUMBERS.fullmatch(kind):
        return "number"
    return "text" if TEXTS.fullmatch(kind) else kind
