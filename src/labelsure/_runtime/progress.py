"""One progress bar for all long work: after two seconds on terminals, else a line a minute."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import count
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from rich.progress import Progress

QUIET_VARIABLE = "LABELSURE_QUIET"
SECONDS_BEFORE = 2.0
SECONDS_BETWEEN_LINES = 60.0


class ProgressBar:
    """A bar on stderr that appears once the work takes longer than two seconds.

    It is not drawn where the variable `LABELSURE_QUIET` is set, nor within another bar: two of them
    would overwrite each other.

    Parameters
    ----------
    title
        Noun in the plural of the counted units.
    quiet
        Draw and print nothing.
    logs
        Print a line a minute where stderr is no terminal.
    """

    _is_drawn = False  # whether any bar is drawn

    def __init__(self, title: str, *, quiet: bool = False, logs: bool = False) -> None:
        self._title, self._logs = title, logs
        self._bar: Progress | None = None
        self._quiet, self._draws = quiet, not (quiet or os.environ.get(QUIET_VARIABLE))
        self._began = self._printed = time.monotonic()

    def __call__(self, n_done: int, n_all: int | None) -> None:
        """Draw or print the progress; `n_all` is None where the total is unknown."""
        now = time.monotonic()
        if not self._draws:
            return
        if not sys.stderr.isatty():
            if self._logs and now - self._printed >= SECONDS_BETWEEN_LINES:
                self._printed = now
                of_all = "" if n_all is None else f" of {n_all:,}"
                print(f"{n_done:,}{of_all} {self._title}", file=sys.stderr, flush=True)
            return
        if self._bar is None and now - self._began >= SECONDS_BEFORE and not ProgressBar._is_drawn:
            self._start()
        if self._bar is not None:
            self._bar.update(self._task, completed=n_done, total=n_all)

    def _start(self) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
        )

        columns = (BarColumn(), MofNCompleteColumn(), TextColumn(self._title))
        console = Console(stderr=True)
        # Other output appears above the bar, which is removed at the end.
        self._bar = Progress(*columns, TimeRemainingColumn(), console=console, transient=True)
        self._task = self._bar.add_task(self._title)
        self._bar.start()
        ProgressBar._is_drawn = True

    def note(self, text: str) -> None:
        """Print a line, above the bar."""
        if not self._quiet:
            print(text, file=sys.stderr, flush=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar, ProgressBar._is_drawn = None, False


_note_fitted: ContextVar[Callable[[], object] | None] = ContextVar("note_fitted", default=None)


@contextmanager
def count_fitted(n_all: int | None) -> Iterator[None]:
    """Draw how many of `n_all` base learners are fitted within, in this process."""
    numbers = count(1)
    with ProgressBar("base learners") as bar:
        token = _note_fitted.set(lambda: bar(next(numbers), n_all))
        try:
            yield
        finally:
            _note_fitted.reset(token)


def note_fitted() -> None:
    """Count one more base learner, if `count_fitted` draws them."""
    if note := _note_fitted.get():
        note()
