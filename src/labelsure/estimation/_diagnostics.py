"""Warnings about data: suspicious truth, rows that were trained on, a better `predict`.

**Suspicious truth**: columns in another order than the probabilities, labels left out. Measured
on 516 calibration sets of 60, 100 and 300 rows of the nine sets, predicted by two logistic
regressions, forests and naive Bayes. False alarms: none for the order, 0.6% of the sets
for labels that are never true. Detected: 40%, 68% and 82% of columns in a random or reversed order
(by size), 13% to 20% of two columns that were swapped; 87% of labels without truth that are true in
at least 10% of 100 or more rows, 57% of those that are true in at least 5%.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.special import ndtr

from labelsure._runtime.typing import FeaturesLike, Floats, Indices, Labelsets
from labelsure.classifiers._predicted_probabilities import ProbabilityWarning
from labelsure.classifiers.recalibration._base import mean_interval
from labelsure.errors import warn
from labelsure.estimation.score_table import ScoreTable
from labelsure.labelsets.label_names import show_names
from labelsure.labelsets.sparse import differing_rows, is_sparse
from labelsure.metrics.registry import Metric, accuracy

if TYPE_CHECKING:
    import pandas as pd

MIN_ROWS, MAX_ROWS = 60, 2000
MAX_LABELS = 200  # an order of more would take seconds to find

MIN_EXPECTED = 12.0
"""Expected number of true labels from which on none at all is suspect: overconfident models expect
as many of labels that are merely rare."""

MIN_GAIN, MIN_RATIO = 0.1, 1.5
"""Correlation of probabilities and truth: least gain of another order for each column that it
moves, and least ratio to the correlation of these columns in their own order."""

N_ERRORS = 2.5
"""Standard errors of the sum of differences of correlations, by which chance must be exceeded."""

N_NAMED = 5


def warn_if_truth_is_suspect(table: ScoreTable) -> None:
    """Warn of labels that are never true, and of columns that seem to be in another order."""
    if len(table) < MIN_ROWS or not table.of_one_model:  # the folds of one training set
        return
    marginals, truth = table.marginals, np.asarray(table.truth)
    names = show_names(table.label_names, truth.shape[1])
    never = find_never_true(marginals, truth)
    if never.size:
        expected = marginals.sum(axis=0)[never[0]]
        warn(
            f"{_list_names(names, never)} is never true in these {len(truth)} rows, "
            f"although the probabilities of {names[never[0]]!r} expect about {expected:.0f} of "
            "them. Check that these labels were annotated, or drop them.",
            ProbabilityWarning,
        )
    moved, fits = find_better_order(marginals, truth)
    if moved.size:
        warn(
            "The truth fits the probabilities far better in another order of columns: column "
            f"{names[fits[0]]!r} of the truth fits the probabilities of {names[moved[0]]!r}, and "
            f"{moved.size} columns are affected in all. Check the order, or pass DataFrames, "
            "whose columns are aligned by name.",
            ProbabilityWarning,
        )


def find_never_true(marginals: Floats, truth: Labelsets) -> Indices:
    """Labels that are never true, although at least `MIN_EXPECTED` true entries are expected.

    Expected numbers are multiplied by the ratio of true to expected entries of all other labels,
    where it is below 1.
    """
    expected, true = marginals.sum(axis=0), truth.sum(axis=0)
    others = (true.sum() - true + 1) / (expected.sum() - expected + 1)
    return np.flatnonzero((true == 0) & (expected * np.minimum(others, 1) >= MIN_EXPECTED))


def find_better_order(marginals: Floats, truth: Labelsets) -> tuple[Indices, Indices]:
    """Columns of the probabilities, (m,), and the columns of the truth that fit them better, (m,).

    The assignment is chosen on one half of the rows and tested on the other, in both directions.
    Both are empty if either test fails.
    """
    no_columns = np.empty(0, dtype=np.intp)
    if not 2 <= truth.shape[1] <= MAX_LABELS:
        return no_columns, no_columns
    rows = np.random.default_rng(0).permutation(len(truth))[:MAX_ROWS]
    halves = np.array_split(rows, 2)
    correlations = [_correlate(marginals[half], truth[half]) for half in halves]
    pairs = no_columns, no_columns
    for chosen_by, tested_by in (correlations, correlations[::-1]):
        columns, fits = linear_sum_assignment(-chosen_by)
        moved = np.flatnonzero(columns != fits)
        own = tested_by[moved, moved].sum()
        best = tested_by[moved, fits[moved]].sum()
        chance = N_ERRORS * np.sqrt(2 * moved.size / len(halves[0]))
        if best - own <= max(MIN_GAIN * moved.size, chance) or best <= MIN_RATIO * own:
            return no_columns, no_columns
        pairs = moved, fits[moved]
    return pairs


def _correlate(left: Any, right: Any) -> Floats:
    """Correlations of the columns of two arrays, (l, m); 0 where a column is constant."""
    left, right = (values - values.mean(axis=0) for values in (left, right))
    scale = np.outer(*(np.sqrt((values**2).sum(axis=0)) for values in (left, right)))
    return left.T @ right / np.where(scale > 0, scale, 1.0)


def _list_names(names: list[str], labels: Indices) -> str:
    more = f" and {labels.size - N_NAMED} more" if labels.size > N_NAMED else ""
    return ", ".join(repr(names[label]) for label in labels[:N_NAMED]) + more


MOST_SHARED = 0.25
"""Share of held-out rows that are training rows as well: at most 0.11 on random splits of the nine
sets (stare)."""

MIN_DISTINCT, MOST_AMBIGUOUS = 100, 0.05
"""Distinct features, and the share of them that occur with several labelsets: copies have the
labels of their original, rows of few categories do not."""

MOST_TRAINING, MOST_HELD_OUT = 20_000, 2_000  # rows that are compared

Rows = tuple[Any, Labelsets]
"""Features and labelsets of some rows."""


def warn_if_rows_are_shared(training: Rows, held_out: Rows) -> None:
    """Warn where many held-out rows are identical to training rows."""
    import pandas as pd

    training_keys, held_out_keys = _hash_rows(*training), _hash_rows(*held_out)
    if training_keys is None or held_out_keys is None:
        return
    n_labelsets = training_keys.drop_duplicates().groupby("features").size()
    if len(n_labelsets) < MIN_DISTINCT or (n_labelsets > 1).mean() > MOST_AMBIGUOUS:
        return  # few values, as of categories: rows are alike without being copies
    shared = (
        pd.MultiIndex.from_frame(held_out_keys).isin(pd.MultiIndex.from_frame(training_keys)).mean()
    )
    if shared > MOST_SHARED:
        warn(
            f"{shared:.0%} of the held-out rows are identical to training rows, features "
            "and labels. Estimates and guarantees hold for rows that the model was not "
            "trained on: drop duplicates, or keep each group of them in one part by `groups=`.",
            UserWarning,
        )


def _hash_rows(X: FeaturesLike, Y: Labelsets) -> pd.DataFrame | None:
    """Hashes of features and labels, equal for identical rows; None where X cannot be hashed."""
    import pandas as pd

    features: Any
    if hasattr(X, "iloc"):
        try:
            features = pd.util.hash_pandas_object(X, index=False).to_numpy()
        except TypeError:  # cells that cannot be hashed
            return None
    elif is_sparse(X) or getattr(getattr(X, "dtype", None), "kind", "") in tuple("biuf"):
        features = _project(X)
    elif isinstance(X, list) and all(isinstance(text, str) for text in X):
        features = X
    else:
        return None
    keys = pd.DataFrame({"features": features, "labels": _project(Y)})
    return keys.dropna()  # the projection of a row with missing values is NaN


def _project(rows: Any) -> Any:
    """Random-projection hash of rows, (n,)."""
    return (rows @ np.random.default_rng(0).normal(size=rows.shape[1])).astype(np.float32)


NEARLY_PERFECT = 0.98
"""Share of labelsets that are entirely right. On new rows of the nine sets forests, trees and
logistic regressions had at most 0.66, and a forest on digits 0.96; on their own training rows
13 of 18 forests and trees had more than 0.98, and no logistic regression."""

MIN_PERFECT_ROWS, MIN_PERFECT_LABELS = 30, 3  # fewer can all be right


def warn_if_leakage_suspected(table: ScoreTable, n_labels: int) -> None:
    """Warn of a model, fitted elsewhere, whose predictions are nearly all entirely right."""
    if len(table) < MIN_PERFECT_ROWS or n_labels < MIN_PERFECT_LABELS:
        return
    exact = float(table.accuracy("exact", 1.0).mean())
    if exact >= NEARLY_PERFECT:
        warn(
            f"{exact:.1%} of the {len(table)} labelsets are predicted entirely right, as models do "
            "on rows that they were trained on. Was this model trained on some of them? Then "
            "estimates and guarantees are too high: calibrate with rows that it has not seen.",
            UserWarning,
        )


@dataclass(frozen=True)
class PredictComparison:
    """Comparison of the judged predictions with a frozen model's own `predict`.

    Parameters
    ----------
    differs
        Whether they differ on some calibration row.
    sentence
        The comparison in words; empty without one.
    """

    differs: bool = False
    sentence: str = ""

    @classmethod
    def compare(
        cls, ours: Labelsets, theirs: Labelsets, truth: Labelsets, metric: Metric, empty: float
    ) -> PredictComparison:
        """Compare on calibration rows; warn if the model's own predictions are more accurate."""
        n_others = int(differing_rows(ours, theirs).sum())
        if n_others == 0:
            same = "The model's own predict returns the same labelsets on all calibration rows."
            return cls(sentence=same)
        values = [accuracy(truth, Y, metric, empty=empty) for Y in (ours, theirs)]
        sentence = (
            f"On {n_others:,} of {len(values[0]):,} calibration rows these differ from the model's "
            f"own predict: mean {metric.title} {values[0].mean():.3f} instead of "
            f'{values[1].mean():.3f}. decision="predict" judges the model\'s own.'
        )
        if len(values[0]) > 1 and mean_interval(values[1] - values[0])[1] > 0:
            warn(sentence, UserWarning)
        return cls(True, sentence)


CHOSEN_P = 0.001  # below which labelled rows are no random draw: one false warning in 1,000


def rank_excess(estimated: Floats, rows: Indices) -> tuple[float, float]:
    """Wilcoxon's rank sum / N of the rows at given positions, centred, and its variance.

    Exact moments of the permutation distribution of n of N rows, ties included (mid-ranks).
    """
    from scipy.stats import rankdata  # slow to import

    n, n_all = len(rows), len(estimated)
    ranks = rankdata(estimated) / n_all
    excess = float((ranks[rows] - ranks.mean()).sum())
    return excess, float(ranks.var()) * n * (n_all - n) / max(n_all - 1, 1)


def warn_of_chosen_rows(excesses: Sequence[tuple[float, float]]) -> None:
    """Warn if labelled rows of one or more batches cannot be random draws (`rank_excess`)."""
    excess, variance = np.sum(excesses, axis=0)
    p_value = 2 * float(ndtr(-abs(excess) / variance**0.5)) if variance > 1e-12 else 1.0
    if p_value < CHOSEN_P:
        which = "higher" if excess > 0 else "lower"
        warn(
            "The labelled rows must be drawn at random, but their estimated accuracies are "
            f"{which} than those of the other rows (rank test, p = {p_value:.1g}). If they were "
            "chosen, the estimate is biased and its interval does not show it: draw rows by "
            "`draw_audit` and label each of them.",
            UserWarning,
        )
