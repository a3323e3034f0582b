"""Beam search: what is found, and what no other labelset can have."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from strategies import as_prefix_chain, linear_chains, n_examples

import labelsure as ls
from labelsure._runtime import limits as _limits
from labelsure.distributions._chains import WeightedChains
from labelsure.distributions._enumeration import search_beams
from labelsure.labelsets.codes import codes_of


def weighted(chains, kind, weights):
    if kind == "any learner":
        chains = [as_prefix_chain(chain) for chain in chains]
    shares = None if weights is None else np.tile(weights, (chains[0].n_samples, 1))
    return WeightedChains(chains, shares)


def greedy_codes(chain):
    y = np.zeros((chain.n_samples, chain.order.size), dtype=np.int8)
    for j, label in enumerate(chain.order):
        y[:, label] = chain.conditional(j, np.arange(len(y)), y[:, chain.order[:j]]) > 0.5
    return codes_of(y)


@pytest.mark.parametrize("kind", ["linear", "any learner"])
@given(
    seed=st.integers(0, 10**6),
    n_labels=st.integers(1, 7),
    n_chains=st.integers(1, 3),
    spread=st.sampled_from([0.0, 0.5, 2.0]),
    width=st.sampled_from([1, 2, 5, 200]),
    is_weighted=st.booleans(),
)
@n_examples(40)
def test_beams_find_likely_labelsets_and_bound_all_others(
    kind, seed, n_labels, n_chains, spread, width, is_weighted
):
    chains = linear_chains(seed, n_labels, n_chains, spread, n_samples=3)
    weights = None if not is_weighted else np.arange(n_chains) * 2.0 / max(n_chains - 1, 1)
    weights = None if n_chains == 1 else weights
    shares = np.ones(n_chains) if weights is None else weights
    P = np.mean([s * c.joint() for s, c in zip(shares, chains, strict=True)], axis=0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_limits, "BEAM_WIDTH", width)
        patch.setattr(_limits, "BEAM_LABELSETS", 2 * width)
        beam = search_beams(weighted(chains, kind, weights), 1)
    for i, row in enumerate(P):
        found = codes_of(beam.labelsets[i])[np.isfinite(beam.logs[i])]
        assert len(set(found.tolist())) == len(found) > 0
        assert_allclose(np.exp(beam.logs[i, : len(found)]), row[found], rtol=1e-10)
        assert (np.diff(beam.logs[i, : len(found)]) <= 0).all()
        others = np.delete(row, found)
        assert (others <= beam.unseen[i] * (1 + 1e-12)).all()
        if width == 200:
            assert len(found) == 2**n_labels
            assert beam.unseen[i] == 0
        known = [greedy_codes(c)[i] for c, s in zip(chains, shares, strict=True) if s > 0]
        if spread > 0:  # on ties a beam may take another one
            assert row[found].max() >= row[known].max() * (1 - 1e-12)


@pytest.mark.jit_only
@pytest.mark.parametrize("n_labels", [17, 70])
def test_linear_chains_search_as_any_learner_does(n_labels):
    chains = linear_chains(5, n_labels, 3, 0.4, n_samples=6)
    one, same = (search_beams(weighted(chains, k, None), 3) for k in ("linear", "any learner"))
    assert_array_equal(one.labelsets, same.labelsets)
    assert_allclose(one.logs, same.logs, rtol=1e-12)
    assert_allclose(one.unseen, same.unseen, rtol=1e-9)


@pytest.mark.jit_only
def test_probabilities_that_are_no_numbers_have_an_order():
    """1,500 labels: 2**-1500 is 0. The beam of independent labels holds the mode."""
    rng = np.random.default_rng(0)
    base = rng.normal(size=(2, 1500))
    chain = ls.distributions.LinearChain(np.arange(1500), base, np.zeros((1500, 1500)))
    beam = search_beams(WeightedChains([chain]), 1)
    assert_array_equal(beam.labelsets[:, 0], base > 0)
    assert np.isfinite(beam.logs).all()
    assert (beam.unseen > 0).all()


@pytest.mark.jit_only
@pytest.mark.parametrize("spread", [0.3, 1.0, 3.0])
def test_the_mode_of_ten_chains_is_evaluated(spread):
    """Of 640 labelsets found only those likely in the chains that found them are evaluated."""
    chains = linear_chains(7, 12, 10, spread, n_samples=60)
    best = ls.distributions.ChainMixture(chains, engine="dense").top(3)
    logs = search_beams(WeightedChains(chains), 3).logs[:, :3]
    assert np.isclose(logs[:, 0], best.logs[:, 0]).mean() >= 0.97
    assert np.isclose(logs, best.logs).all(axis=1).mean() >= 0.9
