"""What people look at: pages, the tables and figures of a study, and figures of estimators."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from labelsure._runtime.pages import Page

if TYPE_CHECKING:
    from labelsure.study.report.study_files import write_report
    from labelsure.study.report.study_tables import make_study_tables

__all__ = ["Page", "make_study_tables", "write_report"]

# Loaded when they are first used: figures of an estimator should not load the study.
_HOMES = {"make_study_tables": "study_tables", "write_report": "study_files"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'labelsure.study.report' has no attribute {name!r}")
    return getattr(import_module(f"labelsure.study.report.{_HOMES[name]}"), name)
