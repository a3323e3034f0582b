"""Which engine answers by itself, and when its searches and draws end."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from strategies import as_prefix_chain

import labelsure as ls
from labelsure._kernels.labelset_search import Goals
from labelsure.distributions._enumeration import enumerate_chains
from labelsure.metrics.registry import F1, JACCARD


def chains_of(n_labels, n_chains, spread, n_samples=3, seed=0):
    """`spread` 0.3 is nearly flat, 4 is concentrated."""
    rng = np.random.default_rng(seed)
    base = spread * rng.normal(-0.8, 1, size=(n_samples, n_labels))
    chains = []
    for _ in range(n_chains):
        order = rng.permutation(n_labels)
        own = base + 0.2 * spread * rng.normal(size=base.shape)
        links = 0.3 * spread * rng.normal(size=(n_labels, n_labels))
        chains.append(ls.distributions.LinearChain(order, own[:, order], links))
    return chains


@pytest.mark.jit_only
def test_the_tolerance_of_draws_is_met():
    dist = ls.distributions.ChainMixture(chains_of(30, 5, 0.8, n_samples=10))
    for tolerance in (0.05, 0.01, 0.004):
        chosen = dist.with_engine(sampled_tolerance=tolerance)
        frame = ls.confidence(chosen, bounds=True)
        for name in ("SE", "CE", "GI", "CS"):
            assert (frame[f"{name}_high"] - frame[f"{name}_low"] <= tolerance + 1e-9).all(), name


@pytest.mark.jit_only
def test_threads_change_neither_the_choice_nor_a_bit(monkeypatch):
    mixtures = [
        ls.distributions.ChainMixture(chains_of(n_labels, 3, 1.0)) for n_labels in (16, 24, 40)
    ]
    answers = []
    for threads in ("1", "3"):
        monkeypatch.setenv("LABELSURE_NUM_THREADS", threads)
        profiles = [dist.profile() for dist in mixtures]
        answers.append(
            [
                *(values for p in profiles for values in (p.method, p.entropy, p.log_collision)),
                *(dist.marginals() for dist in mixtures),
                *(ls.decide(dist, "f1").labelsets for dist in mixtures),
                [dist.max_exact_labels for dist in mixtures],
            ]
        )
    for one, other in zip(*answers, strict=True):
        assert_array_equal(one, other)


def test_auto_writes_out_all_labelsets_up_to_a_border():
    """Flat probabilities, of which a search finds next to nothing."""
    is_exact = {}
    for n_labels in (14, 15, 16, 17, 18, 19):
        chains = chains_of(n_labels, 2, 0.3)
        dist = ls.distributions.ChainMixture(chains)
        assert ([found for _, found in dist._best(F1, 1.0)] == [dist]) == (n_labels == 14)
        answers = {
            "profile": dist.profile().method,
            "expected": dist.expected("f1", dist.mode()).method,
            **{metric.name: decided_exactly(dist, metric) for metric in (F1, JACCARD)},
        }
        is_exact[n_labels] = {name for name, found in answers.items() if set(found) == {"exact"}}
    few = {"profile", "f1"}
    assert is_exact == {
        **dict.fromkeys((14, 15, 16), few | {"expected", "jaccard"}),
        **dict.fromkeys((17, 18), few),
        19: set(),
    }
    for n_labels in (14, 15):  # other base learners cost more than draws
        chains = [as_prefix_chain(chain) for chain in chains_of(n_labels, 2, 0.3, n_samples=1)]
        method = ls.distributions.ChainMixture(chains).profile().method
        assert (set(method) == {"exact"}) == (n_labels == 14)


def decided_exactly(dist, metric):
    """Return how each decision was made: draws leave a gap."""
    return np.where(ls.decide(dist, metric.name).gap > 0, "sampled", "exact")


@pytest.mark.jit_only
def test_marginals_of_16_labels_that_no_search_finds_are_exact():
    rng = np.random.default_rng(0)
    base, links = rng.normal(size=(6, 16)), rng.normal(size=(16, 16))
    base[:3] *= 0.2
    for scale in (1.0, 0.01):
        chain = ls.distributions.LinearChain(np.arange(16), base, scale * links)
        dist = ls.distributions.ChainMixture([chain])
        found, exact = dist.marginal_bounds(), dist.with_engine(engine="dense").marginals()
        is_exact = found.method == "exact"
        assert is_exact.sum() >= 3
        assert_array_equal(found.value[is_exact], exact[is_exact])
        assert_allclose(found.value, exact, atol=dist._engine.tolerance)
        one_by_one = np.concatenate([dist[[i]].marginals() for i in range(6)])
        assert_array_equal(one_by_one, found.value)


def test_rows_that_a_search_answers_are_not_written_out():
    sharp, flat = chains_of(18, 2, 12.0), chains_of(18, 2, 0.3)
    both = [
        ls.distributions.LinearChain(a.order, np.concatenate([a.base, b.base]), a.weights)
        for a, b in zip(sharp, flat, strict=True)
    ]
    mixed = ls.distributions.ChainMixture(both)
    found, exact = mixed.profile(), mixed.with_engine(engine="dense").profile()
    assert set(found.method) == {"certified", "exact"}
    is_exact = found.method == "exact"
    assert_array_equal(found.entropy[is_exact], exact.entropy[is_exact])
    assert (np.abs(found.entropy - exact.entropy) <= 5e-3 * 18).all()
    bounded = ls.distributions.ChainMixture(chains_of(12, 2, 0.3), max_exact_labels=11)
    assert "exact" not in bounded.profile().method


@pytest.mark.jit_only
@pytest.mark.parametrize("n_labels", [15, 16])
def test_the_most_probable_labelsets_are_certain_up_to_16_labels(n_labels):
    """Also of flat probabilities, for which a search proves nothing."""
    dist = ls.distributions.ChainMixture(chains_of(n_labels, 3, 0.2))
    assert (dist.with_engine(engine="certified", budget=256).top(3).high > dist.top(3).high).any()
    exact = dist.with_engine(engine="dense")
    found, best = dist.top(3), exact.top(3)
    assert_array_equal(found.labelsets, best.labelsets)
    assert_array_equal(found.high, found.probabilities)
    assert_array_equal(dist.mode(), exact.mode())


@pytest.mark.jit_only
def test_a_search_that_finds_little_ends_once_what_is_unseen_is_small():
    """Flat probabilities: 256 labelsets have next to no mass. Sharp ones are searched as before."""
    goals = Goals.of(width=0.0, unseen=0.0, enough_mass=2.0)
    found = {}
    for spread in (0.5, 4.0):
        dist = ls.distributions.ChainMixture(chains_of(27, 5, spread))
        for small in (0.0, 0.002, 0.02):
            found[spread, small] = enumerate_chains(dist._chains, goals, 256, small)
    assert (found[0.5, 0.0].seen.totals() < 0.01).all()
    for small in (0.002, 0.02):
        bound = found[0.5, small].largest_unseen
        assert ((bound <= small) & (bound > small / 16)).all()
        assert_array_equal(found[4.0, small].seen.weights, found[4.0, 0.0].seen.weights)


@pytest.mark.jit_only
def test_labelsets_of_large_odds_are_found_with_their_probabilities():
    """Sixty labels of odds e**200 or e**-200, and one in doubt: their product is no number."""
    base = np.where(np.arange(61) % 3 == 0, -200.0, 200.0)[np.newaxis]
    base[0, 60] = 1.0
    chain = ls.distributions.LinearChain(np.arange(61), base, np.zeros((61, 61)))
    best = ls.distributions.ChainMixture([chain], engine="certified").top(2)
    p = 1 / (1 + np.exp(-1.0))
    np.testing.assert_allclose(best.probabilities, [[p, 1 - p]], rtol=1e-12)
    assert_array_equal(best.labelsets[0, 0], base[0] > 0)


@pytest.mark.jit_only
@pytest.mark.parametrize("n_labels", [18, 22])
def test_answers_do_not_depend_on_what_was_asked_before(n_labels):
    questions = {
        "mode": lambda d: d.mode(),
        "top": lambda d: d.top(3).logs,
        "entropy": lambda d: d.profile().entropy,
        "collision": lambda d: d.profile().log_collision,
        "marginals": lambda d: d.marginals(),
        "expected": lambda d: d.expected("f1", np.ones((3, n_labels), dtype=int)).value,
        "decided": lambda d: ls.decide(d, "jaccard").labelsets,
    }
    made = ls.distributions.ChainMixture(chains_of(n_labels, 3, 0.5))
    alone = {name: ask(made[:]) for name, ask in questions.items()}
    for names in (list(questions), list(questions)[::-1]):
        one = made.with_engine(keep_top=3)
        for name in names:
            assert_array_equal(questions[name](one), alone[name], err_msg=name)
