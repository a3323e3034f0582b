"""What a policy accepts with few calibration rows, by their number and by its confidence.

    LABELSURE_DATA=folder python -m benchmarks.acceptance_levels docs/evidence/acceptance_levels.csv

Populations, targets and failures are those of `benchmarks.acceptance`. A cell has the mean share
accepted / the share of policies whose accepted mean accuracy misses the target.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np
import pandas as pd

import labelsure as ls
from benchmarks.acceptance import TARGETS, populations
from labelsure.metrics.registry import get_metric

SETS = ("scene", "yeast", "slashdot", "emotions", "stare", "enron", "medical")
SIZES, LEVELS, N_REPEATS = (100, 300, 1000), (0.95, 0.9, 0.8, 0.5), 10


def main(file: str) -> None:
    """Fit a policy to each draw at each level, and write the table."""
    warnings.simplefilter("ignore", ls.TargetWarning)
    rows, generator = [], np.random.default_rng(2)
    for _, title, metric, (scores, values) in populations(SETS):
        if title != "BR" or metric == "hamming":
            continue
        means = np.cumsum(values[np.argsort(-scores)]) / np.arange(1, len(values) + 1)
        for target in TARGETS:
            if not 0.05 <= (means >= target).mean() <= 0.98:
                continue
            for n in np.repeat(SIZES, N_REPEATS):
                drawn = generator.integers(len(scores), size=n)
                for level in LEVELS:
                    policy = ls.AcceptPolicy(
                        target, confidence=level, outcome=get_metric(metric).outcome
                    ).fit(scores[drawn], values[drawn])
                    accepted = policy.accept(scores)
                    missed = accepted.any() and values[accepted].mean() < target
                    rows.append((metric, n, level, accepted.mean(), missed))
    table = pd.DataFrame(rows, columns=["metric", "n", "level", "share", "missed"])
    cells = []
    for (metric, n), part in table.groupby(["metric", "n"]):
        means = part.groupby("level")[["share", "missed"]].mean().loc[[*LEVELS]].to_numpy()
        row = {"metric": metric, "n": n, "policies": len(part) // len(LEVELS)}
        shares = (f"{share:.3f} / {missed:.3f}" for share, missed in means)
        cells.append(row | dict(zip(LEVELS, shares, strict=True)))
    found = pd.DataFrame(cells)
    found.to_csv(file, index=False)
    print(found.to_string(index=False))


if __name__ == "__main__":
    main(sys.argv[1])
