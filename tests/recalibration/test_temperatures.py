"""Temperatures: what is found, against loops over all labelsets."""

import re

import numpy as np
import oracles_recalibration as oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from strategies import many

import labelsure as ls

JOINT = ("independent", "dense", "table", "trellis", "tempered")
LINKED = ("independent", "trellis", "mixture")


def labelled(kind, n_samples=60, L=3, seed=0, power=1.0):
    """Distributions, and truths from a flatter or sharper version of them."""
    dist = many(kind, n_samples, L, seed=seed)
    truth = dist.temper(power, links=kind == "mixture").sample(1, random_state=seed + 1)[:, 0]
    return dist, truth


def codes(Y):
    return (Y @ 2 ** np.arange(Y.shape[1])).tolist()


@pytest.mark.parametrize("kind", JOINT)
@given(seed=st.integers(0, 50), power=st.sampled_from([0.4, 1.0, 2.5]))
def test_the_joint_power_satisfies_its_equation(kind, seed, power):
    dist, Y = labelled(kind, seed=seed, power=power)
    found = ls.JointTemperature(gate=False).fit(dist, Y)
    P = dist.probabilities().tolist()
    assert abs(oracles.likelihood_gap(P, codes(Y), found.power_)) < 1e-9
    assert found.power_ == found.found_power_


@pytest.mark.parametrize("kind", JOINT)
def test_no_other_joint_power_is_more_likely(kind):
    dist, Y = labelled(kind, power=0.5)
    found = ls.JointTemperature(gate=False).fit(dist, Y)
    P = dist.probabilities().tolist()

    def likelihood(power):
        return oracles.mean_log_likelihood([oracles.temper(row, power) for row in P], codes(Y))

    best = likelihood(found.power_)
    assert best == pytest.approx(found.transform(dist).log_prob(Y).mean(), abs=1e-12)
    for factor in (0.5, 0.9, 0.999, 1.001, 1.1, 2.0):
        assert likelihood(factor * found.power_) < best


@pytest.mark.parametrize("kind", LINKED)
@given(seed=st.integers(0, 50), power=st.sampled_from([0.4, 1.0, 2.5]))
def test_no_other_link_power_is_more_likely(kind, seed, power):
    dist, Y = labelled(kind, seed=seed, power=power)
    found = ls.LinkTemperature(gate=False).fit(dist, Y)

    def likelihood(power):
        return dist.temper(power, links=True).log_prob(Y).mean()

    best = likelihood(found.power_)
    assert best == pytest.approx(found.transform(dist).log_prob(Y).mean(), abs=1e-12)
    for factor in (0.5, 0.9, 0.999, 1.001, 1.1, 2.0):
        assert likelihood(factor * found.power_) <= best + 1e-10


@given(seed=st.integers(0, 50), power=st.sampled_from([0.4, 1.0, 2.5]))
def test_both_are_the_same_for_independent_labels(seed, power):
    dist, Y = labelled("independent", 100, seed=seed, power=power)
    joint, links = (kind().fit(dist, Y) for kind in (ls.JointTemperature, ls.LinkTemperature))
    assert_allclose(joint.found_power_, links.found_power_, rtol=1e-6)
    assert joint.is_kept_ == links.is_kept_
    assert_allclose(joint.gain_, links.gain_, atol=1e-6)


@pytest.mark.parametrize("kind", ["trellis", "tempered", "mixture", "components"])
def test_a_kind_and_its_dense_copy_have_one_power(kind):
    dist, Y = labelled(kind, power=0.5)
    dense = ls.DenseDistribution(dist.probabilities())
    powers = [ls.JointTemperature().fit(d, Y).found_power_ for d in (dist, dense)]
    assert_allclose(powers[0], powers[1], rtol=1e-10)


@pytest.mark.parametrize("truth", [0.5, 3.0])
@pytest.mark.parametrize(
    ("kind", "temperature"), [("trellis", ls.JointTemperature), ("mixture", ls.LinkTemperature)]
)
def test_the_power_that_made_the_truth_is_found(kind, temperature, truth):
    dist, Y = labelled(kind, 3000, power=truth)
    found = temperature().fit(dist, Y)
    assert found.is_kept_
    assert found.power_ == pytest.approx(truth, rel=0.15)


def test_a_joint_temperature_keeps_the_mode():
    dist, Y = labelled("dense", power=0.3)
    found = ls.JointTemperature(gate=False).fit(dist, Y)
    assert found.power_ != 1
    assert_array_equal(found.transform(dist).mode(), dist.mode())


def test_where_no_power_makes_a_difference_it_is_one():
    flat = ls.IndependentLabels(np.full((20, 3), 0.5))
    Y = np.random.default_rng(0).integers(2, size=(20, 3))
    for kind in (ls.JointTemperature, ls.LinkTemperature):
        found = kind(gate=False).fit(flat, Y)
        assert (found.power_, found.gain_low_, found.gain_, found.gain_high_) == (1, 0, 0, 0)
        assert not kind().fit(flat, Y).is_kept_


LIMITS = [(ls.JointTemperature, "dense"), (ls.LinkTemperature, "independent")]


@pytest.mark.parametrize(("temperature", "kind"), LIMITS)
@pytest.mark.parametrize("is_right", [True, False])
def test_a_power_at_its_limit_is_said(temperature, kind, is_right):
    """Where the most probable labelset is always true, no power is too large."""
    dist = many(kind, 30, L=3)
    Y = dist.mode() if is_right else dist.top(8).labelsets[:, -1]
    limit = "100" if is_right else "0.01"
    message = (
        f"The power of the {temperature.__name__} is at its limit, {limit}: one beyond would be "
        "more likely still. Look whether these instances are new to the model, or fit to more."
    )
    with pytest.warns(UserWarning, match=re.escape(message)):
        found = temperature().fit(dist, Y)
    assert found.is_kept_
    assert found.power_ == (100 if is_right else 0.01)
    assert f"power {found.power_:g}, which is its limit: kept." in str(found)


def test_chains_are_told_to_use_links_and_dense_ones_the_joint():
    mixture, dense = many("mixture", 6, L=15), many("dense", 6)
    with pytest.raises(ls.InputError, match=r"a ChainMixture of more than 14 labels does not have"):
        ls.JointTemperature().fit(mixture, mixture.mode())
    with pytest.raises(ls.InputError, match=r"A DenseDistribution has no links.*`JointTem"):
        ls.LinkTemperature().fit(dense, dense.mode())
