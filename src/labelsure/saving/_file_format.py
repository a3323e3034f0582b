"""The bytes of a saved model: a zip file whose entries are not compressed, and a checksum.

- `labelsure.json`, the first entry, says what the file holds and what wrote it.
- `schema.json` and the numbered entries are what skops makes of the model.
- The comment at the end of the zip file is the SHA-256 of everything before it, so that no damage
  goes unnoticed. It is no signature: whoever changes a file can also change its checksum, which is
  why a file with the right one is still checked node by node before anything is built.

As nothing is compressed, what is read takes as much memory as the file is long.
"""

from __future__ import annotations

import io
import json
import math
import re
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from labelsure._runtime.storage import checksum_bytes, first_line, read_bytes
from labelsure.errors import DataError

FORMAT = "labelsure"
FORMAT_VERSION = 1
"""Later ones keep the first entry and the checksum at the end, so that older versions can say what
is wrong."""

HEADER = "labelsure.json"
SCHEMA = "schema.json"
NUMBERED = re.compile(r"[0-9]{1,9}\.(npy|npz|bin)")
CHECKSUM = b"sha256:"
CHECKSUM_LENGTH = len(CHECKSUM) + 64
EARLIEST = (1980, 1, 1, 0, 0, 0)  # the date of every entry: the same model gives the same bytes

_BEGINNINGS = {
    b"PK": "a zip file of something else",
    b"\x80": "a pickle, which can run any code and is never opened",
    b"PAR1": "a Parquet file",
    b"{": "a JSON file",
}


@dataclass(frozen=True)
class ArrayKind:
    """What an entry says of the array that it holds.

    Parameters
    ----------
    shape
        As in numpy.
    dtype
        As in numpy; never of objects.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]


@dataclass(frozen=True)
class SavedFile:
    """The content of a saved model, of which nothing is built yet.

    Parameters
    ----------
    name
        Of the file, for messages.
    header
        What `labelsure.json` says.
    schema
        The nodes that skops would build.
    arrays
        For each array its shape and type.
    names
        Of the entries.
    content
        All bytes, which skops can open.
    """

    name: str
    header: dict[str, Any]
    schema: dict[str, Any]
    arrays: dict[str, ArrayKind]
    names: frozenset[str]
    content: bytes


def damaged(name: str, reason: object) -> DataError:
    """Build the error for a file that holds no model that could have been saved.

    Parameters
    ----------
    name
        Of the file.
    reason
        What is wrong, in a few words, or the error that said so.
    """
    text = first_line(reason)
    return DataError(
        f"The file {name!r} must be as `save` wrote it, but it is damaged or was changed: {text}. "
        "Copy it again, or save the model again."
    )


def join_entries(entries: dict[str, bytes]) -> bytes:
    """Return a zip file of these entries, not compressed, the same bytes for the same entries.

    Parameters
    ----------
    entries
        Their content by name, in the order in which they are written.
    """
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as file:
        for name, content in entries.items():
            file.writestr(zipfile.ZipInfo(name, EARLIEST), content)
    return buffer.getvalue()


def split_entries(content: bytes) -> dict[str, bytes]:
    """Return the entries of a zip file, or raise a ValueError where it is not as we write it.

    Parameters
    ----------
    content
        The bytes of the zip file.
    """
    entries: dict[str, bytes] = {}
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        listed = file.infolist()
        if any(entry.compress_type != zipfile.ZIP_STORED for entry in listed):
            raise ValueError("an entry is compressed, which no entry of a saved model is")
        if sum(entry.file_size for entry in listed) > len(content):
            raise ValueError("its entries are longer than the file")
        for entry in listed:
            if entry.filename in entries:
                raise ValueError(f"the entry {entry.filename!r} is there twice")
            entries[entry.filename] = file.read(entry)
    return entries


def seal(entries: dict[str, bytes]) -> bytes:
    """Return the bytes of a saved model: its entries and their checksum.

    Parameters
    ----------
    entries
        With `labelsure.json` as the first.
    """
    content = join_entries(entries)
    # The last two bytes of a zip file without a comment say how long the comment is.
    content = content[:-2] + CHECKSUM_LENGTH.to_bytes(2, "little")
    return content + CHECKSUM + checksum_bytes(content).encode("ascii")


def read_saved(path: Path) -> SavedFile:
    """Return the content of a saved model; refuse foreign, damaged and newer files.

    Parameters
    ----------
    path
        Of the file.
    """
    name = path.name
    _check_beginning(read_bytes(path, CHECKSUM_LENGTH), name)
    content = read_bytes(path)
    body, checksum = content[:-CHECKSUM_LENGTH], content[-CHECKSUM_LENGTH:]
    if checksum != CHECKSUM + checksum_bytes(body).encode("ascii"):
        raise damaged(name, "its content does not have the checksum at its end")
    try:
        entries = split_entries(content)
        header = _read_object(entries, HEADER)
    except Exception as error:  # whatever bytes there are, the file is to blame
        raise damaged(name, error) from error
    _check_header(header, name)
    try:
        arrays = _read_array_kinds(entries)
        schema = _read_object(entries, SCHEMA)
    except Exception as error:  # likewise
        raise damaged(name, error) from error
    return SavedFile(name, header, schema, arrays, frozenset(entries), content)


def _check_beginning(content: bytes, name: str) -> None:
    if content[30 : 30 + len(HEADER)] == HEADER.encode("ascii") and content.startswith(b"PK\x03"):
        return
    known = (what for start, what in _BEGINNINGS.items() if content.startswith(start))
    found = next(known, "something else") if content else "an empty file"
    raise DataError(
        f"The file {name!r} must be one that `save` of labelsure wrote, got {found}. Check the "
        "name; a model of another library is used by `labelsure.as_distribution`."
    )


def _read_object(entries: dict[str, bytes], entry: str) -> dict[str, Any]:
    found = json.loads(entries[entry])
    if not isinstance(found, dict):
        raise ValueError(f"the entry {entry!r} holds no names and values")
    return found


def _check_header(header: dict[str, Any], name: str) -> None:
    version = header.get("format_version")
    if header.get("format") != FORMAT or not isinstance(version, int) or version < 1:
        raise damaged(name, f"{HEADER!r} does not say which format it has")
    versions = header.get("versions")
    if not isinstance(versions, dict) or not all(isinstance(v, str) for v in versions.values()):
        raise damaged(name, f"{HEADER!r} does not say which versions wrote it")
    if version > FORMAT_VERSION:
        raise DataError(
            f"The file {name!r} must have format {FORMAT_VERSION} or an older one, got {version}: "
            f"it was written by labelsure {versions.get('labelsure', 'of a later version')}, this "
            f"is {current_version()}. Upgrade labelsure to load it."
        )


def current_version() -> str:
    """Return the version of labelsure that runs."""
    from importlib import import_module  # the package may be half imported when this module is

    version: str = import_module("labelsure").__version__
    return version


def _read_array_kinds(entries: dict[str, bytes]) -> dict[str, ArrayKind]:
    """Return the kinds of all arrays; refuse other entries, and arrays of another length."""
    arrays = {}
    for entry, content in entries.items():
        if entry in (HEADER, SCHEMA):
            continue
        if not NUMBERED.fullmatch(entry):
            raise ValueError(f"no saved model has an entry {entry!r}")
        if entry.endswith(".npy"):
            arrays[entry] = read_array_kind(content)
        if entry.endswith(".npz"):  # a sparse matrix: a zip file of arrays
            for part in split_entries(content).values():
                read_array_kind(part)
    return arrays


def read_array_kind(content: bytes) -> ArrayKind:
    """Return the shape and type of an array, or raise a ValueError where its length is another.

    numpy takes the memory for the shape that a file states before it reads the numbers.

    Parameters
    ----------
    content
        As `numpy.save` writes it.
    """
    stream = io.BytesIO(content)
    version = np.lib.format.read_magic(stream)
    readers = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    if version not in readers:
        raise ValueError("an array is in a format that is not known")
    shape, _, dtype = readers[version](stream)
    if dtype.hasobject:
        raise ValueError("an array holds objects")
    if math.prod(shape) * dtype.itemsize != len(content) - stream.tell():
        raise ValueError("an array does not have the length that it states")
    return ArrayKind(shape, dtype)
