"""The models of accuracy: each is fitted to features and accuracies and predicts the accuracy."""

from __future__ import annotations

from typing import Self

import numpy as np
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from labelsure._kernels.threads import one_blas_thread
from labelsure._runtime.typing import Floats

EXPECTED = "expected"
"""The feature that is the expected accuracy of the decision itself."""

C_DEFAULT = 1.0
"""Inverse strength of the ridge penalty. Estimates with 1 have a squared error as small as with
the best of 20 penalties by cross-validation (`docs/evidence/calibration.md`)."""

CONSTANT = 1e-7  # a column whose standard deviation is this share of its size varies by rounding
LARGEST_LOGIT = 30.0  # of accuracies that are all 0 or all 1
INTERCEPT_PENALTY = 1e-10  # so that the Hessian of accuracies of 0 and 1 has an inverse


class RidgeModel:
    """Logit accuracy is linear in standardised features, with a ridge penalty.

    An accuracy v counts as v successes and 1 - v failures: a row of each, with these weights. The
    covariance of the coefficients is the sandwich estimate, which holds although accuracies scatter
    less than coins do; n / (n - effective parameters) corrects for the residuals of a fit.
    """

    learns = True
    default = "full"

    def fit(self, features: Floats, values: Floats, C: float) -> Self:
        """Fit to (n, m) features and (n,) accuracies."""
        n_samples, self.C = len(values), C
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
            effective = min(float(np.trace(inverse @ hessian)), n_samples / 2)
            self.covariance = inverse @ (scores.T @ scores) @ inverse
            self.covariance *= n_samples / (n_samples - effective)
        return self

    def _fit_logits(self, design: Floats, values: Floats) -> Floats:
        weights = np.concatenate([values, 1 - values])
        used = weights > 0
        is_success = np.repeat([1, 0], len(values))[used]
        if is_success.min() == is_success.max():  # all right, or all wrong
            logit = LARGEST_LOGIT * (1 if is_success[0] else -1)
            return np.append(np.zeros(len(self.centre)), logit)
        model = LogisticRegression(C=self.C, solver="newton-cholesky", tol=1e-8, max_iter=200)
        model.fit(np.tile(design[:, :-1], (2, 1))[used], is_success, weights[used])
        return np.append(model.coef_[0], model.intercept_)

    def _design(self, features: Floats) -> Floats:
        """Return the standardised features and a column of ones."""
        return np.column_stack([(features - self.centre) / self.scale, np.ones(len(features))])

    def predict(self, features: Floats) -> Floats:
        """Return the estimated accuracies, (n,), within the range of those fitted to."""
        return np.clip(expit(self._design(features) @ self.coefficients), *self.range)

    def sum_slopes(self, features: Floats) -> Floats:
        """Return the derivatives of the estimates by the coefficients, summed over rows, (m,)."""
        design = self._design(features)
        rates = expit(design @ self.coefficients)
        return np.asarray((rates * (1 - rates)) @ design)

    def mean_variance(self, slopes: Floats) -> float:
        """Return the variance that fitting leaves in a mean, by its slopes (delta method)."""
        return float(slopes @ self.covariance @ slopes)


class PluginModel:
    """The expected accuracy under the distribution itself; nothing is fitted."""

    learns = False
    default = EXPECTED

    def fit(self, features: Floats, values: Floats, C: float) -> Self:
        """Do nothing."""
        return self

    def predict(self, features: Floats) -> Floats:
        """Return the expected accuracies, (n,)."""
        return np.clip(features[:, 0], 0.0, 1.0)

    def sum_slopes(self, features: Floats) -> Floats:
        """Return nothing: nothing was fitted."""
        return np.empty(0)

    def mean_variance(self, slopes: Floats) -> float:
        """Return 0: nothing was fitted."""
        return 0.0


ACCURACY_MODELS: dict[str, type[RidgeModel] | type[PluginModel]] = {
    "ridge": RidgeModel,
    "plugin": PluginModel,
}
