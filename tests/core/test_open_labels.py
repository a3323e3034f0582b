"""The expected accuracy of answers that leave labels open, for every kind, against loops."""

import numpy as np
import oracles
import oracles_partial as naive
import pandas as pd
import pytest
import strategies
from hypothesis import given
from hypothesis import strategies as st

import labelsure as ls


def share_right(tp, fp, fn, tn):
    """A metric of one's own that counts the true negatives."""
    return (tp + 0.5 * tn) / (tp + fp + fn + tn)


METRICS = (*oracles.METRICS, share_right)


def answer_rows(L):
    return st.lists(st.sampled_from([0, 1, -1]), min_size=L, max_size=L).map(tuple)


@st.composite
def asked(draw, kind):
    batch = draw(strategies.batches(kind, least=1))
    rows = st.lists(answer_rows(batch.n_labels), min_size=2, max_size=2)
    return batch, draw(st.lists(rows, min_size=len(batch), max_size=len(batch)))


@pytest.mark.parametrize("kind", strategies.KINDS)
@given(data=st.data(), empty=st.sampled_from([0.0, 0.5, 1.0]))
def test_expected_accuracy_of_the_decided_labels(kind, data, empty):
    batch, answers = data.draw(asked(kind))
    for metric in METRICS:
        found = batch.dist.expected_decided(metric, np.array(answers), empty=empty)
        for i, P in enumerate(batch.P):
            for g, answer in enumerate(answers[i]):
                expected = naive.expected_decided(P, answer, metric, empty)
                if expected is None:
                    assert np.isnan(found.value[i, g])
                    continue
                assert found.value[i, g] == pytest.approx(expected, abs=1e-6)
                assert found.low[i, g] <= found.value[i, g] <= found.high[i, g]


@pytest.mark.parametrize("kind", strategies.KINDS)
def test_an_answer_without_open_labels_is_a_labelset(kind):
    dist = strategies.many(kind, 20)
    Y = dist.sample(1, random_state=0)[:, 0]
    for metric in METRICS:
        expected = dist.expected(metric, Y, empty=0.3).value
        found = dist.expected_decided(metric, ls.PartialLabelsets(Y, dist.label_names), empty=0.3)
        np.testing.assert_allclose(found.value, expected, atol=1e-12)


@given(st.integers(0, 10**6), st.integers(1, 40))
def test_chains_that_are_enumerated_bound_it(seed, budget):
    rng = np.random.default_rng(seed)
    chains = [
        ls.LinearChain(rng.permutation(5), rng.normal(size=(2, 5)), rng.normal(size=(5, 5)))
        for _ in range(2)
    ]
    dense = ls.ChainMixture(chains)
    few = dense.with_engine(engine="certified", budget=budget, tolerance=0.0)
    answers = rng.integers(-1, 2, size=(2, 3, 5))
    answers[:, 0], answers[:, 1:, 0] = -1, 1
    for metric in METRICS:
        exact, found = (dist.expected_decided(metric, answers) for dist in (dense, few))
        assert np.isnan(found.value[:, 0]).all()
        assert (found.low[:, 1:] <= exact.value[:, 1:] + 1e-9).all()
        assert (found.high[:, 1:] >= exact.value[:, 1:] - 1e-9).all()


def test_many_labels():
    """Beyond what can be written out: a trellis without edges is independent labels."""
    rng = np.random.default_rng(0)
    marginals, answers = rng.uniform(size=(2, 40)), rng.integers(-1, 2, size=(2, 3, 40))
    conditionals = [marginals[:, [j]] for j in range(40)]
    trellis = ls.TrellisDistribution(conditionals, [()] * 40, np.arange(40))
    independent = ls.IndependentLabels(marginals)
    for metric in METRICS:
        first, second = (d.expected_decided(metric, answers).value for d in (trellis, independent))
        np.testing.assert_allclose(first, second, atol=1e-9)


def test_answers_that_do_not_fit_are_refused():
    names = ["cat", "dog"]
    dist = ls.IndependentLabels(pd.DataFrame([[0.2, 0.6]], index=["a"], columns=names))
    with pytest.raises(ls.InputError, match="in their order, cat, dog, got dog, cat"):
        dist.expected_decided("f1", ls.PartialLabelsets([[1, -1]], ["dog", "cat"]))
    with pytest.raises(ls.InputError, match="the rows of the distribution, in their order, got"):
        dist.expected_decided("f1", ls.PartialLabelsets([[1, -1]], names, pd.Index(["b"])))
    with pytest.raises(ls.InputError, match=r"must have shape \(1, 2\).* got shape \(1, 3\)"):
        dist.expected_decided("f1", [[1, 0, -1]])
    with pytest.raises(ls.InputError, match=r"must be 1 \(there\), 0 \(absent\) or -1 \(open\)"):
        dist.expected_decided("f1", [[1, 2]])


class OnlyRequired(ls.IndependentLabels):
    """A kind that has no way of its own."""

    _expected_hidden = ls.LabelsetDistribution._expected_hidden


def test_a_kind_without_a_way_is_refused_beyond_what_can_be_written_out():
    answers = np.full((1, 15), -1)
    answers[0, 0] = 1
    found = OnlyRequired([[0.7] * 14]).expected_decided("f1", answers[:, :14])
    assert found.value == pytest.approx(0.7)
    with pytest.raises(ls.TooLargeError, match=r"at most 14 labels, got 15\. Use Independent"):
        OnlyRequired([[0.7] * 15]).expected_decided("f1", answers)
