"""``labelsure score``, ``estimate``, ``report``, ``monitor``: what predictions are worth."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, fields
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from labelsure._runtime.progress import ProgressBar
from labelsure.cli._console import (
    NOTHING_TO_DO,
    STDOUT,
    open_stdout,
    print_facts,
    print_json,
    print_notes,
    quote,
    write_page,
)
from labelsure.cli._options import (
    MODELS,
    REQUIRED,
    Given,
    argument,
    choose,
    command,
    option,
    output_of,
)
from labelsure.errors import InputError

if TYPE_CHECKING:
    from labelsure.estimation._batch_estimates import Estimate
    from labelsure.tables.estimates import FileSums
    from labelsure.tables.scoring import ScoreRun


@contextmanager
def watched(given: Given, inputs: list[str]) -> Iterator[tuple[list[str], ProgressBar]]:
    """Yield the inputs, with a file in place of "-", and a bar; notes are printed at the end."""
    from labelsure.errors import ShiftWarning, hold_warnings

    quiet = given.quiet or given.as_json
    with (
        hold_warnings(ShiftWarning),  # a shift is part of the summary
        print_notes(quiet),
        ProgressBar("rows", quiet=quiet, logs=True) as bar,
        TemporaryDirectory() as folder,
    ):
        stdin = _keep_stdin(Path(folder)) if STDOUT in inputs else ""
        yield [stdin if name == STDOUT else name for name in inputs], bar


def _keep_stdin(folder: Path) -> str:
    """Write standard input to a file, whose format follows from its first bytes."""
    first = sys.stdin.buffer.read(4)
    suffix = ".jsonl" if first.lstrip()[:1] in (b"{", b"[") else ".csv"
    path = folder / f"stdin{'.parquet' if first == b'PAR1' else suffix}"
    with open(path, "wb") as file:
        file.write(first)
        shutil.copyfileobj(sys.stdin.buffer, file)
    return str(path)


WRITTEN = "id_column top sep csv_sep encoding open_cost spreadsheet_safe audit seed"
"""Options of `score` that change what is written, as the library knows them."""


@command(
    f"model inputs out {WRITTEN} no_probabilities bad_rows n_jobs scheduler trust overwrite "
    "as_json quiet",
    group=MODELS,
    out=option(
        str,
        "--out -o",
        "A .csv, .tsv, .jsonl or .parquet file; a folder of parts without a suffix; - is "
        "standard output.",
        REQUIRED,
    ),
    sep=option(str, "--label-sep", "Separator of label names in one cell of CSV.", ";"),
    seed=option(int, "--seed", "Random seed of the audit.", 0, min=0),
)
def score(given: Given) -> None:
    """Predict labels for the rows of files, and say what each prediction is worth.

    Killed at any moment, the same command goes on where it stopped.

    [bold]Examples[/bold]

    labelsure score tickets.labelsure new.csv --out predictions.csv

    labelsure score tickets.labelsure folder --out predictions.parquet --bad-rows bad.jsonl

    labelsure score tickets.labelsure new.csv --audit 200 --out predictions.csv

    zcat new.csv.gz | labelsure score tickets.labelsure - --out - | head
    """
    from labelsure.tables.scoring import score_files

    to_stdout = given.out == STDOUT
    if given.as_json and to_stdout:
        raise InputError("Standard output takes predictions or `--json`, got both. Leave one out.")
    place = given.out if given.out.endswith("/") else open_stdout(given.out)
    with watched(given, given.inputs) as (inputs, bar):
        run = score_files(
            given.model,
            inputs,
            place,
            probabilities=False if given.no_probabilities else None,
            trust=given.trust or (),
            progress=bar,
            **choose(given, f"{WRITTEN} bad_rows n_jobs scheduler overwrite"),
        )
    if given.as_json:
        print_json(asdict(run))
    elif not given.quiet:
        print_facts(_describe_run(run, given), stderr=to_stdout)


def _describe_run(run: ScoreRun, given: Given) -> Iterator[tuple[str, str]]:
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
        yield "Bad rows", f"{run.n_bad:,} set aside in {given.bad_rows}"
    if 0 < run.n_kept < run.n_parts:
        yield "Kept", f"{run.n_kept} of {run.n_parts} parts from an earlier run"
    yield "Written to", run.out
    if STDOUT not in (given.out, *given.inputs):
        scored = ["--scored", given.out, "--out", "report.html"]
        yield "Next", quote("report", given.model, *given.inputs, *scored)
    if run.n_kept == run.n_parts:
        yield "", NOTHING_TO_DO


SOURCES = "id_column label_column sep csv_sep encoding"
"""Options that say how tables and their truth are read."""


@command(
    f"model inputs truth level shift {SOURCES} n_jobs scheduler trust as_json quiet",
    group=MODELS,
    truth=option(str, "--truth", "Labels of some rows, which were drawn at random."),
    label_column=option(str, "--label-column", "Column of label names in --truth."),
)
def estimate(given: Given) -> None:
    """Estimate the mean accuracy of the predictions for all rows of files, with few or no labels.

    It tests for a shift from the calibration set. If it finds one, it adds an importance-weighted
    estimate, or says that too few calibration rows resemble the input.

    [bold]Examples[/bold]

    labelsure estimate tickets.labelsure new.csv

    labelsure estimate tickets.labelsure new.csv --truth audited.csv --id ticket
    """
    from labelsure.tables.estimates import sum_files

    with watched(given, given.inputs) as (inputs, bar):
        found = sum_files(
            given.model,
            inputs,
            trust=given.trust or (),
            progress=bar,
            **choose(given, f"shift truth {SOURCES} n_jobs scheduler"),
        )
        parts = _describe(found, given.level, given.shift)
    if given.as_json:
        print_json(_as_json(parts))
    elif not given.quiet:
        print_facts(_list_estimates(parts, given))


def _describe(found: FileSums, level: float | None, shift: str) -> dict[str, Any]:
    """Return the estimate, and, where a shift was found, the weighted one or why there is none."""
    from labelsure.errors import NotEstimableError

    plain = found.estimate(level=level, shift=shift)
    parts: dict[str, Any] = {"estimate": plain, "weighted": None, "refusal": None}
    if plain.shift is not None and plain.shift.found:
        try:
            parts["weighted"] = found.estimate(level=level, shift="weighted")
        except NotEstimableError as error:
            parts["refusal"] = str(error)
    return parts


def _list_estimates(parts: dict[str, Any], given: Given) -> Iterator[tuple[str, str]]:
    from labelsure.estimation._shift import say_shift

    plain: Estimate = parts["estimate"]
    yield "Estimate", str(plain)
    if plain.shift is not None:
        yield "Shift", say_shift(plain.shift, "")
    if parts["weighted"] is not None:
        yield "Weighted", f"From the importance-weighted calibration set: {parts['weighted']}"
    if parts["refusal"] is not None:
        yield "Weighted", parts["refusal"]
    if given.truth is None:
        yield (
            "Labels",
            (
                "Labels of random rows give a valid interval under any shift; rows that somebody "
                "chose make the estimate wrong."
            ),
        )
        inputs = ["INPUT" if name == STDOUT else name for name in given.inputs]
        drawn = ["--audit", "200", "--out", "predictions.csv"]
        yield "Next", quote("score", given.model, *inputs, *drawn)
        yield "", quote("estimate", given.model, *inputs, "--truth", "LABELLED.csv")


def _as_json(parts: dict[str, Any]) -> dict[str, Any]:
    plain, test = parts["estimate"], parts["estimate"].shift
    return {
        **_plain_fields(plain),
        "shift": None
        if test is None
        else {
            "found": test.found,
            "auc": test.auc,
            "p_value": test.p_value,
            "moved": test.moved.reset_index().to_dict("records"),
        },
        "weighted": None if parts["weighted"] is None else _plain_fields(parts["weighted"]),
        "refusal": parts["refusal"],
    }


def _plain_fields(found: Estimate) -> dict[str, Any]:
    """Return what JSON has words for: not what is missing, nor the test."""
    values = {field.name: getattr(found, field.name) for field in fields(found)}
    del values["shift"]
    return {name: value for name, value in values.items() if value == value}


@command(
    f"model inputs out scored truth {SOURCES} show title open_cost n_jobs trust overwrite as_json "
    "quiet",
    group=MODELS,
    inputs=argument(list[str], "[INPUT...]", "Files or folders of rows to predict.", None),
    out=option(Path, "--out -o", "The HTML file to write.", Path("report.html")),
    scored=option(str, "--scored", "What `score` wrote for the input, instead of scoring again."),
    show=option(
        str, "--show", "Columns to show on the page, with commas between; none by default."
    ),
    truth=option(str, "--truth", "A table of the input's true labels."),
    label_column=option(str, "--label-column", "Column of label names in --truth."),
)
def report(given: Given) -> None:
    """Write one HTML file that shows how accurate a model and its predictions are.

    [bold]Examples[/bold]

    labelsure report tickets.labelsure new.csv --show subject,message --out report.html

    labelsure report tickets.labelsure new.csv --scored predictions.csv --out report.html

    labelsure report tickets.labelsure labelled.csv --truth labelled.csv --out report.html
    """
    if given.model.is_dir():
        raise InputError(
            f"MODEL must be a saved model, got the folder {str(given.model)!r}. A study has its "
            "own command: `labelsure study report`."
        )
    read = [given.model, *(given.inputs or []), *filter(None, (given.truth, given.scored))]

    def make_page() -> tuple[Any, str]:
        from labelsure.tables.estimates import report_files

        with watched(given, given.inputs or []) as (inputs, bar):
            page = report_files(
                given.model,
                inputs,
                show=given.show.split(",") if given.show else (),
                trust=given.trust or (),
                progress=bar,
                **choose(given, f"scored truth {SOURCES} title open_cost n_jobs"),
            )
        return page, page.data["alert"] or page.data["answer"][0]

    write_page(given, output_of("report", given, read), read, make_page, name="Summary")


@command(
    f"model inputs out time every truth drawn bound {SOURCES} title trust overwrite as_json quiet",
    group=MODELS,
    out=option(Path, "--out -o", "The HTML file to write.", Path("monitor.html")),
    time=option(str, "--time", "The column of dates.", REQUIRED),
    every=option(str, "--every", "Chunks: D, W-MON, MS or another frequency of pandas.", "W-MON"),
    truth=option(str, "--truth", "Labels of rows that were drawn at random, with --id."),
    drawn=option(float, "--drawn", "Probability with which a row was drawn.", min=0, max=1),
    bound=option(float, "--bound", "Lowest acceptable mean metric; from calibration by default."),
)
def monitor(given: Given) -> None:
    """Watch a model over time: estimates by chunk, and alarms that are valid at every time.

    Give all rows from the beginning each time. A stream that does not change ever raises an alarm
    with a probability of at most 5%.

    [bold]Examples[/bold]

    labelsure monitor tickets.labelsure tickets/*.csv --time received --every W-MON

    labelsure monitor tickets.labelsure all.csv --time received --truth audit.csv --id ticket --drawn 0.05
    """  # noqa: E501, a command stands on one line
    read = [given.model, *given.inputs, *([given.truth] if given.truth else [])]

    def make_page() -> tuple[Any, str]:
        from labelsure.tables.estimates import monitor_files

        with watched(given, given.inputs) as (inputs, _):
            table = monitor_files(
                given.model,
                inputs,
                trust=given.trust or (),
                **choose(given, f"time every truth drawn bound {SOURCES}"),
            )
        return table.report(**({"title": given.title} if given.title else {})), str(table)

    write_page(given, output_of("monitor", given, read), read, make_page, "Alert")
