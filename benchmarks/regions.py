"""Regions: certain and possible labels beside `confidence`, and of Enron's 53 labels."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import labelsure as ls
from benchmarks.chains import fitted_mixture
from benchmarks.measure import Row, core_seconds_in_turn, one_thread

N_LABELLED, N_NEW = 50, 50


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
        dist, Y = fitted_mixture("enron", C, N_LABELLED + N_NEW)
        region = ls.LabelsetRegion(coverage=0.9).fit(dist[:N_LABELLED], Y[:N_LABELLED])
        new = dist[N_LABELLED:]
        taken = core_seconds_in_turn([lambda r=region, new=new: r.predict(new)], 3)[0]
        what = f"certain and possible labels, Enron's 53, C={C:g}, coverage 0.9, an instance"
        yield Row(what, 1000 * taken / N_NEW, "ms")


BENCHMARKS = {"independent_regions": independent_regions, "enron_regions": enron_regions}
