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
    """Names of features, with the name of a feature set replaced by its members.

    Examples
    --------
    >>> check_features("SE"), check_features("mix")
    (('SE',), ('HP', 'TG', 'SE', 'CE', 'ME', 'CS'))
    """
    if isinstance(features, str):
        if features in FEATURE_SETS:
            return FEATURE_SETS[features]
        features = (features,)
    feature_names = [*CANDIDATES, *_OTHER_FEATURES, *FEATURE_SETS]
    for name in features:
        if name not in CANDIDATES and name not in _OTHER_FEATURES:
            raise unknown_name("feature", name, feature_names)
    if len(features) == 0:
        raise InputError(
            f"`features` must name at least one of {', '.join(feature_names)}, got none of them."
        )
    return tuple(features)


def feature_matrix(table: ScoreTable, names: Sequence[str], metric: Metric, empty: float) -> Floats:
    """Features, (n, m), in Fortran order."""
    matrix = np.empty((len(table), len(names)), order="F")
    for j, name in enumerate(names):
        if name in CANDIDATES:
            matrix[:, j] = table.candidate_up_to_scale(name)
        else:
            matrix[:, j] = _OTHER_FEATURES[name](table, metric, empty)
    is_finite = np.isfinite(matrix).all(axis=0)
    if not is_finite.all():
        raise InputError(
            f"The feature {names[int(np.argmin(is_finite))]!r} must be finite, got NaN or "
            "infinity. Leave it out of `features`, or check the distribution."
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
        """Coefficients of the weighted logistic regression, the intercept last, (m + 1,)."""
        weights = np.concatenate([values, 1 - values])
        has_weight = weights > 0
        is_success = np.repeat([1, 0], len(values))[has_weight]
        if is_success.min() == is_success.max():  # all right, or all wrong
            logit = LARGEST_LOGIT * (1 if is_success[0] else -1)
            return np.append(np.zeros(len(self.centre)), logit)
        model = LogisticRegression(C=C, solver="newton-cholesky", tol=1e-8, max_iter=200)
        model.fit(np.tile(design[:, :-1], (2, 1))[has_weight], is_success, weights[has_weight])
        return np.append(model.coef_[0], model.intercept_)

    def _design(self, features: Floats) -> Floats:
        """Standardised features and a column of ones, (n, m + 1)."""
        return np.column_stack([(features - self.centre) / self.scale, np.ones(len(features))])

    def predict(self, features: Floats) -> Floats:
        """Estimated accuracies, (n,), clipped to the range of the accuracies in `fit`."""
        return np.clip(expit(self._design(features) @ self.coefficients), *self.range)

    def sum_slopes(self, features: Floats) -> Floats:
        """Gradient of the sum of all estimates with respect to the coefficients, (m + 1,)."""
        design = self._design(features)
        rates = expit(design @ self.coefficients)
        return np.asarray((rates * (1 - rates)) @ design)

    def mean_variance(self, slopes: Floats) -> float:
        """Variance of a mean estimate due to the fit (delta method); `slopes` is its gradient."""
        return float(slopes @ self.covariance @ slopes)


@dataclass(frozen=True)
class LabelsetFrequencies:
    """Distinct labelsets of a data set, and the number of rows with each.

    Parameters
    ----------
    labelsets
        (m, L) distinct labelsets in the order of their codes; of sparse rows their column indices,
        one labelset after the other.
    counts
        (m,) number of rows with each.
    label_names
        One for each label; None without names.
    starts
        (m + 1,) row pointers of sparse rows; None for an array.
    n_labels
        L, of sparse rows.

    Examples
    --------
    >>> frequencies = LabelsetFrequencies.of(np.array([[1, 0], [1, 0], [0, 1]], dtype=np.int8))
    >>> frequencies.counts_of(np.array([[1, 0], [1, 1]], dtype=np.int8))
    array([2, 0])
    >>> frequencies.log_frequencies(np.array([[1, 0], [1, 1]], dtype=np.int8)).round(2)
    array([-0.47, -2.08])
    """

    labelsets: Labelsets
    counts: Integers
    label_names: tuple[str, ...] | None = None
    starts: Indices | None = None
    n_labels: int | None = None

    @property
    def rows(self) -> Labelsets:
        """Distinct labelsets, (m, L)."""
        if self.starts is None or self.n_labels is None:
            return self.labelsets
        return sparse_ones(self.labelsets, self.starts, self.n_labels)

    @classmethod
    def of(cls, Y: Labelsets, label_names: tuple[str, ...] | None = None) -> LabelsetFrequencies:
        """Frequencies of (n, L) labelsets, n >= 1."""
        _, first, counts = np.unique(row_keys(Y), return_index=True, return_counts=True)
        counts = counts.astype(np.int64)
        if is_sparse(Y):  # plain arrays, which can be saved
            rows: Any = Y[first]
            labels, starts = (array.astype(np.int64) for array in (rows.indices, rows.indptr))
            return cls(labels, counts, label_names, starts, Y.shape[1])
        return cls(np.ascontiguousarray(Y[first]), counts, label_names)

    @classmethod
    def read(cls, Y_train: LabelsetsLike, dist: object) -> LabelsetFrequencies:
        """Frequencies of training labelsets, labels in the order of the distribution."""
        if isinstance(Y_train, cls):
            return Y_train
        names = dist.label_names if isinstance(dist, LabelsetDistribution) else None
        sparse = is_sparse(Y_train) or getattr(dist, "sparse_rows", False)
        parsed = ParsedLabelsets.read(Y_train, "Y_train")
        rows = parsed.to_rows(names, beside="the distribution", sparse=sparse)
        if rows.shape[0] == 0:
            raise InputError("`Y_train` must hold at least one labelset, got none. Leave it out.")
        return cls.of(rows, names or parsed.label_names)

    def counts_of(self, Y: Labelsets) -> Integers:
        """Number of rows with each of the (n, L) labelsets, (n,)."""
        rows = self.rows
        if is_sparse(rows) != is_sparse(Y):
            rows, Y = make_sparse(rows), make_sparse(Y)
        own_keys, keys = row_keys(rows), row_keys(Y)
        positions = np.minimum(np.searchsorted(own_keys, keys), len(own_keys) - 1)
        return np.where(own_keys[positions] == keys, self.counts[positions], 0)

    def log_frequencies(self, Y: Labelsets) -> Floats:
        """Log-frequency of each of the (n, L) labelsets, (n,)."""
        return np.log((self.counts_of(Y) + 0.5) / (self.counts.sum() + 1))

    def add_to(self, table: ScoreTable) -> ScoreTable:
        """Table with a column of the log-frequencies of its decisions, unless it has one."""
        if table.knows_frequencies:
            return table
        if table.decisions is None:
            raise InputError(
                f"The table must have a column {LOG_FREQUENCY!r} for an estimator that counts "
                "labelsets. Pass the distribution, or `ScoreTable.from_distribution`."
            )
        own_names, n_own = self.label_names, self.rows.shape[1]
        names, n_labels = table.label_names, table.decisions.shape[1]
        check_same_labels(names, n_labels, own_names, n_own, "the training data")
        return table.with_columns({LOG_FREQUENCY: self.log_frequencies(table.decisions)})
