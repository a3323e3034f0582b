"""Kernels over blocks of rows in threads; limits of threads of BLAS and joblib; progress."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

from labelsure._runtime.limits import MAX_THREADS
from labelsure._runtime.typing import Array
from labelsure.errors import InputError

T = TypeVar("T")

THREADS_VARIABLE = "LABELSURE_NUM_THREADS"
BLOCKS_PER_THREAD = 4  # balances uneven rows, and a block is still long
MIN_SERIAL_SECONDS = 1e-3
"""Minimum serial time before threads are used: a pool of two takes 0.2 to 0.5 ms."""

_here = threading.local()


def n_threads() -> int:
    """Number of threads of kernels: LABELSURE_NUM_THREADS, or the available cores.

    Affinity and a container's CPU quota, rounded up, limit the cores. 1 in a thread that itself
    works for `map_rows`: the cores are busy with its siblings.
    """
    if getattr(_here, "is_worker", False):
        return 1
    setting = os.environ.get(THREADS_VARIABLE)
    if setting:
        return _read_threads(setting)
    return _n_available_cores()


@cache
def _n_available_cores() -> int:
    from joblib import cpu_count

    return int(cpu_count())


def _read_threads(setting: str) -> int:
    n = int(setting) if setting.isascii() and setting.isdigit() and len(setting) < 10 else 0
    if not 1 <= n <= MAX_THREADS:
        raise InputError(
            f"The environment variable {THREADS_VARIABLE} must be a whole number from 1 to "
            f"{MAX_THREADS}, got {setting!r}. Unset it to use all cores."
        )
    return n


def for_rows(kernel: Callable[..., None], n_rows: int, *inputs: Any, into: Sequence[Array]) -> None:
    """Call ``kernel(start, stop, *inputs, *into)`` on blocks that together cover all rows.

    Parameters
    ----------
    kernel
        It must release the GIL to gain anything from threads.
    n_rows
        Number of rows.
    *inputs
        Numbers, arrays or tuples of arrays, which the kernel only reads.
    into
        Arrays that the kernel writes.
    """
    arguments = (*map(as_input, inputs), *into)
    map_rows(lambda start, stop: kernel(start, stop, *arguments), n_rows)


def as_input(value: object) -> Any:
    """Input of a kernel: arrays, also those in tuples, as contiguous read-only views.

    Numba compiles a specialisation for each layout and mutability. One form for all inputs means
    one specialisation.
    """
    if isinstance(value, tuple):
        return tuple(map(as_input, value))
    if not isinstance(value, np.ndarray):
        return value
    view = np.ascontiguousarray(value).view()
    view.flags.writeable = False
    return view


def map_rows(function: Callable[[int, int], T], n_rows: int) -> list[T]:
    """Results of ``function(start, stop)`` on blocks that together cover all rows, in order.

    The calling thread works on blocks that grow by a factor of 4. Threads start if rows are left
    after a quarter of `MIN_SERIAL_SECONDS`, which the next block would exceed.
    """
    threads = min(n_threads(), n_rows)
    if threads <= 1:
        return [function(0, n_rows)]
    results, start, step = [], 0, 1
    begun = time.perf_counter()
    with _as_worker():
        while start < n_rows and time.perf_counter() - begun < MIN_SERIAL_SECONDS / 4:
            stop = min(start + step, n_rows)
            results.append(function(start, stop))
            start, step = stop, 4 * step
    if start < n_rows:
        # A pool for each call: a kept one would not survive a fork.
        with ThreadPoolExecutor(threads, initializer=_become_worker) as pool:
            results += pool.map(lambda block: function(*block), _blocks(start, n_rows, threads))
    return results


@contextmanager
def _as_worker() -> Iterator[None]:
    """`n_threads` is 1 in this thread within."""
    before = getattr(_here, "is_worker", False)
    _here.is_worker = True
    try:
        yield
    finally:
        _here.is_worker = before


def _become_worker() -> None:
    _here.is_worker = True


def _blocks(start: int, stop: int, threads: int) -> list[tuple[int, int]]:
    n_blocks = min(stop - start, threads * BLOCKS_PER_THREAD)
    return list(pairwise(start + (stop - start) * b // n_blocks for b in range(n_blocks + 1)))


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep BLAS to one thread within; several threads may be within at a time.

    Sums then do not depend on how many jobs share the cores. For base learners and models of the
    size met here one thread is also several times faster than two.
    """
    with _blas.lock:
        if _blas.n_inside == 0:
            _allow_blas_limit()
            _blas.limit = _blas_pools().limit(limits=1, user_api="blas")
        _blas.n_inside += 1
    try:
        yield
    finally:
        with _blas.lock:
            _blas.n_inside -= 1
            if _blas.n_inside == 0:
                _allow_blas_limit()
                _blas.limit.restore_original_limits()
                _allow_blas_limit()


class _BlasUse:
    """Reference count of `one_blas_thread` in this process, whose threads share the limit."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.n_inside = 0
        self.limit: Any = None


_blas = _BlasUse()


def _allow_blas_limit() -> None:
    """Clear threadpoolctl's controlling thread, so that any thread may set the limit.

    Newer versions silently ignore limits of all threads but the first that set one.
    """
    from threadpoolctl import OpenBLASController

    if hasattr(OpenBLASController, "clear_controlling_thread"):
        OpenBLASController.clear_controlling_thread(force=True)


@contextmanager
def one_thread() -> Iterator[None]:
    """Keep kernels, BLAS and joblib to the calling thread: one unit of work, on one core.

    Results within are the same to the bit on machines with any number of cores.
    """
    from joblib import parallel_config

    # In several threads, sums over trees come in any order.
    with _as_worker(), one_blas_thread(), parallel_config(backend="sequential"):
        yield


@cache
def _blas_pools() -> Any:
    """Controller of BLAS thread pools, cached: finding them takes as long as a small fit."""
    from threadpoolctl import ThreadpoolController  # only fitting needs it

    return ThreadpoolController()


Watcher = Callable[[int, int], object]

_watcher: ContextVar[Watcher | None] = ContextVar("progress_watcher", default=None)


@contextmanager
def watch_progress(watcher: Watcher) -> Iterator[None]:
    """Report the progress of distributions of chains for every computation within.

    Parameters
    ----------
    watcher
        Called with the number of instances that are finished and the number of all, each time that
        some are; by several threads, but not at the same time. What it raises ends the computation.

    Examples
    --------
    >>> import numpy as np
    >>> import labelsure as ls
    >>> chain = ls.distributions.LinearChain([1, 0], np.zeros((2, 2)), np.zeros((2, 2)))
    >>> with ls.distributions.watch_progress(lambda n_done, n_all: print(n_done, "of", n_all)):
    ...     marginals = ls.distributions.ChainMixture([chain]).marginals()
    2 of 2
    """
    if not callable(watcher):
        raise InputError(
            "`watcher` must be a function of two numbers, the instances that are finished and all "
            f"of them, got {watcher!r}."
        )
    token = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(token)


def is_watched() -> bool:
    """Whether this context is within `watch_progress`."""
    return _watcher.get() is not None


class Progress:
    """Counter of finished instances of one computation, reported to the watcher.

    Parameters
    ----------
    n_all
        Number of instances. The watcher is that of the thread that constructs the counter.
    """

    def __init__(self, n_all: int) -> None:
        self._watcher = _watcher.get()
        self._n_all = n_all
        self._n_done = 0
        self._lock = threading.Lock()

    def add(self, n_more: int) -> None:
        if self._watcher is None:
            return
        with self._lock:
            self._n_done += n_more
            self._watcher(self._n_done, self._n_all)
