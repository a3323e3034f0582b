"""The core: dense transforms and profiles, closed forms of independent labels."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

import labelsure as ls
from benchmarks.measure import Row, compete, peak_bytes, seconds
from labelsure.metrics.registry import check_metrics

Floats = NDArray[np.float64]


def random_joint(n_samples: int, n_labels: int) -> Floats:
    P = np.random.default_rng(0).standard_gamma(0.1, size=(n_samples, 2**n_labels)) + 1e-12
    return P / P.sum(axis=1, keepdims=True)


def jaccard_block(predictions: NDArray[np.int64], n_labels: int) -> Floats:
    # The Jaccard of some predictions with every labelset, as one would write it in numpy.
    codes = np.arange(2**n_labels)
    sizes = np.bitwise_count(codes)
    both = sizes[predictions[:, np.newaxis] & codes].astype(np.float64)
    union = sizes[predictions[:, np.newaxis] | codes]
    return np.divide(both, union, out=np.ones_like(both), where=union > 0)


def direct_best_jaccard(P: Floats, n_labels: int, block: int = 256) -> NDArray[np.int64]:
    expected = np.empty((len(P), 2**n_labels))
    for first in range(0, 2**n_labels, block):
        predictions = np.arange(first, first + block)
        expected[:, first : first + block] = P @ jaccard_block(predictions, n_labels).T
    return expected.argmax(axis=1)


def jaccard() -> Iterator[Row]:
    P = random_joint(1, 14)
    direct = seconds(lambda: direct_best_jaccard(P, 14), repeats=1)
    many = ls.DenseDistribution(np.repeat(P, 64, axis=0))
    ours = seconds(lambda: ls.decide(many, "jaccard").labelsets) / 64
    yield Row(
        "Jaccard optimum, L=14: direct sum / ours",
        direct / ours,
        "x",
        300,
        True,
        "all labelsets one by one",
    )
    yield Row("Jaccard optimum, L=14, both cores, an instance", 1e3 * ours, "ms")
    for n_labels in (10, 12):
        P = random_joint(500, n_labels)
        J = jaccard_block(np.arange(2**n_labels), n_labels)
        dist = ls.DenseDistribution(P)
        cached, ours = compete(
            lambda P=P, J=J: (P @ J).argmax(axis=1),
            lambda dist=dist: ls.decide(dist, "jaccard").labelsets,
        )
        what = f"Jaccard optimum, L={n_labels}: cached matrix product / ours"
        yield Row(what, cached / ours, "x", 1, True, "a matrix product")


def profile() -> Iterator[Row]:
    for n_labels, n_samples in ((12, 2000), (14, 500), (20, 8)):
        P = random_joint(n_samples, n_labels)
        dist = ls.DenseDistribution(P)
        whole, ours = compete(P.sum, dist.profile)
        what = f"profile, dense, L={n_labels}, both cores: ours / sum of the array on one"
        yield Row(what, ours / whole, "x", 6, peer="hardware")


def numpy_independent_profile(p: Floats) -> tuple[Floats, ...]:
    q, r = np.maximum(p, 1 - p), np.minimum(p, 1 - p)
    log_top = np.log(q).sum(axis=1)
    log_runner_up = log_top + np.log((r / q).max(axis=1))
    entropy = -(q * np.log(q) + r * np.log(r)).sum(axis=1)
    return log_top, log_runner_up, entropy, np.log(q**2 + r**2).sum(axis=1)


def independent() -> Iterator[Row]:
    p = np.random.default_rng(0).beta(0.3, 3, size=(2000, 1000)).clip(1e-9, 1 - 1e-9)
    dist = ls.IndependentLabels(p)
    plain, ours = compete(lambda: numpy_independent_profile(p), dist.profile)
    yield Row("profile, independent, L=1000: numpy / ours", plain / ours, "x", 4, True, "NumPy")
    some = dist[:200]
    Y = ls.decide(some, "hamming").labelsets
    per_instance = seconds(lambda: some.expected("jaccard", Y)) / 200
    yield Row("expected Jaccard, independent, L=1000", 1e3 * per_instance, "ms")


def memory() -> Iterator[Row]:
    P = random_joint(400, 14)
    dist = ls.DenseDistribution(P)
    questions = {
        "profile": dist.profile,
        "marginals": dist.marginals,
        "top(3)": lambda: dist.top(3),
        "summary": lambda: dist._summary(check_metrics(["exact", "hamming", "jaccard"]), 1.0),
        "decide(jaccard)": lambda: ls.decide(dist, "jaccard").labelsets,
        "decide(f1)": lambda: ls.decide(dist, "f1").labelsets,
    }
    for name, question in questions.items():
        share = 100 * peak_bytes(question) / P.nbytes
        yield Row(f"memory of {name}, dense, L=14, n=400, beyond the input", share, "%", 5)


BENCHMARKS = {"jaccard": jaccard, "profile": profile, "independent": independent, "memory": memory}
