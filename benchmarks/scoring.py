"""Files in, files out: what that adds to scoring in memory, what two workers gain, the memory."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

import labelsure as ls
from benchmarks.measure import Row, compete, core_seconds_in_turn
from labelsure._kernels.threads import one_thread
from labelsure.tables.scoring import score_files

N_FEATURES, N_LABELS, N_CHAINS = 40, 14, 10
SIZES = (20_000, 200_000)
BATCH_ROWS = 2048
N_COMPARED, N_SHARED = 2 * BATCH_ROWS, 10 * BATCH_ROWS
"""Rows whose scoring is timed against memory, about a second, and those that two processes share:
some seconds, so that what it takes to begin counts little."""

LEAN = {"top": 0, "probabilities": False}
"""Settings for what `assess` itself computes, without labelsets and labels beside the predicted."""


def make_rows(n_rows: int, seed: int) -> pd.DataFrame:
    """Return numbers, one column for each feature."""
    values = np.random.default_rng(seed).normal(size=(n_rows, N_FEATURES))
    return pd.DataFrame(values, columns=[f"f{i}" for i in range(N_FEATURES)])


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

        def assess() -> None:
            with one_thread():
                for first in range(0, len(rows), BATCH_ROWS):
                    model.assess(rows[first : first + BATCH_ROWS])

        # Of the core, not of the clock: whatever else the machine does.
        full, lean, assessed = core_seconds_in_turn(
            [lambda: score("few.parquet"), lambda: score("few.parquet", **LEAN), assess]
        )
        one, two = compete(
            lambda: score("many.parquet"), lambda: score("many.parquet", 2), repeats=3
        )
    what = f"score, L={N_LABELS}, {N_CHAINS} chains"
    yield Row(f"{what}: files / assess in memory", full / assessed, "x", 1.3)
    yield Row(f"{what}, --top 0 --no-probabilities: the same", lean / assessed, "x", 1.3)
    yield Row(f"{what}: rows a second and core", N_COMPARED / full, "/s", 1000, 2000, True)
    yield Row(f"{what}: two processes / one", one / two, "x", 1.7, None, True)


def memory() -> Iterator[Row]:
    """Score files of two sizes, and compare the most memory that the process had."""
    peaks = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        save_model(folder / "model.labelsure")
        for size in SIZES:
            make_rows(size, 3).to_parquet(folder / f"{size}.parquet", row_group_size=BATCH_ROWS)
            peaks.append(peak_of_score(folder, f"{size}.parquet"))
    for size, peak in zip(SIZES, peaks, strict=True):
        yield Row(f"score: memory of the main process, {size:,} rows", peak / 2**20, "MiB", 1024)
    yield Row("score: memory at 200,000 rows / at 20,000", peaks[1] / peaks[0], "x", 1.1)


def peak_of_score(folder: Path, data: str) -> int:
    """Return the most bytes that a process had while it scored a file with all cores."""
    code = (
        "import resource, sys; from labelsure.cli import main; code = main(sys.argv[1:]); "
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss); sys.exit(code)"
    )
    words = ["score", "model.labelsure", data, "--out", f"{data}.out.parquet", "--quiet"]
    done = subprocess.run(
        [sys.executable, "-c", code, *words], cwd=folder, capture_output=True, check=True
    )
    return int(done.stdout.split()[-1]) * 1024


BENCHMARKS = {"score_overhead": overhead, "score_memory": memory}
