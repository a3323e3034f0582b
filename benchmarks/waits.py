"""Where people wait: questions about chains, 12 to 174 labels; tables and reports. One core.

CAL500, Enron and Slashdot are read from the folder in LABELSURE_DATA.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

import labelsure as ls
from benchmarks.chains import fitted_mixture, random_mixture
from benchmarks.measure import Row, core_seconds, core_seconds_in_turn, one_thread

Mixture = ls.distributions.ChainMixture
QUESTIONS: dict[str, Callable[[Mixture], object]] = {
    "mode": lambda dist: dist.mode(),
    "top(3)": lambda dist: dist.top(3),
    "confidence": lambda dist: ls.confidence(dist),
    "marginals": lambda dist: dist.marginals(),
    "decide F1": lambda dist: ls.decide(dist, "f1"),
    "decide Jaccard": lambda dist: ls.decide(dist, "jaccard"),
}
SIZES = ((14, 10), (16, 10), (18, 10), (20, 10), (22, 10), (27, 1), (27, 10), (53, 10), (174, 10))
CUTS = (12, 14, 16, 18, 20, 22)
SETS = {"cal500": 0.01, "enron": 1.0, "slashdot": 1.0}
"""With the C of the base learner: the probabilities of CAL500 are flat."""
AIMS = {"confidence": 3.0, "decide F1": 5.0, "decide Jaccard": 5.0}
"""Milliseconds an instance at 20 and 22 labels; 8 for confidence where probabilities are flat."""
N_ROWS, N_COMPARED = 20, 10
NOISE = 1.3
"""How far two measurements of the same may be apart on a shared machine."""


def questions_about_chains() -> Iterator[Row]:
    """Time all questions about random mixtures of logistic chains; `top` goes by `mode`."""
    for n_labels, n_chains in SIZES:
        n_rows = N_ROWS if n_labels < 100 else 8
        dist = random_mixture(n_rows, n_labels, n_chains)
        seconds = core_seconds_in_turn([partial(ask, dist) for ask in QUESTIONS.values()], 3)
        what = f"{n_labels} labels, {n_chains} chain{'s' * (n_chains > 1)}"
        times = dict(zip(QUESTIONS, (1000 * s / n_rows for s in seconds), strict=True))
        yield Row(f"{what}: top(3) / mode", times["top(3)"] / times["mode"], "x", 10)
        for name, taken in times.items():
            series = f"{'random chains' if n_chains > 1 else 'a random chain'}: {name}"
            yield Row(f"{what}: {name}", taken, "ms", series=series, x=n_labels)


def cost_by_labels() -> Iterator[Row]:
    """Time ensembles fitted to data cut to 12, 14, ... 22 labels: more must not cost less."""
    for name, C in SETS.items():
        dists = {n_labels: fitted_mixture(name, C, N_ROWS, n_labels)[0] for n_labels in CUTS}
        for question in ("confidence", "marginals", "decide F1", "decide Jaccard"):
            aim = 8.0 if (name, question) == ("cal500", "confidence") else AIMS.get(question)
            curve = []
            for n_labels, dist in dists.items():
                taken = 1000 * core_seconds(partial(QUESTIONS[question], dist), 3) / N_ROWS
                curve.append(taken)
                series = f"{name}: {question}"
                what = f"{series}, {n_labels} labels"
                yield Row(
                    what, taken, "ms", aim if n_labels >= 20 else None, series=series, x=n_labels
                )
            steps = np.divide(curve[1:], curve[:-1])
            what = f"{name}, {question}: "
            yield Row(what + "largest rise for two labels more", float(steps.max()), "x", 4)
            yield Row(what + "largest fall for two labels more", 1 / float(steps.min()), "x", NOISE)


def loss_of_decisions() -> Iterator[Row]:
    """Compare drawn decisions with exact ones at 20 and 22 labels, and gaps with losses."""
    for name, C in SETS.items():
        for n_labels in (20, 22):
            some = fitted_mixture(name, C, N_ROWS, n_labels)[0][:N_COMPARED]
            dense = some.with_engine(engine="dense")
            for metric in ("f1", "jaccard"):
                decided, best = ls.decide(some, metric), ls.decide(dense, metric)
                worth = [dense.expected(metric, Y.labelsets).value for Y in (decided, best)]
                loss = worth[1] - worth[0]
                what = f"{name}, {n_labels} labels, {metric}: loss against exact decisions, "
                yield Row(what + "mean", float(loss.mean()), "", 5e-4)
                yield Row(what + "worst", float(loss.max()), "", 3e-3)
                beyond = float((loss - decided.gap - best.gap).max())
                yield Row(what + "beyond the gap", max(beyond, 0.0), "", 1e-9)


def tables_and_reports() -> Iterator[Row]:
    """Compare tables and reports of 26 labels with the estimates alone."""
    data = ls.load_dataset("enron", source="file")
    Y = np.asarray(data.Y)
    Y = Y[:, np.sort(np.argsort(-Y.sum(axis=0), kind="stable")[:26])]
    X = StandardScaler(with_mean=False).fit_transform(data.X)
    new = X[800:900]
    for what, make in (
        ("ten chains", ls.EnsembleOfClassifierChains),
        ("a chain", ls.ProbabilisticClassifierChain),
    ):
        clf = make(LogisticRegression(max_iter=500), random_state=0).fit(X[:400], Y[:400])
        model = ls.AccuracyAwareClassifier(FrozenEstimator(clf), "jaccard", target=0.6)
        model.fit(X[400:800], Y[400:800])
        calls = [
            lambda m=model: m.predict_accuracy(new),
            lambda m=model: m.assess(new, k=3).to_frame(),
            lambda m=model: m.report(new),
        ]
        alone, frame, report = (10 * s for s in core_seconds_in_turn(calls, 3))  # ms a row
        for name, taken in (("to_frame", frame), ("report", report)):
            label = f"{what}, 26 labels: {name} / (3 predict_accuracy + 1 ms)"
            yield Row(label, taken / (3 * alone + 1), "x", 1)


BENCHMARKS = {
    "questions_about_chains": one_thread(questions_about_chains),
    "cost_by_labels": one_thread(cost_by_labels),
    "loss_of_decisions": one_thread(loss_of_decisions),
    "tables_and_reports": one_thread(tables_and_reports),
}
