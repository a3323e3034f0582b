"""Tasks on the cores of this machine, or on the workers of a Dask cluster: one call for both."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from labelsure._runtime.arguments import read_whole_number
from labelsure._runtime.cluster import run_on_cluster
from labelsure._runtime.processes import TaskFailure, count_workers

WORKER_ENDED = TaskFailure(
    "TerminatedWorkerError",
    "A worker process was ended from outside, often for lack of memory. Run again with fewer jobs: "
    "what is finished is kept.",
)


def run_tasks(
    function: Callable[..., Any],
    tasks: Sequence[tuple[Any, ...]],
    *,
    n_jobs: int = 1,
    scheduler: str | None = None,
    shared: Any = None,
    prepare: Callable[..., tuple[Any, ...]] | None = None,
) -> Iterator[tuple[int, Any]]:
    """Call a function for each task, and yield the place of the task and what came back.

    In the order in which they finish. What the function raises is raised here, so one that must not
    stop the others catches it. A worker that ends makes a `TaskFailure` of the tasks that are lost.
    `prepare` makes of a task what another process of this machine gets, right before it is sent.

    Examples
    --------
    >>> sorted(run_tasks(divmod, [(7, 2), (9, 4)]))
    [(0, (3, 1)), (1, (2, 1))]
    """
    if scheduler is not None:
        return run_on_cluster(function, tasks, scheduler, shared)
    n_workers = count_workers(n_jobs, len(tasks))
    sent = (task if prepare is None or n_workers == 1 else prepare(*task) for task in tasks)
    calls = enumerate(sent if shared is None else ((shared, *task) for task in sent))
    return _run_here(function, calls, len(tasks), n_workers)


def _run_here(
    function: Callable[..., Any],
    calls: Iterable[tuple[int, tuple[Any, ...]]],
    n_tasks: int,
    n_workers: int | None,
) -> Iterator[tuple[int, Any]]:
    from joblib import Parallel, delayed

    # Arrays are sent, not mapped from files: a killed run leaves nothing behind.
    parallel = Parallel(n_jobs=n_workers, return_as="generator_unordered", max_nbytes=None)
    left = set(range(n_tasks))
    try:
        for place, result in parallel(
            delayed(_call)(function, place, task) for place, task in calls
        ):
            left.remove(place)
            yield place, result
    except BrokenProcessPool:
        for place in sorted(left):
            yield place, WORKER_ENDED


def _call(function: Callable[..., Any], place: int, task: tuple[Any, ...]) -> tuple[int, Any]:
    return place, function(*task)


def check_jobs(n_jobs: Any, default: int) -> int:
    """Return a number of processes, `default` for None, or refuse it."""
    if n_jobs is None:
        return default
    read_whole_number(n_jobs, "n_jobs")
    count_workers(n_jobs, 1)  # refuses too many
    return n_jobs
