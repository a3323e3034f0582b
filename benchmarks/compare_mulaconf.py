"""Sets of labelsets beside mulaconf's, on Yeast with the split of its README.

    LABELSURE_DATA=folder python -m benchmarks.compare_mulaconf  # where mulaconf is installed

mulaconf publishes 957.7 labelsets at a coverage of 0.9 (Mahalanobis distance, structural penalties,
ten trees for each label). Both use the same forest and the same 653 calibration rows.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
from mulaconf.icp_wrapper import ICPWrapper
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.multioutput import MultiOutputClassifier

import labelsure as ls
from benchmarks.batches import load
from benchmarks.measure import Row, core_seconds_in_turn

COVERAGE = 0.9
FOREST = RandomForestClassifier(10, random_state=0)


class Yeast:
    """The split of mulaconf's README, and what both make of it: coverage and mean size."""

    def __init__(self, folder: Path) -> None:
        data = load("yeast", folder)
        rest, self.X_new, Y_rest, self.Y_new = train_test_split(
            data.X, data.Y, test_size=0.1, random_state=42
        )
        self.X, self.X_cal, self.Y, self.Y_cal = train_test_split(
            rest, Y_rest, test_size=0.3, random_state=42
        )

    def theirs(self, hamming: float = 0.0, cardinality: float = 0.0) -> tuple[float, float]:
        """Fit, calibrate and predict with mulaconf's penalties."""
        model = ICPWrapper(
            MultiOutputClassifier(FOREST),
            measure="mahalanobis",
            weight_hamming=hamming,
            weight_cardinality=cardinality,
            device="cpu",
        )
        model.fit(pd.DataFrame(self.X), pd.DataFrame(self.Y))
        model.calibrate(pd.DataFrame(self.X_cal), pd.DataFrame(self.Y_cal))
        found = model.predict(pd.DataFrame(self.X_new)).evaluate(
            true_labelsets=pd.DataFrame(self.Y_new), significance_level=1 - COVERAGE
        )
        return found["coverage"], found["n_criterion"]

    def ours(self, model: Any) -> tuple[float, float]:
        """Fit, calibrate and predict with a classifier of labelsure."""
        model.fit(self.X, self.Y)
        region = ls.LabelsetRegion(COVERAGE, score="probability")
        region.fit(model.predict_distribution(self.X_cal), self.Y_cal)
        answer = region.predict(model.predict_distribution(self.X_new))
        return answer.contains(self.Y_new).mean(), answer.n_labelsets.mean()


def time_yeast(folder: Path) -> Iterator[Row]:
    """Compare CPU times of both, all from the same forest."""
    yeast, forest = Yeast(folder), ls.BinaryRelevance(FOREST)
    dependent = ls.RecalibratedClassifier(forest, "dependence")
    theirs, plain, better = core_seconds_in_turn(
        [yeast.theirs, lambda: yeast.ours(forest), lambda: yeast.ours(dependent)], 1
    )
    what = "Yeast, sets of labelsets from the same forest, fit and predict"
    yield Row(f"{what}: ours / mulaconf's", plain / theirs, "x", peer="mulaconf")
    yield Row(f"{what}, ours with dependence: ours / theirs", better / theirs, "x", peer="mulaconf")


def main(folder: Path) -> None:
    """Print coverage and size of all of them."""
    yeast = Yeast(folder)
    linear = LogisticRegression(C=0.1, max_iter=500)
    models = {
        "the same forest": ls.BinaryRelevance(FOREST),
        "forest with dependence": ls.RecalibratedClassifier(
            ls.BinaryRelevance(FOREST), "dependence"
        ),
        "logistic regressions": ls.BinaryRelevance(linear),
        "logistic with dependence": ls.RecalibratedClassifier(
            ls.BinaryRelevance(linear), "dependence"
        ),
        "ten chains": ls.EnsembleOfClassifierChains(linear, n_chains=10, random_state=0),
    }
    rows = [
        (
            f"mulaconf, penalties {hamming:g} and {cardinality:g}",
            *yeast.theirs(hamming, cardinality),
        )
        for hamming, cardinality in ((0.0, 0.0), (2.0, 1.5))
    ]
    rows += [(f"labelsure, {name}", *yeast.ours(model)) for name, model in models.items()]
    table = pd.DataFrame(rows, columns=["method", "coverage", "labelsets"])
    print(table.round(3).to_string(index=False))


if __name__ == "__main__":
    main(Path(os.environ["LABELSURE_DATA"]))
