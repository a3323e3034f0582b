"""Know which multi-label predictions to trust.

Names are imported when they are first used, so that ``import labelsure`` and the command line
start at once. `_HOMES` lists each public name once; `__init__.pyi` says the same to type checkers.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_HOMES = {
    "_kernels.threads": ["watch_progress"],
    "classifiers._adapters": ["as_distribution"],
    "classifiers._bernoulli_mixture": ["ConditionalBernoulliMixture"],
    "classifiers._chain_classifiers": [
        "BinaryRelevance",
        "EnsembleOfClassifierChains",
        "ProbabilisticClassifierChain",
    ],
    "classifiers._powerset_classifier": ["LabelPowerset"],
    "classifiers._precomputed": ["PrecomputedProbabilities"],
    "classifiers._probability_layouts": ["ProbabilityWarning"],
    "classifiers._recalibrated_classifier": ["RecalibratedClassifier"],
    "classifiers._trellis_classifier": ["ClassifierTrellis"],
    "classifiers.recalibration": [
        "ChainDependence",
        "LabelwiseCalibration",
        "TemperatureScaling",
    ],
    "decisions._label_ranking": ["expected_precision_at_k", "precision_at_k", "rank_labels"],
    "decisions._rules": ["decide", "expected_accuracy"],
    "distributions._bridge": ["LabelsetDistribution", "confidence"],
    "distributions._chain_links": ["LinearChain", "PrefixChain"],
    "distributions._chain_mixture": ["ChainMixture"],
    "distributions._dense": ["DenseDistribution"],
    "distributions._independent_labels": [
        "IndependentLabels",
        "SparseIndependentLabels",
        "suggest_floor",
    ],
    "distributions._independent_mixture": ["IndependentMixture"],
    "distributions._labelset_table": ["LabelsetTable"],
    "distributions._smoothed_table": ["SmoothedTable"],
    "distributions._trellis": ["TrellisDistribution"],
    "distributions.candidates": ["Profile"],
    "errors": [
        "DataError",
        "InputError",
        "LabelsureError",
        "NotEstimableError",
        "RowsError",
        "ShiftWarning",
        "TooLargeError",
        "UnknownNameError",
    ],
    "estimation._batch_estimates": ["Estimate"],
    "estimation._shift": ["ShiftTest", "shift_test"],
    "estimation._estimator": ["AccuracyEstimator"],
    "estimation._reliability": ["Reliability", "reliability"],
    "estimation.monitoring": ["monitor"],
    "estimation.score_table": ["ScoreTable"],
    "guarantees._accept_curve": ["AcceptCurve", "accept_curve"],
    "guarantees._label_thresholds": ["LabelThresholds"],
    "guarantees._labelset_region": ["LabelsetRegion"],
    "guarantees._policy": ["AcceptPolicy", "TargetWarning"],
    "labelsets.names": ["NamedLabelsets", "read_labelsets"],
    "metrics.partial": ["PartialLabelsets"],
    "metrics.registry": ["accuracy"],
    "model._aware_classifier": ["AccuracyAwareClassifier"],
    "saving": ["load"],
    "tables.dataset": ["Dataset", "split_dataset"],
    "tables.datasets": ["list_datasets", "load_dataset", "make_labelsets", "read_dataset"],
    "tables.features": ["TableColumns"],
    "tables.predictions": ["PredictionColumns"],
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME_OF)


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'labelsure' has no attribute {name!r}")
    value = getattr(import_module(f"labelsure.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
