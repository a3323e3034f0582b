"""``labelsure check``: runs beside what was published."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from labelsure.cli._console import CHECK_FAILED, FINE
from labelsure.errors import InputError

if TYPE_CHECKING:
    from labelsure.paper import PaperCheck


class Reference(StrEnum):
    """What a run can be compared with."""

    PAPER = "paper"


def check(
    folders: Annotated[
        list[Path],
        typer.Argument(help="Run folders; several are shown side by side.", metavar="DIR"),
    ],
    against: Annotated[
        Reference, typer.Option("--against", help="What to compare with.")
    ] = Reference.PAPER,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 1 if a conclusion does not hold.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the comparison as JSON.")] = False,
) -> None:
    """Compare runs with the paper: every published number, and a verdict for each conclusion.

    [bold]Examples[/bold]

    labelsure check runs/paper --against paper

    labelsure check runs/paper runs/paper-standardised

    labelsure check runs/paper --strict --json
    """
    from labelsure.paper import check_against_paper

    checks = {name: check_against_paper(folder) for name, folder in _names(folders).items()}
    if as_json:
        results = {name: found.to_dict() for name, found in checks.items()}
        print(json.dumps(results if len(results) > 1 else results.popitem()[1], indent=2))
    else:
        print(_as_markdown(checks))
    missed = any(found.misses for found in checks.values())
    raise typer.Exit(CHECK_FAILED if strict and missed else FINE)


def _names(folders: list[Path]) -> dict[str, Path]:
    """Return the folders by their last names, which is what their columns are called."""
    names = {folder.resolve().name: folder for folder in folders}
    if len(names) < len(folders):
        raise InputError(
            "Runs to be shown side by side must be in folders with distinct names, got "
            f"{', '.join(folder.resolve().name for folder in folders)}. Rename one."
        )
    return names


def _as_markdown(checks: dict[str, PaperCheck]) -> str:
    from labelsure.paper import side_by_side

    if len(checks) == 1:
        return next(iter(checks.values())).to_markdown()
    pages = [found.to_markdown() for found in checks.values()]
    return "\n".join(["# Side by side", "", side_by_side(checks), *pages])
