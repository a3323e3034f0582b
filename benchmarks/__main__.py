"""Run the benchmarks: all, or those named on the command line."""

from __future__ import annotations

import sys

from rich.console import Console
from rich.table import Table

from benchmarks import (
    chains,
    classifiers,
    core,
    engines,
    estimation,
    first_use,
    scoring,
    trellis,
)
from benchmarks.measure import Benchmark

MODULES = (core, chains, trellis, engines, classifiers, estimation, first_use, scoring)
BENCHMARKS: dict[str, Benchmark] = {
    name: run for module in MODULES for name, run in module.BENCHMARKS.items()
}
if len(BENCHMARKS) < sum(len(module.BENCHMARKS) for module in MODULES):
    raise ValueError("Two benchmarks have one name, so that only one of them would run.")


def main(names: list[str]) -> int:
    """Print a row for each claim; 1 if one is missed."""
    console = Console(width=140)
    unknown = set(names) - set(BENCHMARKS)
    if unknown:
        console.print(f"Unknown: {', '.join(unknown)}. Known: {', '.join(BENCHMARKS)}.")
        return 2
    table = Table("benchmark", "measured", "needed", "goal", "verdict")
    missed = 0
    for name in names or BENCHMARKS:
        for row in BENCHMARKS[name]():
            sign = ">=" if row.larger_is_better else "<="
            goal = "" if row.goal is None else f"{sign} {row.goal:g}"
            line = (f"{row.value:.3g} {row.unit}", f"{sign} {row.needed:g}", goal, row.verdict)
            table.add_row(row.what, *line)
            missed += row.verdict == "MISSED"
            console.print(row.what, *line, sep="  ", highlight=False)
    console.print(table)
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
