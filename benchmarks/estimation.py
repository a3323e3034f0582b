"""Models of accuracy: fitting with cross-validation, and predicting from profiles."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

import labelsure as ls
from benchmarks.measure import Row, seconds
from labelsure.score_table import ScoreTable

N_FIT, N_PREDICT = 50_000, 1_000_000


def pooled_table(n_samples: int) -> pd.DataFrame:
    """Return a score table like the study's: six data sets, three classifiers."""
    rng = np.random.default_rng(0)
    dist = ls.IndependentLabels(rng.beta(0.4, 0.6, size=(n_samples, 6)))
    table = ScoreTable.from_distribution(dist, dist.sample(1, random_state=1)[:, 0]).to_frame()
    return table.assign(
        dataset=rng.integers(6, size=n_samples).astype(str),
        classifier=rng.integers(3, size=n_samples).astype(str),
    )


def fitting() -> Iterator[Row]:
    table = pooled_table(N_FIT)
    groups = {"slope_groups": "dataset", "offset_groups": "classifier"}
    cases = {
        "one slope": (ls.AccuracyEstimator("jaccard", "mix"), {}),
        "the paper's groups": (ls.AccuracyEstimator("jaccard", "mix"), groups),
        "the paper's groups and multinomial": (
            ls.AccuracyEstimator("jaccard", "mix", response="rates"),
            groups,
        ),
    }
    for name, (estimator, given) in cases.items():
        taken = seconds(lambda e=estimator, g=given: e.fit(table, **g), repeats=1)
        what = f"fit of mix, {N_FIT:,} instances, 10 folds, 20 penalties, {name}"
        yield Row(what, taken, "s", 60, 15)


def predicting() -> Iterator[Row]:
    table = pooled_table(N_FIT)
    million = pd.concat([table] * (N_PREDICT // N_FIT), ignore_index=True)
    profile = ls.Profile(
        *(million[name].to_numpy() for name in ("log_top", "log_runner_up", "entropy")),
        million["log_collision"].to_numpy(),
        6,
    )
    mix = ls.AccuracyEstimator("jaccard", "mix", penalty=1e-3).fit(table)
    full = ls.AccuracyEstimator("jaccard", "full", penalty=1e-3).fit(table)
    cases = {"mix, a Profile": (mix, profile), "full, a table": (full, million)}
    for name, (estimator, given) in cases.items():
        taken = seconds(lambda e=estimator, g=given: e.predict(g), repeats=3)
        yield Row(f"predict of {N_PREDICT:,} instances, {name}", taken, "s", 1)


BENCHMARKS = {"fitting": fitting, "predicting": predicting}
