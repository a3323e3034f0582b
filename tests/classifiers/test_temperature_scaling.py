"""Temperature scaling: what is found, against loops over all labelsets."""

import re

import numpy as np
import oracles_recalibration as oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from strategies import many

import labelsure as ls

KINDS = ("independent", "dense", "table", "trellis", "mixture", "smoothed")
BY_LABELSETS = ("dense", "table")


def labelled(kind, n_samples=60, L=3, seed=0, temperature=1.0):
    """Distributions, and truths from a flatter or sharper version of them."""
    dist = many(kind, n_samples, L, seed=seed)
    return dist, dist.temper(temperature).sample(1, random_state=seed + 1)[:, 0]


def codes(Y):
    return (Y @ 2 ** np.arange(Y.shape[1])).tolist()


@pytest.mark.parametrize("kind", KINDS)
@given(seed=st.integers(0, 50), temperature=st.sampled_from([0.4, 1.0, 2.5]))
def test_no_other_temperature_is_more_likely(kind, seed, temperature):
    dist, Y = labelled(kind, seed=seed, temperature=temperature)
    found = ls.TemperatureScaling(gate=False).fit(dist, Y)
    assert found.temperature_ == found.found_temperature_

    def likelihood(temperature):
        return dist.temper(temperature).log_prob(Y).mean()

    best = likelihood(found.temperature_)
    assert best == pytest.approx(found.transform(dist).log_prob(Y).mean(), abs=1e-12)
    for factor in (0.5, 0.9, 0.999, 1.001, 1.1, 2.0):
        assert likelihood(factor * found.temperature_) <= best + 1e-10


@pytest.mark.parametrize("kind", BY_LABELSETS)
def test_no_other_temperature_is_more_likely_by_loops(kind):
    dist, Y = labelled(kind, temperature=2.0)
    found = ls.TemperatureScaling(gate=False).fit(dist, Y)
    P = dist.probabilities().tolist()

    def likelihood(temperature):
        joints = [oracles.temper(row, temperature) for row in P]
        return oracles.mean_log_likelihood(joints, codes(Y))

    best = likelihood(found.temperature_)
    for factor in (0.5, 0.9, 0.999, 1.001, 1.1, 2.0):
        assert likelihood(factor * found.temperature_) < best


def test_independent_labels_and_their_dense_copy_have_one_temperature():
    """A product whose factors are tempered is the tempered product."""
    dist, Y = labelled("independent", temperature=2.0)
    dense = ls.DenseDistribution(dist.probabilities())
    found = [ls.TemperatureScaling().fit(d, Y) for d in (dist, dense)]
    assert_allclose(found[0].found_temperature_, found[1].found_temperature_, rtol=1e-5)
    assert_allclose(found[0].gain_, found[1].gain_, atol=1e-6)


@pytest.mark.parametrize("truth", [0.3, 2.0])
@pytest.mark.parametrize("kind", KINDS)
def test_the_temperature_that_made_the_truth_is_found(kind, truth):
    dist, Y = labelled(kind, 3000, temperature=truth)
    found = ls.TemperatureScaling().fit(dist, Y)
    assert found.is_kept_
    assert found.temperature_ == pytest.approx(truth, rel=0.15)


@pytest.mark.parametrize("kind", ["independent", *BY_LABELSETS])
def test_the_mode_stays(kind):
    dist, Y = labelled(kind, temperature=3.0)
    found = ls.TemperatureScaling(gate=False).fit(dist, Y)
    assert found.temperature_ != 1
    assert_array_equal(found.transform(dist).mode(), dist.mode())


def test_where_no_temperature_makes_a_difference_it_is_one():
    flat = ls.IndependentLabels(np.full((20, 3), 0.5))
    Y = np.random.default_rng(0).integers(2, size=(20, 3))
    found = ls.TemperatureScaling(gate=False).fit(flat, Y)
    assert (found.temperature_, found.gain_low_, found.gain_, found.gain_high_) == (1, 0, 0, 0)
    assert not ls.TemperatureScaling().fit(flat, Y).is_kept_


@pytest.mark.parametrize("kind", ["dense", "independent", "table"])
@pytest.mark.parametrize("is_right", [True, False])
def test_a_temperature_at_its_limit_is_said(kind, is_right):
    """Where the most probable labelset is always true, no temperature is too low."""
    dist = many(kind, 30, L=3)
    Y = dist.mode() if is_right else dist.top(8).labelsets[:, -1]
    limit = "0.01" if is_right else "100"
    message = (
        f"The temperature is at its limit, {limit}. Check that the model was not trained on these "
        "instances, or fit to more."
    )
    with pytest.warns(UserWarning, match=re.escape(message)) as caught:
        found = ls.TemperatureScaling().fit(dist, Y)
    assert caught[0].filename == __file__
    assert found.temperature_ == (0.01 if is_right else 100)
    assert f"temperature {limit}, which is its limit: kept." in str(found)


def test_truths_without_a_number():
    """The log-probability of what underflows is still one."""
    P = np.array([[1e-250, 1 - 1e-250]] * 20)
    Y = np.array([[1]] * 19 + [[0]])
    with pytest.warns(UserWarning, match="at its limit, 100"):
        found = ls.TemperatureScaling(gate=False).fit(ls.DenseDistribution(P), Y)
    assert np.isfinite(found.gain_)
