"""Know which multi-label predictions to trust.

Names are imported when they are first used, so that ``import labelsure`` and the command line
start at once; rooms such as `labelsure.distributions` have the names for experts. `_HOMES` lists
each public name once; `__init__.pyi` says the same to type checkers.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_HOMES = {
    "classifiers._adapters": ["as_distribution"],
    "classifiers._chain_classifiers": [
        "BinaryRelevance",
        "EnsembleOfClassifierChains",
        "ProbabilisticClassifierChain",
    ],
    "classifiers._powerset_classifier": ["LabelPowerset"],
    "classifiers._precomputed": ["PrecomputedProbabilities"],
    "classifiers._probability_layouts": ["ProbabilityWarning"],
    "classifiers._recalibrated_classifier": ["RecalibratedClassifier"],
    "classifiers.recalibration": ["LabelwiseCalibration", "TemperatureScaling"],
    "decisions._rules": ["decide", "expected_accuracy"],
    "distributions._bridge": ["LabelsetDistribution", "confidence"],
    "distributions._dense": ["DenseDistribution"],
    "distributions._independent_labels": ["IndependentLabels", "SparseIndependentLabels"],
    "distributions._labelset_table": ["LabelsetTable"],
    "errors": ["DataError", "InputError", "LabelsureError", "ShiftWarning", "TooLargeError"],
    "estimation._batch_estimates": ["Estimate"],
    "estimation._estimator": ["AccuracyEstimator"],
    "estimation._reliability": ["reliability"],
    "estimation._shift": ["shift_test"],
    "estimation.monitoring": ["monitor"],
    "estimation.score_table": ["ScoreTable"],
    "guarantees._label_thresholds": ["LabelThresholds"],
    "guarantees._labelset_region": ["LabelsetRegion"],
    "guarantees._policy": ["AcceptPolicy", "TargetWarning", "accept_curve"],
    "labelsets.names": ["read_labelsets"],
    "metrics.partial": ["PartialLabelsets"],
    "metrics.registry": ["accuracy"],
    "model._aware_classifier": ["AccuracyAwareClassifier"],
    "saving": ["load"],
    "tables.dataset": ["Dataset", "split_dataset"],
    "tables.datasets": ["list_datasets", "load_dataset", "make_labelsets", "read_dataset"],
}
_ROOMS = (
    "classifiers",
    "decisions",
    "distributions",
    "errors",
    "estimation",
    "guarantees",
    "labelsets",
    "metrics",
    "model",
    "study",
    "tables",
)
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME_OF)


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"labelsure.{name}")
    if name not in _HOME_OF:
        raise AttributeError(f"module 'labelsure' has no attribute {name!r}")
    value = getattr(import_module(f"labelsure.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
