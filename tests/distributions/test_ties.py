"""One rule of ties: labelsets whose probabilities differ by rounding rank by their codes."""

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.special import logit
from strategies import same_as_every_kind

import labelsure as ls

ROUNDING = [-1e-14, -1e-15, 0.0, 1e-15, 1e-14]
KINDS = [*same_as_every_kind([[0.5, 0.5]]), "sparse", "logits", "dense engine"]


def as_kind(kind, p):
    if kind == "sparse":
        return ls.SparseIndependentLabels(csr_array(p), floor=0.0)
    if kind == "logits":
        return ls.IndependentLabels.from_logits(logit(p))
    if kind == "dense engine":
        chain = ls.distributions.LinearChain(range(len(p[0])), logit(p), np.zeros((len(p[0]),) * 2))
        return ls.distributions.ChainMixture([chain], engine="dense")
    return same_as_every_kind(p)[kind]


def top_codes(dist, k):
    labelsets = dist.top(k).labelsets
    rows = [labelsets[:, rank] for rank in range(k)]
    rows = [row.toarray() if dist.sparse_rows else row for row in rows]
    return [[oracles.code_of(y) for y in of_row] for of_row in np.stack(rows, axis=1).tolist()]


@pytest.mark.parametrize("kind", KINDS)
@given(st.data())
def test_probabilities_that_differ_by_rounding_are_equal(kind, data):
    n_labels = data.draw(st.integers(1, 4))
    values = st.sampled_from([0.5, 0.3, 0.7]), st.sampled_from(ROUNDING)
    p = [data.draw(values[0]) + data.draw(values[1]) for _ in range(n_labels)]
    exact = oracles.joint_of_independent([round(value, 6) for value in p])
    dist, k = as_kind(kind, [p]), data.draw(st.integers(1, 2**n_labels))
    wanted = [oracles.code_of(y) for y in oracles.top(exact, k)[0]]
    assert top_codes(dist, k) == [wanted]
    mode = dist.mode().toarray() if dist.sparse_rows else dist.mode()
    assert oracles.code_of(mode[0].tolist()) == wanted[0]
    decided = np.asarray(ls.decide(dist, "exact"))
    assert oracles.code_of(decided[0].tolist()) == wanted[0]


@pytest.mark.parametrize("kind", KINDS)
def test_probabilities_that_differ_by_more_are_not(kind):
    for p in (0.5 + 1e-11, 0.5 - 1e-11):
        dist = as_kind(kind, [[p, 0.9]])
        assert top_codes(dist, 2) == ([[3, 2]] if p > 0.5 else [[2, 3]])


@pytest.mark.parametrize("n_labels", [10, 70, 400])
def test_sums_of_costs_in_any_order_are_equal(n_labels):
    """Flips of equal cost: ranks go by code, with more labels than an integer has bits, too."""
    dist = ls.IndependentLabels(np.full((1, n_labels), 0.3))
    top = dist.top(1 + n_labels + 20)
    pairs = [(i, j) for j in range(n_labels) for i in range(j)]
    wanted = [[], *([j] for j in range(n_labels)), *map(list, pairs[:20])]
    assert [np.flatnonzero(y).tolist() for y in top.labelsets[0]] == wanted
