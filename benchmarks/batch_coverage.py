"""How often intervals cover without a shift, by more draws than splits with classifiers allow.

One classifier for each set; what it was not trained on is divided many times into calibration data
and a batch. Errors of a split are shared by all of its metrics and sizes, so that it takes hundreds
of splits to tell 93 % from 95 %.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

import labelsure as ls
from benchmarks.batch_draws import CHOSEN_ON, Data, Scored, classifiers, train_size

N_DIVISIONS = 100
LEVEL = 0.95
COLUMNS = ["set", "split", "metric", "size", "calibration", "bias", "covered", "width"]


def divide_often(
    data: Data, metrics: tuple[str, ...], sizes: tuple[int, ...], n_divisions: int = N_DIVISIONS
) -> Iterator[tuple]:
    """Yield what the plain estimate says of a batch of each size, for each division and metric."""
    rng = np.random.default_rng(len(data.Y))
    n_train = train_size(data)
    order = rng.permutation(len(data.Y))
    model = classifiers(data)["BR"].fit(data.X[order[:n_train]], data.Y[order[:n_train]])
    rest = Scored.of(model, data, order[n_train:])
    known = {metric: rest.accuracy(metric) for metric in metrics}
    Y_train = data.Y[order[:n_train]]
    for number in range(n_divisions):
        places = rng.permutation(len(rest))
        fitted, others = places[:n_train], places[n_train:]
        for metric in metrics:
            estimator = ls.AccuracyEstimator(metric)
            estimator.fit(rest.table.iloc[fitted], Y_train=Y_train)
            for size in (size for size in sizes if size <= len(others)):
                batch = others[:size]
                found = estimator.estimate(rest.table.iloc[batch], level=LEVEL, shift="ignore")
                truth = known[metric][batch].mean()
                covered = float(found.low <= truth <= found.high)
                numbers = (found.mean - truth, covered, found.high - found.low)
                yield (data.name, number, metric, size, n_train, *numbers)


def tabulate_coverage(draws: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each set: calibration data, and coverage at each size."""
    rows = []
    for name, mine in draws.groupby("set", sort=False):
        group = "chosen on" if name in CHOSEN_ON else "confirmed on"
        row = {"set": name, "sets": group, "batches": mine["calibration"].iloc[0]}
        for size in sorted(draws["size"].unique()):
            row[f"covered, {size:,}"] = mine.loc[mine["size"] == size, "covered"].mean()
        rows.append(row)
    return pd.DataFrame(rows).rename(columns={"batches": "calibration"})
