"""``labelsure monitor``: whether anything has changed since a model was calibrated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from labelsure.cli._console import write_page
from labelsure.cli._options import (
    MODELS,
    REQUIRED,
    Given,
    choose,
    command,
    option,
    output_of,
)
from labelsure.cli._scoring import SOURCES, watched


@command(
    f"model inputs out time every truth drawn bound {SOURCES} title trust overwrite as_json quiet",
    group=MODELS,
    out=option(Path, "--out -o", "The HTML file to write.", Path("monitor.html")),
    time=option(str, "--time", "The column of dates.", REQUIRED),
    every=option(str, "--every", "Chunks: D, W-MON, MS or another frequency of pandas.", "W-MON"),
    truth=option(str, "--truth", "Labels of rows that were drawn at random, with --id."),
    drawn=option(float, "--drawn", "Probability with which a row was drawn.", min=0, max=1),
    bound=option(float, "--bound", "Acceptable mean accuracy; by default from calibration."),
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
