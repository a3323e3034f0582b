"""The tables of a study: the paper's in its layout, row for row, and those beyond it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from labelsure.distributions.candidates import CANDIDATES, group_by_rank
from labelsure.metrics.registry import METRICS, get_metric
from labelsure.study.analyses import (
    ALL,
    FEATURE,
    FIT,
    LEVELS,
    Analyses,
    optimal_decisions,
    over_repeats,
)
from labelsure.tables.datasets import catalogue

MISSING = "NA"
SECTION = "section"

_LATEX = str.maketrans(
    {
        **{letter: f"\\{letter}" for letter in "&%$#_{}"},
        **{letter: f"${letter}$" for letter in "<>|"},
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "↑": r"$\uparrow$",
        "↓": r"$\downarrow$",
    }
)


_DOCUMENT = r"""% Needs the packages booktabs and longtable. Without the lines that \input does not
% want, \documentclass to \begin{{document}} and \end{{document}}, it is the table alone.
\documentclass{{article}}
\usepackage{{booktabs,longtable}}
\usepackage[margin=2cm]{{geometry}} % for this document alone
\begin{{document}}
{{\footnotesize\setlength{{\tabcolsep}}{{3pt}}
\begin{{longtable}}{{{columns}}}
\caption[{title}]{{{caption}}}\label{{tab:{name}}} \\
\toprule
{head} \\
\midrule
\endhead
{rows}
\bottomrule
\end{{longtable}}}}
\end{{document}}
"""


@dataclass(frozen=True)
class PrintedTable:
    """A table: what it shows, and its rows.

    Parameters
    ----------
    name
        Of its files.
    title
        A line above it.
    frame
        Its texts. Rows whose index, named "section", is the same stand below one heading.
    note
        A line below it.
    paper
        What it corresponds to in the paper; empty for a table beyond the paper.
    n_text
        How many columns from the left hold text; the others are set to the right.
    bold, underlined
        Frames of booleans with the rows and some columns of `frame`; None where nothing is.
    """

    name: str
    title: str
    frame: pd.DataFrame
    note: str = ""
    paper: str = ""
    n_text: int = 1
    bold: pd.DataFrame | None = None
    underlined: pd.DataFrame | None = None

    def to_markdown(self) -> str:
        """Return the table for Markdown, with title and note."""
        head, *rows = self._lines(_escape_markdown, "*{}*", "**{}**", "<u>{}</u>")
        rule = [":---" if k < self.n_text else "---:" for k in range(len(head))]
        table = "\n".join(f"| {' | '.join(row)} |" for row in (head, rule, *rows))
        parts = [f"### {self.title}", table, _escape_markdown(self.note)]
        return "\n\n".join(part for part in parts if part) + "\n"

    def to_latex(self) -> str:
        r"""Return a document for LaTeX that compiles, and whose table other ones can \input."""
        heading = rf"\multicolumn{{{{{self.frame.shape[1]}}}}}{{{{l}}}}{{{{\textit{{{{{{}}}}}}}}}}"
        head, *rows = self._lines(_escape_latex, heading, r"\textbf{{{}}}", r"\underline{{{}}}")
        rows = [[row[0]] if row[0].startswith(r"\multicolumn") else row for row in rows]
        title, note = _escape_latex(self.title), _escape_latex(self.note)
        return _DOCUMENT.format(
            name=self.name,
            title=title,
            caption=f"{title}. {note}".strip(),
            columns="l" * self.n_text + "r" * (self.frame.shape[1] - self.n_text),
            head=" & ".join(head),
            rows="\n".join(f"{' & '.join(row)} \\\\" for row in rows),
        )

    def to_csv(self) -> str:
        """Return the same rows as CSV, with the heading of each in a column."""
        return self.frame.to_csv(index=self.frame.index.name == SECTION, lineterminator="\n")

    def to_dict(self) -> dict[str, Any]:
        """Return the table as plain values, as a page holds it."""
        marked = (self._marks(self.bold) | self._marks(self.underlined)).to_numpy().tolist()
        rows: list[dict[str, Any]] = []
        lines = zip(self._headings(), self.frame.to_numpy(), marked, strict=True)
        for heading, texts, marks in lines:
            rows += [{"heading": heading}] if heading else []
            entries = zip(texts, marks, strict=True)
            rows.append({"entries": [{"text": t, "bold": is_bold} for t, is_bold in entries]})
        return {
            "name": self.name,
            "title": self.title,
            "columns": list(self.frame.columns),
            "rows": rows,
            "note": self.note,
            "n_text": self.n_text,
        }

    def _marks(self, marks: pd.DataFrame | None) -> pd.DataFrame:
        """Return such a frame with all columns of the table."""
        if marks is None:
            return pd.DataFrame(False, self.frame.index, self.frame.columns)
        return marks.reindex(columns=self.frame.columns, fill_value=False)

    def _headings(self) -> list[str]:
        """Return for each row the heading that stands above it, or nothing."""
        if self.frame.index.name != SECTION:
            return [""] * len(self.frame)
        sections = list(self.frame.index)
        pairs = zip(["", *sections], sections, strict=False)
        return ["" if section == before else section for before, section in pairs]

    def _lines(
        self, escape: Callable[[str], str], heading: str, bold: str, underlined: str
    ) -> list[list[str]]:
        """Return the head and all rows in a markup language, headings among them."""
        frame = self.frame.map(escape)
        for marks, form in ((self.underlined, underlined), (self.bold, bold)):
            frame = frame.mask(self._marks(marks), frame.map(form.format))
        lines = [[escape(name) for name in frame.columns]]
        for title, row in zip(self._headings(), frame.to_numpy().tolist(), strict=True):
            lines += [[heading.format(escape(title)), *[""] * (len(row) - 1)]] if title else []
            lines.append(row)
        return lines


def in_sections(rows: Iterable[tuple[str, Sequence[str]]], columns: Sequence[str]) -> pd.DataFrame:
    """Return rows as the frame of a `PrintedTable`, each with its heading before it."""
    pairs = list(rows)
    index = pd.Index([section for section, _ in pairs], name=SECTION)
    return pd.DataFrame([row for _, row in pairs], index, list(columns))


def print_number(value: Any, digits: int) -> str:
    """Return a number with so many digits after the point, NA where it is missing.

    Examples
    --------
    >>> print_number(0.12345, 3), print_number(float("nan"), 3)
    ('0.123', 'NA')
    """
    return MISSING if value is None or value != value else f"{value:.{digits}f}"


def _escape_markdown(text: str) -> str:
    return text.replace("*", r"\*").replace("|", r"\|")


def _escape_latex(text: str) -> str:
    return text.translate(_LATEX)


SHORT_TITLES = {
    "HP": "High Prob",
    "exact": "Exact",
    "Indep": "Independent",
    "n_labels": "Label Count",
    "n_labelsets": "Label Comb",
    "cardinality": "Label Card",
    "n_features": "Feature Count",
    "r_squared": "R2",
    "adjusted_r_squared": "Adj. R2",
    "n": "Num. obs.",
    "rmse": "RMSE",
}
"""What the paper prints where a term has no title of its own, or a longer one."""

SECTIONS = {
    "effects": {
        "candidate": "Expected Accuracy Function Bias (Baseline: {})",
        "dataset": "Data Bias (Baseline: {})",
        "classifier": "Classifier Bias (Baseline: {})",
        FIT: "Fit",
    },
    "robustness": {
        FEATURE: "Data Features Expected Gradient (Zero gradient means no effect)",
        "classifier": "Classifier Bias (Baseline: {})",
        "metric": "Similarity Function Bias (Baseline: {})",
        FIT: "Fit",
    },
}
ASSOCIATIONS = {"kendall": "Kendall's tau", "pearson": "Pearson's correlation"}
STARS = "*** p < 0.01, ** p < 0.05, * p < 0.1"
NOTES = {
    "effects": STARS,
    "robustness": f"{STARS}. Few data sets make these errors too small: values_models.csv has "
    "standard errors clustered by data set.",
}
ARROWS = (
    "Mean over repeats. Arrows: the mean differs from that of HP at 0.1 (one), 0.05 (two) and 0.01 "
    "(three), by the influence-function test with the repeats' standard error."
)
PRINTED_METRICS = ("exact", "jaccard", "hamming")
"""The order in which the paper prints them; others follow."""

PAPER = {
    "datasets": "Table 4",
    "kendall_effects": "Table 5 (Analysis 1)",
    "kendall_robustness": "Table 6 (Analysis 2)",
    "pearson_effects": "Table 7 (Analysis 3)",
    "pearson_robustness": "Table 8 (Analysis 4)",
    "intervals_hamming": "Table 9 (Analysis 5)",
    "intervals_jaccard": "Table 10 (Analysis 5)",
    "intervals_exact": "Table 11 (Analysis 5)",
    "kendall_exact": "Table 12 (Analysis 0)",
    "kendall_hamming": "Table 13 (Analysis 0)",
    "kendall_jaccard": "Table 14 (Analysis 0)",
}
"""The table of the paper that each corresponds to."""


def make_study_tables(analyses: Analyses) -> list[PrintedTable]:
    """Return every table that has rows: mean accuracies, the paper's, and those beyond it.

    Parameters
    ----------
    analyses
        Of a study.
    """
    return [table for table in _all_tables(analyses) if len(table.frame)]


def _all_tables(analyses: Analyses) -> Iterator[PrintedTable]:
    metrics = analyses.settings.metrics
    yield accuracy_table(analyses)
    for analysis in SECTIONS:
        yield models_table(analyses.models, "kendall", analysis)
    for metric in metrics:
        yield correlation_table(analyses.correlations, metric, "kendall")
    for analysis in SECTIONS:
        yield models_table(analyses.models, "pearson", analysis)
    for metric in metrics:
        yield interval_tables(analyses.intervals, metric)
    yield datasets_table(analyses.datasets)
    for metric in metrics:
        yield correlation_table(analyses.correlations, metric, "pearson")
    yield decisions_table(optimal_decisions(analyses.scores, analyses.settings))


def decisions_table(decisions: pd.DataFrame) -> PrintedTable:
    """Return what best decisions gain over the mode, as means over repeats."""
    keys, values = decisions.columns[:3], ["mode", "best", "gain", "standard_error", "gap"]
    means = decisions.groupby([*keys], sort=False)[values].mean()
    shown = means.map(print_number, digits=4).reset_index()
    title = "Mean accuracy of the mode and of the metric's best decision"
    note = (
        "Means over repeats; the standard error is that of one repeat. gap: how far the mean "
        "expected accuracy of the decisions can be below the best possible."
    )
    return PrintedTable("optimal_decisions", title, shown, note, n_text=len(keys))


def accuracy_table(analyses: Analyses) -> PrintedTable:
    """Return the mean accuracy of the mode and what was expected, by data set and classifier."""
    accuracy, metrics = analyses.accuracy, analyses.settings.metrics
    pairs = accuracy[["actual", "expected"]].to_numpy()
    accuracy = accuracy.assign(
        text=[f"{actual:.3f} ({expected:.3f})" for actual, expected in pairs]
    )
    rows: list[tuple[str, list[str]]] = []
    for (dataset, classifier), part in accuracy.groupby(["dataset", "classifier"], sort=False):
        rows.append((str(dataset).capitalize(), [str(classifier), *part["text"]]))
    titles = [get_metric(metric).title for metric in metrics]
    note = "Mean over all test instances, and in brackets the classifier's own expectation."
    frame = in_sections(rows, ["Method", *titles])
    title = "Mean accuracy of the most probable labelset: actual (expected)"
    return PrintedTable("accuracy", title, frame, note)


def datasets_table(datasets: pd.DataFrame) -> PrintedTable:
    """Return the data sets: instances, labels, features, cardinality, kind."""
    described = datasets.groupby("dataset", sort=False).mean(numeric_only=True)
    domains = catalogue()["domain"]
    rows = [
        [
            str(name).capitalize(),
            *(print_number(row[column], 0) for column in ("n_samples", "n_labels", "n_features")),
            *(print_number(row["cardinality"], 2), str(domains.get(name, ""))),
        ]
        for name, row in described.iterrows()
    ]
    note = "LC: mean number of labels of an instance, in the training parts."
    frame = pd.DataFrame(rows, columns=["", "N", "L", "M", "LC", "Type"])
    return PrintedTable("datasets", "Data sets", frame, note, PAPER["datasets"])


def correlation_table(correlations: pd.DataFrame, metric: str, association: str) -> PrintedTable:
    """Return the correlations of a metric by data set and classifier, with arrows."""
    is_asked = correlations["association"] == association
    part = over_repeats(correlations[is_asked & (correlations["metric"] == metric)])
    marks = part["arrows"].str.replace("+", "↑").str.replace("-", "↓")
    part["text"] = [
        f"{print_number(value, 4)} {mark}".strip()
        for value, mark in zip(part["correlation"], marks, strict=True)
    ]
    candidates = list(dict.fromkeys(part["candidate"]))
    rows = []
    for (dataset, classifier), cell in part.groupby(["dataset", "classifier"], sort=False):
        texts = cell.set_index("candidate")["text"].reindex(candidates, fill_value=MISSING)
        rows.append((str(dataset).capitalize(), [str(classifier), *texts]))
    title_of = _rank_title if association == "kendall" else str
    frame = in_sections(rows, ["Method", *map(title_of, candidates)])
    title = f"{ASSOCIATIONS[association]} with {get_metric(metric).title} accuracy"
    name = f"{association}_{metric}"
    return PrintedTable(name, title, frame, ARROWS, PAPER.get(name, ""))


def models_table(models: pd.DataFrame, association: str, analysis: str) -> PrintedTable:
    """Return Analysis 1, 2, 3 or 4: terms by section, and how well the models fit."""
    part = _overall(models, association, analysis)
    columns = list(dict.fromkeys(part["of"]))
    if analysis == "effects":
        columns.sort(key=lambda m: (*PRINTED_METRICS, m).index(m))
    rows: list[tuple[str, list[str]]] = []
    for factor, heading in SECTIONS[analysis].items():
        for (baseline, term), cells in part[part["factor"] == factor].groupby(
            ["baseline", "term"], sort=False
        ):
            found = cells.set_index("of").to_dict("index")
            texts = [_print_estimate(found.get(column)) for column in columns]
            rows.append(
                (heading.format(_term_title(str(baseline))), [_term_title(str(term)), *texts])
            )
    what = {"effects": "Effects on", "robustness": "What moves"}[analysis]
    title = f"{what} Fisher's z of {ASSOCIATIONS[association]} (standard errors)"
    heads = map(_term_title, columns) if analysis == "effects" else columns
    name = f"{association}_{analysis}"
    return PrintedTable(name, title, in_sections(rows, ["", *heads]), NOTES[analysis], PAPER[name])


def _overall(models: pd.DataFrame, association: str, analysis: str) -> pd.DataFrame:
    is_asked = (models["association"] == association) & (models["analysis"] == analysis)
    return models[is_asked & (models["repeat"] == ALL)]


def _print_estimate(cell: Mapping[Any, Any] | None) -> str:
    """Return an estimate with its standard error and stars; statistics of a fit have neither."""
    if cell is None or pd.isna(cell["estimate"]):
        return MISSING
    if cell["factor"] == FIT:
        return print_number(cell["estimate"], 0 if cell["term"] == "n" else 3)
    error = print_number(cell["standard_error"], 3)
    stars = "*" * sum(cell["p_value"] < level for level in LEVELS)
    return f"{print_number(cell['estimate'], 3)} ({error}) {stars}".strip()


def interval_names(intervals: pd.DataFrame) -> list[str]:
    """Return how intervals of estimates are printed."""
    ends = intervals[["predicted_low", "predicted_high"]].to_numpy()
    return [f"({low:g},{high:g}]" for low, high in ends]


def interval_tables(intervals: pd.DataFrame, metric: str) -> PrintedTable:
    """Return Analysis 5 of a metric: actual accuracy for each interval of estimates."""
    part = intervals[intervals["metric"] == metric]
    texts = [
        MISSING if np.isnan(low) else f"{low:.3f}, {high:.3f}"
        for low, high in part[["low", "high"]].to_numpy()
    ]
    part = part.assign(text=texts, estimates=interval_names(part)).sort_values(
        "predicted_low", kind="stable"
    )

    def of_models(values: str) -> pd.DataFrame:
        wide = part.pivot(index="estimates", columns="model", values=values)
        return wide.loc[part["estimates"].unique(), part["model"].unique()].reset_index(drop=True)

    frame = of_models("text")
    frame.insert(0, "Exp Acc", part["estimates"].unique())
    note = (
        "95% interval over random halvings. Bold: closest to the interval of estimates; "
        "underlined: its low end is below; NA: no estimate fell there."
    )
    title = f"Actual {get_metric(metric).title} accuracy for each interval of estimates"
    bold, underlined = of_models("bold"), of_models("underlined")
    name = f"intervals_{metric}"
    paper = PAPER.get(name, "")
    return PrintedTable(name, title, frame, note, paper, bold=bold, underlined=underlined)


def _term_title(term: str) -> str:
    """Return how a candidate, metric, data set, classifier or feature of the data is printed."""
    if term in SHORT_TITLES:
        return SHORT_TITLES[term]
    if term in CANDIDATES or term in METRICS:
        return CANDIDATES[term].title if term in CANDIDATES else METRICS[term].title
    return term.capitalize() if term.islower() else term  # XGBoost has capitals of its own


def _rank_title(candidate: str) -> str:
    """Return a candidate with all others that rank as it does: one column stands for them."""
    others = sorted(name for name in CANDIDATES if name != candidate)
    return ", ".join(group_by_rank([candidate, *others])[candidate])
