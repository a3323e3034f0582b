"""Conclusions of the paper, and whether a study of ours supports them.

A conclusion is one or more claims about numbers. The verdict on a claim is the paper's own: its
test, applied to our means over splits, at its level.

- A claimed effect holds if our number has its sign and is significant at the level of the stars
  that are printed for it; where none are printed, the sign decides.
- A claimed absence holds if our number is not significant at 10%.
- Where the paper draws a conclusion without a test (an R2, a count, an order), it holds if our
  number lies on the same side of the bound.

A conclusion *holds* if all of its claims do, *does not hold* if one does not, is *undecided* if a
study lacks some of the numbers, and *not applicable* if it lacks all of them or has other data sets
than the paper's. Applied to the published numbers, this gives the paper's conclusions: see
`published_conclusions`.

A verdict is also *stable* or not: stable if the 95% interval over splits leaves the sign.
Splits share their data, so its variance is enlarged by the ratio of test to training instances
(Nadeau and Bengio's correction).

The conclusions are rows of `published/conclusions.csv`; a new one is a row there, and a new kind of
number is a function here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import t as student

from labelsure._runtime.typing import Floats
from labelsure.errors import unknown_name
from labelsure.study.analyses import ALL, BASELINE, KEYS, LEVELS, Analyses, over_repeats

PUBLISHED = ("conclusions", "correlations", "datasets", "intervals", "models")
NO_TEST = 1.0
"""Level of claims that the paper makes without a test."""

HOLDS, FAILS, UNDECIDED = "holds", "does not hold", "undecided"
NOT_APPLICABLE = "not applicable"
VERDICTS = (FAILS, UNDECIDED, HOLDS, NOT_APPLICABLE)
"""Verdicts in the order of reports."""

YES, NO, ONE_SPLIT = "yes", "no", "one split"


def published_table(table: str) -> pd.DataFrame:
    """A table of the paper.

    Examples
    --------
    >>> published_table("datasets")[["dataset", "n_samples", "n_labels"]].head(2)
        dataset  n_samples  n_labels
    0  emotions        593         6
    1     scene       2407         6
    """
    if table not in PUBLISHED:
        raise unknown_name("table of the paper", table, PUBLISHED)
    source = files("labelsure.study") / "published" / f"{table}.csv"
    with source.open(encoding="utf-8") as stream:
        frame = pd.read_csv(stream)
    texts = ("arrows", "stars", "association", "subjects", "on")
    return frame.fillna({name: "" for name in texts if name in frame})


@dataclass(frozen=True)
class Claim:
    """A number that should be above a bound (sign 1), below it (-1) or equal to it (0).

    Parameters
    ----------
    text
        Name of the number.
    sign
        The side of the bound, by the paper.
    estimate, p_value
        Ours: the mean over splits and its p-value by the paper's test, the regression over all
        cells. NaN where the study lacks the number, or the paper has no test of it.
    paper, paper_p
        The published number and its p-value.
    level
        Level of the test: that of the printed stars, 0.1 for a claimed absence, 1 without a test.
    bound
        Usually 0.
    low, high
        95% interval over splits; infinite where there is one split.
    n_splits
        Number of splits that have the number.
    """

    text: str
    sign: int
    estimate: float
    p_value: float = np.nan
    paper: float = np.nan
    paper_p: float = np.nan
    level: float = NO_TEST
    bound: float = 0.0
    low: float = -np.inf
    high: float = np.inf
    n_splits: int = 1

    @property
    def missing(self) -> bool:
        """Whether the study lacks the number, or its test."""
        return bool(np.isnan(self.p_value if self.level < NO_TEST else self.estimate))

    @property
    def holds(self) -> bool:
        """Whether the number is as the paper says; False where it is missing."""
        gap, is_tested = self.estimate - self.bound, self.level < NO_TEST
        if self.sign == 0:
            return self.p_value >= self.level if is_tested else gap == 0
        return gap * self.sign > 0 and (not is_tested or self.p_value < self.level)

    @property
    def stable(self) -> str:
        """Whether the interval over splits leaves the sign: "yes", "no" or "one split"."""
        if self.n_splits < 2:
            return ONE_SPLIT
        low, high = self.low - self.bound, self.high - self.bound
        leaves = low <= 0 <= high if self.sign == 0 else low > 0 or high < 0
        return YES if leaves else NO


@dataclass(frozen=True)
class Conclusion:
    """A conclusion of the paper with the verdict on it.

    Parameters
    ----------
    name
        Identifier.
    statement
        The paper's words, shortened.
    claims
        Numbers that it rests on; empty if the study has none of them.
    applicable
        Whether the study has the paper's data sets.
    """

    name: str
    statement: str
    claims: tuple[Claim, ...]
    applicable: bool = True

    @property
    def verdict(self) -> str:
        """One of "holds", "does not hold", "undecided" and "not applicable"."""
        present = [claim for claim in self.claims if not claim.missing]
        if not self.applicable or not present:
            return NOT_APPLICABLE
        if not all(claim.holds for claim in present):
            return FAILS
        return HOLDS if len(present) == len(self.claims) else UNDECIDED

    @property
    def stable(self) -> str:
        """Stability of all claims: "no" if one is not stable, "one split" if one rests on that."""
        answers = {claim.stable for claim in self.claims}
        return next((answer for answer in (NO, ONE_SPLIT) if answer in answers), YES)


@dataclass(frozen=True)
class Evidence:
    """Numbers that conclusions are about: means over splits, those of one split, or the paper's.

    Parameters
    ----------
    correlations
        Result of `over_repeats`, with association.
    models
        Columns of `Analyses.models`.
    intervals
        Result of `interval_table`; no rows for single splits.
    """

    correlations: pd.DataFrame
    models: pd.DataFrame
    intervals: pd.DataFrame

    @cached_property
    def _terms(self) -> dict[tuple[str, ...], tuple[float, float]]:
        columns = ["association", "analysis", "of", "term", "estimate", "p_value"]
        rows = self.models[columns].dropna(subset=["estimate"]).itertuples(index=False)
        return {tuple(row[:4]): (float(row[4]), float(row[5])) for row in rows}

    def term(self, association: str, analysis: str, of: str, term: str) -> tuple[float, float]:
        """Estimate and p-value of a term of a model; NaN where there is none."""
        return self._terms.get((association, analysis, of, term), (np.nan, np.nan))

    def robustness(self, association: str, term: str) -> dict[str, float]:
        """Term or statistic of Analysis 2 or 4, by candidate."""
        key = (association, "robustness", term)
        return {k[2]: value for k, (value, _) in self._terms.items() if (k[0], k[1], k[3]) == key}


def published_evidence() -> Evidence:
    """The paper's numbers as they are printed.

    A p-value is that of the printed estimate and standard error, clipped to the range that the
    stars say; for arrows it is the upper end of theirs. A printed -0.000 is a number below 0.
    """
    correlations = published_table("correlations").assign(association="kendall")
    cell = KEYS[:-1]
    baseline = correlations[correlations["candidate"] == BASELINE].set_index(cell)["correlation"]
    baseline_of_row = baseline.loc[pd.MultiIndex.from_frame(correlations[cell])].to_numpy()
    models = published_table("models")
    n = models[models["term"] == "n"].set_index(["association", "analysis", "of"])["estimate"]
    keys = pd.MultiIndex.from_frame(models[["association", "analysis", "of"]])
    n_terms = models["standard_error"].notna().groupby([keys.get_level_values(k) for k in range(3)])
    df_residual = n.loc[keys].to_numpy() - n_terms.transform("sum").to_numpy() - 1
    with np.errstate(divide="ignore", invalid="ignore"):
        t_values = models["estimate"].abs() / models["standard_error"]
    p_values = np.clip(
        2 * student.sf(t_values.fillna(0), df_residual), *_p_value_range(models["stars"])
    )
    is_minus_zero = (models["estimate"] == 0) & np.signbit(models["estimate"])
    return Evidence(
        correlations.assign(
            difference=correlations["correlation"] - baseline_of_row,
            p_value=_p_value_range(correlations["arrows"])[1],
        ),
        models.assign(
            estimate=models["estimate"].mask(is_minus_zero, -1e-6),
            p_value=np.where(models["standard_error"].isna(), np.nan, p_values),
        ),
        published_table("intervals"),
    )


def _p_value_range(marks: pd.Series) -> tuple[Floats, Floats]:
    """Least and largest p-value that 0 to 3 printed marks stand for."""
    ends = np.array([1.0, *LEVELS, 0.0])
    n_marks = marks.str.len().to_numpy(dtype=int)
    largest = np.where(n_marks > 0, np.nextafter(ends[n_marks], 0), 1.0)
    return ends[n_marks + 1], largest


def draw_conclusions(analyses: Analyses) -> list[Conclusion]:
    """All conclusions of the paper with their verdicts, those that do not hold first."""
    correlations, models = analyses.correlations, analyses.models
    means = [
        over_repeats(part).assign(association=association)
        for association, part in correlations.groupby("association", sort=False)
    ]
    ours = Evidence(pd.concat(means), models[models["repeat"] == ALL], analyses.intervals)
    splits = [
        Evidence(
            correlations[correlations["repeat"] == repeat],
            models[models["repeat"] == repeat],
            analyses.intervals[:0],
        )
        for repeat in correlations["repeat"].unique()
    ]
    sizes = analyses.datasets.groupby("dataset")[["n_test", "n_train"]].mean()
    ratio = float((sizes["n_test"] / sizes["n_train"]).mean())
    studied = set(analyses.scores["dataset"])
    applicable = studied <= set(published_table("datasets")["dataset"])
    return evaluate_conclusions(ours, splits, ratio, applicable=applicable)


def published_conclusions() -> list[Conclusion]:
    """Verdicts on the paper's own numbers: all hold.

    Examples
    --------
    >>> {conclusion.verdict for conclusion in published_conclusions()}
    {'holds'}
    """
    return evaluate_conclusions(published_evidence())


def evaluate_conclusions(
    ours: Evidence,
    splits: Sequence[Evidence] = (),
    ratio: float = np.nan,
    *,
    applicable: bool = True,
) -> list[Conclusion]:
    """All conclusions of the paper with the verdicts on some numbers.

    Parameters
    ----------
    ours
        Means over splits.
    splits
        Numbers of single splits.
    ratio
        Ratio of test to training instances.
    applicable
        Whether the numbers are of the paper's data sets.
    """
    paper = published_evidence()
    drawn = []
    for name, rows in published_table("conclusions").groupby("name", sort=False):
        claims: list[Claim] = []
        row: Any
        for row in rows.itertuples(index=False):
            query = Query(row.association, row.subjects.split(), row.on.split())
            printed, own, *single = (
                {number.text: number for number in QUANTITIES[row.quantity](evidence, query)}
                for evidence in (paper, ours, *splits)
            )
            for text in dict.fromkeys([*printed, *own]) if own else ():
                numbers = [by_text.get(text, Number(text)) for by_text in (printed, own, *single)]
                claims.append(_make_claim(row, *numbers, test_to_training=ratio))
        drawn.append(Conclusion(str(name), rows["statement"].iloc[0], tuple(claims), applicable))
    return sorted(drawn, key=lambda conclusion: VERDICTS.index(conclusion.verdict))


def _make_claim(
    row: Any, published: Number, own: Number, *single: Number, test_to_training: float
) -> Claim:
    """Claim of a row of the conclusions about a number, which is also that of `single` splits."""
    sign = int(row.sign)
    values = np.array([number.value for number in single if not np.isnan(number.value)])
    interval = interval_over_splits(values, test_to_training)
    test = _test_level(published.p_value, sign), float(row.bound)
    return Claim(own.text, sign, *own[1:], *published[1:], *test, *interval, len(values))


def _test_level(paper_p: float, sign: int) -> float:
    """Level of a claim: that of its printed stars, or 10% for a claimed absence."""
    if np.isnan(paper_p):
        return NO_TEST
    return LEVELS[0] if sign == 0 else min((x for x in LEVELS if paper_p < x), default=NO_TEST)


def interval_over_splits(values: Floats, test_to_training: float) -> tuple[float, float]:
    """95% interval of a number over splits of the same data; infinite for one split.

    Examples
    --------
    >>> low, high = interval_over_splits(np.array([0.1, 0.2, 0.3]), 2 / 3)
    >>> f"{low:.2f} to {high:.2f}"
    '-0.23 to 0.63'
    """
    n = len(values)
    if n < 2:
        return -np.inf, np.inf
    deviation = values.std(ddof=1) * np.sqrt(1 / n + test_to_training)
    reach = float(student.ppf(0.975, n - 1) * deviation)
    return float(values.mean()) - reach, float(values.mean()) + reach


class Number(NamedTuple):
    """A number that a claim is about; its p-value where the paper tests it."""

    text: str
    value: float = np.nan
    p_value: float = np.nan


class Query(NamedTuple):
    """Selection of numbers by a row of `published/conclusions.csv`."""

    association: str
    subjects: list[str]
    on: list[str]


Numbers = Iterator[Number]


def _terms(analysis: str, text: str, *, is_tested: bool = True) -> Callable[..., Numbers]:
    """Quantity: terms of Analysis 1 to 4, with or without their p-values."""

    def find(evidence: Evidence, q: Query) -> Numbers:
        for of, term in product(q.on, q.subjects):
            value, p = evidence.term(q.association, analysis, of, term)
            yield Number(text.format(term=term, of=of), value, p if is_tested else np.nan)

    return find


def _order(evidence: Evidence, q: Query) -> Numbers:
    low, middle, top = q.subjects
    for metric in q.on:
        below, p_below = evidence.term(q.association, "effects", metric, low)
        effect, p_effect = evidence.term(q.association, "effects", metric, middle)
        yield Number(f"{top} - {low} on {metric}", -below, p_below)
        yield Number(f"{top} - {middle} on {metric}", -effect, p_effect)
        yield Number(f"{middle} - {low} on {metric}", effect - below)


def _largest(evidence: Evidence, q: Query) -> Numbers:
    (name,) = q.subjects
    _, *others = (d for d in published_table("datasets")["dataset"] if d != name)
    for metric in q.on:
        size, *sizes = (
            abs(evidence.term(q.association, "effects", metric, d)[0]) for d in (name, *others)
        )
        yield Number(f"|{name}| - the next largest, {metric}", size - max(sizes))


def _cells(evidence: Evidence, q: Query) -> pd.DataFrame:
    table = evidence.correlations
    table = table[table["association"] == q.association]
    return table[table["candidate"].isin(q.subjects)].dropna(subset=["correlation"])


def _mean_correlation(evidence: Evidence, q: Query) -> Numbers:
    table = _cells(evidence, q)
    for (candidate, metric), part in table.groupby(["candidate", "metric"], sort=False):
        yield Number(f"mean correlation of {candidate}, {metric}", part["correlation"].mean())


def _above_hp(evidence: Evidence, q: Query) -> Numbers:
    table = _cells(evidence, q)
    row: Any
    for row in table[table["dataset"].isin(q.on)].itertuples():
        text = f"{row.candidate} - HP, {row.classifier}, {row.metric}"
        yield Number(text, row.difference, row.p_value)


def _cells_above_hp(evidence: Evidence, q: Query) -> Numbers:
    table = _cells(evidence, q)
    for name, part in table.groupby("candidate", sort=False):
        n_above = ((part["difference"] > 0) & (part["p_value"] < LEVELS[0])).sum()
        yield Number(f"cells in which {name} is significantly above HP", float(n_above))


def _r_squared(evidence: Evidence, q: Query) -> Numbers:
    values = evidence.robustness(q.association, "r_squared")
    (name,) = q.subjects
    for other in sorted(values) if name in values else ():
        if other != name:
            yield Number(f"R2 of {name} - {other}", values[name] - values[other])


def _n_significant(evidence: Evidence, association: str) -> dict[str, int]:
    """Number of terms of Analysis 2 or 4 that are significant at 10%, by candidate."""
    table = evidence.models
    is_model = (table["association"] == association) & (table["analysis"] == "robustness")
    tested = table[is_model & table["standard_error"].notna()]
    counts = (tested["p_value"] < LEVELS[0]).groupby(tested["of"]).sum()
    return {str(name): int(n) for name, n in counts.items()}


def _significant(evidence: Evidence, q: Query) -> Numbers:
    counts = _n_significant(evidence, q.association)
    for name in q.subjects:
        if name in counts:
            yield Number(f"significant terms of {name}", float(counts[name]))


def _fewest_significant(evidence: Evidence, q: Query) -> Numbers:
    counts, best = _n_significant(evidence, q.association), q.subjects
    if set(best) <= set(counts):
        most, text = max(counts[name] for name in best), " or ".join(best)
        for name in sorted(counts.keys() - set(best)):
            yield Number(f"significant terms of {name} - {text}", float(counts[name] - most))


def _by_model(
    evidence: Evidence, metric: str, value: Callable[[pd.DataFrame], float]
) -> dict[str, float]:
    """A number of each model's interval table."""
    table = evidence.intervals
    part = table[table["metric"] == metric]
    return {str(model): value(rows) for model, rows in part.groupby("model", sort=False)}


def _mean_error(rows: pd.DataFrame) -> float:
    """Mean distance of the middle of actual accuracy from that of the estimates."""
    actual, estimated = (rows[f"{of}low"] + rows[f"{of}high"] for of in ("", "predicted_"))
    return float((actual - estimated).abs().mean() / 2)


def _relative_to_best(
    text: str, value: Callable[[pd.DataFrame], float], best: Callable[..., float]
) -> Callable[..., Numbers]:
    """Quantity: a model's number minus the best number of the other models."""

    def find(evidence: Evidence, q: Query) -> Numbers:
        (name,) = q.subjects
        for metric in q.on:
            values = _by_model(evidence, metric, value)
            others = [number for model, number in values.items() if model != name]
            if name in values and others:
                yield Number(text.format(name, metric), values[name] - best(others))

    return find


def _count(column: str) -> Callable[[pd.DataFrame], float]:
    return lambda rows: float(rows[column].sum())


def _model_error(evidence: Evidence, q: Query) -> Numbers:
    for metric in q.on:
        for model, error in _by_model(evidence, metric, _mean_error).items():
            yield Number(f"mean error of {model}, {metric}", error)


def _low_end(evidence: Evidence, q: Query) -> Numbers:
    table = evidence.intervals
    for metric in q.on:
        lowest = table[(table["metric"] == metric) & (table["predicted_low"] == 0)]
        row: Any
        for row in lowest.dropna(subset=["low"]).itertuples():
            yield Number(f"least actual accuracy of the lowest estimates, {row.model}", row.low)


QUANTITIES: dict[str, Callable[[Evidence, Query], Numbers]] = {
    "effect": _terms("effects", "{term} on {of}"),
    "sign_of_effect": _terms("effects", "{term} on {of}", is_tested=False),
    "order": _order,
    "largest": _largest,
    "fit": _terms("effects", "{term} of {of}"),
    "mean_correlation": _mean_correlation,
    "above_hp": _above_hp,
    "cells_above_hp": _cells_above_hp,
    "r_squared": _r_squared,
    "significant": _significant,
    "fewest_significant": _fewest_significant,
    "gradient": _terms("robustness", "{term}, {of}"),
    "sign_of_gradient": _terms("robustness", "{term}, {of}", is_tested=False),
    "most_matches": _relative_to_best(
        "interval matches of {} - most of another, {}", _count("bold"), max
    ),
    "fewest_overestimates": _relative_to_best(
        "overestimates of {} - fewest of another, {}", _count("underlined"), min
    ),
    "least_error": _relative_to_best("mean error of {} - least of another, {}", _mean_error, min),
    "model_error": _model_error,
    "low_end": _low_end,
}
"""Functions of the quantities that `published/conclusions.csv` names."""
