"""Answers that leave labels open: how long the best one of an instance takes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import labelsure as ls
from benchmarks.measure import Benchmark, Row, core_seconds

N_LABELS = 100
N_INSTANCES = 50


def partial_of_many_labels() -> Iterator[Row]:
    """100 independent labels, one core: exact, from all numbers of set and of open labels."""
    marginals = np.random.default_rng(0).beta(0.3, 2.0, size=(N_INSTANCES, N_LABELS))
    dist = ls.IndependentLabels(marginals)
    rows = [dist[i] for i in range(N_INSTANCES)]  # one at a time, so that one thread has all
    for metric, needed, goal in (("f1", 20, 5), ("jaccard", 20, 5)):
        taken = core_seconds(
            lambda metric=metric: [ls.decide(one, metric, open_cost=0.2) for one in rows]
        )
        yield Row(
            f"partial {metric}, {N_LABELS} labels, an instance",
            1000 * taken / N_INSTANCES,
            "ms",
            needed,
            goal,
        )


def partial_of_joints() -> Iterator[Row]:
    """14 labels that depend on each other, one core: the search with its certified gap."""
    P = np.random.default_rng(0).dirichlet(np.full(2**14, 0.01), size=10)
    rows = [ls.DenseDistribution(P[[i]]) for i in range(len(P))]
    taken = core_seconds(lambda: [ls.decide(one, "f1", open_cost=0.2) for one in rows])
    yield Row("partial f1, 14 dependent labels, an instance", 1000 * taken / 10, "ms", 200, 50)


BENCHMARKS: dict[str, Benchmark] = {
    "partial_of_many_labels": partial_of_many_labels,
    "partial_of_joints": partial_of_joints,
}
