"""Chains beyond dense arrays: certified and sampled answers on real data, one core.

Slashdot and Enron are read from the folder in LABELSURE_DATA; without it their rows are skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

import labelsure as ls
from benchmarks.chains import one_thread
from benchmarks.measure import Row, core_seconds, seconds
from benchmarks.trellis import random_trellis
from labelsure.distributions.candidates import PAPER_CANDIDATES

N_INSTANCES = 100
OTHERS = tuple(name for name in PAPER_CANDIDATES if name != "SE")


@cache
def ensemble_of(name: str, C: float) -> ls.distributions.ChainMixture | None:
    """Return the distributions of some test instances; None where the data are not there."""
    try:
        data = ls.load_dataset(name, source="file")
    except ls.LabelsureError as error:
        print(f"Skipped, no data: {error}")
        return None
    train, test = ls.split_dataset(data, 0.4, random_state=0)
    # Sparse features stay sparse: the intercepts, which are not penalised, make up for the means.
    scaler = StandardScaler(with_mean=False).fit(train.X)
    model = ls.EnsembleOfClassifierChains(
        LogisticRegression(C=C, max_iter=1000), n_chains=10, random_state=0
    )
    model.fit(scaler.transform(train.X), train.Y)
    return model.predict_distribution(scaler.transform(test.X[:N_INSTANCES]))


def milliseconds(
    ask: Callable[[ls.distributions.ChainMixture], object],
    dist: ls.distributions.ChainMixture,
    copies: int = 1,
) -> np.ndarray:
    """Return how long a core is busy with each instance, as one of a batch of equal ones."""
    batches = [dist[np.full(copies, i)] for i in range(len(dist))]
    return np.array([1000 * core_seconds(lambda b=b: ask(b)) / copies for b in batches])


def widths(dist: ls.distributions.ChainMixture, **settings: object) -> pd.DataFrame:
    """Return the width of each candidate's interval for each instance."""
    frame = ls.confidence(dist.with_engine(**settings), bounds=True)
    return pd.DataFrame(
        {name: frame[f"{name}_high"] - frame[f"{name}_low"] for name in PAPER_CANDIDATES}
    )


def median_and_90(
    what: str,
    values: np.ndarray,
    unit: str,
    needed: float,
    goal: float | None = None,
    larger_is_better: bool = False,
) -> Iterator[Row]:
    percent = 10 if larger_is_better else 90  # the slow end
    yield Row(f"{what}, median", float(np.median(values)), unit, needed, goal, larger_is_better)
    bad = float(np.percentile(values, percent))
    yield Row(f"{what}, 90th percentile", bad, unit, needed, goal, larger_is_better)


def slashdot() -> Iterator[Row]:
    dist = ensemble_of("slashdot", 1.0)
    if dist is None:
        return
    chosen = {"engine": "certified", "tolerance": 1e-3}
    dense = core_seconds(lambda: dist[0].with_engine(engine="dense").profile(), 3)
    taken = milliseconds(lambda some: some.with_engine(**chosen).profile(), dist, copies=20)
    what = f"Slashdot, {dist.n_labels} labels, C=1"
    yield from median_and_90(
        f"{what}: dense / certified", 1000 * dense / taken, "x", 100, 300, True
    )
    widest = widths(dist, **chosen).max(axis=1).to_numpy()
    yield from median_and_90(f"{what}: widest certified interval", widest, "", 1e-3)


def enron() -> Iterator[Row]:
    dist = ensemble_of("enron", 1.0)
    if dist is None:
        return
    chosen = {"engine": "certified", "tolerance": 0.01}
    what = f"Enron, {dist.n_labels} labels, C=1, certified"
    taken = milliseconds(lambda some: some.with_engine(**chosen).profile(), dist, copies=20)
    yield from median_and_90(what, taken, "ms", 20, 5)
    wide = widths(dist, **chosen)
    yield from median_and_90(f"{what}: interval of SE", wide["SE"].to_numpy(), "", 0.01)
    others = wide[[*OTHERS]].max(axis=1).to_numpy()
    yield from median_and_90(f"{what}: widest other interval", others, "", 1e-3)


def enron_flat() -> Iterator[Row]:
    dist = ensemble_of("enron", 0.01)
    if dist is None:
        return
    dist = dist[:30]
    for engine, needed in (("certified", 0.05), ("auto", 0.02)):
        chosen = {"engine": engine, "tolerance": 0.01, "budget": 20_000}
        what = f"Enron, {dist.n_labels} labels, C=0.01 (flat), {engine}, budget 20,000"
        taken = milliseconds(lambda one, chosen=chosen: one.with_engine(**chosen).profile(), dist)
        yield from median_and_90(what, taken, "ms", 1000)
        wide = widths(dist, **chosen)["SE"].to_numpy()
        yield from median_and_90(f"{what}: interval of SE", wide, "", needed)


def exact_kinds() -> Iterator[Row]:
    rng = np.random.default_rng(0)
    independent = ls.IndependentLabels(rng.random((100, 5000)))
    trellis = random_trellis(2, 400, 12)
    for what, dist, needed in (
        ("binary relevance of 5,000 labels", independent, 1),
        ("trellis of 400 labels, width 12", trellis, 50),
    ):
        assert set(dist.profile().method) == {"exact"}
        taken = 1000 * seconds(dist.profile) / len(dist)
        yield Row(f"{what}, exact profile, an instance", taken, "ms", needed)


BENCHMARKS = {
    "slashdot": one_thread(slashdot),
    "enron": one_thread(enron),
    "enron_flat": one_thread(enron_flat),
    "exact_kinds": one_thread(exact_kinds),
}
