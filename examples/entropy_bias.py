"""Entropies estimated from samples, and how far they are from the truth.

Draws more and more labelsets from a chain of 20, 30 and 50 labels whose entropy is known (each
label depends on the one before it, so a trellis has it exactly). Compares estimates from counts of
the draws with the mean of -log P(draw). Prints a table and writes
docs/images/evidence/entropy_bias.svg.
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy.special import expit

import labelsure as ls

IMAGE = Path(__file__).parents[1] / "docs" / "images" / "evidence" / "entropy_bias.svg"
INK = "#5c6168"  # of axes and text on light pages
THEME = "{ :root { --ink: #b9bec7; } }"  # on dark ones
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")
GREY = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
N_LABELS = (20, 30, 50)
N_DRAWS = (30, 100, 300, 1000, 3000, 10_000, 30_000)
N_REPEATS = 10
COUNTING = ("plugin", "miller_madow", "grassberger", "chao_shen")
OURS = "mean of -log P"


def chain_and_truth(n_labels: int) -> tuple[ls.distributions.ChainMixture, float]:
    """Return one instance as many times as there are repeats, and its exact entropy."""
    rng = np.random.default_rng(0)
    base = rng.normal(-1.5, 1.0, size=n_labels)
    follows = rng.normal(1.5, 1.0, size=n_labels)  # what a label adds to the next one's logit
    order = np.arange(n_labels)
    chain = ls.distributions.LinearChain(
        order, np.tile(base, (N_REPEATS, 1)), np.diag(follows[1:], -1)
    )
    conditionals = [[expit([base[0]])]]
    conditionals += [[expit([base[j], base[j] + follows[j]])] for j in order[1:]]
    parents = [[], *([j - 1] for j in order[1:])]
    truth = ls.distributions.TrellisDistribution(conditionals, parents, order).profile().entropy[0]
    return ls.distributions.ChainMixture([chain]), float(truth)


def estimates(dist: ls.distributions.ChainMixture, n_draws: int) -> dict[str, float]:
    """Return the mean of each estimator over the repeats, and the error of a single one of ours."""
    draws = dist.sample(n_draws, random_state=n_draws)
    found = {
        name: ls.LabelsetTable.from_samples(draws, entropy=name).profile().entropy.mean()
        for name in COUNTING
    }
    ours = dist.with_engine(engine="sampled", budget=n_draws, sampled_tolerance=0).profile()
    return {**found, OURS: ours.entropy.mean(), "error": ours.entropy_error.mean()}


def measure() -> pd.DataFrame:
    """Return one row for each number of labels and of draws."""
    rows = []
    for n_labels in N_LABELS:
        dist, truth = chain_and_truth(n_labels)
        for n_draws in N_DRAWS:
            found = estimates(dist, n_draws)
            rows.append({"labels": n_labels, "draws": n_draws, "truth": truth, **found})
    return pd.DataFrame(rows)


def plot(table: pd.DataFrame) -> None:
    """Draw one panel for each number of labels."""
    figure, axes = plt.subplots(1, len(N_LABELS), figsize=(8.2, 3.4), layout="constrained")
    for axis, (n_labels, panel) in zip(axes, table.groupby("labels"), strict=True):
        axis.axhline(panel["truth"].iloc[0], color=INK, linewidth=1, label="truth")
        for name, marker, colour in zip(COUNTING, "os^d", COLOURS, strict=True):
            style = {"marker": marker, "markersize": 4, "color": colour}
            label = name.replace("_", "-") + " (counts)"
            axis.plot(panel["draws"], panel[name], label=label, **style)
        axis.errorbar(
            panel["draws"],
            panel[OURS],
            yerr=1.96 * panel["error"],
            color=INK,
            marker="x",
            linestyle="none",
            capsize=2,
            label="labelsure: mean of -log P, 95%",
        )
        axis.set(xscale="log", title=f"{n_labels} labels", xlabel="draws", ylim=(0, None))
    axes[0].set_ylabel("estimated entropy (nats)")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    IMAGE.parent.mkdir(exist_ok=True)
    figure.savefig(IMAGE, transparent=True, metadata={"Date": None})
    text = IMAGE.read_text(encoding="utf-8").replace(INK, "var(--ink)")
    themes = f":root {{ --ink: {INK}; }} @media (prefers-color-scheme: dark) {THEME}"
    IMAGE.write_text(text.replace("</style>", f"{themes}</style>", 1), encoding="utf-8")


def main() -> None:
    """Measure, print, plot."""
    table = measure()
    print(table.round(2).to_string(index=False))
    grey = dict.fromkeys(GREY, INK)
    with plt.rc_context({"font.size": 9, "svg.hashsalt": "labelsure", **grey}):
        plot(table)


if __name__ == "__main__":
    main()
