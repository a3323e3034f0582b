"""Regions: certain and possible labels beside `confidence`, and of Enron's 53 labels.

Enron is read from the folder in LABELSURE_DATA; without it its rows are skipped.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import labelsure as ls
from benchmarks.chains import one_thread
from benchmarks.engines import ensemble_of, milliseconds
from benchmarks.measure import Row, core_seconds_in_turn

N_LABELLED = 50


@one_thread
def independent_regions() -> Iterator[Row]:
    rng = np.random.default_rng(0)
    dist = ls.IndependentLabels(rng.beta(0.4, 1.0, size=(10_000, 14)))
    region = ls.LabelsetRegion(coverage=0.9).fit(dist[:500], dist[:500].sample(1, 0)[:, 0])
    peer, ours = core_seconds_in_turn([lambda: ls.confidence(dist), lambda: region.predict(dist)])
    what = "certain and possible labels, 10,000 instances of L=14 independent: ours / confidence"
    yield Row(what, ours / peer, "x", 5)


@one_thread
def enron_regions() -> Iterator[Row]:
    for C in (1.0, 0.01):
        dist = ensemble_of("enron", C)
        if dist is None:
            return
        _, test = ls.split_dataset(ls.load_dataset("enron", source="file"), 0.4, random_state=0)
        Y = np.asarray(test.Y)[: len(dist)]
        for coverage in (0.5, 0.9):
            region = ls.LabelsetRegion(coverage=coverage).fit(dist[:N_LABELLED], Y[:N_LABELLED])
            times = milliseconds(region.predict, dist[N_LABELLED:])
            what = f"certain and possible labels, Enron's 53, C={C:g}, coverage {coverage:g}, mean"
            yield Row(what, float(times.mean()), "ms", 50)


BENCHMARKS = {"independent_regions": independent_regions, "enron_regions": enron_regions}
