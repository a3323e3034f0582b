"""Tables beyond the paper: the truth where it is known, better decisions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from labelsure.study.analyses._beyond_paper import optimal_decisions, true_accuracy
from labelsure.study.report._printed_table import PrintedTable, print_number

if TYPE_CHECKING:
    import pandas as pd

    from labelsure.study.analyses._all_analyses import Analyses


def tables_beyond(analyses: Analyses) -> Iterator[PrintedTable]:
    """Return the tables that the paper does not have.

    Parameters
    ----------
    analyses
        Of a study.
    """
    settings = analyses.settings
    truth = true_accuracy(
        analyses.scores,
        metrics=settings.metrics,
        candidates=settings.candidates,
        empty=settings.empty,
    )
    if len(truth):
        keys = ["metric", "dataset", "classifier", "candidate"]
        means = truth.groupby(keys, sort=False)[["kendall", "pearson", "mean_error"]].mean()
        yield _frame_table(
            "true_accuracy",
            "Correlation with the true expected accuracy, where it is known",
            means.reset_index(),
            "model: the classifier's own expectation; mean_error: how far it is above the truth.",
        )
    better = optimal_decisions(analyses.scores, metrics=settings.metrics, empty=settings.empty)
    if len(better):
        means = better.groupby(["metric", "dataset", "classifier"], sort=False)[
            ["mode", "best", "gain", "standard_error", "gap"]
        ].mean()
        yield _frame_table(
            "optimal_decisions",
            "Mean accuracy of the mode and of the metric's best decision",
            means.reset_index(),
            "Means over repeats; the standard error is that of one repeat. gap: how far the mean "
            "expected accuracy of the decisions can be below the best possible.",
        )


def _frame_table(name: str, title: str, frame: pd.DataFrame, note: str) -> PrintedTable:
    shown = frame.map(lambda value: value if isinstance(value, str) else print_number(value, 4))
    n_text = sum(isinstance(value, str) for value in frame.iloc[0])
    return PrintedTable(name, title, shown, note, n_text=n_text)
