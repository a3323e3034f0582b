"""How well the accuracy of a batch without labels is estimated, with and without a shift.

    LABELSURE_DATA=folder python -m benchmarks.batches docs/batches.md [--quick]

The folder holds the ARFF files. Many times a set is split into instances to train a classifier,
calibration data and a pool; batches are drawn from the pool, as they come or shifted. Every method
knows the labelled calibration data and the batch without its labels; the truth is the mean
accuracy of the batch. Some fifteen minutes on one core; `--quick` takes seconds and is no evidence.
`--rows FOLDER` keeps what was measured, and `--again FOLDER` makes the page from that.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

import labelsure as ls
from benchmarks.batch_coverage import COLUMNS as DIVISION_COLUMNS
from benchmarks.batch_coverage import N_DIVISIONS, divide_often
from benchmarks.batch_draws import CHOSEN_ON, CONFIRMED_ON, SIZES, Split, load, splits
from benchmarks.batch_methods import BASELINES, Ours
from benchmarks.batch_page import make_page

METRICS = ("exact", "hamming", "jaccard")
N_SPLITS = 12
N_SPLITS_OF_ALL_WAYS = 6  # bootstraps take time
MORE_SPLITS = {"scene": (40, 10), "yeast": (40, 10)}
"""Of both kinds, for the real sets of medium size, which leave batches of 1,000."""
ALL_SETS = (*CHOSEN_ON, *CONFIRMED_ON)
QUICK = {"sets": ("simulated",), "n_splits": 1, "sizes": (50,)}
COLUMNS = ["set", "classifier", "split", "metric", "kind", "size", "method"]
COLUMNS += ["calibration", "truth", "mean", "low", "high", "effective", "noise"]
COLUMNS += ["auc", "p_value"]
FILES = ("batches", "divisions")
Tests = dict[tuple[str, int], tuple[float, float]]


def test_batches(split: Split, sizes: tuple[int, ...]) -> Tests:
    """Return AUC and p-value of the test of each batch, by kind and size."""
    found = {}
    for kind, size, batch in split.batches(sizes):
        test = ls.shift_test(split.calibration.dist, batch.dist)
        found[kind, size] = (test.auc, test.p_value)
    return found


def count_splits(name: str) -> tuple[int, int]:
    """Return how many splits a set has, and how many of them ask every way."""
    return MORE_SPLITS.get(name, (N_SPLITS, N_SPLITS_OF_ALL_WAYS))


def measure(split: Split, metric: str, sizes: tuple[int, ...], tests: Tests) -> Iterator[tuple]:
    """Yield what every method says of every batch of a split.

    `noise` is the mean error that chance alone leaves: of the batch, and of as many instances as
    the calibration data are, around estimates that are as good as the pool could make them.
    """
    ours = Ours(metric, split.calibration, split.Y_train)
    n_calibration = len(split.calibration)
    all_ways = split.number < count_splits(split.data.name)[1]
    rng = np.random.default_rng(split.number)
    variance = Ours(metric, split.pool, split.Y_train).residual_variance(split.calibration)
    for kind, size, batch in split.batches(sizes):
        truth = float(batch.accuracy(metric).mean())
        answers = {
            name: method(metric, split.calibration, batch) for name, method in BASELINES.items()
        }
        answers |= ours.answers(batch, rng, all_ways=all_ways)
        noise = np.sqrt(2 / np.pi * variance * (1 / size + 1 / n_calibration))
        cell = (split.data.name, split.classifier, split.number, metric, kind, size)
        for method, said in answers.items():
            numbers = (said.mean, said.low, said.high, said.effective)
            yield (*cell, method, n_calibration, truth, *numbers, noise, *tests[kind, size])


def run(
    sets: tuple[str, ...] = ALL_SETS,
    n_splits: int | None = None,
    sizes: tuple[int, ...] = SIZES,
) -> pd.DataFrame:
    """Return a row for each batch and method; by None, as many splits as each set has."""
    rows: list[tuple] = []
    for name in sets:
        start = time.process_time()
        for split in splits(load(name), n_splits or count_splits(name)[0]):
            tests = test_batches(split, sizes)
            for metric in METRICS:
                rows.extend(measure(split, metric, sizes, tests))
        took = time.process_time() - start
        print(f"{name}: {len(rows):,} rows, {took:.0f} s", file=sys.stderr, flush=True)
    return pd.DataFrame(rows, columns=COLUMNS)


def divide(
    sets: tuple[str, ...] = (*ALL_SETS, "flags"),
    n_splits: int = N_DIVISIONS,
    sizes: tuple[int, ...] = SIZES,
) -> pd.DataFrame:
    """Return a row for each metric and size of many divisions without a shift."""
    rows: list[tuple] = []
    for name in sets:
        rows.extend(divide_often(load(name), METRICS, sizes, n_splits))
        print(f"{name}: {len(rows):,} rows of divisions", file=sys.stderr, flush=True)
    return pd.DataFrame(rows, columns=DIVISION_COLUMNS)


def main(arguments: list[str]) -> None:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(description="Estimates of batches, with and without a shift.")
    parser.add_argument("page")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rows", help="folder in which to keep the rows, as CSV")
    parser.add_argument("--again", help="the page of rows that were kept, nothing measured")
    chosen = parser.parse_args(arguments)
    files = [Path(chosen.again or chosen.rows or ".") / f"{name}.csv" for name in FILES]
    if chosen.again:
        found, divisions = (pd.read_csv(file) for file in files)
    else:
        how = QUICK if chosen.quick else {}
        found, divisions = run(**how), divide(**how)
    if chosen.rows:
        Path(chosen.rows).mkdir(parents=True, exist_ok=True)
        for rows, file in zip((found, divisions), files, strict=True):
            rows.to_csv(file, index=False)
    Path(chosen.page).write_text(make_page(found, divisions), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
