"""What commands say to the terminal: exit codes, text as it is, and how far a command is."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from labelsure._runtime.storage import first_line
from labelsure.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import ProgressColumn

    from labelsure.study.run import CellEvent
    from labelsure.tables.scoring import PartEvent

STDOUT = "-"
"""What stands for standard output where a file is asked for."""

FINE = 0
CHECK_FAILED = 1
WRONG_INPUT = 2
CELLS_FAILED = 3
BROKEN = 70  # of the program itself; what systems call an internal software error
INTERRUPTED = 130
NO_READER = 141  # what shells say of a program that a closed pipe has ended

MIN_WIDTH = 80
"""Characters of a table at least: in fewer its values would be gone."""

SECONDS_BETWEEN_LINES = 60.0
"""Without a terminal, a long run prints how far it is once a minute."""


def make_console(*, stderr: bool = False, quiet: bool = False) -> Console:
    """Return a console that prints text as it is: names may hold what rich takes for markup."""
    from rich.console import Console

    console = Console(
        stderr=stderr, quiet=quiet, markup=False, emoji=False, highlight=False, soft_wrap=True
    )
    if not stderr:
        console.width = max(console.width, MIN_WIDTH)
    return console


def open_stdout(out: str | Path) -> Path:
    """Return the path of an output, which is that of standard output for "-"."""
    return Path("/dev/stdout" if str(out) == STDOUT else out)


def refuse_stdout(out: Path) -> Path:
    """Return the path of an output, unless that is "-": what is written there is no text."""
    if str(out) == STDOUT:
        raise InputError(
            "The output must be a file or a folder, got '-': this format cannot be written to "
            "standard output. Choose a name."
        )
    return out


@contextmanager
def print_notes(quiet: bool) -> Iterator[None]:
    """Print warnings as one line each on stderr at the end, unless quiet."""
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


class ProgressBar:
    """A bar on stderr that counts things as they are finished; a line a minute elsewhere.

    Parameters
    ----------
    title
        What is counted.
    *columns
        What stands behind the count.
    quiet
        Draw and print nothing.
    **settings
        Of the task that `rich` shows.
    """

    def __init__(self, title: str, *columns: ProgressColumn, quiet: bool, **settings: Any) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        self._console = make_console(stderr=True, quiet=quiet)
        self._title, self._printed = title, time.monotonic()
        self._bar = Progress(
            TextColumn(title),
            BarColumn(),
            MofNCompleteColumn(),
            *columns,
            console=self._console,
            transient=True,
            disable=quiet or not self._console.is_terminal,
        )
        self._task = self._bar.add_task(title, total=None, **settings)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *error: Any) -> None:
        self._bar.stop()

    def _update(self, n_finished: int, n_all: int, **settings: Any) -> None:
        self._bar.update(self._task, completed=n_finished, total=n_all, **settings)
        now = time.monotonic()
        if not self._console.is_terminal and now - self._printed >= SECONDS_BETWEEN_LINES:
            self._printed = now
            self._console.print(f"{n_finished:,} of {n_all:,} {self._title}")


class CellLines(ProgressBar):
    """Draws what `run_study` reports."""

    def __init__(self, quiet: bool = False) -> None:
        from rich.progress import TimeElapsedColumn

        super().__init__("cells", TimeElapsedColumn(), quiet=quiet)
        self._n_kept = 0

    def __call__(self, event: CellEvent) -> None:
        """Draw one event; kept cells only count, and get one line together."""
        self._update(event.n_finished, event.n_cells)
        if event.state == "kept":
            self._n_kept += 1
            if event.n_finished < event.n_cells:
                return
        if self._n_kept:
            self.note(f"{self._n_kept} cells kept from an earlier run")
            self._n_kept = 0
        if event.state != "kept":
            width = len(str(event.n_cells))
            counted = f"[{event.n_finished:>{width}}/{event.n_cells}]"
            failed = f" FAILED: {first_line(event.message)}" if event.state == "failed" else ""
            self.note(f"{counted} {event.cell} {event.seconds:.1f} s{failed}")

    def note(self, text: str) -> None:
        """Print what happens beside the cells."""
        self._console.print(text)


class RowLines(ProgressBar):
    """Draws how many rows are finished, how fast, and how long it will take."""

    def __init__(self, quiet: bool = False) -> None:
        from rich.progress import TextColumn, TimeRemainingColumn

        rate = TextColumn("{task.fields[rate]}")
        super().__init__("rows", rate, TimeRemainingColumn(), quiet=quiet, rate="")
        self._n_kept = 0

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        if self._n_kept:
            self._console.print(f"{self._n_kept:,} rows kept from an earlier run")

    def __call__(self, event: PartEvent) -> None:
        """Draw one event; why a part failed is said when the run ends."""
        if event.state == "kept":
            self._n_kept += event.n_rows
        speed = self._bar.tasks[0].speed
        rate = f"{speed:,.0f} a second" if speed else ""
        self._update(event.n_finished, event.n_total, rate=rate)


class InstanceBar(ProgressBar):
    """Draws how many instances the distributions that are computed within have finished.

    Only where that takes a while: it is gone when they are finished.
    """

    def __init__(self, quiet: bool = False) -> None:
        from labelsure._kernels.threads import watch_progress  # helps of commands need no numpy

        super().__init__("instances", quiet=quiet, visible=False)
        self._watch = watch_progress(self)

    def __enter__(self) -> Self:
        self._watch.__enter__()
        return super().__enter__()

    def __exit__(self, *error: Any) -> None:
        self._watch.__exit__(*error)
        super().__exit__(*error)

    def __call__(self, n_done: int, n_all: int) -> None:
        """Draw where a question stands that is answered in several steps."""
        shown = n_done < n_all or self._bar.tasks[self._task].visible
        self._update(n_done, n_all, visible=shown)
