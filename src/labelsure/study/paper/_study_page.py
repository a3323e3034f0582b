"""The page of a study: verdicts, figures, our tables and those of the paper beside ours."""

from __future__ import annotations

import io
from base64 import b64encode
from collections import Counter
from typing import TYPE_CHECKING, Any

from labelsure._runtime.pages import Page
from labelsure._runtime.typing import AnyPath
from labelsure.study.paper._conclusions import NOT_APPLICABLE, VERDICTS
from labelsure.study.report._left_out import LeftOut
from labelsure.study.report._plan_settings import flatten_settings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
    from labelsure.study._run import open_run
    from labelsure.study.paper._comparison import compare_with_paper
    from labelsure.study.report.study_files import make_figures  # which load matplotlib
    from labelsure.study.report.study_tables import make_study_tables

    run = open_run(run_dir)
    analyses, settings = run.analyses(n_jobs), flatten_settings(run.plan)
    left_out = LeftOut()
    found = compare_with_paper(analyses, settings)
    # Not the paper's data: there is nothing to put beside ours.
    is_compared = any(c.verdict != NOT_APPLICABLE for c in found.conclusions)
    compared = (
        [table.to_dict() for table in found.tables() if len(table.frame)] if is_compared else []
    )
    ours = [table.to_dict() for table in make_study_tables(analyses, {}, left_out)]
    figures = make_figures(analyses, settings, left_out)
    counts = Counter(c.verdict for c in found.conclusions)
    scores = analyses.scores
    data: dict[str, Any] = {
        "title": f"Study: {run.plan.name}",
        "version": __version__,
        "sentences": [
            f"{scores['dataset'].nunique()} data sets, {scores['classifier'].nunique()} "
            f"classifiers, {scores['repeat'].nunique()} repeats: {len(scores):,} predictions."
        ],
        "verdicts": [(verdict, counts[verdict]) for verdict in VERDICTS] if is_compared else [],
        "compared": compared,
        "figures": [
            {"title": FIGURE_TITLES.get(name, name), "image": _embed(figure)}
            for name, figure in figures.items()
        ],
        "tables": ours,
        "settings": list(settings.items()),
        "left_out": left_out.sentences,
    }
    data["sections"] = [
        *([("compared", "Beside the paper")] if is_compared else []),
        ("figures", "Figures"),
        ("tables", "Tables"),
        ("settings", "Settings"),
    ]
    return Page("study", data)


def _embed(figure: Figure) -> str:
    """Return a figure as an address that holds all of it."""
    content = io.BytesIO()
    figure.savefig(content, format="svg", metadata={"Date": None})
    return f"data:image/svg+xml;base64,{b64encode(content.getvalue()).decode()}"
