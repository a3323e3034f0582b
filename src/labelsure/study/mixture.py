"""Analysis 5: models that turn candidates into an estimated accuracy, and how well they do.

All rows of a repeat are pooled. A random half fits each model, the other half is cut by its
estimated accuracy into intervals, and the mean accuracy in each is compared with the interval.
Twenty such halvings give the 95% interval of that mean. A model knows only the data sets and
classifiers of its half: rows of others, as a data set of two or three instances has them, are not
estimated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
from joblib import Parallel, delayed

from labelsure._runtime.processes import count_workers, watched_workers
from labelsure._runtime.typing import Floats, Mask
from labelsure.errors import InputError, unknown_name
from labelsure.estimation._design import RATE_METRICS
from labelsure.estimation._estimator import AccuracyEstimator
from labelsure.estimation.score_table import ScoreTable
from labelsure.metrics.registry import METRICS, check_empty
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
    tasks = [
        _Task(metric, model, replicate, half)
        for replicate, half in enumerate(_halves(pooled, n_replicates, by_instance, random_state))
        for metric in metrics
        for model in models
    ]

    def fit(task: _Task) -> pd.DataFrame:
        by_rates = response == "rates" and task.metric in RATE_METRICS
        estimator = AccuracyEstimator(
            task.metric,
            features=models[task.model],
            empty=empty,
            response="rates" if by_rates else "value",
            penalty="paper",
            random_state=random_state + task.replicate,
        )
        return _replicate(pooled, task, estimator, empty)

    with watched_workers():
        parallel = Parallel(n_jobs=count_workers(n_jobs, len(tasks)))
        parts = parallel(delayed(fit)(task) for task in tasks)
    return pd.concat([part for part in parts if len(part)] or parts[:1], ignore_index=True)


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


def _replicate(
    pooled: pd.DataFrame, task: _Task, estimator: AccuracyEstimator, empty: float
) -> pd.DataFrame:
    groups = {"slope_groups": "dataset", "offset_groups": "classifier"}
    fitted, held_out = pooled[task.half], pooled[~task.half]
    for name in groups.values():
        held_out = held_out[held_out[name].isin(fitted[name].unique())]
    if len(fitted) < LEAST_TO_FIT or held_out.empty:
        estimated, held_out = np.empty(0), held_out[:0]
    else:
        estimated = estimator.fit(fitted, **groups).predict(held_out, **groups)
    cut = _cut(task.metric, estimated, ScoreTable(held_out).accuracy(task.metric, empty))
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
