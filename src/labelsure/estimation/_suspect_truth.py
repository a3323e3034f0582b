"""Labels whose truth does not fit their probabilities: columns in another order, labels left out.

Measured on 516 calibration sets of 60, 100 and 300 rows of the nine sets, predicted by two
logistic regressions, forests and naive Bayes. False alarms: none for the order, 0.6% of the sets
for labels that are never true. Detected: 40%, 68% and 82% of columns in a random or reversed order
(by size), 13% to 20% of two columns that were swapped; 87% of labels without truth that are true in
at least 10% of 100 or more rows, 57% of those that are true in at least 5%.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from labelsure._runtime.typing import Floats, Indices, Labelsets
from labelsure.classifiers._adapters import ProbabilityWarning
from labelsure.errors import warn
from labelsure.estimation.score_table import ScoreTable
from labelsure.labelsets.rows import show_names

MIN_ROWS, MAX_ROWS = 60, 2000
MAX_LABELS = 200  # an order of more would take seconds to find

MIN_EXPECTED = 12.0
"""Expected number of true labels from which on none at all is suspect: overconfident models expect
as many of labels that are merely rare."""

MIN_GAIN, MIN_RATIO = 0.1, 1.5
"""In correlation of probabilities and truth: what another order must gain for each column that it
moves, and how many times what these columns have in their own order."""

N_ERRORS = 2.5
"""Standard errors of the sum of differences of correlations, by which chance must be exceeded."""

N_NAMED = 5


def warn_of_suspect_truth(table: ScoreTable) -> None:
    """Warn of columns of the truth that are not those of the probabilities."""
    if len(table) < MIN_ROWS or not table.of_one_model:  # the folds of one training set
        return
    marginals, truth = table.marginals, np.asarray(table.truth)
    names = show_names(table.label_names, truth.shape[1])
    never = find_never_true(marginals, truth)
    if never.size:
        expected = marginals.sum(axis=0)[never[0]]
        warn(
            f"{_list(names, never)} is never true in these {len(truth)} rows, "
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
    """Return the labels that are never true, although many of them are expected.

    Expected numbers are scaled down by what the other labels have less than they should.
    """
    expected, true = marginals.sum(axis=0), truth.sum(axis=0)
    others = (true.sum() - true + 1) / (expected.sum() - expected + 1)
    return np.flatnonzero((true == 0) & (expected * np.minimum(others, 1) >= MIN_EXPECTED))


def find_better_order(marginals: Floats, truth: Labelsets) -> tuple[Indices, Indices]:
    """Return which columns of the probabilities fit which others of the truth; none if their own.

    An order is chosen by one half of the rows and judged by the other, in both directions.
    """
    nothing = np.empty(0, dtype=np.intp)
    if not 2 <= truth.shape[1] <= MAX_LABELS:
        return nothing, nothing
    rows = np.random.default_rng(0).permutation(len(truth))[:MAX_ROWS]
    halves = np.array_split(rows, 2)
    correlations = [_correlate(marginals[half], truth[half]) for half in halves]
    found = nothing, nothing
    for known, other in (correlations, correlations[::-1]):
        columns, fits = linear_sum_assignment(-known)
        moved = np.flatnonzero(columns != fits)
        own = other[moved, moved].sum()
        best = other[moved, fits[moved]].sum()
        chance = N_ERRORS * np.sqrt(2 * moved.size / len(halves[0]))
        if best - own <= max(MIN_GAIN * moved.size, chance) or best <= MIN_RATIO * own:
            return nothing, nothing
        found = moved, fits[moved]
    return found


def _correlate(left: Any, right: Any) -> Floats:
    """Return the correlation of each column with each other one, 0 where a column is constant."""
    left, right = (values - values.mean(axis=0) for values in (left, right))
    scale = np.outer(*(np.sqrt((values**2).sum(axis=0)) for values in (left, right)))
    return left.T @ right / np.where(scale > 0, scale, 1.0)


def _list(names: list[str], labels: Indices) -> str:
    more = f" and {labels.size - N_NAMED} more" if labels.size > N_NAMED else ""
    return ", ".join(repr(names[label]) for label in labels[:N_NAMED]) + more
