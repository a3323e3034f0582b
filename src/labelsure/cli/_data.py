"""``labelsure data``: which data sets there are, what they look like, and how to get them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from labelsure.cli._console import make_console

if TYPE_CHECKING:
    from labelsure.tables.dataset import Dataset

data_app = typer.Typer(help="List, describe and fetch data sets.", rich_markup_mode="rich")

Name = Annotated[str, typer.Argument(help="One of `labelsure data list`.", metavar="NAME")]
Folder = Annotated[
    Path | None, typer.Option("--data", help="A folder with ARFF files to look into first.")
]
COLUMNS = ("name", "domain", "instances", "labels", "features", "OpenML", "embedded")
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@data_app.command("list")
def list_sets(data: Folder = None, as_json: AsJson = False) -> None:
    """List the data sets that have a name.

    [bold]Examples[/bold]

    labelsure data list

    labelsure data list --data DIR --json
    """
    from labelsure.tables.datasets import catalogue, list_datasets

    known = catalogue().astype(object).where(lambda frame: frame.notna(), None)
    counted, unknown = known.T.to_dict(), dict.fromkeys(known.columns)
    rows = [{"name": name, **counted.get(name, unknown)} for name in list_datasets(data)]
    if as_json:
        print(json.dumps(rows, indent=2))
        return
    _print_table(rows)


@data_app.command("info")
def info(name: Name, data: Folder = None, as_json: AsJson = False) -> None:
    """Load a data set and describe it.

    [bold]Example[/bold]

    labelsure data info digits
    """
    from labelsure.tables.datasets import load_dataset

    _describe(load_dataset(name, data), as_json)


@data_app.command("fetch")
def fetch(name: Name, as_json: AsJson = False) -> None:
    """Fetch a data set from OpenML into scikit-learn's data home, where studies find it.

    Embedded data sets need no fetching.

    [bold]Example[/bold]

    labelsure data fetch emotions
    """
    from labelsure.tables.datasets import catalogue, load_dataset

    on_openml = bool(catalogue()["openml_id"].notna().get(name.lower(), False))
    _describe(load_dataset(name, source="openml" if on_openml else None), as_json)


def _describe(data: Dataset, as_json: bool) -> None:
    from labelsure.labelsets.rows import show_names

    described: dict[str, Any] = {
        "name": data.name,
        "source": data.source,
        "checksum": data.checksum,
        **data.describe(),
        "labels": show_names(data.label_names, data.n_labels),
    }
    if as_json:
        print(json.dumps(described, indent=2))
        return
    for key, value in described.items():
        print(f"{key:18} {_as_text(value)}")


def _print_table(rows: list[dict[str, Any]]) -> None:
    from rich.table import Table

    table = Table(*COLUMNS)
    for row in rows:
        table.add_row(*(_as_text(value) for value in row.values()))
    make_console().print(table)


def _as_text(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(value) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4f}" if isinstance(value, float) else "" if value is None else str(value)
