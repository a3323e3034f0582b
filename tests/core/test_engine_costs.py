"""What engines cost, counted in operations: less budget never means more of them."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import labelsure as ls
from labelsure import _limits
from labelsure.distributions import _engine_costs as costs
from labelsure.distributions._engine_costs import count_operations

BUDGETS = (0, 1, 10, 100, 255, 256, 257, 300, 400, 700, 1500, 4000, 20_000)
QUESTIONS = {
    "profile": lambda dist: dist.profile(),
    "summary": lambda dist: dist.summary(["hamming", "jaccard"]),
    "marginals": lambda dist: dist.marginals(),
    "mode": lambda dist: dist.mode(),
    "top": lambda dist: dist.top(3),
    "expected": lambda dist: dist.expected("f1", np.ones((1, dist.n_labels), dtype=int)),
    "support": lambda dist: list(dist.support() or ()),
}


def chains_of(n_labels, n_chains, spread, n_samples=3, seed=0):
    """`spread` 0.3 is nearly flat, 4 is concentrated."""
    rng = np.random.default_rng(seed)
    base = spread * rng.normal(-0.8, 1, size=(n_samples, n_labels))
    chains = []
    for _ in range(n_chains):
        order = rng.permutation(n_labels)
        own = base + 0.2 * spread * rng.normal(size=base.shape)
        links = 0.3 * spread * rng.normal(size=(n_labels, n_labels))
        chains.append(ls.LinearChain(order, own[:, order], links))
    return chains


def operations_of(ask, dist):
    with count_operations() as count:
        ask(dist)
    return count.total


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("n_labels", [16, 26])
@pytest.mark.jit_only
def test_less_budget_never_means_more_operations(question, n_labels):
    """For each instance: flat ones, concentrated ones, and those between."""
    for spread in (0.3, 1.5, 4.0):
        dist = ls.ChainMixture(chains_of(n_labels, 3, spread))
        for i in range(len(dist)):
            counted = [
                operations_of(QUESTIONS[question], dist[i].with_engine(budget=budget))
                for budget in BUDGETS
            ]
            assert counted == sorted(counted), (spread, i, counted)


@pytest.mark.jit_only
def test_a_smaller_budget_does_not_fall_back_on_all_labelsets():
    dist = ls.ChainMixture(chains_of(27, 10, 1.0))
    dense = costs.dense_operations(dist._chains) * len(dist)
    for question in ("profile", "marginals"):
        few = operations_of(QUESTIONS[question], dist.with_engine(budget=500))
        many = operations_of(QUESTIONS[question], dist)
        assert 0 < few <= many < dense / 20


@pytest.mark.jit_only
def test_a_wider_tolerance_costs_less_and_is_met():
    dist = ls.ChainMixture(chains_of(30, 5, 0.8, n_samples=10))
    counted = []
    for tolerance in (0.05, 0.01, 0.004):
        chosen = dist.with_engine(sampled_tolerance=tolerance)
        counted.append(operations_of(lambda dist: dist.profile(), chosen))
        frame = ls.confidence(chosen, bounds=True)
        for name in ("SE", "CE", "GI", "CS"):
            assert (frame[f"{name}_high"] - frame[f"{name}_low"] <= tolerance + 1e-9).all(), name
    assert counted[0] < counted[1] < counted[2]


@pytest.mark.jit_only
def test_threads_change_neither_the_choice_nor_a_bit(monkeypatch):
    mixtures = [ls.ChainMixture(chains_of(n_labels, 3, 1.0)) for n_labels in (16, 24, 40)]
    answers = []
    for threads in ("1", "3"):
        monkeypatch.setenv("LABELSURE_NUM_THREADS", threads)
        profiles = [dist.profile() for dist in mixtures]
        answers.append(
            [
                *(values for p in profiles for values in (p.method, p.entropy, p.log_collision)),
                *(dist.marginals() for dist in mixtures),
                *(ls.decide(dist, "f1") for dist in mixtures),
                [dist.max_exact_labels for dist in mixtures],
            ]
        )
    for one, other in zip(*answers, strict=True):
        assert_array_equal(one, other)


def test_costs_are_known_before_anything_runs():
    one, ten = chains_of(20, 1, 1.0), chains_of(20, 10, 1.0)
    assert costs.dense_operations(ten) == (10 * 4 + 16) * 2**20
    assert costs.dense_operations(ten) > costs.dense_operations(one)
    assert costs.draw_operations(ten, 100) == 100 * 20 * 12
    assert costs.evaluation_operations(ten, 100) == 10 * 100 * 20 * 12
    learners = [ls.PrefixChain(c.order, c.conditional, 3) for c in one]
    assert costs.dense_operations(learners) > costs.dense_operations(one)
    assert costs.draw_operations(learners, 100) == 100 * 20 * 64
    assert costs.is_dense_worthwhile(chains_of(22, 12, 1.0))
    assert not costs.is_dense_worthwhile(chains_of(24, 2, 1.0))


def test_the_dense_engine_counts_its_joints():
    dist = ls.ChainMixture(chains_of(15, 2, 1.0))
    assert operations_of(lambda dist: dist.marginals(), dist) == 3 * (2 * 4 + 16) * 2**15


def test_exact_answers_are_worth_so_much(monkeypatch):
    dist = ls.ChainMixture(chains_of(15, 2, 0.3))
    assert set(dist.profile().method) == {"exact"}
    monkeypatch.setattr(_limits, "EXACT_OPERATIONS", 2**15)
    assert set(dist.profile().method) == {"certified+sampled"}
    assert set(dist.profile(engine="dense").method) == {"exact"}


@pytest.mark.jit_only
def test_a_search_that_finds_little_ends_once_what_is_unseen_is_small():
    """Flat probabilities: 256 labelsets have next to no mass. Sharp ones are searched as before."""
    goals = np.array([0.0, 0.0, 0.0, 2.0, 0.0])
    found = {}
    for spread in (0.5, 4.0):
        dist = ls.ChainMixture(chains_of(27, 5, spread))
        for small in (0.0, 0.002, 0.02):
            with count_operations() as count:
                search = dist._beyond_dense.search(np.arange(3), goals, 256, small)
            found[spread, small] = search, count.total
    long, short, shortest = (found[0.5, small] for small in (0.0, 0.002, 0.02))
    assert (long[0].seen.totals() < 0.01).all()
    assert shortest[1] < short[1] < long[1] / 2
    for small in (0.002, 0.02):
        bound = found[0.5, small][0].largest_unseen
        assert ((bound <= small) & (bound > small / 16)).all()
    for small in (0.002, 0.02):
        assert found[4.0, small][1] == found[4.0, 0.0][1]
        assert_array_equal(found[4.0, small][0].seen.weights, found[4.0, 0.0][0].seen.weights)


@pytest.mark.jit_only
def test_labelsets_of_large_odds_are_found_with_their_probabilities():
    """Sixty labels of odds e**200 or e**-200, and one in doubt: their product is no number."""
    base = np.where(np.arange(61) % 3 == 0, -200.0, 200.0)[np.newaxis]
    base[0, 60] = 1.0
    chain = ls.LinearChain(np.arange(61), base, np.zeros((61, 61)))
    best = ls.ChainMixture([chain], engine="certified").top(2)
    p = 1 / (1 + np.exp(-1.0))
    np.testing.assert_allclose(best.probabilities, [[p, 1 - p]], rtol=1e-12)
    assert_array_equal(best.labelsets[0, 0], base[0] > 0)
