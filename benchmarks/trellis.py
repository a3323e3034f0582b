"""Trellises of 159 to 400 labels: exact answers where 2**L is out of reach.

Beside times there are ratios to the bare cost of the same mathematics: numpy moving as many states
over as many labels as often. CAL500 (174 labels) is read from the folder LABELSURE_DATA.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import labelsure as ls
from benchmarks.measure import Row, core_seconds, core_seconds_in_turn, one_thread
from labelsure.distributions._reciprocals import sum_of_powers
from labelsure.metrics.registry import check_metrics

N_LABELS, WIDTH = 174, 12
ALL_METRICS = ("exact", "hamming", "jaccard", "f1")


def grid_parents(n_labels: int, width: int) -> list[list[int]]:
    """Left and upper neighbours."""
    return [[j - 1] * (j % width > 0) + [j - width] * (j >= width) for j in range(n_labels)]


def random_trellis(
    n_samples: int, n_labels: int, width: int
) -> ls.distributions.TrellisDistribution:
    """Labels seldom set."""
    rng = np.random.default_rng(0)
    parents = grid_parents(n_labels, width)
    logits = [rng.normal(-1.5, 1.5, size=(n_samples, 2 ** len(some))) for some in parents]
    conditionals = [1 / (1 + np.exp(-logit)) for logit in logits]
    return ls.distributions.TrellisDistribution(conditionals, parents, rng.permutation(n_labels))


def cal500_trellis(n_samples: int) -> ls.distributions.TrellisDistribution:
    """Fitted to two thirds of the songs, for some of the others."""
    data = ls.load_dataset("cal500", source="file")
    n_train = 2 * len(data.Y) // 3
    model = ls.classifiers.ClassifierTrellis(
        make_pipeline(StandardScaler(), LogisticRegression(C=0.01)), width=WIDTH, random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(data.X[:n_train], data.Y[:n_train])
    return model.predict_distribution(data.X[n_train : n_train + n_samples])


def bare_profile(n_labels: int, n_states: int) -> float:
    """Move two sums and a maximum over the labels, for one instance."""
    half = n_states // 2
    sums, moved = np.ones((2, n_states)), np.ones((2, n_states))
    best, before = np.zeros(n_states), np.zeros(n_states)
    for _ in range(n_labels):
        even, odd = sums[:, ::2], sums[:, 1::2]
        moved[:, :half] = 0.3 * even + 0.4 * odd
        moved[:, half:] = 0.7 * even + 0.6 * odd
        sums, moved = moved, sums
        for odd_states in range(2):
            np.maximum(best[:half] - 0.4, best[half:] - 1.1, out=before[odd_states::2])
        best, before = before, best
    return float(sums.sum() + best.sum())


def bare_expectations(n_labels: int, n_states: int, n_points: int) -> float:
    """Move a value and its derivative back over the labels at each point, for one instance."""
    half = n_states // 2
    total = 0.0
    for _ in range(n_points):
        values, before = np.ones((2, n_states)), np.ones((2, n_states))
        for _ in range(n_labels):
            gain = 0.5 * values[:, half:] - values[:, :half]
            before[:, ::2] = values[:, :half] + 0.3 * gain
            before[:, 1::2] = values[:, :half] + 0.4 * gain
            values, before = before, values
        total += values[0, 0]
    return total


def answers(dist: ls.distributions.TrellisDistribution, what: str) -> Iterator[Row]:
    """Profile, expected accuracies and decisions, beside their bare cost."""
    n_labels, n_states = dist.n_labels, 2**dist.memory
    k = dist.mode().sum(axis=1)
    n_points = int(
        np.mean([len(sum_of_powers(max(1, size), n_labels)[0]) for size in k])
        + np.mean([len(sum_of_powers(size + 1, size + n_labels)[0]) for size in k])
    )
    profile, accuracies, bare, bare_accuracies = core_seconds_in_turn(
        [
            dist.profile,
            lambda: dist._summary(check_metrics(ALL_METRICS), 1.0),
            lambda: bare_profile(n_labels, n_states),
            lambda: bare_expectations(n_labels, n_states, n_points),
        ],
        repeats=3,
    )
    n_samples = len(dist)
    bare_accuracies += bare
    yield Row(f"{what}: profile, an instance", 1000 * profile / n_samples, "ms")
    yield Row(f"{what}: profile: ours / NumPy's", profile / n_samples / bare, "x", 1, peer="NumPy")
    yield Row(f"{what}: four expected accuracies", 1000 * accuracies / n_samples, "ms")
    ratio = accuracies / n_samples / bare_accuracies
    name = f"{what}: four expected accuracies at {n_points} points: ours / NumPy's"
    yield Row(name, ratio, "x", 1, peer="NumPy")
    taken = core_seconds(lambda: ls.decide(dist[:2], "jaccard").labelsets, repeats=1) / 2
    yield Row(f"{what}: decision under Jaccard, an instance", 1000 * taken, "ms")
    gap = ls.decide(dist[:2], "jaccard").gap
    yield Row(f"{what}: its certified gap", float(gap.max()), "", 0.02)


def one_instance() -> Iterator[Row]:
    """Time what a fitted trellis takes before any question is asked."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 100))
    Y = (X @ rng.normal(size=(100, 159)) + rng.normal(size=(400, 159)) > 5).astype(int)
    model = ls.classifiers.ClassifierTrellis(LogisticRegression(C=0.1), random_state=0).fit(X, Y)
    taken = core_seconds(lambda: model.predict_distribution(X[:1]), repeats=9)
    yield Row("trellis of 159 labels: the distribution of one instance", 1000 * taken, "ms", 4)


def exact_profiles() -> Iterator[Row]:
    rng = np.random.default_rng(0)
    for what, dist in (
        ("binary relevance of 5,000 labels", ls.IndependentLabels(rng.random((100, 5000)))),
        ("trellis of 400 labels, width 12", random_trellis(2, 400, WIDTH)),
    ):
        assert set(dist.profile().method) == {"exact"}
        taken = 1000 * core_seconds(dist.profile) / len(dist)
        yield Row(f"{what}: exact profile, an instance", taken, "ms")


def trellis() -> Iterator[Row]:
    yield from exact_profiles()
    yield from one_instance()
    yield from answers(random_trellis(4, N_LABELS, WIDTH), f"trellis of {N_LABELS} labels")
    yield from answers(cal500_trellis(4), f"CAL500, {N_LABELS} labels, width {WIDTH}")


BENCHMARKS = {"trellis": one_thread(trellis)}
