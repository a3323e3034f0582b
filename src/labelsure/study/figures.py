"""The figures of a study."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill
from typing import TYPE_CHECKING

import numpy as np

from labelsure._runtime.plots import (
    STYLES,
    draw_interval_series,
    make_figure,
)
from labelsure._runtime.typing import Floats
from labelsure.distributions.candidates import (
    CANDIDATES,
    PAPER_CANDIDATES,
    Profile,
    confidence_of_profile,
)
from labelsure.estimation.score_table import ScoreTable
from labelsure.guarantees._accept_curve import accept_curve

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


EXAMPLES = {
    "(a) uniform": (1, 1, 1, 1, 1, 1, 1, 1),
    "(b) nearly uniform": (2, 1, 1, 1, 1, 1, 1, 0),
    "(c) two halves": (0, 3, 0, 0, 0, 0, 3, 0),
    "(d) one ahead of many": (1, 1, 5, 1, 1, 1, 1, 1),
    "(e) the worked example": (0, 4, 3, 0, 3, 0, 2, 0),
    "(f) almost certain": (0, 0, 0, 0, 0, 18, 1, 1),
}
"""Weights of the eight labelsets of three labels, the first label as the highest bit. (a), (e) and
(f) are described in the paper; (b) to (d) are ours."""

N_POINTS = 201


def draw_sentence(reason: str) -> Figure:
    """Return a figure that says why another one could not be made."""
    figure = make_figure()
    sentence = f"This figure could not be made. {reason}"
    figure.text(0.5, 0.5, fill(sentence, 60), ha="center", va="center")
    return figure


def plot_example_distributions() -> Figure:
    """Draw six distributions over the labelsets of three labels."""
    figure = make_figure(9, 4.6)
    axes = figure.subplots(2, 3, sharex=True, sharey=True)
    names = [format(code, "03b") for code in range(8)]
    for ax, (title, weights) in zip(axes.flat, EXAMPLES.items(), strict=True):
        probabilities = np.array(weights) / sum(weights)
        ax.bar(names, probabilities, color="C0")
        ax.set(title=title, ylim=(0, 1))
        ax.tick_params(axis="x", rotation=90)
    figure.supxlabel("labelset")
    figure.supylabel("probability")
    return figure


def plot_candidates(third: Sequence[float] = (0.0, 1 / 3, 0.5)) -> Figure:
    """Draw the seven candidates over a distribution of three elements.

    Parameters
    ----------
    third
        The probability of the third element in each panel; the first one runs along the axis.
    """
    figure = make_figure(3.4 * len(third), 3.6)
    axes = np.atleast_1d(figure.subplots(1, len(third), sharey=True))
    for ax, rest in zip(axes, third, strict=True):
        first = np.linspace(0, 1 - rest, N_POINTS)
        _draw_candidates(
            ax, first, np.column_stack([first, 1 - rest - first, np.full_like(first, rest)])
        )
        ax.set(
            xlabel="first probability", title=f"third probability {rest:.3g}", ylim=(-0.02, 1.02)
        )
    axes[0].set_ylabel("candidate")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=6)
    return figure


def _draw_candidates(ax: Axes, first: Floats, probabilities: Floats) -> None:
    values = confidence_of_profile(profile_of(probabilities), PAPER_CANDIDATES)
    for names, style in zip(_group_by_function(PAPER_CANDIDATES), STYLES, strict=False):
        ax.plot(first, values[names[0]], linestyle=style, label=", ".join(names))


def _group_by_function(names: Sequence[str]) -> list[list[str]]:
    """Return the candidates that are one function together: one line is drawn for them."""
    groups: dict[object, list[str]] = {}
    for name in names:
        groups.setdefault(CANDIDATES[name].function, []).append(name)
    return list(groups.values())


def profile_of(probabilities: Floats) -> Profile:
    """Return the profile of rows of K probabilities, whatever K is.

    Parameters
    ----------
    probabilities
        (n, K)

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
    """Draw actual against estimated accuracy with its 95% interval, a panel for each metric.

    Parameters
    ----------
    intervals
        Of `labelsure.study.analyses.mixture`.
    """
    metrics = list(dict.fromkeys(intervals["metric"]))
    figure = make_figure(3.7 * len(metrics), 3.9)
    axes = np.atleast_1d(figure.subplots(1, len(metrics)))
    for ax, metric in zip(axes, metrics, strict=True):
        part = intervals[(intervals["metric"] == metric) & intervals["low"].notna()]
        ax.plot([0, 1], [0, 1], color="0.6", linewidth=1, label="Oracle")
        for i, model in enumerate(dict.fromkeys(part["model"])):
            rows = part[part["model"] == model]
            ends = rows["low"], rows["high"]
            draw_interval_series(
                ax, rows["estimated"], rows["accuracy"], ends, number=i, label=model
            )
        least = max(0.0, float(part[["low", "estimated"]].min().min()) - 0.05)
        ax.set(title=metric, xlabel="estimated accuracy", xlim=(least, 1.02), ylim=(least, 1.02))
    axes[0].set_ylabel("actual accuracy")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=5)
    return figure


def plot_accepted(
    scores: pd.DataFrame,
    *,
    classifier: str = "CT",
    candidates: Sequence[str] = ("HP", "TG", "SE", "CE"),
    metric: str = "jaccard",
    empty: float = 0.0,
) -> Figure:
    """Draw the mean accuracy of the most confident predictions, a panel for each data set.

    Parameters
    ----------
    scores
        The score table; its first repeat is drawn.
    classifier
        The paper's is CT; the first one if it does not occur.
    candidates
        What orders the predictions, a line for each.
    metric, empty
        Of the accuracy.
    """
    present = list(dict.fromkeys(scores["classifier"]))
    chosen = classifier if classifier in present else present[0]
    shown = scores[(scores["classifier"] == chosen) & (scores["repeat"] == scores["repeat"].min())]
    datasets = list(dict.fromkeys(shown["dataset"]))
    n_rows = -(-len(datasets) // 2)
    figure = make_figure(8, 2.7 * n_rows + 0.4)
    axes = figure.subplots(n_rows, 2, squeeze=False)
    for ax in axes.flat[len(datasets) :]:
        ax.set_visible(False)
    for ax, dataset in zip(axes.flat, datasets, strict=False):
        part = shown[shown["dataset"] == dataset]
        table = ScoreTable(part)
        accuracy = table.accuracy(metric, empty)
        for name, style in zip(candidates, STYLES, strict=False):
            curve = accept_curve(_finite(table.ranks(name)), accuracy).table
            ax.plot(curve["n_accepted"], curve["accuracy"], linestyle=style, label=name)
        ax.set(title=dataset, ylim=(0, 1.02))
    figure.supxlabel("predictions accepted, the most confident first")
    figure.supylabel(f"mean {metric} accuracy ({chosen})")
    handles = axes[0, 0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside upper center", ncols=len(candidates))
    return figure


def _finite(keys: Floats) -> Floats:
    """Return keys as ranks: the log of no gap at all is -inf."""
    return np.unique(keys, return_inverse=True)[1].astype(np.float64)
