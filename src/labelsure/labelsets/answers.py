"""Answers of a tagger, each a list of label names, as votes: one reader for memory and files.

What is no vote is counted in `OddAnswers`, never dropped in silence: answers that are null, answers
that cannot be parsed (refusals, free text), and names that are no label.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from labelsure._runtime.notebook import count
from labelsure._runtime.typing import Floats, Indices, LabelNames, Labelsets
from labelsure._runtime.warnings import warn
from labelsure.errors import InputError, RowsError, UnseenValuesWarning, unknown_name
from labelsure.labelsets.names import list_some
from labelsure.labelsets.rows import as_table, check_label_names

UNKNOWN = ("refuse", "drop", "keep")
"""What to do with names that are no label."""

LABELS, WEIGHT = "labels", "weight"


@dataclass(frozen=True)
class OddAnswers:
    """Answers that are no vote, or not all of one.

    Parameters
    ----------
    n_null
        Answers that are null: votes not cast.
    n_unparsed
        Answers that are no list of labels, such as refusals and free text: likewise.
    n_empty
        Answers that list no label, which are votes for the empty labelset.
    n_unknown
        Answers with a name that is no label.
    words
        Such names.
    """

    n_null: int = 0
    n_unparsed: int = 0
    n_empty: int = 0
    n_unknown: int = 0
    words: tuple[str, ...] = ()

    def __add__(self, other: OddAnswers) -> OddAnswers:
        sums = {name: value + getattr(other, name) for name, value in asdict(self).items()}
        return OddAnswers(**{**sums, "words": tuple(dict.fromkeys((*self.words, *other.words)))})

    def __bool__(self) -> bool:
        """Whether something was left out."""
        return self.n_null + self.n_unparsed + self.n_unknown > 0

    def __str__(self) -> str:
        """Say what was left out; nothing where that was nothing."""
        if not self:
            return ""
        parts = []
        if self.n_null:
            parts.append(f"{count(self.n_null, 'answer')} null: not counted as a vote.")
        if self.n_unparsed:
            parts.append(
                f"{count(self.n_unparsed, 'answer')} that cannot be parsed as a list of labels: "
                "not counted as a vote."
            )
        if self.n_unknown:
            parts.append(
                f"{count(self.n_unknown, 'answer')} with words that are no label of the model, "
                f"which are left out: {list_some(self.words)}."
            )
        if self.n_empty:
            parts.append(f"{count(self.n_empty, 'answer')} empty: a vote for no label.")
        return " ".join(parts)


class Vote(NamedTuple):
    """One answer: names of labels or zeros and ones, and its weight."""

    labels: list[Any]
    weight: float = 1.0

    @property
    def is_bits(self) -> bool:
        """Whether labels are zeros and ones by position."""
        return bool(self.labels) and all(isinstance(bit, Real) for bit in self.labels)


def parse_answers(value: Any) -> tuple[list[Vote], OddAnswers]:
    """Return the votes of one instance, and what of its answers is none."""
    answers = _parse_json(value)
    if not isinstance(answers, (list, tuple, np.ndarray)):
        raise ValueError(f"it must have a list of answers, got {_shorten(value)}")
    votes: list[Vote] = []
    n_null = n_unparsed = 0
    for given in answers:
        answer, weight = _parse_json(given), 1.0
        if isinstance(answer, dict):
            weight = answer.get(WEIGHT, 1.0)
            answer = _parse_json(answer.get(LABELS))
        if not isinstance(weight, Real) or not 0 <= float(weight) < np.inf:
            raise ValueError(f"the weight of an answer must be a number >= 0, got {weight!r}")
        if answer is None or (isinstance(answer, float) and np.isnan(answer)):
            n_null += 1
        elif isinstance(answer, str):
            n_unparsed += 1
        elif isinstance(answer, (list, tuple, set, frozenset, np.ndarray)):
            labels = list(answer)
            if all(isinstance(label, (str, Real)) for label in labels):
                votes.append(Vote(labels, float(weight)))
            else:
                n_unparsed += 1
        else:
            raise ValueError(f"an answer must be a list of labels, got {_shorten(answer)}")
    if not any(vote.weight > 0 for vote in votes):
        raise ValueError(f"it must have at least one answer that is a vote, got {_shorten(value)}")
    n_empty = sum(not vote.labels for vote in votes)
    return votes, OddAnswers(n_null, n_unparsed, n_empty)


def keep_labels(
    votes: list[Vote], known: Any, n_labels: int, unknown: str = "drop"
) -> tuple[list[Vote], OddAnswers]:
    """Return votes for known labels alone; refuse other names, or count and drop them."""
    kept, n_unknown, words = [], 0, dict[str, None]()
    for vote in votes:
        if vote.is_bits:
            if len(vote.labels) != n_labels or not set(vote.labels) <= {0, 1}:
                raise ValueError(
                    f"an answer of numbers must have {n_labels} zeros and ones, got "
                    f"{_shorten(vote.labels)}"
                )
            kept.append(vote)
            continue
        named = dict.fromkeys(str(label).strip() for label in vote.labels)
        others = [name for name in named if name not in known]
        if others and unknown == "refuse":
            raise ValueError(f"the label {others[0]!r} of an answer is none of the known labels")
        n_unknown += bool(others)
        words.update(dict.fromkeys(others))
        kept.append(Vote([name for name in named if name in known], vote.weight))
    return kept, OddAnswers(n_unknown=n_unknown, words=tuple(words))


def are_answers(samples: Any) -> bool:
    """Whether rows are lists of answers, not an array of numbers."""
    if hasattr(samples, "dtype") and not hasattr(samples, "iloc"):
        return bool(getattr(samples.dtype, "kind", "f") in "OUT")
    if hasattr(samples, "columns") or hasattr(samples, "__array__"):
        return hasattr(samples, "iloc") and not hasattr(samples, "columns")
    return isinstance(samples, (list, tuple)) and any(map(_lists_names, samples))


def _lists_names(row: Any) -> bool:
    """Whether a row is JSON, or has an answer that is something else than numbers."""
    if isinstance(row, str):
        return True
    return isinstance(row, (list, tuple)) and any(
        answer is None
        or isinstance(answer, (str, dict, set, frozenset))
        or (
            isinstance(answer, (list, tuple))
            and (not answer or any(isinstance(label, str) for label in answer))
        )
        for answer in row
    )


def read_answers(
    samples: Any,
    label_names: Iterable[Any] | None,
    *,
    name: str,
    unknown: str = "drop",
    n_labels: int | None = None,
) -> tuple[Labelsets, Floats, Indices, LabelNames, OddAnswers]:
    """Return all votes as rows, their weights, whose they are, the labels, and what is no vote."""
    if unknown not in UNKNOWN:
        raise unknown_name("`unknown`", unknown, UNKNOWN)
    reasons: dict[Any, str] = {}
    parsed, odd = [], OddAnswers()
    for row, value in enumerate(as_table(samples)):
        try:
            votes, found = parse_answers(value)
        except ValueError as error:
            votes, found = [], OddAnswers()
            reasons[row] = str(error)
        parsed.append(votes)
        odd += found
    _raise(reasons, name)
    names = None if label_names is None else tuple(str(label) for label in label_names)
    listed = {
        str(label).strip()
        for votes in parsed
        for vote in votes
        if not vote.is_bits
        for label in vote.labels
    }
    if names is None and n_labels is None:
        names = tuple(sorted(listed))
    elif names is not None and unknown == "keep":
        names = (*names, *sorted(listed - set(names)))
    if not names and (n_labels is None or listed):
        raise InputError(
            f"`{name}` must come with the names of the labels, got {list_some(sorted(listed))} in "
            "answers and no names beside them. Pass all labels as `label_names`."
        )
    names = None if names is None else check_label_names(names, len(names))
    width = n_labels if names is None else len(names)
    places = {label: j for j, label in enumerate(names or ())}
    rows: list[Any] = []
    for row, votes in enumerate(parsed):
        try:
            parsed[row], found = keep_labels(votes, places, int(width or 0), unknown)
        except ValueError as error:
            reasons[row] = str(error)
            continue
        odd += found
        rows += [_as_row(vote, places, int(width or 0)) for vote in parsed[row]]
    _raise(reasons, name)
    if odd:
        warn(str(odd), UnseenValuesWarning)
    weights = np.array([vote.weight for votes in parsed for vote in votes])
    instance = np.repeat(np.arange(len(parsed)), [len(votes) for votes in parsed])
    return np.array(rows, dtype=np.int8).reshape(-1, int(width or 0)), weights, instance, names, odd


def _as_row(vote: Vote, places: dict[str, int], n_labels: int) -> Any:
    if vote.is_bits:
        return vote.labels
    row = np.zeros(n_labels, dtype=np.int8)
    row[[places[label] for label in vote.labels]] = 1
    return row


def _raise(reasons: dict[Any, str], name: str) -> None:
    if reasons:
        raise RowsError(reasons, f"`{name}`")


def _parse_json(value: Any) -> Any:
    """Return what JSON text holds; other text, and anything else, as it is."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def _shorten(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
