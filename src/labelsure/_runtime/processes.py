"""Worker processes: how many, and that they leave with the process they work for."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from labelsure._runtime import limits as _limits
from labelsure.errors import TooLargeError

SECONDS_BETWEEN_LOOKS = 0.2
SECONDS_TO_END = 5.0
POOL_THREADS = ("ExecutorManagerThread", "QueueFeederThread")  # of loky; they hold semaphores


@dataclass(frozen=True)
class TaskFailure:
    """A task without a result, because of the worker that had it.

    Parameters
    ----------
    error
        The name of what was raised.
    message
        What happened and what to do, in a sentence.
    """

    error: str
    message: str


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
