"""One table of the options of all commands, and `command`, which makes commands of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from inspect import Parameter, Signature
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from labelsure._runtime.limits import MAX_JOBS, MAX_REPEATS

if TYPE_CHECKING:
    from labelsure._runtime.storage import FinishedOutput
    from labelsure._runtime.typing import AnyPath

REQUIRED = Parameter.empty
Given = SimpleNamespace
"""Values of the options of a command, by name."""

MAX_SEED = 2**32 - 1


@dataclass(frozen=True)
class Option:
    """An argument or an option: its type, its default, its flag, and what `typer` shows of it."""

    kind: Any
    default: Any
    flag: str
    shown: Any

    def parameter(self, name: str) -> Parameter:
        """Return it as a parameter of a function."""
        kind: Any = self.kind | None if self.default is None else self.kind
        shown: Any = Annotated[kind, self.shown]
        return Parameter(name, Parameter.KEYWORD_ONLY, default=self.default, annotation=shown)


def option(kind: Any, flags: str, help: str, default: Any = None, **settings: Any) -> Option:
    """Return an option with its flags, such as "--jobs -j"."""
    names = flags.split()
    return Option(kind, default, names[0], typer.Option(*names, help=help, **settings))


def flag(flags: str, help: str) -> Option:
    """Return an option without a value."""
    return option(bool, flags, help, False)


def argument(kind: Any, name: str, help: str, default: Any = REQUIRED) -> Option:
    """Return what stands behind a command without a flag."""
    return Option(kind, default, "", typer.Argument(metavar=name, help=help))


TABLES = ".csv, .tsv, .jsonl (also .gz, .bz2, .zst), .parquet, .feather, .npy or .npz"

OPTIONS = {
    "model": argument(Path, "MODEL", "A saved model."),
    "inputs": argument(
        list[str],
        "INPUT...",
        f"Files, folders, patterns or addresses: {TABLES}; - is standard input.",
    ),
    "data": argument(list[str], "DATA", f"A table, or a folder of one: {TABLES}."),
    "folder": argument(Path, "DIR", "The run folder."),
    "name": argument(str, "NAME", "One of `labelsure data list`."),
    "out": option(Path, "--out -o", "The model file to write.", REQUIRED),
    # Tables
    "labels": option(
        str,
        "--labels",
        'Label columns, separated by commas; patterns work, "quote" a name that has a comma.',
    ),
    "label_column": option(str, "--label-column", "Column of label names, instead of --labels."),
    "sep": option(str, "--label-sep", "Separator of label names in one cell, e.g. ';'."),
    "csv_sep": option(str, "--csv-sep", "Separator of CSV, in and out; detected by default."),
    "encoding": option(
        str, "--encoding", "Encoding of text files, such as latin-1 or cp1252; UTF-8 by default."
    ),
    "id_column": option(str, "--id", "The column that names the rows, in every table."),
    "drop": option(str, "--drop", "Columns to leave out, separated by commas."),
    "text": option(list[str], "--text", "Column to read as text, if not detected."),
    "role": option(list[str], "--role", "COLUMN=number or COLUMN=category, if not detected."),
    "truth": option(str, "--truth", "A table of true labels."),
    "bad_rows": option(Path, "--bad-rows", "A .jsonl file for rows that cannot be scored."),
    # Models
    "classifier": option(
        str,
        "--classifier",
        "ecc, br, trellis, pcc, powerset, layer or forest.",
        "ecc",
        metavar="NAME",
    ),
    "metric": option(
        str,
        "--metric",
        "exact, hamming, jaccard, f1, recall or precision.",
        "jaccard",
        metavar="NAME",
    ),
    "decision": option(
        str,
        "--decision",
        "What is predicted and judged: best (highest expected accuracy), mode (most probable), or "
        "predict (the classifier's own).",
        "best",
        metavar="NAME",
    ),
    "target": option(
        float, "--target", "Mean of the metric that accepted predictions must reach.", min=0, max=1
    ),
    "share": option(float, "--share", "Share of predictions to accept instead.", min=0, max=1),
    "guarantee": option(
        str,
        "--guarantee",
        "exact, or approximate: accepts more with few rows, by Student's t and without proof.",
        "exact",
        metavar="NAME",
    ),
    "region": option(
        float, "--region", "Nominal coverage of certain and possible labels.", min=0, max=1
    ),
    "cv": option(
        str,
        "--cv",
        "Share of rows to hold out, such as 0.4; or folds, such as 5, without guarantee.",
        metavar="FOLDS|SHARE",
    ),
    "confidence": option(
        float, "--confidence", "Confidence level of the guarantee.", 0.95, min=0, max=1
    ),
    "level": option(
        float, "--confidence", "Confidence level of intervals; the model's by default."
    ),
    "seed": option(int, "--seed", "Random seed.", 0, min=0, max=MAX_SEED),
    "labels_from": option(str, "--labels-from", "A text file with one label per line."),
    "kind": option(
        str,
        "--kind",
        "What rows hold: marginal (probabilities), logit, logprob, or votes (lists of answers).",
        metavar="NAME",
    ),
    "unknown": option(
        str,
        "--unknown",
        "Names in answers that are no label of the truth: refuse, drop or keep.",
        "drop",
        metavar="NAME",
    ),
    "sparse": flag("--sparse", "Rows list only some of many labels; implied by a sparse .npz."),
    "floor": option(float, "--floor", "Probability of labels that a row does not list (2**-24)."),
    "trust": option(list[str], "--trust", "Fully qualified name of a type that may be loaded."),
    # Predictions
    "top": option(int, "--top", "Most probable labelsets to show.", 3, min=0),
    "no_probabilities": flag("--no-probabilities", "Leave out the columns of single labels."),
    "open_cost": option(
        float,
        "--open-cost",
        "Leave a label open if it would be wrong with a probability above this cost.",
        min=0,
    ),
    "audit": option(int, "--audit", "Number of rows to draw at random for labelling.", min=1),
    "spreadsheet_safe": flag(
        "--spreadsheet-safe", "Put ' before texts of CSV that look like formulas."
    ),
    "shift": option(
        str, "--shift", "How to handle distribution shift: test, ignore, weighted.", "test"
    ),
    "title": option(str, "--title", "Title of the page."),
    # Research
    "data_dir": option(Path, "--data", "A folder with ARFF files of the data sets."),
    "repeats": option(
        int, "--repeats", "Splits of each data set, instead of the plan's.", min=1, max=MAX_REPEATS
    ),
    "trust_imports": flag(
        "--trust-imports", "Import classes of the plan from outside installed packages too."
    ),
    "strict": flag("--strict", "Exit with 1 if a conclusion does not hold."),
    # Every command
    "n_jobs": option(
        int, "--jobs -j", "Processes, each on one core; all by default.", min=1, max=MAX_JOBS
    ),
    "scheduler": option(
        str, "--scheduler", "A Dask scheduler, tcp://HOST:PORT: its workers compute."
    ),
    "overwrite": flag("--overwrite", "Replace an output of other inputs or settings."),
    "as_json": flag("--json", "Print the result as JSON, without progress."),
    "quiet": flag("--quiet -q", "Print errors only."),
    "verbose": flag("--verbose -v", "Print every column and the whole model card."),
}
"""By the names that the library has for them."""

FLAGS = {name: one.flag for name, one in OPTIONS.items() if one.flag} | {"index": "--id"}
"""Flags by the names that the library has for them; commands add their own."""


ORDER = (
    *("train", "calibrate", "score", "estimate", "report", "info", "monitor"),
    *("study", "data", "demo"),
)


class _Ordered(typer.core.TyperGroup):
    """Lists commands in the order in which they are used."""

    def list_commands(self, ctx: Any) -> list[str]:
        return sorted(self.commands, key=ORDER.index)


app = typer.Typer(
    name="labelsure",
    cls=_Ordered,
    help="How sure can you be of a predicted labelset?",
    rich_markup_mode="rich",
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
"""All commands; modules add theirs by `command`."""

MODELS, RESEARCH, TRY = "Models", "Research", "Try it"
"""Groups of commands in the help."""


def command(
    names: str, *, group: str | None = None, below: typer.Typer = app, **own: Option
) -> Callable[[Callable[[Given], None]], Callable[[Given], None]]:
    """Make a command of a function that takes the values of some options of the table.

    Where an option means something else to one command, that one brings its `own`. The function's
    name, up to the first underscore, is that of the command.
    """

    def register(function: Callable[[Given], None]) -> Callable[[Given], None]:
        def run(**given: Any) -> None:
            function(Given(**given))

        FLAGS.update({name: one.flag for name, one in own.items() if one.flag})
        parameters = [(own.get(one) or OPTIONS[one]).parameter(one) for one in names.split()]
        run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {one.name: one.annotation for one in parameters}
        run.__doc__ = function.__doc__
        below.command(function.__name__.partition("_")[0], rich_help_panel=group)(run)
        return function

    return register


def choose(given: Given, names: str) -> dict[str, Any]:
    """Return some of the values, to pass them on."""
    return {name: getattr(given, name) for name in names.split()}


PRINTING = ("out", "as_json", "quiet", "verbose", "overwrite", "n_jobs")
"""Options that do not change what a command writes."""


def output_of(command: str, given: Given, inputs: Iterable[AnyPath]) -> FinishedOutput:
    """Return the file that a command writes, which knows all that it is made from."""
    from labelsure import __version__
    from labelsure._runtime.storage import FinishedOutput, describe_files

    settings = {name: value for name, value in vars(given).items() if name not in PRINTING}
    made_from = {"labelsure": __version__, "command": command, "settings": settings}
    return FinishedOutput(given.out, {**made_from, "inputs": describe_files(inputs)})
