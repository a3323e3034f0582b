"""Precision, recall and F1 of labels and batches: counted, and expected under a distribution."""

import numpy as np
import oracles
import oracles_labels
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.metrics import f1_score, precision_score, recall_score
from strategies import probability_rows

import labelsure as ls
from labelsure._runtime import limits as _limits
from labelsure.estimation._label_estimates import (
    LABEL_METRICS,
    MEASURES,
    LabelCounts,
    check_label_metric,
    draw_counts,
    expect_measures,
)

PEERS = {"precision": precision_score, "recall": recall_score, "f1": f1_score}
LABELSETS = oracles.all_labelsets(2)
DIST = ls.IndependentLabels([[0.9, 0.2], [0.8, 0.4], [0.3, 0.6]], label_names=["sun", "sea"])


def plugin(empty=1.0, random_state=0):
    return ls.AccuracyEstimator(model="plugin", empty=empty, random_state=random_state)


def zeros_and_ones(n_samples, n_labels):
    row = st.lists(st.integers(0, 1), min_size=n_labels, max_size=n_labels)
    return st.lists(row, min_size=n_samples, max_size=n_samples)


@st.composite
def pairs(draw):
    n_samples, n_labels = draw(st.integers(1, 5)), draw(st.integers(2, 4))
    return draw(zeros_and_ones(n_samples, n_labels)), draw(zeros_and_ones(n_samples, n_labels))


@given(pairs(), st.sampled_from([0.0, 1.0]))
def test_known_truths_are_counted_as_scikit_learn_does(pair, empty):
    Y_true, Y_pred = map(np.array, pair)
    counts = LabelCounts.compare(Y_true, Y_pred)
    by_label = oracles_labels.label_measures(*pair, empty)
    averages = oracles_labels.batch_measures(*pair, empty)
    for name, measure in MEASURES.items():
        found = counts.of_labels(measure, empty)
        assert_allclose(found, [of_label[name] for of_label in by_label])
        peer = PEERS[name](Y_true, Y_pred, average=None, zero_division=empty)
        assert_allclose(found, peer)
        for average in ("micro", "macro"):
            found = counts.of_batch(f"{average}-{name}", empty)
            assert_allclose(found, averages[f"{average}-{name}"])
            assert_allclose(
                found, PEERS[name](Y_true, Y_pred, average=average, zero_division=empty)
            )


def test_the_metrics_that_there_are():
    assert LABEL_METRICS == (
        "micro-precision",
        "micro-recall",
        "micro-f1",
        "macro-precision",
        "macro-recall",
        "macro-f1",
    )
    assert check_label_metric("macro-recall") == ("macro", MEASURES["recall"])


@settings(deadline=None, max_examples=40)
@given(
    st.lists(probability_rows(4), min_size=1, max_size=3),
    st.data(),
    st.sampled_from([0.0, 0.5, 1.0]),
)
def test_expectations_of_labels_are_those_over_every_truth(P, data, empty):
    Y_pred = data.draw(zeros_and_ones(len(P), 2))
    by_label, averages = oracles_labels.expected_measures(P, LABELSETS, Y_pred, empty)
    dist = ls.DenseDistribution(P)
    table = plugin(empty).estimate_labels(dist, Y_pred)
    for name in ("n_true", *MEASURES):
        assert_allclose(table[name], [of_label[name] for of_label in by_label], atol=1e-9)
    assert table["n_predicted"].tolist() == np.sum(Y_pred, axis=0).tolist()
    for name in MEASURES:
        found = plugin(empty).estimate(dist, Y_pred, metric=f"macro-{name}").mean
        assert_allclose(found, averages[f"macro-{name}"], atol=1e-9)


def dependent_batch():
    """Three instances whose two labels go together, with predictions of all kinds."""
    P = [[0.4, 0.05, 0.05, 0.5], [0.1, 0.1, 0.1, 0.7], [0.3, 0.2, 0.1, 0.4]]
    return P, ls.DenseDistribution(P), [[1, 1], [1, 0], [0, 0]]


def test_micro_averages_are_those_over_every_truth():
    P, dist, Y_pred = dependent_batch()
    _, averages = oracles_labels.expected_measures(P, LABELSETS, Y_pred, 1.0)
    n_draws = 200_000
    drawn = draw_counts(dist, np.array(Y_pred, dtype=np.int8), n_draws, 0)
    for metric in LABEL_METRICS:
        values = drawn.of_batch(metric, 1.0)
        off = abs(values.mean() - averages[metric]) / (values.std() / n_draws**0.5)
        assert off < 4
    # Labels that are drawn one by one would not do: micro-F1 depends on how they go together.
    apart = ls.IndependentLabels(dist.marginals())
    alone = draw_counts(apart, np.array(Y_pred, dtype=np.int8), n_draws, 0)
    assert abs(alone.of_batch("micro-f1", 1.0).mean() - averages["micro-f1"]) > 0.005


def test_intervals_are_percentiles_of_the_draws():
    _, dist, Y_pred = dependent_batch()
    drawn = draw_counts(dist, np.array(Y_pred, dtype=np.int8), 400, 5)
    table = plugin(random_state=5).estimate_labels(dist, Y_pred, level=0.8)
    recall = drawn.of_labels(MEASURES["recall"], 1.0)
    assert_allclose(table["recall_low"], np.quantile(recall, 0.1, axis=0))
    assert_allclose(table["n_true_high"], np.quantile(drawn.n_true, 0.9, axis=0))
    found = plugin(random_state=5).estimate(dist, Y_pred, metric="micro-f1", level=0.8)
    micro = drawn.of_batch("micro-f1", 1.0)
    low, high = np.quantile(micro, [0.1, 0.9])
    assert_allclose([found.mean, found.low, found.high], [micro.mean(), low, high])


def test_draws_do_not_depend_on_how_much_is_held_at_a_time(monkeypatch):
    rng = np.random.default_rng(0)
    dist = ls.IndependentLabels(rng.uniform(size=(300, 3)))
    Y_pred = dist.mode()
    whole = draw_counts(dist, Y_pred, 2000, 1)
    monkeypatch.setattr(_limits, "DECISION_BYTES", 2**18)
    cut = draw_counts(dist, Y_pred, 2000, 1)
    for name in ("tp", "n_true"):
        means = [getattr(drawn, name).mean(axis=0) for drawn in (whole, cut)]
        assert_allclose(*means, atol=0.8)
    assert_allclose(cut.n_true.mean(axis=0), dist.marginals().sum(axis=0), atol=0.8)
    assert_allclose(cut.tp.mean(axis=0), (dist.marginals() * Y_pred).sum(axis=0), atol=0.8)


@given(st.lists(st.integers(0, 100).map(lambda k: k / 100), min_size=1, max_size=40))
def test_one_label_against_coins_one_by_one(probabilities):
    """Recall and F1 of a label that is predicted in the first half of the instances."""
    n = len(probabilities)
    is_predicted = [int(i < n // 2) for i in range(n)]
    p_tp = oracles_labels.sum_of_coins(probabilities[: n // 2])
    p_fn = oracles_labels.sum_of_coins(probabilities[n // 2 :])
    expected = dict.fromkeys(MEASURES, 0.0)
    for tp, p in enumerate(p_tp):
        for fn, q in enumerate(p_fn):
            found = oracles_labels.measures_of_counts(tp, n // 2 - tp, fn, 0.25)
            for name in MEASURES:
                expected[name] += p * q * found[name]
    column = np.array(probabilities)[:, np.newaxis]
    found = expect_measures(column, np.array(is_predicted, dtype=np.int8)[:, np.newaxis], 0.25)
    for name in MEASURES:
        assert_allclose(found[name], [expected[name]], atol=1e-9)


def test_a_large_batch_is_close_to_the_quotient_of_means():
    rng = np.random.default_rng(0)
    marginals = rng.uniform(size=(5000, 1))
    Y_pred = (marginals > 0.5).astype(np.int8)
    tp, n_true, n = (marginals * Y_pred).sum(), marginals.sum(), Y_pred.sum()
    found = expect_measures(marginals, Y_pred, 1.0)
    assert_allclose(found["precision"], tp / n)
    assert_allclose(found["recall"], tp / n_true, atol=1e-4)
    assert_allclose(found["f1"], 2 * tp / (n + n_true), atol=1e-4)


def test_the_mode_is_judged_and_names_are_the_index():
    table = plugin().estimate_labels(DIST)
    assert table.index.tolist() == ["sun", "sea"]
    assert table.index.name == "label"
    assert table["n_predicted"].tolist() == [2, 1]
    given = plugin().estimate_labels(DIST, DIST.mode())
    assert table.equals(given)


def test_a_seed_moves_intervals_but_not_what_is_exact():
    dist = ls.IndependentLabels(np.random.default_rng(0).uniform(size=(200, 2)))
    tables = [plugin(random_state=seed).estimate_labels(dist) for seed in (0, 0, 1)]
    assert tables[0].equals(tables[1])
    assert tables[0]["f1"].equals(tables[2]["f1"])
    assert not tables[0]["f1_low"].equals(tables[2]["f1_low"])


def test_a_prediction_is_compared_by_name():
    import pandas as pd

    swapped = pd.DataFrame(DIST.mode()[:, ::-1], columns=["sea", "sun"])
    assert plugin().estimate_labels(DIST, swapped).equals(plugin().estimate_labels(DIST))


def test_errors():
    with pytest.raises(ls.errors.UnknownNameError, match="metric"):
        check_label_metric("micro_f1")
