"""Studies: a plan becomes cells, cells become the score table, every analysis follows from it.

May depend on `tables` and what is below it. Only `cli` depends on it.
"""

from labelsure.study.cells import Cell, plan_cells, score_cell
from labelsure.study.plan import Plan, load_plan, shipped_plans
from labelsure.study.run import CellEvent, RunFolder, StudyRun, open_run, run_study

__all__ = [
    "Cell",
    "CellEvent",
    "Plan",
    "RunFolder",
    "StudyRun",
    "load_plan",
    "open_run",
    "plan_cells",
    "run_study",
    "score_cell",
    "shipped_plans",
]
