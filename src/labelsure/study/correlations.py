"""Correlations of candidates and accuracy (Analyses 0 and 3), and analyses beyond the paper.

Two scores of the same instances are compared with one outcome: their correlations depend on each
other. What a single instance adds to each is its influence, and the spread of the *difference* of
two influences gives the standard error of the difference, whatever the dependence.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import norm

from labelsure._kernels.statistics import net_concordance
from labelsure._runtime.typing import Floats, Integers
from labelsure.errors import InputError
from labelsure.estimation.score_table import CELL, ScoreTable
from labelsure.metrics.registry import COUNTS
from labelsure.study.plan import Settings

AssociationName = Literal["kendall", "pearson"]
BASELINE = "HP"
KEYS = ["metric", "dataset", "classifier", "candidate"]
LEVELS = (0.1, 0.05, 0.01)
"""An arrow for each level that a difference from HP is significant at."""

MODEL = "model"
"""The expected accuracy under the classifier's own distribution, beside the candidates."""


class Association(NamedTuple):
    """A correlation, NaN where it is undefined, and the influence function at each instance."""

    value: float
    influence: Floats


def correlate(
    scores: pd.DataFrame,
    association: AssociationName = "kendall",
    settings: Settings | None = None,
) -> pd.DataFrame:
    """Return the correlation of each candidate with each accuracy, in every cell.

    Returns
    -------
    pandas.DataFrame
        metric, dataset, classifier, candidate, repeat, n, correlation (missing where the candidate
        or the accuracy is constant), difference (from HP's), standard_error (of the difference),
        p_value (two-sided), arrows ("+" or "-", repeated for 0.1, 0.05 and 0.01) and p_value_holm,
        which allows for all tests of a repeat.
    """
    settings = settings or Settings()
    associate, values = {
        "kendall": (kendall_association, ScoreTable.ranks),
        "pearson": (pearson_association, ScoreTable.candidate),
    }[association]
    candidates = settings.candidates if association == "pearson" else settings.rank_candidates
    rows = []
    for cell, table in _cells(scores):
        scored = {name: values(table, name) for name in dict.fromkeys((BASELINE, *candidates))}
        for metric in settings.metrics:
            outcome = table.accuracy(metric, settings.empty)
            found = {name: associate(score, outcome) for name, score in scored.items()}
            for name in candidates:
                gap = (np.nan, np.nan)
                if name != BASELINE:
                    gap = difference(found[name], found[BASELINE])
                rows.append((metric, *cell[:2], name, *cell[2:], found[name].value, *gap))
    columns = [*KEYS, "repeat", "n", "correlation", "difference", "standard_error"]
    frame = pd.DataFrame(rows, columns=columns)
    in_order = frame["metric"].map(settings.metrics.index).argsort(kind="stable")
    return _tested(frame.iloc[in_order].reset_index(drop=True))


def over_repeats(correlations: pd.DataFrame) -> pd.DataFrame:
    """Return one row for each metric, dataset, classifier and candidate: means and their tests.

    Repeats split the same instances, so their differences from HP depend on each other. The
    standard error of a mean difference is the quadratic mean of those of the repeats: right if all
    repeats agree, and too large otherwise.

    Returns
    -------
    pandas.DataFrame
        The columns of `correlate`, with `repeat` 0; `p_value_holm` allows for all rows.
    """
    squared = correlations.assign(standard_error=correlations["standard_error"] ** 2)
    values = ["n", "correlation", "difference", "standard_error"]
    means = squared.groupby(KEYS, sort=False)[values].mean().reset_index()
    means.insert(len(KEYS), "repeat", 0)
    return _tested(means.assign(standard_error=np.sqrt(means["standard_error"])))


def _cells(scores: pd.DataFrame) -> Iterator[tuple[tuple[Any, ...], ScoreTable]]:
    """Yield dataset, classifier, repeat and number of rows, and the rows, as cells come."""
    check_columns(scores, CELL, "scores")
    for name, part in scores.groupby(CELL, sort=False):
        yield (*name, len(part)), ScoreTable(part)


def _tested(frame: pd.DataFrame) -> pd.DataFrame:
    """Add p-values of the differences, arrows, and p-values that allow for all of a repeat."""
    gaps = frame["difference"]
    p_values = pd.Series(p_value(gaps, frame["standard_error"]), frame.index)
    n_arrows = np.sum([p_values < level for level in LEVELS], axis=0).tolist()
    signs = ["+" if gap > 0 else "-" for gap in gaps]
    holm = [_holm(part) for _, part in p_values.groupby(frame["repeat"])]
    return frame.assign(
        p_value=p_values,
        arrows=[sign * n for sign, n in zip(signs, n_arrows, strict=True)],
        p_value_holm=pd.concat(holm),
    )


def _holm(p_values: pd.Series) -> pd.Series:
    """Return p-values by Holm's step-down procedure."""
    ordered = p_values.sort_values()  # missing ones last
    left = np.arange(ordered.count(), ordered.count() - len(ordered), -1)
    return (ordered * left).cummax().clip(upper=1.0)


def kendall_association(score: Floats, outcome: Floats) -> Association:
    """Return Kendall's tau-b; undefined if the score or the outcome is constant."""
    n = len(score)
    if not (_varies(score) and _varies(outcome)):
        return Association(np.nan, np.full(n, np.nan))
    x, y = (np.unique(v, return_inverse=True)[1].astype(np.int64) for v in (score, outcome))
    concordance = _net_concordance(x, y) / (n - 1)
    differs_x, differs_y = ((n - np.bincount(v)[v]) / (n - 1) for v in (x, y))
    mean_x, mean_y = differs_x.mean(), differs_y.mean()
    scale = np.sqrt(mean_x * mean_y)
    tau = concordance.mean() / scale
    influence = 2 * (
        (concordance - concordance.mean()) / scale
        - tau / 2 * ((differs_x - mean_x) / mean_x + (differs_y - mean_y) / mean_y)
    )
    return Association(float(tau), influence)


def pearson_association(score: Floats, outcome: Floats) -> Association:
    """Return Pearson's r; undefined if the score or the outcome is constant."""
    if not (_varies(score) and _varies(outcome)):
        return Association(np.nan, np.full(len(score), np.nan))
    x, y = _standardised(score), _standardised(outcome)
    r = float(np.clip((x * y).mean(), -1, 1))
    return Association(r, x * y - r / 2 * (x**2 + y**2))


def difference(of: Association, to: Association) -> tuple[float, float]:
    """Return how far one correlation is above another, and the standard error of that."""
    if np.isnan(of.value + to.value):
        return np.nan, np.nan
    error = np.std(of.influence - to.influence, ddof=1) / np.sqrt(len(of.influence))
    return of.value - to.value, float(error)


def p_value(gap: Any, error: Any) -> Any:
    """Return the two-sided p-value of differences that are normal around 0."""
    gap, error = np.abs(gap), np.asarray(error)
    # Every instance adds the same to both: they are equal, or differ beyond doubt.
    certain = np.where(gap < 1e-12, 1.0, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(error < 1e-14, certain, 2 * norm.sf(gap / error))


def _varies(values: Floats) -> bool:
    return len(values) > 1 and bool(values.min() < values.max())


def _net_concordance(x: Integers, y: Integers) -> Floats:
    """Return each instance's concordant minus discordant pairs."""
    net = np.zeros(len(x), dtype=np.int64)
    order = np.argsort(x, kind="stable")
    net_concordance(order, x, y, net)
    net_concordance(order[::-1].copy(), x.max() - x, y.max() - y, net)
    return net.astype(np.float64)


def _standardised(values: Floats) -> Floats:
    # Scores near 1e-300 have squares of 0: bring them to a common size first.
    values = values / np.abs(values).max()
    centred = values - values.mean()
    return centred / np.sqrt((centred**2).mean())


def check_columns(frame: pd.DataFrame, needed: Iterable[str], name: str) -> None:
    """Refuse a frame that lacks rows or one of these columns."""
    missing = [column for column in needed if column not in frame]
    if missing or not len(frame):
        raise InputError(
            f"`{name}` must have rows and the columns {', '.join(needed)}, got {len(frame)} rows "
            f"without {', '.join(missing) or 'a missing column'}. Pass the whole table."
        )


def true_accuracy(scores: pd.DataFrame, settings: Settings | None = None) -> pd.DataFrame:
    """Return how candidates correlate with the *true* expected accuracy, where it is known.

    Returns
    -------
    pandas.DataFrame
        metric, dataset, classifier, repeat, n, candidate, kendall, pearson, and mean_error (mean
        of the expected accuracy minus the truth, for "model" only). Empty if the truth is unknown
        everywhere.
    """
    settings = settings or Settings()
    rows: list[tuple[Any, ...]] = []
    for metric in settings.metrics:
        truth = f"true_expected_{metric}"
        known = scores[scores[truth].notna()] if truth in scores else scores[:0]
        for cell, table in _cells(known) if len(known) else ():
            expected = table.true_expected(metric, settings.empty)
            model = table.expected(metric, settings.empty)
            scored = {n: (table.ranks(n), table.candidate(n)) for n in settings.candidates}
            for name, (ranks, values) in {**scored, MODEL: (model, model)}.items():
                tau = kendall_association(ranks, expected).value
                r = pearson_association(values, expected).value
                error = float(np.mean(values - expected)) if name == MODEL else np.nan
                rows.append((metric, *cell, name, tau, r, error))
    columns = ["metric", *CELL, "n", "candidate", "kendall", "pearson", "mean_error"]
    return pd.DataFrame(rows, columns=columns)


def optimal_decisions(scores: pd.DataFrame, settings: Settings | None = None) -> pd.DataFrame:
    """Return what each metric's best decision gains over the mode, in every cell.

    Returns
    -------
    pandas.DataFrame
        metric, dataset, classifier, repeat, n, mode and best (mean accuracy of each decision), the
        gain, its standard_error, and gap: how far, at most, the mean expected accuracy of
        the decisions is below the best possible; 0 where they are known to be the best.
    """
    settings = settings or Settings()
    rows = []
    for metric in settings.metrics:
        counts = [f"best_{metric}_{name}" for name in COUNTS]
        known = scores.dropna(subset=counts) if {*counts} <= {*scores} else scores[:0]
        for cell, table in _cells(known) if len(known) else ():
            mode, best = (f(metric, settings.empty) for f in (table.accuracy, table.best_accuracy))
            gain, n = best - mode, len(table)
            error = np.std(gain, ddof=1) / np.sqrt(n) if n > 1 else np.nan
            gap = table.to_frame()[f"best_{metric}_gap"].mean()
            rows.append((metric, *cell, mode.mean(), best.mean(), gain.mean(), error, gap))
    columns = ["metric", *CELL, "n", "mode", "best", "gain", "standard_error", "gap"]
    return pd.DataFrame(rows, columns=columns)
