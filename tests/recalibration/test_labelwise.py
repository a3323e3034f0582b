"""Calibration of each label: scikit-learn's, label by label."""

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit, logit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
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


def peer(z, y, method):
    """What scikit-learn says of one label, by its public way."""
    frozen = FrozenEstimator(GivenLogits().fit(None, None))
    model = CalibratedClassifierCV(frozen, method=method, ensemble=False)
    return model.fit(z[:, np.newaxis], y).predict_proba(z[:, np.newaxis])[:, 1]


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_each_label_is_calibrated_as_by_scikit_learn(method):
    dist, Y = labelled()
    found = ls.LabelwiseCalibration(method, gate=False).fit(dist, Y)
    calibrated = found.transform(dist).marginals()
    expected = np.column_stack(
        [peer(z, y, method) for z, y in zip(logit(dist.marginals()).T, Y.T, strict=True)]
    )
    if method == "isotonic":  # which has exact zeros and ones there
        assert expected.min() == 0
        expected = expected.clip(1 / 402, 1 - 1 / 402)
    assert_allclose(calibrated, expected, atol=1e-12)
    assert f"({method})" in str(found)
    assert np.isfinite(found.transform(dist).log_prob(Y)).all()


def test_between_steps_and_beyond_them():
    dist, Y = labelled()
    found = ls.LabelwiseCalibration("isotonic", gate=False).fit(dist, Y)
    where, what = found.curves_[0]
    middle = expit((where[0] + where[1]) / 2)
    p = np.array([[0.0, 0.5, 0.5], [1.0, 0.5, 0.5], [middle, 0.5, 0.5]])
    calibrated = found.transform(ls.IndependentLabels(p)).marginals()[:, 0]
    assert_allclose(calibrated, [what[0], what[-1], (what[0] + what[1]) / 2])


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_labels_that_are_never_or_always_there(method):
    dist, Y = labelled(50)
    Y[:, 0], Y[:, 1] = 0, 1
    found = ls.LabelwiseCalibration(method, gate=False).fit(dist, Y)
    marginals = found.transform(dist).marginals()
    assert_allclose(marginals[:, 0], 1 / 52, rtol=1e-3)
    assert_allclose(marginals[:, 1], 1 - 1 / 52, rtol=1e-3)


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_certain_probabilities_have_finite_log_odds(method):
    p = np.tile([[0.0, 1.0], [1.0, 0.0], [0.5, 0.5]], (20, 1))
    Y = np.round(p).astype(int)
    Y[2::6] = 1
    found = ls.LabelwiseCalibration(method, gate=False).fit(ls.IndependentLabels(p), Y)
    after = found.transform(ls.IndependentLabels(p)).marginals()
    assert ((after > 0) & (after < 1)).all()


def test_other_kinds_are_told_what_to_do():
    mixture = many("mixture", 6)
    message = (
        "`dist` must be IndependentLabels for a calibration of each label, got ChainMixture. "
        "Calibrate the base learner of chains instead, e.g. "
        "EnsembleOfClassifierChains(CalibratedClassifierCV(LogisticRegression())), or use "
        "`TemperatureScaling`."
    )
    with pytest.raises(ls.InputError, match=re.escape(message)):
        ls.LabelwiseCalibration().fit(mixture, mixture.mode())
    dist, Y = labelled()
    found, dense = ls.LabelwiseCalibration(gate=False).fit(dist, Y), many("dense", 2, L=3)
    with pytest.raises(ls.InputError, match=r"got DenseDistribution\. Calibrate the base learner"):
        found.transform(dense)


def test_unknown_methods():
    dist, Y = labelled()
    with pytest.raises(ls.InputError, match=r"Unknown method 'platt'\. Known: sigmoid, isotonic"):
        ls.LabelwiseCalibration("platt").fit(dist, Y)


def test_no_instance_is_calibrated_to_none():
    dist, Y = labelled()
    found = ls.LabelwiseCalibration(gate=False).fit(dist, Y)
    assert found.transform(dist[:0]).marginals().shape == (0, 3)
