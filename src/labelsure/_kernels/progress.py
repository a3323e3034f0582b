"""How far a long computation is, for whoever wants to know."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from labelsure.errors import InputError

Watcher = Callable[[int, int], object]

_watcher: ContextVar[Watcher | None] = ContextVar("progress_watcher", default=None)


@contextmanager
def watch_progress(watcher: Watcher) -> Iterator[None]:
    """Have distributions of chains say how far they are, for every question asked within.

    Parameters
    ----------
    watcher
        Called with the number of instances that are finished and the number of all, each time that
        some are; by several threads, but not at the same time. What it raises ends the computation.

    Examples
    --------
    >>> import numpy as np
    >>> import labelsure as ls
    >>> chain = ls.LinearChain([1, 0], np.zeros((2, 2)), np.zeros((2, 2)))
    >>> with ls.watch_progress(lambda n_done, n_all: print(n_done, "of", n_all)):
    ...     marginals = ls.ChainMixture([chain]).marginals()
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


class Progress:
    """The instances of one question that are finished.

    Parameters
    ----------
    n_all
        How many there are. Whoever watches is looked up here, in the thread that asks.
    """

    def __init__(self, n_all: int) -> None:
        self._watcher = _watcher.get()
        self._n_all = n_all
        self._n_done = 0
        self._lock = threading.Lock()

    def add(self, n_more: int) -> None:
        """Say that some more instances are finished."""
        if self._watcher is None:
            return
        with self._lock:
            self._n_done += n_more
            self._watcher(self._n_done, self._n_all)
