"""Run the benchmarks: all, or those named on the command line.

`python -m benchmarks --page` also writes docs/evidence/speeds.csv, after each benchmark, and at the
end the page that is made of it. Rows of benchmarks that were not named stay as they were measured.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from math import nan

from rich.console import Console
from rich.table import Table

from benchmarks import (
    arff,
    chains,
    classifiers,
    conformal_peers,
    core,
    estimation,
    first_use,
    many_labels,
    million_labels,
    rates,
    regions,
    scoring,
    trellis,
    waits,
)
from benchmarks.measure import Benchmark, Row
from benchmarks.speeds_page import PAGE, read_rows, write_page, write_rows

MODULES = (
    arff,
    waits,
    estimation,
    rates,
    first_use,
    scoring,
    classifiers,
    conformal_peers,
    core,
    chains,
    trellis,
    many_labels,
    million_labels,
    regions,
)
BENCHMARKS: dict[str, Benchmark] = {
    name: run for module in MODULES for name, run in module.BENCHMARKS.items()
}
if len(BENCHMARKS) < sum(len(module.BENCHMARKS) for module in MODULES):
    raise ValueError("Two benchmarks have one name, so that only one of them would run.")


def run(name: str) -> Iterator[Row]:
    """Yield the rows of a benchmark; one that says why where it fails."""
    try:
        yield from BENCHMARKS[name]()
    except Exception as error:  # the other benchmarks go on
        message = " ".join(str(error).split())
        yield Row(f"{name}: {type(error).__name__}: {message}", nan, "")


def main(arguments: Sequence[str]) -> int:
    """Print a row for each measurement; 1 if an aim is missed or a benchmark fails."""
    parser = argparse.ArgumentParser(prog="benchmarks", description="Run the benchmarks.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="all of them without a name")
    parser.add_argument("--page", action="store_true", help=f"write {PAGE}")
    chosen = parser.parse_args(arguments)
    unknown = set(chosen.names) - set(BENCHMARKS)
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}; known: {', '.join(BENCHMARKS)}")
    names = chosen.names or list(BENCHMARKS)
    warnings.simplefilter("ignore")  # of shifts, targets out of reach and learners that stop early
    console = Console(width=140)
    kept = [r for r in read_rows() if r["benchmark"] in BENCHMARKS and r["benchmark"] not in names]
    rows: list[tuple[Row, dict[str, object]]] = []
    for name in names:
        began, load = time.monotonic(), os.getloadavg()[0]
        for row in run(name):
            now = datetime.now(UTC).isoformat(" ", "minutes")
            rows.append((row, {"benchmark": name, "time": now, "load": load}))
            load = os.getloadavg()[0]
            console.print(*_show(row), sep="  ", highlight=False)
        console.print(f"{name}: {time.monotonic() - began:.0f} s", style="dim")
        if chosen.page:
            write_rows([*kept, *(vars(row) | stamp for row, stamp in rows)], list(BENCHMARKS))
    table = Table("measurement", "value", "aim", "verdict")
    for row, _ in rows:
        table.add_row(*_show(row))
    console.print(table)
    if chosen.page:
        write_page()
    return int(any(row.verdict in ("MISSED", "not measured") for row, _ in rows))


def _show(row: Row) -> tuple[str, ...]:
    sign = ">=" if row.larger_is_better else "<="
    aim = "" if row.aim is None else f"{sign} {row.aim:g}"
    return row.what, f"{row.value:.3g} {row.unit}", aim, row.verdict


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
