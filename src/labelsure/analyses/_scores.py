"""Columns of the score table, asked for by the names of metrics and candidates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import pandas as pd

from labelsure._typing import Floats
from labelsure.candidates import CANDIDATES
from labelsure.distributions import Profile
from labelsure.errors import InputError, unknown_name
from labelsure.metrics import COUNTS, METRICS, MetricLike, get_metric

CELL = ["dataset", "classifier", "repeat"]
"""What names a cell of the study: one classifier on one split of one data set."""

PROFILE = ["log_top", "log_runner_up", "entropy", "log_collision", "n_labels"]


def check_columns(frame: pd.DataFrame, needed: Iterable[str], name: str) -> pd.DataFrame:
    """Return the frame if it has all these columns, or say which is missing."""
    if not isinstance(frame, pd.DataFrame):
        raise InputError(f"`{name}` must be a DataFrame, got {type(frame).__name__}.")
    missing = [column for column in needed if column not in frame.columns]
    if missing:
        raise InputError(
            f"`{name}` must have the columns {', '.join(needed)}; {', '.join(missing)} "
            f"{'is' if len(missing) == 1 else 'are'} missing. It has "
            f"{', '.join(map(str, frame.columns)) or 'none'}."
        )
    if frame.empty:
        raise InputError(f"`{name}` must have at least one row, got none.")
    return frame


def check_scores(scores: pd.DataFrame) -> pd.DataFrame:
    """Return a score table that every analysis can read; one without repeats is repeat 0."""
    if isinstance(scores, pd.DataFrame) and "repeat" not in scores.columns:
        scores = scores.assign(repeat=0)
    return check_columns(scores, [*CELL, *COUNTS, *PROFILE], "scores")


def check_names(names: str | Sequence[str], known: Iterable[str], what: str) -> tuple[str, ...]:
    """Return the names as a tuple, each of them known."""
    chosen = (names,) if isinstance(names, str) else tuple(names)
    for name in chosen:
        if name not in known:
            raise unknown_name(what, name, known)
    if not chosen:
        raise InputError(f"At least one {what} must be named, got none. Known: {', '.join(known)}.")
    return chosen


def check_metrics(metrics: str | Sequence[str]) -> tuple[str, ...]:
    """Return names of metrics, each of them known."""
    return check_names(metrics, METRICS, "metric")


def check_candidates(candidates: str | Sequence[str]) -> tuple[str, ...]:
    """Return names of candidates, each of them known."""
    return check_names(candidates, CANDIDATES, "candidate")


def accuracies(scores: pd.DataFrame, metric: MetricLike, empty: float) -> Floats:
    """Return the accuracy of each decision."""
    return get_metric(metric).values(*(scores[name] for name in COUNTS), empty=empty)


def candidate_values(scores: pd.DataFrame, candidate: str) -> Floats:
    """Return a candidate's value in each row, whatever its number of labels."""
    return _of_profiles(scores, CANDIDATES[candidate].function)


def rank_keys(scores: pd.DataFrame, candidate: str) -> Floats:
    """Return a candidate's order within a cell: HP and ME share it, and so do CE, GI and CS."""
    return _of_profiles(scores, CANDIDATES[candidate].ranks)


def _of_profiles(scores: pd.DataFrame, function: Callable[[Profile], Floats]) -> Floats:
    values = np.empty(len(scores))
    n_labels = scores["n_labels"].to_numpy()
    columns = {name: scores[name].to_numpy(np.float64) for name in PROFILE[:-1]}
    for size in np.unique(n_labels):
        rows = n_labels == size
        profile = Profile(**{k: v[rows] for k, v in columns.items()}, n_labels=float(size))
        values[rows] = function(profile)
    return values


def expected_accuracies(
    scores: pd.DataFrame, metric: MetricLike, empty: float, *, true: bool = False
) -> Floats:
    """Return the expected accuracy of each decision, for any worth of two empty labelsets.

    Parameters
    ----------
    scores
        With expected_<metric> and p_empty. The column is made with two empty labelsets worth 0;
        an empty decision gains `empty` times the probability that the truth is empty, too.
    metric, empty
        Which accuracy.
    true
        Under the distribution that the data was drawn from (true_expected_<metric>,
        true_p_empty), and not under the classifier's.
    """
    prefix, metric = "true_" if true else "", get_metric(metric)
    values = scores[f"{prefix}expected_{metric.name}"].to_numpy(np.float64)
    p_empty = f"{prefix}p_empty"
    if empty == 0 or not metric.depends_on_empty or p_empty not in scores.columns:
        return values
    is_empty = (scores["tp"] + scores["fp"]).to_numpy() == 0
    return values + np.where(is_empty, empty * scores[p_empty].to_numpy(np.float64), 0.0)
