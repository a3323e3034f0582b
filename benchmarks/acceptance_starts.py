"""Where sequences of tests start: share accepted, and how often a lower target accepts less.

    LABELSURE_DATA=folder python -m benchmarks.acceptance_starts docs/evidence/acceptance_starts.csv

Populations are those of `benchmarks.acceptance`. Each sample of calibration rows fits a policy for
each of eleven targets. A target is overtaken if a higher one accepts more, by 1% of predictions at
least; `lost` is by how much, as a mean over all samples and targets.
"""

from __future__ import annotations

import sys
import warnings
from unittest.mock import patch

import numpy as np
import pandas as pd

import labelsure as ls
from benchmarks.acceptance import CHOSEN_ON, CONFIRMED_ON, populations
from labelsure.guarantees import _policy
from labelsure.metrics.registry import get_metric

STARTS = {
    "half at 0, half at .25": {0.0: 0.5, 0.25: 0.5},
    "all at 0": {0.0: 1.0},
    "all at .25": {0.25: 1.0},
    "nine tenths at 0, one at .4": {0.0: 0.9, 0.4: 0.1},
    "nine tenths at .125, one at .5": {0.125: 0.9, 0.5: 0.1},
}
TARGETS = (0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.93, 0.96)
SIZES, N_REPEATS = (25, 50, 100, 250, 500), 2


def measure(sets: tuple[str, ...]) -> pd.DataFrame:
    """Return a row for each sample, guarantee and choice of starts."""
    rows, generator = [], np.random.default_rng(3)
    for _, _, metric, (scores, values) in populations(sets):
        outcome = get_metric(metric).outcome
        for n in np.repeat(SIZES, N_REPEATS):
            drawn = generator.integers(len(scores), size=n)
            for guarantee in ("exact", "approximate"):
                for name, starts in STARTS.items():
                    found = []
                    with patch.object(_policy, "START_SHARES", starts):
                        for target in TARGETS:
                            policy = ls.AcceptPolicy(target, outcome=outcome, guarantee=guarantee)
                            with patch.object(ls.AcceptPolicy, "_advise", return_value=""):
                                policy.fit(scores[drawn], values[drawn])
                            accepted = policy.accept(scores)
                            missed = accepted.any() and values[accepted].mean() < target
                            found.append((accepted.mean(), missed))
                    shares, missed = np.array(found).T
                    lost = np.maximum.accumulate(shares[::-1])[::-1] - shares
                    figures = shares.mean(), 100 * (lost >= 0.01).mean(), 100 * lost.mean()
                    rows.append((guarantee, name, *figures, 100 * missed.mean()))
    columns = ["guarantee", "starts", "accepted", "overtaken %", "lost %", "failed %"]
    return pd.DataFrame(rows, columns=columns)


def main(file: str) -> None:
    """Measure, and write the table."""
    warnings.simplefilter("ignore", ls.TargetWarning)
    groups = {"chosen on": CHOSEN_ON, "confirmed on": CONFIRMED_ON}
    rows = pd.concat([measure(sets).assign(sets=title) for title, sets in groups.items()])
    by = rows.groupby(["sets", "guarantee", "starts"], sort=False)
    found = by.mean().assign(samples=by.size()).round(4)
    found.to_csv(file)
    print(found)


if __name__ == "__main__":
    main(sys.argv[1])
