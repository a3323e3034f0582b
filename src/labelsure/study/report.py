"""What people look at: the tables and figures of a study as files, and its page."""

from __future__ import annotations

import io
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from labelsure._runtime.pages import Page
from labelsure._runtime.storage import write_text, write_whole
from labelsure._runtime.typing import AnyPath
from labelsure.study.analyses import Analyses
from labelsure.study.conclusions import NOT_APPLICABLE, VERDICTS
from labelsure.study.figures import (
    draw_sentence,
    plot_accepted,
    plot_calibration,
    plot_candidates,
    plot_example_distributions,
)
from labelsure.study.paper import compare_with_paper
from labelsure.study.run import StudyRun, open_run
from labelsure.study.tables import LeftOut, flatten_settings, make_study_tables

if TYPE_CHECKING:
    from matplotlib.figure import Figure


__all__ = ["make_figures", "make_study_page", "write_report"]

FORMATS = {"md": "to_markdown", "tex": "to_latex", "csv": "to_csv"}
FIGURE_FORMATS = ("png", "svg")
FOOTER = ("name", "n_repeats", "empty", "by_instance")
"""The settings that stand in a figure itself; all are in its file's metadata."""


def write_report(
    run: StudyRun, *, n_jobs: int | None = None, note: Callable[[str], None] | None = None
) -> list[Path]:
    """Write every table (tables/*.md, *.tex, *.csv) and figure (figures/*.png, *.svg) of a run.

    A table or figure that cannot be made is left out: its files hold a sentence that says why.

    Parameters
    ----------
    run
        Of `labelsure.study.run_study` or `labelsure.study.open_run`; its folder gets the files.
    n_jobs
        Processes for the mixture, unless its fits are in the folder; None means all cores.
    note
        Called with a sentence for each reason why some tables or figures could not be made.

    Returns
    -------
    list of pathlib.Path
        What was written.
    """
    analyses, shown = run.analyses(n_jobs), flatten_settings(run.plan)
    left_out = LeftOut()
    written = _write_tables(analyses, shown, run.folder / "tables", left_out)
    written += _write_figures(analyses, shown, run.folder / "figures", left_out)
    if note is not None:
        for sentence in left_out.sentences:
            note(sentence)
    return written


def _write_tables(
    analyses: Analyses, settings: Mapping[str, str], folder: Path, left_out: LeftOut
) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for table in make_study_tables(analyses, settings, left_out):
        for suffix, method in FORMATS.items():
            path = folder / f"{table.name}.{suffix}"
            write_text(path, getattr(table, method)())
            written.append(path)
    for name, make in _frames(analyses, settings).items():
        frame = left_out.make_or_say(name, make, _say_why)
        path = folder / f"{name}.csv"
        write_text(path, frame.to_csv(index=False))
        written.append(path)
    return written


def _say_why(reason: str) -> pd.DataFrame:
    return pd.DataFrame({"could not be made": [reason]})


def _frames(
    analyses: Analyses, settings: Mapping[str, str]
) -> dict[str, Callable[[], pd.DataFrame]]:
    """Return what makes the numbers behind the tables in full, for programs."""
    pairs = list(settings.items())
    return {
        "settings": lambda: pd.DataFrame(pairs, columns=["setting", "value"]),
        "values_kendall": lambda: analyses.kendall.correlations,
        "values_kendall_effects": lambda: analyses.kendall.effects,
        "values_kendall_robustness": lambda: analyses.kendall.robustness,
        "values_pearson": lambda: analyses.pearson.correlations,
        "values_pearson_effects": lambda: analyses.pearson.effects,
        "values_pearson_robustness": lambda: analyses.pearson.robustness,
        "values_intervals": lambda: analyses.intervals,
    }


def make_figures(
    analyses: Analyses, settings: Mapping[str, str], left_out: LeftOut
) -> dict[str, Figure]:
    """Return every figure of a study by its name; one that cannot be made says why.

    Parameters
    ----------
    analyses
        Of the study.
    settings
        Of which a few stand in the figure itself.
    left_out
        Is told which figures could not be made.
    """
    metrics = analyses.settings.metrics
    makers: dict[str, Callable[[], Figure]] = {
        "example_distributions": plot_example_distributions,
        "candidates": plot_candidates,
        "calibration": lambda: plot_calibration(analyses.intervals),
        "accepted": lambda: plot_accepted(
            analyses.scores,
            candidates=analyses.settings.rank_candidates,
            metric="jaccard" if "jaccard" in metrics else metrics[0],
            empty=analyses.settings.empty,
        ),
    }
    shown = [f"{name} {settings[name]}" for name in FOOTER if name in settings]
    figures = {}
    for name, make in makers.items():
        figures[name] = left_out.make_or_say(name, make, draw_sentence)
        figures[name].text(0.003, 0.003, "; ".join(shown), fontsize=5, color="0.4")
    return figures


def _write_figures(
    analyses: Analyses, settings: Mapping[str, str], folder: Path, left_out: LeftOut
) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    line = "; ".join(f"{name} {value}" for name, value in settings.items())
    written = []
    for name, figure in make_figures(analyses, settings, left_out).items():
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


FIGURE_TITLES = {
    "example_distributions": "The paper's example: distributions over labelsets",
    "candidates": "What the candidates say of them",
    "calibration": "Estimated against actual accuracy",
    "accepted": "Accuracy of the most confident predictions",
}


def make_study_page(run_dir: AnyPath, *, n_jobs: int | None = None) -> Page:
    """Return the page of a finished study.

    Parameters
    ----------
    run_dir
        Its folder.
    n_jobs
        Processes for the mixture, unless its fits are in the folder; None means all cores.
    """
    from labelsure import __version__

    run = open_run(run_dir)
    analyses, settings = run.analyses(n_jobs), flatten_settings(run.plan)
    left_out = LeftOut()
    found = compare_with_paper(analyses, settings)
    counts = Counter(c.verdict for c in found.conclusions)
    # Not the paper's data: there is nothing to put beside ours.
    is_compared = counts[NOT_APPLICABLE] < len(found.conclusions)
    compared = [table.to_dict() for table in found.tables() if len(table.frame)]
    scores = analyses.scores
    data = {
        "title": f"Study: {run.plan.name}",
        "version": __version__,
        "sentences": [
            f"{scores['dataset'].nunique()} data sets, {scores['classifier'].nunique()} "
            f"classifiers, {scores['repeat'].nunique()} repeats: {len(scores):,} predictions."
        ],
        "verdicts": [(verdict, counts[verdict]) for verdict in VERDICTS] if is_compared else [],
        "compared": compared if is_compared else [],
        "tables": [table.to_dict() for table in make_study_tables(analyses, {}, left_out)],
        "figures": [
            {"title": FIGURE_TITLES.get(name, name), "image": _embed(figure)}
            for name, figure in make_figures(analyses, settings, left_out).items()
        ],
        "settings": list(settings.items()),
        "left_out": left_out.sentences,
        "sections": [
            *([("compared", "Beside the paper")] if is_compared else []),
            ("figures", "Figures"),
            ("tables", "Tables"),
            ("settings", "Settings"),
        ],
    }
    return Page("study", data)


def _embed(figure: Figure) -> str:
    """Return a figure as an address that holds all of it."""
    content = io.BytesIO()
    figure.savefig(content, format="svg", metadata={"Date": None})
    return f"data:image/svg+xml;base64,{b64encode(content.getvalue()).decode()}"
