"""Sampled answers as votes: what an estimator of accuracy adds to the share of agreeing answers.

    LABELSURE_DATA=folder python -m benchmarks.votes docs/evidence/votes.csv

No public set of sampled answers is at hand. Answers are drawn from an ensemble of chains that was
fitted to other rows: from its own distribution, by which shares are right by construction, and from
an overconfident one (temperature 0.5), by which they are wrong. 200 rows are labelled. Both methods
predict the labelset with most votes and differ in what they say of it.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

import labelsure as ls
from labelsure.classifiers import VoteSmoothing
from labelsure.labelsets.foreign import take_rows

SETS = ("emotions", "scene", "yeast", "slashdot", "medical", "enron")
N_TRAIN, N_LABELLED, N_TEST, N_SPLITS = 800, 200, 600, 3
TEMPERATURES = {"the model's own": 1.0, "overconfident": 0.5}
N_BINS = 10
ERRORS, SURER = ("squared error", "calibration error"), "accuracy of the surer half"
FIGURES = {**dict.fromkeys(ERRORS, 1), SURER: -1}
"""Figures of the means, and whether less (1) or more (-1) is better."""


def expected_calibration_error(stated: np.ndarray, actual: np.ndarray) -> float:
    """Return the mean distance of stated and actual accuracy in ten bins of equal size."""
    parts = np.array_split(np.argsort(stated, kind="stable"), N_BINS)
    return float(
        sum(abs(stated[p].mean() - actual[p].mean()) * len(p) for p in parts) / len(stated)
    )


def measure(name: str, split: int) -> list[dict[str, object]]:
    """Return a row for each kind of votes, number of them, metric and method."""
    data = ls.load_dataset(name)
    Y, rng = np.asarray(data.Y), np.random.default_rng(split)
    sizes = np.cumsum([min(N_TRAIN, len(Y) // 2), N_LABELLED, N_TEST])
    train, known, new, _ = np.split(rng.permutation(len(Y)), sizes)
    model = ls.EnsembleOfClassifierChains(n_chains=5, random_state=split)
    model.fit(take_rows(data.X, train), Y[train])
    small = ls.BinaryRelevance().fit(take_rows(data.X, train[:200]), Y[train[:200]])
    found: list[dict[str, object]] = []
    both = np.concatenate([known, new])
    joint = model.predict_distribution(take_rows(data.X, both))
    other = small.predict_distribution(take_rows(data.X, both))
    first, last = np.arange(len(known)), np.arange(len(known), len(both))
    for kind, temperature in TEMPERATURES.items():
        draws = joint.temper(temperature).sample(10, random_state=split)
        for k in (3, 5, 10):
            votes = draws[:, :k]
            table = ls.LabelsetTable.from_samples(votes)
            agree = table.top(1).probabilities[last, 0]
            head = {"set": name, "split": split, "votes": kind, "k": k}
            for metric in ("exact", "jaccard"):
                aware = ls.AccuracyAwareClassifier(
                    ls.PrecomputedProbabilities("votes"),
                    metric,
                    decision="mode",
                    recalibration=None,
                    random_state=0,
                ).fit(votes[first], Y[known])
                actual = ls.accuracy(Y[new], table[last].mode(), metric)
                stated = {"share agreeing": agree, "labelsure": aware.predict_accuracy(votes[last])}
                for method, score in stated.items():
                    half = np.argsort(-score, kind="stable")[: len(score) // 2]
                    found.append(
                        {
                            **head,
                            "metric": metric,
                            "method": method,
                            "squared error": float(((score - actual) ** 2).mean()),
                            "calibration error": expected_calibration_error(score, actual),
                            "accuracy of the surer half": float(actual[half].mean()),
                            "accuracy": float(actual.mean()),
                        }
                    )
            smoothing = VoteSmoothing(gate=False).fit(table[first], Y[known])
            joined = ls.distributions.SmoothedTable(table, other, 0.5)
            both_sources = VoteSmoothing(gate=False).fit(joined[first], Y[known])
            sources = {
                "votes alone": smoothing.transform(table[last]),
                "small model alone": other[last],
                "both": both_sources.transform(joined[last]),
            }
            for source, dist in sources.items():
                best = ls.decide(dist[:200], "jaccard").labelsets
                found.append(
                    {
                        **head,
                        "metric": "jaccard",
                        "method": source,
                        "log P": float(dist.log_prob(Y[new]).mean()),
                        "accuracy": float(ls.accuracy(Y[new][:200], best, "jaccard").mean()),
                    }
                )
    return found


def summarise(rows: pd.DataFrame) -> pd.DataFrame:
    """Means over sets and splits, and on how many sets labelsure has the better of each figure."""
    ways = {"share agreeing": "the share", "labelsure": "labelsure"}
    rows = rows[rows["method"].isin(ways)]
    keys = ["votes", "k", "metric"]
    found = []
    for key, part in rows.groupby(keys, sort=False):
        means = part.groupby("method")[list(FIGURES)].mean()
        by_set = part.groupby(["method", "set"])[list(FIGURES)].mean()
        gain = by_set.loc["share agreeing"] - by_set.loc["labelsure"]
        better = (gain * pd.Series(FIGURES) > 0).sum()
        row: dict[str, object] = dict(zip(keys, key, strict=True))
        row["accuracy"] = part["accuracy"].mean()
        row |= {f"{f} of {ways[m]}": means.loc[m, f] for f in ERRORS for m in ways}
        row |= {f"surer half by {ways[m]}": means.loc[m, SURER] for m in ways}
        row["sets where labelsure is better"] = f"{', '.join(map(str, better))} of {len(gain)}"
        found.append(row)
    table = pd.DataFrame(found)
    return table[["metric", *table.columns.drop("metric")]]


def main(path: Path) -> None:
    """Write all rows to a file, and their means to one beside it."""
    warnings.simplefilter("ignore")
    rows: list[dict[str, object]] = []
    for name in SETS:
        for split in range(N_SPLITS):
            rows += measure(name, split)
            pd.DataFrame(rows).to_csv(path, index=False, float_format="%.4f")
            print(name, split, flush=True)
    means = summarise(pd.DataFrame(rows))
    means.to_csv(path.with_stem(f"{path.stem}_means"), index=False, float_format="%.3f")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
