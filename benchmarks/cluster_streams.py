"""Monitoring of dependent rows: false alarms of unchanged streams whose rows come in clusters.

    python -m benchmarks.cluster_streams docs/evidence/cluster_streams.csv

The population is that of `benchmarks.clusters`. A stream has 20 chunks of 200 rows, of which 40
random rows are labelled; or one random row of each cluster is kept, and labelled. 5 % of streams
may raise an alarm. Three minutes.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np
import pandas as pd

import labelsure as ls
from benchmarks.clusters import SIZES, Sizes, draw

CASES, N_STREAMS, N_CHUNKS, N_ROWS, N_LABELLED = ("100 x 10", "20 x 50"), 20, 20, 200, 40


def raise_alarms(sizes: Sizes, seed: int, *, thinned: bool) -> tuple[bool, bool]:
    """Return whether a stream raises an alarm of inputs, and one of accuracy."""
    rng = np.random.default_rng(seed)
    dist, Y, clusters = draw(sizes, rng)
    estimator = ls.AccuracyEstimator("f1", "full").fit(dist, Y, clusters=clusters)
    chunks, labels = [], {}
    for t in range(N_CHUNKS):
        batch, truth, clusters = draw(sizes, rng, N_ROWS // sizes.size)
        rows, drawn = np.sort(rng.choice(N_ROWS, N_LABELLED, replace=False)), N_LABELLED / N_ROWS
        if thinned:
            kept = np.unique(clusters, return_index=True)[1] + rng.integers(sizes.size)
            batch, truth, rows, drawn = batch[kept], truth[kept], np.arange(len(kept)), 1.0
        chunks.append(batch)
        labels[t] = (rows, truth[rows], drawn)
    alerts = ls.monitor(estimator, chunks, labels=labels).to_frame()["alert"]
    return bool(alerts.str.contains("inputs").any()), bool(alerts.str.contains("accuracy").any())


def main(file: str) -> None:
    """Measure, and write the table."""
    warnings.simplefilter("ignore")
    rows = []
    for name in CASES:
        for thinned in (False, True):
            found = [raise_alarms(SIZES[name], r, thinned=thinned) for r in range(N_STREAMS)]
            kind = "one row of each cluster" if thinned else "all rows"
            rows.append((name, kind, N_STREAMS, *np.sum(found, axis=0)))
            print(rows[-1], flush=True)
    columns = ["clusters", "rows", "streams", "alarms of inputs", "alarms of accuracy"]
    pd.DataFrame(rows, columns=columns).to_csv(file, index=False)


if __name__ == "__main__":
    main(sys.argv[1])
