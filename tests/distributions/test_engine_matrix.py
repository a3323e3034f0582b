"""Every law for every engine: sizes, sharpness, numbers of chains, learners, numbers of rows.

Up to 17 labels the truth is an array of all probabilities, made by an oracle. With 24 labels it is
the certified engine where that is certain.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import oracles_engines as oracles
import oracles_rules
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit
from strategies import bound_rules

import labelsure as ls
from labelsure.distributions import ChainMixture, LinearChain, PrefixChain
from labelsure.distributions._constrained import link
from labelsure.labelsets.codes import codes_of

ENGINES = ("auto", "dense", "certified", "sampled")
METRICS = ("exact", "hamming", "jaccard", "f1")
FIELDS = ("log_top", "log_runner_up", "entropy", "log_collision")
LABELS = (1, 2, 6, 17, 24)
SPREADS = {"flat": 0.3, "sharp": 3.0}
BUDGET = 2000
PARENTS, GROUPS = [(), (0,), (), (), (1,), (2,)], [((2, 3), False)]
"""Rules of the first six labels where the learner is "ruled"."""

ROUNDING = 1e-9

pytestmark = pytest.mark.jit_only


def left_out(engine, n_labels, n_chains, learner):
    """The reason why a cell of the matrix is left out, if it is."""
    if n_labels == 24 and engine == "dense":
        return "2**24 probabilities a row: .2 s a question, minutes for any learner"
    if engine == "certified" and learner.endswith("tree"):
        return "enumeration needs linear chains, others are refused: see test_engines.py"
    if learner.startswith("ruled") and (n_labels not in (6, 17) or n_chains == 1):
        return "rules among six labels; one chain with them is tested in test_constraints"
    if learner == "ruled tree" and n_labels == 17:
        return "as trees without rules, with fewer labelsets"
    return ""


CELLS = [
    (engine, n_labels, sharpness, n_chains, learner)
    for engine in ENGINES
    for n_labels in LABELS
    for sharpness in SPREADS
    for n_chains in (1, 3)
    for learner in ("linear", "tree", "ruled linear", "ruled tree")
    if not left_out(engine, n_labels, n_chains, learner)
]
for_each_cell = pytest.mark.parametrize(
    ("engine", "n_labels", "sharpness", "n_chains", "learner"), CELLS
)


@dataclass
class Case:
    """Chains, and (n, 2**L) probabilities from an oracle; None beyond 17 labels."""

    chains: list[Any]
    P: Any
    truths: Any


@cache
def make_case(n_labels, sharpness, n_chains, learner, n_samples=2):
    rng = np.random.default_rng([n_labels, n_chains, len(sharpness), len(learner)])
    spread, P = SPREADS[sharpness], 0.0
    chains = []
    for _ in range(n_chains):
        order = rng.permutation(n_labels)
        base = spread * rng.normal(-0.5, 1, size=(n_samples, n_labels))
        weights = np.tril(0.5 * spread * rng.normal(size=(n_labels, n_labels)), -1)
        conditional = make_conditional(base, weights, learner)
        if learner.endswith("linear"):
            chains.append(LinearChain(order, base, weights))
        else:
            chains.append(PrefixChain(order, conditional, n_samples))
        if learner.startswith("ruled"):
            parents = [*PARENTS, *((),) * (n_labels - len(PARENTS))]
            chains[-1] = link(chains[-1], bound_rules(parents, GROUPS))
            conditional = force(order, conditional)
        if n_labels <= 17:
            P = P + joints(order, conditional, n_samples) / n_chains
    truths = oracles.all_labelsets(n_labels) if n_labels <= 17 else None
    return Case(chains, P if n_labels <= 17 else None, truths)


def joints(order, conditional, n_samples):
    def of_row(i):
        return oracles.chain_joint(order, lambda j, prefixes: conditional(j, i, prefixes))

    return np.array([of_row(i) for i in range(n_samples)])


def force(order, conditional):
    """Conditionals in which a label is certain once no other value can be valid."""
    n_ruled = len(PARENTS)
    labelsets = oracles_rules.all_labelsets(n_ruled)
    valid = np.array([y for y in labelsets if oracles_rules.is_valid(y, PARENTS, GROUPS)])

    def forced(position, rows, prefixes):
        p = np.broadcast_to(conditional(position, rows, prefixes), len(prefixes)).copy()
        label = order[position]
        earlier = np.flatnonzero(order[:position] < n_ruled)
        if label >= n_ruled:
            return p
        seen, which = np.unique(prefixes[:, earlier], axis=0, return_inverse=True)
        for i, before in enumerate(seen):
            values = set(valid[(valid[:, order[earlier]] == before).all(axis=1), label].tolist())
            if len(values) == 1:
                p[which.ravel() == i] = values.pop()
        return p

    return forced


def make_conditional(base, weights, learner):
    """Conditionals of a logistic regression, or rounded to eighths, as leaves of a tree have them.

    Sharp trees know some labels for certain.
    """

    def conditional(position, rows, prefixes):
        p = expit(base[rows, position] + prefixes @ weights[position, :position])
        return p if learner.endswith("linear") else np.round(8 * p) / 8

    return conditional


def make(case, engine):
    return ChainMixture(case.chains, engine=engine, budget=BUDGET)


def greedy(dist, chains):
    """The labelset of each chain that takes the likelier value of every label, (n, m, L)."""
    found = np.zeros((len(dist), len(chains), dist.n_labels), dtype=np.int8)
    rows = np.arange(len(dist))
    for m, chain in enumerate(chains):
        for j, label in enumerate(chain.order):
            found[:, m, label] = chain.conditional(j, rows, found[:, m, chain.order[:j]]) > 0.5
    return found


def logs_of(dist, labelsets):
    """Log-probabilities of (n, k, L) labelsets, (n, k)."""
    return np.stack([dist.log_prob(Y) for Y in np.swapaxes(labelsets, 0, 1)], axis=1)


def answers(dist):
    """All answers, rows by rows."""
    found = {
        "mode": dist.mode(),
        "marginals": dist.marginals(),
        "bounds": dist.marginal_bounds().low,
        "entropy": dist.profile().entropy,
        "top": dist.top(2).labelsets,
        "high": dist.top(2).high,
        "sample": dist.sample(3, random_state=0),
        "log_prob": dist.log_prob(dist.mode()),
        "frame": dist.to_frame(2),
        "confidence": ls.confidence(dist, bounds=True),
    }
    for metric in METRICS:
        found[f"expected {metric}"] = ls.expected_accuracy(dist, metric=metric).value
        found[f"decide {metric}"] = ls.decide(dist, metric).labelsets
        found[f"gap {metric}"] = ls.decide(dist, metric).gap
    return found


@pytest.mark.parametrize(
    ("engine", "n_labels", "n_chains", "learner"),
    [(*cell[:2], *cell[3:]) for cell in CELLS if "sharp" in cell],
)
def test_no_row_and_one_row(engine, n_labels, n_chains, learner):
    dist = make(make_case(n_labels, "sharp", n_chains, learner), engine)
    one, none = answers(dist[:1]), answers(dist[:0])
    for name, found in none.items():
        assert found.shape == (0, *one[name].shape[1:]), name
        assert len(one[name]) == 1, name


@for_each_cell
def test_nothing_known_is_more_probable_than_the_top(
    engine, n_labels, sharpness, n_chains, learner
):
    case = make_case(n_labels, sharpness, n_chains, learner)
    dist, k = make(case, engine), min(3, 2**n_labels)
    best = dist.top(k)
    of_mode = dist.log_prob(dist.mode())
    assert_allclose(logs_of(dist, best.labelsets), best.logs, rtol=1e-9, atol=ROUNDING)
    assert_allclose(of_mode, best.logs[:, 0], atol=ROUNDING)
    assert (best.logs[:, 1:] <= best.logs[:, :-1] + ROUNDING).all()
    assert (best.log_high >= best.logs - ROUNDING).all()
    seen = np.concatenate(
        [greedy(dist, case.chains), dist.sample(100, random_state=1)], axis=1, dtype=np.int8
    )
    for i, row in enumerate(seen):
        assert len(np.unique(codes_of(best.labelsets[i]))) == k
        distinct = np.unique(row, axis=0)
        logs = np.sort(logs_of(dist[[i]], distinct[np.newaxis])[0])[::-1][:k]
        assert (best.logs[i, : len(logs)] >= logs - ROUNDING).all()
    # Every answer that shows a mode shows one that is as probable.
    summary = dist._summary([], 1.0)
    for mode in (summary.mode, ls.decide(dist, "exact").labelsets):
        assert (dist.log_prob(mode) >= of_mode - ROUNDING).all()
    assert (summary.profile.log_top >= of_mode - ROUNDING).all()
    frame = dist.to_frame(1, candidates=[], probabilities=False)
    assert (frame["probability"] >= frame["top_1_probability"] * (1 - ROUNDING)).all()


@for_each_cell
def test_bounds_contain_the_truth(engine, n_labels, sharpness, n_chains, learner):
    case = make_case(n_labels, sharpness, n_chains, learner)
    dist = make(case, engine)
    if case.P is None:
        if learner == "linear":  # of trees nothing is certain without an array of probabilities
            compare_with_certified(dist, case)
        return
    profile, P, truths = dist.profile(), case.P, case.truths
    ranked = -np.sort(-P, axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        expected = {
            "log_top": np.log(ranked[:, 0]),
            "log_runner_up": np.log(ranked[:, 1]),
            "entropy": -np.nansum(P * np.log(P), axis=1),
            "log_collision": np.log((P**2).sum(axis=1)),
        }
    checked = [
        Interval(
            getattr(profile.low, name),
            expected[name],
            getattr(profile.high, name),
            profile if name in ("entropy", "log_collision") else None,
        )
        for name in FIELDS
    ]
    bounds = dist.marginal_bounds()
    checked.append(Interval(bounds.low, P @ truths, bounds.high, bounds))
    Y = np.random.default_rng(0).integers(0, 2, size=(len(P), n_labels))
    for metric in METRICS:
        found = ls.expected_accuracy(dist, Y, metric=metric)
        value = [p @ oracles.accuracies(metric, truths, y) for p, y in zip(P, Y, strict=True)]
        checked.append(Interval(found.low, np.array(value), found.high, found))
    best = dist.top(min(3, 2**n_labels))
    n_top = best.logs.shape[1]
    checked.append(Interval(best.probabilities, ranked[:, :n_top], best.high, None))
    certain = best.log_high <= best.logs
    codes = codes_of(best.labelsets.reshape(-1, n_labels)).reshape(best.logs.shape)
    assert_allclose(
        np.take_along_axis(P, codes, 1)[certain], ranked[:, :n_top][certain], atol=1e-13
    )
    check_intervals(checked)


@dataclass
class Interval:
    """Bounds around the truth, and the answer whose `method` says how certain they are."""

    low: Any
    truth: Any
    high: Any
    answer: Any

    def holds(self):
        slack = ROUNDING * (1 + np.abs(np.where(np.isfinite(self.truth), self.truth, 0.0)))
        inside = (self.low <= self.truth + slack) & (self.truth <= self.high + slack)
        return inside.reshape(len(inside), -1).all(axis=1)

    def is_certain(self):
        n = len(self.holds())
        if self.answer is None:
            return np.ones(n, dtype=bool)
        return np.isin(self.answer.method, ["exact", "certified"])


def check_intervals(checked):
    """Guaranteed ones hold; of 95% intervals, whose coverage other tests count, most do."""
    drawn = []
    for one in checked:
        certain, holds = one.is_certain(), one.holds()
        assert holds[certain].all()
        drawn.extend(holds[~certain])
    assert np.mean(drawn or [1.0]) >= 0.8


def compare_with_certified(dist, case):
    """Where a long certified search is certain, every engine has the same mode and top."""
    long = ChainMixture(case.chains, engine="certified", budget=20_000, tolerance=0.0)
    known, found = long.top(3), dist.top(3)
    certain = known.log_high <= known.logs
    assert_allclose(found.logs[certain], known.logs[certain], atol=ROUNDING)
    assert (found.log_high >= known.logs - ROUNDING)[certain].all()
    profile, narrow = dist.profile(), long.profile()
    for name in ("log_top", "log_runner_up"):
        assert (getattr(profile.high, name) >= getattr(narrow.low, name) - ROUNDING).all()


@for_each_cell
def test_no_gap_is_too_small(engine, n_labels, sharpness, n_chains, learner):
    case = make_case(n_labels, sharpness, n_chains, learner)
    dist = make(case, engine)
    for metric in METRICS:
        found = ls.decide(dist, metric)
        assert (found.gap >= 0).all()
        if case.P is None:  # whatever else is known has no higher a lower bound
            others = (dist.mode(), greedy(dist, case.chains)[:, 0])
            high = ls.expected_accuracy(dist, found, metric=metric).high
            for Y in others:
                low = ls.expected_accuracy(dist, Y, metric=metric).low
                assert (low <= high + found.gap + ROUNDING).all(), metric
            continue
        for P, y, gap in zip(case.P, found.labelsets, found.gap, strict=True):
            value = P @ oracles.accuracies(metric, case.truths, y)
            assert value + gap >= best_known(metric, P, case.truths, y) - ROUNDING, metric


def best_known(metric, P, truths, y):
    """The optimum; under Jaccard of many labels the best of the F1-like prefixes and flips."""
    if metric == "exact":
        return P.max()
    if metric == "hamming":
        p = P @ truths
        return np.maximum(p, 1 - p).mean()
    if metric == "f1":
        return oracles.best_f1(P, truths)
    if truths.shape[1] <= 6:
        guesses = truths
    else:
        order = np.argsort(-(P @ truths))
        guesses = [np.isin(np.arange(len(order)), order[:k]) * 1 for k in range(0, len(order), 3)]
    return max(P @ oracles.accuracies(metric, truths, guess) for guess in guesses)


@pytest.mark.parametrize(
    ("engine", "learner"),
    [
        ("auto", "linear"),
        ("certified", "linear"),
        ("sampled", "linear"),
        ("auto", "tree"),
        ("sampled", "tree"),
    ],
)
@pytest.mark.parametrize("n_chains", [1, 3])
def test_modes_of_flat_distributions_are_right(engine, n_chains, learner):
    """In 97% of rows, where enumeration and draws prove nothing; ties count as right."""
    n_samples = 40
    case = make_case(17, "flat", n_chains, learner, n_samples)
    dist = ChainMixture(case.chains, engine=engine, budget=256)
    of_mode = case.P[np.arange(n_samples), codes_of(dist.mode())]
    assert (of_mode >= case.P.max(axis=1) * (1 - ROUNDING)).mean() >= 0.97


def test_the_oracle_is_a_loop_over_labelsets():
    case = make_case(6, "sharp", 1, "tree")
    rng = np.random.default_rng([6, 1, len("sharp"), len("tree")])
    order, chain = rng.permutation(6), case.chains[0]
    by_loops = oracles.prefix_chain_joint(
        order,
        lambda j, prefix: float(
            chain.conditional(j, np.array([0]), np.array([prefix]).reshape(1, -1))[0]
        ),
    )
    assert_array_equal(order, chain.order)
    assert_allclose(case.P[0], by_loops, rtol=1e-12)
