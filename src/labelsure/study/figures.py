"""The figures of a study: each a function of one frame, in one style."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from labelsure._runtime.code import digest_code
from labelsure._runtime.plots import FIGURE_STYLE, draw_interval_series, make_figure, series_style
from labelsure._runtime.storage import write_whole
from labelsure._runtime.typing import Floats
from labelsure.distributions.candidates import (
    CANDIDATES,
    PAPER_CANDIDATES,
    Profile,
    confidence_of_profile,
    full_name,
)
from labelsure.estimation.score_table import ScoreTable
from labelsure.guarantees._policy import accept_curve
from labelsure.metrics.registry import get_metric
from labelsure.study.analyses import BASELINE, Analyses
from labelsure.study.mixture import row_accuracy
from labelsure.study.plan import DEFAULT_CANDIDATES

if TYPE_CHECKING:
    from matplotlib.figure import Figure


EXAMPLES = {
    "(a) uniform": (1, 1, 1, 1, 1, 1, 1, 1),
    "(b) close runners-up": (10, 9, 9, 9, 1, 1, 1, 1),
    "(c) two halves": (0, 3, 0, 0, 0, 0, 3, 0),
    "(d) one far ahead": (1, 1, 5, 1, 1, 1, 1, 1),
    "(e) worked example": (0, 4, 3, 0, 3, 0, 2, 0),
    "(f) one labelset": (0, 0, 0, 0, 0, 1, 0, 0),
}
"""Weights of the eight labelsets of three labels, the first label as the highest bit. (a), (e) and
(f) are as the paper describes them, and of (b) that others are close to the mode; (c) and (d) are
ours."""

N_POINTS = 201
WIDTH = 3.5
"""Width of a figure in inches: one column of a page, so that 8-point text prints as such."""

SERIES_OFFSET = 0.006
"""Horizontal offset between series whose points would overlap, on [0, 1]."""

THIN: dict[str, Any] = {"marker": "", "linewidth": 1}
"""Style of a curve through every prediction."""

CLASSIFIERS = {
    "Indep": "independent labels (Indep)",
    "CT": "classifier trellis (CT)",
    "ECC": "ensemble of classifier chains (ECC)",
}
"""Names of classifiers in figures."""

MIN_INSTANCES = 10
"""Minimum number of instances of a drawn mean; means of fewer are mostly noise."""

CLASSIFIER = "CT"
"""Classifier of the acceptance curves, as in the paper; the first one where it is missing."""


def plot_example_distributions(_: pd.DataFrame | None = None) -> Figure:
    """Draw six distributions over the labelsets of three labels."""
    figure = make_figure(WIDTH, 3.9)
    axes = figure.subplots(3, 2, sharex=True, sharey=True)
    names = [format(code, "03b") for code in range(8)]
    for ax, (title, weights) in zip(axes.flat, EXAMPLES.items(), strict=True):
        ax.bar(names, np.array(weights) / sum(weights), color=series_style(0)["color"])
        ax.set(title=title, ylim=(0, 1))
        ax.tick_params(axis="x", rotation=90)
    figure.supxlabel("labelset")
    figure.supylabel("probability")
    return figure


def plot_candidates(
    _: pd.DataFrame | None = None, third: Sequence[float] = (0.0, 1 / 3, 0.5)
) -> Figure:
    """Draw the seven candidates over a distribution of three elements."""
    figure = make_figure(WIDTH, 5.6)
    axes = np.atleast_1d(figure.subplots(len(third), 1, sharex=True, sharey=True))
    groups: dict[object, list[str]] = {}  # candidates of one function share a line
    for name in PAPER_CANDIDATES:
        groups.setdefault(CANDIDATES[name].function, []).append(name)
    for ax, p_third in zip(axes, third, strict=True):
        first = np.linspace(0, 1 - p_third, N_POINTS)
        rows = np.column_stack([first, 1 - p_third - first, np.full_like(first, p_third)])
        values = confidence_of_profile(profile_of(rows), PAPER_CANDIDATES)
        for names in groups.values():
            style = _style(names[-1]) | {"marker": ""}
            ax.plot(first, values[names[0]], label=" = ".join(map(full_name, names)), **style)
        ax.set(title=f"third probability {p_third:.3g}", xlim=(0, 1), ylim=(-0.02, 1.02))
    axes[-1].set_xlabel("first probability")
    axes[len(axes) // 2].set_ylabel("confidence")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center")
    return figure


def profile_of(probabilities: Floats) -> Profile:
    """Profile of rows of K probabilities, for any K.

    Examples
    --------
    >>> profile_of(np.array([[0.5, 0.25, 0.25]])).top
    array([0.5])
    """
    ranked = np.sort(probabilities.clip(0), axis=1)[:, ::-1]
    logs = np.log(ranked, out=np.zeros_like(ranked), where=ranked > 0)
    entropy = -(ranked * logs).sum(axis=1)
    collision = (ranked**2).sum(axis=1)
    n_outcomes = probabilities.shape[1]
    return Profile.from_values(
        ranked[:, 0], ranked[:, 1], entropy, collision, float(np.log2(n_outcomes))
    )


def plot_calibration(intervals: pd.DataFrame) -> Figure:
    """Draw actual against estimated accuracy with its 95% interval, a panel for each metric."""
    shown = intervals[intervals["n"] >= MIN_INSTANCES]
    metrics = list(dict.fromkeys(intervals["metric"]))
    figure = make_figure(WIDTH, 2.0 * max(len(metrics), 1) + 0.9)
    axes = figure.subplots(max(len(metrics), 1), 1, squeeze=False, sharex=True, sharey=True)[:, 0]
    least = max(0.0, float(shown[["low", "estimated"]].min().min()) - 0.05) if len(shown) else 0.0
    for ax, metric in zip(axes, metrics, strict=False):
        ax.plot([0, 1], [0, 1], color="0.6", linewidth=1, label="ideal")
        models = list(shown[shown["metric"] == metric].groupby("model", sort=False))
        for k, (model, rows) in enumerate(models):
            ends = rows["low"], rows["high"]
            x, y = rows["estimated"] + SERIES_OFFSET * (k - (len(models) - 1) / 2), rows["accuracy"]
            style = _style(model)
            draw_interval_series(ax, x, y, ends, style=style, label=full_name(model), size=3)
        ax.set(title=get_metric(metric).title, xlim=(least, 1.02), ylim=(least, 1.02))
    axes[-1].set_xlabel("estimated accuracy")
    axes[len(axes) // 2].set_ylabel("actual accuracy")
    handles = axes[0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside upper center", ncols=2)
    return figure


def accepted_curves(analyses: Analyses, *, least: int = MIN_INSTANCES) -> pd.DataFrame:
    """Mean accuracy of the most confident predictions of the first repeat.

    Parameters
    ----------
    analyses
        Analyses of a study.
    least
        Means over fewer predictions are left out; the paper's Figure 4 begins with 1.

    Returns
    -------
    pandas.DataFrame
        dataset, classifier, metric, candidate, share, n_accepted, accuracy.
    """
    scores, settings = analyses.scores, analyses.settings
    present = list(dict.fromkeys(scores["classifier"]))
    classifier = CLASSIFIER if CLASSIFIER in present else present[0]
    metric = "jaccard" if "jaccard" in settings.metrics else settings.metrics[0]
    shown = scores[(scores["classifier"] == classifier) & (scores["repeat"] == 0)]
    parts = []
    for dataset, part in shown.groupby("dataset", sort=False):
        table = ScoreTable(part)
        accuracy = row_accuracy(table, metric, settings.empty)
        is_defined = ~np.isnan(accuracy)
        for name in settings.rank_candidates:
            # As ranks: the log of no gap at all is -inf.
            ranks = np.unique(table.ranks(name), return_inverse=True)[1].astype(np.float64)
            curve = accept_curve(ranks[is_defined], accuracy[is_defined]).to_frame()
            curve = curve.loc[curve["n_accepted"] >= least, ["share", "n_accepted", "accuracy"]]
            parts.append(curve.assign(dataset=dataset, candidate=name))
    return pd.concat(parts, ignore_index=True).assign(classifier=classifier, metric=metric)


def plot_accepted(curves: pd.DataFrame) -> Figure:
    """Draw the mean accuracy of the most confident predictions, and its difference from HP's.

    A row for each data set: curves nearly coincide, their differences do not.
    """
    parts = list(curves.groupby("dataset", sort=False))
    figure = make_figure(WIDTH, 1.2 * max(len(parts), 1) + 1.0)
    axes = figure.subplots(max(len(parts), 1), 2, squeeze=False, sharex=True, sharey="col")
    for (left, right), (dataset, part) in zip(axes, parts, strict=False):
        _draw_curves(left, part, "accuracy")
        hp_curve = part[part["candidate"] == BASELINE].sort_values("share")
        if len(hp_curve):
            hp_accuracy = np.interp(part["share"], hp_curve["share"], hp_curve["accuracy"])
            gaps = part.assign(gap=part["accuracy"] - hp_accuracy)
            _draw_curves(right, gaps[gaps["candidate"] != BASELINE], "gap")
        right.axhline(0, **(_style(BASELINE) | THIN))
        left.set(title=str(dataset).capitalize(), xlim=(0, 1))
        right.set_title("difference from HP")
    _describe_curves(figure, axes[0, 0], curves, "share accepted")
    return figure


def plot_accepted_counts(curves: pd.DataFrame) -> Figure:
    """Draw the mean accuracy of the most confident predictions against their number."""
    parts = list(curves.groupby("dataset", sort=False))
    n_rows = -(-max(len(parts), 1) // 2)
    figure = make_figure(WIDTH, 1.5 * n_rows + 1.0)
    axes = figure.subplots(n_rows, 2, squeeze=False, sharey=True).ravel()
    for ax, (dataset, part) in zip(axes, parts, strict=False):
        _draw_curves(ax, part, "accuracy", against="n_accepted")
        ax.set(title=str(dataset).capitalize(), xlim=(0, None), ylim=(-0.02, 1.02))
    for ax in axes[len(parts) :]:
        ax.set_visible(False)
    _describe_curves(figure, axes[0], curves, "number accepted")
    return figure


def _draw_curves(ax: Any, part: pd.DataFrame, value: str, against: str = "share") -> None:
    for name, curve in part.groupby("candidate", sort=False):
        style = _style(str(name)) | THIN
        ax.plot(curve[against], curve[value], label=full_name(str(name)), **style)


def _describe_curves(
    figure: Figure, axes_with_legend: Any, curves: pd.DataFrame, x_label: str
) -> None:
    if len(curves):
        metric, classifier = curves["metric"].iloc[0], curves["classifier"].iloc[0]
        figure.supxlabel(f"{x_label}, by the {CLASSIFIERS.get(classifier, classifier)}")
        figure.supylabel(f"mean {get_metric(metric).title} of the accepted")
        handles = axes_with_legend.get_legend_handles_labels()
        figure.legend(*handles, loc="outside upper center", ncols=2)


class FigureSpec(NamedTuple):
    """A figure: its title, the function that makes its frame, the function that draws it."""

    title: str
    frame: Callable[[Analyses], pd.DataFrame]
    plot: Callable[[pd.DataFrame], Figure]


FIGURES = {
    "calibration": FigureSpec(
        "Estimated against actual accuracy (the paper's Figure 3)",
        lambda analyses: analyses.intervals,
        plot_calibration,
    ),
    "accepted": FigureSpec(
        "Accuracy of the most confident predictions, and how far candidates differ from HP",
        accepted_curves,
        plot_accepted,
    ),
    "accepted_counts": FigureSpec(
        "Accuracy by the number of accepted predictions (the paper's Figure 4)",
        partial(accepted_curves, least=1),
        plot_accepted_counts,
    ),
    "example_distributions": FigureSpec(
        "Distributions over the labelsets of three labels (the paper's Figure 1)",
        lambda analyses: pd.DataFrame(),
        plot_example_distributions,
    ),
    "candidates": FigureSpec(
        "The candidates over a distribution of three elements (the paper's Figure 2)",
        lambda analyses: pd.DataFrame(),
        plot_candidates,
    ),
}


def figure_inputs(name: str, analyses: Analyses) -> tuple[str, pd.DataFrame]:
    """Checksum of the drawing code and the frame of a figure, and the frame."""
    frame = FIGURES[name].frame(analyses)
    digest = sha256(digest_code("matplotlib").encode())
    digest.update(pd.util.hash_pandas_object(frame).to_numpy().tobytes())
    return digest.hexdigest(), frame


def draw_figure(name: str, frame: pd.DataFrame, paths: Sequence[Path]) -> None:
    """Draw a figure in the common style, and write it to each path."""
    from matplotlib import rc_context

    with rc_context(FIGURE_STYLE):
        figure = FIGURES[name].plot(frame)
        # Once for all files; `savefig` would draw the figure for it each time.
        engine: Any = figure.get_layout_engine()
        engine.execute(figure)
        figure.set_layout_engine("none")
        for path in paths:
            file_format = path.suffix[1:]
            # Without a date: the same numbers give the same file.
            metadata = {"Date": None} if file_format == "svg" else {}
            save = partial(figure.savefig, format=file_format, dpi=200, metadata=metadata)
            write_whole(path, save)


def _style(name: str) -> dict[str, object]:
    """Colour, line and marker of a candidate or model, the same in every figure."""
    names = [*DEFAULT_CANDIDATES, "MIX"]
    return series_style(names.index(name) if name in names else len(names))
