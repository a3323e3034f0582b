"""Models of accuracy, and what the flagship adds to the classifier that it wraps."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

import labelsure as ls
from benchmarks.measure import Row, seconds
from labelsure.estimation.score_table import ScoreTable

N_FIT, N_PREDICT = 50_000, 1_000_000


def pooled_table(n_samples: int) -> pd.DataFrame:
    """Return a score table."""
    rng = np.random.default_rng(0)
    dist = ls.IndependentLabels(rng.beta(0.4, 0.6, size=(n_samples, 6)))
    return ScoreTable.from_distribution(dist, dist.sample(1, random_state=1)[:, 0]).to_frame()


def fitting() -> Iterator[Row]:
    table = pooled_table(N_FIT)
    estimator = ls.AccuracyEstimator("jaccard", "mix")
    taken = seconds(lambda: estimator.fit(table), repeats=1)
    yield Row(f"fit of mix, {N_FIT:,} instances, with 5 folds", taken, "s", 60, 15)


def predicting() -> Iterator[Row]:
    table = pooled_table(N_FIT)
    million = pd.concat([table] * (N_PREDICT // N_FIT), ignore_index=True)
    mix = ls.AccuracyEstimator("jaccard", "mix").fit(table)
    full = ls.AccuracyEstimator("jaccard", "full").fit(table)
    for name, estimator in {"mix": mix, "full": full}.items():
        taken = seconds(lambda e=estimator: e.predict(million), repeats=3)
        yield Row(f"predict of {N_PREDICT:,} instances, {name}", taken, "s", 1)


def flagship() -> Iterator[Row]:
    """Ratios to the classifier alone, and one row as a service has it."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 6))
    Y = (X[:, :3] + 0.5 * rng.normal(size=(900, 3)) > 0).astype(int)
    alone = ls.BinaryRelevance(random_state=0)
    aware = ls.AccuracyAwareClassifier(alone, "f1", random_state=0)
    plain = seconds(lambda: alone.fit(X[:300], Y[:300]), repeats=5)
    taken = seconds(lambda: aware.fit(X[:300], Y[:300]), repeats=5)
    yield Row("fit of 300 rows, 3 labels, relative to the classifier", taken / plain, "x", 15)
    model = ls.AccuracyAwareClassifier(None, "f1", 0.8, random_state=0).fit(X[:400], Y[:400])
    one_row = seconds(lambda: model.assess(X[:1]).to_frame(), repeats=50)
    yield Row("one row of 3 labels, ten chains, to a table", 1000 * one_row, "ms", 4, 2)
    ignored = seconds(lambda: model.estimate(X[400:], shift="ignore"), repeats=5)
    tested = seconds(lambda: model.estimate(X[400:]), repeats=5)
    yield Row("estimate of 500 rows with the shift test, relative", tested / ignored, "x", 8)


BENCHMARKS = {
    "accuracy_fitting": fitting,
    "accuracy_predicting": predicting,
    "flagship": flagship,
}
