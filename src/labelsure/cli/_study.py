"""``labelsure study``: run a plan, compare the run with the paper, and make a page of it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from labelsure._runtime.limits import MAX_REPEATS
from labelsure._runtime.storage import first_line
from labelsure.cli._console import (
    CELLS_FAILED,
    CHECK_FAILED,
    FINE,
    WRONG_INPUT,
    CellLines,
    make_console,
    on_one_line,
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
from labelsure.errors import LabelsureError

if TYPE_CHECKING:
    import pandas as pd
    from rich.table import Table

    from labelsure.study.run import StudyRun

CORRELATIONS = "tables/values_kendall.csv"
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
        problem = _write_report(done, lines, jobs)
    if as_json:
        print(json.dumps(_as_dict(done), indent=2))
    elif not quiet:
        _print_summary(done)
    if problem:
        print(f"labelsure: {on_one_line(problem)}", file=sys.stderr)
    raise typer.Exit(CELLS_FAILED if done.failures else WRONG_INPUT if problem else FINE)


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


def _write_report(run: StudyRun, lines: CellLines, n_jobs: int | None) -> str:
    """Write tables and figures; return what kept some of them from being made, or nothing."""
    from labelsure.study.report import write_report

    if run.scores.empty:
        return ""
    lines.note("Writing tables and figures")
    try:
        write_report(run, n_jobs=n_jobs, note=lines.note)
    except LabelsureError as error:  # the scores are there all the same
        return f"Not all tables and figures could be made: {error}"
    return ""


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
    """Print accuracies, expected accuracies and where the files are."""
    import pandas as pd

    console = make_console()
    if len(run.scores):
        console.print(_accuracy_table(_mean_accuracies(run), run.plan.metrics))
    if (run.folder / CORRELATIONS).is_file():
        console.print(_correlation_table(pd.read_csv(run.folder / CORRELATIONS)))
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


def _mean_accuracies(run: StudyRun) -> pd.DataFrame:
    """Return the mean actual and expected accuracy of the mode, by data set and classifier."""
    import pandas as pd

    from labelsure.estimation.score_table import ScoreTable

    table, columns = ScoreTable(run.scores), {}
    for metric in run.plan.metrics:
        columns[metric] = table.accuracy(metric, run.plan.empty)
        columns[f"expected {metric}"] = table.expected(metric, run.plan.empty)
    keys = [run.scores["dataset"], run.scores["classifier"]]
    return pd.DataFrame(columns).groupby(keys, sort=False).mean()


def _accuracy_table(means: pd.DataFrame, metrics: tuple[str, ...]) -> Table:
    from rich.table import Table

    table = Table(title="Mean accuracy of the most probable labelset: actual (expected)")
    for name in ("data set", "classifier"):
        table.add_column(name, no_wrap=True)
    for metric in metrics:
        table.add_column(metric, justify="right", no_wrap=True)
    for names, row in zip(means.index, means.to_numpy(), strict=True):
        pairs = row.reshape(-1, 2)
        table.add_row(*names, *(f"{actual:.3f} ({expected:.3f})" for actual, expected in pairs))
    return table


def _correlation_table(values: pd.DataFrame) -> Table:
    """Return how well each candidate ranks predictions, over all cells."""
    from rich.table import Table

    means = values.pivot_table("correlation", "candidate", "metric", sort=False)
    table = Table("candidate", title="Mean rank correlation of candidates and accuracy")
    for metric in means.columns:
        table.add_column(str(metric), justify="right")
    for candidate, row in zip(means.index, means.to_numpy(), strict=True):
        table.add_row(str(candidate), *(f"{value:.3f}" for value in row))
    return table
