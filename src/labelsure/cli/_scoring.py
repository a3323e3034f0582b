"""``labelsure score``, ``estimate`` and ``report``: what predictions for files are worth."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, fields
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from labelsure._runtime.storage import check_output_file
from labelsure.cli._console import (
    STDOUT,
    InstanceBar,
    RowLines,
    make_console,
    open_stdout,
    print_notes,
)
from labelsure.cli._options import (
    NOTHING_TO_DO,
    AuditOption,
    BadRowsOption,
    ConfidenceOption,
    CsvSeparatorOption,
    FewLabelsOption,
    InputArgument,
    JobsOption,
    JsonOption,
    LabelColumnOption,
    LabelSeparatorOption,
    ModelArgument,
    OpenCostOption,
    OutOption,
    OverwriteOption,
    QuietOption,
    RowNamesOption,
    SchedulerOption,
    ShiftOption,
    TrustOption,
    output_of,
)
from labelsure.errors import InputError

if TYPE_CHECKING:
    from labelsure._runtime.pages import Page
    from labelsure._runtime.storage import FinishedOutput
    from labelsure._runtime.typing import AnyPath
    from labelsure.estimation._batch_estimates import Estimate
    from labelsure.tables.estimates import FileSums
    from labelsure.tables.scoring import ScoreRun

Inputs = Annotated[
    list[str] | None,
    typer.Argument(help="Files or folders of rows to predict.", metavar="[INPUT...]"),
]
LABELS_ADVICE = (
    "Labels of random rows give a valid interval under any shift: `labelsure "
    "score --audit` draws rows; give their labels by `--truth`. Rows that somebody chose instead "
    "make the estimate wrong."
)


@contextmanager
def read_stdin(inputs: list[str]) -> Iterator[list[str]]:
    """Yield the inputs, with a file of what standard input holds in place of "-"."""
    if STDOUT not in inputs:
        yield inputs
        return
    with TemporaryDirectory() as folder:
        first = sys.stdin.buffer.read(4)
        suffix = ".jsonl" if first.lstrip()[:1] in (b"{", b"[") else ".csv"
        path = Path(folder) / f"stdin{'.parquet' if first == b'PAR1' else suffix}"
        with open(path, "wb") as file:
            file.write(first)
            shutil.copyfileobj(sys.stdin.buffer, file)
        yield [str(path) if name == STDOUT else name for name in inputs]


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
    label_sep: LabelSeparatorOption = ";",
    csv_sep: CsvSeparatorOption = None,
    open_cost: OpenCostOption = None,
    spreadsheet_safe: Annotated[
        bool,
        typer.Option(
            "--spreadsheet-safe", help="Put ' before texts of CSV that look like formulas."
        ),
    ] = False,
    trust: TrustOption = None,
    overwrite: OverwriteOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Predict labels for the rows of files, and say what each prediction is worth.

    Killed at any moment, the same command goes on where it stopped.

    [bold]Examples[/bold]

    labelsure score tickets.labelsure new.csv --out predictions.csv

    labelsure score tickets.labelsure folder --out predictions.parquet --bad-rows bad.jsonl

    labelsure score tickets.labelsure new.csv --audit 200 --out predictions.csv

    zcat new.csv.gz | labelsure score tickets.labelsure - --out - | head
    """
    from labelsure._runtime.warnings import hold_warnings
    from labelsure.errors import ShiftWarning
    from labelsure.tables.scoring import score_files

    if as_json and out == STDOUT:
        raise InputError("Standard output takes predictions or `--json`, got both. Leave one out.")
    place = out if out.endswith("/") else open_stdout(out)
    is_quiet = as_json or quiet
    # A shift is part of the summary.
    with (
        hold_warnings(ShiftWarning),
        print_notes(is_quiet),
        RowLines(quiet=is_quiet) as lines,
        read_stdin(inputs) as rows,
    ):
        run = score_files(
            model,
            rows,
            place,
            id_column=id_column,
            top=top,
            probabilities=False if no_probabilities else None,
            sep=label_sep or ";",
            csv_sep=csv_sep,
            open_cost=open_cost,
            spreadsheet_safe=spreadsheet_safe,
            audit=audit,
            seed=seed,
            bad_rows=bad_rows,
            n_jobs=jobs,
            scheduler=scheduler,
            trust=trust or (),
            overwrite=overwrite,
            progress=lines,
        )
    if as_json:
        print(json.dumps({**asdict(run), "out": str(run.out)}, indent=2))
    else:
        _print_scored(run, bad_rows, to_stderr=out == STDOUT, quiet=quiet)


def _print_scored(run: ScoreRun, bad_rows: Path | None, *, to_stderr: bool, quiet: bool) -> None:
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


def estimate(
    model: ModelArgument,
    inputs: InputArgument,
    metric: Annotated[
        str | None,
        typer.Option("--metric", help="The model's own, which is the default."),
    ] = None,
    confidence: ConfidenceOption = None,
    shift: ShiftOption = "test",
    truth: FewLabelsOption = None,
    id_column: RowNamesOption = None,
    label_column: LabelColumnOption = None,
    label_sep: LabelSeparatorOption = None,
    csv_sep: CsvSeparatorOption = None,
    jobs: JobsOption = None,
    scheduler: SchedulerOption = None,
    trust: TrustOption = None,
    as_json: JsonOption = False,
) -> None:
    """Estimate the mean accuracy of the predictions for all rows of files, with few or no labels.

    It says whether the rows are like the labelled instances of the model, and if not, what the
    labelled ones like them say, or that there are too few.

    [bold]Examples[/bold]

    labelsure estimate tickets.labelsure new.csv

    labelsure estimate tickets.labelsure new.csv --truth audited.csv --id ticket
    """
    from labelsure.tables.estimates import sum_files

    with RowLines(quiet=as_json) as lines, read_stdin(inputs) as rows:
        found = sum_files(
            model,
            rows,
            metric=metric,
            shift=shift,
            truth=truth,
            id_column=id_column,
            label_column=label_column,
            sep=label_sep,
            csv_sep=csv_sep,
            n_jobs=jobs,
            scheduler=scheduler,
            trust=trust or (),
            progress=lines,
        )
    parts = _describe(found, confidence, shift)
    if as_json:
        print(json.dumps(_as_json(parts), indent=2))
    else:
        _print_estimate(parts, has_labels=truth is not None)


def _describe(found: FileSums, level: float | None, shift: str) -> dict[str, Any]:
    """Return the estimate, and, where a shift was found, the weighted one or why there is none."""
    from labelsure._runtime.warnings import hold_warnings
    from labelsure.errors import NotEstimableError, ShiftWarning

    with hold_warnings(ShiftWarning):  # it is printed
        plain = found.estimate(level=level, shift=shift)
    parts: dict[str, Any] = {"estimate": plain, "weighted": None, "refusal": None}
    if plain.shift is not None and plain.shift.found:
        try:
            parts["weighted"] = found.estimate(level=level, shift="weighted")
        except NotEstimableError as error:
            parts["refusal"] = str(error)
    return parts


def _print_estimate(parts: dict[str, Any], *, has_labels: bool) -> None:
    from labelsure.estimation._shift import say_shift

    console = make_console()
    plain: Estimate = parts["estimate"]
    console.print(str(plain))
    if plain.shift is not None:
        console.print(say_shift(plain.shift, ""))
    if parts["weighted"] is not None:
        console.print(f"By labelled instances like these: {parts['weighted']}")
    if parts["refusal"] is not None:
        console.print(parts["refusal"])
    if not has_labels:
        console.print(LABELS_ADVICE)


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


def report(
    model: ModelArgument,
    inputs: Inputs = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="The HTML file to write.")] = Path(
        "report.html"
    ),
    truth: Annotated[
        Path | None, typer.Option("--truth", help="A table of the input's true labels.")
    ] = None,
    label_column: LabelColumnOption = None,
    label_sep: LabelSeparatorOption = None,
    csv_sep: CsvSeparatorOption = None,
    id_column: RowNamesOption = None,
    show: Annotated[
        str | None,
        typer.Option("--show", help="Columns that the page may show, with commas; else none."),
    ] = None,
    title: Annotated[str | None, typer.Option("--title", help="Of the page.")] = None,
    open_cost: OpenCostOption = None,
    trust: TrustOption = None,
    overwrite: OverwriteOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Write one HTML file that shows how accurate a model and its predictions are.

    [bold]Examples[/bold]

    labelsure report tickets.labelsure new.csv --show subject,message --out report.html

    labelsure report tickets.labelsure labelled.csv --truth labelled.csv --out report.html
    """
    from labelsure._runtime.warnings import hold_warnings
    from labelsure.errors import ShiftWarning
    from labelsure.tables.estimates import report_files

    if model.is_dir():
        raise InputError(
            f"MODEL must be a saved model, got the folder {str(model)!r}. A study has its own "
            "command: `labelsure study report`."
        )
    read: list[str | Path] = [model, *(inputs or []), *([truth] if truth else [])]
    output = output_of("report", locals(), read)

    def make_page() -> tuple[Page, str]:
        is_quiet = quiet or as_json
        # A shift is part of the summary.
        with hold_warnings(ShiftWarning), print_notes(is_quiet), InstanceBar(is_quiet):
            page = report_files(
                model,
                inputs or [],
                truth=truth,
                label_column=label_column,
                sep=label_sep,
                csv_sep=csv_sep,
                id_column=id_column,
                show=show.split(",") if show else (),
                title=title,
                open_cost=open_cost,
                trust=trust or (),
            )
        return page, page.data["shift"]["sentence"] if "shift" in page.data else ""

    write_page(make_page, output, read, out, overwrite=overwrite, as_json=as_json, quiet=quiet)


def write_page(
    make_page: Callable[[], tuple[Page, str]],
    output: FinishedOutput,
    read: Iterable[AnyPath],
    out: Path,
    *,
    overwrite: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Write a page unless it is there, and say where; `make_page` also returns what to print."""
    is_stdout = str(out) == STDOUT
    check_output_file(open_stdout(out), read)
    found = None if is_stdout else output.find(overwrite=overwrite)
    if found is None:
        page, said = make_page()
        page.save(open_stdout(out))
        if not is_stdout:
            output.note({"said": said})
    else:
        said = found["said"]
    if as_json and not is_stdout:
        print(json.dumps({"out": str(out), "said": said, "is_new": found is None}, indent=2))
    elif not quiet:
        lines = [said, f"Report {out}", "" if found is None else NOTHING_TO_DO]
        print("\n".join(filter(None, lines)), file=sys.stderr if is_stdout else sys.stdout)
