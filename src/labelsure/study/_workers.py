"""Processes that compute cells for a run."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass
from functools import cache

SECONDS_BETWEEN_LOOKS = 1.0


@dataclass(frozen=True)
class WorkerSettings:
    """What a process that works for a run has to know.

    Parameters
    ----------
    owner
        The process of the run.
    threads
        How many threads kernels may use.
    """

    owner: int
    threads: int

    def apply(self) -> None:
        """Set up this process, once."""
        os.environ["LABELSURE_NUM_THREADS"] = str(self.threads)
        leave_with(self.owner)


@cache
def leave_with(owner: int) -> None:
    """End this process soon after its parent, which may be killed without a word.

    Parameters
    ----------
    owner
        The parent; nothing happens in the owner itself.
    """
    if os.getpid() != owner:
        threading.Thread(target=_watch, args=(owner,), daemon=True).start()


def _watch(owner: int) -> None:
    while os.getppid() == owner:
        time.sleep(SECONDS_BETWEEN_LOOKS)
    os._exit(1)
