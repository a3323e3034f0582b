"""Tasks on the workers of a Dask cluster, with messages for what can be wrong with one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from itertools import islice
from queue import Empty, Queue
from typing import Any
from urllib.parse import urlsplit

from labelsure._runtime.processes import TaskFailure
from labelsure._runtime.storage import first_line
from labelsure.errors import InputError

PROTOCOLS = ("tcp", "tls")
"""Those of Dask that reach other machines without further packages."""

CONNECT_SECONDS = 10
"""A scheduler that is there answers in a fraction of one."""

WORKER_SECONDS = 60
"""How long to wait for a worker where there is none: one that is being started takes some ten."""

TASKS_PER_THREAD = 2
"""Handed to the cluster at a time: no worker waits for the next one, and what waits in the
scheduler stays small, however many tasks there are."""

RETRIES = 3
"""Of a task that raises, for what another worker or a second look can repair."""

ALLOWED_FAILURES = 30
"""Workers that may end while they hold a task before it is given up. Dask counts every task that a
dead worker held, not only the one that ended it, and by default gives up after three."""

PACKAGES = ("labelsure", "numpy", "scipy", "scikit-learn", "numba")
"""Whose versions must be the same on all workers for the same bits."""


def run_on_cluster(
    function: Callable[..., Any], tasks: Sequence[tuple[Any, ...]], address: str
) -> Iterator[tuple[int, Any]]:
    """Yield the place of each task and its result, as `run_tasks` does.

    Parameters
    ----------
    function, tasks
        As for `run_tasks`.
    address
        Of the scheduler.
    """
    with _connect(address) as client, _more_failures(client):
        check_workers(client)
        waiting = iter(enumerate(tasks))
        held: dict[str, tuple[int, Any]] = {}  # by the names that Dask gives its tasks
        finished: Queue[str] = Queue()
        for _ in tasks:
            for place, task in islice(waiting, max(0, _window(client) - len(held))):
                future = client.submit(
                    call_task, _read_versions(), function, task, retries=RETRIES, pure=False
                )
                held[future.key] = place, future
                future.add_done_callback(lambda future: finished.put(future.key))
            place, future = held.pop(_next(finished, client))
            yield place, _result(future)


class RaisedInTask(Exception):
    """What a task raised, as opposed to what kept it from beginning.

    Parameters
    ----------
    error
        What was raised.
    """

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error


def call_task(expected: dict[str, str], function: Callable[..., Any], task: tuple[Any, ...]) -> Any:
    """Call a function in a worker, also one that joined later, if it has the same packages.

    Parameters
    ----------
    expected
        The versions that must be installed.
    function, task
        What to call, and with what.
    """
    try:
        _compare_versions(expected, _read_versions(), "A worker")
        return function(*task)
    except Exception as error:
        raise RaisedInTask(error) from error


def _window(client: Any) -> int:
    """Return how many tasks the cluster may hold now: workers join and leave."""
    return TASKS_PER_THREAD * max(1, sum(client.nthreads().values()))


def _next(finished: Queue[str], client: Any) -> str:
    """Return the next task that is finished, unless there is no worker for long."""
    seconds_alone = 0
    while True:
        try:
            return finished.get(timeout=1)
        except Empty:
            seconds_alone = 0 if client.nthreads() else seconds_alone + 1
            if seconds_alone > WORKER_SECONDS:
                raise _no_worker(client) from None


def _result(future: Any) -> Any:
    """Return what came back; raise what the function raised on purpose."""
    from distributed import KilledWorker
    from distributed.client import FutureCancelledError

    error = future.exception() if future.status == "error" else None
    if future.status == "cancelled":
        error = FutureCancelledError(future.key, "the scheduler forgot it")
    if error is None:
        return future.result()
    if isinstance(error, RaisedInTask):
        raise error.error
    if isinstance(error, (KilledWorker, FutureCancelledError)):
        return TaskFailure(
            type(error).__name__,
            "A task was given up because the workers that held it ended, often for lack of memory, "
            "or the scheduler was restarted. Run again: what is finished is kept.",
        )
    return TaskFailure(
        type(error).__name__,
        f"A worker could not begin a task ({first_line(error)}). Every worker needs labelsure and "
        "its dependencies in the versions that are installed here. Run again: what is finished is "
        "kept.",
    )


def _check_address(address: str) -> None:
    """Refuse what is no address: Dask would look for it, or fail within its own threads."""
    try:
        parts = urlsplit(address)
        is_address = parts.scheme in PROTOCOLS and parts.hostname and parts.port
    except ValueError:  # a port that is no number
        is_address = False
    if not is_address:
        raise InputError(
            "The address of a scheduler must have the form tcp://HOST:PORT or tls://HOST:PORT, as "
            f"`dask scheduler` prints it, e.g. 'tcp://10.0.0.1:8786', got {address!r}."
        )


@contextmanager
def _connect(address: str) -> Iterator[Any]:
    """Yield a client of the scheduler, or say in a sentence what is missing."""
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
        yield client
    finally:
        client.close()


def check_workers(client: Any) -> None:
    """Wait for a worker, and refuse those that would compute something else.

    Parameters
    ----------
    client
        Of the scheduler.
    """
    try:
        client.wait_for_workers(1, timeout=WORKER_SECONDS)
    except TimeoutError as error:
        raise _no_worker(client) from error

    for worker, found in client.run(_make_reader(), PACKAGES).items():
        _compare_versions(_read_versions(), found, f"The worker {worker!r}")


def _make_reader() -> Callable[[tuple[str, ...]], dict[str, str]]:
    """Return a function that goes to workers by value, so that these need not have the package."""

    def read(packages: tuple[str, ...]) -> dict[str, str]:
        from importlib.metadata import PackageNotFoundError, version

        found = {}
        for package in packages:
            try:
                found[package] = version(package)
            except PackageNotFoundError:
                found[package] = "none"
        return found

    return read


@cache
def _read_versions() -> dict[str, str]:
    return _make_reader()(PACKAGES)


def _compare_versions(expected: dict[str, str], found: dict[str, str], who: str) -> None:
    for package, wanted in expected.items():
        if found[package] != wanted:
            raise InputError(
                f"{who} must have {package} {wanted} as it is installed here, so that all workers "
                f"compute the same bits; it has {found[package]}. Install it there, or stop that "
                "worker, and run again."
            )


@contextmanager
def _more_failures(client: Any) -> Iterator[None]:
    """Let the scheduler give up tasks later than it would, and as before when the run is over."""

    # Functions within functions go by value: the scheduler needs no module of ours.
    def set_failures(n: int, at_least: bool, dask_scheduler: Any) -> int:
        before = int(dask_scheduler.allowed_failures)
        dask_scheduler.allowed_failures = max(before, n) if at_least else n
        return before

    before = client.run_on_scheduler(set_failures, ALLOWED_FAILURES, True)
    try:
        yield
    finally:
        with suppress(Exception):  # a scheduler that is gone
            client.run_on_scheduler(set_failures, before, False)


def _no_worker(client: Any) -> InputError:
    return InputError(
        f"The scheduler {client.scheduler.address!r} must have at least one worker, it has none "
        f"for {WORKER_SECONDS} seconds. Start some with `dask worker {client.scheduler.address}` "
        "and run again: what is finished is kept."
    )
