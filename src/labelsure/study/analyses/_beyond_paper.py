"""Beyond the paper: spread over repeats, the truth where it is known, better decisions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from labelsure.estimation.score_table import CELL, ScoreTable
from labelsure.metrics.registry import COUNTS, check_empty
from labelsure.study.analyses._correlations import (
    PAPER_METRICS,
    PEARSON_CANDIDATES,
    check_candidates,
    check_metrics,
    check_scores,
    kendall_association,
    pearson_association,
)

MODEL = "model"
"""The expected accuracy under the classifier's own distribution, beside the candidates."""


def spread(correlations: pd.DataFrame) -> pd.DataFrame:
    """Return mean, standard deviation and range of each correlation over the repeats.

    Parameters
    ----------
    correlations
        Of `kendall` or `pearson`.

    Returns
    -------
    pandas.DataFrame
        metric, dataset, classifier, candidate, n_repeats, mean, standard_deviation, least, most.
    """
    keys = ["metric", "dataset", "classifier", "candidate"]
    found = correlations.groupby(keys, sort=False)["correlation"].agg(
        ["count", "mean", "std", "min", "max"]
    )
    names = {"count": "n_repeats", "std": "standard_deviation", "min": "least", "max": "most"}
    return found.rename(columns=names).reset_index()


def true_accuracy(
    scores: pd.DataFrame,
    *,
    metrics: str | Sequence[str] = PAPER_METRICS,
    candidates: str | Sequence[str] = PEARSON_CANDIDATES,
    empty: float = 0.0,
) -> pd.DataFrame:
    """Return how candidates correlate with the *true* expected accuracy, where it is known.

    Parameters
    ----------
    scores
        The score table with columns such as true_expected_exact; rows where it is missing (data
        that nobody simulated) are left out. With expected_exact, the classifier's own expectation
        is a candidate, "model". Both are without what two empty labelsets are worth; p_empty and
        true_p_empty add it.
    metrics, candidates, empty
        As for `kendall`.

    Returns
    -------
    pandas.DataFrame
        metric, dataset, classifier, repeat, candidate, n, kendall, pearson, and mean_error (mean
        of the expected accuracy minus the truth, for "model" only). Empty if the truth is unknown
        everywhere.
    """
    scores, empty = check_scores(scores), check_empty(empty)
    metrics, candidates = check_metrics(metrics), check_candidates(candidates)
    rows: list[dict[str, Any]] = []
    for metric in metrics:
        truth = f"true_expected_{metric}"
        if truth not in scores.columns:
            continue
        known = scores[scores[truth].notna()]
        for cell, part in known.groupby(list(CELL), sort=False):
            name = {"metric": metric, **dict(zip(CELL, cell, strict=True)), "n": len(part)}
            table = ScoreTable(part)
            has_expected = f"expected_{metric}" in part.columns
            rows += [
                {**name, **row}
                for row in _against_truth(table, metric, candidates, empty, has_expected)
            ]
    columns = ["metric", *CELL, "candidate", "n", "kendall", "pearson", "mean_error"]
    return pd.DataFrame(rows, columns=columns)


def _against_truth(
    table: ScoreTable, metric: str, candidates: Sequence[str], empty: float, has_expected: bool
) -> list[dict[str, Any]]:
    truth = table.true_expected(metric, empty)
    rows = [
        {
            "candidate": candidate,
            "kendall": kendall_association(table.ranks(candidate), truth).value,
            "pearson": pearson_association(table.candidate(candidate), truth).value,
        }
        for candidate in candidates
    ]
    if has_expected:
        model = table.expected(metric, empty)
        rows.append(
            {
                "candidate": MODEL,
                "kendall": kendall_association(model, truth).value,
                "pearson": pearson_association(model, truth).value,
                "mean_error": float(np.mean(model - truth)),
            }
        )
    return rows


def optimal_decisions(
    scores: pd.DataFrame,
    *,
    metrics: str | Sequence[str] = PAPER_METRICS,
    empty: float = 0.0,
) -> pd.DataFrame:
    """Return what each metric's best decision gains over the mode, in every cell.

    Parameters
    ----------
    scores
        The score table with columns such as best_jaccard_tp, best_jaccard_fp, best_jaccard_fn,
        best_jaccard_tn and best_jaccard_gap; metrics and rows without them are left out, and so is
        exact match, whose best decision is the mode.
    metrics, empty
        As for `kendall`.

    Returns
    -------
    pandas.DataFrame
        metric, dataset, classifier, repeat, n, mode and best (mean accuracy of each decision), the
        gain, its standard_error, and gap: how far, at most, the mean expected accuracy of
        the decisions is below the best possible; 0 where they are known to be the best.
    """
    scores, empty = check_scores(scores), check_empty(empty)
    rows = []
    for metric in check_metrics(metrics):
        counts = [f"best_{metric}_{name}" for name in COUNTS]
        gap = f"best_{metric}_gap"
        if not {*counts, gap} <= set(scores.columns):
            continue
        for cell, part in scores.dropna(subset=counts).groupby(list(CELL), sort=False):
            table = ScoreTable(part)
            mode, best = table.accuracy(metric, empty), table.best_accuracy(metric, empty)
            error = np.std(best - mode, ddof=1) / np.sqrt(len(part)) if len(part) > 1 else np.nan
            means = (mode.mean(), best.mean(), (best - mode).mean())
            rows.append((metric, *cell, len(part), *means, error, part[gap].mean()))
    columns = ["metric", *CELL, "n", "mode", "best", "gain", "standard_error", "gap"]
    return pd.DataFrame(rows, columns=columns)
