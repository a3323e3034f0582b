"""How sure can you be of a predicted labelset? labelsure computes it.

Names are imported when they are first used, so that ``import labelsure`` and the command line
start at once.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from labelsure.accuracy_aware import AccuracyAwareClassifier
    from labelsure.classifiers import (
        BinaryRelevance,
        ClassifierTrellis,
        ConditionalBernoulliMixture,
        EnsembleOfClassifierChains,
        LabelPowerset,
        PrecomputedProbabilities,
        ProbabilisticClassifierChain,
        ProbabilityWarning,
        as_distribution,
    )
    from labelsure.datasets import (
        Dataset,
        list_datasets,
        load_dataset,
        make_labelsets,
        read_dataset,
        split_dataset,
    )
    from labelsure.decisions import decide, expected_accuracy
    from labelsure.dependence import DependenceLayer
    from labelsure.distributions import (
        ChainMixture,
        DenseDistribution,
        IndependentLabels,
        IndependentMixture,
        LabelsetDistribution,
        LabelsetTable,
        LinearChain,
        PrefixChain,
        Profile,
        SmoothedTable,
        SparseIndependentLabels,
        TrellisDistribution,
        confidence,
        suggest_floor,
        watch_progress,
    )
    from labelsure.errors import (
        DataError,
        InputError,
        LabelsureError,
        NotEstimableError,
        RowsError,
        ShiftWarning,
        TooLargeError,
        UnknownNameError,
    )
    from labelsure.estimation import (
        AccuracyEstimator,
        Estimate,
        Reliability,
        ShiftTest,
        reliability,
        shift_test,
    )
    from labelsure.input_columns import PredictionColumns, TableColumns
    from labelsure.metrics import accuracy
    from labelsure.monitoring import monitor
    from labelsure.named_labelsets import NamedLabelsets, read_labelsets
    from labelsure.partial_labelsets import PartialLabelsets
    from labelsure.recalibration import (
        ChainDependence,
        LabelwiseCalibration,
        TemperatureScaling,
    )
    from labelsure.regions import LabelsetRegion
    from labelsure.saving import load
    from labelsure.score_table import ScoreTable
    from labelsure.selection import AcceptCurve, AcceptPolicy, TargetWarning, accept_curve
    from labelsure.thresholds import (
        LabelThresholds,
        expected_precision_at_k,
        precision_at_k,
        rank_labels,
    )

__version__ = "0.1.0"

_HOMES = {
    "accuracy_aware": ["AccuracyAwareClassifier"],
    "classifiers": [
        "BinaryRelevance",
        "ClassifierTrellis",
        "ConditionalBernoulliMixture",
        "EnsembleOfClassifierChains",
        "LabelPowerset",
        "PrecomputedProbabilities",
        "ProbabilisticClassifierChain",
        "ProbabilityWarning",
        "as_distribution",
    ],
    "datasets": [
        "Dataset",
        "list_datasets",
        "load_dataset",
        "make_labelsets",
        "read_dataset",
        "split_dataset",
    ],
    "decisions": ["decide", "expected_accuracy"],
    "dependence": ["DependenceLayer"],
    "distributions": [
        "ChainMixture",
        "DenseDistribution",
        "IndependentLabels",
        "IndependentMixture",
        "LabelsetDistribution",
        "LabelsetTable",
        "LinearChain",
        "PrefixChain",
        "Profile",
        "SmoothedTable",
        "SparseIndependentLabels",
        "TrellisDistribution",
        "confidence",
        "suggest_floor",
        "watch_progress",
    ],
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
    "estimation": [
        "AccuracyEstimator",
        "Estimate",
        "Reliability",
        "ShiftTest",
        "reliability",
        "shift_test",
    ],
    "input_columns": ["PredictionColumns", "TableColumns"],
    "metrics": ["accuracy"],
    "monitoring": ["monitor"],
    "named_labelsets": ["NamedLabelsets", "read_labelsets"],
    "partial_labelsets": ["PartialLabelsets"],
    "recalibration": [
        "ChainDependence",
        "LabelwiseCalibration",
        "TemperatureScaling",
    ],
    "regions": ["LabelsetRegion"],
    "saving": ["load"],
    "score_table": ["ScoreTable"],
    "selection": ["AcceptCurve", "AcceptPolicy", "TargetWarning", "accept_curve"],
    "thresholds": [
        "LabelThresholds",
        "expected_precision_at_k",
        "precision_at_k",
        "rank_labels",
    ],
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "AcceptCurve",
    "AcceptPolicy",
    "AccuracyAwareClassifier",
    "AccuracyEstimator",
    "BinaryRelevance",
    "ChainDependence",
    "ChainMixture",
    "ClassifierTrellis",
    "ConditionalBernoulliMixture",
    "DataError",
    "Dataset",
    "DenseDistribution",
    "DependenceLayer",
    "EnsembleOfClassifierChains",
    "Estimate",
    "IndependentLabels",
    "IndependentMixture",
    "InputError",
    "LabelPowerset",
    "LabelThresholds",
    "LabelsetDistribution",
    "LabelsetRegion",
    "LabelsetTable",
    "LabelsureError",
    "LabelwiseCalibration",
    "LinearChain",
    "NamedLabelsets",
    "NotEstimableError",
    "PartialLabelsets",
    "PrecomputedProbabilities",
    "PredictionColumns",
    "PrefixChain",
    "ProbabilisticClassifierChain",
    "ProbabilityWarning",
    "Profile",
    "Reliability",
    "RowsError",
    "ScoreTable",
    "ShiftTest",
    "ShiftWarning",
    "SmoothedTable",
    "SparseIndependentLabels",
    "TableColumns",
    "TargetWarning",
    "TemperatureScaling",
    "TooLargeError",
    "TrellisDistribution",
    "UnknownNameError",
    "accept_curve",
    "accuracy",
    "as_distribution",
    "confidence",
    "decide",
    "expected_accuracy",
    "expected_precision_at_k",
    "list_datasets",
    "load",
    "load_dataset",
    "make_labelsets",
    "monitor",
    "precision_at_k",
    "rank_labels",
    "read_dataset",
    "read_labelsets",
    "reliability",
    "shift_test",
    "split_dataset",
    "suggest_floor",
    "watch_progress",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'labelsure' has no attribute {name!r}")
    value = getattr(import_module(f"labelsure.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
