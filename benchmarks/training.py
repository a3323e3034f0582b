"""The classifier that `labelsure train` uses by default: accuracy against seconds.

    LABELSURE_DATA=folder python -m benchmarks.training

Exact match is of the mode, Jaccard and F1 of the labelsets of highest expected Jaccard, on at most
200 test rows of each split; seconds are CPU seconds of `fit` on one core. Rule, set before the
runs: the cheapest classifier whose mean over six sets is within .01 of the best in exact match,
Jaccard and F1. Three further sets and simulated labels of sparse features (one split) confirm it.
Writes docs/evidence/training.csv. The present file is of four splits, with CAL500 of three.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from joblib import Parallel, delayed
from rich.console import Console
from scipy.special import expit
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

import labelsure as ls

CHOOSE = ("flags", "emotions", "scene", "yeast", "medical", "enron")
CONFIRM = ("stare", "slashdot", "cal500", "simulated")
METRICS = ("exact", "jaccard", "f1")
N_SPLITS = 5
TRAIN_SHARE = 0.6
MAX_TEST_ROWS = 200
OUT = Path("docs/evidence/training.csv")

CLASSIFIERS: dict[str, Callable[[int], Any]] = {
    "binary relevance": lambda seed: ls.BinaryRelevance(random_state=seed),
    "binary relevance with dependence": lambda seed: ls.RecalibratedClassifier(
        method="dependence", random_state=seed
    ),
    "1 chain": lambda seed: ls.ProbabilisticClassifierChain(order="random", random_state=seed),
    "3 chains": lambda seed: ls.EnsembleOfClassifierChains(n_chains=3, random_state=seed),
    "10 chains": lambda seed: ls.EnsembleOfClassifierChains(random_state=seed),
}


def simulate(n_rows: int = 2000, n_features: int = 1836, n_labels: int = 30) -> tuple[Any, Any]:
    """Return sparse features of about 30 nonzeros a row, and labels that follow a random chain."""
    rng = np.random.default_rng(0)
    X = sp.random(n_rows, n_features, density=30 / n_features, format="csr", random_state=rng)
    weights = rng.normal(size=(n_features, n_labels)) * (rng.uniform(size=n_labels) + 0.5)
    logits = X @ weights - 2
    Y = np.zeros((n_rows, n_labels), np.int8)
    for j in range(n_labels):
        earlier = Y[:, max(0, j - 3) : j].sum(axis=1)
        Y[:, j] = rng.uniform(size=n_rows) < expit(logits[:, j] + 1.5 * earlier - 0.5)
    return X, Y


def read_set(name: str) -> tuple[Any, Any]:
    """Return features, scaled if they are dense as in `train`, and labels."""
    if name == "simulated":
        return simulate()
    data = ls.read_dataset(Path(os.environ["LABELSURE_DATA"]) / f"{name}.arff.gz")
    X, Y = data.X, np.asarray(data.Y)
    return (X if sp.issparse(X) else StandardScaler().fit_transform(X)), Y


def measure(name: str, seed: int) -> list[dict[str, Any]]:
    """Return a row for each classifier on one split."""
    warnings.simplefilter("ignore")  # of learners that stop early
    os.environ["LABELSURE_NUM_THREADS"] = "1"
    X, Y = read_set(name)
    rows = np.random.default_rng(seed).permutation(len(Y))
    n_train = round(TRAIN_SHARE * len(Y))
    train, test = rows[:n_train], rows[n_train : n_train + MAX_TEST_ROWS]
    found = []
    with threadpool_limits(1):
        ls.BinaryRelevance().fit(X[:2], [[0], [1]])  # imports
        for title, make in CLASSIFIERS.items():
            began = time.process_time()
            model = make(seed).fit(X[train], Y[train])
            seconds = time.process_time() - began
            dist = model.predict_distribution(X[test])
            Y_pred = ls.decide(dist, "jaccard").labelsets
            cell = {
                "dataset": name,
                "split": seed,
                "classifier": title,
                "exact": ls.accuracy(Y[test], dist.mode(), "exact").mean(),
                "jaccard": ls.accuracy(Y[test], Y_pred, "jaccard").mean(),
                "f1": ls.accuracy(Y[test], Y_pred, "f1").mean(),
                "log-likelihood": dist.log_prob(Y[test]).mean(),
                "seconds": seconds,
            }
            found.append(cell)
    return found


def summarise(found: pd.DataFrame) -> pd.DataFrame:
    """Return means over splits, and over the sets to choose on and to confirm with."""
    values = [*METRICS, "log-likelihood", "seconds"]
    means = found.groupby(["dataset", "classifier"], sort=False)[values].mean().reset_index()
    for title, names in (("mean of six", CHOOSE), ("mean of the others", CONFIRM)):
        part = means[means["dataset"].isin(names)]
        if part["dataset"].nunique() == len(names):
            mean = part.groupby("classifier", sort=False)[values].mean().reset_index()
            means = pd.concat([means, mean.assign(dataset=title)])
    return means


def main() -> None:
    """Print and write the table."""
    console, rows = Console(width=140), []
    splits = [(name, 0) for name in (*CHOOSE, *CONFIRM)]
    splits += [(name, k) for k in range(1, N_SPLITS) for name, _ in splits if name != "simulated"]
    work = Parallel(n_jobs=2, return_as="generator")(delayed(measure)(*each) for each in splits)
    for (name, seed), found in zip(splits, work, strict=True):
        rows += found
        console.print(f"{name}, split {seed}", highlight=False)
        table = summarise(pd.DataFrame(rows)).round(3)
        OUT.write_text(table.to_csv(index=False), encoding="utf-8")
    console.print(table.to_string(), highlight=False)


if __name__ == "__main__":
    main()
