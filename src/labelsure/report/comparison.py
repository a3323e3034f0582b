"""A study of ours beside the paper: numbers, summaries and a verdict on each conclusion."""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from labelsure.errors import InputError
from labelsure.report import _comparison_tables as compared
from labelsure.report.files import analyses_of, shown_settings
from labelsure.study import (
    FAILS,
    HOLDS,
    MEASURES,
    TITLES,
    UNDECIDED,
    Analyses,
    AnalysisSettings,
    Conclusion,
    RepeatedAnalyses,
    agreement,
    compare_numbers,
    draw_conclusions,
    effects,
    effects_agreement,
    own_agreement,
    published_table,
    trivial_agreement,
    trivial_effects,
)

__all__ = ["PaperCheck", "check_against_paper", "compare_with_paper", "side_by_side"]

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
        measure, ours, least and most (of single repeats, as the paper had one), trivial (what
        saying the obvious reaches) and own (what two of our repeats reach with each other).
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
        verdicts = (f"{verdict}: {counts[verdict]}" for verdict in (FAILS, UNDECIDED, HOLDS))
        parts += [f"{len(self.conclusions)} conclusions. {'; '.join(verdicts).capitalize()}.", ""]
        parts += ["Settings: " + "; ".join(f"{k} {v}" for k, v in self.settings.items()) + ".", ""]
        parts += [compared.conclusions_table(self.conclusions).to_markdown()]
        parts += [compared.claims_table(self.conclusions).to_markdown()]
        parts += [compared.summaries_table(self.summaries).to_markdown()]
        parts += [
            compared.numbers_table(title, self.numbers[self.numbers["table"] == name]).to_markdown()
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
    """Return several studies' verdicts, summaries and claims beside each other, as Markdown.

    Parameters
    ----------
    checks
        By name, such as `paper` and `paper-standardised`.
    """
    if not checks:
        raise InputError("`checks` must hold at least one comparison, got none.")
    conclusions = {name: check.conclusions for name, check in checks.items()}
    summaries = {name: check.summaries for name, check in checks.items()}
    tables = (
        compared.verdicts_side_by_side(conclusions),
        compared.summaries_side_by_side(summaries),
        compared.claims_side_by_side(conclusions),
    )
    return "\n".join(table.to_markdown() for table in tables)


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
    rows = _compared(
        lambda part: agreement(part, reference), correlations, trivial_agreement(reference)
    )
    paper = published_table("effects").query("association == 'pearson'")
    of_effects = _compared(
        lambda part: effects_agreement(effects(part), paper),
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
