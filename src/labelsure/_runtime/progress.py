"""A progress bar for long work in Python: after two seconds, on terminals only."""

from __future__ import annotations

import os
import sys
import time
from typing import Any, Self

QUIET_VARIABLE = "LABELSURE_QUIET"
SECONDS_BEFORE = 2.0


class LateBar:
    """A bar on stderr that appears once the work takes longer than two seconds.

    It is silent where stderr is no terminal, or where the variable `LABELSURE_QUIET` is set.

    Parameters
    ----------
    title
        What is counted.
    """

    def __init__(self, title: str) -> None:
        self._title = title
        self._bar: Any = None
        self._began = time.monotonic()
        self._is_silent = not sys.stderr.isatty() or bool(os.environ.get(QUIET_VARIABLE))

    def __call__(self, n_done: int, n_all: int) -> None:
        """Draw how far the work is."""
        if self._is_silent or time.monotonic() - self._began < SECONDS_BEFORE:
            return
        if self._bar is None:
            from rich.console import Console
            from rich.progress import Progress

            self._bar = Progress(console=Console(stderr=True), transient=True)
            self._task = self._bar.add_task(self._title)
            self._bar.start()
        self._bar.update(self._task, completed=n_done, total=n_all)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.stop()
