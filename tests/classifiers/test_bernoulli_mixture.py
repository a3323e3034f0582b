"""The conditional Bernoulli mixture: EM against loops, early stopping, what it finds."""

import numpy as np
import oracles_joints
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, logsumexp

import labelsure as ls
from labelsure.classifiers import _bernoulli_mixture as mixtures


def two_cases(n_samples, seed=0):
    """Which of two cases x is in decides which three of six labels come; nothing else does."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, 2))
    case = rng.random(n_samples) < expit(X[:, 0])
    q = np.where(case[:, np.newaxis], [0.8, 0.8, 0.8, 0.1, 0.1, 0.1], [0.1] * 3 + [0.8] * 3)
    return X, (rng.random(q.shape) < q).astype(np.int8)


def random_parameters(d, K, L, seed=0):
    rng = np.random.default_rng(seed)
    return mixtures.Parameters(rng.normal(size=(d + 1, K)), rng.normal(size=(K, d + 1, L)))


def penalised(parameters, X, Y, start, penalty):
    likely = logsumexp(parameters.log_joints(X, Y), axis=1).sum()
    off = (parameters.gate**2).sum() + ((parameters.labels - start) ** 2).sum()
    return likely - penalty * off / 2


def test_probabilities_are_those_of_loops():
    X, Y = two_cases(4)
    parameters = random_parameters(2, 3, 6)
    found = parameters.log_joints(X, Y)
    for row in range(4):
        expected = oracles_joints.bernoulli_components(
            X[row].tolist(), Y[row].tolist(), parameters.gate.tolist(), parameters.labels.tolist()
        )
        assert_allclose(np.exp(found[row]), expected, rtol=1e-12)


def test_each_round_makes_the_truth_more_likely():
    X, Y = two_cases(80)
    start = np.zeros((3, 6))
    parameters, values = random_parameters(2, 3, 6), []
    for _ in range(12):
        values.append(penalised(parameters, X, Y, start, 0.5))
        logs = parameters.log_joints(X, Y)
        shares = np.exp(logs - logsumexp(logs, axis=1, keepdims=True))
        parameters = parameters.improve(X, Y, shares, start, 0.5)
    assert (np.diff(values) > -1e-8).all()
    assert values[-1] > values[0] + 10


def test_the_classifier_is_the_mean_of_its_restarts():
    X, Y = two_cases(100)
    model = ls.classifiers.ConditionalBernoulliMixture(
        2, n_restarts=2, max_iter=5, random_state=0
    ).fit(X, Y)
    total = np.zeros(100)
    for gate, labels in zip(model.gates_, model.coefficients_, strict=True):
        parameters = mixtures.Parameters(gate, labels)
        total += np.exp(parameters.log_joints(X / model.scale_, Y)).sum(axis=1) / 2
    dist = model.predict_distribution(X)
    assert isinstance(dist, ls.distributions.IndependentMixture)
    assert dist.n_components == 4
    assert_allclose(np.exp(dist.log_prob(Y)), total, rtol=1e-9)


def test_cases_are_found():
    X, Y = two_cases(600)
    X_new, Y_new = two_cases(400, seed=1)
    model = ls.classifiers.ConditionalBernoulliMixture(2, random_state=0).fit(X, Y)
    p, high = expit(X_new[:, 0]), np.array([0.8] * 3 + [0.1] * 3)
    by_case = [np.where(Y_new == 1, q, 1 - q).prod(axis=1) for q in (high, high[::-1])]
    truth = np.log(p * by_case[0] + (1 - p) * by_case[1]).mean()
    found = model.predict_distribution(X_new).log_prob(Y_new).mean()
    alone = ls.BinaryRelevance().fit(X, Y).predict_distribution(X_new).log_prob(Y_new).mean()
    assert abs(found - truth) < 0.1
    assert found > alone + 0.5


def test_a_restart_stops_where_instances_held_out_say_so():
    _, Y = two_cases(60)
    noise = np.random.default_rng(2).normal(size=(60, 40))
    model = ls.classifiers.ConditionalBernoulliMixture(4, C=100.0, random_state=0).fit(noise, Y)
    assert (model.n_iter_ < 50).all()
    fit = mixtures._fit_restart(noise / model.scale_, Y, np.ones(60), 4, 0.01, 50, seed=3)
    short = mixtures._fit_restart(
        noise / model.scale_, Y, np.ones(60), 4, 0.01, fit.n_rounds, seed=3
    )
    assert_array_equal(fit.parameters.gate, short.parameters.gate)
    rng = np.random.default_rng(3)
    held_out, train = mixtures._split(60, rng)
    assert sorted([*held_out, *train]) == list(range(60))
    logs = fit.parameters.log_joints(noise[held_out] / model.scale_, Y[held_out])
    assert fit.held_out == pytest.approx(logsumexp(logs, axis=1).mean())


def test_sparse_features_and_seeds():
    X, Y = two_cases(60)
    settings = {"n_restarts": 2, "max_iter": 4, "random_state": 0}
    dense = ls.classifiers.ConditionalBernoulliMixture(2, **settings).fit(X, Y)
    again = ls.classifiers.ConditionalBernoulliMixture(2, **settings).fit(X, Y)
    sparse = ls.classifiers.ConditionalBernoulliMixture(2, **settings).fit(sp.csr_matrix(X), Y)
    assert_array_equal(dense.gates_, again.gates_)
    assert_allclose(sparse.predict_proba(X), dense.predict_proba(X), atol=1e-4)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_weights_are_repeated_rows(form):
    """Of so few instances none are held out, so that nothing but the weights differs."""
    X, Y = two_cases(8)
    weights = np.array([1, 3, 0, 2, 1, 1, 4, 2])
    repeated = np.repeat(np.arange(8), weights)
    settings = {"n_restarts": 2, "max_iter": 4, "random_state": 0}
    weighted = ls.classifiers.ConditionalBernoulliMixture(2, **settings).fit(
        form(X), Y, sample_weight=weights
    )
    model = ls.classifiers.ConditionalBernoulliMixture(2, **settings).fit(
        form(X[repeated]), Y[repeated]
    )
    assert_allclose(weighted.scale_, model.scale_)
    assert_allclose(weighted.held_out_, model.held_out_, rtol=1e-6)
    assert_allclose(weighted.predict_proba(X), model.predict_proba(X), atol=1e-6)
    alike = ls.classifiers.ConditionalBernoulliMixture(2, **settings).fit(
        form(X[repeated]), Y[repeated], np.ones(14)
    )
    assert_array_equal(alike.gates_, model.gates_)


def test_instances_of_weight_0_are_not_there():
    X, Y = two_cases(60)
    is_there = np.arange(60) % 3 > 0
    settings = {"n_restarts": 1, "max_iter": 3, "random_state": 0}
    weighted = ls.classifiers.ConditionalBernoulliMixture(2, **settings).fit(X, Y, is_there * 1.0)
    model = ls.classifiers.ConditionalBernoulliMixture(2, **settings).fit(X[is_there], Y[is_there])
    assert_array_equal(weighted.gates_, model.gates_)
    rng = np.random.default_rng(0)
    heavy = ls.classifiers.ConditionalBernoulliMixture(2, **settings).fit(
        X, Y, rng.uniform(0.1, 5, 60)
    )
    assert (
        np.abs(
            heavy.gates_
            - ls.classifiers.ConditionalBernoulliMixture(2, **settings).fit(X, Y).gates_
        ).max()
        > 0.01
    )
    with pytest.raises(ls.InputError, match="sample_weight"):
        ls.classifiers.ConditionalBernoulliMixture(2).fit(X, Y, [1.0])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_components": 0}, "`n_components` must be a whole number from 1 to 1000, got 0"),
        ({"n_restarts": 1.5}, "`n_restarts` must be a whole number"),
        ({"max_iter": "many"}, "`max_iter` must be a whole number"),
        ({"C": -1}, "`C`.*got -1"),
    ],
)
def test_settings_that_are_wrong(settings, message):
    with pytest.raises(ls.InputError, match=message):
        ls.classifiers.ConditionalBernoulliMixture(**settings).fit(*two_cases(20))
