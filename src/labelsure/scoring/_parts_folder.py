"""The folder of a scoring run: finished parts, what is known of them, and what made them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from labelsure._folder_locks import LOCK, OWNER, hold_folder, make_folder
from labelsure._storage import remove_leftovers, write_text
from labelsure.errors import InputError

MANIFEST, NOTES = "_manifest.json", "_notes"
"""Names that begin with an underscore are no data to whoever reads a folder of parts."""

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
        self.path = out if keeps_parts else out.with_name(f"{out.name}.parts")
        self.notes = self.path / NOTES

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
                    self._remove()
                raise
        if not self.keeps_parts:
            self._remove()

    def _remove(self) -> None:
        """Remove the folder with all that a run writes into it, and nothing else."""
        shutil.rmtree(self.notes)
        names = [MANIFEST, LOCK, OWNER]
        for path in (*self.path.glob("part-*"), *(self.path / name for name in names)):
            path.unlink(missing_ok=True)
        with suppress(OSError):  # something else is in it
            self.path.rmdir()

    def _check_out(self, overwrite: bool) -> None:
        """Refuse to replace what is no part of the same run."""
        is_begun = (self.path / MANIFEST).is_file()
        if self.keeps_parts:
            is_taken = self.out.is_file() or (self.out.is_dir() and any(self.out.iterdir()))
            if is_taken and not is_begun:
                raise InputError(
                    f"The folder {str(self.out)!r} must be new or empty, or hold parts of the same "
                    "run; something else is there. Choose another name."
                )
        elif self.out.is_dir() or (self.out.exists() and not overwrite and not is_begun):
            raise InputError(
                f"{str(self.out)!r} is there already. Choose another name, or say `overwrite` to "
                "replace a file."
            )

    def _compare(self, manifest: dict[str, Any], overwrite: bool) -> None:
        """Refuse to mix parts of different runs, or remove those of the other one."""
        path = self.path / MANIFEST
        if not path.is_file():
            return
        try:
            before = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            before = {}
        now = json.loads(json.dumps(manifest))
        changed = [
            key for key in now if not isinstance(before, dict) or before.get(key) != now[key]
        ]
        if not changed:
            return
        if not overwrite:
            raise InputError(
                f"The folder {str(self.path)!r} holds parts of another run: other "
                f"{_describe_change(changed[0], before, now)}. Run the same command as before to "
                "go on with it, choose another name for the output, or say `overwrite` to begin "
                "again."
            )
        for old in (*self.path.glob("part-*"), *self.notes.glob("part-*")):
            old.unlink()


def _describe_change(key: str, before: Any, now: dict[str, Any]) -> str:
    words = WORDS[key]
    if key != "settings" or not isinstance(before, dict) or not isinstance(before.get(key), dict):
        return words
    names = [name for name in now[key] if now[key][name] != before[key].get(name)]
    told = ", ".join(f"{name} was {before[key].get(name)}, is {now[key][name]}" for name in names)
    return f"{words} ({told})" if names else words
