"""Run the benchmarks: all, or those named on the command line.

`python -m benchmarks --page docs/benchmarks.md` also writes what came out as a page.
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
)
from benchmarks.measure import Benchmark, Row

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
)
BENCHMARKS: dict[str, Benchmark] = {
    name: run for module in MODULES for name, run in module.BENCHMARKS.items()
}
if len(BENCHMARKS) < sum(len(module.BENCHMARKS) for module in MODULES):
    raise ValueError("Two benchmarks have one name, so that only one of them would run.")


INTRODUCTION = """# Benchmarks

Made by `python -m benchmarks --page docs/benchmarks.md`, not by hand; `make bench` prints the same
table. Machines differ, so most rows are ratios to a peer, or to what the hardware can do at best,
in the same run. `needed` is what we hold ourselves to, `goal` what would be better still. A row
that is missed is shown as such.

| benchmark | measured | needed | goal | verdict |
|---|---|---|---|---|
"""


def main(arguments: list[str]) -> int:
    """Print a row for each claim; 1 if one is missed."""
    parser = argparse.ArgumentParser(prog="benchmarks", description="Run the benchmarks.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="all of them without a name")
    parser.add_argument("--page", type=Path, help="a Markdown file to write")
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
        lines = [f"| {' | '.join(_print_row(row))} |" for row in rows]
        chosen.page.write_text(INTRODUCTION + "\n".join(lines) + "\n", encoding="utf-8")
    return int(any(row.verdict == "MISSED" for row in rows))


def _print_row(row: Row) -> tuple[str, ...]:
    sign = ">=" if row.larger_is_better else "<="
    goal = "" if row.goal is None else f"{sign} {row.goal:g}"
    return row.what, f"{row.value:.3g} {row.unit}", f"{sign} {row.needed:g}", goal, row.verdict


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
