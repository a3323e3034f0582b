"""How often a predicted labelset occurred among those that the classifier was trained on.

A labelset that was seen often is easier to predict than one that was never seen, and the
distribution of one instance does not say which it is. The feature is log((count + 1/2) / (n + 1)),
so that a labelset that was never seen has one, too.

It must be counted in the training data, or in other instances that the estimator is not fitted to:
an instance that is counted itself is in the count just when its prediction is right.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from labelsure._typing import Floats, Integers, Labelsets
from labelsure.distributions import LabelsetDistribution
from labelsure.errors import InputError
from labelsure.labelsets import code_keys, given_names
from labelsure.saving import expect, is_array
from labelsure.score_table import ScoreTable


@dataclass(frozen=True)
class LabelsetFrequencies:
    """The labelsets of some instances, and how many instances have each.

    Parameters
    ----------
    labelsets
        (m, L) the distinct ones, in the order of their codes.
    counts
        (m,) instances with each.
    label_names
        One for each label; None where nobody named them.

    Examples
    --------
    >>> seen = LabelsetFrequencies.of(np.array([[1, 0], [1, 0], [0, 1]], dtype=np.int8))
    >>> seen.counts_of(np.array([[1, 0], [1, 1]], dtype=np.int8))
    array([2, 0])
    >>> seen.log_frequencies(np.array([[1, 0], [1, 1]], dtype=np.int8)).round(2)
    array([-0.47, -2.08])
    """

    labelsets: Labelsets
    counts: Integers
    label_names: tuple[str, ...] | None = None

    @classmethod
    def of(cls, Y: Labelsets, label_names: tuple[str, ...] | None = None) -> LabelsetFrequencies:
        """Count (n, L) labelsets of at least one instance."""
        _, first, counts = np.unique(code_keys(Y), return_index=True, return_counts=True)
        names = None if label_names is None else given_names(label_names)
        return cls(np.ascontiguousarray(Y[first]), counts.astype(np.int64), names)

    @classmethod
    def read(cls, Y_train: Any, dist: Any) -> LabelsetFrequencies:
        """Count the labelsets of training data, in the order of the labels of a distribution.

        Parameters
        ----------
        Y_train
            In any form of labelsets, or counted already.
        dist
            What is judged: labels are compared by name where both have names.
        """
        from labelsure.named_labelsets import match_labels, read_labelsets  # only fits need it

        if isinstance(Y_train, cls):
            return Y_train
        names = None
        if isinstance(dist, LabelsetDistribution):
            names = given_names(dist.label_names)
        is_frame = hasattr(Y_train, "columns")
        read = read_labelsets(Y_train, None if is_frame else names, name="Y_train")
        rows = read.rows
        if is_frame and names is not None and read.label_names is not None:
            rows = rows[:, match_labels(read.label_names, names, "Y_train", "the distribution")]
        if len(rows) == 0:
            raise InputError("`Y_train` must hold at least one labelset, got none. Leave it out.")
        return cls.of(rows, names or read.label_names)

    def counts_of(self, Y: Labelsets) -> Integers:
        """Return how many instances had each of the (n, L) labelsets, 0 for what was not seen."""
        n_labels = self.labelsets.shape[1]
        if Y.shape[1] != n_labels:
            raise InputError(
                f"The predictions must have the {n_labels} labels of the training data, got "
                f"{Y.shape[1]}. Pass what the same classifier predicted."
            )
        known, keys = code_keys(self.labelsets), code_keys(Y)
        places = np.minimum(np.searchsorted(known, keys), len(known) - 1)
        return np.where(known[places] == keys, self.counts[places], 0)

    def log_frequencies(self, Y: Labelsets) -> Floats:
        """Return the feature for each of the (n, L) labelsets."""
        return np.log((self.counts_of(Y) + 0.5) / (self.counts.sum() + 1))

    def add_to(self, table: ScoreTable, source: Any = None) -> ScoreTable:
        """Return a table with the frequencies of its decisions.

        Parameters
        ----------
        table
            Of predictions by the classifier that these are the training labels of.
        source
            What the table was made of. The labels of a distribution must be these.
        """
        names = given_names(getattr(source, "label_names", None) or ())
        if names is not None and self.label_names is not None and names != self.label_names:
            raise InputError(
                "`dist` must have the labels of the training data, in their order, got "
                f"{', '.join(names)} instead of {', '.join(self.label_names)}."
            )
        return table.with_frequencies(self.log_frequencies(read_decisions(table)))

    def check_loaded(self) -> None:
        """Raise an `InputError` if these cannot be counts of labelsets."""
        shape: tuple[int, ...] = getattr(self.labelsets, "shape", ())
        expect(
            len(shape) == 2
            and min(shape) > 0
            and self.labelsets.dtype == np.int8
            and bool(np.isin(self.labelsets, (0, 1)).all()),
            "the labelsets that were seen must be rows of zeros and ones",
        )
        keys = code_keys(self.labelsets)
        expect(
            bool((keys[1:] > keys[:-1]).all()),
            "the labelsets that were seen must be distinct and in order",
        )
        expect(
            is_array(self.counts, shape[:1]) and bool((self.counts >= 1).all()),
            "each labelset that was seen must have been seen at least once",
        )
        names = self.label_names
        expect(
            names is None or (isinstance(names, tuple) and len(names) == shape[1]),
            "the labelsets that were seen must have a name for each label, or none",
        )


def read_decisions(table: ScoreTable) -> Labelsets:
    """Return the predicted labelsets of a table, (n, L); a DataFrame has them as digits."""
    if table.decisions is not None:
        return table.decisions
    digits = [str(text) for text in table.to_frame().get("decision", [])]
    lengths = {len(text) for text in digits}
    if len(lengths) != 1 or set("".join(digits)) - {"0", "1"}:
        raise InputError(
            "The table must have a column 'decision' with the predicted labelsets, a digit for "
            "each of the same labels, or a column 'log_frequency', for an estimator that counts "
            "labelsets. `ScoreTable.from_distribution` makes it."
        )
    bits = np.frombuffer("".join(digits).encode("ascii"), dtype=np.uint8) - ord("0")
    return bits.reshape(len(digits), lengths.pop()).astype(np.int8)
