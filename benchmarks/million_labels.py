"""A million labels, of which a hundred are listed, beside a hundred labels that are dense."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

import labelsure as ls
from benchmarks.measure import Row, core_seconds_in_turn, one_thread, peak_bytes

N_LABELS, N_LISTED = 1_000_000, 100

QUESTIONS: dict[str, Callable[[ls.LabelsetDistribution], object]] = {
    "confidence": ls.confidence,
    "decide F1": lambda dist: ls.decide(dist, "f1").labelsets,
    "decide Jaccard": lambda dist: ls.decide(dist, "jaccard").labelsets,
    "expected F1": lambda dist: ls.expected_accuracy(dist, metric="f1").value,
    "expected Jaccard": lambda dist: ls.expected_accuracy(dist, metric="jaccard").value,
    "expected exact match": lambda dist: ls.expected_accuracy(dist, metric="exact").value,
}


def listed_labels(n_samples: int) -> tuple[ls.SparseIndependentLabels, ls.IndependentLabels]:
    """Return the same probabilities as some of very many labels, and as all there are."""
    rng = np.random.default_rng(0)
    width = N_LABELS // N_LISTED
    labels = rng.integers(0, width, size=(n_samples, N_LISTED)) + width * np.arange(N_LISTED)
    p = rng.beta(0.3, 3, size=labels.shape).clip(1e-6, 1 - 1e-6)
    return ls.SparseIndependentLabels.from_top(labels, p, N_LABELS), ls.IndependentLabels(p)


def million() -> Iterator[Row]:
    sparse, dense = listed_labels(5000)
    for name, ask in QUESTIONS.items():
        ours, beside = core_seconds_in_turn([lambda: ask(sparse), lambda: ask(dense)])  # noqa: B023
        what = f"10^6 labels, 100 listed / 100 dense labels: {name}"
        yield Row(what, ours / beside, "x", 2)
    made = listed_labels(1000)[0]
    for name in ("confidence", "decide F1"):
        peak = peak_bytes(lambda: QUESTIONS[name](made))  # noqa: B023
        what = f"10^6 labels, 100 listed: memory of {name} / that of what is listed"
        yield Row(what, peak / (12 * 1000 * N_LISTED), "x", 20)


BENCHMARKS = {"million": one_thread(million)}
