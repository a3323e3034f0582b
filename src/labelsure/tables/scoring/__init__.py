"""Files in, files out: predictions and what they are worth, a unit of rows at a time."""

from labelsure.tables.scoring._file_estimates import estimate_files
from labelsure.tables.scoring._file_reports import report_files
from labelsure.tables.scoring._score_run import ScoreRun, score_files
from labelsure.tables.scoring._unit_scores import score_frame

__all__ = ["ScoreRun", "estimate_files", "report_files", "score_files", "score_frame"]
