"""How often the interval of a cross-fitted model covers, with and without the training gain.

    python -m benchmarks.cross_fitting [REPEATS]

Each repeat draws training instances and a batch of 6,000 new ones, fits a model with five folds and
looks whether the interval of the batch holds the mean accuracy that comes out.
"""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

import labelsure as ls
from labelsure.estimation._batch_estimates import TrainingGain

N_BATCH = 6000
LINEAR = ls.BinaryRelevance(LogisticRegression(C=100, max_iter=200))
TREE = DecisionTreeClassifier(min_samples_leaf=5, random_state=0)
NEIGHBOURS = KNeighborsClassifier(5)

CASES = [  # model, instances, features, labels, metric
    ("linear", LINEAR, 200, 4, 4, "jaccard"),
    ("linear", LINEAR, 200, 20, 4, "hamming"),
    ("linear", LINEAR, 1000, 6, 6, "exact"),
    ("linear", LINEAR, 1000, 40, 4, "jaccard"),
    ("linear", LINEAR, 1000, 120, 4, "hamming"),
    ("linear", LINEAR, 3000, 10, 4, "hamming"),
    ("linear", LINEAR, 3000, 100, 4, "exact"),
    ("tree", TREE, 200, 6, 4, "hamming"),
    ("tree", TREE, 1000, 8, 4, "exact"),
    ("neighbours", NEIGHBOURS, 1000, 8, 5, "jaccard"),
]


def draw(n_samples, n_features, n_labels, rng):
    """Return instances and labels, which depend on all features and on each other."""
    fixed = np.random.default_rng(0)
    slopes = fixed.normal(size=(n_features, n_labels)) * 4 / n_features**0.5
    offsets, shared = fixed.normal(-0.7, 0.7, size=n_labels), fixed.normal(size=n_labels)
    X = rng.normal(size=(n_samples, n_features))
    logits = X @ slopes + offsets + rng.normal(size=(n_samples, 1)) * shared
    return X, (rng.random(logits.shape) < expit(logits)).astype(int)


def measure(model, n_samples, n_features, n_labels, metric, n_repeats):
    """Return a row for each repeat: errors of the estimate, and widths, without and with gain."""
    rng, rows = np.random.default_rng(1), []
    for repeat in range(n_repeats):
        aware = ls.AccuracyAwareClassifier(model, metric, cv=5, random_state=repeat)
        aware.fit(*draw(n_samples, n_features, n_labels, rng))
        X, Y = draw(N_BATCH, n_features, n_labels, rng)
        dist, truth = aware.predict_distribution(X), aware.score(X, Y)
        found = [aware.accuracy_estimator_.estimate(dist, shift="ignore")]
        aware.accuracy_estimator_.training_gain_ = TrainingGain()
        found.append(aware.accuracy_estimator_.estimate(dist, shift="ignore"))
        for name, batch in zip(("with", "without"), found, strict=True):
            covered = batch.low <= truth <= batch.high
            rows.append((name, batch.mean - truth, covered, batch.high - batch.low))
    return pd.DataFrame(rows, columns=["gain", "bias", "covered", "width"])


def main(n_repeats: int = 100) -> None:
    """Print a table."""
    lines = []
    for name, model, *case in CASES:
        by_gain = measure(model, *case, n_repeats).groupby("gain").mean()
        plain, gain = by_gain.loc["without"], by_gain.loc["with"]
        wider = gain["width"] / plain["width"]
        n_samples, n_features, _, metric = case
        lines.append((name, n_samples, n_features, metric, plain["bias"], gain["bias"]))
        lines[-1] += (plain["covered"], gain["covered"], wider)
        print(*lines[-1], file=sys.stderr, flush=True)
    columns = ["model", "instances", "features", "metric", "bias without", "bias with"]
    columns += ["covered without", "covered with", "times as wide"]
    print(pd.DataFrame(lines, columns=columns).round(3).to_string(index=False))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
