"""What a region says of each instance: certain and possible labels; its labelsets on request."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from labelsure._runtime import limits as _limits
from labelsure._runtime.typing import Floats, Indices, Integers, Labelsets, Mask
from labelsure.distributions._bridge import LabelsetDistribution
from labelsure.distributions._chain_mixture import ChainMixture
from labelsure.errors import InputError
from labelsure.labelsets.codes import OPEN
from labelsure.labelsets.weighted import WeightedLabelsets
from labelsure.metrics.partial import PartialLabelsets

if TYPE_CHECKING:
    import pandas as pd

COUNTED = 1000  # labelsets of an instance that are counted one by one where there is no other way
LEAST_LOG = -700.0  # of a probability that is a number above 0
FIRST_SEEN = 64  # labelsets among which a likely one is found
FIRST_LISTED = 16  # each further round lists four times as many


@dataclass(frozen=True, eq=False, repr=False)
class ListedLabelsets:
    """The labelsets of regions, each instance's most probable ones first.

    Parameters
    ----------
    labelsets
        Ragged rows with their probabilities as weights.
    is_complete
        (n,) whether these are all labelsets of the region; otherwise there are at least as many.
    """

    labelsets: WeightedLabelsets
    is_complete: Mask

    def __len__(self) -> int:
        return len(self.labelsets)

    def __repr__(self) -> str:
        listed = len(self.labelsets.weights)
        return f"{type(self).__name__}(n_samples={len(self)}, n_labelsets={listed})"

    def of(self, row: int) -> tuple[Labelsets, Floats]:
        """Return the labelsets of one instance, (k, L), and their probabilities, (k,)."""
        starts = self.labelsets.starts
        some = slice(starts[row], starts[row + 1])
        return self.labelsets.rows[some], self.labelsets.weights[some]


@dataclass(frozen=True, eq=False, repr=False)
class RegionLabelsets(PartialLabelsets):
    """Certain and possible labels of each instance, and the region that they come from.

    What `LabelsetRegion.predict` returns. A label is certain if it is in all labelsets of the
    region and possible if it is in one of them. Of a region without labelsets no label is certain
    and all are possible. Everything of `labelsure.PartialLabelsets` is here, too.

    Parameters
    ----------
    values, label_names, index, gap
        As for `PartialLabelsets`.
    log_thresholds
        (n,) the region holds the labelsets with at least this log-probability: -inf for all of
        them, inf for none.
    is_empty
        (n,) whether no labelset is in the region.
    source
        The distributions, of which labelsets are listed or counted when they are asked for.

    Examples
    --------
    >>> import labelsure as ls
    >>> dist = ls.IndependentLabels([[0.9, 0.4, 0.1]], ["cat", "dog", "owl"])
    >>> truth = [[1, 0, 0]] * 5 + [[1, 1, 0]] * 4
    >>> region = ls.LabelsetRegion(coverage=0.9).fit(dist[[0] * 9], truth)
    >>> answer = region.predict(dist)
    >>> answer.certain, answer.possible, answer.n_labelsets
    ([('cat',)], [('cat', 'dog')], array([2]))
    """

    log_thresholds: Floats = field(default_factory=lambda: np.empty(0))
    is_empty: Mask = field(default_factory=lambda: np.empty(0, dtype=bool))
    source: LabelsetDistribution | None = None

    def list_labelsets(self, max_labelsets: int = 1000) -> ListedLabelsets:
        """Return the labelsets of each region, the most probable ones first.

        Parameters
        ----------
        max_labelsets
            Of an instance at most. A region can hold billions: then these are its most probable
            ones, and `is_complete` says so.
        """
        limit = _check_limit(max_labelsets)
        if self.source is None:
            raise InputError(
                "The labelsets of a region must come from probabilities of labelsets, got a region "
                "of single labels (score='marginal'). Use score='probability'."
            )
        return _list_down_to(self.source, self.log_thresholds, limit)

    @cached_property
    def _counts(self) -> tuple[Integers, Mask]:
        n_labels = self.n_labels
        if self.source is not None and n_labels <= _limits.CHEAP_DENSE_LABELS:
            numbers = np.zeros(len(self), dtype=np.int64)
            for rows in _limits.cut_rows(len(self), 8 * 2**n_labels, _limits.DECISION_BYTES):
                with np.errstate(divide="ignore"):
                    logs = np.log(self.source[rows].probabilities())
                numbers[rows] = (logs >= self.log_thresholds[rows, np.newaxis]).sum(axis=1)
            return numbers, np.ones(len(self), dtype=bool)
        listed = self.list_labelsets(COUNTED)
        return listed.labelsets.lengths.astype(np.int64), listed.is_complete

    @property
    def n_labelsets(self) -> Integers:
        """How many labelsets are in each region, (n,); at least, where `is_counted` is False."""
        return self._counts[0]

    @property
    def is_counted(self) -> Mask:
        """Whether all labelsets of the region were counted, (n,): beyond 1,000 they may not be."""
        return self._counts[1]

    def contains(self, Y: Any) -> Mask:
        """Say whether a labelset is in the region of its instance, (n,): the mean is the coverage.

        Parameters
        ----------
        Y
            One labelset for each instance, as for `align`.
        """
        if self.source is None:
            return self.agrees(Y)
        return np.asarray(self.source.log_prob(self.align(Y)) >= self.log_thresholds)

    def to_frame(self, *, sep: str | None = None, count: bool = True) -> pd.DataFrame:
        """Return the names of certain, possible and open labels as a table, a row an instance.

        Parameters
        ----------
        sep
            What stands between names of labels, e.g. ";" for CSV; None for tuples of names.
        count
            Whether to count the labelsets: `n_labelsets`, at least so many where `is_counted` is
            False.
        """
        table = super().to_frame(sep=sep)
        table["is_empty"] = self.is_empty
        if count and self.source is not None:
            table["n_labelsets"], table["is_counted"] = self._counts
        return table


def _check_limit(max_labelsets: Any) -> int:
    if not isinstance(max_labelsets, (int, np.integer)) or max_labelsets < 1:
        raise InputError(
            f"`max_labelsets` must be a whole number of at least 1, got {max_labelsets!r}."
        )
    return int(max_labelsets)


def mark_labels(source: LabelsetDistribution, log_thresholds: Floats) -> tuple[Labelsets, Mask]:
    """Return which labels are in all or in some labelsets of each region, and which has none.

    What cannot be ruled out within the budget of an engine counts as possible, never as certain.

    Parameters
    ----------
    source
        The distributions.
    log_thresholds
        (n,) the least log-probability of what is in the region.
    """
    values = np.full((len(source), source.n_labels), OPEN, dtype=np.int8)
    is_empty = log_thresholds == np.inf
    is_known = np.isinf(log_thresholds) | _find_open(source, log_thresholds)
    for rows in _alike(log_thresholds, np.flatnonzero(~is_known)):
        least = float(min(log_thresholds[rows].min(), 0.0))
        high = source[rows]._max_marginals(least).high
        reached = high >= log_thresholds[rows, np.newaxis, np.newaxis]
        without, having = reached[:, :, 0], reached[:, :, 1]
        values[rows] = np.where(without & having, OPEN, having)
        is_empty[rows] = ~(without | having).any(axis=1)
    values[is_empty] = OPEN
    return values, is_empty


def _find_open(source: LabelsetDistribution, log_thresholds: Floats) -> Mask:
    """Say of which instances one likely labelset shows that all labels are open, (n,).

    It is in the region, and so is each labelset that differs from it in a single label. Then there
    is no need of a search, which takes longest just where probabilities are flat.
    """
    is_open = np.zeros(len(source), dtype=bool)
    if not isinstance(source, ChainMixture) or source.n_labels <= _limits.CHEAP_DENSE_LABELS:
        return is_open
    likely = source.with_engine(engine="certified", budget=FIRST_SEEN).mode()
    rows = np.flatnonzero(source.log_prob(likely) >= log_thresholds)
    for j in range(source.n_labels):
        flipped = likely[rows]
        flipped[:, j] ^= 1
        rows = rows[source[rows].log_prob(flipped) >= log_thresholds[rows]]
    is_open[rows] = True
    return is_open


def _alike(log_thresholds: Floats, rows: Indices) -> list[Indices]:
    """Cut these instances into groups with thresholds within a factor of about e.

    One search serves a group: it goes down to the lowest threshold there.
    """
    steps = np.floor(log_thresholds[rows])
    return [rows[steps == step] for step in np.unique(steps)]


def _list_down_to(
    source: LabelsetDistribution, log_thresholds: Floats, limit: int
) -> ListedLabelsets:
    """List the most probable labelsets, more and more of them, until all in the region are seen."""
    n_samples, most = len(source), 2**source.n_labels
    enough = min(limit + 1, most)  # one more says whether these are all
    rows: list[Labelsets] = [np.empty((0, source.n_labels), dtype=np.int8)]
    weights: list[Floats] = [np.empty(0)]
    instance: list[Indices] = [np.empty(0, dtype=np.intp)]
    is_complete = np.zeros(n_samples, dtype=bool)
    active, k = np.flatnonzero(log_thresholds < np.inf), min(FIRST_LISTED, enough)
    is_complete[log_thresholds == np.inf] = True
    while active.size:
        best = source[active].top(k)
        inside = best.logs >= log_thresholds[active, np.newaxis]
        # Nothing that is not listed can be in the region.
        closed = best.log_high[:, -1] < log_thresholds[active]
        closed &= log_thresholds[active] > LEAST_LOG
        closed |= (k == most) & (most <= limit)
        is_complete[active] = closed
        done = closed | (k >= enough)
        inside[:, limit:] = False
        for i in np.flatnonzero(done):
            rows.append(best.labelsets[i][inside[i]])
            weights.append(best.probabilities[i][inside[i]])
            instance.append(np.full(int(inside[i].sum()), active[i]))
        active, k = active[~done], min(4 * k, enough)
    listed = WeightedLabelsets.merge(
        np.concatenate(rows), np.concatenate(weights), np.concatenate(instance), n_samples
    )
    return ListedLabelsets(listed, is_complete)
