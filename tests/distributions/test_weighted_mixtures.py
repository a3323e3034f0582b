"""Mixtures whose chains have weights: every engine, against loops over all labelsets."""

import numpy as np
import oracles_chains
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from strategies import mixture_weights

import labelsure as ls
from labelsure._runtime import limits as _limits
from labelsure.distributions._chains import WeightedChains
from labelsure.distributions._dense import DenseDistribution

FORMS = ("chains", "zero", "rows")
ROUTES = ("linear", "prefix", "mixed")
FIELDS = ("log_top", "log_runner_up", "entropy", "log_collision")


def make_chains(seed, n_labels, n_chains, spread=1.0, n_samples=5, route="linear"):
    rng = np.random.default_rng(seed)
    chains = [
        ls.distributions.LinearChain(
            rng.permutation(n_labels),
            spread * rng.normal(-0.5, 1, size=(n_samples, n_labels)),
            0.5 * spread * rng.normal(size=(n_labels, n_labels)),
        )
        for _ in range(n_chains)
    ]
    for m in range({"linear": 0, "prefix": n_chains, "mixed": 1}[route]):
        chain = chains[m]
        chains[m] = ls.distributions.PrefixChain(chain.order, chain.conditional, chain.n_samples)
    return chains


def joints(chains, weights):
    """All probabilities, by loops."""
    n_samples = chains[0].n_samples
    rows = np.broadcast_to(weights, (n_samples, len(chains)))
    by_chain = [chain.joint() for chain in chains]
    return np.array(
        [
            oracles_chains.mixture_joint([P[row] for P in by_chain], rows[row])
            for row in range(n_samples)
        ]
    )


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("budget", [0, 5, 60, 2**8])
def test_certified_intervals_have_the_truth_in_them(form, budget):
    for seed, spread in enumerate((0.1, 1.0, 4.0)):
        chains = make_chains(seed, 7, 3, spread)
        weights = mixture_weights(np.random.default_rng(seed), form, 5, 3)
        truth = DenseDistribution(joints(chains, weights))
        dist = ls.distributions.ChainMixture(
            chains, weights=weights, engine="certified", budget=budget
        )
        found, expected = dist.profile(), truth.profile()
        for name in FIELDS:
            assert (getattr(found.low, name) <= getattr(expected, name) + 1e-9).all()
            assert (getattr(found.high, name) >= getattr(expected, name) - 1e-9).all()
        best, true = dist.top(3), truth.top(3)
        assert (best.probabilities <= true.probabilities + 1e-12).all()
        assert (best.high >= true.probabilities - 1e-12).all()
        if budget == 2**8:
            assert_allclose(found.entropy, expected.entropy, atol=1e-3 * 7)
            assert_array_equal(dist.mode(), truth.mode())


def repeated(chains, weights, n_samples):
    """The first instance again and again; weights differ by a millionth, and so do draws."""
    rows = np.zeros(n_samples, dtype=int)
    off = 1 + 1e-6 * np.random.default_rng(0).normal(size=(n_samples, len(chains)))
    weights = weights * off / (weights * off).sum(axis=1, keepdims=True)
    return ls.distributions.ChainMixture([chain.take(rows) for chain in chains], weights=weights)


@pytest.mark.parametrize("route", ["linear", "prefix"])
@pytest.mark.parametrize("form", ["chains", "zero"])
def test_draws_are_unbiased_and_their_intervals_hold(form, route, monkeypatch):
    monkeypatch.setattr(_limits, "FIRST_DRAWS", 400)
    chains = make_chains(3, 8, 4, 0.8, n_samples=1, route=route)
    weights = mixture_weights(np.random.default_rng(5), form, 1, 4)
    truth = DenseDistribution(joints(chains, weights))
    n_repeats = 300
    dist = repeated(chains, weights, n_repeats).with_engine(engine="sampled", budget=400)
    found, expected = dist.profile(), truth.profile()
    assert (found.method == "sampled").all()
    for name in ("entropy", "log_collision"):
        value, true = getattr(found, name), getattr(expected, name)
        error = value.std(ddof=1) / n_repeats**0.5
        slack = {"entropy": 0.0, "log_collision": 0.003}[name]  # a log of a mean is a little low
        assert abs(value.mean() - true[0]) < 4 * error + slack
        inside = (getattr(found.low, name) <= true) & (true <= getattr(found.high, name))
        assert inside.mean() > 0.92
    marginals = dist.marginals()
    error = marginals.std(axis=0, ddof=1) / n_repeats**0.5
    assert (np.abs(marginals.mean(axis=0) - truth.marginals()[0]) < 4.5 * error).all()
    guess = np.tile(truth.mode(), (n_repeats, 1))
    found = ls.expected_accuracy(dist, guess, metric="jaccard")
    value, low, high = found.value, found.low, found.high
    true = ls.expected_accuracy(truth, truth.mode(), metric="jaccard").value
    assert abs(value.mean() - true[0]) < 4 * value.std(ddof=1) / n_repeats**0.5
    assert ((low <= true) & (true <= high)).mean() > 0.92


@pytest.mark.parametrize("n_chains", [1, 2, 3, 10])
def test_the_largest_uniform_number_belongs_to_a_chain_with_weight(n_chains):
    weights = np.append(np.ones(n_chains), 0.0)[np.newaxis]
    shares = weights / weights.mean()
    chains = make_chains(0, 4, n_chains + 1, 0.5, n_samples=1)
    weighted = WeightedChains(chains, shares)
    for uniform in (0.0, 0.5, 1 - 2.0**-53):
        owners = weighted.choose_owners(np.full((1, n_chains + 1, 1), uniform))
        assert owners.min() >= 0
        assert owners.max() < n_chains


def test_strata_follow_the_weights():
    """A chain with nearly all the weight gets nearly all draws: entropies vary as with it alone."""
    chains = make_chains(0, 30, 10, 0.5, n_samples=1)
    weights = np.r_[0.991, np.full(9, 0.001)]
    mixed = repeated(chains, weights, 100).with_engine(engine="sampled", budget=200)
    alone = repeated(chains[:1] * 2, np.full(2, 0.5), 100).with_engine(engine="sampled", budget=200)
    assert mixed.profile().entropy.std() < 1.3 * alone.profile().entropy.std()


@pytest.mark.parametrize(
    ("route", "n_labels"), [("linear", 6), ("linear", 15), ("prefix", 6), ("mixed", 6)]
)
def test_left_to_itself(route, n_labels):
    chains = make_chains(2, n_labels, 3, route=route)
    weights = mixture_weights(np.random.default_rng(0), "rows", 5, 3)
    P = joints(chains, weights)
    dist, truth = ls.distributions.ChainMixture(chains, weights=weights), DenseDistribution(P)
    assert_allclose(dist.probabilities(), P, rtol=1e-12, atol=1e-16)
    assert_allclose(dist.marginals(), truth.marginals(), atol=1e-12)
    assert_allclose(dist._size_marginals(), truth._size_marginals(), atol=1e-12)
    assert_allclose(dist.profile().entropy, truth.profile().entropy, atol=1e-3 * n_labels)
    assert_array_equal(dist.mode(), truth.mode())
    assert_array_equal(ls.decide(dist, "f1").labelsets, ls.decide(truth, "f1").labelsets)
    assert_array_equal(ls.decide(dist, "jaccard").labelsets, ls.decide(truth, "jaccard").labelsets)
    taken = dist[[3, 1]]
    assert_allclose(taken.log_prob(truth.mode()[[3, 1]]), np.log(P.max(axis=1))[[3, 1]])


def test_log_probabilities_of_many_labels():
    chains = make_chains(1, 200, 3, n_samples=2)
    weights = [[0.5, 0.5, 0.0], [1e-30, 0.0, 1.0]]
    Y = np.random.default_rng(0).integers(0, 2, (2, 200))
    logs = np.array([chain.log_prob(Y) for chain in chains])
    expected = [
        np.logaddexp(logs[0, 0], logs[1, 0]) - np.log(2),
        np.logaddexp(logs[0, 1] + np.log(1e-30), logs[2, 1]),
    ]
    assert_allclose(ls.distributions.ChainMixture(chains, weights=weights).log_prob(Y), expected)


def test_equal_weights_change_no_bit():
    chains = make_chains(4, 7, 3)
    plain, equal = (
        ls.distributions.ChainMixture(chains),
        ls.distributions.ChainMixture(chains, weights=[1 / 3] * 3),
    )
    for engine in ("dense", "certified", "sampled"):
        one, other = (dist.with_engine(engine=engine, budget=50) for dist in (plain, equal))
        for name in FIELDS:
            assert_array_equal(getattr(one.profile(), name), getattr(other.profile(), name))
        assert_array_equal(one.marginals(), other.marginals())
    assert_array_equal(plain.sample(4, random_state=0), equal.sample(4, random_state=0))


def test_a_chain_given_twice_has_twice_the_weight():
    first, second = make_chains(5, 5, 2)
    twice = ls.distributions.ChainMixture([first, first, second])
    weighted = ls.distributions.ChainMixture([first, second], weights=[2 / 3, 1 / 3])
    assert_allclose(weighted.probabilities(), twice.probabilities(), rtol=1e-13)


def test_draws_of_users():
    chains = make_chains(6, 3, 2, n_samples=2)
    weights = [[0.9, 0.1], [0.0, 1.0]]
    dist = ls.distributions.ChainMixture(chains, weights=weights)
    drawn = dist.sample(20_000, random_state=0)
    codes = drawn @ (1 << np.arange(3))
    shares = np.array([np.bincount(row, minlength=8) / 20_000 for row in codes])
    assert np.abs(shares - dist.probabilities()).max() < 0.015


def test_members_and_temperatures():
    chains = make_chains(7, 4, 3, n_samples=300)
    weights = np.array([0.7, 0.2, 0.1])
    dist = ls.distributions.ChainMixture(chains, weights=weights)
    mixed = sum(
        w * member.probabilities() for w, member in zip(weights, dist._members, strict=True)
    )
    assert_allclose(dist.probabilities(), mixed, rtol=1e-12)
    tempered = dist.temper(1.6)
    P = joints([chain.temper(1.6) for chain in chains], weights)
    assert_allclose(tempered.probabilities(), P, rtol=1e-12)
    Y = dist.sample(1, random_state=1)[:, 0]
    assert_allclose(dist._tempered_log_prob(Y)(1.6), tempered.log_prob(Y), rtol=1e-12)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0], r"`weights` must have shape \(2,\), one for each chain, or \(5, 2\)"),
        (np.full((4, 2), 0.5), r"for each instance as well, got \(4, 2\)"),
        ([1.5, -0.5], "`weights` must be numbers >= 0"),
        ([np.nan, 1.0], "`weights` must be numbers >= 0"),
        ([0.5, 0.4], r"must sum to one for each instance, got 0\.9\. Divide them by their sum"),
        (["a", "b"], "`weights` must"),
    ],
)
def test_weights_that_are_none(weights, message):
    with pytest.raises(ls.InputError, match=message):
        ls.distributions.ChainMixture(make_chains(0, 3, 2), weights=weights)
