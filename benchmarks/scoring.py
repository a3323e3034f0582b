"""Files in, files out: what that adds to scoring in memory, what two workers gain, the memory."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

import labelsure as ls
from benchmarks.measure import Row, compete, core_seconds_in_turn, one_thread, seconds
from labelsure.tables.scoring import score_files

N_FEATURES, N_LABELS, N_CHAINS = 40, 14, 10
SIZES, N_FEW = (1_000_000, 10_000_000), 4
"""Rows of the files whose memory is compared, and their columns: few, so that they are written and
scored in minutes."""

N_MILLION, N_COLUMNS = 1_000_000, 50
N_WIDE, N_UNUSED = 20_000, 600
N_COMPARED, N_SHARED = 8192, 20_480
"""Rows whose scoring is timed against memory, some seconds, and those that two processes share:
more, so that what it takes to begin counts little."""

LEAN = {"top": 0, "probabilities": False}
"""Settings for what `assess` itself computes, without labelsets and labels beside the predicted."""


def make_rows(n_rows: int, seed: int, n_features: int = N_FEATURES) -> pd.DataFrame:
    """Return numbers, one column for each feature."""
    values = np.random.default_rng(seed).normal(size=(n_rows, n_features))
    return pd.DataFrame(values, columns=[f"f{i}" for i in range(n_features)])


def save_model(path: Path) -> ls.AccuracyAwareClassifier:
    """Fit an ensemble of chains with a target, and save it."""
    X = make_rows(2000, 0)
    weights = np.random.default_rng(1).normal(size=(N_FEATURES, N_LABELS))
    Y = (X.to_numpy() @ weights > 6).astype(int)
    learner = LogisticRegression(solver="newton-cholesky")
    chains = ls.EnsembleOfClassifierChains(learner, n_chains=N_CHAINS, random_state=0)
    model = ls.AccuracyAwareClassifier(chains, share=0.5, cv=0.5, random_state=0).fit(X, Y)
    model.save(path)
    return model


def overhead() -> Iterator[Row]:
    """Compare scoring files with scoring the same rows in memory, and two workers with one."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model = save_model(folder / "model.labelsure")
        rows = make_rows(N_COMPARED, 2)
        rows.to_parquet(folder / "few.parquet")
        make_rows(N_SHARED, 2).to_parquet(folder / "many.parquet")

        def score(data: str, n_jobs: int = 1, **settings: Any) -> None:
            arguments = (folder / "model.labelsure", folder / data, folder / "out.parquet")
            score_files(*arguments, n_jobs=n_jobs, overwrite=True, **settings)

        # Of the core, not of the clock: whatever else the machine does.
        full, lean, assessed = core_seconds_in_turn(
            [
                lambda: score("few.parquet"),
                lambda: score("few.parquet", **LEAN),
                lambda: model.assess(rows),
            ],
            repeats=3,
        )
        one, two = (seconds(lambda n=n: score("many.parquet", n), repeats=1) for n in (1, 2))
    what = f"score, L={N_LABELS}, {N_CHAINS} chains"
    yield Row(f"{what}: files / assess in memory", full / assessed, "x", 1.25)
    what_lean = f"{what}, --top 0 --no-probabilities: files / assess in memory"
    yield Row(what_lean, lean / assessed, "x", 1.25)
    yield Row(f"{what}: rows a second and core", N_COMPARED / full, "/s", 1000, True)
    yield Row(f"{what}: two processes / one", one / two, "x", 1.7, True)


def formats() -> Iterator[Row]:
    """Compare compressed with plain text, wide with narrow Parquet, and Dask with processes."""
    from distributed import LocalCluster

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        save_fast_model(folder / "model.labelsure")
        rows = make_rows(N_WIDE, 2)
        rows.to_csv(folder / "rows.csv", index=False)
        rows.to_csv(folder / "rows.csv.gz", index=False)
        rows.to_parquet(folder / "narrow.parquet")
        unused = pd.DataFrame(np.zeros((N_WIDE, N_UNUSED)), columns=map(str, range(N_UNUSED)))
        pd.concat([rows, unused], axis=1).to_parquet(folder / "wide.parquet")
        pd.concat([rows] * 4).to_parquet(folder / "long.parquet")

        outputs = count()

        def score(data: str, **settings: Any) -> None:
            # Each time another folder: parts that are there would be kept.
            arguments = (folder / "model.labelsure", folder / data, folder / f"out{next(outputs)}")
            score_files(*arguments, **{"n_jobs": 1, **settings})

        names = ("rows.csv.gz", "rows.csv", "wide.parquet", "narrow.parquet")
        # Of the core, not of the clock: whatever else the machine does.
        packed, plain, wide, narrow = core_seconds_in_turn(
            [partial(score, name, **LEAN) for name in names]
        )
        with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
            dask, processes = compete(
                lambda: score("long.parquet", scheduler=cluster.scheduler_address),
                lambda: score("long.parquet", n_jobs=2),
                repeats=3,
            )
    yield Row("score: CSV.gz / CSV, core time", packed / plain, "x", 1.3)
    yield Row(f"score: Parquet with {N_UNUSED} unused columns / without", wide / narrow, "x", 1.1)
    what = "score: Dask with two workers / two processes"
    yield Row(what, processes / dask, "x", 0.8, True)
    what = "score: rows a second and core, BinaryRelevance, --top 0 --no-probabilities"
    yield Row(what, N_WIDE / narrow, "/s")


def memory() -> Iterator[Row]:
    """Score files of two sizes, and compare the most memory that the process had."""
    peaks = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        save_fast_model(folder / "model.labelsure", N_FEW)
        for size in SIZES:
            write_rows(folder / f"{size}.parquet", size, N_FEW)
            peaks.append(peak_of_score(folder, f"{size}.parquet"))
    for size, peak in zip(SIZES, peaks, strict=True):
        yield Row(f"score: memory of one process, {size:,} rows", peak / 2**20, "MiB", 1024)
    small, large = (f"{size:,}" for size in SIZES)
    yield Row(f"score: memory at {large} rows / at {small}", peaks[1] / peaks[0], "x", 1.1)


def write_rows(path: Path, n_rows: int, n_features: int) -> None:
    """Write rows in groups of 100,000, one of them in memory at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = make_rows(min(n_rows, 100_000), 3, n_features)
    group = pa.Table.from_pandas(rows, preserve_index=False)
    with pq.ParquetWriter(path, group.schema) as writer:
        for _ in range(0, n_rows, len(group)):
            writer.write_table(group)


def million() -> Iterator[Row]:
    """Score a million rows of 50 columns with ten labels, as two processes do."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        save_fast_model(folder / "model.labelsure", N_COLUMNS)
        write_rows(folder / "rows.parquet", N_MILLION, N_COLUMNS)
        began, spent = time.perf_counter(), os.times()
        code = "import sys; from labelsure.cli import main; sys.exit(main(sys.argv[1:]))"
        words = ["score", "model.labelsure", "rows.parquet", "--out", "out", "--jobs", "2"]
        subprocess.run([sys.executable, "-c", code, *words, "--quiet"], cwd=folder, check=True)
        taken, now = time.perf_counter() - began, os.times()
    core = sum(now[2:4]) - sum(spent[2:4])  # of the processes that have ended
    what = f"score: {N_MILLION:,} rows by {N_COLUMNS} columns, 10 labels, all columns of the output"
    yield Row(f"{what}, rows a second by two processes", N_MILLION / taken, "/s", 5000, True)
    yield Row(f"{what}, rows a second and core", N_MILLION / core, "/s", 5000, True)


def save_fast_model(path: Path, n_features: int = N_FEATURES) -> None:
    """Fit ten independent labels, which take less time than files do, and save them."""
    X = make_rows(2000, 0, n_features)
    weights = np.random.default_rng(1).normal(size=(n_features, 10))
    Y = (X.to_numpy() @ weights > n_features**0.5).astype(int)
    learner = ls.BinaryRelevance(LogisticRegression(solver="newton-cholesky"))
    ls.AccuracyAwareClassifier(learner, share=0.5, cv=0.5, random_state=0).fit(X, Y).save(path)


def peak_of_score(folder: Path, data: str) -> int:
    """Return the most bytes that a process had while it scored a file."""
    code = (
        "import resource, sys; from labelsure.cli import main; code = main(sys.argv[1:]); "
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss); sys.exit(code)"
    )
    lean = ["--top", "0", "--no-probabilities", "--quiet", "--jobs", "1"]
    words = ["score", "model.labelsure", data, "--out", f"{data}_out/", *lean]
    done = subprocess.run(
        [sys.executable, "-c", code, *words], cwd=folder, capture_output=True, check=True
    )
    return int(done.stdout.split()[-1]) * 1024


BENCHMARKS = {
    "score_overhead": one_thread(overhead),
    "score_formats": one_thread(formats),
    "score_million": million,
    "score_memory": memory,
}
