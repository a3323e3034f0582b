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

The conclusions are rows of `published/conclusions.csv`; a new one is a row there, and a new kind of
number is a function here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import norm
from scipy.stats import t as student

from labelsure._runtime.typing import Floats
from labelsure.errors import unknown_name
from labelsure.study.analyses import ALL, FIT, Analyses
from labelsure.study.mixture import DEFAULT_WIDTH, WIDTHS

PUBLISHED = ("conclusions", "correlations", "datasets", "intervals", "models")
SIGNIFICANT = 0.1
"""The level at which the paper counts the terms of its models."""

HOLDS, FAILS, UNDECIDED = "holds", "does not hold", "undecided"
NOT_APPLICABLE = "not applicable"
VERDICTS = (FAILS, UNDECIDED, HOLDS, NOT_APPLICABLE)
"""In the order in which they are reported."""


def published_table(table: str) -> pd.DataFrame:
    """Return a table of what the paper prints.

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
    def side(self) -> int:
        """Where the interval is: 1 above 0, -1 below, 0 if it contains 0."""
        return int(self.low > 0) - int(self.high < 0)

    @property
    def contradicted(self) -> bool:
        """Whether the interval is where the paper says that it is not."""
        return self.side not in (0, self.sign)


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
    def verdict(self) -> str:
        """Return "holds", "does not hold", "undecided" or "not applicable"."""
        if not self.applicable or all(claim.missing for claim in self.claims):
            return NOT_APPLICABLE
        if any(claim.contradicted for claim in self.claims):
            return FAILS
        supported = all(c.side == c.sign and not c.missing for c in self.claims)
        return HOLDS if supported else UNDECIDED


def draw_conclusions(analyses: Analyses) -> list[Conclusion]:
    """Return every conclusion of the paper with its verdict, those that do not hold first."""
    numbers = Numbers(analyses)
    studied = set(analyses.scores["dataset"])
    applicable = studied <= set(published_table("datasets")["dataset"])
    drawn = [
        Conclusion(str(name), rows["statement"].iloc[0], tuple(numbers.claims(rows)), applicable)
        for name, rows in published_table("conclusions").groupby("name", sort=False)
    ]
    return sorted(drawn, key=lambda conclusion: VERDICTS.index(conclusion.verdict))


def repeat_interval(
    values: Floats, test_to_training: float, error: float = np.nan
) -> tuple[float, float, float]:
    """Return mean and 95% interval of a number over repeats of a split of the same data.

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


Found = Iterator[tuple[Any, ...]]
"""What each number is, its value in each repeat, its standard error, its p-value."""


class Numbers:
    """The numbers that conclusions ask for, in each repeat.

    Parameters
    ----------
    analyses
        Of a study.
    """

    def __init__(self, analyses: Analyses) -> None:
        self.analyses = analyses
        means = analyses.datasets.groupby("dataset")[["n_test", "n_train"]].mean()
        self.ratio = float((means["n_test"] / means["n_train"]).mean())

    def claims(self, rows: pd.DataFrame) -> Iterator[Claim]:
        """Yield the claims of some rows of the table of conclusions."""
        row: Any
        for row in rows.itertuples(index=False):
            make: Callable[..., Found] = getattr(self, f"_{row.quantity}")
            # Halvings have as many instances on either side.
            ratio = self.ratio if row.association else 1.0
            for text, values, *more in make(row.association, row.subjects.split(), row.on.split()):
                error, p = (*more, np.nan, np.nan)[:2]
                interval = repeat_interval(np.asarray(values, dtype=float), ratio, error)
                yield Claim(text, int(row.sign), *interval, p)

    def _one(self, association: str, metric: str, term: str) -> tuple[Floats, float, float]:
        """Return an effect in each repeat, its error in the first, and its p-value overall."""
        models = self.analyses.models
        is_asked = (models["association"] == association) & (models["analysis"] == "effects")
        rows = models[is_asked & (models["of"] == metric) & (models["term"] == term)]
        rows = rows.dropna(subset=["estimate"])
        means, each = rows[rows["repeat"] == ALL], rows[rows["repeat"] != ALL]
        if not len(each):
            return np.empty(0), np.nan, np.nan
        p = means["p_value"].iloc[0] if len(means) else np.nan
        return each["estimate"].to_numpy(), each["standard_error"].iloc[0], p

    def _robustness(self, association: str) -> pd.DataFrame:
        """Return Analysis 2 or 4 of each repeat."""
        models = self.analyses.models
        is_asked = (models["association"] == association) & (models["analysis"] == "robustness")
        return models[is_asked & (models["repeat"] != ALL)]

    def _effect(self, association: str, terms: list[str], metrics: list[str]) -> Found:
        for term in terms:
            for metric in metrics:
                yield (f"{term} on {metric}", *self._one(association, metric, term))

    def _order(self, association: str, names: list[str], metrics: list[str]) -> Found:
        low, middle, top = names
        for metric in metrics:
            below, error, _ = self._one(association, metric, low)
            effect, middle_error, p = self._one(association, metric, middle)
            yield f"{top} - {middle} on {metric}", -effect, middle_error, p
            # Two treatment contrasts with one baseline: their difference has the same error.
            above = effect - below if len(effect) == len(below) else ()
            yield f"{middle} - {low} on {metric}", above, error

    def _largest(self, association: str, names: list[str], metrics: list[str]) -> Found:
        (name,) = names
        _, *others = (d for d in published_table("datasets")["dataset"] if d != name)
        for metric in metrics:
            chosen, *effects = (self._one(association, metric, d)[0] for d in (name, *others))
            above: Any = ()
            if all(len(values) == len(chosen) for values in effects):
                above = np.abs(chosen) - np.abs(effects).max(axis=0)
            yield f"|{name}| - the next largest, {metric}", above

    def _above_hp(self, association: str, candidates: list[str], datasets: list[str]) -> Found:
        table = self.analyses.correlations
        table = table[table["association"] == association]
        table = table[table["dataset"].isin(datasets) & table["candidate"].isin(candidates)]
        for (metric, classifier, candidate), part in table.groupby(
            ["metric", "classifier", "candidate"], sort=False
        ):
            error = part["standard_error"].iloc[0]
            yield f"{candidate} - HP, {classifier}, {metric}", part["difference"], error

    def _r_squared(self, association: str, candidates: list[str], _: list[str]) -> Found:
        table, (name,) = self._robustness(association), candidates
        wide = table[table["term"] == "r_squared"].pivot(
            index="repeat", columns="of", values="estimate"
        )
        wide = wide.dropna()
        for other in wide if name in wide else ():
            if other != name:
                yield f"R2 of {name} - {other}", wide[name] - wide[other]

    def _significant(self, association: str, best: list[str], _: list[str]) -> Found:
        table = self._robustness(association)
        table = table[table["factor"] != FIT]
        groups = (table["p_value"] < SIGNIFICANT).groupby([table["repeat"], table["of"]])
        wide = groups.sum().unstack().dropna().astype(float)
        if set(best) <= set(wide):
            most, text = wide[best].max(axis=1), " or ".join(best)
            for name in wide.columns.drop(best):
                yield f"significant terms of {name} - {text}", wide[name] - most

    def _errors(self, metric: str) -> pd.DataFrame:
        """Return each model's mean |estimated - actual| over the intervals, in each halving."""
        table = self.analyses.replicates
        part = table[table["metric"] == metric]
        keys = [part["replicate"], part["model"]]
        error = ((part["estimated"] - part["accuracy"]).abs() * part["n"]).groupby(keys).sum()
        return (error / part["n"].groupby(keys).sum()).unstack()

    def _mixture(self, _: str, names: list[str], metrics: list[str]) -> Found:
        errors, (mixture,) = self._errors(*metrics), names
        for name in errors if mixture in errors else ():
            if name != mixture:
                yield f"error of {name} - {mixture}", errors[name] - errors[mixture]

    def _small_error(self, _: str, __: list[str], metrics: list[str]) -> Found:
        width = WIDTHS.get(metrics[0], DEFAULT_WIDTH)
        for name, error in self._errors(*metrics).items():
            yield f"{width:g} - error of {name}", width - error

    def _low_end(self, _: str, __: list[str], metrics: list[str]) -> Found:
        table = self.analyses.replicates
        part = table[table["metric"].isin(metrics) & (table["predicted_low"] == 0)]
        for model, rows in part.groupby("model", sort=False):
            above = rows["accuracy"] - rows["predicted_high"]
            yield f"accuracy of {model} above its lowest interval", above
