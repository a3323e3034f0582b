"""``labelsure report``: one HTML file on a model and its predictions, or on a study."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from labelsure._runtime.storage import check_output_file
from labelsure.cli._console import STDOUT, open_stdout
from labelsure.cli._options import (
    NOTHING_TO_DO,
    OpenCostOption,
    OverwriteOption,
    RowsOption,
    TrustOption,
    output_of,
)
from labelsure.errors import InputError

if TYPE_CHECKING:
    from labelsure._runtime.pages import Page

Subject = Annotated[
    Path, typer.Argument(help="A saved model, or the folder of a study.", metavar="MODEL_OR_RUN")
]
Inputs = Annotated[
    list[str] | None,
    typer.Argument(help="Files or folders of rows to predict, for a model.", metavar="[INPUT...]"),
]


def report(
    subject: Subject,
    inputs: Inputs = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="The HTML file to write.")] = Path(
        "report.html"
    ),
    truth: Annotated[
        Path | None, typer.Option("--truth", help="A table of the input's true labels.")
    ] = None,
    label_column: Annotated[
        str | None, typer.Option("--label-column", help="Its column with the names of labels.")
    ] = None,
    sep: Annotated[
        str | None, typer.Option("--sep", help="Between names in that column, e.g. ';'.")
    ] = None,
    id_column: Annotated[
        str | None, typer.Option("--id", help="The column that names the rows.")
    ] = None,
    title: Annotated[str | None, typer.Option("--title", help="Of the page.")] = None,
    open_cost: OpenCostOption = None,
    rows_per_unit: RowsOption = None,
    trust: TrustOption = None,
    overwrite: OverwriteOption = False,
) -> None:
    """Write one HTML file that shows how accurate a model is, or what a study found.

    [bold]Examples[/bold]

    labelsure report tickets.labelsure new.csv --out report.html

    labelsure report tickets.labelsure labelled.csv --truth labelled.csv --out report.html

    labelsure report runs/paper --out study.html
    """
    read: list[str | Path] = [*_tables_of(subject), *(inputs or []), *([truth] if truth else [])]
    output = output_of("report", locals(), read)
    place = open_stdout(out)
    check_output_file(place, [*_files_of(subject), *(inputs or []), *([truth] if truth else [])])
    stream = sys.stderr if str(out) == STDOUT else sys.stdout
    found = None if str(out) == STDOUT else output.find(overwrite=overwrite)
    if found is not None:
        _say(found["shift"], f"Report {out}", NOTHING_TO_DO, stream=stream)
        return
    if subject.is_dir():
        page = _report_study(subject, given=bool(inputs or truth))
    else:
        from labelsure._runtime.warnings import hold_warnings
        from labelsure.errors import ShiftWarning
        from labelsure.tables.estimates import report_files
        from labelsure.tables.files import UNIT_ROWS

        with hold_warnings(ShiftWarning):  # it is printed
            page = report_files(
                subject,
                inputs or [],
                truth=truth,
                label_column=label_column,
                sep=sep,
                id_column=id_column,
                title=title,
                open_cost=open_cost,
                rows_per_unit=rows_per_unit or UNIT_ROWS,
                trust=trust or (),
            )
    page.save(place)
    shift = page.data["shift"]["sentence"] if "shift" in page.data else ""
    if str(out) != STDOUT:
        output.note({"shift": shift})
    _say(shift, f"Report {out}", stream=stream)


def _say(*sentences: str, stream: TextIO) -> None:
    print("\n".join(filter(None, sentences)), file=stream)


def _tables_of(subject: Path) -> list[Path]:
    """Return the file of a model, or the files of a run that its page is made from."""
    if not subject.is_dir():
        return [subject]
    return [subject / name for name in ("plan.toml", "scores.parquet", "features.parquet")]


def _files_of(subject: Path) -> list[Path]:
    """Return the file of a model, or those of a run; a page may stand beside these."""
    return sorted(subject.rglob("*.*")) if subject.is_dir() else [subject]


def _report_study(folder: Path, *, given: bool) -> Page:
    from labelsure.study.report import make_study_page

    if given:
        raise InputError(
            f"The folder {str(folder)!r} is taken for a study, which has no input and no truth. "
            "Leave them out, or name the file of a model."
        )
    return make_study_page(folder)
