"""Distributions at other temperatures, against loops over all labelsets."""

import numpy as np
import oracles
import oracles_chains
import oracles_joints
import oracles_recalibration
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from strategies import KINDS, batches, many, n_labels, predictions

import labelsure as ls

BY_LABELSETS = ("dense", "dense32", "table")
TEMPERATURES = st.sampled_from([0.3, 0.7, 1.1, 2.0, 3.5])


def tempered_chain(order, base, weights, temperature):
    P = oracles_chains.linear_chain_joint(order, base, weights)
    return oracles_recalibration.temper_links(P, order, temperature)


def tempered_independent(marginals, temperature):
    return oracles.joint_of_independent(
        oracles_recalibration.temper_marginals(marginals, temperature)
    )


@pytest.mark.parametrize("kind", BY_LABELSETS)
@given(st.data(), TEMPERATURES)
def test_log_probabilities_of_labelsets_are_divided(kind, data, temperature):
    batch = data.draw(batches(kind, n_labels(1, 4)))
    tempered = batch.dist.temper(temperature)
    expected = np.reshape(
        [oracles_recalibration.temper(P, temperature) for P in batch.P],
        (len(batch), 2**batch.n_labels),
    )
    slack = 1e-6 if kind == "dense32" else 1e-12
    assert_allclose(tempered.probabilities(), expected, atol=slack)


@pytest.mark.parametrize("kind", BY_LABELSETS)
@given(st.data(), TEMPERATURES)
def test_labelsets_keep_their_order(kind, data, temperature):
    batch = data.draw(batches(kind, n_labels(1, 4)))
    tempered = batch.dist.temper(temperature)
    before, after = (dist.top(2**batch.n_labels) for dist in (batch.dist, tempered))
    certain = before.probabilities[:, 0] > 1e-200  # rounding ties what is far below
    assert_array_equal(before.labelsets[certain, 0], after.labelsets[certain, 0])


@pytest.mark.parametrize("kind", ["independent", "independent32"])
@given(st.data(), TEMPERATURES)
def test_logits_of_marginals_are_divided(kind, data, temperature):
    dist = data.draw(batches(kind, n_labels(1, 4))).dist
    expected = [
        tempered_independent(p, temperature) for p in dist.marginals().astype(float).tolist()
    ]
    found = dist.temper(temperature).probabilities()
    assert_allclose(found, np.reshape(expected, found.shape), atol=1e-12)


@given(st.data(), TEMPERATURES)
def test_links_of_a_trellis_are_divided(data, temperature):
    dist = data.draw(batches("trellis", n_labels(1, 4))).dist
    order = dist._order.tolist()
    expected = [
        oracles_recalibration.temper_links(P, order, temperature) for P in dist.probabilities()
    ]
    found = dist.temper(temperature).probabilities()
    assert_allclose(found, np.reshape(expected, found.shape), atol=1e-12)


@pytest.mark.parametrize("n_prefix", [0, 1, 2])
@pytest.mark.parametrize("temperature", [0.4, 2.5])
def test_links_of_chains_are_divided(n_prefix, temperature):
    rng = np.random.default_rng(3)
    parts = [
        (rng.permutation(4).tolist(), rng.normal(size=(5, 4)), np.tril(rng.normal(size=(4, 4)), -1))
        for _ in range(2)
    ]
    chains = [ls.distributions.LinearChain(*part) for part in parts]
    for m in range(n_prefix):
        chains[m] = ls.distributions.PrefixChain(chains[m].order, chains[m].conditional, 5)
    tempered = ls.distributions.ChainMixture(chains, engine="dense").temper(temperature)
    for row in range(5):
        joints = [tempered_chain(o, base[row], weights, temperature) for o, base, weights in parts]
        expected = oracles_chains.mixture_joint(joints)
        assert_allclose(tempered.probabilities()[row], expected, rtol=1e-10)
    assert tempered._engine.name == "dense"


@pytest.mark.parametrize("temperature", [0.03, 0.6, 3.0])
def test_a_smoothed_table_tempers_table_and_rest(temperature):
    rng = np.random.default_rng(4)
    P = np.where(rng.random((3, 8)) < 0.4, rng.random((3, 8)), 0)
    P[:, 0] += 0.1
    P /= P.sum(axis=1, keepdims=True)
    labelsets = np.tile(oracles.all_labelsets(3), (3, 1, 1))
    p, shares = rng.random((3, 3)), np.array([0.3, 1.0, 0.9])
    dist = ls.distributions.SmoothedTable(
        ls.LabelsetTable(labelsets, P), ls.IndependentLabels(p), shares
    )
    tempered = dist.temper(temperature)
    for row in range(3):
        expected = oracles_joints.joint_of_smoothed(
            oracles_recalibration.temper(P[row], temperature),
            oracles_recalibration.temper_marginals(p[row].tolist(), temperature),
            shares[row],
        )
        assert_allclose(tempered.probabilities()[row], expected, rtol=1e-11, atol=1e-14)


@pytest.mark.parametrize("kind", KINDS)
@given(st.data(), TEMPERATURES)
def test_log_probabilities_by_temperature(kind, data, temperature):
    batch = data.draw(batches(kind))
    Y = data.draw(predictions(batch))
    by_temperature = batch.dist._tempered_log_prob(Y)
    for t in (1, temperature):
        expected = np.exp(batch.dist.temper(t).log_prob(Y))
        assert_allclose(np.exp(by_temperature(t)), expected, atol=1e-6 if "32" in kind else 1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_temperatures_multiply(kind):
    dist = many(kind, 6, L=4)
    twice, once = dist.temper(0.6).temper(0.5), dist.temper(0.3)
    assert_allclose(twice.probabilities(), once.probabilities(), rtol=1e-6)
    assert_allclose(
        dist.temper(0.6).temper(1 / 0.6).probabilities(), dist.probabilities(), rtol=1e-5
    )


@pytest.mark.parametrize("kind", KINDS)
def test_above_one_is_flatter_and_one_changes_nothing(kind):
    dist = many(kind, 30)
    assert dist.temper(1) is dist
    assert_array_equal(dist.temper(3).profile().entropy > dist.profile().entropy, True)
    assert_array_equal(dist.temper(0.4).profile().entropy < dist.profile().entropy, True)


@pytest.mark.parametrize("kind", KINDS)
def test_no_temperature_underflows(kind):
    """Log-probabilities stay finite where probabilities are too small for a number."""
    dist = many(kind, 3, L=8)
    Y = dist.top(2).labelsets[:, 1]
    for temperature in (0.01, 100.0):
        assert np.isfinite(dist._tempered_log_prob(Y)(temperature)).all()
        assert_allclose(dist.temper(temperature).probabilities().sum(axis=1), 1, atol=1e-6)


def test_small_shares():
    rows = np.array([[1e-200, 1.0], [0.25, 0.75]])
    assert_allclose(ls.DenseDistribution(rows).temper(10).probabilities()[0, 0], 1e-20)
    found = ls.DenseDistribution(rows)._tempered_log_prob(np.zeros((2, 1), np.int8))(0.1)
    assert_allclose(found, [2000 * np.log(0.1), -10 * np.log(3)], rtol=1e-5)
    small = ls.LabelsetTable([[[0], [1]]], [[1e-200, 1.0]])
    assert small.temper(1 / 3).probabilities().tolist() == [[0.0, 1.0]]
    assert small.temper(1 / 3).profile().entropy.tolist() == [0.0]
    assert_allclose(small._tempered_log_prob(np.zeros((1, 1), np.int8))(1 / 3), 600 * np.log(0.1))


@pytest.mark.parametrize("kind", KINDS)
def test_names_stay(kind):
    names = list("abcde")
    dist = many(kind, 3, label_names=names)._with_index(pd.Index(["x", "y", "z"]))
    tempered = dist.temper(2)
    assert tempered.label_names == tuple(names)
    assert list(tempered.index) == ["x", "y", "z"]
    assert len(tempered) == 3


def test_draws_lose_the_estimator_of_their_entropy():
    votes = [[[1, 0], [1, 0], [0, 0], [1, 0]]]
    table = ls.LabelsetTable.from_samples(votes, entropy="miller_madow")
    assert table.profile().method[0] == "miller_madow"
    tempered = table.temper(0.5)
    assert_allclose(tempered.top(2).probabilities, [[0.9, 0.1]])
    assert tempered.profile().method[0] == "exact"


@pytest.mark.parametrize("temperature", [0, -1, np.inf, np.nan, "2", None, True])
def test_temperatures_that_are_none(temperature):
    with pytest.raises(ls.InputError, match="`temperature`"):
        many("dense", 2).temper(temperature)
