"""Parts of a run: the store that keeps finished ones, the loop that makes the others, formats."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from io import BytesIO, StringIO
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from labelsure._runtime.storage import (
    LOCK,
    OWNER,
    ask_store,
    checksum_bytes,
    hold_folder,
    is_address,
    is_stream,
    make_folder,
    open_system,
    remove_leftovers,
    write_whole,
)
from labelsure._runtime.task_pools import run_tasks
from labelsure._runtime.typing import AnyPath
from labelsure.errors import DataError, InputError, unknown_name
from labelsure.tables.files import arrow_to_frame

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

MANIFEST, NOTES, BAD_ROWS = "_manifest.json", "_notes", "_bad_rows"
"""Names that begin with an underscore are no data to whoever reads a folder of parts. The manifest
marks a folder as ours; the last says which file this run writes bad rows to."""

PART = re.compile(r"part-[0-9]{5,}\.(jsonl|csv|tsv|parquet)")
OWN_NAMES = (MANIFEST, NOTES, BAD_ROWS, LOCK, OWNER)


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

        def write() -> None:
            with system.open_output_stream(f"{root}/{name}", compression=None) as file:
                file.write(content)

        ask_store(self.place, write)

    def get(self, name: str) -> bytes:
        """Return the content of a file."""
        if not self.is_remote:
            return Path(self.place, name).read_bytes()
        system, root = open_system(self.place)
        with system.open_input_file(f"{root}/{name}") as file:
            content: bytes = file.read()
        return content

    def _size(self, name: str) -> int:
        if not self.is_remote:
            return Path(self.place, name).stat().st_size
        system, root = open_system(self.place)
        return int(system.get_file_info(f"{root}/{name}").size)

    def list(self) -> list[str]:
        """Return the names of all entries, those of notes aside."""
        if not self.is_remote:
            return sorted(path.name for path in Path(self.place).glob("*"))
        from pyarrow.fs import FileSelector

        system, root = open_system(self.place)
        found = ask_store(
            self.place, lambda: system.get_file_info(FileSelector(root, allow_not_found=True))
        )
        return sorted(entry.base_name for entry in found if entry.is_file)

    def remove(self, name: str) -> None:
        """Remove a part with its notes."""
        if not self.is_remote:
            for file in (_notes_of(name), name):
                Path(self.place, file).unlink(missing_ok=True)
            return
        system, root = open_system(self.place)
        for file in (_notes_of(name), name):
            with suppress(FileNotFoundError):
                system.delete_file(f"{root}/{file}")


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
    prepare: Callable[..., tuple[Any, ...]] | None = None,
    n_jobs: int = 1,
    scheduler: str | None = None,
    shared: Any = None,
) -> Iterator[tuple[str, Any]]:
    """Yield the name of each part that is not finished, and what its task returned."""
    missing = []
    for name, key in keys.items():
        notes = store.find(name, key)
        if notes is None or not keep(name, notes):
            missing.append(name)
    tasks = make_tasks(missing)
    for place, found in run_tasks(
        function, tasks, n_jobs=n_jobs, scheduler=scheduler, shared=shared, prepare=prepare
    ):
        yield missing[place], found


WORDS = {
    "labelsure": "version of labelsure",
    "model": "model",
    "inputs": "input files, their sizes or times",
    "settings": "settings",
}
"""What the entries of a manifest are, for messages."""


class ScoredParts(PartStore):
    """The parts of one scoring run, until they are joined or for good.

    Parameters
    ----------
    out
        The file that the parts will become, beside which their folder is; or the folder itself.
    keeps_parts
        Whether `out` is the folder.
    """

    def __init__(self, out: str, *, keeps_parts: bool) -> None:
        super().__init__(out if keeps_parts else f"{out}.parts")
        self.out, self.keeps_parts = out, keeps_parts

    def find_change(self, manifest: Mapping[str, Any]) -> str | None:
        """Return the settings that differ from those of the parts here; None without parts."""
        try:
            before, now = json.loads(self.get(MANIFEST)), json.loads(json.dumps(manifest))
        except (OSError, ValueError):
            return None
        if not isinstance(before, dict) or "labelsure" not in before:
            return None
        changed = next((key for key in now if before.get(key) != now[key]), None)
        if changed != "settings" or not isinstance(before.get(changed), dict):
            return "" if changed is None else WORDS[changed]
        was, values = before["settings"], now["settings"]
        names = [name for name in values if values[name] != was.get(name)]
        told = ", ".join(f"{name} was {was.get(name)}, is {values[name]}" for name in names)
        return f"{WORDS[changed]} ({told})"

    @contextmanager
    def locked(self, manifest: Mapping[str, Any], *, overwrite: bool) -> Iterator[None]:
        """Keep the place for this process, with the parts of the same run and no others."""
        old = f"{self.out}.old"
        if overwrite and self.keeps_parts and not self.is_remote and self.find_change(manifest):
            self.place = str(Path(f"{self.out}.parts").absolute())  # the old parts stay until then
            if Path(old).exists():
                raise _already_exists(old)
        if self.find_change(manifest) is None and set(self.list()) - {LOCK, OWNER}:
            raise InputError(
                f"The folder {self.place!r} must be new or empty, or hold parts of the same run; "
                "it holds something else. Choose another name for the output."
            )
        if self.is_remote:  # stores have no locks, and nothing can be renamed
            self._prepare(manifest, overwrite)
            yield
            return
        self._check_out(manifest, overwrite)
        folder = Path(self.place)
        make_folder(folder, "The folder of the parts")
        with hold_folder(folder, "the folder of the parts"):
            for name in ("", NOTES):
                remove_leftovers(folder / name)
            self._prepare(manifest, overwrite)
            try:
                yield
            except BaseException:
                if not any(folder.glob(f"{NOTES}/*")):  # nothing to go on with
                    self._clear()
                raise
        if not self.keeps_parts:
            self._clear()
        elif self.place != str(Path(self.out).absolute()):
            self._replace(Path(old))

    def _check_out(self, manifest: Mapping[str, Any], overwrite: bool) -> None:
        """Refuse to replace what is no part of the same run."""
        out, is_begun = Path(self.out), self.find_change(manifest) is not None
        if self.keeps_parts and out.is_file():
            raise InputError(
                f"The output {self.out!r} has no suffix and must be a folder, it is a file. "
                "Choose another name."
            )
        if not self.keeps_parts and (
            out.is_dir() or (out.exists() and not overwrite and not is_begun)
        ):
            raise _already_exists(self.out)

    def _prepare(self, manifest: Mapping[str, Any], overwrite: bool) -> None:
        """Refuse to mix parts of different runs, or remove those of the other one."""
        change = self.find_change(manifest)
        if change and not overwrite:
            raise InputError(
                f"The folder {self.place!r} holds parts of another run: other {change}. Run the "
                "same command as before to go on with it, choose another name for the output, or "
                "say `overwrite` to begin again."
            )
        for name in filter(PART.fullmatch, self.list() if change else []):
            self.remove(name)
        self.put(MANIFEST, (json.dumps(manifest, indent=1) + "\n").encode())

    def _clear(self) -> None:
        """Remove the folder with all that a run writes into it, and nothing else."""
        folder = Path(self.place)
        shutil.rmtree(folder / NOTES, ignore_errors=True)
        for name in sorted(self.list(), key=lambda name: name == MANIFEST):  # the mark at last
            if name in OWN_NAMES or PART.fullmatch(name):
                (folder / name).unlink(missing_ok=True)
        with suppress(OSError):  # something else is in it
            folder.rmdir()

    def _replace(self, old: Path) -> None:
        """Put the new folder in the place of the old one; what is not ours moves along."""
        out = Path(self.out)
        os.rename(out, old)
        os.rename(self.place, out)
        self.place = str(old.absolute())
        self._clear()
        for entry in list(old.iterdir()) if old.is_dir() else []:
            if not (out / entry.name).exists():
                os.rename(entry, out / entry.name)
        with suppress(OSError):
            old.rmdir()
        self.place = str(out.absolute())

    def check_bad_rows(self, path: Path, *, overwrite: bool) -> None:
        """Refuse to replace a file of bad rows that this run has not written."""
        name = str(path.absolute()).encode()
        try:
            is_own = self.get(BAD_ROWS) == name
        except OSError:
            is_own = False
        if path.exists() and not (is_stream(path) or is_own or overwrite):
            raise _already_exists(str(path))
        self.put(BAD_ROWS, name)


def _already_exists(path: str) -> InputError:
    return InputError(
        f"{path!r} exists already. Choose another name, or say `overwrite` to replace a file."
    )


# Formats

NAME_SEPARATOR = ";"
"""Between the names of labels in CSV, which has no lists."""

SEPARATORS = {".csv": ",", ".tsv": "\t"}
FORMATS = (*SEPARATORS, ".jsonl", ".parquet")

GROUP_ROWS = 100_000
"""Rows of a row group at least: readers of Parquet are slow with many small ones."""

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
"""With what texts begin that spreadsheets take for formulas."""


def check_suffix(suffix: str) -> str:
    """Return the suffix of an output file if it is one that can be written."""
    if suffix.lower() not in FORMATS:
        raise unknown_name("format of predictions", suffix, FORMATS)
    return suffix.lower()


def encode_table(
    table: pa.Table,
    suffix: str,
    *,
    sep: str = NAME_SEPARATOR,
    csv_sep: str = "",
    spreadsheet_safe: bool = False,
) -> bytes:
    """Return a table of predictions as the content of a file."""
    content = BytesIO()
    if suffix == ".parquet":
        import pyarrow.parquet as pq

        pq.write_table(table, content)
    elif suffix == ".jsonl":
        for record in table.to_pylist():
            line = json.dumps(record, ensure_ascii=False, allow_nan=False)
            content.write(f"{line}\n".encode())
    else:
        frame = arrow_to_frame(_join_names(table, sep), "the predictions")
        if spreadsheet_safe:
            frame = _escape_formulas(frame)
        return _encode_csv(frame, csv_sep or SEPARATORS[suffix])
    return content.getvalue()


def _encode_csv(frame: pd.DataFrame, sep: str) -> bytes:
    text = StringIO(newline="")
    # Values with a carriage return are quoted where the end of a line has one.
    lines: Any = _UnixLines(text)
    frame.to_csv(lines, index=False, sep=sep, lineterminator="\r\n")
    return text.getvalue().encode()


class _UnixLines:
    """Writes rows that end in CR LF with LF alone."""

    def __init__(self, file: StringIO) -> None:
        self._file = file

    def write(self, row: str) -> None:
        """Write one row, as `csv` passes it."""
        self._file.write(row.removesuffix("\r\n") + "\n")


def _join_names(table: pa.Table, sep: str) -> pa.Table:
    import pyarrow as pa
    import pyarrow.compute as pc

    for place, field in enumerate(table.schema):
        if pa.types.is_list(field.type):
            joined = pc.binary_join(table.column(place), sep)
            table = table.set_column(place, field.name, joined)
    return table


def _escape_formulas(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table with an apostrophe before such texts, also in the header."""

    def escape(value: Any) -> Any:
        return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA_STARTS) else value

    escaped = {
        name: column if column.dtype.kind in "iufb" else column.map(escape)
        for name, column in table.items()
    }
    return type(table)(escaped).rename(columns=escape)


def join_parts(contents: Iterable[bytes], suffix: str, file: IO[bytes], csv_sep: str = "") -> None:
    """Write the parts of a run as one file, with one of them in memory at a time."""
    if suffix == ".parquet":
        _join_parquet(contents, file)
        return
    header = b""
    for content in contents:
        if suffix in SEPARATORS and not header:
            header = _read_header(content, csv_sep or SEPARATORS[suffix])
            file.write(header)
        file.write(content[len(header) :])


def _read_header(content: bytes, sep: str) -> bytes:
    """Return the bytes of the header, in which names may hold line breaks."""
    import pandas as pd

    columns = pd.read_csv(BytesIO(content), sep=sep, nrows=0).columns
    return _encode_csv(pd.DataFrame(columns=columns), sep)


def _join_parquet(contents: Iterable[bytes], file: IO[bytes]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    writer, group = None, []
    for content in contents:
        group.append(pq.read_table(BytesIO(content)))
        writer = writer or pq.ParquetWriter(file, group[0].schema)
        if sum(map(len, group)) >= GROUP_ROWS:
            writer.write_table(pa.concat_tables(group))
            group = []
    if writer is not None:
        if group:
            writer.write_table(pa.concat_tables(group))
        writer.close()


def plain_records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows as dictionaries that JSON can hold; what is missing is None.

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
