"""Folders that one process at a time writes to."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile

from filelock import FileLock, Timeout

from labelsure._runtime.storage import write_text
from labelsure.errors import InputError

LOCK, OWNER = ".lock", ".owner"


def make_folder(folder: Path, what: str) -> None:
    """Make a folder that can be written to, or say why it cannot be used.

    Parameters
    ----------
    folder
        Its path.
    what
        What it is, for the message.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        TemporaryFile(dir=folder).close()
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        reason = getattr(error, "strerror", None) or error
        if isinstance(error, FileExistsError):
            reason = "Not a directory"  # which is what the system means
        raise InputError(
            f"{what} {str(folder)!r} cannot be written to ({reason}). Choose another one."
        ) from error


@contextmanager
def hold_folder(folder: Path, what: str) -> Iterator[None]:
    """Keep a folder for this process, or say who has it.

    The lock is the operating system's, which gives it up when a process ends, however it ends.

    Parameters
    ----------
    folder
        Which is there.
    what
        What it is, for messages.
    """
    lock = folder / LOCK
    if lock.is_symlink():
        raise InputError(
            f"The lock of {what}, {str(lock)!r}, must be a file, but it is a link to another "
            "place, where nothing must be locked or written. Remove it."
        )
    owner = folder / OWNER  # not in the file that is locked, which Windows would let nobody read
    holder = FileLock(lock, blocking=False)  # another run may take hours
    try:
        holder.acquire()
    except Timeout as error:
        name = owner.read_text().strip() if owner.is_file() else ""
        raise InputError(
            f"Another run (process {name or 'unknown'}) is at work in {str(folder)!r}. Wait until "
            "it ends, or choose another folder."
        ) from error
    try:
        write_text(owner, str(os.getpid()))
        yield
    finally:
        holder.release()
