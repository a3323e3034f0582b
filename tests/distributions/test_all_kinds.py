"""What every kind of distribution answers, against loops over all 2**L probabilities."""

import tracemalloc

import numpy as np
import oracles
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from strategies import KINDS, batches, many, n_labels, predictions, summary_of

import labelsure as ls
from labelsure._runtime import limits as _limits
from labelsure.distributions._answers import Optimum
from labelsure.metrics.registry import get_metric

for_each_kind = pytest.mark.parametrize("kind", KINDS)
METRICS = tuple(oracles.METRICS)
FEW_LABELS = n_labels(1, 4)


def log(values):
    with np.errstate(divide="ignore"):
        return np.log(values)


@for_each_kind
@given(st.data())
def test_sizes(kind, data):
    batch = data.draw(batches(kind))
    dist = batch.dist
    assert len(dist) == dist.n_samples == len(batch.P)
    assert dist.n_labels == batch.n_labels
    assert dist.label_names is None
    assert repr(dist) == (
        f"{type(dist).__name__}(n_samples={len(batch)}, n_labels={batch.n_labels})"
    )


@for_each_kind
def test_rows_keep_their_names(kind):
    dist = many(kind, 5)
    assert dist.index is None
    named = dist._with_index(pd.Index(list("abcde")))
    assert dist.index is None
    assert list(named[[3, 1]].index) == ["d", "b"]
    assert list(named[1:3].index) == ["b", "c"]
    assert list(named[-1].index) == ["e"]
    assert list(named.with_engine(engine="dense").index) == list("abcde")
    mode = pd.DataFrame(dist.mode(), columns=dist.label_names, index=list("abcde"))
    assert_array_equal(named.log_prob(mode.loc[list("ecabd")]), dist.log_prob(dist.mode()))
    with pytest.raises(ls.InputError, match="entry"):
        dist._with_index(pd.Index(list("abcd")))


@for_each_kind
@given(st.data())
def test_probabilities(kind, data):
    batch = data.draw(batches(kind))
    P = batch.dist.probabilities()
    assert P.dtype == np.float64
    assert P.shape == (len(batch), 2**batch.n_labels)
    # Base learners and trellises have P(1) only, so that a small 1 - P(1) is rounded; lists of
    # valid labelsets go by sums of logits.
    rounded = kind in ("mixture", "ruled", "valid")
    slack = {"rtol": 1e-13, "atol": 1e-15} if rounded else {"rtol": 1e-14}
    assert_allclose(P, np.reshape(batch.P, P.shape), **slack)
    assert_allclose(P.sum(axis=1), 1, atol=1e-4 if "32" in kind else 1e-12)


@for_each_kind
@given(st.data())
def test_marginals(kind, data):
    batch = data.draw(batches(kind))
    marginals = batch.dist.marginals()
    assert marginals.dtype == np.float64
    expected = [oracles.marginals(P) for P in batch.P]
    assert_allclose(
        marginals,
        np.reshape(expected, (len(batch), batch.n_labels)),
        atol=1e-6 if "32" in kind else 1e-14,
    )
    # They are probabilities themselves, rounding or not.
    assert ((marginals >= 0) & (marginals <= 1)).all()
    ls.IndependentLabels(marginals)
    bounds = batch.dist.marginal_bounds()  # of few labels: exact
    for each in (bounds.low, bounds.value, bounds.high):
        assert_array_equal(each, marginals)


@for_each_kind
@given(st.data())
def test_log_prob(kind, data):
    batch = data.draw(batches(kind))
    Y = data.draw(predictions(batch))
    expected = [P[oracles.code_of(y)] for P, y in zip(batch.P, Y, strict=True)]
    slack = 1e-11 if kind == "mixture" else 1e-14  # as above
    assert_allclose(batch.dist.log_prob(Y), log(expected), rtol=1e-13, atol=slack)


@for_each_kind
@given(st.data())
def test_profile(kind, data):
    batch = data.draw(batches(kind))
    profile = batch.dist.profile()
    top, runner_up, entropy, collision = np.reshape(
        [oracles.profile(P) for P in batch.P], (len(batch), 4)
    ).T
    assert len(profile) == len(batch)
    assert_allclose(profile.top, top, rtol=1e-13)
    assert_allclose(profile.runner_up, runner_up, rtol=1e-12)
    assert_allclose(profile.entropy, entropy, rtol=1e-12, atol=1e-14)
    assert_allclose(profile.collision, collision, rtol=1e-13)
    assert_allclose(profile.log_top, log(top), rtol=1e-13, atol=1e-14)
    assert_allclose(profile.log_runner_up, log(runner_up), rtol=1e-13, atol=1e-14)
    assert_allclose(profile.log_collision, log(collision), rtol=1e-13, atol=1e-14)
    assert profile.n_bits == batch.n_labels
    assert (profile.method == "exact").all()
    assert profile.method.shape == (len(batch),)
    assert profile.low is profile
    assert profile.high is profile


@for_each_kind
@given(st.data())
def test_mode_is_the_lowest_code_of_the_most_probable(kind, data):
    batch = data.draw(batches(kind))
    mode = batch.dist.mode()
    assert mode.dtype == np.int8
    expected = [oracles.mode(P) for P in batch.P]
    assert_array_equal(mode, np.reshape(expected, (len(batch), batch.n_labels)))


@for_each_kind
@given(st.data())
def test_top(kind, data):
    batch = data.draw(batches(kind, labels=n_labels(1, 5)))
    k = data.draw(st.integers(1, 2**batch.n_labels))
    best = batch.dist.top(k)
    assert best.labelsets.shape == (len(batch), k, batch.n_labels)
    assert best.labelsets.dtype == np.int8
    assert best.probabilities.shape == (len(batch), k)
    for labelsets, probabilities, P in zip(
        best.labelsets.tolist(), best.probabilities, batch.P, strict=True
    ):
        codes = [oracles.code_of(y) for y in labelsets]
        assert len(set(codes)) == k
        assert_allclose(probabilities, oracles.top(P, k)[1], rtol=1e-12)
        assert_allclose(probabilities, [P[code] for code in codes], rtol=1e-12)
        assert codes == [oracles.code_of(y) for y in oracles.top(P, k)[0]]


@for_each_kind
@given(st.data())
def test_size_marginals(kind, data):
    batch = data.draw(batches(kind, labels=n_labels(1, 5)))
    by_size = batch.dist._size_marginals()
    expected = [oracles.size_marginals(P) for P in batch.P]
    assert_allclose(by_size, np.reshape(expected, by_size.shape), atol=1e-14)
    assert by_size.shape == (len(batch), batch.n_labels, batch.n_labels)


@for_each_kind
@pytest.mark.parametrize("metric", METRICS)
@given(st.data())
def test_expected_accuracy(kind, metric, data):
    batch = data.draw(batches(kind))
    Y_pred = data.draw(predictions(batch))
    empty = data.draw(st.sampled_from([0.0, 0.5, 1.0]))
    expected = [
        oracles.expected_accuracy(P, tuple(y), metric, empty)
        for P, y in zip(batch.P, Y_pred.tolist(), strict=True)
    ]
    values = ls.expected_accuracy(batch.dist, Y_pred, metric=metric, empty=empty).value
    assert values.shape == (len(batch),)
    assert_allclose(values, expected, atol=2e-7 if kind == "dense32" else 1e-13)


def f_two(tp, fp, fn, tn):
    """F-beta with beta = 2; two empty sets are worth one."""
    return (5 * tp + (tp + fp + fn == 0)) / (5 * tp + fp + 4 * fn + (tp + fp + fn == 0))


def any_hit(tp, fp, fn, tn):
    return (tp > 0) * 1.0


def lopsided(tp, fp, fn, tn):
    return (tp + 3 * tn - fp * fn) / (1 + tp + fp + fn + tn)


CUSTOM = (f_two, any_hit, lopsided)


@for_each_kind
@given(st.data(), st.sampled_from(CUSTOM))
def test_expected_accuracy_of_a_function(kind, data, metric):
    batch = data.draw(batches(kind, labels=n_labels(1, 5)))
    Y_pred = data.draw(predictions(batch))
    expected = [
        oracles.expected_accuracy(P, tuple(y), metric)
        for P, y in zip(batch.P, Y_pred.tolist(), strict=True)
    ]
    values = ls.expected_accuracy(batch.dist, Y_pred, metric=metric).value
    assert_allclose(values, expected, atol=1e-6 if kind == "dense32" else 1e-12)


@for_each_kind
@given(st.data(), st.sampled_from([*METRICS, lopsided]))
def test_expected_accuracy_of_several_guesses(kind, data, metric):
    """Among them the first again, and the first with one label or more changed."""
    batch = data.draw(batches(kind, labels=n_labels(1, 4), most=3))
    L, empty = batch.n_labels, 0.3 if metric in METRICS else 1.0
    rows = [data.draw(predictions(batch))]
    rows += [data.draw(predictions(batch)), rows[0]]
    rows += [rows[0] ^ flip for flip in np.eye(L, dtype=int)]
    guesses = np.stack(rows, axis=1)
    found = batch.dist.expected(metric, guesses, empty=empty)
    expected = [
        [oracles.expected_accuracy(P, tuple(y), metric, empty) for y in row]
        for P, row in zip(batch.P, guesses.tolist(), strict=True)
    ]
    slack = 1e-6 if kind == "dense32" else 1e-12
    assert_allclose(found.value, np.reshape(expected, (len(batch), L + 3)), atol=slack)
    assert_array_equal(found.low, found.value)
    assert_array_equal(found.high, found.value)
    if len(batch):
        as_lists = batch.dist.expected(metric, guesses.tolist(), empty=empty)
        assert_array_equal(as_lists.value, found.value)


@for_each_kind
@given(st.data(), st.sampled_from([*METRICS, any_hit]))
def test_the_best_that_a_kind_has_is_the_best_there_is(kind, data, metric):
    batch = data.draw(batches(kind, labels=FEW_LABELS, most=3))
    for rows, found in batch.dist._best(get_metric(metric), 0.5):
        if not isinstance(found, Optimum):
            assert_array_equal(ls.decide(batch.dist, metric, empty=0.5).gap, 0)
            continue
        values = batch.dist[rows].expected(metric, found.labelsets, empty=0.5).value
        optima = [oracles.best_prediction(batch.P[row], metric, 0.5)[1] for row in rows]
        assert_allclose(values, optima, atol=1e-6 if kind == "dense32" else 1e-12)


def check_decision(batch, metric, empty, *, rounded):
    answer = ls.decide(batch.dist, metric, empty=empty)
    decisions, gaps = answer.labelsets, answer.gap
    assert decisions.dtype == np.int8
    assert_array_equal(gaps, np.zeros(len(batch)))
    assert_array_equal(decisions, ls.decide(batch.dist, metric, empty=empty).labelsets)
    best = [oracles.best_prediction(P, metric, empty) for P in batch.P]
    if rounded:  # rows of float32 sum to one only nearly, which may break ties
        of_decisions = ls.expected_accuracy(batch.dist, decisions, metric=metric, empty=empty).value
        assert_allclose(of_decisions, [value for _, value in best], atol=1e-6)
    else:
        expected = np.reshape([y for y, _ in best], (len(batch), batch.n_labels))
        assert_array_equal(decisions, expected)


@for_each_kind
@pytest.mark.parametrize("metric", METRICS)
@given(st.data())
def test_decide_finds_the_best_of_all_predictions(kind, metric, data):
    batch = data.draw(batches(kind, labels=FEW_LABELS, most=3))
    empty = data.draw(st.sampled_from([0.0, 0.5, 1.0]))
    check_decision(batch, metric, empty, rounded=kind == "dense32")


@for_each_kind
@given(st.data(), st.sampled_from(CUSTOM))
def test_decide_under_a_function(kind, data, metric):
    batch = data.draw(batches(kind, labels=FEW_LABELS, most=3))
    check_decision(batch, metric, 1.0, rounded=kind == "dense32")


@for_each_kind
@given(st.data())
def test_summary_is_the_separate_answers(kind, data):
    batch = data.draw(batches(kind))
    summary = summary_of(batch.dist, ["exact", "jaccard", any_hit], 0.5)
    assert_array_equal(summary.mode, batch.dist.mode())
    for name in ("log_top", "log_runner_up", "entropy", "log_collision"):
        assert_array_equal(getattr(summary.profile, name), getattr(batch.dist.profile(), name))
    assert list(summary.expected) == ["exact", "jaccard", "any_hit"]
    for name, metric in (("exact", "exact"), ("jaccard", "jaccard"), ("any_hit", any_hit)):
        expected = ls.expected_accuracy(batch.dist, metric=metric, empty=0.5).value
        assert_allclose(summary.expected[name], expected, rtol=1e-14)


@for_each_kind
@given(st.data())
def test_samples_are_possible_labelsets_and_follow_the_seed(kind, data):
    batch = data.draw(batches(kind))
    size = data.draw(st.integers(0, 5))
    seed = data.draw(st.integers(0, 100))
    draws = batch.dist.sample(size, random_state=seed)
    assert draws.shape == (len(batch), size, batch.n_labels)
    assert draws.dtype == np.int8
    assert_array_equal(draws, batch.dist.sample(size, random_state=np.random.default_rng(seed)))
    for s in range(size):
        assert np.isfinite(batch.dist.log_prob(draws[:, s])).all()


@for_each_kind
@given(st.data())
def test_sampling_accepts_every_usual_random_state(kind, data):
    dist = data.draw(batches(kind, least=1)).dist
    legacy = [dist.sample(9, random_state=np.random.RandomState(3)) for _ in range(2)]
    assert_array_equal(*legacy)
    assert dist.sample(9).shape == dist.sample(9, random_state=None).shape


@for_each_kind
@pytest.mark.parametrize(("n_samples", "size"), [(40, 500), (1, 20_000)], ids=["rows", "draws"])
def test_draws_take_little_more_memory_than_they_are(kind, n_samples, size, monkeypatch):
    """Random numbers are drawn a few at a time, whether instances or draws are many."""
    monkeypatch.setattr(_limits, "UNIFORM_NUMBERS", 2000)
    dist = many(kind, n_samples)
    dist.sample(size, random_state=0)  # what is compiled or kept once is no part of it
    tracemalloc.start()
    try:
        draws = dist.sample(size, random_state=0)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert draws.shape == (n_samples, size, 5)
    assert peak < 2.5 * draws.nbytes
    assert_allclose(draws.mean(axis=(0, 1)), dist.marginals().mean(axis=0), atol=0.03)
