"""A table for people: a frame of texts with a title, printed as Markdown, LaTeX or CSV."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

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
