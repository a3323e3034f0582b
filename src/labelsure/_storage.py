"""Files: read as bytes, written as a whole, and how saved models name their classes."""

from __future__ import annotations

import bz2
import gzip
import os
import re
import sys
import threading
import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from hashlib import sha256
from pathlib import Path
from typing import Any

from labelsure.errors import DataError

_TEMPORARY = re.compile(r"\..+\.[0-9]+-[0-9]+\.labelsure-tmp", re.DOTALL)
"""Names of files that are being written: the file, the process and its thread."""


def write_whole(path: Path, write: Callable[[Path], Any]) -> None:
    """Write to a temporary file beside the path, and rename it once it is whole and on disk.

    Parameters
    ----------
    path
        Where the file will be; one that is there stays until the new one takes its place.
    write
        Called with the path to write to.
    """
    writer = f"{os.getpid()}-{threading.get_ident()}"
    temporary = path.with_name(f".{path.name}.{writer}.labelsure-tmp")
    try:
        write(temporary)
        with open(temporary, "rb") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


def remove_leftovers(folder: Path) -> None:
    """Remove what processes that were killed had begun to write into a folder, and nothing else.

    Parameters
    ----------
    folder
        In which no other process writes now. Folders inside of it are left alone, and so is what a
        link leads to.
    """
    if folder.is_symlink() or not folder.is_dir():
        return
    for path in folder.iterdir():
        if _TEMPORARY.fullmatch(path.name) and path.is_file() and not path.is_symlink():
            path.unlink()


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


@dataclass(frozen=True)
class Compression:
    """How a kind of compressed file begins, and how it is opened."""

    magic: bytes
    decompress: Callable[[bytes], bytes]


COMPRESSIONS = {
    ".gz": Compression(b"\x1f\x8b", gzip.decompress),
    ".bz2": Compression(b"BZh", bz2.decompress),
}


def read_bytes(path: Path, n_bytes: int = -1) -> bytes:
    """Return the content of a file as it is on disk, or no more than the first bytes of it."""
    try:
        with open(path, "rb") as file:
            return file.read(n_bytes)
    except FileNotFoundError as error:
        raise DataError(f"There is no file {str(path)!r}.{_suggest_name(path)}") from error
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        reason = getattr(error, "strerror", None) or error
        raise DataError(f"The file {str(path)!r} cannot be read: {reason}.") from error


def _suggest_name(path: Path) -> str:
    try:
        names = [entry.name for entry in path.parent.iterdir()]
    except OSError:
        return f" The folder {str(path.parent)!r} cannot be read either."
    near = get_close_matches(path.name, names, n=1)
    return f" Did you mean {near[0]!r}?" if near else " Check the name and the folder."


def decompress(content: bytes, path: Path) -> bytes:
    """Return what is in a .gz or .bz2 file; other content as it is.

    Parameters
    ----------
    content
        The bytes of the file.
    path
        Its name, which says how it should be compressed.
    """
    for suffix, compression in COMPRESSIONS.items():
        if content.startswith(compression.magic):
            break
        if path.suffix.lower() == suffix:
            raise DataError(
                f"The file {path.name!r} must be a {suffix} file as its name says, but it does "
                "not begin like one. Fetch it again, or rename it."
            )
    else:
        return content
    try:
        return compression.decompress(content)
    except (EOFError, OSError, ValueError, zlib.error) as error:
        raise DataError(
            f"The compressed file {path.name!r} is damaged or cut off ({first_line(error)}). "
            "Fetch it again."
        ) from error


def decode(content: bytes) -> str:
    """Return text that is UTF-8, or else Latin-1, in which the field's older files are written."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("latin-1")


def first_line(error: object) -> str:
    """Return the first line of another library's message, without its full stop."""
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".") if lines else type(error).__name__


def suffix_of(path: Path) -> str:
    """Return the suffix that says the format, without that of the compression."""
    inner = path.with_suffix("") if path.suffix.lower() in COMPRESSIONS else path
    return inner.suffix.lower()


def stem_of(path: Path) -> str:
    """Return the name without any of the suffixes that say format and compression."""
    inner = path.with_suffix("") if path.suffix.lower() in COMPRESSIONS else path
    return inner.stem


def checksum_bytes(content: bytes) -> str:
    """Return the SHA-256 of some bytes."""
    return sha256(content).hexdigest()
