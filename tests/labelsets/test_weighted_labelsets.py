"""Ragged labelsets with weights, against dictionaries."""

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from strategies import labelset_rows

from labelsure.labelsets.weighted import WeightedLabelsets, find_distinct

SIZES = st.sampled_from([1, 2, 3, 63, 64, 70])


def weighted_pairs(L):
    """For each instance a few (labelset, weight): some twice, some of weight 0, perhaps none."""
    few = st.sampled_from([0, 1, 2, 2**L - 1]).map(
        lambda code: tuple(code >> j & 1 for j in range(L))
    )
    pair = st.tuples(few | labelset_rows(L), st.integers(0, 3))
    return st.lists(st.lists(pair, max_size=6), max_size=4)


def merge(instances, L):
    flat = [(y, w, i) for i, pairs in enumerate(instances) for y, w in pairs]
    flat = flat[::-1]  # in any order
    rows = np.array([y for y, _, _ in flat], dtype=np.int8).reshape(-1, L)
    weights, instance = np.array([w for _, w, _ in flat]), [i for _, _, i in flat]
    return WeightedLabelsets.merge(rows, weights, np.array(instance, dtype=np.intp), len(instances))


def pairs_of(seen):
    """The labelsets and weights of each instance as plain lists."""
    bounds = zip(seen.starts[:-1], seen.starts[1:], strict=True)
    return [
        [
            (tuple(y), w)
            for y, w in zip(seen.rows[a:b].tolist(), seen.weights[a:b].tolist(), strict=True)
        ]
        for a, b in bounds
    ]


with_labels = SIZES.flatmap(lambda L: st.tuples(st.just(L), weighted_pairs(L)))


@given(with_labels)
def test_merging(case):
    L, instances = case
    seen = merge(instances, L)
    expected = oracles.merged(instances)
    assert pairs_of(seen) == expected
    assert len(seen) == len(instances)
    assert seen.n_labels == L
    assert seen.lengths.tolist() == [len(pairs) for pairs in expected]
    assert seen.instance.tolist() == [i for i, pairs in enumerate(expected) for _ in pairs]
    assert seen.totals().tolist() == [sum(w for _, w in pairs) for pairs in expected]
    by_label = [[sum(w * y[j] for y, w in pairs) for j in range(L)] for pairs in expected]
    assert seen.marginals().tolist() == by_label
    for i, pairs in enumerate(expected):
        assert seen.weights_of(i).tolist() == [w for _, w in pairs]


@given(with_labels)
def test_merging_again_changes_nothing(case):
    seen = merge(case[1], case[0])
    again = WeightedLabelsets.merge(seen.rows, seen.weights, seen.instance, len(seen))
    assert pairs_of(again) == pairs_of(seen)


@given(with_labels, st.integers(1, 6))
def test_top(case, k):
    L, instances = case
    k = min(k, 2**L)
    labelsets, weights = merge(instances, L).top(k)
    assert labelsets.shape == (len(instances), k, L)
    for rows, values, pairs in zip(
        labelsets.tolist(), weights.tolist(), oracles.merged(instances), strict=True
    ):
        best = oracles.top_of_merged(pairs, L, k)
        assert [tuple(row) for row in rows] == [y for y, _ in best]
        assert values == [w for _, w in best]


@given(with_labels, st.data())
def test_taking_instances(case, data):
    L, instances = case
    seen = merge(instances, L)
    size = len(instances)
    chosen = data.draw(st.lists(st.integers(0, size - 1), max_size=6)) if size else []
    taken = seen.take(np.array(chosen, dtype=np.intp))
    assert pairs_of(taken) == [pairs_of(seen)[i] for i in chosen]
    step = data.draw(st.sampled_from([1, 2, -1]))
    assert pairs_of(seen.take(slice(None, None, step))) == pairs_of(seen)[::step]
    again = taken.take(np.arange(len(chosen))[::-1])
    assert pairs_of(again) == [pairs_of(seen)[i] for i in chosen[::-1]]


@given(with_labels, st.integers(0, 100))
def test_sums_by_instance(case, seed):
    L, instances = case
    seen = merge(instances, L)
    values = np.random.default_rng(seed).integers(0, 9, size=(len(seen.rows), 2)).astype(float)
    expected = np.zeros((len(seen), 2))
    for i, row in zip(seen.instance, values, strict=True):
        expected[i] += row
    assert_array_equal(seen.sum(values), expected)
    assert_array_equal(seen.sum(values[:, 0]), expected[:, 0])


@given(with_labels)
def test_normalising(case):
    seen = merge(case[1], case[0])
    shares = seen.normalise()
    assert_allclose(shares.totals(), seen.lengths > 0, atol=1e-14)
    assert_allclose(shares.weights * seen.totals()[seen.instance], seen.weights, rtol=1e-14)
    assert_array_equal(shares.rows, seen.rows)


@given(SIZES.flatmap(lambda L: st.tuples(st.just(L), weighted_pairs(L), weighted_pairs(L))))
def test_joining_adds(case):
    L, first, second = case
    n = min(len(first), len(second))
    joined = merge(first[:n], L).join(merge(second[:n], L))
    both = [[*a, *b] for a, b in zip(first[:n], second[:n], strict=True)]
    assert pairs_of(joined) == oracles.merged(both)


@given(with_labels, st.data())
def test_containing(case, data):
    L, instances = case
    listed = [y for pairs in instances for y, _ in pairs]
    any_row = st.sampled_from(listed) | labelset_rows(L) if listed else labelset_rows(L)
    size = data.draw(st.integers(0, 3))
    drawn = [[data.draw(any_row) for _ in range(size)] for _ in instances]
    found = merge(instances, L).contains(
        np.array(drawn, dtype=np.int8).reshape(len(instances), size, L)
    )
    known = [[y for y, _ in pairs] for pairs in oracles.merged(instances)]
    expected = [[y in mine for y in rows] for rows, mine in zip(drawn, known, strict=True)]
    assert found.tolist() == expected


@given(with_labels, st.data())
def test_counts(case, data):
    L, instances = case
    seen = merge(instances, L)
    predicted = [data.draw(labelset_rows(L)) for _ in instances]
    counts = seen.counts(np.array(predicted, dtype=np.int8).reshape(-1, L))
    expected = [
        oracles.counts(tuple(y), predicted[i])
        for y, i in zip(seen.rows.tolist(), seen.instance, strict=True)
    ]
    assert list(zip(*(count.tolist() for count in counts), strict=True)) == expected


@given(with_labels)
def test_the_first_of_equal_ones(case):
    L, instances = case
    flat = [(i, y) for i, pairs in enumerate(instances) for y, _ in pairs]
    rows = np.array([y for _, y in flat], dtype=np.int8).reshape(-1, L)
    found = find_distinct(rows, np.array([i for i, _ in flat], dtype=np.intp))
    assert [flat[at] for at in found] == sorted(
        set(flat), key=lambda entry: (entry[0], oracles.code_of(entry[1]))
    )
    assert [flat.index(flat[at]) for at in found] == found.tolist()


@pytest.mark.parametrize("n_samples", [0, 3])
def test_nothing_at_all(n_samples):
    nothing = np.empty((0, 4), dtype=np.int8)
    seen = WeightedLabelsets.merge(nothing, [], np.empty(0, dtype=np.intp), n_samples)
    assert len(seen) == n_samples
    assert seen.totals().tolist() == [0.0] * n_samples
    assert seen.top(2)[0].shape == (n_samples, 2, 4)
    assert len(seen.take(slice(0, 1))) == min(n_samples, 1)
    assert len(seen.normalise().join(seen)) == n_samples
