"""Accuracy of a stream that nobody labels: estimates, intervals, and what came out."""

import sys

import numpy as np

import labelsure as ls
from labelsure._runtime.plots import make_figure


def main(path: str) -> None:
    """Let inputs become harder week by week, and compare the estimates with the truth."""
    rng = np.random.default_rng(0)
    usual = rng.beta(0.3, 0.5, size=(1500, 5))
    weeks = [rng.beta(0.3 + 0.08 * week, 0.5 + 0.08 * week, size=(300, 5)) for week in range(8)]
    dist = ls.IndependentLabels(np.concatenate([usual, *weeks]))
    Y = dist.sample(1, random_state=1)[:, 0]
    estimator = ls.AccuracyEstimator("jaccard").fit(dist[:1500], Y[:1500])
    table = ls.monitor(estimator, dist[1500:], chunk_size=300).to_frame()
    accuracy = ls.accuracy(Y[1500:], dist[1500:].mode(), "jaccard").reshape(8, 300).mean(axis=1)
    axes = make_figure(4.8, 3.6).add_subplot()
    axes.fill_between(table["chunk"], table["low"], table["high"], alpha=0.25, label="95% interval")
    axes.plot(table["chunk"], table["estimated"], "-o", label="estimated, without labels")
    axes.plot(table["chunk"], accuracy, "k--x", label="actual")
    alarms = table[table["alert"] != "none"]
    rings = {"mfc": "none", "ms": 12, "label": "input-shift alarm"}
    axes.plot(alarms["chunk"], alarms["estimated"], "rs", **rings)
    axes.set(xlabel="week", ylabel="mean Jaccard", title="Inputs that become harder")
    axes.legend()
    axes.figure.savefig(path, dpi=120)


if __name__ == "__main__":
    main(*sys.argv[1:])
