"""Which features, and which model, make the estimate of single predictions sharper.

    LABELSURE_DATA=folder python -m benchmarks.features docs/features.md

The folder holds the ARFF files. Every set is predicted by two-fold cross-fitting, so that each
prediction is of an instance that its classifier has not seen. Then, several times, every case is
fitted to a random half of the predictions (to 80 % for boosted models, which need many) and
measured on the rest. What is tried here and does not help is in no other place: the package has
only what did. Some ten minutes on one core.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from scipy.stats import kendalltau
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import labelsure as ls
from benchmarks.batch_draws import CHOSEN_ON, CONFIRMED_ON, Floats, load
from benchmarks.calibration import chance, markdown
from labelsure.estimation._design import (
    RESPONSES,
    Layout,
    choose_response,
    column_scales,
    log_rates,
    make_blocks,
    scale_columns,
)
from labelsure.estimation._inputs import FEATURE_SETS, feature_matrix
from labelsure.estimation._labelset_frequencies import LabelsetFrequencies
from labelsure.estimation._ridge import Problem, fit_path, penalty_path
from labelsure.metrics import get_metric
from labelsure.score_table import ScoreTable

METRICS = ("exact", "hamming", "jaccard")
N_SPLITS = 4
N_FOLDS = 10
HELD_BACK = 3.0  # label indicators are divided by this: a penalty nine times as strong
MOST_LABELS = 30  # with an indicator of their own: those that are predicted most often
WITH_CHAINS = ("emotions", "scene", "yeast", "digits", "medical", "simulated")
LARGE = 1500  # instances to fit to, from which boosted models are tried
CERTAIN = 1e-6  # a squared error below which there is nothing to estimate
FULL = FEATURE_SETS["full"]
BASE = "full"


@dataclass(frozen=True)
class Predictions:
    """Predictions of one set by one classifier, and what features could be made of.

    Parameters
    ----------
    name, classifier
        What they are.
    table
        Their score table.
    Y_true, Y_pred
        (n, L) the truth, and what was predicted.
    in_training
        (n,) log-frequency of the prediction in the training data.
    spread
        (n,) standard deviation of log P(prediction) between the chains; None without chains.
    """

    name: str
    classifier: str
    table: ScoreTable
    Y_true: np.ndarray
    Y_pred: np.ndarray
    in_training: Floats
    spread: Floats | None


def predict(name: str, classifier: str) -> Predictions:
    """Cross-fit a classifier to a set."""
    data = load(name)
    learner = make_pipeline(
        StandardScaler(with_mean=False), LogisticRegression(C=0.1, max_iter=500)
    )
    parts = []
    for train, test in KFold(2, shuffle=True, random_state=0).split(data.Y):
        model = (
            ls.BinaryRelevance(learner)
            if classifier == "BR"
            else ls.EnsembleOfClassifierChains(learner, random_state=0)
        )
        dist = model.fit(data.X[train], data.Y[train]).predict_distribution(data.X[test])
        table = ScoreTable.from_distribution(dist, data.Y[test]).to_frame()
        seen = LabelsetFrequencies.of(np.ascontiguousarray(data.Y[train], dtype=np.int8))
        mode = dist.mode()
        by_chain = [chain.log_prob(mode) for chain in getattr(dist, "_chains", [])]
        spread = np.std(by_chain, axis=0) if by_chain else np.full(len(test), np.nan)
        parts.append((table, data.Y[test], mode, seen.log_frequencies(mode), spread))
    frames, *arrays = zip(*parts, strict=True)
    Y_true, Y_pred, in_training, spread = map(np.concatenate, arrays)
    table = ScoreTable(pd.concat(frames, ignore_index=True))
    known = None if np.isnan(spread).any() else spread
    return Predictions(name, classifier, table, Y_true.astype(np.int8), Y_pred, in_training, known)


def fit_ridge(
    features: Floats, targets: Floats, response: str, folds: np.ndarray, held_back: int
) -> Callable[[Floats], Floats]:
    """Fit the package's ridge, with a stronger penalty on the last `held_back` columns.

    Returns
    -------
    What predicts accuracies from features.
    """
    groups, layout = np.zeros(len(features), dtype=np.intp), Layout(features.shape[1], 0, 0)
    design = list(make_blocks(features, groups, groups, layout))
    scales = column_scales(design, targets.sum(axis=1), layout)
    scales[layout.n_features - held_back : layout.n_features] *= HELD_BACK
    kind = RESPONSES[response]
    problem = Problem(scale_columns(design, scales), targets, kind.n_free, layout)
    path = fit_path(problem, penalty_path(problem), folds)
    raw = path.coefficients[[path.best]] / scales

    def predict_new(new: Floats) -> Floats:
        zeros, found = np.zeros(len(new), dtype=np.intp), np.empty(len(new))
        for block in make_blocks(new, zeros, zeros, layout):
            rates = np.exp(log_rates(block, raw, kind.n_classes))[:, :, 0].T
            found[block.rows] = kind.accuracy(rates)
        return found

    return predict_new


def fit_boosted(features: Floats, values: Floats, rises: list[int]) -> Callable[[Floats], Floats]:
    """Fit boosted trees to accuracies, by two weighted rows for each instance."""
    model = HistGradientBoostingClassifier(
        max_iter=100,
        learning_rate=0.06,
        max_leaf_nodes=6,
        l2_regularization=1.0,
        early_stopping=False,
        monotonic_cst=rises,
    )
    rows, weights = np.concatenate([features, features]), np.concatenate([values, 1 - values])
    right = np.repeat([1, 0], len(values))
    model.fit(rows[weights > 0], right[weights > 0], sample_weight=weights[weights > 0])
    return lambda new: model.predict_proba(new)[:, 1]


def count_labelled(known: Predictions, fit: np.ndarray, folds: np.ndarray) -> Floats:
    """Return log-frequencies of predictions among the labelled instances, (n,).

    Those fitted to are counted by the other folds: an instance that is counted itself is in the
    count just when its prediction is right.
    """
    found = LabelsetFrequencies.of(known.Y_true[fit]).log_frequencies(known.Y_pred)
    for fold in range(N_FOLDS):
        others = LabelsetFrequencies.of(known.Y_true[fit[folds != fold]])
        found[fit[folds == fold]] = others.log_frequencies(known.Y_pred[fit[folds == fold]])
    return found


def estimate_in_every_way(
    known: Predictions, metric: str, fit: np.ndarray, test: np.ndarray, *, boosted: bool
) -> dict[str, Floats]:
    """Return the estimates of the test rows by every case, fitted to the other rows."""
    rule, table = get_metric(metric), known.table
    values = table.accuracy(metric, empty=1.0)
    response = choose_response(rule, "value")
    targets = response.targets(table.counts(), values)[fit]
    full = feature_matrix(table, FULL, rule, 1.0)
    folds = np.random.default_rng(0).permutation(np.arange(len(fit)) % N_FOLDS)
    frequency = known.in_training

    def by_ridge(*added: Floats, held_back: int = 0) -> Floats:
        features = np.column_stack([full, *added])
        model = fit_ridge(features[fit], targets, response.name, folds, held_back)
        return model(features[test])

    found = {BASE: by_ridge(), "+ frequency": by_ridge(frequency)}
    if boosted:
        features = np.column_stack([full, frequency])
        rises = [int(name not in ("n_predicted", "is_empty")) for name in (*FULL, "frequency")]
        model = fit_boosted(features[fit], values[fit], rises)
        found["boosted"] = model(features[test])
        found["half boosted, half ridge"] = (found["boosted"] + found["+ frequency"]) / 2
        return found
    often = np.argsort(-known.Y_pred[fit].sum(axis=0), kind="stable")[:MOST_LABELS]
    labels = known.Y_pred[:, often].astype(np.float64)
    found["+ frequency among labelled"] = by_ridge(count_labelled(known, fit, folds))
    found["+ labels"] = by_ridge(labels, held_back=labels.shape[1])
    found["+ frequency + labels"] = by_ridge(frequency, labels, held_back=labels.shape[1])
    if known.spread is not None:
        found["+ frequency + spread"] = by_ridge(frequency, known.spread)
    return found


def measure(known: Predictions, metric: str, *, boosted: bool) -> list[tuple]:
    """Return for every case squared error, calibration error beyond chance, and rank agreement."""
    n, rows = len(known.table), []
    values = known.table.accuracy(metric, empty=1.0)
    for split in range(N_SPLITS):
        order = np.random.default_rng(split).permutation(n)
        fit, test = np.split(order, [int((0.8 if boosted else 0.5) * n)])
        cases = estimate_in_every_way(known, metric, fit, test, boosted=boosted)
        for case, estimated in cases.items():
            result = ls.reliability(estimated, values[test])
            excess = result.expected_calibration_error - chance(result, estimated, values[test])
            squared = float(((estimated - values[test]) ** 2).mean())
            tau = kendalltau(estimated, values[test]).statistic
            cell = (known.name, known.classifier, metric, len(fit), split, case)
            rows.append((*cell, squared, max(excess, 0.0), tau))
    return rows


def run(sets: tuple[str, ...], n_jobs: int = 1) -> pd.DataFrame:
    """Return a row for each set, classifier, metric, split and case."""
    rows: list[tuple] = []
    for name in sets:
        for classifier in ("BR", "ECC") if name in WITH_CHAINS else ("BR",):
            start = time.process_time()
            known = predict(name, classifier)
            kinds = [False] + [True] * (0.8 * len(known.table) >= LARGE)
            tasks = [(metric, boosted) for metric in METRICS for boosted in kinds]
            for found in Parallel(n_jobs)(
                delayed(measure)(known, metric, boosted=boosted) for metric, boosted in tasks
            ):
                rows.extend(found)
            took = time.process_time() - start
            print(f"{name} {classifier}: {took:.0f} s", file=sys.stderr, flush=True)
    columns = ["set", "classifier", "metric", "n", "split", "case", "squared", "excess", "tau"]
    return pd.DataFrame(rows, columns=columns)


def compare(rows: pd.DataFrame, base: str, by: list[str]) -> pd.DataFrame:
    """Return each case beside the base: ratio of squared errors, differences of the rest."""
    cell = ["set", "classifier", "metric", "n"]
    means = rows.groupby([*cell, "case"], sort=False)[["squared", "excess", "tau"]].mean()
    certain = means["squared"] < CERTAIN  # nothing is right on cal500: a ratio would mean nothing
    means = means[~certain.groupby(cell).transform("any")]
    beside = means.xs(base, level="case").reindex(means.index.droplevel("case"))
    table = pd.DataFrame(
        {
            "log ratio": np.log(means["squared"].to_numpy() / beside["squared"].to_numpy()),
            "beyond chance": means["excess"].to_numpy() - beside["excess"].to_numpy(),
            "tau": means["tau"].to_numpy() - beside["tau"].to_numpy(),
        },
        index=means.index,
    ).reset_index()
    table = table[table["case"] != base]
    table["better"] = (table["log ratio"] < 0).astype(float)
    found = table.groupby(by, sort=False)[["log ratio", "beyond chance", "tau", "better"]].mean()
    found.insert(0, "cells", table.groupby(by, sort=False).size())
    found.insert(1, "squared error", np.exp(found.pop("log ratio")))
    return found.reset_index()


def make_page(rows: pd.DataFrame) -> str:
    """Return the page: what was chosen and confirmed, then every set."""
    parts = [HEAD.format(n_splits=N_SPLITS)]
    small, large = rows[~is_large(rows)], rows[is_large(rows)]
    for title, names in (("chosen", CHOSEN_ON), ("confirmed", CONFIRMED_SETS)):
        mine = small[small["set"].isin(names)]
        parts.append(f"\n### Where it was {title}: {', '.join(names)}\n")
        parts.append(markdown(compare(mine, BASE, ["case", "metric"])))
    parts.append(BOOSTED)
    for names in (CHOSEN_ON, CONFIRMED_SETS):
        mine = large[large["set"].isin(names)]
        if not mine.empty:
            parts.append(f"\nOn {', '.join(mine['set'].unique())}:\n")
            parts.append(markdown(compare(mine, "+ frequency", ["case", "metric"])))
    parts.append("\n## Squared error relative to `full`, by set\n")
    wide = compare(small, BASE, ["set", "classifier", "case"])
    wide = wide.pivot(index=["set", "classifier"], columns="case", values="squared error")
    parts.append(markdown(wide.reset_index().fillna("-")))
    return "\n".join(parts) + "\n"


def is_large(rows: pd.DataFrame) -> pd.Series:
    """Say which rows are of the comparison with boosted models."""
    cell = ["set", "classifier", "metric", "n"]
    with_boosted = rows[rows["case"] == "boosted"].set_index(cell).index.unique()
    return pd.Series(rows.set_index(cell).index.isin(with_boosted), index=rows.index)


CONFIRMED_SETS = (*CONFIRMED_ON, "flags")

HEAD = """# What makes an estimate sharper

Made by `python -m benchmarks.features docs/features.md`, not by hand; the script says how.

**How often the predicted labelset occurred in training helps, and is in.** Pass the labelsets that
the classifier was trained on, `AccuracyEstimator.fit(dist, Y_true, Y_train=Y_train)`, and the
feature `"frequency"`, log((count + 1/2) / (n + 1)), joins the default; `AccuracyAwareClassifier`
does so by itself, fold by fold. A model that was fitted before (a frozen one, another system's
probabilities) has no training labels to count, and keeps `"full"`. It helps most where a classifier
predicts labelsets that cannot be, as binary relevance does on digits, and costs next to nothing
where it says nothing (medical: half a percent).

What was tried and is not in:

- **the same, counted among the labelled instances** instead of the training data, each instance by
  the other folds: as good on most sets, but on cal500, where hardly two labelsets are the same, the
  counts of folds and of all instances differ, and the estimate is worse by three quarters;
- **which labels are predicted** (an indicator for each of the 30 most frequent, with a penalty nine
  times as strong): much better on slashdot, a little on digits and flags, worse on medical, nothing
  on the rest. Chosen by the six sets it would be in; the others do not confirm it;
- **the spread of log P(prediction) between the chains of an ensemble**: nothing beyond chance;
- **boosted trees** with monotone constraints, from 1,500 labelled instances on: better on
  slashdot, the same on scene and yeast, slightly worse on simulated sets.

Each cell is a set, a classifier (BR: binary relevance, ECC: ten chains, where there are few labels)
and a metric; every case is fitted to a random half of the predictions and measured on the other,
{n_splits} times. `squared error` is relative to that of the ridge on `"full"` (the mean of
logarithms, so that sets count alike), `beyond chance` the change of the calibration error,
`tau` that of Kendall's rank correlation with the accuracy that came out, `better` the share of
cells with a smaller squared error.
"""

BOOSTED = """
## Boosted trees

Fitted to 80 % of the predictions, where these are at least 1,500; beside the ridge with
`frequency`. They see the same features, and may only rise with confidence and frequency.
"""


def main(path: str, *keep: str) -> None:
    """Write the page, and keep the rows if told where."""
    rows = run((*CHOSEN_ON, *CONFIRMED_SETS))
    if keep:
        rows.to_csv(keep[0], index=False)
    Path(path).write_text(make_page(rows), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
