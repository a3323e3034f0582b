"""Tests of a mean: against loops, their level under the null, and what they need."""

import numpy as np
import oracles_estimation as oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, hypergeom, ttest_1samp

from labelsure.errors import InputError
from labelsure.metrics.mean_tests import MEAN_TESTS, permutation_bound

BETTING, BINOMIAL = MEAN_TESTS["exact"]["bounded"], MEAN_TESTS["exact"]["binary"]
STUDENT = MEAN_TESTS["approximate"]["bounded"]
TARGETS = st.sampled_from([0.3, 0.5, 0.8, 0.9, 0.99])
OUTCOMES = st.lists(st.floats(0, 1), max_size=40).map(np.array)


@given(OUTCOMES, TARGETS, st.sampled_from([0.05, 0.0125, 0.3]))
def test_betting_is_that_of_the_loop(outcomes, target, error):
    expected = 1 / oracles.largest_capital(outcomes, target, error)
    # Stakes come from a table, so they are those of the loop only nearly.
    assert BETTING.p_value(outcomes, target, error) == pytest.approx(expected, rel=0.02)


@given(OUTCOMES, st.integers(0, 60), TARGETS, st.sampled_from([0.05, 0.3]))
def test_betting_without_replacement_is_that_of_the_loop(outcomes, n_more, target, error):
    n_all = len(outcomes) + n_more
    expected = 1 / oracles.largest_capital(outcomes, target, error, n_all)
    found = BETTING.p_value(outcomes, target, error, n_all)
    assert found == pytest.approx(expected, rel=0.02, abs=1e-12)


@given(st.integers(1, 60), st.integers(0, 60), TARGETS)
def test_exact_binomial_is_that_of_the_loop(n, hits, target):
    outcomes = (np.arange(n) < hits).astype(float)
    expected = oracles.binomial_cdf(n - min(hits, n), n, 1 - target)
    assert BINOMIAL.p_value(outcomes, target, 0.05) == pytest.approx(expected, rel=1e-8)


@given(st.lists(st.floats(0, 1), min_size=30, max_size=60).map(np.array), TARGETS)
def test_students_p_value_is_that_of_scipy(outcomes, target):
    if outcomes.std() > 1e-6:
        expected = ttest_1samp(outcomes, target, alternative="greater").pvalue
        found = STUDENT.p_value(outcomes, target, 0.05)
        assert found == pytest.approx(expected, rel=1e-6, abs=1e-12)
        bound = STUDENT.lower_bound(outcomes, min(found, 0.5))
        if 0.05 < target < 1 and 1e-6 < found < 0.5:
            assert bound == pytest.approx(target, abs=0.0011)
            assert bound <= target + 1e-6
    assert STUDENT.p_value(outcomes[:29], target, 0.05) == 1


@pytest.mark.parametrize("test", [BETTING, BINOMIAL, STUDENT])
def test_nothing_shows_nothing(test):
    assert test.p_value(np.empty(0), 0.9, 0.05) == 1
    assert test.lower_bound(np.empty(0), 0.05) == 0


@given(st.integers(1, 60), st.integers(0, 60), st.sampled_from([0.05, 0.2]))
def test_the_exact_bound_is_that_of_the_loop(n, hits, error):
    outcomes = (np.arange(n) < hits).astype(float)
    expected = oracles.binomial_bound(min(hits, n), n, error)
    assert BINOMIAL.lower_bound(outcomes, error) == pytest.approx(expected, abs=1e-9)


@given(st.integers(0, 10**6))
def test_all_targets_up_to_the_bound_are_shown_and_the_next_one_is_not(seed):
    outcomes = np.random.default_rng(seed).beta(8, 2, size=60)
    bound = BETTING.lower_bound(outcomes, 0.05)
    shown = [BETTING.p_value(outcomes, k / 1000, 0.05) <= 0.05 for k in range(1, 1000)]
    n_bound = round(bound * 1000)
    assert all(shown[:n_bound])
    assert not shown[n_bound]
    assert bound < outcomes.mean()


def test_outcomes_of_one_show_all_but_the_last_target():
    assert BETTING.lower_bound(np.ones(50_000), 0.05) == 0.999
    assert BETTING.lower_bound(np.zeros(10), 0.05) == 0


@pytest.mark.jit_only
@pytest.mark.parametrize(
    ("draw", "mean", "n"),
    [
        (lambda rng, size: rng.beta(90, 10, size), 0.9, 2000),  # little variance
        (lambda rng, size: rng.choice([0.0, 0.5, 1.0], size, p=[0.15, 0.1, 0.75]), 0.8, 200),
        (lambda rng, size: (rng.random(size) < 0.9).astype(float), 0.9, 200),
        (lambda rng, size: rng.choice([0, 0.95], size, p=[0.02, 0.98]), 0.931, 200),  # rare losses
    ],
)
@pytest.mark.slow
def test_a_false_mean_is_shown_no_more_often_than_allowed(draw, mean, n):
    rng, n_repeats, error = np.random.default_rng(0), 4000, 0.05
    samples = draw(rng, (n_repeats, n))
    n_shown = sum(BETTING.p_value(sample, mean, error) <= error for sample in samples)
    assert n_shown <= binom.ppf(0.999, n_repeats, error)
    assert n_shown > 0  # it has a chance to be wrong
    bounds = [BETTING.lower_bound(sample, error) for sample in samples[:300]]
    assert sum(bound > mean for bound in bounds) <= binom.ppf(0.999, 300, error)


@pytest.mark.jit_only
def test_a_false_mean_of_a_population_is_shown_no_more_often_than_allowed():
    rng, n_repeats, error = np.random.default_rng(0), 2000, 0.05
    for n, n_all in ((30, 60), (55, 60), (20, 400)):
        everything = rng.choice([0.0, 0.9, 1.0], n_all, p=[0.4, 0.1, 0.5])
        samples = [rng.choice(everything, n, replace=False) for _ in range(n_repeats)]
        mean = everything.mean()
        n_shown = sum(BETTING.p_value(x, mean, error, n_all) <= error for x in samples)
        assert 0 < n_shown <= binom.ppf(0.999, n_repeats, error)
        # What has been drawn is no longer in doubt: bounds are higher than for independent draws.
        bounds = [[BETTING.lower_bound(x, error, m) for x in samples[:100]] for m in (0, n_all)]
        assert np.mean(bounds[1]) > np.mean(bounds[0]) + 0.01 * (n > 20)


@pytest.mark.jit_only
def test_an_order_that_depends_on_the_outcomes_breaks_betting():
    # Why policies shuffle: the same outcomes, the good ones first.
    rng, error = np.random.default_rng(0), 0.05
    samples = rng.beta(8, 2, (300, 200))
    sorted_p = [BETTING.p_value(np.sort(x)[::-1].copy(), 0.8, error) for x in samples]
    assert np.mean(np.array(sorted_p) <= error) > 0.9


@pytest.mark.jit_only
@pytest.mark.parametrize(
    ("draw", "target", "n"),
    [
        (lambda rng, size: rng.beta(93, 7, size), 0.9, 150),
        (lambda rng, size: rng.beta(1.7, 0.3, size), 0.8, 300),
        (lambda rng, size: rng.beta(1.7, 0.3, size), 0.82, 1500),
    ],
)
def test_betting_shows_what_bounds_of_the_range_alone_cannot(draw, target, n):
    rng, error = np.random.default_rng(0), 0.0125
    samples = draw(rng, (200, n))
    shown = np.mean([BETTING.p_value(sample, target, error) <= error for sample in samples])
    loss, allowed = 1 - samples.mean(axis=1), 1 - target
    hoeffding = loss * np.log(loss / allowed) + (1 - loss) * np.log((1 - loss) / target)
    by_range = np.mean(np.exp(-n * hoeffding) <= error)
    assert shown > by_range + 0.3


def test_the_binomial_takes_zeros_and_ones_alone():
    BETTING.check(np.array([0.5]))
    BINOMIAL.check(np.array([0.0, 1.0]))
    with pytest.raises(InputError, match="outcome"):
        BINOMIAL.check(np.array([1.0, 0.5]))


VALUES = st.lists(st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0, 7.0]), min_size=1, max_size=6)


@given(VALUES.map(np.array), VALUES.map(np.array))
def test_the_permutation_bound_is_above_the_exact_tail(reference, batch):
    bound = permutation_bound(reference, batch)
    assert bound >= oracles.permutation_tail(reference, batch) * (1 - 1e-9)
    assert bound <= 1


@pytest.mark.parametrize("n_ones", [150, 170, 200, 290])
def test_the_permutation_bound_is_close_far_out(n_ones):
    batch = np.repeat([1.0, 0.0], [n_ones, 400 - n_ones])
    reference = np.repeat([1.0, 0.0], [300 - n_ones, 300 + n_ones])
    exact = 2 * hypergeom.sf(n_ones - 1, 1000, 300, 400)
    assert exact < permutation_bound(reference, batch) < 30 * exact
    assert permutation_bound(batch, reference) < 30 * exact  # either side


def test_the_permutation_bound_of_samples_far_apart_is_the_number_of_parts():
    bound = permutation_bound(np.arange(10.0), np.arange(1000.0, 1010.0))
    assert 2 / 184_756 <= bound < 6 / 184_756
