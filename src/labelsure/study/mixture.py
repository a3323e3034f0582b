"""Analysis 5: models that turn candidates into an estimated accuracy, and how well they do.

All rows of a repeat are pooled. A random half fits each model, the other half is cut by its
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

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression

from labelsure._runtime.processes import count_workers, watched_workers
from labelsure._runtime.typing import Floats, Indices, Mask
from labelsure.errors import InputError, unknown_name
from labelsure.estimation._features import check_features, feature_matrix
from labelsure.estimation.score_table import ScoreTable
from labelsure.metrics.registry import (
    F1,
    HAMMING,
    JACCARD,
    METRICS,
    check_empty,
    get_metric,
)
from labelsure.study.correlations import PAPER_METRICS, check_names, check_scores

PAPER_MODELS: dict[str, str | tuple[str, ...]] = {"HP": "HP", "SE": "SE", "CE": "CE", "MIX": "mix"}
"""The paper's models and the candidates that each is made from."""

WIDTHS = {"hamming": 0.05}
DEFAULT_WIDTH = 0.1
"""Of the intervals of estimates; Hamming similarities lie closer together."""

ResponseKind = Literal["rates", "value"]
"""What the mixture models a metric by: the rates of the counts that it is made of, or its value."""


N_REPLICATES = 20
INTERVAL = (0.025, 0.975)
LEAST_TO_FIT = 2
"""Rows without which no model of accuracy can be fitted."""

PENALTIES = np.geomspace(1e-8, 10.0, 10)
"""On standardised columns, for a unit of weight, as glmnet has them."""

N_FOLDS = 10

_QUOTIENTS = {JACCARD: ([1, 0, 0, 0], [1, 1, 1, 0]), F1: ([2, 0, 0, 0], [2, 1, 1, 0])}
"""Weights of the rates of (tp, fp, fn, tn) above and below the line."""


@dataclass(frozen=True)
class _Task:
    """One model on one halving: the rows in `half` fit it."""

    metric: str
    model: str
    replicate: int
    half: Mask


def mixture(scores: pd.DataFrame, **settings: Any) -> pd.DataFrame:
    """Return the 95% interval of the mean accuracy for each interval of estimated accuracies.

    Parameters
    ----------
    scores
        As for `kendall`.
    **settings
        Of `mixture_replicates`.

    Returns
    -------
    pandas.DataFrame
        metric, predicted_low, predicted_high, model, n_replicates (with an instance there), n (mean
        number of instances), estimated (mean estimate), accuracy (mean), low, high, and whether the
        interval is bold (the closest of the models, by |low - predicted_low| + |high -
        predicted_high|) or underlined (its low end is below the predicted interval). Low and high
        are missing where no estimate fell.
    """
    return interval_table(mixture_replicates(scores, **settings))


def mixture_replicates(
    scores: pd.DataFrame,
    *,
    metrics: str | Sequence[str] = PAPER_METRICS,
    models: Mapping[str, str | tuple[str, ...]] | None = None,
    empty: float = 0.0,
    repeat: int | None = None,
    n_replicates: int = N_REPLICATES,
    by_instance: bool = False,
    response: ResponseKind = "rates",
    random_state: int = 0,
    n_jobs: int | None = None,
) -> pd.DataFrame:
    """Return what `mixture` sums up: each model on each halving, one row for each interval.

    Parameters
    ----------
    scores, metrics, empty
        As for `kendall`; `instance` is needed too when the split is by instance.
    models
        Names and what `AccuracyEstimator` takes as `features`; None means HP, SE, CE and MIX.
    repeat
        Which repeat to use; None means the first.
    n_replicates
        Random halvings.
    by_instance
        Keep what the classifiers say of one instance on the same side of the split. The paper does
        not, so that a test row's truth is often known from another classifier's row.
    response
        Model Jaccard and F1 by the "rates" of true and false positives and negatives, as the
        paper does, or by their "value". A metric of your own is modelled by its value.
    random_state
        Seed of the halvings and of the folds that choose the penalty.
    n_jobs
        Processes to fit with; None means one.

    Returns
    -------
    pandas.DataFrame
        metric, model, replicate, predicted_low, predicted_high, n, estimated and accuracy (means).
        No rows where a half of the score table is too small to fit anything.
    """
    pooled = _one_repeat(check_scores(scores), repeat)
    models = PAPER_MODELS if models is None else models
    metrics, empty = check_names(metrics, METRICS, "metric"), check_empty(empty)
    if response not in get_args(ResponseKind):
        raise unknown_name("response", response, get_args(ResponseKind))
    halves = list(_halves(pooled, n_replicates, by_instance, random_state))
    regressions = {
        (metric, model): _Regression.read(
            pooled, metric, check_features(features), empty, by_rates=response == "rates"
        )
        for metric in metrics
        for model, features in models.items()
    }
    tasks = [
        _Task(metric, model, replicate, half)
        for replicate, half in enumerate(halves)
        for metric, model in regressions
    ]
    with watched_workers():
        parallel = Parallel(n_jobs=count_workers(n_jobs, len(tasks)))
        chosen = parallel(
            delayed(regression.choose_penalty)(halves[0], random_state)
            for regression in regressions.values()
        )
        penalties = dict(zip(regressions, chosen, strict=True))
        parts = parallel(
            delayed(_replicate)(regressions[key], task, penalties[key])
            for task in tasks
            for key in [(task.metric, task.model)]
        )
    return pd.concat([part for part in parts if len(part)] or parts[:1], ignore_index=True)


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
        cls, pooled: pd.DataFrame, metric: str, features: Any, empty: float, *, by_rates: bool
    ) -> _Regression:
        table, known = ScoreTable(pooled), get_metric(metric)
        values = feature_matrix(table, features, known, empty)
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
        elif by_rates and known in _QUOTIENTS:
            counts, (above, below) = np.column_stack(table.counts()), _QUOTIENTS[known]
        columns = np.hstack([slopes, groups])
        return cls(columns, groups, counts, accuracy, np.array(above), np.array(below))

    def rates(self, fitted: Indices, others: Indices, penalty: float) -> Floats:
        """Return the rate of each class in some rows by a fit to others, (rows, K)."""
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
            C = 1 / (penalty * totals.sum())
            model = LogisticRegression(C=C, solver="newton-cholesky", tol=1e-6, max_iter=200)
        model.fit(X[row], of_class, counts[row, of_class])
        rates = np.zeros((len(others), counts.shape[1]))
        rates[:, model.classes_] = model.predict_proba(Z)
        return rates

    def choose_penalty(self, half: Mask, seed: int) -> float:
        """Return the penalty with the least cross-validated deviance on the rows of a half.

        First by powers of ten, then between the best of these and its neighbours.
        """
        rows = np.random.default_rng(seed).permutation(np.flatnonzero(half))
        folds = np.arange(len(rows)) % N_FOLDS
        if len(rows) < 2 * LEAST_TO_FIT:
            return float(PENALTIES[-1])
        parts = [(rows[folds != fold], rows[folds == fold]) for fold in np.unique(folds)]
        best = min(PENALTIES, key=lambda penalty: self._deviance(parts, penalty))
        finer = [best * factor for factor in (1, 10**-0.5, 10**0.5)]
        return float(min(finer, key=lambda penalty: self._deviance(parts, penalty)))

    def _deviance(self, parts: list[tuple[Indices, Indices]], penalty: float) -> float:
        loss = 0.0
        for fitted, others in parts:
            rates = self.rates(fitted, others, penalty)
            loss -= float((self.counts[others] * np.log(np.maximum(rates, 1e-12))).sum())
        return loss

    def estimate(self, half: Mask, penalty: float) -> tuple[Indices, Floats]:
        """Return the other rows whose groups a half knows, and their estimated accuracies."""
        unknown = ~self.groups[half].any(axis=0)
        fitted = np.flatnonzero(half)
        others = np.flatnonzero(~half & ~self.groups[:, unknown].any(axis=1))
        if len(fitted) < LEAST_TO_FIT or not len(others):
            return others[:0], np.empty(0)
        rates = self.rates(fitted, others, penalty)
        return others, (rates @ self.above) / (rates @ self.below)


def _one_repeat(scores: pd.DataFrame, repeat: int | None) -> pd.DataFrame:
    present = sorted(scores["repeat"].unique())
    chosen = present[0] if repeat is None else repeat
    if chosen not in present:
        raise InputError(
            f"`repeat` must be one of the score table's, {', '.join(map(str, present))}, got "
            f"{repeat!r}."
        )
    return scores[scores["repeat"] == chosen].reset_index(drop=True)


def _halves(
    pooled: pd.DataFrame, n_replicates: int, by_instance: bool, random_state: int
) -> Iterator[Mask]:
    """Yield which rows each replicate is fitted on."""
    if by_instance and "instance" not in pooled.columns:
        raise InputError(
            "`scores` must have a column `instance` to split by it, got none. Leave `by_instance` "
            "at False."
        )
    if by_instance:
        unit = pooled.groupby(["dataset", "instance"]).ngroup().to_numpy()
    else:
        unit = np.arange(len(pooled))
    n_units = int(unit.max()) + 1
    rng = np.random.default_rng(random_state)
    for _ in range(n_replicates):
        chosen = np.zeros(n_units, dtype=bool)
        chosen[rng.permutation(n_units)[: n_units // 2]] = True
        yield chosen[unit]


def _replicate(regression: _Regression, task: _Task, penalty: float) -> pd.DataFrame:
    others, estimated = regression.estimate(task.half, penalty)
    cut = _cut(task.metric, estimated, regression.accuracy[others])
    identity: dict[str, Any] = {
        "metric": task.metric,
        "model": task.model,
        "replicate": task.replicate,
    }
    return cut.assign(**identity)[[*identity, *cut.columns]]


def _cut(metric: str, estimated: Floats, accuracy: Floats) -> pd.DataFrame:
    """Return the means of estimates and accuracies in each interval (low, high] of estimates."""
    edges = interval_edges(metric)
    # 0 itself goes into the first interval.
    place = np.clip(np.searchsorted(edges, estimated, side="left") - 1, 0, len(edges) - 2)
    n = np.bincount(place, minlength=len(edges) - 1)
    some = np.flatnonzero(n)
    sums = [np.bincount(place, values, len(edges) - 1) for values in (estimated, accuracy)]
    return pd.DataFrame(
        {
            "predicted_low": edges[some],
            "predicted_high": edges[some + 1],
            "n": n[some],
            "estimated": sums[0][some] / n[some],
            "accuracy": sums[1][some] / n[some],
        }
    )


def interval_edges(metric: str) -> Floats:
    """Return the ends of a metric's intervals, from 0 to 1.

    Examples
    --------
    >>> interval_edges("jaccard").tolist()
    [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]
    """
    n_intervals = round(1 / WIDTHS.get(metric, DEFAULT_WIDTH))
    return np.round(np.arange(n_intervals + 1) / n_intervals, 10)


def interval_table(replicates: pd.DataFrame) -> pd.DataFrame:
    """Return the interval tables of replicates: what `mixture` returns.

    Parameters
    ----------
    replicates
        Of `mixture_replicates`.
    """
    if replicates.empty:
        raise InputError(
            "The score table must have enough rows for a half of them to fit a model of accuracy "
            f"and the other half to test it, at least {2 * LEAST_TO_FIT} in one repeat, got fewer."
        )
    keys = ["metric", "predicted_low", "predicted_high", "model"]
    quantile: Callable[[float], Any] = lambda q: lambda values: values.quantile(q)  # noqa: E731
    found = replicates.groupby(keys, sort=False).agg(
        n_replicates=("replicate", "size"),
        n=("n", "mean"),
        estimated=("estimated", "mean"),
        accuracy_mean=("accuracy", "mean"),
        low=("accuracy", quantile(INTERVAL[0])),
        high=("accuracy", quantile(INTERVAL[1])),
    )
    found = found.rename(columns={"accuracy_mean": "accuracy"})
    whole = found.reindex(_all_intervals(replicates)).reset_index()
    whole["n_replicates"] = whole["n_replicates"].fillna(0).astype(int)
    whole["n"] = whole["n"].fillna(0.0)
    return mark_intervals(whole)


def _all_intervals(replicates: pd.DataFrame) -> pd.MultiIndex:
    """Return every model for every interval that any model's estimates fell into."""
    models = list(dict.fromkeys(replicates["model"]))
    intervals = ["predicted_low", "predicted_high"]
    rows = [
        (metric, low, high, model)
        for metric in dict.fromkeys(replicates["metric"])
        for low, high in replicates.loc[replicates["metric"] == metric, intervals]
        .drop_duplicates()
        .sort_values("predicted_low")
        .itertuples(index=False)
        for model in models
    ]
    return pd.MultiIndex.from_tuples(rows, names=["metric", *intervals, "model"])


def mark_intervals(intervals: pd.DataFrame) -> pd.DataFrame:
    """Return interval tables with `bold` and `underlined`, judged by the three digits printed.

    Parameters
    ----------
    intervals
        metric, predicted_low, predicted_high, model, low, high.
    """
    low, high = intervals["low"].round(3), intervals["high"].round(3)
    distance = (
        (low - intervals["predicted_low"]).abs() + (high - intervals["predicted_high"]).abs()
    ).round(9)
    rows = [intervals["metric"], intervals["predicted_low"]]
    least = distance.groupby(rows).transform("min")
    return intervals.assign(bold=distance == least, underlined=low < intervals["predicted_low"])
