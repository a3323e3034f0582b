"""A few labels of the batch itself: coverage and width of three intervals, by metric.

    LABELSURE_DATA=folder python -m benchmarks.few_labels docs/evidence/few_labels.csv

Estimates and accuracies of the sets and classifiers of `benchmarks.acceptance`. 300 rows fix the
weight of the estimates, the others are the batch, of which random rows are labelled. "Labels alone"
is Student's interval of the labelled accuracies. Rare: accuracies of 0 with a probability of .3/k
to 2/k at k labels, else 1; and partial failures. Some ten minutes on one core.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import cache

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import t as student

from benchmarks.acceptance import CHOSEN_ON, CONFIRMED_ON, Pair, populations
from labelsure.estimation._batch_estimates import BatchSums, few_labels_interval

LABELS, N_KNOWN, N_REPEATS, LEVEL = (20, 30, 50, 100), 300, 40, 0.95
N_BETTING = 10
"""Repeats with betting, which takes some milliseconds."""

RARE = {
    "1 in 3k": lambda k: ([1.0, 0.0], [1 - 0.3 / k, 0.3 / k]),
    "1 in k": lambda k: ([1.0, 0.0], [1 - 1 / k, 1 / k]),
    "2 in k": lambda k: ([1.0, 0.0], [1 - 2 / k, 2 / k]),
    "partial": lambda k: ([1.0, 0.5, 0.0], [1 - 2 / k, 1 / k, 1 / k]),
    "nearly right": lambda k: ([1.0, 0.95, 0.0], [0.80, 0.17, 0.03]),
}
Floats = NDArray[np.float64]


@cache
def real_batches() -> list[tuple[str, Pair]]:
    """Return (metric, (estimates, accuracies)) of each set and classifier."""
    return [(metric, pair) for *_, metric, pair in populations(CHOSEN_ON + CONFIRMED_ON)]


def batches(n_labelled: int) -> Iterator[tuple[str, Floats, Floats, float]]:
    """Yield (metric or kind, estimates, accuracies, weight of the estimates)."""
    rng = np.random.default_rng(0)
    for metric, (scores, values) in real_batches():
        order = rng.permutation(len(scores))
        known, batch = order[:N_KNOWN], order[N_KNOWN:]
        if len(batch) < 2 * n_labelled:
            continue
        x, y = scores[known] - scores[known].mean(), values[known]
        lambda_ = float(np.clip((x @ y) / max(x @ x, 1e-12), 0, 1))
        yield metric, scores[batch], values[batch], lambda_
    for kind, make in RARE.items():
        for n_related in (0.0, 0.6):
            levels, chances = make(n_labelled)
            values = rng.choice(levels, 20 * n_labelled, p=chances)
            noise = rng.random(len(values))
            scores = np.clip(n_related * values + (1 - n_related) * noise, 0, 1)
            yield f"rare: {kind}", scores, values, 0.8 * (n_related > 0)


def measure(n_labelled: int, seed: int = 0) -> Iterator[tuple[str, str, bool, float]]:
    """Yield (metric or kind, method, covered, width) of each draw of labelled rows."""
    rng = np.random.default_rng(seed)
    for metric, scores, values, lambda_ in batches(n_labelled):
        sums, n_all = BatchSums.of(scores, np.empty(0)), len(scores)
        settings = {"lambda_": lambda_, "level": LEVEL}
        for repeat in range(N_REPEATS):
            rows = rng.choice(n_all, n_labelled, replace=False)
            for method in ("pseudo-rows", "betting")[: 1 + (repeat < N_BETTING)]:
                found = few_labels_interval(
                    sums, values[rows], scores[rows], interval=method, **settings
                )
                yield (
                    metric,
                    method,
                    found.low <= values.mean() <= found.high,
                    found.high - found.low,
                )
            error = values[rows].std(ddof=1) * (1 / n_labelled - 1 / n_all) ** 0.5
            half = student.ppf((1 + LEVEL) / 2, n_labelled - 1) * error
            distance = abs(values[rows].mean() - values.mean())
            yield metric, "labels alone", distance <= half + 1e-12, 2 * half


def main(file: str) -> None:
    """Measure, and write the table."""
    rows = [(k, *row) for k in LABELS for row in measure(k)]
    columns = ["labels", "metric", "method", "covered", "width"]
    table = pd.DataFrame(rows, columns=columns)
    found = table.groupby(["metric", "labels", "method"], sort=False)[["covered", "width"]]
    found = found.mean().unstack("method").round(3)
    found.columns = [f"{method}, {what}" for what, method in found.columns]
    found.to_csv(file)
    print(found.to_string())
    usual = table[~table["metric"].str.startswith("rare")]
    print(usual.groupby(["labels", "method"])[["covered", "width"]].mean().round(3).to_string())


if __name__ == "__main__":
    main(sys.argv[1])
