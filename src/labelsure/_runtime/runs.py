"""Outputs of runs: finished files, and folders that one run at a time may write to.

A file is finished if its record has the key of all that it was made from, and if the file is as it
was when that was recorded. A Parquet part carries its record in its footer; any other output has
one beside it. Any other file, such as that of a killed run, is made again.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any

from labelsure._runtime import storage
from labelsure.errors import DataError, InputError, hide_secrets

if TYPE_CHECKING:
    import pyarrow as pa

    from labelsure._runtime.typing import AnyPath, JsonObject  # loads NumPy; help does without


def make_key(made_from: Mapping[str, Any]) -> str:
    """SHA-256 of inputs and settings, encoded as JSON."""
    text = hide_secrets(json.dumps(made_from, default=str, sort_keys=True))
    return storage.checksum_bytes(text.encode())


class FinishedOutput:
    """Output file of a command, with a record of its key and its notes beside it.

    A finished file is not made again. Any other file is replaced on request only.

    Parameters
    ----------
    output
        The file; devices and pipes are never finished.
    made_from
        All inputs and settings that it depends on.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     output = FinishedOutput(f"{folder}/sums.csv", {"inputs": [1, 2]})
    ...     before = output.find(overwrite=False)
    ...     _ = output.path.write_text("3")
    ...     output.note({"rows": 1})
    ...     after = output.find(overwrite=False)
    >>> before, after
    (None, {'rows': 1})
    """

    def __init__(self, output: AnyPath, made_from: Mapping[str, Any]) -> None:
        self.path, self._key = storage.expand_path(output), make_key(made_from)

    def find(self, *, overwrite: bool) -> JsonObject | None:
        """Notes of the finished file; None where it has to be made.

        Raises InputError for another file, unless `overwrite`.
        """
        if overwrite or storage.is_stream(self.path) or not self.path.exists():
            return None
        key, notes = self._read_record()
        if key == self._key:
            return notes
        why = "" if key is None else ", made from other inputs or settings"
        raise InputError(
            f"{str(self.path)!r} exists already{why}. Choose another name, or say `overwrite` to "
            "replace a file."
        )

    @property
    def is_finished(self) -> bool:
        """Whether the file exists, is unchanged, and has the same inputs and settings."""
        return self._read_record()[0] == self._key

    def note(self, notes: Mapping[str, object]) -> None:
        """Record that the file is finished, with notes for `find`."""
        if not storage.is_stream(self.path):
            record = {"output": self._state(), "key": self._key, "notes": dict(notes)}
            storage.write_text(self._record_path, json.dumps(record, indent=1) + "\n", self.path)

    @property
    def _record_path(self) -> Path:
        real = Path(os.path.realpath(self.path))
        return real.with_name(f".{real.name}.labelsure.json")

    def _state(self) -> list[int]:
        """Size and modification time of the file, which differ after a change."""
        state = self.path.stat()
        return [state.st_size, state.st_mtime_ns]

    def _read_record(self) -> tuple[str | None, JsonObject]:
        """Key and notes of the unchanged file; None and {} without a record."""
        with suppress(OSError, ValueError, KeyError, TypeError):
            record = json.loads(self._record_path.read_text(encoding="utf-8"))
            if record["output"] == self._state():
                return str(record["key"]), dict(record["notes"])
        return None, {}


FOOTER = b"labelsure"
"""Key of the metadata of a part."""

SHA, NO_SHA = "sha256:", 64 * "0"


class PartStore:
    """Finished parts of a run, in a folder or at an address that Arrow or fsspec opens.

    A part is one Parquet file, written at once. Its footer has key, notes, and the SHA-256 of the
    file, which was computed with zeros in its place.

    Parameters
    ----------
    place
        The folder or the address.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     store = PartStore(folder)
    ...     store.write("a.parquet", pa.table({"x": [1, 2]}), "first run", {"seconds": 3})
    ...     store.find("a.parquet", "first run"), store.find("a.parquet", "another run")
    ({'seconds': 3}, None)
    """

    def __init__(self, place: AnyPath) -> None:
        self.is_remote = storage.is_address(place)
        self.place = str(place).rstrip("/") if self.is_remote else str(Path(place).absolute())

    def write(self, name: str, table: pa.Table, key: str, notes: Mapping[str, Any]) -> None:
        """Write a part."""
        footer = json.dumps([key, notes, f"{SHA}{NO_SHA}"])
        metadata = {**(table.schema.metadata or {}), FOOTER: footer}
        content = encode_parquet(table.replace_schema_metadata(metadata))
        start = content.rindex(SHA.encode()) + len(SHA)
        checksum = storage.checksum_bytes(content).encode()
        self.put(name, content[:start] + checksum + content[start + len(checksum) :])

    def find(self, name: str, key: str) -> JsonObject | None:
        """Notes of a part; None where it is missing, damaged or of another key."""
        part = self._load(name)
        return part[2] if part is not None and part[1] == key else None

    def read(self, name: str) -> pa.Table:
        """Table of a finished part. Raises DataError if it was changed since."""
        part = self._load(name)
        if part is None:
            raise DataError(
                f"The part {name!r} of {self.place!r} must be as it was written, but it is damaged "
                "or missing. Run again."
            )
        return part[0]

    def _load(self, name: str) -> tuple[pa.Table, str, JsonObject] | None:
        """Table, key and notes of a part; None where it is missing or damaged."""
        try:
            content = self.get(name)
            before, _, after = content.rpartition(SHA.encode())
            blank = before + f"{SHA}{NO_SHA}".encode() + after[len(NO_SHA) :]
            if storage.checksum_bytes(blank).encode() != after[: len(NO_SHA)]:
                return None
            table = decode_parquet(content)
            metadata = dict(table.schema.metadata)
            key, notes, _ = json.loads(metadata.pop(FOOTER))
        except (OSError, DataError, ValueError, KeyError):  # no file, or none of ours
            return None
        return table.replace_schema_metadata(metadata), key, notes

    def put(self, name: str, content: bytes) -> None:
        """Write a file in one go."""
        if not self.is_remote:
            path = Path(self.place, name)
            storage.write_whole(path, lambda temporary: temporary.write_bytes(content))
            return
        system, root = storage.open_system(self.place)

        def write() -> None:
            with system.open_output_stream(f"{root}/{name}", compression=None) as file:
                file.write(content)

        storage.call_store(self.place, write)

    def get(self, name: str) -> bytes:
        """Content of a file."""
        return storage.read_bytes(storage.join_address(self.place, name))

    def list(self) -> list[str]:
        """Sorted names of all entries."""
        if not self.is_remote:
            return sorted(path.name for path in Path(self.place).glob("*"))
        from pyarrow.fs import FileSelector

        system, root = storage.open_system(self.place)
        found = storage.call_store(
            self.place, lambda: system.get_file_info(FileSelector(root, allow_not_found=True))
        )
        return sorted(entry.base_name for entry in found if entry.is_file)

    def remove(self, name: str) -> None:
        """Remove a part."""
        if not self.is_remote:
            Path(self.place, name).unlink(missing_ok=True)
            return
        system, root = storage.open_system(self.place)
        with suppress(FileNotFoundError):
            system.delete_file(f"{root}/{name}")


def encode_parquet(table: pa.Table) -> bytes:
    """Content of a Parquet file with a table."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def decode_parquet(content: bytes) -> pa.Table:
    """Table in the content of a Parquet file, read by this thread alone."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pa.BufferReader(content) as source, pq.ParquetFile(source, pre_buffer=False) as file:
        return file.read(use_threads=False)


# Folders of runs

LOCK, OWNER = ".lock", ".owner"
OWNER_READS, SECONDS_BETWEEN_READS = 20, 0.05


def make_folder(folder: Path, noun: str, permissions: int = 0o777) -> None:
    """Make a writable folder. Raises InputError, which begins with `noun`, if that fails."""
    if re.search(r"(^|/)[A-Za-z][A-Za-z0-9+.-]+:/", folder.as_posix()):  # an address as a path
        raise InputError(
            f"{noun} {str(folder)!r} must be a folder here, not at an address. Choose another one, "
            "and copy it there when it is finished."
        )
    try:
        folder.mkdir(permissions, parents=True, exist_ok=True)
        TemporaryFile(dir=folder).close()
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        reason = getattr(error, "strerror", None) or error
        if isinstance(error, FileExistsError):
            reason = "Not a directory"  # the cause of that error here
        raise InputError(
            f"{noun} {str(folder)!r} cannot be written to ({reason}). Choose another one."
        ) from error


@contextmanager
def locked_folder(
    folder: Path, noun: str, subfolders: Iterable[str] = (), permissions: int = 0o777
) -> Iterator[None]:
    """Lock a folder for this process, made if need be; delete temporary files of killed processes.

    Raises InputError with the number of the process that holds the lock. The operating system
    releases the lock when a process ends in any way.
    """
    from filelock import FileLock, Timeout  # only runs need it

    make_folder(folder, noun, permissions)
    lock = folder / LOCK
    if lock.is_symlink():
        raise InputError(
            f"The lock {str(lock)!r} must be a file, but it is a link to another place, where "
            "nothing must be locked or written. Remove it."
        )
    owner = folder / OWNER  # not in the locked file, which Windows makes unreadable
    file_lock = FileLock(lock, blocking=False)  # another run may take hours
    try:
        file_lock.acquire()
    except Timeout as error:
        raise InputError(
            f"Another run (process {_read_owner(owner)}) is at work in {str(folder)!r}. Wait until "
            "it ends, or choose another folder."
        ) from error
    try:
        storage.write_text(owner, str(os.getpid()))
        for name in ("", *subfolders):
            remove_leftovers(folder / name)
        yield
    finally:
        file_lock.release()


def _read_owner(owner: Path) -> str:
    """Number of the process that has a lock, which it writes down just after it took it."""
    for _ in range(OWNER_READS):
        with suppress(OSError):
            if name := owner.read_text().strip():
                return name
        time.sleep(SECONDS_BETWEEN_READS)
    return "unknown"


_TEMPORARY = re.compile(r"\..+\.[0-9]+-[0-9]+\.labelsure-tmp", re.DOTALL)
"""Names of the temporary files of `storage.write_whole`: target, process and thread."""


def remove_leftovers(folder: Path) -> None:
    """Delete the temporary files of killed processes from a folder, and nothing else."""
    if folder.is_symlink() or not folder.is_dir():
        return
    for path in folder.iterdir():
        if is_leftover(path):
            path.unlink()


def is_leftover(path: Path) -> bool:
    """Whether a file is a temporary file of `storage.write_whole`."""
    return bool(_TEMPORARY.fullmatch(path.name)) and path.is_file() and not path.is_symlink()
