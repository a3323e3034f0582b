"""``labelsure study``: plan to cells to score table to tables and figures."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from labelsure.cli._console import CELLS_FAILED, FINE, WRONG_INPUT
from labelsure.errors import LabelsureError

if TYPE_CHECKING:
    from labelsure.study import StudyRun


def study(
    plan: Annotated[
        str,
        typer.Argument(
            help="embedded, quick, paper or paper-standardised, or a TOML file.",
            metavar="PLAN",
            show_default=True,
        ),
    ] = "embedded",
    out: Annotated[
        Path, typer.Option("--out", "-o", help="The run folder; the same one again goes on.")
    ] = ...,  # type: ignore[assignment]
    data: Annotated[
        Path | None, typer.Option("--data", help="A folder with ARFF files of the data sets.")
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", "-j", min=1, help="Cells at a time; all cores by default."),
    ] = None,
    repeats: Annotated[
        int | None,
        typer.Option("--repeats", min=1, help="Splits of each data set, instead of the plan's."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print what came out as JSON, and no progress.")
    ] = False,
) -> None:
    """Run a study. Killed at any moment, the same command goes on where it stopped.

    [bold]Examples[/bold]

    labelsure study embedded --out runs/embedded

    labelsure study paper --data DIR --out runs/paper --repeats 1

    labelsure study my-plan.toml --out runs/mine --jobs 4
    """
    from labelsure.cli._console import CellLines
    from labelsure.report import write_report_files
    from labelsure.study import load_plan, run_study

    chosen = load_plan(plan)
    if repeats is not None:
        chosen = chosen.with_repeats(repeats)

    problems: list[str] = []

    def write_report(run: StudyRun) -> None:
        if run.scores.empty:
            return
        lines.note("Writing tables and figures")
        try:
            write_report_files(
                run.scores,
                run.features,
                run.plan.to_dict(),
                run.folder,
                by_instance=run.plan.by_instance,
                n_replicates=run.plan.replicates,
                n_jobs=jobs,
            )
        except LabelsureError as error:  # the scores are there all the same
            problems.append(f"Not all tables and figures could be made: {error}")

    with CellLines(quiet=as_json) as lines:
        run = run_study(
            chosen, out, data_dir=data, n_jobs=jobs, progress=lines, finish=write_report
        )
    if as_json:
        print(json.dumps(_as_dict(run), indent=2))
    else:
        from labelsure.cli._summary import print_summary

        print_summary(run)
    for problem in problems:
        print(f"labelsure: {problem}", file=sys.stderr)
    raise typer.Exit(CELLS_FAILED if run.failures else WRONG_INPUT if problems else FINE)


def _as_dict(run: StudyRun) -> dict[str, Any]:
    return {
        "folder": str(run.folder),
        "plan": run.plan.name,
        "n_rows": len(run.scores),
        "n_computed": run.n_computed,
        "n_kept": run.n_kept,
        "failures": {name: failure["message"] for name, failure in run.failures.items()},
        "seconds": round(run.seconds, 3),
        "files": sorted(
            str(path.relative_to(run.folder))
            for path in run.folder.rglob("*")
            if path.is_file() and "cells" not in path.parts and not path.name.startswith(".")
        ),
    }
