"""Studies: a plan becomes cells, cells become the score table, every analysis comes from it."""

from labelsure.study._cells import Cell, plan_cells, score_cell
from labelsure.study._plan import Plan, load_plan, shipped_plans
from labelsure.study._run import CellEvent, StudyRun, run_study

__all__ = [
    "Cell",
    "CellEvent",
    "Plan",
    "StudyRun",
    "load_plan",
    "plan_cells",
    "run_study",
    "score_cell",
    "shipped_plans",
]
