"""Tasks in processes of this machine, which leave with the one they work for, or on a cluster."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Any

from labelsure._runtime import limits as _limits
from labelsure._runtime.arguments import read_whole_number
from labelsure._runtime.cluster import TaskFailure as TaskFailure
from labelsure._runtime.cluster import run_on_cluster
from labelsure.errors import TooLargeError

SECONDS_BETWEEN_LOOKS = 0.2
SECONDS_TO_END = 5.0
POOL_THREADS = ("ExecutorManagerThread", "QueueFeederThread")  # of loky; they hold semaphores


def count_workers(n_jobs: int | None, n_tasks: int) -> int | None:
    """Return how many workers to ask joblib for: no more than tasks, for it starts them all.

    Examples
    --------
    >>> count_workers(8, n_tasks=3)
    3
    """
    if n_jobs is None or n_jobs < 0:
        return n_jobs
    if n_jobs > _limits.MAX_JOBS:
        raise TooLargeError(
            f"`n_jobs` must be at most {_limits.MAX_JOBS}, got {n_jobs}: each is a process with "
            "data and memory of its own. As many as there are cores is usual."
        )
    return min(n_jobs, max(n_tasks, 1))


@contextmanager
def watched_workers() -> Iterator[None]:
    """Let every worker process that joblib starts within leave with this process.

    That goes for the pools of base learners and of other libraries too. Another backend that the
    user has chosen stays, with workers of its own kind.
    """
    from joblib import parallel_config
    from joblib.parallel import BACKENDS, get_active_backend

    if type(get_active_backend()[0]) is not BACKENDS["loky"]:
        yield
        return
    # The same arguments each time, so that one pool serves all that is computed.
    with parallel_config("loky", initializer=leave_with, initargs=(os.getpid(),)):
        yield


def leave_with(owner: int) -> None:
    """End this process soon after its parent, which may be killed without notice.

    A terminal sends Ctrl-C to the parent and to its workers; the parent answers it for all.
    """
    if os.getpid() != owner:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        threading.Thread(target=_watch, args=(owner,), daemon=True).start()


def _watch(owner: int) -> None:
    while os.getppid() == owner:
        time.sleep(SECONDS_BETWEEN_LOOKS)
    os._exit(1)


def end_workers() -> None:
    """End the worker processes that joblib keeps for the next call, and free their semaphores."""
    loky = sys.modules.get("joblib.externals.loky.reusable_executor")
    executor = None if loky is None else loky._executor
    if executor is not None:
        # In a thread: a pool that was interrupted while it was made may never answer.
        ending = threading.Thread(
            target=executor.shutdown, kwargs={"kill_workers": True}, daemon=True
        )
        ending.start()
        ending.join(SECONDS_TO_END)
        del executor, ending  # the thread's arguments would keep the pool until it is collected
        for thread in threading.enumerate():
            if thread.name in POOL_THREADS:
                thread.join(SECONDS_TO_END)
        gc.collect()  # queues of the pool refer to each other, and hold its semaphores


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
