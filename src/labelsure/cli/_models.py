"""``labelsure train``, ``calibrate`` and ``info``: models from files, and what they say."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from labelsure._runtime.limits import MAX_JOBS
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
    REQUIRED,
    Given,
    argument,
    choose,
    command,
    option,
    output_of,
)
from labelsure.errors import InputError

if TYPE_CHECKING:
    from labelsure.model._model_card import ModelCard
    from labelsure.tables.training import DescribedFile

SHARED = (
    "labels label_column sep csv_sep encoding id_column metric decision target share "
    "guarantee region confidence"
)
"""Options of `train` and `calibrate` that go to the library as they are."""


@command(
    f"data out {SHARED} drop text role classifier cv seed n_jobs overwrite as_json quiet verbose",
    group=MODELS,
    n_jobs=option(int, "--jobs -j", "Processes that fit; one by default.", min=1, max=MAX_JOBS),
)
def train(given: Given) -> None:
    """Train a classifier on a table, and say how accurate it is expected to be.

    [bold]Examples[/bold]

    labelsure train tickets.csv --labels urgent,billing --id ticket --target 0.9 --out tickets.labelsure

    labelsure train tickets.parquet --label-column tags --label-sep ";" --text message --out tickets.labelsure
    """  # noqa: E501, a command stands on one line

    def make_model() -> Any:
        from labelsure.tables.training import train_model

        return train_model(
            given.data,
            drop=given.drop or (),
            roles={**_read_roles(given.role or []), **dict.fromkeys(given.text or [], "text")},
            cv=_read_cv(given.cv),
            random_state=given.seed,
            **choose(given, f"{SHARED} classifier n_jobs"),
        )

    _write_model("train", given, given.data, make_model)


@command(
    f"predictions truth out {SHARED} labels_from kind unknown sparse floor seed overwrite as_json "
    "quiet verbose",
    group=MODELS,
    predictions=argument(
        str, "PREDICTIONS", "What another system predicted: a table, or JSONL, labels with scores."
    ),
    truth=option(str, "--truth", "A table of true labels.", REQUIRED),
    labels=option(str, "--labels", "Names of the labels, in order, separated by commas."),
)
def calibrate(given: Given) -> None:
    """Say how accurate another system's predictions are, from some whose truth is known.

    [bold]Examples[/bold]

    labelsure calibrate scores.npy --truth truth.csv --target 0.9 --out tagger.labelsure

    labelsure calibrate answers.jsonl --truth truth.csv --id id --out tagger.labelsure

    labelsure calibrate sparse.npz --truth sparse_truth.npz --labels-from names.txt --out tags.labelsure
    """  # noqa: E501, a command stands on one line
    if given.labels is not None and given.labels_from is not None:
        raise InputError(
            "The labels must be given by `--labels` or by `--labels-from`, got both. Leave one out."
        )

    def make_model() -> Any:
        from labelsure.tables.datasets import read_label_file
        from labelsure.tables.training import calibrate_model

        settings = choose(given, f"{SHARED} kind unknown sparse floor")
        if given.labels_from is not None:
            settings["labels"] = read_label_file(given.labels_from, given.encoding)
        return calibrate_model(given.predictions, given.truth, random_state=given.seed, **settings)

    inputs = filter(None, (given.predictions, given.truth, given.labels_from))
    _write_model("calibrate", given, list(inputs), make_model)


def _write_model(name: str, given: Given, inputs: list[str], make_model: Callable[[], Any]) -> None:
    """Save a model unless it is there; print a summary, where it is, and what to do with it."""
    from labelsure._runtime.storage import check_output_file, is_stream
    from labelsure.tables.training import describe_file

    output = output_of(name, given, inputs)
    check_output_file(refuse_stdout(given.out), inputs)
    is_new = output.find(overwrite=given.overwrite) is None
    if is_new:
        with print_notes(given.quiet or given.as_json) as told:
            model = make_model()
            told.add(model.card_.summary)
        model.save(output.path)
        output.note({})
    if given.quiet or is_stream(output.path):
        return
    described = describe_file(given.out)
    if given.as_json or given.verbose or described.card is None:
        _print_described(described, given.as_json)
        facts = []
    else:
        facts = [*_summarise(described.card), ("Model", described.path)]
    if given.as_json:
        return
    next_of = {"train": "NEW.csv", "calibrate": "NEW_PREDICTIONS.csv"}
    facts += [
        ("Next", quote("score", given.out, next_of[name], "--out", "predictions.csv")),
        ("", quote("report", given.out, next_of[name], "--out", "report.html")),
        ("", "" if is_new else NOTHING_TO_DO),
    ]
    print_facts(facts)


@command("model as_json", group=MODELS)
def info(given: Given) -> None:
    """Say what a saved model is, without loading it: its labels, columns, accuracy and versions.

    [bold]Example[/bold]

    labelsure info tickets.labelsure
    """
    from labelsure.tables.training import describe_file

    _print_described(describe_file(given.model), given.as_json)


def _read_roles(given: list[str]) -> dict[str, str]:
    roles = {}
    for text in given:
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
"""How columns are called by their roles."""


def _summarise(card: ModelCard) -> Iterator[tuple[str, str]]:
    """Yield what was done with the columns, the estimated accuracy, and what is accepted."""
    from labelsure._runtime.notebook import list_names
    from labelsure.metrics.registry import METRICS  # helps of commands need no numpy

    by_role: dict[str, list[dict[str, Any]]] = {}
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
    yield "Predictions", f"{card.decision}. {card.comparison}".strip()
    yield "Policy", card.summary


def _print_described(described: DescribedFile, as_json: bool) -> None:
    if as_json:
        print_json(described.to_dict())
        return
    console = make_console()
    columns: list[dict[str, Any]] = (described.card and described.card.columns) or []
    if columns:
        from rich.table import Table

        table = Table("column", "role", "what is done")
        for column in columns:
            table.add_row(*(on_one_line(str(column[key])) for key in ("name", "role", "note")))
        print_table(table)
    console.print("\n".join(on_one_line(line) for line in str(described).splitlines()))
    console.print(f"Model {described.path}")
