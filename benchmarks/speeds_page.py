"""The page of speeds: a CSV file that a run of the benchmarks wrote, as tables and charts.

python -m benchmarks.speeds_page    # the page again, from the same CSV file
"""

from __future__ import annotations

import platform
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from benchmarks.charts import COLOURS, INK, STYLE, save
from benchmarks.measure import Row
from labelsure._kernels.threads import n_threads

PAGE = Path(__file__).parents[1] / "docs" / "evidence" / "speeds.md"
ROWS = PAGE.with_suffix(".csv")
FIELDS = ("what", "value", "unit", "aim", "larger_is_better", "peer", "series", "x")
PLAIN = ("NumPy", "a matrix product", "all labelsets one by one", "evaluated one by one")
KINDS = {"hardware": "limit of the hardware", **dict.fromkeys(PLAIN, "the same, written plainly")}

TEXT = """# Speed

**{lead}**

{n_reached} of {n_aims} aims, which were set beforehand, are reached; the others are
[below](#missed). [All {n_rows} measurements as CSV](speeds.csv), each with its time.

## How long do I wait?

{waits}

## With how many labels? {{ #labels }}

Milliseconds of one core for one row, random mixtures of logistic chains:

{questions}

![Milliseconds of one core for one row against labels](../images/evidence/speeds_by_labels.svg)

The chart shows random chains, and ensembles of ten chains fitted to the most frequent labels of
CAL500 (C = 0.01, flat probabilities), Enron and Slashdot (C = 1), with the
[engines](../understand/any_number_of_labels.md#engines) of "auto". Decisions at 20 and 22 labels
lose {loss_mean:.5f} of F1 or Jaccard against exact ones on average, {loss_worst:.4f} at worst.

## Compared with what? {{ #compared }}

![Times as fast as other libraries, the hardware and plain code](../images/evidence/speeds.svg)

- **Other libraries**: the same task on the same data. MAPIE and mulaconf get the same
  probabilities or forests on Yeast and calibrate and predict; mulaconf also fits.
- **The limit of the hardware**: adding up or filling arrays of the same size.
- **The same, written plainly**: the formula in NumPy, or all labelsets one by one.

## The first time? {{ #first-use }}

CPU seconds of whole processes:

{first}

The first use compiles kernels. A wheel with compiled kernels is not shipped: Numba takes them only
with the same processor model, Python and Numba version.

## Which aims are missed, and why? {{ #missed }}

{missed}

## How was this measured? {{ #how }}

`LABELSURE_DATA=FOLDER LABELSURE_PEERS=PYTHON python -m benchmarks --page` measures everything
again; `LABELSURE_PEERS` is the Python of an environment with MAPIE and mulaconf. {machine}

Times are CPU time, the least of several runs; comparisons are wall-clock time in turns.
"""

REASONS = {
    "estimate of 500 rows of 14": "500 exact distributions of 14 labels alone take about 50 ms",
    "fit, cv=5": "predictions of each fold are assessed, and recalibrated by a fit to the others",
    "Dask with two workers": "not known; other runs gave 0.8 to 1.2",
    "memory of decide(jaccard)": "bounds by number of labels are computed for all rows at a time",
    "two processes / one": "processes take two to three seconds to start",
    "profile, dense, L=12": "2,000 rows take a millisecond, of which starting threads is a part",
}
"""Part of a row's name, and why its aim is missed."""


def read_rows() -> list[dict[str, Any]]:
    """Return the rows that the last run wrote."""
    if not ROWS.exists():
        return []
    found = pd.read_csv(ROWS, keep_default_na=False, na_values={"value": "", "aim": ""})
    return found.drop(columns="verdict").to_dict("records") if "benchmark" in found else []


def write_rows(rows: Iterable[dict[str, Any]], order: Sequence[str]) -> None:
    """Write rows, by benchmark."""
    ordered = sorted(rows, key=lambda row: order.index(row["benchmark"]))
    table = pd.DataFrame([row | {"verdict": _as_row(row).verdict} for row in ordered])
    table["value"] = [float(f"{value:.4g}") for value in table["value"]]
    table["load"] = table["load"].round(1)
    columns = ["benchmark", *FIELDS[:5], "verdict", *FIELDS[5:], "time", "load"]
    table[columns].to_csv(ROWS, index=False)


def _as_row(row: dict[str, Any]) -> Row:
    aim = None if pd.isna(row["aim"]) else row["aim"]
    return Row(**{name: row[name] for name in FIELDS} | {"aim": aim})


def write_page() -> None:
    """Write the page and its charts from the CSV file."""
    stamped = read_rows()
    by_name: dict[str, list[Row]] = {}
    for row in stamped:
        by_name.setdefault(row["benchmark"], []).append(_as_row(row))
    rows = [row for some in by_name.values() for row in some]

    def of(*names: str) -> list[Row]:
        return [row for name in names for row in by_name.get(name, [])]

    with_aim = [row for row in rows if row.aim is not None]
    losses = [row for row in of("loss_of_decisions") if "loss" in row.what]
    compared = _order_peers(rows)
    text = TEXT.format(
        lead=_lead(rows),
        n_rows=len(rows),
        n_aims=len(with_aim),
        n_reached=sum(row.verdict == "reached" for row in with_aim),
        waits=_list_rows(of("flagship", "score_million")),
        questions=_pivot(of("questions_about_chains")),
        loss_mean=np.mean([row.value for row in losses if row.what.endswith("mean")] or np.nan),
        loss_worst=max((row.value for row in losses if row.what.endswith("worst")), default=np.nan),
        first=_list_rows(of("imports", "quick_start", "study")),
        missed=_list_missed(rows),
        machine=_describe_run(stamped),
    )
    PAGE.write_text(text, encoding="utf-8")
    with mpl.rc_context(STYLE):
        _plot_peers(compared)
        _plot_curves(of("questions_about_chains", "cost_by_labels"))


def _lead(rows: Sequence[Row]) -> str:
    def say(start: str) -> str:
        return next((_say_value(row) for row in rows if row.what.startswith(start)), "?")

    cold, warm = say("README's quick start, nothing"), say("README's quick start, kernels")
    rate = say("score: 1,000,000 rows").removesuffix(" a second")
    return (
        f"One prediction with its estimated accuracy takes {say('one row of')} of one core, an "
        f"estimate for 500 rows {say('estimate of 500 rows of 6')} (6 labels, ten chains). "
        f"Two processes score {rate} rows a second (a file of 50 columns, 10 labels). The "
        f"README's example takes {cold} of CPU at its first use, then {warm}."
    )


def _say(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def _say_value(row: Row) -> str:
    if np.isnan(row.value):
        return "not measured"
    unit = {"x": "times", "/s": "a second"}.get(row.unit, row.unit)
    return f"{_say(row.value)} {unit}".strip()


def _say_aim(row: Row) -> str:
    sign = "≥" if row.larger_is_better else "≤"
    return "" if row.aim is None else f"{sign} {row.aim:,g}"


def _gain(row: Row) -> float:
    """Return how many times as fast as the peer we are."""
    return row.value if row.larger_is_better else 1 / row.value


def _task(row: Row) -> str:
    return row.what.rpartition(": ")[0]


def _list_missed(rows: Sequence[Row]) -> str:
    """Return a table of reasons, and what was measured beside each aim that they explain."""
    found: dict[str, list[str]] = {}
    for row in rows:
        why = next((why for part, why in REASONS.items() if part in row.what), "")
        if row.verdict == "MISSED":
            found.setdefault(why, []).append(f"{row.what}: {_say_value(row)} ({_say_aim(row)})")
        elif row.verdict == "not measured":
            found.setdefault("not measured", []).append(row.what)
    return _table(
        ("missed (aim)", "why"), [("<br>".join(some), why) for why, some in found.items()]
    )


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines)


def _list_rows(rows: Sequence[Row]) -> str:
    return _table(
        ("", "measured", "aim"), [(row.what, _say_value(row), _say_aim(row)) for row in rows]
    )


def _pivot(rows: Sequence[Row]) -> str:
    """Table of the rows of series: chains by question."""
    cells: dict[str, dict[str, str]] = {}
    for row in rows:
        if row.series:
            line, _, column = row.what.rpartition(": ")
            digits = float(f"{row.value:.2g}")
            cells.setdefault(line, {})[column] = f"{digits:,.10g}"
    columns = list(next(iter(cells.values()), {}))
    lines = [[line, *(found.get(c, "") for c in columns)] for line, found in cells.items()]
    return _table(["", *columns], lines)


def _describe_run(stamped: Sequence[dict[str, Any]]) -> str:
    packages = ("numpy", "numba", "scikit-learn", "scikit-multilearn-ng", "river")
    versions = ", ".join(f"{name} {version(name)}" for name in packages)
    first, last = (choose(stamped, key=lambda row: row["time"]) for choose in (min, max))
    return (
        f"This run: {first['time'][:16]} to {last['time'][11:16]} UTC, load average "
        f"{first['load']:.1f} before the first measurement, {last['load']:.1f} before the last and "
        f"{max(row['load'] for row in stamped):.1f} at most, of which the benchmarks are 1 to 2; "
        f"{_name_processor()}, {n_threads()} cores, {platform.system()}, "
        f"Python {platform.python_version()}, {versions}."
    )


def _name_processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _order_peers(rows: Sequence[Row]) -> list[Row]:
    kinds = list(dict.fromkeys(["other libraries", *KINDS.values()]))
    some = [row for row in rows if row.peer and row.value > 0]
    return sorted(some, key=lambda row: (kinds.index(_kind(row)), -_gain(row)))


def _kind(row: Row) -> str:
    return KINDS.get(row.peer, "other libraries")


def _plot_peers(rows: Sequence[Row]) -> None:
    """Draw how many times as fast we are, a line for each comparison."""
    figure, ax = plt.subplots(figsize=(8, 0.9 + 0.22 * len(rows)))
    ax.axvline(1, color=INK, linewidth=0.8)
    colours = dict(zip(dict.fromkeys(_kind(row) for row in rows), COLOURS, strict=False))
    for place, row in enumerate(rows):
        gain, colour = _gain(row), colours[_kind(row)]
        ax.plot([1, gain], [place, place], color=colour, linewidth=1.5)
        ax.plot(gain, place, "o", color=colour, markersize=5)
    names = [
        f"{_task(row)}" if _kind(row) != "other libraries" else f"{row.peer}: {_task(row)}"
        for row in rows
    ]
    ax.set_yticks(range(len(rows)), names, fontsize=8)
    ax.invert_yaxis()
    ax.set_xscale("log")
    ax.set_xlabel("times as fast (left of 1: slower)")
    handles = [plt.Line2D([], [], color=colour, marker="o") for colour in colours.values()]
    figure.legend(handles, list(colours), loc="upper center", ncols=3)
    figure.tight_layout(rect=(0, 0, 1, 1 - 0.35 / figure.get_figheight()))
    save(figure, "speeds")


def _plot_curves(rows: Sequence[Row]) -> None:
    """Draw cost against labels, a panel for each source of chains."""
    points = pd.DataFrame([vars(row) for row in rows if row.series])
    if points.empty:
        return
    points[["source", "question"]] = points["series"].str.split(": ", n=1, expand=True)
    sources = [name for name in dict.fromkeys(points["source"]) if name != "a random chain"]
    figure, axes = plt.subplots(1, len(sources), figsize=(8, 3), sharey=True, squeeze=False)
    colours = dict(zip(dict.fromkeys(points["question"]), COLOURS, strict=False))
    for ax, source in zip(axes[0], sources, strict=True):
        for question, line in points[points["source"] == source].groupby("question", sort=False):
            ax.plot(line["x"], line["value"], ".-", color=colours[question], label=question)
        ax.set_title({"cal500": "CAL500"}.get(source, source.capitalize()))
        ax.set_xscale("log")
        ax.set_yscale("log")
        places = sorted(set(points.loc[points["source"] == source, "x"]))
        few = places if len(places) < 7 else [14, 27, 53, 174]
        ax.set_xticks(few, [f"{x:g}" for x in few])
        ax.minorticks_off()
    axes[0, 0].set_ylabel("ms for one row")
    figure.supxlabel("labels", fontsize=9)
    handles = axes[0, 0].get_legend_handles_labels()
    figure.legend(*handles, loc="upper center", ncols=6, fontsize=8)
    figure.tight_layout(rect=(0, 0, 1, 0.92))
    save(figure, "speeds_by_labels")


if __name__ == "__main__":
    write_page()
