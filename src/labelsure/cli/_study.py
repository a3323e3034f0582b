"""``labelsure study``: run a plan, compare the run with the paper, and make a page of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from labelsure._runtime.progress import ProgressBar
from labelsure._runtime.storage import first_line
from labelsure.cli import _options as opt
from labelsure.cli._console import (
    CELLS_FAILED,
    CHECK_FAILED,
    FINE,
    make_console,
    print_facts,
    print_json,
    print_table,
    quote,
    refuse_stdout,
    write_page,
)
from labelsure.cli._options import RESEARCH, Command, app

if TYPE_CHECKING:
    import pandas as pd
    from rich.table import Table

    from labelsure._runtime.typing import JsonObject
    from labelsure.study.run import CellEvent, StudyRun

CORRELATIONS = "tables/values_correlations.csv"

study_app = typer.Typer(
    help="Run a study, compare it with the paper, make a page of it.", rich_markup_mode="rich"
)
app.add_typer(study_app, name="study", rich_help_panel=RESEARCH)


class CellLines(ProgressBar):
    """Progress bar and lines for the events of `run_study`."""

    _n_kept = 0

    def draw(self, event: CellEvent) -> None:
        """Draw one event; kept cells only count, and get one line together."""
        self(event.n_finished, event.n_cells)
        if event.state == "kept":
            self._n_kept += 1
            if event.n_finished < event.n_cells:
                return
        if self._n_kept:
            self.note(f"{self._n_kept} cells kept from an earlier run")
            self._n_kept = 0
        if event.state != "kept":
            width = len(str(event.n_cells))
            counted = f"[{event.n_finished:>{width}}/{event.n_cells}]"
            failed = f" FAILED: {first_line(event.message)}" if event.state == "failed" else ""
            self.note(f"{counted} {event.cell} {event.seconds:.1f} s{failed}")


@study_app.command(cls=Command)
def run(
    out: opt.RunOut,
    plan: opt.PlanName = "embedded",
    data_dir: opt.DataDir = None,
    n_jobs: opt.Jobs = None,
    scheduler: opt.Scheduler = None,
    repeats: opt.Repeats = None,
    trust_imports: opt.TrustImports = False,
    overwrite: opt.Overwrite = False,
    as_json: opt.AsJson = False,
    quiet: opt.Quiet = False,
) -> None:
    """Run a study. If the run is killed, run the same command again to resume.

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
    with folder.locked(), CellLines("cells", quiet=quiet or as_json, logs=True) as lines:
        finished = run_study(
            chosen,
            folder,
            data_dir=data_dir,
            n_jobs=n_jobs,
            scheduler=scheduler,
            progress=lines.draw,
        )
        if len(finished.scores):
            lines.note("Writing tables and figures")
            write_report(finished, n_jobs=n_jobs)
    if as_json:
        print_json(_as_dict(finished))
    elif not quiet:
        _print_summary(finished)
    raise typer.Exit(CELLS_FAILED if finished.failures else FINE)


@study_app.command(cls=Command)
def check(
    folder: opt.RunDir,
    strict: opt.StrictCheck = False,
    n_jobs: opt.Jobs = None,
    as_json: opt.AsJson = False,
) -> None:
    """Compare a run with the paper: every published number, and a verdict for each conclusion.

    [bold]Examples[/bold]

    labelsure study check runs/paper

    labelsure study check runs/paper --strict --json
    """
    from labelsure.study.paper import check_against_paper

    comparison = check_against_paper(folder, n_jobs=n_jobs)
    if as_json:
        print_json(comparison.to_dict())
    else:
        print(comparison.to_markdown())
    raise typer.Exit(CHECK_FAILED if strict and comparison.misses else FINE)


@study_app.command(cls=Command)
def report(
    context: typer.Context,
    folder: opt.RunDir,
    out: opt.PageOut = Path("report.html"),
    n_jobs: opt.Jobs = None,
    overwrite: opt.Overwrite = False,
    as_json: opt.AsJson = False,
    quiet: opt.Quiet = False,
) -> None:
    """Write one HTML file with the results of a study.

    [bold]Example[/bold]

    labelsure study report runs/paper --out study.html
    """
    from labelsure.study.report import make_study_page

    names = ("plan.toml", "scores.parquet", "features.parquet")
    files = [folder / name for name in names]
    read = sorted(folder.rglob("*.*"))  # a page may stand beside the files of a run
    write_page(context, files, lambda: (make_study_page(folder, n_jobs=n_jobs), ""), read=read)


def _as_dict(run: StudyRun) -> JsonObject:
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
    """Print accuracies, rank correlations of candidates, files, and the next command."""
    import pandas as pd

    from labelsure.metrics.registry import METRICS
    from labelsure.study.analyses import Analyses
    from labelsure.study.tables import accuracy_table

    if len(run.scores):
        table = accuracy_table(Analyses(run.scores, run.features, run.plan))
        frame = table.frame.reset_index().rename(columns={"section": "Data set"})
        print_table(_rich_table(table.title, frame))
    if (run.folder / CORRELATIONS).is_file():
        values = pd.read_csv(run.folder / CORRELATIONS).query("association == 'kendall'")
        means = values.pivot_table("correlation", "candidate", "metric", sort=False)
        title = "Mean rank correlation of candidates and accuracy"
        shown = means.rename(columns=lambda name: METRICS[name].title).map("{:.3f}".format)
        print_table(_rich_table(title, shown.rename_axis("Candidate").reset_index()))
    for name, failure in run.failures.items():
        make_console().print(f"FAILED {name}: {first_line(failure['message'])}", style="red")
    counted = f"{run.n_computed} computed, {run.n_kept} kept, {len(run.failures)} failed"
    print_facts(
        [
            ("Cells", f"{counted}; {run.seconds:.0f} s"),
            ("Scores", str(run.folder / "scores.parquet")),
            ("Tables", str(run.folder / "tables" / "README.md")),
            ("Figures", str(run.folder / "figures")),
            ("Failures", str(run.folder / "failures.json") if run.failures else ""),
            ("Next", _next_command(run)),
        ]
    )


def _next_command(run: StudyRun) -> str:
    """Command that compares the run with the paper if it has its data sets, else the page."""
    from labelsure.study.conclusions import published_table

    papers = set(published_table("datasets")["dataset"])
    if set(run.plan.datasets) <= papers:
        return quote("study", "check", run.folder)
    return quote("study", "report", run.folder, "--out", "study.html")


def _rich_table(title: str, frame: pd.DataFrame) -> Table:
    from rich.table import Table

    table = Table(title=title)
    for number, name in enumerate(frame.columns):
        is_text = frame.iloc[:, number].str.match("[A-Za-z]").all()
        table.add_column(str(name), justify="left" if is_text else "right", no_wrap=True)
    for row in frame.to_numpy():
        table.add_row(*row)
    return table
