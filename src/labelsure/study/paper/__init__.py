"""What the paper says: its numbers and conclusions, and how a study of ours compares."""

from labelsure.study.paper._agreement import (
    agreement,
    effects_agreement,
    own_agreement,
    trivial_agreement,
    trivial_effects,
)
from labelsure.study.paper._claims import Claim
from labelsure.study.paper._comparison import PaperCheck, check_against_paper, compare_with_paper
from labelsure.study.paper._conclusions import Conclusion, draw_conclusions
from labelsure.study.paper._published import RepeatedAnalyses, compare_numbers, published_table
from labelsure.study.paper._study_page import make_study_page

__all__ = [
    "Claim",
    "Conclusion",
    "PaperCheck",
    "RepeatedAnalyses",
    "agreement",
    "check_against_paper",
    "compare_numbers",
    "compare_with_paper",
    "draw_conclusions",
    "effects_agreement",
    "make_study_page",
    "own_agreement",
    "published_table",
    "trivial_agreement",
    "trivial_effects",
]
