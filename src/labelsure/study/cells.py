"""Cells of a study: one data set, classifier and repeat each, scored by a pure function."""

from __future__ import annotations

import json
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from labelsure._kernels.threads import one_blas_thread
from labelsure._runtime import limits as _limits
from labelsure._runtime.code import digest_code
from labelsure._runtime.typing import FeaturesLike, Indices, LabelsetsLike
from labelsure.classifiers._adapters import as_distribution
from labelsure.decisions._rules import RULES, decide
from labelsure.distributions._base import LabelsetDistribution
from labelsure.errors import DataError
from labelsure.estimation.score_table import ScoreTable
from labelsure.labelsets.lists import to_text
from labelsure.labelsets.sparse import no_labels
from labelsure.metrics.registry import COUNTS, METRICS, counts
from labelsure.study.plan import Plan, StudyData
from labelsure.tables.datasets import Dataset, split_rows

TRUE_METRICS = ("exact", "hamming", "jaccard")
BEST_METRICS = ("hamming", "jaccard", "f1")
"""Metrics in every score table: those with the true expected accuracy of the mode, and those with
an optimal decision, where it may differ from the mode."""

LEAST_INSTANCES = 2
"""Minimum number of instances of a data set: one to train on and one to test."""

BEST_LABELS, BEST_BUDGET = 16, 1000
"""Number of labels up to which chains search all labelsets for the optimal decision, and number of
probable labelsets that are searched beyond; the score table has an upper bound on the gap."""


@dataclass(frozen=True)
class Cell:
    """One unit of a study.

    Parameters
    ----------
    dataset, classifier
        Their names in the plan.
    repeat
        Which split, from 0.
    """

    dataset: str
    classifier: str
    repeat: int

    @property
    def name(self) -> str:
        """The name by which it is seeded, stored and reported."""
        return f"{self.dataset}.{self.classifier}.{self.repeat}"


def plan_cells(plan: Plan) -> list[Cell]:
    """Cells of a plan in the order of the score table.

    Examples
    --------
    >>> from labelsure.study import load_plan
    >>> [cell.name for cell in plan_cells(load_plan("quick"))[:3]]
    ['dependent.Indep.0', 'dependent.Indep.1', 'dependent.CT.0']
    """
    return [
        Cell(dataset, classifier, repeat)
        for dataset in plan.datasets
        for classifier in plan.classifiers
        for repeat in range(plan.n_repeats)
    ]


def seed_of(plan_seed: int, name: str) -> int:
    """Seed derived from a name: the same on every machine and in any order of cells."""
    digest = sha256(f"{plan_seed}/{name}".encode()).digest()
    return int.from_bytes(digest[:4], "little")


def cell_key(cell: Cell, plan: Plan, data: StudyData) -> str:
    """Checksum of all that the rows of a cell depend on: code, data, settings, metrics."""
    specs = [plan.classifiers[cell.classifier], plan.base, plan.scaler]
    classes = sorted({spec.path for spec in specs if spec is not None})
    relevant: dict[str, Any] = {
        "code": digest_code(*classes),
        "cell": cell.name,
        "data": data.checksum,
        "classes": [None if spec is None else spec.model_dump() for spec in specs],
        "settings": [plan.seed, plan.test_share, plan.decision_empty, plan.engine],
        "metrics": [_true_metrics(plan), _best_metrics(plan, data.data.n_labels)],
    }
    return sha256(json.dumps(relevant, sort_keys=True, default=repr).encode()).hexdigest()


def _true_metrics(plan: Plan) -> list[str]:
    return list(dict.fromkeys([*TRUE_METRICS, *plan.metrics]))


def _best_metrics(plan: Plan, n_labels: int) -> list[str]:
    with_rule = {metric.name for metric in RULES}
    others = [metric for metric in plan.metrics if metric not in with_rule]
    return [*BEST_METRICS, *(others if n_labels <= _limits.ALL_PAIRS_LABELS else ())]


def score_cell(cell: Cell, plan: Plan, data: StudyData) -> pd.DataFrame:
    """Fit the classifier on the training part and score its mode on the test part.

    A pure function: the same arguments give the same rows to the last bit, on any number of
    threads and in any process.

    Parameters
    ----------
    cell
        The cell.
    plan
        Plan of the study.
    data
        The data set of the cell.
    """
    train, test = _split(plan, cell.dataset, cell.repeat, data.data)
    # Sums in BLAS depend on its number of threads, and so on how many cells run at a time.
    with one_blas_thread():
        X_train, X_test = _scale_features(plan, data.data.take(train).X, data.data.take(test).X)
        model = plan.classifier(cell.classifier, seed_of(plan.seed, cell.name))
        model.fit(X_train, data.data.Y[train])
        dist = as_distribution(model, X_test)
        scores = _score(plan, dist, data, test).to_frame()
    identity = {
        "dataset": cell.dataset,
        "classifier": cell.classifier,
        "repeat": cell.repeat,
        "instance": test,
    }
    return pd.concat([pd.DataFrame(identity, index=scores.index), scores], axis=1)


def feature_rows(plan: Plan, sets: dict[str, StudyData]) -> pd.DataFrame:
    """Label and feature counts of the training part, a row for each data set and repeat.

    A data set that cannot be split, so that all of its cells fail, has no rows.
    """
    rows = []
    for name in plan.datasets:
        data = sets[name].data
        for repeat in range(plan.n_repeats if data.n_samples >= LEAST_INSTANCES else 0):
            train = data.take(_split(plan, name, repeat, data)[0])
            described = train.describe()
            rows.append(
                {
                    "dataset": name,
                    "repeat": repeat,
                    "n_labels": described["n_labels"],
                    "n_labelsets": described["n_labelsets"],
                    "cardinality": described["label_cardinality"],
                    "n_features": described["n_features"],
                    "n_train": described["n_samples"],
                }
            )
    return pd.DataFrame(rows)


def _split(plan: Plan, dataset: str, repeat: int, data: Dataset) -> tuple[Indices, Indices]:
    """Training and test rows, the same for all classifiers."""
    if data.n_samples < LEAST_INSTANCES:
        raise DataError(
            f"The data set {dataset!r} must have at least {LEAST_INSTANCES} instances, one to "
            f"train on and one to test, got {data.n_samples}. Leave it out of the plan."
        )
    seed = seed_of(plan.seed, f"{dataset}.{repeat}")
    return split_rows(data.Y, plan.test_share, random_state=seed)


def _scale_features(
    plan: Plan, X_train: FeaturesLike, X_test: FeaturesLike
) -> tuple[FeaturesLike, FeaturesLike]:
    if plan.scaler is None:
        return X_train, X_test
    scaler = plan.scaler.build()
    if sparse.issparse(X_train) and "with_mean" in scaler.get_params():
        scaler.set_params(with_mean=False)  # centred features would not be sparse any more
    return scaler.fit_transform(X_train), scaler.transform(X_test)


def _score(plan: Plan, dist: LabelsetDistribution, data: StudyData, test: Indices) -> ScoreTable:
    """Score table of the test part: mode, optimal decisions, true expectations if simulated."""
    Y = data.data.Y[test]
    requested = {*_best_metrics(plan, dist.n_labels), *_true_metrics(plan)}
    metrics = [name for name in METRICS if name in requested]
    table = ScoreTable.from_distribution(dist.with_engine(engine=plan.engine), Y, metrics=metrics)
    if dist.n_labels > BEST_LABELS and dist._can_enumerate:
        dist = dist.with_engine(engine="certified", budget=BEST_BUDGET)
    added: dict[str, Any] = {}
    truth: LabelsetsLike = table.truth
    for metric in _best_metrics(plan, dist.n_labels):
        best = decide(dist, metric, empty=plan.decision_empty)
        values = [to_text(best.labelsets), best.gap, *counts(truth, best.labelsets)]
        columns = (f"best_{metric}_{name}" for name in ("decision", "gap", *COUNTS))
        added |= dict(zip(columns, values, strict=True))
    mode: Any = table.decisions
    true_dist = None if data.truth is None else data.truth[test]
    names = [*(f"true_expected_{metric}" for metric in _true_metrics(plan)), "true_p_empty"]
    added |= dict.fromkeys(names, np.full(len(table), np.nan))  # real data: no true distribution
    if true_dist is not None:
        for metric in _true_metrics(plan):
            added[f"true_expected_{metric}"] = true_dist.expected(metric, mode, empty=0.0).value
        added["true_p_empty"] = np.exp(true_dist.log_prob(no_labels(mode)))
    return table.with_columns(added)
