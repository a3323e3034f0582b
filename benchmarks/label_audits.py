"""Micro and macro averages and measures of labels after an audit: coverage and width.

    LABELSURE_DATA=folder python -m benchmarks.label_audits docs/evidence/label_audits.csv

A classifier is fitted to 40 % of a set (at most 800 rows), an accuracy estimator to 300 others. Of
the rest, batches of 600 rows are drawn as they come or with more labels than usual, and random rows
of each are labelled. "0 labels" is the estimate without them. Coverage of 95 % intervals for the
values of the batch itself, and their mean width.
"""

from __future__ import annotations

import os
import sys
import warnings
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.metrics import precision_recall_fscore_support

import labelsure as ls
from benchmarks.batches import KINDS, Data, classifiers, load

SETS = ("emotions", "scene", "yeast", "enron", "slashdot", "medical", "simulated", "simulated 2")
LABELS, N_KNOWN, N_BATCH, N_SPLITS, N_BATCHES = (0, 30, 50, 100, 200), 300, 600, 2, 2
AVERAGES = ("micro-f1", "macro-f1")
RARE = 0.05
"""Share of true rows in the batch below which a label is rare."""


def measure(model: Any, dist: Any, Y: NDArray[Any], rows: Any) -> list[tuple]:
    """Return (quantity, truth, low, high) of a batch, with labels of some rows."""
    given = {} if rows is None else {"rows": rows, "Y_true": Y[rows]}
    predicted, found = dist.mode(), []
    for name in AVERAGES:
        said = model.estimate(dist, metric=name, shift="ignore", **given)
        average = name.removesuffix("-f1")
        true = precision_recall_fscore_support(Y, predicted, average=average, zero_division=1.0)[2]
        found.append((name, true, said.low, said.high))
    table = model.estimate_labels(dist, **given).to_frame()
    of_labels = precision_recall_fscore_support(Y, predicted, zero_division=1.0)
    is_rare = Y.mean(axis=0) < RARE
    for name, true in zip(("precision", "recall", "f1"), of_labels, strict=False):
        ends = table[f"{name}_low"], table[f"{name}_high"]
        kinds = np.where(is_rare, f"{name} of a rare label", f"{name} of a label")
        found += zip(kinds, true, *ends, strict=True)
    return found


def run(data: Data, number: int) -> list[tuple]:
    """Return rows of all batches of one split."""
    rng = np.random.default_rng([number, zlib.crc32(data.name.encode())])
    order = rng.permutation(len(data.Y))
    train, rest = np.split(order, [min(round(0.4 * len(order)), 800)])
    n_known = min(N_KNOWN, len(rest) // 2)
    known, pool = rest[:n_known], rest[n_known:]
    classifier = classifiers(data)["BR"].fit(data.X[train], data.Y[train])
    dists = [classifier.predict_distribution(data.X[some]) for some in (known, pool)]
    model = ls.AccuracyEstimator("f1", "full").fit(dists[0], data.Y[known])
    found = []
    for shift in ("none", "more labels"):
        score = KINDS[shift](data, pool, rng)
        weights = np.exp((score - score.mean()) / (score.std() or 1.0))
        for _ in range(N_BATCHES):
            size = min(N_BATCH, len(pool) // 2)
            chosen = rng.choice(len(pool), size, replace=False, p=weights / weights.sum())
            batch, Y = dists[1][chosen], data.Y[pool[chosen]]
            for n_labelled in LABELS:
                if n_labelled > size // 2:
                    continue
                rows = rng.choice(size, n_labelled, replace=False) if n_labelled else None
                for quantity, *values in measure(model, batch, Y, rows):
                    found.append((data.name, shift, n_labelled, quantity, *values))
    return found


def summarise(found: pd.DataFrame) -> pd.DataFrame:
    """Return cases, coverage and mean width by shift, quantity and number of labels."""
    covered = (found["low"] <= found["truth"] + 1e-9) & (found["truth"] <= found["high"] + 1e-9)
    found = found.assign(covered=covered, width=found["high"] - found["low"])
    by = found.groupby(["shift", "quantity", "labels"], sort=False)
    means = by[["covered", "width"]].mean().round(3)
    means.insert(0, "cases", by.size())
    return means.reset_index()


COLUMNS = ["set", "shift", "labels", "quantity", "truth", "low", "high"]


def main(file: str) -> None:
    """Measure, and write the table."""
    warnings.simplefilter("ignore")
    folder, rows = Path(os.environ["LABELSURE_DATA"]), []
    for name in SETS:
        data = load(name, folder)
        for number in range(N_SPLITS):
            rows += run(data, number)
        print(name, file=sys.stderr, flush=True)
    table = summarise(pd.DataFrame(rows, columns=COLUMNS))
    table.to_csv(file, index=False)
    print(table.to_string(index=False))


if __name__ == "__main__":
    main(sys.argv[1])
