"""`SmoothedTable`: a few labelsets with probabilities, all others by independent labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import xlogy

from labelsure._runtime.typing import Floats, Labelsets
from labelsure.distributions._answers import TopLabelsets
from labelsure.distributions._bridge import align_parts
from labelsure.distributions._independent_labels import IndependentLabels
from labelsure.distributions._labelset_table import LabelsetTable
from labelsure.distributions._mixture import Mixture
from labelsure.distributions.candidates import Profile, log
from labelsure.errors import InputError
from labelsure.labelsets.rows import code_keys
from labelsure.labelsets.weighted import WeightedLabelsets


class SmoothedTable(Mixture):
    """A table of labelsets in which no labelset is impossible: powersets, votes, beams.

    A share of the probability is that of independent labels; the table has the others. All is
    exact, at any number of labels: a labelset that is not in the table has the share times its
    probability under independence.

    Parameters
    ----------
    table
        A `LabelsetTable`.
    rest
        `IndependentLabels` of the same instances and labels.
    share
        Above 0 and at most 1: how much of the probability is that of `rest`, for all instances or
        (n,) for each of them.

    Examples
    --------
    >>> from labelsure import IndependentLabels, LabelsetTable
    >>> votes = LabelsetTable([[[1, 0], [1, 1]]], [[0.25, 0.75]])
    >>> dist = SmoothedTable(votes, IndependentLabels(votes.marginals().clip(0.1, 0.9)), 0.2)
    >>> dist.probabilities().round(3)
    array([[0.005, 0.245, 0.015, 0.735]])
    """

    def __init__(self, table: LabelsetTable, rest: IndependentLabels, share: Any) -> None:
        for name, given, kind in (
            ("table", table, LabelsetTable),
            ("rest", rest, IndependentLabels),
        ):
            if not isinstance(given, kind):
                raise InputError(f"`{name}` must be a {kind.__name__}, got {type(given).__name__}.")
        if (len(table), table.n_labels) != (len(rest), rest.n_labels):
            raise InputError(
                "`table` and `rest` must have the same instances and labels, got "
                f"{len(table)} and {len(rest)} instances, {table.n_labels} and {rest.n_labels} "
                "labels."
            )
        table, rest = align_parts([table, rest], "rest")
        of_rest = _check_share(share, len(table))
        shares = 2 * np.column_stack([1 - of_rest, of_rest])
        super().__init__([table, rest], shares, len(table), table.n_labels, table.label_names)
        self._index = table.index

    @property
    def _table(self) -> LabelsetTable:
        return self._parts[0]

    @property
    def _rest(self) -> IndependentLabels:
        return self._parts[1]

    @property
    def _share(self) -> Floats:
        return self._weights[:, 1]

    # What needs to know which labelsets the table holds.

    def _listed(self) -> tuple[WeightedLabelsets, Floats]:
        """Return the labelsets of the table with their probabilities, and logs of the rest's."""
        seen = self._table.labelsets
        log_rest = self._rest._take(seen.instance)._log_prob(seen.rows)
        share = self._share[seen.instance]
        weights = (1 - share) * seen.weights + share * np.exp(log_rest)
        return WeightedLabelsets(seen.rows, weights, seen.starts), log_rest

    def _profile_and_mode(self) -> tuple[Profile, Labelsets]:
        best = self._top(2)
        return self._profile_of(best.logs), best.labelsets[:, 0]

    def _profile_of(self, largest: Floats) -> Profile:
        """Return the profile, given the logs of the two largest probabilities, (n, 2).

        Sums over what is not in the table are those over all labelsets, which independent labels
        have in closed form, without those that are in it.
        """
        listed, log_rest = self._listed()
        of_rest = np.exp(log_rest)
        whole, share = self._rest._profile_and_mode()[0], self._share
        unlisted = np.maximum(1 - listed.sum(of_rest), 0.0)
        entropy_unlisted = whole.entropy + listed.sum(xlogy(of_rest, of_rest))
        entropy = listed.sum(-xlogy(listed.weights, listed.weights)) + share * (
            np.maximum(entropy_unlisted, 0.0) - unlisted * log(share)
        )
        # Squares of the rest as parts of the sum of all of them, which may be too small a number.
        parts = np.exp(2 * log_rest - whole.log_collision[listed.instance])
        log_unlisted = whole.log_collision + log(np.maximum(1 - listed.sum(parts), 0.0))
        log_collision = np.logaddexp(
            log(listed.sum(listed.weights**2)), 2 * log(share) + log_unlisted
        )
        top, runner_up = largest.T
        return Profile(top, runner_up, np.maximum(entropy, 0.0), log_collision, self.n_labels)

    def _top(self, k: int) -> TopLabelsets:
        """Return the best of those in the table and of the k best of the rest.

        No others are needed: being in the table only adds to a labelset's probability, so that k
        labelsets are at least as probable as one that has a lower rank than k in the rest.
        """
        (listed, log_rest), best = self._listed(), self._rest._top(k)
        log_share = log(self._share)
        is_new = ~listed.contains(best.labelsets)
        new_instance = np.nonzero(is_new)[0]
        # A sum of the two that is too small for a number is the part of the rest alone.
        by_rest = log_share[listed.instance] + log_rest
        of_listed = np.where(listed.weights > 0, log(listed.weights), by_rest)
        rows = np.concatenate([listed.rows, best.labelsets[is_new]])
        logs = np.concatenate([of_listed, log_share[new_instance] + best.logs[is_new]])
        instance = np.concatenate([listed.instance, new_instance])
        order = np.lexsort((code_keys(rows), -logs, instance))
        starts = np.searchsorted(instance[order], np.arange(len(self)))
        first = order[starts[:, np.newaxis] + np.arange(k)]
        return TopLabelsets(rows[first], logs[first])


def _check_share(share: Any, n_samples: int) -> Floats:
    values = np.asarray(share, dtype=np.float64)
    if values.shape not in ((), (n_samples,)):
        raise InputError(
            f"`share` must be a number or one for each of the {n_samples} instances, got shape "
            f"{values.shape}."
        )
    if not ((values > 0) & (values <= 1)).all():
        raise InputError(
            "`share` must be above 0 and at most 1, so that no labelset is impossible, got "
            f"{values.min() if values.size else values}. For none use the `LabelsetTable` itself."
        )
    return np.broadcast_to(values, (n_samples,))
