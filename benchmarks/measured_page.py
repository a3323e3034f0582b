"""Measurements as pages: sentences stay on the page, long tables become CSV files beside it."""

from __future__ import annotations

import argparse
import re
import warnings
from collections.abc import Callable
from pathlib import Path

MARK = "<!-- measured -->\n"
"""Everything below this line of a page is replaced."""
LONGEST_TABLE = 4
"""Rows of a table that may stay on a page."""


def show_measured(
    arguments: list[str], description: str | None, measure: Callable[[Path], str]
) -> None:
    """Print what `measure` returns for the data folder, or write it into a page."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--page", type=Path)
    chosen = parser.parse_args(arguments)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # learners that stop early, powers at their limits
        text = measure(chosen.data)
    if chosen.page is None:
        print(text)
    else:
        write_measured(chosen.page, text)


def write_measured(page: Path, text: str) -> None:
    """Replace what follows the mark of a page; long tables go to `evidence/PAGE_TITLE.csv`."""
    title, kept, rows = "table", list[str](), list[str]()
    for line in [*text.splitlines(), ""]:
        if line.startswith("|"):
            rows.append(line)
            continue
        if len(rows) - 2 > LONGEST_TABLE:
            name = "_".join([page.stem, *re.findall("[a-z]+", title.lower())[:6]]) + ".csv"
            file = page.parents[1] / "evidence" / name
            file.write_text("".join(map(_to_csv, [rows[0], *rows[2:]])), encoding="utf-8")
            kept.append(f"[{len(rows) - 2} rows as CSV](../evidence/{name})")
        else:
            kept += rows
        rows = []
        title = line.lstrip("# ") if line.startswith("#") else title
        kept.append(line)
    before = page.read_text(encoding="utf-8").partition(MARK)[0]
    page.write_text(before + MARK + "\n".join(kept).rstrip("\n") + "\n", encoding="utf-8")


def _to_csv(row: str) -> str:
    cells = (cell.strip() for cell in row.strip().strip("|").split("|"))
    return ",".join(f'"{cell}"' if "," in cell else cell for cell in cells) + "\n"
