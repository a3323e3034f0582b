"""Run a kernel over the rows of a batch on all cores."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from labelsure._limits import MAX_THREADS
from labelsure.errors import InputError

T = TypeVar("T")
Array = NDArray[Any]

THREADS_VARIABLE = "LABELSURE_NUM_THREADS"
BLOCKS_PER_THREAD = 4  # uneven rows even out, and a block is still long

_here = threading.local()


def n_threads() -> int:
    """Return how many threads kernels use: LABELSURE_NUM_THREADS, or the cores of this process.

    1 in a thread that itself works for `map_rows`: the cores are busy with its siblings.
    """
    if getattr(_here, "is_worker", False):
        return 1
    setting = os.environ.get(THREADS_VARIABLE)
    if setting:
        return _read_threads(setting)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


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
        How many rows there are.
    *inputs
        What it reads: numbers, arrays, tuples of arrays.
    into
        The arrays that it writes.
    """
    arguments = (*map(as_input, inputs), *into)
    map_rows(lambda start, stop: kernel(start, stop, *arguments), n_rows)


def as_input(value: Any) -> Any:
    """Return what a kernel reads, its arrays in one piece and read-only.

    Numba compiles anew for arrays that have gaps, and for those that may not be written to. So all
    that a kernel only reads is given to it in one form, whatever form its owner has.
    """
    if isinstance(value, tuple):
        return tuple(map(as_input, value))
    if not isinstance(value, np.ndarray):
        return value
    view = np.ascontiguousarray(value).view()
    view.flags.writeable = False
    return view


def map_rows(function: Callable[[int, int], T], n_rows: int) -> list[T]:
    """Return ``function(start, stop)`` of blocks that together cover all rows, in their order."""
    threads = min(n_threads(), n_rows)
    if threads <= 1:
        return [function(0, n_rows)]
    # A pool for each call: a kept one would not survive a fork.
    with ThreadPoolExecutor(threads, initializer=_become_worker) as pool:
        return list(pool.map(lambda block: function(*block), _blocks(n_rows, threads)))


def _become_worker() -> None:
    _here.is_worker = True


def _blocks(n_rows: int, threads: int) -> list[tuple[int, int]]:
    n_blocks = min(n_rows, threads * BLOCKS_PER_THREAD)
    return list(pairwise(n_rows * b // n_blocks for b in range(n_blocks + 1)))


def one_blas_thread() -> Any:
    """Return a context in which BLAS has one thread.

    Sums then do not depend on how many jobs share the cores. For base learners and models of the
    size met here one thread is also several times faster than two.
    """
    return _blas_pools().limit(limits=1, user_api="blas")


@cache
def _blas_pools() -> Any:
    """Find the pools once for each process: looking for them takes as long as a small fit."""
    from threadpoolctl import ThreadpoolController  # only fitting needs it

    return ThreadpoolController()
