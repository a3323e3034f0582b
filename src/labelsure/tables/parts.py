"""Predictions as files: the parts of a scoring run, and the formats of one file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

from labelsure._runtime.runs import LOCK, OWNER, PartStore, locked_folder
from labelsure.errors import InputError, unknown_name

if TYPE_CHECKING:
    import pyarrow as pa

MANIFEST = "_manifest.json"
"""File with the inputs and settings of a run, beside its parts. Readers of Parquet folders skip
names that begin with an underscore."""

PART = re.compile(r"part-[0-9]{5,}-[0-9]{5,}\.parquet")

WORDS = {
    "labelsure": "version of labelsure",
    "model": "model",
    "inputs": "input files, their sizes or times",
    "settings": "settings",
}
"""Names of the entries of a manifest in messages."""


class ScoredParts(PartStore):
    """Store of the parts of one scoring run, temporary if they are joined to one file at the end.

    Parameters
    ----------
    out
        The file that the parts will become, beside which their folder is; or the folder itself.
    keeps_parts
        Whether `out` is the folder.
    """

    def __init__(self, out: str, *, keeps_parts: bool) -> None:
        super().__init__(out if keeps_parts else f"{out}.parts")
        self.keeps_parts = keeps_parts

    def find_change(self, manifest: Mapping[str, object]) -> str | None:
        """First entry of the folder's manifest that differs, with old and new settings.

        "" if all are equal, None without a manifest.
        """
        try:
            old, new = json.loads(self.get(MANIFEST)), json.loads(json.dumps(manifest))
        except (OSError, ValueError):
            return None
        if not isinstance(old, dict) or "labelsure" not in old:
            return None
        changed = next((key for key in new if old.get(key) != new[key]), None)
        if changed != "settings" or not isinstance(old.get(changed), dict):
            return "" if changed is None else WORDS[changed]
        old, new = old["settings"], new["settings"]
        names = [name for name in new if new[name] != old.get(name)]
        shown = ", ".join(f"{name} was {old.get(name)}, is {new[name]}" for name in names)
        return f"{WORDS[changed]} ({shown})"

    @contextmanager
    def locked(self, manifest: Mapping[str, object], *, overwrite: bool) -> Iterator[None]:
        """Lock the folder for this process. Raises InputError for parts of another run."""
        folder = Path(self.place)
        if self.find_change(manifest) is None and (
            folder.is_file() or set(self.list()) - {LOCK, OWNER}
        ):
            raise InputError(
                f"The folder {self.place!r} must be new or empty, or hold parts of the same run; "
                "it holds something else. Choose another name for the output."
            )
        if self.is_remote:  # stores have no locks
            self._prepare(manifest, overwrite)
            yield
            return
        # Temporary parts are for their owner: the output may become readable by fewer than others.
        permissions = 0o777 if self.keeps_parts else 0o700
        with locked_folder(folder, "The folder of the parts", permissions=permissions):
            self._prepare(manifest, overwrite)
            try:
                yield
            except BaseException:
                if not any(map(PART.fullmatch, self.list())):  # nothing to go on with
                    self.clear()
                raise
        if not self.keeps_parts:
            self.clear()

    def _prepare(self, manifest: Mapping[str, object], overwrite: bool) -> None:
        """Write the manifest; refuse parts of another run, or remove them if `overwrite`."""
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

    def replace_by(self, other: ScoredParts) -> None:
        """Replace the parts by those of another folder, and remove that folder."""
        folder, source = Path(self.place), Path(other.place)
        with locked_folder(folder, "The folder of the parts"):
            permissions = folder.stat().st_mode & 0o777
            self.clear()
            folder.mkdir(permissions, exist_ok=True)
            for path in sorted(source.iterdir(), key=lambda path: path.name == MANIFEST):
                path.replace(folder / path.name)
        source.rmdir()

    def clear(self) -> None:
        """Remove the folder with all that a run writes into it, and nothing else."""
        folder = Path(self.place)
        for name in sorted(self.list(), key=lambda name: name == MANIFEST):  # last: it marks ours
            if name in (MANIFEST, LOCK, OWNER) or PART.fullmatch(name):
                self.remove(name)
        with suppress(OSError):  # something else is in it
            folder.rmdir()


# Formats

NAME_SEPARATOR = ";"
"""Separator of label names in a cell of CSV, which has no lists."""

SEPARATORS = {".csv": ",", ".tsv": "\t"}
FORMATS = (*SEPARATORS, ".jsonl", ".parquet")

GROUP_ROWS = 100_000
"""Minimum rows of a row group: readers of Parquet are slow with many small ones."""

FORMULA = r"^[\t\r\n]|^[\p{Cc}\p{Cf}\p{Z}]*[=+\-@﹢﹣﹦﹫＋－＝＠]"  # noqa: RUF001
"""Texts that spreadsheets compute: they skip invisible characters first, such as a byte order mark,
and take full-width and small forms of the operators."""


def check_suffix(suffix: str) -> str:
    """Suffix of an output file in small letters. Raises InputError for another format."""
    if suffix.lower() not in FORMATS:
        raise unknown_name("format of predictions", suffix, FORMATS)
    return suffix.lower()


def write_tables(
    tables: Iterable[pa.Table],
    suffix: str,
    file: IO[bytes],
    *,
    sep: str = NAME_SEPARATOR,
    csv_sep: str | None = None,
    spreadsheet_safe: bool = False,
) -> None:
    """Write tables of predictions as one file or into a pipe, each as soon as it comes."""
    from pyarrow.csv import CSVWriter, WriteOptions

    if suffix == ".parquet":
        _write_groups(tables, file)
        return
    writer = None
    for table in tables:
        if suffix == ".jsonl":
            for record in table.to_pylist():
                line = json.dumps(record, ensure_ascii=False, allow_nan=False)
                file.write(f"{line}\n".encode())
        else:
            text = _as_text(table, sep, spreadsheet_safe)
            if writer is None:
                options = WriteOptions(delimiter=csv_sep or SEPARATORS[suffix])
                writer = CSVWriter(file, text.schema, write_options=options)
            writer.write_table(text)
        file.flush()


def _write_groups(tables: Iterable[pa.Table], file: IO[bytes]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    writer, group = None, list[pa.Table]()
    for table in tables:
        writer = writer or pq.ParquetWriter(file, table.schema)
        group.append(table)
        if sum(map(len, group)) >= GROUP_ROWS:
            writer.write_table(pa.concat_tables(group))
            group = []
    if writer is not None:
        if group:
            writer.write_table(pa.concat_tables(group))
        writer.close()


def _as_text(table: pa.Table, sep: str, spreadsheet_safe: bool) -> pa.Table:
    """Table for CSV: label names joined to one text, formulas escaped."""
    import pyarrow as pa
    import pyarrow.compute as pc

    def escape(texts: object) -> pa.Array:
        is_formula = pc.match_substring_regex(texts, FORMULA)
        return pc.if_else(is_formula, pc.binary_join_element_wise("'", texts, ""), texts)

    columns = table.columns
    for place, field in enumerate(table.schema):
        if pa.types.is_list(field.type):
            columns[place] = pc.binary_join(columns[place], sep)
        if spreadsheet_safe and pa.types.is_string(columns[place].type):
            columns[place] = escape(columns[place])
    names = pa.array(table.column_names)
    return pa.table(columns, (escape(names) if spreadsheet_safe else names).to_pylist())
