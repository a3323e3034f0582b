"""The simulator: its distribution is the truth, and its arguments do what they say."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles_datasets import chain_probability
from scipy import stats

import labelsure as ls
from labelsure.labelsets.codes import codes_of
from labelsure.tables import datasets


@given(st.integers(1, 6), st.floats(-3, 3), st.integers(0, 99))
def test_the_distribution_is_that_of_the_chain(n_labels, dependence, seed):
    logits = np.random.default_rng(seed).normal(0, 2, (2, n_labels))
    conditionals = datasets._chain_conditionals(logits, dependence)
    dist = datasets._make_distribution(conditionals)
    for labelset in itertools.product([0, 1], repeat=n_labels):
        expected = [chain_probability(labelset, row, dependence) for row in logits]
        np.testing.assert_allclose(np.exp(dist.log_prob([labelset] * 2)), expected, rtol=1e-9)
    np.testing.assert_allclose(dist.marginals(), datasets._forward_pass(conditionals), atol=1e-12)


@pytest.mark.parametrize("dependence", [-1.5, 0.0, 2.0])
def test_the_labelsets_drawn_follow_the_distribution(dependence):
    """Without what features say all instances share one distribution: a chi-square test."""
    data, truth = ls.make_labelsets(20_000, 4, dependence=dependence, noise=1.0, random_state=1)
    P = truth.probabilities()
    np.testing.assert_allclose(P, P[:1].repeat(len(P), axis=0), atol=1e-12)
    seen = np.bincount(codes_of(data.Y), minlength=16)
    assert stats.chisquare(seen, P[0] / P[0].sum() * len(P)).pvalue > 0.001


def test_the_labelsets_drawn_follow_the_distribution_of_each_instance():
    """Sums over instances of (indicator - probability) have mean 0 and a known spread."""
    data, truth = ls.make_labelsets(20_000, 4, dependence=1.5, noise=0.2, random_state=2)
    P = truth.probabilities()
    hit = np.eye(16)[codes_of(data.Y)]
    z = (hit - P).sum(axis=0) / np.sqrt((P * (1 - P)).sum(axis=0))
    assert np.abs(z).max() < 3.5
    # Also where the features make a labelset probable: weights that depend on x.
    z = ((hit - P) * P).sum(axis=0) / np.sqrt((P**3 * (1 - P)).sum(axis=0))
    assert np.abs(z).max() < 3.5


@pytest.mark.parametrize("cardinality", [0.01, 0.5, 2.0, 4.9, 5.99])
@pytest.mark.parametrize("dependence", [-2.0, 0.0, 3.0])
@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_the_cardinality_is_met(cardinality, dependence, noise):
    data, truth = ls.make_labelsets(
        500, 6, cardinality=cardinality, dependence=dependence, noise=noise, random_state=0
    )
    assert truth.marginals().sum(axis=1).mean() == pytest.approx(cardinality, abs=1e-9)
    assert abs(data.describe()["label_cardinality"] - cardinality) < 0.35


def neighbours_say(dependence):
    """Mean mutual information of neighbouring labels given the features, in nats."""
    _, truth = ls.make_labelsets(300, 3, dependence=dependence, random_state=0)
    joint = truth.probabilities().reshape(-1, 2, 2, 2).sum(axis=1)  # labels 1 and 0
    product = joint.sum(axis=1, keepdims=True) * joint.sum(axis=2, keepdims=True)
    return float((joint * np.log(joint / product)).sum(axis=(1, 2)).mean())


def test_more_dependence_makes_neighbours_say_more():
    assert neighbours_say(0.0) == pytest.approx(0, abs=1e-12)
    for sign in (1, -1):
        says = [neighbours_say(sign * strength) for strength in (0.0, 0.5, 1.0, 2.0)]
        assert (np.diff(says) > 0).all()


def test_the_sign_of_dependence():
    for dependence in (-1.5, 1.5):
        data, _ = ls.make_labelsets(5000, 2, dependence=dependence, noise=1.0, random_state=0)
        assert np.sign(np.corrcoef(data.Y.T)[0, 1]) == np.sign(dependence)


def test_without_dependence_labels_are_independent():
    _, truth = ls.make_labelsets(50, 5, dependence=0.0, random_state=0)
    independent = ls.IndependentLabels(truth.marginals())
    np.testing.assert_allclose(truth.probabilities(), independent.probabilities(), atol=1e-12)


def test_more_noise_makes_the_truth_less_certain():
    levels = (0.0, 0.25, 0.5, 0.75, 1.0)
    truths = [ls.make_labelsets(500, 5, noise=noise, random_state=0)[1] for noise in levels]
    entropy = [truth.profile().entropy.mean() for truth in truths]
    spread = [truth.marginals().std(axis=0).mean() for truth in truths]
    best = [ls.expected_accuracy(truth, metric="exact").value.mean() for truth in truths]
    assert (np.diff(entropy) > 0).all()
    assert (np.diff(spread) < 0).all()
    assert (np.diff(best) < 0).all()
    assert spread[-1] == pytest.approx(0, abs=1e-12)


def test_sizes_and_names():
    data, truth = ls.make_labelsets(7, 3, n_features=2, random_state=0)
    assert data.X.shape == (7, 2)
    assert data.Y.shape == (7, 3)
    assert len(truth) == 7
    assert truth.label_names is data.label_names is None


def test_seeds():
    one, two, other = (ls.make_labelsets(random_state=seed)[0] for seed in (0, 0, 1))
    assert one.checksum == two.checksum != other.checksum
    np.testing.assert_array_equal(one.Y, two.Y)
    assert ls.load_dataset("simulated").checksum == one.checksum


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_samples": 0}, "`n_samples` must be a whole number >= 1, got 0"),
        ({"n_labels": 2.0}, "`n_labels` must be a whole number >= 1, got 2.0"),
        ({"n_features": True}, "`n_features` must be a whole number >= 1, got True"),
        ({"cardinality": 6}, "`cardinality`"),
        ({"cardinality": 0}, "`cardinality`"),
        ({"cardinality": "2"}, "`cardinality`"),
        ({"cardinality": 1e-300}, "must not be as close to 0 or to the number of labels as 1e-300"),
        ({"noise": 1.1}, "`noise`"),
        ({"noise": float("nan")}, "`noise`"),
        ({"dependence": float("inf")}, "`dependence`"),
        ({"random_state": "a"}, "`random_state` must be"),
    ],
)
def test_messages(arguments, message):
    with pytest.raises(ls.InputError, match=message):
        ls.make_labelsets(**arguments)


def test_decisions_from_the_truth_are_those_of_all_its_probabilities():
    _, truth = ls.make_labelsets(40, 5, dependence=1.5, random_state=0)
    dense = ls.DenseDistribution(truth.probabilities())
    for metric in ("exact", "hamming", "jaccard", "f1"):
        np.testing.assert_array_equal(
            ls.decide(truth, metric).labelsets, ls.decide(dense, metric).labelsets
        )


def test_many_labels():
    """At 200 labels a mean of log-probabilities is minus a mean of entropies, but for chance."""
    data, truth = ls.make_labelsets(400, 200, cardinality=20, random_state=0)
    marginals, log_prob = truth.marginals(), truth.log_prob(data.Y)
    off = log_prob + truth.profile().entropy
    assert abs(off.mean()) < 3.5 * off.std() / np.sqrt(len(data))
    assert marginals.sum(axis=1).mean() == pytest.approx(20, abs=1e-9)
    z = (data.Y - marginals).sum(axis=0) / np.sqrt((marginals * (1 - marginals)).sum(axis=0))
    assert np.abs(z).max() < 4.5
