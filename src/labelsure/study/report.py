"""Report of a study: its tables and figures as files, and its HTML page."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path

import numpy as np
import pandas as pd
import tomli_w
from scipy.stats import norm

from labelsure._kernels.threads import n_threads
from labelsure._runtime.notebook import count
from labelsure._runtime.pages import Page
from labelsure._runtime.runs import FinishedOutput
from labelsure._runtime.storage import write_text
from labelsure._runtime.typing import AnyPath
from labelsure.distributions.candidates import full_name
from labelsure.metrics.registry import get_metric
from labelsure.study.analyses import BASELINE, Analyses, optimal_decisions, over_repeats
from labelsure.study.conclusions import NOT_APPLICABLE
from labelsure.study.figures import FIGURES, draw_figure, figure_inputs
from labelsure.study.mixture import run_all
from labelsure.study.paper import compare_with_paper
from labelsure.study.run import StudyRun, open_run
from labelsure.study.tables import PrintedTable, make_study_tables

FORMATS = {"md": "to_markdown", "tex": "to_latex", "csv": "to_csv"}
VALUES = {
    "values_correlations": "Analyses 0 and 3 in full, every repeat",
    "values_models": "Analyses 1 to 4 in full, with standard errors clustered by data set; "
    "`repeat` -1 is of the means over repeats",
    "values_intervals": "Analysis 5 in full",
}
"""Files with the unrounded numbers of the tables."""


def write_report(run: StudyRun, *, n_jobs: int | None = None) -> list[Path]:
    """Write every table (tables/*.md, *.tex, *.csv) and figure (figures/*.png, *.svg) of a run.

    A table without rows is left out, such as effects where no correlation is defined; a figure
    whose inputs have not changed since it was drawn is kept. `tables/README.md` says which file is
    which.

    Parameters
    ----------
    run
        Result of `labelsure.study.run_study` or `labelsure.study.open_run`, whose folder gets
        the files.
    n_jobs
        Processes for the mixture, unless its fits are in the folder, and for figures; None means
        all cores.

    Returns
    -------
    list of pathlib.Path
        The files of the report.
    """
    analyses = run.analyses(n_jobs)
    figures = _write_figures(analyses, run.folder, n_jobs)
    return [*_write_tables(analyses, run.folder / "tables"), *figures]


def _write_tables(analyses: Analyses, folder: Path) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    tables = make_study_tables(analyses)
    texts = {"README.md": _describe_tables(tables)}
    for table in tables:
        for suffix, method in FORMATS.items():
            texts[f"{table.name}.{suffix}"] = getattr(table, method)()
    for name in VALUES:
        frame = getattr(analyses, name.removeprefix("values_"))
        texts[f"{name}.csv"] = frame.to_csv(index=False)
    for name, text in texts.items():
        write_text(folder / name, text)
    return [folder / name for name in texts]


def _describe_tables(tables: list[PrintedTable]) -> str:
    """Markdown list of the files of tables, with title and table of the paper."""
    files = [(table.name, table.title, table.paper) for table in tables]
    files += [(f"{name}.csv", about, "") for name, about in VALUES.items()]
    head = (
        "# Tables of the study\n\nEach as Markdown, as LaTeX (a document of its own, which needs "
        "the packages booktabs and longtable) and as CSV. The plan is in `../plan.toml`, the score "
        "table in `../scores.parquet`.\n\n| file | what it shows | in the paper |\n|---|---|---|\n"
    )
    return head + "".join(f"| `{name}` | {title} | {paper} |\n" for name, title, paper in files)


def _write_figures(analyses: Analyses, folder: Path, n_jobs: int | None) -> list[Path]:
    """Paths of all figures. Only those whose inputs have changed are drawn again."""
    (folder / "figures").mkdir(parents=True, exist_ok=True)
    paths, tasks, drawn = list[Path](), [], list[FinishedOutput]()
    for name in FIGURES:
        checksum, frame = figure_inputs(name, analyses)
        files = [folder / "figures" / f"{name}.{kind}" for kind in ("png", "svg")]
        outputs = [FinishedOutput(path, {"figure": checksum}) for path in files]
        paths += files
        if not all(output.is_finished for output in outputs):
            tasks.append((name, frame, files))
            drawn += outputs
    run_all(draw_figure, tasks, n_jobs=n_jobs or n_threads())
    for output in drawn:
        output.note({})
    return paths


def make_study_page(run_dir: AnyPath, *, n_jobs: int | None = None) -> Page:
    """HTML page of a finished study.

    Parameters
    ----------
    run_dir
        The run folder.
    n_jobs
        Processes for the mixture, unless its fits are in the folder; None means all cores.
    """
    from labelsure import __version__

    run = open_run(run_dir)
    analyses = run.analyses(n_jobs)
    _write_figures(analyses, run.folder, n_jobs)
    check = compare_with_paper(analyses)
    verdicts = check.verdicts()
    # Other data than the paper's: no numbers to compare.
    is_compared = verdicts[NOT_APPLICABLE] < len(check.conclusions)
    compared = [table.to_dict() for table in check.tables() if len(table.frame)]
    first, *others = (table.to_dict() for table in make_study_tables(analyses))
    scores, ranks = analyses.scores, analyses.correlations.query("association == 'kendall'")
    data = {
        "title": f"Study: {run.plan.name}",
        "version": __version__,
        "sentences": [
            f"{count(scores['dataset'].nunique(), 'data set')}, "
            f"{count(scores['classifier'].nunique(), 'classifier')}, "
            f"{count(scores['repeat'].nunique(), 'split')}: {count(len(scores), 'prediction')}.",
            *(_ranking(ranks, metric) for metric in analyses.settings.metrics),
        ],
        "accuracy": first,
        "findings": _findings(analyses),
        "verdicts": list(verdicts.items()) if is_compared else [],
        "compared": compared if is_compared else [],
        "tables": others,
        "figures": [
            {"title": kind.title, "image": _embed(run.folder / f"figures/{name}.svg")}
            for name, kind in FIGURES.items()
        ],
        "settings": tomli_w.dumps(run.plan.to_dict()),
        "sections": [
            ("accuracy", "Accuracy"),
            ("findings", "Findings"),
            *([("compared", "Beside the paper")] if is_compared else []),
            ("figures", "Figures"),
            ("tables", "Tables"),
            ("settings", "Settings"),
        ],
    }
    return Page("study", data)


def _embed(image: Path) -> str:
    """Data URL of an SVG image."""
    return f"data:image/svg+xml;base64,{b64encode(image.read_bytes()).decode()}"


def _ranking(correlations: pd.DataFrame, metric: str) -> str:
    """Sentence on the candidate with the highest mean Kendall's tau, or on its tie with HP."""
    part = over_repeats(correlations[correlations["metric"] == metric])
    part = part.dropna(subset=["difference"])
    means = part.groupby("candidate")["correlation"].mean()
    if means.empty:
        return f"{get_metric(metric).title}: nothing can be compared with HP."
    rival = str(means.idxmax())
    cells = part[part["candidate"] == rival]
    gap = cells["difference"].mean()
    # Classifiers of a data set see the same instances: as if they made the same error.
    errors = cells.groupby("dataset")["standard_error"].sum()
    reach = norm.ppf(0.975) * np.sqrt((errors**2).sum()) / len(cells)
    means_by_title = {full_name(rival): means[rival], full_name(BASELINE): means[rival] - gap}
    (best, first), (other, second) = sorted(means_by_title.items(), key=lambda pair: -pair[1])
    interval = f"95% interval {abs(gap) - reach:.3f} to {abs(gap) + reach:.3f}"
    if abs(gap) > reach:
        how = f"{best} ranks predictions best: {abs(gap):.3f} above {other} ({interval})"
    else:
        how = f"{best} and {other} tie (difference {abs(gap):.3f}, {interval})"
    return f"{get_metric(metric).title}: {how}; mean Kendall's tau {first:.3f} and {second:.3f}."


def _findings(analyses: Analyses) -> list[str]:
    """Sentences on the calibration of classifiers and the gains of optimal decisions."""
    accuracy = analyses.accuracy
    gains = optimal_decisions(analyses.scores, analyses.settings)
    sentences = []
    for metric in analyses.settings.metrics:
        title = get_metric(metric).title
        means = accuracy[accuracy["metric"] == metric][["actual", "expected"]].mean()
        gap = means["expected"] - means["actual"]
        how = "overconfident" if gap > 0 else "underconfident"
        sentences.append(
            f"{title}: classifiers expect {means['expected']:.3f} on average and reach "
            f"{means['actual']:.3f}: {how} by {abs(gap):.3f}."
        )
        gain = gains[gains["metric"] == metric]["gain"]
        if len(gain):
            sentences.append(
                f"{title}: its best decision in place of the most probable labelset changes the "
                f"mean by {gain.mean():+z.3f} "
                f"(cells from {gain.min():+z.3f} to {gain.max():+z.3f})."
            )
    return sentences
