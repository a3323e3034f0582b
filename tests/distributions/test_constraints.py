"""Rules among labels: valid labelsets, restricted distributions and decisions, against loops."""

import networkx as nx
import numpy as np
import oracles
import oracles_rules
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from strategies import as_prefix_chain, bound_rules, linear_chains, many, random_rules

import labelsure as ls
from labelsure.distributions import ChainMixture, SmoothedTable
from labelsure.distributions._constrained import constrain, constrain_logits
from labelsure.distributions._rule_trellis import EffectiveOdds, make_rule_trellis, plan_positions
from labelsure.labelsets.label_rules import Group

SEEDS = st.integers(0, 2**32 - 1)
TREE = {"poodle": "dog", "dog": "animal", "cat": "animal"}
NAMES = ["animal", "cat", "dog", "poodle"]


def draw_rules(seed, n_labels=5, several_parents=False):
    rng = np.random.default_rng(seed)
    return rng, *random_rules(rng, n_labels, several_parents)


def any_groups(rng, n_labels):
    """Groups that overlap and cross parents."""
    sizes = rng.integers(2, n_labels + 1, size=2)
    return [(tuple(rng.permutation(n_labels)[:size].tolist()), False) for size in sizes]


@given(SEEDS, st.booleans(), st.booleans())
def test_valid_labelsets_are_those_of_the_loops(seed, several_parents, overlapping):
    rng, parents, groups = draw_rules(seed, 5, several_parents)
    groups = any_groups(rng, 5) if overlapping else groups
    rules = bound_rules(parents, groups)
    labelsets = oracles_rules.all_labelsets(5)
    valid = [oracles_rules.is_valid(y, parents, groups) for y in labelsets]
    assert_array_equal(rules.is_valid(np.array(labelsets, dtype=np.int8)), valid)
    listed = rules.valid_labelsets(32)
    assert_array_equal(listed, np.array(labelsets)[valid])
    assert rules.valid_labelsets(len(listed) - 1) is None


@given(SEEDS)
def test_closed_labelsets_have_all_ancestors(seed):
    _, parents, _ = draw_rules(seed, 5, several_parents=True)
    labelsets = oracles_rules.all_labelsets(5)
    closed = [oracles_rules.ancestors_added(y, parents) for y in labelsets]
    rules, Y = bound_rules(parents, []), np.array(labelsets, dtype=np.int8)
    assert_array_equal(rules.close(Y), closed)
    assert_array_equal(rules.close(sparse.csr_array(Y)).toarray(), closed)


@given(SEEDS)
def test_effective_odds_give_the_restricted_distribution_and_its_gradient(seed):
    rng, parents, groups = draw_rules(seed)
    rules, z = bound_rules(parents, groups), rng.normal(size=5)
    P = oracles_rules.restricted(oracles_rules.independent_weights(z), parents, groups)
    labelsets = np.array(oracles_rules.all_labelsets(5), dtype=np.int8)
    listed = rules.valid_labelsets(32)
    odds = EffectiveOdds.of(rules, np.tile(z, (len(listed), 1)))
    assert_allclose(np.exp(odds.log_prob(listed)), P[P > 0], rtol=1e-9)
    assert_allclose(odds.gradient(listed), listed - P @ labelsets, atol=1e-9)


@given(SEEDS)
def test_odds_of_labels_with_several_parents_are_a_joint_with_this_gradient(seed):
    rng, parents, _ = draw_rules(seed, 5, several_parents=True)
    rules, z = bound_rules(parents, []), rng.normal(size=(1, 5))
    listed = rules.valid_labelsets(32)
    odds = EffectiveOdds.of(rules, np.tile(z, (len(listed), 1)))
    assert_allclose(np.exp(odds.log_prob(listed)).sum(), 1, rtol=1e-9)
    trellis = make_rule_trellis(rules, np.tile(z, (len(listed), 1)))
    assert_allclose(odds.log_prob(listed), trellis.log_prob(listed), atol=1e-8)
    for j in range(5):
        ahead, behind = np.tile(z, (len(listed), 1)), np.tile(z, (len(listed), 1))
        ahead[:, j] += 1e-5
        behind[:, j] -= 1e-5
        rise = EffectiveOdds.of(rules, ahead).log_prob(listed)
        rise -= EffectiveOdds.of(rules, behind).log_prob(listed)
        assert_allclose(odds.gradient(listed)[:, j], rise / 2e-5, atol=1e-6)


@pytest.mark.parametrize("kind", ["dense", "counts", "table", "trellis", "mixture"])
@given(SEEDS, st.booleans())
def test_joints_keep_their_valid_labelsets(kind, seed, overlapping):
    rng, parents, groups = draw_rules(seed)
    groups = any_groups(rng, 5) if overlapping else groups
    dist = many(kind, 3, seed=seed % 1000)
    if kind == "mixture":  # chains obey link by link
        dist = ls.DenseDistribution(dist.probabilities())
    restricted = constrain(dist, bound_rules(parents, groups))
    for i, P in enumerate(dist.probabilities()):
        wanted = oracles_rules.restricted(P, parents, groups)
        assert_allclose(restricted.probabilities()[i], wanted, atol=1e-12)


@pytest.mark.parametrize("as_chain", [lambda chain: chain, as_prefix_chain])
@given(SEEDS, st.booleans())
def test_chains_obey_in_any_order(as_chain, seed, several_parents):
    _, parents, groups = draw_rules(seed, 5, several_parents)
    # Chains cannot look ahead for a group below parents of which one must be true.
    groups = [(members, required and not parents[members[0]]) for members, required in groups]
    chain = linear_chains(seed, 5, 1, 2.0, n_samples=2)[0]
    dist = constrain(ChainMixture([as_chain(chain)]), bound_rules(parents, groups))
    P = dist.probabilities()
    for i in range(2):
        wanted = np.array(
            oracles_rules.forced_chain(
                lambda j, before, i=i: chain.conditional(j, np.array([i]), before)[0],
                chain.order.tolist(),
                parents,
                groups,
            )
        )
        assert_allclose(P[i], wanted, atol=1e-9)


@pytest.mark.parametrize(
    ("parents", "groups"),
    [
        ([(), (), ()], [((0, 1), True), ((1, 2), False)]),
        ([(), (), ()], [((0, 1), True), ((1, 2), True)]),
        ([(), (), (0,)], [((1, 2), True)]),
        ([(), (0,), (0,)], [((1, 2), True)]),
    ],
)
@pytest.mark.parametrize("as_chain", [lambda chain: chain, as_prefix_chain])
def test_chains_refuse_groups_whose_last_label_may_be_left_no_value(as_chain, parents, groups):
    chain = as_chain(linear_chains(0, 3, 1, 2.0, n_samples=2)[0])
    with pytest.raises(ls.InputError, match="in no other group for chains"):
        constrain(ChainMixture([chain]), bound_rules(parents, groups))


@pytest.mark.parametrize("metric", ["exact", "hamming", "jaccard", "f1", "recall"])
@given(SEEDS)
def test_decisions_are_the_best_valid_labelsets(metric, seed):
    rng, parents, groups = draw_rules(seed, 4)
    names = list("abcd")
    rules = ls.LabelConstraints(
        {names[j]: [names[p] for p in some] for j, some in enumerate(parents) if some},
        exclusive=[[names[j] for j in members] for members, required in groups if not required],
        exactly_one=[[names[j] for j in members] for members, required in groups if required],
    )
    p = rng.uniform(0.05, 0.95, size=(2, 4))
    dist = rules.apply(ls.IndependentLabels(p, names))
    found = ls.decide(dist, metric)
    assert not len(rules.check(found))
    value = oracles.METRICS[metric]
    for i, P in enumerate(dist.probabilities()):
        best = oracles_rules.best_valid(
            P, parents, groups, lambda y, g: value(*oracles.counts(y, g), 1.0)
        )
        mine = ls.expected_accuracy(dist, found.labelsets, metric=metric).value[i]
        assert mine <= best + 1e-9
        if metric != "hamming":  # by marginals; the best proposal where that breaks a rule
            assert mine >= best - 1e-9
        assert mine >= best - found.gap[i] - 1e-9


@given(SEEDS)
def test_decisions_of_trellises_are_valid_and_within_their_gap(seed):
    rng, parents, groups = draw_rules(seed, 6)
    rules = bound_rules(parents, groups)
    logits = rng.normal(size=(2, 6))
    trellis = make_rule_trellis(rules, logits)
    trellis._rules = rules
    listed = constrain_logits(logits, rules)
    listed._rules = rules
    for metric in ("f1", "jaccard", "hamming"):
        found, best = ls.decide(trellis, metric), ls.decide(listed, metric)
        assert rules.is_valid(found.labelsets).all()
        value = ls.expected_accuracy(trellis, found.labelsets, metric=metric).value
        most = ls.expected_accuracy(listed, best.labelsets, metric=metric).value
        assert (value >= most - found.gap - 1e-9).all()


@pytest.mark.parametrize("seed", range(3))
def test_wide_trees_of_hundreds_of_labels_are_exact(seed):
    rng = np.random.default_rng(seed)
    parents = [(), *((int(rng.integers(max(0, i // 12 - 3), i // 6 + 1)),) for i in range(1, 400))]
    children = {}
    for label, some in enumerate(parents):
        children.setdefault(some, []).append(label)
    groups = [
        Group(tuple(members), False)
        for some, members in children.items()
        if len(members) > 1 and rng.random() < 0.5
    ]
    rules = bound_rules(parents, groups)
    logits = rng.normal(-1, 1, size=(3, 400))
    trellis = make_rule_trellis(rules, logits)
    assert plan_positions(rules).memory <= 6
    draws = trellis.sample(20, 0)
    assert rules.is_valid(draws.reshape(-1, 400)).all()
    odds = EffectiveOdds.of(rules, logits)
    assert_allclose(trellis.log_prob(draws[:, 0]), odds.log_prob(draws[:, 0]), atol=1e-8)
    # The gradient is the labelset minus the marginals.
    assert_allclose(trellis.marginals(), draws[:, 0] - odds.gradient(draws[:, 0]), atol=1e-9)
    assert rules.is_valid(trellis.mode()).all()


def test_rows_without_a_valid_labelset_are_predicted_from_their_marginals():
    rules = ls.LabelConstraints({"dog": "animal"})
    dense = ls.DenseDistribution([[0, 0, 1.0, 0], [0.5, 0, 0, 0.5]], ["animal", "dog"])
    table = ls.LabelsetTable([[[0, 1]], [[0, 0]]], [[1.0], [1.0]], ["animal", "dog"])
    for dist in (rules.apply(dense), rules.apply(table)):
        # The odds of a certain child and of its impossible parent cancel.
        assert_allclose(dist.probabilities()[0], [0.5, 0, 0, 0.5], atol=1e-9)
        assert not len(rules.check(dist.mode(), ["animal", "dog"]))
    assert_allclose(rules.apply(dense).probabilities()[1], [0.5, 0, 0, 0.5])


def test_votes_get_ancestors_and_contradictory_ones_are_dropped():
    votes = [[["poodle"], ["cat"], ["cat", "dog"]]]
    table = ls.LabelsetTable.from_samples(votes, NAMES)
    rules = ls.LabelConstraints(TREE, exclusive=[["cat", "dog"]])
    with pytest.warns(UserWarning, match="1 of 3 distinct answers"):
        dist = rules.apply(table)
    assert_allclose(dist.marginals(), [[1.0, 0.5, 0.5, 0.5]])
    assert isinstance(dist, ls.LabelsetTable)


def test_smoothed_votes_are_restricted_as_their_joint():
    table = ls.LabelsetTable([[[1, 0], [0, 1]]], [[0.5, 0.5]])
    dist = SmoothedTable(table, ls.IndependentLabels([[0.5, 0.5]]), 0.4)
    restricted = constrain(dist, bound_rules([(), (0,)], []))
    wanted = oracles_rules.restricted(dist.probabilities()[0], [(), (0,)], [])
    assert_allclose(restricted.probabilities(), [wanted])


def test_ancestors_of_very_many_labels_are_raised():
    p = sparse.csr_array(([0.9, 0.2, 0.4], ([0, 0, 1], [2, 1, 3])), shape=(2, 6000))
    names = [f"l{j}" for j in range(6000)]
    rules = ls.LabelConstraints({"l2": ["l1", "l4"], "l3": "l2"})
    dist = rules.apply(ls.SparseIndependentLabels(p, label_names=names))
    marginals = (
        dist.marginals().toarray() if sparse.issparse(dist.marginals()) else dist.marginals()
    )
    assert_allclose(marginals[:, [1, 2, 3, 4]], [[0.9, 0.9, 0, 0.9], [0.4] * 4], atol=1e-6)
    closed = rules.close(sparse.csr_array(([1], ([0], [3])), shape=(1, 6000)), names)
    assert closed.labelsets.indices.tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize(
    "parents",
    [
        TREE,
        {"poodle": ["dog"], "dog": ["animal"], "cat": ["animal"]},
        pd.DataFrame({"parent": list(TREE.values()), "child": list(TREE)}),
        pd.DataFrame(list(TREE.items())),
        nx.DiGraph([(parent, child) for child, parent in TREE.items()]),
        {**TREE, "poodle": "lapdog", "lapdog": "dog", "animal": "thing"},
    ],
    ids=["dict", "lists", "frame", "two columns", "graph", "skipped parents"],
)
def test_every_form_of_parents_means_the_same(parents):
    rules = ls.LabelConstraints(parents).bind(tuple(NAMES))
    assert rules.parents == ((), (0,), (0,), (2,))


def test_parents_are_read_from_a_file(tmp_path):
    path = tmp_path / "tree.csv"
    path.write_text("child,parent\npoodle,dog\ndog,animal\ncat,animal\n")
    assert ls.LabelConstraints(path).parents == {k: (v,) for k, v in TREE.items()}
    path.write_bytes(b"child,parent\nd\xff,animal\n")
    with pytest.raises(ls.InputError, match="CSV file"):
        ls.LabelConstraints(path)
    path.write_text("child,parent\npoodle,\n")
    with pytest.raises(ls.InputError, match="a parent in each row"):
        ls.LabelConstraints(path)
    with pytest.raises(ls.InputError, match="CSV file"):
        ls.LabelConstraints(tmp_path / "missing.csv")


def test_names_index_and_rules_stay_with_a_distribution():
    rules = ls.LabelConstraints(TREE)
    frame = pd.DataFrame(np.full((3, 4), 0.5), columns=NAMES, index=list("xyz"))
    dist = rules.apply(ls.as_distribution(frame))
    for same in (dist, dist[[2, 0]], dist.temper(2.0), dist.with_engine(engine="dense")):
        assert same.label_names == tuple(NAMES)
        assert same.rules is not None
    assert list(dist[[2, 0]].index) == ["z", "x"]
    assert len(dist[:0].mode()) == 0
    assert len(ls.decide(dist[:0], "f1")) == 0


@pytest.mark.parametrize(
    ("arguments", "telling"),
    [
        ({"parents": {"a": "b", "b": "a"}}, "no cycle, got"),
        ({"parents": {"dgo": "animal"}}, "dgo"),
        ({"exclusive": [["cat", "dgo"]]}, "dgo"),
        ({"exclusive": [["cat"]]}, "two or more distinct"),
        ({"exactly_one": ["cat"]}, "two or more distinct"),
        ({"parents": 3}, "got int"),
        ({"parents": {"cat": ["dog", "poodle"], "x": "y", "y": "x"}}, "no cycle"),
        ({"parents": {"a": "b"}}, "'a'"),
        ({"parents": {"poodle": "dgo"}}, "must relate some of the labels"),
        ({"parents": nx.Graph([("dog", "poodle")])}, "directed graph"),
        ({"exclusive": None}, "a list of groups of labels"),
        ({"parents": {"poodle": ["cat", "dog"]}, "exclusive": [["cat", "dog"]]}, "'poodle' never"),
    ],
)
def test_bad_rules_are_refused_by_name(arguments, telling):
    with pytest.raises(ls.InputError, match=telling):
        ls.LabelConstraints(**arguments).bind(tuple(NAMES))


def test_truths_that_break_a_rule_are_refused_with_a_way_out():
    names = tuple(NAMES)
    tree = ls.LabelConstraints(TREE).bind(names)
    with pytest.raises(ls.InputError, match=r"1 of 2 rows.*first 1: 'dog' needs.*close"):
        tree.refuse_broken(np.array([[1, 0, 1, 0], [0, 0, 1, 0]], dtype=np.int8), "y")
    one = ls.LabelConstraints(exactly_one=[["cat", "dog"]]).bind(names)
    with pytest.raises(ls.InputError, match="use `exclusive`"):
        one.refuse_broken(np.array([[1, 0, 0, 0]], dtype=np.int8), "y")
    both = ls.LabelConstraints(exclusive=[["cat", "dog"]]).bind(names)
    with pytest.raises(ls.InputError, match="Correct the labels"):
        both.refuse_broken(np.array([[1, 1, 1, 0]], dtype=np.int8), "y")


def test_groups_across_parents_need_a_list_that_fits():
    n_labels = 40
    across = bound_rules([(), (0,), *((),) * (n_labels - 2)], [((1, 2), False)])
    with pytest.raises(ls.TooLargeError, match="more than 4,096"):
        constrain_logits(np.zeros((1, n_labels)), across)
