"""What people look at: tables, figures, and a study beside the paper."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from labelsure.report.comparison import (
        PaperCheck,
        check_against_paper,
        compare_with_paper,
        side_by_side,
    )
    from labelsure.report.files import write_report_files
    from labelsure.report.tables import study_tables

# Figures of an estimator should not load the study.
_HOMES = {
    "comparison": ["PaperCheck", "check_against_paper", "compare_with_paper", "side_by_side"],
    "files": ["write_report_files"],
    "tables": ["study_tables"],
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "PaperCheck",
    "check_against_paper",
    "compare_with_paper",
    "side_by_side",
    "study_tables",
    "write_report_files",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'labelsure.report' has no attribute {name!r}")
    return getattr(import_module(f"labelsure.report.{_HOME_OF[name]}"), name)
