"""Decisions beyond what a dense array holds: certified gaps, blocks of rows, exact shortcuts."""

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from strategies import as_table, probability_rows, random_table

import labelsure as ls
from labelsure import _limits, decisions


def searched(monkeypatch):
    """Make tables of any size go the way of those with too many labels."""
    monkeypatch.setattr(_limits, "CHEAP_DENSE_LABELS", 0)


@pytest.mark.parametrize("empty", [0.0, 0.5, 1.0])
def test_the_gap_is_a_certificate(empty, monkeypatch):
    """On small distributions, where the optimum is known from all predictions."""
    searched(monkeypatch)
    found = []

    @given(st.integers(1, 5).flatmap(lambda L: probability_rows(2**L)))
    def check(P):
        dist = as_table([P], oracles.n_labels_of(P))
        decision, gap = ls.decide(dist, "jaccard", empty=empty, return_gap=True)
        value = oracles.expected_accuracy(P, tuple(decision[0].tolist()), "jaccard", empty)
        best = oracles.best_prediction(P, "jaccard", empty)[1]
        assert gap[0] >= 0
        assert value + gap[0] >= best - 1e-12
        assert_allclose(value + gap[0], oracles.jaccard_upper_bound(P, empty), atol=1e-12)
        found.append(value >= best - 1e-12)

    check()
    assert np.mean(found) > 0.9


@pytest.mark.jit_only
@pytest.mark.parametrize(("L", "n_samples"), [(15, 8), (16, 8), (18, 3), (20, 1)])
@pytest.mark.parametrize(("size", "spread"), [(6, 0.3), (60, 0.9)])
def test_the_gap_of_a_large_table(L, n_samples, size, spread):
    dist = random_table(np.random.default_rng(L), n_samples, L, size, spread=spread)
    decision, gap = ls.decide(dist, "jaccard", return_gap=True)
    best = ls.DenseDistribution(dist.probabilities()).optimum("jaccard")
    value, optimum = (ls.expected_accuracy(dist, Y, metric="jaccard") for Y in (decision, best))
    assert (gap >= 0).all()
    assert (gap < 0.3).all()  # a certificate that says nothing would be of no use
    assert (value + gap >= optimum - 1e-12).all()
    assert (value >= optimum - 0.01).all()


def test_the_search_leaves_no_better_neighbour():
    dist = random_table(np.random.default_rng(1), 4, 40, 25)
    decision = ls.decide(dist, "jaccard")
    value = ls.expected_accuracy(dist, decision, metric="jaccard")
    others = [dist.mode(), ls.decide(dist, "f1"), ls.decide(dist, "hamming"), 0 * decision]
    for j in range(40):
        flipped = decision.copy()
        flipped[:, j] ^= 1
        others.append(flipped)
    for other in others:
        assert (value >= ls.expected_accuracy(dist, other, metric="jaccard") - 1e-12).all()


def test_a_certain_table_has_no_gap():
    Y = np.random.default_rng(0).integers(0, 2, (3, 1, 90))
    decision, gap = ls.decide(ls.LabelsetTable(Y, np.ones((3, 1))), "jaccard", return_gap=True)
    assert_array_equal(decision, Y[:, 0])
    assert_allclose(gap, 0, atol=1e-12)


@pytest.mark.parametrize("metric", ["exact", "hamming", "jaccard", "f1"])
def test_blocks_of_rows_change_nothing(metric, monkeypatch):
    dist = random_table(np.random.default_rng(2), 9, 6, 5)
    wide = random_table(np.random.default_rng(2), 9, 17, 5)
    whole = [ls.decide(d, metric, return_gap=True) for d in (dist, wide)]
    monkeypatch.setattr(_limits, "DECISION_BYTES", 1000)
    assert len(list(decisions._blocks(9, 8 * 36))) == 3
    for d, (decision, gap) in zip((dist, wide), whole, strict=True):
        in_blocks = ls.decide(d, metric, return_gap=True)
        assert_array_equal(in_blocks[0], decision)
        assert_allclose(in_blocks[1], gap, atol=1e-14)


def test_metrics_want_different_labelsets():
    P = [[0.3, 0, 0, 0.25, 0, 0.25, 0.2, 0]]
    dist = ls.DenseDistribution(P)
    chosen = {metric: tuple(ls.decide(dist, metric)[0].tolist()) for metric in oracles.METRICS}
    assert chosen == {
        metric: oracles.best_prediction(P[0], metric)[0] for metric in oracles.METRICS
    }
    assert chosen["exact"] == (0, 0, 0)
    assert chosen["jaccard"] == (1, 1, 1)
    assert chosen["hamming"] == (0, 0, 0)


def test_what_two_empty_sets_are_worth_decides():
    dist = ls.IndependentLabels([[0.3, 0.3, 0.3]])
    assert_array_equal(ls.decide(dist, "jaccard", empty=1.0), [[0, 0, 0]])
    assert_array_equal(ls.decide(dist, "jaccard", empty=0.0), [[1, 1, 1]])
    assert_array_equal(ls.decide(dist, "f1", empty=0.0), [[1, 1, 1]])


@pytest.mark.parametrize("L", [1, 2, 5])
def test_a_tie_of_all_labels_goes_to_the_lowest_code(L):
    dist = ls.IndependentLabels(np.full((1, L), 0.5))
    table = as_table(dist.probabilities(), L)
    for metric in oracles.METRICS:
        expected = oracles.best_prediction([2.0**-L] * 2**L, metric, 0.0)[0]
        for kind in (dist, table, ls.DenseDistribution(dist.probabilities())):
            assert_array_equal(ls.decide(kind, metric, empty=0.0)[0], expected)


def test_arrays_in_arrays_out():
    dist = ls.IndependentLabels([[0.9, 0.2], [0.4, 0.7]])
    decision, gap = ls.decide(dist, "jaccard", return_gap=True)
    assert type(decision) is type(gap) is np.ndarray
    assert decision.dtype == np.int8
    assert gap.dtype == np.float64
    expected = ls.expected_accuracy(dist, decision.tolist(), metric="jaccard")
    assert type(expected) is np.ndarray
    assert expected.dtype == np.float64
