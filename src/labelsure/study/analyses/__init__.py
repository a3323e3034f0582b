"""The analyses of a study: functions of the score table and of the frames they return."""

from labelsure.study.analyses._all_analyses import (
    Analyses,
    AnalysisSettings,
    CorrelationAnalyses,
    describe_datasets,
    run_analyses,
)
from labelsure.study.analyses._beyond_paper import optimal_decisions, spread, true_accuracy
from labelsure.study.analyses._correlations import kendall, over_repeats, pearson
from labelsure.study.analyses._linear_models import effects, fit_statistics, levels, robustness
from labelsure.study.analyses._mixture_intervals import (
    interval_table,
    mark_intervals,
    mixture,
    mixture_replicates,
)

__all__ = [
    "Analyses",
    "AnalysisSettings",
    "CorrelationAnalyses",
    "describe_datasets",
    "effects",
    "fit_statistics",
    "interval_table",
    "kendall",
    "levels",
    "mark_intervals",
    "mixture",
    "mixture_replicates",
    "optimal_decisions",
    "over_repeats",
    "pearson",
    "robustness",
    "run_analyses",
    "spread",
    "true_accuracy",
]
