"""What commands say to the terminal: exit codes, and text as it is."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from labelsure.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

STDOUT = "-"
"""What stands for standard output where a file is asked for."""

FINE = 0
CHECK_FAILED = 1
WRONG_INPUT = 2
CELLS_FAILED = 3
BROKEN = 70  # of the program itself; what systems call an internal software error
INTERRUPTED = 130


def make_console(*, stderr: bool = False, quiet: bool = False) -> Console:
    """Return a console that prints text as it is: names may hold what rich takes for markup.

    Parameters
    ----------
    stderr
        Print there instead of stdout.
    quiet
        Print nothing.
    """
    from rich.console import Console

    return Console(
        stderr=stderr, quiet=quiet, markup=False, emoji=False, highlight=False, soft_wrap=True
    )


def open_stdout(out: str | Path) -> Path:
    """Return the path of an output, which is that of standard output for "-".

    Parameters
    ----------
    out
        As the user gives it.
    """
    return Path("/dev/stdout" if str(out) == STDOUT else out)


def refuse_stdout(out: Path) -> Path:
    """Return the path of an output, unless that is "-": what is written there is no text.

    Parameters
    ----------
    out
        As the user gives it.
    """
    if str(out) == STDOUT:
        raise InputError(
            "The output must be a file or a folder, got '-': this format cannot be written to "
            "standard output. Choose a name."
        )
    return out


@contextmanager
def print_notes(quiet: bool) -> Iterator[None]:
    """Print warnings as one line each on stderr at the end.

    Parameters
    ----------
    quiet
        Print none.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for text in [] if quiet else dict.fromkeys(str(entry.message) for entry in caught):
        print(f"Note: {on_one_line(text)}", file=sys.stderr)


def on_one_line(text: str) -> str:
    r"""Return text without line breaks and other characters that terminals do not print.

    Examples
    --------
    >>> print(on_one_line("two\nlines"))
    two\nlines
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
