"""Precision of the first k labels, dense and sparse, against loops."""

import tracemalloc

import numpy as np
import oracles_thresholds as naive
import pytest
import strategies
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import labelsure as ls

numbers = st.sampled_from([-1.5, 0.0, 0.25, 0.5, 0.5, 1.0])  # with ties, and listed zeros


@st.composite
def listed_scores(draw):
    """Return the number of labels, scores as dictionaries, and sets of true labels."""
    n_labels = draw(st.integers(1, 6))
    labels = st.integers(0, n_labels - 1)
    row = st.tuples(st.dictionaries(labels, numbers), st.sets(labels))
    rows, truths = zip(*draw(st.lists(row, min_size=1, max_size=5)), strict=True)
    return n_labels, rows, truths


def as_sparse(rows, n_labels):
    """Return scores as they are listed, zeros too."""
    parts = [(i, j, value) for i, row in enumerate(rows) for j, value in row.items()]
    at, labels, values = (np.array(part) for part in zip(*parts, strict=True)) if parts else (
        np.empty(0, int), np.empty(0, int), np.empty(0),
    )  # fmt: skip
    return sparse.coo_matrix((values, (at, labels)), shape=(len(rows), n_labels))


def as_rows(truths, n_labels):
    return np.array([[int(j in true) for j in range(n_labels)] for true in truths])


@given(listed_scores(), st.data())
def test_sparse_rows_against_loops(drawn, data):
    n_labels, rows, truths = drawn
    k = data.draw(st.integers(1, n_labels))
    scores, true = as_sparse(rows, n_labels), as_rows(truths, n_labels)
    for truth in (true, sparse.csc_array(true)):
        found = ls.decisions.precision_at_k(scores, truth, k)
        expected = [
            naive.precision_at_k(row, has, k) for row, has in zip(rows, truths, strict=True)
        ]
        np.testing.assert_allclose(found, expected, rtol=1e-12)


@given(st.data())
def test_dense_and_sparse_rows_say_the_same(data):
    n_labels = data.draw(st.integers(1, 6))
    k = data.draw(st.integers(1, n_labels))
    scores = np.array(data.draw(st.lists(strategies.marginal_rows(n_labels), min_size=1)))
    true = np.array([data.draw(strategies.labelset_rows(n_labels)) for _ in scores])
    everything = as_sparse([dict(enumerate(row)) for row in scores], n_labels)
    dense = ls.decisions.precision_at_k(scores, true, k)
    np.testing.assert_array_equal(dense, ls.decisions.precision_at_k(everything, true, k))
    np.testing.assert_array_equal(
        dense, ls.decisions.precision_at_k(ls.IndependentLabels(scores), true, k)
    )
    expected = [sum(sorted(row)[-k:]) / k for row in scores.tolist()]
    for probabilities in (scores, everything, ls.IndependentLabels(scores)):
        np.testing.assert_allclose(ls.decisions.expected_precision_at_k(probabilities, k), expected)


def test_the_expected_precision_is_the_mean_over_truths():
    """Labels that depend on each other, too: here all or none of the first two."""
    joint = ls.DenseDistribution([[0.3, 0, 0, 0.5, 0.2, 0, 0, 0]])
    labelsets = [[0, 0, 0], [1, 1, 0], [0, 0, 1]]
    values = [ls.decisions.precision_at_k(joint, [labelset], 2)[0] for labelset in labelsets]
    assert ls.decisions.expected_precision_at_k(joint, 2)[0] == pytest.approx(
        np.dot([0.3, 0.5, 0.2], values), rel=1e-12
    )


@pytest.mark.parametrize("k", [1, 3, 5])
def test_labels_that_are_not_listed_have_the_floor(k):
    listed = sparse.csr_array(([0.9, 0.2, 0.7], ([0, 0, 1], [1, 3, 0])), shape=(3, 5))
    dist = ls.SparseIndependentLabels(listed, floor=0.1)
    rows = [[0.9, 0.2, 0.1, 0.1, 0.1], [0.7, 0.1, 0.1, 0.1, 0.1], [0.1] * 5]
    np.testing.assert_allclose(
        ls.decisions.expected_precision_at_k(dist, k), [sum(row[:k]) / k for row in rows]
    )


def test_the_expected_precision_is_met():
    rng = np.random.default_rng(0)
    marginals = rng.beta(0.3, 2, size=(4000, 30))
    true = (rng.uniform(size=marginals.shape) < marginals).astype(int)
    for k in (1, 3, 5):
        found = ls.decisions.precision_at_k(marginals, true, k).mean()
        expected = ls.decisions.expected_precision_at_k(marginals, k).mean()
        # A mean of 4,000 precisions, each of standard deviation at most a half.
        assert abs(found - expected) < 4 * 0.5 / 4000**0.5


def test_a_million_labels_in_the_memory_of_what_is_listed():
    n, n_labels, n_listed = 1000, 10**6, 20
    rng = np.random.default_rng(0)
    labels = np.sort(rng.integers(n_labels, size=(n, n_listed)), axis=1).ravel()
    starts = np.arange(0, labels.size + 1, n_listed)
    scores = sparse.csr_array((rng.uniform(size=labels.size), labels, starts), (n, n_labels))
    ones = np.ones(labels.size, dtype=np.int8)
    true = sparse.csr_array((ones, labels, starts), (n, n_labels))
    true.sum_duplicates()
    true.data[:] = 1
    ls.decisions.precision_at_k(scores, true, 5)
    tracemalloc.start()
    found = ls.decisions.precision_at_k(scores, true, 5)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.min() == 1
    assert peak < 400 * labels.size


Y = [[1, 0], [0, 1]]
P = [[0.2, 0.9], [0.5, 0.5]]


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (
            lambda: ls.decisions.precision_at_k(P, Y, 0),
            "`k` must be a whole number from 1 to 2, got 0",
        ),
        (
            lambda: ls.decisions.precision_at_k(P, Y, 3),
            "`k` must be a whole number from 1 to 2, got 3",
        ),
        (
            lambda: ls.decisions.precision_at_k(P, Y, True),
            "`k`",
        ),
        (
            lambda: ls.decisions.precision_at_k([0.2], Y, 1),
            "`scores` must be distributions, or numbers of",
        ),
        (
            lambda: ls.decisions.precision_at_k("a", Y, 1),
            r"`scores` must be an array of real numbers, got dtype",
        ),
        (
            lambda: ls.decisions.precision_at_k([[np.nan, 0.1]], Y, 1),
            "finite numbers, got NaN or infinity",
        ),
        (lambda: ls.decisions.precision_at_k(P, [[1, 0]], 1), "`Y_true` must have 2 rows, got 1"),
        (
            lambda: ls.decisions.precision_at_k(P, [[1], [0]], 1),
            r"`Y_true` must have 2 labels \(columns\)",
        ),
        (
            lambda: ls.decisions.precision_at_k(P, sparse.csr_array([[2, 0], [0, 0]]), 1),
            "`Y_true` must contain only 0 and 1, got 2 in row 0, column 0",
        ),
        (
            lambda: ls.decisions.expected_precision_at_k([[0.5, 1.5]], 1),
            "needs probabilities between 0 and 1, got 1.5",
        ),
        (
            lambda: ls.decisions.expected_precision_at_k([[-2, 0.5]], 1),
            "needs probabilities between 0 and 1, got -2",
        ),
    ],
)
def test_messages(ask, message):
    with pytest.raises(ls.InputError, match=message):
        ask()


def test_scores_of_a_caller_are_not_changed():
    scores = sparse.csr_matrix(([0.5, 0.2], [1, 0], [0, 2]), shape=(1, 3))
    kept = scores.copy()
    ls.decisions.precision_at_k(scores, [[0, 1, 0]], 2)
    np.testing.assert_array_equal(scores.indices, kept.indices)
    np.testing.assert_array_equal(scores.data, kept.data)
