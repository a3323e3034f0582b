"""How often ordinary rows lie outside of input ranges, and which faults of inputs are found.

    LABELSURE_DATA=folder python -m benchmarks.input_ranges docs/evidence/input_ranges.csv

For each of nine data sets in the folder, ten random halves: ranges of one, rows of the other as
they are and with a fault. Under a minute on one core.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from labelsure import read_dataset
from labelsure.classifiers import BinaryRelevance
from labelsure.model._input_ranges import InputRanges

SETS = ("cal500", "emotions", "enron", "flags", "medical", "scene", "slashdot", "stare", "yeast")
N_REPEATS = 10
Floats = NDArray[np.float64]
Fault = Callable[[Floats, np.random.Generator], Floats]


def in_one_column(change: Callable[[Floats], Floats]) -> Fault:
    """Return the fault that changes one column, another one in each row."""

    def fault(X: Floats, rng: np.random.Generator) -> Floats:
        found, rows = X.copy(), np.arange(len(X))
        columns = rng.integers(X.shape[1], size=len(X))
        found[rows, columns] = change(X[rows, columns])
        return found

    return fault


FAULTS: dict[str, Fault] = {
    "as they are": lambda X, rng: X,
    "one column times 10": in_one_column(lambda x: 10 * x),
    "one column times 100": in_one_column(lambda x: 100 * x),
    "one column -999": in_one_column(lambda x: np.full_like(x, -999.0)),
    "one column 1e6": in_one_column(lambda x: np.full_like(x, 1e6)),
    "all columns times 10": lambda X, rng: 10 * X,
    "all columns 1e6": lambda X, rng: np.full_like(X, 1e6),
    "all columns 0": lambda X, rng: np.zeros_like(X),
    "columns in reverse order": lambda X, rng: X[:, ::-1],
}


def measure(folder: Path) -> Iterator[tuple[str, str, float]]:
    """Yield (set, fault, share of rows outside) of each repeat."""
    for name in SETS:
        X = read_dataset(folder / f"{name}.arff.gz").X
        rows: Floats = X.toarray() if hasattr(X, "toarray") else X.to_numpy(np.float64)
        for seed in range(N_REPEATS):
            rng = np.random.default_rng(seed)
            order = rng.permutation(len(rows))
            own, others = np.split(order, [len(order) // 2])
            ranges = InputRanges.fit(rows, own, BinaryRelevance(), seed)
            assert ranges is not None
            for fault, change in FAULTS.items():
                found = ranges.find_outside(change(rows[others], rng))
                yield name, fault, float(found.astype(bool).mean())


def main(file: str) -> None:
    """Measure, and write the table."""
    rows = measure(Path(os.environ["LABELSURE_DATA"]))
    found = pd.DataFrame(rows, columns=["set", "fault", "outside"])
    table = found.groupby(["fault", "set"])["outside"].mean().unstack("set").loc[list(FAULTS)]
    table.round(4).to_csv(file)
    print(table.round(3).to_string())


if __name__ == "__main__":
    main(sys.argv[1])
