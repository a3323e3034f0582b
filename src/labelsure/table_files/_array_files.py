"""Arrays in .npy and .npz files: the first axis counts rows, columns have numbers for names."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from labelsure import _limits
from labelsure._storage import first_line, read_bytes
from labelsure.errors import DataError, InputError, LabelsureError
from labelsure.table_files._file_kind import (
    VALUE_COLUMN,
    FileKind,
    TablePath,
    Unit,
    check_columns,
)

if TYPE_CHECKING:
    import pandas as pd


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

    def columns(self, path: TablePath) -> int:
        """Return how many columns there are."""
        array = self.load(path)
        return array.shape[-1] if array.ndim > 1 else 1

    def cut(self, path: TablePath, rows: int) -> Iterator[Unit]:
        """Return the units of a file."""
        n_rows = len(self.load(path))
        for number, first_row in enumerate(range(0, n_rows, rows)):
            n_taken = min(rows, n_rows - first_row)
            yield Unit(str(path.file), number, first_row, n_taken, array=path.array)

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


class NpzFile(NpyFile):
    """One array of a zip file, which is read as a whole, once."""

    def load(self, path: TablePath) -> NDArray[Any]:
        """Return the array that the path names, or the only one."""
        read_bytes(path.file, 0)
        status = path.file.stat()
        return _load_zipped(path, status.st_mtime_ns, status.st_size)


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
        f"The file {path.where} must hold numbers as `numpy.save` or `numpy.savez` writes them, "
        f"but it cannot be read: {first_line(error)}. Save it again."
    )
