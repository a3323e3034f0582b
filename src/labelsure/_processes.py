"""Worker processes that leave with the process they work for, however it ends."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

SECONDS_BETWEEN_LOOKS = 0.2


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
