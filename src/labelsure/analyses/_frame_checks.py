"""Checks of frames and names that analyses are asked about."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pandas as pd

from labelsure.candidates import CANDIDATES
from labelsure.errors import InputError, unknown_name
from labelsure.metrics import COUNTS, METRICS
from labelsure.score_table import CELL, PROFILE


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
    return check_columns(scores, [*CELL, *COUNTS, *PROFILE, "n_labels"], "scores")


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
