"""Explained variance of estimated recall, beside qualle 0.6.1 on the same rows.

    LABELSURE_DATA=folder python -m benchmarks.recall_peer write rows.json    # labelsure's figures
    /path/to/qualle/python benchmarks/recall_peer.py qualle rows.json  # in its own

qualle pins an older scikit-learn. Texts are the words of each row of a bag of words. A classifier
is fitted to half of the rows; its labels above 0.3 are judged. Half of the rest is labelled.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

SETS, THRESHOLD = ("medical", "slashdot", "enron"), 0.3


def write(path: Path) -> None:
    """Write predictions, texts and truth of each set, and print what labelsure explains."""
    from sklearn.metrics import explained_variance_score

    import labelsure as ls

    rows: dict[str, Any] = {}
    for name in SETS:
        data = ls.load_dataset(name)
        X, Y = np.asarray(data.X.todense() if hasattr(data.X, "todense") else data.X), data.Y
        Y = np.asarray(Y)
        words = [str(column) for column in data.feature_names or range(X.shape[1])]
        train, known, new = np.split(
            np.random.default_rng(0).permutation(len(Y)), [len(Y) // 2, 3 * len(Y) // 4]
        )
        P = ls.BinaryRelevance().fit(X[train], Y[train]).predict_proba(X)
        said = (P > THRESHOLD).astype(int)
        used = (said.sum(axis=1) > 0) & (Y.sum(axis=1) > 0)  # recall and qualle need some label
        known, new = known[used[known]], new[used[new]]
        aware = ls.AccuracyAwareClassifier(
            ls.PrecomputedProbabilities(), "recall", decision="predict", random_state=0
        )
        aware.fit(P[known], Y[known], Y_pred=said[known])
        found = aware.assess(P[new], Y_pred=said[new]).accuracy
        recall = ls.accuracy(Y[new], said[new], "recall")
        score = explained_variance_score(recall, found)
        print(f"{name}: labelsure {score:.3f}, {len(known)} labelled, {len(new)} new rows")
        rows[name] = {
            part: [
                {
                    "doc": " ".join(words[j] for j in np.flatnonzero(X[i])),
                    "predicted": [str(j) for j in np.flatnonzero(said[i])],
                    "scores": P[i][said[i] == 1].tolist(),
                    "true": [str(j) for j in np.flatnonzero(Y[i])],
                }
                for i in part_rows
            ]
            for part, part_rows in (("known", known), ("new", new))
        }
    path.write_text(json.dumps(rows))


def explain_by_qualle(path: Path) -> None:
    """Print what qualle explains of the same rows, with the regressors that are its defaults."""
    from qualle.evaluate import Evaluator
    from qualle.features.confidence import ConfidenceFeatures
    from qualle.features.label_calibration.simple_label_calibration import (
        SimpleLabelCalibrationFeatures,
        SimpleLabelCalibrator,
    )
    from qualle.features.text import TextFeatures
    from qualle.models import PredictData, TrainData
    from qualle.train import Trainer
    from sklearn.ensemble import GradientBoostingRegressor

    def read(rows: list[dict[str, Any]]) -> Any:
        said = PredictData(
            docs=[row["doc"] for row in rows],
            predicted_labels=[row["predicted"] for row in rows],
            scores=[row["scores"] for row in rows],
        )
        return TrainData(predict_data=said, true_labels=[row["true"] for row in rows])

    for name, parts in json.loads(path.read_text()).items():
        trainer = Trainer(
            read(parts["known"]),
            SimpleLabelCalibrator(
                GradientBoostingRegressor(
                    min_samples_leaf=30, max_depth=5, n_estimators=10, random_state=0
                )
            ),
            GradientBoostingRegressor(n_estimators=10, max_depth=8, random_state=0),
            [ConfidenceFeatures(), SimpleLabelCalibrationFeatures(), TextFeatures()],
        )
        found = Evaluator(read(parts["new"]), trainer.train()).evaluate()
        print(f"{name}: qualle {found['explained_variance_score']:.3f}")


if __name__ == "__main__":
    run = {"write": write, "qualle": explain_by_qualle}[sys.argv[1]]
    run(Path(sys.argv[2]))
