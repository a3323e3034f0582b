"""The mean accuracy of a batch with a few labels, beside ppi-python's interval.

    python -m benchmarks.compare_ppi                     # where ppi-python is installed

Batches of 1,000 rows of simulated populations, of which 30 or 100 random rows are labelled. Both
get the same estimates of all rows and the same labels; `lam=None` is PPI++ with a weight that is
estimated from the labels, ours is fixed on the calibration set. Concept drift: labels of the batch
have changed. Sure: nearly all predictions are right, as where few failures are seen.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from ppi_py import ppi_mean_ci
from scipy.special import expit

import labelsure as ls

N_REPEATS, N_ROWS, LEVEL = 300, 1000, 0.95
KINDS = {"usual": (3.0, 0.0), "concept drift": (3.0, 0.2), "sure": (40.0, 0.0)}


def draw(n_rows, rng, spread, turned):
    """Return overconfident marginals of four labels, and the truth."""
    logits = rng.normal(-1.0, spread, size=(n_rows, 4))
    Y = (rng.uniform(size=logits.shape) < expit(0.7 * logits)).astype(int)
    Y[rng.uniform(size=n_rows) < turned, 0] ^= 1
    return ls.IndependentLabels(expit(logits)), Y


def main() -> None:
    """Print coverage of the batch's mean accuracy and mean width of both."""
    rows = []
    for kind, (spread, turned) in KINDS.items():
        for repeat in range(N_REPEATS):
            rng = np.random.default_rng(repeat)
            known, Y_known = draw(500, rng, spread, 0.0)
            estimator = ls.AccuracyEstimator("jaccard").fit(known, Y_known)
            batch, Y = draw(N_ROWS, rng, spread, turned)
            accuracy, estimated = ls.accuracy(Y, batch.mode(), "jaccard"), estimator.predict(batch)
            for n_labelled in (30, 100):
                some = rng.choice(N_ROWS, n_labelled, replace=False)
                found = estimator.estimate(batch, Y_true=Y[some], rows=some, level=LEVEL)
                others = np.delete(estimated, some)
                low, high = ppi_mean_ci(accuracy[some], estimated[some], others, alpha=1 - LEVEL)
                ends = {"labelsure": (found.low, found.high), "ppi-python": (low[0], high[0])}
                for name, (low, high) in ends.items():
                    covered = low <= accuracy.mean() <= high
                    rows.append((kind, n_labelled, name, covered, high - low))
    table = pd.DataFrame(rows, columns=["batch", "labels", "method", "covered", "width"])
    print(table.groupby(["batch", "labels", "method"], sort=False).mean().round(3).to_string())


if __name__ == "__main__":
    main()
