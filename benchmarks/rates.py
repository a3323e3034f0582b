"""Rows a second against the number of labels, for each classifier: one core, without files."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
from sklearn.linear_model import LogisticRegression

import labelsure as ls
from benchmarks.measure import Row, core_seconds, one_thread

LABELS = (6, 14, 22, 53, 174)
N_TRAIN, N_FEATURES, N_NEW = 400, 20, 2048
SECONDS = 0.4
"""About how long the rows that are timed take."""


def rates() -> Iterator[Row]:
    """Predict distributions and assess them.

    Without the fitted model of accuracy, whose prediction is a product of two small matrices: to
    fit it would take hundreds of instances, each of them tens of milliseconds with many labels.
    """
    learner = LogisticRegression(solver="newton-cholesky")
    for make in (
        ls.BinaryRelevance,
        ls.classifiers.ClassifierTrellis,
        ls.ProbabilisticClassifierChain,
        ls.EnsembleOfClassifierChains,
    ):
        for n_labels in LABELS:
            rng = np.random.default_rng(0)
            X = rng.normal(size=(N_TRAIN + N_NEW, N_FEATURES))
            Y = (X[:N_TRAIN] @ rng.normal(size=(N_FEATURES, n_labels)) > 6).astype(int)
            Y[0], Y[1] = 0, 1  # both values of every label
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = make(learner, random_state=0).fit(X[:N_TRAIN], Y)
                rate = _rate(model, X[N_TRAIN:])
            series = f"rows a second: {make.__name__}"
            yield Row(f"{series}, {n_labels} labels", rate, "/s", series=series, x=n_labels)


def _rate(model: ls.BinaryRelevance, X: np.ndarray) -> float:
    def assess(n_rows: int) -> None:
        dist = model.predict_distribution(X[:n_rows])
        ls.ScoreTable.from_distribution(dist, metrics=["jaccard"])

    n_rows, taken = 1, core_seconds(lambda: assess(1), repeats=1)
    while taken < SECONDS / 4 and n_rows < len(X):
        n_rows = min(len(X), max(2 * n_rows, int(n_rows * SECONDS / 2 / max(taken, 1e-4))))
        taken = core_seconds(lambda n=n_rows: assess(n), repeats=2)
    return n_rows / taken


BENCHMARKS = {"rates": one_thread(rates)}
