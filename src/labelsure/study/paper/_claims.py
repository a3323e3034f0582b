"""Claims about numbers of a study, and the intervals over repeats that decide them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from scipy.stats import norm
from scipy.stats import t as student

from labelsure._runtime.typing import Floats
from labelsure.study.analyses._correlations import PAPER_METRICS
from labelsure.study.analyses._mixture_intervals import DEFAULT_WIDTH, WIDTHS

if TYPE_CHECKING:
    from labelsure.study.paper._published import RepeatedAnalyses


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
        self.replicates = repeated.analyses.replicates
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


Maker = Callable[[Numbers], list[Claim]]


def effects_have(association: str, terms: dict[str, tuple[str, ...]], sign: int) -> Maker:
    """Return the claims that effects of some terms on some metrics have a sign."""

    def make(numbers: Numbers) -> list[Claim]:
        claims = []
        for term, metrics in terms.items():
            for metric in metrics:
                values, error = numbers.effect(association, metric, term)
                p = numbers.p_value(association, metric, term)
                claims.append(numbers.claim(f"{term} on {metric}", sign, values, error, p))
        return claims

    return make


def classifier_order(association: str) -> Maker:
    """Return the claims that Indep is below CT and CT below ECC."""

    def make(numbers: Numbers) -> list[Claim]:
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

    return make


def extreme_fit(association: str, candidate: str, sign: int) -> Maker:
    """Return the claims that a candidate's R2 is above (1) or below (-1) each other's."""

    def make(numbers: Numbers) -> list[Claim]:
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

    return make


def fewest_significant(association: str, best: tuple[str, ...], level: float) -> Maker:
    """Return the claims that every other candidate has more significant terms than these."""

    def make(numbers: Numbers) -> list[Claim]:
        table = numbers.repeated.robustness
        table = table[table["association"] == association]
        significant = (table["p_value"] < level).groupby([table["repeat"], table["candidate"]])
        wide = significant.sum().unstack().dropna().astype(float)
        if not set(best) <= set(wide.columns):
            return []
        most = wide[list(best)].max(axis=1)
        return [
            numbers.claim(
                f"significant terms of {other} - {' or '.join(best)}",
                1,
                (wide[other] - most).to_numpy(),
            )
            for other in wide.columns
            if other not in best
        ]

    return make


def greatest_data_effect(association: str, dataset: str) -> Maker:
    """Return the claims that a data set's effect is larger than the other ones'."""
    others = ("scene", "yeast", "stare", "slashdot")

    def make(numbers: Numbers) -> list[Claim]:
        claims = []
        for metric in PAPER_METRICS:
            effects = [numbers.effect(association, metric, name)[0] for name in others]
            chosen = numbers.effect(association, metric, dataset)[0]
            above = NO_VALUES
            if all(len(values) == len(chosen) for values in effects):
                above = np.abs(chosen) - np.abs(effects).max(axis=0)
            claims.append(numbers.claim(f"|{dataset}| - the next largest, {metric}", 1, above))
        return claims

    return make


def better_on(dataset: str, candidates: tuple[str, ...]) -> Maker:
    """Return the claims that candidates are above HP in every cell of a data set."""

    def make(numbers: Numbers) -> list[Claim]:
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

    return make


def _calibration_errors(replicates: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Return each model's error in each halving: mean |estimated - actual| over the intervals."""
    part = replicates[replicates["metric"] == metric]
    error = (part["estimated"] - part["accuracy"]).abs() * part["n"]
    keys = [part["replicate"], part["model"]]
    return (error.groupby(keys).sum() / part["n"].groupby(keys).sum()).unstack()


def mixture_is_best(metric: str) -> Maker:
    """Return the claims that each single model errs more than the mixture."""

    def make(numbers: Numbers) -> list[Claim]:
        errors = _calibration_errors(numbers.replicates, metric)
        if "MIX" not in errors.columns:
            return []
        return [
            _of_halves(f"error of {name} - MIX", (errors[name] - errors["MIX"]).to_numpy())
            for name in errors.columns
            if name != "MIX"
        ]

    return make


def all_are_good(metric: str) -> Maker:
    """Return the claims that each model errs by less than an interval's width."""

    def make(numbers: Numbers) -> list[Claim]:
        errors = _calibration_errors(numbers.replicates, metric)
        width = WIDTHS.get(metric, DEFAULT_WIDTH)
        return [
            _of_halves(f"{width:g} - error of {name}", (width - errors[name]).to_numpy())
            for name in errors.columns
        ]

    return make


def lowest_estimates_are_too_low(metric: str) -> Maker:
    """Return the claims that accuracy is above the lowest interval of estimates."""

    def make(numbers: Numbers) -> list[Claim]:
        table = numbers.replicates
        part = table[(table["metric"] == metric) & (table["predicted_low"] == 0)]
        return [
            _of_halves(
                f"accuracy of {model} above its lowest interval",
                (rows["accuracy"] - rows["predicted_high"]).to_numpy(),
            )
            for model, rows in part.groupby("model", sort=False)
        ]

    return make


def _of_halves(text: str, values: Floats) -> Claim:
    """Return a claim about a number of each halving, as many instances on either side."""
    return Claim(text, 1, *repeat_interval(values, 1.0))
