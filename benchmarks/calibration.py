"""Which model of accuracy is best calibrated: every one on every real set, 10 held-out halves.

    LABELSURE_DATA=folder python -m benchmarks.calibration

The folder holds the ARFF files of the six sets, and of three more, on which the choice between the
features is confirmed: they had no part in it. Each set is predicted by two-fold cross-fitting,
so that every prediction is of an instance that the classifier has not seen. Then, 10 times, a model
is fitted to a random half of the predictions and its expected calibration error measured on the
other. That error is never 0 on finite data: the part that a perfect estimate would have is
subtracted.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import labelsure as ls
from labelsure.estimation.score_table import ScoreTable
from labelsure.metrics.registry import METRICS as ALL_METRICS
from labelsure.metrics.registry import get_metric

EVIDENCE = Path(__file__).parents[1] / "docs" / "evidence"
SETS = {
    "emotions": None,
    "scene": None,
    "yeast": None,
    "stare": None,
    "enron": "last20",
    "slashdot": None,
}
FURTHER_SETS = ("medical", "flags", "cal500")
METRICS = ("exact", "hamming", "jaccard")
N_SPLITS = 10
MISS = 0.02  # calibration error beyond chance that counts as one

SINGLES = ("HP", "TG", "SE", "CE", "ME", "CS", "expected")


@dataclass(frozen=True)
class Case:
    """One estimator to be measured."""

    model: str
    features: str

    @property
    def name(self) -> str:
        """What the tables call it."""
        return self.model

    def estimate(self, metric: str, fitted: pd.DataFrame, others: pd.DataFrame) -> np.ndarray:
        """Return the estimates of other rows; "plugin" is the expected accuracy itself."""
        if self.model == "plugin":
            return ScoreTable(others).expected(metric, 1.0)
        return ls.AccuracyEstimator(metric, self.features).fit(fitted).predict(others)


CASES = (
    *(Case("ridge", name) for name in (*SINGLES, "mix", "full")),
    Case("plugin", "expected"),
)


def classifiers() -> dict[str, object]:
    learner = make_pipeline(
        StandardScaler(with_mean=False), LogisticRegression(C=0.1, max_iter=1000)
    )
    return {"Indep": ls.BinaryRelevance(learner)}


def cross_fitted(name: str, classifier: str) -> pd.DataFrame:
    """Return the score table of one set and classifier, all predictions being of unseen rows."""
    if name in SETS:
        data = ls.load_dataset(name, labels=SETS[name])
    else:
        data = ls.read_dataset(Path(os.environ["LABELSURE_DATA"]) / f"{name}.arff.gz")
    X = data.X.to_numpy() if hasattr(data.X, "to_numpy") else data.X
    tables = []
    for train, test in KFold(2, shuffle=True, random_state=0).split(data.Y):
        model = classifiers()[classifier].fit(X[train], data.Y[train])
        dist = model.predict_distribution(X[test])
        tables.append(ScoreTable.from_distribution(dist, data.Y[test]).to_frame())
    return pd.concat(tables, ignore_index=True)


def chance(result: ls.estimation.Reliability, estimated: np.ndarray, accuracy: np.ndarray) -> float:
    """Return the calibration error that a perfect estimate would show on so many instances."""
    edges = result.high
    bin_of = np.searchsorted(edges, estimated, side="left")
    squares = np.bincount(bin_of, (accuracy - estimated) ** 2, minlength=len(edges))
    return float(np.sqrt(2 / np.pi) * np.sqrt(squares).sum() / len(estimated))


def measure(table: pd.DataFrame, metric: str, case: Case) -> tuple[float, float, float]:
    """Return calibration error, the part of it that is chance, and squared error, all means."""
    counts = (table[name].to_numpy() for name in ("tp", "fp", "fn", "tn"))
    accuracy = get_metric(metric).values(*counts, empty=1.0)
    found = []
    for split in range(N_SPLITS):
        order = np.random.default_rng(split).permutation(len(table))
        fit, test = order[::2], order[1::2]
        estimated = case.estimate(metric, table.iloc[fit], table.iloc[test])
        result = ls.reliability(estimated, accuracy[test])
        error = result.expected_calibration_error
        squares = (estimated - accuracy[test]) ** 2
        found.append((error, chance(result, estimated, accuracy[test]), squares.mean()))
    error, by_chance, squared = np.mean(found, axis=0)
    return float(error), float(by_chance), float(squared)


def cells() -> Iterator[tuple[str, str, str, Case]]:
    for name in SETS:
        for classifier in classifiers():
            for metric in METRICS:
                for case in CASES:
                    yield name, classifier, metric, case


def run(n_jobs: int = 2) -> pd.DataFrame:
    """Return one row for each set, classifier, metric and case."""
    pairs = [(name, classifier) for name in SETS for classifier in classifiers()]
    tables = {}
    for name, classifier in pairs:
        tables[name, classifier] = cross_fitted(name, classifier)
        print(f"predicted {name} with {classifier}", file=sys.stderr, flush=True)
    measured = Parallel(n_jobs=n_jobs, verbose=1)(
        delayed(measure)(tables[name, classifier], metric, case)
        for name, classifier, metric, case in cells()
    )
    rows = [
        (name, classifier, metric, case.name, case.features, *found)
        for (name, classifier, metric, case), found in zip(cells(), measured, strict=True)
    ]
    columns = [
        "data set",
        "classifier",
        "metric",
        "model",
        "features",
        "error",
        "chance",
        "squared",
    ]
    return pd.DataFrame(rows, columns=columns)


def confirm() -> pd.DataFrame:
    """Return one row for each further set, classifier, metric and kind of features."""
    rows = []
    for name in FURTHER_SETS:
        for classifier in classifiers():
            table = cross_fitted(name, classifier)
            for metric in ALL_METRICS:
                for features in ("mix", "full"):
                    found = measure(table, metric, Case("ridge", features))
                    rows.append((name, classifier, metric, features, *found))
                    print("confirmed", *rows[-1], file=sys.stderr, flush=True)
    columns = ["data set", "classifier", "metric", "features", "error", "chance", "squared"]
    return pd.DataFrame(rows, columns=columns)


def compare_features(confirmed: pd.DataFrame) -> pd.DataFrame:
    """Return "mix" and "full" side by side, and print the mean ratio of their squared errors."""
    confirmed = confirmed.assign(excess=(confirmed["error"] - confirmed["chance"]).clip(lower=0))
    wide = confirmed.pivot(
        index=["data set", "classifier", "metric"],
        columns="features",
        values=["excess", "squared"],
    )
    wide.columns = [f"{value}, {features}" for value, features in wide.columns]
    # One number for sets whose accuracies scatter very differently: the mean of ratios.
    ratio = np.log(wide["squared, full"] / wide["squared, mix"]).groupby("metric").mean()
    print(np.exp(ratio).round(2).to_string())
    return wide.reset_index()


def summarise(found: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return what is measured on the six sets: misses, means, then everything."""
    found = found.assign(excess=(found["error"] - found["chance"]).clip(lower=0))
    by = ["metric", "data set", "classifier", "model", "features"]
    misses = found[found["excess"] > MISS].sort_values("excess", ascending=False)
    overall = found.pivot_table(
        index=["model", "features"], columns="metric", values="excess", aggfunc="mean"
    )
    overall["misses"] = misses.groupby(["model", "features"]).size()
    overall["worst"] = found.groupby(["model", "features"])["excess"].max()
    overall["all"] = overall[[m for m in METRICS if m in overall]].mean(axis=1, skipna=False)
    overall["misses"] = overall["misses"].fillna(0).astype(int)
    overall["squared"] = found.groupby(["model", "features"])["squared"].mean()
    overall = overall.sort_values(["all", "jaccard"]).reset_index()
    wide = found.pivot_table(
        index=["metric", "model", "features"], columns="data set", values="error"
    )[list(SETS)].reset_index()
    return {
        "misses_of": misses[[*by, "error", "chance", "excess"]],
        "on_the_whole": overall,
        "expected_calibration_error_of_every_model": wide,
    }


def main() -> None:
    """Write tables of the sets that confirm, and of the six sets."""
    tables = {"full_or_mix": compare_features(confirm())} | summarise(run())
    for name, table in tables.items():
        digits = 4 if name == "full_or_mix" else 3
        file = EVIDENCE / f"calibration_{name}.csv"
        table.to_csv(file, index=False, float_format=f"%.{digits}f")


if __name__ == "__main__":
    main()
