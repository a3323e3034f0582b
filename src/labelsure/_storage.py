"""What is kept on disk: files that are there as a whole, and the names in saved models."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

TEMPORARY = ".*.tmp"
"""The pattern of files that are being written; a process that is killed leaves them behind."""


def write_whole(path: Path, write: Callable[[Path], Any]) -> None:
    """Write to a temporary file beside the path, and rename it once it is whole and on disk.

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


def name_classes_publicly(home: str) -> None:
    """Make public classes say that they live where users import them from.

    A saved model names its classes by their module. The public place outlives a file that is moved
    or renamed, and a private one would have to be trusted by whoever loads the model.

    Parameters
    ----------
    home
        The package or module that calls this as its last line. Its public classes are named after
        the root package if they are public there, otherwise after `home`.
    """
    module = sys.modules[home]
    root = home.partition(".")[0]
    for name in module.__all__:
        thing = getattr(module, name)
        if isinstance(thing, type) and thing.__module__.partition(".")[0] == root:
            thing.__module__ = root if name in sys.modules[root].__all__ else home
