"""`main`: run a command; every error becomes one sentence and an exit code.

Signals that end a program interrupt the command, and none is lost.
"""

from __future__ import annotations

import _thread
import io
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from types import FrameType, TracebackType
from typing import Annotated, Any, Self

import typer

from labelsure._runtime.limits import MORE_MEMORY, is_out_of_memory
from labelsure._runtime.storage import first_line, has_reader
from labelsure.cli import _data, _models, _scoring, _study  # noqa: F401, they add their commands
from labelsure.cli._console import BROKEN, INTERRUPTED, NO_READER, WRONG_INPUT, print_error
from labelsure.cli._options import app
from labelsure.errors import LabelsureError

# Base class of errors about arguments. It has no public name that all versions share.
ArgumentError: type[Exception] = typer.BadParameter.__mro__[2]

DEBUG = "--debug"
"""Flag that is accepted anywhere, so that it can be appended to a command that failed."""

WELCOME = """\
labelsure says how accurate multi-label predictions are expected to be, row by row and as a whole.

  train, calibrate         a model from a table, or around another system's predictions
  score, estimate, report  its predictions for new rows, and their estimated accuracy
  monitor                  whether inputs or accuracy have changed since
  study, data              compare measures of confidence on many data sets

Try:  labelsure demo
      labelsure train tickets.csv --labels urgent,billing --target 0.9 --out tickets.labelsure

All commands: labelsure --help"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    if not os.environ.get("OMP_NUM_THREADS", "1").isdecimal():  # such as 4,2 for nested loops
        os.environ.setdefault("NUMEXPR_NUM_THREADS", "1")  # numexpr takes one number only
    with _printable_output(), Interrupts(main, is_program=arguments is None) as interrupts:
        failure: BaseException | None = None
        try:
            code = _run([word for word in words if word != DEBUG])
        except (KeyboardInterrupt, typer.Abort):
            code = INTERRUPTED
        except SystemExit as error:  # typer raises it for every broken pipe
            code, failure = BROKEN, error.__context__ or error
        except Exception as error:
            code, failure = BROKEN, error
        # After any exception: an interrupted library may raise one of its own.
        if interrupts.finish() or code == INTERRUPTED:
            print("Interrupted. Finished work is kept.", file=sys.stderr)
            return INTERRUPTED
        if isinstance(failure, BrokenPipeError) and _output_was_closed(failure):
            return NO_READER
        if failure is not None:
            if DEBUG in words:
                traceback.print_exception(failure)
            code, sentence = _explain(failure)
            print_error(sentence)
    return code


@cache
def _make_command() -> Callable[..., Any]:
    """Command object with all subcommands and options, built once."""
    return typer.main.get_command(app)


def _run(words: list[str]) -> int:
    if not words:
        print(WELCOME)
    code = _make_command()(words, prog_name="labelsure", standalone_mode=False) if words else 0
    if code == INTERRUPTED:
        raise KeyboardInterrupt
    try:
        if sys.stdout is not None:  # it is None where the process has no standard output
            sys.stdout.flush()  # here, where an error can still be reported
    except BrokenPipeError:
        raise
    except OSError:
        _drop_output()
        raise
    return int(code or 0)


def _output_was_closed(error: BrokenPipeError) -> bool:
    """Whether the reader of an output has left; false for a broken pipe of a worker process."""
    if sys.stdout is None or has_reader(sys.stdout):
        return error.filename is not None
    _drop_output()
    return True


def _drop_output() -> None:
    """Redirect standard output to null, so that the last flush of Python does not fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _explain(error: BaseException) -> tuple[int, str]:
    """Exit code and sentence for an error."""
    if isinstance(error, ArgumentError):
        message = error.format_message().rstrip(". ")  # type: ignore[attr-defined]
        end = "" if message.endswith("?") else "."
        return WRONG_INPUT, f"{message}{end} See `{_help_of(error)}`."
    if isinstance(error, LabelsureError):
        return WRONG_INPUT, str(error)
    if is_out_of_memory(error):
        return WRONG_INPUT, MORE_MEMORY
    if isinstance(error, BrokenPipeError):
        return WRONG_INPUT, (
            "A process that this command started has ended or could not start (broken pipe). Run "
            "it again with `--jobs 1`, or with more memory and processes."
        )
    if isinstance(error, OSError):
        name = "" if error.filename is None else f": {error.filename!r}"
        return WRONG_INPUT, f"{error.strerror or first_line(error)}{name}."
    return BROKEN, (
        f"Internal error ({type(error).__name__}: {first_line(error)}). Run the command again with "
        f"`{DEBUG}` to see where, and report it."
    )


@contextmanager
def _printable_output() -> Iterator[None]:
    """Escape undecodable characters on standard streams, such as those of file names."""
    streams = [s for s in (sys.stdout, sys.stderr) if isinstance(s, io.TextIOWrapper)]
    old_settings = [stream.errors for stream in streams]
    try:
        for stream in streams:
            stream.reconfigure(errors="backslashreplace")
        yield
    finally:
        for stream, errors in zip(streams, old_settings, strict=True):
            stream.reconfigure(errors=errors)


def _help_of(error: Exception) -> str:
    context = getattr(error, "ctx", None)
    return f"{context.command_path if context else 'labelsure'} --help"


def _print_version(is_requested: bool) -> None:
    if is_requested:
        from labelsure import __version__

        print(f"labelsure {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
    debug: Annotated[
        bool, typer.Option(DEBUG, help="Print where an error came from, anywhere in a command.")
    ] = False,
) -> None:
    """Options before the command."""


# Signals

SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")  # Windows has no SIGHUP
SECONDS_UNTIL_REPEATED = 2.0
"""An interrupt that did not end the command is raised again."""


class Interrupts:
    """Turns the signals by which users and systems end a program into `KeyboardInterrupt`.

    The exception alone is not enough:

    - Python drops exceptions of callbacks and finalizers. It is raised again until `finish`.
    - A library may replace it by an exception of its own. `finish` returns whether a signal came.
    - A pool of processes that is interrupted while it is made or ended keeps its workers. `finish`
      ends them, and those that it does not find leave with this process.
    - After the last line of the command, when Python itself ends, it would be printed and
      forgotten. From `finish` on a signal ends the process.

    Parameters
    ----------
    owner
        The function that calls `finish`; a signal that arrives in its own code is only noted.
    is_program
        Whether the process ends with the command.
    """

    def __init__(self, owner: Callable[..., Any], *, is_program: bool) -> None:
        self._code, self._is_program = owner.__code__, is_program
        self._is_requested = self._is_finished = False
        self._repeat: threading.Timer | None = None
        self._old_handlers: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is not threading.main_thread():
            return self  # only the main thread may set handlers
        self._hook, sys.unraisablehook = sys.unraisablehook, self._take_dropped
        defaults = (signal.SIG_DFL, signal.default_int_handler)
        for number in (getattr(signal, name) for name in SIGNALS if hasattr(signal, name)):
            # One that is ignored stays so: `nohup` asks for that.
            if (handler := signal.getsignal(number)) in defaults:
                self._old_handlers[number] = handler
                signal.signal(number, self._interrupt)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._old_handlers and not self._is_program:
            sys.unraisablehook = self._hook
            for number, handler in self._old_handlers.items():
                signal.signal(number, handler)

    def finish(self) -> bool:
        """Whether a signal came while the command ran. Ends its retries and worker processes."""
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
        self._repeat = threading.Timer(SECONDS_UNTIL_REPEATED, _thread.interrupt_main, [number])
        self._repeat.daemon = True
        self._repeat.start()
        raise KeyboardInterrupt

    def _take_dropped(self, dropped: Any) -> None:
        if not (self._is_requested and issubclass(dropped.exc_type, KeyboardInterrupt)):
            self._hook(dropped)
