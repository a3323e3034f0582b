"""The accuracy of each prediction, and dataset means that agree with scikit-learn."""

from dataclasses import dataclass
from functools import partial

import numpy as np
import oracles
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import accuracy_score, f1_score, hamming_loss, jaccard_score
from strategies import labelset_rows, n_labels, summary_of

import labelsure as ls
from labelsure import InputError
from labelsure.errors import UnknownNameError
from labelsure.metrics.registry import EXACT, METRICS, Metric, counts, get_metric


def f_beta(tp, fp, fn, tn, *, beta):
    both_empty = tp + fp + fn == 0
    bottom = (1 + beta**2) * tp + beta**2 * fn + fp
    return np.where(both_empty, 1.0, (1 + beta**2) * tp / np.where(both_empty, 1.0, bottom))


@dataclass
class FBeta:
    """A metric that is an object with settings; it has no hash."""

    beta: float

    def __call__(self, tp, fp, fn, tn):
        return f_beta(tp, fp, fn, tn, beta=self.beta)


@st.composite
def pairs(draw, least=0):
    L = draw(n_labels())
    rows = draw(st.lists(st.tuples(labelset_rows(L), labelset_rows(L)), min_size=least, max_size=6))
    shape = (len(rows), L)
    return tuple(np.array([row[side] for row in rows], dtype=int).reshape(shape) for side in (0, 1))


def test_the_registry():
    assert list(METRICS) == list(oracles.METRICS)
    assert all(get_metric(name).name == name for name in METRICS)
    assert get_metric(EXACT) is EXACT


@given(pairs())
def test_counts(Y):
    expected = [oracles.counts(*row) for row in zip(*(side.tolist() for side in Y), strict=True)]
    assert_array_equal(np.transpose(counts(*Y)), np.reshape(expected, (len(Y[0]), 4)))


@pytest.mark.parametrize("metric", list(METRICS))
@given(pairs(), st.sampled_from([0.0, 0.5, 1.0]))
def test_accuracy(metric, Y, empty):
    expected = [
        oracles.accuracy(tuple(true), tuple(pred), metric, empty)
        for true, pred in zip(*(side.tolist() for side in Y), strict=True)
    ]
    values = ls.accuracy(*Y, metric, empty=empty)
    assert values.shape == (len(expected),)
    assert_allclose(values, expected, rtol=1e-15)


@pytest.mark.parametrize("metric", ["exact", "hamming", "jaccard", "f1"])
@given(pairs())
def test_accuracy_is_symmetric_and_one_only_on_equal_sets(metric, Y):
    true, pred = Y
    values = ls.accuracy(true, pred, metric)
    assert_array_equal(values, ls.accuracy(pred, true, metric))
    assert_array_equal(values == 1, (true == pred).all(axis=1))
    assert ((values >= 0) & (values <= 1)).all()


@pytest.mark.parametrize("empty", [0, 1])
@pytest.mark.parametrize("seed", range(3))
def test_dataset_means_agree_with_scikit_learn(empty, seed):
    rng = np.random.default_rng(seed)
    true, pred = (rng.random((2, 200, 4)) < 0.25).astype(int)
    assert ((true + pred).sum(axis=1) == 0).any()  # otherwise `empty` is not tested

    def mean(metric):
        return ls.accuracy(true, pred, metric, empty=empty).mean()

    per_sample = {"average": "samples", "zero_division": empty}
    assert mean("exact") == pytest.approx(accuracy_score(true, pred))
    assert mean("hamming") == pytest.approx(1 - hamming_loss(true, pred))
    assert mean("jaccard") == pytest.approx(jaccard_score(true, pred, **per_sample))
    assert mean("f1") == pytest.approx(f1_score(true, pred, **per_sample))


def test_empty_is_worth_one_by_default():
    nothing = [[0, 0]]
    for metric in METRICS:
        assert_array_equal(ls.accuracy(nothing, nothing, metric), [1.0])
    assert_array_equal(ls.accuracy(nothing, nothing, "jaccard", empty=0.25), [0.25])
    assert_array_equal(ls.accuracy(nothing, nothing, "f1", empty=0), [0.0])
    # Right is right for the metrics that are no quotient of 0 by 0.
    assert_array_equal(ls.accuracy(nothing, nothing, "exact", empty=0), [1.0])
    assert_array_equal(ls.accuracy(nothing, nothing, "hamming", empty=0), [1.0])


@pytest.mark.parametrize(
    "two",
    [
        partial(f_beta, beta=2.0),
        FBeta(2.0),
        lambda tp, fp, fn, tn: f_beta(tp, fp, fn, tn, beta=2.0),
        Metric("f2", FBeta(2.0)),
    ],
    ids=["partial", "object", "lambda", "metric"],
)
def test_a_function_is_a_metric_everywhere(two):
    true, pred = [[1, 1, 0], [0, 0, 0], [0, 1, 0]], [[1, 0, 1], [0, 0, 0], [1, 0, 0]]
    assert_allclose(ls.accuracy(true, pred, two), [5 / (5 + 4 + 1), 1, 0])
    P = [0.1, 0.2, 0.0, 0.3, 0.1, 0.1, 0.1, 0.1]

    def by_counts(*cell):
        return float(f_beta(*cell, beta=2.0))

    for dist in (ls.DenseDistribution([P]), ls.LabelsetTable([oracles.all_labelsets(3)], [P])):
        assert_allclose(
            ls.expected_accuracy(dist, [[1, 0, 1]], metric=two).value,
            oracles.expected_accuracy(P, (1, 0, 1), by_counts),
        )
        assert_array_equal(
            ls.decide(dist, two).labelsets[0], oracles.best_prediction(P, by_counts)[0]
        )
        (value,) = summary_of(dist, [two]).expected.values()
        assert_allclose(value, oracles.expected_accuracy(P, (1, 1, 0), by_counts))


def test_a_function_may_leave_two_empty_sets_to_empty():
    def tanimoto(tp, fp, fn, tn):
        return tp / (tp + fp + fn)

    Y = [[0, 0], [1, 0]]
    assert_array_equal(ls.accuracy(Y, Y, tanimoto, empty=0.5), [0.5, 1])
    assert_array_equal(ls.accuracy(Y, Y, tanimoto), ls.accuracy(Y, Y, "jaccard"))


@pytest.mark.parametrize("metric", list(METRICS))
@pytest.mark.parametrize(("L", "k"), [(1, 0), (1, 1), (4, 0), (4, 2), (4, 4)])
def test_the_table_of_a_metric(metric, L, k):
    table = METRICS[metric].table(L, k, empty=0.5)
    assert table.shape == (k + 1, L - k + 1)
    for tp in range(k + 1):
        for fn in range(L - k + 1):
            expected = oracles.METRICS[metric](tp, k - tp, fn, L - k - fn, 0.5)
            assert table[tp, fn] == pytest.approx(expected)


def test_every_registered_metric_states_its_range_and_outcome():
    for metric in METRICS.values():
        assert metric.range == (0.0, 1.0)
        assert metric.title
    assert {name for name, metric in METRICS.items() if metric.outcome == "binary"} == {"exact"}
    assert EXACT.title == "Exact match"
    assert Metric("mine", lambda tp, fp, fn, tn: tp).title == "Mine"


def test_which_metrics_depend_on_what_two_empty_labelsets_are_worth():
    assert {name: metric.depends_on_empty for name, metric in METRICS.items()} == {
        "exact": False,
        "hamming": False,
        "jaccard": True,
        "f1": True,
        "recall": True,
        "precision": True,
    }


@given(pairs(), st.sampled_from([0.0, 0.5, 1.0]))
def test_f1_is_the_harmonic_mean_of_recall_and_precision(Y, empty):
    recall, precision, f1 = (
        ls.accuracy(*Y, metric, empty=empty) for metric in ("recall", "precision", "f1")
    )
    below = np.where(recall + precision > 0, recall + precision, 1.0)
    assert_allclose(f1, 2 * recall * precision / below)


def test_a_function_that_is_nan_for_an_empty_truth_is_told_what_to_do():
    with pytest.raises(InputError, match=r"np\.where\(tp \+ fn == 0"):
        ls.accuracy([[0, 0]], [[1, 0]], lambda tp, fp, fn, tn: tp / (tp + fn))


def test_a_value_outside_of_the_stated_range_is_refused():
    hits = Metric("hits", lambda tp, fp, fn, tn: tp, range=(0.0, 2.0))
    assert hits.values([2], [0], [0], [0]).tolist() == [2.0]
    message = r"'hits' must lie in its range \[0, 2\], got 3"
    with pytest.raises(InputError, match=message):
        hits.values([3], [0], [0], [0])
    losses = Metric("losses", lambda tp, fp, fn, tn: -fp, range=(-1.0, 0.0))
    with pytest.raises(InputError, match="Pass its true range"):
        losses.values([0, 0], [1, 2], [0, 0], [2, 1])


@pytest.mark.parametrize("stated", [(1.0, 1.0), (1.0, 0.0)])
def test_a_range_must_go_from_the_least_to_the_largest_value(stated):
    with pytest.raises(InputError, match="largest"):
        Metric("mine", lambda tp, fp, fn, tn: tp, range=stated)


def test_an_unknown_outcome_is_refused():
    with pytest.raises(UnknownNameError, match="Did you mean 'binary'"):
        Metric("mine", lambda tp, fp, fn, tn: tp, outcome="binery")


@pytest.mark.parametrize("n_labels", [1, 2, 5])
def test_the_spread_is_the_stated_range_or_that_of_all_counts(n_labels):
    def function(tp, fp, fn, tn):
        return 3 * tp - 2 * fp + fn

    values = [
        3 * tp - 2 * fp + fn
        for tp in range(n_labels + 1)
        for fp in range(n_labels + 1 - tp)
        for fn in range(n_labels + 1 - tp - fp)
    ]
    assert Metric("wide", function).range_width(n_labels) == max(values) - min(values)
    assert Metric("wide", function, range=(-50.0, 50.0)).range_width(n_labels) == 100.0


def test_frames_are_compared_by_label_and_by_row():
    truth = pd.DataFrame([[1, 0, 1], [0, 1, 0]], columns=list("abc"), index=["x", "y"])
    predicted = pd.DataFrame([[0, 0, 1], [1, 1, 0]], columns=list("abc"), index=["x", "y"])
    expected = ls.accuracy(truth.to_numpy(), predicted.to_numpy(), "jaccard")
    for shuffled in (predicted[["c", "a", "b"]], predicted.loc[["y", "x"]]):
        assert_array_equal(ls.accuracy(truth, shuffled, "jaccard"), expected)
    with pytest.raises(InputError, match="`Y_pred`"):
        ls.accuracy(truth, predicted.rename(columns={"a": "z"}), "jaccard")
    with pytest.raises(InputError, match="`Y_pred`"):
        ls.accuracy(truth, predicted.rename({"x": "z"}), "jaccard")


def test_names_of_labels_are_labelsets_too():
    truth, predicted = [["a", "c"], ["b"]], [["c"], ["a", "b"]]
    assert_allclose(ls.accuracy(truth, predicted, "jaccard"), [0.5, 0.5])
    assert_allclose(ls.accuracy([["a"], []], [["b"], []], "hamming"), [0.0, 1.0])
    frame = pd.DataFrame([[0, 1, 0], [1, 0, 1]], columns=list("cab"))
    assert_allclose(ls.accuracy(frame, [["a"], ["c"]], "jaccard"), [1.0, 0.5])
    assert_allclose(ls.accuracy([["a"], ["c"]], frame, "jaccard"), [1.0, 0.5])
