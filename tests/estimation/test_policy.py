"""`AcceptPolicy`: p-values and families against loops, and the object itself."""

import math
import warnings

import numpy as np
import oracles_estimation as oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import labelsure as ls
from labelsure.errors import InputError, UnknownNameError
from labelsure.selection import AcceptPolicy, TargetWarning
from labelsure.selection._thresholds import FAMILIES, exact_binomial, hoeffding_bentkus, n_needed


@given(st.integers(1, 60), st.integers(0, 240), st.sampled_from([0.5, 0.8, 0.9, 0.99]))
def test_hoeffding_bentkus_is_that_of_the_loop(n, quarters, target):
    total = min(quarters / 4, n)
    expected = oracles.hoeffding_bentkus(total / n, n, target)
    assert hoeffding_bentkus(total, n, target) == pytest.approx(expected, rel=1e-8, abs=1e-300)


@given(st.integers(1, 60), st.integers(0, 60), st.sampled_from([0.5, 0.8, 0.99]))
def test_exact_binomial_is_that_of_the_loop(n, hits, target):
    hits = min(n, hits)
    expected = oracles.binomial_cdf(n - hits, n, 1 - target)
    assert exact_binomial(hits, n, target) == pytest.approx(expected, rel=1e-8)


def test_nothing_accepted_shows_nothing():
    assert hoeffding_bentkus(0, 0, 0.9) == 1
    assert exact_binomial(0, 0, 0.9) == 1


@given(st.sampled_from([0.85, 0.9, 0.95, 1.0]), st.sampled_from([0.05, 0.0125]))
def test_as_many_as_needed_do_pass(mean, level):
    n = int(n_needed(mean, 0.8, level))
    assert hoeffding_bentkus(n * mean, n, 0.8) <= level * (1 + 1e-9)
    assert n_needed(0.8, 0.8, level) == np.inf
    assert n_needed(0.5, 0.8, level) == np.inf


@given(st.lists(st.sampled_from([0.001, 0.02, 0.5]), min_size=100, max_size=100))
def test_sequences_are_those_of_the_loop(p_values):
    family = FAMILIES["sequences"]
    grid = family.grid()
    starts = family.entries(grid, 0.8).tolist()
    expected = oracles.sequences(p_values, starts, 0.05)
    assert family.passed(np.array(p_values), grid, 0.8, 0.05).tolist() == expected


def test_grids_are_fixed():
    assert FAMILIES["bonferroni"].grid().tolist() == [round(k / 20, 12) for k in range(20)]
    assert FAMILIES["sequences"].grid().tolist() == [round(k / 100, 12) for k in range(100)]
    starts = FAMILIES["sequences"].grid()[FAMILIES["sequences"].entries(np.arange(100) / 100, 0.8)]
    assert starts.tolist() == [0.75, 0.8, 0.85, 0.9]


@pytest.fixture(scope="module")
def scored():
    rng = np.random.default_rng(0)
    score = rng.uniform(size=3000)
    return score, (rng.uniform(size=3000) < score).astype(float)


@pytest.mark.parametrize("family", ["sequences", "bonferroni"])
def test_accepts_from_the_threshold_on(scored, family):
    score, accuracy = scored
    policy = AcceptPolicy(0.8, outcome="binary", family=family).fit(score, accuracy)
    assert policy.reached_
    accepted = policy.accept(score)
    np.testing.assert_array_equal(accepted, score >= policy.threshold_)
    assert policy.coverage_ == accepted.mean()
    assert accuracy[accepted].mean() > 0.8
    assert policy.accept([policy.threshold_]).all()
    assert "keeps" in policy.message_
    assert policy.n_needed_ == 3000


def test_a_target_below_the_overall_mean_accepts_everything(scored):
    score, accuracy = scored
    policy = AcceptPolicy(0.4, outcome="binary").fit(score, accuracy)
    assert policy.threshold_ == 0
    assert policy.coverage_ == 1


def test_binary_needs_fewer_instances_than_bounded(scored):
    score, accuracy = scored
    binary, bounded = (
        AcceptPolicy(0.8, outcome=outcome).fit(score, accuracy) for outcome in ("binary", "bounded")
    )
    assert binary.coverage_ >= bounded.coverage_


def test_says_how_many_instances_it_would_take():
    rng = np.random.default_rng(0)
    score = np.full(60, 0.97)
    with pytest.warns(
        TargetWarning, match=r"Cannot show a mean accuracy of 0.9.*About \d+ would do"
    ):
        policy = AcceptPolicy(0.9).fit(score, rng.permutation(np.repeat([1.0, 0.88], 30)))
    assert not policy.reached_
    assert policy.coverage_ == 0
    assert not policy.accept([1.0]).any()
    assert 60 < policy.n_needed_ < math.inf
    n = int(policy.n_needed_)
    mean = float(policy.mean_accuracy_[0])
    # With so many of the same mean it does pass.
    assert AcceptPolicy(0.9).fit(np.full(n, 0.97), np.full(n, mean)).reached_


def test_says_when_no_number_of_instances_would_do():
    with pytest.warns(TargetWarning, match=r"more would not help: where.*at most 0.500"):
        policy = AcceptPolicy(0.9).fit(np.linspace(0, 0.99, 100), np.full(100, 0.5))
    assert policy.n_needed_ == math.inf


def test_says_when_too_few_have_such_scores():
    with pytest.warns(TargetWarning, match=r"fewer than 10 of them have scores near 0.9 or above"):
        policy = AcceptPolicy(0.9).fit(np.full(100, 0.5), np.full(100, 0.5))
    assert policy.n_needed_ == math.inf


@given(st.integers(0, 10**6), st.sampled_from(["sequences", "bonferroni"]))
def test_never_asks_for_fewer_instances_than_there_are(seed, family):
    rng = np.random.default_rng(seed)
    score = rng.uniform(0.5, 1, size=80)
    with warnings.catch_warnings(action="ignore"):
        policy = AcceptPolicy(0.85, family=family).fit(score, np.clip(score + 0.1, 0, 1))
    assert policy.reached_ or policy.n_needed_ > 80


def test_table_of_targets_against_coverage(scored):
    policy = AcceptPolicy(0.8, outcome="binary").fit(*scored)
    table = policy.table()
    assert (np.diff(table["coverage"]) <= 1e-12).all()
    mine = table.set_index("target").loc[0.8]
    assert mine["threshold"] == policy.threshold_
    assert mine["coverage"] == policy.coverage_
    assert policy.table([0.7])["target"].tolist() == [0.7]
    alone = AcceptPolicy(0.7, outcome="binary").fit(*scored)
    assert policy.table([0.7])["threshold"].item() == alone.threshold_


@pytest.mark.filterwarnings("ignore::labelsure.TargetWarning")
@pytest.mark.parametrize("target", [0.8, 0.9999])
def test_saved_and_loaded(scored, target, tmp_path):
    policy = AcceptPolicy(target, outcome="binary", grid=[0.2, 0.7, 0.9]).fit(*scored)
    policy.save(tmp_path / "policy.labelsure")
    loaded = ls.load(tmp_path / "policy.labelsure")
    assert loaded.get_params() == policy.get_params()
    assert loaded.threshold_ == policy.threshold_
    assert loaded.coverage_ == policy.coverage_
    assert loaded.message_ == policy.message_
    assert loaded.table().equals(policy.table())


def test_is_a_scikit_learn_object(scored):
    policy = AcceptPolicy(0.7, 0.99)
    assert clone(policy).get_params() == policy.get_params()
    with pytest.raises(NotFittedError):
        policy.accept([0.5])


def test_messages(scored):
    def fails(message, error=InputError):
        return pytest.raises(error, match=message)

    score, accuracy = scored
    for name, value in (("target", 90), ("level", 1.0), ("target", None)):
        with fails(f"`{name}` must be a number between 0 and 1, both excluded, got {value}"):
            AcceptPolicy(**{name: value}).fit(score, accuracy)
    with fails("Unknown outcome 'binnary'. Did you mean 'binary'", UnknownNameError):
        AcceptPolicy(outcome="binnary").fit(score, accuracy)
    with fails("Unknown family 'holm'", UnknownNameError):
        AcceptPolicy(family="holm").fit(score, accuracy)
    with fails("`accuracy` must be 0 or 1 for outcome='binary', got 0.5"):
        AcceptPolicy(outcome="binary").fit([0.5], [0.5])
    with fails("`grid` must be a list of finite thresholds"):
        AcceptPolicy(grid=[np.inf]).fit(score, accuracy)
