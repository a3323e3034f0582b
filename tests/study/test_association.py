import numpy as np
import oracles_study as oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest
from strategies import n_examples

from labelsure.study.analyses import (
    difference,
    kendall_association,
    p_value,
    pearson_association,
)

small = st.lists(st.integers(0, 4), min_size=4, max_size=25)


@given(st.data())
def test_kendall_is_the_loop(data):
    x = data.draw(small)
    y = data.draw(st.lists(st.integers(0, 3), min_size=len(x), max_size=len(x)))
    found = kendall_association(np.array(x, float), np.array(y, float))
    if len(set(x)) == 1 or len(set(y)) == 1:
        assert np.isnan(found.value)
        assert np.isnan(found.influence).all()
    else:
        assert found.value == pytest.approx(oracles.kendall_tau_b(x, y))
        assert found.influence.mean() == pytest.approx(0, abs=1e-12)


@given(st.data())
def test_pearson_is_the_loop(data):
    x = data.draw(small)
    y = data.draw(st.lists(st.integers(0, 3), min_size=len(x), max_size=len(x)))
    found = pearson_association(np.array(x, float), np.array(y, float))
    if len(set(x)) == 1 or len(set(y)) == 1:
        assert np.isnan(found.value)
    else:
        assert found.value == pytest.approx(oracles.pearson_r(x, y), abs=1e-12)
        assert found.influence.mean() == pytest.approx(0, abs=1e-12)


def scored(rng, n):
    outcome = rng.integers(0, 4, n) / 3
    common = outcome + rng.normal(size=n)
    return common + rng.normal(size=n), common + rng.normal(size=n), outcome


@pytest.mark.parametrize(
    ("associate", "statistic"),
    [
        (kendall_association, oracles.kendall_tau_b),
        (pearson_association, oracles.pearson_r),
    ],
)
def test_influence_functions_give_the_jackknife_error(associate, statistic):
    a, b, outcome = scored(np.random.default_rng(3), 60)
    gap = difference(associate(a, outcome), associate(b, outcome))
    jackknife = oracles.jackknife_error(
        lambda x, y, z: statistic(x, z) - statistic(y, z),
        [list(a), list(b), list(outcome)],
    )
    assert gap[1] == pytest.approx(jackknife, rel=0.06)


@pytest.mark.parametrize("associate", [kendall_association, pearson_association])
def test_equal_correlations_are_rejected_as_often_as_the_level_says(associate):
    rng = np.random.default_rng(11)
    rejected = 0
    for _ in range(300):
        a, b, outcome = scored(rng, 150)
        rejected += p_value(*difference(associate(a, outcome), associate(b, outcome))) < 0.05
    # Between 3 and 8% is what the test is known to reach; 0.1% two-sided around that.
    assert binomtest(rejected, 300, 0.03, "less").pvalue > 0.001
    assert binomtest(rejected, 300, 0.08, "greater").pvalue > 0.001


def test_a_better_score_is_found_better():
    rng = np.random.default_rng(0)
    outcome = rng.normal(size=200)
    good, bad = outcome + rng.normal(size=200) / 2, rng.normal(size=200)
    gap = difference(kendall_association(good, outcome), kendall_association(bad, outcome))
    assert gap[0] > 0.3
    assert p_value(*gap) < 1e-6


def test_one_score_against_itself_and_a_certain_difference():
    x = np.arange(6.0)
    y = np.array([0.0, 1, 2, 3, 4, 5])
    same = kendall_association(x, y)
    assert p_value(*difference(same, same)) == 1
    turned = kendall_association(-x, y)
    gap = difference(same, turned)  # both are certain: 1 and -1
    assert gap == (pytest.approx(2), 0)
    assert p_value(*gap) == 0


def test_an_undefined_correlation_has_no_difference():
    x = np.arange(5.0)
    gap = difference(kendall_association(x, x), kendall_association(np.ones(5), x))
    assert np.isnan([*gap, p_value(*gap)]).all()


def test_pearson_of_tiny_scores_does_not_underflow():
    x = np.array([1e-300, 2e-300, 4e-300])
    found = pearson_association(x, np.array([1.0, 2, 4]))
    assert found.value == pytest.approx(1)


@n_examples(20)
@given(st.integers(2, 200), st.integers(0, 1000))
def test_order_of_the_instances_does_not_matter(n, seed):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=n), rng.integers(0, 3, n).astype(float)
    order = rng.permutation(n)
    straight, shuffled = kendall_association(x, y), kendall_association(x[order], y[order])
    np.testing.assert_allclose(straight.influence[order], shuffled.influence)
