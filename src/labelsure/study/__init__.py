"""Studies: a plan becomes cells, cells become the score table, every analysis comes from it."""

from labelsure.study._agreement import (
    MEASURES,
    agreement,
    effects_agreement,
    own_agreement,
    trivial_agreement,
    trivial_effects,
)
from labelsure.study._analyses import (
    Analyses,
    AnalysisSettings,
    CorrelationAnalyses,
    run_analyses,
)
from labelsure.study._cells import Cell, plan_cells, score_cell
from labelsure.study._claims import Claim
from labelsure.study._conclusions import (
    FAILS,
    HOLDS,
    NO_EVIDENCE_RULE,
    SIGN_RULE,
    UNDECIDED,
    Conclusion,
    draw_conclusions,
)
from labelsure.study._correlations import kendall, pearson
from labelsure.study._extensions import optimal_decisions, spread, true_accuracy
from labelsure.study._linear import effects, fit_statistics, robustness
from labelsure.study._mixture import (
    interval_table,
    mark_intervals,
    mixture,
    mixture_replicates,
)
from labelsure.study._numbers import (
    TITLES,
    RepeatedAnalyses,
    compare_numbers,
    describe_datasets,
)
from labelsure.study._plan import Plan, load_plan, shipped_plans
from labelsure.study._published import published_table
from labelsure.study._run import CellEvent, StudyRun, run_study
from labelsure.study._scores import accuracies, candidate_values, rank_keys

__all__ = [
    "FAILS",
    "HOLDS",
    "MEASURES",
    "NO_EVIDENCE_RULE",
    "SIGN_RULE",
    "TITLES",
    "UNDECIDED",
    "Analyses",
    "AnalysisSettings",
    "Cell",
    "CellEvent",
    "Claim",
    "Conclusion",
    "CorrelationAnalyses",
    "Plan",
    "RepeatedAnalyses",
    "StudyRun",
    "accuracies",
    "agreement",
    "candidate_values",
    "compare_numbers",
    "describe_datasets",
    "draw_conclusions",
    "effects",
    "effects_agreement",
    "fit_statistics",
    "interval_table",
    "kendall",
    "load_plan",
    "mark_intervals",
    "mixture",
    "mixture_replicates",
    "optimal_decisions",
    "own_agreement",
    "pearson",
    "plan_cells",
    "published_table",
    "rank_keys",
    "robustness",
    "run_analyses",
    "run_study",
    "score_cell",
    "shipped_plans",
    "spread",
    "trivial_agreement",
    "trivial_effects",
    "true_accuracy",
]
