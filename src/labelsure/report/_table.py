"""A table for people, printed as Markdown, LaTeX or CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

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
class Cell:
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
        """Return the cell for Markdown; arrows become arrows."""
        text = self.text.replace("|", r"\|")
        text = f"<u>{text}</u>" if self.underlined else text
        text = f"**{text}**" if self.bold else text
        return f"{text} {_arrows(self.mark, '↑', '↓')}".strip()

    def latex(self) -> str:
        """Return the cell for LaTeX."""
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
class Section:
    """A line of its own that names the rows below it; without a title, a rule."""

    title: str


Row = Sequence[Cell | str] | Section


@dataclass(frozen=True)
class Table:
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
        Cells, one for each column, or sections.
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

    def to_markdown(self) -> str:
        """Return the table for Markdown, with title, note and settings."""
        heads = [Cell(name).markdown() for name in self.columns]
        lines = [f"### {self.title}", "", _markdown_row(heads)]
        lines.append("|" + "---|" * self.n_text + "---:|" * (len(self.columns) - self.n_text))
        for row in self.rows:
            if isinstance(row, Section):
                cells = [f"*{row.title}*", *[""] * (len(self.columns) - 1)]
                lines += [_markdown_row(cells)] if row.title else []
            else:
                lines.append(_markdown_row([_as_cell(cell).markdown() for cell in row]))
        for below in (self.note, self._settings_line()):
            lines += ["", below.replace("*", r"\*")] if below else []
        return "\n".join(lines) + "\n"

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
            if isinstance(row, Section):
                title = rf"\textit{{{escape_latex(row.title)}}}"
                lines.append(
                    rf"\multicolumn{{{width}}}{{l}}{{{title}}} \\" if row.title else r"\midrule"
                )
            else:
                lines.append(_latex_row([_as_cell(cell).latex() for cell in row]))
        lines.append(r"\bottomrule")
        if self.note:
            note = escape_latex(self.note)
            lines.append(rf"\multicolumn{{{width}}}{{l}}{{\scriptsize {note}}} \\")
        lines += [r"\end{tabular}", r"\end{table}"]
        return "\n".join(lines) + "\n"

    def to_csv(self) -> str:
        """Return the same rows as CSV; the name of a section stands before each of its rows."""
        stream = io.StringIO()
        writer = csv.writer(stream, lineterminator="\n")
        sectioned = any(isinstance(row, Section) for row in self.rows)
        writer.writerow(["section", *self.columns] if sectioned else self.columns)
        section = ""
        for row in self.rows:
            if isinstance(row, Section):
                section = row.title
                continue
            cells = [_as_cell(cell).plain() for cell in row]
            writer.writerow([section, *cells] if sectioned else cells)
        return stream.getvalue()

    def _settings_line(self) -> str:
        if not self.settings:
            return ""
        shown = "; ".join(f"{name} {value}" for name, value in self.settings.items())
        return f"Settings: {shown}."


def _as_cell(cell: Cell | str) -> Cell:
    return cell if isinstance(cell, Cell) else Cell(cell)


def _markdown_row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _latex_row(cells: Sequence[str]) -> str:
    return " & ".join(cells) + r" \\"
