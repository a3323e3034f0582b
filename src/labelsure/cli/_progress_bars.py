"""How far a command is, on stderr: a bar that is gone when it ends, lines for what stays."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from labelsure._runtime.storage import first_line
from labelsure.cli._console import make_console

if TYPE_CHECKING:
    from rich.progress import ProgressColumn

    from labelsure.study.run import CellEvent
    from labelsure.tables.scoring import UnitEvent


class ProgressBar:
    """A bar that counts things as they are finished; drawn on a terminal only.

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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.stop()

    def _update(self, n_finished: int, n_all: int, **settings: Any) -> None:
        self._bar.update(self._task, completed=n_finished, total=n_all, **settings)


class CellLines(ProgressBar):
    """Draws what `run_study` reports.

    Parameters
    ----------
    quiet
        Draw nothing.
    """

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


class RowLines(ProgressBar):
    """Draws how many rows are finished, how fast, and how long it will take.

    Parameters
    ----------
    quiet
        Draw nothing.
    """

    def __init__(self, quiet: bool = False) -> None:
        from rich.progress import TextColumn, TimeRemainingColumn

        rate = TextColumn("{task.fields[rate]}")
        super().__init__("rows", rate, TimeRemainingColumn(), quiet=quiet, rate="")
        self._n_kept = 0

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        super().__exit__(kind, error, trace)
        if self._n_kept:
            self._console.print(f"{self._n_kept:,} rows kept from an earlier run")

    def __call__(self, event: UnitEvent) -> None:
        """Draw one event; why a unit failed is said when the run ends."""
        if event.state == "kept":
            self._n_kept += event.n_rows
        speed = self._bar.tasks[0].speed
        rate = f"{speed:,.0f} a second" if speed else ""
        self._update(event.n_finished, event.n_total, rate=rate)


class InstanceBar(ProgressBar):
    """Draws how many instances the distributions that are computed within have finished.

    Only where that takes a while, and on a terminal: it is gone when they are finished.

    Parameters
    ----------
    quiet
        Draw nothing.
    """

    def __init__(self, quiet: bool = False) -> None:
        from labelsure._kernels.threads import watch_progress  # helps of commands need no numpy

        super().__init__("instances", quiet=quiet, visible=False)
        self._watch = watch_progress(self)

    def __enter__(self) -> Self:
        self._watch.__enter__()
        return super().__enter__()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._watch.__exit__(kind, error, trace)
        super().__exit__(kind, error, trace)

    def __call__(self, n_done: int, n_all: int) -> None:
        """Draw where a question stands that is answered in several steps."""
        shown = n_done < n_all or self._bar.tasks[self._task].visible
        self._update(n_done, n_all, visible=shown)
