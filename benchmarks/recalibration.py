"""What temperature scaling and calibration by label do to expected accuracies, on real sets.

    LABELSURE_DATA=folder python -m benchmarks.recalibration

The folder holds the ARFF files of the six sets and of three more. Half of each set is for the
classifier, a quarter for the recalibration, a quarter is measured; the mean of some random splits.
Everything is measured without the gate; `kept` is how often it would have let the change pass.
`log P` is the gain of the truth's mean log-probability over no recalibration; `error` the expected
calibration error of the plain expected accuracy of the mode; `bias` its mean minus the mean
accuracy; `ranking` Spearman's correlation with the accuracy; `worse` on how many sets log P fell.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import spearmanr
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import labelsure as ls
from benchmarks.calibration import EVIDENCE, SETS
from labelsure.classifiers.recalibration._base import Recalibration
from labelsure.distributions._base import LabelsetDistribution
from labelsure.metrics.registry import check_metrics

FURTHER_SETS = ("medical", "flags", "cal500", "digits", "simulated")
METRICS = ("exact", "hamming", "jaccard", "f1")
N_SPLITS = 2

KINDS: dict[str, dict[str, Recalibration]] = {
    "Indep": {
        "temperature": ls.TemperatureScaling(gate=False),
        "labels": ls.LabelwiseCalibration(gate=False),
    },
    "Trellis": {"temperature": ls.TemperatureScaling(gate=False)},
    "ECC": {"temperature": ls.TemperatureScaling(gate=False)},
}
COLUMNS = {
    "gain": "log P",
    **{f"error {metric}": f"error {metric}" for metric in METRICS},
    "bias exact": "bias exact",
    "bias jaccard": "bias jaccard",
    "ranking jaccard": "ranking jaccard",
}


def classifiers() -> dict[str, object]:
    learner = make_pipeline(StandardScaler(with_mean=False), LogisticRegression(max_iter=300))
    return {
        "Indep": ls.BinaryRelevance(learner),
        "Trellis": ls.classifiers.ClassifierTrellis(learner, random_state=0),
        "ECC": ls.EnsembleOfClassifierChains(learner, n_chains=3, random_state=0),
    }


def load(name: str, folder: Path) -> ls.Dataset:
    if name in SETS:
        return ls.load_dataset(name, folder, labels=SETS[name])
    if name in ("digits", "simulated"):
        return ls.load_dataset(name)
    return ls.read_dataset(folder / f"{name}.arff.gz")


def measure(dist: LabelsetDistribution, Y: np.ndarray) -> dict[str, float]:
    """Return what the distributions say of their own modes, beside what came out."""
    summary = dist._summary(check_metrics(METRICS), 1.0)
    found = {"log P": float(np.mean(np.maximum(dist.log_prob(Y), np.log(1e-300))))}
    for metric in METRICS:
        expected = summary.expected[metric].value.clip(0, 1)
        accuracy = ls.accuracy(Y, summary.mode, metric)
        result = ls.reliability(expected, accuracy)
        found[f"error {metric}"] = result.expected_calibration_error
        found[f"bias {metric}"] = float((expected - accuracy).mean())
        is_constant = np.ptp(expected) == 0 or np.ptp(accuracy) == 0
        rank = 0.0 if is_constant else spearmanr(expected, accuracy).statistic
        found[f"ranking {metric}"] = float(rank)
    return found


def cells(name: str, folder: Path) -> Iterator[dict[str, object]]:
    """Yield one row for each split, classifier and kind of recalibration, none included."""
    data = load(name, folder)
    X = data.X.to_numpy() if hasattr(data.X, "to_numpy") else data.X
    chosen = ("Indep",) if data.Y.shape[1] > 50 else tuple(KINDS)
    for split in range(N_SPLITS):
        order = np.random.default_rng(split).permutation(len(data.Y))
        half, three = len(order) // 2, 3 * len(order) // 4
        train, fit, test = order[:half], order[half:three], order[three:]
        for classifier in chosen:
            model = classifiers()[classifier].fit(X[train], data.Y[train])
            known, new = (model.predict_distribution(X[rows]) for rows in (fit, test))
            where = {"set": name, "classifier": classifier}
            yield {**where, "kind": "none", **measure(new, data.Y[test])}
            for kind, recalibration in KINDS[classifier].items():
                fitted = recalibration.fit(known, data.Y[fit])
                yield {
                    **where,
                    "kind": kind,
                    "temperature": getattr(fitted, "temperature_", np.nan),
                    "kept": float(fitted._passes()),
                    **measure(fitted.transform(new), data.Y[test]),
                }


def tabulate(names: tuple[str, ...], folder: Path) -> pd.DataFrame:
    rows = []
    for name in names:
        rows += list(cells(name, folder))
        print("measured", name, file=sys.stderr, flush=True)
    keys = ["set", "classifier", "kind"]
    table = pd.DataFrame(rows).groupby(keys, sort=False).mean().reset_index()
    plain = table[table["kind"] == "none"].set_index(keys[:2])["log P"]
    before = table.set_index(keys[:2]).index.map(plain)
    return table.assign(gain=table["log P"] - np.asarray(before))


def summarise(table: pd.DataFrame) -> pd.DataFrame:
    """Return the means over sets, beside those of the same distributions as they were."""
    rows = []
    for classifier, kinds in KINDS.items():
        for kind in ("none", *kinds):
            some = table[(table["classifier"] == classifier) & (table["kind"] == kind)]
            numbers = {title: float(some[name].mean()) for name, title in COLUMNS.items()}
            for metric in ("exact", "jaccard"):
                numbers[f"bias {metric}"] = float(some[f"bias {metric}"].abs().mean())
            worse = "" if kind == "none" else str((some["gain"] < 0).sum())
            rows.append({"classifier": classifier, "kind": kind, **numbers, "worse": worse})
    return pd.DataFrame(rows).rename(
        columns={"bias exact": "size of bias exact", "bias jaccard": "size of bias jaccard"}
    )


def main() -> None:
    """Write the means over sets, and each set."""
    folder = Path(os.environ["LABELSURE_DATA"])
    columns = ["set", "classifier", "kind", "temperature", "kept", *COLUMNS]
    for group, names in (("six_sets", tuple(SETS)), ("further_sets", FURTHER_SETS)):
        table = tabulate(names, folder)
        each = table[columns].rename(columns=COLUMNS)
        place = "the_six_sets" if group == "six_sets" else group
        for name, part in ((f"{group}_means", summarise(table)), (f"{place}_each_of_them", each)):
            file = EVIDENCE / f"recalibration_{name}.csv"
            part.to_csv(file, index=False, float_format="%.3f")


if __name__ == "__main__":
    main()
