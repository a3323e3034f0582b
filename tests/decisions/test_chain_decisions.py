"""Decisions for chains with too many labels to see all labelsets, where the truth is known."""

import numpy as np
import pytest
from scipy.special import logit

import labelsure as ls
from labelsure._runtime import limits as _limits
from labelsure.distributions._dense import DenseDistribution
from labelsure.metrics.registry import EXACT

METRICS = ("hamming", "f1", "jaccard")


def independent_case(n_labels, n_samples=6):
    """Independent labels, and the same as two chains in different orders."""
    rng = np.random.default_rng(n_labels)
    P = rng.beta(0.6, 1.5, size=(n_samples, n_labels))
    chains = [
        ls.distributions.LinearChain(order, logit(P)[:, order], np.zeros((n_labels, n_labels)))
        for order in (rng.permutation(n_labels), rng.permutation(n_labels))
    ]
    return ls.IndependentLabels(P), chains


def trellis_case(n_labels, n_samples=6):
    """A trellis in which each label depends on the one before it, and the same as a chain."""
    rng = np.random.default_rng(n_labels)
    base = rng.normal(-0.8, 1.2, size=(n_samples, n_labels))
    pull = rng.normal(0.5, 1.5, size=n_labels)
    first = 1 / (1 + np.exp(-base[:, :1]))
    others = [
        1 / (1 + np.exp(-np.column_stack([base[:, j], base[:, j] + pull[j]])))
        for j in range(1, n_labels)
    ]
    parents = [[], *([j - 1] for j in range(1, n_labels))]
    trellis = ls.distributions.TrellisDistribution([first, *others], parents, np.arange(n_labels))
    weights = np.diag(pull[1:], -1)
    return trellis, [ls.distributions.LinearChain(np.arange(n_labels), base, weights)]


CASES = {
    "independent, 40 labels": (independent_case, 40),
    "independent, 100 labels": (independent_case, 100),
    "trellis, 40 labels": (trellis_case, 40),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.jit_only
@pytest.mark.slow
def test_decisions_are_near_the_best_where_that_is_known(case):
    make, n_labels = CASES[case]
    truth, chains = make(n_labels)
    dist = ls.distributions.ChainMixture(chains)
    drawn = dist.sample(1, random_state=1)[:, 0]
    np.testing.assert_allclose(dist.log_prob(drawn), truth.log_prob(drawn), atol=1e-9)
    for metric in METRICS:
        answer = ls.decide(dist, metric)
        decided, gap = answer.labelsets, answer.gap
        best = ls.decide(truth, metric).labelsets
        loss = ls.expected_accuracy(truth, best, metric=metric).value
        loss -= ls.expected_accuracy(truth, decided, metric=metric).value
        assert (loss <= gap + 1e-12).all()
        assert loss.mean() <= 0.001, metric
        assert loss.max() <= 0.004, metric
        mode = ls.expected_accuracy(truth, dist.mode(), metric=metric).value
        assert (
            ls.expected_accuracy(truth, decided, metric=metric).value.mean() > mode.mean() - 0.004
        )


@pytest.mark.parametrize("empty", [0.0, 1.0])
@pytest.mark.jit_only
def test_gaps_hold_with_draws_for_the_rest(empty, monkeypatch):
    """Few enumerated, few drawn, all of six labels known."""
    monkeypatch.setattr(_limits, "FIRST_SEARCH", 4)
    rng = np.random.default_rng(3)
    for spread in (0.4, 1.5):
        chains = [
            ls.distributions.LinearChain(
                rng.permutation(6),
                spread * rng.normal(size=(40, 6)),
                spread * rng.normal(size=(6, 6)),
            )
            for _ in range(2)
        ]
        dense = DenseDistribution(ls.distributions.ChainMixture(chains).probabilities())
        dist = ls.distributions.ChainMixture(chains, max_exact_labels=1, budget=30)
        for metric in ("exact", *METRICS):
            answer = ls.decide(dist, metric, empty=empty)
            decided, gap = answer.labelsets, answer.gap
            best = ls.decide(dense, metric, empty=empty).labelsets
            value = ls.expected_accuracy(dense, decided, metric=metric, empty=empty).value
            optimum = ls.expected_accuracy(dense, best, metric=metric, empty=empty).value
            assert (value + gap >= optimum - 1e-10).all(), metric
            assert gap.max() <= 1 + 1e-12


def test_the_mode_goes_by_probabilities_not_by_draws():
    """A draw stands for many labelsets; its share of the rest is not its probability."""
    _, chains = independent_case(30)
    dist = ls.distributions.ChainMixture(chains)
    for rows, known in dist._best(EXACT, 1.0):
        mode = known.table.mode()
        part = dist[rows]
        assert (part.log_prob(mode) >= part.log_prob(dist[rows].mode()) - 1e-9).all()
        np.testing.assert_allclose(known.table.log_prob(mode), part.log_prob(mode), atol=1e-9)
        np.testing.assert_allclose(known.table._seen.totals(), 1.0)
        np.testing.assert_array_equal(known.table[:2].mode(), mode[:2])
