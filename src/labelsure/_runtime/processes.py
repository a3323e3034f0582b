"""Tasks in worker processes, which end with their parent, or on a Dask cluster."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from itertools import chain, islice
from typing import Any, TypeVar
from urllib.parse import urlsplit

from labelsure._runtime import limits as _limits
from labelsure._runtime.arguments import read_whole_number
from labelsure._runtime.storage import first_line
from labelsure.errors import InputError, TooLargeError

SECONDS_BETWEEN_LOOKS = 0.2
SECONDS_TO_END = 5.0
POOL_THREADS = (
    "ExecutorManagerThread",
    "QueueFeederThread",
)  # threads of loky that hold semaphores


def count_workers(n_jobs: int | None, n_tasks: int) -> int | None:
    """Number of workers to request from joblib, which starts all of them: at most one per task.

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
    """Context in which the worker processes that joblib starts end with this process.

    That goes for the pools of base learners and of other libraries too. Another backend that the
    user has chosen stays, with workers of its own kind.
    """
    from joblib import parallel_config
    from joblib.parallel import BACKENDS, get_active_backend

    if type(get_active_backend()[0]) is not BACKENDS["loky"]:
        yield
        return
    # The same arguments each time, so that one pool serves all that is computed.
    with parallel_config("loky", initializer=end_with_parent, initargs=(os.getpid(),)):
        yield


def end_with_parent(owner: int) -> None:
    """End this process soon after its parent, which may be killed without notice.

    A terminal sends Ctrl-C to the parent and to its workers; the parent handles it for all.
    """
    if os.getpid() != owner:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        threading.Thread(target=_end_after, args=(owner,), daemon=True).start()


def _end_after(owner: int) -> None:
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


R = TypeVar("R")


@dataclass(frozen=True)
class TaskFailure:
    """A task without a result, because its worker ended or could not begin.

    Parameters
    ----------
    error
        Name of the exception type.
    message
        Cause and remedy, in a sentence.
    """

    error: str
    message: str


WORKER_ENDED = TaskFailure(
    "TerminatedWorkerError",
    "A worker process was ended from outside, often for lack of memory. Run again with fewer jobs: "
    "finished work is kept.",
)


def run_tasks(
    function: Callable[..., R],
    tasks: Iterable[tuple[object, ...]],
    *,
    n_jobs: int = 1,
    scheduler: str | None = None,
    shared: object = None,
    ordered: bool = False,
) -> Iterator[tuple[int, R | TaskFailure]]:
    """Yield the position of each task and the result of the function for it.

    Results come in the order of completion, unless `ordered`. `tasks` is iterated as workers become
    free, and must not raise. An exception of the function is raised here, and ends all tasks. The
    result of a task whose worker has ended is a `TaskFailure`.

    Examples
    --------
    >>> sorted(run_tasks(divmod, [(7, 2), (9, 4)]))
    [(0, (3, 1)), (1, (2, 1))]
    """
    if scheduler is not None:
        return run_on_cluster(function, list(tasks), scheduler, shared, ordered=ordered)
    calls = iter(tasks if shared is None else ((shared, *task) for task in tasks))
    first = list(islice(calls, n_jobs))  # no more workers than tasks: joblib starts them all
    n_workers = count_workers(n_jobs, len(first)) or 1
    return _run_here(function, chain(first, calls), n_workers, ordered=ordered)


def _run_here(
    function: Callable[..., R],
    calls: Iterable[tuple[object, ...]],
    n_workers: int,
    *,
    ordered: bool,
) -> Iterator[tuple[int, R | TaskFailure]]:
    from joblib import Parallel, delayed

    return_as, pending = "generator" if ordered else "generator_unordered", set[int]()
    numbered = enumerate(calls)

    def make_tasks() -> Iterator[Any]:
        for position, call in numbered:
            pending.add(position)
            yield delayed(_call)(function, position, call)

    # Arrays are sent, not mapped from files: a killed run leaves nothing behind.
    parallel = Parallel(n_jobs=n_workers, return_as=return_as, batch_size=1, max_nbytes=None)
    results = parallel(make_tasks())
    try:
        for position, result in results:
            pending.remove(position)
            yield position, result
    except BrokenProcessPool:
        for position in (*sorted(pending), *(position for position, _ in numbered)):
            yield position, WORKER_ENDED
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # how many tasks are cancelled is of no interest
            results.close()


def _call(function: Callable[..., R], position: int, task: tuple[object, ...]) -> tuple[int, R]:
    return position, function(*task)


def check_jobs(n_jobs: int | None, default: int) -> int:
    """Number of processes, `default` for None. Raises InputError or TooLargeError."""
    if n_jobs is None:
        return default
    read_whole_number(n_jobs, "n_jobs")
    count_workers(n_jobs, 1)  # refuses too many
    return n_jobs


# Workers of a Dask cluster; Dask stores, distributes and repeats tasks

PROTOCOLS = ("tcp", "tls")
"""Protocols of Dask to other machines that need no further packages."""

CONNECT_SECONDS = 10
"""Timeout of the connection: a running scheduler responds in a fraction of a second."""

WORKER_SECONDS = 60
"""Timeout for the first worker: one that is being started takes some ten seconds."""

RETRIES = 3
"""Retries of a task that raises, on any worker: the cause may be temporary."""

PACKAGES = ("labelsure", "numpy", "scipy", "scikit-learn", "numba")
"""Packages that must have the same versions on all workers, for the same results."""

AGAIN = "Run again: finished work is kept."


def run_on_cluster(
    function: Callable[..., R],
    tasks: Sequence[tuple[object, ...]],
    address: str,
    shared: object,
    *,
    ordered: bool = False,
) -> Iterator[tuple[int, R | TaskFailure]]:
    """Yield the position of each task and its result, like `run_tasks`.

    The shared value is a task of its own, so that Dask makes it again where its worker has died.
    """
    with _connect(address) as client:
        from distributed import as_completed

        # Dask checks the workers that are present: one without labelsure would end on a task of
        # ours. `call_task` checks those that join later.
        versions = client.get_versions(packages=["labelsure"])
        ours = {name: versions["client"]["packages"][name] for name in ("labelsure", "numpy")}
        for worker, versions_there in versions["workers"].items():
            _check_versions(ours, versions_there["packages"], f"The worker {worker!r}")
        settings = {"retries": RETRIES, "pure": False}
        first = () if shared is None else (client.submit(_identity, shared, **settings),)
        # One by one: a task of `client.map` that cannot begin would stop the others.
        position_of = {
            client.submit(call_task, read_versions(), function, *first, *task, **settings): position
            for position, task in enumerate(tasks)
        }
        waiting: Any = [*position_of]
        if not ordered:
            waiting = as_completed(position_of, loop=client.loop)  # type: ignore[no-untyped-call]
        for future in waiting:
            if future.status in ("cancelled", "lost"):
                break
            yield position_of.pop(future), _result(future, address)
        if position_of:
            raise _scheduler_gone(address)


def _scheduler_gone(address: str) -> InputError:
    return InputError(
        f"The scheduler {address!r} must stay until all tasks are finished, it went away or was "
        f"restarted. {AGAIN}"
    )


def _identity(shared: R) -> R:
    return shared


class RaisedInTask(Exception):
    """Exception of the function of a task, as opposed to a failure before its start."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error


def call_task(expected: dict[str, str], function: Callable[..., R], *task: object) -> R:
    """Result of a function in a worker. Raises RaisedInTask for its errors and wrong versions."""
    try:
        _check_versions(expected, read_versions(), "A worker")
        return function(*task)
    except Exception as error:
        raise RaisedInTask(error) from error


@cache
def read_versions() -> dict[str, str]:
    """Versions of the packages on which results depend."""
    return {package: version(package) for package in PACKAGES}


def _check_versions(expected: dict[str, str], installed: dict[str, str], worker: str) -> None:
    for package, required in expected.items():
        if installed[package] != required:
            raise InputError(
                f"{worker} must have {package} {required} as it is installed here, so that all "
                f"workers compute the same bits; it has {installed[package] or 'none'}. Install it "
                "there, or stop that worker, and run again."
            )


def _result(future: Any, address: str) -> Any:
    """Result of a finished task, or a TaskFailure of its worker.

    Raises the exception of its function.
    """
    from distributed import KilledWorker

    try:
        error = future.exception()  # which waits
        if error is None:
            return future.result()
    except (CancelledError, OSError) as lost:  # the connection, while a result was on its way
        raise _scheduler_gone(address) from lost
    if isinstance(error, RaisedInTask):
        raise error.error
    reason = (
        f"A worker could not begin a task ({first_line(error)}). Every worker needs labelsure and "
        "its dependencies in the versions that are installed here."
    )
    if isinstance(error, KilledWorker):
        reason = (
            "A task was given up because the workers that held it ended, often for lack of memory."
        )
    return TaskFailure(type(error).__name__, f"{reason} {AGAIN}")


def _check_address(address: str) -> None:
    """Raise InputError unless the form is tcp://HOST:PORT: others fail in threads of Dask."""
    try:
        url = urlsplit(address)
        is_address = url.scheme in PROTOCOLS and url.hostname and url.port
    except ValueError:  # a port that is no number
        is_address = False
    if not is_address:
        raise InputError(
            "The address of a scheduler must have the form tcp://HOST:PORT or tls://HOST:PORT, as "
            f"`dask scheduler` prints it, e.g. 'tcp://10.0.0.1:8786', got {address!r}."
        )


@contextmanager
def _connect(address: str) -> Iterator[Any]:
    """Yield a client of a scheduler with workers. Raises InputError if one of these is missing."""
    _check_address(address)
    try:
        from distributed import Client
    except ImportError as error:
        raise InputError(
            "A scheduler needs Dask, which is not installed. Install it: "
            "pip install 'labelsure[distributed]'."
        ) from error
    try:
        client: Any = Client(  # type: ignore[no-untyped-call]
            address, timeout=CONNECT_SECONDS, set_as_default=False
        )
    except Exception as error:  # of many types: Dask's own, those of sockets, and assertions
        raise InputError(
            f"The scheduler {address!r} must answer within {CONNECT_SECONDS} seconds, it does not "
            f"({first_line(error)}). Check the address, which `dask scheduler` prints, such as "
            "'tcp://10.0.0.1:8786', and that it runs."
        ) from error
    try:
        client.wait_for_workers(1, timeout=WORKER_SECONDS)
        yield client
    except TimeoutError as error:
        raise InputError(
            f"The scheduler {address!r} must have at least one worker, it had none for "
            f"{WORKER_SECONDS} seconds. Start some with `dask worker {address}`. {AGAIN}"
        ) from error
    finally:
        client.close()
