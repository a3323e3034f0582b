"""Types of arguments and options, one for each meaning, and the class of all commands."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from inspect import Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from labelsure._runtime.limits import MAX_JOBS, MAX_REPEATS
from labelsure.errors import InputError, LabelsureError

if TYPE_CHECKING:
    from labelsure._runtime.runs import FinishedOutput
    from labelsure._runtime.typing import AnyPath

MAX_SEED = 2**32 - 1
TABLES = ".csv, .tsv, .jsonl (also .gz, .bz2, .zst), .parquet, .feather, .npy or .npz"


def option(flags: str, help: str, **settings: Any) -> Any:
    """Option of typer with flags such as "--jobs -j"."""
    return typer.Option(*flags.split(), help=help, **settings)


def argument(name: str, help: str) -> Any:
    """Argument of typer, by position."""
    return typer.Argument(metavar=name, help=help)


def _check_inside(value: float | None) -> float | None:
    """Proportion strictly between 0 and 1, or None. Raises typer.BadParameter."""
    if value is not None and not 0 < value < 1:
        raise typer.BadParameter(f"{value:g} is not in the range 0<x<1.")
    return value


def _check_positive(value: float | None) -> float | None:
    if value is not None and not 0 < value <= 1:
        raise typer.BadParameter(f"{value:g} is not in the range 0<x<=1.")
    return value


INSIDE: dict[str, Any] = {"metavar": "FLOAT", "callback": _check_inside}
POSITIVE: dict[str, Any] = {"metavar": "FLOAT", "callback": _check_positive}
"""Settings of options whose value is a proportion: without 0 and 1, or without 0."""

# Arguments

Model = Annotated[Path, argument("MODEL", "A saved model.")]
INPUTS = f"Files, folders, patterns or addresses: {TABLES}; - is standard input."
Inputs = Annotated[list[str], argument("INPUT...", INPUTS)]
SomeInputs = Annotated[
    list[str] | None, argument("[INPUT...]", "Files or folders of rows to predict.")
]
Data = Annotated[list[str], argument("DATA", f"A table, or a folder of one: {TABLES}.")]
Predictions = Annotated[
    str, argument("PREDICTIONS", "Another system's predictions: a table, or JSONL with scores.")
]
RunDir = Annotated[Path, argument("DIR", "The run folder.")]
DataSet = Annotated[str, argument("NAME", "One of `labelsure data list`.")]
PlanName = Annotated[
    str,
    argument(
        "PLAN",
        "embedded, wide, quick, paper, paper-lasso, paper-lasso-cv or paper-standardised, or "
        "a TOML file.",
    ),
]

# Outputs

ModelOut = Annotated[Path, option("--out -o", "The model file to write.")]
PageOut = Annotated[Path, option("--out -o", "The HTML file to write.")]
RunOut = Annotated[Path, option("--out -o", "The run folder; the same one again resumes.")]
ScoresOut = Annotated[
    str,
    option(
        "--out -o",
        "A .csv, .tsv, .jsonl or .parquet file; a folder of parts without a suffix; - is "
        "standard output.",
    ),
]
Overwrite = Annotated[bool, option("--overwrite", "Replace an output of other inputs or settings.")]
AsJson = Annotated[bool, option("--json", "Print the result as JSON, without progress.")]
Quiet = Annotated[bool, option("--quiet -q", "Print errors only.")]
Verbose = Annotated[bool, option("--verbose -v", "Print every column and the whole model card.")]
Title = Annotated[str | None, option("--title", "Title of the page.")]

# Tables

Labels = Annotated[
    str | None,
    option(
        "--labels",
        'Label columns, separated by commas; patterns work, "quote" a name that has a comma.',
    ),
]
LabelNames = Annotated[
    str | None, option("--labels", "Names of the labels, in order, separated by commas.")
]
LabelsFrom = Annotated[str | None, option("--labels-from", "A text file with one label per line.")]
LabelColumn = Annotated[
    str | None, option("--label-column", "Column of label names, instead of --labels.")
]
TruthColumn = Annotated[str | None, option("--label-column", "Column of label names in --truth.")]
Sep = Annotated[
    str | None, option("--label-sep", "Separator of label names in one cell, e.g. ';'.")
]
WrittenSep = Annotated[str, option("--label-sep", "Separator of label names in one cell of CSV.")]
CsvSep = Annotated[
    str | None, option("--csv-sep", "Separator of CSV, in and out; detected by default.")
]
Encoding = Annotated[
    str | None,
    option("--encoding", "Encoding of text files, such as latin-1 or cp1252; default UTF-8."),
]
IdColumn = Annotated[str | None, option("--id", "The column that names the rows, in every table.")]
Drop = Annotated[str | None, option("--drop", "Columns to leave out, separated by commas.")]
Text = Annotated[list[str] | None, option("--text", "Column to read as text, if not detected.")]
Role = Annotated[
    list[str] | None, option("--role", "COLUMN=number or COLUMN=category, if not detected.")
]
Groups = Annotated[
    str | None, option("--groups", "Column of groups of dependent rows, which are never split.")
]
Truth = Annotated[str | None, option("--truth", "A table of the input's true labels.")]
AllTruth = Annotated[str, option("--truth", "A table of true labels.")]
DrawnTruth = Annotated[
    str | None, option("--truth", "Labels of some rows, which were drawn at random.")
]
MonitorTruth = Annotated[
    str | None, option("--truth", "Labels of rows that were drawn at random, with --id.")
]
BadRows = Annotated[
    Path | None, option("--bad-rows", "A .jsonl file for rows that cannot be scored.")
]

# Models

Classifier = Annotated[
    str, option("--classifier", "layer, ecc, br, trellis, pcc, powerset or forest.", metavar="NAME")
]
Metric = Annotated[
    str, option("--metric", "exact, hamming, jaccard, f1, recall or precision.", metavar="NAME")
]
Decision = Annotated[
    str,
    option(
        "--decision",
        "What is predicted and assessed: best (highest expected accuracy), mode (most "
        "probable), or predict (the classifier's own).",
        metavar="NAME",
    ),
]
Target = Annotated[
    float | None,
    option("--target", "Mean of the metric that accepted predictions must reach.", **INSIDE),
]
Share = Annotated[
    float | None, option("--share", "Share of predictions to accept instead.", **POSITIVE)
]
Guarantee = Annotated[
    str,
    option(
        "--guarantee",
        "exact, or approximate: accepts more with few rows, by Student's t and without proof.",
        metavar="NAME",
    ),
]
Region = Annotated[
    float | None, option("--region", "Nominal coverage of certain and possible labels.", **INSIDE)
]
Taxonomy = Annotated[
    str | None,
    option(
        "--taxonomy",
        "A .csv with the columns child and parent: each label implies its parent.",
        metavar="FILE",
    ),
]
Cv = Annotated[
    str | None,
    option(
        "--cv",
        "Share of rows to hold out, such as 0.4; or folds, such as 5, without guarantee.",
        metavar="FOLDS|SHARE",
    ),
]
Confidence = Annotated[
    float, option("--confidence", "Confidence level of the guarantee.", **INSIDE)
]
Level = Annotated[
    float | None,
    option("--confidence", "Confidence level of intervals; default the model's.", **INSIDE),
]
Seed = Annotated[int, option("--seed", "Random seed.", min=0, max=MAX_SEED)]
AuditSeed = Annotated[int, option("--seed", "Random seed of the audit.", min=0)]
Kind = Annotated[
    str | None,
    option(
        "--kind",
        "What rows hold: marginal (probabilities), logit, logprob, or votes (lists of answers).",
        metavar="NAME",
    ),
]
Unknown = Annotated[
    str,
    option(
        "--unknown",
        "Names in answers that are no label of the truth: refuse, drop or keep.",
        metavar="NAME",
    ),
]
Sparse = Annotated[
    bool, option("--sparse", "Rows list only some of many labels; implied by a sparse .npz.")
]
Floor = Annotated[
    float | None, option("--floor", "Probability of labels that a row does not list (2**-24).")
]
Trust = Annotated[
    list[str] | None, option("--trust", "Fully qualified name of a type that may be loaded.")
]

# Predictions

Top = Annotated[int, option("--top", "Most probable labelsets to show.", min=0)]
NoProbabilities = Annotated[
    bool, option("--no-probabilities", "Leave out the columns of single labels.")
]
OpenCost = Annotated[
    float | None,
    option(
        "--open-cost",
        "Leave a label open if it would be wrong with a probability above this cost.",
        min=0,
    ),
]
Audit = Annotated[
    int | None, option("--audit", "Number of rows to draw at random for labelling.", min=1)
]
SpreadsheetSafe = Annotated[
    bool, option("--spreadsheet-safe", "Put ' before texts of CSV that look like formulas.")
]
Shift = Annotated[
    str, option("--shift", "How to handle distribution shift: test, ignore, weighted.")
]
BatchMetric = Annotated[
    str | None,
    option(
        "--metric",
        "Another metric than the model's: exact, hamming, jaccard, f1, recall, precision, or of "
        "the whole input: micro-f1, macro-f1, micro-recall, ...",
        metavar="NAME",
    ),
]
FailBelow = Annotated[
    float | None,
    option("--fail-below", "Exit with 1 if the estimate is below this or refused.", min=0, max=1),
]
StrictGate = Annotated[
    bool, option("--strict", "For --fail-below, take the lower end of the interval.")
]
FailOnShift = Annotated[
    bool,
    option(
        "--fail-on-shift",
        "Exit with 1 if rows differ from the calibration set or cannot be compared with it.",
    ),
]
ByFile = Annotated[bool, option("--by-file", "One estimate and one shift test a file as well.")]
Scored = Annotated[
    str | None, option("--scored", "Output of `score` for the input, to avoid scoring again.")
]
Show = Annotated[
    str | None, option("--show", "Input columns to show on the page, separated by commas.")
]
Time = Annotated[
    str | None, option("--time", "The column of dates, ISO 8601 by default; else files are chunks.")
]
TimeFormat = Annotated[
    str | None,
    option("--time-format", "Format of dates, e.g. %d.%m.%Y, or s, ms, us, ns of Unix time."),
]
Every = Annotated[
    str | None,
    option("--every", "Chunks: D, W-MON (default), MS or another frequency of pandas."),
]
Drawn = Annotated[
    float | None,
    option("--drawn", "Probability with which a row was drawn.", **POSITIVE),
]
Bound = Annotated[
    float | None, option("--bound", "Lowest acceptable mean metric; from calibration by default.")
]

# Research

DataDir = Annotated[Path | None, option("--data", "A folder with ARFF files of the data sets.")]
Repeats = Annotated[
    int | None,
    option("--repeats", "Splits of each data set, instead of the plan's.", min=1, max=MAX_REPEATS),
]
TrustImports = Annotated[
    bool,
    option("--trust-imports", "Import classes of the plan from outside installed packages too."),
]
StrictCheck = Annotated[bool, option("--strict", "Exit with 1 if a conclusion does not hold.")]

# Resources

Jobs = Annotated[
    int | None,
    option("--jobs -j", "Processes, each on one core; default all.", min=1, max=MAX_JOBS),
]
FitJobs = Annotated[
    int | None, option("--jobs -j", "Processes that fit; default one.", min=1, max=MAX_JOBS)
]
Scheduler = Annotated[
    str | None, option("--scheduler", "A Dask scheduler, tcp://HOST:PORT: its workers compute.")
]

# Options that commands share


def reading(id_column: IdColumn = None, csv_sep: CsvSep = None, encoding: Encoding = None) -> None:
    """Options of commands that read tables."""


def labelled(label_column: TruthColumn = None, sep: Sep = None) -> None:
    """Options of commands that read tables of true labels."""


def fitting(
    metric: Metric = "jaccard",
    decision: Decision = "best",
    target: Target = None,
    share: Share = None,
    guarantee: Guarantee = "exact",
    region: Region = None,
    taxonomy: Taxonomy = None,
    confidence: Confidence = 0.95,
    seed: Seed = 0,
) -> None:
    """Options of commands that make models."""


def printing(overwrite: Overwrite = False, as_json: AsJson = False, quiet: Quiet = False) -> None:
    """Options of commands that print a result."""


def shares(*groups: Callable[..., None]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Decorator that adds the options of groups to a command, which are in `context.params`."""

    def add(command: Callable[..., None]) -> Callable[..., None]:
        own_options = [*signature(command, eval_str=True).parameters.values()]
        shared_options = [
            one for group in groups for one in signature(group, eval_str=True).parameters.values()
        ]

        @wraps(command)
        def run(**options: Any) -> None:
            command(**{one.name: options[one.name] for one in own_options})

        run.__signature__ = Signature([*own_options, *shared_options])  # type: ignore[attr-defined]
        run.__annotations__ = {one.name: one.annotation for one in (*own_options, *shared_options)}
        return run

    return add


# Commands

ORDER = (
    *("train", "calibrate", "score", "estimate", "report", "info", "monitor"),
    *("study", "data", "demo"),
)


class _Ordered(typer.core.TyperGroup):
    """Group of commands in the order of use."""

    def list_commands(self, ctx: Any) -> list[str]:
        return sorted(self.commands, key=ORDER.index)


class Command(typer.core.TyperCommand):
    """Command whose errors name its options in place of the arguments of the library."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command, with errors that name its options."""
        try:
            return super().invoke(ctx)
        except LabelsureError as error:
            message = str(error)
            flags = {one.name: one.opts[0] for one in self.params if one.opts[0].startswith("--")}
            if "id_column" in flags:  # the argument `index` of data sets
                flags["index"] = flags["id_column"]
            for name, flag in flags.items():
                message = message.replace(f"`{name}`", f"`{flag}`")
            raise InputError(message) from error


app = typer.Typer(
    name="labelsure",
    cls=_Ordered,
    help="How sure can you be of a predicted labelset?",
    rich_markup_mode="rich",
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
"""All commands; modules add theirs."""

MODELS, RESEARCH, TRY = "Models", "Research", "Try it"
"""Groups of commands in the help."""


def arguments(
    context: typer.Context, *functions: Callable[..., Any], **overrides: Any
) -> dict[str, Any]:
    """Keyword arguments of library functions: options of the same name, updated by `overrides`.

    An option without a value is left to the default of the library.
    """
    names = {name for function in functions for name in signature(function).parameters}
    values = {name: value for name, value in context.params.items() if value is not None}
    return {name: value for name, value in values.items() if name in names} | overrides


PRINTING = ("out", "as_json", "quiet", "verbose", "overwrite", "n_jobs")
"""Options that do not change the output of a command."""


def output_of(context: typer.Context, inputs: Iterable[AnyPath]) -> FinishedOutput:
    """Output file of a command, whose record has the inputs and settings."""
    from labelsure import __version__
    from labelsure._runtime.runs import FinishedOutput
    from labelsure._runtime.storage import describe_files

    settings = {name: value for name, value in context.params.items() if name not in PRINTING}
    made_from = {"labelsure": __version__, "command": context.info_name, "settings": settings}
    return FinishedOutput(context.params["out"], {**made_from, "inputs": describe_files(inputs)})
