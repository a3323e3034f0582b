"""What commands say to the terminal: exit codes, and the progress of cells on stderr."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Self

from labelsure._storage import first_line

if TYPE_CHECKING:
    from rich.console import Console

    from labelsure.study import CellEvent

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


def on_one_line(text: str) -> str:
    r"""Return text without line breaks and other characters that terminals do not print.

    Examples
    --------
    >>> print(on_one_line("two\nlines"))
    two\nlines
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


class CellLines:
    """Draws what `run_study` reports.

    Parameters
    ----------
    quiet
        Draw nothing.
    """

    def __init__(self, quiet: bool = False) -> None:
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
        )

        self._console = make_console(stderr=True, quiet=quiet)
        self._bar = Progress(
            TextColumn("cells"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=self._console,
            transient=True,
            disable=quiet or not self._console.is_terminal,
        )
        self._task = self._bar.add_task("cells", total=None)
        self._n_kept = 0

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.stop()

    def __call__(self, event: CellEvent) -> None:
        """Draw one event; kept cells only count, and get one line together."""
        self._bar.update(self._task, total=event.n_cells, completed=event.n_finished)
        if event.state == "kept":
            self._n_kept += 1
            if event.n_finished < event.n_cells:
                return
        self._print_kept()
        if event.state != "kept":
            self._console.print(_line(event))

    def note(self, text: str) -> None:
        """Print what happens beside the cells."""
        self._console.print(text)

    def _print_kept(self) -> None:
        if self._n_kept:
            self._console.print(f"{self._n_kept} cells kept from an earlier run")
            self._n_kept = 0


def _line(event: CellEvent) -> str:
    width = len(str(event.n_cells))
    head = f"[{event.n_finished:>{width}}/{event.n_cells}] {event.cell} {event.seconds:.1f} s"
    return f"{head} FAILED: {first_line(event.message)}" if event.state == "failed" else head


class InstanceBar:
    """Draws how many instances the distributions that are computed within have finished.

    Only where that takes a while, and on a terminal: it is gone when they are finished.

    Parameters
    ----------
    quiet
        Draw nothing.
    """

    def __init__(self, quiet: bool = False) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        from labelsure._kernels.progress import watch_progress  # helps of commands need no numpy

        console = make_console(stderr=True, quiet=quiet)
        self._bar = Progress(
            TextColumn("instances"),
            BarColumn(),
            MofNCompleteColumn(),
            console=console,
            transient=True,
            disable=quiet or not console.is_terminal,
        )
        self._task = self._bar.add_task("instances", total=None, visible=False)
        self._watch = watch_progress(self)

    def __enter__(self) -> Self:
        self._bar.start()
        self._watch.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._watch.__exit__(kind, error, trace)
        self._bar.stop()

    def __call__(self, n_done: int, n_all: int) -> None:
        """Draw where a question stands that is answered in several steps."""
        shown = n_done < n_all or self._bar.tasks[self._task].visible
        self._bar.update(self._task, completed=n_done, total=n_all, visible=shown)
