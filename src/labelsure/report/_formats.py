"""Tables for people, printed as Markdown, LaTeX or CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

MISSING = "NA"

_LATEX_SPECIAL = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
}


@dataclass(frozen=True)
class TableEntry:
    """What stands in one place of a table.

    Parameters
    ----------
    text
        As printed.
    mark
        Stars of significance, or arrows as "+" and "-".
    bold, underlined
        How it is set.
    """

    text: str
    mark: str = ""
    bold: bool = False
    underlined: bool = False

    def plain(self) -> str:
        """Return the text and its mark, as in a CSV file."""
        return f"{self.text} {self.mark}".strip()

    def markdown(self) -> str:
        """Return the entry for Markdown, "+" and "-" as arrows."""
        text = self.text.replace("|", r"\|")
        text = f"<u>{text}</u>" if self.underlined else text
        text = f"**{text}**" if self.bold else text
        return f"{text} {_arrows(self.mark, '↑', '↓')}".strip()

    def to_dict(self) -> dict[str, Any]:
        """Return the entry as plain values, "+" and "-" as arrows."""
        arrows = self.mark if self.mark.startswith("*") else _arrows(self.mark, "↑", "↓")
        return {"text": f"{self.text} {arrows}".strip(), "bold": self.bold or self.underlined}

    def latex(self) -> str:
        """Return the entry for LaTeX."""
        text = escape_latex(self.text)
        text = rf"\underline{{{text}}}" if self.underlined else text
        text = rf"\textbf{{{text}}}" if self.bold else text
        if not self.mark:
            return text
        if self.mark.startswith("*"):
            return f"{text}$^{{{self.mark}}}$"
        arrows = _arrows(self.mark, r"\uparrow", r"\downarrow")
        return f"{text} ${arrows}$"


def _arrows(mark: str, up: str, down: str) -> str:
    if mark.startswith("*"):
        return mark.replace("*", r"\*") if up == "↑" else mark
    return mark.replace("+", up).replace("-", down)


def escape_latex(text: str) -> str:
    """Return a text that LaTeX prints as it is."""
    return "".join(_LATEX_SPECIAL.get(letter, letter) for letter in text)


@dataclass(frozen=True)
class Heading:
    """A line of its own that names the rows below it; without a title, a rule."""

    title: str


Row = Sequence[TableEntry | str] | Heading


@dataclass(frozen=True)
class PrintedTable:
    """A table: what it shows, its columns, its rows, and what it was made with.

    Parameters
    ----------
    name
        Of its files.
    title
        A line above it.
    columns
        Their heads.
    rows
        Entries, one for each column, or headings.
    note
        A line below it.
    settings
        What the numbers were made with.
    n_text
        How many columns from the left hold text; the others are set to the right.
    """

    name: str
    title: str
    columns: Sequence[str]
    rows: Sequence[Row]
    note: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    n_text: int = 1

    @classmethod
    def from_reason(cls, name: str, reason: str) -> PrintedTable:
        """Return what stands in the place of a table that could not be made.

        Parameters
        ----------
        name
            Of the table.
        reason
            Why there is none.
        """
        title = name.replace("_", " ").capitalize()
        return cls(name, title, ["This table could not be made"], [[reason]])

    def to_markdown(self) -> str:
        """Return the table for Markdown, with title, note and settings."""
        heads = [TableEntry(name).markdown() for name in self.columns]
        lines = [f"### {self.title}", "", _markdown_row(heads)]
        lines.append("|" + "---|" * self.n_text + "---:|" * (len(self.columns) - self.n_text))
        for row in self.rows:
            if isinstance(row, Heading):
                texts = [f"*{row.title}*", *[""] * (len(self.columns) - 1)]
                lines += [_markdown_row(texts)] if row.title else []
            else:
                lines.append(_markdown_row([_as_entry(entry).markdown() for entry in row]))
        for below in (self.note, self._settings_line()):
            lines += ["", below.replace("*", r"\*")] if below else []
        return "\n".join(lines) + "\n"

    def to_dict(self) -> dict[str, Any]:
        """Return the table as plain values, as a page holds it."""
        rows: list[dict[str, Any]] = []
        for row in self.rows:
            if isinstance(row, Heading):
                rows += [{"heading": row.title}] if row.title else []
            else:
                rows.append({"entries": [_as_entry(entry).to_dict() for entry in row]})
        return {
            "name": self.name,
            "title": self.title,
            "columns": list(self.columns),
            "rows": rows,
            "note": self.note,
            "n_text": self.n_text,
        }

    def to_latex(self) -> str:
        """Return a floating table for LaTeX (package booktabs), settings as comments."""
        width = len(self.columns)
        columns = "l" * self.n_text + "r" * (width - self.n_text)
        lines = [f"% {name}: {value}" for name, value in self.settings.items()]
        lines += [r"\begin{table}", r"\centering", rf"\caption{{{escape_latex(self.title)}}}"]
        lines += [rf"\label{{tab:{self.name}}}", rf"\begin{{tabular}}{{{columns}}}"]
        lines += [r"\toprule", _latex_row([escape_latex(name) for name in self.columns])]
        lines.append(r"\midrule")
        for row in self.rows:
            if isinstance(row, Heading):
                title = rf"\textit{{{escape_latex(row.title)}}}"
                lines.append(
                    rf"\multicolumn{{{width}}}{{l}}{{{title}}} \\" if row.title else r"\midrule"
                )
            else:
                lines.append(_latex_row([_as_entry(entry).latex() for entry in row]))
        lines.append(r"\bottomrule")
        if self.note:
            note = escape_latex(self.note)
            lines.append(rf"\multicolumn{{{width}}}{{l}}{{\scriptsize {note}}} \\")
        lines += [r"\end{tabular}", r"\end{table}"]
        return "\n".join(lines) + "\n"

    def to_csv(self) -> str:
        """Return the same rows as CSV; a heading stands before each of the rows below it."""
        stream = io.StringIO()
        writer = csv.writer(stream, lineterminator="\n")
        sectioned = any(isinstance(row, Heading) for row in self.rows)
        writer.writerow(["section", *self.columns] if sectioned else self.columns)
        section = ""
        for row in self.rows:
            if isinstance(row, Heading):
                section = row.title
                continue
            texts = [_as_entry(entry).plain() for entry in row]
            writer.writerow([section, *texts] if sectioned else texts)
        return stream.getvalue()

    def _settings_line(self) -> str:
        if not self.settings:
            return ""
        shown = "; ".join(f"{name} {value}" for name, value in self.settings.items())
        return f"Settings: {shown}."


def print_number(value: Any, digits: int) -> str:
    """Return a number with so many digits after the point, NA where it is missing.

    Examples
    --------
    >>> print_number(0.12345, 3), print_number(float("nan"), 3)
    ('0.123', 'NA')
    """
    return MISSING if value is None or value != value else f"{value:.{digits}f}"


def _as_entry(entry: TableEntry | str) -> TableEntry:
    return entry if isinstance(entry, TableEntry) else TableEntry(entry)


def _markdown_row(texts: Sequence[str]) -> str:
    return "| " + " | ".join(texts) + " |"


def _latex_row(texts: Sequence[str]) -> str:
    return " & ".join(texts) + r" \\"
