"""Whether a recalibration should be kept: rules for the gate of "auto", on held-out rows.

    LABELSURE_DATA=folder python -m benchmarks.gate docs/evidence/gate.csv

Models that overrate positives by design (networks with `pos_weight`, boosting and linear models
with class weights) and ordinary ones are trained on half of a set (at most 800 rows). A label-wise
calibration is fitted to 100 or 300 rows; the others are the test set. For each rule that decides by
these rows alone: the mean accuracy of the default decisions, the log-probability of the truth, and
the regret of both against the better of keeping and dropping. Two minutes.
"""

from __future__ import annotations

import os
import sys
import warnings
import zlib
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.decomposition import TruncatedSVD
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import MaxAbsScaler

import labelsure as ls
from benchmarks.batches import Data, load
from labelsure.classifiers.recalibration._base import Part
from labelsure.classifiers.recalibration._recalibrated_classifier import fit_recalibration
from labelsure.model._decision_rules import Best

CHOSEN_ON = ("emotions", "scene", "yeast", "simulated")
CONFIRMED_ON = ("stare", "enron", "slashdot", "medical", "simulated 2")
METRICS = ("f1", "jaccard", "exact", "hamming")
SIZES, N_SPLITS = (100, 300), 1
N_FEATURES = 50  # to which wide sets are reduced, so that boosting takes seconds

Floats = NDArray[np.float64]


def train_network(X: Floats, Y: Floats, weight: float, rng: np.random.Generator) -> Any:
    """Return P(y = 1) as a function of X: one hidden layer, weighted cross-entropy, Adam."""
    sizes = (X.shape[1], 64, Y.shape[1])
    params = [rng.normal(size=(a + 1, b)) / a**0.5 for a, b in pairwise(sizes)]
    moments = [[np.zeros_like(p), np.zeros_like(p)] for p in params]

    def layers(rows: Floats) -> tuple[Floats, Floats]:
        hidden = np.maximum(rows @ params[0][1:] + params[0][0], 0)
        return hidden, expit(hidden @ params[1][1:] + params[1][0])

    step = 0
    for _ in range(60):
        for rows in np.array_split(rng.permutation(len(X)), max(1, len(X) // 32)):
            hidden, p = layers(X[rows])
            off = (p * (1 - Y[rows]) - weight * (1 - p) * Y[rows]) / len(rows)
            inner = (off @ params[1][1:].T) * (hidden > 0)
            step += 1
            for param, moment, below, delta in (
                (params[0], moments[0], X[rows], inner),
                (params[1], moments[1], hidden, off),
            ):
                gradient = np.vstack([delta.sum(axis=0), below.T @ delta])
                moment[0] += 0.1 * (gradient - moment[0])
                moment[1] += 0.001 * (gradient**2 - moment[1])
                first, second = moment[0] / (1 - 0.9**step), moment[1] / (1 - 0.999**step)
                param -= 0.002 * first / (second**0.5 + 1e-8)
    return lambda rows: layers(rows)[1]


def models(X: Floats, Y: Floats, seed: int) -> dict[str, Callable[[Floats], Floats]]:
    """Return P(y = 1) as a function of X for each model."""

    def by_label(learner: Any) -> Callable[[Floats], Floats]:
        fitted = ls.BinaryRelevance(learner).fit(X, Y)
        return lambda rows: fitted.predict_distribution(rows).marginals()

    boosting: Any = {"max_iter": 40, "max_leaf_nodes": 8, "early_stopping": False}
    weights = {0: 1.0, 1: 5.0}
    return {
        "network": train_network(X, Y, 1.0, np.random.default_rng(seed)),
        "network, pos_weight 5": train_network(X, Y, 5.0, np.random.default_rng(seed)),
        "boosting": by_label(HistGradientBoostingClassifier(**boosting)),
        "boosting, balanced": by_label(
            HistGradientBoostingClassifier(class_weight="balanced", **boosting)
        ),
        "logistic, weight 5": by_label(LogisticRegression(class_weight=weights, max_iter=300)),
    }


def score_default(metric: str, known: Any, dist: Any, Y_true: Any) -> Floats:
    """Return the accuracy of each default decision, by the labelsets of the calibration rows."""
    rule = Best.of(metric, 1.0, known)
    return ls.accuracy(Y_true, rule.choose(dist, None), metric)


def measure(data: Data, number: int) -> list[tuple]:
    """Return a row for each model, size and metric: what rules see, and what is true."""
    rng = np.random.default_rng([number, zlib.crc32(data.name.encode())])
    order = rng.permutation(len(data.Y))
    n_train = min(len(order) // 2, 800)
    X, Y = MaxAbsScaler().fit(data.X[order[:n_train]]).transform(data.X), data.Y
    if X.shape[1] > N_FEATURES:
        X = TruncatedSVD(N_FEATURES, random_state=0).fit(X[order[:n_train]]).transform(X)
    rows = []
    for title, model in models(X[order[:n_train]], Y[order[:n_train]], number).items():
        for size in SIZES:
            known, test = order[n_train : n_train + size], order[n_train + size :][:1500]
            if len(test) < 100:
                continue
            dist, new = (ls.IndependentLabels(model(X[part])) for part in (known, test))
            truth, later = Y[known], Y[test]
            found = fit_recalibration(ls.LabelwiseCalibration(gate=False), [dist], [truth])
            folds = np.array_split(np.arange(size), 5)
            parts = [Part(dist[f], truth[f]) for f in folds]
            crossed = list(found.cross_transform(parts))
            logs = found.transform(new).log_prob(later) - new.log_prob(later)
            for metric in METRICS:
                score = partial(score_default, metric, truth)
                before = score(dist, truth)
                own = score(found.transform(dist), truth) - before
                by_others = np.concatenate(
                    [score(d, p.truth) for d, p in zip(crossed, parts, strict=True)]
                )
                outside = by_others - before
                gain = score(found.transform(new), later).mean() - score(new, later).mean()
                plain = ls.accuracy(later, (new.marginals() >= 0.5).astype(int), metric).mean()
                rows.append(
                    (
                        *(data.name, title, size, metric, number),
                        *(found.gain_, found.gain_low_, own.mean(), outside.mean()),
                        outside.std(ddof=1) / size**0.5,
                        *(logs.mean(), gain, score(new, later).mean(), plain),
                    )
                )
    return rows


COLUMNS = ["set", "model", "rows", "metric", "split", "gain", "gain_low", "own", "outside", "error"]
COLUMNS += ["true_log", "true_gain", "before", "plain"]

RULES: dict[str, Callable[[pd.DataFrame], Any]] = {
    "never": lambda t: t["gain"] > np.inf,
    "always": lambda t: t["gain"] > -np.inf,
    "mean gain above 0": lambda t: t["gain"] > 0,
    "interval above 0": lambda t: t["gain_low"] > 0,
    "interval above 0, own rows no worse": lambda t: (t["gain_low"] > 0) & (t["own"] >= 0),
    "interval above 0, other rows no worse": lambda t: (t["gain_low"] > 0) & (t["outside"] >= 0),
    "interval above 0, not worse beyond 1 error": lambda t: (
        (t["gain_low"] > 0) & (t["outside"] >= -t["error"])
    ),
    "interval above 0, not worse beyond 2 errors": lambda t: (
        (t["gain_low"] > 0) & (t["outside"] >= -2 * t["error"])
    ),
}


def summarise(found: pd.DataFrame) -> pd.DataFrame:
    """Return for each rule and group how it does beside the better choice in hindsight."""
    rows = []
    for key, part in found.groupby(["chosen", "weighted", "rows", "metric"], sort=False):
        for rule, passes in RULES.items():
            kept = passes(part).to_numpy()
            gain, log = part["true_gain"].to_numpy(), part["true_log"].to_numpy()
            regret = np.maximum(gain, 0) - kept * gain
            harm = kept & (log < -0.01)
            rows.append(
                (
                    *(*key, len(part), rule, kept.mean(), (kept * gain).mean(), regret.mean()),
                    *((kept * log).mean(), harm.mean()),
                )
            )
    columns = ["sets", "weighted", "rows", "metric", "fits", "rule", "kept", "accuracy gained"]
    columns += ["regret", "log-probability gained", "log-probability lower by .01"]
    return pd.DataFrame(rows, columns=columns).round(4)


def main(file: str) -> None:
    """Measure, and write the table."""
    warnings.simplefilter("ignore")
    folder, rows = Path(os.environ["LABELSURE_DATA"]), []
    for number in range(N_SPLITS):
        for name in CHOSEN_ON + CONFIRMED_ON:
            rows.extend(measure(load(name, folder), number))
            print(number, name, file=sys.stderr, flush=True)
        found = pd.DataFrame(rows, columns=COLUMNS)
        found["chosen"] = np.where(found["set"].isin(CHOSEN_ON), "chosen on", "confirmed on")
        found["weighted"] = found["model"].str.contains("weight|balanced")
        table = summarise(found)
        table.to_csv(file, index=False)
    print(table.groupby(["sets", "weighted", "rows", "rule"], sort=False).mean(numeric_only=True))


if __name__ == "__main__":
    main(sys.argv[1])
