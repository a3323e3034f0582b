"""Distributions to a power, against loops over all labelsets."""

import re

import numpy as np
import oracles_chains
import oracles_recalibration as oracles
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from strategies import batches, many, n_labels, predictions

import labelsure as ls
from labelsure import _limits

JOINT = (
    *("independent", "independent32", "dense", "dense32", "table", "trellis", "tempered"),
    *("mixture", "components", "smoothed"),
)
LINKED = ("independent", "trellis", "mixture")
POWERS = st.sampled_from([0.3, 0.5, 0.9, 1.5, 3.0])


def tempered_chain(order, base, weights, power):
    P = oracles_chains.linear_chain_joint(order, base, weights)
    return oracles.temper_links(P, order, power)


@pytest.mark.parametrize("kind", JOINT)
@given(st.data(), POWERS)
def test_joint_probabilities_to_a_power(kind, data, power):
    batch = data.draw(batches(kind, n_labels(1, 4)))
    tempered = batch.dist.temper(power)
    expected = np.reshape(
        [oracles.temper(P, power) for P in batch.P], (len(batch), 2**batch.n_labels)
    )
    slack = 1e-6 if kind == "dense32" else 1e-12
    assert_allclose(tempered.probabilities(), expected, atol=slack)
    Y = data.draw(predictions(batch))
    with np.errstate(divide="ignore"):
        logs = np.log(expected[np.arange(len(batch)), Y @ 2 ** np.arange(batch.n_labels)])
    assert_allclose(np.exp(tempered.log_prob(Y)), np.exp(logs), atol=slack)


@pytest.mark.parametrize("kind", JOINT)
@given(st.data(), POWERS)
def test_a_joint_temperature_keeps_the_order_of_labelsets(kind, data, power):
    batch = data.draw(batches(kind, n_labels(1, 4)))
    before, after = (dist.top(2**batch.n_labels) for dist in (batch.dist, batch.dist.temper(power)))
    certain = before.probabilities[:, :1] > 1e-200  # rounding ties what is far below
    assert_array_equal(before.labelsets[:, 0][certain[:, 0]], after.labelsets[:, 0][certain[:, 0]])
    expected = before.probabilities**power
    expected /= expected.sum(axis=1, keepdims=True)
    assert_allclose(after.probabilities, expected, atol=1e-12)


@pytest.mark.parametrize("kind", JOINT)
def test_powers_multiply(kind):
    dist = many(kind, 6, L=4)
    twice, once = dist.temper(0.6).temper(0.5), dist.temper(0.3)
    assert_allclose(twice.probabilities(), once.probabilities(), rtol=1e-6)
    assert_allclose(
        dist.temper(0.6).temper(1 / 0.6).probabilities(), dist.probabilities(), rtol=1e-5
    )


@pytest.mark.parametrize("links", [False, True])
def test_power_one_changes_nothing(links):
    for kind in LINKED if links else JOINT:
        dist = many(kind, 3)
        assert dist.temper(1, links=links) is dist


@pytest.mark.parametrize("kind", ["trellis", "tempered"])
def test_a_trellis_agrees_with_its_dense_copy(kind):
    """Also on the way of other questions than probabilities, and with more labels than parents."""
    dist = many(kind, 5, L=9, seed=4)
    dense = ls.DenseDistribution(dist.probabilities()).temper(0.6)
    tempered = dist.temper(0.6)
    Y = tempered.sample(1, random_state=0)[:, 0]
    assert_allclose(tempered.marginals(), dense.marginals(), atol=1e-12)
    assert_allclose(tempered.log_prob(Y), dense.log_prob(Y), atol=1e-12)
    for metric in ("jaccard", "f1"):
        found, expected = (d.expected(metric, Y).value for d in (tempered, dense))
        assert_allclose(found, expected, atol=1e-12)
    for name in ("log_top", "log_runner_up", "entropy", "log_collision"):
        found, expected = (getattr(d.profile(), name) for d in (tempered, dense))
        assert_allclose(found, expected, atol=1e-12)


@given(st.data(), POWERS)
def test_links_of_independent_labels_are_their_joint(data, power):
    dist = data.draw(batches("independent")).dist
    by_links, joint = (dist.temper(power, links=links) for links in (True, False))
    assert_array_equal(by_links.marginals(), joint.marginals())


@given(st.data(), POWERS)
def test_links_of_a_trellis(data, power):
    dist = data.draw(batches("trellis", n_labels(1, 4))).dist
    expected = [oracles.temper_links(P, dist._order.tolist(), power) for P in dist.probabilities()]
    found = dist.temper(power, links=True).probabilities()
    assert_allclose(found, np.reshape(expected, found.shape), atol=1e-12)


@pytest.mark.parametrize("n_prefix", [0, 1, 2])
@pytest.mark.parametrize("power", [0.4, 2.5])
def test_links_of_chains(n_prefix, power):
    rng = np.random.default_rng(3)
    parts = [
        (rng.permutation(4).tolist(), rng.normal(size=(5, 4)), np.tril(rng.normal(size=(4, 4)), -1))
        for _ in range(2)
    ]
    chains = [ls.LinearChain(*part) for part in parts]
    for m in range(n_prefix):
        chains[m] = ls.PrefixChain(chains[m].order, chains[m].conditional, 5)
    tempered = ls.ChainMixture(chains, engine="dense").temper(power, links=True)
    for row in range(5):
        joints = [tempered_chain(o, base[row], weights, power) for o, base, weights in parts]
        expected = oracles_chains.mixture_joint(joints)
        assert_allclose(tempered.probabilities()[row], expected, rtol=1e-10)
    assert tempered._engine.name == "dense"
    again = tempered.temper(1 / power, links=True)
    assert_allclose(again.probabilities(), ls.ChainMixture(chains).probabilities(), rtol=1e-10)


@pytest.mark.parametrize("kind", LINKED)
@given(st.data())
def test_log_odds_of_links_give_the_probability(kind, data):
    batch = data.draw(batches(kind, least=1))
    Y = data.draw(predictions(batch))
    logits = batch.dist.link_logits(Y)
    assert logits.shape[::2] == (len(batch), batch.n_labels)
    by_chain = np.exp(-np.logaddexp(0, -logits).sum(axis=2))
    weights = batch.dist.member_weights()
    mixed = by_chain[:, 0] if weights is None else (weights * by_chain).sum(axis=1)
    assert_allclose(mixed, np.exp(batch.dist.log_prob(Y)), atol=1e-13)


def test_many_labels_and_large_powers():
    """No sum of powers underflows: the largest stays the largest, and finite."""
    dist = many("trellis", 3, L=60, seed=1)
    for power in (0.01, 30.0, 500.0):
        tempered = dist.temper(power)
        profile = tempered.profile()
        mode = dist.mode()
        assert_array_equal(tempered.mode(), mode)
        assert_allclose(tempered.log_prob(mode), profile.log_top, atol=1e-9)
        assert (profile.log_top <= 0).all()
        gap = dist.profile().log_top - dist.profile().log_runner_up
        assert_allclose(profile.log_top - profile.log_runner_up, power * gap, rtol=1e-6)
    rows = np.array([[1e-200, 1.0], [0.25, 0.75]])
    assert_allclose(ls.DenseDistribution(rows).temper(0.1).probabilities()[0, 0], 1e-20)
    small = ls.LabelsetTable([[[0], [1]]], [[1e-200, 1.0]])
    assert small.temper(3).probabilities().tolist() == [[0.0, 1.0]]
    assert small.temper(3).profile().entropy.tolist() == [0.0]


def test_rows_in_blocks_get_the_same_answers(monkeypatch):
    tempered = many("tempered", 7, L=6)
    Y = tempered.mode()
    ask = (
        lambda: tempered.marginals(),
        lambda: tempered.log_prob(1 - Y),
        lambda: tempered.profile().entropy,
        lambda: tempered.expected("jaccard", Y).value,
        lambda: tempered.size_marginals(),
        lambda: tempered.top(3).probabilities,
        lambda: tempered.sample(2, 0),
    )
    whole = [question() for question in ask]
    monkeypatch.setattr(_limits, "SEEN_LABELSETS_BYTES", 8 * 6 * 2**3 * 2)
    assert len(list(tempered._blocks())) == 4
    for question, answer in zip(ask, whole, strict=True):
        assert_array_equal(question(), answer)


@pytest.mark.parametrize(("kind", "links"), [*((kind, False) for kind in JOINT), ("mixture", True)])
def test_names_stay(kind, links):
    names = list("abcde")
    dist = many(kind, 3, label_names=names).with_index(pd.Index(["x", "y", "z"]))
    tempered = dist.temper(0.5, links=links)
    assert tempered.label_names == tuple(names)
    assert list(tempered.index) == ["x", "y", "z"]
    assert len(tempered) == 3


def test_draws_lose_the_estimator_of_their_entropy():
    votes = [[[1, 0], [1, 0], [0, 0], [1, 0]]]
    table = ls.LabelsetTable.from_samples(votes, entropy="miller_madow")
    assert table.profile().method[0] == "miller_madow"
    tempered = table.temper(2)
    assert_allclose(tempered.top(2).probabilities, [[0.9, 0.1]])
    assert tempered.profile().method[0] == "exact"


def test_what_cannot_be_tempered():
    for kind, name in (("mixture", "ChainMixture"), ("components", "IndependentMixture")):
        message = (
            "A joint temperature needs the sum over all labelsets of P to a power, which a "
            f"{name} of more than 14 labels does not have. Use `LinkTemperature`, or `temper` "
            "with links=True."
        )
        assert isinstance(many(kind, 2, L=14).temper(0.5), ls.DenseDistribution)
        with pytest.raises(ls.InputError, match=re.escape(message)):
            many(kind, 2, L=15).temper(0.5)
    for kind, name in (("dense", "Dense"), ("table", "LabelsetTable"), ("tempered", "Tempered")):
        dist = many(kind, 2)
        message = (
            rf"A {name}\w* has no links, probabilities of a label given those before it. "
            "Use `JointTemperature`, or `temper` with links=False"
        )
        with pytest.raises(ls.InputError, match=message):
            dist.temper(0.5, links=True)
        with pytest.raises(ls.InputError, match=message):
            dist.link_logits(dist.mode())


@pytest.mark.parametrize("power", [0, -1, np.inf, np.nan, "2", None, True])
def test_powers_that_are_none(power):
    message = f"`power` must be a finite number above 0, got {power!r}. 1 changes nothing."
    with pytest.raises(ls.InputError, match=re.escape(message)):
        many("dense", 2).temper(power)
