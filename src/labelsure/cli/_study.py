"""``labelsure study``: run a plan, compare the run with the paper, and make a page of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from labelsure._runtime.limits import MAX_REPEATS
from labelsure._runtime.storage import first_line
from labelsure.cli._console import (
    CELLS_FAILED,
    CHECK_FAILED,
    FINE,
    CellLines,
    make_console,
    refuse_stdout,
)
from labelsure.cli._options import (
    JobsOption,
    JsonOption,
    OverwriteOption,
    QuietOption,
    SchedulerOption,
    output_of,
)
from labelsure.cli._scoring import write_page

if TYPE_CHECKING:
    import pandas as pd
    from rich.table import Table

    from labelsure.study.run import StudyRun

CORRELATIONS = "tables/values_correlations.csv"
FolderArgument = Annotated[Path, typer.Argument(help="The run folder.", metavar="DIR")]

study_app = typer.Typer(
    help="Run a study, compare it with the paper, make a page of it.", rich_markup_mode="rich"
)


@study_app.command("run")
def run(
    plan: Annotated[
        str,
        typer.Argument(
            help="embedded, wide, quick, paper or paper-standardised, or a TOML file.",
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
    jobs: JobsOption = None,
    scheduler: SchedulerOption = None,
    repeats: Annotated[
        int | None,
        typer.Option(
            "--repeats",
            min=1,
            max=MAX_REPEATS,
            help="Splits of each data set, instead of the plan's.",
        ),
    ] = None,
    trust_imports: Annotated[
        bool,
        typer.Option(
            "--trust-imports",
            help="Import classes of the plan from outside installed packages too.",
        ),
    ] = False,
    overwrite: OverwriteOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Run a study. Killed at any moment, the same command goes on where it stopped.

    [bold]Examples[/bold]

    labelsure study run embedded --out runs/embedded

    labelsure study run paper --data DIR --out runs/paper --repeats 1

    labelsure study run my-plan.toml --out runs/mine --jobs 4
    """
    from labelsure.study.plan import load_plan
    from labelsure.study.report import write_report
    from labelsure.study.run import RunFolder, run_study

    chosen = load_plan(plan, trust_imports=trust_imports)
    if repeats is not None:
        chosen = chosen.with_repeats(repeats)
    folder = RunFolder(refuse_stdout(out))
    if not overwrite:
        folder.refuse_other_plan(chosen)
    with folder.locked(), CellLines(quiet=quiet or as_json) as lines:
        done = run_study(
            chosen, folder, data_dir=data, n_jobs=jobs, scheduler=scheduler, progress=lines
        )
        if len(done.scores):
            lines.note("Writing tables and figures")
            write_report(done, n_jobs=jobs)
    if as_json:
        print(json.dumps(_as_dict(done), indent=2))
    elif not quiet:
        _print_summary(done)
    raise typer.Exit(CELLS_FAILED if done.failures else FINE)


@study_app.command("check")
def check(
    folder: FolderArgument,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 1 if a conclusion does not hold.")
    ] = False,
    jobs: JobsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare a run with the paper: every published number, and a verdict for each conclusion.

    [bold]Examples[/bold]

    labelsure study check runs/paper

    labelsure study check runs/paper --strict --json
    """
    from labelsure.study.paper import check_against_paper

    found = check_against_paper(folder, n_jobs=jobs)
    print(json.dumps(found.to_dict(), indent=2) if as_json else found.to_markdown())
    raise typer.Exit(CHECK_FAILED if strict and found.misses else FINE)


@study_app.command("report")
def report(
    folder: FolderArgument,
    out: Annotated[Path, typer.Option("--out", "-o", help="The HTML file to write.")] = Path(
        "report.html"
    ),
    jobs: JobsOption = None,
    overwrite: OverwriteOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Write one HTML file that shows what a study found.

    [bold]Example[/bold]

    labelsure study report runs/paper --out study.html
    """
    from labelsure.study.report import make_study_page

    names = ("plan.toml", "scores.parquet", "features.parquet")
    output = output_of("study report", locals(), [folder / name for name in names])
    read = sorted(folder.rglob("*.*"))  # a page may stand beside the files of a run
    write_page(
        lambda: (make_study_page(folder, n_jobs=jobs), ""),
        output,
        read,
        out,
        overwrite=overwrite,
        as_json=as_json,
        quiet=quiet,
    )


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


def _print_summary(run: StudyRun) -> None:
    """Print accuracies, how well candidates rank, where the files are, and what to do next."""
    import pandas as pd

    from labelsure.study.analyses import Analyses
    from labelsure.study.tables import accuracy_table

    console = make_console()
    if len(run.scores):
        table = accuracy_table(Analyses(run.scores, run.features, run.plan))
        console.print(_rich_table(table.title, table.frame.reset_index()))
    if (run.folder / CORRELATIONS).is_file():
        values = pd.read_csv(run.folder / CORRELATIONS).query("association == 'kendall'")
        means = values.pivot_table("correlation", "candidate", "metric", sort=False)
        title = "Mean rank correlation of candidates and accuracy"
        console.print(_rich_table(title, means.map("{:.3f}".format).reset_index()))
    for name, failure in run.failures.items():
        console.print(f"FAILED {name}: {first_line(failure['message'])}")
    cells = f"Cells: {run.n_computed} computed, {run.n_kept} kept, {len(run.failures)} failed"
    console.print(f"{cells}; {run.seconds:.0f} s.")
    console.print(f"Scores   {run.folder / 'scores.parquet'}")
    for name in ("tables", "figures"):
        n_files = sum(path.is_file() for path in (run.folder / name).glob("*"))
        console.print(f"{name.capitalize():<8} {run.folder / name} ({n_files} files)")
    if run.failures:
        console.print(f"Failures {run.folder / 'failures.json'}")
    console.print(f"Next     labelsure study report {run.folder} --out study.html")


def _rich_table(title: str, frame: pd.DataFrame) -> Table:
    from rich.table import Table

    table = Table(title=title)
    for number, name in enumerate(frame.columns):
        is_text = frame.iloc[:, number].str.match("[A-Za-z]").all()
        table.add_column(str(name), justify="left" if is_text else "right", no_wrap=True)
    for row in frame.to_numpy():
        table.add_row(*row)
    return table
