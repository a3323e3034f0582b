"""Files that are there as a whole or not at all."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

TEMPORARY = ".*.tmp"
"""What files that are being written match; a killed process leaves them behind."""


def write_whole(path: Path, write: Callable[[Path], Any]) -> None:
    """Write a file beside its place, and put it there once it is whole and on disk.

    Parameters
    ----------
    path
        Where the file will be; one that is there stays until the new one takes its place.
    write
        Called with the path to write to.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}.tmp")
    try:
        write(temporary)
        with open(temporary, "rb") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


def write_text(path: Path, text: str) -> None:
    """Write a text file in UTF-8, as a whole."""
    write_whole(path, lambda temporary: temporary.write_text(text, encoding="utf-8"))
