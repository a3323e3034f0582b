"""Calibration of labels by scikit-learn beside that of labelsets: the accuracy that each expects.

    LABELSURE_DATA=folder python -m benchmarks.compare_sklearn docs/evidence/compare_sklearn.csv

The same logistic regressions, three splits of each set, 60 % of at most 1,000 rows to fit to;
labels with 25 positive rows or more. Both take five folds: `CalibratedClassifierCV` for each label
(sigmoid), whose expected exact match is that of independent labels; and `AccuracyAwareClassifier`
with `cv=5`. Brier score of the marginals, mean and calibration error (ten bins of equal size) of
the exact match that each expects of its most probable labelset, CPU seconds of `fit` as a ratio.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

import labelsure as ls
from benchmarks.batches import Data, load
from benchmarks.votes import expected_calibration_error

SETS = ("emotions", "scene", "yeast")
N_ROWS, N_SPLITS, LEAST = 1000, 3, 25
LEARNER = make_pipeline(MaxAbsScaler(), LogisticRegression(C=10, max_iter=500))


def measure(data: Data, number: int) -> list[dict[str, object]]:
    """A row for each method: what it expects of its labelsets, and how accurate they are."""
    rows = np.random.default_rng(number).permutation(len(data.Y))[:N_ROWS]
    train, new = np.split(rows, [int(0.6 * len(rows))])
    calibrated = OneVsRestClassifier(CalibratedClassifierCV(LEARNER, cv=5))
    ours = ls.AccuracyAwareClassifier(
        ls.BinaryRelevance(LEARNER), "exact", decision="mode", cv=5, random_state=0
    )
    frequent = data.Y.sum(axis=0) >= LEAST  # each fold needs rows of both classes
    Y_train, Y, found = data.Y[train][:, frequent], data.Y[new][:, frequent], []
    for method, model in {"scikit-learn": calibrated, "labelsure": ours}.items():
        started = time.process_time()
        model.fit(data.X[train], Y_train)
        seconds = time.process_time() - started
        P = model.predict_proba(data.X[new])
        if model is ours:
            predicted, stated = model.predict(data.X[new]), model.predict_accuracy(data.X[new])
        else:
            predicted, stated = P > 0.5, np.maximum(P, 1 - P).prod(axis=1)
        actual = ls.accuracy(Y, np.asarray(predicted, dtype=int), "exact")
        found.append(
            {
                "method": method,
                "Brier score of labels": float(((P - Y) ** 2).mean()),
                "exact match": float(actual.mean()),
                "expected exact match": float(stated.mean()),
                "calibration error": expected_calibration_error(stated, actual),
                "seconds": seconds,
            }
        )
    return found


def main(file: str) -> None:
    """Measure, and write the table."""
    warnings.simplefilter("ignore")
    folder, rows = Path(os.environ["LABELSURE_DATA"]), []
    for name in SETS:
        data = load(name, folder)
        if not rows:
            measure(data, N_SPLITS)  # kernels are loaded, which takes longer than a fit
        rows += [{"set": name} | row for n in range(N_SPLITS) for row in measure(data, n)]
        table = pd.DataFrame(rows).groupby(["set", "method"], sort=False).mean()
        shortest = table["seconds"].groupby("set").transform("min")
        table["fit, times the faster"] = table.pop("seconds") / shortest
        table.round(3).to_csv(file)
        print(table.round(3).to_string(), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
