"""Independent labels: closed forms against loops, also for many labels."""

import math
import tracemalloc

import numpy as np
import oracles
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from strategies import marginal_rows

import labelsure as ls
from labelsure._runtime import limits as _limits
from labelsure.distributions._independent_labels import WAITING_BYTES


def random_marginals(n_samples, L, seed=0):
    """Mostly small, as marginals of many labels are, with certain ones and coins among them."""
    rng = np.random.default_rng(seed)
    p = rng.beta(0.3, 1.0, (n_samples, L))
    p[:, 0], p[:, L // 2], p[:, -1] = 0.0, 1.0, 0.5
    return p


@given(st.integers(1, 60).flatmap(marginal_rows))
def test_profile_of_many_labels(p):
    profile = ls.IndependentLabels([p]).profile()
    fields = (profile.log_top, profile.log_runner_up, profile.entropy, profile.log_collision)
    for value, expected in zip(fields, oracles.profile_independent(p), strict=True):
        assert_allclose(value, expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("L", [511, 512, 513, 1025, 5000])
def test_profile_around_the_kernels_blocks(L):
    p = random_marginals(2, L, seed=L)
    p[1] = 0.5
    profile = ls.IndependentLabels(p).profile()
    expected = np.transpose([oracles.profile_independent(row.tolist()) for row in p])
    assert_allclose(profile.log_top, expected[0], rtol=1e-12)
    assert_allclose(profile.log_runner_up, expected[1], rtol=1e-12)
    assert_allclose(profile.entropy, expected[2], rtol=1e-12)
    assert_allclose(profile.log_collision, expected[3], rtol=1e-12)


def test_log_prob_of_many_labels_does_not_underflow():
    dist = ls.IndependentLabels(np.full((1, 5000), 0.25))
    assert_allclose(dist.log_prob(np.ones((1, 5000))), 5000 * math.log(0.25))
    assert_allclose(dist.log_prob(dist.mode()), dist.profile().log_top)
    certain = ls.IndependentLabels([[1.0, 0.0]])
    assert_array_equal(certain.log_prob([[1, 0]]), [0])
    assert_array_equal(certain.log_prob([[0, 0]]), [-np.inf])


def top_k_labels(p, k):
    labelset = [0] * len(p)
    for j in sorted(range(len(p)), key=lambda j: (-p[j], j))[:k]:
        labelset[j] = 1
    return labelset


@pytest.mark.parametrize("L", [1, 2, 7, 40])
@pytest.mark.parametrize("metric", ["jaccard", "f1", "hamming"])
@pytest.mark.parametrize("empty", [0.0, 1.0])
def test_expected_accuracy_of_many_labels(L, metric, empty):
    p = random_marginals(3, L, seed=L)
    Y_pred = (np.random.default_rng(1).random((3, L)) < [[0.0], [0.3], [1.0]]).astype(int)
    expected = [
        oracles.expected_accuracy_independent(row, y, metric, empty)
        for row, y in zip(p.tolist(), Y_pred.tolist(), strict=True)
    ]
    values = ls.expected_accuracy(ls.IndependentLabels(p), Y_pred, metric=metric, empty=empty).value
    assert_allclose(values, expected, rtol=1e-12, atol=1e-14)


def test_expected_accuracy_of_two_hundred_labels():
    p = random_marginals(1, 200)
    y_pred = top_k_labels(p[0].tolist(), 30)
    dist = ls.IndependentLabels(p)
    for metric in ("jaccard", "f1"):
        expected = oracles.expected_accuracy_independent(p[0].tolist(), y_pred, metric)
        assert_allclose(
            ls.expected_accuracy(dist, [y_pred], metric=metric).value, expected, rtol=1e-12
        )


def three_hits(tp, fp, fn, tn):
    return np.minimum(tp, 3) / 3 - 0.01 * fp


def test_a_function_of_many_labels():
    p = random_marginals(2, 30)
    Y_pred = np.array([top_k_labels(row, 8) for row in p.tolist()])
    dist = ls.IndependentLabels(p)
    expected = [
        oracles.expected_accuracy_independent(row, y, three_hits)
        for row, y in zip(p.tolist(), Y_pred.tolist(), strict=True)
    ]
    assert_allclose(
        ls.expected_accuracy(dist, Y_pred, metric=three_hits).value, expected, rtol=1e-12
    )


@pytest.mark.parametrize("L", [15, 40])
@pytest.mark.parametrize("metric", ["jaccard", "f1"])
@pytest.mark.parametrize("empty", [0.0, 1.0])
def test_the_decision_is_the_best_number_of_top_labels(L, metric, empty):
    for seed in range(3):
        p = np.random.default_rng(seed).beta(0.5, 2.0, (1, L)).round(4)
        values = [
            oracles.expected_accuracy_independent(
                p[0].tolist(), top_k_labels(p[0].tolist(), k), metric, empty
            )
            for k in range(L + 1)
        ]
        answer = ls.decide(ls.IndependentLabels(p), metric, empty=empty)
        best, gap = answer.labelsets, answer.gap
        assert_array_equal(best[0], top_k_labels(p[0].tolist(), int(np.argmax(values))))
        assert gap[0] == 0


@pytest.mark.jit_only
@pytest.mark.parametrize("L", [200, 1000, 5000])
@pytest.mark.parametrize("metric", ["jaccard", "f1"])
def test_thousands_of_labels(L, metric):
    p = random_marginals(2, L, seed=3)
    p[1] = np.random.default_rng(0).beta(5, 5, L)
    dist = ls.IndependentLabels(p)
    best = ls.decide(dist, metric).labelsets
    value = ls.expected_accuracy(dist, best, metric=metric).value
    assert np.isfinite(value).all()
    assert ((value > 0) & (value <= 1)).all()
    rng = np.random.default_rng(1)
    others = [dist.mode(), np.zeros((2, L)), np.ones((2, L)), best ^ (rng.random((2, L)) < 2 / L)]
    others += [(p > threshold).astype(int) for threshold in (0.1, 0.3, 0.4, 0.6)]
    for other in others:
        of_other = ls.expected_accuracy(dist, other, metric=metric).value
        assert ((of_other >= 0) & (of_other <= 1)).all()
        assert (value >= of_other - 1e-12).all()


@pytest.mark.jit_only
@pytest.mark.parametrize("metric", ["jaccard", "f1"])
def test_thousands_of_certain_labels(metric):
    """Long products of zeros and ones neither underflow nor divide by zero."""
    L = 3000
    p = np.zeros((3, L))
    p[0, : L // 2] = 1
    p[1] = 1
    dist = ls.IndependentLabels(p)
    assert_array_equal(ls.decide(dist, metric).labelsets, p)
    assert_allclose(ls.expected_accuracy(dist, metric=metric).value, [1, 1, 1])
    none = ls.decide(ls.IndependentLabels(p[2:]), metric, empty=0.0).labelsets
    assert_array_equal(none, p[2:])


def test_top_of_many_labels():
    """The best flips of 100 labels, against all flips of the few that are uncertain."""
    p = np.full((1, 100), 1e-9)
    uncertain = {3: 0.4, 17: 0.7, 64: 0.45, 99: 0.9}
    for j, value in uncertain.items():
        p[0, j] = value
    best = ls.IndependentLabels(p).top(16)
    few = oracles.joint_of_independent(list(uncertain.values()))
    labelsets, probabilities = oracles.top(few, 16)
    assert_array_equal(best.labelsets[0][:, list(uncertain)], labelsets)
    assert_allclose(best.probabilities[0], np.array(probabilities) * (1 - 1e-9) ** 96, rtol=1e-10)
    assert_array_equal(best.labelsets.sum(axis=(0, 1)) > 0, [j in uncertain for j in range(100)])


def test_top_ties_go_to_the_lowest_code():
    half = ls.IndependentLabels([[0.5, 0.5, 0.5]])
    assert_array_equal(half.top(8).labelsets @ [1, 2, 4], [range(8)])
    mixed = ls.IndependentLabels([[0.75, 0.25, 0.75]])
    codes = (mixed.top(8).labelsets @ [1, 2, 4]).tolist()
    assert codes == [[5, 1, 4, 7, 0, 3, 6, 2]]
    certain = ls.IndependentLabels([[1.0, 0.5, 0.0]])
    best = certain.top(8)
    assert_array_equal(best.labelsets @ [1, 2, 4], [[1, 3, 0, 2, 4, 5, 6, 7]])
    assert_array_equal(best.probabilities, [[0.5, 0.5, 0, 0, 0, 0, 0, 0]])


def test_top_of_thousands_of_labels_is_ordered():
    dist = ls.IndependentLabels(random_marginals(2, 2000))
    best = dist.top(50)
    log_prob = np.array([dist.log_prob(best.labelsets[:, s]) for s in range(50)])
    assert (np.diff(log_prob, axis=0) <= 1e-9).all()
    assert_allclose(log_prob[0], dist.profile().log_top)
    assert_allclose(log_prob[1], dist.profile().log_runner_up)


def test_top_takes_memory_for_what_it_returns_not_for_every_label(monkeypatch):
    """No number of Python, and no float, for each label of each labelset."""
    monkeypatch.setattr(_limits, "DECISION_BYTES", 2**16)
    dist, k = ls.IndependentLabels(random_marginals(1, 200)), 5000
    dist.top(10)
    tracemalloc.start()
    try:
        best = dist.top(k)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    returned = best.labelsets.nbytes + best.probabilities.nbytes
    assert returned < peak < returned + k * (WAITING_BYTES + 2 * 200) + 10 * 2**16


def test_top_of_many_labelsets_is_in_order_and_has_no_two_alike(monkeypatch):
    dist = ls.IndependentLabels(random_marginals(2, 90))
    whole = dist.top(3000)
    assert (np.diff(whole.probabilities, axis=1) <= 1e-12 * whole.probabilities[:, 1:]).all()
    for i, labelsets in enumerate(whole.labelsets):
        assert len(np.unique(labelsets, axis=0)) == 3000
        log_prob = dist[[i] * 3000].log_prob(labelsets)
        assert_allclose(whole.probabilities[i], np.exp(log_prob), rtol=1e-12)
    monkeypatch.setattr(_limits, "DECISION_BYTES", 1)
    in_blocks = dist.top(3000)
    assert_array_equal(in_blocks.labelsets, whole.labelsets)
    assert_array_equal(in_blocks.probabilities, whole.probabilities)


def test_sampling_in_several_blocks(monkeypatch):
    dist = ls.IndependentLabels(np.random.default_rng(0).random((7, 5)))
    whole = dist.sample(11, random_state=0)
    monkeypatch.setattr(_limits, "UNIFORM_NUMBERS", 100)
    assert_array_equal(dist.sample(11, random_state=0), whole)


@pytest.mark.parametrize(
    "wrap",
    [
        np.asfortranarray,
        lambda p: np.repeat(p, 2, axis=0)[::2],
        lambda p: np.repeat(p, 2, axis=1)[:, ::2],
        lambda p: p.astype(">f8"),
        np.ndarray.tolist,
        pd.DataFrame,
    ],
    ids=["fortran", "rows", "columns", "big-endian", "list", "frame"],
)
def test_any_layout_gives_the_same_answers(wrap):
    p = random_marginals(3, 6)
    plain, other = ls.IndependentLabels(p), ls.IndependentLabels(wrap(p))
    assert_array_equal(other.marginals(), p)
    assert_allclose(other.profile().entropy, plain.profile().entropy, rtol=1e-15)
    assert_allclose(other._size_marginals(), plain._size_marginals(), rtol=1e-14)
    for metric in oracles.METRICS:
        assert_array_equal(ls.decide(other, metric).labelsets, ls.decide(plain, metric).labelsets)
        assert_allclose(
            ls.expected_accuracy(other, metric=metric).value,
            ls.expected_accuracy(plain, metric=metric).value,
        )


def test_read_only_marginals():
    p = np.array([[0.9, 0.2]])
    p.flags.writeable = False
    dist = ls.IndependentLabels(p)
    assert_allclose(dist.profile().top, [0.72])
    assert_array_equal(ls.decide(dist, "jaccard").labelsets, [[1, 0]])
    dist.marginals()[0, 0] = 0  # what is handed out is a copy
    assert_array_equal(dist.marginals(), [[0.9, 0.2]])


def test_a_frame_brings_its_label_names():
    frame = pd.DataFrame({"cat": [0.9], "dog": [0.2]})
    assert ls.IndependentLabels(frame).label_names == ("cat", "dog")
    assert ls.IndependentLabels(frame, ["dog", "cat"]).marginals().tolist() == [[0.2, 0.9]]
    with pytest.raises(ls.InputError, match="missing are 'a'"):
        ls.IndependentLabels(frame, ["a", "b"])


def test_rounding_beside_the_unit_interval_is_put_back():
    dist = ls.IndependentLabels(np.array([[1 + 1e-7, -1e-7, 0.5]]))
    assert dist.marginals().tolist() == [[1.0, 0.0, 0.5]]
    with pytest.raises(ls.InputError, match="logits"):
        ls.IndependentLabels([[1.0001]])


def test_a_missing_probability_is_no_logit():
    with pytest.raises(ls.InputError, match="probability"):
        ls.IndependentLabels([[0.5, np.nan]])
