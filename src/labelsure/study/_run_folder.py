"""The folder of a run: one owner at a time, and no file that is only half there."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from labelsure._writing import TEMPORARY, write_text, write_whole
from labelsure.errors import InputError

METADATA_KEY = b"labelsure"


@dataclass(frozen=True)
class RunFolder:
    """Where a run keeps its plan, cells, tables and figures.

    Parameters
    ----------
    path
        The folder; `create` makes it.
    """

    path: Path

    @property
    def cells(self) -> Path:
        """The folder of finished cells."""
        return self.path / "cells"

    def cell_path(self, name: str) -> Path:
        """Return the file of a cell."""
        return self.cells / f"{name}.parquet"

    def create(self) -> None:
        """Make the folder, or say why it cannot be used."""
        try:
            self.cells.mkdir(parents=True, exist_ok=True)
            probe = self.cells / f".{os.getpid()}.tmp"
            probe.touch()
            probe.unlink()
        except OSError as error:
            raise InputError(
                f"The run folder {str(self.path)!r} cannot be written to "
                f"({error.strerror or error}). Choose another one."
            ) from error

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep the folder for this process, or say who has it.

        The lock is the operating system's, which gives it up when a process ends, however it ends.
        """
        import fcntl  # not on Windows, where all but runs works

        with open(self.path / ".lock", "a+") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                file.seek(0)
                raise InputError(
                    f"Another run (process {file.read().strip() or 'unknown'}) is at work in "
                    f"{str(self.path)!r}. Wait until it ends, or choose another folder."
                ) from error
            file.truncate(0)
            file.write(str(os.getpid()))
            file.flush()
            for left in self.path.rglob(TEMPORARY):
                left.unlink()  # of a run that was killed while it wrote
            yield

    def write_text(self, name: str, text: str) -> None:
        """Write a text file, entirely or not at all."""
        write_text(self.path / name, text)

    def write_json(self, name: str, content: Any) -> None:
        """Write a JSON file, entirely or not at all."""
        self.write_text(name, json.dumps(content, indent=2, ensure_ascii=False) + "\n")

    def write_frame(self, path: Path, frame: pd.DataFrame, notes: dict[str, Any]) -> None:
        """Write a Parquet file, entirely or not at all.

        Parameters
        ----------
        path
            Its name.
        frame
            Its rows.
        notes
            What to remember beside them, as JSON.
        """
        table = pa.Table.from_pandas(frame, preserve_index=False)
        metadata = {**(table.schema.metadata or {}), METADATA_KEY: json.dumps(notes).encode()}
        table = table.replace_schema_metadata(metadata)
        write_whole(path, lambda temporary: pq.write_table(table, temporary))

    def read_cell(self, name: str, key: str) -> tuple[pd.DataFrame, dict[str, Any]] | None:
        """Return the rows and notes of a finished cell; None if there is none with this key.

        Parameters
        ----------
        name
            Of the cell.
        key
            The checksum of all that its rows depend on.
        """
        try:
            table = pq.read_table(self.cell_path(name))
            notes = json.loads(table.schema.metadata[METADATA_KEY])
        except (OSError, KeyError, TypeError, ValueError, pa.ArrowException):
            return None  # not there, or not ours: it is computed again
        return (table.to_pandas(), notes) if notes.get("key") == key else None
