"""Which joint is best? All sources of a joint against marginals alone, on sets small and real.

    LABELSURE_DATA=folder python -m benchmarks.joints FILE

The folder holds ARFF files of further sets. Each split trains on 60 % of at most 700 instances (400
beyond 50 labels) and measures on the others, with the same base learner for all; decisions by the
first 30 of these beyond 20 labels. Intervals are those of paired
differences from marginals alone, over the splits. The file keeps the figures of each split, so that
a run goes on where another ended.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse
from scipy.stats import t
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold

import labelsure as ls
from benchmarks.calibration import EVIDENCE

EMBEDDED = ("digits", "simulated", "yeast")
FURTHER = (
    *("emotions", "flags", "scene", "stare"),
    *("slashdot", "medical", "enron", "cal500"),  # 22, 45, 53 and 174 labels
)
MAX_INSTANCES, N_SPLITS = 700, 3
MOST_LABELS, FEWER_INSTANCES = 50, 400  # the sets with more labels than that take longest
MANY_LABELS, MAX_DECISIONS = 20, 30  # decisions for many labels take seconds for each instance
PLAIN, CALIBRATED, LAYER = "marginals alone", "calibrated marginals", "dependence layer"
N_FOLDS = 5  # as of the layer
MEASURES = {
    "log P": "mean log-probability of the true labelset",
    "exact": "exact match of the most probable labelset",
    "jaccard": "Jaccard of the decision that is best for it",
    "error": "calibration error of the expected exact match",
    "seconds": "seconds of one core, to fit and to answer",
}


class CalibratedMarginals:
    """Independent labels whose probabilities are calibrated label by label.

    It learns as the layer does, from what clones say of the fold that they were not fitted to, and
    keeps what it learned by the same gate: what the layer has more than this is dependence.
    """

    def __init__(self, learner: object) -> None:
        self.learner = learner

    def fit(self, X: np.ndarray, Y: np.ndarray) -> CalibratedMarginals:
        """Fit the model, and a curve for each label."""
        dists, truths = [], []
        for train, held_out in KFold(N_FOLDS, shuffle=True, random_state=0).split(X):
            model = ls.BinaryRelevance(self.learner).fit(X[train], Y[train])
            dists.append(model.predict_distribution(X[held_out]))
            truths.append(Y[held_out])
        self.calibration_ = ls.LabelwiseCalibration().fit_parts(dists, truths)
        self.model_ = ls.BinaryRelevance(self.learner).fit(X, Y)
        return self

    def predict_distribution(self, X: np.ndarray) -> ls.LabelsetDistribution:
        """Return independent labels, calibrated."""
        return self.calibration_.transform(self.model_.predict_distribution(X))


def sources() -> dict[str, object]:
    """Return a classifier of each source, all with one base learner where they have any."""
    learner = LogisticRegression(max_iter=300)
    return {
        PLAIN: ls.BinaryRelevance(learner),
        CALIBRATED: CalibratedMarginals(learner),
        "trellis": ls.classifiers.ClassifierTrellis(learner, random_state=0),
        "chain": ls.ProbabilisticClassifierChain(learner, random_state=0),
        "ensemble of 10 chains": ls.EnsembleOfClassifierChains(learner, random_state=0),
        "powerset": ls.LabelPowerset(learner, random_state=0),
        LAYER: ls.RecalibratedClassifier(learner, "dependence", random_state=0),
    }


def load(name: str) -> ls.Dataset:
    if name in EMBEDDED:
        return ls.load_dataset(name, source="embedded" if name == "yeast" else None)
    if name in ls.list_datasets():
        return ls.load_dataset(name)
    return ls.read_dataset(Path(os.environ["LABELSURE_DATA"]) / f"{name}.arff.gz")


def measure(model: object, train: tuple, test: tuple) -> dict[str, object]:
    """Fit a model and return what its distributions are worth."""
    start = time.process_time()
    dist = model.fit(*train).predict_distribution(test[0])  # type: ignore[attr-defined]
    log_prob = dist.log_prob(test[1])
    n_decisions = MAX_DECISIONS if dist.n_labels > MANY_LABELS else len(dist)
    dist, Y = dist[:n_decisions], test[1][:n_decisions]
    mode = dist.mode()
    expected = ls.expected_accuracy(dist, mode, metric="exact").value.clip(0, 1)
    best = ls.decide(dist, "jaccard").labelsets
    seconds = time.process_time() - start
    exact = ls.accuracy(Y, mode, "exact")
    return {
        "log P": float(log_prob.mean()),
        "exact": float(exact.mean()),
        "jaccard": float(ls.accuracy(Y, best, "jaccard").mean()),
        "error": ls.reliability(expected, exact).expected_calibration_error,
        "seconds": seconds,
    }


def cells(name: str, kept: pd.DataFrame) -> Iterator[dict[str, object]]:
    """Yield what each source is worth on each split of a set, unless it is kept already."""
    data = load(name)
    X = data.X.toarray() if scipy.sparse.issparse(data.X) else np.asarray(data.X, dtype=float)
    Y = np.asarray(data.Y)
    known = set(zip(kept["set"], kept["split"], kept["source"], strict=True))
    for split in range(N_SPLITS):
        most = FEWER_INSTANCES if Y.shape[1] > MOST_LABELS else MAX_INSTANCES
        rows = np.random.default_rng(split).permutation(len(Y))[:most]
        n_train = int(0.6 * len(rows))
        train, test = rows[:n_train], rows[n_train:]
        mean, scale = X[train].mean(axis=0), X[train].std(axis=0)
        Z = (X - mean) / np.where(scale > 0, scale, 1.0)
        for source, model in sources().items():
            if (name, split, source) in known:
                continue
            found = measure(model, (Z[train], Y[train]), (Z[test], Y[test]))
            yield {"set": name, "split": split, "source": source, **found}


def differences(frame: pd.DataFrame, column: str, base: str = PLAIN) -> pd.DataFrame:
    """Return the mean paired difference from one source and half its 95 % interval."""
    wide = frame.pivot_table(index=["set", "split"], columns="source", values=column)
    off = wide.sub(wide[base], axis=0).groupby("set")
    n_splits = off.size()
    half = off.std().mul(t.ppf(0.975, n_splits - 1) / np.sqrt(n_splits), axis=0)
    return pd.concat({"mean": off.mean(), "half": half}, axis=1)


def tidy(frame: pd.DataFrame) -> pd.DataFrame:
    """Return means of marginals alone, differences of the others and half widths of intervals."""
    parts = []
    for column, measure in MEASURES.items():
        found = differences(frame, column).stack("source", future_stack=True).reset_index()
        plain = frame[frame["source"] == PLAIN].groupby("set")[column].mean()
        alone = found["source"] == PLAIN
        found["measure"] = measure
        found["level"] = found["set"].map(plain).where(alone)
        parts.append(found)
    columns = {"level": "mean", "mean": "difference", "half": "half_width"}
    whole = pd.concat(parts).rename(columns=columns)
    return whole[["measure", "set", "source", "mean", "difference", "half_width"]]


def verdicts(frame: pd.DataFrame) -> pd.DataFrame:
    """Return on how many sets the interval says better, and worse, than marginals alone."""
    found = {}
    for column in [column for column in MEASURES if column != "seconds"]:
        off = differences(frame, column)
        mean, half = off["mean"] * (-1 if column == "error" else 1), off["half"]
        better, worse = (mean > half).sum(), (-mean > half).sum()
        found[MEASURES[column]] = better.astype(str) + " / " + worse.astype(str)
    return pd.DataFrame(found).drop(index=PLAIN).rename_axis("source")


def main() -> None:
    """Measure all sets, and write the tables; the file given keeps what is measured."""
    warnings.simplefilter("ignore")
    kept = Path(sys.argv[1])
    frame = pd.DataFrame(columns=["set", "split", "source", *MEASURES])
    if kept.exists():
        frame = pd.read_csv(kept, keep_default_na=False)
    for name in (*EMBEDDED, *FURTHER):
        for cell in cells(name, frame):
            row = pd.DataFrame([cell])
            print(row.to_string(header=False, index=False), flush=True)
            frame = row if frame.empty else pd.concat([frame, row], ignore_index=True)
            frame.to_csv(kept, index=False)
    tidy(frame).to_csv(EVIDENCE / "joints.csv", index=False)
    verdicts(frame).to_csv(EVIDENCE / "joints_better_or_worse.csv")


if __name__ == "__main__":
    main()
