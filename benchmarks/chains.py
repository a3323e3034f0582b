"""Ensembles of chains: all 2**L probabilities against merely writing so many numbers.

Also chains for other benchmarks: random ones, and some fitted to data in the folder LABELSURE_DATA.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

import labelsure as ls
from benchmarks.measure import Row, compete, one_thread, peak_bytes, seconds
from labelsure.metrics.registry import check_metrics

METRICS = ("exact", "hamming", "jaccard")


def random_mixture(
    n_samples: int, n_labels: int, n_chains: int = 10
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
        ]
    )


@cache
def fitted_mixture(
    name: str, C: float, n_rows: int, n_labels: int | None = None
) -> tuple[ls.distributions.ChainMixture, np.ndarray]:
    """Return distributions over the most frequent labels, and the truth, of some test instances."""
    train, test = ls.split_dataset(ls.load_dataset(name, source="file"), 0.4, random_state=0)
    Y = np.asarray(train.Y)
    kept = np.sort(np.argsort(-Y.sum(axis=0), kind="stable")[:n_labels])
    # Sparse features stay sparse: the intercepts, which are not penalised, make up for the means.
    scaler = StandardScaler(with_mean=False).fit(train.X)
    learner = LogisticRegression(C=C, max_iter=1000)
    model = ls.EnsembleOfClassifierChains(learner, n_chains=10, random_state=0)
    model.fit(scaler.transform(train.X), Y[:, kept])
    dist = model.predict_distribution(scaler.transform(test.X[:n_rows]))
    return dist, np.asarray(test.Y)[:n_rows, kept]


def ensemble() -> Iterator[Row]:
    for n_labels, aim in ((16, None), (20, 30)):
        arrays = np.zeros((10, 2**n_labels))
        dist = random_mixture(1, n_labels).with_engine(engine="dense")

        def fill(arrays: np.ndarray = arrays) -> None:
            for array in arrays:
                array.fill(1.0)

        written, ours = compete(fill, lambda dist=dist: dist._summary(check_metrics(METRICS), 1.0))
        what = f"summary of 10 chains, dense, L={n_labels}, one thread: ours / filling ten arrays"
        yield Row(what, ours / written, "x", aim, peer="hardware")


def throughput() -> Iterator[Row]:
    dist = random_mixture(2000, 14)
    taken = seconds(lambda: dist._summary(check_metrics(METRICS), 1.0), repeats=3)
    yield Row("summary of 10 chains, L=14, both cores", 2000 / taken, "/s", 3000, True)
    batches = [random_mixture(n, 14) for n in (500, 2000)]
    few, many = (
        peak_bytes(lambda dist=dist: dist._summary(check_metrics(METRICS), 1.0)) for dist in batches
    )
    what = "the same: memory at n=2000 / at n=500, results aside"
    results = 1500 * (14 + 8 * 8)
    yield Row(what, (many - results) / few, "x", 1.2)


BENCHMARKS = {"ensemble": one_thread(ensemble), "throughput": throughput}
