"""How often the shift test warns: of unchanged batches, and of batches whose estimate is wrong.

    LABELSURE_DATA=folder python -m benchmarks.drift

Nine sets; many times a set is split into instances to train, a calibration set and a pool, as for
`benchmarks.batches`. Batches of 50, 200 and 1,000 are drawn from the pool, the likelier the more an
instance has of what the shift goes by; with replacement, so that large ones come from small sets,
too. Unchanged batches are drawn without, because copies are no independent draws. Two minutes.
"""

from __future__ import annotations

import os
import sys
import warnings
import zlib
from pathlib import Path

import numpy as np
import pandas as pd

import labelsure as ls
from benchmarks.batches import KINDS, STRENGTH, Data, classifiers, load, train_size
from labelsure.estimation._shift import compare_views

SETS = ("emotions", "scene", "yeast", "stare", "enron", "slashdot", "medical", "cal500", "flags")
SIZES = (50, 200, 1000)
N_SPLITS, N_DRAWS = 10, 2
METRICS = ("exact", "jaccard")
OFF = 0.05  # by which an estimate is wrong


def measure(data: Data, number: int) -> list[tuple]:
    """Return kind, size, error of the estimates and the test of each batch of a split."""
    rng = np.random.default_rng([number, zlib.crc32(data.name.encode())])
    order, quarter = rng.permutation(len(data.Y)), train_size(data)
    train, calibration, pool = np.split(order, [quarter, 2 * quarter])
    model = classifiers(data)["BR"].fit(data.X[train], data.Y[train])
    known, later = (model.predict_distribution(data.X[rows]) for rows in (calibration, pool))
    found = [
        ls.AccuracyEstimator(metric).fit(known, data.Y[calibration], Y_train=data.Y[train])
        for metric in METRICS
    ]
    errors = np.stack(
        [
            judge.predict(later) - ls.accuracy(data.Y[pool], later.mode(), judge.metric)
            for judge in found
        ]
    )
    judge = found[0]
    view = judge.estimate_rows(later).table._view()
    rows = []
    for kind, score in KINDS.items():
        for size in SIZES:
            for _ in range(N_DRAWS):
                if kind == "none":
                    chosen = rng.permutation(len(pool))[:size]
                else:
                    values = score(data, pool, rng)
                    weights = np.exp(STRENGTH * (values - values.mean()) / values.std())
                    chosen = rng.choice(len(pool), size, p=weights / weights.sum())
                off = np.abs(errors[:, chosen].mean(axis=1)).max()
                test = compare_views(judge._calibration_view(), view.iloc[chosen])
                rows.append((data.name, kind, size, off, test.found, test.p_value, test.auc))
    return rows


def main() -> None:
    """Print detection by kind and size, and by set for changes in the number of labels."""
    warnings.simplefilter("ignore")
    folder = Path(os.environ["LABELSURE_DATA"])
    rows: list[tuple] = []
    for name in SETS:
        data = load(name, folder)
        for number in range(N_SPLITS):
            rows.extend(measure(data, number))
        print(name, file=sys.stderr, flush=True)
    frame = pd.DataFrame(rows, columns=["set", "kind", "size", "off", "found", "p_value", "auc"])
    is_off = frame["off"] >= OFF
    by_kind = frame.groupby(["kind", "size"], sort=False)["found"].agg(["size", "mean"])
    by_kind.columns = ["batches", "warned"]
    groups = frame[is_off].groupby(["kind", "size"], sort=False)["found"]
    by_kind["off"], by_kind["warned of those off"] = groups.size(), groups.mean()
    numbers = frame[is_off & frame["kind"].str.contains("labels") & (frame["size"] == 1000)]
    by_set = numbers.groupby("set", sort=False)["found"].agg(["size", "mean"])
    by_set.columns = ["off", "warned"]
    by_set.loc["all"] = [len(numbers), numbers["found"].mean()]
    print(by_kind.round(3).to_string(), by_set.round(3).to_string(), sep="\n\n")


if __name__ == "__main__":
    main()
