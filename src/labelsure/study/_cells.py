"""Cells: one data set, one classifier, one repeat; a pure function to rows of the score table."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from threadpoolctl import threadpool_limits

from labelsure._typing import Labelsets
from labelsure.datasets import Dataset, split_rows
from labelsure.decisions import decide
from labelsure.distributions import LabelsetDistribution
from labelsure.metrics import METRICS, counts
from labelsure.study._plan import Plan
from labelsure.study._sources import StudyData

CELL_FORMAT = 3
"""Raised when cells of an older version must be computed again."""

COUNTS = ("tp", "fp", "fn", "tn")
TRUE_METRICS = ("exact", "hamming", "jaccard")
BEST_METRICS = ("hamming", "jaccard", "f1")
"""Metrics whose best labelset need not be the mode."""

BEST_BUDGET = 1000
"""Labelsets that stand for all where there are too many of them to decide by."""


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
    """Return the cells of a plan in the order of the score table.

    Examples
    --------
    >>> from labelsure.study import load_plan
    >>> [cell.name for cell in plan_cells(load_plan("quick"))[:3]]
    ['dependent.Indep.0', 'dependent.Indep.1', 'dependent.CT.0']
    """
    return [
        Cell(source.key, classifier, repeat)
        for source in plan.datasets
        for classifier in plan.classifiers
        for repeat in range(plan.repeats)
    ]


def seed_of(plan_seed: int, name: str) -> int:
    """Return the seed that belongs to a name: the same on every machine, whatever else runs."""
    digest = sha256(f"{plan_seed}/{name}".encode()).digest()
    return int.from_bytes(digest[:4], "little")


def cell_key(cell: Cell, plan: Plan, data: StudyData, version: str) -> str:
    """Return a checksum of all that a cell's rows depend on.

    Parameters
    ----------
    cell, plan, data
        The cell, its plan and its data set.
    version
        Of labelsure.
    """
    relevant = {
        "format": CELL_FORMAT,
        "labelsure": version,
        "cell": cell.name,
        "data": data.checksum,
        "classifier": plan.classifiers[cell.classifier].to_dict(),
        "base": plan.base.to_dict(),
        "scaler": None if plan.scaler is None else plan.scaler.to_dict(),
        "settings": [plan.seed, plan.test_share, plan.empty, plan.engine, plan.best_labels],
    }
    return sha256(json.dumps(relevant, sort_keys=True, default=repr).encode()).hexdigest()


def score_cell(cell: Cell, plan: Plan, data: StudyData) -> pd.DataFrame:
    """Fit the classifier on the training part and score its mode on the test part.

    A pure function: the same arguments give the same rows to the last bit, on any number of
    threads and in any process.

    Parameters
    ----------
    cell
        What to compute.
    plan
        With which settings.
    data
        The data set of the cell.
    """
    train, test = _split(plan, cell.dataset, cell.repeat, data.data)
    # Sums in BLAS depend on its number of threads, and so on how many cells run at a time.
    with threadpool_limits(1, user_api="blas"):
        X_train, X_test = _features(plan, data.data.take(train).X, data.data.take(test).X)
        model = plan.classifier(cell.classifier, seed_of(plan.seed, cell.name))
        model.fit(X_train, data.data.Y[train])
        dist = model.predict_distribution(X_test)
        columns = dict(_score_columns(plan, dist, data, test))
    identity = {
        "dataset": cell.dataset,
        "classifier": cell.classifier,
        "repeat": cell.repeat,
        "instance": test,
        "n_labels": dist.n_labels,
    }
    return pd.DataFrame({**identity, **columns})


def feature_rows(plan: Plan, sets: dict[str, StudyData]) -> pd.DataFrame:
    """Return what the training part of each data set and repeat looks like.

    Parameters
    ----------
    plan
        The plan.
    sets
        Its data sets by their names.
    """
    rows = []
    for source in plan.datasets:
        for repeat in range(plan.repeats):
            data = sets[source.key].data
            train = data.take(_split(plan, source.key, repeat, data)[0])
            described = train.describe()
            rows.append(
                {
                    "dataset": source.key,
                    "repeat": repeat,
                    "n_labels": described["n_labels"],
                    "n_labelsets": described["n_labelsets"],
                    "cardinality": described["label_cardinality"],
                    "n_features": described["n_features"],
                    "n_train": described["n_samples"],
                }
            )
    return pd.DataFrame(rows)


def _split(plan: Plan, dataset: str, repeat: int, data: Dataset) -> tuple[Any, Any]:
    """Return training and test rows: the same for all classifiers, so that they compare."""
    seed = seed_of(plan.seed, f"{dataset}.{repeat}")
    return split_rows(data.Y, plan.test_share, random_state=seed)


def _features(plan: Plan, X_train: Any, X_test: Any) -> tuple[Any, Any]:
    if plan.scaler is None:
        return X_train, X_test
    scaler = plan.scaler.build()
    if sparse.issparse(X_train) and "with_mean" in scaler.get_params():
        scaler.set_params(with_mean=False)  # centred features would not be sparse any more
    return scaler.fit_transform(X_train), scaler.transform(X_test)


def _score_columns(
    plan: Plan, dist: LabelsetDistribution, data: StudyData, test: Any
) -> Iterator[tuple[str, Any]]:
    """Yield the columns of the score table that come after those that name the row."""
    Y = data.data.Y[test]
    summary = dist.summary(list(METRICS), empty=0.0, engine=plan.engine)
    nothing = np.zeros_like(summary.mode)
    yield "decision", _as_text(summary.mode)
    yield "method", summary.profile.method
    profile = summary.profile.to_frame()
    for name in profile.columns.drop("method"):
        yield name, profile[name].to_numpy()
    yield from zip(COUNTS, counts(Y, summary.mode), strict=True)
    yield "p_empty", np.exp(dist.log_prob(nothing))
    for metric, values in summary.expected.items():
        yield f"expected_{metric}", values
    yield from _best_columns(plan, dist, Y)
    yield from _true_columns(data, test, summary.mode)


def _best_columns(
    plan: Plan, dist: LabelsetDistribution, Y: Labelsets
) -> Iterator[tuple[str, Any]]:
    """Yield each metric's best decision, and how it compares with the truth."""
    if dist.n_labels > plan.best_labels:
        dist = dist.with_engine(engine="certified", budget=BEST_BUDGET)
    for metric in BEST_METRICS:
        best, gap = decide(dist, metric, empty=plan.empty, return_gap=True)
        yield f"best_{metric}_decision", _as_text(best)
        yield f"best_{metric}_gap", gap
        for name, values in zip(COUNTS, counts(Y, best), strict=True):
            yield f"best_{metric}_{name}", values


def _true_columns(data: StudyData, test: Any, mode: Labelsets) -> Iterator[tuple[str, Any]]:
    """Yield the expected accuracy of the mode under the true distribution, where it is known."""
    names = [*(f"true_expected_{metric}" for metric in TRUE_METRICS), "true_p_empty"]
    if data.truth is None:
        yield from ((name, np.full(len(test), np.nan)) for name in names)
        return
    truth = data.truth[test]
    for metric in TRUE_METRICS:
        yield f"true_expected_{metric}", truth.expected(metric, mode, empty=0.0).value
    yield "true_p_empty", np.exp(truth.log_prob(np.zeros_like(mode)))


def _as_text(labelsets: Labelsets) -> list[str]:
    """Return each labelset as a string of zeros and ones, label 0 first."""
    digits = (labelsets + ord("0")).astype(np.uint8)
    return [row.tobytes().decode("ascii") for row in digits]
