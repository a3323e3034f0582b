"""Coverage and width of intervals for the difference of two models on one batch.

    LABELSURE_DATA=folder python -m benchmarks.compare_models docs/evidence/compare_models.csv

Logistic regressions against a stronger penalty, and against forests, fitted to 40 % of a set (at
most 800 rows). 300 calibration rows of both models or of each model its own; batches of 500 other
rows, as they come or with more labels than usual, of which some rows are labelled. The truth is the
difference on the batch itself.
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
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

import labelsure as ls
from benchmarks.batches import KINDS, Data, load
from labelsure.estimation._comparison import Comparison, Side

SETS = ("emotions", "scene", "yeast", "enron", "slashdot", "medical", "simulated", "simulated 2")
METRICS, LABELS = ("exact", "hamming", "jaccard", "f1"), (30, 100)
N_KNOWN, N_BATCH, N_SPLITS, N_BATCHES = 300, 500, 2, 3


def learners(seed: int) -> dict[str, Any]:
    """Return unfitted learners for one label."""
    return {
        "logistic": make_pipeline(MaxAbsScaler(), LogisticRegression(max_iter=500)),
        "penalty": make_pipeline(MaxAbsScaler(), LogisticRegression(C=0.1, max_iter=500)),
        "forest": RandomForestClassifier(50, random_state=seed),
    }


def compare(judges: Any, dists: Any, other: str, rows: Any, shared: bool) -> Comparison:
    """Return the comparison of logistic regressions with another model on some rows."""
    first = Side(judges["logistic", True], dists["logistic"][rows], None)
    return Comparison(first, Side(judges[other, shared], dists[other][rows], None), 0.95)


def run(data: Data, number: int) -> Iterator[tuple]:
    """Yield (metric, kind, truth, low, high) of each pair of models and batch."""
    rng = np.random.default_rng([number, zlib.crc32(data.name.encode())])
    order = rng.permutation(len(data.Y))
    train, rest = np.split(order, [min(round(0.4 * len(order)), 800)])
    dists = {
        title: ls.BinaryRelevance(learner)
        .fit(data.X[train], data.Y[train])
        .predict_distribution(data.X[rest])
        for title, learner in learners(number).items()
    }
    Y, n_known = data.Y[rest], min(N_KNOWN, len(rest) // 3)
    score = KINDS["more labels"](data, rest, rng)
    for _ in range(N_BATCHES):
        rows = rng.permutation(len(rest))
        known, others, pool = np.split(rows, [n_known, 2 * n_known])
        size = min(N_BATCH, len(pool))
        batch = rng.choice(pool, size, replace=False)
        weights = np.exp((score[pool] - score[pool].mean()) / (score[pool].std() or 1.0))
        shifted = rng.choice(pool, size // 2, replace=False, p=weights / weights.sum())
        for metric in METRICS:
            judges = {
                (title, shared): ls.AccuracyEstimator(metric, "full").fit(dist[some], Y[some])
                for title, dist in dists.items()
                for shared, some in ((True, known), (False, others))
            }
            values = {title: ls.accuracy(Y, dist.mode(), metric) for title, dist in dists.items()}
            for other in ("penalty", "forest"):
                differences = values["logistic"] - values[other]
                for kind, shared in (("paired", True), ("unpaired", False)):
                    said = compare(judges, dists, other, batch, shared).by_calibration("ignore")
                    yield metric, other, kind, differences[batch].mean(), said.low, said.high
                for k in LABELS:
                    if k > len(shifted) // 2:
                        continue
                    labelled = rng.choice(len(shifted), k, replace=False)
                    truth, pair = Y[shifted][labelled], compare(judges, dists, other, shifted, True)
                    said, kind = pair.by_labels(truth, labelled, "pseudo-rows"), f"{k} labels"
                    yield metric, other, kind, differences[shifted].mean(), said.low, said.high


def summarise(found: pd.DataFrame) -> pd.DataFrame:
    """Return cases, coverage and mean width by kind of interval, metric and pair."""
    covered = (found["low"] <= found["truth"] + 1e-9) & (found["truth"] <= found["high"] + 1e-9)
    found = found.assign(covered=covered, width=found["high"] - found["low"])
    by = found.groupby(["kind", "other", "metric"], sort=False)
    means = by[["covered", "width"]].mean().round(3)
    means.insert(0, "cases", by.size())
    return means.reset_index()


COLUMNS = ["metric", "other", "kind", "truth", "low", "high"]


def main(file: str) -> None:
    """Measure, and write the table."""
    warnings.simplefilter("ignore")
    folder, rows = Path(os.environ["LABELSURE_DATA"]), []
    for name in SETS:
        data = load(name, folder)
        for number in range(N_SPLITS):
            rows += run(data, number)
        print(name, file=sys.stderr, flush=True)
        frame = pd.DataFrame(rows, columns=COLUMNS)
        table = summarise(frame)
        table.to_csv(file, index=False)
    print(table.to_string(index=False))
    print(summarise(frame.assign(metric="all", other="both")).to_string(index=False))


if __name__ == "__main__":
    main(sys.argv[1])
