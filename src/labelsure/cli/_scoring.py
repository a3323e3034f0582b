"""``labelsure score``, ``estimate``, ``report``, ``monitor``: predictions and their accuracy."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import typer

from labelsure._runtime.progress import ProgressBar
from labelsure.cli import _options as opt
from labelsure.cli._console import (
    CHECK_FAILED,
    NOTHING_TO_DO,
    STDOUT,
    print_facts,
    print_failure,
    print_json,
    print_notes,
    quote,
    write_page,
)
from labelsure.cli._options import (
    MODELS,
    Command,
    app,
    arguments,
    labelled,
    printing,
    reading,
    shares,
)
from labelsure.errors import InputError

if TYPE_CHECKING:
    from labelsure._runtime.pages import Page
    from labelsure._runtime.typing import AnyPath, JsonObject
    from labelsure.estimation._batch_estimates import Estimate
    from labelsure.tables.gate import FileEstimate
    from labelsure.tables.scoring import ScoreRun


@contextmanager
def watched(context: typer.Context, inputs: list[str]) -> Iterator[tuple[list[str], ProgressBar]]:
    """Yield the inputs, with a file in place of "-", and a progress bar; print notes at the end."""
    from labelsure.errors import ShiftWarning, record_warnings

    quiet = context.params["quiet"] or context.params["as_json"]
    with (
        record_warnings(ShiftWarning),  # a shift is part of the summary
        print_notes(quiet),
        ProgressBar("rows", quiet=quiet, logs=True) as bar,
        TemporaryDirectory() as folder,
    ):
        stdin = _keep_stdin(Path(folder)) if STDOUT in inputs else ""
        yield [stdin if name == STDOUT else name for name in inputs], bar


def _keep_stdin(folder: Path) -> str:
    """Path of a file with the content of standard input; its first bytes give the format."""
    first = sys.stdin.buffer.read(4)
    suffix = ".jsonl" if first.lstrip()[:1] in (b"{", b"[") else ".csv"
    path = folder / f"stdin{'.parquet' if first == b'PAR1' else suffix}"
    with open(path, "wb") as file:
        file.write(first)
        shutil.copyfileobj(sys.stdin.buffer, file)
    return str(path)


@app.command(cls=Command, rich_help_panel=MODELS)
@shares(reading, printing)
def score(
    context: typer.Context,
    model: opt.Model,
    inputs: opt.Inputs,
    out: opt.ScoresOut,
    top: opt.Top = 3,
    sep: opt.WrittenSep = ";",
    open_cost: opt.OpenCost = None,
    spreadsheet_safe: opt.SpreadsheetSafe = False,
    audit: opt.Audit = None,
    seed: opt.AuditSeed = 0,
    no_probabilities: opt.NoProbabilities = False,
    bad_rows: opt.BadRows = None,
    n_jobs: opt.Jobs = None,
    scheduler: opt.Scheduler = None,
    trust: opt.Trust = None,
) -> None:
    """Predict labels for the rows of files, with an estimated accuracy for each.

    If the run is killed, run the same command again to resume.

    [bold]Examples[/bold]

    labelsure score tickets.labelsure new.csv --out predictions.csv

    labelsure score tickets.labelsure folder --out predictions.parquet --bad-rows bad.jsonl

    labelsure score tickets.labelsure new.csv --audit 200 --out predictions.csv

    zcat new.csv.gz | labelsure score tickets.labelsure - --out - | head
    """
    from labelsure.tables.scoring import score_files

    to_stdout, as_json = out == STDOUT, context.params["as_json"]
    if as_json and to_stdout:
        raise InputError("Standard output takes predictions or `--json`, got both. Leave one out.")
    with watched(context, inputs) as (files, bar):
        overrides: JsonObject = {
            "inputs": files,
            "out": "/dev/stdout" if to_stdout else out,
            "probabilities": False if no_probabilities else None,
            "progress": bar,
        }
        run = score_files(**arguments(context, score_files, **overrides))
    if as_json:
        print_json(asdict(run))
    elif not context.params["quiet"]:
        facts = [*_describe_run(run, bad_rows)]
        if STDOUT not in (out, *inputs):
            scored = ["--scored", out, "--out", "report.html"]
            facts.append(("Next", quote("report", model, *inputs, *scored)))
        if run.n_kept == run.n_parts:
            facts.append(("", NOTHING_TO_DO))
        print_facts(facts, stderr=to_stdout)


def _describe_run(run: ScoreRun, bad_rows: Path | None) -> Iterator[tuple[str, str]]:
    accepted = "no target or share was set"
    if run.n_accepted is not None:
        n_referred = run.n_rows - run.n_accepted
        accepted = f"{run.n_accepted:,} accepted, {n_referred:,} referred to a person"
    yield "Predictions", f"{run.n_rows:,} ({accepted})"
    yield f"Mean {run.metric}", f"{run.mean_estimated:.3f} (estimated)"
    yield "Shift", run.shift
    if run.n_audited:
        yield (
            "Audit",
            (
                f"{run.n_audited:,} random rows: label these, and give the labels to `labelsure "
                "estimate --truth`. Labels of doubtful rows say nothing about all rows."
            ),
        )
    if run.n_bad:
        yield "Bad rows", f"{run.n_bad:,} set aside in {bad_rows}"
    if 0 < run.n_kept < run.n_parts:
        yield "Kept", f"{run.n_kept} of {run.n_parts} parts from an earlier run"
    yield "Written to", run.out


@app.command(cls=Command, rich_help_panel=MODELS)
@shares(reading, labelled, printing)
def estimate(
    context: typer.Context,
    model: opt.Model,
    inputs: opt.Inputs,
    metric: opt.BatchMetric = None,
    truth: opt.DrawnTruth = None,
    level: opt.Level = None,
    shift: opt.Shift = "test",
    by_file: opt.ByFile = False,
    fail_below: opt.FailBelow = None,
    strict: opt.StrictGate = False,
    fail_on_shift: opt.FailOnShift = False,
    bad_rows: opt.BadRows = None,
    n_jobs: opt.Jobs = None,
    scheduler: opt.Scheduler = None,
    trust: opt.Trust = None,
) -> None:
    """Estimate the mean accuracy of the predictions for all rows of files, with few or no labels.

    It tests for a shift from the calibration set. If it finds one, it adds an importance-weighted
    estimate, or says that too few calibration rows resemble the input.

    In a pipeline, --fail-below and --fail-on-shift set the exit code: 0 passed, 1 failed, 2 wrong
    input. Under a shift the weighted estimate counts; without one, --fail-below fails.

    [bold]Examples[/bold]

    labelsure estimate tickets.labelsure new.csv

    labelsure estimate tickets.labelsure new.csv --truth audited.csv --id ticket

    labelsure estimate tickets.labelsure week/ --metric macro-f1 --fail-below 0.6 --fail-on-shift
    """
    from labelsure.tables.estimates import sum_files
    from labelsure.tables.gate import Gate

    gate = Gate(fail_below, strict, fail_on_shift)
    if fail_on_shift and (truth is not None or shift != "test"):
        raise InputError(
            "`--fail-on-shift` needs the shift test, which `--truth` and `--shift` other than test "
            "leave out. Drop one of them."
        )
    with watched(context, inputs) as (files, bar):
        sums = sum_files(**arguments(context, sum_files, inputs=files, progress=bar))
        overall = sums.assess(level=level, shift=shift)
        by_name = sums.assess_files(level=level, shift=shift)
    if overall.plain is None and not gate.is_set:
        raise InputError(overall.refusal)
    failures = gate.all_failures(overall, by_name)
    if context.params["as_json"]:
        values = overall.to_dict() | ({"n_bad": sums.n_bad} if bad_rows else {})
        if by_file:
            values["files"] = [one.to_dict() for one in by_name]
        if gate.is_set:
            values["gate"] = {"passed": not failures, "failures": failures}
        print_json(values)
    elif not context.params["quiet"]:
        facts = [*_list_estimates(overall, by_name)]
        if bad_rows is not None:
            facts.append(("Bad rows", f"{sums.n_bad:,} set aside in {bad_rows}"))
        if gate.is_set:
            facts.append(("Gate", "failed" if failures else "passed"))
        elif truth is None:
            facts += _suggest_audit(model, inputs)
        print_facts(facts)
    if failures:
        print_failure(f"Gate failed: {'; '.join(failures)}.")
        raise typer.Exit(CHECK_FAILED)


def _list_estimates(overall: FileEstimate, files: list[FileEstimate]) -> Iterator[tuple[str, str]]:
    yield "Estimate", overall.refusal if overall.plain is None else str(overall.plain)
    yield "Shift", overall.shift
    if overall.weighted is not None:
        yield "Weighted", f"From the importance-weighted calibration set: {overall.weighted}"
    elif overall.plain is not None:
        yield "Weighted", overall.refusal
    for one in files:
        yield one.name, one.refusal if one.plain is None else _describe_estimate(one.plain)


def _describe_estimate(result: Estimate) -> str:
    """Estimate and shift test of one file on one line."""
    ends = f"{result.low:.3f} to {result.high:.3f}"
    interval = f"{result.mean:.3f} ({ends}), n = {result.n_samples:,}"
    test = result.shift
    if test is None:
        return (
            f"{interval}; not tested for shift: {result.untested}" if result.untested else interval
        )
    return f"{interval}; {test.brief}, p = {test.p_value:.2g}"


def _suggest_audit(model: Path, inputs: list[str]) -> Iterator[tuple[str, str]]:
    yield (
        "Labels",
        "Labels of random rows give a valid interval under any shift; labels of rows that were "
        "chosen in another way do not.",
    )
    names = ["INPUT" if name == STDOUT else name for name in inputs]
    yield "Next", quote("score", model, *names, "--audit", "200", "--out", "predictions.csv")
    yield "", quote("estimate", model, *names, "--truth", "LABELLED.csv")


@app.command(cls=Command, rich_help_panel=MODELS)
@shares(reading, labelled, printing)
def report(
    context: typer.Context,
    model: opt.Model,
    inputs: opt.SomeInputs = None,
    out: opt.PageOut = Path("report.html"),
    scored: opt.Scored = None,
    show: opt.Show = None,
    truth: opt.Truth = None,
    bad_rows: opt.BadRows = None,
    title: opt.Title = None,
    open_cost: opt.OpenCost = None,
    n_jobs: opt.Jobs = None,
    trust: opt.Trust = None,
) -> None:
    """Write one HTML file that shows how accurate a model and its predictions are.

    [bold]Examples[/bold]

    labelsure report tickets.labelsure new.csv --show subject,message --out report.html

    labelsure report tickets.labelsure new.csv --scored predictions.csv --out report.html

    labelsure report tickets.labelsure labelled.csv --truth labelled.csv --out report.html
    """
    if model.is_dir():
        raise InputError(
            f"MODEL must be a saved model, got the folder {str(model)!r}. A study has its own "
            "command: `labelsure study report`."
        )

    def make_page() -> tuple[Page, str]:
        from labelsure.tables.estimates import report_files

        with watched(context, inputs or []) as (files, bar):
            shown = show.split(",") if show else ()
            overrides: JsonObject = {"inputs": files, "show": shown, "progress": bar}
            page = report_files(**arguments(context, report_files, **overrides))
        return page, page.data["alert"] or page.data["answer"][0]

    read: list[AnyPath] = [model, *(inputs or []), *filter(None, (truth, scored))]
    write_page(context, read, make_page, "Summary")


@app.command(cls=Command, rich_help_panel=MODELS)
@shares(reading, labelled, printing)
def monitor(
    context: typer.Context,
    model: opt.Model,
    inputs: opt.Inputs,
    time: opt.Time = None,
    time_format: opt.TimeFormat = None,
    out: opt.PageOut = Path("monitor.html"),
    every: opt.Every = None,
    truth: opt.MonitorTruth = None,
    drawn: opt.Drawn = None,
    bound: opt.Bound = None,
    bad_rows: opt.BadRows = None,
    title: opt.Title = None,
    trust: opt.Trust = None,
) -> None:
    """Watch a model over time: estimates by chunk, and alarms that are valid at every time.

    Chunks are weeks or other periods of --time; without it, files in the order of their names.
    Give all rows from the beginning each time. A stream that does not change ever raises an alarm
    with a probability of at most 5%.

    [bold]Examples[/bold]

    labelsure monitor tickets.labelsure weeks/*.csv

    labelsure monitor tickets.labelsure all.csv --time received --time-format %d.%m.%Y

    labelsure monitor tickets.labelsure all.csv --time received --truth audit.csv --id ticket --drawn 0.05
    """  # noqa: E501, a command stands on one line

    def make_page() -> tuple[Page, str]:
        from labelsure.tables.estimates import monitor_files

        with watched(context, inputs) as (files, _):
            table = monitor_files(**arguments(context, monitor_files, inputs=files))
        return table.report(**({"title": title} if title else {})), str(table)

    read: list[AnyPath] = [model, *inputs, *([truth] if truth else [])]
    write_page(context, read, make_page, "Alert")
