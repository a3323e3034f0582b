"""Precision, recall and F1 of labels and batches: counted, and expected under a distribution."""

import numpy as np
import oracles_labels
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.metrics import f1_score, precision_score, recall_score

import labelsure as ls
from labelsure.estimation._label_estimates import (
    LABEL_METRICS,
    MEASURES,
    LabelCounts,
    check_label_metric,
)

PEERS = {"precision": precision_score, "recall": recall_score, "f1": f1_score}


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
    counts = LabelCounts(
        *((Y.sum(axis=0)).astype(float) for Y in (Y_true * Y_pred, Y_true, Y_pred))
    )
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


def test_names_are_the_index_and_predictions_are_compared_by_name():
    rng = np.random.default_rng(0)
    dist = ls.IndependentLabels(rng.uniform(size=(300, 2)), label_names=["sun", "sea"])
    mode = dist.mode()
    estimator = ls.AccuracyEstimator().fit(dist[:200], dist.sample(1, 0)[:200, 0], mode[:200])
    table = estimator.estimate_labels(dist[200:], mode[200:]).to_frame()
    assert table.index.tolist() == ["sun", "sea"]
    assert table.index.name == "label"
    assert table["n_predicted"].tolist() == mode[200:].sum(axis=0).tolist()
    swapped = pd.DataFrame(mode[200:, ::-1], columns=["sea", "sun"])
    assert estimator.estimate_labels(dist[200:], swapped).to_frame().equals(table)


def test_errors():
    with pytest.raises(ls.errors.UnknownNameError, match="metric"):
        check_label_metric("micro_f1")
