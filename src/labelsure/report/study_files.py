"""All tables and figures of a study as files in its folder."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from labelsure._kernels.threads import n_threads
from labelsure._writing import write_text, write_whole
from labelsure.analyses import Analyses, AnalysisSettings, run_analyses
from labelsure.report.figures import (
    plot_accepted,
    plot_calibration,
    plot_candidates,
    plot_example_distributions,
)
from labelsure.report.study_tables import make_study_tables

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["analyses_of", "shown_settings", "write_report_files"]

FORMATS = {"md": "to_markdown", "tex": "to_latex", "csv": "to_csv"}
FIGURE_FORMATS = ("png", "svg")
REPLICATES = "mixture_replicates.parquet"
LONGEST_SETTING = 400
FOOTER = ("name", "repeats", "empty", "by_instance")
"""The settings that stand in a figure itself; all are in its file's metadata."""


def write_report_files(
    scores: pd.DataFrame,
    features: pd.DataFrame,
    settings: Mapping[str, Any],
    out_dir: str | Path,
    *,
    by_instance: bool = False,
    n_replicates: int | None = None,
    n_jobs: int | None = None,
) -> list[Path]:
    """Write every table (tables/*.md, *.tex, *.csv) and figure (figures/*.png, *.svg).

    Parameters
    ----------
    scores, features
        The score table and the features of the data sets.
    settings
        The plan as resolved; metrics, candidates, empty and seed count, all are printed.
    out_dir
        The study's folder.
    by_instance, n_replicates
        How the mixture splits, see `labelsure.analyses.mixture`.
    n_jobs
        Processes for the mixture; None means all cores.

    Returns
    -------
    list of pathlib.Path
        What was written.
    """
    others: dict[str, Any] = {"by_instance": by_instance}
    if n_replicates is not None:
        others["n_replicates"] = n_replicates
    chosen = AnalysisSettings.from_plan(settings, **others)
    analyses = analyses_of(scores, features, chosen, Path(out_dir), n_jobs=n_jobs)
    shown = shown_settings(settings, chosen)
    written = _write_tables(analyses, shown, Path(out_dir) / "tables")
    return written + _write_figures(analyses, shown, Path(out_dir) / "figures")


def analyses_of(
    scores: pd.DataFrame,
    features: pd.DataFrame,
    settings: AnalysisSettings,
    out_dir: Path,
    *,
    n_jobs: int | None = None,
) -> Analyses:
    """Return all analyses; the mixture's fits are kept in the folder and used again.

    Parameters
    ----------
    scores, features, settings
        As for `labelsure.analyses.run_analyses`.
    out_dir
        Where the fits are kept, with a fingerprint of what they were made from.
    n_jobs
        Processes for the mixture; None means all cores.
    """
    kept, note = out_dir / "analyses" / REPLICATES, out_dir / "analyses" / "mixture.json"
    made_from = {"scores": _fingerprint(scores), "settings": _plain(asdict(settings))}
    replicates = None
    if kept.is_file() and note.is_file() and _read_json(note) == made_from:
        replicates = pd.read_parquet(kept)
    jobs = n_threads() if n_jobs is None else n_jobs
    analyses = run_analyses(scores, features, settings, replicates=replicates, n_jobs=jobs)
    if replicates is None:
        kept.parent.mkdir(parents=True, exist_ok=True)
        note.unlink(missing_ok=True)  # a note vouches for the file beside it, not for an older one
        write_whole(kept, analyses.replicates.to_parquet)
        write_text(note, json.dumps(made_from))
    return analyses


def _fingerprint(scores: pd.DataFrame) -> str:
    hashes = pd.util.hash_pandas_object(scores, index=False).to_numpy()
    return hashlib.sha256(hashes.tobytes()).hexdigest()


def _plain(settings: Any) -> Any:
    return json.loads(json.dumps(settings))


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def shown_settings(plan: Mapping[str, Any], chosen: AnalysisSettings) -> dict[str, str]:
    """Return the settings that are printed: the plan's, flattened, and the analyses' own.

    Parameters
    ----------
    plan
        The plan as resolved.
    chosen
        What the analyses were made with.

    Examples
    --------
    >>> shown = shown_settings({"name": "mine", "base": {"C": 0.1}}, AnalysisSettings())
    >>> shown["name"], shown["base.C"], shown["empty"]
    ('mine', '0.1', '0.0')
    """
    shown = dict(_flattened(plan))
    for name, value in asdict(chosen).items():
        shown[name] = _text(value)
    return shown


def _flattened(settings: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    flat = []
    for name, value in settings.items():
        if isinstance(value, Mapping) and value:
            flat += _flattened(value, f"{prefix}{name}.")
        else:
            flat.append((f"{prefix}{name}", _text(value)))
    return flat


def _text(value: Any) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    text = " ".join(text.split())
    return text if len(text) <= LONGEST_SETTING else text[: LONGEST_SETTING - 3] + "..."


def _write_tables(analyses: Analyses, settings: Mapping[str, str], folder: Path) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for table in make_study_tables(analyses, settings):
        for suffix, method in FORMATS.items():
            path = folder / f"{table.name}.{suffix}"
            write_text(path, getattr(table, method)())
            written.append(path)
    for name, frame in _frames(analyses, settings).items():
        path = folder / f"{name}.csv"
        write_text(path, frame.to_csv(index=False))
        written.append(path)
    return written


def _frames(analyses: Analyses, settings: Mapping[str, str]) -> dict[str, pd.DataFrame]:
    """Return the numbers behind the tables in full, for programs."""
    pairs = list(settings.items())
    return {
        "settings": pd.DataFrame(pairs, columns=["setting", "value"]),
        "values_kendall": analyses.kendall.correlations,
        "values_kendall_effects": analyses.kendall.effects,
        "values_kendall_robustness": analyses.kendall.robustness,
        "values_pearson": analyses.pearson.correlations,
        "values_pearson_effects": analyses.pearson.effects,
        "values_pearson_robustness": analyses.pearson.robustness,
        "values_intervals": analyses.intervals,
    }


def _write_figures(analyses: Analyses, settings: Mapping[str, str], folder: Path) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    metrics = analyses.settings.metrics
    figures = {
        "example_distributions": plot_example_distributions(),
        "candidates": plot_candidates(),
        "calibration": plot_calibration(analyses.intervals),
        "accepted": plot_accepted(
            analyses.scores,
            candidates=analyses.settings.rank_candidates,
            metric="jaccard" if "jaccard" in metrics else metrics[0],
            empty=analyses.settings.empty,
        ),
    }
    line = "; ".join(f"{name} {value}" for name, value in settings.items())
    shown = [f"{name} {settings[name]}" for name in FOOTER if name in settings]
    written = []
    for name, figure in figures.items():
        figure.text(0.003, 0.003, "; ".join(shown), fontsize=5, color="0.4")
        for suffix in FIGURE_FORMATS:
            path = folder / f"{name}.{suffix}"
            _save(figure, path, line)
            written.append(path)
    return written


def _save(figure: Figure, path: Path, settings: str) -> None:
    """Write a figure with its settings in the file's metadata, and without a date."""
    kind = path.suffix[1:]
    metadata = {"Description": settings} | ({"Date": None} if kind == "svg" else {})
    write_whole(path, lambda to: figure.savefig(to, format=kind, dpi=150, metadata=metadata))
