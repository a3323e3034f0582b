"""``labelsure score``: from files to predictions and what each is worth."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from labelsure.cli._console import STDOUT, make_console, open_stdout, print_notes
from labelsure.cli._options import (
    AuditOption,
    BadRowsOption,
    InputArgument,
    JobsOption,
    JsonOption,
    ModelArgument,
    OpenCostOption,
    OutOption,
    OverwriteOption,
    RowsOption,
    SchedulerOption,
    TrustOption,
)
from labelsure.cli._progress_bars import RowLines
from labelsure.errors import InputError

if TYPE_CHECKING:
    from labelsure.tables.scoring import ScoreRun


def score(
    model: ModelArgument,
    inputs: InputArgument,
    out: OutOption,
    id_column: Annotated[
        str | None, typer.Option("--id", help="The column that names the rows.")
    ] = None,
    jobs: JobsOption = None,
    scheduler: SchedulerOption = None,
    bad_rows: BadRowsOption = None,
    audit: AuditOption = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of the audit.")] = 0,
    top: Annotated[int, typer.Option("--top", min=0, help="Most probable labelsets to show.")] = 3,
    no_probabilities: Annotated[
        bool, typer.Option("--no-probabilities", help="Leave out the columns of single labels.")
    ] = False,
    sep: Annotated[str, typer.Option("--sep", help="Between names of labels in CSV.")] = ";",
    open_cost: OpenCostOption = None,
    spreadsheet_safe: Annotated[
        bool,
        typer.Option(
            "--spreadsheet-safe", help="Put ' before texts of CSV that look like formulas."
        ),
    ] = False,
    rows_per_unit: RowsOption = None,
    trust: TrustOption = None,
    overwrite: OverwriteOption = False,
    as_json: JsonOption = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
) -> None:
    """Predict labels for the rows of files, and say what each prediction is worth.

    Killed at any moment, the same command goes on where it stopped.

    [bold]Examples[/bold]

    labelsure score tickets.labelsure new.csv --out predictions.csv

    labelsure score tickets.labelsure folder --out predictions.parquet --bad-rows bad.jsonl

    labelsure score tickets.labelsure new.csv --audit 200 --out predictions.csv
    """
    from labelsure._runtime.warnings import hold_warnings
    from labelsure.errors import ShiftWarning
    from labelsure.tables.files import UNIT_ROWS
    from labelsure.tables.scoring import score_files

    if as_json and out == STDOUT:
        raise InputError("Standard output takes predictions or `--json`, got both. Leave one out.")
    place = out if out.endswith("/") else open_stdout(out)
    is_quiet = as_json or quiet
    # A shift is part of the summary.
    with hold_warnings(ShiftWarning), print_notes(is_quiet), RowLines(quiet=is_quiet) as lines:
        run = score_files(
            model,
            inputs,
            place,
            id_column=id_column,
            top=top,
            probabilities=False if no_probabilities else None,
            sep=sep,
            open_cost=open_cost,
            spreadsheet_safe=spreadsheet_safe,
            audit=audit,
            seed=seed,
            bad_rows=bad_rows,
            rows_per_unit=rows_per_unit or UNIT_ROWS,
            n_jobs=jobs,
            scheduler=scheduler,
            trust=trust or (),
            overwrite=overwrite,
            progress=lines,
        )
    if as_json:
        print(json.dumps({**asdict(run), "out": str(run.out)}, indent=2))
    else:
        _print_summary(run, bad_rows, to_stderr=out == STDOUT, quiet=quiet)


def _print_summary(run: ScoreRun, bad_rows: Path | None, *, to_stderr: bool, quiet: bool) -> None:
    console = make_console(stderr=to_stderr, quiet=quiet)
    accepted = "no target or share was set"
    if run.n_accepted is not None:
        accepted = f"{run.n_accepted:,} accepted, {run.n_rows - run.n_accepted:,} to refer"
    mean = f"mean estimated accuracy {run.mean_estimated:.3f}"
    console.print(f"{run.n_rows:,} predictions, {mean}; {accepted}.")
    console.print(run.shift)
    if run.n_audited:
        console.print(
            f"{run.n_audited:,} rows were chosen by chance: only their labels say something about "
            "all rows, those of doubtful ones do not."
        )
    if run.n_bad and bad_rows is not None:
        console.print(f"{run.n_bad:,} bad rows were set aside, see {bad_rows}")
    console.print(f"Predictions {run.out}")
