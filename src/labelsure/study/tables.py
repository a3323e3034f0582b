"""The tables of a study: the paper's in its layout, row for row, and those beyond it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pandas as pd

from labelsure._runtime.notebook import count
from labelsure.distributions._dense import DenseDistribution
from labelsure.distributions.candidates import CANDIDATES, group_by_rank
from labelsure.errors import LabelsureError
from labelsure.metrics.registry import METRICS, get_metric
from labelsure.study.analyses import Analyses, AnalysisSettings, describe_datasets
from labelsure.study.correlations import optimal_decisions, over_repeats, spread, true_accuracy
from labelsure.study.linear_models import fit_statistics
from labelsure.tables.datasets import catalogue

if TYPE_CHECKING:
    from labelsure.study.plan import Plan


Part = TypeVar("Part")


class LeftOut:
    """The parts of a report that could not be made, by the reason.

    Examples
    --------
    >>> left_out = LeftOut()
    >>> left_out.make_or_say("sizes", lambda: 3, str)
    3
    >>> left_out.sentences
    []
    """

    def __init__(self) -> None:
        self._names: dict[str, list[str]] = {}

    def make_or_say(self, name: str, make: Callable[[], Part], say: Callable[[str], Part]) -> Part:
        """Return a part, or what says why there is none.

        Only our own errors say something that a reader of the report can use; any other is a
        mistake of ours and must be seen.

        Parameters
        ----------
        name
            Of the part.
        make
            Makes it.
        say
            Makes what stands in its place, from the reason.
        """
        try:
            return make()
        except LabelsureError as error:
            self._names.setdefault(str(error), []).append(name)
            return say(str(error))

    @property
    def sentences(self) -> list[str]:
        """For each reason the parts that could not be made."""
        return [
            f"Could not be made: {', '.join(names)}. {reason}"
            for reason, names in self._names.items()
        ]


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


@dataclass(frozen=True)
class PrintedTable:
    """A table: what it shows, its rows, and what it was made with.

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
    settings
        What the numbers were made with.
    n_text
        How many columns from the left hold text; the others are set to the right.
    bold, underlined
        Frames of booleans with the rows and some columns of `frame`; None where nothing is.
    """

    name: str
    title: str
    frame: pd.DataFrame
    note: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    n_text: int = 1
    bold: pd.DataFrame | None = None
    underlined: pd.DataFrame | None = None

    @classmethod
    def from_reason(cls, name: str, reason: str) -> PrintedTable:
        """Return what stands in the place of a table that could not be made."""
        title = name.replace("_", " ").capitalize()
        return cls(name, title, pd.DataFrame({"This table could not be made": [reason]}))

    def to_markdown(self) -> str:
        """Return the table for Markdown, with title, note and settings."""
        frame = self._printed(_escape_markdown, "*{}*", "**{}**", "<u>{}</u>")
        aligned = ["left" if k < self.n_text else "right" for k in range(frame.shape[1])]
        table = frame.to_markdown(index=False, colalign=aligned, disable_numparse=True)
        shown = "; ".join(f"{name} {value}" for name, value in self.settings.items())
        below = [self.note, f"Settings: {shown}." if shown else ""]
        parts = [f"### {self.title}", table, *(_escape_markdown(text) for text in below if text)]
        return "\n\n".join(parts) + "\n"

    def to_latex(self) -> str:
        """Return a floating table for LaTeX (package booktabs), settings as comments."""
        frame = self._printed(_escape_latex, r"\rlap{{\textit{{{}}}}}", r"\textbf{{{}}}",
                              r"\underline{{{}}}")  # fmt: skip
        title = _escape_latex(self.title)
        table = frame.style.hide(axis="index").to_latex(
            column_format="l" * self.n_text + "r" * (frame.shape[1] - self.n_text),
            position_float="centering",
            hrules=True,
            label=f"tab:{self.name}",
            caption=(f"{title}. {_escape_latex(self.note)}".strip(), title),
        )
        comments = [f"% {name}: {value}\n" for name, value in self.settings.items()]
        return "".join([*comments, table])

    def to_csv(self) -> str:
        """Return the same rows as CSV, with the heading of each in a column."""
        return self.frame.to_csv(index=self.frame.index.name == SECTION, lineterminator="\n")

    def to_dict(self) -> dict[str, Any]:
        """Return the table as plain values, as a page holds it."""
        marked = self._marks(self.bold) | self._marks(self.underlined)
        rows: list[dict[str, Any]] = []
        lines = zip(self._headings(), self.frame.to_numpy(), marked.to_numpy(), strict=True)
        for heading, texts, marks in lines:
            rows += [{"heading": heading}] if heading else []
            entries = zip(texts, marks, strict=True)
            rows.append({"entries": [{"text": t, "bold": bool(is_bold)} for t, is_bold in entries]})
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

    def _printed(
        self, escape: Callable[[str], str], heading: str, bold: str, underlined: str
    ) -> pd.DataFrame:
        """Return all lines of the table in a markup language, headings among them."""
        frame = self.frame.map(escape)
        for marks, form in ((self.underlined, underlined), (self.bold, bold)):
            frame = frame.mask(self._marks(marks), frame.map(form.format))
        empty = [""] * (frame.shape[1] - 1)
        lines = []
        for title, row in zip(self._headings(), frame.to_numpy().tolist(), strict=True):
            lines += [[heading.format(escape(title)), *empty]] if title else []
            lines.append(row)
        return pd.DataFrame(lines, columns=[escape(name) for name in frame.columns])


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


LONGEST_SETTING = 400


def flatten_settings(plan: Plan) -> dict[str, str]:
    """Return the settings that are printed: the plan's and those of the analyses, as text.

    Parameters
    ----------
    plan
        Of the study.

    Examples
    --------
    >>> from labelsure.study import load_plan
    >>> shown = flatten_settings(load_plan("paper"))
    >>> shown["name"], shown["base.C"], shown["empty"], shown["response"]
    ('paper', '0.1', '0.0', 'rates')
    """
    shown = dict(_flatten(plan.to_dict()))
    for name, value in asdict(AnalysisSettings.from_plan(plan)).items():
        shown[name] = _write_value(value)
    return shown


def _flatten(settings: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    flat = []
    for name, value in settings.items():
        if isinstance(value, Mapping) and value:
            flat += _flatten(value, f"{prefix}{name}.")
        else:
            flat.append((f"{prefix}{name}", _write_value(value)))
    return flat


def _write_value(value: Any) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    text = " ".join(text.split())
    return text if len(text) <= LONGEST_SETTING else text[: LONGEST_SETTING - 3] + "..."


def tables_beyond(analyses: Analyses) -> Iterator[PrintedTable]:
    """Return the tables that the paper does not have.

    Parameters
    ----------
    analyses
        Of a study.
    """
    settings = analyses.settings
    truth = true_accuracy(
        analyses.scores,
        metrics=settings.metrics,
        candidates=settings.candidates,
        empty=settings.empty,
    )
    if len(truth):
        keys = ["metric", "dataset", "classifier", "candidate"]
        means = truth.groupby(keys, sort=False)[["kendall", "pearson", "mean_error"]].mean()
        yield _frame_table(
            "true_accuracy",
            "Correlation with the true expected accuracy, where it is known",
            means.reset_index(),
            "model: the classifier's own expectation; mean_error: how far it is above the truth.",
        )
    better = optimal_decisions(analyses.scores, metrics=settings.metrics, empty=settings.empty)
    if len(better):
        means = better.groupby(["metric", "dataset", "classifier"], sort=False)[
            ["mode", "best", "gain", "standard_error", "gap"]
        ].mean()
        yield _frame_table(
            "optimal_decisions",
            "Mean accuracy of the mode and of the metric's best decision",
            means.reset_index(),
            "Means over repeats; the standard error is that of one repeat. gap: how far the mean "
            "expected accuracy of the decisions can be below the best possible.",
        )


def _frame_table(name: str, title: str, frame: pd.DataFrame, note: str) -> PrintedTable:
    shown = frame.map(lambda value: value if isinstance(value, str) else print_number(value, 4))
    n_text = sum(isinstance(value, str) for value in frame.iloc[0])
    return PrintedTable(name, title, shown, note, n_text=n_text)


SHORT_TITLES = {
    "HP": "High Prob",
    "exact": "Exact",
    "Indep": "Independent",
    "n_labels": "Label Count",
    "n_labelsets": "Label Comb",
    "cardinality": "Label Card",
    "n_features": "Feature Count",
}
"""What the paper prints where a term has no title of its own, or a longer one."""

FIT_ROWS = {"r_squared": "R2", "adjusted_r_squared": "Adj. R2", "n": "Num. obs.", "rmse": "RMSE"}
FEATURE = "feature"
EFFECT_SECTIONS = {
    "candidate": "Expected Accuracy Function Bias (Baseline: {})",
    "dataset": "Data Bias (Baseline: {})",
    "classifier": "Classifier Bias (Baseline: {})",
}
ROBUSTNESS_SECTIONS = {
    FEATURE: "Data Features Expected Gradient (Zero gradient means no effect)",
    "classifier": "Classifier Bias (Baseline: {})",
    "metric": "Similarity Function Bias (Baseline: {})",
}
STARS = "*** p < 0.01, ** p < 0.05, * p < 0.1"
ARROWS = (
    "Mean over repeats. Arrows: the mean differs from that of HP at 0.1 (one), 0.05 (two) and 0.01 "
    "(three), by the influence-function test with the repeats' standard error."
)
Row = tuple[str, list[str]]
"""The heading that a row stands below, and its texts."""

PRINTED_METRICS = ("exact", "jaccard", "hamming")
"""The order in which the paper prints them; others follow."""

PLANNED = ("dataset", "classifier")
"""Factors whose levels are printed in the order of the plan."""


def make_study_tables(
    analyses: Analyses, settings: Mapping[str, str], left_out: LeftOut | None = None
) -> list[PrintedTable]:
    """Return every table of the paper, then those beyond it.

    A table that cannot be made, such as effects where no correlation is defined, holds the reason.

    Parameters
    ----------
    analyses
        Of a study.
    settings
        What is printed below each table.
    left_out
        Is told which tables could not be made; None means that nobody is.
    """
    left_out = left_out or LeftOut()
    tables = [
        left_out.make_or_say(name, make, partial(PrintedTable.from_reason, name))
        for name, make in _tables_of_the_paper(analyses).items()
    ]
    tables += tables_beyond(analyses)
    return [replace(table, settings=settings) for table in tables]


def _tables_of_the_paper(analyses: Analyses) -> dict[str, Callable[[], PrintedTable]]:
    """Return what makes each table, by its name."""
    ranks, values = analyses.kendall, analyses.pearson
    metrics = analyses.settings.metrics

    def intervals(metric: str) -> PrintedTable:
        return interval_tables(analyses.intervals, metric)

    def correlations(name: str) -> dict[str, Callable[[], PrintedTable]]:
        frame = getattr(analyses, name).correlations
        return {f"{name}_{m}": partial(correlation_table, frame, m, name) for m in metrics}

    return {
        "worked_example": worked_example_table,
        "datasets": lambda: datasets_table(analyses),
        **correlations("kendall"),
        "kendall_effects": lambda: effects_table(ranks.effects, "kendall", spelled=True),
        "kendall_robustness": lambda: robustness_table(ranks.robustness, "kendall", below=False),
        "pearson_effects": lambda: effects_table(values.effects, "pearson", spelled=False),
        "pearson_robustness": lambda: robustness_table(values.robustness, "pearson", below=True),
        **{f"intervals_{m}": partial(intervals, m) for m in metrics},
        **correlations("pearson"),
        "kendall_robustness_clustered": lambda: clustered_table(ranks.robustness, "kendall"),
        "pearson_robustness_clustered": lambda: clustered_table(values.robustness, "pearson"),
        "kendall_spread": lambda: spread_table(ranks.correlations),
        "kendall_tests": lambda: holm_table(ranks.correlations),
    }


ASSOCIATIONS = {"kendall": "Kendall's tau", "pearson": "Pearson's correlation"}


def worked_example_table() -> PrintedTable:
    """Return the paper's example: a distribution over three labels with its expectations."""
    codes = np.arange(8)
    # The paper counts with its first label as the highest bit.
    labelsets = (codes[:, np.newaxis] >> np.array([2, 1, 0])) & 1
    probabilities = np.zeros(8)
    for code, probability in ((1, 1 / 3), (2, 1 / 4), (4, 1 / 4), (6, 1 / 6)):
        probabilities[code] = probability
    ours = labelsets @ (1 << np.arange(3))
    joint = np.zeros(8)
    joint[ours] = probabilities
    dist = DenseDistribution(np.tile(joint, (8, 1)))
    names = ("hamming", "exact", "jaccard")
    expected = {name: dist.expected(name, labelsets, empty=0.0).value for name in names}
    rows = [
        [str(i + 1), *map(str, labelset), f"{p:.3f}", *(f"{expected[m][i]:.3f}" for m in names)]
        for i, (labelset, p) in enumerate(zip(labelsets, probabilities, strict=True))
    ]
    marginals = [f"{p:.2f}" for p in dist.marginals()[0]]
    rows.append(["P(y_j|x)", *marginals, "", "", "", ""])
    columns = ["i", "y1", "y2", "y3", "P(Y=y_i|x)", "E[HS]", "E[EM]", "E[JS]"]
    frame = pd.DataFrame(rows, columns=columns)
    bold = pd.DataFrame(False, frame.index, columns)
    for column, name in zip(columns[-3:], names, strict=True):
        bold.loc[int(np.argmax(expected[name].round(9))), column] = True
    title = "A distribution and its expected accuracies"
    return PrintedTable("worked_example", title, frame, bold=bold)


def datasets_table(analyses: Analyses) -> PrintedTable:
    """Return the data sets: instances, labels, features, cardinality, kind."""
    described = describe_datasets(analyses).groupby("dataset", sort=False).mean(numeric_only=True)
    domains = catalogue()["domain"]
    rows = [
        [
            str(name).capitalize(),
            *(print_number(row[column], 0) for column in ("n_samples", "n_labels", "n_features")),
            print_number(row["cardinality"], 2),
            str(domains.get(name, "")),
        ]
        for name, row in described.iterrows()
    ]
    note = "LC: mean number of labels of an instance, in the training parts."
    frame = pd.DataFrame(rows, columns=["", "N", "L", "M", "LC", "Type"])
    return PrintedTable("datasets", "Data sets", frame, note)


def correlation_table(correlations: pd.DataFrame, metric: str, association: str) -> PrintedTable:
    """Return the correlations of a metric by data set and classifier, with arrows."""
    part = over_repeats(correlations[correlations["metric"] == metric])
    candidates = list(dict.fromkeys(part["candidate"]))
    rows: list[Row] = []
    for (dataset, classifier), cell in part.groupby(["dataset", "classifier"], sort=False):
        found = cell.set_index("candidate")[["correlation", "arrows"]].to_dict("index")
        texts = [
            _with_arrows(print_number(found[name]["correlation"], 4), found[name]["arrows"])
            if name in found
            else MISSING
            for name in candidates
        ]
        rows.append((str(dataset).capitalize(), [str(classifier), *texts]))
    title_of = _rank_title if association == "kendall" else str
    columns = ["Method", *map(title_of, candidates)]
    title = f"{ASSOCIATIONS[association]} with {get_metric(metric).title} accuracy"
    return PrintedTable(f"{association}_{metric}", title, in_sections(rows, columns), ARROWS)


def effects_table(effects: pd.DataFrame, association: str, *, spelled: bool) -> PrintedTable:
    """Return Analysis 1 or 3: a column for each metric, candidates spelled out or not."""
    metrics = sorted(dict.fromkeys(effects["metric"]), key=_printed_place)
    names: dict[str, Callable[[str], str]] = {} if spelled else {"candidate": str}
    rows = _model_rows(effects, "metric", metrics, EFFECT_SECTIONS, names)
    frame = in_sections(rows, ["", *map(_term_title, metrics)])
    title = f"Effects on Fisher's z of {ASSOCIATIONS[association]} (standard errors)"
    return PrintedTable(f"{association}_effects", title, frame, STARS)


def robustness_table(robustness: pd.DataFrame, association: str, *, below: bool) -> PrintedTable:
    """Return Analysis 2 or 4: a column for each candidate, errors beside estimates or below."""
    candidates = list(dict.fromkeys(robustness["candidate"]))
    rows = _model_rows(robustness, "candidate", candidates, ROBUSTNESS_SECTIONS, {}, below=below)
    title = f"What moves Fisher's z of {ASSOCIATIONS[association]} (standard errors)"
    frame = in_sections(rows, ["", *candidates])
    return PrintedTable(f"{association}_robustness", title, frame, STARS)


def clustered_table(robustness: pd.DataFrame, association: str) -> PrintedTable:
    """Return what the ordinary standard errors of Analysis 2 or 4 hide."""
    rows: list[Row] = []
    for candidate, part in robustness.groupby("candidate", sort=False):
        for row in part.itertuples(index=False):
            numbers = (row.estimate, row.standard_error, row.clustered_standard_error)
            cells = [
                _term_title(str(row.term)),
                *(print_number(value, 4) for value in numbers),
                *(print_number(value, 3) for value in (row.p_value, row.clustered_p_value)),
                print_number(row.variance_inflation, 1),
            ]
            rows.append((str(candidate), cells))
    columns = ["", "estimate", "s.e.", "clustered s.e.", "p", "clustered p", "variance inflation"]
    known = robustness[robustness["estimate"].notna()]["term"].unique()
    n_features = sum(robustness.attrs["factors"].get(term, FEATURE) == FEATURE for term in known)
    n_datasets = robustness.attrs["n_datasets"]
    left = max(n_datasets - n_features - 1, 0)
    note = (
        f"Clustered by data set: {count(n_datasets, 'data set')} and "
        f"{count(n_features, 'feature')} of the data leave {count(left, 'degree')} of freedom. The "
        "fewer there are, the larger and more stable a gradient must be to mean anything."
    )
    title = f"Robustness of {ASSOCIATIONS[association]}, standard errors clustered by data set"
    frame = in_sections(rows, columns)
    return PrintedTable(f"{association}_robustness_clustered", title, frame, note)


def interval_tables(intervals: pd.DataFrame, metric: str) -> PrintedTable:
    """Return Analysis 5 of a metric: actual accuracy for each interval of estimates."""
    part = intervals[intervals["metric"] == metric]
    models = list(dict.fromkeys(part["model"]))
    texts = [
        MISSING if np.isnan(low) else f"{low:.3f}, {high:.3f}"
        for low, high in part[["low", "high"]].to_numpy()
    ]
    estimates = [f"({a:g},{b:g}]" for a, b in part[["predicted_low", "predicted_high"]].to_numpy()]
    part = part.assign(text=texts, estimates=estimates)
    order = part.sort_values("predicted_low")["estimates"].unique()

    def of_models(values: str) -> pd.DataFrame:
        wide = part.pivot(index="estimates", columns="model", values=values)
        return wide.loc[order, models].reset_index(drop=True)

    frame = of_models("text")
    frame.insert(0, "Exp Acc", order)
    note = (
        "95% interval over random halvings. Bold: closest to the interval of estimates; "
        "underlined: its low end is below; NA: no estimate fell there."
    )
    title = f"Actual {get_metric(metric).title} accuracy for each interval of estimates"
    bold, underlined = of_models("bold"), of_models("underlined")
    name = f"intervals_{metric}"
    return PrintedTable(name, title, frame, note, bold=bold, underlined=underlined)


def spread_table(correlations: pd.DataFrame) -> PrintedTable:
    """Return how far each correlation moves from one split to the next."""
    frame = spread(correlations)
    rows = [
        [
            f"{row.metric} / {row.dataset} / {row.classifier} / {row.candidate}",
            str(row.n_repeats),
            *(print_number(v, 4) for v in (row.mean, row.standard_deviation, row.least, row.most)),
        ]
        for row in frame.itertuples(index=False)
    ]
    columns = ["", "repeats", "mean", "standard deviation", "least", "most"]
    shown = pd.DataFrame(rows, columns=columns)
    return PrintedTable("kendall_spread", "Kendall's tau over repeats of the split", shown)


def holm_table(correlations: pd.DataFrame) -> PrintedTable:
    """Return the tests behind the arrows, corrected for their number."""
    pooled = over_repeats(correlations)
    tested = pooled[pooled["p_value"].notna()]
    rows = [
        [
            f"{row.metric} / {row.dataset} / {row.classifier} / {row.candidate}",
            _with_arrows(print_number(row.difference, 4), str(row.arrows)),
            print_number(row.standard_error, 4),
            print_number(row.p_value, 4),
            print_number(row.p_value_holm, 4),
        ]
        for row in tested.itertuples(index=False)
    ]
    columns = ["", "difference from HP", "s.e.", "p", "p (Holm)"]
    frame = pd.DataFrame(rows, columns=columns)
    return PrintedTable("kendall_tests", f"{len(rows)} tests against HP", frame)


def _model_rows(
    models: pd.DataFrame,
    key: str,
    columns: Sequence[str],
    sections: Mapping[str, str],
    names: Mapping[str, Callable[[str], str]],
    *,
    below: bool = False,
) -> list[Row]:
    """Return the terms of linear models, section by section, and how well they fit."""
    factors, baselines = models.attrs["factors"], models.attrs["baselines"]
    found = models.set_index(["term", key]).to_dict("index")
    rows: list[Row] = []
    for factor, heading in sections.items():
        order = dict.fromkeys(factors if factor in PLANNED else models["term"])
        known = set(models["term"])
        terms = [t for t in order if t in known and factors.get(t, FEATURE) == factor]
        section = heading.format(_term_title(baselines.get(factor, "")))
        for term in terms:
            title = names.get(factor, _term_title)(term)
            cells = [found.get((term, column), {}) for column in columns]
            rows += [(section, row) for row in _estimates(title, cells, below=below)]
    return rows + _fit_rows(fit_statistics(models).set_index(key), columns)


def _estimates(title: str, cells: Sequence[Mapping[Any, Any]], *, below: bool) -> list[list[str]]:
    shown, errors = [], []
    for cell in cells:
        estimate, error = cell.get("estimate", np.nan), cell.get("standard_error", np.nan)
        p_value = cell.get("p_value", np.nan)
        text, spread = print_number(estimate, 3), f"({print_number(error, 3)})"
        if pd.isna(estimate):
            spread = ""
        mark = "*" * sum(p_value < level for level in (0.1, 0.05, 0.01))
        shown.append(f"{text if below else f'{text} {spread}'.strip()} {mark}".strip())
        errors.append(spread)
    return [[title, *shown], ["", *errors]] if below else [[title, *shown]]


def _fit_rows(fits: pd.DataFrame, columns: Sequence[str]) -> list[Row]:
    rows: list[Row] = []
    for name, title in FIT_ROWS.items():
        digits = 0 if name == "n" else 3
        numbers = [print_number(fits.loc[column, name], digits) for column in columns]
        rows.append(("Fit", [title, *numbers]))
    return rows


def _with_arrows(text: str, mark: str) -> str:
    return f"{text} {mark.replace('+', '↑').replace('-', '↓')}".strip()


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


def _printed_place(metric: str) -> int:
    known = metric in PRINTED_METRICS
    return PRINTED_METRICS.index(metric) if known else len(PRINTED_METRICS)
