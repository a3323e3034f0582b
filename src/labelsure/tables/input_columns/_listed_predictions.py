"""Predictions that list some of very many labels: what one cell says, and all labels that occur.

A reader returns a `ListedCell`, and raises a ValueError whose text completes "Row 3 cannot be used:
...".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from labelsure.errors import InputError
from labelsure.labelsets.rows import show_names
from labelsure.tables.input_columns._prediction_layouts import (
    find_pairs,
    pair_lists,
    parse_cell,
    read_score,
    show_value,
)
from labelsure.tables.listed_cells import ListedCell


class LabelPlaces:
    """Where each label stands: what readers of cells look names up in.

    Parameters
    ----------
    label_names
        The labels; None where they have no names.
    n_labels
        How many there are.
    logits
        Whether scores are logits; otherwise they must lie in [0, 1].

    Examples
    --------
    >>> LabelPlaces(["cat", "dog"], 2, logits=False).find("dog")
    1
    """

    def __init__(self, label_names: Sequence[str] | None, n_labels: int, *, logits: bool) -> None:
        self.names, self.n_labels, self.logits = label_names, n_labels, logits
        self._places = {name: j for j, name in enumerate(label_names or ())}

    def __len__(self) -> int:
        return self.n_labels

    def find(self, label: str) -> int:
        """Return the place of a label, or raise a ValueError."""
        if label in self._places:
            return self._places[label]
        raise ValueError(
            f"the label {label!r} is none of the model's {len(self)}; name all labels when the "
            "model is made, with `labels`"
        )

    def make_cell(self, places: Sequence[int], scores: Sequence[float]) -> ListedCell:
        """Return labels by place with their scores, or raise a ValueError for what is wrong."""
        columns, values = np.array(places, np.int64), np.array(scores, np.float64)
        order = np.argsort(columns, kind="stable")
        cell = ListedCell(columns[order], values[order], len(self))
        twice = np.flatnonzero(np.diff(cell.columns) == 0)
        if len(twice):
            (label,) = show_names(self.names, cell.columns[twice[:1]])
            raise ValueError(f"the label {label!r} has two scores")
        return self.check_scores(cell)

    def check_scores(self, cell: ListedCell) -> ListedCell:
        """Return a cell whose scores are such, or raise a ValueError for the first that is not."""
        is_bad = ~np.isfinite(cell.values)
        if not self.logits:
            is_bad |= (cell.values < 0) | (cell.values > 1)
        if is_bad.any():
            at = int(np.flatnonzero(is_bad)[0])
            (label,), value = show_names(self.names, cell.columns[[at]]), cell.values[at]
            must = "be a finite number" if not np.isfinite(value) else "lie in [0, 1]"
            hint = "; logits are read with `logits`"
            raise ValueError(
                f"the score of {label!r} must {must}, got {value:g}"
                f"{hint if np.isfinite(value) else ''}"
            )
        return cell


def read_listed_pairs(value: Any, places: LabelPlaces) -> ListedCell:
    """Return what a cell with pairs of label and score lists.

    Parameters
    ----------
    value
        Pairs ``{"label": ..., "score": ...}``, or a score for each listed label by name.
    places
        The labels.
    """
    parsed = parse_cell(value)
    pairs = [] if parsed in ([], {}) else find_pairs(parsed)
    if pairs is None:
        raise ValueError(
            "it must list labels with their scores, pairs such as {'label': 'a', 'score': 0.9}, "
            f"got {show_value(value)}"
        )
    return _read_pairs(pairs, places)


def read_listed_lists(labels: Any, scores: Any, places: LabelPlaces) -> ListedCell:
    """Return what two lists say; arguments as of `pair_lists` and `read_listed_pairs`."""
    return _read_pairs(pair_lists(labels, scores), places)


def _read_pairs(pairs: list[tuple[str, Any]], places: LabelPlaces) -> ListedCell:
    scores = [read_score(score, label) for label, score in pairs]
    return places.make_cell([places.find(label) for label, _ in pairs], scores)


def read_listed_row(value: Any, places: LabelPlaces) -> ListedCell:
    """Return a row of a sparse matrix whose scores are such.

    Parameters
    ----------
    value
        A `ListedCell` with as many columns as there are labels.
    places
        The labels.
    """
    if not isinstance(value, ListedCell):
        raise ValueError(f"it must be a row of a sparse matrix, got {show_value(value)}")
    return places.check_scores(value)


def all_listed_labels(columns: Sequence[Iterable[Any]]) -> list[str]:
    """Return all labels that cells list, sorted; cells that cannot be read are left for later.

    Parameters
    ----------
    columns
        The column of cells with pairs; or that of lists of labels, and that of their scores.
    """
    found: set[str] = set()
    for cells in zip(*columns, strict=True):
        try:
            pairs = find_pairs(parse_cell(cells[0])) if len(cells) == 1 else pair_lists(*cells)
        except ValueError:
            continue
        found.update(label for label, _ in pairs or [])
    if not found:
        raise InputError(
            "Predictions must list at least one label, they list none. Name all labels with "
            "`labels`."
        )
    return sorted(found)
