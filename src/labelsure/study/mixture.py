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

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import combinations, combinations_with_replacement, pairwise
from typing import Any

import numpy as np
import pandas as pd

from labelsure._kernels.threads import one_blas_thread
from labelsure._runtime.processes import TaskFailure, run_tasks, watched_workers
from labelsure._runtime.typing import Floats, Indices, Mask
from labelsure.errors import InputError
from labelsure.estimation._accuracy_model import (
    CONSTANT,
    INTERCEPT_PENALTY,
    check_features,
    feature_matrix,
)
from labelsure.estimation.score_table import CELL, ScoreTable
from labelsure.metrics.registry import F1, HAMMING, JACCARD, get_metric
from labelsure.study.plan import OMIT, Settings

PAPER_MODELS = ("HP", "SE", "CE")
"""The candidates that the paper makes a model of by themselves; MIX has all of them."""

WIDTHS = {"hamming": 0.05}
DEFAULT_WIDTH = 0.1
"""Of the intervals of estimates; Hamming similarities lie closer together."""

INTERVAL = ["predicted_low", "predicted_high"]
REPLICATE = ["metric", "model", "replicate", *INTERVAL, "n", "estimated", "accuracy"]
LEAST_TO_FIT = 2
"""Rows without which no model of accuracy can be fitted."""

PENALTIES = np.geomspace(1e-11, 10.0, 13)
"""On standardised columns, for a unit of weight, as glmnet has them. On the paper's data sets none
is chosen at either end."""

FIRST_PENALTY = 7
"""The place of 1e-4 among them, from which the search goes downhill."""

N_FOLDS = 10
MAX_STEPS, TOLERANCE = 100, 1e-9
"""Steps of a fit, and what the last one gains at most: the next one would gain its square."""

_QUOTIENTS = {JACCARD: ([1, 0, 0, 0], [1, 1, 1, 0]), F1: ([2, 0, 0, 0], [2, 1, 1, 0])}
"""Weights of the rates of (tp, fp, fn, tn) above and below the line."""


def check_columns(frame: pd.DataFrame, needed: Iterable[str], name: str) -> None:
    """Refuse a frame that lacks rows or one of these columns."""
    missing = [column for column in needed if column not in frame]
    if missing or not len(frame):
        raise InputError(
            f"`{name}` must have rows and the columns {', '.join(needed)}, got {len(frame)} rows "
            f"without {', '.join(missing) or 'a missing column'}. Pass the whole table."
        )


def row_accuracy(table: ScoreTable, metric: str, empty: float | str) -> Floats:
    """Return the accuracy of each row, (n,); NaN where "omit" leaves it out."""
    if empty != OMIT:
        return table.accuracy(metric, float(empty))
    tp, fp, fn, _ = table.counts()
    is_undefined = (tp + fp + fn == 0) & get_metric(metric).depends_on_empty
    return np.where(is_undefined, np.nan, table.accuracy(metric, 0.0))


def run_all(function: Callable[..., Any], tasks: list[Any], **settings: Any) -> list[Any]:
    """Return what a function makes of each task, in the pool of processes that cells run in."""
    with watched_workers():
        found = dict(run_tasks(function, tasks, **settings))
    for result in found.values():
        if isinstance(result, TaskFailure):
            raise InputError(result.message)
    return [found[place] for place in range(len(tasks))]


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
    single = [name for name in PAPER_MODELS if name in settings.candidates]
    features = {**{name: (name,) for name in single}, "MIX": settings.candidates}
    names = [(metric, model) for metric in settings.metrics for model in features]
    empty = settings.empty if settings.mixture_empty is None else settings.mixture_empty
    tasks = [(_Regression(pooled, metric, features[model], empty),) for metric, model in names]
    shared = (list(_halves(pooled, settings)), settings.seed)
    found = run_all(_replicates, tasks, n_jobs=n_jobs, shared=shared)
    parts = [
        part.assign(metric=m, model=model) for part, (m, model) in zip(found, names, strict=True)
    ]
    return pd.concat(parts)[REPLICATE].sort_values("replicate", kind="stable", ignore_index=True)


def _replicates(shared: tuple[list[Mask], int], regression: _Regression) -> pd.DataFrame:
    """Return what one model says in each halving."""
    halves, seed = shared
    parts = []
    with one_blas_thread():
        penalty = regression.choose_penalty(halves[0] & regression.is_defined, seed)
        for replicate, half in enumerate(halves):
            others, estimated = regression.estimate(half & regression.is_defined, penalty)
            cut = _cut(regression.metric, estimated, regression.accuracy[others])
            parts.append(cut.assign(replicate=replicate))
    return pd.concat(parts)


class _Regression:
    """Ridge-penalised logistic regression of the counts behind a metric.

    `counts` (K, n) say how often each class occurs in a row; the accuracy is the quotient
    `above` @ rates / `below` @ rates. Coefficients (K, p) are those of an intercept and of each
    classifier, and for each data set an offset and slopes, which are 0 in the rows of all others:
    `columns` has the others alone, and `places` (data sets, columns) where they belong.
    """

    def __init__(
        self, pooled: pd.DataFrame, metric: str, features: tuple[str, ...], empty: float | str
    ) -> None:
        table, known = ScoreTable(pooled), get_metric(metric)
        self.metric, self.accuracy = metric, row_accuracy(table, metric, empty)
        self.is_defined = ~np.isnan(self.accuracy)
        self.counts = np.array([self.accuracy, 1 - self.accuracy])
        self.above, self.below = [1, 0], [1, 1]
        if known == HAMMING:
            tp, fp, fn, tn = table.counts()
            self.counts = np.array([tp + tn, fp + fn], dtype=float)
        elif known in _QUOTIENTS:
            self.counts = np.array(table.counts(), dtype=float)
            self.above, self.below = _QUOTIENTS[known]
        self.dataset, self.classifier = (
            pd.factorize(pooled[name])[0] for name in ("dataset", "classifier")
        )
        ones = np.ones((len(pooled), 1))
        common = np.hstack([ones, np.eye(self.classifier.max() + 1)[self.classifier]])
        own = np.hstack([ones, feature_matrix(table, check_features(features), known, 0.0)])
        self.columns = np.hstack([common, own])
        n_common, n_own = common.shape[1], own.shape[1]
        first = n_common + n_own * np.arange(self.dataset.max() + 1)
        self.places = np.array([[*range(n_common), *range(k, k + n_own)] for k in first])

    def fit(self, is_fitted: Mask, penalty: float, start: Floats | None = None) -> Floats:
        """Return the coefficients with the least deviance and penalty on some rows.

        The penalty is that of standardised columns, for a unit of weight. Newton's method: steps
        are halved until the objective does not rise, and end when they gain nothing. The Hessian
        is that of each data set, diag(rates) - rates rates' for a row, by its few columns.
        """
        rows, parts = self._by_dataset(is_fitted)
        is_seen = self.counts[:, rows].sum(axis=1) > 0
        weights = self.counts[np.ix_(is_seen, rows)] / self.counts[:, rows].sum()
        columns, totals, k = self.columns[rows], weights.sum(axis=0), len(weights)
        n_columns = int(self.places.max()) + 1
        moments = np.zeros((2, n_columns))
        for part, places in parts:
            moments[0, places] += totals[part] @ columns[part]
            moments[1, places] += totals[part] @ columns[part] ** 2
        variance = moments[1] - moments[0] ** 2
        # Two classes share one set of coefficients, whose penalty that of two opposite ones is.
        ridge = penalty * variance * (2 if k == 2 else 1)
        ridge[0], variance[0] = INTERCEPT_PENALTY, 1
        is_constant = variance <= CONSTANT**2 * moments[0] ** 2
        ridge[is_constant] = 1
        for part, places in parts:  # a constant column explains nothing
            columns[part, is_constant[places]] = 0

        def objective(coefficients: Floats) -> tuple[float, Floats]:
            logs = _log_rates(columns, parts, coefficients)
            penalties = float((ridge * coefficients**2).sum()) / 2
            return penalties - float((weights * logs).sum()), np.exp(logs)

        found = np.zeros((k, n_columns))
        if start is not None:
            found = np.nan_to_num(start[is_seen], neginf=0)
        value, rates = objective(found)
        for _ in range(MAX_STEPS):
            gradient, hessian = ridge * found, np.zeros((k, k, n_columns, n_columns))
            residuals = totals * rates - weights
            for part, places in parts:
                X, at = columns[part], np.ix_(places, places)
                gradient[:, places] += residuals[:, part] @ X
                for i, j in combinations_with_replacement(range(k), 2):
                    share = totals[part] * rates[i, part] * ((i == j) - rates[j, part])
                    hessian[i, j][at] += (share * X.T) @ X
            for i, j in combinations(range(k), 2):
                hessian[j, i] = hessian[i, j]
            whole = hessian.swapaxes(1, 2).reshape(found.size, found.size)
            whole[np.diag_indices(found.size)] += np.tile(ridge, k)
            step = np.linalg.solve(whole, gradient.ravel()).reshape(found.shape)
            gain = float((gradient * step).sum())
            tried = objective(found - step)
            while tried[0] > value and gain > TOLERANCE:
                step, gain = step / 2, gain / 2
                tried = objective(found - step)
            found, (value, rates) = found - step, tried
            if gain <= TOLERANCE:
                break
        coefficients = np.zeros((len(is_seen), n_columns))
        coefficients[is_seen], coefficients[~is_seen, 0] = found, -np.inf
        return coefficients

    def _by_dataset(self, chosen: Mask) -> tuple[Indices, list[tuple[slice, Indices]]]:
        """Return chosen rows in the order of data sets, and the slice and places of each set."""
        rows = np.flatnonzero(chosen)
        rows = rows[np.argsort(self.dataset[rows], kind="stable")]
        ends = np.searchsorted(self.dataset[rows], np.arange(len(self.places) + 1))
        return rows, [
            (slice(*end), at) for end, at in zip(pairwise(ends), self.places, strict=True)
        ]

    def rates(self, chosen: Mask, coefficients: Floats) -> tuple[Indices, Floats]:
        """Return chosen rows in the order of data sets, and the rate of each class in them."""
        rows, parts = self._by_dataset(chosen)
        return rows, np.exp(_log_rates(self.columns[rows], parts, coefficients))

    def choose_penalty(self, half: Mask, seed: int) -> float:
        """Return the penalty with the least cross-validated deviance on the rows of a half.

        First among powers of ten, downhill, then between the best of these and its neighbours.
        """
        rows = np.random.default_rng(seed).permutation(np.flatnonzero(half))
        if len(rows) < 2 * LEAST_TO_FIT:
            return float(PENALTIES[-1])
        fold = np.full(len(half), -1)
        fold[rows] = np.arange(len(rows)) % N_FOLDS
        starts: dict[int, Floats] = {}

        @cache
        def deviance(penalty: float) -> float:
            total = 0.0
            for k in range(min(N_FOLDS, len(rows))):
                starts[k] = self.fit(half & (fold != k), penalty, starts.get(k))
                others, rates = self.rates(fold == k, starts[k])
                total -= float((self.counts[:, others] * np.log(np.maximum(rates, 1e-12))).sum())
            return total

        place, step = FIRST_PENALTY, 1
        while step:
            around = [j for j in (place - 1, place, place + 1) if 0 <= j < len(PENALTIES)]
            best = min(around, key=lambda j: deviance(float(PENALTIES[j])))
            place, step = best, best - place
        finer = [float(PENALTIES[place]) * factor for factor in (1, 10**-0.5, 10**0.5)]
        return min(finer, key=deviance)

    def estimate(self, half: Mask, penalty: float) -> tuple[Indices, Floats]:
        """Return the other rows whose groups a half knows, and their estimated accuracies."""
        is_known = [np.isin(group, group[half]) for group in (self.dataset, self.classifier)]
        others = ~half & self.is_defined & np.all(is_known, axis=0)
        if half.sum() < LEAST_TO_FIT or not others.any():
            return np.empty(0, dtype=int), np.empty(0)
        rows, rates = self.rates(others, self.fit(half, penalty))
        return rows, (self.above @ rates) / (self.below @ rates)


def _log_rates(columns: Floats, parts: list[tuple[slice, Indices]], coefficients: Floats) -> Floats:
    """Return the logarithms of the rates of classes in rows, (K, n)."""
    logits = np.empty((len(coefficients), len(columns)))
    for part, places in parts:
        logits[:, part] = coefficients[:, places] @ columns[part].T
    logits -= logits.max(axis=0)
    return logits - np.log(np.exp(logits).sum(axis=0))


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
