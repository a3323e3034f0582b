"""Units of rows: which there are in files and folders, and the rows of one of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from labelsure._runtime.storage import COMPRESSIONS, expand_path, read_bytes
from labelsure._runtime.typing import AnyPath
from labelsure.errors import DataError, InputError
from labelsure.tables.table_files._array_files import NpyFile, NpzFile
from labelsure.tables.table_files._file_kind import FileKind, TablePath, Unit, changed
from labelsure.tables.table_files._parquet_files import ParquetTable
from labelsure.tables.table_files._text_files import CsvFile, JsonLinesFile

if TYPE_CHECKING:
    import pandas as pd

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
