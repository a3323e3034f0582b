"""Recall control beside MAPIE's, on the data of its multi-label example and on two real sets.

    python -m benchmarks.compare_mapie --data FOLDER     # where MAPIE is installed

MAPIE's example is a triangle of seven normal populations in the plane with three labels, predicted
by Gaussian naive Bayes. Both control the recall at 0.9 (conformal risk control) on the same
calibration rows, and are judged on the same new rows, over many draws.
"""

from __future__ import annotations

import sys
import warnings
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

N_DRAWS, RECALL = 20, 0.9
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


def compare(X, Y, learner, rng) -> list[tuple[str, float, float]]:
    """Return method, recall and number of possible labels on a fifth of the rows."""
    train, calibration, new = np.split(
        rng.permutation(len(Y)), [int(0.6 * len(Y)), int(0.8 * len(Y))]
    )
    kept = [j for j in range(Y.shape[1]) if 5 <= Y[train, j].sum() <= len(train) - 5]
    Y = Y[:, kept]
    # MAPIE refuses rows without labels, so neither side gets them.
    calibration, new = (rows[Y[rows].any(axis=1)] for rows in (calibration, new))
    model = MultiOutputClassifier(learner).fit(X[train], Y[train])
    theirs = MultiLabelClassificationController(model.predict_proba, risk="recall", method="crc")
    theirs.calibrate(X[calibration], Y[calibration])
    possible = {"MAPIE": theirs.predict(X[new])[:, :, 0] == 1}
    dist = ls.as_distribution(model, X[calibration])
    region = ls.LabelsetRegion(recall=RECALL).fit(dist, Y[calibration])
    possible["labelsure"] = region.predict(ls.as_distribution(model, X[new])).is_possible
    return [
        (
            name,
            float(((Y[new] * found).sum(axis=1) / Y[new].sum(axis=1)).mean()),
            found.sum(1).mean(),
        )
        for name, found in possible.items()
    ]


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
            learner = make_pipeline(
                StandardScaler(with_mean=False), LogisticRegression(C=0.1, max_iter=300)
            )
            rows += [(name, *row) for row in compare(data.X, data.Y, learner, rng)]
    table = pd.DataFrame(rows, columns=["set", "method", "recall", "possible labels"])
    print(table.groupby(["set", "method"], sort=False).mean().round(3).to_string())


if __name__ == "__main__":
    main(Path(sys.argv[sys.argv.index("--data") + 1]))
