"""Certified and sampled answers against the dense truth: no interval may leave it out."""

import tracemalloc

import numpy as np
import oracles_engines as oracles
import oracles_trellis
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from strategies import as_prefix_chain, linear_chains, n_examples, summary_of

import labelsure as ls
from labelsure._kernels import labelset_search as search
from labelsure._kernels.labelset_search import Goals
from labelsure._runtime import limits as _limits
from labelsure.distributions._chains import WeightedChains
from labelsure.distributions._dense import DenseDistribution
from labelsure.distributions._enumeration import enumerate_chains
from labelsure.distributions.candidates import CANDIDATES, PAPER_CANDIDATES
from labelsure.labelsets.codes import codes_of
from labelsure.metrics.registry import EXACT

FIELDS = ("log_top", "log_runner_up", "entropy", "log_collision")
METRICS = ("exact", "hamming", "jaccard", "f1")
ROUNDING = 1e-10

STOPS = (
    {"budget": 0},
    {"budget": 1},
    {"budget": 5},
    {"budget": 60},
    {"tolerance": 0.2},
    {"tolerance": 0.01},
    {"tolerance": 0.0, "mass": 0.5},
    {"tolerance": 0.0, "mass": 0.99},
    {"tolerance": 0.0, "budget": 2**16},
)
"""Reasons to end a search: nothing, little or everything enumerated, good enough."""


# Chains: linear, the same through the route of any base learner, and ones that have exact ties and
# certain labels.


def rounded_chain(chain):
    """Whole log-odds, so that many labelsets tie."""
    return ls.distributions.LinearChain(chain.order, chain.base.round(), chain.weights.round())


def tied_chain(chain):
    """Conditionals rounded to quarters: many ties, and many that are 0 or 1."""

    def conditional(position, rows, prefixes):
        return np.round(4 * chain.conditional(position, rows, prefixes)) / 4

    return ls.distributions.PrefixChain(chain.order, conditional, chain.n_samples)


KINDS = {
    "linear": lambda chains: chains,
    "prefix": lambda chains: [as_prefix_chain(chain) for chain in chains],
    "tied": lambda chains: [tied_chain(chain) for chain in chains],
    "mixed": lambda chains: [tied_chain(chains[0]), *chains[1:]],
}

LINEAR = {
    "linear": lambda chains: chains,
    "rounded": lambda chains: [rounded_chain(chain) for chain in chains],
}
"""Chains that can be enumerated; the engine "certified" refuses others."""

chain_settings = st.tuples(
    st.integers(0, 10**6),
    st.integers(1, 9),
    st.integers(1, 4),
    st.sampled_from([0.0, 0.1, 1.0, 4.0]),
)


def truth_of(chains):
    """All probabilities; the dense engine itself is tested against loops elsewhere."""
    return DenseDistribution(ls.distributions.ChainMixture(chains, engine="dense").probabilities())


# What must hold.


def assert_between(low, value, high):
    slack = ROUNDING * (1 + np.abs(np.where(np.isfinite(value), value, 0.0)))
    assert (low <= value + slack).all()
    assert (value <= high + slack).all()


def assert_profile_encloses(profile, truth):
    for name in FIELDS:
        low, high = getattr(profile.low, name), getattr(profile.high, name)
        assert_between(low, getattr(truth, name), high)
        assert_between(low, getattr(profile, name), high)


def assert_candidates_enclose(dist, dense, stop):
    names = [*CANDIDATES]
    few = dist.with_engine(engine="certified", **stop)
    found = ls.confidence(few, names, bounds=True)
    truth = ls.confidence(dense, names)
    for name in names:
        assert_between(found[f"{name}_low"], truth[name], found[f"{name}_high"])
        assert_between(found[f"{name}_low"], found[name], found[f"{name}_high"])


def assert_expectations_enclose(dist, dense, stop, seed):
    few = dist.with_engine(engine="certified", **stop)
    n, n_labels = len(dense), dense.n_labels
    random = np.random.default_rng(seed).integers(0, 2, size=(n, n_labels))
    for Y in (random, np.zeros_like(random)):
        for metric in (*METRICS, cost_of_errors):
            found = ls.expected_accuracy(few, Y, metric=metric, empty=0.7)
            truth = ls.expected_accuracy(dense, Y, metric=metric, empty=0.7).value
            assert_between(found.low, truth, found.high)
            assert_between(found.low, found.value, found.high)


def cost_of_errors(tp, fp, fn, tn):
    """A metric below 0 and above 1."""
    return 3.0 * tp - 2.0 * fp - fn


def assert_top_encloses(dist, dense, k):
    """Rank by rank; labelsets said to be certain are the right ones but for ties."""
    best, truth = dist.top(k), dense.top(k)
    assert_between(best.probabilities, truth.probabilities, best.high)
    P = dense.probabilities()
    for row in range(len(dense)):
        certain = best.high[row] <= best.probabilities[row]
        codes = codes_of(best.labelsets[row, certain])
        assert_allclose(P[row, codes], truth.probabilities[row, certain], atol=1e-13)


def assert_gaps_hold(dist, dense, metrics=METRICS, empty=1.0):
    for metric in metrics:
        answer = ls.decide(dist, metric, empty=empty)
        decided, gap = answer.labelsets, answer.gap
        best = ls.decide(dense, metric, empty=empty).labelsets
        value = ls.expected_accuracy(dense, decided, metric=metric, empty=empty).value
        optimum = ls.expected_accuracy(dense, best, metric=metric, empty=empty).value
        assert (gap >= 0).all()
        assert (value + gap >= optimum - ROUNDING).all(), metric


def assert_all_enclosed(chains, stop, seed=0):
    dense = truth_of(chains)
    dist = ls.distributions.ChainMixture(chains, engine="certified", **stop)
    profile = dist.profile()
    assert (profile.method == "certified").all()
    assert_profile_encloses(profile, dense.profile())
    assert_candidates_enclose(dist, dense, stop)
    assert_expectations_enclose(dist, dense, stop, seed)
    for k in {1, min(2, dense.n_labels), min(7, 2**dense.n_labels)}:
        assert_top_encloses(dist, dense, k)
    assert_gaps_hold(dist, dense)


# Certified intervals.


@pytest.mark.parametrize("kind", LINEAR)
@given(chain=chain_settings, stop=st.sampled_from(STOPS))
@n_examples(25)
@pytest.mark.jit_only
def test_every_interval_has_the_truth_in_it(kind, chain, stop):
    assert_all_enclosed(LINEAR[kind](linear_chains(*chain)), stop, chain[0])


@pytest.mark.parametrize("kind", LINEAR)
@pytest.mark.parametrize("stop", [STOPS[i] for i in (0, 2, 5, 7, 8)], ids=str)
def test_every_interval_has_the_truth_in_it_small(kind, stop):
    """A part of the above that plain Python can do."""
    for seed, spread in enumerate((0.0, 1.0, 3.0)):
        assert_all_enclosed(LINEAR[kind](linear_chains(seed, 5, 2, spread, n_samples=2)), stop)


@pytest.mark.parametrize("spread", [0.2, 1.0, 4.0])
@pytest.mark.parametrize("n_chains", [1, 10])
@pytest.mark.jit_only
def test_profiles_of_up_to_sixteen_labels(spread, n_chains):
    for n_labels in (10, 14, 16):
        chains = linear_chains(n_labels, n_labels, n_chains, spread, n_samples=8)
        truth = truth_of(chains).profile()
        dist = ls.distributions.ChainMixture(chains, engine="certified", tolerance=0.0, budget=2000)
        stops = [{"budget": budget} for budget in (0, 1, 10, 300, 2000)]
        stops += [{"tolerance": 0.05}, {"tolerance": 1e-3}, {"mass": 0.5}, {"mass": 0.9}]
        for stop in stops:
            assert_profile_encloses(dist.with_engine(**stop).profile(), truth)


@pytest.mark.parametrize("n_labels", [15, 16])
@pytest.mark.jit_only
def test_everything_else_at_sixteen_labels(n_labels):
    for spread in (0.5, 2.0):
        chains = linear_chains(n_labels, n_labels, 3, spread, n_samples=4)
        for stop in ({"budget": 50}, {"budget": 3000}):
            assert_all_enclosed(chains, stop)


@given(
    seed=st.integers(0, 10**6),
    n_labels=st.integers(1, 5),
    spread=st.sampled_from([0.0, 1.0, 5.0]),
    eps=st.floats(1e-6, 1.0),
    n_more=st.integers(0, 40),
)
@n_examples(400)
def test_certificate_of_any_part(seed, n_labels, spread, eps, n_more):
    """All with eps or more and some others seen: eps may be above or below the mass left."""
    rng = np.random.default_rng(seed)
    P = np.exp(spread * rng.normal(size=2**n_labels))
    P /= P.sum()
    others = rng.permutation(np.flatnonzero(eps > P))[:n_more]
    seen = np.concatenate([P[eps <= P], P[others]])
    bounds = np.empty(search.N_BOUNDS)
    search.write_bounds(seen, eps, n_labels, bounds)
    intervals = bounds[:8].reshape(4, 2)
    assert_allclose(intervals, oracles.certified(seen, eps, n_labels), atol=1e-11)
    truth = np.array(
        [*oracles.two_largest(P), oracles_trellis.entropy(P), oracles_trellis.collision(P)]
    )
    assert_between(intervals[:, 0], truth, intervals[:, 1])


def test_thresholds_lie_above_and_below_the_mass_left():
    """So that the tests above see both cases of the formulas."""
    kinds = set()
    for budget in (0, 3, 10, 31, 32):
        chains = linear_chains(1, 5, 2, 1.5)
        dist = ls.distributions.ChainMixture(
            chains, engine="certified", tolerance=0.0, budget=budget
        )
        for _, known in dist._best(EXACT, 1.0):
            kinds |= set((known.largest_unseen < known.unseen_mass).tolist())
    assert kinds == {True, False}


@pytest.mark.parametrize("kind", LINEAR)
def test_everything_enumerated_is_exact(kind):
    chains = LINEAR[kind](linear_chains(3, 6, 2, 1.0))
    dist = ls.distributions.ChainMixture(chains, engine="certified", tolerance=0.0, budget=64)
    profile = dist.profile()
    truth = truth_of(chains).profile()
    for name in FIELDS:
        assert_allclose(getattr(profile.low, name), getattr(truth, name), atol=1e-9)
        assert_allclose(getattr(profile.high, name), getattr(truth, name), atol=1e-9)


def test_nothing_enumerated_says_what_must_be():
    chains = linear_chains(0, 8, 2, 1.0)
    dist = ls.distributions.ChainMixture(chains, engine="certified", budget=0)
    frame = ls.confidence(dist, bounds=True)
    for name in ("SE", "CE", "GI", "CS"):  # of the others a beam search knows more
        assert_allclose(frame[f"{name}_low"], 0, atol=1e-12)
        assert_allclose(frame[f"{name}_high"], 1, atol=1e-9)
    found = ls.expected_accuracy(dist, metric="jaccard")
    value, low, high = found.value, found.low, found.high
    assert_allclose([low[0], value[0], high[0]], [0, 0.5, 1], atol=1e-9)


@pytest.mark.parametrize("kind", LINEAR)
@pytest.mark.parametrize("spread", [0.0, 0.3, 1.0, 3.0])
@pytest.mark.jit_only
def test_more_budget_never_widens_an_interval(kind, spread):
    chains = LINEAR[kind](linear_chains(7, 8, 3, spread))
    dist = ls.distributions.ChainMixture(chains, tolerance=0.0)
    Y = truth_of(chains).mode()
    before = None
    for budget in (0, 1, 2, 5, 13, 34, 89, 144, 233, 256, 1000):
        few = dist.with_engine(engine="certified", budget=budget)
        found, profile = ls.expected_accuracy(few, Y, metric="f1"), few.profile()
        ends = [(found.low, found.high)]
        ends += [(getattr(profile.low, name), getattr(profile.high, name)) for name in FIELDS]
        frame = ls.confidence(few, bounds=True)
        ends += [(frame[f"{name}_low"], frame[f"{name}_high"]) for name in ("HP", "TG", "SE", "GI")]
        if before is not None:
            for (low, high), (low_before, high_before) in zip(ends, before, strict=True):
                assert (low >= low_before - ROUNDING).all()
                assert (high <= high_before + ROUNDING).all()
        before = ends


@pytest.mark.jit_only
def test_modes_said_to_be_certain_are_right():
    """Without ties the mode is the only one; the intervals of p1 and p2 are then points."""
    n_certain = n_rows = 0
    for seed in range(12):
        chains = linear_chains(seed, 10, 3, (0.5, 1.0, 2.0)[seed % 3], n_samples=20)
        dense = truth_of(chains)
        for budget in (5, 50, 500):
            dist = ls.distributions.ChainMixture(
                chains, engine="certified", tolerance=0.0, budget=budget
            )
            best = dist.top(2)
            certain = (best.high == best.probabilities).all(axis=1)
            assert_array_equal(dist.mode()[certain], dense.mode()[certain])
            assert_array_equal(best.labelsets[certain], dense.top(2).labelsets[certain])
            profile = dist.profile()[certain]
            assert_array_equal(profile.low.log_top, profile.high.log_top)
            assert_allclose(profile.log_top, dense.profile().log_top[certain], atol=1e-9)
            assert_allclose(
                profile.log_runner_up, dense.profile().log_runner_up[certain], atol=1e-9
            )
            n_certain, n_rows = n_certain + certain.sum(), n_rows + len(certain)
    assert n_rows / 4 < n_certain < n_rows  # both cases were met


def test_prefix_route_against_loops():
    """From the conditionals themselves, with certain labels and ties."""

    def conditional(position, rows, prefixes):
        table = np.array([[0.0, 0.5], [0.25, 1.0], [0.5, 0.5], [1.0, 0.75]])
        last = prefixes[:, -1] if position else np.zeros(len(rows), dtype=int)
        return table[position, last]

    orders = [[2, 0, 3, 1], [1, 3, 0, 2]]
    dist = ls.distributions.ChainMixture(
        [ls.distributions.PrefixChain(order, conditional, 1) for order in orders],
        engine="dense",
    )

    def one(position, prefix):
        return float(conditional(position, [0], np.array([prefix], dtype=int))[0])

    joints = [oracles.prefix_chain_joint(order, one) for order in orders]
    P = [sum(pair) / 2 for pair in zip(*joints, strict=True)]
    profile = dist.profile()
    first, second = oracles.two_largest(P)
    assert_allclose(profile.top, first)
    assert_allclose(profile.runner_up, second)
    assert_allclose(profile.entropy, oracles_trellis.entropy(P), atol=1e-10)
    assert_allclose(profile.collision, oracles_trellis.collision(P), atol=1e-10)
    for metric in (oracles_trellis.jaccard, oracles_trellis.hamming):
        value = ls.expected_accuracy(dist, [[1, 0, 0, 1]], metric=metric.__name__).value
        assert_allclose(value, oracles_trellis.expected(P, metric, 9, 4), atol=1e-10)


@pytest.mark.jit_only
def test_odds_that_would_overflow_are_searched_all_the_same():
    chains = linear_chains(2, 6, 2, 900.0)
    assert_all_enclosed(chains, {"budget": 20})


def test_bounds_hold_beyond_what_an_integer_counts():
    """Seventy labels, of which only four are in doubt: the truth is known."""
    base = np.full((1, 70), -60.0)
    base[0, [3, 20, 40, 69]] = [0.0, 1.0, -1.0, 0.5]
    chain = ls.distributions.LinearChain(np.arange(70)[::-1], base[:, ::-1], np.zeros((70, 70)))
    dist = ls.distributions.ChainMixture([chain])
    truth = ls.IndependentLabels(1 / (1 + np.exp(-base))).profile()
    profile = dist.profile()
    assert_array_equal(profile.method, ["certified"])
    assert_profile_encloses(profile, truth)
    assert_allclose(profile.high.entropy, profile.low.entropy, atol=1e-6)
    assert_array_equal(np.flatnonzero(dist.mode()[0]), [20, 69])


@pytest.mark.parametrize("empty", [0.0, 1.0])
@pytest.mark.jit_only
def test_gaps_hold_however_little_was_seen(empty):
    for seed in range(6):
        chains = linear_chains(seed, (4, 7)[seed % 2], 2, 1.0, n_samples=20)
        dense = truth_of(chains)
        for budget in (1, 3, 6, 10, 20, 40):
            dist = ls.distributions.ChainMixture(
                chains, engine="certified", tolerance=0.0, budget=budget
            )
            assert_gaps_hold(dist, dense, (*METRICS, cost_of_errors), empty)


def test_half_of_the_mass_can_decide_every_label():
    """Two labels certain, one a coin, one labelset seen: ones outnumber zeros among the seen."""
    chain = ls.distributions.LinearChain([0, 1, 2], [[50.0, 50.0, 0.0]], np.zeros((3, 3)))
    dist = ls.distributions.ChainMixture([chain], engine="certified", tolerance=0.0, budget=1)
    assert_array_equal(ls.decide(dist, "hamming").labelsets[:, :2], [[1, 1]])
    assert_gaps_hold(dist, truth_of([chain]))


# Sampling.


def repeated(chains, times):
    """The first instance again and again: as many independent samples in one batch.

    Equal instances get equal draws, so that these differ by a millionth.
    """
    off = 1e-6 * np.random.default_rng(0).normal(size=(times, chains[0].order.size))
    return [ls.distributions.LinearChain(c.order, c.base[:1] + off, c.weights) for c in chains]


SAMPLED_CASES = {
    "flat chain": (10, 1, 0.3),
    "two chains": (8, 2, 1.0),
    "five concentrated chains": (12, 5, 2.0),
}


@pytest.mark.parametrize("case", SAMPLED_CASES)
@pytest.mark.jit_only
@pytest.mark.slow
def test_intervals_of_pure_sampling_cover(case):
    """At least 93% of 1,000 repeats, of level 95% from 1,000 draws."""
    chains = repeated(linear_chains(11, *SAMPLED_CASES[case], n_samples=1), 1000)
    truth = truth_of(chains).profile()
    dist = ls.distributions.ChainMixture(chains, engine="sampled", budget=1000, random_state=5)
    profile = dist.profile()
    assert set(profile.method) == {"sampled"}
    for name in ("entropy", "log_collision"):
        low, high = getattr(profile.low, name), getattr(profile.high, name)
        value = getattr(truth, name)
        assert ((low <= value) & (value <= high)).mean() >= 0.93
    # What no draw can be wrong about.
    assert (profile.low.log_top <= truth.log_top + ROUNDING).all()
    assert (profile.high.log_top >= truth.log_top - ROUNDING).all()


@pytest.mark.jit_only
def test_intervals_of_sampled_expectations_cover():
    chains = linear_chains(12, 8, 3, 1.0, n_samples=1)
    dense = truth_of(chains)
    dist = ls.distributions.ChainMixture(repeated(chains, 400), engine="sampled", budget=1000)
    Y = np.repeat(dense.sample(1, random_state=0)[0], 400, axis=0)
    for metric in ("hamming", "jaccard", "f1"):
        found = ls.expected_accuracy(dist, Y, metric=metric)
        value, low, high = found.value, found.low, found.high
        truth = ls.expected_accuracy(dense, Y[:1], metric=metric).value
        # 95%, three standard errors less or more: intervals that always cover are too wide.
        assert 0.915 <= ((low <= truth) & (truth <= high)).mean() <= 0.985
        assert_unbiased(value, truth)


def assert_unbiased(values, truth):
    """A z-test; 4.5 standard errors happen once in 150,000 tests."""
    error = values.std(ddof=1) / np.sqrt(len(values))
    assert error > 0
    assert abs(values.mean() - truth) < 4.5 * error


@pytest.mark.parametrize("engine", ["sampled", "auto"])
@pytest.mark.parametrize("n_chains", [1, 3])
@pytest.mark.parametrize("spread", [0.5, 1.5])
@pytest.mark.jit_only
@pytest.mark.slow
def test_entropy_and_collision_are_unbiased(engine, n_chains, spread, monkeypatch):
    """Averages of many small samples, alone and beside what was enumerated."""
    monkeypatch.setattr(_limits, "FIRST_SEARCH", 3)
    chains = linear_chains(13, 9, n_chains, spread, n_samples=1)
    truth = truth_of(chains).profile()
    dist = ls.distributions.ChainMixture(
        repeated(chains, 6000),
        max_exact_labels=1,
        engine=engine,
        tolerance=0.0,
        budget=6,
    )
    profile = dist.profile()
    if engine == "sampled" or spread == 0.5:  # flat: the search ends before it finds one
        assert set(profile.method) == {"sampled"}
    else:
        assert set(profile.method) == {"certified+sampled"}
    assert_unbiased(profile.entropy, truth.entropy)
    assert_unbiased(profile.collision, truth.collision)


@pytest.mark.parametrize("engine", ["sampled", "auto"])
@pytest.mark.jit_only
def test_standard_errors_are_those_of_the_estimates(engine, monkeypatch):
    monkeypatch.setattr(_limits, "FIRST_SEARCH", 30)
    chains = repeated(linear_chains(13, 9, 3, 1.0, n_samples=1), 3000)
    to_the_end = {"tolerance": 0.0, "sampled_tolerance": 0.0, "budget": 60}
    dist = ls.distributions.ChainMixture(chains, max_exact_labels=1, engine=engine, **to_the_end)
    profile = dist.profile()
    assert_allclose((profile.entropy_error**2).mean(), profile.entropy.var(), rtol=0.15)
    assert_allclose((profile.collision_error**2).mean(), profile.collision.var(), rtol=0.15)


def test_unbiased_in_plain_python_too():
    chains = linear_chains(14, 4, 2, 1.0, n_samples=1)
    truth = truth_of(chains).profile()
    profile = ls.distributions.ChainMixture(
        repeated(chains, 400), engine="sampled", budget=4
    ).profile()
    assert_unbiased(profile.entropy, truth.entropy)
    assert_unbiased(profile.collision, truth.collision)


@pytest.mark.parametrize(
    ("spread", "gain", "of_collision"), [(0.5, 1.0, 0.9), (1.5, 1.1, 1.5), (2.5, 2.0, 3.0)]
)
@pytest.mark.jit_only
def test_enumeration_takes_variance_away(spread, gain, of_collision, monkeypatch):
    """Of a flat collision there is none to take: draws with squared odds nearly all weigh alike."""
    monkeypatch.setattr(_limits, "FIRST_SEARCH", 500)
    chains = repeated(linear_chains(15, 12, 3, spread, n_samples=1), 200)
    dist = ls.distributions.ChainMixture(
        chains, max_exact_labels=1, tolerance=0.0, sampled_tolerance=0.0
    )
    alone = dist.with_engine(engine="sampled", budget=500).profile()
    combined = dist.with_engine(
        engine="auto", budget=_limits.FIRST_SEARCH + 750
    ).profile()  # two thirds of these
    assert combined.entropy.std() < alone.entropy.std() / gain
    assert combined.collision.std() < alone.collision.std() / of_collision
    assert combined.entropy_error.mean() < alone.entropy_error.mean() / gain


@pytest.mark.parametrize(("spread", "budget"), [(1.5, 1000), (3.0, 1000), (5.0, 200)])
@pytest.mark.jit_only
def test_intervals_of_both_together_cover(spread, budget, monkeypatch):
    """Also where hardly any draw is new, so that the draws alone would claim to be sure."""
    monkeypatch.setattr(_limits, "FIRST_SEARCH", budget // 2)
    chains = linear_chains(17, 12, 3, spread, n_samples=1)
    truth = truth_of(chains).profile()
    to_the_end = {"tolerance": 0.0, "sampled_tolerance": 0.0, "budget": budget}
    dist = ls.distributions.ChainMixture(repeated(chains, 300), max_exact_labels=1, **to_the_end)
    profile = dist.profile()
    assert set(profile.method) == {"certified+sampled"}
    for name in ("entropy", "log_collision"):
        low, high, value = (getattr(p, name) for p in (profile.low, profile.high, truth))
        inside = (low <= value + ROUNDING) & (value <= high + ROUNDING)
        assert inside.mean() >= 0.91  # 95% less three standard errors of 300 repeats


def test_few_draws_claim_no_more_than_what_is_certain():
    chains = linear_chains(18, 8, 2, 1.0, n_samples=4)
    truth = truth_of(chains).profile()
    assert_profile_encloses(
        ls.distributions.ChainMixture(chains, engine="sampled", budget=10).profile(), truth
    )


def test_equal_rows_get_equal_answers_wherever_they_stand():
    """Three equal instances among others; log-odds that differ by rounding are equal."""
    for kind in KINDS:
        chains = KINDS[kind](linear_chains(7, 9, 3, 1.0, n_samples=4))
        rows = np.array([0, 2, 1, 2, 3, 2])
        for engine in ("auto", "sampled"):
            dist = ls.distributions.ChainMixture(
                chains, engine=engine, budget=400, max_exact_labels=1
            )[rows]
            answers = [
                dist.profile().entropy,
                dist.profile().collision,
                dist.marginals(),
                ls.expected_accuracy(dist, metric="jaccard").value,
                ls.decide(dist, "f1").labelsets,
                ls.decide(dist, "hamming").labelsets,
            ]
            for answer in answers:
                assert_array_equal(answer[1], answer[3])
                assert_array_equal(answer[1], answer[5])
            assert len(set(answers[0])) == 4
            alone = dist[5].profile().entropy
            assert_array_equal(alone, answers[0][5:])
    base = np.array([[1.0, 2.0], [1.0, 2.0]]) / 3
    base[1] = np.nextafter(base[1], 2)
    keys = WeightedChains([ls.distributions.LinearChain([0, 1], base, np.zeros((2, 2)))]).row_keys()
    assert keys[0] == keys[1]


def test_rows_and_seeds_get_draws_of_their_own():
    chains = repeated(linear_chains(16, 6, 2, 1.0, n_samples=1), 30)
    entropy = ls.distributions.ChainMixture(chains, engine="sampled", budget=10).profile().entropy
    assert len(set(entropy)) > 15
    again = ls.distributions.ChainMixture(chains, engine="sampled", budget=10).profile().entropy
    assert_array_equal(entropy, again)
    other = ls.distributions.ChainMixture(chains, engine="sampled", budget=10, random_state=1)
    assert (other.profile().entropy != entropy).any()


# What "auto" does, and says.


def widths(frame):
    names = PAPER_CANDIDATES
    return np.max([frame[f"{name}_high"] - frame[f"{name}_low"] for name in names], axis=0)


@pytest.mark.parametrize("spread", [0.3, 1.0, 3.0, 6.0])
@pytest.mark.parametrize("budget", [60, 2000])
@pytest.mark.jit_only
def test_auto_says_what_ran_where_dense_is_out_of_reach(spread, budget, monkeypatch):
    monkeypatch.setattr(_limits, "FIRST_SEARCH", budget // 3)
    chains = linear_chains(1, 16, 3, spread, n_samples=10)
    dist = ls.distributions.ChainMixture(chains, max_exact_labels=10, tolerance=0.01, budget=budget)
    truth = truth_of(chains).profile()
    profile, frame = dist.profile(), ls.confidence(dist, bounds=True)
    assert set(profile.method) <= {"sampled", "certified", "certified+sampled"}
    sampled = profile.method != "certified"
    assert (widths(frame)[~sampled] <= 0.01 * (1 + 1e-4)).all()
    assert_array_equal(profile.entropy_error > 0, sampled)
    assert_profile_encloses(profile[~sampled], truth[~sampled])
    for name in ("log_top", "log_runner_up"):  # guaranteed even where the rest is sampled
        assert_between(
            getattr(profile.low, name), getattr(truth, name), getattr(profile.high, name)
        )
    # Twice the sampling error is a level that all of ten rows may well keep; five times they must.
    assert (np.abs(profile.entropy - truth.entropy) <= 5 * profile.entropy_error + 0.2).all()


def test_auto_that_may_look_at_nothing_claims_nothing():
    dist = ls.distributions.ChainMixture(linear_chains(2, 8, 2, 1.0), max_exact_labels=4, budget=0)
    frame = ls.confidence(dist, bounds=True)
    assert set(dist.profile().method) == {"certified"}
    for name in ("SE", "CE", "GI", "CS"):  # of the others a beam search knows more
        assert_allclose(frame[f"{name}_low"], 0, atol=1e-12)
        assert_allclose(frame[f"{name}_high"], 1, atol=1e-9)


def test_dense_is_refused_where_it_is_out_of_reach():
    dist = ls.distributions.ChainMixture(linear_chains(2, 8, 2, 1.0), max_exact_labels=4)
    with pytest.raises(ls.TooLargeError, match="engine"):
        dist.with_engine(engine="dense").profile()
    with pytest.raises(ls.TooLargeError, match="the limit is 4 labels"):
        ls.expected_accuracy(dist.with_engine(engine="dense"), metric="jaccard")


@pytest.mark.jit_only
def test_top_is_certain_under_auto():
    chains = linear_chains(4, 15, 3, 2.0, n_samples=6)
    dist = ls.distributions.ChainMixture(chains, max_exact_labels=14)
    best, truth = dist.top(5), truth_of(chains).top(5)
    assert_array_equal(best.labelsets, truth.labelsets)
    assert_array_equal(best.high, best.probabilities)


@pytest.mark.parametrize("engine", ["auto", "certified"])
@given(chain=chain_settings, k=st.integers(1, 12), first_search=st.sampled_from([2, 20, 256]))
@n_examples(40)
@pytest.mark.jit_only
def test_the_most_probable_against_loops(engine, chain, k, first_search):
    """Probabilities are those of the labelsets listed, and `high` bounds what has that rank."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_limits, "FIRST_SEARCH", first_search)
        patch.setattr(_limits, "CHEAP_DENSE_LABELS", 0)
        dist = ls.distributions.ChainMixture(linear_chains(*chain), engine=engine, budget=300)
        k = min(k, 2**dist.n_labels)
        best, mode = dist.top(k), dist.mode()
    for row, P in enumerate(truth_of(linear_chains(*chain)).probabilities()):
        codes = codes_of(best.labelsets[row])
        assert len(set(codes.tolist())) == k
        assert_allclose(best.probabilities[row], P[codes], atol=1e-13)
        assert (np.diff(best.probabilities[row]) <= 0).all()
        expected = oracles.most_probable(P, k)
        assert_between(best.probabilities[row], P[expected], best.high[row])
        certain = best.high[row] == best.probabilities[row]
        assert_allclose(P[codes[certain]], P[expected][certain], atol=1e-13)
        of_mode = P[codes_of(mode[row : row + 1])[0]]
        assert of_mode <= P[codes[0]] + 1e-13
        if engine == "certified" or 4 * k <= first_search:  # both search equally long
            assert_allclose(of_mode, P[codes[0]], atol=1e-13)


@pytest.mark.jit_only
def test_the_most_probable_need_no_narrow_entropy():
    """A search for the best three ends as soon as these are certain, one for the profile later."""
    dist = ls.distributions.ChainMixture(linear_chains(4, 20, 3, 2.0, n_samples=6))
    n_seen = [
        enumerate_chains(dist._chains, Goals.of(width, 2.0, 2.0, 3), 20_000).seen.lengths
        for width in (2.0, dist._engine.tolerance)
    ]
    assert (n_seen[0] * 10 < n_seen[1]).all()


# Settings.


def of_every_kind():
    P = [[0.1, 0.2, 0.3, 0.4]]
    return {
        "dense": DenseDistribution(P),
        "independent": ls.IndependentLabels([[0.2, 0.6]]),
        "table": ls.LabelsetTable([[[0, 1], [1, 1]]], [[0.5, 0.5]]),
        "trellis": ls.distributions.TrellisDistribution([[[0.2]], [[0.3, 0.6]]], [[], [0]], [0, 1]),
        "chains": ls.distributions.ChainMixture(linear_chains(0, 2, 2, 1.0, n_samples=1)),
    }


@pytest.mark.parametrize("kind", of_every_kind())
@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ({"engine": "certifed"}, r"Unknown engine 'certifed'. Did you mean 'certified'\?"),
        ({"tolerance": 2}, r"`tolerance` must be a number in \[0, 1\], got 2"),
        ({"tolerance": "small"}, r"`tolerance` must be a number in \[0, 1\], got 'small'"),
        ({"tolerance": float("nan")}, r"`tolerance` must be a number in \[0, 1\], got nan"),
        ({"sampled_tolerance": 2}, r"`sampled_tolerance` must be a number in \[0, 1\], got 2"),
        ({"mass": -0.1}, r"`mass` must be a number in \[0, 1\], got -0.1"),
        ({"budget": 1.5}, r"`budget` must be a whole number >= 0, got 1.5"),
        ({"budget": -1}, r"`budget` must be a whole number >= 0, got -1"),
        ({"keep_top": -1}, r"`keep_top` must be a whole number >= 0, got -1"),
        ({"tolerence": 0.1}, r"Unknown setting 'tolerence'. Did you mean 'tolerance'\?"),
    ],
)
def test_wrong_settings_are_refused_by_every_kind(kind, chosen, message):
    with pytest.raises(ls.InputError, match=message):
        of_every_kind()[kind].with_engine(**chosen)


@pytest.mark.parametrize("kind", of_every_kind())
def test_right_settings_are_taken_by_every_kind(kind):
    dist = of_every_kind()[kind]
    chosen = {"engine": "certified", "tolerance": 0.1, "mass": 0.99, "budget": 10}
    assert len(dist.with_engine(**chosen).profile()) == 1


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ({"engine": "samples"}, "Did you mean 'sampled'"),
        ({"tolerance": -1}, "`tolerance` must be"),
        ({"mass": 1.1}, "`mass` must be"),
        ({"budget": None}, "`budget` must be"),
        ({"random_state": -1}, "`random_state` must be a whole number >= 0, got -1"),
        ({"random_state": None}, "`random_state` must be a whole number >= 0, got None"),
    ],
)
def test_wrong_defaults_are_refused_when_they_are_set(chosen, message):
    with pytest.raises(ls.InputError, match=message):
        ls.distributions.ChainMixture(linear_chains(0, 2, 1, 1.0), **chosen)


def test_defaults_are_those_of_the_distribution_and_with_engine_replaces_them():
    chains = linear_chains(5, 6, 2, 1.0)
    dist = ls.distributions.ChainMixture(chains, engine="certified", tolerance=0.0, budget=4)
    other = ls.distributions.ChainMixture(chains)
    same = other.with_engine(engine="certified", tolerance=0.0, budget=4).profile()
    for profile in (dist.profile(), dist[:].profile(), summary_of(dist).profile):
        assert_array_equal(profile.high.entropy, same.high.entropy)
        assert_array_equal(profile.method, same.method)
    assert set(dist.with_engine(engine="dense").profile().method) == {"exact"}
    assert (dist.with_engine(budget=60).profile().high.entropy < same.high.entropy).all()
    assert_array_equal(dist[[2, 0]].profile().high.entropy, same.high.entropy[[2, 0]])


def test_decisions_and_the_mode_behind_an_expectation_are_those_of_the_engine_that_was_set(
    monkeypatch,
):
    monkeypatch.setattr(_limits, "BEAM_WIDTH", 1)
    monkeypatch.setattr(_limits, "BEAM_LABELSETS", 1)
    dist = ls.distributions.ChainMixture(linear_chains(5, 6, 2, 1.0))
    chosen = {"engine": "certified", "tolerance": 0.0, "budget": 2}
    by_two = dist.with_engine(**chosen)
    for metric in METRICS:
        assert (ls.decide(by_two, metric).gap > 0).any()
        assert not ls.decide(dist, metric).gap.any()
        expected = ls.expected_accuracy(by_two, metric=metric).value
        of_mode = ls.expected_accuracy(by_two, by_two.mode(), metric=metric).value
        assert_array_equal(expected, of_mode)
    assert (by_two.top(4).high > dist.top(4).high).any()


def test_a_mass_that_was_seen_is_enough():
    dist = ls.distributions.ChainMixture(
        linear_chains(6, 9, 2, 1.5), engine="certified", tolerance=0.0
    )
    for mass in (0.3, 0.8, 0.99):
        for _, known in dist.with_engine(mass=mass)._best(EXACT, 1.0):
            assert (known.unseen_mass <= 1 - mass + ROUNDING).all()
    none = dist.with_engine(mass=0.0).profile().high.entropy  # any is enough: one round
    few = dist.with_engine(mass=0.3).profile().high.entropy
    assert (dist.with_engine(mass=None).profile().high.entropy < none).all()
    assert (few <= none).all()
    assert (dist.with_engine(mass=0.99).profile().high.entropy < few).all()


@pytest.mark.parametrize("kind", ["prefix", "mixed"])
def test_chains_that_are_not_linear_are_not_enumerated(kind):
    chains = KINDS[kind](linear_chains(0, 3, 2, 1.0))
    message = r"`engine` must be 'auto', 'dense' or 'sampled' .* got 'certified'"
    with pytest.raises(ls.InputError, match=message):
        ls.distributions.ChainMixture(chains, engine="certified")
    with pytest.raises(ls.InputError, match=message):
        ls.distributions.ChainMixture(chains).with_engine(engine="certified")


def test_no_instances_are_no_problem():
    for engine in ("dense", "certified", "sampled", "auto"):
        for kind in ("linear", "prefix")[: 1 + (engine != "certified")]:
            none = ls.distributions.ChainMixture(
                KINDS[kind](linear_chains(0, 16, 2, 1.0)), engine=engine
            )[:0]
            assert len(none.profile()) == 0
            assert none.mode().shape == (0, 16)
            assert none.top(3).labelsets.shape == (0, 3, 16)
            assert ls.expected_accuracy(none, metric="jaccard").value.shape == (0,)


@pytest.mark.jit_only
def test_memory_does_not_grow_with_the_number_of_instances(monkeypatch):
    """Joints are not kept beyond the instances at hand."""
    monkeypatch.setattr(_limits, "CACHED_JOINT_BYTES", 2**20)  # fewer than 40 instances at a time
    dist = ls.distributions.ChainMixture(
        linear_chains(0, 18, 10, spread=0.8, n_samples=160), engine="dense"
    )
    summary_of(dist[:2])  # what is compiled or read once is no part of it

    def peak(n_threads, n_samples):
        monkeypatch.setenv("LABELSURE_NUM_THREADS", str(n_threads))
        return peak_bytes(lambda: summary_of(dist[:n_samples]))

    # One thread's peak is the same in every run; those of two may or may not fall together.
    few, many = peak(1, 40), peak(1, 160)
    joint = 8 * 2**18
    assert joint < few < 6 * joint
    assert many < 1.15 * few
    assert peak(2, 160) < 2.15 * many


def peak_bytes(function):
    """Return the most memory that was taken at a time during a call."""
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
