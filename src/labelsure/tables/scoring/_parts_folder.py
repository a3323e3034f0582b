"""The folder of a scoring run: finished parts, what is known of them, and what made them."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from labelsure._runtime.folder_locks import LOCK, OWNER, hold_folder, make_folder
from labelsure._runtime.storage import is_stream, remove_leftovers, write_text
from labelsure.errors import InputError

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
