"""Columns of the score table, asked for by the names of metrics and candidates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import pandas as pd

from labelsure._typing import Floats
from labelsure.candidates import CANDIDATES
from labelsure.distributions import Profile
from labelsure.errors import InputError, unknown_name
from labelsure.metrics import METRICS, MetricLike, get_metric

CELL = ["dataset", "classifier", "repeat"]
"""What names a cell of the study: one classifier on one split of one data set."""

COUNTS = ["tp", "fp", "fn", "tn"]
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
    values = np.empty(len(scores))
    n_labels = scores["n_labels"].to_numpy()
    columns = {name: scores[name].to_numpy(np.float64) for name in PROFILE[:-1]}
    for size in np.unique(n_labels):
        rows = n_labels == size
        profile = Profile(**{k: v[rows] for k, v in columns.items()}, n_labels=float(size))
        values[rows] = CANDIDATES[candidate].function(profile)
    return values


def _log_top_gap(scores: pd.DataFrame) -> Floats:
    top, runner_up = (scores[name].to_numpy(np.float64) for name in ("log_top", "log_runner_up"))
    with np.errstate(divide="ignore"):  # a tie has a gap of 0
        return top + np.log(-np.expm1(np.minimum(runner_up - top, 0.0)))


RANK_KEYS: dict[str, Callable[[pd.DataFrame], Floats]] = {
    "HP": lambda scores: scores["log_top"].to_numpy(np.float64),
    "ME": lambda scores: scores["log_top"].to_numpy(np.float64),
    "TG": _log_top_gap,
    "SE": lambda scores: -scores["entropy"].to_numpy(np.float64),
    "CE": lambda scores: scores["log_collision"].to_numpy(np.float64),
    "GI": lambda scores: scores["log_collision"].to_numpy(np.float64),
    "CS": lambda scores: scores["log_collision"].to_numpy(np.float64),
    "ESS": lambda scores: -scores["log_collision"].to_numpy(np.float64),
}
"""What orders instances as a candidate does, without the ties that rounding gives its values."""


def rank_keys(scores: pd.DataFrame, candidate: str) -> Floats:
    """Return a candidate's order within a cell: HP and ME share it, and so do CE, GI and CS."""
    if candidate in RANK_KEYS:
        return RANK_KEYS[candidate](scores)
    return candidate_values(scores, candidate)
