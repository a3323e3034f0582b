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

from labelsure._kernels.threads import n_threads
from labelsure._runtime.processes import TaskFailure
from labelsure._runtime.task_pools import run_tasks
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
    cells: list[Cell],
    plan: Plan,
    sets: dict[str, StudyData],
    n_jobs: int,
    scheduler: str | None = None,
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
    scheduler
        The address of a Dask scheduler, whose workers compute them instead.
    """
    n_jobs = min(n_jobs, max(len(cells), 1))
    # Twice as many threads as cores: the last long cells do not leave the others' cores idle.
    threads = max(1, min(n_threads(), 2 * n_threads() // n_jobs))
    if scheduler is not None:
        threads = 1  # a worker of the cluster may compute several cells, each in a thread
    tasks = [(cell, plan, sets[cell.dataset], threads, os.getpid()) for cell in cells]
    for place, outcome in run_tasks(_try_cell, tasks, n_jobs=n_jobs, scheduler=scheduler):
        if isinstance(outcome, TaskFailure):
            failure = {"error": outcome.error, "message": outcome.message, "traceback": ""}
            outcome = Outcome(cells[place], failure=failure)
        yield outcome


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
