"""Analysis 5: models that turn candidates into an estimated accuracy, and how well they do.

All rows of the first repeat are pooled. A random half fits each model, the other half is cut by its
estimated accuracy into intervals, and the mean accuracy in each is compared with the interval.
Twenty such halvings give the 95% interval of that mean. A model covers only the data sets and
classifiers of its half: rows of others, as a data set of two or three instances has them, are not
estimated.

A model is a ridge-penalised logistic regression: the logits are linear in the candidates, with
slopes and an offset for each data set and an offset for each classifier. The penalty of a metric
and model is chosen once, by 10-fold cross-validation on the half of the first halving; the paper
chooses it in every half.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import combinations, combinations_with_replacement, pairwise
from typing import TypeVar

import numpy as np
import pandas as pd

from labelsure._kernels.threads import one_blas_thread
from labelsure._runtime.processes import TaskFailure, run_tasks, watched_workers
from labelsure._runtime.typing import Array, Floats, Indices, Mask
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

R = TypeVar("R")

PAPER_MODELS = ("HP", "SE", "CE")
"""Candidates with a model of their own in the paper; the model MIX has all of them."""

WIDTHS = {"hamming": 0.05}
DEFAULT_WIDTH = 0.1
"""Width of the intervals of estimates; Hamming similarities lie closer together."""

INTERVAL = ["predicted_low", "predicted_high"]
REPLICATE = ["metric", "model", "replicate", *INTERVAL, "n", "estimated", "accuracy"]
LEAST_TO_FIT = 2
"""Minimum number of rows to fit a model of accuracy."""

PENALTIES = np.geomspace(1e-11, 10.0, 13)
"""Ridge penalties on standardised columns, for a unit of weight, as in glmnet. On the paper's data
sets none is chosen at either end."""

FIRST_PENALTY = 7
"""Index of 1e-4 in `PENALTIES`, where the search starts."""

N_FOLDS = 10
MAX_STEPS, TOLERANCE = 100, 1e-9
"""Newton steps of a fit at most, and the gain at which it ends: the next would be its square."""

_QUOTIENTS = {JACCARD: ([1, 0, 0, 0], [1, 1, 1, 0]), F1: ([2, 0, 0, 0], [2, 1, 1, 0])}
"""Weights of the rates of (tp, fp, fn, tn) in numerator and denominator of a metric."""


def check_columns(frame: pd.DataFrame, needed: Iterable[str], name: str) -> None:
    """Raise InputError if a frame has no rows or lacks one of these columns."""
    missing = [column for column in needed if column not in frame]
    if missing or not len(frame):
        raise InputError(
            f"`{name}` must have rows and the columns {', '.join(needed)}, got {len(frame)} rows "
            f"without {', '.join(missing) or 'a missing column'}. Pass the whole table."
        )


def row_accuracy(table: ScoreTable, metric: str, empty: float | str) -> Floats:
    """Accuracy of each row, (n,); NaN where "omit" leaves it out."""
    if empty != OMIT:
        return table.accuracy(metric, float(empty))
    tp, fp, fn, _ = table.counts()
    is_undefined = (tp + fp + fn == 0) & get_metric(metric).depends_on_empty
    return np.where(is_undefined, np.nan, table.accuracy(metric, 0.0))


def run_all(
    function: Callable[..., R],
    tasks: Sequence[tuple[object, ...]],
    *,
    n_jobs: int = 1,
    shared: object = None,
) -> list[R]:
    """Results of a function, in the order of the tasks, from worker processes.

    Raises InputError if a task fails.
    """
    with watched_workers():
        outcomes = dict(run_tasks(function, tasks, n_jobs=n_jobs, shared=shared))
    results = []
    for position in range(len(tasks)):
        result = outcomes[position]
        if isinstance(result, TaskFailure):
            raise InputError(result.message)
        results.append(result)
    return results


def mixture_replicates(
    scores: pd.DataFrame, settings: Settings | None = None, *, n_jobs: int = 1
) -> pd.DataFrame:
    """Estimated and actual accuracy of each model in each halving, a row for each interval.

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
    frames = run_all(_replicates, tasks, n_jobs=n_jobs, shared=shared)
    parts = [
        part.assign(metric=m, model=model) for part, (m, model) in zip(frames, names, strict=True)
    ]
    return pd.concat(parts)[REPLICATE].sort_values("replicate", kind="stable", ignore_index=True)


def _replicates(shared: tuple[list[Mask], int], regression: _Regression) -> pd.DataFrame:
    """Interval means of one model in each halving."""
    halves, seed = shared
    parts = []
    with one_blas_thread():
        penalty = regression.choose_penalty(halves[0] & regression.is_defined, seed)
        for replicate, half in enumerate(halves):
            held_out, estimated = regression.estimate(half & regression.is_defined, penalty)
            means = _interval_means(regression.metric, estimated, regression.accuracy[held_out])
            parts.append(means.assign(replicate=replicate))
    return pd.concat(parts)


class _Regression:
    """Ridge-penalised logistic regression of the counts behind a metric.

    `counts` (K, n) are the occurrences of each class in a row; the accuracy is the quotient
    `numerator` @ rates / `denominator` @ rates. Coefficients (K, p) are those of an intercept and
    of each classifier, and for each data set an offset and slopes, which are 0 in the rows of all
    others: `columns` (n, q) has the remaining columns of a row, and `places` (data sets, q) their
    indices among the p coefficients.
    """

    def __init__(
        self, pooled: pd.DataFrame, metric: str, features: tuple[str, ...], empty: float | str
    ) -> None:
        table, resolved = ScoreTable(pooled), get_metric(metric)
        self.metric, self.accuracy = metric, row_accuracy(table, metric, empty)
        self.is_defined = ~np.isnan(self.accuracy)
        self.counts = np.array([self.accuracy, 1 - self.accuracy])
        self.numerator, self.denominator = [1, 0], [1, 1]
        if resolved == HAMMING:
            tp, fp, fn, tn = table.counts()
            self.counts = np.array([tp + tn, fp + fn], dtype=float)
        elif resolved in _QUOTIENTS:
            self.counts = np.array(table.counts(), dtype=float)
            self.numerator, self.denominator = _QUOTIENTS[resolved]
        self.dataset, self.classifier = (
            pd.factorize(pooled[name])[0] for name in ("dataset", "classifier")
        )
        ones = np.ones((len(pooled), 1))
        common = np.hstack([ones, np.eye(self.classifier.max() + 1)[self.classifier]])
        own = np.hstack([ones, feature_matrix(table, check_features(features), resolved, 0.0)])
        self.columns = np.hstack([common, own])
        n_common, n_own = common.shape[1], own.shape[1]
        first = n_common + n_own * np.arange(self.dataset.max() + 1)
        self.places = np.array([[*range(n_common), *range(k, k + n_own)] for k in first])

    def fit(self, is_fitted: Mask, penalty: float, start: Floats | None = None) -> Floats:
        """Coefficients (K, p) with the least deviance and penalty on some rows.

        The penalty is that of standardised columns, for a unit of weight. Newton's method: steps
        are halved until the objective does not rise, and end when they gain nothing. The Hessian
        is that of each data set, diag(rates) - rates rates' for a row, by its few columns.
        """
        rows, parts = self._by_dataset(is_fitted)
        occurs = self.counts[:, rows].sum(axis=1) > 0
        weights = self.counts[np.ix_(occurs, rows)] / self.counts[:, rows].sum()
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
            logs = _log_softmax(columns, parts, coefficients)
            penalties = float((ridge * coefficients**2).sum()) / 2
            return penalties - float((weights * logs).sum()), np.exp(logs)

        solution = np.zeros((k, n_columns))
        if start is not None:
            solution = np.nan_to_num(start[occurs], neginf=0)
        value, rates = objective(solution)
        for _ in range(MAX_STEPS):
            gradient, hessian = ridge * solution, np.zeros((k, k, n_columns, n_columns))
            residuals = totals * rates - weights
            for part, places in parts:
                X, at = columns[part], np.ix_(places, places)
                gradient[:, places] += residuals[:, part] @ X
                for i, j in combinations_with_replacement(range(k), 2):
                    share = totals[part] * rates[i, part] * ((i == j) - rates[j, part])
                    hessian[i, j][at] += (share * X.T) @ X
            for i, j in combinations(range(k), 2):
                hessian[j, i] = hessian[i, j]
            whole = hessian.swapaxes(1, 2).reshape(solution.size, solution.size)
            whole[np.diag_indices(solution.size)] += np.tile(ridge, k)
            step = np.linalg.solve(whole, gradient.ravel()).reshape(solution.shape)
            gain = float((gradient * step).sum())
            trial = objective(solution - step)
            while trial[0] > value and gain > TOLERANCE:
                step, gain = step / 2, gain / 2
                trial = objective(solution - step)
            solution, (value, rates) = solution - step, trial
            if gain <= TOLERANCE:
                break
        coefficients = np.zeros((len(occurs), n_columns))
        coefficients[occurs], coefficients[~occurs, 0] = solution, -np.inf
        return coefficients

    def _by_dataset(self, selected: Mask) -> tuple[Indices, list[tuple[slice, Indices]]]:
        """Selected rows sorted by data set; the slice and coefficient indices of each data set."""
        rows = np.flatnonzero(selected)
        rows = rows[np.argsort(self.dataset[rows], kind="stable")]
        ends = np.searchsorted(self.dataset[rows], np.arange(len(self.places) + 1))
        return rows, [
            (slice(*end), at) for end, at in zip(pairwise(ends), self.places, strict=True)
        ]

    def rates(self, selected: Mask, coefficients: Floats) -> tuple[Indices, Floats]:
        """Selected rows sorted by data set, and the rate of each class in them, (K, m)."""
        rows, parts = self._by_dataset(selected)
        return rows, np.exp(_log_softmax(self.columns[rows], parts, coefficients))

    def choose_penalty(self, half: Mask, seed: int) -> float:
        """Penalty with the least cross-validated deviance on the rows of a half.

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
        """Rows outside of a half whose groups occur in it, and their estimated accuracies."""
        is_covered = [np.isin(group, group[half]) for group in (self.dataset, self.classifier)]
        held_out = ~half & self.is_defined & np.all(is_covered, axis=0)
        if half.sum() < LEAST_TO_FIT or not held_out.any():
            return np.empty(0, dtype=int), np.empty(0)
        rows, rates = self.rates(held_out, self.fit(half, penalty))
        return rows, (self.numerator @ rates) / (self.denominator @ rates)


def _log_softmax(
    columns: Floats, parts: list[tuple[slice, Indices]], coefficients: Floats
) -> Floats:
    """Log probabilities of the classes in each row, (K, n)."""
    logits = np.empty((len(coefficients), len(columns)))
    for part, places in parts:
        logits[:, part] = coefficients[:, places] @ columns[part].T
    logits -= logits.max(axis=0)
    return logits - np.log(np.exp(logits).sum(axis=0))


def _halves(pooled: pd.DataFrame, settings: Settings) -> Iterator[Mask]:
    """Yield the training rows of each replicate as a mask, (n,)."""
    unit: Array = np.arange(len(pooled))
    if settings.by_instance:
        unit = pooled.groupby(["dataset", "instance"]).ngroup().to_numpy()
    n_units = int(unit.max()) + 1
    rng = np.random.default_rng(settings.seed)
    for _ in range(settings.n_replicates):
        chosen = np.zeros(n_units, dtype=bool)
        chosen[rng.permutation(n_units)[: n_units // 2]] = True
        yield chosen[unit]


def _interval_means(metric: str, estimated: Floats, accuracy: Floats) -> pd.DataFrame:
    """Means of estimates and accuracies in each interval (low, high] of estimates."""
    n_intervals = round(1 / WIDTHS.get(metric, DEFAULT_WIDTH))
    edges = np.round(np.arange(n_intervals + 1) / n_intervals, 10)
    # 0 itself goes into the first interval.
    place = np.clip(np.searchsorted(edges, estimated, side="left") - 1, 0, n_intervals - 1)
    values = pd.DataFrame({"estimated": estimated, "accuracy": accuracy}).groupby(place)
    means = values.mean().assign(n=values.size())
    ends = {name: edges[means.index + k] for k, name in enumerate(INTERVAL)}
    return means.assign(**ends)


def interval_table(replicates: pd.DataFrame) -> pd.DataFrame:
    """95% interval of the mean accuracy for each interval of estimated accuracies.

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
    summary = groups.agg(n_replicates=("replicate", "size"), n=("n", "mean"))
    summary[["estimated", "accuracy"]] = groups[["estimated", "accuracy"]].mean()
    summary["low"], summary["high"] = (groups["accuracy"].quantile(q) for q in (0.025, 0.975))
    # Every model for every interval that any model's estimates fell into.
    intervals = replicates[["metric", *INTERVAL]].drop_duplicates()
    place = intervals["metric"].map({m: k for k, m in enumerate(intervals["metric"].unique())})
    intervals = intervals.assign(place=place).sort_values(["place", INTERVAL[0]])
    table = intervals.drop(columns="place").merge(
        pd.DataFrame({"model": replicates["model"].unique()}), how="cross"
    )
    table = table.merge(summary.reset_index(), how="left")
    counts = table[["n_replicates", "n"]].fillna(0)
    return mark_intervals(table.assign(**counts).astype({"n_replicates": int}))


def mark_intervals(intervals: pd.DataFrame) -> pd.DataFrame:
    """Interval tables with `bold` and `underlined`, compared by the three printed digits."""
    low, high = intervals["low"].round(3), intervals["high"].round(3)
    distance = (
        (low - intervals["predicted_low"]).abs() + (high - intervals["predicted_high"]).abs()
    ).round(9)
    rows = [intervals["metric"], intervals["predicted_low"]]
    least = distance.groupby(rows).transform("min")
    return intervals.assign(bold=distance == least, underlined=low < intervals["predicted_low"])
