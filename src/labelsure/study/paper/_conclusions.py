"""What the paper concludes, and whether a study of ours supports it.

A conclusion is one or more claims about numbers, each with a sign. Every number is computed in each
repeat of the split; its 95% interval over the repeats decides:

- *holds*: every claim's interval lies on the side that the paper says;
- *does not hold*: the interval of at least one claim lies on the other side;
- *not applicable*: the study has other data sets than the paper's, whose conclusions are about
  these, or none of the numbers;
- *undecided*: anything else, such as a study of only some metrics.

Where the paper finds no evidence of a difference, the conclusion holds if every interval contains
0, and does not hold otherwise. Repeats of a split share their data, so their plain interval would
be too narrow: its variance is enlarged by the ratio of test to training instances (Nadeau and
Bengio's correction). With one repeat the regression's own standard error takes its place.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from labelsure.study.analyses._correlations import PAPER_METRICS
from labelsure.study.analyses._linear_models import PAPER_LEVELS
from labelsure.study.paper._claims import (
    Claim,
    Maker,
    Numbers,
    all_are_good,
    better_on,
    classifier_order,
    effects_have,
    extreme_fit,
    fewest_significant,
    greatest_data_effect,
    lowest_estimates_are_too_low,
    mixture_is_best,
)

if TYPE_CHECKING:
    from labelsure.study.paper._published import RepeatedAnalyses

HOLDS, FAILS, UNDECIDED = "holds", "does not hold", "undecided"
NOT_APPLICABLE = "not applicable"
VERDICTS = (FAILS, UNDECIDED, HOLDS, NOT_APPLICABLE)
"""In the order in which they are reported."""

SIGN_RULE = (
    "holds if the 95% interval over repeats of every number is on the stated side of 0, does not "
    "hold if one of them is on the other side, else undecided"
)
NO_EVIDENCE_RULE = (
    "holds if the 95% interval over repeats of every number contains 0, does not hold otherwise; "
    "absence of evidence, as in the paper"
)


@dataclass(frozen=True)
class Conclusion:
    """A conclusion of the paper with the verdict on it.

    Parameters
    ----------
    name
        Short, for programs.
    statement
        What the paper says.
    rule
        What decides.
    claims
        The numbers behind; none if the study has none of them.
    applicable
        Whether the study is about what the paper is about.
    """

    name: str
    statement: str
    rule: str
    claims: tuple[Claim, ...]
    applicable: bool = True

    @property
    def verdict(self) -> str:
        """Return "holds", "does not hold", "undecided" or "not applicable"."""
        if not self.applicable or all(claim.missing for claim in self.claims):
            return NOT_APPLICABLE
        if any(claim.contradicted for claim in self.claims):
            return FAILS
        if all(claim.supported for claim in self.claims):
            return HOLDS
        return UNDECIDED


CONCLUSIONS: tuple[tuple[str, str, str, Maker], ...] = (
    (
        "tg_worse",
        "TG correlates less with accuracy than HP (Kendall, every metric)",
        SIGN_RULE,
        effects_have("kendall", {"TG": PAPER_METRICS}, -1),
    ),
    (
        "se_helps_jaccard",
        "SE correlates more with Jaccard accuracy than HP (Kendall)",
        SIGN_RULE,
        effects_have("kendall", {"SE": ("jaccard",)}, 1),
    ),
    (
        "ce_helps_hamming",
        "CE correlates more with Hamming accuracy than HP (Kendall)",
        SIGN_RULE,
        effects_have("kendall", {"CE": ("hamming",)}, 1),
    ),
    (
        "hp_for_exact",
        "HP is enough for exact match: no evidence that SE or CE differ (Kendall)",
        NO_EVIDENCE_RULE,
        effects_have("kendall", {"SE": ("exact",), "CE": ("exact",)}, 0),
    ),
    (
        "classifier_order",
        "The more a classifier models, the higher the correlation: Indep < CT < ECC (Kendall)",
        SIGN_RULE,
        classifier_order("kendall"),
    ),
    (
        "enron_differs_most",
        "Of the data sets, Enron has the greatest effect (Kendall)",
        SIGN_RULE,
        greatest_data_effect("kendall", "enron"),
    ),
    (
        "slashdot_prefers_entropy",
        "SE and CE correlate more than HP on Slashdot (Kendall, every metric and classifier)",
        SIGN_RULE,
        better_on("slashdot", ("SE", "CE")),
    ),
    (
        "se_most_robust",
        "SE is the most robust: its correlation is explained least by data, classifier and metric "
        "(Kendall, R2 below every other candidate's)",
        SIGN_RULE,
        extreme_fit("kendall", "SE", -1),
    ),
    (
        "tg_least_robust",
        "TG is the least robust (Kendall, R2 above every other candidate's)",
        SIGN_RULE,
        extreme_fit("kendall", "TG", 1),
    ),
    (
        "pearson_tg_worse",
        "TG correlates less with accuracy than HP (Pearson, every metric)",
        SIGN_RULE,
        effects_have("pearson", {"TG": PAPER_METRICS}, -1),
    ),
    (
        "pearson_se_helps_jaccard",
        "SE correlates more with Jaccard accuracy than HP (Pearson)",
        SIGN_RULE,
        effects_have("pearson", {"SE": ("jaccard",)}, 1),
    ),
    (
        "pearson_no_others",
        "No evidence for any other candidate over HP (Pearson: CE, ME, CS; SE but for Jaccard)",
        NO_EVIDENCE_RULE,
        effects_have(
            "pearson",
            {
                "SE": ("exact", "hamming"),
                "CE": PAPER_METRICS,
                "ME": PAPER_METRICS,
                "CS": PAPER_METRICS,
            },
            0,
        ),
    ),
    (
        "pearson_classifier_order",
        "The more a classifier models, the higher the correlation: Indep < CT < ECC (Pearson)",
        SIGN_RULE,
        classifier_order("pearson"),
    ),
    (
        "pearson_ce_cs_most_robust",
        "CE and CS are the most robust: fewest terms significant at 10% (Pearson)",
        SIGN_RULE,
        fewest_significant("pearson", ("CE", "CS"), 0.1),
    ),
    (
        "pearson_se_least_explained",
        "SE's correlation has the lowest R2 (Pearson)",
        SIGN_RULE,
        extreme_fit("pearson", "SE", -1),
    ),
    (
        "mix_best_for_jaccard",
        "The mixture estimates Jaccard accuracy best",
        SIGN_RULE,
        mixture_is_best("jaccard"),
    ),
    (
        "mix_best_for_exact",
        "The mixture estimates exact match best",
        SIGN_RULE,
        mixture_is_best("exact"),
    ),
    (
        "all_good_for_hamming",
        "Any model estimates Hamming accuracy well: mean error below an interval's width",
        SIGN_RULE,
        all_are_good("hamming"),
    ),
    (
        "jaccard_low_end",
        "The lowest estimates of Jaccard accuracy are far too low, for every model",
        SIGN_RULE,
        lowest_estimates_are_too_low("jaccard"),
    ),
)
"""Name, statement, rule and what makes the claims. A new conclusion is an entry here."""


def draw_conclusions(repeated: RepeatedAnalyses) -> list[Conclusion]:
    """Return every conclusion of the paper with its verdict, those that do not hold first.

    Parameters
    ----------
    repeated
        The analyses, repeat by repeat.
    """
    numbers = Numbers(repeated)
    studied = set(repeated.analyses.kendall.correlations["dataset"])
    applicable = studied <= set(PAPER_LEVELS["dataset"])
    drawn = [
        Conclusion(name, statement, rule, tuple(make(numbers)), applicable)
        for name, statement, rule, make in CONCLUSIONS
    ]
    return sorted(drawn, key=lambda conclusion: VERDICTS.index(conclusion.verdict))
