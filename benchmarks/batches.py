"""How well the accuracy of a batch without labels is estimated, with and without a shift.

    LABELSURE_DATA=folder python -m benchmarks.batches docs/evidence/batches.csv

The folder holds the ARFF files. Many times a set is split into instances to train a classifier,
calibration data and a pool; batches are drawn from the pool, as they come or shifted. Every method
knows the labelled calibration data and the batch without its labels; the truth is the mean
accuracy of the batch. Ten minutes on one core.
"""

from __future__ import annotations

import os
import sys
import warnings
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import issparse
from scipy.stats import norm, t
from sklearn.decomposition import TruncatedSVD
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import labelsure as ls
from labelsure.estimation.score_table import ScoreTable

METRICS = ("exact", "hamming", "jaccard")
N_SPLITS = 3
N_SPLITS_OF_ALL_WAYS = 2  # bootstraps take time
COLUMNS = ["set", "shift", "size", "method", "truth", "mean", "low", "high"]
Floats = NDArray[np.float64]

SETS = ("emotions", "scene", "yeast", "stare", "enron", "slashdot")
SETS += ("digits", "medical", "cal500", "simulated", "simulated 2")
SIMULATED = {
    "simulated": {"n_labels": 6, "dependence": 1.0, "noise": 0.5},
    "simulated 2": {"n_labels": 10, "dependence": 0.3, "noise": 0.2, "cardinality": 4.0},
}
N_SIMULATED = 5000
LARGEST_PART = 800  # to train and to calibrate, so that large sets have a large pool
SIZES = (50, 200, 1000)
STRENGTH = 1.0
"""How much the log of an instance's odds to be drawn rises with one standard deviation of what a
shift goes by."""


@dataclass(frozen=True)
class Data:
    """A data set, and the direction in which its instances differ most.

    Parameters
    ----------
    name
        Of the set.
    X, Y
        Instances and labelsets.
    direction
        (n,) the first principal component of X.
    """

    name: str
    X: Any
    Y: NDArray[np.int8]
    direction: Floats


def load(name: str, folder: Path) -> Data:
    """Return a data set; real ones are ARFF files in the folder."""
    if name in SIMULATED:
        data = ls.make_labelsets(N_SIMULATED, random_state=7, **SIMULATED[name])[0]
    elif name == "digits":
        data = ls.load_dataset(name)
    elif name in ("medical", "cal500", "flags"):
        data = ls.read_dataset(folder / f"{name}.arff.gz")
    else:
        data = ls.load_dataset(name, folder, labels="last20" if name == "enron" else None)
    X = data.X.to_numpy() if hasattr(data.X, "to_numpy") else data.X
    scaled = StandardScaler(with_mean=not issparse(X)).fit_transform(X)
    direction = TruncatedSVD(1, random_state=0).fit_transform(scaled)[:, 0]
    return Data(name, X, np.asarray(data.Y), direction)


def classifiers(data: Data) -> dict[str, Any]:
    """Return the classifiers: binary relevance and, where it is cheap, a few chains."""
    learner = make_pipeline(
        StandardScaler(with_mean=not issparse(data.X)), LogisticRegression(C=0.1, max_iter=300)
    )
    found: dict[str, Any] = {"BR": ls.BinaryRelevance(learner)}
    if data.Y.shape[1] <= 10 and not data.name.startswith("simulated"):
        found["chains"] = ls.EnsembleOfClassifierChains(learner, n_chains=3, random_state=0)
    return found


KINDS: dict[str, Callable[[Data, NDArray[np.intp], np.random.Generator], Floats]] = {
    "none": lambda data, rows, rng: np.zeros(len(rows)),
    "covariate": lambda data, rows, rng: data.direction[rows] * rng.choice([-1, 1]),
    "label": lambda data, rows, rng: data.Y[rows] @ rng.choice([-1.0, 1.0], data.Y.shape[1]),
    "more labels": lambda data, rows, rng: data.Y[rows].sum(axis=1).astype(float),
    "fewer labels": lambda data, rows, rng: -data.Y[rows].sum(axis=1).astype(float),
}
"""What a shift goes by: the log-odds of an instance to be drawn are linear in it. By the instances
alone (covariate), by some labels up and others down (label), by the number of labels."""


def draw(score: Floats, size: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Return `size` places, drawn without replacement, the likelier the higher the score.

    Parameters
    ----------
    score
        (n,) of what can be drawn.
    size
        At most n.
    rng
        Draws them.
    """
    spread = score.std()
    logs = STRENGTH * (score - score.mean()) / spread if spread > 0 else np.zeros(len(score))
    # The largest of log-weights plus Gumbel noise are a draw without replacement.
    return np.argsort(-(logs + rng.gumbel(size=len(score))))[:size]


@dataclass(frozen=True)
class Scored:
    """Predictions with the truth beside them.

    Parameters
    ----------
    dist
        Of the instances.
    Y
        The truth.
    table
        Their score table, as a frame.
    confidence
        (n,) the mean over labels of the probability that the label is decided rightly.
    """

    dist: ls.LabelsetDistribution
    Y: NDArray[np.int8]
    table: pd.DataFrame
    confidence: Floats

    @classmethod
    def of(cls, model: Any, data: Data, rows: NDArray[np.intp]) -> Scored:
        """Predict the labelsets of some rows."""
        dist = model.predict_distribution(data.X[rows])
        table = ScoreTable.from_distribution(dist, data.Y[rows]).to_frame()
        marginals = dist.marginals()
        return cls(dist, data.Y[rows], table, np.maximum(marginals, 1 - marginals).mean(axis=1))

    def take(self, rows: NDArray[np.intp]) -> Scored:
        """Return some of them."""
        table = self.table.iloc[rows]
        return Scored(self.dist[rows], self.Y[rows], table, self.confidence[rows])

    def accuracy(self, metric: str) -> Floats:
        """Return the accuracy of each prediction, two empty labelsets being worth 1."""
        return ScoreTable(self.table).accuracy(metric, empty=1.0)

    def expected(self, metric: str) -> Floats:
        """Return what the classifier itself expects of each."""
        return ScoreTable(self.table).expected(metric, empty=1.0)

    def __len__(self) -> int:
        return len(self.Y)


@dataclass(frozen=True)
class Split:
    """One classifier on one split of a set: calibration data, and the pool that comes later."""

    data: Data
    classifier: str
    number: int
    calibration: Scored
    pool: Scored
    Y_train: NDArray[np.int8]
    pool_rows: NDArray[np.intp]

    def batches(self, sizes: tuple[int, ...]) -> Iterator[tuple[str, int, Scored]]:
        """Yield kind, size and a batch of each that the pool is large enough for."""
        rng = np.random.default_rng([self.number, zlib.crc32(self.data.name.encode())])
        for kind, score in KINDS.items():
            scores = score(self.data, self.pool_rows, rng)
            for size in sizes:
                # Of more than half the pool a draw without replacement would hardly be shifted.
                if size <= len(self.pool) / (1 if kind == "none" else 2):
                    yield kind, size, self.pool.take(draw(scores, size, rng))


def train_size(data: Data) -> int:
    """Return how many instances train the classifier, and as many calibrate."""
    return min(len(data.Y) // 4, LARGEST_PART)


def splits(data: Data, n_splits: int) -> Iterator[Split]:
    """Yield splits of a set: a quarter to train, a quarter to calibrate (at most 800), a pool."""
    for number in range(n_splits):
        order = np.random.default_rng(number).permutation(len(data.Y))
        quarter = train_size(data)
        train, calibration, rest = np.split(order, [quarter, 2 * quarter])
        for title, model in classifiers(data).items():
            model.fit(data.X[train], data.Y[train])
            sides = (Scored.of(model, data, rows) for rows in (calibration, rest))
            yield Split(data, title, number, *sides, data.Y[train], rest)


LEVEL = 0.95
N_LABELLED = 30
"""Of the batch, drawn at random, for the ways that use a few labels."""


@dataclass(frozen=True)
class Answer:
    """What a method says: a mean with an interval, if it has one; or nothing, if it refuses."""

    mean: float = np.nan
    low: float = np.nan
    high: float = np.nan


def say_calibration_mean(metric: str, calibration: Scored, batch: Scored) -> Answer:
    """Say that the batch is as accurate as the calibration data are."""
    values = calibration.accuracy(metric)
    error = values.std(ddof=1) * np.sqrt(1 / len(values) + 1 / len(batch))
    margin = norm.ppf((1 + LEVEL) / 2) * error
    return Answer(values.mean(), values.mean() - margin, values.mean() + margin)


def say_expected(metric: str, calibration: Scored, batch: Scored) -> Answer:
    """Say what the classifier expects, with the variance of independent coins."""
    expected = ScoreTable(batch.table).expected(metric, 1.0)
    mean, error = expected.mean(), np.sqrt((expected * (1 - expected)).mean() / len(batch))
    margin = norm.ppf((1 + LEVEL) / 2) * error
    return Answer(mean, max(0.0, mean - margin), min(1.0, mean + margin))


def say_top_probability(metric: str, calibration: Scored, batch: Scored) -> Answer:
    """Say the mean probability of the predicted labelset: HP, taken for an accuracy."""
    return Answer(float(np.exp(batch.table["log_top"]).mean()))


def say_average_confidence(metric: str, calibration: Scored, batch: Scored) -> Answer:
    """Say the mean probability that a label is decided rightly, taken for an accuracy."""
    return Answer(float(batch.confidence.mean()))


def threshold_confidence(known: Floats, accuracy: Floats, new: Floats) -> float:
    """Return the share of new confidences above the threshold that the known accuracy gives.

    Average thresholded confidence (Garg and others, 2022). On the calibration data, the share of
    confidences above the threshold is the mean accuracy; here also where accuracies are fractions.

    Parameters
    ----------
    known, accuracy
        (n,) confidence and accuracy of the calibration data.
    new
        (N,) confidence in the batch.
    """
    n_above = round(float(accuracy.mean()) * len(known))
    if n_above == 0:
        return float((new > known.max()).mean())
    return float((new >= np.sort(known)[len(known) - n_above]).mean())


def say_thresholded(metric: str, calibration: Scored, batch: Scored) -> Answer:
    """Say ATC, with the classifier's own expected accuracy as the confidence."""
    known, new = calibration.expected(metric), batch.expected(metric)
    return Answer(threshold_confidence(known, calibration.accuracy(metric), new))


def say_difference(metric: str, calibration: Scored, batch: Scored) -> Answer:
    """Say DoC (Guillory and others, 2021): accuracy changes by as much as mean confidence does."""
    change = batch.expected(metric).mean() - calibration.expected(metric).mean()
    return Answer(float(np.clip(calibration.accuracy(metric).mean() + change, 0, 1)))


Method = Callable[[str, Scored, Scored], Answer]

BASELINES: dict[str, Method] = {
    "calibration mean": say_calibration_mean,
    "expected accuracy": say_expected,
    "HP": say_top_probability,
    "average confidence": say_average_confidence,
    "ATC": say_thresholded,
    "DoC": say_difference,
}


def average(values: Floats, n_batch: int) -> Answer:
    """Say the mean of a few labelled instances of a batch, with a t-interval for all of it."""
    n = len(values)
    error = values.std(ddof=1) * np.sqrt(1 / n - 1 / n_batch)
    margin = t.ppf((1 + LEVEL) / 2, n - 1) * error
    return Answer(values.mean(), values.mean() - margin, values.mean() + margin)


class Ours:
    """An estimator that was fitted to calibration data, and the ways to ask it.

    Parameters
    ----------
    metric
        Of accuracy.
    calibration
        What it is fitted to.
    Y_train
        What the classifier was trained on.
    """

    def __init__(self, metric: str, calibration: Scored, Y_train: Any) -> None:
        self.estimator = ls.AccuracyEstimator(metric)
        self.estimator.fit(calibration.dist, calibration.Y, Y_train=Y_train)

    def answers(
        self, batch: Scored, rng: np.random.Generator, *, all_ways: bool
    ) -> dict[str, Answer]:
        """Return what it says of a batch, asked plainly or in every way."""
        plain = {"ours": self._ask(batch.dist, shift="ignore")}
        if not all_ways:
            return plain
        rows = rng.permutation(len(batch))[:N_LABELLED]
        known = {"Y_true": batch.Y[rows], "rows": rows}
        return plain | {
            "ours weighted": self._ask(batch.dist, shift="weighted"),
            f"ours, {N_LABELLED} labels": self._ask(batch.dist, **known),
            f"{N_LABELLED} labels alone": average(
                batch.accuracy(str(self.estimator.metric))[rows], len(batch)
            ),
        }

    def _ask(self, batch: Any, **how: Any) -> Answer:
        try:
            found = self.estimator.estimate(batch, level=LEVEL, **how)
        except ls.errors.NotEstimableError:
            return Answer()
        return Answer(found.mean, found.low, found.high)


def measure(split: Split, metric: str) -> Iterator[tuple]:
    """Yield what every method says of every batch of a split."""
    ours = Ours(metric, split.calibration, split.Y_train)
    rng = np.random.default_rng(split.number)
    for kind, size, batch in split.batches(SIZES):
        truth = float(batch.accuracy(metric).mean())
        answers = {
            name: method(metric, split.calibration, batch) for name, method in BASELINES.items()
        }
        answers |= ours.answers(batch, rng, all_ways=split.number < N_SPLITS_OF_ALL_WAYS)
        for method, said in answers.items():
            yield (kind, size, method, truth, said.mean, said.low, said.high)


def summarise(found: pd.DataFrame) -> pd.DataFrame:
    """Return batches, error, bias, coverage, width and refusals of each shift, size and method."""
    refused = found["mean"].isna()
    covered = (found["low"] <= found["truth"]) & (found["truth"] <= found["high"])
    values = found.assign(
        refused=refused.astype(float),
        bias=found["mean"] - found["truth"],
        error=(found["mean"] - found["truth"]).abs(),
        covered=covered.astype(float).where(found["low"].notna()),
        width=found["high"] - found["low"],
    )
    groups = values.groupby(["shift", "size", "method"], sort=False)
    means = groups[["error", "bias", "covered", "width", "refused"]].mean()
    means.insert(0, "batches", groups.size())
    means.insert(0, "sets", groups["set"].nunique())
    return means.reset_index()


def main(file: str) -> None:
    """Measure, and write the table of all sets."""
    warnings.simplefilter("ignore")
    folder = Path(os.environ["LABELSURE_DATA"])
    rows: list[tuple] = []
    for name in SETS:
        for split in splits(load(name, folder), N_SPLITS):
            for metric in METRICS:
                rows.extend((name, *row) for row in measure(split, metric))
        print(f"{name}: {len(rows):,} rows", file=sys.stderr, flush=True)
    table = summarise(pd.DataFrame(rows, columns=COLUMNS)).round(3)
    table.to_csv(file, index=False)
    print(table.to_string(index=False))


if __name__ == "__main__":
    main(sys.argv[1])
