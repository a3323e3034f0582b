"""Ensembles of chains: all 2**L probabilities against merely writing so many numbers."""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np

import labelsure as ls
from benchmarks.measure import Row, compete, core_seconds_in_turn, peak_bytes, seconds
from labelsure.metrics.registry import check_metrics

METRICS = ("exact", "hamming", "jaccard")


def random_mixture(
    n_samples: int, n_labels: int, n_chains: int = 10, weights: np.ndarray | None = None
) -> ls.distributions.ChainMixture:
    rng = np.random.default_rng(0)
    return ls.distributions.ChainMixture(
        [
            ls.distributions.LinearChain(
                rng.permutation(n_labels),
                rng.normal(-2, 1.5, size=(n_samples, n_labels)),
                0.5 * rng.normal(size=(n_labels, n_labels)),
            )
            for _ in range(n_chains)
        ],
        weights=weights,
    )


def ensemble() -> Iterator[Row]:
    for n_labels, needed, goal in ((20, 30, 18), (22, 12, 8)):
        arrays = np.zeros((10, 2**n_labels))
        dist = random_mixture(1, n_labels)

        def fill(arrays: np.ndarray = arrays) -> None:
            for array in arrays:
                array.fill(1.0)

        written, ours = compete(fill, lambda dist=dist: dist._summary(check_metrics(METRICS), 1.0))
        what = f"summary of 10 chains, L={n_labels}, one thread: ours / filling ten arrays"
        yield Row(what, ours / written, "x", needed, goal)


def throughput() -> Iterator[Row]:
    dist = random_mixture(2000, 14)
    taken = seconds(lambda: dist._summary(check_metrics(METRICS), 1.0), repeats=3)
    yield Row("summary of 10 chains, L=14, both cores", 2000 / taken, "/s", 3000, 6000, True)
    batches = [random_mixture(n, 14) for n in (500, 2000)]
    few, many = (
        peak_bytes(lambda dist=dist: dist._summary(check_metrics(METRICS), 1.0)) for dist in batches
    )
    what = "the same: memory at n=2000 / at n=500, results aside"
    results = 1500 * (14 + 8 * 8)
    yield Row(what, (many - results) / few, "x", 1.2)


def weighted() -> Iterator[Row]:
    """Measure what weights cost; equal ones take the way of none, and must cost nothing."""
    for n_samples, n_labels in ((200, 14), (1, 20), (8, 40)):
        # The same distribution, but for a billionth, by the way of weights for each instance.
        nearly = np.full((n_samples, 10), 0.1) + 1e-10 * np.linspace(-1, 1, 10)
        forms = (None, np.full(10, 0.1), nearly)
        dists = [random_mixture(n_samples, n_labels, weights=weights) for weights in forms]
        none, equal, other = core_seconds_in_turn(
            [lambda dist=dist: dist._summary(check_metrics(METRICS), 1.0) for dist in dists]
        )
        what = f"summary of 10 chains, L={n_labels}, one thread: "
        yield Row(what + "equal weights / none", equal / none, "x", 1.1)
        yield Row(what + "other weights / none", other / none, "x", 1.2)


def one_thread(benchmark):  # type: ignore[no-untyped-def]
    def limited() -> Iterator[Row]:
        os.environ["LABELSURE_NUM_THREADS"] = "1"
        try:
            yield from benchmark()
        finally:
            del os.environ["LABELSURE_NUM_THREADS"]

    return limited


BENCHMARKS = {
    "ensemble": one_thread(ensemble),
    "weighted": one_thread(weighted),
    "throughput": throughput,
}
