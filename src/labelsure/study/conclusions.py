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

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd
from scipy.stats import norm
from scipy.stats import t as student

from labelsure._runtime.typing import Floats
from labelsure.study.analyses import RepeatedAnalyses
from labelsure.study.correlations import PAPER_METRICS
from labelsure.study.linear_models import PAPER_LEVELS
from labelsure.study.mixture import DEFAULT_WIDTH, WIDTHS

NO_VALUES = np.empty(0)
"""Of a number that the study does not have."""


@dataclass(frozen=True)
class Claim:
    """A number that should be above 0 (sign 1), below (-1) or consistent with 0 (sign 0).

    Parameters
    ----------
    text
        What the number is.
    sign
        What the paper says of it.
    estimate, low, high
        Mean over the repeats and its 95% interval; infinite where there is none. The estimate is
        NaN where the study lacks the number.
    p_value
        By the paper's own test, the regression over all cells (of the means over repeats): it asks
        whether the number would be seen on other data sets too. Missing where it has no such test.
    """

    text: str
    sign: int
    estimate: float
    low: float
    high: float
    p_value: float = np.nan

    @property
    def missing(self) -> bool:
        """Whether the study does not have the number."""
        return bool(np.isnan(self.estimate))

    @property
    def supported(self) -> bool:
        """Whether the interval is where the paper says."""
        if self.sign == 0:
            return self.low <= 0 <= self.high and not self.missing
        return self.low > 0 if self.sign > 0 else self.high < 0

    @property
    def contradicted(self) -> bool:
        """Whether the interval is on the other side."""
        if self.sign == 0:
            return not (self.low <= 0 <= self.high)
        return self.high < 0 if self.sign > 0 else self.low > 0


class Numbers:
    """The numbers that conclusions ask for, each with its interval over repeats.

    Parameters
    ----------
    repeated
        The analyses, repeat by repeat.
    """

    def __init__(self, repeated: RepeatedAnalyses) -> None:
        self.repeated = repeated
        self.ratio = _test_to_training(repeated)

    def effect(self, association: str, metric: str, term: str) -> tuple[Floats, float]:
        """Return an effect in each repeat, and its standard error in the first."""
        table = self.repeated.effects
        rows = _rows(table[table["association"] == association], metric, term)
        error = float(rows["standard_error"].iloc[0]) if len(rows) else np.nan
        return rows["estimate"].to_numpy(), error

    def p_value(self, association: str, metric: str, term: str) -> float:
        """Return the p-value of an effect on the means over repeats; NaN where there is none."""
        if not len(self.effect(association, metric, term)[0]):
            return np.nan
        rows = _rows(getattr(self.repeated.analyses, association).effects, metric, term)
        return float(rows["p_value"].iloc[0]) if len(rows) else np.nan

    def claim(
        self,
        text: str,
        sign: int,
        values: Floats,
        error: float = np.nan,
        p_value: float = np.nan,
    ) -> Claim:
        """Return a claim about a number of each repeat."""
        values = np.asarray(values, dtype=np.float64)
        mean, low, high = repeat_interval(values, self.ratio, error)
        return Claim(text, sign, mean, low, high, p_value)


def _rows(effects: pd.DataFrame, metric: str, term: str) -> pd.DataFrame:
    chosen = (effects["metric"] == metric) & (effects["term"] == term)
    return effects[chosen].dropna(subset=["estimate"])


def repeat_interval(
    values: Floats, test_to_training: float, error: float = np.nan
) -> tuple[float, float, float]:
    """Return mean and 95% interval of a number over repeats of a split of the same data.

    Parameters
    ----------
    values
        One for each repeat.
    test_to_training
        Test instances for each training instance.
    error
        Standard error of a single value, used when there is only one.

    Examples
    --------
    >>> mean, low, high = repeat_interval(np.array([0.1, 0.2, 0.3]), 2 / 3)
    >>> f"{mean:.2f} from {low:.2f} to {high:.2f}"
    '0.20 from -0.23 to 0.63'
    """
    n = len(values)
    if n == 0 or np.isnan(values).any():
        return np.nan, -np.inf, np.inf
    mean = float(values.mean())
    if n == 1:
        reach = norm.ppf(0.975) * error if np.isfinite(error) else np.inf
    else:
        deviation = values.std(ddof=1) * np.sqrt(1 / n + test_to_training)
        reach = student.ppf(0.975, n - 1) * deviation
    return mean, float(mean - reach), float(mean + reach)


def _test_to_training(repeated: RepeatedAnalyses) -> float:
    """Return test instances for each training instance; two thirds if the table cannot say."""
    analyses = repeated.analyses
    if "n_train" not in analyses.features.columns:
        return 2 / 3
    sizes = analyses.kendall.correlations.drop_duplicates(["dataset", "repeat"])
    trained = analyses.features.groupby("dataset")["n_train"].mean()
    return float((sizes.groupby("dataset")["n"].mean() / trained).mean())


def effects_have(
    association: str, terms: dict[str, tuple[str, ...]], sign: int, numbers: Numbers
) -> list[Claim]:
    """Return the claims that effects of some terms on some metrics have a sign."""
    claims = []
    for term, metrics in terms.items():
        for metric in metrics:
            values, error = numbers.effect(association, metric, term)
            p = numbers.p_value(association, metric, term)
            claims.append(numbers.claim(f"{term} on {metric}", sign, values, error, p))
    return claims


def classifier_order(association: str, numbers: Numbers) -> list[Claim]:
    """Return the claims that Indep is below CT and CT below ECC."""
    claims = []
    for metric in PAPER_METRICS:
        indep, error = numbers.effect(association, metric, "Indep")
        ct, ct_error = numbers.effect(association, metric, "CT")
        p = numbers.p_value(association, metric, "CT")
        claims.append(numbers.claim(f"ECC - CT on {metric}", 1, -ct, ct_error, p))
        # Two treatment contrasts with one baseline: their difference has the same error.
        above = ct - indep if len(ct) == len(indep) else NO_VALUES
        claims.append(numbers.claim(f"CT - Indep on {metric}", 1, above, error))
    return claims


def extreme_fit(association: str, candidate: str, sign: int, numbers: Numbers) -> list[Claim]:
    """Return the claims that a candidate's R2 is above (1) or below (-1) each other's."""
    table = numbers.repeated.robustness_fit
    table = table[table["association"] == association]
    wide = table.pivot(index="repeat", columns="candidate", values="r_squared").dropna()
    if candidate not in wide.columns:
        return []
    return [
        numbers.claim(
            f"R2 of {candidate} - {other}", sign, (wide[candidate] - wide[other]).to_numpy()
        )
        for other in wide.columns
        if other != candidate
    ]


def fewest_significant(
    association: str, best: tuple[str, ...], level: float, numbers: Numbers
) -> list[Claim]:
    """Return the claims that every other candidate has more significant terms than these."""
    table = numbers.repeated.robustness
    table = table[table["association"] == association]
    significant = (table["p_value"] < level).groupby([table["repeat"], table["candidate"]])
    wide = significant.sum().unstack().dropna().astype(float)
    if not set(best) <= set(wide.columns):
        return []
    most, text = wide[list(best)].max(axis=1), " or ".join(best)
    return [
        numbers.claim(f"significant terms of {name} - {text}", 1, (wide[name] - most).to_numpy())
        for name in wide.columns
        if name not in best
    ]


def greatest_data_effect(association: str, dataset: str, numbers: Numbers) -> list[Claim]:
    """Return the claims that a data set's effect is larger than the other ones'."""
    claims = []
    for metric in PAPER_METRICS:
        others = ("scene", "yeast", "stare", "slashdot")
        effects = [numbers.effect(association, metric, name)[0] for name in others]
        chosen = numbers.effect(association, metric, dataset)[0]
        above = NO_VALUES
        if all(len(values) == len(chosen) for values in effects):
            above = np.abs(chosen) - np.abs(effects).max(axis=0)
        claims.append(numbers.claim(f"|{dataset}| - the next largest, {metric}", 1, above))
    return claims


def better_on(dataset: str, candidates: tuple[str, ...], numbers: Numbers) -> list[Claim]:
    """Return the claims that candidates are above HP in every cell of a data set."""
    table = numbers.repeated.analyses.kendall.correlations
    table = table[(table["dataset"] == dataset) & table["candidate"].isin(candidates)]
    return [
        numbers.claim(
            f"{candidate} - HP, {classifier}, {metric}",
            1,
            part["difference"].to_numpy(),
            float(part["standard_error"].iloc[0]),
        )
        for (metric, classifier, candidate), part in table.groupby(
            ["metric", "classifier", "candidate"], sort=False
        )
    ]


def _calibration_errors(numbers: Numbers, metric: str) -> pd.DataFrame:
    """Return each model's error in each halving: mean |estimated - actual| over the intervals."""
    replicates = numbers.repeated.analyses.replicates
    part = replicates[replicates["metric"] == metric]
    error = (part["estimated"] - part["accuracy"]).abs() * part["n"]
    keys = [part["replicate"], part["model"]]
    return (error.groupby(keys).sum() / part["n"].groupby(keys).sum()).unstack()


def mixture_is_best(metric: str, numbers: Numbers) -> list[Claim]:
    """Return the claims that each single model errs more than the mixture."""
    errors = _calibration_errors(numbers, metric)
    if "MIX" not in errors.columns:
        return []
    return [
        _of_halves(f"error of {name} - MIX", errors[name] - errors["MIX"])
        for name in errors.columns
        if name != "MIX"
    ]


def all_are_good(metric: str, numbers: Numbers) -> list[Claim]:
    """Return the claims that each model errs by less than an interval's width."""
    errors, width = _calibration_errors(numbers, metric), WIDTHS.get(metric, DEFAULT_WIDTH)
    return [
        _of_halves(f"{width:g} - error of {name}", width - errors[name]) for name in errors.columns
    ]


def lowest_estimates_are_too_low(metric: str, numbers: Numbers) -> list[Claim]:
    """Return the claims that accuracy is above the lowest interval of estimates."""
    table = numbers.repeated.analyses.replicates
    part = table[(table["metric"] == metric) & (table["predicted_low"] == 0)]
    return [
        _of_halves(
            f"accuracy of {model} above its lowest interval",
            rows["accuracy"] - rows["predicted_high"],
        )
        for model, rows in part.groupby("model", sort=False)
    ]


def _of_halves(text: str, values: pd.Series) -> Claim:
    """Return a claim about a number of each halving, as many instances on either side."""
    return Claim(text, 1, *repeat_interval(values.to_numpy(), 1.0))


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
    claims
        The numbers behind; none if the study has none of them.
    applicable
        Whether the study is about what the paper is about.
    """

    name: str
    statement: str
    claims: tuple[Claim, ...]
    applicable: bool = True

    @property
    def rule(self) -> str:
        """What decides."""
        is_null = any(claim.sign == 0 for claim in self.claims)
        return NO_EVIDENCE_RULE if is_null else SIGN_RULE

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


CONCLUSIONS: tuple[tuple[str, str, Callable[[Numbers], list[Claim]]], ...] = (
    (
        "tg_worse",
        "TG correlates less with accuracy than HP (Kendall, every metric)",
        partial(effects_have, "kendall", {"TG": PAPER_METRICS}, -1),
    ),
    (
        "se_helps_jaccard",
        "SE correlates more with Jaccard accuracy than HP (Kendall)",
        partial(effects_have, "kendall", {"SE": ("jaccard",)}, 1),
    ),
    (
        "ce_helps_hamming",
        "CE correlates more with Hamming accuracy than HP (Kendall)",
        partial(effects_have, "kendall", {"CE": ("hamming",)}, 1),
    ),
    (
        "hp_for_exact",
        "HP is enough for exact match: no evidence that SE or CE differ (Kendall)",
        partial(effects_have, "kendall", {"SE": ("exact",), "CE": ("exact",)}, 0),
    ),
    (
        "classifier_order",
        "The more a classifier models, the higher the correlation: Indep < CT < ECC (Kendall)",
        partial(classifier_order, "kendall"),
    ),
    (
        "enron_differs_most",
        "Of the data sets, Enron has the greatest effect (Kendall)",
        partial(greatest_data_effect, "kendall", "enron"),
    ),
    (
        "slashdot_prefers_entropy",
        "SE and CE correlate more than HP on Slashdot (Kendall, every metric and classifier)",
        partial(better_on, "slashdot", ("SE", "CE")),
    ),
    (
        "se_most_robust",
        "SE is the most robust: its correlation is explained least by data, classifier and metric "
        "(Kendall, R2 below every other candidate's)",
        partial(extreme_fit, "kendall", "SE", -1),
    ),
    (
        "tg_least_robust",
        "TG is the least robust (Kendall, R2 above every other candidate's)",
        partial(extreme_fit, "kendall", "TG", 1),
    ),
    (
        "pearson_tg_worse",
        "TG correlates less with accuracy than HP (Pearson, every metric)",
        partial(effects_have, "pearson", {"TG": PAPER_METRICS}, -1),
    ),
    (
        "pearson_se_helps_jaccard",
        "SE correlates more with Jaccard accuracy than HP (Pearson)",
        partial(effects_have, "pearson", {"SE": ("jaccard",)}, 1),
    ),
    (
        "pearson_no_others",
        "No evidence for any other candidate over HP (Pearson: CE, ME, CS; SE but for Jaccard)",
        partial(
            effects_have,
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
        partial(classifier_order, "pearson"),
    ),
    (
        "pearson_ce_cs_most_robust",
        "CE and CS are the most robust: fewest terms significant at 10% (Pearson)",
        partial(fewest_significant, "pearson", ("CE", "CS"), 0.1),
    ),
    (
        "pearson_se_least_explained",
        "SE's correlation has the lowest R2 (Pearson)",
        partial(extreme_fit, "pearson", "SE", -1),
    ),
    (
        "mix_best_for_jaccard",
        "The mixture estimates Jaccard accuracy best",
        partial(mixture_is_best, "jaccard"),
    ),
    (
        "mix_best_for_exact",
        "The mixture estimates exact match best",
        partial(mixture_is_best, "exact"),
    ),
    (
        "all_good_for_hamming",
        "Any model estimates Hamming accuracy well: mean error below an interval's width",
        partial(all_are_good, "hamming"),
    ),
    (
        "jaccard_low_end",
        "The lowest estimates of Jaccard accuracy are far too low, for every model",
        partial(lowest_estimates_are_too_low, "jaccard"),
    ),
)
"""Name, statement and what makes the claims. A new conclusion is an entry here."""


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
        Conclusion(name, statement, tuple(make(numbers)), applicable)
        for name, statement, make in CONCLUSIONS
    ]
    return sorted(drawn, key=lambda conclusion: VERDICTS.index(conclusion.verdict))
