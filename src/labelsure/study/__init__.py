"""Studies: a plan becomes cells, cells become the score table, every analysis follows from it.

May depend on `tables` and what is below it. Only `cli` depends on it. Needs the extra `study`.
"""
# ruff: noqa: E402 (a missing extra must be named before anything needs it)

from importlib.util import find_spec

from labelsure.errors import missing_study_extra

for _name in ("pydantic", "tomli_w"):
    if find_spec(_name) is None:
        raise missing_study_extra("A study")

from labelsure.study.cells import Cell, plan_cells, score_cell
from labelsure.study.plan import Plan, Settings, load_plan, shipped_plans
from labelsure.study.run import CellEvent, RunFolder, StudyRun, open_run, run_study

__all__ = [
    "Cell",
    "CellEvent",
    "Plan",
    "RunFolder",
    "Settings",
    "StudyRun",
    "load_plan",
    "open_run",
    "plan_cells",
    "run_study",
    "score_cell",
    "shipped_plans",
]
