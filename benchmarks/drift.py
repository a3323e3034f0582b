"""How often the shift test warns: by the kind of shift and the sizes of both samples.

    LABELSURE_DATA=folder python -m benchmarks.drift docs/evidence/shift_power.csv

Eleven sets. A classifier is fitted to 40 % of the instances (at most 800); the others are the
population. Calibration sets of 100 to 3,000 rows and batches of 50 to 1,000 are drawn from it with
replacement, batches the likelier the more an instance has of what the shift goes by. How much
likelier is chosen such that an estimate that is right for the population is off by .05 for the
batch, exact match or Jaccard, whichever is off by more; a kind of shift that cannot be so strong is
left out. Ten minutes.
"""

from __future__ import annotations

import os
import sys
import warnings
import zlib
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import labelsure as ls
from benchmarks.batches import KINDS, LARGEST_PART, SETS, Data, classifiers, load
from labelsure.estimation._batch_summary import BatchSummary, RowEstimates
from labelsure.estimation._shift import compare_views
from labelsure.estimation.score_table import ScoreTable, keep_marginals

CHOSEN_ON = ("emotions", "scene", "yeast", "stare", "enron", "slashdot")
METRICS = ("exact", "jaccard")
ROWS, SIZES = (100, 300, 1000, 3000), (50, 200, 1000)
N_REPEATS = 4
OFF = 0.05  # by which the estimate of a shifted batch is wrong
STRONGEST = 3.0  # rise of the log-odds to be drawn with a standard deviation of the score

Floats = NDArray[np.float64]


def tilt(score: Floats, strength: float) -> Floats:
    """Return the probability of each instance to be drawn."""
    spread = score.std()
    weights = np.exp(strength * (score - score.mean()) / (spread if spread > 0 else 1.0))
    return weights / weights.sum()


def find_strength(score: Floats, residuals: Floats) -> float:
    """Return the least strength at which some mean residual is off by `OFF`; NaN beyond 3."""
    for strength in np.arange(0.1, STRONGEST + 0.05, 0.1):
        if np.abs(residuals @ tilt(score, strength)).max() >= OFF:
            return float(strength)
    return np.nan


def measure(data: Data, number: int) -> list[tuple]:
    """Return a row for each batch: its kind, sizes, the test, and whether intervals cover."""
    rng = np.random.default_rng([number, zlib.crc32(data.name.encode())])
    order = rng.permutation(len(data.Y))
    n_train = min(round(0.4 * len(order)), LARGEST_PART)
    train, rest = order[:n_train], order[n_train:]
    model = classifiers(data)["BR"].fit(data.X[train], data.Y[train])
    dist, Y = model.predict_distribution(data.X[rest]), data.Y[rest]
    accuracy = np.stack([ls.accuracy(Y, dist.mode(), metric) for metric in METRICS])
    table = ScoreTable.from_distribution(keep_marginals(dist), metrics=list(METRICS))
    view = table._view(np.arange(len(Y)))

    def fit(rows: NDArray[np.intp]) -> list[tuple[ls.AccuracyEstimator, RowEstimates]]:
        found = [ls.AccuracyEstimator(m, "full").fit(dist[rows], Y[rows]) for m in METRICS]
        return [(judge, judge.estimate_rows(table)) for judge in found]

    everything = fit(np.arange(len(Y)))
    residuals = np.stack([of_all.accuracy for _, of_all in everything])
    residuals -= accuracy
    residuals -= residuals.mean(axis=1, keepdims=True)
    shifts = {"none": tilt(np.zeros(len(Y)), 0.0)}
    for kind in list(KINDS)[1:]:
        score = KINDS[kind](data, rest, rng)
        strength = find_strength(score, residuals)
        if np.isfinite(strength):
            shifts[kind] = tilt(score, strength)
    rows = []
    for n in ROWS:
        known = rng.choice(len(Y), n)
        judges = fit(known)
        for kind, chances in shifts.items():
            for size in SIZES:
                chosen = rng.choice(len(Y), size, p=chances)
                test = compare_views(view.iloc[known], view.iloc[chosen])
                said = [
                    judge.estimate(BatchSummary(of_all.sums(chosen)), shift="ignore")
                    for judge, of_all in judges
                ]
                truth = accuracy[:, chosen].mean(axis=1)
                covered = [s.low <= t <= s.high for s, t in zip(said, truth, strict=True)]
                rows.append(
                    (data.name, kind, n, size, test.p_value, test.auc, test.found, *covered)
                )
    return rows


COLUMNS = ["set", "kind", "rows", "size", "p_value", "auc", "warned", "exact", "jaccard"]


def summarise(found: pd.DataFrame) -> pd.DataFrame:
    """Return batches, warnings and coverage by kind of shift and both sizes."""
    found = found.assign(covered=found[["exact", "jaccard"]].mean(axis=1))
    by = found.groupby(["chosen", "kind", "rows", "size"], sort=False)
    means = by[["warned", "covered"]].mean().round(3)
    means.insert(0, "batches", by.size())
    return means.reset_index()


def main(file: str) -> None:
    """Measure, write the table, and print it for each kind and for all shifts together."""
    warnings.simplefilter("ignore")
    folder = Path(os.environ["LABELSURE_DATA"])
    rows: list[tuple] = []
    for name in (*SETS, "flags"):
        data = load(name, folder)
        for number in range(N_REPEATS):
            rows.extend(measure(data, number))
        print(name, file=sys.stderr, flush=True)
    found = pd.DataFrame(rows, columns=COLUMNS)
    found["chosen"] = np.where(found["set"].isin(CHOSEN_ON), "chosen on", "confirmed on")
    both = pd.concat([found, found[found["kind"] != "none"].assign(kind="all shifts")])
    table = summarise(both)
    table.to_csv(file, index=False)
    wide = table.pivot(index=["chosen", "kind", "rows"], columns="size", values="warned")
    print(wide.to_string())


if __name__ == "__main__":
    main(sys.argv[1])
