"""Coverage and size of prediction sets by score: labels left open, number of labelsets.

    LABELSURE_DATA=folder python -m benchmarks.region_sizes docs/evidence/regions_open.csv

Logistic regressions are fitted to 40 % of a set (at most 800 rows) and recalibrated on 200 rows;
300 further rows calibrate prediction sets of coverage 0.9, at most 300 others measure them. Means
over two splits. Two minutes.
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
from benchmarks.batches import Data, classifiers, load

SETS = ("emotions", "scene", "flags", "yeast", "stare", "enron", "slashdot", "medical")
SCORES, N_SPLITS, N_ROWS = ("labels", "probability"), 2, 300


def measure(data: Data, number: int) -> dict[str, float]:
    """Return coverage, open labels and log10 of labelsets by score."""
    rng = np.random.default_rng([number, zlib.crc32(data.name.encode())])
    order = rng.permutation(len(data.Y))
    train, rest = np.split(order, [min(round(0.4 * len(order)), 800)])
    first, known, new = np.array_split(rest, 3)
    first, known, new = first[:200], known[:N_ROWS], new[:N_ROWS]
    model = classifiers(data)["BR"].fit(data.X[train], data.Y[train])
    dists = {k: model.predict_distribution(data.X[r]) for k, r in enumerate((first, known, new))}
    recalibration = ls.LabelwiseCalibration().fit(dists[0], data.Y[first])
    calibration, batch = (recalibration.transform(dists[k]) for k in (1, 2))
    found: dict[str, float] = {}
    for score in SCORES:
        region = ls.LabelsetRegion(0.9, score=score).fit(calibration, data.Y[known])
        answer = region.predict(batch)
        found[f"covered: {score}"] = float(answer.contains(data.Y[new]).mean())
        found[f"open: {score}"] = float(answer.n_open.mean())
        numbers = np.log10(np.maximum(answer.n_labelsets, 1))
        found[f"log10 of labelsets: {score}"] = float(numbers.mean())
        found[f"counted: {score}"] = float(answer.is_counted.mean())
    return found


def main(file: str) -> None:
    """Measure, and write the table."""
    warnings.simplefilter("ignore")
    folder, rows = Path(os.environ["LABELSURE_DATA"]), []
    for name in SETS:
        data = load(name, folder)
        splits = pd.DataFrame([measure(data, number) for number in range(N_SPLITS)])
        rows.append({"set": name, "labels": data.Y.shape[1], **splits.mean().round(3)})
        pd.DataFrame(rows).to_csv(file, index=False)
        print(rows[-1], flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
