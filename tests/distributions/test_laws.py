"""Laws that hold for every distribution, whatever its kind."""

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from strategies import (
    KINDS,
    batches,
    many,
    marginal_rows,
    n_labels,
    predictions,
    same_as_every_kind,
    summary_of,
)

import labelsure as ls

for_each_kind = pytest.mark.parametrize("kind", KINDS)
METRICS = tuple(oracles.METRICS)
FIELDS = ("log_top", "log_runner_up", "entropy", "log_collision")


def tp_only(tp, fp, fn, tn):
    return tp / 10


def all_answers(dist):
    """Every method's answer by name; the rows of each are the instances."""
    profile = dist.profile()
    mode = dist.mode()
    answers = {name: getattr(profile, name) for name in FIELDS}
    answers |= {
        "mode": mode,
        "marginals": dist.marginals(),
        "log_prob": dist.log_prob(mode),
        "top_labelsets": dist.top(2).labelsets,
        "top_probabilities": dist.top(2).probabilities,
        "size_marginals": dist._size_marginals(),
        "probabilities": dist.probabilities(),
        "confidence": ls.confidence(dist).to_numpy(),
    }
    for metric in (*METRICS, tp_only):
        answers[f"expected {metric}"] = ls.expected_accuracy(dist, metric=metric).value
        answers[f"decide {metric}"] = ls.decide(dist, metric).labelsets
    return answers


@for_each_kind
@given(st.data())
def test_the_modes_expected_exact_match_is_its_probability(kind, data):
    dist = data.draw(batches(kind)).dist
    assert_allclose(
        ls.expected_accuracy(dist, metric="exact").value, dist.profile().top, rtol=1e-13
    )


@for_each_kind
@given(st.data())
def test_no_mode_means_the_mode(kind, data):
    dist = data.draw(batches(kind)).dist
    for metric in METRICS:
        assert_array_equal(
            ls.expected_accuracy(dist, metric=metric).value,
            ls.expected_accuracy(dist, dist.mode(), metric=metric).value,
        )


@for_each_kind
@given(st.data())
def test_relabelling_permutes_the_answers(kind, data):
    batch = data.draw(batches(kind, labels=n_labels(2, 4), least=1))
    order = data.draw(st.permutations(range(batch.n_labels)))
    dist = batch.relabel(order)
    assert_allclose(dist.marginals(), batch.dist.marginals()[:, order], atol=1e-6)
    for field in ("top", "runner_up", "entropy", "collision"):
        assert_allclose(
            getattr(dist.profile(), field), getattr(batch.dist.profile(), field), atol=1e-6
        )
    Y_pred = data.draw(predictions(batch))
    assert_allclose(
        dist.log_prob(Y_pred[:, order]), batch.dist.log_prob(Y_pred), rtol=1e-5, atol=1e-6
    )
    for metric in METRICS:
        assert_allclose(
            ls.expected_accuracy(dist, Y_pred[:, order], metric=metric).value,
            ls.expected_accuracy(batch.dist, Y_pred, metric=metric).value,
            atol=1e-6,
        )
        # Where several predictions tie, the lowest code changes; the value does not.
        back = ls.decide(dist, metric).labelsets[:, np.argsort(order)]
        assert_allclose(
            ls.expected_accuracy(batch.dist, back, metric=metric).value,
            ls.expected_accuracy(batch.dist, ls.decide(batch.dist, metric), metric=metric).value,
            atol=1e-6,
        )


@given(st.lists(st.integers(0, 1000).map(lambda i: i / 1000), min_size=1, max_size=4))
def test_one_label_is_the_binary_case(p):
    """Every accuracy is "right or wrong" and every candidate a function of max(p, 1 - p)."""
    column = np.array(p)[:, np.newaxis]
    q = np.maximum(p, 1 - np.array(p))
    kinds = same_as_every_kind(column.tolist())
    for dist in kinds.values():
        assert_array_equal(dist.mode(), column > 0.5)
        for metric in METRICS:
            assert_array_equal(ls.decide(dist, metric).labelsets, column > 0.5)
            assert_allclose(ls.expected_accuracy(dist, metric=metric).value, q, atol=1e-14)
        table = ls.confidence(dist)
        assert_allclose(table["HP"], 2 * q - 1, atol=1e-14)
        assert_allclose(table["TG"], 2 * q - 1, atol=1e-14)
        assert_allclose(table["GI"], (2 * q - 1) ** 2, atol=1e-14)


@given(n_labels(1, 5).flatmap(lambda L: st.lists(marginal_rows(L), min_size=1, max_size=3)))
def test_all_kinds_of_the_same_distribution_agree(p):
    answers = {name: all_answers(dist) for name, dist in same_as_every_kind(p).items()}
    for kind in answers.keys() - {"independent"}:
        for question, expected in answers["independent"].items():
            if question == "top_labelsets":  # ties of products are broken by rounding
                continue
            assert_allclose(
                answers[kind][question], expected, rtol=1e-12, atol=1e-13, err_msg=question
            )


@for_each_kind
@pytest.mark.parametrize("rows", [slice(3, 9), slice(None, None, 3), slice(5, 5), slice(9, 2, -2)])
def test_slicing_first_or_last_is_the_same(kind, rows):
    dist = many(kind, 12)
    whole = all_answers(dist)
    for question, answer in all_answers(dist[rows]).items():
        assert_allclose(answer, whole[question][rows], rtol=1e-14, err_msg=question)


@for_each_kind
def test_every_way_to_take_rows(kind):
    dist = many(kind, 6)
    marginals = dist.marginals()
    assert_array_equal(dist[2].marginals(), marginals[2:3])
    assert_array_equal(dist[-1].marginals(), marginals[5:6])
    assert_array_equal(dist[np.int64(0)].marginals(), marginals[:1])
    assert_array_equal(dist[[4, 4, 0]].marginals(), marginals[[4, 4, 0]])
    assert_array_equal(dist[np.array([1, 5])].mode(), dist.mode()[[1, 5]])
    mask = np.array([True, False, False, True, False, True])
    assert_array_equal(dist[mask].marginals(), marginals[mask])
    assert_array_equal(dist[~mask].profile().entropy, dist.profile().entropy[~mask])
    assert len(dist[[]]) == len(dist[:0]) == 0
    assert dist[[]].marginals().shape == (0, 5)
    assert_array_equal(dist[[5, 1]][[1]].marginals(), marginals[[1]])
    assert_array_equal(np.concatenate([row.marginals() for row in dist]), marginals)


@for_each_kind
def test_taking_rows_keeps_the_label_names(kind):
    names = ("b", "a")
    dist = many(kind, 1, L=2, label_names=names)
    assert dist[:1].label_names == dist[0].label_names == dist[[0, 0]].label_names == names


@for_each_kind
def test_one_thread_equals_two_to_the_last_bit(kind, monkeypatch):
    dist = many(kind, 23)
    answers, draws = {}, {}
    for threads in ("1", "2", "5"):
        monkeypatch.setenv("LABELSURE_NUM_THREADS", threads)
        answers[threads] = all_answers(dist)
        draws[threads] = dist.sample(7, random_state=1)
    for threads in ("2", "5"):
        assert_array_equal(draws[threads], draws["1"])
        for question, answer in answers["1"].items():
            assert_array_equal(answers[threads][question], answer, err_msg=question)


@for_each_kind
@pytest.mark.parametrize("n_samples", [0, 1])
@pytest.mark.parametrize("L", [1, 2, 5])
def test_no_instance_and_one_instance(kind, n_samples, L):
    dist = many(kind, 3, L=L)[:n_samples]
    assert len(dist) == n_samples
    for question, answer in all_answers(dist).items():
        assert len(answer) == n_samples, question
    assert dist.sample(3, random_state=0).shape == (n_samples, 3, L)
    assert summary_of(dist).mode.shape == (n_samples, L)
    answer = ls.decide(dist, "jaccard")
    decisions, gaps = answer.labelsets, answer.gap
    assert decisions.shape == (n_samples, L)
    assert gaps.shape == (n_samples,)
    frame = ls.confidence(dist, bounds=True)
    assert frame.shape == (n_samples, 21)
    assert dist.profile().to_frame().shape == (n_samples, 8)


@for_each_kind
def test_draws_approach_the_probabilities(kind):
    """With 20,000 draws a frequency has a standard deviation of at most 0.0036."""
    dist = many(kind, 2, L=3, seed=5)
    draws = dist.sample(20_000, random_state=0)
    frequencies = ls.LabelsetTable.from_samples(draws)
    assert_allclose(frequencies.probabilities(), dist.probabilities(), atol=0.018)
    assert_allclose(frequencies.marginals(), dist.marginals(), atol=0.018)
    assert_allclose(frequencies.profile().entropy, dist.profile().entropy, atol=0.03)
    for metric in METRICS:
        assert_allclose(
            ls.expected_accuracy(frequencies, dist.mode(), metric=metric).value,
            ls.expected_accuracy(dist, metric=metric).value,
            atol=0.018,
        )


@for_each_kind
def test_draws_of_different_instances_and_seeds_differ(kind):
    dist = many(kind, 1, L=5)[[0, 0]]
    draws = dist.sample(50, random_state=0)
    assert (draws[0] != draws[1]).any()
    assert (draws != dist.sample(50, random_state=1)).any()


@for_each_kind
@given(st.data())
def test_no_prediction_beats_the_decision(kind, data):
    batch = data.draw(batches(kind))
    Y_pred = data.draw(predictions(batch))
    empty = data.draw(st.sampled_from([0.0, 0.5, 1.0]))
    for metric in METRICS:
        best = ls.decide(batch.dist, metric, empty=empty).labelsets
        of_best = ls.expected_accuracy(batch.dist, best, metric=metric, empty=empty).value
        other = ls.expected_accuracy(batch.dist, Y_pred, metric=metric, empty=empty).value
        assert (of_best >= other - 1e-12).all()
        assert (of_best <= 1 + 1e-4).all()
