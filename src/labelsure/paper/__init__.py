"""What the paper says: its numbers and conclusions, and how a study of ours compares."""

from labelsure._storage import name_classes_publicly
from labelsure.paper._agreement import (
    agreement,
    effects_agreement,
    own_agreement,
    trivial_agreement,
    trivial_effects,
)
from labelsure.paper._claims import Claim
from labelsure.paper._comparison import (
    PaperCheck,
    check_against_paper,
    compare_with_paper,
    side_by_side,
)
from labelsure.paper._conclusions import Conclusion, draw_conclusions
from labelsure.paper._published import RepeatedAnalyses, compare_numbers, published_table

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
    "own_agreement",
    "published_table",
    "side_by_side",
    "trivial_agreement",
    "trivial_effects",
]

name_classes_publicly(__name__)
