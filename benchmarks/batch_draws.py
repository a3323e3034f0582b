"""Batches that have drifted, or not: data sets, classifiers, splits, and how batches are drawn."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.decomposition import TruncatedSVD
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import labelsure as ls
from labelsure.score_table import ScoreTable

Floats = NDArray[np.float64]

CHOSEN_ON = ("emotions", "scene", "yeast", "stare", "enron", "slashdot")
CONFIRMED_ON = ("digits", "medical", "cal500", "simulated", "simulated 2")
"""flags is left out: of its 194 instances a classifier, calibration data and a batch of 50 leave
nothing to choose from."""

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


def load(name: str) -> Data:
    """Return a data set; real ones are ARFF files in the folder `LABELSURE_DATA`."""
    if name in SIMULATED:
        data = ls.make_labelsets(N_SIMULATED, random_state=7, **SIMULATED[name])[0]
    elif name in ("medical", "cal500", "flags"):
        data = ls.read_dataset(Path(os.environ["LABELSURE_DATA"]) / f"{name}.arff.gz")
    else:
        data = ls.load_dataset(name, labels="last20" if name == "enron" else None)
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
