"""``labelsure estimate``: how accurate the predictions for files are, and whether to believe it."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import TYPE_CHECKING, Annotated, Any

import typer

from labelsure.cli._console import make_console
from labelsure.cli._options import (
    FewLabelsOption,
    InputArgument,
    JobsOption,
    JsonOption,
    LabelColumnOption,
    LabelSeparatorOption,
    ModelArgument,
    PopulationOption,
    RowNamesOption,
    RowsOption,
    SchedulerOption,
    ShiftOption,
    TrustOption,
)
from labelsure.cli._progress_bars import RowLines

if TYPE_CHECKING:
    from labelsure.estimation._batch_estimates import Estimate
    from labelsure.tables.estimates import FileSums

LABELS_ADVICE = (
    "Labels of rows drawn at random give an interval that holds whatever has changed: `labelsure "
    "score --audit` draws rows; give their labels by `--truth`. Rows that somebody chose instead "
    "make the estimate wrong."
)


def estimate(
    model: ModelArgument,
    inputs: InputArgument,
    metric: Annotated[
        str | None,
        typer.Option("--metric", help="The model's own, which is the default."),
    ] = None,
    level: Annotated[
        float | None, typer.Option("--level", help="How often such an interval covers.")
    ] = None,
    shift: ShiftOption = "test",
    truth: FewLabelsOption = None,
    population: PopulationOption = False,
    id_column: RowNamesOption = None,
    label_column: LabelColumnOption = None,
    sep: LabelSeparatorOption = None,
    jobs: JobsOption = None,
    scheduler: SchedulerOption = None,
    rows_per_unit: RowsOption = None,
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
    from labelsure.tables.files import UNIT_ROWS

    with RowLines(quiet=as_json) as lines:
        found = sum_files(
            model,
            inputs,
            metric=metric,
            shift=shift,
            truth=truth,
            id_column=id_column,
            label_column=label_column,
            sep=sep,
            rows_per_unit=rows_per_unit or UNIT_ROWS,
            n_jobs=jobs,
            scheduler=scheduler,
            trust=trust or (),
            progress=lines,
        )
    parts = _describe(found, level, shift, population)
    if as_json:
        print(json.dumps(_as_json(parts), indent=2))
    else:
        _print(parts, has_labels=truth is not None)


def _describe(found: FileSums, level: float | None, shift: str, population: bool) -> dict[str, Any]:
    """Return the estimate, and, where a shift was found, the weighted one or why there is none."""
    from labelsure._runtime.warnings import hold_warnings
    from labelsure.errors import NotEstimableError, ShiftWarning

    with hold_warnings(ShiftWarning):  # it is printed
        plain = found.estimate(level=level, shift=shift, population=population)
    parts: dict[str, Any] = {"estimate": plain, "weighted": None, "refusal": None}
    if plain.shift is not None and plain.shift.found:
        try:
            parts["weighted"] = found.estimate(level=level, shift="weighted")
        except NotEstimableError as error:
            parts["refusal"] = str(error)
    return parts


def _print(parts: dict[str, Any], *, has_labels: bool) -> None:
    from labelsure.estimation._shift_test import say_shift

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
