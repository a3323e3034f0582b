"""The page of speeds: what a run of the benchmarks measured, as charts, a table and a CSV file."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from benchmarks.charts import COLOURS, INK, STYLE, save
from benchmarks.measure import Row
from labelsure._kernels.threads import n_threads

INTRODUCTION = """# Speed

How long labelsure takes, compared with the limits of the hardware and with other libraries.
Machines differ, so most rows are ratios of two measurements in one run. "Needed" is the limit that
we set for a row; rows that miss it are listed below.

`LABELSURE_DATA=FOLDER python -m benchmarks --page` measures everything again. {machine}
{run}

Times of chains, costs by number of labels, tables and reports are CPU time of one core, the least
of several runs. Comparisons with other libraries, with NumPy and with sums of arrays are wall-clock
time, which other work on the machine lengthens.

## Measured against needed

![Distance of each row from what is needed](../images/evidence/speeds.svg)

Rows left of the line are faster than needed. **{n_reached} of {n_rows} rows reach what is
needed.**

## Cost by number of labels

![Milliseconds of one core an instance against labels](../images/evidence/speeds_by_labels.svg)

Ensembles of ten logistic chains, milliseconds of one core for one instance: random chains, and
ensembles fitted to the most frequent labels of CAL500 (C = 0.01, flat probabilities), Enron and
Slashdot (C = 1). Up to 14 labels all probabilities are computed. Beyond, the probable labelsets are
enumerated; where their bounds are too wide, all probabilities (up to 16 or 18 labels) or draws are
used.

## What is compared

- **Other libraries**: chains of scikit-learn, scikit-multilearn-ng and river, on the same data in
  the same run.
- **The hardware's limit**: summing or filling arrays of the same size.
- **The obvious way**: the same formula in NumPy, or all labelsets one by one.
- MAPIE and mulaconf are not timed.

## Missed

[All rows as CSV](speeds.csv). Those that do not reach what is needed:

| benchmark | measured | needed | goal | verdict |
|---|---|---|---|---|
"""


def write_page(
    page: Path,
    rows: Sequence[Row],
    show: Callable[[Row], tuple[str, ...]],
    not_run: Sequence[str] = (),
    note: str = "",
) -> None:
    """Write the page, its CSV file beside it, and its charts; say which benchmarks did not run."""
    n_missed = sum(row.verdict == "MISSED" for row in rows)
    text = INTRODUCTION.format(
        machine=_describe_machine(),
        run=" ".join(filter(None, (note, _say_not_run(not_run)))),
        n_reached=len(rows) - n_missed,
        n_rows=len(rows),
    )
    lines = [f"| {' | '.join(show(row))} |" for row in rows if row.verdict == "MISSED"]
    page.write_text(text + "\n".join(lines) + "\n", encoding="utf-8")
    table = pd.DataFrame([vars(row) | {"verdict": row.verdict} for row in rows])
    table["value"] = [float(f"{value:.4g}") for value in table["value"]]
    table.to_csv(page.with_suffix(".csv"), index=False)
    with mpl.rc_context(STYLE):
        _plot_margins(rows)
        _plot_curves(rows)


def _say_not_run(names: Sequence[str]) -> str:
    return f"Benchmarks that were not run: {', '.join(names)}." if names else ""


def _describe_machine() -> str:
    packages = ("numpy", "numba", "scikit-learn", "scikit-multilearn-ng", "river")
    versions = ", ".join(f"{name} {version(name)}" for name in packages)
    return (
        f"Measured on {datetime.now(UTC):%Y-%m-%d}: {_name_processor()}, {n_threads()} cores, "
        f"{platform.system()}, Python {platform.python_version()}, {versions}. {_describe_load()}"
    )


def _describe_load() -> str:
    return f"Load average when the page was written: {os.getloadavg()[2]:.0f}."


def _name_processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _plot_margins(rows: Sequence[Row]) -> None:
    """Draw measured / needed of each row, turned round where more is better."""
    shown = [row for row in rows if not row.series and row.value > 0 and row.needed > 0]
    margins = [
        row.needed / row.value if row.larger_is_better else row.value / row.needed for row in shown
    ]
    order = np.argsort(margins)
    figure, ax = plt.subplots(figsize=(8, 0.8 + 0.17 * len(shown)))
    ax.axvline(1, color=INK, linewidth=0.8)
    for place, i in enumerate(order):
        colour = COLOURS[0] if margins[i] <= 1 else COLOURS[1]
        ax.plot([1, margins[i]], [place, place], color=colour, linewidth=1)
        ax.plot(margins[i], place, "o", color=colour, markersize=3.5)
    ax.set_yticks(range(len(shown)), [shown[i].what for i in order], fontsize=6.5)
    ax.set_xscale("log")
    ax.set_xlabel("measured / needed (needed / measured where more is better)")
    ax.set_ylim(-1, len(shown))
    save(figure, "speeds")


def _plot_curves(rows: Sequence[Row]) -> None:
    """Draw cost against labels, a panel for each source of chains."""
    points = pd.DataFrame([vars(row) for row in rows if row.series])
    if points.empty:
        return
    points[["source", "question"]] = points["series"].str.split(": ", n=1, expand=True)
    sources = list(dict.fromkeys(points["source"]))
    figure, axes = plt.subplots(1, len(sources), figsize=(8, 2.6), sharey=True, squeeze=False)
    colours = dict(zip(dict.fromkeys(points["question"]), COLOURS, strict=False))
    for ax, source in zip(axes[0], sources, strict=True):
        for question, line in points[points["source"] == source].groupby("question", sort=False):
            ax.plot(line["x"], line["value"], ".-", color=colours[question], label=question)
        ax.set_title(source)
        ax.set_xscale("log")
        ax.set_yscale("log")
        places = sorted(set(points.loc[points["source"] == source, "x"]))
        few = places if len(places) < 7 else [14, 20, 27, 53, 174]
        ax.set_xticks(few, [f"{x:g}" for x in few])
        ax.minorticks_off()
    axes[0, 0].set_ylabel("ms an instance")
    figure.supxlabel("labels", fontsize=9)
    handles = axes[0, 0].get_legend_handles_labels()
    figure.legend(*handles, loc="upper center", ncols=6, frameon=False, fontsize=8)
    figure.tight_layout(rect=(0, 0, 1, 0.92))
    save(figure, "speeds_by_labels")
