"""Random batches of distributions, as each kind, with the probabilities they stand for."""

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import oracles
import oracles_chains
import oracles_joints
import oracles_rules
import oracles_trellis
from hypothesis import settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.special import logit

import labelsure as ls
from labelsure.distributions._base import TemperedJoint
from labelsure.distributions._rule_trellis import make_rule_trellis
from labelsure.distributions._valid_labelsets import ValidLabelsets
from labelsure.labelsets.label_rules import Group, LabelRules
from labelsure.metrics.registry import check_metrics

MAX_LABELS = 6
MAX_SAMPLES = 4


@dataclass
class Batch:
    """A distribution under test beside the plain lists of probabilities that it must mean.

    `relabel(order)` makes the same distribution when new label i is old label order[i].
    """

    dist: Any
    P: list[list[float]]
    n_labels: int
    relabel: Callable[[list[int]], Any]

    def __len__(self):
        return len(self.P)


def summary_of(dist, metrics=("exact", "hamming", "jaccard"), empty=1.0):
    """Profile, mode and the mode's expected accuracies, the latter as arrays."""
    found = dist._summary(check_metrics(metrics), empty)
    expected = {name: one.value for name, one in found.expected.items()}
    return SimpleNamespace(profile=found.profile, mode=found.mode, expected=expected)


def n_labels(smallest=1, largest=MAX_LABELS):
    return st.integers(smallest, largest)


@st.composite
def probability_rows(draw, size):
    """One row of `size` probabilities: tied, sparse, a point mass, uniform, spiky or smooth."""
    shape = draw(st.sampled_from(["tied", "sparse", "point", "uniform", "spiky", "smooth"]))
    if shape == "uniform":
        return [1 / size] * size
    if shape in ("point", "spiky"):
        at = draw(st.integers(0, size - 1))
        rest = 0.0 if shape == "point" else draw(st.sampled_from([1e-300, 1e-9, 1e-3]))
        return [1 - rest * (size - 1) if c == at else rest for c in range(size)]
    width, n_values = {"tied": (1, 4), "sparse": (1, 2), "smooth": (3, 256**3)}[shape]
    drawn = draw(st.binary(min_size=width * size, max_size=width * size))  # one draw, not `size`
    weights = [
        int.from_bytes(drawn[width * c : width * (c + 1)], "big") % n_values for c in range(size)
    ]
    if not any(weights):
        weights[-1] = 1
    return [weight / sum(weights) for weight in weights]


def marginal_values():
    """Marginals, the special ones often; the rest far enough apart not to tie by accident."""
    special = st.sampled_from([0.0, 1.0, 0.5, 0.25, 0.75])
    return special | st.integers(1, 9999).map(lambda i: i / 10000)


def marginal_rows(size):
    return st.lists(marginal_values(), min_size=size, max_size=size)


def _batch_of(rows, least, most):
    return st.lists(rows, min_size=least, max_size=most)


def _rounded(rows):
    return [[float(np.float32(value)) for value in row] for row in rows]


def moved(P, L, order):
    """Rows of all probabilities when new label i is old label order[i]."""
    P = np.reshape(P, (-1, 2**L))
    codes = np.array(oracles.all_labelsets(L))[:, order] @ 2 ** np.arange(L)
    relabelled = np.empty_like(P)
    relabelled[:, codes] = P
    return relabelled


@st.composite
def _dense(draw, L, least, most, dtype=np.float64):
    P = draw(_batch_of(probability_rows(2**L), least, most))
    array = np.array(P, dtype=dtype).reshape(len(P), 2**L)
    exact = P if dtype == np.float64 else _rounded(P)
    relabel = lambda order: ls.DenseDistribution(moved(exact, L, order), normalise=True)  # noqa: E731
    return ls.DenseDistribution(array), exact, relabel


def as_table(P, L, split=(), label_names=None):
    """Write rows of all probabilities as a ragged table; codes in `split` are there twice."""
    if len(P) == 0:
        return ls.LabelsetTable(np.empty((0, 1, L)), np.empty((0, 1)), label_names)
    labelsets, probabilities = [], []
    for row in P:
        listed = [code for code in range(2**L) if row[code] > 0]
        twice = [code for code in listed if code in split and row[code] > 1e-290]
        labelsets.append([oracles.all_labelsets(L)[code] for code in [*listed, *twice]])
        # Halves are exact, so that what ties still ties.
        halved = [row[code] / 2 if code in twice else row[code] for code in listed]
        probabilities.append([*halved, *(row[code] / 2 for code in twice)])
    return ls.LabelsetTable(labelsets, probabilities, label_names)


@st.composite
def _table(draw, L, least, most):
    P = draw(_batch_of(probability_rows(2**L), least, most))
    split = draw(st.sets(st.integers(0, 2**L - 1), max_size=3))
    return as_table(P, L, split), P, lambda order: as_table(moved(P, L, order).tolist(), L)


@st.composite
def _independent(draw, L, least, most, dtype=np.float64):
    p = draw(_batch_of(marginal_rows(L), least, most))
    dist = ls.IndependentLabels(np.array(p, dtype=dtype).reshape(len(p), L))
    exact = p if dtype == np.float64 else _rounded(p)
    P = [oracles.joint_of_independent(row) for row in exact]
    return dist, P, lambda order: ls.IndependentLabels(dist.marginals()[:, order])


def _trellis_parts(rng, n_samples, L, values):
    """Up to three parents among the three positions before; probabilities as in `_numbers`."""
    parents = [
        rng.permutation(np.arange(max(0, j - 3), j))[: rng.integers(4)].tolist() for j in range(L)
    ]
    tables = [_numbers(rng, values, (n_samples, 2 ** len(some))) for some in parents]
    return tables, parents, rng.permutation(L).tolist()


def _numbers(rng, values, shape):
    """Quarters, whose products tie exactly or not at all; or any, which never tie."""
    if values == "quarters":
        return rng.choice([0.0, 0.25, 0.5, 0.5, 0.75, 1.0], size=shape)
    return rng.random(shape)


@st.composite
def _trellis(draw, L, least, most):
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    values = draw(st.sampled_from(["quarters", "any"]))
    n_samples = draw(st.integers(least, most))
    tables, parents, order = _trellis_parts(rng, n_samples, L, values)
    P = [
        oracles_trellis.joint([table[row].tolist() for table in tables], parents, order)
        for row in range(n_samples)
    ]

    def relabel(new_order):
        return ls.distributions.TrellisDistribution(
            tables, parents, [new_order.index(label) for label in order]
        )

    return ls.distributions.TrellisDistribution(tables, parents, order), P, relabel


def _chain_parts(rng, n_samples, L, n_chains, scale):
    """Orders, logits and weights of some chains; all labelsets are equally likely at scale 0."""
    return [
        (
            rng.permutation(L).tolist(),
            scale * rng.normal(size=(n_samples, L)),
            scale * np.tril(rng.normal(size=(L, L)), -1),
        )
        for _ in range(n_chains)
    ]


def mixture_weights(rng, form, n_samples, n_chains):
    """None, one row for all or one for each instance; of several chains the first may have none."""
    if form == "equal":
        return None
    weights = rng.dirichlet(np.ones(n_chains), size=n_samples if form == "rows" else None)
    if form == "zero" and n_chains > 1:
        weights[0] = 0.0
        weights /= weights.sum()
    return weights


def _mixture_of(parts, n_prefix=0, weights=None):
    """The first chains by the way of any base learner, the others linear."""
    chains = [ls.distributions.LinearChain(*part) for part in parts]
    for m in range(n_prefix):
        chains[m] = ls.distributions.PrefixChain(
            chains[m].order, chains[m].conditional, chains[m].n_samples
        )
    return ls.distributions.ChainMixture(chains, weights=weights)


@st.composite
def _mixture(draw, L, least, most):
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    n_samples, n_chains = draw(st.integers(least, most)), draw(st.integers(1, 3))
    scale, n_prefix = draw(st.sampled_from([0.0, 0.5, 1.5])), draw(st.integers(0, n_chains))
    parts = _chain_parts(rng, n_samples, L, n_chains, scale)
    form = draw(st.sampled_from(["equal", "chains", "zero", "rows"]))
    weights = mixture_weights(rng, form, n_samples, n_chains)
    of_row = [weights[row] if form == "rows" else weights for row in range(n_samples)]
    P = [
        oracles_chains.mixture_joint(
            [oracles_chains.linear_chain_joint(order, base[row], w) for order, base, w in parts],
            of_row[row],
        )
        for row in range(n_samples)
    ]

    def relabel(new_order):
        moved_parts = [([new_order.index(label) for label in part[0]], *part[1:]) for part in parts]
        return _mixture_of(moved_parts, n_prefix, weights)

    return _mixture_of(parts, n_prefix, weights), P, relabel


@st.composite
def _smoothed(draw, L, least, most):
    """Marginals are any numbers, so that nothing ties by rounding alone."""
    table = draw(_batch_of(probability_rows(2**L), least, most))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    p, shares = rng.random((len(table), L)), rng.choice([0.01, 0.5, 1.0], len(table))
    P = [
        oracles_joints.joint_of_smoothed(row, marginals, share)
        for row, marginals, share in zip(table, p.tolist(), shares, strict=True)
    ]

    def make(order):
        moved_table = as_table(moved(table, L, order).tolist(), L)
        return ls.distributions.SmoothedTable(
            moved_table, ls.IndependentLabels(p[:, order]), shares
        )

    return make(list(range(L))), P, make


def kind_of_the_guide():
    """The distribution that CONTRIBUTING.md adds, by the code that stands there."""
    text = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?class LabelCounts.*?)```", text, re.S)
    found = {}
    exec(code, found)
    return found["LabelCounts"]


LabelCounts = kind_of_the_guide()


def make_counts(rng, n_samples, L):
    """Odds and weights of `LabelCounts`; of several labels, one number is impossible."""
    weights = rng.random((n_samples, L + 1))
    weights[:, L // 2] *= L == 1
    return rng.random((n_samples, L)), weights


@st.composite
def _counts(draw, L, least, most):
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    odds, weights = make_counts(rng, draw(st.integers(least, most)), L)
    P = [
        oracles_joints.joint_of_label_counts(row, own, L)
        for row, own in zip(odds.tolist(), weights.tolist(), strict=True)
    ]
    return LabelCounts(odds, weights), P, lambda order: LabelCounts(odds[:, order], weights)


@st.composite
def _tempered(draw, L, least, most):
    """What is tempered through all probabilities: square roots of these, normalised."""
    dist, P, relabel = draw(_counts(L, least, most))
    roots = [[p**0.5 / sum(q**0.5 for q in row) for p in row] for row in P]
    return TemperedJoint(dist, 2.0), roots, lambda order: TemperedJoint(relabel(order), 2.0)


def random_rules(rng, n_labels, several_parents=False):
    """A random forest (or graph) of parents, and groups of exclusive siblings."""
    order = rng.permutation(n_labels).tolist()
    parents = [() for _ in order]
    for place, label in enumerate(order):
        n_parents = rng.integers(0, min(place, 2 if several_parents else 1) + 1)
        parents[label] = tuple(sorted(rng.choice(order[:place], n_parents, replace=False).tolist()))
    siblings = {}
    for label, some in enumerate(parents):
        siblings.setdefault(some, []).append(label)
    groups = [
        (tuple(members[: rng.integers(2, len(members) + 1)]), bool(rng.random() < 0.4))
        for members in siblings.values()
        if len(members) > 1 and rng.random() < 0.6
    ]
    return parents, groups


def bound_rules(parents, groups):
    return LabelRules.reduced(parents, [Group(*group) for group in groups])


def moved_rules(parents, groups, order):
    """The same rules when new label i is old label order[i]."""
    new = {old: i for i, old in enumerate(order)}
    return [tuple(new[p] for p in parents[old]) for old in order], [
        (tuple(new[j] for j in members), required) for members, required in groups
    ]


def make_valid_labelsets(rules, logits):
    return ValidLabelsets(rules.valid_labelsets(2**rules.n_labels), logits)


@st.composite
def _ruled(draw, L, least, most, make):
    """Independent labels restricted by rules, as one of their two forms."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    parents, groups = random_rules(rng, L)
    # A trellis has 1 - P(1) of a label: with larger logits rounding is more than tests allow.
    scale = draw(st.sampled_from([0.0, 1.0, 2.0]))
    logits = np.round(scale * rng.normal(size=(draw(st.integers(least, most)), L)), 1)
    P = [
        oracles_rules.restricted(oracles_rules.independent_weights(z), parents, groups)
        for z in logits
    ]

    def relabel(order):
        return make(bound_rules(*moved_rules(parents, groups, order)), logits[:, order])

    return make(bound_rules(parents, groups), logits), P, relabel


def linear_chains(seed, n_labels, n_chains, spread, n_samples=5):
    """`spread` 0.1 is nearly flat, 4 is concentrated."""
    rng = np.random.default_rng(seed)
    return [
        ls.distributions.LinearChain(
            rng.permutation(n_labels),
            spread * rng.normal(-0.5, 1, size=(n_samples, n_labels)),
            0.5 * spread * rng.normal(size=(n_labels, n_labels)),
        )
        for _ in range(n_chains)
    ]


def as_prefix_chain(chain):
    return ls.distributions.PrefixChain(chain.order, chain.conditional, chain.n_samples)


_KINDS = {
    "dense": _dense,
    "dense32": lambda L, least, most: _dense(L, least, most, dtype=np.float32),
    "table": _table,
    "independent": _independent,
    "independent32": lambda L, least, most: _independent(L, least, most, dtype=np.float32),
    "trellis": _trellis,
    "mixture": _mixture,
    "smoothed": _smoothed,
    "counts": _counts,
    "tempered": _tempered,
    "valid": lambda L, least, most: _ruled(L, least, most, make_valid_labelsets),
    "ruled": lambda L, least, most: _ruled(L, least, most, make_rule_trellis),
}
KINDS = tuple(_KINDS)


def many(kind, n_samples, L=5, seed=0, label_names=None):
    """A random batch of one kind, of any number of instances."""
    rng = np.random.default_rng(seed)
    dtype = np.float32 if "32" in kind else np.float64
    if kind.startswith("independent"):
        return ls.IndependentLabels(rng.random((n_samples, L)).astype(dtype), label_names)
    if kind == "trellis":
        return ls.distributions.TrellisDistribution(
            *_trellis_parts(rng, n_samples, L, "any"), label_names
        )
    if kind == "mixture":
        chains = [
            ls.distributions.LinearChain(*part) for part in _chain_parts(rng, n_samples, L, 3, 1.5)
        ]
        return ls.distributions.ChainMixture(chains, label_names)
    if kind in ("valid", "ruled"):
        make = make_valid_labelsets if kind == "valid" else make_rule_trellis
        dist = make(bound_rules(*random_rules(rng, L)), rng.normal(size=(n_samples, L)))
        dist._label_names = None if label_names is None else tuple(map(str, label_names))
        return dist
    P = rng.dirichlet(np.full(2**L, 0.3), size=n_samples)
    if kind == "smoothed":
        rest = ls.IndependentLabels(rng.random((n_samples, L)))
        return ls.distributions.SmoothedTable(as_table(P, L, label_names=label_names), rest, 0.1)
    if kind == "table":
        return as_table(P, L, label_names=label_names)
    if kind in ("counts", "tempered"):
        counts = LabelCounts(*make_counts(rng, n_samples, L), label_names)
        return counts if kind == "counts" else TemperedJoint(counts, 2.0)
    return ls.DenseDistribution(P.astype(dtype), label_names)


TOO_MANY_LABELS = 1500
"""2**-1500 is no number: probabilities of labelsets are 0, their logarithms are not."""

UNDERFLOWING = ("independent", "sparse", "table", "smoothed", "trellis", "mixture")


def beyond_numbers(kind, seed=0, n_samples=2):
    """A batch of one kind with so many labels in doubt that no probability is a number."""
    rng = np.random.default_rng(seed)
    L = TOO_MANY_LABELS
    p = rng.uniform(0.3, 0.7, (n_samples, L))
    if kind == "independent":
        return ls.IndependentLabels(p)
    if kind == "sparse":
        return ls.SparseIndependentLabels(sparse.csr_array(p))
    if kind == "trellis":
        parents = [(), *((j,) for j in range(L - 1))]
        tables = [rng.uniform(0.3, 0.7, (n_samples, 2 ** len(some))) for some in parents]
        return ls.distributions.TrellisDistribution(tables, parents, range(L))
    if kind in ("table", "smoothed"):
        rows = rng.integers(0, 2, (n_samples, 3, L))
        table = ls.LabelsetTable(rows, np.tile([0.5, 0.3, 0.2], (n_samples, 1)))
        # Of the second instance the table says nothing.
        shares = np.linspace(0.2, 1.0, n_samples)
        rest = ls.IndependentLabels(p)
        return table if kind == "table" else ls.distributions.SmoothedTable(table, rest, shares)
    chains = [
        ls.distributions.LinearChain(rng.permutation(L), logit(p), 0.1 * np.eye(L, k=-1))
        for _ in range(2)
    ]
    return ls.distributions.ChainMixture(chains, budget=300)


@st.composite
def batches(draw, kind, labels=None, least=0, most=MAX_SAMPLES):
    """A batch of one kind, of 1 to 6 labels by default, and of 0 to 4 instances."""
    L = draw(n_labels() if labels is None else labels)
    dist, P, relabel = draw(_KINDS[kind](L, least, most))
    return Batch(dist, P, L, relabel)


def labelset_rows(L):
    return st.integers(0, 2**L - 1).map(lambda code: tuple((code >> j) & 1 for j in range(L)))


def predictions(batch):
    """One labelset for each instance of a batch, as an array."""
    rows = st.lists(labelset_rows(batch.n_labels), min_size=len(batch), max_size=len(batch))
    return rows.map(lambda rows: np.array(rows, dtype=int).reshape(len(batch), batch.n_labels))


def same_as_every_kind(p):
    """The same independent labels as each kind that can be exactly that."""
    L = len(p[0])
    P = [oracles.joint_of_independent(row) for row in p]
    tables = [np.array(p)[:, j : j + 1] for j in range(L)]
    chain = ls.distributions.PrefixChain(
        range(L), lambda j, rows, prefixes: tables[j][rows, 0], len(p)
    )
    return {
        "independent": ls.IndependentLabels(p),
        "dense": ls.DenseDistribution(P),
        "table": as_table(P, L),
        "trellis": ls.distributions.TrellisDistribution(tables, [()] * L, range(L)),
        "mixture": ls.distributions.ChainMixture([chain]),
        "smoothed": ls.distributions.SmoothedTable(as_table(P, L), ls.IndependentLabels(p), 1.0),
    }


def random_table(rng, n_samples, n_labels, size, density=0.3, spread=0.4):
    """A table that looks like a classifier's: labelsets scattered around one of each instance."""
    centre = rng.random((n_samples, 1, n_labels)) < density
    noise = rng.random((n_samples, size, n_labels)) < spread * rng.random((n_samples, 1, n_labels))
    return ls.LabelsetTable(
        (centre ^ noise).astype(int), rng.dirichlet(np.full(size, 0.5), n_samples), normalise=True
    )


def n_examples(n):
    """Settings of a law that tries n examples, and 15 times as many where laws explore."""
    explores = os.environ.get("HYPOTHESIS_PROFILE") == "explore"
    return settings(max_examples=15 * n if explores else n)
