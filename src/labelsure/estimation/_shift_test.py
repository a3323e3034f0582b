"""Is a batch like the labelled instances? What is compared of both, and the test.

A classifier learns to tell one half of the batch from one half of the reference. Its scores of the
other halves are compared by Mann and Whitney's test. If both come from one population, whatever the
classifier has learned is chance, and the p-value is valid. The AUC says how large the difference
is: in a huge batch a tiny one has a small p-value, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from sklearn.linear_model import LogisticRegression

from labelsure._kernels.threads import one_blas_thread
from labelsure._runtime.notebook import make_html
from labelsure._runtime.typing import Floats, Indices
from labelsure._runtime.warnings import warn
from labelsure.errors import InputError, ShiftWarning

if TYPE_CHECKING:
    import pandas as pd

    from labelsure.estimation.score_table import ScoreTable

MAX_ROWS = 2000
"""Of a side: the test sees an AUC of 0.54 with so many, less than matters, in some milliseconds."""

MIN_ROWS = 30
"""Of a side: with fewer a half has too few to learn from."""

MAX_LABELS = 64
"""Labels whose probabilities are compared, the most probable of the reference if there are more: a
model file keeps them for each of its instances."""

FOUND_AUC, FOUND_P = 0.55, 0.01
"""A shift is found where both are passed (`docs/shift.md` has what they were chosen by). An AUC of
0.55 is that of a normal variable that has moved by a sixth of its standard deviation."""

NEARLY_PERFECT = 0.99  # mean accuracy of labelled instances that the model may have been trained on

LARGEST_SCORE = 3.0  # of standardised columns before they are squared: one outlier is not all

CANDIDATE_COLUMNS: tuple[str, ...] = ("HP", "TG", "SE", "CE", "ME", "CS")
N_PREDICTED = "n_predicted"
N_NAMED = 3  # of what moved most, in a sentence


@dataclass(frozen=True)
class View:
    """What is compared of some instances: columns with names.

    Parameters
    ----------
    names
        Of the columns.
    values
        (n, number of columns) in single precision, which is what a model file keeps.
    """

    names: tuple[str, ...]
    values: Floats

    @classmethod
    def of_table(
        cls,
        table: ScoreTable,
        rows: Indices,
        marginals: Floats | None = None,
        label_names: Sequence[str] = (),
        *,
        decisions: bool = True,
    ) -> View:
        """Return the candidates, the number of predicted labels, and labels' probabilities.

        Parameters
        ----------
        table
            Of a batch of predictions.
        rows
            Which of them.
        marginals, label_names
            (number of rows, L) how probable each label is, and its name; None where a table does
            not say.
        decisions
            Whether the table says what was predicted; one of profiles does not.
        """
        columns = [table.spread_candidate(name)[rows] for name in CANDIDATE_COLUMNS]
        names = CANDIDATE_COLUMNS
        if decisions:
            names = (*names, N_PREDICTED)
            columns.append(table.n_predicted()[rows])
        if marginals is not None:
            names += tuple(label_column(name) for name in label_names)
            columns.extend(marginals.T)
        return cls(names, np.column_stack(columns).astype(np.float32))

    def __len__(self) -> int:
        return len(self.values)

    def take(self, rows: Indices) -> View:
        """Return some of the rows."""
        return View(self.names, self.values[rows])

    def columns(self, names: Sequence[str]) -> Floats:
        """Return columns by name, (n, number of names)."""
        place = {name: j for j, name in enumerate(self.names)}
        return self.values[:, [place[name] for name in names]].astype(np.float64)

    def with_columns(self, names: Sequence[str], values: Floats) -> View:
        """Return the view with columns added, such as features."""
        joined = np.column_stack([self.values, values])
        return View((*self.names, *names), joined)


def label_column(name: str) -> str:
    """Return what the column of a label's probability is called."""
    return f"P({name})"


def sample_rows(n_rows: int, seed: int | None = 0, most: int = MAX_ROWS) -> Indices:
    """Return the numbers of all rows, or of some that chance has chosen, in their order."""
    if n_rows <= most:
        return np.arange(n_rows)
    return np.sort(np.random.default_rng(seed).choice(n_rows, most, replace=False))


@dataclass(frozen=True)
class ShiftTest:
    """Whether a batch differs from a reference, by how much, and in what.

    Parameters
    ----------
    auc
        How well a classifier tells instances of the batch from those of the reference that it has
        not seen: 0.5 is not at all, 1 is always.
    p_value
        How often the AUC would be as high if both came from one population.
    n_reference, n_batch
        How many instances were compared.
    moved
        A row for each column that was compared: its mean in the `reference` and in the `batch`, and
        the `distance` of the two distributions (Kolmogorov and Smirnov's, from 0 to 1). What moved
        most comes first.

    Examples
    --------
    >>> import numpy as np
    >>> from labelsure import IndependentLabels, shift_test
    >>> rng = np.random.default_rng(0)
    >>> reference = IndependentLabels(rng.beta(0.3, 0.6, size=(500, 3)))
    >>> print(shift_test(reference, IndependentLabels(rng.beta(0.3, 0.6, size=(200, 3)))))
    No sign that the batch differs from the reference (AUC 0.45, p = 0.94).
    """

    auc: float
    p_value: float
    n_reference: int
    n_batch: int
    moved: pd.DataFrame

    @property
    def found(self) -> bool:
        """Whether there is a shift that matters: by p-value and by AUC."""
        return self.p_value < FOUND_P and self.auc >= FOUND_AUC

    def __str__(self) -> str:
        figures = f"AUC {self.auc:.2f}, p {_format_p(self.p_value)}"
        if self.found:
            return (
                f"The batch is not like the reference ({figures}). Moved most: {self.name_moved()}."
            )
        if self.p_value < FOUND_P:
            return f"The batch differs from the reference, but little ({figures})."
        return f"No sign that the batch differs from the reference ({figures})."

    def _repr_html_(self) -> str:
        return make_html(str(self), self.moved.head(10))

    def name_moved(self) -> str:
        """Say what moved most, and how."""
        rows = list(self.moved.head(N_NAMED).itertuples())
        return ", ".join(
            f"{row.Index} (mean {row.batch:.3g}, was {row.reference:.3g})" for row in rows
        )


def _format_p(p_value: float) -> str:
    return f"= {p_value:.2f}" if p_value >= 0.01 else f"= {p_value:.0e}" if p_value > 0 else "= 0"


def compare_views(reference: View, batch: View, seed: int = 0) -> ShiftTest | None:
    """Test whether two samples come from one population; None where they are too small.

    Parameters
    ----------
    reference, batch
        The samples; columns that both have are compared.
    seed
        Of the halves, and of the rows where there are more than `MAX_ROWS`.
    """
    from scipy.stats import mannwhitneyu  # slow to import

    names = [name for name in reference.names if name in batch.names]
    if not names:
        raise InputError(
            "`reference` and `batch` must have a column in common, got "
            f"{', '.join(reference.names)} and {', '.join(batch.names)}."
        )
    left, right = (view.columns(names)[sample_rows(len(view), seed)] for view in (reference, batch))
    if min(len(left), len(right)) < MIN_ROWS:
        return None
    rng = np.random.default_rng(seed)
    learned, judged = zip(*(_halve(values, rng) for values in (left, right)), strict=True)
    with one_blas_thread():  # so that results do not depend on the number of cores
        scores = Separator.fit(*learned, balanced=True)
        found = mannwhitneyu(
            scores.log_odds(judged[1]), scores.log_odds(judged[0]), alternative="greater"
        )
    auc = float(found.statistic) / (len(judged[0]) * len(judged[1]))
    moved = _compare_columns(names, left, right)
    return ShiftTest(auc, float(found.pvalue), len(left), len(right), moved)


def _halve(values: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
    order = rng.permutation(len(values))
    half = len(values) // 2
    return values[order[:half]], values[order[half:]]


@dataclass(frozen=True)
class Separator:
    """A logistic regression that tells a batch from a reference, by columns and their squares.

    Parameters
    ----------
    centre, scale
        (k,) by which columns are standardised.
    coefficients
        (2 k + 1,) of columns, their squares, and the intercept.
    """

    centre: Floats
    scale: Floats
    coefficients: Floats

    PENALTY = 1.0
    """On the squares of all coefficients but the intercept, whose columns are standardised."""

    @classmethod
    def fit(cls, reference: Floats, batch: Floats, *, balanced: bool = False) -> Separator:
        """Learn from instances of both, (n, k) each."""
        values = np.concatenate([reference, batch])
        scale = values.std(axis=0)
        scale[scale <= 1e-6 * (1 + np.abs(values).max(axis=0))] = np.inf  # a constant says nothing
        start = cls(values.mean(axis=0), scale, np.empty(0))
        model = LogisticRegression(
            C=1 / cls.PENALTY,
            class_weight="balanced" if balanced else None,
            solver="newton-cholesky",
            max_iter=200,
        )
        is_batch = np.repeat([0, 1], [len(reference), len(batch)])
        model.fit(start.design(values)[:, :-1], is_batch)
        coefficients = np.append(model.coef_[0], model.intercept_)
        return cls(start.centre, start.scale, coefficients)

    def design(self, values: Floats) -> Floats:
        """Return the standardised columns, their squares and a column of ones, (n, 2 k + 1)."""
        scores = np.clip((values - self.centre) / self.scale, -LARGEST_SCORE, LARGEST_SCORE)
        return np.column_stack([scores, scores**2 - 1, np.ones(len(values))])

    def log_odds(self, values: Floats) -> Floats:
        """Return the log-odds that instances are of the batch, (n,)."""
        return self.design(values) @ self.coefficients


def _compare_columns(names: Sequence[str], reference: Floats, batch: Floats) -> pd.DataFrame:
    """Return means and distance of each column, what moved most first."""
    import pandas as pd

    distances = [_largest_gap(reference[:, j], batch[:, j]) for j in range(len(names))]
    table = pd.DataFrame(
        {
            "reference": reference.mean(axis=0),
            "batch": batch.mean(axis=0),
            "distance": distances,
        },
        index=pd.Index(names, name="column"),
    )
    return table.sort_values("distance", ascending=False, kind="stable")


def _largest_gap(left: Floats, right: Floats) -> float:
    """Return how far two empirical distribution functions are apart."""
    left, right = np.sort(left), np.sort(right)
    both = np.concatenate([left, right])
    below_left = np.searchsorted(left, both, side="right") / len(left)
    below_right = np.searchsorted(right, both, side="right") / len(right)
    return float(np.abs(below_left - below_right).max())


def say_shift(test: ShiftTest | None, untested: str) -> str:
    """Say whether a batch is like the calibration set, or why that was not tested.

    Parameters
    ----------
    test
        None where there was none.
    untested
        Why; empty where nobody asked.
    """
    if test is not None:
        return f"Do not rely on this. {test}" if test.found else str(test)
    return f"Not tested for shift: {untested}." if untested else ""


class ViewSample:
    """What is compared of rows that come in parts: at most 2,000 of all, drawn at random."""

    def __init__(self) -> None:
        self._rng = np.random.default_rng(0)
        self._keys = np.empty(0)
        self._view: View | None = None

    def draw(self, n_rows: int) -> tuple[Indices, Floats]:
        """Return which rows of the next part to look at, and the keys that they were drawn by."""
        keys = self._rng.random(n_rows)
        limit = self._keys.max() if len(self._keys) == MAX_ROWS else np.inf
        rows = np.flatnonzero(keys < limit)
        rows = np.sort(rows[np.argsort(keys[rows])[:MAX_ROWS]])
        return rows, keys[rows]

    def add(self, view: View, keys: Floats) -> None:
        """Take the rows that were drawn, and keep those with the smallest keys of all."""
        if self._view is not None:
            view = View(view.names, np.concatenate([self._view.values, view.values]))
            keys = np.concatenate([self._keys, keys])
        kept = np.sort(np.argsort(keys)[:MAX_ROWS])
        self._view, self._keys = view.take(kept), keys[kept]

    @property
    def view(self) -> View | None:
        """What was kept; None before any part."""
        return self._view


def warn_of_shift(test: ShiftTest, accuracy: float) -> None:
    """Warn that a batch is not like the labelled instances, whose mean accuracy is given."""
    question = ""
    if accuracy >= NEARLY_PERFECT:
        question = (
            f" Their mean accuracy of {accuracy:.3f} is nearly perfect: was the model trained on "
            "some of them? Then new instances look different, and the estimate is too high."
        )
    warn(
        "The batch is not like the instances that the estimator was fitted to: a classifier tells "
        f"them apart with an AUC of {test.auc:.2f}. Moved most: {test.name_moved()}. The estimate "
        "and its interval are about instances like those; see shift='weighted' and "
        f"shift='labels', or label some rows drawn at random.{question}",
        ShiftWarning,
    )
