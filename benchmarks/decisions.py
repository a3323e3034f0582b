"""The flagship's default decisions against thresholds, for three models on nine sets.

    LABELSURE_DATA=folder python -m benchmarks.decisions docs/evidence/decisions.csv [SET ...]

Each set, at most 800 rows of it, is cut into four parts, which take turns: two train a model, one
calibrates, one is measured. So every row is measured once. The models are scikit-learn's: logistic
regressions, a random forest and a network of one hidden layer that is trained until it is
overconfident. `default` is `AccuracyAwareClassifier(FrozenEstimator(model), metric)`, that is
recalibration "auto" on half of the calibration rows, then the labelset with the highest expected
accuracy. The others are 0.5, one threshold and thresholds for each label (`LabelThresholds` for the
metric, on all calibration rows).
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import labelsure as ls
from benchmarks.calibration import FURTHER_SETS, SETS
from benchmarks.recalibration import load

METRICS = ("f1", "jaccard", "exact", "hamming")
WAYS = ("0.5", "one threshold", "threshold for each label")
N_PARTS, N_SAMPLES = 4, 800
Z = 1.959963984540054  # of a 95% interval


def models() -> dict[str, object]:
    scaler = StandardScaler(with_mean=False)
    network = MLPClassifier((100,), alpha=1e-6, max_iter=150, random_state=0)
    return {
        "logistic": ls.BinaryRelevance(make_pipeline(scaler, LogisticRegression())),
        "forest": RandomForestClassifier(100, random_state=0),
        "network": make_pipeline(scaler, network),
    }


def turns(n_samples: int) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    order = np.random.default_rng(0).permutation(n_samples)[:N_SAMPLES]
    part = np.arange(len(order)) % N_PARTS
    for measured in range(N_PARTS):
        known = (measured + 1) % N_PARTS
        train = (part != measured) & (part != known)
        yield order[train], order[part == known], order[part == measured]


def measure(name: str) -> Iterator[pd.DataFrame]:
    """Yield the accuracy of each row by each way."""
    data = load(name, Path(os.environ["LABELSURE_DATA"]))
    X = data.X.to_numpy() if hasattr(data.X, "to_numpy") else data.X
    Y = np.asarray(data.Y)
    for train, known, new in turns(len(Y)):
        for title, model in models().items():
            model.fit(X[train], Y[train])
            dist, dist_new = (ls.as_distribution(model, X[rows]) for rows in (known, new))
            for metric in METRICS:
                aware = ls.AccuracyAwareClassifier(FrozenEstimator(model), metric, random_state=0)
                predicted = {
                    "default": aware.fit(X[known], Y[known]).predict(X[new]),
                    "0.5": dist_new.marginals() >= 0.5,
                }
                for way, rule in zip(WAYS[1:], ("one", "each"), strict=True):
                    thresholds = ls.LabelThresholds(rule, metric).fit(dist, Y[known])
                    predicted[way] = thresholds.predict(dist_new)
                values = {
                    way: ls.accuracy(Y[new], np.asarray(found, np.int8), metric)
                    for way, found in predicted.items()
                }
                yield pd.DataFrame({"set": name, "model": title, "metric": metric, **values})


def summarise(rows: pd.DataFrame) -> pd.DataFrame:
    """Return mean accuracies, and whether the default is better or worse than each other way."""
    found = []
    for key, some in rows.groupby(["set", "model", "metric"], sort=False):
        row = dict(zip(("set", "model", "metric"), key, strict=True))
        row |= {way: some[way].mean() for way in ("default", *WAYS)}
        for way in WAYS:
            gain = some["default"] - some[way]
            error = Z * gain.std() / len(gain) ** 0.5
            row[f"against {way}"] = (
                "better" if gain.mean() > error else ("worse" if gain.mean() < -error else "open")
            )
        found.append(row)
    return pd.DataFrame(found)


def main(file: str, names: list[str]) -> None:
    """Measure, write a CSV file, and print how often the default is better and worse."""
    warnings.simplefilter("ignore")
    parts = []
    for name in names or [*SETS, *FURTHER_SETS]:
        parts += list(measure(name))
        print("measured", name, file=sys.stderr, flush=True)
        table = summarise(pd.concat(parts))
        table.round(4).to_csv(file, index=False)
    for by in ("metric", "model"):
        for way in WAYS:
            print(way, pd.crosstab(table[by], table[f"against {way}"]), sep="\n")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
