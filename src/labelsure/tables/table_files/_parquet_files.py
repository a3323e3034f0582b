"""Parquet: row groups, of which a reader goes through some rows at a time."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labelsure._runtime.storage import first_line, read_bytes
from labelsure.errors import DataError, LabelsureError
from labelsure.tables.table_files._file_kind import (
    FileKind,
    TablePath,
    Unit,
    changed,
    check_columns,
    check_names,
)

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

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
