"""Sets of labelsets beside mulaconf's, on Yeast with the split of its README.

    python -m benchmarks.compare_mulaconf --data FOLDER  # where mulaconf is installed

mulaconf publishes 957.7 labelsets at a coverage of 0.9 (Mahalanobis distance, structural penalties,
ten trees for each label). Both use the same forest and the same 653 calibration rows.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pandas as pd
from mulaconf.icp_wrapper import ICPWrapper
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.multioutput import MultiOutputClassifier

import labelsure as ls
from benchmarks.batches import load

COVERAGE = 0.9


def main(folder: Path) -> None:
    """Print coverage and size of all of them."""
    data = load("yeast", folder)
    rest, X_new, Y_rest, Y_new = train_test_split(data.X, data.Y, test_size=0.1, random_state=42)
    X, X_cal, Y, Y_cal = train_test_split(rest, Y_rest, test_size=0.3, random_state=42)
    rows = []
    forest = MultiOutputClassifier(RandomForestClassifier(10, random_state=0))
    for hamming, cardinality in ((0.0, 0.0), (2.0, 1.5)):
        begun = time.process_time()
        theirs = ICPWrapper(
            forest,
            measure="mahalanobis",
            weight_hamming=hamming,
            weight_cardinality=cardinality,
            device="cpu",
        )
        theirs.fit(pd.DataFrame(X), pd.DataFrame(Y))
        theirs.calibrate(pd.DataFrame(X_cal), pd.DataFrame(Y_cal))
        found = theirs.predict(pd.DataFrame(X_new)).evaluate(
            true_labelsets=pd.DataFrame(Y_new), significance_level=1 - COVERAGE
        )
        name = f"mulaconf, penalties {hamming:g} and {cardinality:g}"
        seconds = time.process_time() - begun
        rows.append((name, found["coverage"], found["n_criterion"], seconds))
    linear = LogisticRegression(C=0.1, max_iter=500)
    ours = {
        "labelsure, the same forest": ls.BinaryRelevance(
            RandomForestClassifier(10, random_state=0)
        ),
        "labelsure, forest with dependence": ls.RecalibratedClassifier(
            ls.BinaryRelevance(RandomForestClassifier(10, random_state=0)), "dependence"
        ),
        "labelsure, logistic regressions": ls.BinaryRelevance(linear),
        "labelsure, logistic with dependence": ls.RecalibratedClassifier(
            ls.BinaryRelevance(linear), "dependence"
        ),
        "labelsure, ten chains": ls.EnsembleOfClassifierChains(linear, n_chains=10, random_state=0),
    }
    for name, model in ours.items():
        begun = time.process_time()
        model.fit(X, Y)
        region = ls.LabelsetRegion(COVERAGE, score="probability")
        region.fit(model.predict_distribution(X_cal), Y_cal)
        answer = region.predict(model.predict_distribution(X_new))
        seconds = time.process_time() - begun
        rows.append((name, answer.contains(Y_new).mean(), answer.n_labelsets.mean(), seconds))
    columns = ["method", "coverage", "labelsets", "seconds of CPU"]
    print(pd.DataFrame(rows, columns=columns).round(3).to_string(index=False))


if __name__ == "__main__":
    main(Path(sys.argv[sys.argv.index("--data") + 1]))
