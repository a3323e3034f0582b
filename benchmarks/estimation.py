"""Models of accuracy: fitting, and predicting from profiles."""

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
    profile = ls.distributions.Profile(
        *(million[name].to_numpy() for name in ("log_top", "log_runner_up", "entropy")),
        million["log_collision"].to_numpy(),
        6,
    )
    mix = ls.AccuracyEstimator("jaccard", "mix").fit(table)
    full = ls.AccuracyEstimator("jaccard", "full").fit(table)
    cases = {"mix, a Profile": (mix, profile), "full, a table": (full, million)}
    for name, (estimator, given) in cases.items():
        taken = seconds(lambda e=estimator, g=given: e.predict(g), repeats=3)
        yield Row(f"predict of {N_PREDICT:,} instances, {name}", taken, "s", 1)


BENCHMARKS = {"accuracy_fitting": fitting, "accuracy_predicting": predicting}
