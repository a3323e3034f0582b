"""The analyses of a study: functions of the score table and of the frames they return."""

from labelsure.study.analyses._all_analyses import (
    Analyses,
    AnalysisSettings,
    CorrelationAnalyses,
    describe_datasets,
    run_analyses,
)
from labelsure.study.analyses._beyond_paper import optimal_decisions, true_accuracy
from labelsure.study.analyses._correlations import over_repeats
from labelsure.study.analyses._linear_models import fit_statistics
from labelsure.study.analyses._mixture_intervals import (
    interval_table,
    mark_intervals,
    mixture_replicates,
)

__all__ = [
    "Analyses",
    "AnalysisSettings",
    "CorrelationAnalyses",
    "describe_datasets",
    "fit_statistics",
    "interval_table",
    "mark_intervals",
    "mixture_replicates",
    "optimal_decisions",
    "over_repeats",
    "run_analyses",
    "true_accuracy",
]
