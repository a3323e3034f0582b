"""The paper's numbers beside ours, how far they agree, and a verdict on each conclusion."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import combinations, permutations
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import pearsonr, spearmanr
from scipy.stats import t as student

from labelsure._runtime.typing import AnyPath, Floats, JsonObject
from labelsure.distributions.candidates import CANDIDATES
from labelsure.study.analyses import ALL, BASELINE, KEYS, Analyses
from labelsure.study.conclusions import (
    FAILS,
    NO,
    NO_TEST,
    VERDICTS,
    YES,
    Claim,
    Conclusion,
    draw_conclusions,
    published_table,
)
from labelsure.study.run import open_run
from labelsure.study.tables import PrintedTable, interval_names

TITLES = {
    "correlations": "Kendall correlations (Analysis 0)",
    "kendall effects": "Effects on Kendall's correlation (Analysis 1)",
    "kendall robustness": "Robustness of Kendall's correlation (Analysis 2)",
    "pearson effects": "Effects on Pearson's correlation (Analysis 3)",
    "pearson robustness": "Robustness of Pearson's correlation (Analysis 4)",
    "intervals": "Estimated and actual accuracy (Analysis 5)",
    "datasets": "Data sets",
}
ROUNDING = {"datasets": 0.0051}
DEFAULT_ROUNDING = 0.00051
"""Largest rounding error of a printed number: half of its last digit, and a little."""

MEASURES = {
    "spearman": "Spearman correlation",
    "pearson": "Pearson correlation",
    "mean_absolute_difference": "mean absolute difference",
    "direction": "share of directions against HP",
    "marked_direction": "the same, where the reference has two arrows or more",
}
UNKNOWN_LABELS = "enron"
"""The paper uses 20 of this data set's 53 labels and does not say which."""


def compare_numbers(analyses: Analyses) -> pd.DataFrame:
    """All published numbers beside ours.

    Returns
    -------
    pandas.DataFrame
        table, row, quantity, published, ours (mean over the repeats), spread (their standard
        deviation), n_repeats, difference (ours - published), low and high (95% prediction interval
        for one more split of the same data), and `miss`: published lies outside of it by more than
        its rounding. Without a second repeat there is no interval, and `miss` is missing.
    """
    correlations, models = analyses.correlations, analyses.models
    ours = _numbers(
        correlations[correlations["association"] == "kendall"],
        models[models["repeat"] != ALL],
        analyses.intervals,
        analyses.datasets,
    )
    paper = _numbers(*map(published_table, ("correlations", "models", "intervals", "datasets")))
    keys = ["table", "row", "quantity"]
    summary = ours.groupby(keys, sort=False)["value"].agg(
        ours="mean", spread="std", n_repeats="count"
    )
    both = paper.rename(columns={"value": "published"}).merge(
        summary.reset_index(), on=keys, how="left"
    )
    return _with_misses(both.fillna({"n_repeats": 0}).astype({"n_repeats": int}))


def _with_misses(both: pd.DataFrame) -> pd.DataFrame:
    n = both["n_repeats"]
    quantile = student.ppf(0.975, np.maximum(n - 1, 1))
    reach = quantile * both["spread"] * np.sqrt(1 + 1 / np.maximum(n, 1))
    rounding = both["table"].map(ROUNDING).fillna(DEFAULT_ROUNDING)
    difference = both["ours"] - both["published"]
    miss = (difference.abs() > reach + rounding).astype("boolean")
    return both.assign(
        difference=difference,
        low=both["ours"] - reach,
        high=both["ours"] + reach,
        miss=miss.mask(reach.isna() | both["published"].isna()),
    )


def _numbers(
    correlations: pd.DataFrame,
    models: pd.DataFrame,
    intervals: pd.DataFrame,
    datasets: pd.DataFrame,
) -> pd.DataFrame:
    """All numbers of four such frames in long form: table, row, quantity, value."""
    intervals = intervals.assign(interval=interval_names(intervals))
    analysis = models["association"] + " " + models["analysis"]
    sizes = ["n_samples", "n_labels", "n_features", "cardinality"]
    parts = []
    for table, frame, rows, quantities in (
        ("correlations", correlations, KEYS, ["correlation"]),
        (analysis, models, ["of", "term"], ["estimate", "standard_error"]),
        ("intervals", intervals, ["metric", "interval", "model"], ["low", "high"]),
        ("datasets", datasets, ["dataset"], sizes),
    ):
        row = frame[rows].astype(str).agg(" / ".join, axis=1) if len(frame) else ""
        long = frame[quantities].astype(float).assign(table=table, row=row)
        long = long.melt(["table", "row"], var_name="quantity")
        # Statistics of a fit have no standard error; the paper prints an interval as NA.
        parts.append(long if table is not analysis else long.dropna(subset=["value"]))
    return pd.concat(parts, ignore_index=True)


def agreement(ours: pd.DataFrame, reference: pd.DataFrame) -> dict[str, float]:
    """Measures of agreement of correlations with a reference, cell by cell.

    Returns
    -------
    dict
        The `MEASURES`, and `n`, the cells that both have. NaN where nothing can be compared.
    """
    means = ours.groupby(KEYS, sort=False)["correlation"].mean().reset_index()
    both = means.merge(reference, on=KEYS, suffixes=("", "_reference"))
    both = both.dropna(subset=["correlation", "correlation_reference"])
    if len(both) < 2:
        return {"n": float(len(both)), **dict.fromkeys(MEASURES, np.nan)}
    x, y = both["correlation"].to_numpy(), both["correlation_reference"].to_numpy()
    return {
        "n": float(len(both)),
        **_association_measures(x, y),
        **_direction_shares(_above_baseline(both)),
    }


def trivial_agreement(reference: pd.DataFrame) -> dict[str, float]:
    """Agreement of a guess without data: each metric's median, and the expected signs."""
    y = reference["correlation"].to_numpy()
    median = reference.groupby("metric")["correlation"].transform("median").to_numpy()
    with_sign = reference[reference["candidate"].isin([*_expected_signs(), BASELINE])]
    gaps = _above_baseline(with_sign.assign(correlation_reference=with_sign["correlation"]))
    gaps["gap"] = gaps["candidate"].map(_expected_signs())
    return {
        "n": float(len(reference)),
        **_association_measures(median, y),
        **_direction_shares(gaps),
    }


def own_agreement(correlations: pd.DataFrame) -> dict[str, float]:
    """Mean agreement between two repeats of one study, over all pairs."""
    repeats = dict(iter(correlations.groupby("repeat")))
    pairs = [
        agreement(repeats[one], repeats[other][[*KEYS, "correlation", "arrows"]])
        for one, other in permutations(repeats, 2)
    ]
    return {
        name: float(np.mean([pair[name] for pair in pairs])) if pairs else np.nan
        for name in ("n", *MEASURES)
    }


def agreement_by_dataset(correlations: pd.DataFrame) -> pd.DataFrame:
    """Distance of one split from the paper, and from another split of ours.

    Returns
    -------
    pandas.DataFrame
        dataset, classifier ("all" for the three together), paper (mean absolute difference of the
        correlations of one split from the paper's, over all splits), own (of two splits from each
        other, over all pairs) and their ratio. Missing with one split.
    """
    reference = published_table("correlations").set_index(KEYS)["correlation"]
    wide = correlations.pivot(index=KEYS, columns="repeat", values="correlation").dropna()
    wide = wide[wide.index.isin(reference.index)]
    pairs = list(combinations(wide.columns, 2))
    gaps = pd.DataFrame(
        {
            "paper": wide.sub(reference.reindex(wide.index), axis=0).abs().mean(axis=1),
            "own": sum((wide[a] - wide[b]).abs() for a, b in pairs) / max(len(pairs), 1),
        }
    ).reset_index()
    if not pairs:
        gaps["own"] = np.nan
    both = pd.concat([gaps, gaps.assign(classifier="all")])
    means = both.groupby(["dataset", "classifier"], sort=False)[["paper", "own"]].mean()
    return means.assign(ratio=means["paper"] / means["own"]).reset_index()


def _expected_signs() -> dict[str, int]:
    """Sign of each difference from HP in the trivial guess: TG is lower, the others are higher."""
    return {name: candidate.sign for name, candidate in CANDIDATES.items() if candidate.sign}


def _mean_or_nan(values: pd.Series) -> float:
    return float(values.mean()) if len(values) else np.nan


def _association_measures(x: Floats, y: Floats) -> dict[str, float]:
    vary = np.ptp(x) > 0 and np.ptp(y) > 0
    return {
        "spearman": float(spearmanr(x, y).statistic) if vary else np.nan,
        "pearson": float(pearsonr(x, y).statistic) if vary else np.nan,
        "mean_absolute_difference": float(np.abs(x - y).mean()),
    }


def _above_baseline(both: pd.DataFrame) -> pd.DataFrame:
    """Difference of each candidate from HP in its cell: `gap` (ours) and `reference`."""
    cell, is_baseline = KEYS[:-1], both["candidate"] == BASELINE
    baseline = both.loc[is_baseline, [*cell, "correlation", "correlation_reference"]]
    others = both[~is_baseline].merge(baseline, on=cell, suffixes=("", "_HP"))
    return others[["candidate", "arrows"]].assign(
        gap=others["correlation"] - others["correlation_HP"],
        reference=others["correlation_reference"] - others["correlation_reference_HP"],
    )


def _direction_shares(gaps: pd.DataFrame) -> dict[str, float]:
    same = np.sign(gaps["gap"]) == np.sign(gaps["reference"])
    marked = same[gaps["arrows"].str.len() >= 2]
    return {"direction": _mean_or_nan(same), "marked_direction": _mean_or_nan(marked)}


@dataclass(frozen=True)
class PaperCheck:
    """Comparison of a study with the paper.

    Parameters
    ----------
    conclusions
        Conclusions with verdicts, those that do not hold first.
    summaries
        measure, ours, least and most (of single repeats, as the paper had one), without (Enron,
        whose labels in the paper are unknown), trivial (a guess without data) and own (two of our
        repeats with each other).
    datasets
        Agreement by data set and classifier, see `agreement_by_dataset`.
    numbers
        Every published number beside ours, see `compare_numbers`.
    """

    conclusions: list[Conclusion]
    summaries: pd.DataFrame
    datasets: pd.DataFrame
    numbers: pd.DataFrame

    @property
    def misses(self) -> list[Conclusion]:
        """The conclusions of the paper that do not hold here."""
        return [c for c in self.conclusions if c.verdict == FAILS]

    def verdicts(self) -> dict[str, int]:
        """Number of conclusions of each verdict."""
        counts = Counter(c.verdict for c in self.conclusions)
        return {verdict: counts[verdict] for verdict in VERDICTS}

    def to_dict(self) -> JsonObject:
        """All results as plain values for JSON; missing and infinite numbers are None."""
        return {
            "misses": [conclusion.name for conclusion in self.misses],
            "conclusions": [
                {"name": c.name, "statement": c.statement, "verdict": c.verdict}
                | {"stable": c.stable}
                | {"claims": _records(pd.DataFrame([asdict(claim) for claim in c.claims]))}
                for c in self.conclusions
            ],
            "summaries": _records(self.summaries),
            "datasets": _records(self.datasets),
            "numbers": _records(self.numbers),
        }

    def to_markdown(self) -> str:
        """The comparison as a page: conclusions, summaries, numbers; misses first."""
        verdicts = "; ".join(f"{verdict}: {n}" for verdict, n in self.verdicts().items())
        head = f"{len(self.conclusions)} conclusions. {verdicts.capitalize()}."
        tables = (table.to_markdown() for table in self.tables())
        return "\n".join(["# Compared with the paper", "", head, "", *tables])

    def tables(self) -> Iterator[PrintedTable]:
        """Yield the tables of the comparison: conclusions, summaries, numbers; misses first."""
        columns = ["conclusion", "paper", "ours", "p", "holds", "of", "stable"]
        rows: list[Any] = [_conclusion_row(c) for c in self.conclusions]
        yield _format_table("conclusions", "Conclusions", pd.DataFrame(rows, columns=columns))
        rows = [
            (c.name, x.text, _expected_side(x), x.paper, x.estimate, x.p_value, *_claim_verdict(x))
            for c in self.conclusions
            for x in c.claims
        ]
        columns = ["name", "number", "by the paper", "paper", "ours", "p", "holds", "stable"]
        frame = pd.DataFrame(rows, columns=columns)
        yield _format_table("claims", "The numbers behind them", frame, n_text=3)
        columns = ["", "ours with the paper", "one repeat, least", "most", "without Enron"]
        columns += ["trivial", "two of our repeats"]
        frame = self.summaries.set_axis(columns, axis=1)
        yield _format_table("summaries", "Agreement with the paper", frame)
        columns = ["data set", "classifier", "with the paper", "two of our repeats", "ratio"]
        frame = self.datasets.set_axis(columns, axis=1)
        yield _format_table("by_dataset", "Mean absolute difference of one split", frame, n_text=2)
        for name, title in TITLES.items():
            yield numbers_table(title, self.numbers[self.numbers["table"] == name])


def _conclusion_row(conclusion: Conclusion) -> tuple[str, ...]:
    """Entries of a conclusion in its table: statement, ranges of its numbers, verdict."""
    claims = conclusion.claims
    numbers = ([getattr(x, name) for x in claims] for name in ("paper", "estimate", "p_value"))
    ranges = (_range(np.array(values, dtype=float)) for values in numbers)
    share = f"{sum(claim.holds for claim in claims)} of {len(claims)}"
    return (conclusion.statement, *ranges, conclusion.verdict, share, conclusion.stable)


def _range(values: Floats) -> str:
    """Least and largest number as text, or the only one."""
    finite = values[np.isfinite(values)]
    ends = (
        dict.fromkeys(f"{end:.3f}" for end in (finite.min(), finite.max())) if len(finite) else {}
    )
    return " to ".join(ends)


def _expected_side(claim: Claim) -> str:
    """Side of the bound where the paper has the number, and level of its test, as text."""
    if claim.sign == 0:
        return "no evidence" if claim.level < NO_TEST else f"{claim.bound:g}"
    side = {1: "above", -1: "below"}[claim.sign]
    return f"{side} {claim.bound:g}" + (f", p < {claim.level:g}" if claim.level < NO_TEST else "")


def _claim_verdict(claim: Claim) -> tuple[str, str]:
    if claim.missing:
        return "", ""
    return YES if claim.holds else NO, claim.stable


def check_against_paper(run_dir: AnyPath, *, n_jobs: int | None = None) -> PaperCheck:
    """Compare a finished study with the paper."""
    return compare_with_paper(open_run(run_dir).analyses(n_jobs))


def compare_with_paper(analyses: Analyses) -> PaperCheck:
    """Compare analyses with the paper."""
    ranks = analyses.correlations.query("association == 'kendall'")
    summaries, by_dataset = _summaries(ranks), agreement_by_dataset(ranks)
    return PaperCheck(draw_conclusions(analyses), summaries, by_dataset, compare_numbers(analyses))


def _summaries(correlations: pd.DataFrame) -> pd.DataFrame:
    """Measures of agreement of all repeats, of single repeats, and of references."""
    # Where a study has only some of the paper's cells, the guess is measured on those, too.
    reference = published_table("correlations").merge(correlations[KEYS].drop_duplicates())
    if reference.empty:
        reference = published_table("correlations")
    others = correlations[correlations["dataset"] != UNKNOWN_LABELS]
    parts = [part for _, part in correlations.groupby("repeat")]
    single = pd.DataFrame([agreement(part, reference) for part in parts])
    columns: JsonObject = {
        "ours": agreement(correlations, reference),
        "least": single.min(),
        "most": single.max(),
        "without": agreement(others, reference),
        "trivial": trivial_agreement(reference),
        "own": own_agreement(correlations),
    }
    by_column = {title: [values[name] for name in MEASURES] for title, values in columns.items()}
    return pd.DataFrame({"measure": list(MEASURES.values()), **by_column})


def _records(frame: pd.DataFrame) -> list[dict[str, object]]:
    plain = frame.replace([np.inf, -np.inf], np.nan).astype(object)
    records: list[Any] = plain.where(plain.notna(), None).to_dict("records")
    return records


def _format_table(
    name: str, title: str, frame: pd.DataFrame, note: str = "", n_text: int = 1
) -> PrintedTable:
    """Table from a frame of texts and numbers, with its note."""

    def show(value: Any) -> str:
        if isinstance(value, str):
            return value
        return "NA" if pd.isna(value) or np.isinf(value) else f"{value:.4g}"

    return PrintedTable(name, title, frame.map(show), note or NOTES[name], n_text=n_text)


NOTES = {
    "conclusions": "Paper, ours and p: the number, or the least and the largest of several. p: the "
    "paper's test on our means over splits. Holds: a claimed effect has the paper's sign, at the "
    "level of the printed stars; a claimed absence is not significant at 10%; without a test, our "
    "number is on the same side. Of: how many of the numbers do. Stable: the 95% interval over "
    "splits of the same data leaves the sign. Not applicable: other data sets, or no numbers.",
    "claims": "By the paper: the side of the number and the level of its test.",
    "by_dataset": "One of our splits with the paper, two of our splits with each other, and their "
    "ratio: at 1 the paper could be just another split. Enron: which 20 of its 53 labels the paper "
    "uses is unknown.",
    "summaries": "Ours: means over repeats. One repeat: the least and the most of them. Trivial: "
    "each metric's published median for every correlation; TG lower and all others higher than "
    "HP, always. Two of our repeats: mean over all pairs.",
}


def numbers_table(title: str, numbers: pd.DataFrame) -> PrintedTable:
    """Published numbers beside ours, misses first."""
    relative_gap = (numbers["difference"] / (numbers["high"] - numbers["low"])).abs()
    order = numbers.assign(apart=relative_gap, first=numbers["miss"].fillna(False).astype(bool))
    order = order.sort_values(["first", "apart"], ascending=False, kind="stable")
    verdicts: dict[Any, str] = {True: "miss", False: "within"}
    columns = ["published", "ours", "spread", "difference"]
    frame = order[columns].assign(verdict=[verdicts.get(miss, "") for miss in order["miss"]])
    frame.insert(0, "", order["row"] + ", " + order["quantity"])
    misses = numbers["miss"].dropna()
    note = "One repeat only: there is no spread to judge by."
    if len(misses):
        note = (
            f"{int(misses.sum())} of {len(misses)} outside the 95% prediction interval for one "
            "more split, listed first; blank where there is no spread to judge by."
        )
    return _format_table("numbers", title, frame.reset_index(drop=True), note)
