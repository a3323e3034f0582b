"""Compiling kernels: when they are first called, cached on disk, announced on stderr.

Numba caches compiled kernels beside the package or, where that folder is not writable, in the
user's cache folder; NUMBA_CACHE_DIR names another. Where none is writable, as in a container with
an unknown user, kernels are compiled in every run. Numba compares the kernel's own file only, and
names cached files after the kernel's qualified name. This name therefore ends with a digest of that
file and of all files of the package that it imports: kernels may use helpers and constants of other
files. Numba replaces cached files atomically, so processes that start together need no lock. It is
imported with the first call of a kernel: importing labelsure does not wait for it.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
import threading
import time
from collections.abc import Callable
from functools import cache, cached_property, update_wrapper
from multiprocessing import parent_process
from pathlib import Path
from typing import Any

from labelsure._runtime.progress import QUIET_VARIABLE

MESSAGE = "labelsure: Compiling kernels (first run only, then cached)."
NOT_CACHED = (
    "labelsure: Compiling kernels in every run: no folder for their cache is writable. Set "
    "NUMBA_CACHE_DIR to one that is."
)
PACKAGE = __name__.partition(".")[0] + "."
ANNOUNCED_FOR = 600  # seconds; longer than all kernels take to compile

_INNER: dict[str, Any] = {
    "nogil": True,  # other threads run meanwhile
    "error_model": "numpy",  # a division needs no check for zero
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
}
_KERNEL: dict[str, Any] = {**_INNER, "cache": True, "no_cpython_wrapper": False}
# The compiler may reorder sums (once, when it compiles) and fuse multiply-adds, which lets loops
# vectorise. NaN and infinity keep their meaning. A loop that also writes to an array has a second
# form, which sums one by one and is taken where that array lies close to another: its sums would
# depend on where the system puts arrays. So loops sum or write, never both (a test looks).
_SUMS: dict[str, Any] = {"fastmath": {"reassoc", "contract", "nsz"}}


class Notice:
    """Numba event listener that announces, once for all processes, that kernels are compiled."""

    def __init__(self) -> None:
        self._was_given = False

    def notify(self, event: Any) -> None:
        """Announce the compilation; numba sends no event for kernels that are in the cache."""
        compiled = event.data["dispatcher"]
        if self._was_given or not compiled.py_func.__module__.startswith(PACKAGE):
            return
        self._was_given = True
        if os.environ.get(QUIET_VARIABLE):
            return
        folder = compiled.stats.cache_path
        if folder is None:
            if parent_process() is None:  # a worker's parent says so, too
                print(NOT_CACHED, file=sys.stderr, flush=True)
        elif _is_first_process(folder):
            print(MESSAGE, file=sys.stderr, flush=True)


def _is_first_process(folder: str) -> bool:
    """Whether this process is the first to create the marker file, or the last marker is old."""
    mark = Path(folder) / ".announced"
    try:
        if mark.exists() and time.time() - mark.stat().st_mtime > ANNOUNCED_FOR:
            mark.unlink()
        mark.touch(exist_ok=False)
    except FileExistsError:
        return False
    except OSError:  # not writable, or another process was faster with an old mark
        return True
    return True


class Compiled:
    """A function that numba compiles when it is first called.

    Numba resolves calls through the names of a module, so dispatchers replace all `Compiled`
    objects of the module at once.
    """

    def __init__(self, function: Callable[..., Any], **options: Any) -> None:
        update_wrapper(self, function)
        self._function, self._options = function, options
        self._dispatcher: Any = None

    def __call__(self, *arguments: Any) -> Any:
        return self._ready(*arguments)

    @cached_property
    def _ready(self) -> Any:
        with _LOADING:
            return self._load()

    def _load(self) -> Any:
        if self._dispatcher is None:
            _announce_compiling()
            function = self._function
            if self._options.get("cache"):
                digest = _digest_sources(function.__module__)
                function.__qualname__ = f"{function.__name__}-{digest}"
            self._dispatcher = _compile_lazily(function, self._options)
            names = function.__globals__
            for name, member in list(names.items()):
                if isinstance(member, Compiled):
                    names[name] = member._load()
        return self._dispatcher


def _compile_lazily(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    """Dispatcher of numba, without a cache where no folder for it is writable."""
    from numba import njit

    try:
        return njit(**options)(function)
    except RuntimeError:  # "no locator available": neither beside the module nor at home
        return njit(**{**options, "cache": False})(function)


_LOADING = threading.RLock()


def inner(function: Callable[..., object]) -> Any:
    """Compile a function that only kernels call.

    It is stored with the kernels that call it, and Python cannot call it: both save time when they
    are compiled. A fast kernel's sums are reordered in it as well.
    """
    return Compiled(function, **_INNER)


def fast_inner(function: Callable[..., object]) -> Any:
    """Like `inner`, with fastmath {reassoc, contract, nsz}, for functions with sums."""
    return Compiled(function, **_INNER, **_SUMS)


def fast_inlined(function: Callable[..., object]) -> Any:
    """Inline a function with sums into each fast kernel that calls it.

    For short functions of many arrays, whose call would cost more than their work.
    """
    return Compiled(function, **_INNER, **_SUMS, inline="always")


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a kernel when it is first called, or load it from the cache."""
    return Compiled(function, **_KERNEL)


def fast_kernel(function: Callable[..., object]) -> Any:
    """Like `kernel`, with fastmath {reassoc, contract, nsz}."""
    return Compiled(function, **_KERNEL, **_SUMS)


@cache
def _announce_compiling() -> None:
    from numba.core import event

    event.Listener.register(Notice)
    event.register("numba:compile", Notice())


def _digest_sources(module: str) -> str:
    """Hex digest of the sources of a module and of all that it imports from its own package."""
    package = module.partition(".")[0] + "."
    sources: dict[str, str] = {}
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name not in sources:
            loader: Any = sys.modules[name].__loader__
            sources[name] = loader.get_source(name)
            imported = re.findall(r"^from (\S+) import", sources[name], re.MULTILINE)
            waiting += [other for other in imported if other.startswith(package)]
    return hashlib.sha256(repr(sorted(sources.items())).encode()).hexdigest()[:16]
