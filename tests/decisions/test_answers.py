"""What `decide` and `expected_accuracy` return, and where it can be passed."""

import numpy as np
import pandas as pd
import pytest
import strategies
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from random_chains import random_chains
from scipy import sparse

import labelsure as ls

METRICS = ("exact", "hamming", "jaccard", "f1")
NAMES = ["sea", "sky", "sun"]
P = np.array([[0.9, 0.3, 0.2], [0.6, 0.8, 0.1], [0.2, 0.45, 0.7]])
FRAME = pd.DataFrame(P, ["a", "b", "c"], NAMES)
TRUTH = pd.DataFrame([[1, 0, 0], [1, 1, 0], [0, 1, 1]], ["a", "b", "c"], NAMES)
ORDER = [2, 0, 1]


@pytest.mark.parametrize("metric", METRICS)
def test_decisions_are_labelsets_wherever_these_are_taken(metric):
    dist = ls.IndependentLabels(FRAME)
    best = ls.decide(dist, metric)
    assert isinstance(best, ls.decisions.Decisions)
    assert (len(best), best.shape, best.label_names) == (3, (3, 3), tuple(NAMES))
    assert best.index.tolist() == ["a", "b", "c"]
    rows = np.asarray(best)
    assert_array_equal(rows, best.labelsets)
    assert np.asarray(best, dtype=float).dtype == float
    for ask in (
        lambda Y: ls.accuracy(TRUTH, Y, metric),
        lambda Y: ls.expected_accuracy(dist, Y, metric=metric).value,
        lambda Y: dist.log_prob(Y),
        lambda Y: ls.ScoreTable.from_distribution(dist, TRUTH, Y).accuracy(metric, 1.0),
        lambda Y: ls.read_labelsets(Y).labelsets,
    ):
        assert_array_equal(ask(best), ask(rows))


def test_decisions_are_aligned_by_label_and_by_row():
    dist = ls.IndependentLabels(FRAME)
    other = FRAME.iloc[ORDER, ::-1]
    turned = ls.decide(ls.IndependentLabels(other), "f1")
    best = ls.decide(dist, "f1")
    assert (turned.labelsets != best.labelsets).any()
    assert_array_equal(ls.accuracy(TRUTH, turned, "f1"), ls.accuracy(TRUTH, best, "f1"))
    assert_array_equal(dist.align(turned), best.labelsets)
    with pytest.raises(ls.InputError, match="unknown are 'moon'"):
        dist.align(ls.decide(ls.IndependentLabels(FRAME.rename(columns={"sun": "moon"})), "f1"))
    with pytest.raises(ls.InputError, match="missing are 'c'"):
        dist.align(ls.decide(ls.IndependentLabels(FRAME.rename(index={"c": "d"})), "f1"))


def test_some_rows_of_decisions():
    best = ls.decide(ls.IndependentLabels(FRAME), "hamming", open_cost=0.3)
    some = best[ORDER[:2]]
    assert some.index.tolist() == ["c", "a"]
    assert_array_equal(some.labelsets, best.labelsets[[2, 0]])
    assert_array_equal(some.gap, best.gap[[2, 0]])
    assert_array_equal(some.abstentions.values, best.abstentions.values[[2, 0]])
    assert repr(best[-1]) == "Decisions(n_samples=1, n_labels=3)"


def test_tables_of_decisions():
    dist = ls.IndependentLabels(FRAME)
    frame = ls.decide(dist, "hamming").to_frame()
    assert frame.columns.tolist() == ["labels", "gap"]
    assert frame["labels"].to_dict() == {"a": ("sea",), "b": ("sea", "sky"), "c": ("sun",)}
    frame = ls.decide(dist, "hamming", open_cost=0.35).to_frame(sep=";")
    assert frame["labels"].tolist() == ["sea", "sea;sky", "sun"]
    assert frame["open"].tolist() == ["", "sea", "sky"]
    twice = ls.decide(ls.IndependentLabels(FRAME.set_axis(["a", "a", "b"])), "hamming", open_cost=1)
    assert twice.to_frame().index.tolist() == ["a", "a", "b"]


def test_sparse_decisions_stay_sparse():
    listed = sparse.csr_array(P)
    dist = ls.SparseIndependentLabels(listed, label_names=NAMES)
    truth = sparse.csr_array(TRUTH.to_numpy())
    for metric in METRICS:
        best = ls.decide(dist, metric)
        assert sparse.issparse(best.labelsets)
        assert sparse.issparse(best[1:].labelsets)
        assert_array_equal(np.asarray(best), best.labelsets.toarray())
        dense = ls.accuracy(TRUTH.to_numpy(), best.labelsets.toarray(), metric)
        assert_array_equal(ls.accuracy(truth, best, metric), dense)
    best = ls.decide(dist, "hamming", open_cost=0.3)
    assert sparse.issparse(best.labelsets)
    assert best.to_frame()["open"].tolist() == [(), ("sea",), ("sky",)]


@pytest.mark.parametrize("kind", strategies.KINDS)
@given(data=st.data())
def test_abstentions_leave_the_decisions_as_they_are(kind, data):
    batch = data.draw(strategies.batches(kind, st.integers(1, 4), least=1, most=2))
    whole = ls.decide(batch.dist, "hamming")
    assert whole.abstentions is None
    some = ls.decide(batch.dist, "hamming", open_cost=0.3)
    assert_array_equal(some.labelsets, whole.labelsets)
    assert_array_equal(some.gap, whole.gap)
    decided = ~some.abstentions.is_open
    assert_array_equal(some.abstentions.values[decided], np.asarray(whole)[decided])


@pytest.mark.parametrize("engine", ["dense", "certified", "sampled"])
def test_expected_accuracies_say_how_they_were_computed(engine):
    dist = ls.distributions.ChainMixture(
        random_chains(0, 6, 2, n_samples=5), engine=engine, budget=8, tolerance=0.0
    )
    method = {"dense": "exact"}.get(engine, engine)
    found = ls.expected_accuracy(dist, metric="jaccard")
    several = dist.expected("jaccard", dist.sample(3, random_state=0))
    for answer in (found, several, dist.marginal_bounds()):
        assert answer.method.tolist() == [method] * 5
        assert (answer.low <= answer.value).all()
        assert (answer.value <= answer.high).all()
        assert (answer.low < answer.high).any() == (engine != "dense")
    assert_array_equal(np.asarray(found), found.value)
    assert (len(found), found.method.tolist()) == (5, dist.profile().method.tolist())
    # Exact match needs no engine.
    assert set(ls.expected_accuracy(dist, metric="exact").method) == {"exact"}
