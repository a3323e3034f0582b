"""Dependent rows: how often a policy fails and intervals miss, by row and by cluster.

    python -m benchmarks.clusters docs/evidence/clusters.csv

A simulated population of clusters: the rows of a cluster share luck that the classifier does not
see. The target is the true mean plus .001, so that a policy that accepts all rows, at its single
threshold, is a failure; 5 % are allowed. Batches are new clusters; 95 % intervals of their mean F1,
micro-F1 and label F1 should miss in 5 %. Some ten minutes on one core.
"""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.metrics import f1_score

import labelsure as ls

Floats = NDArray[np.float64]
N_LABELS, LUCK, N_REPEATS, LEVEL = 4, 1.0, 200, 0.95


@dataclass(frozen=True)
class Sizes:
    """How many clusters of which sizes are drawn, and whether large ones are harder.

    Parameters
    ----------
    n_clusters
        Of the calibration set, and of a batch.
    size
        Rows of each cluster, or the mean of a geometric number.
    is_equal
        Whether all clusters have the same size.
    harder
        By how much the luck of a cluster falls with each row beyond the mean.
    most
        `max_cluster_size`: the 90 % quantile of sizes.
    """

    n_clusters: int
    size: int
    is_equal: bool = True
    harder: float = 0.0
    most: int = 1

    def draw(self, rng: np.random.Generator, n_clusters: int = 0) -> NDArray[np.intp]:
        """Return the cluster of each row."""
        n = n_clusters or self.n_clusters
        sizes = np.full(n, self.size) if self.is_equal else rng.geometric(1 / self.size, n)
        return np.repeat(np.arange(n), sizes)


SIZES = {
    "1,000 x 1": Sizes(1000, 1),
    "50 x 20": Sizes(50, 20, most=20),
    "20 x 50": Sizes(20, 50, most=50),
    "10 x 50": Sizes(10, 50, most=50),
    "100 x 10": Sizes(100, 10, most=10),
    "200, geometric, mean 6": Sizes(200, 6, is_equal=False, most=13),
    "200, geometric, large are harder": Sizes(200, 6, is_equal=False, harder=0.1, most=13),
}


def draw(sizes: Sizes, rng: np.random.Generator, n_clusters: int = 0):
    """Return distributions, labelsets and clusters."""
    clusters = sizes.draw(rng, n_clusters)
    luck = LUCK * rng.normal(size=int(clusters.max()) + 1)
    luck -= sizes.harder * (np.bincount(clusters) - sizes.size)
    logits = 1.5 * rng.normal(size=(len(clusters), N_LABELS)) - 0.3
    signs = np.where(logits > 0, 1, -1)  # luck makes the more probable value still more probable
    Y = (rng.random(logits.shape) < expit(logits + signs * luck[clusters, np.newaxis])).astype(int)
    return ls.IndependentLabels(expit(logits)), Y, clusters


def measure_policies(sizes: Sizes, metric: str) -> dict[str, float]:
    """Return the share of policies that wrongly reach a target, by row and by cluster."""
    rng = np.random.default_rng(0)
    dist, Y, clusters = draw(sizes, rng, 30_000)
    in_order = np.argsort(clusters, kind="stable")
    starts = np.searchsorted(clusters[in_order], clusters[in_order])
    counted = in_order[np.arange(len(clusters)) - starts < sizes.most]
    target = ls.accuracy(Y[counted], dist[counted].mode(), metric).mean() + 0.001
    lower = target - 0.05
    settings = {"grid": [0.0], "outcome": "binary" if metric == "exact" else "bounded"}
    failed = dict.fromkeys(("by row", "by cluster", "power by cluster"), 0)
    for _ in range(N_REPEATS):
        dist, Y, clusters = draw(sizes, rng)
        values, score = ls.accuracy(Y, dist.mode(), metric), np.zeros(len(Y))
        by_row = ls.AcceptPolicy(target, **settings).fit(score, values)
        grouped = ls.AcceptPolicy(target, **settings, max_cluster_size=sizes.most)
        failed["by row"] += by_row.reached_
        failed["by cluster"] += grouped.fit(score, values, clusters=clusters).reached_
        grouped.set_params(target=lower)
        failed["power by cluster"] += grouped.fit(score, values, clusters=clusters).reached_
    return {name: number / N_REPEATS for name, number in failed.items()}


def measure_intervals(sizes: Sizes) -> dict[str, float]:
    """Return the share of intervals that miss the F1 of a batch, by row and by cluster."""
    rng, missed = np.random.default_rng(1), {}
    n_repeats = N_REPEATS // 2
    for _ in range(n_repeats):
        dist, Y, clusters = draw(sizes, rng)
        batch, truth, _ = draw(sizes, rng)
        Y_pred = batch.mode()
        true = {
            "mean F1": ls.accuracy(truth, Y_pred, "f1").mean(),
            "micro-F1": f1_score(truth, Y_pred, average="micro"),
            "label F1": f1_score(truth, Y_pred, average=None),
        }
        for name, given in (("by row", None), ("by cluster", clusters)):
            estimator = ls.AccuracyEstimator("f1").fit(dist, Y, clusters=given)
            found = estimator.estimate(batch)
            table = estimator.estimate_labels(batch).to_frame()
            micro = estimator.estimate(batch, metric="micro-f1", shift="ignore")
            ends = {
                "mean F1": (found.low, found.high),
                "micro-F1": (micro.low, micro.high),
                "label F1": (table["f1_low"], table["f1_high"]),
            }
            for quantity, (low, high) in ends.items():
                outside = np.mean((true[quantity] < low) | (true[quantity] > high))
                key = f"{quantity} missed {name}"
                missed[key] = missed.get(key, 0.0) + float(outside) / n_repeats
            width = f"mean width {name}"
            missed[width] = missed.get(width, 0.0) + (found.high - found.low) / n_repeats
            alarm = f"shift detected {name}"
            is_found = found.shift is not None and found.shift.found
            missed[alarm] = missed.get(alarm, 0.0) + is_found / n_repeats
    return missed


def main(file: str) -> None:
    """Measure, and write the table."""
    warnings.simplefilter("ignore")
    ls.AcceptPolicy._advise = lambda *settings: ""
    rows = []
    for name, sizes in SIZES.items():
        row: dict[str, float | str] = {"clusters": name}
        for metric in ("exact", "f1"):
            found = measure_policies(sizes, metric)
            row |= {f"{metric}, {key}": value for key, value in found.items()}
        row |= measure_intervals(sizes)
        rows.append(row)
        print(pd.Series(row).to_string(), flush=True)
    pd.DataFrame(rows).round(3).to_csv(file, index=False)


if __name__ == "__main__":
    main(sys.argv[1])
