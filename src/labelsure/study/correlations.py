"""Correlations of candidates and accuracy (Analyses 0 and 3), and analyses beyond the paper.

Two scores of the same instances are compared with one outcome: their correlations depend on each
other. What a single instance adds to each is its influence, and the spread of the *difference* of
two influences gives the standard error of the difference, whatever the dependence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import kendalltau, norm
from statsmodels.stats.multitest import multipletests

from labelsure._kernels.statistics import net_concordance
from labelsure._runtime.typing import Floats, Integers
from labelsure.distributions.candidates import CANDIDATES, FIELDS
from labelsure.errors import InputError, unknown_name
from labelsure.estimation.score_table import CELL, ScoreTable
from labelsure.metrics.registry import COUNTS, METRICS, check_empty

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
    return _correlations(kendall_association, ScoreTable.ranks, scores, metrics, candidates, empty)


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
    return _correlations(
        pearson_association, ScoreTable.candidate, scores, metrics, candidates, empty
    )


def over_repeats(correlations: pd.DataFrame) -> pd.DataFrame:
    """Return one row for each metric, dataset, classifier and candidate: means and their tests.

    Repeats split the same instances, so their differences from HP depend on each other. The
    standard error of a mean difference is the quadratic mean of those of the repeats: right if all
    repeats agree, and too large otherwise.

    Parameters
    ----------
    correlations
        Of `kendall` or `pearson`; of one repeat it is returned as it is.

    Returns
    -------
    pandas.DataFrame
        The columns of `kendall`, with `repeat` 0; `p_value_holm` allows for all rows.
    """
    if correlations["repeat"].nunique() == 1:
        return correlations
    keys = ["metric", "dataset", "classifier", "candidate"]
    squared = correlations.assign(variance=correlations["standard_error"] ** 2)
    values = ["n", "correlation", "difference", "variance"]
    means = squared.groupby(keys, sort=False)[values].mean().reset_index()
    errors = np.sqrt(means["variance"])
    p_values = [_p_value(*pair) for pair in zip(means["difference"], errors, strict=True)]
    marks = [arrows(*pair) for pair in zip(means["difference"], p_values, strict=True)]
    return _with_holm(means.assign(repeat=0, standard_error=errors, p_value=p_values, arrows=marks))


def arrows(gap: float, p_value: float) -> str:
    """Return "+" or "-", once for each level that the p-value is below.

    Examples
    --------
    >>> arrows(0.1, 0.03), arrows(-0.1, 0.003), arrows(-0.1, 0.3)
    ('++', '---', '')
    """
    return ("+" if gap > 0 else "-") * sum(p_value < level for level in LEVELS)


def _correlations(
    correlate: Callable[[Floats, Floats], Association],
    values: Callable[[ScoreTable, str], Floats],
    scores: pd.DataFrame,
    metrics: str | Sequence[str],
    candidates: str | Sequence[str],
    empty: float,
) -> pd.DataFrame:
    scores, empty = check_scores(scores), check_empty(empty)
    candidates = check_names(candidates, CANDIDATES, "candidate")
    rows: list[dict[str, Any]] = []
    for metric in check_names(metrics, METRICS, "metric"):
        # Cells in the order in which they come, so that tables keep the order of the plan.
        for cell, part in scores.groupby(list(CELL), sort=False):
            name = {"metric": metric, **dict(zip(CELL, cell, strict=True)), "n": len(part)}
            table = ScoreTable(part)
            outcome = table.accuracy(metric, empty)
            baseline = correlate(values(table, BASELINE), outcome)
            for candidate in candidates:
                row: dict[str, Any] = {**name, "candidate": candidate, "arrows": ""}
                if candidate == BASELINE:
                    rows.append({**row, "correlation": baseline.value})
                    continue
                found = correlate(values(table, candidate), outcome)
                gap = difference(found, baseline)
                marks = arrows(gap.value, gap.p_value)
                rows.append(
                    {**row, "correlation": found.value, "difference": gap.value, "arrows": marks}
                    | {"standard_error": gap.standard_error, "p_value": gap.p_value}
                )
    return _with_holm(pd.DataFrame(rows))


_COLUMNS = [
    *("metric", "dataset", "classifier", "candidate", "repeat", "n", "correlation", "difference"),
    *("standard_error", "p_value", "arrows", "p_value_holm"),
]


def _with_holm(frame: pd.DataFrame) -> pd.DataFrame:
    corrected = pd.Series(np.nan, index=frame.index)
    for _, part in frame.reindex(columns=_COLUMNS).groupby("repeat"):
        tested = part["p_value"].dropna()
        if len(tested):
            corrected[tested.index] = multipletests(tested, method="holm")[1]
    return frame.assign(p_value_holm=corrected).reindex(columns=_COLUMNS)


@dataclass(frozen=True)
class Association:
    """A correlation and what each instance adds to it.

    Parameters
    ----------
    value
        The correlation; NaN where it is undefined.
    influence
        (n,) the influence function at each instance, mean 0.
    """

    value: float
    influence: Floats


class Difference(NamedTuple):
    """The difference of two correlations with one outcome; NaN where one is undefined."""

    value: float
    standard_error: float
    p_value: float


def kendall_association(score: Floats, outcome: Floats) -> Association:
    """Return Kendall's tau-b; undefined if the score or the outcome is constant."""
    if not (_varies(score) and _varies(outcome)):
        return Association(np.nan, np.full(len(score), np.nan))
    n = len(score)
    x, y = _dense_ranks(score), _dense_ranks(outcome)
    tau = float(kendalltau(x, y).statistic)
    concordance = _net_concordance(x, y) / (n - 1)
    differs_x, differs_y = _share_that_differs(x), _share_that_differs(y)
    mean_x, mean_y = differs_x.mean(), differs_y.mean()
    influence = 2 * (
        (concordance - concordance.mean()) / np.sqrt(mean_x * mean_y)
        - tau / 2 * ((differs_x - mean_x) / mean_x + (differs_y - mean_y) / mean_y)
    )
    return Association(tau, influence)


def pearson_association(score: Floats, outcome: Floats) -> Association:
    """Return Pearson's r; undefined if the score or the outcome is constant."""
    if not (_varies(score) and _varies(outcome)):
        return Association(np.nan, np.full(len(score), np.nan))
    x, y = _standardised(score), _standardised(outcome)
    r = float(np.clip((x * y).mean(), -1, 1))
    return Association(r, x * y - r / 2 * (x**2 + y**2))


def difference(of: Association, to: Association) -> Difference:
    """Return how far one correlation is above another, with a two-sided test of no difference."""
    value = of.value - to.value
    if np.isnan(value):
        return Difference(np.nan, np.nan, np.nan)
    spread = np.std(of.influence - to.influence, ddof=1)
    error = float(spread / np.sqrt(len(of.influence)))
    return Difference(value, error, _p_value(value, error))


def _p_value(value: float, error: float) -> float:
    """Return the two-sided p-value of a difference that is normal around 0."""
    if error < 1e-14:  # every instance adds the same to both: equal, or apart beyond doubt
        return 1.0 if abs(value) < 1e-12 else 0.0
    return float(2 * norm.sf(abs(value) / error))


def _varies(values: Floats) -> bool:
    return len(values) > 1 and bool(values.min() < values.max())


def _dense_ranks(values: Floats) -> Integers:
    return np.unique(values, return_inverse=True)[1].astype(np.int64)


def _share_that_differs(ranks: Integers) -> Floats:
    n = len(ranks)
    return (n - np.bincount(ranks)[ranks]) / (n - 1)


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
    return check_columns(scores, [*CELL, *COUNTS, *FIELDS, "n_labels"], "scores")


def check_names(names: str | Sequence[str], known: Iterable[str], what: str) -> tuple[str, ...]:
    """Return the names as a tuple, each of them known."""
    chosen = (names,) if isinstance(names, str) else tuple(names)
    for name in chosen:
        if name not in known:
            raise unknown_name(what, name, known)
    if not chosen:
        raise InputError(f"At least one {what} must be named, got none. Known: {', '.join(known)}.")
    return chosen


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
    candidates = check_names(candidates, CANDIDATES, "candidate")
    rows: list[tuple[Any, ...]] = []
    for metric in check_names(metrics, METRICS, "metric"):
        truth = f"true_expected_{metric}"
        if truth not in scores.columns:
            continue
        known = scores[scores[truth].notna()]
        for cell, part in known.groupby(list(CELL), sort=False):
            table = ScoreTable(part)
            expected = table.true_expected(metric, empty)
            scored = [(name, table.ranks(name), table.candidate(name)) for name in candidates]
            if f"expected_{metric}" in part.columns:
                model = table.expected(metric, empty)
                scored.append((MODEL, model, model))
            for name, ranks, values in scored:
                tau = kendall_association(ranks, expected).value
                r = pearson_association(values, expected).value
                error = float(np.mean(values - expected)) if name == MODEL else np.nan
                rows.append((metric, *cell, name, len(part), tau, r, error))
    columns = ["metric", *CELL, "candidate", "n", "kendall", "pearson", "mean_error"]
    return pd.DataFrame(rows, columns=columns)


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
    for metric in check_names(metrics, METRICS, "metric"):
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
