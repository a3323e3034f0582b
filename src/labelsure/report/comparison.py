"""A study of ours beside the paper: numbers, summaries and a verdict on each conclusion."""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from labelsure.errors import InputError
from labelsure.report._table import Table
from labelsure.report.files import analyses_of, shown_settings
from labelsure.study import (
    FAILS,
    HOLDS,
    MEASURES,
    NO_EVIDENCE_RULE,
    SIGN_RULE,
    TITLES,
    UNDECIDED,
    Analyses,
    AnalysisSettings,
    Conclusion,
    RepeatedAnalyses,
    agreement,
    compare_numbers,
    draw_conclusions,
    effects_agreement,
    own_agreement,
    published_table,
    trivial_agreement,
    trivial_effects,
)

__all__ = ["PaperCheck", "check_against_paper", "compare_with_paper", "side_by_side"]

VERDICTS = {FAILS: "do not hold", UNDECIDED: "are undecided", HOLDS: "hold"}
RULES = {SIGN_RULE: "sign", NO_EVIDENCE_RULE: "no evidence"}
CELLS = ["metric", "dataset", "classifier", "candidate"]
MIXTURE_SETTINGS = ("by_instance", "n_replicates")


@dataclass(frozen=True)
class PaperCheck:
    """What comparing a study with the paper found.

    Parameters
    ----------
    conclusions
        With verdicts, those that do not hold first.
    summaries
        measure, ours, trivial (what saying the obvious reaches) and own (what two of our repeats
        reach with each other).
    numbers
        Every published number beside ours, see `labelsure.study.compare_numbers`.
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
        return _plain(found)

    def to_markdown(self) -> str:
        """Return the comparison as a page: conclusions, summaries, numbers; misses first."""
        parts = ["# Compared with the paper", ""]
        counts = Counter(c.verdict for c in self.conclusions)
        verdicts = (f"{counts[verdict]} {plural}" for verdict, plural in VERDICTS.items())
        parts += [f"Of {len(self.conclusions)} conclusions, {', '.join(verdicts)}.", ""]
        parts += ["Settings: " + "; ".join(f"{k} {v}" for k, v in self.settings.items()) + ".", ""]
        parts += [_conclusions_table(self.conclusions).to_markdown()]
        parts += [_claims_table(self.conclusions).to_markdown()]
        parts += [_summaries_table(self.summaries).to_markdown()]
        parts += [
            _numbers_table(title, self.numbers[self.numbers["table"] == name]).to_markdown()
            for name, title in TITLES.items()
        ]
        return "\n".join(parts)


def check_against_paper(run_dir: str | Path, *, n_jobs: int | None = None) -> PaperCheck:
    """Compare a finished study with the paper.

    Parameters
    ----------
    run_dir
        Its folder, with scores.parquet, features.parquet and plan.toml.
    n_jobs
        Processes for the mixture, unless its fits are in the folder; None means all cores.
    """
    folder = Path(run_dir)
    scores, features = (_read_table(folder, name) for name in ("scores", "features"))
    plan = _read_plan(folder)
    settings = AnalysisSettings.from_plan(plan, **_mixture_settings(folder))
    analyses = analyses_of(scores, features, settings, folder, n_jobs=n_jobs)
    return compare_with_paper(analyses, shown_settings(plan, settings))


def compare_with_paper(analyses: Analyses, settings: Mapping[str, str] | None = None) -> PaperCheck:
    """Compare analyses with the paper, whatever they were made from.

    Parameters
    ----------
    analyses
        Of `labelsure.study.run_analyses`.
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


def side_by_side(checks: Mapping[str, PaperCheck]) -> str:
    """Return several studies' verdicts and summaries beside each other, as Markdown.

    Parameters
    ----------
    checks
        By name, such as `paper` and `paper-standardised`.
    """
    if not checks:
        raise InputError("`checks` must hold at least one comparison, got none.")
    names = list(checks)
    statements = {c.name: c.statement for check in checks.values() for c in check.conclusions}
    verdicts = {n: {c.name: c.verdict for c in check.conclusions} for n, check in checks.items()}
    rows = [
        [statement, *(verdicts[name].get(key, "") for name in names)]
        for key, statement in statements.items()
    ]
    conclusions = Table("conclusions", "Conclusions of the paper", ["", *names], rows)
    claims = _claims_side_by_side(checks)
    columns = [""]
    for name in names:
        columns += [name, f"{name}: own repeats"]
    tables = [checks[name].summaries.set_index("measure") for name in names]
    rows = []
    for measure in tables[0].index:
        cells = [_shown(table.loc[measure, c]) for table in tables for c in ("ours", "own")]
        rows.append([measure, *cells, _shown(tables[0].loc[measure, "trivial"])])
    summaries = Table("summaries", "Agreement with the paper", [*columns, "trivial"], rows)
    return "\n".join(table.to_markdown() for table in (conclusions, summaries, claims))


def _claims_side_by_side(checks: Mapping[str, PaperCheck]) -> Table:
    numbers: dict[tuple[str, str], dict[str, str]] = {}
    for name, check in checks.items():
        for conclusion in check.conclusions:
            for claim in conclusion.claims:
                shown = f"{_shown(claim.estimate)} [{_shown(claim.low)}, {_shown(claim.high)}]"
                numbers.setdefault((conclusion.name, claim.text), {})[name] = shown
    rows = [[*key, *(found.get(name, "") for name in checks)] for key, found in numbers.items()]
    title = "The numbers behind them: mean and 95% interval over repeats"
    return Table("claims", title, ["conclusion", "number", *checks], rows, n_text=2)


def _read_table(folder: Path, name: str) -> pd.DataFrame:
    path = folder / f"{name}.parquet"
    if not path.is_file():
        raise InputError(
            f"`run_dir` must hold {name}.parquet, which a finished study writes; there is none in "
            f"{str(folder)!r}. Run `labelsure study` with this folder first."
        )
    try:
        return pd.read_parquet(path)
    except (OSError, ValueError) as error:
        raise InputError(
            f"{str(path)!r} must be a Parquet file, but it cannot be read: {error}."
        ) from error


def _read_plan(folder: Path) -> dict[str, Any]:
    path = folder / "plan.toml"
    if not path.is_file():
        raise InputError(
            f"`run_dir` must hold plan.toml, which a study writes; there is none in "
            f"{str(folder)!r}. Run `labelsure study` with this folder first."
        )
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{str(path)!r} must be TOML, but it cannot be read: {error}.") from error


def _mixture_settings(folder: Path) -> dict[str, Any]:
    """Return how the report's mixture was split, so that its fits can be used again."""
    path = folder / "analyses" / "mixture.json"
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))["settings"]
        return {name: kept[name] for name in MIXTURE_SETTINGS}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def _summaries(analyses: Analyses) -> pd.DataFrame:
    correlations = analyses.kendall.correlations
    # Where a study has only some of the paper's cells, the obvious is measured on those too.
    reference = published_table("correlations").merge(correlations[CELLS].drop_duplicates())
    if reference.empty:
        reference = published_table("correlations")
    ours, own = agreement(correlations, reference), own_agreement(correlations)
    trivial = trivial_agreement(reference)
    rows = [(title, ours[name], trivial[name], own[name]) for name, title in MEASURES.items()]
    paper = published_table("effects").query("association == 'pearson'")
    ours = effects_agreement(analyses.pearson.effects, paper)
    own, trivial = own_agreement(analyses.pearson.correlations), trivial_effects(paper)
    rows += [(f"Pearson: {MEASURES[name]}", ours[name], trivial[name], own[name]) for name in ours]
    return pd.DataFrame(rows, columns=["measure", "ours", "trivial", "own"])


def _conclusions_table(conclusions: list[Conclusion]) -> Table:
    rows = [[c.verdict, c.statement, RULES[c.rule], c.name] for c in conclusions]
    rules = "; ".join(f"{name}: {rule}" for rule, name in RULES.items())
    note = (
        f"Rules. {rules}. Intervals allow for the data that repeats of a split share; with one "
        "repeat they are the regression's own."
    )
    columns = ["verdict", "the paper says", "rule", "name"]
    return Table("conclusions", "Conclusions", columns, rows, note, n_text=4)


def _claims_table(conclusions: list[Conclusion]) -> Table:
    signs = {1: "above 0", -1: "below 0", 0: "not told from 0"}
    rows = [
        [
            conclusion.name,
            claim.text,
            signs[claim.sign],
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
    return Table("claims", "The numbers behind them", columns, rows, note, n_text=3)


def _summaries_table(summaries: pd.DataFrame) -> Table:
    rows = [
        [str(row.measure), *(_shown(value) for value in (row.ours, row.trivial, row.own))]
        for row in summaries.itertuples(index=False)
    ]
    note = (
        "Trivial: each metric's published median for every correlation; TG lower and all others "
        "higher than HP, always; no effect at all. Two of ours: mean over all pairs of repeats."
    )
    columns = ["", "ours with the paper", "trivial with the paper", "two of our repeats"]
    return Table("summaries", "Agreement with the paper", columns, rows, note)


_JUDGED: dict[Any, str] = {True: "miss", False: "within"}


def _numbers_table(title: str, numbers: pd.DataFrame) -> Table:
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
    note = (
        f"{int(numbers['miss'].fillna(False).sum())} of {len(numbers)} outside the 95% prediction "
        "interval for one more split, listed first; blank where there is no spread to judge by."
    )
    columns = ["", "published", "ours", "spread", "difference", ""]
    return Table("numbers", title, columns, rows, note)


def _shown(value: Any) -> str:
    return "NA" if pd.isna(value) or np.isinf(value) else f"{value:.4g}"


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if value is None or value is pd.NA:
        return None
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return float(value) if np.isfinite(value) else None
    return value
