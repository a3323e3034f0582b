"""Coverage of intervals with 100 calibration rows: the worst cells, and what they share.

    LABELSURE_DATA=folder python -m benchmarks.small_calibration docs/evidence/small_calibration.csv

Linear models and boosting are fitted to 40 % of a set (at most 800 rows). Of the rest, 100 rows
calibrate and at most 500 others are the batch, 40 times. A cell is a set, a learner and a metric.
Beside its coverage: bias, width, mean accuracy, the share of rows without labels and the share of
predictions that are empty, and how much the calibration residuals vary beyond what an interval by
p (1 - p) allows ("dispersion"). Three minutes.
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
from sklearn.decomposition import TruncatedSVD
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import MaxAbsScaler

import labelsure as ls
from benchmarks.batches import Data, load

SETS = ("emotions", "scene", "yeast", "enron", "slashdot", "medical", "simulated", "simulated 2")
METRICS, N_KNOWN, N_BATCH, N_DRAWS, N_FEATURES = ("exact", "hamming", "f1"), 100, 500, 40, 50


def measure(data: Data) -> list[dict[str, Any]]:
    """Return a row for each learner and metric."""
    rng = np.random.default_rng(zlib.crc32(data.name.encode()))
    order = rng.permutation(len(data.Y))
    train, rest = np.split(order, [min(round(0.4 * len(order)), 800)])
    X = MaxAbsScaler().fit(data.X[train]).transform(data.X)
    if X.shape[1] > N_FEATURES:
        X = TruncatedSVD(N_FEATURES, random_state=0).fit(X[train]).transform(X)
    boosting = HistGradientBoostingClassifier(max_iter=30, max_leaf_nodes=8, early_stopping=False)
    Y, rows = data.Y[rest], []
    for title, learner in (("linear", LogisticRegression(max_iter=300)), ("boosting", boosting)):
        model = ls.BinaryRelevance(learner).fit(X[train], data.Y[train])
        dist = model.predict_distribution(X[rest])
        table = ls.ScoreTable.from_distribution(dist, Y, metrics=list(METRICS)).to_frame()
        for metric in METRICS:
            values, found = ls.accuracy(Y, dist.mode(), metric), []
            for _ in range(N_DRAWS):
                known, batch = np.split(rng.permutation(len(rest))[: N_KNOWN + N_BATCH], [N_KNOWN])
                judge = ls.AccuracyEstimator(metric, "full").fit(table.iloc[known])
                said = judge.estimate(table.iloc[batch], shift="ignore")
                true = values[batch].mean()
                covered = said.low <= true <= said.high
                found.append(
                    (covered, said.mean - true, said.high - said.low, judge.scatter_.ratio)
                )
            names = ("covered", "bias", "width", "dispersion")
            row = {"set": data.name, "learner": title, "metric": metric}
            row |= dict(zip(names, np.mean(found, axis=0), strict=True))
            row |= {"accuracy": values.mean(), "without labels": (Y.sum(axis=1) == 0).mean()}
            rows.append(row | {"predicted empty": (dist.mode().sum(axis=1) == 0).mean()})
    return rows


def main(file: str) -> None:
    """Measure, and write the table, the worst cells first."""
    warnings.simplefilter("ignore")
    folder, rows = Path(os.environ["LABELSURE_DATA"]), []
    for name in SETS:
        rows += measure(load(name, folder))
        table = pd.DataFrame(rows).round(3).sort_values("covered", kind="stable")
        table.to_csv(file, index=False)
        print(name, file=sys.stderr, flush=True)
    print(table.to_string(index=False))


if __name__ == "__main__":
    main(sys.argv[1])
