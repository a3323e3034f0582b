"""Trellises against brute force, and laws at sizes where brute force ends."""

import numpy as np
import oracles_trellis as oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import summary_of

import labelsure as ls
from labelsure._runtime import limits as _limits
from labelsure.decisions._rules import _bound_by_covariances
from labelsure.distributions._answers import with_flips
from labelsure.distributions._base import LabelsetDistribution
from labelsure.labelsets.codes import codes_of, from_codes


def weighted(tp, fp, fn, tn):
    """A metric of one's own: misses cost twice as much as false alarms, true negatives count."""
    return (tp + 0.1 * tn) / (tp + fp + 2 * fn + 1)


METRICS = {
    "exact": oracles.exact,
    "hamming": oracles.hamming,
    "jaccard": oracles.jaccard,
    "f1": oracles.f1,
    weighted: weighted,
}


def grid_parents(n_labels, width, density):
    """The left and upper neighbours of a grid filled row by row, and the upper-left one."""
    parents = []
    for j in range(n_labels):
        left, up = j % width > 0, j >= width
        some = []
        if density >= 1:
            some += [j - 1] * left + [j - width] * up
        if density == 2 and left and up:
            some.append(j - width - 1)
        parents.append(some)
    return parents


def random_parents(rng, n_labels, reach):
    """Up to three of the positions within reach, in any order."""
    return [
        rng.permutation(np.arange(max(0, j - reach), j))[: rng.integers(4)].tolist()
        for j in range(n_labels)
    ]


def draw_probabilities(rng, values, shape):
    if values == "any":
        return rng.random(shape)
    if values == "certain":  # zeros and ones among the others
        return np.where(rng.random(shape) < 0.4, rng.integers(2, size=shape), rng.random(shape))
    return rng.choice([0.0, 0.25, 0.5, 0.5, 0.75], size=shape)  # ties


def random_trellis(seed, n_labels, reach, density=None, n_samples=2, values="any"):
    """A grid of width `reach`, or any parents that near where there is no density."""
    rng = np.random.default_rng(seed)
    if density is None:
        parents = random_parents(rng, n_labels, reach)
    else:
        parents = grid_parents(n_labels, reach, density)
    conditionals = [draw_probabilities(rng, values, (n_samples, 2 ** len(p))) for p in parents]
    return conditionals, parents, rng.permutation(n_labels)


def brute_force(conditionals, parents, order, row=0):
    return oracles.joint([table[row].tolist() for table in conditionals], parents, order)


def any_trellis(max_labels=6, values=("any", "certain", "ties"), n_samples=2):
    return st.builds(
        random_trellis,
        st.integers(0, 10**6),
        st.integers(1, max_labels),
        st.integers(1, 4),
        st.sampled_from([None, 0, 1, 2]),
        st.just(n_samples),
        st.sampled_from(values),
    )


def dense(dist):
    return ls.DenseDistribution(dist.probabilities())


# Every answer against brute force.


@given(any_trellis(max_labels=8))
def test_probabilities_and_log_prob(given_trellis):
    dist = ls.distributions.TrellisDistribution(*given_trellis)
    joints = np.array([brute_force(*given_trellis, row) for row in range(2)])
    np.testing.assert_allclose(dist.probabilities(), joints, atol=1e-15)
    for code in (0, 2**dist.n_labels - 1, 2**dist.n_labels // 3):
        Y = from_codes([code, code], dist.n_labels)
        np.testing.assert_allclose(np.exp(dist.log_prob(Y)), joints[:, code], rtol=1e-13)


@given(any_trellis())
def test_marginals_and_profile(given_trellis):
    dist = ls.distributions.TrellisDistribution(*given_trellis)
    profile, mode, marginals = dist.profile(), dist.mode(), dist.marginals()
    for row in range(2):
        P = brute_force(*given_trellis, row)
        first, second = oracles.ranking(P)[:2]
        np.testing.assert_allclose(marginals[row], oracles.marginals(P, dist.n_labels), atol=1e-14)
        assert codes_of(mode)[row] == first
        assert profile.top[row] == pytest.approx(P[first], rel=1e-12)
        assert profile.runner_up[row] == pytest.approx(P[second], rel=1e-12)
        assert profile.entropy[row] == pytest.approx(oracles.entropy(P), abs=1e-13)
        assert profile.collision[row] == pytest.approx(oracles.collision(P), rel=1e-12)
    assert (profile.log_runner_up <= profile.log_top).all()


@given(any_trellis(), st.integers(1, 64))
def test_top_is_the_ranking_of_all(given_trellis, k):
    dist = ls.distributions.TrellisDistribution(*given_trellis)
    k = min(k, 2**dist.n_labels)
    top = dist.top(k)
    for row in range(2):
        P = brute_force(*given_trellis, row)
        best = oracles.ranking(P)[:k]
        assert codes_of(top.labelsets[row]).tolist() == best
        np.testing.assert_allclose(top.probabilities[row], [P[c] for c in best], rtol=1e-11)
        assert (np.diff(top.probabilities[row]) <= 0).all()


@given(any_trellis(), st.sampled_from(list(METRICS)), st.sampled_from([0.0, 0.3, 1.0]), st.data())
def test_expected_accuracy(given_trellis, metric, empty, data):
    dist = ls.distributions.TrellisDistribution(*given_trellis)
    codes = [data.draw(st.integers(0, 2**dist.n_labels - 1)) for _ in range(2)]
    values = dist.expected(metric, from_codes(codes, dist.n_labels), empty=empty).value
    for row, code in enumerate(codes):
        P = brute_force(*given_trellis, row)
        by_hand = oracles.expected(P, METRICS[metric], code, dist.n_labels, empty)
        assert values[row] == pytest.approx(by_hand, abs=1e-13)


@given(any_trellis(), st.sampled_from([0.0, 0.3, 1.0]), st.data())
def test_expected_jaccard_of_all_flips(given_trellis, empty, data):
    """One sweep in both directions gives those of a labelset and of all that differ by a label."""
    dist = ls.distributions.TrellisDistribution(*given_trellis)
    codes = [data.draw(st.integers(0, 2**dist.n_labels - 1)) for _ in range(2)]
    guesses = with_flips(from_codes(codes, dist.n_labels))
    values = dist.expected("jaccard", guesses, empty=empty).value
    for row, code in enumerate(codes):
        P = brute_force(*given_trellis, row)
        flipped = [code, *(code ^ 1 << j for j in range(dist.n_labels))]
        by_hand = [oracles.expected(P, oracles.jaccard, c, dist.n_labels, empty) for c in flipped]
        np.testing.assert_allclose(values[row], by_hand, atol=1e-13)


@given(any_trellis())
def test_size_marginals(given_trellis):
    dist = ls.distributions.TrellisDistribution(*given_trellis)
    by_hand = [
        oracles.size_marginals(brute_force(*given_trellis, row), dist.n_labels) for row in range(2)
    ]
    np.testing.assert_allclose(dist._size_marginals(), by_hand, atol=1e-14)


@given(any_trellis())
def test_covariance_sums(given_trellis):
    dist = ls.distributions.TrellisDistribution(*given_trellis)
    by_hand = [
        oracles.covariance_sums(brute_force(*given_trellis, row), dist.n_labels) for row in range(2)
    ]
    np.testing.assert_allclose(dist._covariance_sums(), by_hand, atol=1e-14)


@given(any_trellis(max_labels=4))
def test_no_prediction_of_a_size_exceeds_the_bound_by_covariances(given_trellis):
    dist = ls.distributions.TrellisDistribution(*given_trellis)
    n_labels = dist.n_labels
    bounds = _bound_by_covariances(dist.marginals(), dist._covariance_sums())
    for row in range(2):
        P = brute_force(*given_trellis, row)
        by_hand = [oracles.jaccard_bound(P, k, n_labels) for k in range(1, n_labels + 1)]
        np.testing.assert_allclose(bounds[row], by_hand, atol=1e-12)
        for code in range(1, 2**n_labels):
            value = oracles.expected(P, oracles.jaccard, code, n_labels)
            assert value <= by_hand[oracles.size(code) - 1] + 1e-12


@given(any_trellis(max_labels=5, values=("any", "certain")), st.sampled_from(list(METRICS)))
def test_decisions_are_those_of_all_probabilities(given_trellis, metric):
    dist = ls.distributions.TrellisDistribution(*given_trellis)
    answer = ls.decide(dist, metric)
    decision, gap = answer.labelsets, answer.gap
    of_dense = ls.decide(dense(dist), metric).labelsets
    np.testing.assert_array_equal(gap, 0)
    np.testing.assert_array_equal(decision, of_dense)


@given(any_trellis())
def test_summary_is_what_its_parts_say(given_trellis):
    dist = ls.distributions.TrellisDistribution(*given_trellis)
    summary = summary_of(dist, ["hamming", "exact", "jaccard"], 0.5)
    np.testing.assert_array_equal(summary.mode, dist.mode())
    np.testing.assert_array_equal(summary.profile.entropy, dist.profile().entropy)
    for metric, values in summary.expected.items():
        apart = dist.expected(metric, summary.mode, empty=0.5).value
        np.testing.assert_allclose(values, apart, atol=1e-14)


# Special cases.


def test_draws_are_as_frequent_as_probable():
    conditionals, parents, order = random_trellis(3, 4, 2, density=2, values="certain")
    dist = ls.distributions.TrellisDistribution(conditionals, parents, order)
    size = 4000
    draws = dist.sample(size, random_state=0)
    assert draws.shape == (2, size, 4)
    for row in range(2):
        P = np.array(brute_force(conditionals, parents, order, row))
        counts = np.bincount(codes_of(draws[row]), minlength=16)
        assert counts[P == 0].sum() == 0
        errors = np.sqrt(size * P * (1 - P))
        assert (np.abs(counts - size * P) <= 4.5 * errors + 1e-9).all()


def test_density_zero_is_independent_labels():
    conditionals, parents, order = random_trellis(0, 6, 3, density=0, n_samples=3)
    dist = ls.distributions.TrellisDistribution(conditionals, parents, order)
    p = np.empty((3, 6))
    p[:, order] = np.hstack(conditionals)
    independent = ls.IndependentLabels(p)
    np.testing.assert_allclose(dist.marginals(), p)
    np.testing.assert_array_equal(dist.top(20).labelsets, independent.top(20).labelsets)
    np.testing.assert_allclose(dist._size_marginals(), independent._size_marginals(), atol=1e-14)
    np.testing.assert_array_equal(dist.sample(9, 1), independent.sample(9, 1))
    for field in ("log_top", "log_runner_up", "entropy", "log_collision"):
        values = getattr(dist.profile(), field), getattr(independent.profile(), field)
        np.testing.assert_allclose(*values, rtol=1e-12)
    for metric in METRICS:
        np.testing.assert_array_equal(
            ls.decide(dist, metric).labelsets, ls.decide(independent, metric).labelsets
        )


def test_width_one_is_a_first_order_chain():
    first, second, third = [[0.3]], [[0.2, 0.9]], [[0.6, 0.1]]
    dist = ls.distributions.TrellisDistribution([first, second, third], [(), (0,), (1,)], [0, 1, 2])
    assert dist.memory == 1
    assert np.exp(dist.log_prob([[1, 1, 0]])) == pytest.approx(0.3 * 0.9 * 0.9)
    assert dist.marginals()[0, 2] == pytest.approx(0.6 * 0.59 + 0.1 * 0.41)


def test_first_parent_is_the_lowest_bit():
    tables = [[[1.0]], [[0.0]], [[0.1, 0.2, 0.3, 0.4]]]
    assert (
        ls.distributions.TrellisDistribution(tables, [(), (), (0, 1)], range(3)).marginals()[0, 2]
        == 0.2
    )
    assert (
        ls.distributions.TrellisDistribution(tables, [(), (), (1, 0)], range(3)).marginals()[0, 2]
        == 0.3
    )


def test_one_label():
    dist = ls.distributions.TrellisDistribution([[[0.2], [0.5], [1.0]]], [()], [0], ["only"])
    assert dist.label_names == ("only",)
    np.testing.assert_array_equal(dist.mode(), [[0], [0], [1]])
    np.testing.assert_allclose(dist.profile().runner_up, [0.2, 0.5, 0.0])
    np.testing.assert_array_equal(dist.top(2).labelsets[2], [[1], [0]])
    np.testing.assert_allclose(dist.expected("f1", [[1], [1], [0]]).value, [0.2, 0.5, 0.0])
    np.testing.assert_allclose(dist._size_marginals()[:, 0, 0], [0.2, 0.5, 1.0])


def test_no_instance():
    dist = ls.distributions.TrellisDistribution(
        [np.empty((0, 1)), np.empty((0, 2))], [(), (0,)], [1, 0]
    )
    assert len(dist) == 0
    assert dist.marginals().shape == dist.mode().shape == (0, 2)
    assert dist.top(3).labelsets.shape == (0, 3, 2)
    assert dist.sample(5).shape == (0, 5, 2)
    assert dist._size_marginals().shape == (0, 2, 2)
    assert dist.probabilities().shape == (0, 4)
    assert dist.expected(weighted, np.empty((0, 2))).value.shape == (0,)
    assert len(dist.profile()) == len(ls.decide(dist, "jaccard").labelsets) == 0


def test_impossible_labelsets_have_log_prob_minus_infinity():
    dist = ls.distributions.TrellisDistribution([[[1.0]], [[0.5, 0.0]]], [(), (0,)], [0, 1])
    np.testing.assert_array_equal(dist.log_prob([[1, 1]]), [-np.inf])
    assert dist.profile().log_runner_up == -np.inf
    assert dist.profile().entropy == 0
    # One labelset has all the probability; the others follow in the order of their codes.
    np.testing.assert_array_equal(dist.top(4).labelsets, [[[1, 0], [0, 0], [0, 1], [1, 1]]])
    np.testing.assert_array_equal(dist.top(4).probabilities, [[1, 0, 0, 0]])


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1]])
def test_equal_probabilities_come_in_the_order_of_codes(order):
    parents = grid_parents(4, 2, 2)
    conditionals = [np.full((1, 2 ** len(p)), 0.5) for p in parents]
    dist = ls.distributions.TrellisDistribution(conditionals, parents, order)
    np.testing.assert_array_equal(codes_of(dist.top(16).labelsets[0]), np.arange(16))
    np.testing.assert_array_equal(dist.mode(), [[0, 0, 0, 0]])
    assert dist.profile().log_top == dist.profile().log_runner_up


@pytest.mark.parametrize("seed", range(4))
def test_products_that_differ_only_by_rounding_are_ties(seed):
    """All labels are alike, so that only the number of them counts: the lowest code is first."""
    rng = np.random.default_rng(seed)
    order, p = rng.permutation(6), 0.1 + 0.3 * rng.random()
    dist = ls.distributions.TrellisDistribution([[[p]]] * 6, [()] * 6, order)
    by_size = sorted(range(64), key=lambda code: (oracles.size(code), code))
    np.testing.assert_array_equal(codes_of(dist.top(64).labelsets[0]), by_size)
    # Labels that copy or contradict the first: two labelsets, equally probable.
    copies = [[[0.5]]] + [[[float(flip), 1.0 - flip]] for flip in rng.integers(2, size=5)]
    dist = ls.distributions.TrellisDistribution(copies, [(), *[(0,)] * 5], order)
    first, second = codes_of(dist.top(2).labelsets[0])
    assert first + second == 63
    assert first < second
    assert codes_of(dist.mode())[0] == first


@pytest.mark.parametrize("rows", [2, -1, slice(1, None, 2), [3, 0, 0], np.arange(4) > 1])
def test_rows_are_taken_with_everything(rows):
    conditionals, parents, order = random_trellis(1, 5, 2, density=1, n_samples=4)
    dist = ls.distributions.TrellisDistribution(conditionals, parents, order, list("abcde"))
    some = dist[rows]
    chosen = np.atleast_1d(np.arange(4)[rows])
    assert some.label_names == dist.label_names
    np.testing.assert_array_equal(some.probabilities(), dist.probabilities()[chosen])
    np.testing.assert_array_equal(some.mode(), dist.mode()[chosen])
    np.testing.assert_array_equal(some._size_marginals(), dist._size_marginals()[chosen])
    Y = dist.sample(1, 0)[:, 0]
    for metric in METRICS:
        of_all = dist.expected(metric, Y).value
        np.testing.assert_array_equal(some.expected(metric, Y[chosen]).value, of_all[chosen])


def test_number_of_threads_changes_nothing(monkeypatch):
    dist = ls.distributions.TrellisDistribution(*random_trellis(5, 6, 3, density=2, n_samples=9))
    Y = dist.sample(1, 0)[:, 0]

    def answers():
        profile, top = dist.profile(), dist.top(5)
        expected = [dist.expected(metric, Y).value for metric in METRICS]
        fields = [profile.log_top, profile.log_runner_up, profile.entropy, profile.log_collision]
        draws = dist.sample(7, random_state=1)
        return [*fields, *expected, top.labelsets, top.probabilities, draws, dist._size_marginals()]

    monkeypatch.setenv("LABELSURE_NUM_THREADS", "1")
    alone = answers()
    monkeypatch.setenv("LABELSURE_NUM_THREADS", "3")
    for one, three in zip(alone, answers(), strict=True):
        np.testing.assert_array_equal(one, three)


def test_draws_do_not_depend_on_how_many_are_made_at_a_time(monkeypatch):
    dist = ls.distributions.TrellisDistribution(*random_trellis(5, 6, 3, density=1, n_samples=5))
    at_once = dist.sample(4, random_state=0)
    monkeypatch.setattr(_limits, "UNIFORM_NUMBERS", 50)
    np.testing.assert_array_equal(dist.sample(4, random_state=0), at_once)


def test_single_precision_is_taken_as_it_is():
    conditionals, parents, order = random_trellis(2, 4, 2, density=1)
    single = [table.astype(np.float32) for table in conditionals]
    dist = ls.distributions.TrellisDistribution(single, parents, order)
    np.testing.assert_allclose(dist.probabilities().sum(axis=1), 1, rtol=1e-14)
    assert dist.probabilities()[0] == pytest.approx(
        brute_force([table.astype(float) for table in single], parents, order), rel=1e-13
    )


# Sizes where brute force ends.


@pytest.mark.jit_only
@pytest.mark.parametrize("n_set", [0, 1, 2, 20, 59, 60])
def test_flips_of_sixty_labels_are_worth_what_each_alone_is(n_set):
    dist = large_trellis(60, 4, 2, n_samples=1)
    Y = np.zeros((1, 60), dtype=np.int8)
    Y[0, np.random.default_rng(0).permutation(60)[:n_set]] = 1
    flips = with_flips(Y)
    together = dist.expected("jaccard", flips, empty=0.7).value[0]
    alone = dist[[0] * 61].expected("jaccard", flips[0], empty=0.7).value
    np.testing.assert_allclose(together, alone, atol=1e-12)


def test_guesses_that_are_not_flips_are_evaluated_one_by_one():
    dist = ls.distributions.TrellisDistribution(*random_trellis(5, 3, 2, density=1))
    guesses = with_flips(np.zeros((2, 3), dtype=np.int8))
    guesses[1, 2] = 1
    values = dist.expected("jaccard", guesses).value
    for g in range(4):
        np.testing.assert_array_equal(values[:, g], dist.expected("jaccard", guesses[:, g]).value)


@pytest.mark.jit_only
@pytest.mark.parametrize(("width", "density"), [(1, 1), (4, 1), (3, 2), (5, None)])
def test_twelve_labels_against_all_probabilities(width, density):
    dist = ls.distributions.TrellisDistribution(*random_trellis(7, 12, width, density, n_samples=3))
    full = dense(dist)
    Y = dist.sample(1, 0)[:, 0]
    np.testing.assert_allclose(dist.marginals(), full.marginals(), atol=1e-13)
    np.testing.assert_allclose(dist._size_marginals(), full._size_marginals(), atol=1e-14)
    np.testing.assert_array_equal(dist.top(200).labelsets, full.top(200).labelsets)
    for metric in METRICS:
        ours, theirs = dist.expected(metric, Y).value, full.expected(metric, Y).value
        np.testing.assert_allclose(ours, theirs, atol=1e-13)
    for metric in ("exact", "hamming", "jaccard", "f1"):
        np.testing.assert_array_equal(
            ls.decide(dist, metric).labelsets, ls.decide(full, metric).labelsets
        )


@pytest.mark.jit_only
def test_jaccard_decisions_beyond_dense_keep_their_certificate():
    dist = ls.distributions.TrellisDistribution(*random_trellis(11, 16, 4, 1, values="certain"))
    answer = ls.decide(dist, "jaccard")
    decision, gap = answer.labelsets, answer.gap
    best = ls.decide(dense(dist), "jaccard").labelsets
    reached, possible = (
        dist.expected("jaccard", decision).value,
        dist.expected("jaccard", best).value,
    )
    assert (reached <= possible + 1e-12).all()
    assert (reached + gap >= possible - 1e-12).all()
    np.testing.assert_array_equal(
        ls.decide(dist, "f1").labelsets, ls.decide(dense(dist), "f1").labelsets
    )
    with pytest.raises(ls.TooLargeError, match="can be found for at most"):
        ls.decide(dist, weighted)


@pytest.mark.jit_only
@pytest.mark.parametrize(
    ("a", "b", "largest_gap"), [(0.3, 1.0, 0.01), (0.15, 2.0, 0.05), (2.0, 3.0, 0.01)]
)
def test_jaccard_decisions_of_many_labels_are_near_the_optimum(a, b, largest_gap):
    """Independent labels in a trellis that does not know it: their optimum is known."""
    p = np.random.default_rng(1).beta(a, b, size=(3, 60))
    parents = grid_parents(60, 6, 1)
    tables = [np.repeat(p[:, [j]], 2 ** len(some), axis=1) for j, some in enumerate(parents)]
    dist, simple = (
        ls.distributions.TrellisDistribution(tables, parents, range(60)),
        ls.IndependentLabels(p),
    )
    answer = ls.decide(dist, "jaccard")
    decision, gap = answer.labelsets, answer.gap
    reached = simple.expected("jaccard", decision).value
    possible = simple.expected("jaccard", ls.decide(simple, "jaccard").labelsets).value
    assert (reached >= possible - 0.002).all()
    assert (reached + gap >= possible - 1e-12).all()
    assert (gap < largest_gap).all()  # 0.1 by the sizes alone


def large_trellis(n_labels, width, density, n_samples=2, seed=0):
    rng = np.random.default_rng(seed)
    parents = grid_parents(n_labels, width, density)
    logits = [rng.normal(-1.5, 1.5, size=(n_samples, 2 ** len(p))) for p in parents]
    conditionals = [1 / (1 + np.exp(-logit)) for logit in logits]
    return ls.distributions.TrellisDistribution(conditionals, parents, rng.permutation(n_labels))


@pytest.mark.jit_only
@pytest.mark.parametrize(("width", "density"), [(10, 1), (9, 2)])
def test_a_hundred_labels_are_consistent(width, density):
    dist = large_trellis(100, width, density)
    assert dist.memory == 10
    profile, mode, top, by_size = dist.profile(), dist.mode(), dist.top(50), dist._size_marginals()
    np.testing.assert_allclose(dist.log_prob(mode), profile.log_top, rtol=1e-13)
    np.testing.assert_array_equal(top.labelsets[:, 0], mode)
    np.testing.assert_allclose(np.log(top.probabilities[:, 1]), profile.log_runner_up, rtol=1e-12)
    assert (np.diff(top.probabilities, axis=1) <= 0).all()
    for best, row in zip(top.labelsets, range(2), strict=True):
        assert len(np.unique(best, axis=0)) == 50
        again = dist[[row] * 50].log_prob(best)
        np.testing.assert_allclose(np.exp(again), top.probabilities[row], rtol=1e-11)
    np.testing.assert_allclose(by_size.sum(axis=2), dist.marginals(), atol=1e-12)
    # The labels of a labelset of s labels add up to s times its probability.
    sizes = by_size.sum(axis=1) / np.arange(1, 101)
    nothing = np.exp(dist.log_prob(np.zeros((2, 100))))
    np.testing.assert_allclose(sizes.sum(axis=1) + nothing, 1, atol=1e-12)


@pytest.mark.jit_only
def test_a_hundred_labels_against_their_draws():
    dist = large_trellis(100, 10, 1)
    size = 20_000
    draws, mode = dist.sample(size, random_state=0), dist.mode()
    tolerance = 5 * 0.5 / np.sqrt(size)
    np.testing.assert_allclose(draws.mean(axis=1), dist.marginals(), atol=tolerance)
    for row in range(2):
        repeated = np.broadcast_to(mode[row], draws[row].shape)
        for metric in ("jaccard", "f1", weighted):
            drawn = ls.accuracy(draws[row], repeated, metric)
            ours = dist[row].expected(metric, mode[row : row + 1]).value
            assert ours == pytest.approx(drawn.mean(), abs=5 * drawn.std() / np.sqrt(size))
        logs = dist[np.full(2000, row)].log_prob(draws[row, :2000])
        assert dist.profile().entropy[row] == pytest.approx(
            -logs.mean(), abs=5 * logs.std() / np.sqrt(2000)
        )


@pytest.mark.jit_only
def test_metrics_by_integral_and_by_roots_of_unity_agree():
    """Jaccard and F1 given as plain functions take the way of any metric."""
    dist = large_trellis(40, 5, 2)
    Y = np.concatenate([dist.mode()[:1], dist.sample(1, 0)[1]])
    for name, function in [("jaccard", lambda a, b, c, d: a / (a + b + c)), ("f1", oracles.f1)]:
        by_function = dist.expected(function, Y, empty=0.3).value
        np.testing.assert_allclose(dist.expected(name, Y, empty=0.3).value, by_function, atol=1e-12)


@pytest.mark.jit_only
def test_four_hundred_labels_of_width_twelve():
    """Independent labels in a trellis that does not know it: closed forms give every answer."""
    parents = grid_parents(400, 12, 1)
    p = np.random.default_rng(0).beta(0.3, 1.0, size=(1, 400))
    tables = [np.repeat(p[:, j : j + 1], 2 ** len(some), axis=1) for j, some in enumerate(parents)]
    dist, simple = (
        ls.distributions.TrellisDistribution(tables, parents, range(400)),
        ls.IndependentLabels(p),
    )
    for field in ("log_top", "log_runner_up", "entropy", "log_collision"):
        values = getattr(dist.profile(), field), getattr(simple.profile(), field)
        np.testing.assert_allclose(*values, rtol=1e-11)
    np.testing.assert_array_equal(dist.mode(), simple.mode())
    np.testing.assert_allclose(dist.marginals(), p, rtol=1e-12)
    ours, closed = (
        dist.expected("jaccard", dist.mode()).value,
        simple.expected("jaccard", dist.mode()).value,
    )
    np.testing.assert_allclose(ours, closed, atol=1e-12)


@pytest.mark.jit_only
def test_collision_of_many_labels_does_not_underflow():
    n_labels = 3000
    tables = [[[0.5]]] + [[[0.5, 0.5]]] * (n_labels - 1)
    parents = [[], *([j] for j in range(n_labels - 1))]
    profile = ls.distributions.TrellisDistribution(tables, parents, range(n_labels)).profile()
    np.testing.assert_allclose(profile.log_collision, -n_labels * np.log(2), rtol=1e-12)
    np.testing.assert_allclose(profile.entropy, n_labels * np.log(2), rtol=1e-12)
    np.testing.assert_allclose(profile.log_top, -n_labels * np.log(2), rtol=1e-12)


# Errors.


GOOD = {"conditionals": [[[0.5]], [[0.1, 0.8]]], "parents": [(), (0,)], "order": [1, 0]}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"order": [1, 2]}, r"`order` must be a permutation.*got \[1, 2\]"),
        ({"order": [0, 0]}, "`order` must be a permutation"),
        ({"order": [0.0, 1.0]}, "`order` must be a permutation"),
        ({"order": []}, "`order` must be a permutation"),
        ({"order": 2}, "`order` must be a permutation"),
        ({"order": [[0], [1, 2]]}, "`order` must be a permutation"),
        ({"parents": [()]}, "`parents` must have a sequence for each of the 2"),
        ({"parents": [0, 1]}, r"`parents` must have a sequence .* got \[0, 1\]"),
        ({"parents": [(), (1,)]}, r"`parents\[1\]` must be distinct positions before 1, got \[1\]"),
        ({"parents": [(), (-1,)]}, r"`parents\[1\]` must be distinct positions before 1"),
        ({"parents": [(), (0, 0)]}, r"`parents\[1\]` must be distinct positions before 1"),
        ({"parents": [(), (0.5,)]}, r"`parents\[1\]` must be distinct positions before 1"),
        ({"parents": [(), (0, 1, 2, 3)]}, r"`parents\[1\]` must have at most 3 positions, got 4"),
        ({"conditionals": [[[0.5]]]}, "`conditionals` must have one array for each of the 2"),
        (
            {"conditionals": [[[0.5]], [[0.1]]]},
            r"`conditionals\[1\]` must have shape \(1, 2\), .* 1 parents, got .*\(1, 1\)",
        ),
        ({"conditionals": [[0.5], [[0.1, 0.8]]]}, r"`conditionals\[0\]` must have shape \(1, 1\)"),
        ({"conditionals": [0.5, [[0.1, 0.8]]]}, r"`conditionals\[0\]` must have shape"),
        (
            {"conditionals": [[[0.5]], [[0.1, 1.5]]]},
            r"`conditionals\[1\]` must lie in \[0, 1\], got 1.5 in row 0, column 1. Pass prob",
        ),
        ({"conditionals": [[[np.nan]], [[0.1, 0.8]]]}, r"`conditionals\[0\]` .* got nan in row 0"),
        (
            {"conditionals": [[["a"]], [[0.1, 0.8]]]},
            r"`conditionals\[0\]` must be an array of real",
        ),
        ({"label_names": ["a"]}, "`label_names`"),
    ],
)
def test_wrong_input(wrong, message):
    assert isinstance(ls.distributions.TrellisDistribution(**GOOD), LabelsetDistribution)
    with pytest.raises(ls.InputError, match=message):
        ls.distributions.TrellisDistribution(**{**GOOD, **wrong})


def test_too_long_a_memory_is_refused_before_anything_is_made():
    n_labels = 100
    parents = [[j - 40] if j >= 40 else [] for j in range(n_labels)]
    with pytest.raises(ls.TooLargeError, match="states"):
        ls.distributions.TrellisDistribution([], parents, range(n_labels))
