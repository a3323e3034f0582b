"""Coverage of intervals after cross-fitting and after holding out, for linear models and trees.

    LABELSURE_DATA=folder python -m benchmarks.cross_fitting docs/evidence/cross_fitting.csv

Each set is divided into 300 labelled rows and a batch of all others (at most 2,000), many times.
The truth is the accuracy of the final classifier on that batch. A miss is optimistic if the whole
interval lies above the truth. Twenty minutes.
"""

from __future__ import annotations

import os
import sys
import warnings
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import precision_recall_fscore_support
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

import labelsure as ls
from benchmarks.batches import Data, load

SETS = ("emotions", "scene", "yeast", "simulated", "enron", "slashdot")
N_ROWS, N_BATCH, N_SPLITS, N_FOLDS = 300, 2000, 3, 5
WHOLE = ("micro-f1", "macro-f1")


def learners(seed: int) -> dict[str, Any]:
    """Return unfitted learners for one label."""
    return {
        "logistic": make_pipeline(MaxAbsScaler(), LogisticRegression(max_iter=500)),
        "boosting": GradientBoostingClassifier(
            n_estimators=50, max_features="sqrt", random_state=seed
        ),
        "forest": RandomForestClassifier(50, random_state=seed),
    }


def fit_split(data: Data, title: str, cv: Any, number: int) -> tuple[Any, Any, Any]:
    """Return a fitted classifier, and features and labels of the batch."""
    rng = np.random.default_rng([number, zlib.crc32(data.name.encode())])
    order = rng.permutation(len(data.Y))
    known, batch = order[:N_ROWS], order[N_ROWS : N_ROWS + N_BATCH]
    model = ls.AccuracyAwareClassifier(
        ls.BinaryRelevance(learners(number)[title]), "f1", cv=cv, random_state=number
    ).fit(data.X[known], data.Y[known])
    return model, data.X[batch], data.Y[batch]


def spread_over_folds(model: Any) -> float:
    """Return the standard deviation of the mean residual of one model, beyond chance."""
    estimated, actual = model.accuracy_estimator_.compare_estimates()
    folds = np.array_split(actual - estimated, N_FOLDS)
    by_chance = np.mean([fold.var(ddof=1) / len(fold) for fold in folds])
    beyond = max(0.0, float(np.var([fold.mean() for fold in folds], ddof=1) - by_chance))
    return float((beyond * (1 + 1 / N_FOLDS)) ** 0.5)


def measure(model: Any, X: Any, Y: Any) -> list[tuple]:
    """Return a row for each quantity that is estimated: its truth, mean and interval."""
    predicted = model.predict(X)
    said = {"f1": model.estimate(X, shift="ignore")}
    truth: dict[str, float] = {"f1": float(ls.accuracy(Y, predicted, "f1").mean())}
    options: Any = {"zero_division": 1.0}
    for name in WHOLE:
        said[name] = model.estimate(X, metric=name, shift="ignore")
        average = name.removesuffix("-f1")
        truth[name] = precision_recall_fscore_support(Y, predicted, average=average, **options)[2]
    if not model.accuracy_estimator_.can_compare:
        e, name = said["f1"], "f1, variance over folds"
        half = np.hypot((e.high - e.low) / 2, 2 * spread_over_folds(model))
        said[name], truth[name] = replace(e, low=e.mean - half, high=e.mean + half), truth["f1"]
    rows = [(q, truth[q], e.mean, e.low, e.high) for q, e in said.items()]
    of_labels = precision_recall_fscore_support(Y, predicted, **options)
    table = model.estimate_labels(X).to_frame()
    for j in range(Y.shape[1]):
        for name, values in zip(("precision", "recall", "f1"), of_labels, strict=False):
            found = table.iloc[j][[name, f"{name}_low", f"{name}_high"]]
            rows.append((f"label {name}", values[j], *found))
    return rows


def summarise(found: pd.DataFrame) -> pd.DataFrame:
    """Return coverage, optimistic misses, bias and width by learner, cv and quantity."""
    quantity = found["quantity"].str.replace(r"^label .*", "labels", regex=True)
    found = found.assign(
        quantity=quantity,
        covered=(found["low"] <= found["truth"]) & (found["truth"] <= found["high"]),
        optimistic=found["low"] > found["truth"],
        bias=found["mean"] - found["truth"],
        width=found["high"] - found["low"],
    )
    by = found.groupby(["learner", "cv", "quantity"], sort=False)
    means = by[["covered", "optimistic", "bias", "width"]].mean().round(3)
    means.insert(0, "cases", by.size())
    return means.reset_index()


def main(file: str) -> None:
    """Measure, and write the table as it grows."""
    warnings.simplefilter("ignore")
    folder, rows = Path(os.environ["LABELSURE_DATA"]), []
    for number in range(N_SPLITS):
        for name in SETS:
            data = load(name, folder)
            for title in learners(number):
                for cv in (0.4, N_FOLDS):
                    found = measure(*fit_split(data, title, cv, number))
                    rows += [(name, title, str(cv), *row) for row in found]
        frame = pd.DataFrame(rows, columns=COLUMNS)
        summarise(frame).to_csv(file, index=False)
        print(f"split {number}", file=sys.stderr, flush=True)
    print(summarise(frame).to_string(index=False))


COLUMNS = ["set", "learner", "cv", "quantity", "truth", "mean", "low", "high"]

if __name__ == "__main__":
    main(sys.argv[1])
