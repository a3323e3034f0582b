"""What commands say to the terminal: exit codes, and the progress of cells on stderr."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from labelsure.study import CellEvent

FINE = 0
CHECK_FAILED = 1
WRONG_INPUT = 2
CELLS_FAILED = 3
INTERRUPTED = 130


class CellLines:
    """Draws what `run_study` reports.

    Parameters
    ----------
    quiet
        Draw nothing.
    """

    def __init__(self, quiet: bool = False) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
        )

        self._console = Console(stderr=True, quiet=quiet, highlight=False, soft_wrap=True)
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
            self._console.print(_line(event), markup=False)

    def note(self, text: str) -> None:
        """Print what happens beside the cells."""
        self._console.print(text, markup=False)

    def _print_kept(self) -> None:
        if self._n_kept:
            self._console.print(f"{self._n_kept} cells kept from an earlier run")
            self._n_kept = 0


def _line(event: CellEvent) -> str:
    width = len(str(event.n_cells))
    head = f"[{event.n_finished:>{width}}/{event.n_cells}] {event.cell} {event.seconds:.1f} s"
    reason = event.message.splitlines()[0] if event.message else ""
    return f"{head} FAILED: {reason}" if event.state == "failed" else head
