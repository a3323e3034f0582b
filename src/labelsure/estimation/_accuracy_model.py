"""The model of accuracy: features of predictions, and a logistic regression on them.

One feature is how often the predicted labelset occurs among those that the classifier was trained
on (`LabelsetFrequencies`). A labelset that was seen often is easier to predict than one that was
never seen, and the distribution of one row does not say which it is. The feature is log((count
+ 1/2) / (n + 1)), so that a labelset that was never seen has one, too.

It must be counted in the training data, or in other rows that the estimator is not fitted to:
a row that is counted itself is in the count just when its prediction is right.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from labelsure._kernels.threads import one_blas_thread
from labelsure._runtime.typing import Floats, Indices, Integers, Labelsets, LabelsetsLike
from labelsure.distributions._base import LabelsetDistribution
from labelsure.distributions.candidates import CANDIDATES
from labelsure.errors import InputError, unknown_name
from labelsure.estimation.score_table import LOG_FREQUENCY, MIX, ScoreTable
from labelsure.labelsets.codes import row_keys
from labelsure.labelsets.label_names import check_same_labels
from labelsure.labelsets.names import ParsedLabelsets
from labelsure.labelsets.sparse import is_sparse, make_sparse, sparse_ones
from labelsure.metrics.clusters import sum_by_cluster
from labelsure.metrics.registry import Metric

EXPECTED, FREQUENCY = "expected", "frequency"

_OTHER_FEATURES: dict[str, Callable[[ScoreTable, Metric, float], Floats]] = {
    EXPECTED: lambda table, metric, empty: table.expected(metric, empty),
    "n_predicted": lambda table, metric, empty: table.n_predicted(),
    "is_empty": lambda table, metric, empty: (table.n_predicted() == 0).astype(np.float64),
    FREQUENCY: lambda table, metric, empty: table._column(LOG_FREQUENCY),
}
"""Features that are no candidates: they depend on the decision."""

FEATURE_SETS: dict[str, tuple[str, ...]] = {
    "mix": MIX,
    "full": (*MIX, EXPECTED, "n_predicted", "is_empty"),
    "sharp": (*MIX, EXPECTED, "n_predicted", "is_empty", FREQUENCY),
}
"""Names for several features together. `mix` is the paper's. In `full` the number of labels has a
term of its own for none: from none to one is another step than from one to two, and without the
term sharp estimates are badly calibrated. `sharp` needs the labelsets of the training data."""


def check_features(features: str | Sequence[str]) -> tuple[str, ...]:
    """Names of features: the set that a name stands for, or the names themselves.

    Examples
    --------
    >>> check_features("SE"), check_features("mix")
    (('SE',), ('HP', 'TG', 'SE', 'CE', 'ME', 'CS'))
    """
    if isinstance(features, str):
        if features in FEATURE_SETS:
            return FEATURE_SETS[features]
        features = (features,)
    known = [*CANDIDATES, *_OTHER_FEATURES, *FEATURE_SETS]
    for name in features:
        if name not in CANDIDATES and name not in _OTHER_FEATURES:
            raise unknown_name("feature", name, known)
    if len(features) == 0:
        raise InputError(
            f"`features` must name at least one of {', '.join(known)}, got none of them."
        )
    return tuple(features)


def feature_matrix(table: ScoreTable, names: Sequence[str], metric: Metric, empty: float) -> Floats:
    """Features as an (n, number of features) array, each column contiguous."""
    matrix = np.empty((len(table), len(names)), order="F")
    for j, name in enumerate(names):
        if name in CANDIDATES:
            matrix[:, j] = table.candidate_up_to_scale(name)
        else:
            matrix[:, j] = _OTHER_FEATURES[name](table, metric, empty)
    finite = np.isfinite(matrix).all(axis=0)
    if not finite.all():
        raise InputError(
            f"The feature {names[int(np.argmin(finite))]!r} must be finite, got NaN or infinity. "
            "Leave it out of `features`, or check the distribution."
        )
    return matrix


C = 1.0
"""Inverse strength of the ridge penalty. Estimates with 1 have a squared error as small as with
the best of 20 penalties by cross-validation (`docs/evidence/calibration.md`)."""

CONSTANT = 1e-7  # a column whose standard deviation is this share of its size varies by rounding
LARGEST_LOGIT = 30.0  # of accuracies that are all 0 or all 1
INTERCEPT_PENALTY = 1e-10  # so that the Hessian of accuracies of 0 and 1 has an inverse


class RidgeModel:
    """Logit accuracy is linear in standardised features, with a ridge penalty.

    An accuracy v counts as v successes and 1 - v failures: a row of each, with these weights. The
    covariance of the coefficients is the sandwich estimate, which holds although accuracies scatter
    less than coins do, with the scores of a cluster of dependent rows as one;
    k / (k - effective parameters), k the number of clusters, corrects for the residuals of a fit.
    """

    def fit(self, features: Floats, values: Floats, clusters: Indices | None = None) -> Self:
        """Fit to (n, m) features and (n,) accuracies; None: rows are independent."""
        n_samples = len(values)
        self.centre, self.scale = features.mean(axis=0), features.std(axis=0)
        self.scale[self.scale <= CONSTANT * np.abs(features).max(axis=0)] = np.inf
        self.range = (float(values.min()), float(values.max()))
        design = self._design(features)
        with one_blas_thread():  # threads that wait for each other cost more than they do
            self.coefficients = self._fit_logits(design, values)
            rates = expit(design @ self.coefficients)
            penalty = np.append(np.full(len(self.centre), 1 / C), INTERCEPT_PENALTY * n_samples)
            hessian = (design * (rates * (1 - rates))[:, np.newaxis]).T @ design
            inverse = np.linalg.inv(hessian + np.diag(penalty))
            scores = design * (rates - values)[:, np.newaxis]
            if clusters is not None:
                scores = sum_by_cluster(scores, clusters)
            effective = min(float(np.trace(inverse @ hessian)), len(scores) / 2)
            self.covariance = inverse @ (scores.T @ scores) @ inverse
            self.covariance *= len(scores) / (len(scores) - effective)
        return self

    def _fit_logits(self, design: Floats, values: Floats) -> Floats:
        weights = np.concatenate([values, 1 - values])
        used = weights > 0
        is_success = np.repeat([1, 0], len(values))[used]
        if is_success.min() == is_success.max():  # all right, or all wrong
            logit = LARGEST_LOGIT * (1 if is_success[0] else -1)
            return np.append(np.zeros(len(self.centre)), logit)
        model = LogisticRegression(C=C, solver="newton-cholesky", tol=1e-8, max_iter=200)
        model.fit(np.tile(design[:, :-1], (2, 1))[used], is_success, weights[used])
        return np.append(model.coef_[0], model.intercept_)

    def _design(self, features: Floats) -> Floats:
        """Standardised features and a column of ones, (n, m + 1)."""
        return np.column_stack([(features - self.centre) / self.scale, np.ones(len(features))])

    def predict(self, features: Floats) -> Floats:
        """Estimated accuracies, (n,), within the range of those fitted to."""
        return np.clip(expit(self._design(features) @ self.coefficients), *self.range)

    def sum_slopes(self, features: Floats) -> Floats:
        """Derivatives of the estimates by the coefficients, summed over rows, (m + 1,)."""
        design = self._design(features)
        rates = expit(design @ self.coefficients)
        return np.asarray((rates * (1 - rates)) @ design)

    def mean_variance(self, slopes: Floats) -> float:
        """Sampling variance of a mean by the fit, from its slopes (delta method)."""
        return float(slopes @ self.covariance @ slopes)


@dataclass(frozen=True)
class LabelsetFrequencies:
    """The labelsets of some rows, and how many rows have each.

    Parameters
    ----------
    labelsets
        (m, L) the distinct ones, in the order of their codes; of sparse rows the labels of all, one
        labelset after the other.
    counts
        (m,) rows with each.
    label_names
        One for each label; None where nobody named them.
    starts
        (m + 1,) where each labelset starts, of sparse rows; None for an array.
    n_labels
        L, of sparse rows.

    Examples
    --------
    >>> seen = LabelsetFrequencies.of(np.array([[1, 0], [1, 0], [0, 1]], dtype=np.int8))
    >>> seen.counts_of(np.array([[1, 0], [1, 1]], dtype=np.int8))
    array([2, 0])
    >>> seen.log_frequencies(np.array([[1, 0], [1, 1]], dtype=np.int8)).round(2)
    array([-0.47, -2.08])
    """

    labelsets: Labelsets
    counts: Integers
    label_names: tuple[str, ...] | None = None
    starts: Indices | None = None
    n_labels: int | None = None

    @property
    def rows(self) -> Labelsets:
        """The distinct labelsets."""
        if self.starts is None or self.n_labels is None:
            return self.labelsets
        return sparse_ones(self.labelsets, self.starts, self.n_labels)

    @classmethod
    def of(cls, Y: Labelsets, label_names: tuple[str, ...] | None = None) -> LabelsetFrequencies:
        """Count (n, L) labelsets of at least one row."""
        _, first, counts = np.unique(row_keys(Y), return_index=True, return_counts=True)
        counts = counts.astype(np.int64)
        if is_sparse(Y):  # plain arrays, which can be saved
            rows: Any = Y[first]
            labels, starts = (part.astype(np.int64) for part in (rows.indices, rows.indptr))
            return cls(labels, counts, label_names, starts, Y.shape[1])
        return cls(np.ascontiguousarray(Y[first]), counts, label_names)

    @classmethod
    def read(cls, Y_train: LabelsetsLike, dist: object) -> LabelsetFrequencies:
        """Count the labelsets of training data, in the order of the labels of a distribution."""
        if isinstance(Y_train, cls):
            return Y_train
        names = dist.label_names if isinstance(dist, LabelsetDistribution) else None
        sparse = is_sparse(Y_train) or getattr(dist, "sparse_rows", False)
        given = ParsedLabelsets.read(Y_train, "Y_train")
        rows = given.to_rows(names, beside="the distribution", sparse=sparse)
        if rows.shape[0] == 0:
            raise InputError("`Y_train` must hold at least one labelset, got none. Leave it out.")
        return cls.of(rows, names or given.label_names)

    def counts_of(self, Y: Labelsets) -> Integers:
        """Number of rows with each of the (n, L) labelsets, (n,)."""
        known_rows = self.rows
        if is_sparse(known_rows) != is_sparse(Y):
            known_rows, Y = make_sparse(known_rows), make_sparse(Y)
        known, keys = row_keys(known_rows), row_keys(Y)
        places = np.minimum(np.searchsorted(known, keys), len(known) - 1)
        return np.where(known[places] == keys, self.counts[places], 0)

    def log_frequencies(self, Y: Labelsets) -> Floats:
        """Log-frequency of each of the (n, L) labelsets, (n,)."""
        return np.log((self.counts_of(Y) + 0.5) / (self.counts.sum() + 1))

    def add_to(self, table: ScoreTable) -> ScoreTable:
        """Table with the log-frequencies of its decisions, added where it has none."""
        if table.knows_frequencies:
            return table
        if table.decisions is None:
            raise InputError(
                f"The table must have a column {LOG_FREQUENCY!r} for an estimator that counts "
                "labelsets. Pass the distribution, or `ScoreTable.from_distribution`."
            )
        known, n_known = self.label_names, self.rows.shape[1]
        names, n_labels = table.label_names, table.decisions.shape[1]
        check_same_labels(names, n_labels, known, n_known, "the training data")
        return table.with_columns({LOG_FREQUENCY: self.log_frequencies(table.decisions)})
