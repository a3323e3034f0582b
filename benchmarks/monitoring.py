"""How often unchanged streams raise an alarm, and how late a fall of accuracy is found.

    python -m benchmarks.monitoring [--quick]

Simulated populations whose classifier is overconfident; each repeat draws a calibration set and a
stream of 500 chunks of 50 rows, of which 10 are labelled. From chunk 1 or 250 on accuracy falls by
about 0.05: labels change their meaning (concept), or inputs become harder (covariate). Beside
`labelsure.monitor`: bands for each chunk, at 0.3% for one chunk, around the mean of the labels and
around the mean estimate; and, where MAPIE is installed, its `RiskMonitoring` on the same labels
(exact match only, the metric that it knows), with and without its tolerance. 15
minutes on one core.
"""

from __future__ import annotations

import importlib.util
import sys
import time

import numpy as np
import pandas as pd

import labelsure as ls

N_CHUNKS, SIZE, N_LABELLED, N_LABELS = 500, 50, 10, 4
Z_BAND = 2.97  # of 0.3%, two-sided
HAS_MAPIE = importlib.util.find_spec("mapie") is not None
FALL = {
    "exact": {"concept": 0.1, "covariate": 0.16},
    "jaccard": {"concept": 0.16, "covariate": 0.21},
}
"""What lets mean accuracy fall by 0.05."""
USUAL = {"exact": 0.593, "jaccard": 0.770}  # without a change


def draw(n: int, rng: np.random.Generator, concept: float = 0.0, covariate: float = 0.0):
    """Return overconfident marginals, and labels from flatter ones."""
    logits = rng.normal(-1.0, 6.0 * (1 - covariate), size=(n, N_LABELS))
    Y = rng.uniform(size=logits.shape) < 1 / (1 + np.exp(-0.7 * logits))
    turned = rng.uniform(size=n) < concept  # another meaning of the first label
    Y[turned, 0] ^= True
    return 1 / (1 + np.exp(-logits)), Y.astype(np.int8)


def run(metric: str, n_rows: int, seed: int, kind: str, start: int) -> dict[str, float]:
    """Return at which chunk, from 1 on, each method raises its first alarm."""
    rng = np.random.default_rng([seed, n_rows])
    P, Y = draw(n_rows, rng)
    estimator = ls.AccuracyEstimator(metric).fit(ls.IndependentLabels(P), Y)
    usual = draw(SIZE * (start - 1), rng)
    change = {kind: FALL[metric][kind]} if kind != "none" else {}
    changed = draw(SIZE * (N_CHUNKS - start + 1), rng, **change)
    P, Y = (np.concatenate(parts) for parts in zip(usual, changed, strict=True))
    labels = {}
    for t in range(N_CHUNKS):
        rows = rng.choice(SIZE, N_LABELLED, replace=False)
        labels[t] = (rows, Y[SIZE * t + rows], N_LABELLED / SIZE)
    dist = ls.IndependentLabels(P)
    table = ls.monitor(estimator, dist, chunk_size=SIZE, labels=labels)
    first = {
        "labels": _first(table["alert"].isin(["accuracy", "inputs and accuracy"])),
        "inputs": _first(table["alert"].isin(["inputs", "inputs and accuracy"])),
    }
    first["either"] = min(first.values())
    first["labels, bound given"] = _first(table["accuracy_high"] <= USUAL[metric])
    known, estimates = estimator.calibration_.accuracy(metric, 1.0), table["estimated"]
    margin = Z_BAND * estimator.reference_.spread * (1 / SIZE + 1 / n_rows) ** 0.5
    first["band of estimates"] = _first(abs(estimates - estimator.reference_.mean) > margin)
    margin = Z_BAND * known.std() * (1 / N_LABELLED + 1 / n_rows) ** 0.5
    taken = np.concatenate([SIZE * t + labels[t][0] for t in range(N_CHUNKS)])
    values = ls.accuracy(Y[taken], dist[taken].mode(), metric)
    means = values.reshape(N_CHUNKS, N_LABELLED).mean(axis=1)
    first["band of labels"] = _first(abs(means - known.mean()) > margin)
    if HAS_MAPIE and metric == "exact":
        for tolerance in (0.0, 0.05):
            first[f"MAPIE, tolerance {tolerance:g}"] = _mapie(known, values, tolerance)
    return first


def _mapie(reference, values, tolerance: float) -> float:
    from mapie.exchangeability_testing import RiskMonitoring

    watch = RiskMonitoring(risk="accuracy", tolerance=tolerance, warn=False)
    watch.compute_threshold(np.ones(len(reference), dtype=int), reference.astype(int))
    watch.update(np.ones(len(values), dtype=int), values.astype(int))
    lows = watch.online_risk_lower_bound_sequence_history
    return np.ceil(_first(lows > watch.threshold) / N_LABELLED)


def _first(alarms) -> float:
    places = np.flatnonzero(alarms)
    return float(places[0] + 1) if len(places) else np.inf


def measure(metric: str, n_rows: int, kind: str, start: int, n_repeats: int, seed: int):
    """Return how many streams raise an alarm before the change and after it, and how late."""
    found = pd.DataFrame([run(metric, n_rows, seed + r, kind, start) for r in range(n_repeats)])
    is_false = found < start if kind != "none" else np.isfinite(found)
    delays = (found - start + 1).where(~is_false) * N_LABELLED
    table = pd.DataFrame(
        {"false": is_false.mean(), "found": (np.isfinite(found) & ~is_false).mean()}
    )
    table["median labels"] = delays.median()  # infinite where most streams never raise one
    table = table.rename_axis("method").reset_index()
    table.insert(0, "case", f"{metric}, {n_rows} rows, {kind} from {start}, {n_repeats} streams")
    return table


def main(quick: bool) -> None:
    """Print one table for each case."""
    cases = [("jaccard", 500, "none", 1, 100), ("exact", 500, "none", 1, 100)]
    cases += [
        (metric, n_rows, kind, start, 15)
        for metric, n_rows in (("exact", 500), ("exact", 2000), ("jaccard", 500))
        for kind in ("concept", "covariate")
        for start in (1, 250)
    ]
    for metric, n_rows, kind, start, n_repeats in cases:
        begun = time.process_time()
        table = measure(metric, n_rows, kind, start, 2 if quick else n_repeats, 0)
        print(table.round(3).to_string(index=False))
        print(f"{time.process_time() - begun:.0f} s of CPU", flush=True)


if __name__ == "__main__":
    main("--quick" in sys.argv)
