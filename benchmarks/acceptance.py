"""How much a policy accepts: its share beside that of a test without a guarantee.

    LABELSURE_DATA=folder python -m benchmarks.acceptance docs/evidence/acceptance.csv

The folder holds the ARFF files. On each set a classifier is fitted to 40 % of the instances and an
estimator of its accuracy to 15 %; what is left is the population, from which the policy's labelled
instances are drawn with replacement. So the true mean accuracy of what a policy accepts is known,
and a failure is one below the target. The yardstick is the z-test: normal sums, one starting point
at the target, the whole error for each threshold. It promises nothing, and fails more often.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import norm
from sklearn.utils import _safe_indexing

import labelsure as ls
from labelsure.metrics.registry import get_metric

CHOSEN_ON = ("scene", "yeast", "slashdot")
CONFIRMED_ON = ("emotions", "stare", "enron", "medical", "cal500")
METRICS = ("exact", "hamming", "jaccard", "f1")
TARGETS = (0.6, 0.7, 0.8, 0.85, 0.9, 0.95)
SIZES = (300, 1000)
N_REPEATS = 10
LEVEL = 0.95

Pair = tuple[NDArray[np.float64], NDArray[np.float64]]


def populations(sets: tuple[str, ...]) -> Iterator[tuple[str, str, str, Pair]]:
    """Yield (set, classifier, metric, (scores, accuracies))."""
    for name in sets:
        data = ls.load_dataset(name)
        X, Y = data.X, np.asarray(data.Y)
        order = np.random.default_rng(0).permutation(len(Y))
        first, second = int(0.4 * len(Y)), int(0.55 * len(Y))
        train, for_estimator, rest = np.split(order, [first, second])
        for title, model in (
            ("BR", ls.BinaryRelevance()),
            ("CT", ls.classifiers.ClassifierTrellis()),
        ):
            model.fit(_safe_indexing(X, train), Y[train])
            labelled = model.predict_distribution(_safe_indexing(X, for_estimator))
            dist = model.predict_distribution(_safe_indexing(X, rest))
            for metric in METRICS:
                estimator = ls.AccuracyEstimator(metric, "full").fit(labelled, Y[for_estimator])
                values = ls.accuracy(Y[rest], dist.mode(), metric)
                yield name, title, metric, (estimator.predict(dist), values)


def accept_by_z_test(
    scores: NDArray[np.float64], values: NDArray[np.float64], target: float
) -> float:
    """Return the lowest threshold down to which every z-test passes, from the target on."""
    threshold = np.inf
    for candidate in np.arange(round(target * 100), -1, -1) / 100:
        accepted = values[scores >= candidate]
        if len(accepted) < 2:
            break
        error = max(accepted.std(ddof=1), 1e-9) / np.sqrt(len(accepted))
        if norm.sf((accepted.mean() - target) / error) > 1 - LEVEL:
            break
        threshold = candidate
    return threshold


def measure(sets: tuple[str, ...]) -> pd.DataFrame:
    """Return one row for each policy that was fitted."""
    rows = []
    generator = np.random.default_rng(1)
    for name, title, metric, (scores, values) in populations(sets):
        ranked = values[np.argsort(-scores)]
        means = np.cumsum(ranked) / np.arange(1, len(ranked) + 1)
        outcome = get_metric(metric).outcome
        for target in TARGETS:
            possible = np.flatnonzero(means >= target)
            share = (possible[-1] + 1) / len(ranked) if possible.size else 0.0
            if not 0.05 <= share <= 0.98:  # all or nothing: no threshold is to be found
                continue
            for n in np.repeat(SIZES, N_REPEATS):
                drawn = generator.integers(len(scores), size=n)
                policy = ls.AcceptPolicy(target, confidence=LEVEL, outcome=outcome).fit(
                    scores[drawn], values[drawn]
                )
                by_z = accept_by_z_test(scores[drawn], values[drawn], target)
                for test, threshold in (("policy", policy.threshold_), ("z-test", by_z)):
                    accepted = scores >= threshold
                    failed = accepted.any() and values[accepted].mean() < target
                    rows.append((name, title, metric, target, n, test, accepted.mean(), failed))
    columns = ["set", "classifier", "metric", "target", "n", "test", "share", "failed"]
    return pd.DataFrame(rows, columns=columns)


def summarise(rows: pd.DataFrame) -> pd.DataFrame:
    """Return shares accepted and failures by metric and number of rows."""
    by = ["sets", "metric", "n"]
    means = rows.groupby([*by, "test"])[["share", "failed"]].mean().unstack("test")
    found = pd.DataFrame({"policies": rows[rows["test"] == "policy"].groupby(by).size()})
    found["accepted"] = means["share", "policy"].round(3)
    found["z-test accepted"] = means["share", "z-test"].round(3)
    found["ratio"] = (means["share", "policy"] / means["share", "z-test"]).round(2)
    found["failed %"] = (100 * means["failed", "policy"]).round(1)
    found["z-test failed %"] = (100 * means["failed", "z-test"]).round(1)
    return found


def main(file: str) -> None:
    """Measure, and write the table."""
    warnings.simplefilter("ignore", ls.TargetWarning)
    groups = {"chosen on": CHOSEN_ON, "confirmed on": CONFIRMED_ON}
    rows = [measure(sets).assign(sets=title) for title, sets in groups.items()]
    found = summarise(pd.concat(rows))
    found.to_csv(file)
    print(found)


if __name__ == "__main__":
    main(sys.argv[1])
