"""Random batches of distributions, as each kind, with the probabilities they stand for."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import oracles
from hypothesis import strategies as st

import labelsure as ls

MAX_LABELS = 6
MAX_SAMPLES = 4


@dataclass
class Batch:
    """A distribution under test beside the plain lists of probabilities that it must mean."""

    dist: Any
    P: list[list[float]]
    n_labels: int

    def __len__(self):
        return len(self.P)


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


@st.composite
def _dense(draw, L, least, most, dtype=np.float64):
    P = draw(_batch_of(probability_rows(2**L), least, most))
    array = np.array(P, dtype=dtype).reshape(len(P), 2**L)
    return ls.DenseDistribution(array), P if dtype == np.float64 else _rounded(P)


def as_table(P, L, split=()):
    """Write rows of all probabilities as a ragged table; codes in `split` are there twice."""
    if len(P) == 0:
        return ls.LabelsetTable(np.empty((0, 1, L)), np.empty((0, 1)))
    labelsets, probabilities = [], []
    for row in P:
        listed = [code for code in range(2**L) if row[code] > 0]
        twice = [code for code in listed if code in split and row[code] > 1e-290]
        labelsets.append([oracles.all_labelsets(L)[code] for code in [*listed, *twice]])
        # Halves are exact, so that what ties still ties.
        halved = [row[code] / 2 if code in twice else row[code] for code in listed]
        probabilities.append([*halved, *(row[code] / 2 for code in twice)])
    return ls.LabelsetTable(labelsets, probabilities)


@st.composite
def _table(draw, L, least, most):
    P = draw(_batch_of(probability_rows(2**L), least, most))
    split = draw(st.sets(st.integers(0, 2**L - 1), max_size=3))
    return as_table(P, L, split), P


@st.composite
def _independent(draw, L, least, most, dtype=np.float64):
    p = draw(_batch_of(marginal_rows(L), least, most))
    dist = ls.IndependentLabels(np.array(p, dtype=dtype).reshape(len(p), L))
    exact = p if dtype == np.float64 else _rounded(p)
    return dist, [oracles.joint_of_independent(row) for row in exact]


_KINDS = {
    "dense": _dense,
    "dense32": lambda L, least, most: _dense(L, least, most, dtype=np.float32),
    "table": _table,
    "independent": _independent,
    "independent32": lambda L, least, most: _independent(L, least, most, dtype=np.float32),
}
KINDS = tuple(_KINDS)


@st.composite
def batches(draw, kind, labels=None, least=0, most=MAX_SAMPLES):
    """A batch of one kind, of 1 to 6 labels unless told, and of 0 to 4 instances."""
    L = draw(n_labels() if labels is None else labels)
    dist, P = draw(_KINDS[kind](L, least, most))
    return Batch(dist, P, L)


def labelset_rows(L):
    return st.integers(0, 2**L - 1).map(lambda code: tuple((code >> j) & 1 for j in range(L)))


def predictions(batch):
    """One labelset for each instance of a batch, as an array."""
    rows = st.lists(labelset_rows(batch.n_labels), min_size=len(batch), max_size=len(batch))
    return rows.map(lambda rows: np.array(rows, dtype=int).reshape(len(batch), batch.n_labels))


def same_as_every_kind(p):
    """The same independent labels as each of the three kinds."""
    L = len(p[0])
    P = [oracles.joint_of_independent(row) for row in p]
    return {
        "independent": ls.IndependentLabels(p),
        "dense": ls.DenseDistribution(P),
        "table": as_table(P, L),
    }


def random_table(rng, n_samples, n_labels, size, density=0.3, spread=0.4):
    """A table that looks like a classifier's: labelsets scattered around one of each instance."""
    centre = rng.random((n_samples, 1, n_labels)) < density
    noise = rng.random((n_samples, size, n_labels)) < spread * rng.random((n_samples, 1, n_labels))
    return ls.LabelsetTable(
        (centre ^ noise).astype(int), rng.dirichlet(np.full(size, 0.5), n_samples), normalise=True
    )
