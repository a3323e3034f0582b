"""Decisions that leave labels open, and those that all members of a mixture share."""

import numpy as np
import oracles_partial as naive
import pandas as pd
import pytest
import strategies
from hypothesis import given
from hypothesis import strategies as st
from random_chains import random_chains

import labelsure as ls

costs = st.sampled_from([0.0, 0.05, 0.2, 0.4, 0.6])


def rows_of(answers):
    return [tuple(row) for row in answers.values.tolist()]


@pytest.mark.parametrize("kind", strategies.KINDS)
@given(data=st.data(), open_cost=costs)
def test_no_answer_is_worth_more(kind, data, open_cost):
    batch = data.draw(strategies.batches(kind, st.integers(1, 4), least=1, most=2))
    answers = ls.decide(batch.dist, "hamming", open_cost=open_cost).abstentions
    assert answers.label_names == batch.dist.label_names
    for P, answer, gap in zip(batch.P, rows_of(answers), answers.gap, strict=True):
        worth = naive.worth(P, answer, open_cost)
        assert worth == pytest.approx(naive.best_worth(P, open_cost), abs=1e-6)
        assert 0 <= gap <= 1e-11


def test_a_label_is_open_if_it_would_be_wrong_more_often_than_its_cost():
    dist = ls.IndependentLabels([[0.9, 0.3, 0.55, 0.19, 0.2, 0.7, 0.8]])
    answers = ls.decide(dist, "hamming", open_cost=0.2).abstentions
    assert answers.values.tolist() == [[1, -1, -1, 0, 0, -1, 1]]  # at 0.2 itself nothing is gained
    answers = ls.decide(dist, "hamming", open_cost=0.3).abstentions  # 1 - 0.7 is a hair above 0.3
    assert answers.values.tolist() == [[1, 0, -1, 0, 0, 1, 1]]
    assert (
        ls.decide(dist, "hamming", open_cost=0.5).abstentions.values
        == ls.decide(dist, "hamming").labelsets
    ).all()


def test_labels_and_rows_keep_their_names():
    frame = pd.DataFrame([[0.9, 0.4], [0.5, 0.1]], index=["a", "b"], columns=["cat", "dog"])
    answers = ls.decide(ls.IndependentLabels(frame), "hamming", open_cost=0.2).abstentions
    assert answers.open == [("dog",), ("cat",)]
    assert list(answers.index) == ["a", "b"]


@given(st.integers(0, 10**6), st.integers(1, 30), costs)
def test_gaps_hold_where_few_labelsets_are_seen(seed, budget, open_cost):
    dense = ls.distributions.ChainMixture(random_chains(seed, 4, 2))
    few = dense.with_engine(engine="certified", budget=budget, tolerance=0.0)
    answers = ls.decide(few, "hamming", open_cost=open_cost).abstentions
    P = dense.probabilities().tolist()
    for p, answer, gap in zip(P, rows_of(answers), answers.gap, strict=True):
        assert naive.best_worth(p, open_cost) <= naive.worth(p, answer, open_cost) + gap + 1e-9


def test_gaps_are_open_only_where_labelsets_are_unseen():
    dense = ls.distributions.ChainMixture(random_chains(0, 6, 2, n_samples=50))
    few = dense.with_engine(engine="certified", budget=4, tolerance=0.0)
    answers = ls.decide(few, "hamming", open_cost=0.2).abstentions
    assert (answers.gap > 0.01).any()
    assert (answers.gap <= 0.8).all()  # a wrong label loses 1 - open_cost, an open one open_cost


@pytest.mark.parametrize("wrong", [-0.1, "0.2", float("nan"), np.inf, True, lambda share: share])
def test_costs_that_are_none_are_refused(wrong):
    dist = ls.IndependentLabels([[0.2, 0.6, 0.5]])
    with pytest.raises(ls.InputError, match="`open_cost`"):
        ls.decide(dist, "hamming", open_cost=wrong)


@pytest.mark.parametrize("metric", ["exact", "jaccard", "f1", lambda tp, fp, fn, tn: tp * 1.0])
@pytest.mark.parametrize("asked", [{"open_cost": 0.1}, {"skeptical": True}])
def test_other_metrics_than_hamming_are_refused(metric, asked):
    dist = ls.distributions.ChainMixture(random_chains(1, 4, 2))
    with pytest.raises(ls.InputError, match="`open_cost`"):
        ls.decide(dist, metric, **asked)


def test_what_does_not_go_together_is_refused():
    dist = ls.IndependentLabels([[0.2, 0.6]])
    with pytest.raises(ls.InputError, match="`open_cost`"):
        ls.decide(dist, "hamming", open_cost=0.1, skeptical=True)
    with pytest.raises(ls.InputError, match="disagree"):
        ls.decide(dist, "hamming", skeptical=True)


# Skeptical answers


@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(1, 3))
def test_what_all_members_agree_on(seed, n_labels, n_chains):
    dist = ls.distributions.ChainMixture(random_chains(seed, n_labels, n_chains, scale=0.8))
    answers = ls.decide(dist, "hamming", skeptical=True).abstentions
    by_member = [member.probabilities().tolist() for member in dist._members]
    for i, answer in enumerate(rows_of(answers)):
        assert answer == naive.agreed_labels([P[i] for P in by_member])


@given(st.integers(0, 10**6), st.integers(1, 12))
def test_what_is_not_known_of_a_member_is_open(seed, budget):
    dense = ls.distributions.ChainMixture(random_chains(seed, 4, 3, scale=0.8))
    few = dense.with_engine(engine="certified", budget=budget, tolerance=0.0)
    answers = ls.decide(few, "hamming", skeptical=True).abstentions
    exact = ls.decide(dense, "hamming", skeptical=True).abstentions
    assert ((answers.values == exact.values) | answers.is_open).all()


def test_a_marginal_of_a_half_is_open():
    chain = ls.distributions.LinearChain(range(2), np.array([[0.0, 3.0]]), np.zeros((2, 2)))
    assert ls.decide(
        ls.distributions.ChainMixture([chain]), "hamming", skeptical=True
    ).abstentions.values.tolist() == [[-1, 1]]


def test_one_member_agrees_with_itself():
    dist = ls.distributions.ChainMixture(random_chains(1, 4, 1, n_samples=8))
    answers = ls.decide(dist, "hamming", skeptical=True).abstentions
    assert (answers.values == ls.decide(dist, "hamming").labelsets).all()
