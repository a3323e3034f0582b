"""``labelsure data`` and ``demo``: data sets, and ten predictions on one of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from labelsure.cli import _options as opt
from labelsure.cli._console import make_console, print_json, print_table
from labelsure.cli._options import RESEARCH, TRY, Command, app

if TYPE_CHECKING:
    from labelsure._runtime.typing import JsonObject
    from labelsure.tables.datasets import Dataset

data_app = typer.Typer(help="List, describe and fetch data sets.", rich_markup_mode="rich")
app.add_typer(data_app, name="data", rich_help_panel=RESEARCH)

COLUMNS = ("name", "domain", "instances", "labels", "features", "OpenML", "embedded")

N_SHOWN = 10
TARGET = 0.9
METRIC = "jaccard"


@data_app.command("list", cls=Command)
def list_sets(data_dir: opt.DataDir = None, as_json: opt.AsJson = False) -> None:
    """List the data sets that have a name.

    [bold]Examples[/bold]

    labelsure data list

    labelsure data list --data DIR --json
    """
    from labelsure.tables.datasets import catalogue, list_datasets

    sets = catalogue().astype(object).where(lambda frame: frame.notna(), None)
    described, blank = sets.T.to_dict(), dict.fromkeys(sets.columns)
    rows = [{"name": name, **described.get(name, blank)} for name in list_datasets(data_dir)]
    if as_json:
        print_json(rows)
    else:
        _print_table(rows)


@data_app.command(cls=Command)
def info(name: opt.DataSet, data_dir: opt.DataDir = None, as_json: opt.AsJson = False) -> None:
    """Load a data set and describe it.

    [bold]Example[/bold]

    labelsure data info digits
    """
    from labelsure.tables.datasets import load_dataset

    _describe(load_dataset(name, data_dir), as_json)


@data_app.command(cls=Command)
def fetch(name: opt.DataSet, as_json: opt.AsJson = False) -> None:
    """Fetch a data set from OpenML into scikit-learn's data home, where studies find it.

    Embedded data sets need no fetching.

    [bold]Example[/bold]

    labelsure data fetch emotions
    """
    from labelsure.tables.datasets import catalogue, load_dataset

    on_openml = bool(catalogue()["openml_id"].notna().get(name.lower(), False))
    source = "openml" if on_openml else None
    _describe(load_dataset(name, source=source), as_json)


def _describe(data: Dataset, as_json: bool) -> None:
    from labelsure.labelsets.label_names import show_names

    described: JsonObject = {
        "name": data.name,
        "source": data.source,
        "checksum": data.checksum,
        **data.describe(),
        "labels": show_names(data.label_names, data.n_labels),
    }
    if as_json:
        print_json(described)
        return
    for key, value in described.items():
        print(f"{key:18} {_as_text(value)}")


def _print_table(rows: list[JsonObject]) -> None:
    from rich.table import Table

    table = Table(*COLUMNS)
    for row in rows:
        table.add_row(*(_as_text(value) for value in row.values()))
    print_table(table)


def _as_text(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(value) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4f}" if isinstance(value, float) else "" if value is None else str(value)


@app.command(cls=Command, rich_help_panel=TRY)
def demo(as_json: opt.AsJson = False) -> None:
    """Predict traits of handwritten digits, and show which predictions to trust.

    [bold]Example[/bold]

    labelsure demo
    """
    result = _predict_digits()
    if as_json:
        print_json(result)
    else:
        _print_demo(result)


def _predict_digits() -> JsonObject:
    """Ten predictions, and the estimated and actual accuracy of all of them."""
    import numpy as np
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    import labelsure as ls
    from labelsure.labelsets.lists import to_names

    data = ls.load_dataset("digits")
    train, test = ls.split_dataset(data, 0.4, random_state=0)
    # Quick rather than best: scaled once for all chains, a solver for few features, five chains.
    learner = LogisticRegression(solver="newton-cholesky")
    chains = ls.EnsembleOfClassifierChains(learner, n_chains=5, random_state=0)
    model = ls.AccuracyAwareClassifier(
        make_pipeline(StandardScaler(), chains),
        metric=METRIC,
        target=TARGET,
        random_state=0,
    ).fit(train.X, train.Y)
    assessment, estimate = model.assess(test.X), model.estimate(test.X)
    actual = ls.accuracy(test.Y, assessment.Y_pred, METRIC)
    accepted = np.asarray(assessment.accepted)  # there is a target, so it is not None
    predicted = to_names(assessment.Y_pred[:N_SHOWN], data.label_names)
    true = to_names(test.Y[:N_SHOWN], data.label_names)
    return {
        "metric": METRIC,
        "target": TARGET,
        "predictions": [
            {
                "labels": list(predicted[i]),
                "estimated_accuracy": float(assessment.accuracy[i]),
                "accepted": bool(accepted[i]),
                "true_labels": list(true[i]),
                "actual_accuracy": float(actual[i]),
            }
            for i in range(N_SHOWN)
        ],
        "n_predictions": len(actual),
        "estimated": {"mean": estimate.mean, "low": estimate.low, "high": estimate.high},
        "actual": float(actual.mean()),
        "n_accepted": int(accepted.sum()),
        "actual_of_accepted": float(actual[accepted].mean()) if accepted.any() else None,
    }


def _print_demo(result: JsonObject) -> None:
    from rich.table import Table

    table = Table("labels", "estimated", "advice", "actual", title="Traits of handwritten digits")
    for row in result["predictions"]:
        table.add_row(
            ", ".join(row["labels"]) or "none",
            f"{row['estimated_accuracy']:.3f}",
            "accept" if row["accepted"] else "refer",
            f"{row['actual_accuracy']:.3f}",
        )
    print_table(table)
    console = make_console()
    estimated = result["estimated"]
    console.print(
        f"All {result['n_predictions']} predictions: estimated mean {METRIC.title()} "
        f"{estimated['mean']:.3f} (95% interval {estimated['low']:.3f} to "
        f"{estimated['high']:.3f}) without labels, actual {result['actual']:.3f}."
    )
    console.print(_acceptance_sentence(result))


def _acceptance_sentence(result: JsonObject) -> str:
    if result["actual_of_accepted"] is None:
        return f"No prediction is accepted: the target of {result['target']} cannot be promised."
    return (
        f"{result['n_accepted']} are accepted for a target of {result['target']}; their actual "
        f"mean {METRIC.title()} is {result['actual_of_accepted']:.3f}."
    )
