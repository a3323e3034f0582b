"""Decisions that leave labels open, and those that all members of a mixture share."""

import numpy as np
import oracles
import oracles_partial as naive
import pytest
import strategies
from hypothesis import given
from hypothesis import strategies as st
from random_chains import random_chains

import labelsure as ls
from labelsure import _limits
from labelsure.decisions._partial_search import _BOUNDS
from labelsure.metrics import EXACT, F1, JACCARD

metrics = st.sampled_from(list(oracles.METRICS))
empties = st.sampled_from([0.0, 0.5, 1.0])
costs = st.sampled_from([0.0, 0.05, 0.2, 0.6, "root", "flat"])
CONCAVE = {"root": lambda share: 0.3 * share**0.5, "flat": lambda share: min(0.1, share)}


def cost_of(open_cost, n_labels):
    """The argument for `decide`, and the costs of 0, 1, ... open labels."""
    given = CONCAVE.get(open_cost, open_cost)
    shares = [a / n_labels for a in range(n_labels + 1)]
    return given, [given(s) if callable(given) else given * s for s in shares]


def worth_of(answers, P, metric, empty, costs):
    rows = [tuple(row) for row in answers.values.tolist()]
    return [naive.worth(p, row, metric, empty, costs) for p, row in zip(P, rows, strict=True)]


@given(st.data(), metrics, empties, costs)
def test_independent_labels_have_the_best_of_all_answers(data, metric, empty, open_cost):
    batch = data.draw(strategies.batches("independent", st.integers(1, 4), least=1, most=2))
    given, by_number = cost_of(open_cost, batch.n_labels)
    answers = ls.decide(batch.dist, metric, empty=empty, open_cost=given)
    assert (answers.gap == 0).all()
    for P, worth in zip(batch.P, worth_of(answers, batch.P, metric, empty, by_number), strict=True):
        assert worth == pytest.approx(naive.best_worth(P, metric, empty, by_number), abs=1e-6)


@given(st.data(), metrics, empties, costs)
@pytest.mark.parametrize("kind", ["dense", "table", "trellis", "mixture"])
def test_gaps_of_joints_hold(kind, data, metric, empty, open_cost):
    batch = data.draw(strategies.batches(kind, st.integers(1, 4), least=1, most=2))
    given, by_number = cost_of(open_cost, batch.n_labels)
    answers = ls.decide(batch.dist, metric, empty=empty, open_cost=given)
    found = worth_of(answers, batch.P, metric, empty, by_number)
    for P, worth, gap in zip(batch.P, found, answers.gap, strict=True):
        best = naive.best_worth(P, metric, empty, by_number)
        assert worth <= best + 1e-6
        assert best <= worth + gap + 1e-6
        assert gap == 0 or metric != "hamming"


@given(st.data(), st.sampled_from([EXACT, F1, JACCARD]), empties, st.sampled_from([0.2, 1.0, 3.0]))
def test_no_answer_is_worth_more_than_its_bound(data, metric, empty, open_cost):
    batch = data.draw(strategies.batches("dense", st.integers(1, 4), least=1, most=2))
    _, by_number = cost_of(open_cost, batch.n_labels)
    bounds = _BOUNDS[metric](batch.dist, empty, np.array(by_number))
    for P, bound in zip(batch.P, bounds, strict=True):
        assert bound >= naive.best_worth(P, metric.name, empty, by_number) - 1e-6


def test_the_bounds_are_reached():
    """By certain labelsets, which any answer can only repeat."""
    for labelset in oracles.all_labelsets(3):
        P = np.zeros((1, 8))
        P[0, oracles.code_of(labelset)] = 1
        costs = np.arange(4) / 3
        for bound in _BOUNDS.values():
            assert bound(ls.DenseDistribution(P), 1.0, costs) == pytest.approx(1.0)
    # One label of a coin among certain ones: it is worth leaving open, and then nothing is wrong.
    coin = ls.DenseDistribution(ls.IndependentLabels([[1.0, 0.5, 1.0]]).probabilities())
    assert _BOUNDS[EXACT](coin, 1.0, 0.6 * np.arange(4) / 3) == pytest.approx(0.8)
    assert ls.decide(coin, "exact", open_cost=0.6).values.tolist() == [[1, -1, 1]]


def test_the_search_is_nearly_always_at_the_optimum():
    """What the certified gap leaves open is mostly nothing."""
    rng = np.random.default_rng(0)
    dist = ls.DenseDistribution(rng.dirichlet(np.full(16, 0.3), size=40))
    for metric in ("exact", "f1", "jaccard"):
        answers = ls.decide(dist, metric, open_cost=0.15)
        _, by_number = cost_of(0.15, 4)
        P = dist.probabilities().tolist()
        worth = np.array(worth_of(answers, P, metric, 1.0, by_number))
        best = np.array([naive.best_worth(p, metric, 1.0, by_number) for p in P])
        assert (best - worth < 1e-4).mean() >= 0.95
        assert (best - worth).max() < 0.02


def test_hamming_opens_what_is_wrong_more_often_than_it_costs():
    dist = ls.IndependentLabels([[0.9, 0.3, 0.55, 0.19, 0.2]])
    answers = ls.decide(dist, "hamming", open_cost=0.2)
    assert answers.values.tolist() == [[1, -1, -1, 0, 0]]  # at 0.2 itself nothing is gained


def test_no_open_label_where_it_costs_too_much():
    dist = strategies.many("dense", 30)
    for metric in oracles.METRICS:
        answers = ls.decide(dist, metric, open_cost=3.0)
        assert (answers.n_open == 0).all()
        value = dist.expected(metric, answers.values).value
        best = dist.expected(metric, ls.decide(dist, metric)).value
        assert (value + answers.gap >= best - 1e-12).all()


@given(st.integers(0, 10**6), st.integers(1, 30), metrics)
def test_gaps_hold_where_few_labelsets_are_seen(seed, budget, metric):
    chains = random_chains(seed, 4, 2)
    dense = ls.ChainMixture(chains)
    few = dense.with_engine(engine="certified", budget=budget, tolerance=0.0)
    answers = ls.decide(few, metric, open_cost=0.2)
    _, by_number = cost_of(0.2, 4)
    P = dense.probabilities().tolist()
    for p, worth, gap in zip(
        P, worth_of(answers, P, metric, 1.0, by_number), answers.gap, strict=True
    ):
        assert naive.best_worth(p, metric, 1.0, by_number) <= worth + gap + 1e-9


def test_many_labels_that_depend_on_each_other(monkeypatch):
    """Beyond what is written out: the answer of few labels is found there too."""
    chains = ls.ChainMixture(random_chains(3, 5, 3, n_samples=6))
    trellis = strategies.many("trellis", 6, L=5)
    for dist in (chains, trellis):
        few = {m: ls.decide(dist, m, open_cost=0.1) for m in oracles.METRICS}
        monkeypatch.setattr(_limits, "CHEAP_DENSE_LABELS", 3)
        for metric, answers in few.items():
            again = ls.decide(dist, metric, open_cost=0.1)
            P = dist.probabilities().tolist()
            _, by_number = cost_of(0.1, 5)
            first, second = (worth_of(a, P, metric, 1.0, by_number) for a in (answers, again))
            assert (np.array(first) <= np.array(second) + again.gap + 1e-9).all()
            assert np.mean(np.array(first) - second) < 0.02
        monkeypatch.undo()


def test_a_hundred_labels():
    rng = np.random.default_rng(0)
    marginals = rng.beta(0.3, 2.0, size=(3, 100))
    dist = ls.IndependentLabels(marginals)
    for metric in ("f1", "jaccard"):
        answers = ls.decide(dist, metric, open_cost=0.2)
        value = dist.expected_decided(metric, answers).value - 0.2 * answers.n_open / 100
        full = dist.expected(metric, ls.decide(dist, metric)).value
        assert (value >= full - 1e-12).all()
        shown = np.where(answers.is_open, 0.5, answers.values)
        order = np.argsort(-marginals, axis=1)
        ranked = np.take_along_axis(shown, order, axis=1)
        assert (np.diff(ranked, axis=1) <= 0).all()  # set, open, absent, by falling probability


@pytest.mark.parametrize(
    ("wrong", "shown"),
    [
        (-0.1, "-0.1"),
        ("much", "'much'"),
        (float("nan"), "nan"),
        (lambda share: share**2, "function"),
        (lambda share: 1 - share, "function"),
        (lambda share: 0.1 + share, "function"),
    ],
)
def test_costs_that_are_none_are_refused(wrong, shown):
    dist = ls.IndependentLabels([[0.2, 0.6, 0.5]])
    with pytest.raises(ls.InputError, match=f"0 at 0, never falls and is concave.* got .*{shown}"):
        ls.decide(dist, "f1", open_cost=wrong)


def test_what_does_not_go_together_is_refused():
    dist = ls.IndependentLabels([[0.2, 0.6]])
    for several in ({"return_gap": True}, {"skeptical": True}):
        with pytest.raises(ls.InputError, match=r"only one of `open_cost`.* got several\. What"):
            ls.decide(dist, "f1", open_cost=0.1, **several)
    with pytest.raises(ls.InputError, match=r"one of exact, hamming, f1, jaccard with `open_cost`"):
        ls.decide(dist, lambda tp, fp, fn, tn: tp * 1.0, open_cost=0.1)
    with pytest.raises(ls.InputError, match=r"members can disagree.* got IndependentLabels"):
        ls.decide(dist, "f1", skeptical=True)


# Skeptical answers


@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(1, 3), metrics, empties)
def test_the_maximin_labelset_and_what_all_agree_on(seed, n_labels, n_chains, metric, empty):
    dist = ls.ChainMixture(random_chains(seed, n_labels, n_chains, scale=0.8))
    answers = ls.decide(dist, metric, empty=empty, skeptical=True)
    by_member = [member.probabilities().tolist() for member in dist.members()]
    for i in range(len(dist)):
        members = [P[i] for P in by_member]
        maximin = tuple(answers.maximin[i].tolist())
        least = naive.least_expected(members, maximin, metric, empty)
        assert least == pytest.approx(naive.best_least_expected(members, metric, empty), abs=1e-9)
        values = [oracles.expected_accuracy(P, maximin, metric, empty) for P in members]
        assert answers.spread[i] == pytest.approx(max(values) - min(values), abs=1e-9)
        best = [oracles.best_prediction(P, metric, empty)[0] for P in members]
        agreed = [column[0] if len(set(column)) == 1 else -1 for column in zip(*best, strict=True)]
        if metric == "hamming":
            agreed = list(naive.agreed_labels(members))
        assert answers.values[i].tolist() == agreed
    assert (answers.gap == 0).all()


@given(st.integers(0, 10**6), metrics)
def test_the_gap_of_the_search_for_the_maximin_holds(seed, metric):
    dist = ls.ChainMixture(random_chains(seed, 4, 3, scale=0.8)).with_engine(
        engine="certified", budget=12, tolerance=0.0
    )
    answers = ls.decide(dist, metric, skeptical=True)
    by_member = [m.with_engine(engine="dense").probabilities().tolist() for m in dist.members()]
    for i in range(len(dist)):
        members = [P[i] for P in by_member]
        least = naive.least_expected(members, tuple(answers.maximin[i].tolist()), metric, 1.0)
        best = naive.best_least_expected(members, metric, 1.0)
        assert least - 1e-9 <= best <= least + answers.gap[i] + 1e-9


def test_one_member_agrees_with_itself():
    dist = ls.ChainMixture(random_chains(1, 4, 1, n_samples=8))
    for metric in ("exact", "f1", "jaccard", "hamming"):
        answers = ls.decide(dist, metric, skeptical=True)
        assert (answers.values == ls.decide(dist, metric)).all()
        assert (answers.maximin == answers.values).all()
        assert (answers.spread == 0).all()
