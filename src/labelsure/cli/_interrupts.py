"""Signals that end a program: each of them interrupts the command, and none is lost."""

from __future__ import annotations

import _thread
import os
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, Self

from labelsure.cli._console import INTERRUPTED

SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")  # Windows has no SIGHUP
SECONDS_UNTIL_REPEATED = 2.0
SECONDS_UNTIL_RETRIED = 0.05
MAX_RETRIES = 100
"""An interrupt that did not end the command is raised again. One that comes while joblib makes or
ends its pool waits until that is done, five seconds at most."""

ENDING_POOL = (("joblib.parallel", "_abort"), ("joblib.parallel", "_terminate_and_reset"))


class Interrupts:
    """Turns the signals by which users and systems end a program into `KeyboardInterrupt`.

    The exception alone is not enough:

    - Python drops what is raised in a callback or a finalizer. It is raised again until `finish`.
    - A library may answer it by an exception of its own. `finish` says whether there was a signal.
    - A pool of processes that is interrupted while it is made leaves processes that nobody ends.
      That is delayed.
    - After the last line of the command, when Python itself ends, it would be printed and
      forgotten. From `finish` on a signal ends the process.

    Parameters
    ----------
    owner
        The function that asks `finish`; a signal that arrives in its own code is only noted.
    is_program
        Whether the process ends with the command.
    """

    def __init__(self, owner: Callable[..., Any], *, is_program: bool) -> None:
        self._code, self._is_program = owner.__code__, is_program
        self._is_requested = self._is_finished = False
        self._n_retries = 0
        self._repeat: threading.Timer | None = None
        self._kept: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is not threading.main_thread():
            return self  # only the main thread may set handlers
        self._hook, sys.unraisablehook = sys.unraisablehook, self._take_dropped
        usual = (signal.SIG_DFL, signal.default_int_handler)
        for number in (getattr(signal, name) for name in SIGNALS if hasattr(signal, name)):
            # One that is ignored stays so: `nohup` asks for that.
            if (handler := signal.getsignal(number)) in usual:
                self._kept[number] = handler
                signal.signal(number, self._interrupt)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._kept and not self._is_program:
            sys.unraisablehook = self._hook
            for number, handler in self._kept.items():
                signal.signal(number, handler)

    def finish(self) -> bool:
        """End what is left of the command; return whether a signal came while it ran."""
        self._is_finished = True
        if self._repeat is not None:
            self._repeat.cancel()
        if self._is_program and "joblib" in sys.modules:
            from labelsure._runtime.processes import end_workers  # which loads numpy

            end_workers()
        return self._is_requested

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        if self._is_finished:
            if self._is_program and not self._is_requested:
                os._exit(INTERRUPTED)
            return
        self._is_requested = True
        if frame is not None and frame.f_code is self._code:
            return
        is_delayed = self._n_retries < MAX_RETRIES and _changes_pool(frame)
        self._n_retries += is_delayed
        seconds = SECONDS_UNTIL_RETRIED if is_delayed else SECONDS_UNTIL_REPEATED
        self._repeat = threading.Timer(seconds, _thread.interrupt_main, [number])
        self._repeat.daemon = True
        self._repeat.start()
        if not is_delayed:
            raise KeyboardInterrupt

    def _take_dropped(self, dropped: Any) -> None:
        if not (self._is_requested and issubclass(dropped.exc_type, KeyboardInterrupt)):
            self._hook(dropped)


def _changes_pool(frame: FrameType | None) -> bool:
    """Return whether joblib is about to make or end its pool of processes."""
    while frame is not None:
        module = str(frame.f_globals.get("__name__"))
        function = (module, frame.f_code.co_name)
        if module.startswith("joblib.externals.loky") or function in ENDING_POOL:
            return True
        frame = frame.f_back
    return False
