"""Exact and approximate guarantees by calibration rows of the classifier: what they accept, miss.

    LABELSURE_DATA=folder python -m benchmarks.approximate docs/evidence/approximate.csv

Binary relevance of logistic regressions is fitted to 30 % of a set. Of the rest n calibration rows
are drawn, the others are new. As in `AccuracyAwareClassifier`, an exact guarantee fits the accuracy
estimator to one half of the n rows and the policy to the other; an approximate one fits both to all
of them. Targets lie .02, .05 and .1 above the mean accuracy, below 1. "Missed" is a mean accuracy
of accepted new rows below the target, "beyond noise" one by more than 1.64 standard errors.
"""

from __future__ import annotations

import os
import sys
import warnings
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import labelsure as ls
from benchmarks.batches import Data, classifiers, load
from labelsure.metrics.registry import get_metric

SETS = ("scene", "yeast", "enron", "slashdot", "simulated", "simulated 2")
METRICS, SIZES, STEPS = ("exact", "hamming", "jaccard", "f1"), (100, 300, 1000), (0.02, 0.05, 0.1)
N_SPLITS, N_DRAWS, NOISE = 2, 4, 1.64


def fit_policy(kind: str, dist: Any, Y: Any, metric: str, target: float) -> tuple[Any, Any]:
    """Return the accuracy estimator and the policy of a guarantee of this kind."""
    settings = {"guarantee": kind, "outcome": get_metric(metric).outcome}
    half = len(Y) // 2
    rows = slice(0, half if kind == "exact" else None)
    judge = ls.AccuracyEstimator(metric, "full").fit(dist[rows], Y[rows])
    if kind == "exact":
        scores, values = judge.predict(dist[half:]), ls.accuracy(Y, dist.mode(), metric)[half:]
    else:
        scores, values = judge.compare_estimates()
    return judge, ls.AcceptPolicy(target, **settings).fit(scores, values)


def run(data: Data, number: int) -> Iterator[tuple]:
    """Yield (metric, rows, kind, share accepted, missed, missed beyond noise)."""
    rng = np.random.default_rng([number, zlib.crc32(data.name.encode())])
    order = rng.permutation(len(data.Y))
    train, rest = np.split(order, [round(0.3 * len(order))])
    model = classifiers(data)["BR"].fit(data.X[train], data.Y[train])
    dist, Y = model.predict_distribution(data.X[rest]), data.Y[rest]
    for metric in METRICS:
        values = ls.accuracy(Y, dist.mode(), metric)
        for n in SIZES:
            if 2 * n > len(Y):
                continue
            for _ in range(N_DRAWS):
                known, new = np.split(rng.permutation(len(Y)), [n])
                for step in STEPS:
                    target = min(values.mean() + step, (values.mean() + 1) / 2)
                    for kind in ("exact", "approximate"):
                        judge, policy = fit_policy(kind, dist[known], Y[known], metric, target)
                        found = values[new][policy.accept(judge.predict(dist[new]))]
                        below = target - found.mean() if len(found) else -1.0
                        noise = NOISE * found.std() / max(len(found), 1) ** 0.5
                        share = len(found) / len(new)
                        yield metric, n, kind, share, below > 0, below > noise


def main(file: str) -> None:
    """Measure, and write the table."""
    warnings.simplefilter("ignore")
    ls.AcceptPolicy._advise = lambda *settings: ""
    folder, rows = Path(os.environ["LABELSURE_DATA"]), []
    for name in SETS:
        data = load(name, folder)
        for number in range(N_SPLITS):
            rows += run(data, number)
        print(name, file=sys.stderr, flush=True)
    columns = ["metric", "rows", "kind", "accepted", "missed", "missed beyond noise"]
    by = pd.DataFrame(rows, columns=columns).groupby(["metric", "rows", "kind"], sort=False)
    found = by.mean(numeric_only=False).astype(float).round(3)
    found.insert(0, "policies", by.size())
    found.to_csv(file)
    print(found.to_string())


if __name__ == "__main__":
    main(sys.argv[1])
