"""Confidence of chains beyond dense arrays, beside the bare cost of the same mathematics, one core.

The bare cost is that of the log-probabilities of all labelsets that the answer went by, enumerated
or drawn, evaluated label by label with logits and exponentials. Medical, Enron and CAL500 are read
from the folder in LABELSURE_DATA; without it their rows are skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numba import njit

import labelsure as ls
from benchmarks.chains import one_thread
from benchmarks.engines import ensemble_of, widths
from benchmarks.measure import Row, core_seconds_in_turn
from labelsure.distributions._chain_mixture import Question
from labelsure.distributions._sampling import Sampled, need_collision, need_entropy

WIDTH = 0.005
CERTIFIED_ONLY = "ME"


def simulated_chains(
    n_labels: int, kind: str, n_samples: int = 30
) -> ls.distributions.ChainMixture:
    """Return ten chains that are nearly sure of most labels ("sharp"), or of few ("flat")."""
    rng = np.random.default_rng(0)
    mean, spread, link = (-3.5, 2.5, 1.5) if kind == "sharp" else (-1.0, 0.7, 0.75)
    base = rng.normal(mean, spread, size=(n_samples, n_labels))
    chains = []
    for _ in range(10):
        order = rng.permutation(n_labels)
        own = base[:, order] + rng.normal(0, 0.5, size=base.shape)
        weights = rng.normal(0, link / np.sqrt(n_labels), size=(n_labels, n_labels))
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
    width = dist._engine.sampled_tolerance
    needs = (need_entropy(width), need_collision(width))
    question = Question(dist._engine.tolerance, n_certain=1, needs=needs)
    n_needed = np.zeros(len(dist), dtype=int)
    for rows, view in dist._views(question):
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


def case(
    what: str, dist: ls.distributions.ChainMixture | None, milliseconds: float
) -> Iterator[Row]:
    if dist is None:
        return
    dist = dist[: 30 if dist.n_labels < 100 else 10]
    run = bare_run(dist)
    ours, bare = core_seconds_in_turn([lambda: ls.confidence(dist), run], repeats=3)
    what = f"{what}, {dist.n_labels} labels, confidence"
    yield Row(f"{what}: an instance", 1000 * ours / len(dist), "ms", milliseconds)
    yield Row(f"{what}: ours / bare cost", ours / bare, "x", 4)
    wide = widths(dist).drop(columns=CERTIFIED_ONLY).to_numpy().max()
    yield Row(f"{what}: widest interval but ME's", float(wide), "", WIDTH)


def beyond_dense() -> Iterator[Row]:
    for kind in ("sharp", "flat"):
        yield from case(f"Simulated, {kind}", simulated_chains(27, kind), 3)
    for C in (1.0, 0.01):
        yield from case(f"Medical, C={C:g}", ensemble_of("medical", C), 10)
        yield from case(f"Enron, C={C:g}", ensemble_of("enron", C), 10)
        yield from case(f"CAL500, C={C:g}", ensemble_of("cal500", C), 200)
    for kind in ("sharp", "flat"):
        yield from case(f"Simulated, {kind}", simulated_chains(400, kind, 10), 1000)


def marginals_beyond_dense() -> Iterator[Row]:
    dist = simulated_chains(27, "flat", 5)
    exact, ours = core_seconds_in_turn(
        [
            lambda: dist[0].with_engine(engine="dense").marginals(),
            lambda: dist.marginals(),
        ],
        repeats=1,
    )
    what = "Simulated, flat, 27 labels, marginals"
    yield Row(f"{what}: dense / ours", exact / (ours / len(dist)), "x", 50, 100, True)


BENCHMARKS = {
    "beyond_dense": one_thread(beyond_dense),
    "marginals_beyond_dense": one_thread(marginals_beyond_dense),
}
