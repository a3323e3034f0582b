"""Chains and their mixtures against brute force."""

import threading

import numpy as np
import oracles as oracles_of_all
import oracles_chains as oracles
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_chains import random_chains
from strategies import summary_of

import labelsure as ls
from labelsure._kernels.chain_joints import joint_rows, plan_blocks


def brute_force(chains, row):
    return oracles.mixture_joint(
        [oracles.linear_chain_joint(c.order, c.base[row], c.weights) for c in chains]
    )


def as_prefix_chain(chain):
    """The same chain through the route of base learners that are not linear."""
    return ls.distributions.PrefixChain(chain.order, chain.conditional, chain.n_samples)


chain_settings = st.tuples(st.integers(0, 10**6), st.integers(1, 6), st.integers(1, 3))


@given(chain_settings)
def test_joint_is_the_product_of_conditionals(settings):
    chains = random_chains(*settings)
    expected = [brute_force(chains, row) for row in range(2)]
    np.testing.assert_allclose(
        ls.distributions.ChainMixture(chains).probabilities(), expected, atol=1e-14
    )


@given(chain_settings)
def test_prefix_route_gives_the_same_numbers(settings):
    chains = random_chains(*settings)
    linear = ls.distributions.ChainMixture(chains)
    prefix = ls.distributions.ChainMixture([as_prefix_chain(chain) for chain in chains])
    mixed = ls.distributions.ChainMixture([as_prefix_chain(chains[0]), *chains[1:]])
    for other in (prefix, mixed):
        np.testing.assert_allclose(other.probabilities(), linear.probabilities(), atol=1e-14)


@pytest.mark.parametrize("block_labels", [1, 4, 10, 16])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.jit_only
def test_joint_of_more_labels_than_are_worked_on_at_a_time(seed, block_labels):
    """Nine labels vary within a part; what comes late in one chain comes early in another."""
    chains = random_chains(seed, 12, 2, n_samples=1)
    chains.append(
        ls.distributions.LinearChain(chains[0].order[::-1], chains[0].base, chains[1].weights)
    )
    expected = [brute_force(chains, 0)]
    np.testing.assert_allclose(joint_by_kernel(chains, block_labels), expected, atol=1e-15)


def joint_by_kernel(chains, block_labels):
    bases = np.stack([chain.base for chain in chains], axis=1)
    weights = np.stack([chain.weights for chain in chains])
    orders = np.stack([chain.order for chain in chains])
    P = np.full((len(bases), 2 ** orders.shape[1]), np.nan)
    shares = np.ones(bases.shape[:2])
    joint_rows(0, len(P), bases, shares, plan_blocks(weights, orders, block_labels), P)
    return P


@given(chain_settings, st.integers(1, 6), st.sampled_from([1.0, 60.0, 1e4]))
def test_joint_in_blocks_of_any_size(settings, block_labels, scale):
    """Labels above a block have the same value all over it, wherever they are in a chain."""
    chains = random_chains(*settings, scale=scale)
    expected = [brute_force(chains, row) for row in range(2)]
    np.testing.assert_allclose(joint_by_kernel(chains, block_labels), expected, atol=1e-14)


@pytest.mark.parametrize("size", [1, 30, 800, 1e5])
def test_joint_where_odds_would_overflow(size):
    chains = random_chains(3, 5, 2, scale=size)
    expected = [brute_force(chains, row) for row in range(2)]
    np.testing.assert_allclose(
        ls.distributions.ChainMixture(chains).probabilities(), expected, atol=1e-14
    )


@given(chain_settings)
def test_every_answer_is_that_of_loops_over_all_labelsets(settings):
    chains = random_chains(*settings)
    dist = ls.distributions.ChainMixture(chains)
    P = [brute_force(chains, row) for row in range(2)]
    labelsets = oracles_of_all.all_labelsets(dist.n_labels)
    Y = [labelsets[(settings[0] + 7 * row) % len(labelsets)] for row in range(2)]
    log_prob = [np.log(p[oracles_of_all.code_of(y)]) for p, y in zip(P, Y, strict=True)]
    np.testing.assert_allclose(dist.log_prob(Y), log_prob, atol=1e-11)
    for question, atol in (("_marginals", 1e-13), ("_size_marginals", 1e-13)):
        expected = [getattr(oracles_of_all, question[1:])(p) for p in P]
        np.testing.assert_allclose(getattr(dist, question)(), expected, atol=atol)
    best = [oracles_of_all.top(p, 2) for p in P]
    np.testing.assert_array_equal(dist.mode(), [oracles_of_all.mode(p) for p in P])
    np.testing.assert_array_equal(dist.top(2).labelsets, [rows for rows, _ in best])
    np.testing.assert_allclose(dist.top(2).probabilities, [p for _, p in best], atol=1e-14)
    profile = dist.profile()
    for row, p in enumerate(P):
        numbers = [profile.top, profile.runner_up, profile.entropy, profile.collision]
        found = [values[row] for values in numbers]
        np.testing.assert_allclose(found, oracles_of_all.profile(p), rtol=1e-12, atol=1e-13)
    for metric in oracles_of_all.METRICS:
        expected = [
            oracles_of_all.expected_accuracy(p, y, metric) for p, y in zip(P, Y, strict=True)
        ]
        found = ls.expected_accuracy(dist, Y, metric=metric).value
        np.testing.assert_allclose(found, expected, atol=1e-12)
        decisions = [oracles_of_all.best_prediction(p, metric)[0] for p in P]
        np.testing.assert_array_equal(ls.decide(dist, metric).labelsets, decisions)


@given(chain_settings)
def test_summary_says_what_the_single_questions_say(settings):
    dist = ls.distributions.ChainMixture(random_chains(*settings))
    summary = summary_of(dist, ["exact", "hamming", "jaccard", "f1"], 0.5)
    np.testing.assert_array_equal(summary.mode, dist.mode())
    np.testing.assert_array_equal(summary.profile.entropy, dist.profile().entropy)
    for metric, values in summary.expected.items():
        alone = ls.expected_accuracy(dist, metric=metric, empty=0.5).value
        np.testing.assert_allclose(values, alone, atol=1e-13)


@pytest.mark.jit_only
@given(chain_settings)
def test_members_are_the_single_chains(settings):
    chains = random_chains(*settings)
    dist = ls.distributions.ChainMixture(chains)._with_index(pd.Index(["a", "b"]))
    members = dist._members
    assert [member.n_chains for member in members] == [1] * len(chains)
    assert all(member.index.equals(dist.index) for member in members)
    for member, chain in zip(members, chains, strict=True):
        expected = [brute_force([chain], row) for row in range(2)]
        np.testing.assert_allclose(member.probabilities(), expected, atol=1e-14)
    mean = np.mean([member.marginals() for member in members], axis=0)
    np.testing.assert_allclose(mean, dist.marginals(), atol=1e-14)


def test_samples_follow_the_distribution():
    dist = ls.distributions.ChainMixture(random_chains(0, 4, 3))
    draws = dist.sample(40_000, random_state=1)
    P = dist.probabilities()
    for row in range(2):
        codes = draws[row] @ [1, 2, 4, 8]
        share = np.bincount(codes, minlength=16) / len(codes)
        error = np.sqrt(P[row] * (1 - P[row]) / len(codes))
        assert (np.abs(share - P[row]) < 5 * error).all()
    np.testing.assert_array_equal(draws[:, :50], dist.sample(40_000, random_state=1)[:, :50])


@pytest.mark.jit_only
def test_sums_do_not_depend_on_where_arrays_lie_in_memory(monkeypatch):
    """Each thread gets memory of its own; work arrays lie close behind probabilities in it."""
    rng = np.random.default_rng(0)
    dist = ls.distributions.ChainMixture(
        [
            ls.distributions.LinearChain(
                [1, 0, 2], rng.normal(size=(300, 3)), rng.normal(size=(3, 3))
            )
        ]
    )
    monkeypatch.setenv("LABELSURE_NUM_THREADS", "1")
    alone = dist.profile()
    monkeypatch.setenv("LABELSURE_NUM_THREADS", "4")
    for _ in range(200):
        profile = dist.profile()
        np.testing.assert_array_equal(profile.log_collision, alone.log_collision)
        np.testing.assert_array_equal(profile.entropy, alone.entropy)


def test_any_number_of_threads_gives_the_same_bits(monkeypatch):
    dist = ls.distributions.ChainMixture(random_chains(5, 6, 3, n_samples=7))
    monkeypatch.setenv("LABELSURE_NUM_THREADS", "1")
    one, summary = dist.probabilities(), summary_of(dist, ["jaccard"])
    monkeypatch.setenv("LABELSURE_NUM_THREADS", "3")
    np.testing.assert_array_equal(dist.probabilities(), one)
    other = summary_of(dist, ["jaccard"])
    np.testing.assert_array_equal(other.mode, summary.mode)
    np.testing.assert_array_equal(other.profile.entropy, summary.profile.entropy)
    np.testing.assert_array_equal(other.expected["jaccard"], summary.expected["jaccard"])


def test_base_learners_are_asked_by_the_callers_thread_only(monkeypatch):
    monkeypatch.setenv("LABELSURE_NUM_THREADS", "3")
    callers = set()

    def conditional(position, rows, prefixes):
        callers.add(threading.get_ident())
        return np.full(len(rows), 0.3)

    dist = ls.distributions.ChainMixture(
        [ls.distributions.PrefixChain([0, 1, 2], conditional, n_samples=20)]
    )
    summary_of(dist, ["jaccard"])
    dist.marginals()
    assert callers == {threading.get_ident()}


def test_rows_can_be_taken():
    chains = random_chains(6, 4, 2, n_samples=5)
    for dist in (
        ls.distributions.ChainMixture(chains),
        ls.distributions.ChainMixture([as_prefix_chain(c) for c in chains]),
    ):
        P = dist.probabilities()
        np.testing.assert_allclose(dist[[3, 1]].probabilities(), P[[3, 1]], atol=1e-15)
        np.testing.assert_allclose(dist[1:3][1].probabilities(), P[2:3], atol=1e-15)
        assert dist[:0].probabilities().shape == (0, 16)
        assert len(dist[:0].profile()) == 0
        assert dist[:0].mode().shape == (0, 4)


def test_many_labels_can_be_evaluated_and_sampled_but_not_written_out():
    dist = ls.distributions.ChainMixture(random_chains(1, 70, 2), max_exact_labels=20)
    draws = dist.sample(3, random_state=0)
    assert draws.shape == (2, 3, 70)
    assert np.isfinite(dist.log_prob(draws[:, 0])).all()
    with pytest.raises(ls.TooLargeError, match=r"2\*\*70 labelsets .* the limit is 20 labels"):
        dist.with_engine(engine="dense").profile()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ls.distributions.ChainMixture([]), "at least one chain"),
        (
            lambda: ls.distributions.ChainMixture(
                [*random_chains(0, 2, 1), *random_chains(0, 3, 1)]
            ),
            "same instances and labels",
        ),
        (
            lambda: ls.distributions.LinearChain([0, 0], [[0.0, 0.0]], np.zeros((2, 2))),
            "`order`",
        ),
        (
            lambda: ls.distributions.LinearChain([0, 1], [[0.0]], np.zeros((2, 2))),
            r"`base` must have shape",
        ),
        (
            lambda: ls.distributions.LinearChain([0, 1], [[0.0, 0.0]], np.zeros((3, 3))),
            r"`weights` must have",
        ),
        (
            lambda: ls.distributions.LinearChain([0], [[np.nan]], np.zeros((1, 1))),
            "`base` must be finite",
        ),
        (
            lambda: ls.distributions.PrefixChain([0], lambda *_: np.array([2.0]), 1).joint(),
            r"`conditional` must return 1 probabilities in \[0, 1\]",
        ),
    ],
)
def test_what_is_no_chain_is_refused(make, message):
    with pytest.raises(ls.InputError, match=message):
        make()
