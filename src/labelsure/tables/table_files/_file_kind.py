"""What every kind of table file can do, and the `Unit` of rows that one task reads."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labelsure._runtime import limits as _limits
from labelsure.errors import DataError, TooLargeError, unknown_name

if TYPE_CHECKING:
    import pandas as pd

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
