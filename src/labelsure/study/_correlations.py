"""Analyses 0 and 3: how each candidate correlates with accuracy, and whether better than HP."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from statsmodels.stats.multitest import multipletests

from labelsure._typing import Floats
from labelsure.metrics import check_empty
from labelsure.study._association import ASSOCIATIONS, Association, difference
from labelsure.study._scores import (
    CELL,
    accuracies,
    candidate_values,
    check_candidates,
    check_metrics,
    check_scores,
    rank_keys,
)

Values = Callable[[pd.DataFrame, str], Floats]

BASELINE = "HP"
PAPER_METRICS = ("exact", "hamming", "jaccard")
KENDALL_CANDIDATES = ("HP", "TG", "SE", "CE")
PEARSON_CANDIDATES = ("HP", "TG", "SE", "CE", "ME", "CS")
LEVELS = (0.1, 0.05, 0.01)
"""An arrow for each level that a difference from HP is significant at."""


def kendall(
    scores: pd.DataFrame,
    *,
    metrics: str | Sequence[str] = PAPER_METRICS,
    candidates: str | Sequence[str] = KENDALL_CANDIDATES,
    empty: float = 0.0,
) -> pd.DataFrame:
    """Return Kendall's tau-b of each candidate with each accuracy, in every cell.

    Parameters
    ----------
    scores
        The score table, one row for each instance: dataset, classifier, repeat, n_labels, the
        profile (log_top, log_runner_up, entropy, log_collision), and tp, fp, fn, tn.
    metrics, candidates
        Their names.
    empty
        The Jaccard and F1 of two empty labelsets.

    Returns
    -------
    pandas.DataFrame
        metric, dataset, classifier, candidate, repeat, n, correlation (missing where the candidate
        or the accuracy is constant), difference (from HP's), standard_error (of the difference),
        p_value (two-sided), arrows ("+" or "-", repeated for 0.1, 0.05 and 0.01) and p_value_holm,
        which allows for all tests of a repeat.
    """
    return _correlations("kendall", rank_keys, scores, metrics, candidates, empty)


def pearson(
    scores: pd.DataFrame,
    *,
    metrics: str | Sequence[str] = PAPER_METRICS,
    candidates: str | Sequence[str] = PEARSON_CANDIDATES,
    empty: float = 0.0,
) -> pd.DataFrame:
    """Return Pearson's correlation of each candidate with each accuracy, in every cell.

    Parameters
    ----------
    scores, metrics, candidates, empty
        As for `kendall`.

    Returns
    -------
    pandas.DataFrame
        The columns of `kendall`.
    """
    return _correlations("pearson", candidate_values, scores, metrics, candidates, empty)


def arrows(gap: float, p_value: float) -> str:
    """Return "+" or "-", once for each level that the p-value is below.

    Examples
    --------
    >>> arrows(0.1, 0.03), arrows(-0.1, 0.003), arrows(-0.1, 0.3)
    ('++', '---', '')
    """
    return ("+" if gap > 0 else "-") * sum(p_value < level for level in LEVELS)


def _correlations(
    association: str,
    values: Values,
    scores: pd.DataFrame,
    metrics: str | Sequence[str],
    candidates: str | Sequence[str],
    empty: float,
) -> pd.DataFrame:
    scores, empty = check_scores(scores), check_empty(empty)
    metrics, candidates = check_metrics(metrics), check_candidates(candidates)
    correlate = ASSOCIATIONS[association]
    rows: list[dict[str, Any]] = []
    for metric in metrics:
        # Cells in the order in which they come, so that tables keep the order of the plan.
        for cell, part in scores.groupby(CELL, sort=False):
            name = {"metric": metric, **dict(zip(CELL, cell, strict=True)), "n": len(part)}
            outcome = accuracies(part, metric, empty)
            to_outcome = _with_outcome(correlate, outcome)
            rows += [
                {**name, **entry} for entry in _cell(to_outcome, partial(values, part), candidates)
            ]
    return _with_holm(pd.DataFrame(rows))


def _with_outcome(
    correlate: Callable[[Floats, Floats], Association], outcome: Floats
) -> Callable[[Floats], Association]:
    return lambda score: correlate(score, outcome)


def _cell(
    correlate: Callable[[Floats], Association],
    values: Callable[[str], Floats],
    candidates: Sequence[str],
) -> Iterator[dict[str, Any]]:
    baseline = correlate(values(BASELINE))
    for candidate in candidates:
        if candidate == BASELINE:
            yield {"candidate": candidate, "correlation": baseline.value, "arrows": ""}
            continue
        found = correlate(values(candidate))
        gap = difference(found, baseline)
        yield {
            "candidate": candidate,
            "correlation": found.value,
            "difference": gap.value,
            "standard_error": gap.standard_error,
            "p_value": gap.p_value,
            "arrows": arrows(gap.value, gap.p_value),
        }


_COLUMNS = [
    "metric",
    "dataset",
    "classifier",
    "candidate",
    "repeat",
    "n",
    "correlation",
    "difference",
    "standard_error",
    "p_value",
    "arrows",
    "p_value_holm",
]


def _with_holm(frame: pd.DataFrame) -> pd.DataFrame:
    corrected = pd.Series(np.nan, index=frame.index)
    for _, part in frame.reindex(columns=_COLUMNS).groupby("repeat"):
        tested = part["p_value"].dropna()
        if len(tested):
            corrected[tested.index] = multipletests(tested, method="holm")[1]
    return frame.assign(p_value_holm=corrected).reindex(columns=_COLUMNS)
