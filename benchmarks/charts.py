"""Charts of the evidence pages, drawn from the CSV files that the benchmarks wrote.

    python -m benchmarks.charts

One colour for each way in all charts; SVG with a transparent ground for light and dark pages.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import labelsure as ls

DOCS = Path(__file__).parents[1] / "docs"
METRICS = {"exact": "exact match", "hamming": "Hamming", "jaccard": "Jaccard", "f1": "F1"}
COLOURS = ("#4477AA", "#EE7733", "#228833", "#AA3377")
INK = "#7a7f87"  # readable on white and on black
STYLE = {
    "svg.hashsalt": "labelsure",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    **dict.fromkeys(
        ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), INK
    ),
}


def read(name: str) -> pd.DataFrame:
    return pd.read_csv(DOCS / "evidence" / f"{name}.csv")


def save(figure: plt.Figure, name: str) -> None:
    folder = DOCS / "images" / "evidence"
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(
        folder / f"{name}.svg", transparent=True, bbox_inches="tight", metadata={"Date": None}
    )
    plt.close(figure)


def thresholds() -> None:
    """Mean difference of `decide` and each rule, for each metric, on both groups of sets."""
    rules = {
        "half": "0.5",
        "one": "one",
        "each": "each",
        "mean_size": "mean size",
        "top_k": "top k",
    }
    groups = {"the_six_sets": "six sets", "further_sets": "further sets"}
    figure, axes = plt.subplots(2, 4, figsize=(9, 4), sharex=True, sharey=True)
    for row, (file, group) in zip(axes, groups.items(), strict=True):
        found = read(f"thresholds_on_the_whole_{file}").set_index(["metric", "way", "against"])
        for ax, (metric, title) in zip(row, METRICS.items(), strict=True):
            ax.axvline(0, color=INK, linewidth=0.8)
            for colour, way in zip(COLOURS, ("decide", "decide, none empty"), strict=False):
                values = [found.loc[(metric, way, rule), "mean difference"] for rule in rules]
                ax.plot(values, range(len(rules)), "o", color=colour, label=way)
            ax.set_yticks(range(len(rules)), list(rules.values()))
            ax.set_title(f"{title}, {group}", fontsize=9)
    axes[0, 0].invert_yaxis()
    figure.supxlabel("mean accuracy of decide minus that of the threshold rule", fontsize=9)
    figure.legend(
        *axes[0, 0].get_legend_handles_labels(), loc="upper center", ncols=2, frameon=False
    )
    figure.tight_layout(rect=(0, 0, 1, 0.94))
    save(figure, "thresholds")


def joints() -> None:
    """Difference of each source from marginals alone: a dot for each set, their median."""
    found = read("joints").dropna(subset="difference")
    found = found[found["source"] != "marginals alone"]
    sources = list(found["source"].unique())
    figure, axes = plt.subplots(1, 4, figsize=(10, 3.2), sharey=True)
    titles = ("log-likelihood", "exact match", "Jaccard", "calibration error (exact match)")
    for ax, measure, title in zip(axes, found["measure"].unique(), titles, strict=False):
        ax.axvline(0, color=INK, linewidth=0.8)
        rows = found[found["measure"] == measure].set_index("source")["difference"]
        for place, source in enumerate(sources):
            values = rows[source]
            ax.plot(values, [place] * len(values), "o", color=INK, alpha=0.4, markersize=4)
            ax.plot(values.median(), place, "D", color=COLOURS[0], markersize=6)
        ax.set_title(title, fontsize=9)
    axes[0].set_xscale("symlog", linthresh=1)
    axes[0].set_yticks(range(len(sources)), sources)
    axes[0].invert_yaxis()
    figure.supxlabel("difference from marginals alone", fontsize=9)
    figure.tight_layout()
    save(figure, "joints")


def batches() -> None:
    """Error and coverage of the ways to estimate a batch of 200, for each kind of shift."""
    found = read("batches")
    found = found[found["size"] == 200]
    ways = {"calibration mean": "mean of the calibration set", "DoC": "difference of confidences"}
    ways |= {"ours": "estimate", "ours weighted": "importance weights"}
    ways |= {"ours, 30 labels": "30 random labels"}
    shifts = [name.partition(":")[0] for name in found["shift"].unique()]
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), sharey=True)
    places = np.arange(len(shifts))
    colours = (INK, "#CCBB44", *COLOURS[:3])
    for k, (method, label) in enumerate(ways.items()):
        rows = found[found["method"] == method]
        shift = places + 0.12 * (k - 2)
        axes[0].plot(rows["error"], shift, "o", color=colours[k], label=label)
        covered = pd.to_numeric(rows["covered"].str.rstrip("%"), errors="coerce")
        axes[1].plot(covered, shift, "o", color=colours[k])
    axes[1].axvline(95, color=INK, linewidth=0.8)
    axes[0].set_xlabel("mean absolute error")
    axes[1].set_xlabel("coverage of 95% intervals, %")
    axes[0].set_yticks(places, shifts)
    axes[0].invert_yaxis()
    figure.legend(loc="upper center", ncols=5, frameon=False, fontsize=8)
    figure.tight_layout(rect=(0, 0, 1, 0.92))
    save(figure, "batches")


def candidates() -> None:
    """Each candidate along two ways from the uniform distribution to a point mass, K = 16."""
    share = np.linspace(0, 1, 101)[:, None]
    uniform, point, pair = np.full(16, 1 / 16), np.eye(16)[0], np.repeat([0.5, 0.0], [2, 14])
    ways = {
        "uniform to a point mass": (1 - share) * uniform + share * point,
        "two equal labelsets to a point mass": (1 - share) * pair + share * point,
    }
    figure, axes = plt.subplots(1, 2, figsize=(8, 3.2), sharey=True)
    for ax, (title, joints) in zip(axes, ways.items(), strict=True):
        found = ls.confidence(ls.DenseDistribution(joints))
        for colour, name in zip((*COLOURS, "#66CCEE", "#CCBB44"), found.columns[:6], strict=True):
            label = "GI, CS" if name == "GI" else name
            ax.plot(joints.max(axis=1), found[name], color=colour, label=label)
        ax.set_title(title, fontsize=9)
        ax.set_xlabel("probability of the most probable labelset")
    axes[0].set_ylabel("confidence")
    axes[1].legend(frameon=False)
    figure.tight_layout()
    save(figure, "candidates")


if __name__ == "__main__":
    with mpl.rc_context(STYLE):
        thresholds()
        joints()
        batches()
        candidates()
