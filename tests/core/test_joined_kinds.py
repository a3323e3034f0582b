"""Blocks of labels and smoothed tables: many labels, powers, and what they refuse.

What every kind answers is compared with loops in `test_all_kinds.py`.
"""

import numpy as np
import oracles
import oracles_joints
import oracles_recalibration
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from strategies import as_table, many

import labelsure as ls
from labelsure.distributions._overlap_tables import count_overlaps


def singles(p):
    return ls.BlockProduct(
        [([j], ls.IndependentLabels(p[:, j : j + 1])) for j in range(p.shape[1])]
    )


def test_blocks_of_one_label_are_independent_labels():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.01, 0.99, (3, 60))
    product, independent = singles(p), ls.IndependentLabels(p)
    for name in ("log_top", "log_runner_up", "entropy", "log_collision"):
        found, expected = (getattr(dist.profile(), name) for dist in (product, independent))
        assert_allclose(found, expected, rtol=1e-12)
    assert_array_equal(product.mode(), independent.mode())
    best = [dist.top(7) for dist in (product, independent)]
    assert_array_equal(best[0].labelsets, best[1].labelsets)
    assert_allclose(best[0].probabilities, best[1].probabilities, rtol=1e-12)
    assert_allclose(product.size_marginals(), independent.size_marginals(), atol=1e-14)
    guess = (rng.random((3, 60)) < 0.3).astype(int)
    for metric in ("jaccard", "f1", "hamming", "exact"):
        found = ls.expected_accuracy(product, guess, metric=metric)
        assert_allclose(found, ls.expected_accuracy(independent, guess, metric=metric), rtol=1e-11)
    assert_array_equal(ls.decide(product, "f1"), ls.decide(independent, "f1"))


def test_probabilities_too_small_for_a_number_still_have_an_order():
    p = np.full((1, 5000), 0.6)
    best = singles(p).top(3)
    assert_array_equal(best.labelsets.sum(axis=2), [[5000, 4999, 4999]])
    assert_array_equal(np.flatnonzero(best.labelsets[0, 1] == 0), [4999])  # the lowest code
    assert singles(p).profile().log_top == pytest.approx(5000 * np.log(0.6))


def test_a_block_of_many_labels_counts_by_its_own_expected_accuracies():
    rng = np.random.default_rng(1)
    p = rng.random((2, 16))
    tables = [p[:, j : j + 1] for j in range(16)]
    trellis = ls.TrellisDistribution(tables, [()] * 16, range(16))
    guess = (rng.random((2, 16)) < 0.2).astype(np.int8)
    expected = count_overlaps(ls.IndependentLabels(p), guess)
    assert_allclose(count_overlaps(trellis, guess), expected, atol=1e-12)
    assert_allclose(expected.sum(axis=(1, 2)), 1)


def test_blocks_know_their_rows_names_and_engines():
    import pandas as pd

    frame = pd.DataFrame([[0.2, 0.9], [0.3, 0.4]], ["r", "s"], ["a", "c"])
    left = ls.IndependentLabels(frame)
    right = ls.DenseDistribution([[0.5, 0.5], [0.1, 0.9]], ["b"])
    dist = ls.BlockProduct([([0, 2], left), ([1], right)])
    assert dist.label_names == ("a", "b", "c")
    assert list(dist.index) == ["r", "s"]
    assert [labels.tolist() for labels, _ in dist.blocks] == [[0, 2], [1]]
    assert ls.BlockProduct([([0, 2], left), ([1], right)], list("xyz")).label_names == (
        "x",
        "y",
        "z",
    )
    unnamed = ls.IndependentLabels([[0.5], [0.5]])
    assert ls.BlockProduct([([0], right), ([1], unnamed)]).label_names == ("y0", "y1")


def test_a_block_of_chains_keeps_its_bounds():
    rng = np.random.default_rng(2)
    chains = [
        ls.LinearChain(range(30), rng.normal(size=(2, 30)), 0.3 * np.tril(np.ones((30, 30)), -1))
    ]
    chain = ls.ChainMixture(chains, engine="certified", budget=50)
    pair = ls.DenseDistribution(np.full((2, 4), 0.25))
    dist = ls.BlockProduct([(range(30), chain), ([30, 31], pair)])
    inner, outer = chain.profile(), dist.profile()
    assert (outer.method == inner.method).all()
    assert (outer.method != "exact").all()
    assert_allclose(outer.high.entropy, inner.high.entropy + np.log(4))
    assert_allclose(outer.low.entropy, inner.low.entropy + np.log(4))
    assert_allclose(outer.entropy_error, inner.entropy_error)
    assert_allclose(outer.collision_error, inner.collision_error / 4)
    found, within = dist.top(1), chain.top(1)
    assert_allclose(found.high, within.high / 4)
    with pytest.raises(ls.TooLargeError, match=r"no exact expected accuracies\. Use smaller"):
        ls.expected_accuracy(dist, metric="jaccard")


def searched_blocks(budget):
    """Blocks of five chained labels and of two, of which little is searched; and all of it."""
    rng = np.random.default_rng(6)
    chains = [
        ls.LinearChain(rng.permutation(5), rng.normal(size=(6, 5)), rng.normal(size=(5, 5)))
        for _ in range(3)
    ]
    pair = ls.DenseDistribution(rng.dirichlet(np.ones(4), size=6))
    few = ls.ChainMixture(chains, engine="certified", budget=budget, tolerance=0.0)
    blocks = [([0, 2, 3, 4, 6], few), ([1, 5], pair)]
    return (
        ls.BlockProduct(blocks),
        few,
        ls.BlockProduct([(blocks[0][0], ls.ChainMixture(chains)), blocks[1]]),
    )


@pytest.mark.parametrize("metric", ["exact", "hamming"])
def test_decisions_of_blocks_say_how_far_below_the_best_they_can_be(metric):
    dist, block, whole = searched_blocks(budget=3)
    decided, gap = ls.decide(dist, metric, return_gap=True)
    alone, own_gap = ls.decide(block, metric, return_gap=True)
    assert_array_equal(decided[:, [0, 2, 3, 4, 6]], alone)
    assert (own_gap > 0).any()
    best, none = ls.decide(whole, metric, return_gap=True)
    assert_allclose(none, 0, atol=1e-15)
    of_best, of_decided = (ls.expected_accuracy(whole, Y, metric=metric) for Y in (best, decided))
    assert (of_best - of_decided <= gap + 1e-12).all()
    pair = np.exp(dist.blocks[1][1].log_prob(decided[:, [1, 5]]))
    expected = pair * own_gap if metric == "exact" else 5 / 7 * own_gap
    assert_allclose(gap, expected, atol=1e-12)


def test_a_product_to_a_power_is_the_product_of_powers():
    P = np.random.default_rng(3).dirichlet(np.ones(4), size=(2, 2))
    blocks = [([0, 3], P[0]), ([1, 2], P[1])]
    dist = ls.BlockProduct([(labels, ls.DenseDistribution(some)) for labels, some in blocks])
    for row in range(2):
        joint = oracles_joints.joint_of_blocks(
            [(labels, some[row].tolist()) for labels, some in blocks], 4
        )
        expected = oracles_recalibration.temper(joint, 1.7)
        assert_allclose(dist.temper(1.7).probabilities()[row], expected, rtol=1e-12)
    trellis = many("trellis", 2, 3)
    chain = ls.BlockProduct([([0, 2, 3], trellis), ([1], ls.IndependentLabels([[0.2], [0.9]]))])
    Y = np.array([[1, 0, 1, 1], [0, 1, 0, 0]])
    logits = chain.link_logits(Y)
    assert_allclose(logits[:, 0, [0, 2, 3]], trellis.link_logits(Y[:, [0, 2, 3]])[:, 0])
    assert_allclose(logits[:, 0, 1], np.log([4, 9]))
    tempered = chain.temper(2.0, links=True).log_prob(Y)
    alone = trellis.temper(2.0, links=True).log_prob(Y[:, [0, 2, 3]])
    assert_allclose(tempered - alone, np.log([0.64 / 0.68, 0.81 / 0.82]))
    mixed = ls.BlockProduct(
        [([0, 1], many("mixture", 2, 2)), ([2], ls.IndependentLabels([[0.2]] * 2))]
    )
    with pytest.raises(ls.InputError, match="has no links"):
        mixed.link_logits(Y[:, :3])


@pytest.mark.parametrize("power", [0.3, 1.7, 40.0])
def test_a_smoothed_table_to_a_power(power):
    rng = np.random.default_rng(4)
    table = np.where(rng.random((3, 8)) < 0.4, rng.random((3, 8)), 0)
    table[:, 0] += 0.1
    table /= table.sum(axis=1, keepdims=True)
    p, shares = rng.random((3, 3)), np.array([0.3, 1.0, 0.9])
    dist = ls.SmoothedTable(as_table(table, 3), ls.IndependentLabels(p), shares)
    raised = dist.temper(power)
    assert isinstance(raised, ls.SmoothedTable)
    for row in range(3):
        P = oracles_joints.joint_of_smoothed(table[row], p[row].tolist(), shares[row])
        expected = oracles_recalibration.temper(P, power)
        assert_allclose(raised.probabilities()[row], expected, rtol=1e-11, atol=1e-14)
    assert raised.sample(5, random_state=0).shape == (3, 5, 3)


def test_many_labels_over_a_rest_are_exact():
    """Entropy and collision of 40 labels: what the table adds moves only a few terms."""
    rng = np.random.default_rng(5)
    rest = ls.IndependentLabels(rng.uniform(0.2, 0.8, (1, 40)))
    rows = (rng.random((1, 3, 40)) < 0.5).astype(int)
    dist = ls.SmoothedTable(ls.LabelsetTable(rows, [[0.5, 0.3, 0.2]]), rest, 0.25)
    listed = [
        (0.75 * t, 0.25 * float(np.exp(rest.log_prob(row[np.newaxis]))[0]))
        for t, row in zip([0.5, 0.3, 0.2], rows[0], strict=True)
    ]
    entropy = 0.25 * (float(rest.profile().entropy[0]) - np.log(0.25))
    squares = 0.0625 * float(rest.profile().collision[0])
    for added, before in listed:
        entropy += before * np.log(before) - (added + before) * np.log(added + before)
        squares += (added + before) ** 2 - before**2
    assert dist.profile().entropy[0] == pytest.approx(entropy, rel=1e-12)
    assert dist.profile().collision[0] == pytest.approx(squares, rel=1e-12)
    draws = dist.sample(4000, random_state=0)[0]
    from_table = (draws == rows[0, 0]).all(axis=1).mean()
    assert from_table == pytest.approx(0.375, abs=0.03)
    assert -dist[np.zeros(4000, dtype=int)].log_prob(draws).mean() == pytest.approx(
        entropy, abs=0.6
    )


def test_what_the_new_kinds_refuse():
    pair, one = many("dense", 2, 2), many("dense", 2, 1)
    for blocks, message in (
        ([], "at least one block, got none"),
        ([([0], "no")], "got a str in place of a distribution"),
        ([([1, 0], pair)], r"rising positions of labels, got \[1, 0\]"),
        ([([0.5, 1.5], pair)], "rising positions"),
        ([([0], pair)], "A block of 1 labels must have a distribution of as many, got one of 2"),
        (
            [([0, 1], pair), ([1], one)],
            r"Every label must be in one block.* got the labels \[0, 1, 1\]",
        ),
        ([([0, 1], pair), ([2], one[:1])], r"must have the same instances, got \[1, 2\]"),
    ):
        with pytest.raises(ls.InputError, match=message):
            ls.BlockProduct(blocks)
    table, rest = many("table", 2, 2), many("independent", 2, 2)
    for arguments, message in (
        ((rest, rest, 0.1), "`table` must be a LabelsetTable, got IndependentLabels"),
        ((table, table, 0.1), "`rest` must be a IndependentLabels, got LabelsetTable"),
        ((table, rest[:1], 0.1), "got 2 and 1 instances"),
        ((table, rest, 0.0), "must be above 0 and at most 1, .*got 0.0"),
        ((table, rest, 1.5), "must be above 0 and at most 1"),
        ((table, rest, [0.1, 0.2, 0.3]), "one for each of the 2 instances, got shape"),
    ):
        with pytest.raises(ls.InputError, match=message):
            ls.SmoothedTable(*arguments)


def test_oracles_are_distributions():
    blocks = [([0, 2], [0.1, 0.2, 0.3, 0.4]), ([1], [0.5, 0.5])]
    joint = oracles_joints.joint_of_blocks(blocks, 3)
    assert sum(joint) == pytest.approx(1)
    assert joint[oracles.code_of((1, 1, 0))] == pytest.approx(0.2 * 0.5)
