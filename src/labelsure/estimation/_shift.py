"""Is a batch like the calibration set? A permutation test.

The distance of the two samples (Mahalanobis', of the means of columns and their squares)
is compared with that of random parts of both together: a permutation test, whose p-value is valid
whatever the columns are. The AUC says how large the difference is: in a huge batch a tiny one has
a small p-value, too. Streams need p-values far below 1 / 200: `compare_means`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtr
from sklearn.linear_model import LogisticRegression

from labelsure._kernels.threads import one_blas_thread
from labelsure._runtime.notebook import make_html
from labelsure._runtime.typing import Floats, Indices, LabelsetsLike
from labelsure.distributions.candidates import full_name
from labelsure.errors import InputError, ShiftWarning, warn
from labelsure.estimation.score_table import ScoreTable, keep_marginals
from labelsure.metrics.mean_tests import permutation_bound

if TYPE_CHECKING:
    import pandas as pd

MAX_ROWS = 2000
"""Largest sample that is compared: with it the test detects an AUC of 0.54, less than matters."""

MIN_ROWS = 30
"""Smallest sample that is compared."""

FOUND_AUC, FOUND_P = 0.55, 0.01
"""A shift is found where both are passed (`docs/howto/shift.md` has the measurements). An AUC of
0.55 is that of a normal variable that has moved by a sixth of its standard deviation."""

MIN_POWERFUL = 150
"""Least 1 / (1 / n + 1 / N) of two sample sizes: with less, the test finds fewer than half of the
shifts in the number of labels by which an estimate is off by .05 (`docs/howto/shift.md`)."""

NEARLY_PERFECT = 0.99  # mean accuracy of labelled rows that the model may have been trained on

RIDGE = 0.05  # on the correlations of columns and squares, which may be collinear
N_PERMUTED = 199  # so that the smallest p-value is 0.005

LARGEST_SCORE = 3.0  # of standardised columns before they are squared: one outlier is not all

N_EXPECTED = "n_expected"  # labels: the sum of their probabilities
LABEL_MARK = "P("  # begins the names of the labels' probabilities
N_NAMED = 3  # columns that a sentence names


def sample_rows(n_rows: int, seed: int | None = 0) -> Indices:
    """Positions of all rows, or of a random sample of 2,000, in ascending order."""
    if n_rows <= MAX_ROWS:
        return np.arange(n_rows)
    return np.sort(np.random.default_rng(seed).choice(n_rows, MAX_ROWS, replace=False))


@dataclass(frozen=True)
class ShiftTest:
    """Result of a shift test: size, significance and columns of the difference.

    Parameters
    ----------
    auc
        How large the difference is: the AUC with which two normal populations as far apart are told
        apart; 0.5 is not at all, 1 is always.
    p_value
        How often the difference would be as large if both came from one population; at least 0.005,
        which is the best of 200 permutations.
    n_reference, n_batch
        How many rows were compared.
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
    No sign that the batch differs from the reference (AUC 0.50, p = 0.86; little power: 200 rows
    against 500).
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

    @property
    def is_small(self) -> bool:
        """Whether there is a shift that is too small to matter: by p-value, but not by AUC."""
        return self.p_value < FOUND_P and self.auc < FOUND_AUC

    @property
    def has_little_power(self) -> bool:
        """Whether the test has less than half power for shifts that matter at these sizes."""
        return 1 / self.n_reference + 1 / self.n_batch > 1 / MIN_POWERFUL

    @property
    def brief(self) -> str:
        """The result in a few words."""
        if self.found:
            return f"shift detected, AUC {self.auc:.2f}"
        if self.is_small:
            return f"shift too small to matter, AUC {self.auc:.3f}"
        power = self._describe_power()
        return f"no shift detected ({power})" if power else "no shift detected"

    def _describe_power(self) -> str:
        """Note on little power; empty if there is enough."""
        rows = f"{self.n_batch:,} rows against {self.n_reference:,}"
        return f"little power: {rows}" if self.has_little_power else ""

    def __str__(self) -> str:
        figures = f"AUC {self.auc:.2f}, p = {self.p_value:.2g}"
        if self.found:
            return (
                f"The batch differs from the reference ({figures}). Means that changed most: "
                f"{self.name_moved()}."
            )
        if self.is_small:
            return (
                "The batch differs from the reference by too little to matter (AUC "
                f"{self.auc:.3f}, p = {self.p_value:.2g})."
            )
        figures = "; ".join(filter(None, (figures, self._describe_power())))
        return f"No sign that the batch differs from the reference ({figures})."

    def _repr_html_(self) -> str:
        return make_html(str(self), self.moved.head(10))

    def name_moved(self) -> str:
        """Columns that moved most, with both means, as a list in a sentence."""
        rows = list(self.moved.head(N_NAMED).itertuples())
        return ", ".join(
            f"{full_name(str(row.Index))} from {row.reference:.3g} to {row.batch:.3g}"
            for row in rows
        )


def compare_views(reference: pd.DataFrame, batch: pd.DataFrame, seed: int = 0) -> ShiftTest | None:
    """Shift test of two samples; None where one is smaller than `MIN_ROWS`."""
    names, *views = _add_expected_number(*common_columns(reference, batch))
    left, right = (view[sample_rows(len(view), seed)] for view in views)
    if min(len(left), len(right)) < MIN_ROWS:
        return None
    with one_blas_thread():  # so that results do not depend on the number of cores
        auc, p_value = _permutation_test(left, right, seed)
    moved = _compare_columns(names, left, right)
    return ShiftTest(auc, p_value, len(left), len(right), moved)


def common_columns(
    reference: pd.DataFrame, batch: pd.DataFrame
) -> tuple[list[str], Floats, Floats]:
    """Names of the k columns that both have, and their values, (n, k) each."""
    names = [name for name in reference.columns if name in batch.columns]
    left, right = (view[names].to_numpy(np.float64) for view in (reference, batch))
    return names, left, right


def _add_expected_number(
    names: list[str], left: Floats, right: Floats
) -> tuple[list[str], Floats, Floats]:
    """Columns of two samples with the expected number of labels as a further one."""
    is_label = [name.startswith(LABEL_MARK) for name in names]
    if any(is_label):
        names = [*names, N_EXPECTED]
        left, right = (np.column_stack([v, v[:, is_label].sum(axis=1)]) for v in (left, right))
    return names, left, right


def _permutation_test(reference: Floats, batch: Floats, seed: int) -> tuple[float, float]:
    """AUC of two normal populations at the distance of the samples, and permutation p-value.

    The distance is Mahalanobis' between the means of columns and their squares, with a ridge
    (Hotelling's statistic). Distances of random parts from the remaining rows are its null
    distribution; the excess over their mean estimates the distance of the populations. Two normal
    populations at a distance d are separated with an AUC of Phi(d / sqrt 2).
    """
    n, n_all = len(batch), len(reference) + len(batch)
    values = np.concatenate([reference, batch])
    rows = Separator(*_standardise(values), np.empty(0)).design(values)[:, :-1]
    centre, scale = _standardise(rows)
    rows = (rows - centre) / scale
    covariance = rows.T @ rows / n_all + RIDGE * np.eye(rows.shape[1])
    rows = np.linalg.solve(np.linalg.cholesky(covariance), rows.T)
    rng = np.random.default_rng(seed)
    is_part = np.zeros((n_all, N_PERMUTED + 1))
    is_part[n_all - n :, 0] = 1
    for column in is_part.T[1:]:
        column[rng.permutation(n_all)[:n]] = 1
    # The pooled mean is 0, so that mean(batch) - mean(others) = mean(batch) N / (N - n).
    distances = ((rows @ is_part / n) ** 2).sum(axis=0) * (n_all / (n_all - n)) ** 2
    p_value = float((distances >= distances[0] * (1 - 1e-9)).mean())
    squared = max(0.0, float(distances[0] - distances[1:].mean()))
    return float(ndtr((squared / 2) ** 0.5)), p_value


def compare_means(reference: pd.DataFrame, batch: pd.DataFrame) -> tuple[float, list[str]]:
    """P-value of "all means are equal", and the columns by descending z-score.

    The test is that of the column with the largest z-score, times the number of columns, by a bound
    on the permutation distribution of its mean: valid at any level, however small.
    """
    names, left, right = _add_expected_number(*common_columns(reference, batch))
    _, scale = _standardise(np.concatenate([left, right]))
    z = np.abs(right.mean(axis=0) - left.mean(axis=0)) / scale
    order = np.argsort(-z, kind="stable")
    bound = permutation_bound(left[:, order[0]], right[:, order[0]])
    return min(1.0, len(names) * bound), [names[j] for j in order]


def _standardise(values: Floats) -> tuple[Floats, Floats]:
    """Mean and standard deviation of each column, infinite for a constant one."""
    scale = values.std(axis=0)
    scale[scale <= 1e-6 * (1 + np.abs(values).max(axis=0))] = np.inf
    return values.mean(axis=0), scale


@dataclass(frozen=True)
class Separator:
    """Logistic regression that separates a batch from a reference, on columns and their squares.

    Parameters
    ----------
    centre, scale
        (k,) mean and standard deviation of each column.
    coefficients
        (2 k + 1,) coefficients of columns, of squares, and the intercept.
    """

    centre: Floats
    scale: Floats
    coefficients: Floats

    PENALTY = 1.0
    """Ridge penalty on all coefficients of standardised columns but the intercept."""

    @classmethod
    def fit(cls, reference: Floats, batch: Floats) -> Separator:
        """Fit to reference, (N, k), and batch, (n, k)."""
        values = np.concatenate([reference, batch])
        start = cls(*_standardise(values), np.empty(0))
        model = LogisticRegression(C=1 / cls.PENALTY, solver="newton-cholesky", max_iter=200)
        is_batch = np.repeat([0, 1], [len(reference), len(batch)])
        model.fit(start.design(values)[:, :-1], is_batch)
        coefficients = np.append(model.coef_[0], model.intercept_)
        return cls(start.centre, start.scale, coefficients)

    def design(self, values: Floats) -> Floats:
        """Standardised columns, their squares and a column of ones, (n, 2 k + 1)."""
        scores = np.clip((values - self.centre) / self.scale, -LARGEST_SCORE, LARGEST_SCORE)
        return np.column_stack([scores, scores**2 - 1, np.ones(len(values))])

    def log_odds(self, values: Floats) -> Floats:
        """Log-odds of the batch against the reference, (n,)."""
        return self.design(values) @ self.coefficients


def _compare_columns(names: Sequence[str], reference: Floats, batch: Floats) -> pd.DataFrame:
    """Means and distance of each column, the largest distances first."""
    import pandas as pd

    distances = [_ks_distance(reference[:, j], batch[:, j]) for j in range(len(names))]
    table = pd.DataFrame(
        {
            "reference": reference.mean(axis=0),
            "batch": batch.mean(axis=0),
            "distance": distances,
        },
        index=pd.Index(names, name="column"),
    )
    return table.sort_values("distance", ascending=False, kind="stable")


def _ks_distance(left: Floats, right: Floats) -> float:
    """Kolmogorov-Smirnov distance of two samples."""
    left, right = np.sort(left), np.sort(right)
    both = np.concatenate([left, right])
    below_left = np.searchsorted(left, both, side="right") / len(left)
    below_right = np.searchsorted(right, both, side="right") / len(right)
    return float(np.abs(below_left - below_right).max())


def describe_shift(test: ShiftTest | None, untested: str) -> str:
    """Result of a shift test in words, or the reason why there was none."""
    if test is not None:
        return f"Do not rely on this. {test}" if test.found else str(test)
    return f"Not tested for shift: {untested}." if untested else ""


def warn_of_shift(test: ShiftTest, accuracy: float) -> None:
    """Warn that a batch is not like the labelled rows, whose mean accuracy is given."""
    question = ""
    if accuracy >= NEARLY_PERFECT:
        question = (
            f" Was the model trained on calibration rows? Their mean accuracy of {accuracy:.3f} is "
            "nearly perfect, and the estimate would be too high."
        )
    warn(
        f"Shift detected: the batch differs from the calibration set (AUC {test.auc:.2f}, p = "
        f"{test.p_value:.2g}); means that changed most: {test.name_moved()}. The estimate and its "
        "interval assume rows like the calibration set. Label some rows drawn at random, or use "
        f"shift='weighted'.{question}",
        ShiftWarning,
    )


def shift_test(
    reference: Any, batch: Any, Y_pred: LabelsetsLike = None, *, random_state: int = 0
) -> ShiftTest:
    """Test for covariate and label shift between a batch and a reference.

    Compared are the candidates, the number of predicted and of expected labels, and the probability
    of each label.
    Concept drift cannot be detected without labels.

    Parameters
    ----------
    reference
        A fitted `AccuracyEstimator` or `AccuracyAwareClassifier`, for its calibration set; or a
        batch.
    batch
        A `LabelsetDistribution`, a `ScoreTable`, or a DataFrame with its columns; with an
        `AccuracyAwareClassifier` features X.
    Y_pred
        What was predicted for the batch; None means the mode, or what the reference decides by.
    random_state
        Seed of the permutations.

    Returns
    -------
    ShiftTest
        `auc`, `p_value`, and `moved`, a table of the columns that differ most.

    See Also
    --------
    AccuracyEstimator.estimate : Runs this test on every batch.
    monitor : Tests each chunk of a stream.

    Notes
    -----
    A permutation test of the squared Mahalanobis distance between the means of all columns and
    their squares (Hotelling, 1931), regularised by a ridge.

    Examples
    --------
    >>> import numpy as np
    >>> from labelsure import IndependentLabels, shift_test
    >>> rng = np.random.default_rng(0)
    >>> usual = IndependentLabels(rng.beta(0.3, 0.6, size=(900, 3)), label_names=["a", "b", "c"])
    >>> print(shift_test(usual[:600], usual[600:]))
    No sign that the batch differs from the reference (AUC 0.54, p = 0.14).
    >>> P = rng.beta([0.3, 0.3, 0.9], 0.6, size=(300, 3))
    >>> found = shift_test(usual, IndependentLabels(P, label_names=["a", "b", "c"]))
    >>> print(found)
    The batch differs from the reference (AUC 0.71, p = 0.005). Means that changed most: P(c) from
    0.315 to 0.597, n_expected from 1.01 to 1.29, n_predicted from 0.969 to 1.3.
    >>> found.moved.head(2).round(2)
                reference  batch  distance
    column
    P(c)             0.31   0.60      0.39
    n_expected       1.01   1.29      0.21
    """
    fitted = getattr(reference, "fitted_", None)
    if fitted is not None:
        predictions = fitted.predictor.predict(batch)
        batch, Y_pred = predictions.dist, predictions.decisions
        reference = fitted.accuracy_estimator
    if hasattr(reference, "calibration_"):
        if not reference.can_compare:
            raise InputError(
                "`reference` must be an estimator with a held-out calibration set, got one of "
                "cross-fitting: its out-of-fold predictions come from other models, and the "
                "p-value would be too small. Hold rows out (cv=0.4), or compare two distributions."
            )
        reference_view = reference._calibration_view()
        batch_view = reference.summarise(batch, Y_pred).view
    else:
        reference_view, batch_view = _read_view(reference, None), _read_view(batch, Y_pred)
    test = compare_views(reference_view, batch_view, random_state)
    if test is None:
        raise InputError(
            f"Reference and batch must have at least {MIN_ROWS} rows each to be compared, got "
            f"{len(reference_view)} and {len(batch_view)}."
        )
    return test


def _read_view(source: object, Y_pred: LabelsetsLike) -> pd.DataFrame:
    table = ScoreTable._read(keep_marginals(source), None, Y_pred)
    return table._view(sample_rows(len(table)))
