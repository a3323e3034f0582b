"""Answers of other systems, parsed: votes, and scores by label.

Memory and files share it. A *cell* is the output for one instance, as JSON text or decoded: a list
of answers, each a list of labels; or scores by label, also as pairs ``{"label": ..., "score":
...}``. Answers that are no vote are counted in `OddAnswers`, never dropped silently: null, text
that is no list (refusals), and names that are no label.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from labelsure._runtime.notebook import count
from labelsure._runtime.typing import Floats, Indices, LabelNames, Labelsets, Names
from labelsure.errors import InputError, RowsError, UnseenValuesWarning, unknown_name, warn
from labelsure.labelsets.foreign import as_table, index_of
from labelsure.labelsets.label_names import check_label_names, read_names
from labelsure.labelsets.names import list_some, lists_names

if TYPE_CHECKING:
    import pandas as pd

UNKNOWN = ("refuse", "drop", "keep")
"""Ways to handle names that are no label."""

LABEL, SCORE, LABELS, SCORES, WEIGHT = "label", "score", "labels", "scores", "weight"
YES_AND_NO = {"yes", "no"}


def parse_cell(value: object) -> Any:
    """Cell as lists and dictionaries; JSON text is decoded."""
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


def show_value(value: object) -> str:
    """Value as text for messages, at most 60 characters."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


# Scores


def find_pairs(value: object) -> list[tuple[str, object]] | None:
    """Pairs of label and score; None where a cell has none. Raises ValueError for a bad pair."""
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


def pair_lists(labels: object, scores: object) -> list[tuple[str, object]]:
    """Pairs of label and score from two lists, the output of zero-shot pipelines.

    Raises ValueError unless both are lists of one length.
    """
    labels, scores = parse_cell(labels), parse_cell(scores)
    if not isinstance(labels, list) or not isinstance(scores, list):
        raise ValueError(
            f"labels and scores must be lists, got {show_value(labels)}, {show_value(scores)}"
        )
    if len(labels) != len(scores):
        raise ValueError(f"it must have a score for each label, got {len(labels)}, {len(scores)}")
    return [(str(label), score) for label, score in zip(labels, scores, strict=True)]


def scores_by_name(
    pairs: list[tuple[str, object]], label_names: Sequence[str], missing: float | None = None
) -> Floats:
    """Scores in the order of the labels, (L,); labels without one have `missing`.

    Raises ValueError for a label that is unknown, repeated, or has no score.
    """
    score_of = dict(pairs)
    if len(score_of) < len(pairs):
        raise ValueError("a label has two scores")
    unknown = next((label for label in score_of if label not in label_names), None)
    if unknown is not None:
        raise ValueError(f"the label {unknown!r} is unknown to the model")
    absent = next((label for label in label_names if label not in score_of), None)
    if absent is not None and missing is None:
        raise ValueError(
            f"the label {absent!r} has no score; print the scores of all labels, e.g. by "
            "top_k=None, or give absent labels a probability by `floor`; in files `sparse` says "
            "that rows list some of them"
        )
    return np.array([read_score(score_of.get(label, missing), label) for label in label_names])


def read_score(score: object, label: str) -> float:
    """Score as a number. Raises ValueError with the label for anything else."""
    if isinstance(score, bool) or not isinstance(score, Real) or not np.isfinite(float(score)):
        raise ValueError(f"the score of {label!r} must be a finite number, got {show_value(score)}")
    return float(score)


def are_scores(source: Any) -> bool:
    """Whether the source is a list of cells with scores by label, not an array or a table."""
    source = as_table(source)
    if hasattr(source, "columns"):  # records as a table, NaN where labels are missing
        return any(column.dtype == object or column.isna().any() for _, column in source.items())
    if not (isinstance(source, (list, tuple)) or _is_object(source)):
        return False
    first = parse_cell(next(iter(source), None))
    return isinstance(first, dict) or (
        isinstance(first, list) and bool(first) and isinstance(first[0], dict)
    )


def read_scores(
    cells: object,
    label_names: Names,
    *,
    name: str,
    in_logs: bool = False,
    missing: float | None = None,
) -> pd.DataFrame:
    """Scores with a column for each label, by default for the labels of the first cell."""
    import pandas as pd

    names = read_names(label_names)
    rows, reasons = [], dict[Any, str]()
    table = as_table(cells)
    if hasattr(table, "columns"):
        table = [
            {
                label: score
                for label, score in row.items()
                if isinstance(score, dict) or score == score
            }
            for row in table.to_dict("records")
        ]
    for i, cell in enumerate(table):
        try:
            pairs = find_pairs(parse_cell(cell))
            if pairs is None:
                raise ValueError(f"it must have labels with their scores, got {show_value(cell)}")
            names = tuple(label for label, _ in pairs) if names is None else names
            pairs = [(label, _normalise(score, in_logs)) for label, score in pairs]
            rows.append(scores_by_name(pairs, names, missing))
        except ValueError as error:
            reasons[i] = str(error)
    _raise_if_any(reasons, name)
    return pd.DataFrame(rows, index_of(cells), names)


def _normalise(score: object, in_logs: bool) -> Any:
    """Probability of "yes" where a label has those of both words; other scores unchanged."""
    if not isinstance(score, dict) or set(map(str.lower, score)) != YES_AND_NO:
        return score
    yes, no = (read_score(score[word], word) for word in sorted(score, reverse=True))
    return yes - np.logaddexp(yes, no) if in_logs else yes / (yes + no) if yes + no else np.nan


# Votes


@dataclass(frozen=True)
class OddAnswers:
    """Answers that are no vote, or not all of one.

    Parameters
    ----------
    n_null
        Answers that are null: votes not cast.
    n_unparsed
        Answers that are no list of labels, such as refusals and free text: votes not cast.
    n_empty
        Answers that list no label, which are votes for the empty labelset.
    n_unknown
        Answers with a name that is no label.
    words
        The names that are no label.
    """

    n_null: int = 0
    n_unparsed: int = 0
    n_empty: int = 0
    n_unknown: int = 0
    words: tuple[str, ...] = ()

    def __add__(self, other: OddAnswers) -> OddAnswers:
        return OddAnswers(
            self.n_null + other.n_null,
            self.n_unparsed + other.n_unparsed,
            self.n_empty + other.n_empty,
            self.n_unknown + other.n_unknown,
            tuple(dict.fromkeys((*self.words, *other.words))),
        )

    def __str__(self) -> str:
        """Summary of the answers that were left out; empty if there are none."""
        if not self.n_null + self.n_unparsed + self.n_unknown:
            return ""
        counts = {
            "null: not counted as a vote.": self.n_null,
            "that cannot be parsed as a list of labels: not counted as a vote.": self.n_unparsed,
            "with words that are no label of the model, which are left out: "
            f"{list_some(self.words)}.": self.n_unknown,
            "empty: a vote for no label.": self.n_empty,
        }
        return " ".join(f"{count(n, 'answer')} {reason}" for reason, n in counts.items() if n)


Vote = tuple[list[Any], float]
"""Labels of an answer, as names or zeros and ones, and its weight."""


def _are_bits(labels: list[object]) -> bool:
    """Whether labels are zeros and ones by position."""
    return bool(labels) and all(isinstance(bit, Real) for bit in labels)


def parse_answers(value: object) -> tuple[list[Vote], OddAnswers]:
    """Votes of one instance, and counts of other answers. Raises ValueError if it has no vote."""
    answers = parse_cell(value)
    if not isinstance(answers, list):
        raise ValueError(f"it must have a list of answers, got {show_value(value)}")
    votes: list[Vote] = []
    n_null = n_unparsed = 0
    for entry in answers:
        answer, weight = parse_cell(entry), 1.0
        if isinstance(answer, dict):
            weight = answer.get(WEIGHT, 1.0)
            answer = parse_cell(answer.get(LABELS))
        if not isinstance(weight, Real) or not 0 <= float(weight) < np.inf:
            raise ValueError(f"the weight of an answer must be a number >= 0, got {weight!r}")
        if answer is None or (isinstance(answer, float) and np.isnan(answer)):
            n_null += 1
        elif isinstance(answer, (list, set, frozenset)) and all(
            isinstance(label, (str, Real)) for label in answer
        ):
            votes.append((list(answer), float(weight)))
        elif isinstance(answer, (str, list)):
            n_unparsed += 1
        else:
            raise ValueError(f"an answer must be a list of labels, got {show_value(answer)}")
    if not any(weight > 0 for _, weight in votes):
        shown = show_value(value)
        raise ValueError(f"it must have at least one answer that is a vote, got {shown}")
    return votes, OddAnswers(n_null, n_unparsed, sum(not labels for labels, _ in votes))


def read_votes_of_cell(
    value: object, label_names: Sequence[str], unknown: str = "drop"
) -> tuple[Labelsets, Floats, OddAnswers]:
    """Votes of one instance as rows, (m, L), their weights, and counts of odd answers."""
    votes, odd = parse_answers(value)
    positions = {label: j for j, label in enumerate(label_names)}
    rows = np.zeros((len(votes), len(positions)), dtype=np.int8)
    for row, (labels, _) in zip(rows, votes, strict=True):
        if _are_bits(labels):
            if len(labels) != len(positions) or not set(labels) <= {0, 1}:
                raise ValueError(
                    f"an answer of numbers must have {len(positions)} zeros and ones, got "
                    f"{show_value(labels)}"
                )
            row[:] = labels
            continue
        named = [str(label).strip() for label in labels]
        row[[positions[name] for name in named if name in positions]] = 1
        unknown_names = tuple(name for name in named if name not in positions)
        if unknown_names and unknown == "refuse":
            raise ValueError(f"the label {unknown_names[0]!r} of an answer is unknown to the model")
        odd += OddAnswers(n_unknown=bool(unknown_names), words=unknown_names)
    return rows, np.array([weight for _, weight in votes]), odd


def names_in_answers(cells: Iterable[object]) -> tuple[str, ...]:
    """All names in answers, sorted; cells that cannot be read are skipped."""
    names: set[str] = set()
    for cell in cells:
        try:
            votes, _ = parse_answers(cell)
        except ValueError:
            continue
        names.update(str(x).strip() for labels, _ in votes if not _are_bits(labels) for x in labels)
    return tuple(sorted(names))


def are_answers(samples: object) -> bool:
    """Whether rows are lists of answers, not an array of numbers."""
    if _is_object(samples):
        return True
    return isinstance(samples, (list, tuple)) and any(map(_is_cell, samples))


def _is_object(values: object) -> bool:
    """Whether values are an array or a Series of Python objects or texts."""
    kind = getattr(getattr(values, "dtype", None), "kind", "f")
    return (hasattr(values, "iloc") and not hasattr(values, "columns")) or kind in "OUT"


def _is_cell(row: object) -> bool:
    """Whether a row is JSON, or has an answer that is something else than numbers."""
    return isinstance(row, str) or (
        isinstance(row, (list, tuple))
        and any(
            answer is None or isinstance(answer, (str, dict)) or not answer or lists_names(answer)
            for answer in row
            if not isinstance(answer, (Real, np.ndarray))
        )
    )


def read_answers(
    samples: object, label_names: Names, unknown: str
) -> tuple[Labelsets, Floats, Indices, LabelNames]:
    """Votes as rows, (m, L), their weights and instances, (m,), and the label names."""
    if unknown not in UNKNOWN:
        raise unknown_name("`unknown`", unknown, UNKNOWN)
    cells = list(as_table(samples))
    names = read_names(label_names) or ()
    if label_names is None or unknown == "keep":
        names += tuple(word for word in names_in_answers(cells) if word not in names)
    if not names:
        raise InputError(
            "`samples` must name labels, got empty answers only. Pass all labels as `label_names`."
        )
    check_label_names(names, len(names))
    reasons, odd = dict[Any, str](), OddAnswers()
    rows, weights, sizes = [np.zeros((0, len(names)), np.int8)], [np.empty(0)], []
    for i, cell in enumerate(cells):
        try:
            votes, weight, odd_of_cell = read_votes_of_cell(cell, names, unknown)
        except ValueError as error:
            reasons[i] = str(error)
            continue
        rows.append(votes)
        weights.append(weight)
        sizes.append(len(weight))
        odd += odd_of_cell
    _raise_if_any(reasons, "samples")
    if str(odd):
        warn(str(odd), UnseenValuesWarning)
    instance = np.repeat(np.arange(len(cells)), sizes)
    return np.concatenate(rows), np.concatenate(weights), instance, names


def _raise_if_any(reasons: dict[object, str], name: str) -> None:
    if reasons:
        raise RowsError(reasons, f"`{name}`")
