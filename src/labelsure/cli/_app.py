"""`main`: run a command; whatever goes wrong becomes one sentence and an exit code."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated

import typer

from labelsure.cli._check import check
from labelsure.cli._console import INTERRUPTED, WRONG_INPUT
from labelsure.cli._data import data_app
from labelsure.cli._demo import demo
from labelsure.cli._study import study
from labelsure.errors import LabelsureError

# The base of all complaints about arguments. It has no public name that all versions share.
ArgumentError: type[Exception] = typer.BadParameter.__mro__[2]

ENDINGS = ("SIGTERM", "SIGHUP")  # Windows has no SIGHUP

app = typer.Typer(
    name="labelsure",
    help="How sure can you be of a predicted labelset?",
    rich_markup_mode="rich",
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("study")(study)
app.command("check")(check)
app.command("demo")(demo)
app.add_typer(data_app, name="data")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Parameters
    ----------
    arguments
        What follows the name of the program; None takes them from the process.
    """
    words = sys.argv[1:] if arguments is None else list(arguments)
    try:
        with _endings_as_interrupts():
            code = app(words or ["--help"], prog_name="labelsure", standalone_mode=False)
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except ArgumentError as error:
        message = error.format_message().rstrip(". ")  # type: ignore[attr-defined]
        return _refuse(f"{message}. See `{_help_of(error)}`.")
    except (LabelsureError, OSError) as error:
        return _refuse(_sentence(error))
    if code == INTERRUPTED:
        print("Interrupted. What is finished is kept.", file=sys.stderr)
    return int(code or 0)


@contextmanager
def _endings_as_interrupts() -> Iterator[None]:
    """Treat the signals by which systems and terminals end a program like the user's own."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = [getattr(signal, name) for name in ENDINGS if hasattr(signal, name)]
    # One that is ignored stays so: `nohup` asks for that.
    kept = {n: signal.getsignal(n) for n in numbers if signal.getsignal(n) == signal.SIG_DFL}
    try:
        for number in kept:
            signal.signal(number, signal.default_int_handler)
        yield
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)


def _refuse(message: str) -> int:
    print(f"labelsure: {message}", file=sys.stderr)
    return WRONG_INPUT


def _help_of(error: Exception) -> str:
    context = getattr(error, "ctx", None)
    return f"{context.command_path if context else 'labelsure'} --help"


def _sentence(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.strerror}: {error.filename!r}."
    return str(error).replace("`data_dir`", "`--data`")


def _print_version(wanted: bool) -> None:
    if wanted:
        from labelsure import __version__

        print(f"labelsure {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print it."),
    ] = False,
) -> None:
    """Take the options that stand before the command."""
