"""Output of commands on the terminal: exit codes, plain text, a colour for errors."""

from __future__ import annotations

import json
import re
import shlex
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING

from labelsure.cli._options import output_of
from labelsure.errors import InputError, hide_secrets

if TYPE_CHECKING:
    import typer
    from rich.console import Console
    from rich.table import Table

    from labelsure._runtime.pages import Page
    from labelsure._runtime.typing import AnyPath

STDOUT = "-"
"""Name of standard output, in place of a file."""

FINE = 0
CHECK_FAILED = 1
WRONG_INPUT = 2
CELLS_FAILED = 3
BROKEN = 70  # internal software error, EX_SOFTWARE of sysexits.h
INTERRUPTED = 130
NO_READER = 141  # 128 + SIGPIPE, as in shells

NOTHING_TO_DO = "Nothing to do: the same inputs and settings have made it."

FIRST_SENTENCE = re.compile(r"(.*?[.?!]) (?=[A-Z`])", re.DOTALL)
"""First sentence of an error message, the cause; the others are the remedy."""


def make_console(*, stderr: bool = False, quiet: bool = False) -> Console:
    """Console that prints text verbatim: names may contain markup of rich."""
    from rich.console import Console

    class PlainConsole(Console):
        def on_broken_pipe(self) -> None:
            raise  # rich would handle the error: `main` does, with the pipe in question

    console = PlainConsole(
        stderr=stderr, quiet=quiet, markup=False, emoji=False, highlight=False, soft_wrap=True
    )
    console.soft_wrap = not console.is_terminal  # there lines are wrapped at words
    return console


def print_table(table: Table) -> None:
    """Print a table, at least as wide as its longest words."""
    from rich.measure import Measurement

    console = make_console()
    # Measured without the width of the terminal, which rich takes for an upper limit.
    least = Measurement.get(console, console.options.update(max_width=10_000), table).minimum
    console.width = max(console.width, least)
    console.print(table)


def print_error(sentence: str) -> None:
    """Print an error on one line of stderr; on terminals the remedy has another colour."""
    line = on_one_line(sentence)
    cause = FIRST_SENTENCE.match(line)
    n_cause = len(line) if cause is None else cause.end()
    _print_problem((line[:n_cause], "red"), (line[n_cause:], "cyan"))


def print_failure(sentence: str) -> None:
    """Print a failed check on one line of stderr."""
    _print_problem((on_one_line(sentence), "red"))


def _print_problem(*parts: tuple[str, str]) -> None:
    from rich.text import Text

    make_console(stderr=True).print(Text.assemble(("labelsure: ", "bold red"), *parts))


@contextmanager
def print_notes(quiet: bool) -> Iterator[set[str]]:
    """Print warnings at the end, a line each on stderr, except texts in the yielded set."""
    reported: set[str] = set()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield reported
    console = make_console(stderr=True, quiet=quiet)
    for text in dict.fromkeys(str(entry.message) for entry in caught):
        if text in reported:
            continue
        console.print(f"Note: {on_one_line(text)}", style="yellow")


def print_json(values: object) -> None:
    """Print plain values as JSON."""
    print(hide_secrets(json.dumps(values, indent=2)))


def print_facts(facts: Iterable[tuple[str, str]], *, stderr: bool = False) -> None:
    """Print pairs of name and text as two columns; pairs without a text are left out."""
    from rich.text import Text

    rows = [(name, on_one_line(text)) for name, text in facts if text]
    indent = max(len(name) for name, _ in rows) + 2
    console = make_console(stderr=stderr)
    for name, text in rows:
        lines = [text]
        if console.is_terminal and not text.startswith("labelsure "):  # commands are copied
            lines = wrap(text, max(console.width - indent, 20), break_on_hyphens=False)
        column = f"\n{' ' * indent}".join(lines)
        console.print(Text.assemble((name.ljust(indent), "bold"), column))


def quote(*words: object) -> str:
    """Command line of labelsure with the words quoted for a shell."""
    return shlex.join(["labelsure", *map(str, words)])


def open_stdout(out: str | Path) -> Path:
    """Path of an output, that of standard output for "-"."""
    return Path("/dev/stdout" if str(out) == STDOUT else out)


def refuse_stdout(out: Path) -> Path:
    """Path of an output. Raises InputError for "-", where binary formats cannot go."""
    if str(out) == STDOUT:
        raise InputError(
            "The output must be a file or a folder, got '-': this format cannot be written to "
            "standard output. Choose a name."
        )
    return out


def on_one_line(text: str) -> str:
    r"""Text with line breaks and other unprintable characters escaped, and secrets hidden.

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
    """Write a page unless it is finished, and print its path.

    `make_page` returns the page and its summary. The page must not replace a file of `read`, by
    default those of `made_from`.
    """
    from labelsure._runtime.storage import check_output_file

    out, overwrite = context.params["out"], context.params["overwrite"]
    as_json, quiet = context.params["as_json"], context.params["quiet"]
    is_stdout = str(out) == STDOUT
    files = list(made_from)
    output = output_of(context, files)
    check_output_file(open_stdout(out), files if read is None else read)
    notes = None if is_stdout else output.find(overwrite=overwrite)
    if notes is None:
        page, summary = make_page()
        page.save(open_stdout(out))
        if not is_stdout:
            output.note({"said": summary})
    else:
        summary = notes["said"]
    if as_json and not is_stdout:
        print_json({"out": str(out), "said": summary, "is_new": notes is None})
    elif not quiet:
        status = "" if notes is None else NOTHING_TO_DO
        facts = [(name, summary), ("Report", str(out)), ("", status)]
        print_facts(facts, stderr=is_stdout)
