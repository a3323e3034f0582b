"""Open labels of a study: how many are left open, and how accurate the rest is."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from labelsure.analyses._correlations import PAPER_METRICS, check_metrics, check_scores
from labelsure.metrics import COUNTS, check_empty, get_metric
from labelsure.score_columns import CELL, OPEN_COLUMNS
from labelsure.score_table import ScoreTable


def decided_labels(
    scores: pd.DataFrame, *, metrics: str | Sequence[str] = PAPER_METRICS, empty: float = 0.0
) -> pd.DataFrame:
    """Return the share of open labels and the accuracy of the decided ones, in every cell.

    Parameters
    ----------
    scores
        The score table with columns such as open_labels; rows without them are left out.
    metrics, empty
        As for `kendall`.

    Returns
    -------
    pandas.DataFrame
        metric, dataset, classifier, repeat, n, share_open (of all labels), undecided (the share of
        instances all of whose labels are open), mode (mean accuracy of the most probable
        labelsets), decided (mean accuracy of the decided labels, over instances that have any) and
        its standard_error.
    """
    scores, empty = check_scores(scores), check_empty(empty)
    rows = []
    if set(OPEN_COLUMNS) <= set(scores.columns):
        known = scores.dropna(subset=list(OPEN_COLUMNS))
        for name in check_metrics(metrics):
            for cell, part in known.groupby(list(CELL), sort=False):
                mode = ScoreTable(part).accuracy(name, empty)
                some = part[part["open_labels"] < part["n_labels"]]
                counts = (some[f"open_{count}"].to_numpy() for count in COUNTS)
                values = get_metric(name).values(*counts, empty=empty)
                error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
                share = (part["open_labels"] / part["n_labels"]).mean()
                shares = (share, 1 - len(some) / len(part), mode.mean())
                decided = values.mean() if len(values) else np.nan
                rows.append((name, *cell, len(part), *shares, decided, error))
    columns = ["share_open", "undecided", "mode", "decided", "standard_error"]
    return pd.DataFrame(rows, columns=["metric", *CELL, "n", *columns])
