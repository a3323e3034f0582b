"""Arrays in .npy and .npz files: the first axis counts rows, columns have numbers for names.

An .npz file that `scipy.sparse.save_npz` wrote holds a sparse matrix, whose rows are cells that
list what they have.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from labelsure._runtime import limits as _limits
from labelsure._runtime.storage import first_line, read_bytes
from labelsure.errors import DataError, InputError, LabelsureError, TooLargeError
from labelsure.tables.listed_cells import ListedCell
from labelsure.tables.table_files._file_kind import (
    VALUE_COLUMN,
    FileKind,
    TablePath,
    Unit,
    check_columns,
)

if TYPE_CHECKING:
    import pandas as pd


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
