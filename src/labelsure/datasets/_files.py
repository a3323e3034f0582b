"""Bytes of files, whether they are compressed or not."""

from __future__ import annotations

import bz2
import gzip
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from hashlib import sha256
from pathlib import Path

from labelsure.errors import DataError


@dataclass(frozen=True)
class Compression:
    """How a kind of compressed file begins, and how it is opened."""

    magic: bytes
    decompress: Callable[[bytes], bytes]


COMPRESSIONS = {
    ".gz": Compression(b"\x1f\x8b", gzip.decompress),
    ".bz2": Compression(b"BZh", bz2.decompress),
}


def read_bytes(path: Path) -> bytes:
    """Return the content of a file as it is on disk."""
    try:
        return path.read_bytes()
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
