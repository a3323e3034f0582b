"""Run the benchmarks: all, or those named on the command line.

`python -m benchmarks --page docs/evidence/speeds.md` also writes what came out as a page.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks import (
    chains,
    classifiers,
    core,
    engines,
    estimation,
    first_use,
    many_labels,
    million_labels,
    regions,
    scoring,
    trellis,
    waits,
)
from benchmarks.measure import Benchmark, Row
from benchmarks.speeds_page import write_page

MODULES = (
    core,
    chains,
    trellis,
    engines,
    many_labels,
    million_labels,
    classifiers,
    estimation,
    first_use,
    regions,
    scoring,
    waits,
)
BENCHMARKS: dict[str, Benchmark] = {
    name: run for module in MODULES for name, run in module.BENCHMARKS.items()
}
if len(BENCHMARKS) < sum(len(module.BENCHMARKS) for module in MODULES):
    raise ValueError("Two benchmarks have one name, so that only one of them would run.")


def main(arguments: list[str]) -> int:
    """Print a row for each claim; 1 if one is missed."""
    parser = argparse.ArgumentParser(prog="benchmarks", description="Run the benchmarks.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="all of them without a name")
    parser.add_argument(
        "--page",
        nargs="?",
        type=Path,
        const=Path("docs/evidence/speeds.md"),
        help="write what came out as a page: docs/evidence/speeds.md, or another file",
    )
    parser.add_argument(
        "--note", default="", help="what readers of the page should know of the run"
    )
    chosen = parser.parse_args(arguments)
    unknown = set(chosen.names) - set(BENCHMARKS)
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}; known: {', '.join(BENCHMARKS)}")
    console = Console(width=140)
    rows = []
    for name in chosen.names or BENCHMARKS:
        for row in BENCHMARKS[name]():
            console.print(*_print_row(row), sep="  ", highlight=False)
            rows.append(row)
    table = Table("benchmark", "measured", "needed", "goal", "verdict")
    for row in rows:
        table.add_row(*_print_row(row))
    console.print(table)
    if chosen.page is not None:
        run = chosen.names or list(BENCHMARKS)
        not_run = [name for name in BENCHMARKS if name not in run]
        write_page(chosen.page, rows, _print_row, not_run, chosen.note)
    return int(any(row.verdict == "MISSED" for row in rows))


def _print_row(row: Row) -> tuple[str, ...]:
    sign = ">=" if row.larger_is_better else "<="
    goal = "" if row.goal is None else f"{sign} {row.goal:g}"
    return row.what, f"{row.value:.3g} {row.unit}", f"{sign} {row.needed:g}", goal, row.verdict


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
