"""A study of ours beside the paper: numbers, summaries and a verdict on each conclusion."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd

from labelsure._runtime.typing import AnyPath
from labelsure.study._run import open_run
from labelsure.study.analyses._all_analyses import Analyses
from labelsure.study.paper._agreement import (
    MEASURES,
    agreement,
    effects_agreement,
    effects_if_any,
    own_agreement,
    trivial_agreement,
    trivial_effects,
)
from labelsure.study.paper._conclusions import (
    FAILS,
    NO_EVIDENCE_RULE,
    SIGN_RULE,
    VERDICTS,
    Conclusion,
    draw_conclusions,
)
from labelsure.study.paper._published import (
    TITLES,
    RepeatedAnalyses,
    compare_numbers,
    published_table,
)
from labelsure.study.report._plan_settings import flatten_settings
from labelsure.study.report._printed_table import PrintedTable

RULE_NAMES = {SIGN_RULE: "sign", NO_EVIDENCE_RULE: "no evidence"}
SIGNS = {1: "above 0", -1: "below 0", 0: "consistent with 0"}

CELLS = ["metric", "dataset", "classifier", "candidate"]


@dataclass(frozen=True)
class PaperCheck:
    """What comparing a study with the paper found.

    Parameters
    ----------
    conclusions
        With verdicts, those that do not hold first.
    summaries
        measure, ours, least and most (of single repeats, as the paper had one), trivial (what
        a guess without data reaches) and own (what two of our repeats reach with each other).
    numbers
        Every published number beside ours, see `compare_numbers`.
    settings
        What the study was made with.
    """

    conclusions: list[Conclusion]
    summaries: pd.DataFrame
    numbers: pd.DataFrame
    settings: dict[str, str]

    @property
    def misses(self) -> list[Conclusion]:
        """The conclusions of the paper that do not hold here."""
        return [c for c in self.conclusions if c.verdict == FAILS]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values for JSON; what is missing or infinite is None."""
        conclusions = [
            {
                "name": conclusion.name,
                "statement": conclusion.statement,
                "verdict": conclusion.verdict,
                "rule": conclusion.rule,
                "claims": [asdict(claim) for claim in conclusion.claims],
            }
            for conclusion in self.conclusions
        ]
        found = {
            "settings": self.settings,
            "misses": [conclusion.name for conclusion in self.misses],
            "conclusions": conclusions,
            "summaries": self.summaries.to_dict("records"),
            "numbers": self.numbers.to_dict("records"),
        }
        return _as_json(found)

    def to_markdown(self) -> str:
        """Return the comparison as a page: conclusions, summaries, numbers; misses first."""
        parts = ["# Compared with the paper", ""]
        counts = Counter(c.verdict for c in self.conclusions)
        verdicts = (f"{verdict}: {counts[verdict]}" for verdict in VERDICTS)
        parts += [f"{len(self.conclusions)} conclusions. {'; '.join(verdicts).capitalize()}.", ""]
        parts += ["Settings: " + "; ".join(f"{k} {v}" for k, v in self.settings.items()) + ".", ""]
        parts += [table.to_markdown() for table in self.tables()]
        return "\n".join(parts)

    def tables(self) -> list[PrintedTable]:
        """Return the comparison as tables: conclusions, summaries, numbers; misses first."""
        numbers = [
            numbers_table(title, self.numbers[self.numbers["table"] == name])
            for name, title in TITLES.items()
        ]
        return [
            conclusions_table(self.conclusions),
            claims_table(self.conclusions),
            summaries_table(self.summaries),
            *numbers,
        ]


def check_against_paper(run_dir: AnyPath, *, n_jobs: int | None = None) -> PaperCheck:
    """Compare a finished study with the paper.

    Parameters
    ----------
    run_dir
        Its folder, with scores.parquet, features.parquet and plan.toml.
    n_jobs
        Processes for the mixture, unless its fits are in the folder; None means all cores.
    """
    run = open_run(run_dir)
    return compare_with_paper(run.analyses(n_jobs), flatten_settings(run.plan))


def compare_with_paper(analyses: Analyses, settings: Mapping[str, str] | None = None) -> PaperCheck:
    """Compare analyses with the paper, whatever they were made from.

    Parameters
    ----------
    analyses
        Of `labelsure.study.analyses.run_analyses`, or of a run.
    settings
        What to print as settings.
    """
    repeated = RepeatedAnalyses(analyses)
    return PaperCheck(
        draw_conclusions(repeated),
        _summaries(analyses),
        compare_numbers(repeated),
        dict(settings or {}),
    )


def _summaries(analyses: Analyses) -> pd.DataFrame:
    correlations = analyses.kendall.correlations
    # Where a study has only some of the paper's cells, the guess is measured on those, too.
    reference = published_table("correlations").merge(correlations[CELLS].drop_duplicates())
    if reference.empty:
        reference = published_table("correlations")
    rows = _compared(
        lambda part: agreement(part, reference), correlations, trivial_agreement(reference)
    )
    paper = published_table("effects").query("association == 'pearson'")
    of_effects = _compared(
        lambda part: effects_agreement(effects_if_any(part), paper),
        analyses.pearson.correlations,
        trivial_effects(paper),
    )
    rows += [{**row, "measure": f"Pearson: {row['measure']}"} for row in of_effects]
    return pd.DataFrame(rows)


def _compared(
    compare: Callable[[pd.DataFrame], dict[str, float]],
    correlations: pd.DataFrame,
    trivial: dict[str, float],
) -> list[dict[str, Any]]:
    """Return what a comparison gives for all repeats together, and for each of them alone."""
    ours, own = compare(correlations), own_agreement(correlations)
    single = pd.DataFrame([compare(part) for _, part in correlations.groupby("repeat")])
    return [
        {
            "measure": title,
            "ours": ours[name],
            "least": single[name].min(),
            "most": single[name].max(),
            "trivial": trivial[name],
            "own": own[name],
        }
        for name, title in MEASURES.items()
        if name in ours
    ]


def _as_json(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _as_json(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_as_json(entry) for entry in value]
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return float(value) if np.isfinite(value) else None
    return value


def _shown(value: Any) -> str:
    return "NA" if pd.isna(value) or np.isinf(value) else f"{value:.4g}"


def _texts(rows: list[list[str]], columns: list[str]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=columns, dtype=str)


def _range(low: Any, high: Any) -> str:
    return f"{_shown(low)} to {_shown(high)}"


def conclusions_table(conclusions: Sequence[Conclusion]) -> PrintedTable:
    """Return verdicts, statements and rules."""
    rows = [[c.verdict, c.statement, RULE_NAMES[c.rule], c.name] for c in conclusions]
    rules = "; ".join(f"{name}: {rule}" for rule, name in RULE_NAMES.items())
    note = (
        f"Rules. {rules}. Intervals allow for the data that repeats of a split share; with one "
        "repeat they are the regression's own. Not applicable: the study has data "
        "sets that are not the paper's, or none of the numbers."
    )
    columns = ["verdict", "the paper says", "rule", "name"]
    return PrintedTable("conclusions", "Conclusions", _texts(rows, columns), note, n_text=4)


def claims_table(conclusions: Sequence[Conclusion]) -> PrintedTable:
    """Return every number that a verdict rests on."""
    rows = [
        [
            conclusion.name,
            claim.text,
            SIGNS[claim.sign],
            *(_shown(value) for value in (claim.estimate, claim.low, claim.high)),
            "" if np.isnan(claim.p_value) else f"{claim.p_value:.3f}",
        ]
        for conclusion in conclusions
        for claim in conclusion.claims
    ]
    note = (
        "Low and high: 95% interval over repeats, which decides. p: the paper's own test, the "
        "regression over all cells, here of the means over repeats. The interval knows how splits "
        "of the same data differ; the regression, how data sets and classifiers do, which is more: "
        "what stands out by the interval need not by the regression."
    )
    columns = ["conclusion", "number", "should be", "mean", "low", "high", "p"]
    frame = _texts(rows, columns)
    return PrintedTable("claims", "The numbers behind them", frame, note, n_text=3)


def summaries_table(summaries: pd.DataFrame) -> PrintedTable:
    """Return how far a study agrees with the paper, beside what is easily reached."""
    rows = [
        [
            str(row.measure),
            _shown(row.ours),
            _range(row.least, row.most),
            _shown(row.trivial),
            _shown(row.own),
        ]
        for row in summaries.itertuples(index=False)
    ]
    note = (
        "Ours: means over repeats. One repeat: the least and the most of them. Trivial: each "
        "metric's published median for every correlation; TG lower and all others higher than HP, "
        "always; no effect at all. Two of our repeats: mean over all pairs."
    )
    columns = ["", "ours with the paper", "one repeat", "trivial", "two of our repeats"]
    return PrintedTable("summaries", "Agreement with the paper", _texts(rows, columns), note)


_JUDGED: dict[Any, str] = {True: "miss", False: "within"}


def numbers_table(title: str, numbers: pd.DataFrame) -> PrintedTable:
    """Return published numbers beside ours, misses first."""
    apart = (numbers["difference"] / (numbers["high"] - numbers["low"])).abs()
    order = numbers.assign(apart=apart, first=numbers["miss"].fillna(False).astype(bool))
    order = order.sort_values(["first", "apart"], ascending=False, kind="stable")
    rows = [
        [
            f"{row.row}, {row.quantity}",
            *(_shown(v) for v in (row.published, row.ours, row.spread, row.difference)),
            _JUDGED.get(row.miss, ""),
        ]
        for row in order.itertuples(index=False)
    ]
    judged = numbers["miss"].dropna()
    note = "One repeat only: there is no spread to judge by."
    if len(judged):
        note = (
            f"{int(judged.sum())} of {len(judged)} outside the 95% prediction interval for one "
            "more split, listed first; blank where there is no spread to judge by."
        )
    columns = ["", "published", "ours", "spread", "difference", "verdict"]
    return PrintedTable("numbers", title, _texts(rows, columns), note)
