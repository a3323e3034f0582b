"""Trellises of 100 labels: exact answers where 2**L is out of reach."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import labelsure as ls
from benchmarks.chains import one_thread
from benchmarks.measure import Row, seconds


def random_trellis(n_samples: int, n_labels: int, width: int) -> ls.TrellisDistribution:
    """Left and upper neighbours as parents, labels seldom set."""
    rng = np.random.default_rng(0)
    parents = [[j - 1] * (j % width > 0) + [j - width] * (j >= width) for j in range(n_labels)]
    logits = [rng.normal(-1.5, 1.5, size=(n_samples, 2 ** len(some))) for some in parents]
    conditionals = [1 / (1 + np.exp(-logit)) for logit in logits]
    return ls.TrellisDistribution(conditionals, parents, rng.permutation(n_labels))


def trellis() -> Iterator[Row]:
    n_samples = 20
    dist = random_trellis(n_samples, 100, 10)
    for what, metrics, needed in (("", (), 2), (", expected Jaccard", ("jaccard",), 15)):
        taken = seconds(lambda metrics=metrics: dist.summary(metrics))
        what = f"trellis of 100 labels, width 10, one thread: profile, mode{what}, an instance"
        yield Row(what, 1000 * taken / n_samples, "ms", needed)


BENCHMARKS = {"trellis": one_thread(trellis)}
