"""How another system's predictions stand in a table, and what one cell of it says.

A reader of a cell returns a score for each label, or zeros and ones for each answer, and raises a
ValueError whose text completes "Row 3 cannot be used: ...".
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from labelsure._runtime.notebook import count
from labelsure._runtime.typing import Floats
from labelsure.errors import InputError
from labelsure.labelsets.index import list_some
from labelsure.tables.listed_cells import ListedCell

if TYPE_CHECKING:
    import pandas as pd

COLUMNS, POSITIONS, CELLS, LISTS, ANSWERS = "columns", "positions", "cells", "lists", "answers"
LISTED = "listed"
LAYOUTS = {
    COLUMNS: "a column of scores for each label",
    POSITIONS: "an array with a column of scores for each label, in their order",
    CELLS: "a cell with the scores of all labels",
    LISTS: "a list of labels and a list of their scores",
    ANSWERS: "a list of answers, each of which is a list of labels",
    LISTED: "a row of a sparse matrix, which lists some labels by number, with their scores",
}
"""What stands in a row."""

SPARSE_LAYOUTS = (CELLS, LISTS, LISTED)
"""Those in which rows may list some labels only."""

ANSWER_NAMES = ("answers", "votes", "samples")
SCORE_NAMES = ("scores", "predictions", "probabilities", "logits", "value")
"""Columns that hold all scores of a row are looked for under these names; the last is what
`table_files` calls rows without columns."""

LABEL, SCORE, LABELS, SCORES = "label", "score", "labels", "scores"


@dataclass(frozen=True)
class Layout:
    """Where the predictions of a row are.

    Parameters
    ----------
    name
        One of `LAYOUTS`.
    column
        The column that holds them, where it is one.
    label_names
        The labels that the table names; None where it counts them.
    n_labels
        How many a sparse matrix has; None for others.
    """

    name: str
    column: str | None = None
    label_names: tuple[str, ...] | None = None
    n_labels: int | None = None


def find_layout(frame: pd.DataFrame, id_column: str | None = None) -> Layout:
    """Return how predictions stand in a table, by the names of its columns and the first row.

    Parameters
    ----------
    frame
        Predictions of another system.
    id_column
        The column that names the rows.

    Examples
    --------
    >>> import pandas as pd
    >>> find_layout(pd.DataFrame({"id": [7], "cat": [0.9], "dog": [0.2]}), "id").label_names
    ('cat', 'dog')
    """
    others = [name for name in frame.columns if str(name) != id_column]
    if not others or not len(frame):
        raise InputError(
            "Predictions must have a row for each instance and a column beside the id, got "
            f"{len(frame)} rows and {len(others)} such columns."
        )
    if all(isinstance(name, (int, np.integer)) for name in others):
        return Layout(POSITIONS)
    first = {str(name): parse_cell(frame[name].iloc[0]) for name in others}
    for name, value in first.items():
        if isinstance(value, ListedCell):
            return Layout(LISTED, name, n_labels=value.n_columns)
    if isinstance(first.get(LABELS), list) and isinstance(first.get(SCORES), list):
        return Layout(LISTS, label_names=tuple(map(str, first[LABELS])))
    named = [name for name in (*ANSWER_NAMES, *SCORE_NAMES) if name in first]
    for name in named or (list(first) if len(first) == 1 else []):
        value = first[name]
        if _are_answers(value) or (name in ANSWER_NAMES and isinstance(value, list)):
            return Layout(ANSWERS, name)
        if isinstance(value, (list, dict)):
            return Layout(CELLS, name, _names_in_cell(value))
    return Layout(COLUMNS, label_names=tuple(first))


def check_lists_labels(layout: str) -> None:
    """Refuse a layout in which a row cannot list some labels only.

    Parameters
    ----------
    layout
        One of `LAYOUTS`.
    """
    if layout not in SPARSE_LAYOUTS:
        raise InputError(
            "Rows that list some labels must have pairs of label and score, or be those of a "
            f"sparse matrix, got {LAYOUTS[layout]}. Leave out `sparse`, or write "
            "labels with their scores."
        )


def parse_cell(value: Any) -> Any:
    """Return a cell as lists and dictionaries, also where it is text that holds JSON."""
    if isinstance(value, np.ndarray):
        return [parse_cell(part) for part in value] if value.dtype == object else value.tolist()
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    if isinstance(value, (list, tuple)):
        return [parse_cell(part) if isinstance(part, np.ndarray) else part for part in value]
    return value


def _are_answers(value: Any) -> bool:
    """Whether a cell is a list of lists, of labels or of zeros and ones; some may be null."""
    given = [answer for answer in value if answer is not None] if isinstance(value, list) else []
    return (
        all(isinstance(answer, list) for answer in given)
        and not any(isinstance(label, dict) for answer in given for label in answer)
        and bool(given)
    )


def _names_in_cell(value: Any) -> tuple[str, ...] | None:
    try:
        pairs = find_pairs(parse_cell(value))
    except ValueError:
        return None
    return None if pairs is None else tuple(label for label, _ in pairs)


def read_cell(value: Any, label_names: Sequence[str]) -> Floats:
    """Return the scores in one cell, (L,).

    Parameters
    ----------
    value
        Numbers in the order of the labels; a score for each label by name; or pairs
        ``{"label": ..., "score": ...}``, as pipelines of Hugging Face print them.
    label_names
        The labels.
    """
    parsed = parse_cell(value)
    pairs = find_pairs(parsed)
    if pairs is not None:
        return _scores_by_name(pairs, label_names)
    if not isinstance(parsed, list):
        raise ValueError(f"its scores must be a list, got {show_value(value)}")
    if len(parsed) != len(label_names):
        raise ValueError(f"it must have {len(label_names)} scores, got {len(parsed)}")
    return np.array(
        [read_score(score, label) for score, label in zip(parsed, label_names, strict=True)]
    )


def find_pairs(value: Any) -> list[tuple[str, Any]] | None:
    """Return labels with their scores, None where a cell is no such thing.

    Parameters
    ----------
    value
        As `parse_cell` returns it.
    """
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], list):
        value = value[0]  # as for a batch of one text
    if isinstance(value, dict):
        if isinstance(value.get(LABELS), list) and isinstance(value.get(SCORES), list):
            return pair_lists(value[LABELS], value[SCORES])
        if set(value) != {LABEL, SCORE}:
            return [(str(label), score) for label, score in value.items()]
        value = [value]
    if not isinstance(value, list) or not any(isinstance(pair, dict) for pair in value):
        return None
    for pair in value:
        if not isinstance(pair, dict) or not {LABEL, SCORE} <= set(pair):
            raise ValueError(f"each entry must have a label and a score, got {show_value(pair)}")
    return [(str(pair[LABEL]), pair[SCORE]) for pair in value]


def pair_lists(labels: Any, scores: Any) -> list[tuple[str, Any]]:
    """Return labels with their scores from two lists, as zero-shot pipelines print them.

    Parameters
    ----------
    labels, scores
        Lists of the same length, or JSON text of these.
    """
    labels, scores = parse_cell(labels), parse_cell(scores)
    if not isinstance(labels, list) or not isinstance(scores, list):
        raise ValueError(
            f"labels and scores must be lists, got {show_value(labels)}, {show_value(scores)}"
        )
    if len(labels) != len(scores):
        raise ValueError(f"it must have a score for each label, got {len(labels)}, {len(scores)}")
    return [(str(label), score) for label, score in zip(labels, scores, strict=True)]


def read_lists(labels: Any, scores: Any, label_names: Sequence[str]) -> Floats:
    """Return the scores of two lists, (L,); arguments as of `pair_lists` and `read_cell`."""
    return _scores_by_name(pair_lists(labels, scores), label_names)


def _scores_by_name(pairs: list[tuple[str, Any]], label_names: Sequence[str]) -> Floats:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a label has two scores")
    unknown = next((label for label in found if label not in label_names), None)
    if unknown is not None:
        raise ValueError(f"the label {unknown!r} is none of the model's")
    missing = next((label for label in label_names if label not in found), None)
    if missing is not None:
        raise ValueError(
            f"the label {missing!r} has no score; let the other system print the scores of all "
            "labels, e.g. by top_k=None, or say that rows list some of them by `sparse`"
        )
    return np.array([read_score(found[label], label) for label in label_names])


def read_score(score: Any, label: str) -> float:
    """Return a score as a number, or raise a ValueError; the label is for the message."""
    if isinstance(score, bool) or not isinstance(score, Real) or not np.isfinite(float(score)):
        raise ValueError(f"the score of {label!r} must be a finite number, got {show_value(score)}")
    return float(score)


def read_answers(value: Any, label_names: Sequence[str]) -> Floats:
    """Return the answers of one cell as zeros and ones, (n_answers, L).

    Answers that are null, and words in answers that are no label, are left out: see
    `OddAnswers`.

    Parameters
    ----------
    value
        A list with one entry for each answer: a list of labels, or of zeros and ones.
    label_names
        The labels.
    """
    given = [answer for answer in _answers_in(value) if answer is not None]
    if not given:
        raise ValueError(f"it must have at least one answer, got {show_value(value)}")
    return np.array([_read_answer(answer, label_names) for answer in given])


def _answers_in(value: Any) -> list[Any]:
    """Return the answers of a cell, each as it was given or None."""
    parsed = parse_cell(value)
    answers = parsed if isinstance(parsed, list) else []
    return [a.get(LABELS) if isinstance(a, dict) else parse_cell(a) for a in answers]


@dataclass(frozen=True)
class OddAnswers:
    """What is left out of answers: those that are null, and words that are no label.

    Parameters
    ----------
    n_null
        Answers that are null.
    n_unknown
        Answers with a word that is no label.
    words
        Such words.
    """

    n_null: int = 0
    n_unknown: int = 0
    words: tuple[str, ...] = ()

    @classmethod
    def count(cls, values: Iterable[Any], label_names: Sequence[str]) -> OddAnswers:
        """Count them in some cells."""
        known, words = set(label_names), dict[str, None]()
        n_null = n_unknown = 0
        for answer in (answer for value in values for answer in _answers_in(value)):
            n_null += answer is None
            listed = answer if isinstance(answer, list) and not _are_bits(answer) else []
            unknown = [str(word) for word in listed if str(word) not in known]
            n_unknown += bool(unknown)
            words.update(dict.fromkeys(unknown))
        return cls(n_null, n_unknown, tuple(words))

    def __add__(self, other: OddAnswers) -> OddAnswers:
        words = tuple(dict.fromkeys((*self.words, *other.words)))
        return OddAnswers(self.n_null + other.n_null, self.n_unknown + other.n_unknown, words)

    def __str__(self) -> str:
        """Say what was left out; nothing where that was nothing."""
        parts = []
        if self.n_null:
            parts.append(f"{count(self.n_null, 'answer')} null: not counted as a vote.")
        if self.n_unknown:
            parts.append(
                f"{count(self.n_unknown, 'answer')} with words that are no label of the model, "
                f"which are left out: {list_some(self.words)}."
            )
        return " ".join(parts)


def _are_bits(answer: list[Any]) -> bool:
    return all(isinstance(bit, (int, float)) for bit in answer)


def _read_answer(answer: Any, label_names: Sequence[str]) -> list[float]:
    if not isinstance(answer, list):
        raise ValueError(f"an answer must be a list of labels, got {show_value(answer)}")
    if answer and _are_bits(answer):
        if len(answer) != len(label_names) or not set(answer) <= {0, 1}:
            raise ValueError(
                f"an answer of numbers must have {len(label_names)} zeros and ones, got "
                f"{show_value(answer)}"
            )
        return [float(bit) for bit in answer]
    chosen = set(map(str, answer))
    return [float(label in chosen) for label in label_names]


def all_labels_in_answers(values: Iterable[Any]) -> tuple[str, ...] | None:
    """Return the labels that occur in answers, sorted; None where these are zeros and ones.

    Parameters
    ----------
    values
        The cells.
    """
    found: set[str] = set()
    for labels in (answer for value in values for answer in _answers_in(value)):
        if isinstance(labels, list):
            if any(not isinstance(label, str) for label in labels):
                return None
            found |= set(labels)
    return tuple(sorted(found)) or None


def show_value(value: Any) -> str:
    """Return a value as messages show it, not too long."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
