"""Tasks on the workers of a Dask cluster, as Dask itself holds, hands out and repeats them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from typing import Any
from urllib.parse import urlsplit

from labelsure._runtime.storage import first_line
from labelsure.errors import InputError

PROTOCOLS = ("tcp", "tls")
"""Those of Dask that reach other machines without further packages."""

CONNECT_SECONDS = 10
"""A scheduler that is there answers in a fraction of one."""

WORKER_SECONDS = 60
"""How long to wait for a worker where there is none: one that is being started takes some ten."""

RETRIES = 3
"""Of a task that raises, for what another worker or a second look can repair."""

PACKAGES = ("labelsure", "numpy", "scipy", "scikit-learn", "numba")
"""Whose versions must be the same on all workers for the same results."""

AGAIN = "Run again: what is finished is kept."


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


def run_on_cluster(
    function: Callable[..., Any], tasks: Sequence[tuple[Any, ...]], address: str, shared: Any
) -> Iterator[tuple[int, Any]]:
    """Yield the place of each task and its result, as `run_tasks` does.

    What the tasks share is a task of its own, so that it is made again where the worker that held
    it has died.
    """
    with _connect(address) as client:
        from distributed import as_completed

        # Dask asks in its own words: a worker without labelsure ends when it gets a task of ours.
        versions = client.get_versions(packages=["labelsure"])
        ours = {name: versions["client"]["packages"][name] for name in ("labelsure", "numpy")}
        for worker, found in versions["workers"].items():
            _compare_versions(ours, found["packages"], f"The worker {worker!r}")
        settings = {"retries": RETRIES, "pure": False}
        first = () if shared is None else (client.submit(_same, shared, **settings),)
        place_of = {
            client.submit(call_task, read_versions(), function, *first, *task, **settings): place
            for place, task in enumerate(tasks)
        }
        waiting: Any = as_completed(place_of, loop=client.loop)  # type: ignore[no-untyped-call]
        while place_of:
            future = next(waiting, None)
            if future is None or future.status in ("cancelled", "lost"):
                raise _scheduler_gone(address)
            yield place_of.pop(future), _result(future, address)


def _scheduler_gone(address: str) -> InputError:
    return InputError(
        f"The scheduler {address!r} must stay until all tasks are finished, it went away or was "
        f"restarted. {AGAIN}"
    )


def _same(shared: Any) -> Any:
    return shared


class RaisedInTask(Exception):
    """What a task raised, as opposed to what kept it from beginning."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error


def call_task(expected: dict[str, str], function: Callable[..., Any], *task: Any) -> Any:
    """Call a function in a worker, also one that joined later, if it has the same packages."""
    try:
        _compare_versions(expected, read_versions(), "A worker")
        return function(*task)
    except Exception as error:
        raise RaisedInTask(error) from error


@cache
def read_versions() -> dict[str, str]:
    """Return the versions of the packages on which results depend."""
    return {package: version(package) for package in PACKAGES}


def _compare_versions(expected: dict[str, str], found: dict[str, str], who: str) -> None:
    for package, wanted in expected.items():
        if found[package] != wanted:
            raise InputError(
                f"{who} must have {package} {wanted} as it is installed here, so that all workers "
                f"compute the same bits; it has {found[package] or 'none'}. Install it there, or "
                "stop that worker, and run again."
            )


def _result(future: Any, address: str) -> Any:
    """Return what came back; raise what the function raised on purpose."""
    from distributed import KilledWorker

    try:
        if future.status != "error":
            return future.result()
        error = future.exception()
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
    """Yield a client of a scheduler that has workers, or say in a sentence what is missing."""
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
            f"The scheduler {address!r} must have at least one worker, it has none for "
            f"{WORKER_SECONDS} seconds. Start some with `dask worker {address}`. {AGAIN}"
        ) from error
    finally:
        client.close()
