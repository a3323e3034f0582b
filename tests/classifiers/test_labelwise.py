"""Calibration of each label: by loops, and scikit-learn's steps."""

import re

import numpy as np
import oracles_recalibration as oracles
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit, logit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from strategies import many

import labelsure as ls


class GivenLogits(ClassifierMixin, BaseEstimator):
    """A classifier whose only feature is the log-odds."""

    def fit(self, X, y):
        self.classes_ = np.array([0, 1])
        return self

    def decision_function(self, X):
        return X[:, 0]

    def predict(self, X):
        return (X[:, 0] > 0).astype(int)


def labelled(n_samples=400, seed=0):
    """The second label is too sure, the third is seldom there."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(n_samples, 3)) - [0, 0, 3]
    Y = (rng.random(logits.shape) < expit(logits)).astype(int)
    return ls.IndependentLabels(expit(logits * [1, 3, 1] + [0.5, 0, 0])), Y


def peer(z, y):
    """What scikit-learn's Platt scaling says of one label, by its public way."""
    frozen = FrozenEstimator(GivenLogits().fit(None, None))
    model = CalibratedClassifierCV(frozen, method="sigmoid", ensemble=False)
    return model.fit(z[:, np.newaxis], y).predict_proba(z[:, np.newaxis])[:, 1]


def test_one_label_is_calibrated_nearly_as_by_scikit_learn():
    """Platt scaling: of one label the pooled curve is its own."""
    dist, Y = labelled()
    one = ls.IndependentLabels(dist.marginals()[:, 1:2])
    found = ls.LabelwiseCalibration(gate=False).fit(one, Y[:, 1:2])
    expected = peer(logit(one.marginals()), Y[:, 1])
    assert_allclose(found.transform(one).marginals()[:, 0], expected, atol=2e-3)


@pytest.mark.parametrize("weights", [None, np.random.default_rng(3).uniform(0.2, 3, 60)])
def test_curves_have_the_least_loss(weights):
    dist, Y = labelled(60)
    found = ls.LabelwiseCalibration(gate=False).fit(dist, Y, weights)
    logits, counts = logit(dist.marginals()), np.ones(60) if weights is None else weights
    model = LogisticRegression(C=1e3, max_iter=10_000, tol=1e-10)
    model.fit(logits.reshape(-1, 1), Y.ravel(), np.repeat(counts, 3))
    pooled = (model.coef_[0, 0], model.intercept_[0])
    slopes, intercepts = found.curves_

    def losses(a, b):
        return np.array(
            oracles.sigmoid_losses(
                logits.tolist(), Y.tolist(), counts.tolist(), a, b, pooled, 1.0, 0.1
            )
        )

    least = losses(slopes, intercepts)
    for step in (0.02, -0.02):
        assert (losses(slopes + step, intercepts) > least).all()
        assert (losses(slopes, intercepts + step) > least).all()


def test_rare_labels_borrow_from_the_others():
    """All labels are overconfident alike; of one there are few positives."""
    rng = np.random.default_rng(5)
    logits = rng.normal(size=(150, 8))
    logits[:, 7] -= 4
    Y = (rng.random(logits.shape) < expit(logits)).astype(int)
    assert 0 < Y[:, 7].sum() < 8
    found = ls.LabelwiseCalibration(gate=False).fit(ls.IndependentLabels(expit(3 * logits)), Y)
    slopes = found.curves_[0]
    assert np.abs(slopes - 1 / 3).max() < 0.12
    alone = ls.LabelwiseCalibration(gate=False).fit(
        ls.IndependentLabels(expit(3 * logits[:, 7:])), Y[:, 7:]
    )
    assert abs(alone.curves_[0, 0] - 1 / 3) > abs(slopes[7] - 1 / 3)


def test_labels_that_are_never_or_always_there():
    dist, Y = labelled(50)
    Y[:, 0], Y[:, 1] = 0, 1
    found = ls.LabelwiseCalibration(gate=False).fit(dist, Y)
    mean = found.transform(dist).marginals().mean(axis=0)
    # Shrunk towards the curve of all labels.
    assert_allclose([mean[0], 1 - mean[1]], 1 / 52, rtol=0.5)


def test_certain_probabilities_have_finite_log_odds():
    p = np.tile([[0.0, 1.0], [1.0, 0.0], [0.5, 0.5]], (20, 1))
    Y = np.round(p).astype(int)
    Y[2::6] = 1
    found = ls.LabelwiseCalibration(gate=False).fit(ls.IndependentLabels(p), Y)
    after = found.transform(ls.IndependentLabels(p)).marginals()
    assert ((after > 0) & (after < 1)).all()


def test_other_kinds_are_told_what_to_do():
    mixture = many("mixture", 6)
    message = (
        "`dist` must be IndependentLabels for a calibration of each label, got ChainMixture. "
        "Use `TemperatureScaling`, or `CalibratedClassifierCV` as the base learner of chains."
    )
    with pytest.raises(ls.InputError, match=re.escape(message)):
        ls.LabelwiseCalibration().fit(mixture, mixture.mode())
    dist, Y = labelled()
    found, dense = ls.LabelwiseCalibration(gate=False).fit(dist, Y), many("dense", 2, L=3)
    with pytest.raises(ls.InputError, match="DenseDistribution"):
        found.transform(dense)


def test_no_instance_is_calibrated_to_none():
    dist, Y = labelled()
    found = ls.LabelwiseCalibration(gate=False).fit(dist, Y)
    assert found.transform(dist[:0]).marginals().shape == (0, 3)
