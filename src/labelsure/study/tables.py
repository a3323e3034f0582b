"""The tables of a study: the paper's in its layout, row for row, and those beyond it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from labelsure._runtime.typing import JsonObject
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
    """A table of texts with title, notes and marked entries, printed in several formats.

    Parameters
    ----------
    name
        Stem of its file names.
    title
        A line above it.
    frame
        The texts. Consecutive rows of one "section", the name of the index, share a heading.
    note
        A line below it.
    paper
        Table of the paper that it reproduces; empty if there is none.
    n_text
        Number of leading text columns, aligned left; the others are aligned right.
    bold, underlined
        Boolean frames with the rows and some columns of `frame`; None for no marks.
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
        """The table in Markdown, with title and note."""
        head, *rows = self._lines(_escape_markdown, "*{}*", "**{}**", "<u>{}</u>")
        rule = [":---" if k < self.n_text else "---:" for k in range(len(head))]
        table = "\n".join(f"| {' | '.join(row)} |" for row in (head, rule, *rows))
        parts = [f"### {self.title}", table, _escape_markdown(self.note)]
        return "\n\n".join(part for part in parts if part) + "\n"

    def to_latex(self) -> str:
        r"""A LaTeX document that compiles, and whose table other documents can \input."""
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
        """The rows as CSV, with section headings in a column."""
        return self.frame.to_csv(index=self.frame.index.name == SECTION, lineterminator="\n")

    def to_dict(self) -> JsonObject:
        """The table as plain values, the input of a page template."""
        marked = (self._marks(self.bold) | self._marks(self.underlined)).to_numpy().tolist()
        rows: list[JsonObject] = []
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
        """Boolean marks of all entries of the table."""
        if marks is None:
            return pd.DataFrame(False, self.frame.index, self.frame.columns)
        return marks.reindex(columns=self.frame.columns, fill_value=False)

    def _headings(self) -> list[str]:
        """Section heading above each row; empty within a section."""
        if self.frame.index.name != SECTION:
            return [""] * len(self.frame)
        sections = list(self.frame.index)
        pairs = zip(["", *sections], sections, strict=False)
        return ["" if section == before else section for before, section in pairs]

    def _lines(
        self, escape: Callable[[str], str], heading: str, bold: str, underlined: str
    ) -> list[list[str]]:
        """Header and rows in a markup language, section headings among them."""
        frame = self.frame.map(escape)
        for marks, form in ((self.underlined, underlined), (self.bold, bold)):
            frame = frame.mask(self._marks(marks), frame.map(form.format))
        lines = [[escape(name) for name in frame.columns]]
        for title, row in zip(self._headings(), frame.to_numpy().tolist(), strict=True):
            lines += [[heading.format(escape(title)), *[""] * (len(row) - 1)]] if title else []
            lines.append(row)
        return lines


def in_sections(rows: Iterable[tuple[str, Sequence[str]]], columns: Sequence[str]) -> pd.DataFrame:
    """Frame of a `PrintedTable` from pairs of section heading and row."""
    pairs = list(rows)
    index = pd.Index([section for section, _ in pairs], name=SECTION)
    return pd.DataFrame([row for _, row in pairs], index, list(columns))


def format_number(value: object, digits: int) -> str:
    """Number with a fixed number of decimals; NA if it is missing.

    Examples
    --------
    >>> format_number(0.12345, 3), format_number(float("nan"), 3)
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
"""Titles of terms as the paper prints them, where they differ from the registered ones."""

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
"""Metrics in the order of the paper; others follow."""

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
"""Table of the paper that each table reproduces."""


def make_study_tables(analyses: Analyses) -> list[PrintedTable]:
    """All tables that have rows: mean accuracies, the paper's, and further ones.

    Parameters
    ----------
    analyses
        Analyses of a study.
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
        yield intervals_table(analyses.intervals, metric)
    yield datasets_table(analyses.datasets)
    for metric in metrics:
        yield correlation_table(analyses.correlations, metric, "pearson")
    yield decisions_table(optimal_decisions(analyses.scores, analyses.settings))


def decisions_table(decisions: pd.DataFrame) -> PrintedTable:
    """Gain of optimal decisions over the mode, as means over repeats."""
    keys, values = decisions.columns[:3], ["mode", "best", "gain", "standard_error", "gap"]
    means = decisions.groupby([*keys], sort=False)[values].mean()
    shown = means.map(format_number, digits=4).reset_index()
    title = "Mean accuracy of the mode and of the metric's best decision"
    note = (
        "Means over repeats; the standard error is that of one repeat. gap: how far the mean "
        "expected accuracy of the decisions can be below the best possible."
    )
    return PrintedTable("optimal_decisions", title, shown, note, n_text=len(keys))


def accuracy_table(analyses: Analyses) -> PrintedTable:
    """Actual and expected mean accuracy of the mode, by data set and classifier."""
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
    """Data sets: instances, labels, features, cardinality, domain."""
    described = datasets.groupby("dataset", sort=False).mean(numeric_only=True)
    domains = catalogue()["domain"]
    rows = [
        [
            str(name).capitalize(),
            *(format_number(row[column], 0) for column in ("n_samples", "n_labels", "n_features")),
            *(format_number(row["cardinality"], 2), str(domains.get(name, ""))),
        ]
        for name, row in described.iterrows()
    ]
    note = "LC: mean number of labels of an instance, in the training parts."
    frame = pd.DataFrame(rows, columns=["", "N", "L", "M", "LC", "Type"])
    return PrintedTable("datasets", "Data sets", frame, note, PAPER["datasets"])


def _accuracy_title(metric: str) -> str:
    return f"{get_metric(metric).title.removesuffix(' accuracy')} accuracy"


def correlation_table(correlations: pd.DataFrame, metric: str, association: str) -> PrintedTable:
    """Correlations of a metric by data set and classifier, with arrows."""
    is_association = correlations["association"] == association
    part = over_repeats(correlations[is_association & (correlations["metric"] == metric)])
    marks = part["arrows"].str.replace("+", "↑").str.replace("-", "↓")
    part["text"] = [
        f"{format_number(value, 4)} {mark}".strip()
        for value, mark in zip(part["correlation"], marks, strict=True)
    ]
    candidates = list(dict.fromkeys(part["candidate"]))
    rows = []
    for (dataset, classifier), cell in part.groupby(["dataset", "classifier"], sort=False):
        texts = cell.set_index("candidate")["text"].reindex(candidates, fill_value=MISSING)
        rows.append((str(dataset).capitalize(), [str(classifier), *texts]))
    title_of = _rank_title if association == "kendall" else str
    frame = in_sections(rows, ["Method", *map(title_of, candidates)])
    title = f"{ASSOCIATIONS[association]} with {_accuracy_title(metric)}"
    name = f"{association}_{metric}"
    return PrintedTable(name, title, frame, ARROWS, PAPER.get(name, ""))


def models_table(models: pd.DataFrame, association: str, analysis: str) -> PrintedTable:
    """Analysis 1, 2, 3 or 4: terms by section, and fit statistics."""
    part = _models_of_means(models, association, analysis)
    columns = list(dict.fromkeys(part["of"]))
    if analysis == "effects":
        columns.sort(key=lambda m: (*PRINTED_METRICS, m).index(m))
    rows: list[tuple[str, list[str]]] = []
    for factor, heading in SECTIONS[analysis].items():
        for (baseline, term), cells in part[part["factor"] == factor].groupby(
            ["baseline", "term"], sort=False
        ):
            estimates = cells.set_index("of").to_dict("index")
            texts = [_format_estimate(estimates.get(column)) for column in columns]
            rows.append(
                (heading.format(_term_title(str(baseline))), [_term_title(str(term)), *texts])
            )
    prefix = {"effects": "Effects on", "robustness": "What moves"}[analysis]
    title = f"{prefix} Fisher's z of {ASSOCIATIONS[association]} (standard errors)"
    heads = map(_term_title, columns) if analysis == "effects" else columns
    name = f"{association}_{analysis}"
    return PrintedTable(name, title, in_sections(rows, ["", *heads]), NOTES[analysis], PAPER[name])


def _models_of_means(models: pd.DataFrame, association: str, analysis: str) -> pd.DataFrame:
    is_model = (models["association"] == association) & (models["analysis"] == analysis)
    return models[is_model & (models["repeat"] == ALL)]


def _format_estimate(cell: Mapping[Any, Any] | None) -> str:
    """Estimate with its standard error and stars; statistics of a fit have neither."""
    if cell is None or pd.isna(cell["estimate"]):
        return MISSING
    if cell["factor"] == FIT:
        return format_number(cell["estimate"], 0 if cell["term"] == "n" else 3)
    error = format_number(cell["standard_error"], 3)
    stars = "*" * sum(cell["p_value"] < level for level in LEVELS)
    return f"{format_number(cell['estimate'], 3)} ({error}) {stars}".strip()


def interval_names(intervals: pd.DataFrame) -> list[str]:
    """Intervals of estimates as texts, such as (0.1,0.2]."""
    ends = intervals[["predicted_low", "predicted_high"]].to_numpy()
    return [f"({low:g},{high:g}]" for low, high in ends]


def intervals_table(intervals: pd.DataFrame, metric: str) -> PrintedTable:
    """Analysis 5 of a metric: actual accuracy for each interval of estimates."""
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
    title = f"Actual {_accuracy_title(metric)} for each interval of estimates"
    bold, underlined = of_models("bold"), of_models("underlined")
    name = f"intervals_{metric}"
    paper = PAPER.get(name, "")
    return PrintedTable(name, title, frame, note, paper, bold=bold, underlined=underlined)


def _term_title(term: str) -> str:
    """Printed title of a candidate, metric, data set, classifier or data feature."""
    if term in SHORT_TITLES:
        return SHORT_TITLES[term]
    if term in CANDIDATES or term in METRICS:
        return CANDIDATES[term].title if term in CANDIDATES else METRICS[term].title
    return term.capitalize() if term.islower() else term  # XGBoost has capitals of its own


def _rank_title(candidate: str) -> str:
    """Candidate and all others that rank alike: one column stands for them."""
    others = sorted(name for name in CANDIDATES if name != candidate)
    return ", ".join(group_by_rank([candidate, *others])[candidate])
