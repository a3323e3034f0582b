"""Recall control beside MAPIE's, on the data of its multi-label example and on two real sets.

    LABELSURE_DATA=folder python -m benchmarks.compare_mapie  # where MAPIE is installed

MAPIE's example is a triangle of seven normal populations in the plane with three labels, predicted
by Gaussian naive Bayes. Both control the recall at 0.9 (conformal risk control) on the same
calibration rows, and are judged on the same new rows, over many draws.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from mapie.risk_control import MultiLabelClassificationController
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import labelsure as ls
from benchmarks.batches import load
from benchmarks.measure import Row, core_seconds_in_turn

N_DRAWS, RECALL = 20, 0.9
LEARNER = make_pipeline(StandardScaler(with_mean=False), LogisticRegression(C=0.1, max_iter=300))
N_EACH = 800  # of each population
POPULATIONS = {  # labels: centre, covariance
    (1, 0, 1): ((0, 10), ((1, 0), (0, 1))),
    (1, 1, 0): ((-5, 0), ((1, 0), (0, 1))),
    (0, 1, 1): ((5, 0), ((1, 0), (0, 1))),
    (1, 1, 1): ((0, 5), ((5, 0), (0, 5))),
    (0, 1, 0): ((0, 0), ((3, 0), (0, 1))),
    (1, 0, 0): ((-4, 5), ((4, 3), (3, 4))),
    (0, 0, 1): ((5, 5), ((3, -2), (-2, 3))),
}


def draw_triangle(rng):
    """Return instances and labelsets of all populations."""
    parts = [rng.multivariate_normal(*where, size=N_EACH) for where in POPULATIONS.values()]
    return np.concatenate(parts), np.repeat(np.array(list(POPULATIONS)), N_EACH, axis=0)


def split(X, Y, learner, rng):
    """Return a fitted model, and calibration and new rows with at least one label."""
    train, calibration, new = np.split(
        rng.permutation(len(Y)), [int(0.6 * len(Y)), int(0.8 * len(Y))]
    )
    kept = [j for j in range(Y.shape[1]) if 5 <= Y[train, j].sum() <= len(train) - 5]
    Y = Y[:, kept]
    # MAPIE refuses rows without labels, so neither side gets them.
    calibration, new = (rows[Y[rows].any(axis=1)] for rows in (calibration, new))
    model = MultiOutputClassifier(learner).fit(X[train], Y[train])
    return model, (X[calibration], Y[calibration]), (X[new], Y[new])


def possible_by_mapie(model, X, Y, X_new):
    """Return which labels MAPIE calls possible."""
    theirs = MultiLabelClassificationController(model.predict_proba, risk="recall", method="crc")
    theirs.calibrate(X, Y)
    return theirs.predict(X_new)[:, :, 0] == 1


def possible_by_labelsure(model, X, Y, X_new):
    """Return which labels labelsure calls possible."""
    region = ls.LabelsetRegion(recall=RECALL).fit(ls.as_distribution(model, X), Y)
    return region.predict(ls.as_distribution(model, X_new)).is_possible


METHODS = {"MAPIE": possible_by_mapie, "labelsure": possible_by_labelsure}


def compare(X, Y, learner, rng) -> list[tuple[str, float, float]]:
    """Return method, recall and number of possible labels on a fifth of the rows."""
    model, known, (X_new, Y_new) = split(X, Y, learner, rng)
    possible = {name: method(model, *known, X_new) for name, method in METHODS.items()}
    return [
        (name, float(((Y_new * found).sum(1) / Y_new.sum(1)).mean()), found.sum(1).mean())
        for name, found in possible.items()
    ]


def time_yeast(folder: Path) -> Iterator[Row]:
    """Compare CPU times of both with one fitted classifier."""
    data = load("yeast", folder)
    model, known, (X_new, _) = split(data.X, data.Y, LEARNER, np.random.default_rng(0))
    theirs, ours = core_seconds_in_turn(
        [lambda m=method: m(model, *known, X_new) for method in METHODS.values()]
    )
    what = (
        "Yeast, recall control from the same probabilities, calibrate and predict: ours / MAPIE's"
    )
    yield Row(what, ours / theirs, "x", peer="MAPIE")


def main(folder: Path) -> None:
    """Print recall and number of possible labels of both, on each set."""
    warnings.simplefilter("ignore")
    rows = []
    for number in range(N_DRAWS):
        rng = np.random.default_rng(number)
        found = compare(*draw_triangle(rng), GaussianNB(), rng)
        rows += [("MAPIE's example", *row) for row in found]
        for name in ("yeast", "scene", "enron") if number < 5 else ():
            data = load(name, folder)
            rows += [(name, *row) for row in compare(data.X, data.Y, LEARNER, rng)]
    table = pd.DataFrame(rows, columns=["set", "method", "recall", "possible labels"])
    print(table.groupby(["set", "method"], sort=False).mean().round(3).to_string())


if __name__ == "__main__":
    main(Path(os.environ["LABELSURE_DATA"]))
