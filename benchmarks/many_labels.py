"""Confidence of chains beyond dense arrays, beside the bare cost of the same mathematics, one core.

The bare cost is that of the log-probabilities of all labelsets that the answer went by, enumerated
or drawn, evaluated label by label with logits and exponentials.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numba import njit

import labelsure as ls
from benchmarks.chains import fitted_mixture
from benchmarks.measure import Row, core_seconds_in_turn, one_thread
from labelsure.distributions._answers import Question
from labelsure.distributions._sampling import Sampled
from labelsure.distributions.candidates import PAPER_CANDIDATES

WIDTH = 0.005
"""Of the intervals of all candidates but ME, whose interval rests on enumeration alone."""


def simulated_chains(n_labels: int, n_samples: int) -> ls.distributions.ChainMixture:
    """Return ten chains that are sure of few labels."""
    rng = np.random.default_rng(0)
    base = rng.normal(-1.0, 0.7, size=(n_samples, n_labels))
    chains = []
    for _ in range(10):
        order = rng.permutation(n_labels)
        own = base[:, order] + rng.normal(0, 0.5, size=base.shape)
        weights = rng.normal(0, 0.75 / np.sqrt(n_labels), size=(n_labels, n_labels))
        chains.append(ls.distributions.LinearChain(order, own, weights))
    return ls.distributions.ChainMixture(chains)


@njit(cache=False, fastmath=True)
def evaluate_plainly(bases, weights, orders, labelsets):  # type: ignore[no-untyped-def]
    """Return the sum over labelsets and chains of log P(y), by logits."""
    n_chains, n_labels = bases.shape
    total = 0.0
    for s in range(labelsets.shape[0]):
        for m in range(n_chains):
            logits = bases[m].copy()
            for j in range(n_labels):
                if labelsets[s, orders[m, j]]:
                    total += logits[j]
                    for k in range(n_labels):
                        logits[k] += weights[m, j, k]
            for j in range(n_labels):
                total -= np.log1p(np.exp(logits[j]))
    return total


def bare_run(dist: ls.distributions.ChainMixture) -> Callable[[], object]:
    """Return a function that evaluates as many labelsets as the answer goes by."""
    n_needed = np.zeros(len(dist), dtype=int)
    for rows, view in dist._views(Question("summary")):
        enumeration = getattr(view, "enumeration", view)
        n_needed[rows] += enumeration.seen.lengths
        if isinstance(view, Sampled):  # those with squared odds count twice
            n_squared = view.squared.is_new.shape[2]
            n_needed[rows] += (view.is_new.shape[2] + 2 * n_squared) * dist.n_chains
    orders = np.stack([chain.order for chain in dist._parts])
    weights = np.stack([np.ascontiguousarray(chain.weights.T) for chain in dist._parts])
    bases = np.stack([chain.base for chain in dist._parts], axis=1)
    drawn = dist.sample(500, random_state=0)
    needed = [labelsets[np.arange(n) % 500] for labelsets, n in zip(drawn, n_needed, strict=True)]

    def run() -> None:
        for i, labelsets in enumerate(needed):
            evaluate_plainly(bases[i], weights, orders, labelsets)

    return run


def beyond_dense() -> Iterator[Row]:
    cases = {
        "Enron, C=1": fitted_mixture("enron", 1.0, 100)[0][:30],
        "Enron, C=0.01": fitted_mixture("enron", 0.01, 100)[0][:30],
        "CAL500, C=1": fitted_mixture("cal500", 1.0, 10)[0],
        "Simulated, flat": simulated_chains(400, 10),
    }
    for name, dist in cases.items():
        ours, bare = core_seconds_in_turn(
            [lambda dist=dist: ls.confidence(dist), bare_run(dist)], repeats=3
        )
        what = f"{name}, {dist.n_labels} labels, confidence"
        yield Row(f"{what}: an instance", 1000 * ours / len(dist), "ms")
        yield Row(f"{what}: ours / bare cost", ours / bare, "x", 4, peer="evaluated one by one")
        frame = ls.confidence(dist, bounds=True)
        widths = [frame[f"{c}_high"] - frame[f"{c}_low"] for c in PAPER_CANDIDATES if c != "ME"]
        yield Row(f"{what}: widest interval but ME's", float(np.max(widths)), "", WIDTH)


BENCHMARKS = {"beyond_dense": one_thread(beyond_dense)}
