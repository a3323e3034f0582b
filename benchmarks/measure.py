"""Timing, and the rows that a run prints."""

from __future__ import annotations

import os
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import isnan

from threadpoolctl import threadpool_limits


@dataclass(frozen=True)
class Row:
    """One measurement, the aim that was set before it was made, and what it is compared with.

    Rows of a `series` are points of a line in a chart, at `x`.
    """

    what: str
    value: float
    unit: str
    aim: float | None = None
    larger_is_better: bool = False
    peer: str = ""
    series: str = ""
    x: float = 0.0

    @property
    def verdict(self) -> str:
        """Return "reached", "MISSED", "not measured", or nothing where there is no aim."""
        if isnan(self.value):
            return "not measured"
        if self.aim is None:
            return ""
        reaches = self.value >= self.aim if self.larger_is_better else self.value <= self.aim
        return "reached" if reaches else "MISSED"


Benchmark = Callable[[], Iterator[Row]]


def one_thread(benchmark: Benchmark) -> Benchmark:
    """Return the benchmark with kernels and BLAS on one thread: waiting threads take CPU time."""

    def limited() -> Iterator[Row]:
        os.environ["LABELSURE_NUM_THREADS"] = "1"
        try:
            with threadpool_limits(1):
                yield from benchmark()
        finally:
            del os.environ["LABELSURE_NUM_THREADS"]

    return limited


def seconds(call: Callable[[], object], repeats: int = 5) -> float:
    """Return the best of several runs, after one that compiles and warms up."""
    call()
    return min(_once(call) for _ in range(repeats))


def core_seconds(call: Callable[[], object], repeats: int = 2) -> float:
    """Return the least time that the calling thread had a core, whatever else the machine does."""
    call()
    return min(_once(call, time.thread_time) for _ in range(repeats))


def core_seconds_in_turn(calls: Sequence[Callable[[], object]], repeats: int = 5) -> list[float]:
    """Return the least time that this process had a core in each call, which take turns.

    So that a slow spell of the machine hits all of them. The threads of other libraries count.
    """
    for call in calls:
        call()
    times = [[_once(call, time.process_time) for call in calls] for _ in range(repeats)]
    return [min(column) for column in zip(*times, strict=True)]


def compete(
    first: Callable[[], object], second: Callable[[], object], repeats: int = 5
) -> tuple[float, float]:
    """Return the best times of two calls that take turns, so that noise hits both."""
    first()
    second()
    times = [(_once_after_pause(first), _once_after_pause(second)) for _ in range(repeats)]
    return min(t for t, _ in times), min(t for _, t in times)


def peak_bytes(call: Callable[[], object]) -> int:
    """Return the most memory that arrays made during the call took together."""
    call()
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def _once_after_pause(call: Callable[[], object]) -> float:
    """Time one run after a pause: BLAS threads go on spinning for a while after a product."""
    time.sleep(0.1)
    return _once(call)


def _once(call: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    start = clock()
    call()
    return clock() - start
