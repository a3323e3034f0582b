"""What is known along the paths of draws, for every labelset of a few labels, against loops."""

import math

import numpy as np
import oracles_engines as oracles
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import labelsure as ls
from labelsure._kernels import chain_paths
from labelsure.distributions._chains import WeightedChains
from labelsure.distributions._sampling import (
    PRIOR_DRAWS,
    DrawStreams,
    MeanEstimate,
    estimate_mean,
    mean_of_moments,
)

N_LABELS = 5
CODES = np.arange(2**N_LABELS)
ALL = ((CODES[:, np.newaxis] >> np.arange(N_LABELS)) & 1).astype(np.int8)


def linear_chains(seed, spread=1.5, n_chains=2):
    rng = np.random.default_rng(seed)
    return [
        ls.distributions.LinearChain(
            rng.permutation(N_LABELS),
            spread * rng.normal(size=(1, N_LABELS)),
            spread * rng.normal(size=(N_LABELS, N_LABELS)),
        )
        for _ in range(n_chains)
    ]


def prefix_chains(seed):
    return [
        ls.distributions.PrefixChain(c.order, c.conditional, c.n_samples)
        for c in linear_chains(seed)
    ]


KINDS = {"linear": linear_chains, "prefix": prefix_chains}


def conditional_of(chain):
    def conditional(position, prefix):
        given = np.array([prefix], dtype=np.int8).reshape(1, position)
        return float(chain.conditional(position, np.array([0]), given)[0])

    return conditional


def draw_every_labelset(chains):
    """Uniforms of 0 set a label, those of nearly 1 do not: (1, m, 2**L, L) draws."""
    uniforms = np.stack([1 - 1e-15 - ALL[:, c.order] * (1 - 1e-15) for c in chains])
    of_chain = np.arange(len(chains))[:, np.newaxis]
    owners = np.broadcast_to(of_chain, (1, len(chains), len(ALL)))
    return WeightedChains(chains).draw(owners, uniforms[np.newaxis])


@pytest.mark.parametrize("kind", KINDS)
def test_draws_know_how_far_their_own_probability_is_above_the_mean(kind):
    chains = KINDS[kind](1)
    drawn = draw_every_labelset(chains)
    unset = [oracles.path(chain.order, conditional_of(chain), 0)[2] for chain in chains]
    mean_logits = [
        sum(math.log(p / (1 - p)) for p in of_label) / len(chains)
        for of_label in zip(*unset, strict=True)
    ]
    for m, chain in enumerate(chains):
        assert_array_equal(drawn.draws[0, m], ALL)
        paths = [oracles.path(chain.order, conditional_of(chain), code) for code in CODES]
        Q = [math.exp(log_own) for log_own, _, _ in paths]
        assert_allclose(drawn.excess[0, m, :, 0], [excess for _, excess, _ in paths], atol=1e-12)
        of_mean = [
            sum((y - p) * mean for y, p, mean in zip(labelset, given, mean_logits, strict=True))
            for labelset, (_, _, given) in zip(ALL, paths, strict=True)
        ]
        assert_allclose(drawn.excess[0, m, :, 1], of_mean, atol=1e-12)
        # What the control variates rest on.
        for excess in drawn.excess[0, m].T:
            assert abs(math.fsum(Q * excess)) < 1e-12


@pytest.mark.parametrize("kind", KINDS)
def test_what_paths_expect_sums_to_marginals(kind):
    chains = KINDS[kind](2)
    drawn = draw_every_labelset(chains)
    Q = np.array([chain.joint()[0] for chain in chains])
    predicted = np.array([[1, 0, 0, 1, 1]], dtype=np.int8)
    sums = WeightedChains(chains).path_sums(drawn, predicted)[0]
    assert_allclose(np.einsum("ms,msk->mk", Q, sums[..., :2]), 0.0, atol=1e-12)
    for m, chain in enumerate(chains):
        given = [oracles.path(chain.order, conditional_of(chain), code)[2] for code in CODES]
        off = ALL - np.array(given)
        assert_allclose(sums[m, :, 1], off[:, predicted[0] == 1].sum(axis=1), atol=1e-12)
        assert_allclose(sums[m, :, 0], off[:, predicted[0] == 0].sum(axis=1), atol=1e-12)
        for k in (0, 1):
            assert_array_equal(sums[m, :, 2 + k], ALL[:, predicted[0] == k].sum(axis=1))
        assert_allclose(Q[m] @ np.array(given), Q[m] @ ALL, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_moments_of_paths_against_loops(kind):
    """The control of a label is what labels in doubt add to its logit, beyond expectation."""
    chains = KINDS[kind](2)
    weighted = WeightedChains(chains)
    drawn = draw_every_labelset(chains)
    moments = weighted.link_moments(drawn)[0]
    least, most = weighted.conditional_range()
    n_controls = 0
    for m, chain in enumerate(chains):
        unset = oracles.path(chain.order, conditional_of(chain), 0)[2]
        expected, of_control = np.zeros((2, 5, 5)), np.zeros(5)
        for code, y in enumerate(ALL):
            log_own, _, p = oracles.path(chain.order, conditional_of(chain), code)
            for j in range(5):
                c = 0.0
                for i in range(5):
                    if kind == "linear" and unset[i] * (1 - unset[i]) >= chain_paths.MIN_VARIANCE:
                        position = [int(np.flatnonzero(chain.order == a)[0]) for a in (j, i)]
                        c += chain.weights[position[0], position[1]] * (y[i] - p[i])
                expected[code % 2, :, j] += [p[j], c, p[j] ** 2, p[j] * c, c * c]
                of_control[j] += math.exp(log_own) * c
                n_controls += c != 0
            assert (least[0, m % least.shape[1]] <= np.array(p) + 1e-12).all()
            assert (most[0, m % most.shape[1]] >= np.array(p) - 1e-12).all()
        assert_allclose(moments[m], expected, atol=1e-12)
        assert_allclose(of_control, 0.0, atol=1e-12)
    assert (n_controls > 0) == (kind == "linear")


def test_means_of_moments_against_loops():
    """The multiples of one half of the draws are used for the other half."""
    rng = np.random.default_rng(0)
    p, c = rng.random((2, 3, 8)), rng.normal(size=(2, 3, 8))  # instances, strata, draws
    halves = [slice(0, None, 2), slice(1, None, 2)]
    moments = np.zeros((2, 3, 2, 5, 1))
    for h, half in enumerate(halves):
        products = (p, c, p * p, p * c, c * c)
        moments[:, :, h, :, 0] = np.stack([x[:, :, half].sum(axis=2) for x in products], axis=2)
    mean, variance = mean_of_moments(moments, 8)
    for i in range(2):
        multiples = []
        for half in halves:
            a, b = p[i, :, half], c[i, :, half]
            products = squares = pull = 0.0
            for k in range(3):
                for x, y in zip(a[k] - a[k].mean(), b[k] - b[k].mean(), strict=True):
                    products, squares = products + x * y, squares + y * y
                pull += (b[k] ** 2).sum() * PRIOR_DRAWS / 12
            multiples.append(products / (squares + pull))
        for k in range(3):
            rest = [p[i, k, s] - multiples[1 - s % 2] * c[i, k, s] for s in range(8)]
            assert_allclose(mean[i, k, 0], np.mean(rest), atol=1e-12)
            assert_allclose(variance[i, k, 0], np.var(rest, ddof=1) / 8, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("spread", [1.0, 100.0])
def test_probabilities_of_many_labelsets(kind, spread):
    """Also where products of odds are far beyond what a float holds."""
    chains = linear_chains(3, spread=spread, n_chains=3)
    kinds = [ls.distributions.PrefixChain(c.order, c.conditional, 1) for c in chains]
    given = chains if kind == "linear" else kinds
    found = WeightedChains(given).log_prob(ALL[np.newaxis], with_squared=True)[0]
    rows = np.zeros(len(ALL), dtype=int)
    for q, each in enumerate((chains, [c.temper(0.5) for c in chains])):
        by_chain = np.array([c.take(rows).log_prob(ALL) for c in each])
        truth = np.logaddexp.reduce(by_chain, axis=0) - math.log(3)
        seen = truth > (-700 if kind == "linear" else -15)  # a base learner's 1 - p may be 0
        assert_allclose(found[seen, q], truth[seen], rtol=1e-9, atol=1e-9)


@pytest.mark.jit_only
def test_a_product_of_many_odds_does_not_overflow():
    """Sixty certain labels of odds e**200 or e**-200 each."""
    base = np.where(np.arange(60) % 3 == 0, -200.0, 200.0)[np.newaxis]
    chain = ls.distributions.LinearChain(np.arange(60), base, np.zeros((60, 60)))
    Y = np.stack([(base[0] > 0), (base[0] < 0), np.ones(60, bool)]).astype(np.int8)
    truth = chain.take(np.zeros(3, dtype=int)).log_prob(Y)
    found = WeightedChains([chain]).log_prob(Y[np.newaxis])[0, :, 0]
    assert_allclose(found, truth, rtol=1e-12, atol=1e-12)


@pytest.mark.jit_only
@pytest.mark.parametrize(("logit", "n_labels"), [(0.0, 1100), (-20.0, 60)])
def test_a_probability_that_is_too_small_for_a_number_has_a_log(logit, n_labels):
    """The product of all odds plus 1 is too large for one; that of the odds set is too small."""
    base = np.full((1, n_labels), logit)
    chain = ls.distributions.LinearChain(np.arange(n_labels), base, np.zeros((n_labels, n_labels)))
    Y = np.ones((1, 1, n_labels), dtype=np.int8)
    found = WeightedChains([chain] * 2).log_prob(Y, with_squared=True)[0, 0]
    assert_allclose(found[0], -n_labels * math.log1p(math.exp(-logit)), rtol=1e-12)
    assert_allclose(found[1], -n_labels * math.log1p(math.exp(-2 * logit)), rtol=1e-12)
    assert_array_equal(WeightedChains([chain] * 2).log_prob(Y)[0, 0], found[:1])


@pytest.mark.parametrize("kind", KINDS)
def test_the_chains_with_squared_odds(kind):
    chains = KINDS[kind](4)
    squared = WeightedChains(chains).squared.chains
    for chain, own in zip(chains, squared, strict=True):
        conditional = oracles.squared_conditional(conditional_of(chain))
        truth = oracles.prefix_chain_joint(chain.order, conditional)
        assert_allclose(own.joint()[0], truth, atol=1e-12)


def test_streams_belong_to_instances():
    together, alone = DrawStreams(5, [0, 1], [2, 7]), DrawStreams(5, [3], [7])
    first = together.uniforms((3,))
    assert_array_equal(first[1], alone.uniforms((3,))[0])
    assert (first[0] != first[1]).all()
    later = together.uniforms((3,))
    assert (later != first).all()
    assert_array_equal(together[[1]].uniforms((2,)), alone[[0]].uniforms((5,))[:, 3:])
    assert (DrawStreams(5, [0], [2]).uniforms((3,), squared=True) != first[0]).all()
    assert (DrawStreams(6, [0], [2]).uniforms((3,)) != first[0]).all()


def test_controls_take_variance_away_and_leave_the_mean():
    rng = np.random.default_rng(0)
    control = rng.normal(size=(2000, 2, 40))
    values = 3.0 + 2.0 * control + 0.1 * rng.normal(size=control.shape)
    nothing = np.zeros(control.shape)
    found = estimate_mean(values, [control, nothing], [0.0, 0.0], np.zeros(2000))
    plain = values.mean(axis=(1, 2))
    assert found.value.std() < plain.std() / 10
    assert abs(found.value.mean() - 3.0) < 4.5 * found.value.std() / math.sqrt(2000)
    assert_allclose((found.error**2).mean(), found.value.var(), rtol=0.1)


def test_how_many_draws_are_needed():
    """Variance falls with the number of draws, what undrawn ends add with its square."""
    quantile = 1.959963984540054
    error, undrawn = np.array([0.3, 0.0]), np.array([0.2, 0.5])
    half = quantile * np.sqrt(error**2 + undrawn**2)
    growth = MeanEstimate(np.zeros(2), error, half).growth_needed(0.1)
    again = quantile * np.sqrt(error**2 / growth + undrawn**2 / growth**2)
    assert_allclose(again, 0.1)
