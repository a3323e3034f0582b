"""All 2**L probabilities: layouts, sizes that the kernels treat differently, normalising."""

import numpy as np
import oracles
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from strategies import probability_rows

import labelsure as ls
from labelsure._runtime.limits import TIE
from labelsure.distributions._dense_block import DenseBlock
from labelsure.labelsets.codes import codes_of
from labelsure.metrics.registry import METRICS, Metric


def random_rows(n_samples, L, seed=0, concentration=0.2):
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.full(2**L, concentration), size=n_samples)


def read_only(P):
    P = P.copy()
    P.flags.writeable = False
    return P


LAYOUTS = {
    "fortran": np.asfortranarray,
    "strided rows": lambda P: np.repeat(P, 2, axis=0)[::2],
    "strided columns": lambda P: np.repeat(P, 2, axis=1)[:, ::2],
    "reversed": lambda P: P[::-1, ::-1].copy()[::-1, ::-1],
    "read-only": read_only,
    "list": np.ndarray.tolist,
    "big-endian": lambda P: P.astype(">f8"),
    "long double": lambda P: P.astype(np.longdouble),
    "frame": pd.DataFrame,
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_any_layout_gives_the_same_answers(layout):
    P = random_rows(3, 3)
    plain, other = ls.DenseDistribution(P), ls.DenseDistribution(LAYOUTS[layout](P))
    assert_array_equal(other.probabilities(), P)
    assert_allclose(other.marginals(), plain.marginals(), rtol=1e-15)
    assert_allclose(other.profile().entropy, plain.profile().entropy, rtol=1e-15)
    assert_array_equal(other.mode(), plain.mode())
    assert_array_equal(other.top(4).labelsets, plain.top(4).labelsets)
    assert_array_equal(other.sample(5, 0), plain.sample(5, 0))
    assert_allclose(other._size_marginals(), plain._size_marginals(), rtol=1e-15)
    for metric in oracles.METRICS:
        assert_array_equal(ls.decide(other, metric).labelsets, ls.decide(plain, metric).labelsets)
        assert_allclose(
            ls.expected_accuracy(other, metric=metric).value,
            ls.expected_accuracy(plain, metric=metric).value,
        )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_arrays_are_used_as_they_are_on_request(dtype):
    P = np.full((2, 4), 0.25, dtype=dtype)
    assert ls.DenseDistribution(P, copy=False)._P is P
    assert ls.DenseDistribution(P)._P.dtype == dtype


@pytest.mark.parametrize("values", [[[0, 1]], [[False, True]]])
def test_whole_numbers_and_booleans_are_probabilities_too(values):
    assert_array_equal(ls.DenseDistribution(values).marginals(), [[1.0]])


@pytest.mark.parametrize("L", [7, 8, 9, 10, 11])
def test_sizes_around_the_kernels_blocks(L):
    """The kernels work in blocks of 2**8 and 2**10 entries; loops of numpy do not."""
    P = random_rows(2, L, seed=L)
    dist = ls.DenseDistribution(P)
    labelsets = np.array(oracles.all_labelsets(L))
    assert_allclose(dist.marginals(), P @ labelsets, rtol=1e-12)
    profile = dist.profile()
    descending = -np.sort(-P, axis=1)
    assert_allclose(profile.top, descending[:, 0], rtol=1e-13)
    assert_allclose(profile.runner_up, descending[:, 1], rtol=1e-13)
    safe = np.where(P > 0, P, 1)
    assert_allclose(profile.entropy, -(P * np.log(safe)).sum(axis=1), rtol=1e-12)
    assert_allclose(profile.collision, (P**2).sum(axis=1), rtol=1e-12)
    assert_array_equal(dist.mode(), labelsets[P.argmax(axis=1)])
    Y_pred = labelsets[[2**L // 3, 2**L - 2]]
    for metric in ("jaccard", "f1"):
        expected = [
            oracles.expected_accuracy(row.tolist(), tuple(y), metric)
            for row, y in zip(P, Y_pred.tolist(), strict=True)
        ]
        assert_allclose(
            ls.expected_accuracy(dist, Y_pred, metric=metric).value, expected, rtol=1e-12
        )
    sizes = labelsets.sum(axis=1)
    by_size = dist._size_marginals()
    for s in (1, L // 2, L):
        assert_allclose(by_size[:, :, s - 1], (P * (sizes == s)) @ labelsets, atol=1e-15)


@pytest.mark.parametrize("at", [0, 1, 255, 256, 1023, 1024, 2047])
def test_the_largest_is_found_in_any_block(at):
    P = np.full((1, 2048), 1e-4)
    P[0, at] = 1 - 2047e-4
    profile = ls.DenseDistribution(P).profile()
    assert_allclose(profile.top, P[0, at])
    assert_allclose(profile.runner_up, 1e-4)
    P[0, (at + 1500) % 2048] += P[0, at] / 2
    P[0, at] /= 2
    profile = ls.DenseDistribution(P).profile()
    assert_allclose(profile.top, P[0, at] + 1e-4)
    assert_allclose(profile.runner_up, P[0, at])


def test_the_entropys_logarithm_over_the_whole_range():
    """Every exponent that a probability can have, subnormal ones included, and all mantissas."""
    rng = np.random.default_rng(0)
    small = 2.0 ** -np.arange(1.0, 1075.0)[: 2**10 - 1] * (1 + rng.random(2**10 - 1)) / 8
    P = np.append(1 - small.sum(), small)[np.newaxis]
    expected = -sum(p * np.log(p) for p in P[0] if p > 0)
    assert_allclose(ls.DenseDistribution(P).profile().entropy, expected, rtol=1e-14)


def best_under_jaccard(P, empty):
    """Return the lowest codes that are best, from all pairs, and how many are nearly as good."""
    labelsets = np.array(oracles.all_labelsets(P.shape[1].bit_length() - 1))
    both, sizes = labelsets @ labelsets.T, labelsets.sum(axis=1)
    union = sizes[:, np.newaxis] + sizes - both
    values = P @ np.where(union > 0, both / np.maximum(union, 1), empty)
    best = values.max(axis=1, keepdims=True)
    return (values >= best - TIE).argmax(axis=1), (values >= best - 1e-6).sum(axis=1)


@pytest.mark.parametrize("L", [1, 2, 4, 7, 9])
@pytest.mark.parametrize("empty", [0.0, 1.0])
def test_the_best_under_jaccard_of_any_joint(L, empty):
    """Sharp joints by bounds, flat ones by the transform; equal to all pairs of labelsets."""
    ways = set()
    for concentration in (0.003, 0.03, 0.3, 3.0):
        rng = np.random.default_rng(L)
        P = rng.dirichlet(np.full(2**L, concentration), size=20)
        dist, expected = ls.DenseDistribution(P, normalise=True), best_under_jaccard(P, empty)[0]
        proven = DenseBlock(dist._P)._prove_jaccard(empty)
        assert_array_equal(proven[proven >= 0], expected[proven >= 0])
        ways |= set((proven >= 0).tolist())
        assert_array_equal(codes_of(ls.decide(dist, "jaccard", empty=empty).labelsets), expected)
    assert ways == {True, False} or L <= 2


@pytest.mark.parametrize(
    ("weights", "best"),
    [([10, 6, 0, 7, 9, 0, 0, 0], 3), ([0, 6, 0, 8, 9, 1, *[0] * 10], 3)],
)
def test_a_bound_counts_the_next_label_instead_of_the_last(weights, best):
    """The labelset with the largest bound is not the best: one of the same size is worth more."""
    dist = ls.DenseDistribution([weights], normalise=True)
    assert oracles.best_prediction(dist.probabilities()[0], "jaccard", 0.0)[0] == (1, 1) + (0,) * (
        dist.n_labels - 2
    )
    assert codes_of(ls.decide(dist, "jaccard", empty=0.0).labelsets) == best


@given(st.integers(1, 5).flatmap(lambda L: probability_rows(2**L)), st.sampled_from([0.0, 1.0]))
def test_no_other_labelset_is_better_under_jaccard(P, empty):
    dist = ls.DenseDistribution([P])
    best = tuple(ls.decide(dist, "jaccard", empty=empty).labelsets[0].tolist())
    value = oracles.expected_accuracy(P, best, "jaccard", empty)
    assert value >= oracles.best_prediction(P, "jaccard", empty)[1] - 1e-12


def test_what_single_precision_cannot_tell_is_decided_in_double_precision():
    """Two labels that could be exchanged, but for 1e-8 of probability."""
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(2**7), size=40)
    codes = np.arange(2**7)
    swapped = codes & ~3 | (codes & 1) << 1 | (codes & 2) >> 1
    P = (P + P[:, swapped]) * np.where(codes & 3 == 3, 0.02, 1.0)
    P /= P.sum(axis=1, keepdims=True)
    P[:, 1] -= 1e-8
    P[:, 2] += 1e-8
    expected, n_near = best_under_jaccard(P, 1.0)
    assert (n_near > 1).any()
    assert (expected[n_near > 1] & 2 > 0).any()
    dist = ls.DenseDistribution(P, normalise=True)
    assert_array_equal(codes_of(ls.decide(dist, "jaccard").labelsets), expected)


@pytest.mark.parametrize("L", [3, 6, 8])
@pytest.mark.parametrize("metric", ["f1", "jaccard", "hamming", "exact"])
def test_shortcuts_agree_with_all_pairs(L, metric):
    dist = ls.DenseDistribution(random_rows(2, L, seed=L))
    for empty in (0.0, 1.0):
        ((_, found),) = dist._best(Metric("another", METRICS[metric].function), empty)
        assert_array_equal(ls.decide(dist, metric, empty=empty).labelsets, found.labelsets)


def test_normalising():
    dist = ls.DenseDistribution([[2, 2, 4, 0], [0, 0, 0, 3]], normalise=True)
    assert_array_equal(dist.probabilities(), [[0.25, 0.25, 0.5, 0], [0, 0, 0, 1]])
    P = np.ones((1, 4), dtype=np.float32)
    assert_array_equal(ls.DenseDistribution(P, normalise=True).marginals(), [[0.5, 0.5]])
    assert_array_equal(P, np.ones((1, 4)))  # in a copy


def test_rounding_is_no_reason_to_refuse():
    thirds = np.full((1, 64), 1 / 64) * (1 + 5e-7)
    ls.DenseDistribution(thirds)
    ls.DenseDistribution((thirds * (1 + 5e-5)).astype(np.float32))
    with pytest.raises(ls.InputError):
        ls.DenseDistribution(thirds * (1 + 5e-5))


def test_zero_may_be_negative_zero():
    dist = ls.DenseDistribution([[-0.0, 1.0, -0.0, -0.0]])
    profile = dist.profile()
    assert_array_equal(profile.runner_up, [0])
    assert_array_equal(profile.entropy, [0])
    assert_array_equal(dist.mode(), [[1, 0]])


def test_label_names():
    dist = ls.DenseDistribution([[0.25] * 4], ["cat", "dog"])
    assert dist.label_names == ("cat", "dog")


def test_ties_go_to_the_lowest_code():
    P = [[0.0, 0.25, 0.25, 0.0, 0.25, 0.0, 0.0, 0.25]]
    dist = ls.DenseDistribution(P)
    assert_array_equal(dist.mode(), [[1, 0, 0]])
    assert_array_equal(dist.top(8).labelsets @ [1, 2, 4], [[1, 2, 4, 7, 0, 3, 5, 6]])
    assert_array_equal(dist.profile().runner_up, dist.profile().top)
    uniform = ls.DenseDistribution([[0.125] * 8])
    for metric in ("exact", "hamming"):
        assert_array_equal(ls.decide(uniform, metric).labelsets, [[0, 0, 0]])
