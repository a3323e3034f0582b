"""Instances a second against the number of labels, for each classifier: the table of a page.

`python -m benchmarks.throughput_table` prints it; one core, the columns that `--top 0
--no-probabilities` writes. Nothing is compared with a goal, so it is no part of `make bench`.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

import labelsure as ls
from benchmarks.measure import core_seconds
from labelsure._kernels.threads import one_thread

LABELS = (6, 14, 22, 53, 174, 1000)
N_TRAIN, N_FEATURES, N_CHAINS = 400, 20, 10
SECONDS = 2.0
"""About how long the rows that are timed shall take."""

CLASSIFIERS: dict[str, Callable[[Any], Any]] = {
    "BinaryRelevance": ls.BinaryRelevance,
    "ClassifierTrellis": lambda learner: ls.classifiers.ClassifierTrellis(learner, random_state=0),
    "ProbabilisticClassifierChain": lambda learner: ls.ProbabilisticClassifierChain(
        learner, random_state=0
    ),
    "EnsembleOfClassifierChains": lambda learner: ls.EnsembleOfClassifierChains(
        learner, n_chains=N_CHAINS, random_state=0
    ),
}


def rate(make: Callable[[Any], Any], n_labels: int) -> float:
    """Return how many instances one core predicts and assesses a second.

    Without the fitted model of accuracy, whose prediction is a product of two small matrices: to
    fit it would take hundreds of instances, each of them seconds where there are many labels.
    """
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4096, N_FEATURES))
    Y = (X[:N_TRAIN] @ rng.normal(size=(N_FEATURES, n_labels)) > 6).astype(int)
    Y[0], Y[1] = 0, 1  # both values of every label
    learner = LogisticRegression(solver="newton-cholesky")
    model = make(learner)

    def assess(rows: Any) -> None:
        ls.ScoreTable.from_distribution(model.predict_distribution(rows), metrics=["jaccard"])

    with one_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X[:N_TRAIN], Y)
        n_rows = 1
        taken = core_seconds(lambda: assess(X[:1]), repeats=1)
        while taken < SECONDS / 4 and n_rows < len(X):
            n_rows = min(len(X), max(2 * n_rows, int(n_rows * SECONDS / 2 / max(taken, 1e-4))))
            rows = X[:n_rows]
            taken = core_seconds(lambda rows=rows: assess(rows), repeats=1)  # type: ignore[misc]
    return n_rows / taken


def main(names: list[str]) -> None:
    """Print a row of the table for each classifier that is named, or for all."""
    print("| classifier | " + " | ".join(f"L = {n:,}" for n in LABELS) + " |", flush=True)
    print("|---" * (len(LABELS) + 1) + "|", flush=True)
    for name in names or CLASSIFIERS:
        print(f"| `{name}` |", end="", flush=True)
        for n_labels in LABELS:
            shown = float(f"{rate(CLASSIFIERS[name], n_labels):.2g}")
            print(f" {shown:,.10g} |", end="", flush=True)
        print()


if __name__ == "__main__":
    main(sys.argv[1:])
