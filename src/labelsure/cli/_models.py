"""``labelsure train``, ``calibrate`` and ``info``: models from files, and their descriptions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import typer

from labelsure.cli import _options as opt
from labelsure.cli._console import (
    NOTHING_TO_DO,
    make_console,
    on_one_line,
    print_facts,
    print_json,
    print_notes,
    print_table,
    quote,
    refuse_stdout,
)
from labelsure.cli._options import (
    MODELS,
    Command,
    app,
    arguments,
    fitting,
    labelled,
    output_of,
    printing,
    reading,
    shares,
)
from labelsure.errors import InputError

if TYPE_CHECKING:
    from labelsure._runtime.typing import JsonObject
    from labelsure.model._aware_classifier import AccuracyAwareClassifier
    from labelsure.model._model_card import ModelCard
    from labelsure.tables.training import DescribedFile


@app.command(cls=Command, rich_help_panel=MODELS)
@shares(reading, fitting, printing)
def train(
    context: typer.Context,
    data: opt.Data,
    out: opt.ModelOut,
    labels: opt.Labels = None,
    label_column: opt.LabelColumn = None,
    sep: opt.Sep = None,
    drop: opt.Drop = None,
    text: opt.Text = None,
    role: opt.Role = None,
    groups: opt.Groups = None,
    classifier: opt.Classifier = "layer",
    cv: opt.Cv = None,
    n_jobs: opt.FitJobs = None,
    verbose: opt.Verbose = False,
) -> None:
    """Train a classifier on a table, and estimate how accurate it is.

    [bold]Examples[/bold]

    labelsure train tickets.csv --labels urgent,billing --id ticket --target 0.9 --out tickets.labelsure

    labelsure train tickets.parquet --label-column tags --label-sep ";" --text message --out tickets.labelsure
    """  # noqa: E501, a command stands on one line

    def make_model() -> AccuracyAwareClassifier:
        from labelsure.model._aware_classifier import AccuracyAwareClassifier
        from labelsure.tables.training import train_model

        overrides = _read_settings(context)
        overrides["roles"] = {**_read_roles(role or []), **dict.fromkeys(text or [], "text")}
        overrides["cv"] = _read_cv(cv)
        return train_model(**arguments(context, train_model, AccuracyAwareClassifier, **overrides))

    _write_model(context, data, make_model, "NEW.csv", classifier)


@app.command(cls=Command, rich_help_panel=MODELS)
@shares(reading, labelled, fitting, printing)
def calibrate(
    context: typer.Context,
    predictions: opt.Predictions,
    truth: opt.AllTruth,
    out: opt.ModelOut,
    labels: opt.LabelNames = None,
    labels_from: opt.LabelsFrom = None,
    kind: opt.Kind = None,
    unknown: opt.Unknown = "drop",
    sparse: opt.Sparse = False,
    floor: opt.Floor = None,
    verbose: opt.Verbose = False,
) -> None:
    """Estimate how accurate another system's predictions are, from some rows with true labels.

    [bold]Examples[/bold]

    labelsure calibrate scores.npy --truth truth.csv --target 0.9 --out tagger.labelsure

    labelsure calibrate answers.jsonl --truth truth.csv --id id --out tagger.labelsure

    labelsure calibrate sparse.npz --truth sparse_truth.npz --labels-from names.txt --out tags.labelsure
    """  # noqa: E501, a command stands on one line
    if labels is not None and labels_from is not None:
        raise InputError(
            "The labels must be given by `--labels` or by `--labels-from`, got both. Leave one out."
        )

    def make_model() -> AccuracyAwareClassifier:
        from labelsure.model._aware_classifier import AccuracyAwareClassifier
        from labelsure.tables.datasets import read_label_file
        from labelsure.tables.training import calibrate_model

        overrides = _read_settings(context)
        if labels_from is not None:
            overrides["labels"] = read_label_file(labels_from, context.params["encoding"])
        return calibrate_model(
            **arguments(context, calibrate_model, AccuracyAwareClassifier, **overrides)
        )

    read = [name for name in (predictions, truth, labels_from) if name is not None]
    _write_model(context, read, make_model, "NEW_PREDICTIONS.csv")


def _read_settings(context: typer.Context) -> JsonObject:
    """Model arguments that differ from their option in name or type."""
    from labelsure.distributions.constraints import LabelConstraints

    taxonomy = context.params["taxonomy"]
    return {
        "constraints": None if taxonomy is None else LabelConstraints(taxonomy),
        "random_state": context.params["seed"],
        "verbose": 0,  # that of the command is about its summary
    }


def _write_model(
    context: typer.Context,
    inputs: list[str],
    make_model: Callable[[], AccuracyAwareClassifier],
    next_input: str,
    classifier: str = "",
) -> None:
    """Save a model unless it is finished; print a summary, its path and the next commands."""
    from labelsure._runtime.storage import check_output_file, is_stream
    from labelsure.tables.training import DEFAULT_CLASSIFIER, DEFAULT_REASON, describe_file

    out, overwrite, as_json, quiet, verbose = (
        context.params[name] for name in ("out", "overwrite", "as_json", "quiet", "verbose")
    )
    output = output_of(context, inputs)
    check_output_file(refuse_stdout(out), inputs)
    is_new = output.find(overwrite=overwrite) is None
    if is_new:
        with print_notes(quiet or as_json) as reported:
            model = make_model()
            reported.add(model.card_.summary)
        model.save(output.path)
        output.note({})
    if quiet or is_stream(output.path):
        return
    described = describe_file(out)
    if as_json or verbose or described.card is None:
        _print_described(described, as_json)
        facts = []
    else:
        facts = [*_summarise(described.card), ("Model", described.path)]
    if as_json:
        return
    if classifier == DEFAULT_CLASSIFIER:
        facts.insert(0, ("Classifier", DEFAULT_REASON))
    facts += [
        ("Next", quote("score", out, next_input, "--out", "predictions.csv")),
        ("", quote("report", out, next_input, "--out", "report.html")),
        ("", "" if is_new else NOTHING_TO_DO),
    ]
    print_facts(facts)


@app.command(cls=Command, rich_help_panel=MODELS)
def info(model: opt.Model, as_json: opt.AsJson = False) -> None:
    """Show a saved model's labels, columns, accuracy and versions, without loading it.

    [bold]Example[/bold]

    labelsure info tickets.labelsure
    """
    from labelsure.tables.training import describe_file

    _print_described(describe_file(model), as_json)


def _read_roles(options: list[str]) -> dict[str, str]:
    roles = {}
    for text in options:
        name, sign, role = text.rpartition("=")
        if not sign:
            raise InputError(f"`--role` must be COLUMN=ROLE, e.g. zip=category, got {text!r}.")
        roles[name] = role
    return roles


def _read_cv(cv: str | None) -> int | float | None:
    if cv is None:
        return None
    try:
        return int(cv) if cv.strip().isdecimal() else float(cv)
    except ValueError as error:
        raise InputError(
            f"`--cv` must be a number of folds, such as 5, or a share, such as 0.4, got {cv!r}."
        ) from error


ADJECTIVES = {"number": "numeric", "category": "categorical", "left out": "unused"}
"""Adjective for the columns of a role."""


def _summarise(card: ModelCard) -> Iterator[tuple[str, str]]:
    """Yield name and text of facts: columns, rows, labels, accuracy, predictions, policy."""
    from labelsure._runtime.notebook import list_names
    from labelsure.metrics.registry import METRICS  # helps of commands need no numpy

    by_role: dict[str, list[JsonObject]] = {}
    for column in card.columns or []:
        if column["role"] not in ("label", "id"):
            by_role.setdefault(column["role"], []).append(column)
    heading = "Columns"
    for role, columns in by_role.items():
        notes = {column["note"] for column in columns}
        note = f", {notes.pop()}" if len(notes) == 1 else ""
        if role == "left out":  # a feature among them would be missed
            note = f" ({list_names([column['name'] for column in columns])}){note}"
        word = ADJECTIVES.get(role, role)
        yield heading, f"{len(columns)} {word} column{'s' if len(columns) > 1 else ''}{note}"
        heading = ""
    n_calibration = card.n_calibration
    yield "Rows", f"{card.n_training:,} for training, {n_calibration:,} for calibration"
    yield "Labels", f"{card.n_labels:,}"
    metric = METRICS[card.metric].title if card.metric in METRICS else card.metric
    interval = f"{card.confidence:.0%} interval {card.low:.3f} to {card.high:.3f}"
    yield f"Mean {metric}", f"{card.estimated:.3f}, estimated ({interval})"
    decision = card.decision[:1].upper() + card.decision[1:]
    yield "Predictions", f"{decision}. {card.comparison}".strip()
    yield "Policy", card.summary


def _print_described(described: DescribedFile, as_json: bool) -> None:
    if as_json:
        print_json(described.to_dict())
        return
    if described.card is not None:
        print_facts([*_summarise(described.card), ("Model", described.path)])
    console = make_console()
    columns: list[JsonObject] = (described.card and described.card.columns) or []
    if columns:
        from rich.table import Table

        table = Table("column", "role", "treatment")
        for column in columns:
            table.add_row(*(on_one_line(str(column[key])) for key in ("name", "role", "note")))
        print_table(table)
    console.print("\n".join(on_one_line(line) for line in str(described).splitlines()))
    if described.card is None:
        console.print(f"Model {described.path}")
