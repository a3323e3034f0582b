"""Charts of results: plain arrays and tables in, Axes out.

They can be read without colours: series differ by line style and marker, areas by hatching. A
function draws into the caller's Axes, or makes new ones, and returns them.
"""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from labelsure._runtime.typing import Floats, Settings

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PALETTE = (
    *("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#7F6000", "#000000"),
)
"""Colours that are distinct with colour blindness (Okabe and Ito), by the number of a series:
a candidate has the same one in every figure."""

FIGURE_STYLE: dict[Any, Any] = {
    "font.size": 8,
    "axes.titlesize": 8,
    "figure.labelsize": 8,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "lines.linewidth": 1.2,
    "svg.hashsalt": "labelsure",
}
"""Style of figures as wide as a page: text of 8 points, and the same file for the same numbers."""

STYLES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)))
MARKERS = ("o", "s", "^", "D", "v", "X", "P")
MIN_BIN = 10  # minimum number of instances of a bin; means of fewer are mostly noise
MIN_ACCEPTED = 30  # number of accepted instances below which a mean is mostly noise
MAX_LETTERS = 40  # of a line in the name of a labelset beside its bar
MAX_LINES = 3  # of such a name
ROUNDING = 1e-9  # a sum of probabilities this close to 1 is 1


def make_figure(width: float = 6.4, height: float = 4.8) -> Figure:
    """Figure outside of pyplot: it needs no display and is freed with its last reference."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def choose_axes(ax: Axes | None, width: float = 6.4, height: float = 4.8) -> Axes:
    """The caller's Axes, or those of a new figure, which notebooks show."""
    if ax is not None:
        return ax
    figure = make_figure(width, height)
    new = figure.add_subplot()

    def draw() -> bytes:
        content = BytesIO()
        figure.savefig(content, format="png")
        return content.getvalue()

    new._repr_png_ = draw  # type: ignore[attr-defined]  # display hook of IPython
    return new


def error_bars(middle: ArrayLike, low: ArrayLike, high: ArrayLike) -> Floats:
    """Lengths of error bars below and above the middle, (2, n); negative ones are set to 0."""
    return np.array([np.subtract(middle, low), np.subtract(high, middle)]).clip(0)


def series_style(number: int) -> Settings:
    """Colour, line style and marker of a series, by its number."""
    return {
        "color": PALETTE[number % len(PALETTE)],
        "linestyle": STYLES[number % len(STYLES)],
        "marker": MARKERS[number % len(MARKERS)],
    }


def draw_interval_series(
    ax: Axes,
    x: ArrayLike,
    y: ArrayLike,
    interval: tuple[ArrayLike, ArrayLike],
    *,
    style: Settings,
    label: str,
    size: float = 4,
) -> None:
    """Draw values with their intervals, in a line style and with a marker of their own."""
    yerr = error_bars(y, *interval)
    ax.errorbar(x, y, yerr=yerr, markersize=size, capsize=3, linewidth=1, label=label, **style)


def plot_reliability(table: pd.DataFrame, label: str, ax: Axes | None) -> Axes:
    """Draw actual against estimated accuracy with its interval, and the diagonal."""
    ax = choose_axes(ax)
    n_before = len(ax.containers)
    if not n_before:
        ax.plot([0, 1], [0, 1], color="0.6", linestyle=":", label="ideal")
    style = series_style(n_before)
    shown, few = (
        table[table["n_samples"] >= MIN_BIN],
        table[table["n_samples"].between(1, MIN_BIN - 1)],
    )
    draw_interval_series(
        ax,
        shown["estimated"],
        shown["accuracy"],
        (shown["accuracy_low"], shown["accuracy_high"]),
        style=style,
        label=label,
    )
    if len(few):
        hollow = style | {"linestyle": "", "markerfacecolor": "none"}
        ax.plot(
            few["estimated"], few["accuracy"], label=f"fewer than {MIN_BIN} instances", **hollow
        )
    ax.set(xlabel="estimated accuracy", ylabel="actual accuracy", xlim=(0, 1), ylim=(0, 1))
    ax.set_title("Actual against estimated accuracy")
    ax.legend()
    return ax


def plot_accept_curve(
    table: pd.DataFrame,
    interval: tuple[Floats, Floats],
    *,
    label: str,
    interval_label: str,
    target: float | None,
    ax: Axes | None,
) -> Axes:
    """Draw the mean accuracy of the accepted against their share, with its interval."""
    ax = choose_axes(ax)
    start = np.zeros(min(len(table), 1))  # the first step begins with nothing accepted
    coverage = np.append(start, table["share"])
    low, accuracy, high = (
        np.append(values[:1], values) for values in (interval[0], table["accuracy"], interval[1])
    )
    style = series_style(len(ax.lines)) | {"marker": ""}
    (line,) = ax.step(coverage, accuracy, where="pre", label=label, **style)
    is_first = not ax.collections
    ax.fill_between(
        coverage,
        low,
        high,
        step="pre",
        alpha=0.25,
        linewidth=0,
        color=line.get_color(),
        label=interval_label if is_first else None,
    )
    is_reliable = np.append(table["n_accepted"][:1], table["n_accepted"]) >= MIN_ACCEPTED
    if is_reliable.any():  # limits by the reliable part of all curves
        margin = 0.05 * max(float(high[is_reliable].max() - low[is_reliable].min()), 0.05)
        ends = float(low[is_reliable].min()) - margin, float(high[is_reliable].max()) + margin
        old_limits = ends if is_first else ax.get_ylim()
        ax.set_ylim(min(ends[0], old_limits[0]), max(ends[1], old_limits[1]))
    n_few = int((table["n_accepted"] < MIN_ACCEPTED).sum())
    if n_few:
        is_first = not any(patch.get_hatch() for patch in ax.patches)
        shown = f"fewer than {MIN_ACCEPTED} accepted: mostly chance" if is_first else None
        ax.axvspan(
            0,
            coverage[n_few],
            facecolor="none",
            edgecolor="0.5",
            hatch="////",
            linewidth=0,
            zorder=0,
            label=shown,
        )
    if target is not None:
        _mark_target(table, target, ax)
    ax.set(xlabel="share accepted", ylabel="mean accuracy of the accepted", xlim=(0, 1))
    ax.set_title("Accuracy of the most confident predictions")
    ax.legend()
    return ax


def _mark_target(table: pd.DataFrame, target: float, ax: Axes) -> None:
    reached = table["share"][table["accuracy"] >= target]
    if len(reached):
        label = f"target {target:g}: met here with {reached.max():.0%} accepted"
        ax.plot([reached.max()], [target], "kD", zorder=3)
    else:
        label = f"target {target:g}: not met here"
    ax.axhline(target, color="k", linestyle=":", label=label)
    low, high = ax.get_ylim()
    ax.set_ylim(min(low, target - 0.01), max(high, target + 0.01))


def plot_labelsets(
    names: Sequence[str],
    probabilities: Floats,
    title: str,
    ax: Axes | None,
    predicted: int | None = None,
) -> Axes:
    """Draw labelsets as bars, and all others together as the last bar; mark the predicted one."""
    shown = [_wrap(name) for name in names]
    if predicted is not None:
        shown[predicted] += "\n(predicted)"
    other_probability = 1.0 - float(np.sum(probabilities))
    has_others = other_probability > ROUNDING
    if has_others:
        shown.append("all others together")
    n_lines = sum(1.5 + text.count("\n") for text in shown)
    ax = choose_axes(ax, 7.0, 1.2 + 0.2 * n_lines)
    colors = [PALETTE[0] if k == predicted else "0.6" for k in range(len(names))]
    bars = [ax.barh(range(len(names)), probabilities, color=colors, edgecolor="k")]
    if has_others:
        bars.append(
            ax.barh([len(names)], [other_probability], color="w", edgecolor="k", hatch="////")
        )
    for container in bars:
        ax.bar_label(container, fmt="{:.3g}", padding=3)
    ax.set_yticks(range(len(shown)), shown)
    ax.invert_yaxis()
    ax.set_xmargin(0.2)  # room for the numbers beside the bars
    ax.set_xlabel("probability")
    ax.set_title(_wrap(title))
    return ax


def _wrap(text: str) -> str:
    """Text in lines that fit beside a bar, with `$` escaped, which would start a formula."""
    lines = wrap(text, MAX_LETTERS)
    if len(lines) > MAX_LINES:
        lines = [*lines[: MAX_LINES - 1], f"{lines[MAX_LINES - 1][: MAX_LETTERS - 2]} …"]
    return "\n".join(lines).replace("$", r"\$")
