"""Cross-fitting: the interval is about models that were trained on all folds but one."""

import numpy as np
import pytest
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin

import labelsure as ls

pytestmark = pytest.mark.jit_only


class LeastSquares(ClassifierMixin, BaseEstimator):
    """Linear regression of each label, fitted in one step; nothing restrains many features."""

    def fit(self, X, y):
        self.classes_ = [np.array([0, 1])] * y.shape[1]
        X = _with_ones(X)
        self.coef_ = np.linalg.solve(X.T @ X + 1e-9 * np.eye(X.shape[1]), X.T @ y)
        return self

    def predict_proba(self, X):
        return expit(4 * (_with_ones(X) @ self.coef_ - 0.5))


def _with_ones(X):
    return np.column_stack([X, np.ones(len(X))])


class World:
    """Instances with labels that depend on all features, and on each other."""

    def __init__(self, n_features, n_labels, strength=4.0):
        rng = np.random.default_rng(0)
        self.slopes = rng.normal(size=(n_features, n_labels)) * strength / n_features**0.5
        self.offsets = rng.normal(-0.7, 0.7, size=n_labels)
        self.shared = rng.normal(size=n_labels)

    def draw(self, n_samples, rng):
        X = rng.normal(size=(n_samples, len(self.slopes)))
        logits = X @ self.slopes + self.offsets + rng.normal(size=(n_samples, 1)) * self.shared
        return X, (rng.random(logits.shape) < expit(logits)).astype(int)


def test_the_interval_covers_the_accuracy_of_models_trained_on_80_percent_of_the_rows():
    """Many features and few rows: the model of all rows is more accurate than those of folds."""
    world, rng, covered, gains = World(30, 5), np.random.default_rng(1), 0, []
    for repeat in range(100):
        X, Y = world.draw(200, rng)
        model = ls.AccuracyAwareClassifier(LeastSquares(), "hamming", cv=5, random_state=repeat)
        model.fit(X, Y)
        X_new, Y_new = world.draw(2000, rng)
        mode = LeastSquares().fit(X[:160], Y[:160]).predict_proba(X_new) > 0.5
        accuracy = (mode == Y_new).mean()
        found = model.estimate(X_new)
        covered += found.low <= accuracy <= found.high
        gains.append(model.score(X_new, Y_new) - accuracy)
    assert covered >= 88
    assert np.mean(gains) > 0.005


def test_an_estimate_says_that_it_rests_on_folds():
    X, Y = World(3, 2).draw(100, np.random.default_rng(0))
    model = ls.AccuracyAwareClassifier(LeastSquares(), "hamming", cv=5, random_state=0).fit(X, Y)
    assert "; calibrated on 100 out-of-fold rows)" in str(model.estimate(X))
