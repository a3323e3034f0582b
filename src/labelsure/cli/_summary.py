"""What a study found, in a few lines."""

from __future__ import annotations

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

from labelsure._typing import Floats
from labelsure.analyses._scores import accuracies
from labelsure.study import StudyRun

CORRELATIONS = "tables/values_kendall.csv"

NO_EMPTY_TERM = ("exact", "hamming")
"""Metrics for which two empty labelsets are no special case."""


def print_summary(run: StudyRun) -> None:
    """Print accuracies, expected accuracies and where the files are.

    Parameters
    ----------
    run
        What to tell of.
    """
    console = Console(highlight=False, soft_wrap=True)
    if len(run.scores):
        console.print(_accuracies(accuracy_table(run), run.plan.metrics))
    if (run.folder / CORRELATIONS).is_file():
        console.print(_correlations(pd.read_csv(run.folder / CORRELATIONS)))
    for name, failure in run.failures.items():
        console.print(f"FAILED {name}: {failure['message'].splitlines()[0]}", markup=False)
    cells = f"Cells: {run.n_computed} computed, {run.n_kept} kept, {len(run.failures)} failed"
    console.print(f"{cells}; {run.seconds:.0f} s.")
    console.print(f"Scores   {run.folder / 'scores.parquet'}", markup=False)
    for name in ("tables", "figures"):
        n_files = sum(path.is_file() for path in (run.folder / name).glob("*"))
        console.print(f"{name.capitalize():<8} {run.folder / name} ({n_files} files)", markup=False)
    if run.failures:
        console.print(f"Failures {run.folder / 'failures.json'}", markup=False)


def accuracy_table(run: StudyRun) -> pd.DataFrame:
    """Return the mean actual and expected accuracy of the mode, by data set and classifier.

    Parameters
    ----------
    run
        With the score table and the plan's metrics.
    """
    columns = {}
    for metric in run.plan.metrics:
        columns[metric] = accuracies(run.scores, metric, run.plan.empty)
        columns[f"expected {metric}"] = expected(run.scores, metric, run.plan.empty)
    keys = [run.scores["dataset"], run.scores["classifier"]]
    return pd.DataFrame(columns).groupby(keys, sort=False).mean()


def expected(scores: pd.DataFrame, metric: str, empty: float) -> Floats:
    """Return the expected accuracy of each row, with the term of two empty labelsets."""
    values = scores[f"expected_{metric}"].to_numpy()
    if metric in NO_EMPTY_TERM:
        return values
    nothing = (scores["tp"] + scores["fp"]).to_numpy() == 0
    return values + empty * np.where(nothing, scores["p_empty"].to_numpy(), 0.0)


def _accuracies(means: pd.DataFrame, metrics: tuple[str, ...]) -> Table:
    table = Table(title="Mean accuracy of the most probable labelset: actual (expected)")
    for name in ("data set", "classifier"):
        table.add_column(name, no_wrap=True)
    for metric in metrics:
        table.add_column(metric, justify="right", no_wrap=True)
    for names, row in zip(means.index, means.to_numpy(), strict=True):
        pairs = row.reshape(-1, 2)
        table.add_row(*names, *(f"{value:.3f} ({hoped:.3f})" for value, hoped in pairs))
    return table


def _correlations(values: pd.DataFrame) -> Table:
    """Return how well each candidate ranks predictions, over all cells."""
    means = values.pivot_table("correlation", "candidate", "metric", sort=False)
    table = Table("candidate", title="Mean rank correlation of candidates and accuracy")
    for metric in means.columns:
        table.add_column(str(metric), justify="right")
    for candidate, row in zip(means.index, means.to_numpy(), strict=True):
        table.add_row(str(candidate), *(f"{value:.3f}" for value in row))
    return table
