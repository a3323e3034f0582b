"""Explicit labelsets with probabilities: ragged lists, arrays, duplicates, votes."""

import numpy as np
import oracles
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from strategies import labelset_rows, n_labels

import labelsure as ls

RAGGED = ls.LabelsetTable(
    [[[1, 0, 0]], [[0, 1, 1], [0, 0, 0], [1, 1, 1]], [[0, 0, 1], [0, 1, 0]]],
    [[1.0], [0.25, 0.5, 0.25], [0.5, 0.5]],
    ["a", "b", "c"],
)


@st.composite
def ragged_pairs(draw):
    """For each instance a few (labelset, weight), some labelsets twice, some weights zero."""
    L = draw(n_labels())
    pair = st.tuples(labelset_rows(L), st.integers(0, 8))
    instance = st.lists(pair, min_size=1, max_size=7).filter(lambda pairs: any(w for _, w in pairs))
    return L, draw(st.lists(instance, min_size=1, max_size=4))


@given(ragged_pairs())
def test_ragged_tables_with_duplicates(case):
    L, instances = case
    dist = ls.LabelsetTable(
        [[y for y, _ in pairs] for pairs in instances],
        [[w for _, w in pairs] for pairs in instances],
        normalise=True,
    )
    P = []
    for pairs in instances:
        total = sum(w for _, w in pairs)
        P.append(oracles.joint_of_table([(y, w / total) for y, w in pairs], L))
    assert_allclose(dist.probabilities(), P, rtol=1e-14)
    assert_allclose(dist.marginals(), [oracles.marginals(row) for row in P], atol=1e-14)
    assert_allclose(
        dist.profile().entropy, [oracles.profile(row)[2] for row in P], rtol=1e-12, atol=1e-14
    )
    y_pred = instances[0][0][0]
    expected = [
        oracles.expected_accuracy_table(
            [(y, w / sum(v for _, v in pairs)) for y, w in pairs], y_pred, "jaccard"
        )
        for pairs in instances
    ]
    Y_pred = [y_pred] * len(instances)
    assert_allclose(
        ls.expected_accuracy(dist, Y_pred, metric="jaccard").value, expected, atol=1e-14
    )


def test_what_a_ragged_table_answers():
    assert len(RAGGED) == 3
    assert RAGGED.label_names == ("a", "b", "c")
    assert_array_equal(RAGGED.mode(), [[1, 0, 0], [0, 0, 0], [0, 1, 0]])
    assert_array_equal(RAGGED.marginals(), [[1, 0, 0], [0.25, 0.5, 0.5], [0, 0.5, 0.5]])
    assert_array_equal(RAGGED.profile().runner_up, [0, 0.25, 0.5])
    assert_array_equal(RAGGED.log_prob([[0, 0, 0]] * 3), [-np.inf, np.log(0.5), -np.inf])


def test_top_beyond_the_support_has_the_lowest_codes():
    best = RAGGED.top(5)
    codes = best.labelsets @ [1, 2, 4]
    assert_array_equal(codes, [[1, 0, 2, 3, 4], [0, 6, 7, 1, 2], [2, 4, 0, 1, 3]])
    assert_array_equal(best.probabilities[2], [0.5, 0.5, 0, 0, 0])


@pytest.mark.parametrize("L", [63, 64, 100])
def test_many_labels(L):
    """Beyond 63 labels codes are packed bytes: ties and duplicates work all the same."""
    high = np.zeros(L, dtype=int)
    high[-1] = 1
    low = np.zeros(L, dtype=int)
    low[:9] = 1
    dist = ls.LabelsetTable([[high, low, high, low, 1 - low]], [[0.2, 0.3, 0.2, 0.1, 0.2]])
    best = dist.top(4)
    assert_array_equal(best.labelsets[0, :3], [low, high, 1 - low])
    assert_allclose(best.probabilities, [[0.4, 0.4, 0.2, 0]])
    assert_array_equal(best.labelsets[0, 3], np.zeros(L))
    assert_allclose(dist.log_prob([high]), np.log([0.4]))
    middle = np.zeros(L, dtype=int)
    middle[7] = 1  # the highest bit of a byte: bytes must not compare as signed numbers
    tied = ls.LabelsetTable([[high, middle, np.zeros(L)]], [[0.25, 0.25, 0.5]])
    assert_array_equal(tied.top(3).labelsets[0], [np.zeros(L), middle, high])
    assert_array_equal(tied._size_marginals().sum(axis=2), tied.marginals())


def test_arrays_of_one_size():
    labelsets = np.array([[[1, 0], [0, 0]], [[0, 1], [1, 1]]])
    probabilities = np.array([[0.25, 0.75], [0.5, 0.5]])
    expected = [[0.75, 0.25, 0, 0], [0, 0, 0.5, 0.5]]
    for dtype in (np.float64, np.float32):
        for Y in (labelsets, labelsets.astype(bool), list(labelsets), labelsets.tolist()):
            dist = ls.LabelsetTable(Y, probabilities.astype(dtype))
            assert_array_equal(dist.probabilities(), expected)
    frame = pd.DataFrame(probabilities, columns=["first", "second"])
    assert_array_equal(ls.LabelsetTable(labelsets, frame).probabilities(), expected)
    fortran = ls.LabelsetTable(np.asfortranarray(labelsets), np.asfortranarray(probabilities))
    assert_array_equal(fortran.probabilities(), expected)


def test_float32_may_be_farther_from_one():
    probabilities = np.full((1, 2), 0.5 + 1e-5)
    ls.LabelsetTable([[[0], [1]]], probabilities.astype(np.float32))
    with pytest.raises(ls.InputError, match="sum to one"):
        ls.LabelsetTable([[[0], [1]]], probabilities)


def test_normalising_by_instance():
    dist = ls.LabelsetTable([[[0], [1]], [[1]]], [[3, 1], [7]], normalise=True)
    assert_array_equal(dist.probabilities(), [[0.75, 0.25], [0, 1]])


def test_no_instance():
    dist = ls.LabelsetTable(np.empty((0, 2, 3)), np.empty((0, 2)), ["a", "b", "c"])
    assert len(dist) == 0
    assert dist.n_labels == 3
    assert dist.marginals().shape == (0, 3)
    votes = ls.LabelsetTable.from_samples(np.empty((0, 2, 3)))
    assert (len(votes), votes.n_labels) == (0, 3)


def test_votes():
    votes = np.array([[[1, 0], [1, 0], [0, 1]], [[0, 0], [0, 0], [0, 0]]])
    dist = ls.LabelsetTable.from_samples(votes, ["p", "q"])
    assert_allclose(dist.probabilities(), [[0, 2 / 3, 1 / 3, 0], [1, 0, 0, 0]])
    assert dist.label_names == ("p", "q")
    assert_array_equal(ls.LabelsetTable.from_samples(votes.astype(bool)).mode(), dist.mode())


def test_equal_votes_tie():
    """However 1/size rounds, labelsets with as many votes have the same probability."""
    rng = np.random.default_rng(0)
    for size in (3, 7, 10, 49):
        votes = rng.integers(0, 2, (1, size, 2))
        dist = ls.LabelsetTable.from_samples(votes)
        counts = np.bincount(votes[0] @ [1, 2], minlength=4)
        assert_array_equal(
            np.unique(counts, return_inverse=True)[1],
            np.unique(dist.probabilities()[0], return_inverse=True)[1],
        )


def test_draws_never_leave_their_instance():
    """Sums that miss one by rounding must not hand draws to the neighbour."""
    third = 1 / 3 - 3e-7
    labelsets = [[[1, 0], [0, 1], [1, 1]], [[0, 0]], [[1, 0], [0, 1], [1, 1]]]
    dist = ls.LabelsetTable(labelsets, [[third] * 3, [1 + 9e-7], [third] * 3])
    draws = dist.sample(2000, random_state=0)
    assert (draws[[0, 2]].sum(axis=2) > 0).all()
    assert (draws[1] == 0).all()

    class LastMoment(np.random.Generator):
        def random(self, shape):
            return np.full(shape, 1 - 2**-53)

    draws = dist._sample(1, LastMoment(np.random.PCG64(0)))
    assert_array_equal(draws[:, 0], [[1, 1], [0, 0], [1, 1]])


@pytest.mark.parametrize("empty", [0.0, 1.0])
def test_f1_is_exact_for_any_number_of_labels(empty):
    """Against all 2**16 predictions, each with the few labelsets of the table."""
    labelsets = np.random.default_rng(0).integers(0, 2, (2, 7, 16))
    labelsets[1, 0] = 0
    probabilities = np.array([[0.3, 0.2, 0.15, 0.15, 0.1, 0.05, 0.05]] * 2)
    dist = ls.LabelsetTable(labelsets, probabilities)
    answer = ls.decide(dist, "f1", empty=empty)
    decisions, gaps = answer.labelsets, answer.gap
    assert_array_equal(gaps, 0)
    predictions = (np.arange(2**16)[:, np.newaxis] >> np.arange(16)) & 1
    for Y, p, decision in zip(labelsets, probabilities, decisions, strict=True):
        total = predictions.sum(axis=1)[:, np.newaxis] + Y.sum(axis=1)
        both = predictions @ Y.T
        f1 = np.where(total > 0, 2 * both / np.maximum(total, 1), empty)
        assert_array_equal(decision, predictions[(f1 @ p).argmax()])
