"""How to divide labelled rows between the accuracy estimator and the policy.

    LABELSURE_DATA=folder python -m benchmarks.acceptance_parts docs/evidence/acceptance_parts.csv

The folder holds the ARFF files of the nine sets; three populations are simulated. A recalibrated
binary relevance classifier is trained on 30 % of each set and predicts the rest, for F1 and exact
match. 20 times, half of the rest is drawn for estimators; the other half is the population, from
which the policy's rows are drawn with replacement, so that the true mean accuracy of what a policy
accepts is known. n = min(2,000, half of the set) labelled rows are divided in each way:

- `half`, `third`, `quarter`: that part for the estimator, the rest for the policy;
- `bagged half`: the mean of five estimators, each fitted to four fifths of the estimator's half;
- `expected`: the expected accuracy is the score, and all rows are the policy's;
- `expected, all thresholds`: the same, and 20 thresholds share the error instead of sequences.

`hindsight` is what the best threshold on the population accepts, the estimator fitted to all rows
that are not the population's. The target is .8 where hindsight accepts 15 to 95 % with it on
average, otherwise the nearest of .5, .6, .7, .9, .95 where it does. `relative` is the mean share
accepted over the mean of hindsight, `deviation` the standard deviation of the share over seeds,
over the same mean.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import labelsure as ls
from benchmarks.calibration import SETS
from benchmarks.recalibration import load
from labelsure.estimation._accuracy_model import LabelsetFrequencies
from labelsure.estimation.score_table import ScoreTable
from labelsure.metrics.registry import get_metric

FURTHER_SETS = ("medical", "flags", "cal500")
SIMULATED = {"simulated": (6, 0.3), "many labels": (20, 0.2), "noisy": (6, 0.6)}
METRICS = ("f1", "exact")
TARGETS = (0.8, 0.7, 0.9, 0.6, 0.95, 0.5)  # the nearest to .8 first
SHARES = {"half": 1 / 2, "third": 1 / 3, "quarter": 1 / 4}
N_SEEDS, N_BAGS, MOST_ROWS, LEVEL = 20, 5, 2000, 0.95

Floats = NDArray[np.float64]


def tables(name: str) -> Iterator[tuple[str, pd.DataFrame, int]]:
    """Yield (metric, score table, number of rows of the set) of decisions for the metric."""
    if name in SIMULATED:
        n_labels, noise = SIMULATED[name]
        data, _ = ls.make_labelsets(5000, n_labels, noise=noise, random_state=0)
    else:
        data = load(name, Path(os.environ["LABELSURE_DATA"]))
    X = data.X.to_numpy() if hasattr(data.X, "to_numpy") else data.X
    Y = np.asarray(data.Y)
    order = np.random.default_rng(0).permutation(len(Y))
    train, rest = np.split(order, [int(0.3 * len(Y))])
    learner = make_pipeline(StandardScaler(with_mean=False), LogisticRegression(C=0.1))
    model = ls.RecalibratedClassifier(ls.BinaryRelevance(learner), random_state=0)
    dist = model.fit(X[train], Y[train]).predict_distribution(X[rest])
    seen = LabelsetFrequencies.of(Y[train], dist.label_names)
    for metric in METRICS:
        decided = ls.decide(dist, metric)
        table = ScoreTable.from_distribution(
            dist, Y[rest], decided, metrics=[get_metric(metric)], decision_rule="best"
        )
        yield metric, seen.add_to(table).to_frame().select_dtypes("number"), len(Y)


def find_hindsight(scores: Floats, values: Floats, target: float) -> float:
    """Return the largest share that a threshold accepts with a mean of at least the target."""
    curve = ls.accept_curve(scores, values).table
    reaches = curve["accuracy"] >= target
    return float(curve["share"][reaches].max()) if reaches.any() else 0.0


def measure(name: str) -> Iterator[dict[str, object]]:
    """Yield one row for each metric, seed and way."""
    for metric, frame, n_all in tables(name):
        counts = (frame[count].to_numpy() for count in ("tp", "fp", "fn", "tn"))
        values = get_metric(metric).values(*counts, empty=1.0)
        expected = frame[f"expected_{metric}"].to_numpy().clip(0, 1)
        n_labelled = min(MOST_ROWS, n_all // 2)

        def fit(
            rows: NDArray[np.intp], frame: pd.DataFrame = frame, metric: str = metric
        ) -> object:
            return ls.AccuracyEstimator(metric).fit(frame.iloc[rows].reset_index(drop=True))

        halves = []
        for seed in range(N_SEEDS):
            known, new = np.array_split(np.random.default_rng(seed).permutation(len(frame)), 2)
            ideal = fit(known).predict(frame.iloc[new].reset_index(drop=True))
            reached = {t: find_hindsight(ideal, values[new], t) for t in TARGETS}
            halves.append((known, new, reached))
        possible = pd.DataFrame([reached for _, _, reached in halves]).mean()
        reachable = possible[(possible >= 0.15) & (possible <= 0.95)]
        if reachable.empty:
            continue
        target = float(reachable.index[0])
        for seed, (known, new, reached) in enumerate(halves):
            generator = np.random.default_rng(seed)
            scores: dict[str, tuple[Floats, int, Floats | None]] = {}
            for way, share in SHARES.items():
                n_own = round(share * n_labelled)
                score = fit(known[:n_own]).predict(frame.iloc[new].reset_index(drop=True))
                scores[way] = score, n_labelled - n_own, None
            own = known[: n_labelled // 2]
            part = generator.permutation(np.arange(len(own)) % N_BAGS)
            bags = [
                fit(own[part != k]).predict(frame.iloc[new].reset_index(drop=True))
                for k in range(N_BAGS)
            ]
            scores["bagged half"] = np.mean(bags, axis=0), n_labelled - len(own), None
            scores["expected"] = expected[new], n_labelled, None
            scores["expected, all thresholds"] = expected[new], n_labelled, np.arange(20) / 20
            for way, (score, n_policy, grid) in scores.items():
                drawn = generator.integers(len(new), size=n_policy)
                policy = ls.AcceptPolicy(
                    target, confidence=LEVEL, outcome=get_metric(metric).outcome, grid=grid
                ).fit(score[drawn], values[new][drawn])
                accepted = score >= policy.threshold_
                failed = bool(accepted.any() and values[new][accepted].mean() < target)
                yield {
                    "set": name,
                    "metric": metric,
                    "n": n_labelled,
                    "target": target,
                    "way": way,
                    "seed": seed,
                    "hindsight": reached[target],
                    "share": accepted.mean(),
                    "failed": failed,
                }


def summarise(rows: pd.DataFrame) -> pd.DataFrame:
    """Return one row for each set, metric and way, relative to hindsight."""
    keys = ["set", "metric", "n", "target", "way"]
    table = rows.groupby(keys, sort=False, as_index=False).agg(
        hindsight=("hindsight", "mean"),
        accepted=("share", "mean"),
        deviation=("share", "std"),
        failed=("failed", "sum"),
    )
    table["relative"] = table["accepted"] / table["hindsight"]
    table["deviation"] /= table["hindsight"]
    return table


def main(file: str, names: list[str]) -> None:
    """Measure, write a CSV file, and print the means."""
    warnings.simplefilter("ignore")
    rows = []
    for name in names or [*SETS, *FURTHER_SETS, *SIMULATED]:
        rows += list(measure(name))
        print("measured", name, file=sys.stderr, flush=True)
        table = summarise(pd.DataFrame(rows))
        table.round(4).to_csv(file, index=False)
    means = table.groupby("way", sort=False)[["accepted", "relative", "deviation", "failed"]]
    print(means.agg("mean").round(3))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
