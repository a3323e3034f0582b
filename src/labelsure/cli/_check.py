"""``labelsure check``: a run beside what was published."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from labelsure.cli._console import CHECK_FAILED, FINE


class Reference(StrEnum):
    """What a run can be compared with."""

    PAPER = "paper"


def check(
    folder: Annotated[Path, typer.Argument(help="The run folder.", metavar="DIR")],
    against: Annotated[
        Reference, typer.Option("--against", help="What to compare with.")
    ] = Reference.PAPER,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 1 if a conclusion does not hold.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the comparison as JSON.")] = False,
) -> None:
    """Compare a run with the paper: every published number, and a verdict for each conclusion.

    [bold]Examples[/bold]

    labelsure check runs/paper --against paper

    labelsure check runs/paper --strict --json
    """
    from labelsure.study.paper import check_against_paper

    found = check_against_paper(folder)
    print(json.dumps(found.to_dict(), indent=2) if as_json else found.to_markdown())
    raise typer.Exit(CHECK_FAILED if strict and found.misses else FINE)
