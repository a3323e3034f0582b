"""What made a file, noted beside it, so that the same command again has nothing to do."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from labelsure._runtime.storage import expand_path, file_of, is_stream, write_text
from labelsure._runtime.typing import AnyPath
from labelsure.errors import InputError


class FinishedOutput:
    """The one rule for files that commands write.

    A file that the same inputs and settings have made is finished: nothing is left to do. Any other
    file is replaced on request only.

    Parameters
    ----------
    output
        The file; devices and pipes are never finished.
    made_from
        All that it depends on, as JSON can write it; anything else by its text.

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
        self.path = expand_path(output)
        self._made_from = json.loads(json.dumps(made_from, default=str))

    def find(self, *, overwrite: bool) -> dict[str, Any] | None:
        """Return what was noted of the finished file; None where there is something to do.

        Parameters
        ----------
        overwrite
            Whether a file that is there may be replaced, whatever made it.
        """
        if overwrite or is_stream(self.path) or not self.path.exists():
            return None
        noted = self._read()
        if noted is not None and noted.get("made_from") == self._made_from:
            found: dict[str, Any] = noted["found"]
            return found
        why = "" if noted is None else ", made from other inputs or settings"
        raise InputError(
            f"{str(self.path)!r} exists already{why}. Choose another name, or say `overwrite` to "
            "replace a file."
        )

    def note(self, found: Mapping[str, Any]) -> None:
        """Note that the file is finished.

        Parameters
        ----------
        found
            What to say of it next time.
        """
        if not is_stream(self.path):
            noted = {"output": self._state(), "made_from": self._made_from, "found": dict(found)}
            write_text(self._note, json.dumps(noted, indent=1) + "\n")

    @property
    def _note(self) -> Path:
        real = Path(os.path.realpath(self.path))
        return real.with_name(f".{real.name}.labelsure.json")

    def _state(self) -> list[int]:
        """Return the size and the time of the file, by which a changed one is noticed."""
        state = self.path.stat()
        return [state.st_size, state.st_mtime_ns]

    def _read(self) -> dict[str, Any] | None:
        """Return the note of the file as it is; None where there is none."""
        try:
            noted = json.loads(self._note.read_text(encoding="utf-8"))
            is_whole = isinstance(noted["found"], dict) and noted["output"] == self._state()
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return noted if is_whole else None


def describe_files(inputs: Iterable[AnyPath]) -> list[list[Any]]:
    """Return name, size and time of each file, by which a changed one is noticed.

    Parameters
    ----------
    inputs
        Files, and folders whose files count; ``data.npz:scores`` is the file ``data.npz``.
    """
    described: list[list[Any]] = []
    for given in inputs:
        path = expand_path(file_of(str(given)))
        inside = sorted(path.rglob("[!._]*")) if path.is_dir() else [path]
        for file in inside:
            if file.is_file():
                state = file.stat()
                described.append([str(given), str(file), state.st_size, state.st_mtime_ns])
    return described
