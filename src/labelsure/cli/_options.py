"""Arguments and options that commands share, or that are long: their names and what they mean."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from labelsure._runtime.limits import MAX_JOBS

if TYPE_CHECKING:
    from labelsure._runtime.storage import FinishedOutput
    from labelsure._runtime.typing import AnyPath

ModelArgument = Annotated[Path, typer.Argument(help="A saved model.", metavar="MODEL")]
InputArgument = Annotated[
    list[str],
    typer.Argument(
        help="Files or folders: .csv, .tsv, .parquet, .jsonl, .npy, .npz.", metavar="INPUT..."
    ),
]
JobsOption = Annotated[
    int | None,
    typer.Option(
        "--jobs", "-j", min=1, max=MAX_JOBS, help="Processes, each on one core; all by default."
    ),
]
OverwriteOption = Annotated[
    bool,
    typer.Option(
        "--overwrite", help="Replace an output of other inputs or settings that is there."
    ),
]
SchedulerOption = Annotated[
    str | None,
    typer.Option("--scheduler", help="A Dask scheduler, tcp://HOST:PORT: its workers compute."),
]
TrustOption = Annotated[
    list[str] | None,
    typer.Option("--trust", help="Fully qualified name of a type that may be loaded."),
]
JsonOption = Annotated[
    bool, typer.Option("--json", help="Print what came out as JSON, and no progress.")
]
OutOption = Annotated[
    str,
    typer.Option(
        "--out",
        "-o",
        help="A .csv, .tsv, .jsonl or .parquet file; a folder of parts without a suffix.",
    ),
]
BadRowsOption = Annotated[
    Path | None,
    typer.Option("--bad-rows", help="A .jsonl file for rows that cannot be scored."),
]
AuditOption = Annotated[
    int | None,
    typer.Option("--audit", min=1, help="Rows to choose at random, for labels about all."),
]
OpenCostOption = Annotated[
    float | None,
    typer.Option(
        "--open-cost",
        min=0,
        help="Leave a label open if it would be wrong with a probability above this cost.",
    ),
]
ShiftOption = Annotated[
    str,
    typer.Option("--shift", help="How to handle distribution shift: test, ignore, weighted."),
]
FewLabelsOption = Annotated[
    str | None,
    typer.Option("--truth", help="Labels of some rows, which were drawn at random."),
]
RowNamesOption = Annotated[
    str | None, typer.Option("--id", help="The column that names rows, here and in --truth.")
]
LabelColumnOption = Annotated[
    str | None, typer.Option("--label-column", help="Of --truth: it holds names of labels.")
]
LabelSeparatorOption = Annotated[
    str | None,
    typer.Option("--label-sep", help="Between names of labels in one cell, e.g. ';'."),
]
CsvSeparatorOption = Annotated[
    str | None,
    typer.Option("--csv-sep", help="Between values of CSV, in and out; found by default."),
]
ConfidenceOption = Annotated[
    float | None,
    typer.Option("--confidence", help="Confidence level of intervals; the model's by default."),
]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.")]


NOTHING_TO_DO = "Nothing to do: the same inputs and settings have made it."

PRINTING = ("out", "as_json", "quiet", "verbose", "overwrite", "jobs")
"""Options that do not change what a command writes."""


def output_of(command: str, given: Mapping[str, Any], inputs: Iterable[AnyPath]) -> FinishedOutput:
    """Return the file that a command writes, which knows all that it is made from."""
    from labelsure import __version__
    from labelsure._runtime.storage import FinishedOutput, describe_files

    settings = {name: value for name, value in given.items() if name not in PRINTING}
    made_from = {"labelsure": __version__, "command": command, "settings": settings}
    return FinishedOutput(given["out"], {**made_from, "inputs": describe_files(inputs)})
