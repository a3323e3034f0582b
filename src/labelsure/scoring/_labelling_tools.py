"""Predictions for labelling tools: Label Studio's tasks and Argilla's records, doubtful first."""

from __future__ import annotations

import json
import mmap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import quoteattr

import numpy as np

from labelsure.scoring._part_formats import plain_records

if TYPE_CHECKING:
    import pandas as pd

AGENT = "labelsure"
QUESTION = "labels"
"""The name of the choice between labels: `name` of Choices in Label Studio, question in Argilla."""

SHOWN = "shown"
"""The name of what people see, in Label Studio's configuration."""

CHANCE, DOUBT = "chance", "doubt"
"""Why people see an instance. Only those that chance has chosen say something about all."""


@dataclass(frozen=True)
class LabellingTool:
    """A tool that people label with.

    Parameters
    ----------
    make_record
        Makes what the tool reads of an input row and a row of the table of predictions.
    doubt
        Returns what records are ordered by: whether it was accepted, and the estimated accuracy.
    """

    make_record: Callable[[dict[str, Any], dict[str, Any]], dict[str, Any]]
    doubt: Callable[[dict[str, Any]], tuple[bool, float]]


def _notes(row: dict[str, Any]) -> dict[str, Any]:
    """Return what is said of a prediction beside its labels."""
    names = ("id", "file", "row", "estimated_accuracy", "expected_accuracy", "accept", "reason")
    chosen_by = {} if "audit" not in row else {"chosen_by": CHANCE if row["audit"] else DOUBT}
    return {**{name: row[name] for name in names if name in row}, **chosen_by}


def _label_studio(shown: dict[str, Any], row: dict[str, Any]) -> dict[str, Any]:
    """Return a task; what labelsure says stands beside the input's columns under a prefix."""
    choices = {
        "from_name": QUESTION,
        "to_name": SHOWN,
        "type": "choices",
        "value": {"choices": row["predicted"]},
    }
    return {
        "data": {**shown, **{f"labelsure_{name}": value for name, value in _notes(row).items()}},
        "predictions": [
            {"model_version": AGENT, "score": row["estimated_accuracy"], "result": [choices]}
        ],
    }


def _argilla(shown: dict[str, Any], row: dict[str, Any]) -> dict[str, Any]:
    """Return a record as Argilla's `from_json` reads it; its fields are texts."""
    notes = {name: value for name, value in _notes(row).items() if value is not None}
    suggestion = {
        "value": row["predicted"],
        "score": row["estimated_accuracy"],
        "agent": AGENT,
    }
    return {
        "id": str(row.get("id", f"{row['file']}:{row['row']}")),
        "fields": {name: "" if value is None else str(value) for name, value in shown.items()},
        "metadata": notes,
        "suggestions": {QUESTION: suggestion},
        "responses": {},
        "vectors": {},
    }


TOOLS = {
    "label-studio": LabellingTool(
        _label_studio,
        lambda task: (
            bool(task["data"]["labelsure_accept"]),
            task["data"]["labelsure_estimated_accuracy"],
        ),
    ),
    "argilla": LabellingTool(
        _argilla,
        lambda record: (
            bool(record["metadata"].get("accept")),
            record["metadata"]["estimated_accuracy"],
        ),
    ),
}
"""The tools by name."""


def write_records(tool: str, shown: pd.DataFrame, table: pd.DataFrame, path: Path) -> None:
    """Write a line of JSON for each prediction of a part.

    Parameters
    ----------
    tool
        One of `TOOLS`.
    shown
        The input, whose columns people see.
    table
        The predictions, in the same order.
    path
        Where to write them.
    """
    make_record = TOOLS[tool].make_record
    with open(path, "w", encoding="utf-8") as file:
        for row, columns in zip(plain_records(table), plain_records(shown), strict=True):
            record = make_record(columns, row)
            file.write(json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n")


def order_records(tool: str, lines: Path, path: Path) -> None:
    """Write a JSON list of records, the doubtful ones first, those that are accepted last.

    Only where each record begins and how doubtful it is are held in memory.

    Parameters
    ----------
    tool
        One of `TOOLS`.
    lines
        The records, one on each line.
    path
        Where to write them.
    """
    starts, doubts = [0], []
    with open(lines, "rb") as file:
        for line in file:
            doubts.append(TOOLS[tool].doubt(json.loads(line)))
            starts.append(starts[-1] + len(line))
    accepted = np.array([accept for accept, _ in doubts], dtype=bool)
    accuracies = np.array([accuracy for _, accuracy in doubts])
    order = np.lexsort((accuracies, accepted))
    with open(lines, "rb") as file, open(path, "wb") as ordered:
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            for place, i in enumerate(order):
                ordered.write(b"[\n" if place == 0 else b",\n")
                ordered.write(content[starts[i] : starts[i + 1]].rstrip(b"\n"))
        ordered.write(b"\n]\n")


def label_studio_config(label_names: Sequence[str], column: str) -> str:
    """Return the labelling configuration that Label Studio needs for these tasks.

    Parameters
    ----------
    label_names
        The labels of the model.
    column
        The column of the input that people see.

    Examples
    --------
    >>> print(label_studio_config(["cat", "dog"], "text"))
    <View>
      <Text name="shown" value="$text"/>
      <Choices name="labels" toName="shown" choice="multiple">
        <Choice value="cat"/>
        <Choice value="dog"/>
      </Choices>
    </View>
    """
    choices = "".join(f"\n    <Choice value={quoteattr(name)}/>" for name in label_names)
    return (
        f'<View>\n  <Text name="{SHOWN}" value={quoteattr("$" + column)}/>\n'
        f'  <Choices name="{QUESTION}" toName="{SHOWN}" choice="multiple">{choices}\n'
        "  </Choices>\n</View>"
    )
