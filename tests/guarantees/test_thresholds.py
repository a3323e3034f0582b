"""Thresholds chosen on labelled instances, and rankings, against loops."""

import numpy as np
import oracles
import oracles_thresholds as naive
import pytest
import strategies
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import labelsure as ls

metrics = st.sampled_from(list(oracles.METRICS))
empties = st.sampled_from([0.0, 0.5, 1.0])


@st.composite
def labelled(draw):
    n_labels = draw(st.integers(1, 4))
    size = draw(st.integers(1, 6))
    marginals = draw(st.lists(strategies.marginal_rows(n_labels), min_size=size, max_size=size))
    bits = st.lists(st.integers(0, 1), min_size=n_labels, max_size=n_labels).map(tuple)
    return marginals, draw(st.lists(bits, min_size=size, max_size=size))


def fit(rule, marginals, true, metric="f1", empty=1.0):
    return ls.LabelThresholds(rule, metric, empty).fit(ls.IndependentLabels(marginals), true)


def predicted(fitted, marginals):
    return [tuple(row) for row in fitted.predict(ls.IndependentLabels(marginals)).tolist()]


@given(labelled(), metrics, empties)
def test_one_threshold_is_the_best_of_all(data, metric, empty):
    fitted = fit("one", *data, metric, empty)
    assert len(set(fitted.thresholds_.tolist())) == 1
    reached = naive.mean_accuracy(*data, fitted.thresholds_.tolist(), metric, empty)
    assert reached == pytest.approx(naive.best_single(*data, metric, empty), abs=1e-9)
    assert fitted.accuracy_ == pytest.approx(reached, abs=1e-12)


@given(labelled(), metrics, empties)
def test_no_other_threshold_of_a_single_label_is_better(data, metric, empty):
    fitted = fit("each", *data, metric, empty)
    thresholds = fitted.thresholds_.tolist()
    assert naive.improves_by_one_label(*data, thresholds, metric, empty) <= 1e-9
    assert fitted.accuracy_ >= fit("one", *data, metric, empty).accuracy_ - 1e-9


@given(labelled())
def test_hamming_has_the_best_threshold_of_each_label_by_itself(data):
    """Labels add up under Hamming, so that one round over them is the optimum."""
    marginals, true = data
    alone = [
        naive.best_single([[row[j]] for row in marginals], [(y[j],) for y in true], "hamming", 1.0)
        for j in range(len(true[0]))
    ]
    assert fit("each", *data, "hamming").accuracy_ == pytest.approx(np.mean(alone), abs=1e-9)


@given(labelled())
def test_the_mean_size_is_as_near_to_the_truth_as_it_can_be(data):
    marginals, true = data
    fitted = fit("mean_size", marginals, true)
    difference = abs(sum(map(sum, predicted(fitted, marginals))) - sum(map(sum, true)))
    assert difference == naive.smallest_size_difference(marginals, true)


@given(labelled(), metrics, empties)
def test_top_k_is_the_best_size(data, metric, empty):
    marginals, true = data
    fitted = fit("top_k", marginals, true, metric, empty)
    assert predicted(fitted, marginals) == [naive.top_labels(row, fitted.k_) for row in marginals]
    best = naive.best_top_k(marginals, true, metric, empty)
    assert fitted.accuracy_ == pytest.approx(best, abs=1e-9)
    assert fitted.thresholds_ is None


def test_neighbouring_probabilities_are_told_apart():
    low = 0.3
    for _ in range(4):  # the middle of two neighbours is rounded up and down in turn
        high = np.nextafter(low, 1)
        fitted = fit("one", [[low], [high]], [[0], [1]], "hamming")
        assert fitted.accuracy_ == 1
        low = high


def test_thresholds_stay_near_a_half_where_many_are_as_good():
    fitted = fit("one", [[0.9, 0.6], [0.1, 0.2]], [[1, 1], [0, 0]], "hamming")
    assert fitted.thresholds_.tolist() == pytest.approx([0.4, 0.4])


def test_a_metric_of_ones_own_and_any_kind_of_distribution():
    def recall(tp, fp, fn, tn):
        return np.where(tp + fn > 0, tp / np.maximum(tp + fn, 1), 1.0)

    dist = strategies.many("dense", 20)
    Y = dist.sample(1, random_state=0)[:, 0]
    for rule in ("one", "each", "top_k"):
        assert ls.LabelThresholds(rule, recall).fit(dist, Y).accuracy_ == 1  # by taking all


@given(labelled())
def test_ranks_are_those_of_loops(data):
    marginals, true = data
    ranks = ls.decisions.rank_labels(ls.IndependentLabels(marginals))
    for k in range(len(true[0]) + 1):
        tops = [naive.top_labels(row, k) for row in marginals]
        assert [tuple(row) for row in (ranks <= k).astype(int).tolist()] == tops


def test_labels_are_compared_by_name():
    import pandas as pd

    dist = ls.IndependentLabels(pd.DataFrame({"a": [0.9, 0.1], "b": [0.2, 0.7]}))
    Y = pd.DataFrame({"b": [0, 1], "a": [1, 0]})
    assert ls.LabelThresholds("one").fit(dist, Y).accuracy_ == 1
    assert ls.decisions.precision_at_k(dist, Y, 1).mean() == 1


def test_it_is_cloned_and_says_what_is_wrong():
    dist = ls.IndependentLabels([[0.2, 0.6]])
    thresholds = clone(ls.LabelThresholds("each", "jaccard", empty=0.0))
    assert thresholds.get_params() == {"rule": "each", "metric": "jaccard", "empty": 0.0}
    with pytest.raises(NotFittedError):
        thresholds.predict(dist)
    with pytest.raises(ls.InputError, match=r"rule 'eech'.*each"):
        ls.LabelThresholds("eech").fit(dist, [[0, 1]])
    with pytest.raises(ls.InputError, match="labelled"):
        thresholds.fit(dist[:0], np.zeros((0, 2)))
    with pytest.raises(ls.InputError, match="thresholds"):
        thresholds.fit(dist, [[0, 1]]).predict(ls.IndependentLabels([[0.1, 0.2, 0.3]]))
