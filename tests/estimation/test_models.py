"""The model of accuracy: its objective, its covariance, and accuracies that are hard to fit."""

import numpy as np
import oracles_estimation as oracles
import pytest
from simulated_population import random_dist, score_frame

import labelsure as ls
from labelsure.estimation._accuracy_model import RidgeModel
from labelsure.estimation._estimator import AccuracyEstimator

RNG = np.random.default_rng(0)
FEATURES = RNG.normal(size=(120, 3)) * [1, 10, 0.1] + [0, 5, 1]
VALUES = np.clip(0.5 + 0.2 * FEATURES[:, 0] + 0.3 * RNG.normal(size=120), 0, 1)


@pytest.fixture(scope="module")
def table():
    dist = random_dist(300)
    return score_frame(dist, dist.sample(1, random_state=1)[:, 0])


def design_of(features):
    scores = (features - FEATURES.mean(axis=0)) / FEATURES.std(axis=0)
    return np.column_stack([scores, np.ones(len(features))])


@pytest.mark.parametrize("values", [VALUES, np.round(VALUES)], ids=["shares", "zeros and ones"])
def test_coefficients_minimise_the_penalised_deviance(values):
    model = RidgeModel().fit(FEATURES, values)
    rows = design_of(FEATURES).tolist()
    gradient = oracles.ridge_gradient(rows, values.tolist(), model.coefficients.tolist(), 1.0)
    assert np.abs(gradient).max() < 1e-5


def test_predictions_follow_from_the_coefficients():
    model = RidgeModel().fit(FEATURES, VALUES)
    expected = 1 / (1 + np.exp(-design_of(FEATURES) @ model.coefficients))
    clipped = np.clip(expected, VALUES.min(), VALUES.max())
    np.testing.assert_allclose(model.predict(FEATURES), clipped, rtol=1e-9)


def test_slopes_are_derivatives_of_the_sum_of_estimates():
    model = RidgeModel().fit(FEATURES, VALUES)
    slopes, step = model.sum_slopes(FEATURES), 1e-6
    for j in range(4):
        sums = []
        for sign in (1, -1):
            coefficients = model.coefficients + sign * step * (np.arange(4) == j)
            sums.append((1 / (1 + np.exp(-design_of(FEATURES) @ coefficients))).sum())
        assert slopes[j] == pytest.approx((sums[0] - sums[1]) / (2 * step), rel=1e-5)


def test_the_variance_is_that_of_fits_to_new_samples():
    """The sandwich covariance, against the scatter of a mean over refits."""
    rng = np.random.default_rng(1)
    truth = np.array([0.8, -0.5, 0.3])

    def draw():
        X = rng.normal(size=(200, 3))
        p = 1 / (1 + np.exp(-X @ truth))
        return X, np.clip(p + 0.15 * rng.normal(size=200), 0, 1)

    batch = rng.normal(0.3, 1, size=(500, 3))
    means, claimed = [], []
    for _ in range(300):
        model = RidgeModel().fit(*draw())
        means.append(model.predict(batch).mean())
        claimed.append(model.mean_variance(model.sum_slopes(batch) / 500))
    assert 0.8 < np.mean(claimed) / np.var(means) < 1.25


def test_a_constant_feature_gets_no_coefficient(table):
    constant = table.assign(entropy=0.3)
    estimator = AccuracyEstimator("exact", ("SE", "HP")).fit(constant)
    assert estimator.model_.coefficients[0] == 0


@pytest.mark.parametrize("value", [0, 1])
def test_accuracies_that_are_all_alike(table, value):
    alike = table.assign(tp=2 * value, fp=2 * (1 - value), fn=0, tn=2)
    estimator = AccuracyEstimator("exact", "mix").fit(alike)
    np.testing.assert_allclose(estimator.predict(table), value, atol=1e-6)
    batch = estimator.estimate(alike)
    assert batch.high - batch.low > 0.005  # 300 of 300 do not prove certainty


@pytest.mark.parametrize("n_samples", [2, 3, 5, 12])
def test_few_instances_and_perfect_separation(table, n_samples):
    few = table[:n_samples].assign(fn=0, tn=2)
    right = few["top"] >= few["top"].median()
    few = few.assign(tp=np.where(right, 2, 0), fp=np.where(right, 0, 2))
    for metric in ("exact", "jaccard"):
        estimator = AccuracyEstimator(metric, "mix").fit(few)
        estimated = estimator.predict(few)
        assert ((estimated >= 0) & (estimated <= 1)).all()
        batch = estimator.estimate(few, shift="ignore")
        assert 0 <= batch.low <= batch.mean <= batch.high <= 1


def test_estimates_do_not_leave_the_range_of_the_accuracies_fitted_to():
    """Few instances of high accuracy, then a batch of which the classifier knows nothing."""
    rng = np.random.default_rng(0)
    easy = ls.IndependentLabels(rng.beta(0.15, 1.5, size=(80, 40)))
    Y = easy.sample(1, random_state=1)[:, 0]
    values = ls.accuracy(Y, easy.mode(), "hamming")
    hard = ls.IndependentLabels(rng.uniform(0.2, 0.8, size=(200, 40)))
    for settings in ({}, {"features": "mix"}, {"features": "SE"}):
        estimates = AccuracyEstimator("hamming", **settings).fit(easy, Y).predict(hard)
        assert estimates.min() >= values.min() > 0.8
        assert estimates.max() <= values.max()
