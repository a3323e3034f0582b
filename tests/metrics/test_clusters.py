"""Clusters of dependent rows, against loops."""

import numpy as np
import oracles_clusters as oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.sparse import csr_array

import labelsure as ls
from labelsure.metrics.clusters import (
    cluster_outcomes,
    design_effect,
    first_rows,
    number_clusters,
    read_clusters,
    sum_by_cluster,
)

rows = st.lists(st.tuples(st.sampled_from("abcdef"), st.floats(0, 1)), min_size=1, max_size=30)


@given(rows, st.floats(0.05, 0.95))
def test_outcomes_are_those_of_the_loop(pairs, target):
    names, values = map(list, zip(*pairs, strict=True))
    size = max(map(names.count, names))
    found = cluster_outcomes(np.array(values), number_clusters(names), target, size)
    assert_allclose(found, oracles.outcomes(values, names, target, size), atol=1e-12)
    assert found.min() >= -1e-12
    assert found.max() <= 1 + 1e-12
    assert (found.mean() > target + 1e-9) <= (np.mean(values) > target)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30), st.floats(0.05, 0.95))
def test_outcomes_of_clusters_of_one_row_are_those_of_the_rows(values, target):
    found = cluster_outcomes(np.array(values), np.arange(len(values)), target, 1)
    assert found.tolist() == values


@given(rows, st.integers(1, 5))
def test_first_rows_are_those_of_the_loop(pairs, most):
    names = [name for name, _ in pairs]
    assert first_rows(number_clusters(names), most).tolist() == oracles.first_rows(names, most)


@given(rows)
def test_the_design_effect_is_that_of_the_loop(pairs):
    names, values = zip(*pairs, strict=True)
    residuals = np.array(values) - np.mean(values)
    found = design_effect(residuals, number_clusters(names))
    assert_allclose(found, oracles.design_effect(residuals, names), rtol=1e-9)
    assert design_effect(residuals, np.arange(len(values))) == 1.0


def test_rows_that_share_all_luck_count_as_one():
    luck = np.random.default_rng(0).normal(size=500)
    assert_allclose(
        design_effect(np.repeat(luck, 10), np.repeat(np.arange(500), 10)), 10, rtol=0.01
    )


def test_sums_of_sparse_and_dense_rows():
    values, clusters = np.arange(12.0).reshape(4, 3), np.array([0, 1, 0, 2])
    expected = [values[0] + values[2], values[1], values[3]]
    assert_allclose(sum_by_cluster(values, clusters), expected)
    assert_allclose(sum_by_cluster(csr_array(values), clusters).toarray(), expected)


def test_clusters_are_one_name_for_each_row():
    assert read_clusters([3, 1, 3], None, 3, "`score`").tolist() == [0, 1, 0]
    with pytest.raises(ls.InputError, match="one entry for each of the 4 rows"):
        read_clusters([3, 1, 3], None, 4, "`score`")
    with pytest.raises(ls.InputError, match="`clusters` must name the cluster of each instance"):
        read_clusters([3, None, 3], None, 3, "`score`")
