"""What commands say to the terminal: exit codes, text as it is, one colour for errors."""

from __future__ import annotations

import json
import re
import shlex
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from labelsure.cli._options import output_of
from labelsure.errors import InputError, hide_secrets

if TYPE_CHECKING:
    import typer
    from rich.console import Console
    from rich.table import Table

    from labelsure._runtime.pages import Page
    from labelsure._runtime.typing import AnyPath

STDOUT = "-"
"""What stands for standard output where a file is asked for."""

FINE = 0
CHECK_FAILED = 1
WRONG_INPUT = 2
CELLS_FAILED = 3
BROKEN = 70  # of the program itself; what systems call an internal software error
INTERRUPTED = 130
NO_READER = 141  # what shells say of a program that a closed pipe has ended

NOTHING_TO_DO = "Nothing to do: the same inputs and settings have made it."

FIRST_SENTENCE = re.compile(r"(.*?[.?!]) (?=[A-Z`])", re.DOTALL)
"""Of an error, which says what is wrong; the others say what to do."""


def make_console(*, stderr: bool = False, quiet: bool = False) -> Console:
    """Return a console that prints text as it is: names may hold what rich takes for markup."""
    from rich.console import Console

    class PlainConsole(Console):
        def on_broken_pipe(self) -> None:
            raise  # the error that rich handles: `main` finds out whose pipe it is

    console = PlainConsole(
        stderr=stderr, quiet=quiet, markup=False, emoji=False, highlight=False, soft_wrap=True
    )
    console.soft_wrap = not console.is_terminal  # there lines are wrapped at words
    return console


def print_table(table: Table) -> None:
    """Print a table, as wide as its longest words at least."""
    from rich.measure import Measurement

    console = make_console()
    least = Measurement.get(console, console.options, table).minimum
    console.width = max(console.width, least)
    console.print(table)


def print_error(sentence: str) -> None:
    """Print an error on one line of stderr; on terminals what to do has another colour."""
    said = on_one_line(sentence)
    first = FIRST_SENTENCE.match(said)
    n_wrong = len(said) if first is None else first.end()
    _print_problem((said[:n_wrong], "red"), (said[n_wrong:], "cyan"))


def print_failure(sentence: str) -> None:
    """Print on one line of stderr which check failed."""
    _print_problem((on_one_line(sentence), "red"))


def _print_problem(*parts: tuple[str, str]) -> None:
    from rich.text import Text

    make_console(stderr=True).print(Text.assemble(("labelsure: ", "bold red"), *parts))


@contextmanager
def print_notes(quiet: bool) -> Iterator[set[str]]:
    """Print warnings as one line each on stderr at the end, but for those that are yielded."""
    told: set[str] = set()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield told
    console = make_console(stderr=True, quiet=quiet)
    for text in dict.fromkeys(str(entry.message) for entry in caught):
        if text in told:
            continue
        console.print(f"Note: {on_one_line(text)}", style="yellow")


def print_json(values: Any) -> None:
    """Print plain values as JSON."""
    print(hide_secrets(json.dumps(values, indent=2)))


def print_facts(facts: Iterable[tuple[str, str]], *, stderr: bool = False) -> None:
    """Print what came out as two columns: where it is and what to do next stand last."""
    from rich.text import Text

    told = [(name, on_one_line(text)) for name, text in facts if text]
    indent = max(len(name) for name, _ in told) + 2
    console = make_console(stderr=stderr)
    for name, text in told:
        lines = [text]
        if console.is_terminal and not text.startswith("labelsure "):  # commands are copied
            lines = wrap(text, max(console.width - indent, 20), break_on_hyphens=False)
        rest = f"\n{' ' * indent}".join(lines)
        console.print(Text.assemble((name.ljust(indent), "bold"), rest))


def quote(*words: object) -> str:
    """Return a command as one writes it in a shell."""
    return shlex.join(["labelsure", *map(str, words)])


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


def on_one_line(text: str) -> str:
    r"""Return text without line breaks and other characters that terminals do not print.

    Examples
    --------
    >>> print(on_one_line("two\nlines"))
    two\nlines
    """
    shown = hide_secrets(text)
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in shown)


def write_page(
    context: typer.Context,
    made_from: Iterable[AnyPath],
    make_page: Callable[[], tuple[Page, str]],
    name: str = "Shift",
    read: Iterable[AnyPath] | None = None,
) -> None:
    """Write a page unless it exists, and say where; `make_page` also returns what to print.

    `read` are the files that the page must not replace; by default those it is made from.
    """
    from labelsure._runtime.storage import check_output_file

    out, overwrite = context.params["out"], context.params["overwrite"]
    as_json, quiet = context.params["as_json"], context.params["quiet"]
    is_stdout = str(out) == STDOUT
    files = list(made_from)
    output = output_of(context, files)
    check_output_file(open_stdout(out), files if read is None else read)
    found = None if is_stdout else output.find(overwrite=overwrite)
    if found is None:
        page, summary = make_page()
        page.save(open_stdout(out))
        if not is_stdout:
            output.note({"said": summary})
    else:
        summary = found["said"]
    if as_json and not is_stdout:
        print_json({"out": str(out), "said": summary, "is_new": found is None})
    elif not quiet:
        done = "" if found is None else NOTHING_TO_DO
        facts = [(name, summary), ("Report", str(out)), ("", done)]
        print_facts(facts, stderr=is_stdout)
