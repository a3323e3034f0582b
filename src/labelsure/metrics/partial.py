"""Answers that may leave labels open: each label is there, absent, or not decided."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from labelsure._runtime.notebook import N_ROWS, count, make_html
from labelsure._runtime.typing import (
    Floats,
    Integers,
    LabelNames,
    Labelsets,
    LabelsetsLike,
    Mask,
    RowsLike,
)
from labelsure.errors import InputError
from labelsure.labelsets.foreign import refuse_masked
from labelsure.labelsets.label_names import check_label_names
from labelsure.labelsets.lists import name_rows
from labelsure.labelsets.names import (
    align_labelsets,
    check_sep,
    read_vector,
    take_rows,
    wrong_index,
)
from labelsure.labelsets.reading import OPEN
from labelsure.metrics.registry import Counts, MetricLike, check_empty, check_metrics, get_metric

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class PartialLabelsets:
    """Labelsets with abstentions: each label is present, absent or open.

    Parameters
    ----------
    values
        (n, L): 1 where a label is present, 0 where it is absent, -1 where it is open.
    label_names
        One for each label; None where they have none.
    index
        Row names; None where rows have none.
    gap
        (n,) upper bounds of the regret of each answer; None where they were not computed.

    See Also
    --------
    decide : Abstains on single labels with `open_cost` or `skeptical`.
    LabelsetRegion : Abstains with a coverage guarantee.

    Notes
    -----
    Partial abstention: Nguyen and Hüllermeier (2020), Reliable multilabel classification:
    prediction with partial abstention, AAAI, arXiv:1904.09235.

    Examples
    --------
    >>> answer = PartialLabelsets([[1, 0, -1], [0, 0, 0]], ["cat", "dog", "owl"])
    >>> answer.certain, answer.possible, answer.open
    ([('cat',), ()], [('cat', 'owl'), ()], [('owl',), ()])
    >>> answer.agrees([[1, 0, 1], [0, 1, 0]])
    array([ True, False])
    """

    values: Labelsets
    label_names: LabelNames = None
    index: pd.Index | None = None
    gap: Floats | None = None

    def __post_init__(self) -> None:
        values = _check_values(self.values)
        names = check_label_names(self.label_names, values.shape[1])
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "label_names", names)
        if self.index is not None and len(self.index) != len(values):
            raise wrong_index(self.index, len(values))
        if self.gap is not None:
            object.__setattr__(self, "gap", read_vector(self.gap, "gap", n_samples=len(values)))

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(n_samples={len(self)}, n_labels={self.n_labels})"

    def __getitem__(self, rows: RowsLike) -> Self:
        """Answers of some rows: an index, a slice, indices or a mask."""
        return take_rows(self, rows)

    @property
    def n_labels(self) -> int:
        """The number of labels, L."""
        return self.values.shape[1]

    @property
    def is_certain(self) -> Mask:
        """Mask of the labels that are present, (n, L)."""
        return self.values == 1

    @property
    def is_possible(self) -> Mask:
        """Mask of the labels that are present or open, (n, L)."""
        return self.values != 0

    @property
    def is_open(self) -> Mask:
        """Mask of the open labels, (n, L)."""
        return self.values == OPEN

    @property
    def certain(self) -> list[tuple[str, ...]]:
        """The names of the labels that are present, for each instance."""
        return name_rows(self.is_certain, self.label_names)

    @property
    def possible(self) -> list[tuple[str, ...]]:
        """The names of the labels that are present or open, for each instance."""
        return name_rows(self.is_possible, self.label_names)

    @property
    def open(self) -> list[tuple[str, ...]]:
        """The names of the labels that are open, for each instance."""
        return name_rows(self.is_open, self.label_names)

    @property
    def n_open(self) -> Integers:
        """Number of open labels, (n,)."""
        return self.is_open.sum(axis=1)

    def align(self, Y: LabelsetsLike, name: str = "Y_true") -> Labelsets:
        """Labelsets in the order of these labels and instances. Raises InputError if they differ.

        Parameters
        ----------
        Y
            Zeros and ones or label names, as for `labelsure.read_labelsets`. The columns of a
            DataFrame are compared by name, its rows by index; an array goes by position.
        name
            Name of the argument in messages.
        """
        return align_labelsets(Y, self, name=name, beside="the answer")

    def agrees(self, Y_true: LabelsetsLike) -> Mask:
        """Whether all decided labels are right, (n,); the mean is the coverage.

        An answer that leaves all labels open agrees with every truth.

        Parameters
        ----------
        Y_true
            True labelsets, as for `align`.
        """
        return ((self.values == self.align(Y_true)) | self.is_open).all(axis=1)

    def counts(self, Y_true: LabelsetsLike) -> Counts:
        """(tp, fp, fn, tn) of the decided labels, each (n,); open ones are in none.

        Parameters
        ----------
        Y_true
            True labelsets, as for `align`.
        """
        true, certain, absent = self.align(Y_true) == 1, self.is_certain, self.values == 0
        pairs = ((certain, true), (certain, ~true), (absent, true), (absent, ~true))
        tp, fp, fn, tn = ((decided & actual).sum(axis=1) for decided, actual in pairs)
        return tp, fp, fn, tn

    def accuracy(self, Y_true: LabelsetsLike, metric: MetricLike, *, empty: float = 1.0) -> Floats:
        """Accuracy of the decided labels alone, (n,); NaN where all labels are open.

        Parameters
        ----------
        Y_true
            True labelsets, as for `align`.
        metric
            "exact", "hamming", "jaccard", "f1", or a function of (tp, fp, fn, tn).
        empty
            The Jaccard and F1 where no decided label is set, neither here nor in the truth.

        Examples
        --------
        >>> PartialLabelsets([[1, 0, -1], [-1, -1, -1]]).accuracy([[1, 1, 1], [0, 0, 0]], "hamming")
        array([0.5, nan])
        """
        metric, empty = get_metric(metric), check_empty(empty)
        counts = self.counts(Y_true)
        is_decided = self.n_open < self.n_labels
        values = np.full(len(self), np.nan)
        tp, fp, fn, tn = (count[is_decided] for count in counts)
        values[is_decided] = metric.values(tp, fp, fn, tn, empty=empty)
        return values

    def compare(
        self,
        Y_true: LabelsetsLike,
        metrics: Sequence[MetricLike] = ("exact", "hamming", "jaccard", "f1"),
        *,
        empty: float = 1.0,
    ) -> pd.DataFrame:
        """Compare each answer with the truth.

        Parameters
        ----------
        Y_true
            (n, L) true labelsets, zeros and ones or a list of label names for each instance.
        metrics
            Metrics of the decided labels, by name or as functions of (tp, fp, fn, tn).
        empty
            Value of Jaccard and F1 for two empty labelsets.

        Returns
        -------
        pandas.DataFrame
            One row per instance: `agrees` (all decided labels are right; its mean is the coverage),
            `n_certain`, `n_possible`, `share_open`, and the accuracy of the decided labels under
            each metric, missing where all labels are open.

        Examples
        --------
        >>> answer = PartialLabelsets([[1, 0, -1], [1, 1, 0]])
        >>> answer.compare([[1, 0, 0], [1, 0, 0]], ["hamming"]).mean().round(3).to_dict()
        {'agrees': 0.5, 'n_certain': 1.5, 'n_possible': 2.0, 'share_open': 0.167, 'hamming': 0.833}
        """
        import pandas as pd

        true = self.align(Y_true)
        columns = {
            "agrees": self.agrees(true),
            "n_certain": self.is_certain.sum(axis=1),
            "n_possible": self.is_possible.sum(axis=1),
            "share_open": self.n_open / self.n_labels,
        }
        for metric in check_metrics(metrics):
            columns[metric.name] = self.accuracy(true, metric, empty=empty)
        return pd.DataFrame(columns, self.index)

    def to_frame(self, *, sep: str | None = None) -> pd.DataFrame:
        """Names of certain, possible and open labels as a table, one row per instance.

        `gap` follows where it was computed.

        Parameters
        ----------
        sep
            Separator between label names, e.g. ";" for CSV; None for tuples of names.
        """
        import pandas as pd

        check_sep(sep, self.label_names)
        masks = {"certain": self.is_certain, "possible": self.is_possible, "open": self.is_open}
        columns: dict[str, object] = {
            name: name_rows(mask, self.label_names, sep) for name, mask in masks.items()
        }
        if self.gap is not None:
            columns["gap"] = self.gap
        index = pd.RangeIndex(len(self)) if self.index is None else self.index
        return pd.DataFrame(columns).set_axis(index)

    def _repr_html_(self) -> str:
        sizes = f"{count(len(self), 'answer')} about {count(self.n_labels, 'label')}"
        share = f", {self.is_open.mean():.1%} of the labels open" if len(self) else ""
        return make_html(f"{sizes}{share}.", self[:N_ROWS].to_frame(sep=None))


def _check_values(values: object) -> Labelsets:
    refuse_masked(values, "values")
    array = np.asarray(values)
    if array.ndim != 2 or array.shape[1] == 0 or array.dtype.kind not in "iuf":
        raise InputError(
            f"`values` must be an (n, L) array of 1, 0 and -1, got shape {array.shape} and dtype "
            f"{array.dtype}."
        )
    is_invalid = ~np.isin(array, (1, 0, OPEN))
    if is_invalid.any():
        row, column = np.argwhere(is_invalid)[0]
        raise InputError(
            f"`values` must be 1 (present), 0 (absent) or -1 (open), got {array[row, column]} in "
            f"row {row}, column {column}."
        )
    return array.astype(np.int8)
