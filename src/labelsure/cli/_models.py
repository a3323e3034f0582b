"""``labelsure train``, ``calibrate`` and ``info``: models from files, and what they say."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from labelsure._runtime.limits import MAX_JOBS
from labelsure._runtime.storage import check_output_file, expand_path, is_stream
from labelsure.cli._console import (
    InstanceBar,
    make_console,
    on_one_line,
    print_notes,
    refuse_stdout,
)
from labelsure.cli._options import (
    NOTHING_TO_DO,
    CsvSeparatorOption,
    JsonOption,
    LabelSeparatorOption,
    OverwriteOption,
    QuietOption,
    output_of,
)
from labelsure.errors import InputError

if TYPE_CHECKING:
    from labelsure.model._model_card import ModelCard
    from labelsure.tables.training import DescribedFile

MAX_SEED = 2**32 - 1

Table = Annotated[
    list[str],
    typer.Argument(
        help="A table: .csv, .tsv, .parquet, .jsonl, .npy or .npz, or a folder of these.",
        metavar="DATA",
    ),
]
Labels = Annotated[
    str | None, typer.Option("--labels", help="Label columns, with commas; patterns are allowed.")
]
LabelColumn = Annotated[
    str | None, typer.Option("--label-column", help="A column with the names of labels instead.")
]
IdColumn = Annotated[str | None, typer.Option("--id", help="The column that names the rows.")]
Drop = Annotated[str | None, typer.Option("--drop", help="Columns to leave out, with commas.")]
Texts = Annotated[
    list[str] | None, typer.Option("--text", help="A column of texts, if it looks otherwise.")
]
Roles = Annotated[
    list[str] | None,
    typer.Option("--role", help="COLUMN=number or COLUMN=category, likewise."),
]
ClassifierName = Annotated[
    str,
    typer.Option(
        "--classifier",
        help="ecc, br, trellis, pcc, powerset, layer or forest.",
        metavar="NAME",
    ),
]
FoldsOrShare = Annotated[
    str | None,
    typer.Option(
        "--cv",
        help="Share of rows to hold out, such as 0.4; or folds, such as 5, without guarantee.",
        metavar="FOLDS|SHARE",
    ),
]
MetricName = Annotated[
    str,
    typer.Option(
        "--metric", help="exact, hamming, jaccard, f1, recall or precision.", metavar="NAME"
    ),
]
Decision = Annotated[
    str,
    typer.Option(
        "--decision",
        help="What is predicted and judged: best (highest expected accuracy), mode (most "
        "probable), or predict (the classifier's own).",
        metavar="NAME",
    ),
]
Target = Annotated[
    float | None,
    typer.Option(
        "--target", min=0, max=1, help="Mean accuracy that accepted predictions must reach."
    ),
]
Share = Annotated[
    float | None,
    typer.Option("--share", min=0, max=1, help="Share of predictions to accept instead."),
]
Region = Annotated[
    float | None,
    typer.Option("--region", min=0, max=1, help="Nominal coverage of certain and possible labels."),
]
Confidence = Annotated[
    float, typer.Option("--confidence", min=0, max=1, help="Confidence level of the guarantee.")
]
Seed = Annotated[
    int, typer.Option("--seed", min=0, max=MAX_SEED, help="Of everything that is random.")
]
FitJobs = Annotated[
    int | None,
    typer.Option("--jobs", "-j", min=1, max=MAX_JOBS, help="Processes that fit; one by default."),
]
LabelFile = Annotated[
    str | None, typer.Option("--labels-from", help="A text file with a label in each line.")
]
Sparse = Annotated[
    bool,
    typer.Option("--sparse", help="Rows list some of very many labels; a sparse .npz says so."),
]
Floor = Annotated[
    float | None,
    typer.Option("--floor", help="The probability of a label that is not listed; 2**-24."),
]
Out = Annotated[Path, typer.Option("--out", "-o", help="The file of the model.")]
Verbose = Annotated[
    bool, typer.Option("--verbose", "-v", help="Print every column and the whole model card.")
]


def train(
    data: Table,
    out: Out,
    labels: Labels = None,
    label_column: LabelColumn = None,
    label_sep: LabelSeparatorOption = None,
    csv_sep: CsvSeparatorOption = None,
    id_column: IdColumn = None,
    drop: Drop = None,
    text: Texts = None,
    role: Roles = None,
    classifier: ClassifierName = "ecc",
    metric: MetricName = "jaccard",
    decision: Decision = "best",
    target: Target = None,
    share: Share = None,
    region: Region = None,
    cv: FoldsOrShare = None,
    confidence: Confidence = 0.95,
    seed: Seed = 0,
    jobs: FitJobs = None,
    overwrite: OverwriteOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: Verbose = False,
) -> None:
    """Train a classifier on a table, and say how accurate it is expected to be.

    [bold]Examples[/bold]

    labelsure train tickets.csv --labels urgent,billing --id ticket --target 0.9 --out tickets.labelsure

    labelsure train tickets.parquet --label-column tags --label-sep ";" --text message --out tickets.labelsure
    """  # noqa: E501, a command stands on one line
    given = locals()

    def make_model() -> Any:
        from labelsure.tables.training import train_model

        return train_model(
            data,
            drop=drop or (),
            roles={**_read_roles(role or []), **dict.fromkeys(text or [], "text")},
            classifier=classifier,
            cv=_read_cv(cv),
            n_jobs=jobs,
            **_settings_of(given),
        )

    _write_model("train", given, data, make_model)


def calibrate(
    predictions: Annotated[
        str,
        typer.Argument(
            help="What another system predicted: a table, or JSONL with labels and scores.",
            metavar="PREDICTIONS",
        ),
    ],
    truth: Annotated[str, typer.Option("--truth", help="A table of true labels.")],
    out: Out,
    labels: Annotated[
        str | None, typer.Option("--labels", help="The labels, with commas, in order.")
    ] = None,
    label_column: LabelColumn = None,
    label_sep: LabelSeparatorOption = None,
    csv_sep: CsvSeparatorOption = None,
    id_column: IdColumn = None,
    labels_from: LabelFile = None,
    logits: Annotated[
        bool, typer.Option("--logits", help="Scores are logits, not probabilities.")
    ] = False,
    sparse: Sparse = False,
    floor: Floor = None,
    metric: MetricName = "jaccard",
    decision: Decision = "best",
    target: Target = None,
    share: Share = None,
    region: Region = None,
    confidence: Confidence = 0.95,
    seed: Seed = 0,
    overwrite: OverwriteOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: Verbose = False,
) -> None:
    """Say how accurate another system's predictions are, from some whose truth is known.

    [bold]Examples[/bold]

    labelsure calibrate scores.npy --truth truth.csv --target 0.9 --out tagger.labelsure

    labelsure calibrate answers.jsonl --truth truth.csv --id id --out tagger.labelsure

    labelsure calibrate sparse.npz --truth sparse_truth.npz --labels-from names.txt --out tags.labelsure
    """  # noqa: E501, a command stands on one line
    given = locals()
    if labels is not None and labels_from is not None:
        raise InputError("The labels must be said once: by `--labels` or by `--labels-from`.")

    def make_model() -> Any:
        from labelsure.tables.datasets import read_label_file
        from labelsure.tables.training import calibrate_model

        settings = _settings_of(given)
        if labels_from is not None:
            settings["labels"] = read_label_file(labels_from)
        return calibrate_model(
            predictions, truth, logits=logits, sparse=sparse, floor=floor, **settings
        )

    inputs = [name for name in (predictions, truth, labels_from) if name is not None]
    _write_model("calibrate", given, inputs, make_model)


SHARED = (
    *("labels", "label_column", "id_column", "csv_sep", "metric", "decision"),
    *("target", "share", "region", "confidence"),
)
"""Options of `train` and `calibrate` that the library knows by the same names."""


def _settings_of(given: dict[str, Any]) -> dict[str, Any]:
    shared = {name: given[name] for name in SHARED}
    return {**shared, "sep": given["label_sep"], "random_state": given["seed"]}


def _write_model(
    command: str, given: dict[str, Any], inputs: list[str], make: Callable[[], Any]
) -> None:
    """Save a model unless it is there, and print what it is."""
    output = output_of(command, given, inputs)
    check_output_file(refuse_stdout(given["out"]), inputs)
    is_new = output.find(overwrite=given["overwrite"]) is None
    if is_new:
        is_quiet = given["quiet"] or given["as_json"]
        with print_notes(is_quiet), InstanceBar(is_quiet):
            model = make()
        model.save(output.path)
        output.note({})
    printing = {name: given[name] for name in ("as_json", "quiet", "verbose")}
    _show(output.path, is_new=is_new, **printing)


def info(
    model: Annotated[Path, typer.Argument(help="A saved model.", metavar="MODEL")],
    as_json: JsonOption = False,
) -> None:
    """Say what a saved model is, without loading it: its labels, columns, accuracy and versions.

    [bold]Example[/bold]

    labelsure info tickets.labelsure
    """
    from labelsure.tables.training import describe_file

    _print_described(describe_file(model), as_json)


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


def _show(out: Path, *, as_json: bool, quiet: bool, verbose: bool, is_new: bool) -> None:
    """Print what was made: a summary, where it is, and what to do with it."""
    from labelsure.tables.training import describe_file

    if quiet or is_stream(expand_path(out)):
        return
    described = describe_file(out)
    if as_json or verbose or described.card is None:
        _print_described(described, as_json)
    else:
        console = make_console()
        console.print("\n".join(on_one_line(line) for line in _summarise(described.card)))
        console.print(f"Model {described.path}")
    if as_json:
        return
    model = shlex.quote(str(out))
    print(f"Next: labelsure score {model} NEW.csv --out predictions.csv")
    print(f"      labelsure report {model} NEW.csv --out report.html")
    if not is_new:
        print(NOTHING_TO_DO)


ADJECTIVES = {"number": "numeric", "category": "categorical", "left out": "unused"}
"""How columns are called by their roles."""


def _summarise(card: ModelCard) -> Iterator[str]:
    """Yield what was done with the columns, the estimated accuracy, and what is accepted."""
    notes: dict[str, list[str]] = {}
    for column in card.columns or []:
        if column["role"] not in ("label", "id"):
            notes.setdefault(column["role"], []).append(column["note"])
    for role, said in notes.items():
        note = f", {said[0]}" if len(set(said)) == 1 else ""
        word = ADJECTIVES.get(role, role)
        yield f"{len(said)} {word} column{'s' if len(said) > 1 else ''}{note}."
    yield f"{card.n_labels or len(card.label_names)} labels, {card.n_training} training instances."
    from labelsure.metrics.registry import METRICS  # helps of commands need no numpy

    metric = METRICS[card.metric].title if card.metric in METRICS else card.metric
    yield (
        f"Estimated mean {metric} {card.estimated:.3f} ({card.confidence:.0%} interval "
        f"{card.low:.3f} to {card.high:.3f})."
    )
    yield f"Judged: {card.decision}. {card.comparison}".strip()
    yield card.summary


def _print_described(described: DescribedFile, as_json: bool) -> None:
    if as_json:
        print(json.dumps(described.to_dict(), indent=2))
        return
    console = make_console()
    columns: list[dict[str, Any]] = (described.card and described.card.columns) or []
    if columns:
        from rich.table import Table

        table = Table("column", "role", "what is done")
        for column in columns:
            table.add_row(*(on_one_line(str(column[key])) for key in ("name", "role", "note")))
        console.print(table)
    console.print("\n".join(on_one_line(line) for line in str(described).splitlines()))
    console.print(f"Model {described.path}")
