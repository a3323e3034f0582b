"""Chains against other libraries' chains: exact prediction, and fitting."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import ClassifierChain

import labelsure as ls
from benchmarks.measure import Row, core_seconds_in_turn, one_thread, seconds

LEARNER = LogisticRegression(max_iter=1000)


def problem(n_samples: int, n_features: int, n_labels: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_samples, n_features))
    noise = 5 * rng.normal(size=(n_samples, n_labels))
    return X, (X @ rng.normal(size=(n_features, n_labels)) + noise > 0).astype(int)


def peers() -> Iterator[Row]:
    """Our joint and profile of an instance against their mode of it, 10 labels."""
    X, Y = problem(500, 20, 10)
    model = ls.ProbabilisticClassifierChain(LEARNER).fit(X, Y)
    model.predict_distribution(X).profile()
    ours = seconds(lambda: model.predict_distribution(X).profile(), repeats=5) / len(X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = seconds(lambda: _scikit_multilearn(model).predict(X[:1]), repeats=1)
    what = "joint and profile of a chain, L=10: scikit-multilearn-ng's mode / ours"
    yield Row(what, theirs / ours, "x", 10_000, True, "scikit-multilearn-ng")
    chain, row = _river(X, Y)
    theirs = seconds(lambda: chain.predict_one(row), repeats=3)
    what = "joint and profile of a chain, L=10: river's mode / ours"
    yield Row(what, theirs / ours, "x", 1_000, True, "river")


def _scikit_multilearn(model: ls.ProbabilisticClassifierChain) -> Any:
    from skmultilearn.problem_transform import ProbabilisticClassifierChain

    peer = ProbabilisticClassifierChain(LEARNER, require_dense=[True, True])
    peer.classifiers_, peer._label_count = model.estimators_, len(model.estimators_)
    return peer


def _river(X: Any, Y: Any) -> tuple[Any, dict[int, float]]:
    from river import linear_model, multioutput

    chain = multioutput.ProbabilisticClassifierChain(linear_model.LogisticRegression())
    rows = [dict(enumerate(x)) for x in X.tolist()]
    for row, labels in zip(rows[:50], Y.tolist(), strict=False):
        chain.learn_one(row, {f"y{j}": bool(bit) for j, bit in enumerate(labels)})
    return chain, rows[0]


def fitting() -> Iterator[Row]:
    X, Y = problem(1500, 100, 14)
    theirs, ours = core_seconds_in_turn(
        [
            lambda: ClassifierChain(LEARNER).fit(X, Y),
            lambda: ls.ProbabilisticClassifierChain(LEARNER).fit(X, Y),
        ],
        repeats=3,
    )
    what = "fitting a chain, L=14, BLAS on one thread: ours / scikit-learn's"
    yield Row(what, ours / theirs, "x", 1.25, peer="scikit-learn")


BENCHMARKS = {"chain_peers": peers, "chain_fitting": one_thread(fitting)}
