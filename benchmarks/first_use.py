"""The first use: what `labelsure demo` takes when nothing is compiled yet, and when all is.

CPU seconds of the whole process, imports included; other processes on the machine add to them.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from tempfile import TemporaryDirectory

from benchmarks.measure import Row

N_WARM = 3


def _cpu_seconds(command: list[str], cache: str) -> float:
    """Return the processor time of a command whose compiled kernels are kept in `cache`."""
    before = os.times()
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache, "LABELSURE_QUIET": "1"}
    # As on other machines: with this set, Python compiles its own modules again in each process.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    subprocess.run(
        [sys.executable, *command], env=environment, stdout=subprocess.DEVNULL, check=True
    )
    after = os.times()
    return (after.children_user - before.children_user) + (
        after.children_system - before.children_system
    )


def demo() -> Iterator[Row]:
    """Measure the demo with a folder of its own for what is compiled."""
    with TemporaryDirectory() as cache:
        command = ["-m", "labelsure", "demo"]
        yield Row("labelsure demo, nothing compiled yet", _cpu_seconds(command, cache), "s", 15)
        warm = min(_cpu_seconds(command, cache) for _ in range(N_WARM))
        yield Row("labelsure demo, all compiled", warm, "s", 5)


BENCHMARKS = {"demo": demo}
