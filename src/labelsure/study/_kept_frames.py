"""Tables on disk that vouch for themselves: rows, notes and a checksum of both in one file."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from labelsure._runtime.storage import first_line, write_whole
from labelsure.errors import DataError

NOTES_KEY = b"labelsure"
CHECKSUM_KEY = b"labelsure checksum"
"""Of the metadata of a Parquet file."""


def write_frame(path: Path, frame: pd.DataFrame, notes: dict[str, Any]) -> None:
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
    text = json.dumps(notes).encode()
    checksum = _checksum(table.to_pandas(), text).encode()
    metadata = {**(table.schema.metadata or {}), NOTES_KEY: text, CHECKSUM_KEY: checksum}
    table = table.replace_schema_metadata(metadata)
    write_whole(path, lambda temporary: _write_table(table, temporary))


def _write_table(table: pa.Table, path: Path) -> None:
    with open(path, "wb") as file:  # pyarrow opens no file whose name is not UTF-8
        pq.write_table(table, file)


def read_frame(path: Path) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Return the rows and notes of a Parquet file, or say what is wrong with it.

    A file without a checksum, such as another program's, has no notes.

    Parameters
    ----------
    path
        Its name.
    """
    try:
        # Not `pq.read_table`, which takes a folder such as "seed=3" above it for a column.
        with open(path, "rb") as file, pq.ParquetFile(file) as parquet:
            table = parquet.read()
        metadata, frame = table.schema.metadata or {}, table.to_pandas()
        text, checksum = metadata.get(NOTES_KEY, b"{}"), metadata.get(CHECKSUM_KEY)
        is_whole = checksum is None or checksum.decode() == _checksum(frame, text)
        notes = json.loads(text) if checksum and is_whole else {}
    except Exception as error:  # whatever libraries say of files that are damaged
        raise DataError(
            f"{str(path)!r} must be a Parquet file, but it cannot be read: {first_line(error)}."
        ) from error
    if not is_whole:
        raise DataError(
            f"{str(path)!r} must hold what was written, but its checksum says that it was damaged "
            "or changed since. Run the study again, or restore the file."
        )
    return frame, notes


def read_kept(path: Path, key: str) -> tuple[pd.DataFrame, dict[str, Any]] | None:
    """Return rows and notes that were kept; None where there are none that are whole and current.

    Parameters
    ----------
    path
        The name of the file.
    key
        The checksum of all that its rows depend on, which the notes have under "key".
    """
    try:
        frame, notes = read_frame(path)
    except DataError:
        return None
    return (frame, notes) if notes.get("key") == key else None


def _checksum(frame: pd.DataFrame, notes: bytes) -> str:
    types = [(str(name), str(dtype)) for name, dtype in frame.dtypes.items()]
    names = [str(name) for name in (*frame.columns.names, *frame.index.names)]
    digest = sha256(notes + json.dumps([types, names, len(frame)]).encode())
    digest.update(fingerprint_rows(frame, index=True))
    return digest.hexdigest()


def fingerprint_rows(frame: pd.DataFrame, index: bool = False) -> bytes:
    """Return bytes that differ where the values of two frames do.

    Parameters
    ----------
    frame
        The rows.
    index
        Whether the index counts too.
    """
    return pd.util.hash_pandas_object(frame, index=index).to_numpy().tobytes()
