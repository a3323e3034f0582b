"""Mixtures of independent labels: closed forms at many labels, and what they refuse.

What every kind answers is compared with loops in `test_all_kinds.py`.
"""

import numpy as np
import oracles_joints
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from strategies import summary_of

import labelsure as ls
from labelsure.labelsets.rows import codes_of


def random_mixture(n_labels, n_components=3, n_samples=4, seed=0, **settings):
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.02, 0.98, (n_components, n_samples, n_labels))
    weights = rng.dirichlet(np.ones(n_components), n_samples)
    parts = [ls.IndependentLabels(q) for q in p]
    return ls.distributions.IndependentMixture(parts, weights=weights, **settings), p, weights


def test_the_collision_is_exact_whatever_the_engine():
    for n_labels in (8, 60):
        dist, p, weights = random_mixture(n_labels, engine="certified", budget=5)
        profile = dist.profile()
        expected = [
            oracles_joints.collision_of_components(p[:, row].tolist(), weights[row].tolist())
            for row in range(4)
        ]
        assert_allclose(profile.collision, expected, rtol=1e-11)
        assert_array_equal(profile.low.log_collision, profile.high.log_collision)
        assert_array_equal(profile.collision_error, 0)
        assert (profile.low.entropy < profile.high.entropy).all()
        if n_labels == 8:
            dense = ls.DenseDistribution(dist.probabilities())
            assert_allclose(profile.collision, dense.profile().collision, rtol=1e-11)


def test_probabilities_too_small_for_a_number_have_a_collision():
    part = ls.IndependentLabels(np.full((1, 5000), 0.5))
    dist = ls.distributions.IndependentMixture(
        [part, part], weights=[0.3, 0.7], engine="certified", budget=1
    )
    assert_allclose(dist.profile().log_collision, -5000 * np.log(2))


def test_many_labels_are_exact_where_it_is_linear():
    """Two components, of which one has no weight, are the other alone, at 300 labels."""
    rng = np.random.default_rng(1)
    alone, other = (ls.IndependentLabels(rng.uniform(0, 0.3, (2, 300))) for _ in range(2))
    dist = ls.distributions.IndependentMixture([alone, other], weights=[1.0, 0.0])
    guess = (rng.random((2, 300)) < 0.1).astype(int)
    for metric in ("exact", "hamming", "jaccard", "f1"):
        expected = ls.expected_accuracy(alone, guess, metric=metric).value
        found = ls.expected_accuracy(dist, guess, metric=metric)
        value, low, high = found.value, found.low, found.high
        assert_allclose(value, expected, rtol=1e-12)
        assert_array_equal(low, high)
    assert_allclose(dist._size_marginals(), alone._size_marginals(), atol=1e-15)
    assert_array_equal(ls.decide(dist, "f1").labelsets, ls.decide(alone, "f1").labelsets)
    assert_array_equal(ls.decide(dist, "hamming").labelsets, ls.decide(alone, "hamming").labelsets)


def test_the_gap_of_an_exact_match_says_what_was_not_found():
    dist, *_ = random_mixture(40, engine="certified", budget=3)
    answer = ls.decide(dist, "exact")
    decided, gap = answer.labelsets, answer.gap
    best = dist.top(1)
    assert_array_equal(decided, best.labelsets[:, 0])
    assert_allclose(gap, (best.high - best.probabilities)[:, 0])
    assert (gap > 0).any()
    easy, *_ = random_mixture(6)
    assert_array_equal(ls.decide(easy, "exact").gap, 0)


def test_jaccard_beyond_dense_labels():
    dist, *_ = random_mixture(16, n_samples=2)
    answer = ls.decide(dist, "jaccard")
    decided, gap = answer.labelsets, answer.gap
    dense = ls.DenseDistribution(dist.probabilities())
    optimum = ls.expected_accuracy(dense, ls.decide(dense, "jaccard"), metric="jaccard").value
    found = ls.expected_accuracy(dist, decided, metric="jaccard").value
    assert (found <= optimum + 1e-12).all()
    assert (found + gap >= optimum - 1e-12).all()


def test_certain_labels():
    one = ls.IndependentLabels([[1.0, 0.0, 0.3]])
    dist = ls.distributions.IndependentMixture([one, ls.IndependentLabels([[1.0, 1.0, 0.3]])])
    assert_allclose(dist.probabilities(), [[0, 0.35, 0, 0.35, 0, 0.15, 0, 0.15]])
    assert_allclose(dist.profile().entropy, [np.log(2) - 0.7 * np.log(0.7) - 0.3 * np.log(0.3)])
    assert dist.log_prob([[0, 0, 0]]) == -np.inf


def test_members_draws_and_names():
    dist, p, _ = random_mixture(3, n_samples=2)
    assert dist.n_components == 3
    assert_allclose([member.marginals() for member in dist._members()], p)
    codes = dist.sample(20_000, random_state=0) @ (1 << np.arange(3))
    shares = np.array([np.bincount(row, minlength=8) / 20_000 for row in codes])
    assert np.abs(shares - dist.probabilities()).max() < 0.015
    named = ls.distributions.IndependentMixture([ls.IndependentLabels([[0.5, 0.1]], ["a", "b"])])
    assert named.label_names == ("a", "b")


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([], "`components` must be `IndependentLabels`, one or more, got none"),
        ([ls.DenseDistribution([[0.5, 0.5]])], r"one or more, got \['DenseDistribution'\]"),
        (
            [ls.IndependentLabels([[0.5]]), ls.IndependentLabels([[0.5, 0.5]])],
            r"the same instances and labels, got .* of \[\(1, 1\), \(1, 2\)\]",
        ),
    ],
)
def test_components_that_are_none(parts, message):
    with pytest.raises(ls.InputError, match=message):
        ls.distributions.IndependentMixture(parts)
    with pytest.raises(ls.InputError, match="engine"):
        ls.distributions.IndependentMixture([ls.IndependentLabels([[0.5]])], engine="fast")


@pytest.mark.parametrize("engine", ["dense", "certified", "auto"])
def test_of_ties_by_rounding_the_lowest_code_is_the_mode(engine):
    """A component and its mirror image: labelsets that swap two labels are equally probable."""
    rng = np.random.default_rng(0)
    for _ in range(60):
        q = rng.integers(1, 10, rng.integers(2, 6)) / 10
        parts = [ls.IndependentLabels([q]), ls.IndependentLabels([1 - q])]
        dist = ls.distributions.IndependentMixture(parts, engine=engine)
        P = dist.probabilities()[0]
        lowest = int(np.flatnonzero(P.max() * (1 - 1e-12) <= P)[0])
        for mode in (dist.mode(), dist.top(1).labelsets[:, 0], summary_of(dist).mode):
            assert codes_of(mode)[0] == lowest
        best = dist.top(len(P))
        assert_allclose(best.probabilities[0], np.sort(P)[::-1], rtol=1e-9, atol=1e-15)
        assert sorted(codes_of(best.labelsets[0])) == list(range(len(P)))
