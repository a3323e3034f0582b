"""Files in, files out: predictions and what they are worth, a unit of rows at a time."""

from labelsure.tables.scoring._file_estimates import FileSums, estimate_files, sum_files
from labelsure.tables.scoring._file_reports import report_files
from labelsure.tables.scoring._score_run import ScoreRun, UnitEvent, score_files
from labelsure.tables.scoring._unit_scores import IDENTITY, score_frame

__all__ = [
    "IDENTITY",
    "FileSums",
    "ScoreRun",
    "UnitEvent",
    "estimate_files",
    "report_files",
    "score_files",
    "score_frame",
    "sum_files",
]
