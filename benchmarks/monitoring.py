"""False alarms of unchanged streams, and labels needed until a fall of accuracy is found.

    python -m benchmarks.monitoring docs/evidence/monitoring_falls.csv

Simulated populations whose classifier is overconfident; each repeat draws a calibration set and a
stream of 30 chunks of 100 rows, of which 20 are labelled. From chunk 1 or 11 on accuracy falls,
because labels change their meaning (concept) or inputs become harder (covariate). Beside
`labelsure.monitor` with and without a bound: an alarm once the confidence sequence is below the
calibration mean, which is no proof because that mean is uncertain; and bands for each chunk, at
0.3% for one chunk, around the mean of the labels and around the mean estimate. Five minutes.
"""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd

import labelsure as ls

N_CHUNKS, SIZE, N_LABELLED, N_LABELS = 30, 100, 20, 4
BUDGETS = (240, 500)
Z_BAND = 2.97  # of 0.3%, two-sided
CONCEPT = {"exact": 2.0, "jaccard": 3.2}
"""Share of rows whose first label changes its meaning, for each unit by which accuracy falls."""
COVARIATE = {"exact": 0.16, "jaccard": 0.21}
"""How much harder inputs become, so that accuracy falls by 0.05."""
USUAL = {"exact": 0.593, "jaccard": 0.770}  # without a change


def draw(n: int, rng: np.random.Generator, concept: float = 0.0, covariate: float = 0.0):
    """Return overconfident marginals, and labels from flatter ones."""
    logits = rng.normal(-1.0, 6.0 * (1 - covariate), size=(n, N_LABELS))
    Y = rng.uniform(size=logits.shape) < 1 / (1 + np.exp(-0.7 * logits))
    turned = rng.uniform(size=n) < concept  # another meaning of the first label
    Y[turned, 0] ^= True
    return 1 / (1 + np.exp(-logits)), Y.astype(np.int8)


def run(metric: str, n_rows: int, seed: int, kind: str, fall: float, start: int):
    """Return at which chunk, from 1 on, each method raises its first alarm."""
    rng = np.random.default_rng([seed, n_rows])
    P, Y = draw(n_rows, rng)
    estimator = ls.AccuracyEstimator(metric).fit(ls.IndependentLabels(P), Y)
    usual = draw(SIZE * (start - 1), rng)
    change = {"concept": CONCEPT[metric] * fall, "covariate": COVARIATE[metric]}
    changed = draw(
        SIZE * (N_CHUNKS - start + 1), rng, **({kind: change[kind]} if kind != "none" else {})
    )
    P, Y = (np.concatenate(parts) for parts in zip(usual, changed, strict=True))
    labels = {}
    for t in range(N_CHUNKS):
        rows = rng.choice(SIZE, N_LABELLED, replace=False)
        labels[t] = (rows, Y[SIZE * t + rows], N_LABELLED / SIZE)
    dist = ls.IndependentLabels(P)
    table = ls.monitor(estimator, dist, chunk_size=SIZE, labels=labels).to_frame()
    known = estimator.calibration_.accuracy(metric, 1.0)
    first = {
        "labels": _first(table["alert"].str.contains("accuracy")),
        "labels, bound given": _first(
            ls.monitor(estimator, dist, chunk_size=SIZE, labels=labels, bound=USUAL[metric])
            .to_frame()["alert"]
            .str.contains("accuracy")
        ),
        "labels, calibration mean (no proof)": _first(table["accuracy_high"] <= known.mean()),
        "inputs": _first(table["alert"].str.contains("inputs")),
    }
    margin = Z_BAND * estimator.reference_.spread * (1 / SIZE + 1 / n_rows) ** 0.5
    first["band of estimates"] = _first(
        abs(table["estimated"] - estimator.reference_.mean) > margin
    )
    margin = Z_BAND * known.std() * (1 / N_LABELLED + 1 / n_rows) ** 0.5
    taken = np.concatenate([SIZE * t + labels[t][0] for t in range(N_CHUNKS)])
    values = ls.accuracy(Y[taken], dist[taken].mode(), metric)
    means = values.reshape(N_CHUNKS, N_LABELLED).mean(axis=1)
    first["band of labels"] = _first(abs(means - known.mean()) > margin)
    return first


def _first(alarms) -> float:
    places = np.flatnonzero(alarms)
    return float(places[0] + 1) if len(places) else np.inf


def measure(metric: str, n_rows: int, kind: str, fall: float, start: int, n_repeats: int):
    """Return how many streams raise an alarm before the change, and with how many labels after."""
    found = pd.DataFrame([run(metric, n_rows, r, kind, fall, start) for r in range(n_repeats)])
    is_false = found < start if kind != "none" else np.isfinite(found)
    delays = (found - start + 1).where(~is_false) * N_LABELLED
    table = pd.DataFrame({"false alarms": is_false.mean().round(3)})
    for budget in BUDGETS if kind != "none" else ():
        table[f"found by {budget} labels"] = (delays <= budget).mean().round(2)
    table = table.rename_axis("method").reset_index()
    case = {"metric": metric, "calibration rows": n_rows, "change": kind, "fall": fall}
    for name, value in reversed([*case.items(), ("from chunk", start), ("streams", n_repeats)]):
        table.insert(0, name, value)
    return table


CASES = [(metric, 300, "none", 0.0, 1, 40) for metric in ("exact", "jaccard")]
CASES += [
    (metric, n_rows, "concept", fall, start, 12)
    for metric in ("exact", "jaccard")
    for n_rows in (300, 1000)
    for fall, start in ((0.05, 1), (0.1, 1), (0.14, 1), (0.14, 6))
]
CASES += [("exact", 1000, "covariate", 0.05, 1, 12)]


def main(file: str) -> None:
    """Measure each case, and write the table as it grows."""
    tables: list[pd.DataFrame] = []
    for case in CASES:
        tables.append(measure(*case))
        print(tables[-1].to_string(index=False), flush=True)
        pd.concat(tables).to_csv(file, index=False)


if __name__ == "__main__":
    main(sys.argv[1])
