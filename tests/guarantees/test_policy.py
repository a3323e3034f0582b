"""`AcceptPolicy`: p-values and families against loops, and the object itself."""

import re
import warnings
from itertools import product

import numpy as np
import oracles_estimation as oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import labelsure as ls
from labelsure.errors import InputError, UnknownNameError
from labelsure.guarantees._policy import (
    GRID,
    AcceptPolicy,
    TargetWarning,
    fallback_procedure,
    start_levels,
)


@given(
    st.lists(st.sampled_from([0.001, 0.004, 0.02, 0.046, 0.5]), min_size=100, max_size=100),
    st.sampled_from([0.3, 0.8, 0.97, 0.999]),
)
def test_rejected_thresholds_are_those_of_the_loop(p_values, target):
    for levels in (start_levels(GRID, target, 0.05), np.full(100, 0.0005)):
        assert levels.sum() == pytest.approx(0.05)
        expected = oracles.fallback(p_values, levels.tolist())
        assert fallback_procedure(lambda i, level: p_values[i], levels).tolist() == expected


def test_sequences_start_at_fixed_levels():
    assert GRID.tolist() == [round(k / 100, 12) for k in range(100)]
    levels = start_levels(GRID, 0.8, 0.05)
    assert {GRID[i]: round(levels[i], 6) for i in np.flatnonzero(levels)} == {
        0.8: 0.045,
        0.88: 0.005,
    }
    asked = []
    fallback_procedure(lambda i, level: asked.append((GRID[i], round(level, 6))) or 1.0, levels)
    assert asked == [(0.88, 0.005), (0.8, 0.045)]


@pytest.fixture(scope="module")
def scored():
    rng = np.random.default_rng(0)
    score = rng.uniform(size=3000)
    return score, (rng.uniform(size=3000) < score).astype(float)


@pytest.mark.parametrize("grid", [None, np.arange(20) / 20])
def test_accepts_from_the_threshold_on(scored, grid):
    score, accuracy = scored
    policy = AcceptPolicy(0.8, outcome="binary", grid=grid).fit(score, accuracy)
    assert policy.reached_
    accepted = policy.accept(score)
    np.testing.assert_array_equal(accepted, score >= policy.threshold_)
    assert policy.share_ == accepted.mean()
    assert accuracy[accepted].mean() > 0.8
    assert policy.accept([policy.threshold_]).all()
    assert "are accepted" in policy.message_


def test_a_target_below_the_overall_mean_accepts_everything(scored):
    score, accuracy = scored
    policy = AcceptPolicy(0.4, outcome="binary").fit(score, accuracy)
    assert policy.threshold_ == 0
    assert policy.share_ == 1


def test_binary_needs_fewer_instances_than_bounded(scored):
    score, accuracy = scored
    binary, bounded = (
        AcceptPolicy(0.8, outcome=outcome).fit(score, accuracy) for outcome in ("binary", "bounded")
    )
    assert binary.share_ >= bounded.share_


def test_says_what_is_within_reach():
    rng = np.random.default_rng(0)
    score = np.full(60, 0.97)
    with pytest.warns(
        TargetWarning,
        match=r"n = 60\)\. Within reach: 0\.8\d at 95% confidence, or 0\.9 at 70% confidence\.",
    ):
        policy = AcceptPolicy(0.9).fit(score, rng.permutation(np.repeat([1.0, 0.88], 30)))
    assert not policy.reached_
    assert policy.share_ == 0
    assert not policy.accept([1.0]).any()
    # With more of the same kind it does pass.
    again = rng.choice([1.0, 0.88], size=1000)
    assert AcceptPolicy(0.9).fit(np.full(1000, 0.97), again).reached_


@pytest.mark.parametrize("grid", [None, [0.3, 0.8]])
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_what_is_within_reach_is_what_most_refits_reach(grid, seed):
    """The highest target, and the highest confidence, that 45 of 50 refitted policies reach."""
    rng = np.random.default_rng(seed)
    score = rng.beta(2, 1.5, size=300)
    accuracy = (rng.uniform(size=300) < score).astype(float)
    settings = {"outcome": "binary", "grid": grid}
    with pytest.warns(TargetWarning) as caught:
        AcceptPolicy(0.95, **settings).fit(score, accuracy)
    draws = np.random.default_rng(0)
    order = np.random.default_rng(0).permutation(300)  # in which a policy sees its rows
    refits = [order[draws.integers(300, size=300)] for _ in range(50)]

    def reached(target, confidence):
        with warnings.catch_warnings(action="ignore"):
            policy = AcceptPolicy(target, confidence=confidence, **settings)
            labelled = [(score[rows], accuracy[rows]) for rows in refits]
            return sum(policy.fit(*pair).reached_ for pair in labelled) >= 45

    found = re.search(r"reach: (0\.\d+) at 95%", str(caught[0].message))
    highest = float(found[1])
    assert reached(highest, 0.95)
    assert not reached(round(highest + 0.01, 2), 0.95)
    levels = [level for level in (0.9, 0.8, 0.7, 0.6, 0.5) if reached(0.95, level)]
    level = re.search(r", or 0.95 at (\d+)% confidence", str(caught[0].message))
    assert (level and int(level[1])) == (round(100 * levels[0]) if levels else None)


def test_says_when_nothing_is_within_reach():
    with pytest.warns(TargetWarning, match=r"n = 100\)\. No lower target"):
        AcceptPolicy(0.9).fit(np.linspace(0, 0.99, 100), np.zeros(100))
    with pytest.warns(TargetWarning, match=r"n = 0\)\. No lower target"):
        AcceptPolicy(0.9).fit([], [])


def test_says_when_too_few_have_such_scores():
    with pytest.warns(TargetWarning, match=r"reach: 0\.4\d at 95%"):
        AcceptPolicy(0.9).fit(np.full(100, 0.5), np.full(100, 0.5))


@given(
    st.lists(
        st.tuples(st.sampled_from([0.1, 0.4, 0.40001, 0.9]), st.sampled_from([0.0, 1.0])),
        min_size=1,
        max_size=40,
    ),
    st.sampled_from([None, [0.4, 0.95]]),
)
@pytest.mark.filterwarnings("ignore::labelsure.TargetWarning")
def test_a_path_is_that_of_the_loop(pairs, grid):
    policy = AcceptPolicy(0.8, outcome="binary", grid=grid).fit(*zip(*pairs, strict=True))
    expected = oracles.accept_path(pairs, grid, 0.05)
    np.testing.assert_allclose(policy.path().to_frame(), expected, rtol=0, atol=1e-9)


def test_a_path_of_nothing():
    with warnings.catch_warnings(action="ignore"):
        policy = AcceptPolicy(0.8).fit([], [])
    with pytest.raises(InputError, match="at least one labelled row, got none"):
        policy.path()


@pytest.mark.filterwarnings("ignore::labelsure.TargetWarning")
@pytest.mark.parametrize("settings", [{"target": 0.8}, {"target": 0.9999}, {"share": 0.3}])
@pytest.mark.parametrize("grid", [[0.2, 0.7, 0.9], np.array([0.2, 0.7, 0.9])])
def test_saved_and_loaded(scored, settings, grid, tmp_path):
    policy = AcceptPolicy(**settings, outcome="binary", grid=grid).fit(*scored)
    policy.save(tmp_path / "policy.labelsure")
    loaded = ls.load(tmp_path / "policy.labelsure")
    for name, value in policy.get_params().items():
        np.testing.assert_array_equal(loaded.get_params()[name], value)
    for name in ("threshold_", "share_", "message_"):
        assert getattr(loaded, name) == getattr(policy, name)
    assert loaded.path().to_frame().equals(policy.path().to_frame())
    np.testing.assert_array_equal(loaded.accept(scored[0]), policy.accept(scored[0]))


@pytest.mark.filterwarnings("ignore::labelsure.TargetWarning")
@pytest.mark.parametrize("settings", [{"target": 0.8}, {"target": 0.9999}, {"share": 0.3}])
def test_saved_and_loaded_by_group(scored, settings, tmp_path):
    groups = np.arange(3000) % 2
    policy = ls.ByGroup(AcceptPolicy(**settings, outcome="binary")).fit(*scored, groups)
    policy.save(tmp_path / "policy.labelsure")
    loaded = ls.load(tmp_path / "policy.labelsure")
    assert loaded.estimator.get_params() == policy.estimator.get_params()
    for name in ("share_", "message_", "n_samples_", "reached_"):
        assert getattr(loaded, name) == getattr(policy, name)
    np.testing.assert_array_equal(
        loaded.accept(scored[0], groups), policy.accept(scored[0], groups)
    )


def test_is_a_scikit_learn_object(scored):
    policy = AcceptPolicy(0.7, confidence=0.99)
    assert clone(policy).get_params() == policy.get_params()
    with pytest.raises(NotFittedError):
        policy.accept([0.5])


def test_messages(scored):
    def fails(message, error=InputError):
        return pytest.raises(error, match=message)

    score, accuracy = scored
    for target, level, name, value in ((90, 0.9, "target", 90), (0.9, 1.0, "confidence", 1.0)):
        with fails(f"`{name}` .*got {value}"):
            AcceptPolicy(target, confidence=level).fit(score, accuracy)
    for share in (0, 1.5, "all"):
        with fails(f"`share` .*got {share!r}"):
            AcceptPolicy(share=share).fit(score, accuracy)
    with fails("Either `target` or `share` must be given, not both, got target=None"):
        AcceptPolicy().fit(score, accuracy)
    with fails("not both, got target=0.9 and share=0.5"):
        AcceptPolicy(0.9, share=0.5).fit(score, accuracy)
    with fails("A share needs at least one labelled row, got none."):
        AcceptPolicy(share=0.5).fit([], [])
    with fails("Unknown outcome 'binnary'. Did you mean 'binary'", UnknownNameError):
        AcceptPolicy(0.9, outcome="binnary").fit(score, accuracy)
    with fails("`accuracy` must be 0 or 1 for outcome='binary', got 0.5"):
        AcceptPolicy(0.9, outcome="binary").fit([0.5], [0.5])
    with fails("`grid` must be a list of finite thresholds"):
        AcceptPolicy(0.9, grid=[np.inf]).fit(score, accuracy)
    with fails("`groups` must have one entry for each of the 3000 rows, got shape"):
        ls.ByGroup(AcceptPolicy(0.8)).fit(score, accuracy, ["a"])
    grouped = ls.ByGroup(AcceptPolicy(share=0.8)).fit([0.1, 0.2], [0, 1], ["a", "b"])
    with fails("must be among those of `fit`, got 'c'. It had 'a', 'b'."):
        grouped.accept([0.5], ["c"])


@pytest.mark.parametrize("outcome", ["binary", "bounded"])
def test_a_share_refers_the_least_certain(scored, outcome):
    score, accuracy = scored
    policy = AcceptPolicy(share=0.8, outcome=outcome).fit(score, accuracy)
    accepted = policy.accept(score)
    assert accepted.sum() == 2400
    assert score[accepted].min() == policy.threshold_ > score[~accepted].max()
    assert policy.share_ == 0.8
    assert policy.reached_
    mean = accuracy[accepted].mean()
    assert mean - 0.03 < policy.bound_ < mean
    assert policy.message_ == str(policy)
    assert "80.0% of predictions are accepted" in str(policy)
    assert f"mean accuracy is at least {policy.bound_:.3f}" in str(policy)


def test_the_instance_that_sets_the_threshold_is_not_tested():
    score, accuracy = np.array([0.9, 0.8, 0.7, 0.1]), np.array([1.0, 1.0, 0.0, 0.0])
    policy = AcceptPolicy(share=0.75, outcome="binary").fit(score, accuracy)
    assert policy.threshold_ == 0.7
    assert policy.bound_ == pytest.approx(oracles.binomial_bound(2, 2, 0.05))


@given(st.lists(st.sampled_from([0.1, 0.4, 0.4, 0.9]), min_size=1, max_size=30), st.floats(0.05, 1))
def test_a_share_is_undercut_by_ties_alone(scores, share):
    policy = AcceptPolicy(share=share).fit(scores, np.ones(len(scores)))
    ranked = sorted(scores, reverse=True)
    n = next(k for k in range(1, len(scores) + 1) if k >= share * len(scores))
    last = ranked[n - 1]
    is_tied = scores.count(last) > 1 and last < ranked[0]
    accepted = [s > last if is_tied else s >= last for s in scores]
    assert policy.accept(scores).tolist() == accepted
    assert policy.share_ == sum(accepted) / len(scores)
    assert ("are referred" in str(policy)) == is_tied


def test_the_bound_of_a_share_holds_with_ties():
    """Two scores, the higher one less accurate: which is the threshold is a matter of chance."""
    rng, n, n_repeats = np.random.default_rng(0), 500, 4000
    is_high = rng.random((n_repeats, n)) < 0.5
    accuracy = (rng.random((n_repeats, n)) < np.where(is_high, 0.02, 0.98)).astype(float)
    missed = 0
    for high, values in zip(is_high, accuracy, strict=True):
        policy = AcceptPolicy(share=0.5, outcome="binary").fit(high * 1.0, values)
        accepted = policy.accept([0.0, 1.0])
        missed += policy.bound_ > np.array([0.98, 0.02])[accepted].mean()
    assert missed <= 243  # more than 5 % of 4,000 with a chance of one in a thousand


def test_each_group_has_the_policy_of_its_own_instances(scored):
    score, accuracy = scored
    groups = np.where(np.arange(3000) % 3 == 0, "small", "large")
    policy = ls.ByGroup(AcceptPolicy(0.7, outcome="binary")).fit(score, accuracy, groups)
    accepted = policy.accept(score, groups)
    n_accepted = 0
    for name in ("small", "large"):
        mine = groups == name
        alone = AcceptPolicy(0.7, outcome="binary").fit(score[mine], accuracy[mine])
        assert policy.parts_[name].threshold_ == alone.threshold_
        assert policy.parts_[name].bound_ == 0.7
        np.testing.assert_array_equal(accepted[mine], alone.accept(score[mine]))
        assert f"Group {name!r}: {alone.message_}" in str(policy)
        n_accepted += alone.accept(score[mine]).sum()
        assert policy.parts_[name].path().to_frame().equals(alone.path().to_frame())
    assert policy.share_ == pytest.approx(n_accepted / 3000)
    assert policy.reached_


def test_a_group_more_leaves_the_others_as_they_are():
    """With accuracies that are tested one after the other, whose order matters."""
    rng = np.random.default_rng(0)
    score = rng.uniform(size=900)
    accuracy = np.clip(score + rng.normal(0, 0.1, size=900), 0, 1)
    groups = np.array(["a", "b", "c"])[np.arange(900) % 3]
    everything = ls.ByGroup(AcceptPolicy(share=0.5)).fit(score, accuracy, groups)
    some = groups != "c"
    without = ls.ByGroup(AcceptPolicy(share=0.5)).fit(score[some], accuracy[some], groups[some])
    for name in ("a", "b"):
        mine, same = (policy.parts_[name] for policy in (everything, without))
        assert (mine.threshold_, mine.bound_) == (same.threshold_, same.bound_)


@pytest.mark.parametrize("missing", [None, np.nan])
def test_a_missing_group_is_no_group(missing):
    groups = np.array(["a", missing, "b"], dtype=object)
    with pytest.raises(InputError, match="group"):
        ls.ByGroup(AcceptPolicy(share=0.5)).fit([0.1, 0.2, 0.3], [1, 1, 1], groups)


def test_a_message_in_other_words_is_loaded(scored, tmp_path):
    """As a version has it that says the same in other words, or rounds another way."""
    policy = AcceptPolicy(0.8, outcome="binary").fit(*scored)
    policy.message_ = "In other words."
    policy.bound_ += 1e-13
    policy.save(tmp_path / "policy.labelsure")
    assert str(ls.load(tmp_path / "policy.labelsure")) == "In other words."


def test_one_group_that_fails_is_said(scored):
    score, accuracy = scored
    groups = np.where(np.arange(3000) < 20, "few", "many")
    with pytest.warns(TargetWarning, match="Group"):
        policy = ls.ByGroup(AcceptPolicy(0.8, outcome="binary")).fit(score, accuracy, groups)
    assert not policy.reached_
    assert not policy.accept(score[:20], groups[:20]).any()
    assert policy.accept(score[20:], groups[20:]).any()


def test_rows_sorted_by_score_are_shuffled():
    # Betting on sorted accuracies would show anything (see the tests of means).
    rng = np.random.default_rng(0)
    n_reached = 0
    for seed in range(20):
        value = rng.beta(8, 2, size=400)
        score = np.clip(value, 0.9, 1)  # a peek at the outcome, so that the order tells
        order = np.argsort(-score)
        with warnings.catch_warnings(action="ignore"):
            policy = AcceptPolicy(0.8, grid=[0.0], random_state=seed)
            n_reached += policy.fit(score[order], value[order]).reached_
    assert n_reached <= 4


def test_a_second_fit_has_the_groups_of_its_own_rows(scored):
    policy = ls.ByGroup(AcceptPolicy(0.7, outcome="binary"))
    policy.fit(*scored, np.arange(3000) % 3)
    policy.fit(*scored, np.arange(3000) % 2)
    assert list(policy.parts_) == ["0", "1"]
    assert policy.n_samples_ == 3000
    assert not hasattr(policy.estimator, "threshold_")


def test_labels_are_accepted_by_group():
    policy = ls.ByGroup(AcceptPolicy(share=0.5))
    score, groups = np.tile([0.9, 0.2, 0.4, 0.1], 25), np.tile(["a", "a", "b", "b"], 25)
    policy.fit(score, np.ones(100), groups)
    answers = ls.PartialLabelsets([[1, -1], [1, 0], [0, 0]])
    accepted = policy.accept_labels([0.9, 0.3, 0.5], answers, ["a", "a", "b"])
    assert accepted.values.tolist() == [[1, -1], [-1, -1], [0, 0]]
    with pytest.raises(InputError, match="one entry"):
        policy.accept_labels([0.9], answers, ["a"])


def test_groups_need_an_estimator_with_thresholds():
    with pytest.raises(InputError, match="`estimator` must be an AcceptPolicy or a LabelsetRegion"):
        ls.ByGroup(ls.LabelThresholds()).fit([0.1], [1], ["a"])


@given(st.integers(1, 300), st.integers(1, 200))
def test_a_share_accepts_the_smallest_number_that_is_at_least_it(n, in_200ths):
    """Without distinct scores tied; floating point must not add a row: 100 * .55 > 55."""
    policy = AcceptPolicy(share=in_200ths / 200).fit(np.arange(n), np.ones(n))
    assert round(policy.share_ * n) == -(-n * in_200ths // 200)


@given(st.lists(st.sampled_from([0.0, 1.0]), min_size=1, max_size=200))
@pytest.mark.parametrize("outcome", ["binary", "bounded"])
def test_messages_claim_no_more_than_what_is_proved(outcome, values):
    policy = AcceptPolicy(share=1.0, outcome=outcome).fit(np.arange(len(values)), values)
    printed = float(re.search(r"at least ([\d.]+) at", policy.message_)[1])
    assert printed == policy.bound_
    assert printed <= oracles.binomial_bound(sum(values[1:]), len(values) - 1, 0.05) + 1e-9 or (
        outcome == "bounded"
    )


def test_an_approximate_guarantee_accepts_more_and_says_so():
    """Where mean and target are near 1, as for Hamming, nothing distribution-free can pass."""
    rng = np.random.default_rng(0)
    score = rng.uniform(0.9, 1, size=300)
    accuracy = rng.beta(90, 10, size=300)
    exact, approximate = (
        AcceptPolicy(0.895, guarantee=guarantee) for guarantee in ("exact", "approximate")
    )
    with pytest.warns(TargetWarning):
        exact.fit(score, accuracy)
    approximate.fit(score, accuracy)
    assert approximate.share_ > 0.9
    assert "is approximately at least 0.895 at 95% confidence" in approximate.message_
    share = AcceptPolicy(share=0.5, guarantee="approximate").fit(score, accuracy)
    assert "is approximately at least 0.9" in share.message_
    with pytest.raises(UnknownNameError, match="Unknown guarantee"):
        AcceptPolicy(0.9, guarantee="none").fit(score, accuracy)


@pytest.mark.filterwarnings("ignore::labelsure.TargetWarning")
def test_an_approximate_guarantee_of_zeros_and_ones_is_the_binomial_test(scored):
    score, accuracy = (values[:300] for values in scored)
    found = [
        AcceptPolicy(0.8, outcome="binary", guarantee=guarantee).fit(score, accuracy)
        for guarantee in ("exact", "approximate")
    ]
    assert found[0].threshold_ == found[1].threshold_
    assert found[0].reached_


@pytest.mark.filterwarnings("ignore::labelsure.TargetWarning")
@pytest.mark.parametrize("n", [30, 40, 60, 100])
@pytest.mark.parametrize("size", [1, 2, 0], ids=["rows", "pairs", "unequal"])
def test_perfect_rows_prove_no_more_than_their_number_does(n, size):
    """If others are all wrong, n perfect draws come with probability target^n."""
    sizes = np.full(n, size) if size else 1 + np.arange(n) % 3
    clusters = None if size == 1 else np.repeat(np.arange(n), sizes)
    score = np.full(sizes.sum(), 0.97)
    for guarantee, target in product(("exact", "approximate"), (0.8, 0.9, 0.95, 0.99)):
        policy = AcceptPolicy(target, guarantee=guarantee, grid=[0.5], max_cluster_size=3)
        policy.fit(score, np.ones(sizes.sum()), clusters=clusters)
        assert not policy.reached_ or target**n <= 0.05
        assert policy.path().bound[0] <= 0.05 ** (1 / n)
