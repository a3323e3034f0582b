"""Intervals of the sampled engine: how often they hold the truth, over many different instances."""

import numpy as np
import oracles_engines as oracles
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import labelsure as ls
from labelsure._kernels.labelset_search import Goals
from labelsure._runtime import limits as _limits
from labelsure.distributions._chains import WeightedChains
from labelsure.distributions._enumeration import enumerate_chains
from labelsure.distributions._sampling import DrawStreams, Sampled, SquaredDraws

ROUNDING = 1e-10


def block_chains(seed, n_blocks, width, n_chains, spread, *, common=0.0, n_samples=150):
    """Chains whose labels depend on each other within blocks: their collision can be summed.

    `common` is the share of their logits that all chains have in common.
    """
    rng = np.random.default_rng(seed)
    n_labels = n_blocks * width
    block = np.arange(n_labels) // width
    shared, *own = spread * rng.normal(-0.5, 1, size=(n_chains + 1, n_samples, n_labels))
    chains = []
    for of_chain in own:
        order = rng.permutation(n_labels)
        base = common * shared + (1 - common) * of_chain
        linked = block[order][:, np.newaxis] == block[order]
        weights = 0.5 * spread * rng.normal(size=linked.shape) * linked
        chains.append(ls.distributions.LinearChain(order, base[:, order], weights))
    return chains


def log_collisions(chains, n_blocks, width):
    """The truth, at any number of labels."""
    joints = []
    for b in range(n_blocks):
        parts = []
        for chain in chains:
            at = np.flatnonzero(chain.order // width == b)
            weights = chain.weights[np.ix_(at, at)]
            part = ls.distributions.LinearChain(
                chain.order[at] - b * width, chain.base[:, at], weights
            )
            parts.append(part.joint())
        joints.append(np.stack(parts, axis=1))  # (n, m, 2**width)
    return np.array(
        [oracles.log_collision_of_blocks(blocks) for blocks in zip(*joints, strict=True)]
    )


def share_inside(low, truth, high):
    return ((low <= truth + ROUNDING) & (truth <= high + ROUNDING)).mean()


MANY_LABELS = {
    "flat": {"spread": 0.5},
    "different chains": {"spread": 1.0},
    "peaked": {"spread": 3.0, "common": 0.8},
}


@pytest.mark.parametrize("case", MANY_LABELS)
@pytest.mark.jit_only
@pytest.mark.slow
def test_collision_of_174_labels_and_ten_chains(case):
    chains = block_chains(1, 58, 3, 10, **MANY_LABELS[case])
    truth = log_collisions(chains, 58, 3)
    profile = ls.distributions.ChainMixture(chains, engine="sampled", budget=600).profile()
    low, high = profile.low.log_collision, profile.high.log_collision
    assert share_inside(low, truth, high) >= 0.93
    assert np.median(high - low) < 0.01 * 174 * np.log(2)  # a hundredth of the scale of CE


FEW_LABELS = {
    "flat": (3, 0.3, 0.0),
    "ten chains": (10, 1.0, 0.5),
    "one chain": (1, 2.0, 0.0),
    "concentrated": (10, 4.0, 0.5),
    "nearly certain": (2, 9.0, 0.9),
}


@pytest.mark.parametrize("case", FEW_LABELS)
@pytest.mark.parametrize("engine", ["sampled", "auto"])
@pytest.mark.jit_only
@pytest.mark.slow
def test_entropy_collision_and_expectations_of_twelve_labels(case, engine):
    """Against all 2**12 probabilities; "auto" enumerates first, as dense is out of reach."""
    n_chains, spread, common = FEW_LABELS[case]
    chains = block_chains(2, 1, 12, n_chains, spread, common=common, n_samples=1000)
    dense = ls.distributions.ChainMixture(chains, engine="dense")
    dist = ls.distributions.ChainMixture(
        chains, engine=engine, tolerance=0.0, budget=500, max_exact_labels=1
    )
    truth, profile = dense.profile(), dist.profile()
    for name in ("entropy", "log_collision"):
        low, value, high = (getattr(p, name) for p in (profile.low, truth, profile.high))
        assert share_inside(low, value, high) >= 0.93, name
    dense, dist = dense[:300], dist[:300]
    drawn = dense.sample(1, random_state=0)[:, 0]
    for metric in ("hamming", "jaccard", "f1"):
        for Y in (dense.mode(), drawn):
            found = ls.expected_accuracy(dist, Y, metric=metric)
            low, high = found.low, found.high
            value = ls.expected_accuracy(dense, Y, metric=metric).value
            assert share_inside(low, value, high) >= 0.93, metric


@pytest.mark.parametrize("case", FEW_LABELS)
@pytest.mark.parametrize("engine", ["sampled", "auto"])
@pytest.mark.jit_only
def test_intervals_of_marginals_of_twelve_labels(case, engine):
    n_chains, spread, common = FEW_LABELS[case]
    chains = block_chains(3, 1, 12, n_chains, spread, common=common, n_samples=150)
    truth = ls.distributions.ChainMixture(chains, engine="dense").marginals()
    settings = {"tolerance": 0.0, "budget": 3000, "max_exact_labels": 1}
    dist = ls.distributions.ChainMixture(chains, engine=engine, sampled_tolerance=0.03, **settings)
    found = dist.marginal_bounds()
    assert_array_equal(found.value, dist.marginals())
    inside = (found.low <= truth + 1e-9) & (truth <= found.high + 1e-9)
    assert inside.all(axis=1).mean() >= 0.91  # all labels together: 95% less two errors of 150
    assert inside.mean() >= 0.985
    assert ((found.low >= 0) & (found.low <= found.high) & (found.high <= 1)).all()
    # The tolerance is that of each label's own interval; those that hold together are wider.
    assert np.median((found.high - found.low).max(axis=1)) <= 1.5 * 0.03


def by_instance(seen):
    for i in range(len(seen)):
        some = seen.take([i])
        yield some.weights, some.rows


def test_bounds_of_marginals_hold_what_was_not_seen():
    chains = block_chains(4, 1, 3, 2, 1.0, n_samples=5)
    truth = ls.distributions.ChainMixture(chains, engine="dense").marginals()
    dist = ls.distributions.ChainMixture(chains, engine="certified", tolerance=0.0, budget=4)
    goals = Goals.of(width=0.0, unseen=0.0, enough_mass=2.0)
    found, seen = dist.marginal_bounds(), enumerate_chains(WeightedChains(chains), goals, 4).seen
    unseen = 1 - seen.totals()[:, np.newaxis]
    low = np.array([(P * rows.T).sum(axis=1) for P, rows in by_instance(seen)])
    assert (unseen > 0.01).all()
    assert_allclose(found.low, low, atol=1e-12)
    assert_allclose(found.high, np.minimum(low + unseen, 1), atol=1e-11)
    assert_allclose(found.value, low / (1 - unseen), atol=1e-11)
    assert share_inside(found.low, truth, found.high) == 1


def conditional_of_two(position, prefix):
    """Certain labels, fair ones and others."""
    last = prefix[-1] if position else 0
    return ((0.5, 0.2), (0.9, 1.0), (0.05, 0.6), (0.0, 0.3))[position][last]


def as_chain(order, conditional):
    def of_rows(position, rows, prefixes):
        return np.array([conditional(position, list(prefix)) for prefix in prefixes])

    return ls.distributions.PrefixChain(order, of_rows, 1)


def test_squared_odds_against_loops():
    order = [2, 0, 3, 1]
    squared = as_chain(order, conditional_of_two).temper(0.5).joint()[0]
    conditional = oracles.squared_conditional(conditional_of_two)
    assert_allclose(squared, oracles.prefix_chain_joint(order, conditional), atol=1e-15)
    linear = block_chains(3, 1, 5, 1, 1.5, n_samples=3)[0]
    prefix = ls.distributions.PrefixChain(linear.order, linear.conditional, 3)
    assert_allclose(linear.temper(0.5).joint(), prefix.temper(0.5).joint(), atol=1e-15)
    assert_array_equal(linear.temper(0.5).order, linear.order)


def test_weights_of_squared_draws_sum_to_the_collision(monkeypatch):
    """The identity behind the estimate, by full sums, with and without an enumeration."""
    for name in ("BEAM_WIDTH", "BEAM_LABELSETS"):  # beams that do not find all sixteen
        monkeypatch.setattr(_limits, name, 1)
    orders = [[2, 0, 3, 1], [1, 3, 0, 2]]
    joints = [oracles.prefix_chain_joint(order, conditional_of_two) for order in orders]
    squared = oracles.squared_conditional(conditional_of_two)
    joints_squared = [oracles.prefix_chain_joint(order, squared) for order in orders]
    P, Q = ([(a + b) / 2 for a, b in zip(*pair, strict=True)] for pair in (joints, joints_squared))
    assert_allclose(oracles.mean_weight(P, Q), sum(p * p for p in P))
    chains = [as_chain(order, conditional_of_two) for order in orders]
    goals = Goals.of(width=0.0, unseen=2.0, enough_mass=2.0)
    for budget in (0, 3):
        group = WeightedChains(chains)
        found = enumerate_chains(group, goals, budget)
        seen = {int(row @ (1 << np.arange(4))) for row in found.seen.rows}
        sampled = Sampled.nothing(found, group, DrawStreams(0, [0], [0])).draw_more_squared(4000)
        estimate = sampled.squared.estimate()
        expected = oracles.mean_weight(P, Q, seen) + sum(P[code] ** 2 for code in seen)
        assert abs(estimate.value[0] - np.log(expected)) <= 4 * estimate.error[0]
        assert 0 < estimate.error[0] < 0.02
        known = [P[code] ** 2 / Q[code] for code in range(16) if code not in seen and Q[code] > 0]
        weights = sampled.squared.weights * np.exp(sampled.squared.log_scale[0])
        assert set(np.round(weights[sampled.squared.is_new], 9)) == set(np.round(known, 9))


def test_enumerated_draws_correct_the_weight_of_new_draws():
    """All weights are 1, so the collision is 1, however many draws are new by chance."""
    is_new = np.array([[[1, 1, 0, 1, 1, 1, 1, 0], [1, 0, 1, 1, 0, 0, 1, 1]]], dtype=bool)
    draws = SquaredDraws(np.zeros(is_new.shape), is_new, np.log([0.25]))
    found = draws.estimate()
    assert_allclose(found.value, 0.0, atol=1e-15)
    assert_allclose(found.error, 0.0, atol=1e-15)


def test_draws_that_are_all_alike_are_not_sure():
    """A labelset of probability .999: a thousand draws may well see no other."""
    chain = ls.distributions.LinearChain(
        [0, 1, 2], np.full((50, 3), [8.0, 0.0, 0.0]), np.zeros((3, 3))
    )
    chain.base[:, 1:] = 8.0
    dist = ls.distributions.ChainMixture([chain], engine="sampled", budget=400)
    truth = ls.distributions.ChainMixture([chain], engine="dense")
    profile = dist.profile()
    assert (profile.entropy_error < 1e-15).any()  # some instances saw one labelset
    assert (profile.high.entropy >= truth.profile().entropy).all()
    Y = np.zeros((50, 3), dtype=int)  # worth something in the rarest case alone
    found = ls.expected_accuracy(dist, Y, metric="jaccard")
    value, high = found.value, found.high
    assert (value == 0).any()
    assert (high >= ls.expected_accuracy(truth, Y, metric="jaccard").value).all()


@pytest.mark.jit_only  # plain numbers warn where a product is beyond them
def test_weights_too_small_for_a_number_have_a_logarithm():
    """2,000 fair labels: their collision is 2**-2000."""
    chain = ls.distributions.LinearChain(
        np.arange(2000), np.zeros((1, 2000)), np.zeros((2000, 2000))
    )
    found = enumerate_chains(WeightedChains([chain]), Goals.of(0.0, 2.0, 2.0), 0)
    streams = DrawStreams(0, [0], [0])
    sampled = Sampled.nothing(found, WeightedChains([chain]), streams).draw_more_squared(40)
    assert_allclose(sampled.squared.estimate().value, -2000 * np.log(2))
