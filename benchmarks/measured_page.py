"""What benchmarks measure on the sets of a folder, printed or written into a page."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from pathlib import Path

MARK = "<!-- measured -->\n"
"""What stands below this line of a page is replaced."""


def show_measured(
    arguments: list[str], description: str | None, measure: Callable[[Path], str]
) -> None:
    """Print what is measured, or write it into a page.

    Parameters
    ----------
    arguments
        Of the command line: `--data`, the folder of the sets, and perhaps `--page`.
    description
        Of the benchmark, for its help.
    measure
        Returns the text for a folder.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--page", type=Path)
    chosen = parser.parse_args(arguments)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # learners that stop early, powers at their limits
        text = measure(chosen.data)
    if chosen.page is None:
        print(text)
        return
    before = chosen.page.read_text(encoding="utf-8").partition(MARK)[0]
    chosen.page.write_text(before + MARK + text, encoding="utf-8")
