"""Decisions beyond what a dense array holds: certified gaps, blocks of rows, exact shortcuts."""

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from strategies import as_table, probability_rows, random_table

import labelsure as ls
from labelsure._runtime import limits as _limits
from labelsure.decisions._rules import _bound_by_covariances
from labelsure.labelsets.codes import codes_of
from labelsure.metrics.registry import EXACT, JACCARD, METRICS, Metric


def searched(monkeypatch):
    """Make tables of any size go the way of those with too many labels."""
    monkeypatch.setattr(_limits, "CHEAP_DENSE_LABELS", 0)


@pytest.mark.parametrize("empty", [0.0, 0.5, 1.0])
def test_the_gap_is_a_certificate(empty, monkeypatch):
    """On small distributions, where the optimum is known from all predictions."""
    searched(monkeypatch)
    found = []

    @given(st.integers(1, 5).flatmap(lambda L: probability_rows(2**L)))
    def check(P):
        dist = as_table([P], oracles.n_labels_of(P))
        answer = ls.decide(dist, "jaccard", empty=empty)
        decision, gap = answer.labelsets, answer.gap
        value = oracles.expected_accuracy(P, tuple(decision[0].tolist()), "jaccard", empty)
        best = oracles.best_prediction(P, "jaccard", empty)[1]
        assert gap[0] >= 0
        assert value + gap[0] >= best - 1e-12
        assert_allclose(value + gap[0], oracles.jaccard_upper_bound(P, empty), atol=1e-12)
        found.append(value >= best - 1e-12)

    check()
    assert np.mean(found) > 0.9


@pytest.mark.jit_only
@pytest.mark.parametrize(("L", "n_samples"), [(15, 8), (16, 8), (18, 3), (20, 1)])
@pytest.mark.parametrize(("size", "spread"), [(6, 0.3), (60, 0.9)])
def test_the_gap_of_a_large_table(L, n_samples, size, spread):
    dist = random_table(np.random.default_rng(L), n_samples, L, size, spread=spread)
    answer = ls.decide(dist, "jaccard")
    decision, gap = answer.labelsets, answer.gap
    ((_, found),) = ls.DenseDistribution(dist.probabilities())._best(JACCARD, 1.0)
    best = found.labelsets
    value, optimum = (
        ls.expected_accuracy(dist, Y, metric="jaccard").value for Y in (decision, best)
    )
    assert (gap >= 0).all()
    assert (gap < 0.3).all()  # a certificate that says nothing would be of no use
    assert (value + gap >= optimum - 1e-12).all()
    assert (value >= optimum - 0.01).all()


def count_evaluated(monkeypatch, kind):
    """Return a list that gets the number of labelsets of each instance whenever some are asked."""
    asked = []
    evaluate = kind._expected

    def counted(dist, metrics, guesses, empty):
        asked.append(np.shape(guesses)[1])
        return evaluate(dist, metrics, guesses, empty)

    monkeypatch.setattr(kind, "_expected", counted)
    return asked


def short_trellis(n_labels, n_samples=1):
    """Each label depends on the one before it."""
    rng = np.random.default_rng(n_labels)
    parents = [(), *((j,) for j in range(n_labels - 1))]
    conditionals = [rng.beta(0.4, 1.0, (n_samples, 2 ** len(some))) for some in parents]
    return ls.distributions.TrellisDistribution(conditionals, parents, range(n_labels))


def test_the_search_ends_when_its_evaluations_are_used_up(monkeypatch):
    dist = short_trellis(40)
    asked = count_evaluated(monkeypatch, ls.distributions.TrellisDistribution)
    answer = ls.decide(dist, "jaccard")
    whole, whole_gap = answer.labelsets, answer.gap
    assert sum(asked) > 150
    for allowed in (150, *range(90, -1, -4)):
        asked.clear()
        monkeypatch.setattr(_limits, "SEARCHED_LABELS", 40 * allowed + 39)
        answer = ls.decide(dist, "jaccard")
        decision, gap = answer.labelsets, answer.gap
        assert sum(asked) <= max(allowed, 3)
        value, best = (
            ls.expected_accuracy(dist, Y, metric="jaccard").value[0] for Y in (decision, whole)
        )
        assert value >= ls.expected_accuracy(dist, ls.decide(dist, "f1"), metric="jaccard").value[0]
        assert_allclose(value + gap[0], best + whole_gap[0], atol=1e-12)  # the bound is the same


@pytest.mark.jit_only
def test_a_search_of_two_hundred_labels_ends_where_no_flip_helps(monkeypatch):
    dist = short_trellis(200)
    asked = count_evaluated(monkeypatch, ls.distributions.TrellisDistribution)
    answer = ls.decide(dist, "jaccard")
    decision, gap = answer.labelsets, answer.gap
    assert len(asked) < 200
    assert 0 <= gap[0] < 0.3
    flips = decision ^ np.eye(200, dtype=np.int8)
    values = ls.expected_accuracy(dist[[0] * 200], flips, metric="jaccard").value
    assert values.max() <= ls.expected_accuracy(dist, decision, metric="jaccard").value[0] + 1e-12


def test_half_of_the_evaluations_are_kept_for_flips(monkeypatch):
    dist = short_trellis(40)
    asked = count_evaluated(monkeypatch, ls.distributions.TrellisDistribution)
    for allowed, expected in ((13, [3, 2, 2]), (85, [3, *[2] * 6, 41])):
        asked.clear()
        monkeypatch.setattr(_limits, "SEARCHED_LABELS", 40 * allowed)
        ls.decide(dist, "jaccard")
        assert asked == expected


@pytest.mark.parametrize("evaluations", [0, 5, 10, 30])
@pytest.mark.parametrize("empty", [0.0, 1.0])
def test_the_gap_holds_wherever_the_search_ends(evaluations, empty, monkeypatch):
    """Against the best of all predictions; each instance has its own budget."""
    searched(monkeypatch)
    monkeypatch.setattr(_limits, "SEARCHED_LABELS", 4 * evaluations)
    rng = np.random.default_rng(evaluations)
    P = rng.dirichlet(np.full(16, 0.2), size=25)
    for dist in (as_table(P, 4), short_trellis(4, 25)):
        answer = ls.decide(dist, "jaccard", empty=empty)
        decision, gap = answer.labelsets, answer.gap
        for i, row in enumerate(dist.probabilities().tolist()):
            value = oracles.expected_accuracy(row, tuple(decision[i].tolist()), "jaccard", empty)
            assert value + gap[i] >= oracles.best_prediction(row, "jaccard", empty)[1] - 1e-12
        alone = [ls.decide(dist[i], "jaccard", empty=empty).labelsets for i in range(25)]
        assert_array_equal(decision, np.concatenate(alone))


def test_sizes_with_the_highest_bound_are_tried_first(monkeypatch):
    """One size is enough where the best labelset has the size of the highest bound."""
    dist = short_trellis(40)
    monkeypatch.setattr(_limits, "SEARCHED_LABELS", 7 * 40)
    tried = []
    evaluate = ls.distributions.TrellisDistribution._expected

    def noted(dist, metrics, guesses, empty):
        tried.append(guesses.sum(axis=2)[0].tolist())
        return evaluate(dist, metrics, guesses, empty)

    monkeypatch.setattr(ls.distributions.TrellisDistribution, "_expected", noted)
    ls.decide(dist, "jaccard")
    sizes = np.arange(1, 41)
    worth = dist._size_marginals()[0] @ (1 / np.maximum(sizes[:, np.newaxis], sizes))
    by_size = [np.sort(worth[:, k - 1])[-k:].sum() for k in sizes]
    by_covariance = _bound_by_covariances(dist.marginals(), dist._covariance_sums())[0]
    best = int(np.argmax(np.minimum(by_size, by_covariance))) + 1
    assert tried[1:] == [[best, best]]


def test_exchanging_two_labels_helps_where_no_flip_does(monkeypatch):
    """Flips alone end at {1, 3}, which is the best guess and has no better neighbour."""
    searched(monkeypatch)
    Y = [[0, 0, 1, 1, 0], [0, 0, 0, 1, 1], [1, 0, 0, 1, 0], [0, 1, 0, 1, 0], [0, 1, 0, 0, 0]]
    dist = ls.LabelsetTable([Y], np.array([[5, 3, 5, 1, 5]]) / 19)
    P = dist.probabilities()[0].tolist()
    assert oracles.best_prediction(P, "jaccard", 0.0)[0] == (1, 0, 0, 1, 0)
    assert_array_equal(ls.decide(dist, "jaccard", empty=0.0).labelsets, [[1, 0, 0, 1, 0]])


def test_the_search_leaves_no_better_neighbour():
    dist = random_table(np.random.default_rng(1), 4, 40, 25)
    decision = ls.decide(dist, "jaccard").labelsets
    value = ls.expected_accuracy(dist, decision, metric="jaccard").value
    others = [
        dist.mode(),
        ls.decide(dist, "f1").labelsets,
        ls.decide(dist, "hamming").labelsets,
        0 * decision,
    ]
    for j in range(40):
        flipped = decision.copy()
        flipped[:, j] ^= 1
        others.append(flipped)
    for other in others:
        assert (value >= ls.expected_accuracy(dist, other, metric="jaccard").value - 1e-12).all()


def test_a_certain_table_has_no_gap():
    Y = np.random.default_rng(0).integers(0, 2, (3, 1, 90))
    answer = ls.decide(ls.LabelsetTable(Y, np.ones((3, 1))), "jaccard")
    decision, gap = answer.labelsets, answer.gap
    assert_array_equal(decision, Y[:, 0])
    assert_allclose(gap, 0, atol=1e-12)


@pytest.mark.parametrize("metric", ["exact", "hamming", "jaccard", "f1"])
def test_blocks_of_rows_change_nothing(metric, monkeypatch):
    dist = random_table(np.random.default_rng(2), 9, 6, 5)
    wide = random_table(np.random.default_rng(2), 9, 17, 5)
    whole = [ls.decide(d, metric) for d in (dist, wide)]
    monkeypatch.setattr(_limits, "DECISION_BYTES", 1000)
    assert len(list(_limits.cut_rows(9, 8 * 36, _limits.DECISION_BYTES))) == 3
    for d, at_once in zip((dist, wide), whole, strict=True):
        in_blocks = ls.decide(d, metric)
        assert_array_equal(in_blocks.labelsets, at_once.labelsets)
        assert_allclose(in_blocks.gap, at_once.gap, atol=1e-14)


def hit_share(tp, fp, fn, tn):
    """From 0 to 1."""
    return tp / (tp + fp + fn + tn)


def thrice_hit_share(tp, fp, fn, tn):
    return 3 * hit_share(tp, fp, fn, tn)


@pytest.fixture
def narrow_beam(monkeypatch):
    """Beams that find the greedy labelset alone, so that enumeration decides what is known."""
    monkeypatch.setattr(_limits, "BEAM_WIDTH", 1)
    monkeypatch.setattr(_limits, "BEAM_LABELSETS", 1)


def few_seen(n_samples=8, budget=4):
    """Chains of which a search sees a few labelsets, and all their probabilities.

    With a budget of 4 no round of the search is finished, with 12 some are.
    """
    rng = np.random.default_rng(0)
    chain = ls.distributions.LinearChain(
        rng.permutation(5), rng.normal(size=(n_samples, 5)), rng.normal(size=(5, 5))
    )
    certified = ls.distributions.ChainMixture(
        [chain], engine="certified", tolerance=0.0, budget=budget
    )
    return certified, ls.distributions.ChainMixture([chain], engine="dense").probabilities()


@pytest.mark.parametrize("range_", [(0.0, 3.0), (-1.0, 5.0), None])
def test_the_gap_of_a_metric_is_as_wide_as_its_range(range_, monkeypatch):
    """Registered or not: a wider metric leaves more open where labelsets are unseen."""
    wide = Metric("wide", thrice_hit_share, range_)
    monkeypatch.setitem(METRICS, "wide", wide)
    dist, P = few_seen()
    narrow_gap = ls.decide(dist, Metric("narrow", hit_share, (0.0, 1.0))).gap
    answer = ls.decide(dist, "wide")
    decision, gap = answer.labelsets, answer.gap
    assert (narrow_gap > 0.01).all()
    spread = 3.0 if range_ is None else range_[1] - range_[0]
    assert_allclose(gap, spread * narrow_gap, rtol=1e-13)
    assert_array_equal(gap, ls.decide(dist, wide).gap)
    assert_allclose(ls.decide(dist, thrice_hit_share).gap, 3 * narrow_gap)
    for row, y, open_ in zip(P.tolist(), decision.tolist(), gap, strict=True):
        value = oracles.expected_accuracy(row, tuple(y), thrice_hit_share)
        assert value + open_ >= oracles.best_prediction(row, thrice_hit_share)[1] - 1e-12


@pytest.mark.jit_only
def test_no_gap_is_wider_than_the_range_of_its_metric(narrow_beam):
    """What is open among the labelsets seen counts with their share of the probability."""
    rng = np.random.default_rng(4)
    bases, weights = rng.normal(size=(2, 30, 15)), rng.normal(size=(2, 15, 15))
    chains = [
        ls.distributions.LinearChain(rng.permutation(15), *pair)
        for pair in zip(bases, weights, strict=True)
    ]
    dist = ls.distributions.ChainMixture(chains, engine="certified", budget=10)
    gap, widest = ls.decide(dist, "jaccard").gap, 0.0
    for rows, known in dist._best(EXACT, 1.0):
        among_seen = ls.decide(known.table, "jaccard").gap
        widest = max(widest, (among_seen + known.unseen_mass).max())
        expected = known.seen_mass * among_seen + known.unseen_mass
        assert_allclose(gap[rows], np.minimum(expected, 1), atol=1e-14)
    assert widest > 1.01
    assert (gap <= 1).all()


@pytest.mark.parametrize("budget", [4, 12])
def test_the_gap_of_exact_match_is_what_one_unseen_labelset_can_have_more(budget, narrow_beam):
    dist, P = few_seen(n_samples=40, budget=budget)
    answer = ls.decide(dist, "exact")
    decision, gap = answer.labelsets, answer.gap
    for rows, known in dist._best(EXACT, 1.0):
        of_decision = P[rows, codes_of(decision[rows])]
        assert_allclose(gap[rows], np.maximum(known.largest_unseen - of_decision, 0), atol=1e-14)
        assert (gap[rows] <= known.unseen_mass).all()
        assert (known.largest_unseen < known.unseen_mass).any()  # what the beam pruned bounds it


@pytest.mark.parametrize("budget", [4, 12])
def test_what_a_support_says_is_true(budget):
    dist, P = few_seen(budget=budget)
    seen_rows = []
    for rows, known in dist._best(EXACT, 1.0):
        seen_rows += rows.tolist()
        seen = known.table.probabilities() * known.seen_mass[:, np.newaxis]
        unseen = np.where(seen > 0, 0.0, P[rows])
        assert_allclose(known.table.probabilities().sum(axis=1), 1)
        assert_allclose(seen[seen > 0], P[rows][seen > 0], rtol=1e-12)
        assert (unseen.sum(axis=1) <= known.unseen_mass).all()
        assert_allclose(unseen.sum(axis=1), known.unseen_mass, atol=1e-11)
        assert (unseen.max(axis=1) <= known.largest_unseen + 1e-15).all()
    assert seen_rows == list(range(len(dist)))


def test_decisions_by_a_support_do_not_depend_on_how_many_are_made_at_a_time(monkeypatch):
    dist, _ = few_seen()
    whole = [ls.decide(dist, metric) for metric in oracles.METRICS]
    monkeypatch.setattr(_limits, "SEEN_LABELSETS_BYTES", 1200)
    monkeypatch.setattr(_limits, "DECISION_BYTES", 600)
    assert len(list(dist._best(EXACT, 1.0))) == 4
    for metric, at_once in zip(oracles.METRICS, whole, strict=True):
        in_blocks = ls.decide(dist, metric)
        assert_array_equal(in_blocks.labelsets, at_once.labelsets)
        assert_allclose(in_blocks.gap, at_once.gap, atol=1e-14)


@pytest.mark.parametrize("empty", [0.0, 0.4])
@pytest.mark.parametrize("L", [3, 40, 70])
def test_many_guesses_of_a_large_table(L, empty):
    """Neighbours of the first guess and any others, against loops over the table."""
    rng = np.random.default_rng(L)
    dist = random_table(rng, 3, L, 7)
    best = dist.top(7)
    guesses = rng.integers(0, 2, (3, L + 4, L))
    guesses[:, 1 : L + 1] = guesses[:, :1] ^ np.eye(L, dtype=int)
    guesses[:, -2] = 0
    guesses[:, -1] = guesses[:, 0]
    guesses[2, 0] = 0  # a first guess without labels
    found = dist.expected("jaccard", guesses, empty=empty).value
    for row in range(3):
        pairs = list(zip(best.labelsets[row].tolist(), best.probabilities[row], strict=True))
        expected = [
            oracles.expected_accuracy_table(pairs, y, "jaccard", empty)
            for y in guesses[row].tolist()
        ]
        assert_allclose(found[row], expected, atol=1e-14)


def test_metrics_want_different_labelsets():
    P = [[0.3, 0, 0, 0.25, 0, 0.25, 0.2, 0]]
    dist = ls.DenseDistribution(P)
    chosen = {
        metric: tuple(ls.decide(dist, metric).labelsets[0].tolist()) for metric in oracles.METRICS
    }
    assert chosen == {
        metric: oracles.best_prediction(P[0], metric)[0] for metric in oracles.METRICS
    }
    assert chosen["exact"] == (0, 0, 0)
    assert chosen["jaccard"] == (1, 1, 1)
    assert chosen["hamming"] == (0, 0, 0)


def test_what_two_empty_sets_are_worth_decides():
    dist = ls.IndependentLabels([[0.3, 0.3, 0.3]])
    assert_array_equal(ls.decide(dist, "jaccard", empty=1.0).labelsets, [[0, 0, 0]])
    assert_array_equal(ls.decide(dist, "jaccard", empty=0.0).labelsets, [[1, 1, 1]])
    assert_array_equal(ls.decide(dist, "f1", empty=0.0).labelsets, [[1, 1, 1]])


@pytest.mark.parametrize("L", [1, 2, 5])
def test_a_tie_of_all_labels_goes_to_the_lowest_code(L):
    dist = ls.IndependentLabels(np.full((1, L), 0.5))
    table = as_table(dist.probabilities(), L)
    for metric in oracles.METRICS:
        expected = oracles.best_prediction([2.0**-L] * 2**L, metric, 0.0)[0]
        for kind in (dist, table, ls.DenseDistribution(dist.probabilities())):
            assert_array_equal(ls.decide(kind, metric, empty=0.0).labelsets[0], expected)


def test_arrays_in_arrays_out():
    dist = ls.IndependentLabels([[0.9, 0.2], [0.4, 0.7]])
    answer = ls.decide(dist, "jaccard")
    decision, gap = answer.labelsets, answer.gap
    assert type(decision) is type(gap) is np.ndarray
    assert decision.dtype == np.int8
    assert gap.dtype == np.float64
    expected = ls.expected_accuracy(dist, decision.tolist(), metric="jaccard").value
    assert type(expected) is np.ndarray
    assert expected.dtype == np.float64
