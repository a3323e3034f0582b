"""The processes that compute cells for a run, and what comes back from them."""

from __future__ import annotations

import os
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import pandas as pd
from joblib import Parallel, delayed
from joblib.externals.loky.process_executor import TerminatedWorkerError

from labelsure._kernels.threads import n_threads
from labelsure.study._cells import Cell, score_cell
from labelsure.study._plan import Plan
from labelsure.study._plan_parts import StudyData


@dataclass
class Outcome:
    """What came back for a cell: rows, or why there are none.

    Parameters
    ----------
    cell
        What was computed.
    seconds
        How long it took.
    scores
        Its rows of the score table; None where it failed.
    warnings
        What was warned of, and how often.
    failure
        Error, message and traceback, where it failed.
    """

    cell: Cell
    seconds: float = 0.0
    scores: pd.DataFrame | None = None
    warnings: dict[str, int] = field(default_factory=dict)
    failure: dict[str, str] = field(default_factory=dict)


def compute_cells(
    cells: list[Cell], plan: Plan, sets: dict[str, StudyData], n_jobs: int
) -> Iterator[Outcome]:
    """Yield what comes of each cell, in the order in which they finish.

    Parameters
    ----------
    cells
        What to compute, the longest first.
    plan, sets
        With which settings, on which data.
    n_jobs
        How many cells at a time; 1 computes them in this process.
    """
    n_jobs = min(n_jobs, max(len(cells), 1))
    # Twice as many threads as cores: the last long cells do not leave the others' cores idle.
    threads = max(1, min(n_threads(), 2 * n_threads() // n_jobs))
    # Arrays are sent, not mapped from files: a killed run leaves nothing behind.
    parallel = Parallel(n_jobs=n_jobs, return_as="generator_unordered", max_nbytes=None)
    left = {cell.name: cell for cell in cells}
    try:
        for outcome in parallel(
            delayed(_try_cell)(cell, plan, sets[cell.dataset], threads, os.getpid())
            for cell in cells
        ):
            del left[outcome.cell.name]
            yield outcome
    except TerminatedWorkerError:
        reason = (
            "A worker process was ended from outside, often for lack of memory. Run again with "
            "fewer jobs: finished cells are kept."
        )
        for cell in left.values():
            failure = {"error": "TerminatedWorkerError", "message": reason, "traceback": ""}
            yield Outcome(cell, failure=failure)


def _try_cell(cell: Cell, plan: Plan, data: StudyData, threads: int, owner: int) -> Outcome:
    """Compute a cell; whatever goes wrong in it stops no other."""
    if os.getpid() != owner:  # in a process that works for the run, how many threads kernels use
        os.environ["LABELSURE_NUM_THREADS"] = str(threads)
    started = time.monotonic()
    outcome = Outcome(cell)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            outcome.scores = score_cell(cell, plan, data)
        except Exception as error:
            outcome.failure = {
                "error": type(error).__name__,
                "message": str(error) or type(error).__name__,
                "traceback": traceback.format_exc(),
            }
    texts = Counter(f"{entry.category.__name__}: {entry.message}" for entry in caught)
    outcome.warnings = dict(sorted(texts.items()))
    outcome.seconds = time.monotonic() - started
    return outcome
