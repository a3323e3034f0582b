"""The setting `keep_top`: the same answers to the last bit, all probabilities made once."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from strategies import summary_of

import labelsure as ls
from labelsure.distributions import _chain_mixture
from labelsure.distributions._chains import LinearChain, PrefixChain

KINDS = ["linear", "prefix", "mixed"]


def make_chains(kind, n_samples, n_labels, seed):
    rng = np.random.default_rng(seed)
    chains = []
    for place in range(2):
        base = rng.normal(size=(n_samples, n_labels)).round(1)  # so that some labelsets tie
        chain = LinearChain(rng.permutation(n_labels), base, rng.normal(size=(n_labels,) * 2))
        if kind == "prefix" or (kind == "mixed" and place == 1):
            chain = PrefixChain(chain.order, chain.conditional, n_samples)
        chains.append(chain)
    return chains


@pytest.fixture
def made(monkeypatch):
    """How many joints were made."""
    counts = []
    write = _chain_mixture.write_joints

    def count(chains, shares, P):
        counts.append(len(P))
        write(chains, shares, P)

    monkeypatch.setattr(_chain_mixture, "write_joints", count)
    return counts


@pytest.mark.parametrize("kind", KINDS)
@given(st.integers(0, 7), st.integers(1, 4), st.integers(1, 16), st.integers(0, 2**32))
def test_the_answers_are_those_of_the_same_distributions(kind, n_samples, n_labels, k, seed):
    k = min(k, 2**n_labels)
    dist = ls.distributions.ChainMixture(make_chains(kind, n_samples, n_labels, seed))
    kept = dist.with_engine(keep_top=k)
    for _ in range(2):  # before and after the sweep that keeps them
        for few in range(1, k + 1):
            found, plain = kept.top(few), dist.top(few)
            assert_array_equal(found.labelsets, plain.labelsets)
            assert_array_equal(found.probabilities, plain.probabilities)
            assert_array_equal(found.high, plain.high)
        assert_array_equal(kept.marginals(), dist.marginals())
        summary_of(kept, ["jaccard"])
    more = min(k + 1, 2**n_labels)
    assert_array_equal(kept.top(more).labelsets, dist.top(more).labelsets)


@pytest.mark.parametrize("kind", KINDS)
def test_all_probabilities_are_made_once(kind, made):
    dist = ls.distributions.ChainMixture(make_chains(kind, 100, 5, 0)).with_engine(keep_top=3)
    summary_of(dist, ["jaccard"])
    assert sum(made) == 100
    dist.top(3), dist.top(2), dist.marginals()
    assert sum(made) == 100
    dist.top(4)
    assert sum(made) == 200


def test_nothing_is_kept_of_other_rows_or_engines():
    dist = ls.distributions.ChainMixture(make_chains("linear", 20, 4, 1), list("abcd"))
    kept = dist.with_engine(keep_top=2)
    kept.profile()
    assert_array_equal(kept[5:7].marginals(), dist[5:7].marginals())
    assert_array_equal(kept[5:7].top(1).labelsets, dist[5:7].top(1).labelsets)
    flat = dist.temper(10)
    assert_array_equal(kept.temper(10).marginals(), flat.marginals())
    certified = {"engine": "certified", "budget": 3}
    assert_array_equal(
        kept.with_engine(**certified).marginals(), dist.with_engine(**certified).marginals()
    )


def test_names_and_index_stay():
    import pandas as pd

    dist = ls.distributions.ChainMixture(make_chains("linear", 3, 2, 2), ["a", "b"])
    dist = dist._with_index(pd.Index(["x", "y", "z"]))
    kept = dist.with_engine(keep_top=1)
    assert kept.label_names == ("a", "b")
    assert kept.index.equals(dist.index)
    pd.testing.assert_frame_equal(kept.to_frame(), dist.to_frame())


def test_answers_can_be_changed_without_harm():
    kept = ls.distributions.ChainMixture(make_chains("linear", 3, 2, 3)).with_engine(keep_top=2)
    kept.profile()
    before = kept.top(2)
    for array in (kept.marginals(), before.labelsets, before.probabilities):
        expected = array.copy()
        array[:] = 0
        again = kept.top(2)
        assert any(
            np.array_equal(expected, one)
            for one in (kept.marginals(), again.labelsets, again.probabilities)
        )


@pytest.mark.parametrize("decision", ["mode", "best"])
def test_the_table_of_an_assessment(decision, made):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    Y = (X[:, :3] + 0.5 * rng.normal(size=(300, 3)) > 0).astype(int)
    model = ls.AccuracyAwareClassifier(
        ls.ProbabilisticClassifierChain(), decision=decision, cv=0.5, random_state=0
    ).fit(X, Y)
    plain = model.assess(X)
    made.clear()
    found = model.assess(X, k=3)
    n_made = sum(made)
    table = found.to_frame(3)
    assert sum(made) == n_made
    assert table.equals(plain.to_frame(3))
    assert sum(made) == n_made  # all probabilities of a small batch are kept
    few = X[:9]  # the last bits of a matrix product depend on how many rows it has
    assert model.assess(few, k=100).to_frame(100).equals(model.assess(few).to_frame(100))
    with pytest.raises(ls.InputError, match="`k`"):
        model.assess(X, k="3")
