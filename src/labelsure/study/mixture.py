"""Analysis 5: models that turn candidates into an estimated accuracy, and how well they do.

All rows of the first repeat are pooled. A random half fits each model, the other half is cut by its
estimated accuracy into intervals, and the mean accuracy in each is compared with the interval.
Twenty such halvings give the 95% interval of that mean. A model knows only the data sets and
classifiers of its half: rows of others, as a data set of two or three instances has them, are not
estimated.

A model is a ridge-penalised logistic regression: the logits are linear in the candidates, with
slopes and an offset for each data set and an offset for each classifier. The penalty of a metric
and model is chosen once, by 10-fold cross-validation on the half of the first halving; the paper
chooses it in every half.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression

from labelsure._runtime.processes import count_workers, watched_workers
from labelsure._runtime.typing import Floats, Indices, Mask
from labelsure.estimation._accuracy_model import check_features, feature_matrix
from labelsure.estimation.score_table import CELL, ScoreTable
from labelsure.metrics.registry import F1, HAMMING, JACCARD, get_metric
from labelsure.study.correlations import check_columns
from labelsure.study.plan import Settings

PAPER_MODELS = ("HP", "SE", "CE")
"""The candidates that the paper makes a model of by themselves; MIX has all of them."""

WIDTHS = {"hamming": 0.05}
DEFAULT_WIDTH = 0.1
"""Of the intervals of estimates; Hamming similarities lie closer together."""

INTERVAL = ["predicted_low", "predicted_high"]
REPLICATE = ["metric", "model", "replicate", *INTERVAL, "n", "estimated", "accuracy"]
LEAST_TO_FIT = 2
"""Rows without which no model of accuracy can be fitted."""

PENALTIES = np.geomspace(1e-8, 10.0, 10)
"""On standardised columns, for a unit of weight, as glmnet has them."""

FIRST_PENALTY = 4
"""The place of 1e-4 among them, from which the search goes downhill."""

N_FOLDS = 10

_QUOTIENTS = {JACCARD: ([1, 0, 0, 0], [1, 1, 1, 0]), F1: ([2, 0, 0, 0], [2, 1, 1, 0])}
"""Weights of the rates of (tp, fp, fn, tn) above and below the line."""


def mixture_replicates(
    scores: pd.DataFrame, settings: Settings | None = None, *, n_jobs: int = 1
) -> pd.DataFrame:
    """Return what each model says in each halving, one row for each interval of estimates.

    Returns
    -------
    pandas.DataFrame
        metric, model, replicate, predicted_low, predicted_high, n, estimated and accuracy (means).
        No rows where a half of the score table is too small to fit anything.
    """
    settings = settings or Settings()
    check_columns(scores, [*CELL, *(["instance"] if settings.by_instance else [])], "scores")
    pooled = scores[scores["repeat"] == scores["repeat"].min()].reset_index(drop=True)
    halves = list(_halves(pooled, settings))
    single = [name for name in PAPER_MODELS if name in settings.candidates]
    models = {**{name: (name,) for name in single}, "MIX": settings.candidates}
    with watched_workers():
        parallel = Parallel(n_jobs=count_workers(n_jobs, len(models) * len(settings.metrics)))
        tasks = [(m, *model) for m in settings.metrics for model in models.items()]
        parts = parallel(  # the longest first
            delayed(_replicates)(pooled, *task, halves, settings) for task in reversed(tasks)
        )
    found = pd.concat(parts[::-1], ignore_index=True)
    return found.sort_values("replicate", kind="stable", ignore_index=True)


def _replicates(
    pooled: pd.DataFrame,
    metric: str,
    model: str,
    features: tuple[str, ...],
    halves: list[Mask],
    settings: Settings,
) -> pd.DataFrame:
    """Return what one model says in each halving."""
    regression = _Regression.read(pooled, metric, features, settings.empty)
    penalty = regression.choose_penalty(halves[0], settings.seed)
    parts = []
    for replicate, half in enumerate(halves):
        others, estimated = regression.estimate(half, penalty)
        cut = _cut(metric, estimated, regression.accuracy[others])
        parts.append(cut.assign(metric=metric, model=model, replicate=replicate))
    return pd.concat(parts)[REPLICATE]


@dataclass(frozen=True)
class _Regression:
    """Ridge-penalised logistic regression of the counts behind a metric.

    `columns` has candidates by data set and indicators of data sets and classifiers, `groups` those
    indicators, `counts` (n, K) how often each class occurs in a row; the accuracy is the quotient
    `above` @ rates / `below` @ rates.
    """

    columns: Floats
    groups: Mask
    counts: Floats
    accuracy: Floats
    above: Floats
    below: Floats

    @classmethod
    def read(
        cls, pooled: pd.DataFrame, metric: str, features: tuple[str, ...], empty: float
    ) -> _Regression:
        table, known = ScoreTable(pooled), get_metric(metric)
        values = feature_matrix(table, check_features(features), known, empty)
        datasets, classifiers = (
            np.eye(len(names), dtype=bool)[codes]
            for codes, names in (pd.factorize(pooled[name]) for name in ("dataset", "classifier"))
        )
        slopes = (datasets[:, :, np.newaxis] * values[:, np.newaxis, :]).reshape(len(pooled), -1)
        groups = np.hstack([datasets, classifiers])
        accuracy = table.accuracy(known, empty)
        counts = np.column_stack([accuracy, 1 - accuracy])
        above, below = [1, 0], [1, 1]
        if known == HAMMING:
            tp, fp, fn, tn = table.counts()
            counts = np.column_stack([tp + tn, fp + fn])
        elif known in _QUOTIENTS:
            counts, (above, below) = np.column_stack(table.counts()), _QUOTIENTS[known]
        columns = np.hstack([slopes, groups])
        return cls(columns, groups, counts, accuracy, np.array(above), np.array(below))

    def fit(self, fitted: Indices, others: Indices) -> _Fit:
        """Return what is fitted to some rows, to estimate others."""
        counts = self.counts[fitted]
        totals = counts.sum(axis=1)
        mean = totals @ self.columns[fitted] / totals.sum()
        scale = np.sqrt(totals @ (self.columns[fitted] - mean) ** 2 / totals.sum())
        used = scale > 1e-7 * np.abs(mean)  # a constant column explains nothing
        X, Z = (
            (self.columns[np.ix_(rows, used)] - mean[used]) / scale[used]
            for rows in (fitted, others)
        )
        # A row for each class that it has, which weighs as often as it occurs.
        row, of_class = np.nonzero(counts)
        model: Any = DummyClassifier()
        if used.any() and len(np.unique(of_class)) > 1:
            model = LogisticRegression(
                solver="newton-cholesky", tol=1e-6, max_iter=200, warm_start=True
            )
        return _Fit(model, X[row], of_class, counts[row, of_class], Z, counts.shape[1])

    def choose_penalty(self, half: Mask, seed: int) -> float:
        """Return the penalty with the least cross-validated deviance on the rows of a half.

        First among powers of ten, downhill, then between the best of these and its neighbours.
        """
        rows = np.random.default_rng(seed).permutation(np.flatnonzero(half))
        folds = np.arange(len(rows)) % N_FOLDS
        if len(rows) < 2 * LEAST_TO_FIT:
            return float(PENALTIES[-1])
        parts = [(rows[folds == fold], rows[folds != fold]) for fold in np.unique(folds)]
        fits = [(others, self.fit(fitted, others)) for others, fitted in parts]

        @cache
        def deviance(penalty: float) -> float:
            logs = ((o, np.log(np.maximum(fit.rates(penalty), 1e-12))) for o, fit in fits)
            return -float(sum((self.counts[others] * log).sum() for others, log in logs))

        place, step = FIRST_PENALTY, 1
        while step:
            around = [j for j in (place - 1, place, place + 1) if 0 <= j < len(PENALTIES)]
            best = min(around, key=lambda j: deviance(float(PENALTIES[j])))
            place, step = best, best - place
        finer = [float(PENALTIES[place]) * factor for factor in (1, 10**-0.5, 10**0.5)]
        return min(finer, key=deviance)

    def estimate(self, half: Mask, penalty: float) -> tuple[Indices, Floats]:
        """Return the other rows whose groups a half knows, and their estimated accuracies."""
        unknown = ~self.groups[half].any(axis=0)
        fitted = np.flatnonzero(half)
        others = np.flatnonzero(~half & ~self.groups[:, unknown].any(axis=1))
        if len(fitted) < LEAST_TO_FIT or not len(others):
            return others[:0], np.empty(0)
        rates = self.fit(fitted, others).rates(penalty)
        return others, (rates @ self.above) / (rates @ self.below)


@dataclass
class _Fit:
    """Stacked rows X of classes with weights, and the rows Z to estimate."""

    model: Any
    X: Floats
    classes: Indices
    weights: Floats
    Z: Floats
    n_classes: int

    def rates(self, penalty: float) -> Floats:
        """Return the rate of each class in the rows Z, (rows, K); starts from the last fit."""
        if "C" in self.model.get_params():
            self.model.set_params(C=1 / (penalty * self.weights.sum()))
        self.model.fit(self.X, self.classes, self.weights)
        rates = np.zeros((len(self.Z), self.n_classes))
        rates[:, self.model.classes_] = self.model.predict_proba(self.Z)
        return rates


def _halves(pooled: pd.DataFrame, settings: Settings) -> Iterator[Mask]:
    """Yield which rows each replicate is fitted on."""
    unit: Any = np.arange(len(pooled))
    if settings.by_instance:
        unit = pooled.groupby(["dataset", "instance"]).ngroup().to_numpy()
    n_units = int(unit.max()) + 1
    rng = np.random.default_rng(settings.seed)
    for _ in range(settings.n_replicates):
        chosen = np.zeros(n_units, dtype=bool)
        chosen[rng.permutation(n_units)[: n_units // 2]] = True
        yield chosen[unit]


def _cut(metric: str, estimated: Floats, accuracy: Floats) -> pd.DataFrame:
    """Return the means of estimates and accuracies in each interval (low, high] of estimates."""
    n_intervals = round(1 / WIDTHS.get(metric, DEFAULT_WIDTH))
    edges = np.round(np.arange(n_intervals + 1) / n_intervals, 10)
    # 0 itself goes into the first interval.
    place = np.clip(np.searchsorted(edges, estimated, side="left") - 1, 0, n_intervals - 1)
    values = pd.DataFrame({"estimated": estimated, "accuracy": accuracy}).groupby(place)
    cut = values.mean().assign(n=values.size())
    ends = {name: edges[cut.index + k] for k, name in enumerate(INTERVAL)}
    return cut.assign(**ends)


def interval_table(replicates: pd.DataFrame) -> pd.DataFrame:
    """Return the 95% interval of the mean accuracy for each interval of estimated accuracies.

    Returns
    -------
    pandas.DataFrame
        metric, predicted_low, predicted_high, model, n_replicates (with an instance there), n (mean
        number of instances), estimated (mean estimate), accuracy (mean), low, high, and whether the
        interval is bold (the closest of the models, by |low - predicted_low| + |high -
        predicted_high|) or underlined (its low end is below the predicted interval). Low and high
        are missing where no estimate fell.
    """
    groups = replicates.groupby(["metric", *INTERVAL, "model"], sort=False)
    found = groups.agg(n_replicates=("replicate", "size"), n=("n", "mean"))
    found[["estimated", "accuracy"]] = groups[["estimated", "accuracy"]].mean()
    found["low"], found["high"] = (groups["accuracy"].quantile(q) for q in (0.025, 0.975))
    # Every model for every interval that any model's estimates fell into.
    intervals = replicates[["metric", *INTERVAL]].drop_duplicates()
    place = intervals["metric"].map({m: k for k, m in enumerate(intervals["metric"].unique())})
    intervals = intervals.assign(place=place).sort_values(["place", INTERVAL[0]])
    whole = intervals.drop(columns="place").merge(
        pd.DataFrame({"model": replicates["model"].unique()}), how="cross"
    )
    whole = whole.merge(found.reset_index(), how="left")
    counts = whole[["n_replicates", "n"]].fillna(0)
    return mark_intervals(whole.assign(**counts).astype({"n_replicates": int}))


def mark_intervals(intervals: pd.DataFrame) -> pd.DataFrame:
    """Return interval tables with `bold` and `underlined`, judged by the three digits printed."""
    low, high = intervals["low"].round(3), intervals["high"].round(3)
    distance = (
        (low - intervals["predicted_low"]).abs() + (high - intervals["predicted_high"]).abs()
    ).round(9)
    rows = [intervals["metric"], intervals["predicted_low"]]
    least = distance.groupby(rows).transform("min")
    return intervals.assign(bold=distance == least, underlined=low < intervals["predicted_low"])
