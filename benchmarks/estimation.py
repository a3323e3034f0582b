"""Models of accuracy, and what the flagship adds to the classifier that it wraps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import KFold

import labelsure as ls
from benchmarks.measure import Row, core_seconds_in_turn, one_thread, seconds
from labelsure.estimation.score_table import ScoreTable

N_FIT, N_PREDICT = 50_000, 1_000_000


def pooled_table(n_samples: int) -> pd.DataFrame:
    """Return a score table."""
    rng = np.random.default_rng(0)
    dist = ls.IndependentLabels(rng.beta(0.4, 0.6, size=(n_samples, 6)))
    return ScoreTable.from_distribution(dist, dist.sample(1, random_state=1)[:, 0]).to_frame()


def models_of_accuracy() -> Iterator[Row]:
    table = pooled_table(N_FIT)
    estimator = ls.AccuracyEstimator("jaccard")
    taken = seconds(lambda: estimator.fit(table), repeats=1)
    yield Row(f"fit of the accuracy estimator, {N_FIT:,} instances", taken, "s", 15)
    million = pd.concat([table] * (N_PREDICT // N_FIT), ignore_index=True)
    taken = seconds(lambda: estimator.predict(million), repeats=3)
    yield Row(f"estimated accuracy of {N_PREDICT:,} instances", taken, "s", 1)


def linear_problem(n_samples: int, n_labels: int, n_features: int = 20) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_samples, n_features))
    signal = X @ rng.normal(size=(n_features, n_labels)) / np.sqrt(n_features)
    return X, (signal + 0.7 * rng.normal(size=signal.shape) > 0.3).astype(int)


def flagship() -> Iterator[Row]:
    """One row as a service has it, estimates of a batch, and `fit` beside its classifiers."""
    for n_labels in (3, 6, 10, 14):
        X, Y = linear_problem(1300, n_labels)
        model = ls.AccuracyAwareClassifier(None, "f1", 0.8, random_state=0).fit(X[:800], Y[:800])
        if n_labels == 3:
            one = core_seconds_in_turn([lambda m=model, X=X: m.assess(X[:1]).to_frame()], 200)[0]
            what = f"one row of {n_labels} labels, ten chains: assess and to_frame"
            yield Row(what, 1000 * one, "ms", 2)
            continue
        taken = core_seconds_in_turn([lambda m=model, X=X: m.estimate(X[800:])], 10)[0]
        what = f"estimate of 500 rows of {n_labels} labels, ten chains, with the shift test"
        yield Row(what, 1000 * taken, "ms", 50)
    X, Y = linear_problem(300, 3, 6)
    learner = ls.BinaryRelevance(random_state=0)
    aware = ls.AccuracyAwareClassifier(learner, "f1", random_state=0)
    taken, alone = core_seconds_in_turn([lambda: aware.fit(X, Y), lambda: learner.fit(X, Y)])
    what = "fit, 300 rows, 3 labels, binary relevance / the classifier alone"
    yield Row(what, taken / alone, "x", 15)
    X, Y = linear_problem(1500, 14)
    aware = ls.AccuracyAwareClassifier(None, "f1", cv=5, random_state=0)

    def fit_classifiers() -> None:
        folds = [rows for rows, _ in KFold(5, shuffle=True, random_state=0).split(X)]
        for rows in (*folds, np.arange(len(X))):
            ls.EnsembleOfClassifierChains(random_state=0).fit(X[rows], Y[rows])

    taken, alone = core_seconds_in_turn([lambda: aware.fit(X, Y), fit_classifiers], 2)
    yield Row("fit, cv=5, 1,500 rows, 14 labels, ten chains", taken, "s")
    what = "fit, cv=5, 1,500 rows, 14 labels, ten chains / its six classifiers alone"
    yield Row(what, taken / alone, "x", 1.3)


BENCHMARKS = {"models_of_accuracy": models_of_accuracy, "flagship": one_thread(flagship)}
