"""Thresholds tuned on the probabilities of labels, against `decide`, on real sets.

    python -m benchmarks.thresholds --data FOLDER [--page docs/evidence/decisions.md]

The folder holds the ARFF files of the six sets and of three more; two sets are embedded. Each set
is cut into four parts, which take turns: two parts for the classifier, one to choose thresholds
and to fit a recalibration, one to measure. So every instance (of at most 2,000) is measured once,
and intervals come from the paired differences of single instances.
With a page, what stands below its line `<!-- measured -->` is replaced.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import (
    coverage_error,
    label_ranking_average_precision_score,
    label_ranking_loss,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import labelsure as ls
from benchmarks.calibration import SETS, markdown
from benchmarks.measured_page import show_measured
from benchmarks.recalibration import FURTHER_SETS, load
from labelsure.distributions._bridge import LabelsetDistribution

METRICS = ("exact", "hamming", "jaccard", "f1")
RULES = ("one", "each", "mean_size", "top_k")
RANKING_METRICS = {
    "ranking_loss": label_ranking_loss,
    "coverage_error": coverage_error,
    "average_precision": label_ranking_average_precision_score,
}
N_PARTS = 4
N_SAMPLES = 2000
MANY_LABELS = 25  # beyond only independent labels are measured
OURS = ("decide", "decide, recalibrated", "decide, none empty")
Z = 1.959963984540054  # of an interval that covers 95 %


def classifiers(n_labels: int) -> dict[str, object]:
    learner = make_pipeline(StandardScaler(with_mean=False), LogisticRegression(C=0.1))
    chosen: dict[str, object] = {"Indep": ls.BinaryRelevance(learner)}
    if n_labels <= MANY_LABELS:
        chosen["ECC"] = ls.EnsembleOfClassifierChains(learner, n_chains=5, random_state=0)
    return chosen


def recalibrate(classifier: str, dist: LabelsetDistribution, Y: np.ndarray) -> object:
    """Return what changes distributions, fitted to what thresholds are chosen on."""
    kind = ls.LabelwiseCalibration() if classifier == "Indep" else ls.TemperatureScaling()
    return kind.fit(dist, Y)


def with_fast_engine(dist: LabelsetDistribution) -> LabelsetDistribution:
    """All labelsets of 22 labels take a third of a second for an instance, the likely ones none."""
    return dist.with_engine(engine="certified") if dist.n_labels > 16 else dist


def turns(n_samples: int) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    order = np.random.default_rng(0).permutation(n_samples)[:N_SAMPLES]
    part = np.arange(len(order)) % N_PARTS
    for measured in range(N_PARTS):
        chosen_on = (measured + 1) % N_PARTS
        learned = (part != measured) & (part != chosen_on)
        yield order[learned], order[part == chosen_on], order[part == measured]


def answer(
    known: LabelsetDistribution, Y: np.ndarray, new: LabelsetDistribution, changed: object
) -> Iterator[tuple[str, str, np.ndarray]]:
    """Yield each metric and way to predict with what it predicts for the instances measured."""
    mode, better = new.mode(), changed.transform(new)
    for metric in METRICS:
        yield metric, "mode", mode
        yield metric, "half", (new.marginals() >= 0.5).astype(np.int8)
        for rule in RULES:
            yield metric, rule, ls.LabelThresholds(rule, metric).fit(known, Y).predict(new)
        yield metric, "decide", ls.decide(new, metric).labelsets
        yield metric, "decide, recalibrated", ls.decide(better, metric).labelsets
        none_is_empty = bool(Y.any(axis=1).all())
        own = decide_nonempty(new, metric) if none_is_empty else ls.decide(new, metric).labelsets
        yield metric, "decide, none empty", own


def decide_nonempty(dist: LabelsetDistribution, metric: str) -> np.ndarray:
    """Decide as if the empty labelset could not be true."""
    if metric in ("jaccard", "f1"):
        return ls.decide(dist, metric, empty=0.0).labelsets
    decided = ls.decide(dist, metric).labelsets
    if metric == "exact":
        second = dist.top(2).labelsets[:, 1]
        decided = np.where(decided.any(axis=1, keepdims=True), decided, second)
    return decided


def measure(name: str, folder: Path) -> Iterator[pd.DataFrame]:
    """Yield the accuracy of each instance by each way, and rankings, for each turn."""
    data = load(name, folder)
    X = data.X.to_numpy() if hasattr(data.X, "to_numpy") else data.X
    for learned, chosen_on, measured in turns(len(data.Y)):
        for classifier, model in classifiers(data.Y.shape[1]).items():
            model.fit(X[learned], data.Y[learned])
            known, new = (
                with_fast_engine(model.predict_distribution(X[rows]))
                for rows in (chosen_on, measured)
            )
            changed = recalibrate(classifier, known, data.Y[chosen_on])
            Y = data.Y[measured]
            rankings = {name: rank(Y, new.marginals()) for name, rank in RANKING_METRICS.items()}
            for metric, way, predicted in answer(known, data.Y[chosen_on], new, changed):
                yield pd.DataFrame(
                    {
                        "set": name,
                        "classifier": classifier,
                        "metric": metric,
                        "way": way,
                        "instance": measured,
                        "accuracy": ls.accuracy(Y, predicted, metric),
                        **rankings,
                    }
                )


def compare(found: pd.DataFrame, first: str, second: str) -> pd.DataFrame:
    """Return the mean difference of two ways in each cell, with its interval."""
    cell = ["set", "classifier", "metric"]
    wide = found.pivot(index=[*cell, "instance"], columns="way", values="accuracy")
    difference = (wide[first] - wide[second]).groupby(cell, sort=False)
    table = difference.agg(["mean", "std", "size"]).reset_index()
    half = Z * table["std"] / np.sqrt(table["size"])
    return table.assign(low=table["mean"] - half, high=table["mean"] + half)


def verdicts(found: pd.DataFrame, against: tuple[str, ...]) -> pd.DataFrame:
    """Count in how many cells `decide` is better, worse, or not to be told apart."""
    rows = []
    for ours in OURS:
        for way in against:
            table = compare(found, ours, way)
            for metric, some in table.groupby("metric", sort=False):
                rows.append(
                    {
                        "metric": metric,
                        "way": ours,
                        "against": way,
                        "mean difference": float(some["mean"].mean()),
                        "better": int((some["low"] > 0).sum()),
                        "worse": int((some["high"] < 0).sum()),
                        "open": int(((some["low"] <= 0) & (some["high"] >= 0)).sum()),
                    }
                )
    order = {metric: i for i, metric in enumerate(METRICS)}
    return pd.DataFrame(rows).sort_values("metric", key=lambda m: m.map(order), kind="stable")


def means(found: pd.DataFrame) -> pd.DataFrame:
    """Return the mean accuracy of each way, and how `decide` compares with tuned thresholds."""
    cell = ["metric", "set", "classifier"]
    ways = list(dict.fromkeys(found["way"]))
    table = found.pivot_table(index=cell, columns="way", values="accuracy", sort=False)[ways]
    for ours, way in (("decide", "one"), ("decide", "each"), ("decide, none empty", "each")):
        by_cell = compare(found, ours, way).set_index(cell)
        table[f"{ours} - {way}"] = [
            f"{row['mean']:+.3f} ({row['low']:+.3f}, {row['high']:+.3f})"
            for _, row in by_cell.loc[table.index].iterrows()
        ]
    order = {metric: i for i, metric in enumerate(METRICS)}
    return table.reset_index().sort_values("metric", key=lambda m: m.map(order), kind="stable")


def rankings(found: pd.DataFrame) -> pd.DataFrame:
    columns = ["ranking_loss", "coverage_error", "average_precision"]
    return found.groupby(["set", "classifier"], sort=False)[columns].mean().reset_index()


HEAD = f"""
Made by `python -m benchmarks.thresholds`, not by hand; the script says how. Binary relevance
(Indep) and an ensemble of five chains (ECC), both of logistic regressions (C = 0.1) on scaled
features; Enron with its last 20 labels; sets of more than {MANY_LABELS} labels by Indep only. Two
parts of each set for the classifier, one to choose thresholds (and to fit the recalibration: a
curve for each label of Indep, a temperature for ECC, each kept only where it helps on the
part that it is fitted to), one measured; the parts take turns, so that every instance, of at most
{N_SAMPLES:,}, is measured once. Two empty labelsets are worth 1. `half` is the threshold 0.5, the
other ways are the rules of `LabelThresholds`, chosen for the metric that is measured. "None empty":
where no labelset of the part that thresholds are chosen on is empty, `decide` is told that the
empty one is worth nothing (`empty=0`; for exact match the second most probable takes the place of
an empty one).
"""

EACH = """Mean accuracies, and the paired difference of `decide` and thresholds with its 95 %
interval.
"""

COUNTS = """`better` counts the cells (set and classifier) in which the 95 % interval of the paired
difference is above 0, `worse` those where it is below, `open` the others. Of as many cells that
really are equal one in forty would be counted on each side.
"""


def page(six: pd.DataFrame, further: pd.DataFrame) -> str:
    parts = [HEAD]
    for title, found in (("the six sets", six), ("further sets", further)):
        parts += [
            f"\n### On the whole, {title}\n",
            COUNTS,
            markdown(verdicts(found, ("half", *RULES))),
            f"\n### Each of {title}\n",
            EACH,
            markdown(means(found)),
            f"\n### Rankings, {title}\n",
            markdown(rankings(found)),
        ]
    return "\n".join(parts) + "\n"


def measure_all(names: tuple[str, ...], folder: Path) -> pd.DataFrame:
    frames = []
    for name in names:
        frames += list(measure(name, folder))
        print("measured", name, file=sys.stderr, flush=True)
    return pd.concat(frames, ignore_index=True)


def measure_sets(folder: Path) -> str:
    """Return the tables of all sets of a folder."""
    return page(*(measure_all(tuple(names), folder) for names in (SETS, FURTHER_SETS)))


if __name__ == "__main__":
    show_measured(sys.argv[1:], __doc__, measure_sets)
