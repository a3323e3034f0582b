"""Ranks and thresholds of regions against loops, and against the numbers of another library."""

import math

import numpy as np
import oracles_regions as oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta

from labelsure.guarantees._labelset_region import (
    coverage_interval,
    rank_for_coverage,
    threshold_for_coverage,
    threshold_for_recall,
)

shares = st.integers(1, 19).map(lambda i: i / 20)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=40), shares)
def test_threshold_against_a_loop(values, coverage):
    found = threshold_for_coverage(np.array(values, dtype=float), coverage)
    assert found == oracles.conformal_threshold(values, coverage)


def test_ranks_are_not_off_by_rounding():
    # 10 * 0.9 is a hair above or below 9.
    assert [rank_for_coverage(n, 0.9) for n in (9, 19, 29, 99, 999)] == [9, 18, 27, 90, 900]
    assert rank_for_coverage(8, 0.9) == 9
    assert threshold_for_coverage(np.arange(8.0), 0.9) == -math.inf


def test_the_interval_of_a_coverage_is_its_beta_law():
    low, high = coverage_interval(99, 0.9, 0.8)
    assert beta.cdf(low, 90, 10) == pytest.approx(0.1)
    assert beta.cdf(high, 90, 10) == pytest.approx(0.9)
    assert coverage_interval(8, 0.9, 0.8) == (1.0, 1.0)


@st.composite
def labelled_values(draw):
    n, L = draw(st.integers(1, 12)), draw(st.integers(1, 4))
    seed = draw(st.integers(0, 10**6))
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 8, size=(n, L)) / 8  # with ties
    return values, (rng.random((n, L)) < draw(st.sampled_from([0.2, 0.5, 0.9]))).astype(int)


def fit_recall(values, truth, recall):
    return threshold_for_recall(np.where(truth == 1, values, np.nan), recall)


@given(labelled_values(), shares)
def test_recall_is_the_highest_threshold_within_the_bound(labelled, recall):
    values, truth = labelled
    found = fit_recall(values, truth, recall)
    if found == -math.inf:
        assert oracles.recall_bound(values, truth, -1.0) > 1 - recall + 1e-12
        return
    assert oracles.recall_bound(values, truth, min(found, 2.0)) <= 1 - recall + 1e-9
    if found < math.inf:
        assert oracles.recall_bound(values, truth, found + 1e-9) > 1 - recall - 1e-12


@pytest.mark.parametrize(("recall", "published"), [(0.95, 0.12), (0.9, 0.21), (0.8, 0.37)])
def test_recall_beside_another_library(recall, published):
    """`published` is what MAPIE 1.6.0 finds for these numbers: method "crc", risk "recall"."""
    i, j = np.arange(200)[:, np.newaxis], np.arange(5)[np.newaxis, :]
    values = 0.02 + 0.96 * (np.sin(1.7 * i + 2.3 * j * j + 0.31 * i * j) + 1) / 2
    truth = ((np.cos(3.1 * i + 1.1 * j + 0.07 * i * i) + 1) / 2 < values).astype(int)
    truth[truth.sum(axis=1) == 0, 2] = 1  # it takes no rows without labels
    assert oracles.mapie_threshold(values, truth, recall) == published
    # Its thresholds are hundredths: ours lies between that one and the next.
    assert published < fit_recall(values, truth, recall) <= published + 0.01


def test_rows_without_labels_miss_none():
    values, truth = np.array([[0.5], [0.5]]), np.array([[1], [0]])
    # One of two misses: the bound is 2/3 * 1/2 + 1/3 = 2/3.
    assert fit_recall(values, truth, 0.34) == 0.5
    assert fit_recall(values, truth, 0.33) == math.inf
