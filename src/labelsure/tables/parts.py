"""The files that scoring writes, and the folder that keeps finished parts of a run."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labelsure._runtime.storage import (
    LOCK,
    OWNER,
    checksum_bytes,
    hold_folder,
    is_address,
    is_stream,
    make_folder,
    remove_leftovers,
    write_text,
    write_whole,
)
from labelsure._runtime.task_pools import run_tasks
from labelsure._runtime.typing import AnyPath
from labelsure.errors import DataError, InputError, unknown_name
from labelsure.tables.files import ask_store, open_system

if TYPE_CHECKING:
    import pandas as pd

NAME_SEPARATOR = ";"
"""Between the names of labels in CSV, which has no lists."""

COPIED_BYTES = 2**20


class PartFormat(ABC):
    """A format of files with predictions.

    `has_lists` says whether a field can hold several names; otherwise they are joined to a text.
    """

    has_lists = True

    @abstractmethod
    def write(self, frame: pd.DataFrame, path: Path) -> None:
        """Write the rows of a part."""

    @abstractmethod
    def join(self, parts: Sequence[Path], path: Path) -> None:
        """Write one file of the rows of at least one part, in bounded memory."""


class CsvFormat(PartFormat):
    """Text with a header in every part, of which the joined file has one."""

    has_lists = False

    def __init__(self, separator: str = ",") -> None:
        self.separator = separator

    def write(self, frame: pd.DataFrame, path: Path) -> None:
        """Write the rows, numbers with all their digits."""
        with open(path, "w", encoding="utf-8", newline="") as file:
            self._write(frame, file)

    def _write(self, frame: pd.DataFrame, file: Any) -> None:
        # Values with a carriage return are quoted where the end of a line has one.
        lines: Any = _UnixLines(file)
        frame.to_csv(lines, index=False, sep=self.separator, lineterminator="\r\n")

    def join(self, parts: Sequence[Path], path: Path) -> None:
        """Append the parts, without the header of all but the first."""
        header = self._header_of(parts[0])
        with open(path, "wb") as joined:
            joined.write(header)
            for part in parts:
                with open(part, "rb") as file:
                    if file.read(len(header)) != header:
                        raise _other_columns(part)
                    shutil.copyfileobj(file, joined, COPIED_BYTES)

    def _header_of(self, part: Path) -> bytes:
        """Return the bytes of the header, in which names may hold line breaks."""
        import pandas as pd

        columns = pd.read_csv(part, sep=self.separator, nrows=0).columns
        header = io.StringIO(newline="")
        self._write(pd.DataFrame(columns=columns), header)
        return header.getvalue().encode("utf-8")


class _UnixLines:
    """Writes rows that end in CR LF with LF alone."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def write(self, row: str) -> None:
        """Write one row, as `csv` passes it."""
        self._file.write(row.removesuffix("\r\n") + "\n")


class JsonLinesFormat(PartFormat):
    """A JSON object for each row."""

    def write(self, frame: pd.DataFrame, path: Path) -> None:
        """Write the rows, numbers with all their digits."""
        with open(path, "w", encoding="utf-8") as file:
            for record in plain_records(frame):
                file.write(json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n")

    def join(self, parts: Sequence[Path], path: Path) -> None:
        """Append the parts."""
        with open(path, "wb") as joined:
            for part in parts:
                with open(part, "rb") as file:
                    shutil.copyfileobj(file, joined, COPIED_BYTES)


GROUP_ROWS = 100_000
"""Rows of a row group at least: readers of Parquet are slow with many small ones."""


class ParquetFormat(PartFormat):
    """Row groups of some parts each."""

    def write(self, frame: pd.DataFrame, path: Path) -> None:
        """Write the rows; the type of a column does not depend on its values."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        table = pa.Table.from_pandas(frame, schema=_schema_of(frame), preserve_index=False)
        with open(path, "wb") as file:  # pyarrow opens no file whose name is not UTF-8
            pq.write_table(table.replace_schema_metadata(None), file)

    def join(self, parts: Sequence[Path], path: Path) -> None:
        """Write row groups of whole parts; all must have the columns of the first."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        with open(parts[0], "rb") as first:
            schema = pq.read_schema(first)
        with open(path, "wb") as file, pq.ParquetWriter(file, schema) as writer:
            group = []
            for part in parts:
                with open(part, "rb") as source, pq.ParquetFile(source) as parquet:
                    if not parquet.schema_arrow.equals(schema):
                        raise _other_columns(part)
                    group.append(parquet.read())
                if part == parts[-1] or sum(map(len, group)) >= GROUP_ROWS:
                    writer.write_table(pa.concat_tables(group))
                    group = []


NAME_COLUMNS = frozenset({"predicted", "certain", "possible", "decided", "open"})
"""Columns that hold the names of labels, beside those of the most probable labelsets."""


def _schema_of(frame: pd.DataFrame) -> Any:
    """Return the type of each column: an empty list or text must not become one of nothing."""
    import pyarrow as pa

    def type_of(name: str) -> Any:
        if name in NAME_COLUMNS or (name.startswith("top_") and not name.endswith("_probability")):
            return pa.list_(pa.string())
        kind = frame[name].dtype.kind
        kinds = {"f": pa.float64(), "i": pa.int64(), "u": pa.uint64(), "b": pa.bool_()}
        return kinds.get(kind, pa.string())

    return pa.schema([(str(name), type_of(str(name))) for name in frame])


def _other_columns(part: Path) -> DataError:
    return DataError(
        f"The part {part.name!r} must have the columns and types of the first one, it has others. "
        "Remove the folder it is in, and run again."
    )


def plain_records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows as dictionaries that JSON can hold; what is missing is None.

    Parameters
    ----------
    frame
        Its index is left out.

    Examples
    --------
    >>> import pandas as pd
    >>> plain_records(pd.DataFrame({"a": [1.5, None], "b": [("x",), ()]}))
    [{'a': 1.5, 'b': ['x']}, {'a': None, 'b': []}]
    """
    columns = {str(name): _plain_column(frame[name]) for name in frame}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _plain_column(column: pd.Series[Any]) -> list[Any]:
    """Return the values of a column; those of numbers without a look at each."""
    values = column.tolist()
    is_finite = column.dtype.kind != "f" or abs(column).max() < float("inf")
    if column.dtype.kind in "iubf" and not column.hasnans and is_finite:
        return values
    return [_plain(value) for value in values]


def _plain(value: Any) -> Any:
    import pandas as pd

    if isinstance(value, str):
        return value
    if hasattr(value, "tolist"):  # of NumPy
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if pd.isna(value):
        return None
    if value in (float("inf"), float("-inf")):  # for which JSON has no words
        return str(value)
    return value if isinstance(value, (bool, int, float)) else str(value)


FORMATS: dict[str, PartFormat] = {
    ".csv": CsvFormat(),
    ".tsv": CsvFormat("\t"),
    ".jsonl": JsonLinesFormat(),
    ".parquet": ParquetFormat(),
}
"""By suffix."""


def check_suffix(suffix: str) -> str:
    """Return the suffix of an output file if it is one that can be written.

    Parameters
    ----------
    suffix
        As in the file's name.
    """
    if suffix.lower() not in FORMATS:
        raise unknown_name("format of predictions", suffix, FORMATS)
    return suffix.lower()


def write_part(frame: pd.DataFrame, path: Path) -> None:
    """Write the rows of a part, as a whole or not at all.

    Parameters
    ----------
    frame
        The rows.
    path
        Its suffix says the format.
    """
    write_whole(path, lambda temporary: FORMATS[path.suffix].write(frame, temporary))


MANIFEST, NOTES, BAD_ROWS = "_manifest.json", "_notes", "_bad_rows"
"""Names that begin with an underscore are no data to whoever reads a folder of parts. The manifest
is the mark of a folder that is ours; the last says which file this run writes bad rows to."""

OWN_NAMES = (MANIFEST, NOTES, BAD_ROWS, LOCK, OWNER)
PART = re.compile(r"part-[0-9]{5,}\.(json|jsonl|csv|tsv|parquet)")

WORDS = {
    "labelsure": "version of labelsure",
    "model": "model",
    "inputs": "input files, their sizes or times",
    "rows_per_unit": "rows per unit",
    "settings": "settings",
}


class PartsFolder:
    """Where the parts of one run are, until they are joined or for good.

    A part is finished once its notes are there: they are written last.

    Parameters
    ----------
    out
        The file that the parts will become, beside which the folder is; or the folder itself.
    keeps_parts
        Whether `out` is the folder.
    """

    def __init__(self, out: Path, *, keeps_parts: bool) -> None:
        self.out, self.keeps_parts = out, keeps_parts
        self.path = out if keeps_parts else self._beside

    @property
    def notes(self) -> Path:
        """The folder of what is known of the parts."""
        return self.path / NOTES

    @property
    def _beside(self) -> Path:
        return self.out.with_name(f"{self.out.name}.parts")

    @property
    def _old(self) -> Path:
        return self.out.with_name(f"{self.out.name}.old")

    def part_path(self, number: int, suffix: str) -> Path:
        """Return the file of a part."""
        return self.path / f"part-{number:05d}{suffix}"

    def notes_path(self, number: int) -> Path:
        """Return the file of what is known of a part."""
        return self.notes / f"part-{number:05d}.json"

    def read_notes(self, number: int, suffix: str) -> dict[str, Any] | None:
        """Return what is known of a finished part; None where it is not finished.

        One without rows, all of them being bad, has no file.

        Parameters
        ----------
        number
            Of the part.
        suffix
            Of its file.
        """
        try:
            notes = json.loads(self.notes_path(number).read_text(encoding="utf-8"))
            part = self.part_path(number, suffix)
            is_whole = notes["n_rows"] == 0 or part.stat().st_size == notes["n_bytes"]
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return notes if is_whole else None

    def is_begun(self, manifest: dict[str, Any]) -> bool:
        """Whether parts of this very run are there, to go on with.

        Parameters
        ----------
        manifest
            All that the parts depend on.
        """
        return _read_manifest(self.path) is not None and not _find_change(self.path, manifest)

    @contextmanager
    def locked(self, manifest: dict[str, Any], *, overwrite: bool) -> Iterator[None]:
        """Keep the folder for this process, with the parts of the same run and no others.

        Parameters
        ----------
        manifest
            All that the parts depend on.
        overwrite
            Whether what another run has written may be removed.
        """
        if overwrite and self.keeps_parts and _find_change(self.path, manifest):
            self.path = self._beside  # what is there stays until the new parts are whole
            if self._old.exists():
                raise _already_exists(self._old)
        self._check_out(overwrite)
        make_folder(self.path, "The folder of the parts")
        with hold_folder(self.path, "the folder of the parts"):
            self._compare(manifest, overwrite)
            make_folder(self.notes, "The folder of the parts")
            for folder in (self.path, self.notes):
                remove_leftovers(folder)
            write_text(self.path / MANIFEST, json.dumps(manifest, indent=1) + "\n")
            try:
                yield
            except BaseException:
                if not any(self.notes.iterdir()):  # nothing to go on with
                    _remove(self.path)
                raise
        if not self.keeps_parts:
            _remove(self.path)
        elif self.path != self.out:
            self._replace()

    def _replace(self) -> None:
        """Put the new folder in the place of the old one; what is not ours moves along."""
        old = self._old
        os.rename(self.out, old)
        os.rename(self.path, self.out)
        _remove(old)
        for entry in [] if not old.is_dir() else list(old.iterdir()):
            if not (self.out / entry.name).exists():
                os.rename(entry, self.out / entry.name)
        with suppress(OSError):
            old.rmdir()

    def check_bad_rows(self, path: Path, *, overwrite: bool) -> None:
        """Refuse to replace a file of bad rows that this run has not written.

        Parameters
        ----------
        path
            Of the file.
        overwrite
            Whether it may be replaced all the same.
        """
        mark, name = self.path / BAD_ROWS, str(path.absolute())
        is_own = mark.is_file() and mark.read_text(encoding="utf-8") == name
        if path.exists() and not (is_stream(path) or is_own or overwrite):
            raise _already_exists(path)
        write_text(mark, name)

    def _check_out(self, overwrite: bool) -> None:
        """Refuse to replace what is no part of the same run."""
        is_begun = _read_manifest(self.path) is not None
        if self.path.is_dir() and not is_begun and any(map(_is_foreign, self.path.iterdir())):
            raise InputError(
                f"The folder {str(self.path)!r} must be new or empty, or hold parts of the same "
                "run; it holds something else. Choose another name for the output."
            )
        if self.path == self.out and self.out.is_file():
            raise InputError(
                f"The output {str(self.out)!r} has no suffix and must be a folder, it is a file. "
                "Choose another name."
            )
        if not self.keeps_parts and (
            self.out.is_dir() or (self.out.exists() and not overwrite and not is_begun)
        ):
            raise _already_exists(self.out)

    def _compare(self, manifest: dict[str, Any], overwrite: bool) -> None:
        """Refuse to mix parts of different runs, or remove those of the other one."""
        change = _find_change(self.path, manifest)
        if not change:
            return
        if not overwrite:
            raise InputError(
                f"The folder {str(self.path)!r} holds parts of another run: other {change}. Run "
                "the same command as before to go on with it, choose another name for the output, "
                "or say `overwrite` to begin again."
            )
        for folder in (self.path, self.notes):
            for old in folder.iterdir() if folder.is_dir() else ():
                if PART.fullmatch(old.name):
                    old.unlink()


def _remove(folder: Path) -> None:
    """Remove a folder with all that a run writes into it, and nothing else."""
    own = [path for path in folder.iterdir() if not _is_foreign(path)]
    shutil.rmtree(folder / NOTES, ignore_errors=True)
    for path in sorted(own, key=lambda path: path.name == MANIFEST):  # the mark at last
        if path.name != NOTES:
            path.unlink(missing_ok=True)
    with suppress(OSError):  # something else is in it
        folder.rmdir()


def _is_foreign(path: Path) -> bool:
    """Whether an entry of a folder is not one that a run writes; parts only count with a mark."""
    if _read_manifest(path.parent) is None:
        return path.name not in (LOCK, OWNER)
    return not PART.fullmatch(path.name) and path.name not in OWN_NAMES


def _read_manifest(folder: Path) -> dict[str, Any] | None:
    """Return the manifest that marks a folder as ours; None where there is none."""
    try:
        found = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) and "labelsure" in found else None


def _already_exists(path: Path) -> InputError:
    return InputError(
        f"{str(path)!r} exists already. Choose another name, or say `overwrite` to replace a file."
    )


def _find_change(folder: Path, manifest: dict[str, Any]) -> str:
    """Return what a run differs in from that whose parts are in a folder; "" where in nothing."""
    before = _read_manifest(folder)
    if before is None:
        return ""
    now = json.loads(json.dumps(manifest))
    changed = [key for key in now if before.get(key) != now[key]]
    return _describe_change(changed[0], before, now) if changed else ""


def _describe_change(key: str, before: dict[str, Any], now: dict[str, Any]) -> str:
    words = WORDS[key]
    if key != "settings" or not isinstance(before.get(key), dict):
        return words
    names = [name for name in now[key] if now[key][name] != before[key].get(name)]
    told = ", ".join(f"{name} was {before[key].get(name)}, is {now[key][name]}" for name in names)
    return f"{words} ({told})" if names else words


class PartStore:
    """Finished parts of a run, in a folder or at an address that fsspec opens.

    A part is one file, written at once. It is finished when its notes exist, which are written
    after it. Notes hold the size and the SHA-256 of the part beside what the run notes.

    Parameters
    ----------
    place
        The folder or the address.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     store = PartStore(folder)
    ...     _ = store.write("a.txt", b"some rows", {"key": "first run"})
    ...     store.find("a.txt", "first run")["n_bytes"], store.find("a.txt", "another run")
    (9, None)
    """

    def __init__(self, place: AnyPath) -> None:
        self.is_remote = is_address(place)
        self.place = str(place).rstrip("/") if self.is_remote else str(Path(place).absolute())

    def write(self, name: str, content: bytes, notes: Mapping[str, Any]) -> dict[str, Any]:
        """Write a part and then its notes, which are returned; nothing makes no file."""
        if content:
            self.put(name, content)
        whole = {**notes, "n_bytes": len(content), "checksum": _checksum(content, notes)}
        self.put(_notes_of(name), json.dumps(whole).encode())
        return whole

    def find(self, name: str, key: str) -> dict[str, Any] | None:
        """Return the notes of a part; None where it is missing, cut off or of another key."""
        try:
            notes: dict[str, Any] = json.loads(self.get(_notes_of(name)))
            is_whole = notes["n_bytes"] == (self._size(name) if notes["n_bytes"] else 0)
            return notes if is_whole and notes["key"] == key else None
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def read(self, name: str, notes: Mapping[str, Any]) -> bytes:
        """Return the content of a finished part, unless it or its notes were changed since."""
        content = self.get(name)
        noted = {key: notes[key] for key in notes if key not in ("n_bytes", "checksum")}
        if _checksum(content, noted) != notes["checksum"]:
            raise DataError(
                f"The part {name!r} of {self.place!r} must be as it was written, but its checksum "
                "differs. Remove it, and run again."
            )
        return content

    def put(self, name: str, content: bytes) -> None:
        """Write a file in one go."""
        if not self.is_remote:
            path = Path(self.place, name)
            path.parent.mkdir(exist_ok=True)
            write_whole(path, lambda temporary: temporary.write_bytes(content))
            return
        system, root = open_system(self.place)
        ask_store(self.place, lambda: system.pipe_file(f"{root}/{name}", content))

    def get(self, name: str) -> bytes:
        """Return the content of a file."""
        if not self.is_remote:
            return Path(self.place, name).read_bytes()
        system, root = open_system(self.place)
        content: bytes = system.cat_file(f"{root}/{name}")
        return content

    def _size(self, name: str) -> int:
        if not self.is_remote:
            return Path(self.place, name).stat().st_size
        system, root = open_system(self.place)
        return int(system.size(f"{root}/{name}"))

    def list(self) -> list[str]:
        """Return the names of all entries, those of notes aside."""
        if not self.is_remote:
            return sorted(path.name for path in Path(self.place).glob("*"))
        system, root = open_system(self.place)
        found = [entry for entry in system.find(root) if f"/{NOTES}/" not in entry]
        return sorted(Path(entry).name for entry in found)

    def remove(self, name: str) -> None:
        """Remove a part with its notes."""
        if not self.is_remote:
            for file in (_notes_of(name), name):
                Path(self.place, file).unlink(missing_ok=True)
            return
        system, root = open_system(self.place)
        for file in (_notes_of(name), name):
            if system.exists(f"{root}/{file}"):
                system.rm_file(f"{root}/{file}")


def _checksum(content: bytes, notes: Mapping[str, Any]) -> str:
    return checksum_bytes(content + json.dumps(notes, sort_keys=True).encode())


def _notes_of(name: str) -> str:
    return f"{NOTES}/{name}.json"


def run_parts(
    store: PartStore,
    keys: Mapping[str, str],
    function: Callable[..., Any],
    make_tasks: Callable[[list[str]], list[tuple[Any, ...]]],
    *,
    keep: Callable[[str, dict[str, Any]], bool],
    n_jobs: int = 1,
    scheduler: str | None = None,
) -> Iterator[tuple[str, Any]]:
    """Yield the name of each part that is not finished, and what its task returned.

    Parameters
    ----------
    store
        Where finished parts are.
    keys
        The parts by name, and what all that each depends on comes to.
    function, n_jobs, scheduler
        As for `run_tasks`.
    make_tasks
        Returns the arguments of the function for the parts that are not finished.
    keep
        Called with the name and the notes of a finished part; returns whether it can be kept.
    """
    missing = []
    for name, key in keys.items():
        notes = store.find(name, key)
        if notes is None or not keep(name, notes):
            missing.append(name)
    tasks = make_tasks(missing)
    for place, found in run_tasks(function, tasks, n_jobs=n_jobs, scheduler=scheduler):
        yield missing[place], found
