"""Charts of the site, drawn from the CSV files that the benchmarks wrote.

    python -m benchmarks.charts

One style, one colour for each candidate (that of the study's figures) and for each way; SVG with a
transparent ground, whose text and axes are dark on light pages and light on dark ones.
"""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.ticker import MultipleLocator

import labelsure as ls
from labelsure._runtime.plots import PALETTE
from labelsure.study.conclusions import published_table
from labelsure.study.figures import EXAMPLES, full_name, plot_candidates

DOCS = Path(__file__).parents[1] / "docs"
METRICS = {"exact": "exact match", "hamming": "Hamming accuracy", "jaccard": "Jaccard", "f1": "F1"}
COLOURS = PALETTE[:6]
INK = "#5c6168"  # contrast of 6.3 on white
INK_ON_DARK = "#b9bec7"  # contrast of 8.6 on the site's dark ground
THEMES = f""":root {{ --ink: {INK}; }}
@media (prefers-color-scheme: dark) {{ :root {{ --ink: {INK_ON_DARK}; }} }}
"""
"""Style sheet of a chart. A page's own choice of light or dark reaches it by `color-scheme`."""

STYLE = {
    "svg.hashsalt": "labelsure",
    "font.size": 9,
    "axes.titlesize": 9,
    "legend.frameon": False,
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
    content = StringIO()
    figure.savefig(
        content, format="svg", transparent=True, bbox_inches="tight", metadata={"Date": None}
    )
    text = content.getvalue().replace(INK, "var(--ink)")
    text = text.replace('<style type="text/css">', f'<style type="text/css">{THEMES}', 1)
    (folder / f"{name}.svg").write_text(text, encoding="utf-8")
    plt.close(figure)


def joints() -> None:
    """Difference of each source from marginals alone: a dot for each set, their median."""
    found = read("joints").dropna(subset="difference")
    found = found[found["source"] != "marginals alone"]
    sources = list(found["source"].unique())
    figure, axes = plt.subplots(1, 4, figsize=(8.4, 3.2), sharey=True)
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
    figure, axes = plt.subplots(1, 2, figsize=(8, 3.4), sharey=True)
    places = np.arange(len(shifts))
    colours = (INK, COLOURS[5], *COLOURS[:3])
    for k, (method, label) in enumerate(ways.items()):
        rows = found[found["method"] == method]
        shift = places + 0.12 * (k - 2)
        axes[0].plot(rows["error"], shift, "o", color=colours[k], label=label)
        axes[1].plot(100 * rows["covered"], shift, "o", color=colours[k])
    axes[1].axvline(95, color=INK, linewidth=0.8)
    axes[0].set_xlabel("mean absolute error")
    axes[1].set_xlabel("coverage of 95% intervals, %")
    axes[0].set_yticks(places, shifts)
    axes[0].invert_yaxis()
    figure.legend(loc="upper center", ncols=5, frameon=False, fontsize=8)
    figure.tight_layout(rect=(0, 0, 1, 0.92))
    save(figure, "batches")


CANDIDATES = ("HP", "TG", "SE", "CE", "ME", "GI")


def candidate_colour(name: str) -> str:
    return PALETTE[CANDIDATES.index(name)]


def candidate_examples() -> None:
    """Six distributions over the eight labelsets of three labels, and what each candidate says."""
    figure, axes = plt.subplots(
        2, 6, figsize=(8.2, 3.4), sharex="row", sharey="row", height_ratios=(2, 3)
    )
    for (top, below), (title, weights) in zip(axes.T, EXAMPLES.items(), strict=True):
        joint = np.sort(weights)[::-1] / sum(weights)
        top.bar(range(8), joint, color=INK)
        top.set_title(title.partition(") ")[2])
        top.set_xticks([])
        found = ls.confidence(ls.DenseDistribution([joint]))[list(CANDIDATES)].iloc[0]
        colours = [candidate_colour(name) for name in CANDIDATES]
        below.barh(range(6), found, color=colours)
        for place, value in enumerate(found):
            below.text(value + 0.05, place, f"{value:.2f}", va="center", fontsize=8)
        below.set(xlim=(0, 1.5), xticks=(0, 1))
    axes[0, 0].set_ylabel("probability")
    axes[1, 0].set_yticks(range(6), [*CANDIDATES[:-1], "GI, CS"])
    axes[1, 0].invert_yaxis()
    figure.supxlabel("confidence", fontsize=9)
    figure.tight_layout()
    save(figure, "candidate_examples")


def candidate_curves() -> None:
    """Draw the curves of the paper, each candidate over three elements, panels side by side."""
    figure = plot_candidates()
    figure.set_size_inches(8, 3)
    for ax, place in zip(figure.axes, figure.add_gridspec(1, 3), strict=True):
        ax.set_subplotspec(place)
        ax.tick_params(labelbottom=True)
        ax.set(xlabel="first probability", ylabel="")
    figure.axes[0].set_ylabel("confidence")
    figure.legends[0].remove()
    curves = figure.axes[0].get_legend_handles_labels()
    figure.legend(*curves, loc="outside lower center", ncols=3)
    save(figure, "candidate_curves")


def dots(ax: plt.Axes, place: int, values: pd.Series, colour: str) -> None:
    """Draw a dot for each case and their mean."""
    ax.plot(values, [place] * len(values), "o", color=INK, alpha=0.4, markersize=4)
    ax.plot(values.mean(), place, "D", color=colour, markersize=6)


def paper_correlations() -> None:
    """Kendall's tau of each candidate in the paper: data sets and classifiers, and their mean."""
    found = published_table("correlations").set_index(["metric", "candidate"])["correlation"]
    figure, axes = plt.subplots(1, 3, figsize=(8, 2.2), sharey=True, sharex=True)
    for ax, metric in zip(axes, ("exact", "hamming", "jaccard"), strict=True):
        for place, name in enumerate(CANDIDATES[:4]):
            dots(ax, place, found.loc[metric, name], candidate_colour(name))
        ax.set_title(METRICS[metric])
    axes[0].set_yticks(range(4), [full_name(name) for name in CANDIDATES[:4]])
    axes[0].invert_yaxis()
    figure.supxlabel("Kendall's tau with the accuracy of the prediction", fontsize=9)
    figure.tight_layout()
    save(figure, "paper_correlations")


def calibration() -> None:
    """Calibration error of every model of accuracy: a dot for each of the six sets, their mean."""
    found = read("calibration_expected_calibration_error_of_every_model")
    found = found.set_index(["metric", "model", "features"])
    models = [("plugin", "expected")]
    models += [("ridge", name) for name in ("expected", *CANDIDATES[:5], "CS", "mix", "full")]
    names = ["expected accuracy, nothing fitted", "expected accuracy, fitted"]
    names += [f"{name}, fitted" for name in (*CANDIDATES[:5], "CS")]
    names += ["mix: six candidates", "full: the default"]
    figure, axes = plt.subplots(1, 3, figsize=(8, 3), sharey=True)
    for ax, metric in zip(axes, ("exact", "hamming", "jaccard"), strict=True):
        for place, model in enumerate(models):
            colour = COLOURS[1] if place == 0 else COLOURS[0]
            dots(ax, place, found.loc[(metric, *model)], colour)
        ax.set_title(METRICS[metric])
        ax.set_xlim(left=0)
    axes[0].set_yticks(range(len(models)), names)
    axes[0].invert_yaxis()
    figure.supxlabel("expected calibration error (includes sampling noise)", fontsize=9)
    figure.tight_layout()
    save(figure, "calibration")


def recalibration() -> None:
    """Calibration error of expected accuracy before and after recalibration, means over sets."""
    kinds = {"none": "not recalibrated", "temperature": "temperature scaling"}
    kinds |= {"labels": "label-wise calibration"}
    shades = (COLOURS[1], COLOURS[0], COLOURS[2])
    models = {"Indep": "independent labels", "Trellis": "trellis", "ECC": "chains"}
    files = {"the_six_sets": "six sets", "further_sets": "further sets"}
    figure, axes = plt.subplots(2, 4, figsize=(8.2, 3.9), sharey=True, sharex="col")
    for row, (file, group) in zip(axes, files.items(), strict=True):
        found = read(f"recalibration_{file}_each_of_them")
        found = found.groupby(["classifier", "kind"]).mean(numeric_only=True)
        for ax, (metric, title) in zip(row, METRICS.items(), strict=True):
            for colour, (kind, label) in zip(shades, kinds.items(), strict=True):
                there = [(k, name) for k, name in enumerate(models) if (name, kind) in found.index]
                values = [found.loc[(name, kind), f"error {metric}"] for _, name in there]
                ax.plot(values, [k for k, _ in there], "o", color=colour, label=label)
            ax.set_title(title if file == "the_six_sets" else "")
            ax.set_xlim(left=0)
            ax.set_yticks(range(3), list(models.values()))
        row[0].set_ylabel(group)
    axes[0, 0].invert_yaxis()
    figure.supxlabel("calibration error of expected accuracy", fontsize=9)
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="upper center", ncols=3)
    figure.tight_layout(rect=(0, 0, 1, 0.93))
    save(figure, "recalibration")


def decisions() -> None:
    """Default decisions minus each threshold rule, by metric: a dot for each set and model."""
    found = read("decisions")
    rules = {"0.5": "0.5", "one threshold": "one tuned"}
    rules |= {"threshold for each label": "one for each label"}
    figure, axes = plt.subplots(1, 4, figsize=(8.2, 2.2), sharey=True)
    for ax, (metric, title) in zip(axes, METRICS.items(), strict=True):
        rows = found[found["metric"] == metric]
        ax.axvline(0, color=INK, linewidth=0.8)
        for place, rule in enumerate(rules):
            dots(ax, place, rows["default"] - rows[rule], COLOURS[0])
        ax.set_title(title)
    axes[0].set_yticks(range(3), list(rules.values()))
    axes[0].invert_yaxis()
    figure.supxlabel("accuracy of the default decision minus that of thresholds", fontsize=9)
    figure.tight_layout()
    save(figure, "decisions")


def acceptance() -> None:
    """Share of predictions accepted, and share of policies that miss their target."""
    found = read("acceptance")
    found["case"] = found["metric"].map(METRICS) + ", n = " + found["n"].map("{:,}".format)
    figure, axes = plt.subplots(1, 2, figsize=(8, 3.2), sharey=True)
    cases = list(dict.fromkeys(found.sort_values(["metric", "n"])["case"]))
    for offset, (group, marker) in enumerate({"chosen on": "o", "confirmed on": "s"}.items()):
        rows = found[found["sets"] == group].set_index("case").loc[cases]
        places = np.arange(len(cases)) + 0.2 * (offset - 0.5)
        for way, colour in {"": COLOURS[0], "z-test ": COLOURS[1]}.items():
            label = ("policy" if not way else "z-test, no guarantee") + f", sets {group}"
            style = {"marker": marker, "color": colour, "linestyle": "", "markersize": 5}
            axes[0].plot(rows[f"{way}accepted"], places, label=label, **style)
            axes[1].plot(rows[f"{way}failed %"], places, **style)
    axes[0].set_yticks(range(len(cases)), cases)
    axes[0].invert_yaxis()
    axes[0].set(xlabel="share of predictions accepted", xlim=(0, None))
    axes[1].axvline(5, color=INK, linewidth=0.8)
    axes[1].set(xlabel="policies that miss the target, % (5 allowed)", xlim=(-0.2, None))
    figure.legend(loc="upper center", ncols=2, fontsize=8)
    figure.tight_layout(rect=(0, 0, 1, 0.87))
    save(figure, "acceptance")


def study_wide() -> None:
    """Kendall's tau of TG, SE and CE minus that of HP, by classifier and metric."""
    found = read("study_wide")
    classifiers = list(found["classifier"].unique())
    figure, axes = plt.subplots(1, 3, figsize=(8, 3), sharey=True, sharex=True)
    for ax, (metric, rows) in zip(axes, found.groupby("metric", sort=False), strict=True):
        ax.axvline(0, color=INK, linewidth=0.8)
        for number, name in enumerate(("TG", "SE", "CE")):
            places = np.arange(len(classifiers)) + 0.22 * (number - 1)
            style = {"color": candidate_colour(name), "fmt": "os^"[number], "markersize": 4}
            label = full_name(name) if ax is axes[0] else None
            ax.errorbar(rows[name], places, xerr=rows[f"{name} half-width"], label=label, **style)
        ax.set_title({"Hamming": "Hamming accuracy"}.get(metric, metric))
        ax.xaxis.set_major_locator(MultipleLocator(0.05))
    axes[0].set_yticks(range(len(classifiers)), classifiers)
    axes[0].invert_yaxis()
    figure.supxlabel("Kendall's tau minus that of highest probability (HP)", fontsize=9)
    figure.legend(loc="upper center", ncols=3, fontsize=8)
    figure.tight_layout(rect=(0, 0, 1, 0.92))
    save(figure, "study_wide")


def votes() -> None:
    """Draw what the share of agreeing answers and labelsure say of votes."""
    found = read("votes_means")
    cases = found["metric"].map(METRICS) + ", " + found["votes"] + ", k = " + found["k"].astype(str)
    order = found.sort_values(["metric", "votes", "k"]).index
    figure, axes = plt.subplots(1, 3, figsize=(8.2, 3.2), sharey=True)
    titles = {
        "squared error of {}": "squared error",
        "calibration error of {}": "calibration error",
    }
    titles |= {"surer half by {}": "accuracy of the surer half"}
    for ax, (column, title) in zip(axes, titles.items(), strict=True):
        for colour, way in zip((COLOURS[1], COLOURS[0]), ("the share", "labelsure"), strict=True):
            label = {"the share": "share of agreeing answers"}.get(way, way)
            values = found.loc[order, column.format(way)]
            ax.plot(values, range(len(order)), "o", color=colour, label=label, markersize=5)
        ax.set_xlabel(title)
        ax.set_xlim(left=0)
    axes[0].set_yticks(range(len(order)), cases[order])
    axes[0].invert_yaxis()
    figure.legend(*axes[0].get_legend_handles_labels(), loc="upper center", ncols=2)
    figure.tight_layout(rect=(0, 0, 1, 0.92))
    save(figure, "votes")


def regions() -> None:
    """Labels left open and size of prediction sets at coverage 0.9, by score."""
    found = read("regions_open")
    figure, axes = plt.subplots(1, 2, figsize=(8, 2.8), sharey=True)
    names = {"labels": "closed labels (default)", "probability": "list of labelsets"}
    for number, score in enumerate(names):
        style = {"color": COLOURS[number], "marker": "os"[number], "linestyle": "", "markersize": 5}
        share = found[f"open: {score}"] / found["labels"]
        axes[0].plot(share, range(len(found)), label=names[score], **style)
        axes[1].plot(found[f"log10 of labelsets: {score}"], range(len(found)), **style)
    axes[0].set_yticks(range(len(found)), found["set"] + " (" + found["labels"].astype(str) + ")")
    axes[0].invert_yaxis()
    axes[0].set_xlabel("share of labels left open")
    axes[1].set_xlabel("labelsets in the prediction set, mean log10")
    figure.legend(loc="upper center", ncols=2)
    figure.tight_layout(rect=(0, 0, 1, 0.9))
    save(figure, "regions")


if __name__ == "__main__":
    charts = (joints, batches, candidate_examples, candidate_curves, paper_correlations)
    charts += (calibration, recalibration, decisions, acceptance, study_wide, votes, regions)
    with mpl.rc_context(STYLE):
        for draw in charts:
            draw()
