"""`SmoothedTable`: the mixture of a table and of independent labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from typing import Self

import numpy as np
from scipy.special import xlogy

from labelsure._runtime import limits as _limits
from labelsure._runtime.typing import Floats, Labelsets, Rows
from labelsure.distributions._answers import Expected, Guesses, Summary, TopLabelsets, Votes
from labelsure.distributions._base import LabelsetDistribution
from labelsure.distributions._labelset_table import LabelsetTable
from labelsure.distributions.candidates import Profile, log
from labelsure.errors import InputError
from labelsure.labelsets.codes import code_keys
from labelsure.labelsets.label_names import check_same_labels
from labelsure.labelsets.names import align_rows
from labelsure.labelsets.weighted import WeightedLabelsets, order_by_weight
from labelsure.metrics.registry import Metric


class SmoothedTable(LabelsetDistribution):
    """A table of labelsets in which no labelset is impossible: powersets, votes, beams.

    A share of the probability is that of independent labels; the table has the others. All is
    exact, at any number of labels: a labelset that is not in the table has the share times its
    probability under independence.

    Parameters
    ----------
    table
        A `LabelsetTable`.
    rest
        `IndependentLabels` of the same instances and labels, also restricted to valid labelsets.
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

    def __init__(
        self, table: LabelsetTable, rest: LabelsetDistribution, share: float | Floats
    ) -> None:
        if not isinstance(table, LabelsetTable):
            raise InputError(f"`table` must be a LabelsetTable, got {type(table).__name__}.")
        if not rest._is_independent and rest.rules is None:
            raise InputError(f"`rest` must be IndependentLabels, got {type(rest).__name__}.")
        if (len(table), table.n_labels) != (len(rest), rest.n_labels):
            raise InputError(
                "`table` and `rest` must have the same instances and labels, got "
                f"{len(table)} and {len(rest)} instances, {table.n_labels} and {rest.n_labels} "
                "labels."
            )
        check_same_labels(
            rest.label_names, rest.n_labels, table.label_names, table.n_labels, "the first part"
        )
        order = align_rows(rest.index, table.index, name="rest", beside="the first part")
        rest = rest if order is None else rest[order]
        of_rest = _check_share(share, len(table))
        super().__init__(len(table), table.n_labels, table.label_names)
        self._table, self._rest, self._share = table, rest, of_rest
        self._index = table.index

    def _with_parts(self, table: LabelsetTable, rest: LabelsetDistribution, share: Floats) -> Self:
        new = copy(self)  # without checking again
        new._table, new._rest, new._share, new._n_samples = table, rest, share, len(table)
        return new

    def _take(self, rows: Rows) -> Self:
        return self._with_parts(self._table._take(rows), self._rest._take(rows), self._share[rows])

    def _temper(self, temperature: float) -> Self:
        table, rest = self._table._temper(temperature), self._rest._temper(temperature)
        return self._with_parts(table, rest, self._share)

    # Quantities that are linear in the probabilities.

    def _mix(self, of_table: Floats, of_rest: Floats) -> Floats:
        share = self._share.reshape(-1, *[1] * (of_rest.ndim - 1))
        return np.asarray((1 - share) * of_table + share * of_rest)

    def _marginals(self) -> Expected:
        both = self._mix(self._table._marginals().value, self._rest._marginals().value)
        return Expected.exactly(np.minimum(both, 1.0))

    def _expected(
        self, metrics: Sequence[Metric], guesses: Guesses, empty: float
    ) -> list[Expected]:
        parts = (part._expected(metrics, guesses, empty) for part in (self._table, self._rest))
        pairs = zip(*parts, strict=True)
        return [Expected.exactly(self._mix(one.value, other.value)) for one, other in pairs]

    def _size_marginals(self) -> Floats:
        return self._mix(self._table._size_marginals(), self._rest._size_marginals())

    def _probabilities(self) -> Floats:
        return self._mix(self._table._probabilities(), self._rest._probabilities())

    def _log_prob(self, Y: Labelsets) -> Floats:
        return self._mix_logs(self._table._log_prob(Y), self._rest._log_prob(Y))

    def _tempered_log_prob(self, Y: Labelsets) -> Callable[[float], Floats]:
        of_table, of_rest = self._table._tempered_log_prob(Y), self._rest._tempered_log_prob(Y)
        return lambda temperature: self._mix_logs(of_table(temperature), of_rest(temperature))

    def _mix_logs(self, of_table: Floats, of_rest: Floats) -> Floats:
        return np.logaddexp(log(1 - self._share) + of_table, log(self._share) + of_rest)

    def _sample(self, size: int, generator: np.random.Generator) -> Labelsets:
        is_rest = generator.random((len(self), size)) >= 1 - self._share[:, np.newaxis]
        of_table, of_rest = (p._sample(size, generator) for p in (self._table, self._rest))
        return np.where(is_rest[:, :, np.newaxis], of_rest, of_table)

    @property
    def _votes(self) -> Votes | None:  # type: ignore[override]
        votes = self._table._votes
        return None if votes is None else replace(votes, prior=self._rest.marginals())

    # Quantities that depend on which labelsets are in the table.

    def _tabled(self) -> tuple[WeightedLabelsets, Floats]:
        """Labelsets of the table with their probabilities, and their logs under the rest."""
        seen = self._table.labelsets
        log_rest = self._rest._take(seen.instance)._log_prob(seen.rows)
        share = self._share[seen.instance]
        weights = (1 - share) * seen.weights + share * np.exp(log_rest)
        return WeightedLabelsets(seen.rows, weights, seen.starts), log_rest

    def _summary(self, metrics: Sequence[Metric], empty: float) -> Summary:
        """Sum over the table, then over all other labelsets.

        The sum over the others is the sum over all labelsets, which independent labels have in
        closed form, minus the sum over those in the table.
        """
        best, (tabled, log_rest) = self._top(2), self._tabled()
        of_rest = np.exp(log_rest)
        whole, share = self._rest._summary([], 1.0).profile, self._share
        others = np.maximum(1 - tabled.sum(of_rest), 0.0)
        entropy_others = whole.entropy + tabled.sum(xlogy(of_rest, of_rest))
        entropy = tabled.sum(-xlogy(tabled.weights, tabled.weights)) + share * (
            np.maximum(entropy_others, 0.0) - others * log(share)
        )
        # Squares of the rest as parts of the sum of all of them, which may be too small a number.
        parts = np.exp(2 * log_rest - whole.log_collision[tabled.instance])
        log_others = whole.log_collision + log(np.maximum(1 - tabled.sum(parts), 0.0))
        log_collision = np.logaddexp(
            log(tabled.sum(tabled.weights**2)), 2 * log(share) + log_others
        )
        top, runner_up = best.logs.T
        profile = Profile(top, runner_up, np.maximum(entropy, 0.0), log_collision, self.n_labels)
        return self._summarise(profile, best.labelsets[:, 0], metrics, empty)

    def _top(self, k: int) -> TopLabelsets:
        """The best of those in the table and of the k best of the rest.

        No others are needed: being in the table only adds to a labelset's probability, so that k
        labelsets are at least as probable as one that has a lower rank than k in the rest.
        """
        (tabled, log_rest), best = self._tabled(), self._rest._top(k)
        log_share = log(self._share)
        is_new = ~tabled.contains(best.labelsets)
        new_instance = np.nonzero(is_new)[0]
        # A sum of the two that is too small for a number is the part of the rest alone.
        by_rest = log_share[tabled.instance] + log_rest
        of_tabled = np.where(tabled.weights > 0, log(tabled.weights), by_rest)
        rows = np.concatenate([tabled.rows, best.labelsets[is_new]])
        logs = np.concatenate([of_tabled, log_share[new_instance] + best.logs[is_new]])
        instance = np.concatenate([tabled.instance, new_instance])
        by_code = np.argsort(code_keys(rows), kind="stable")
        ties = np.full(len(rows), _limits.TIE)
        order = by_code[order_by_weight(logs[by_code], instance[by_code], ties)]
        starts = np.searchsorted(instance[order], np.arange(len(self)))
        first = order[starts[:, np.newaxis] + np.arange(k)]
        return TopLabelsets(rows[first], logs[first])


def _check_share(share: object, n_samples: int) -> Floats:
    values = np.asarray(share, dtype=np.float64)
    if values.shape not in ((), (n_samples,)):
        raise InputError(
            f"`share` must be a number or one for each of the {n_samples} instances, got shape "
            f"{values.shape}."
        )
    if not ((values > 0) & (values <= 1)).all():
        raise InputError(
            "`share` must be above 0 and at most 1, got "
            f"{values.min() if values.size else values}. For 0 use the `LabelsetTable` itself."
        )
    return np.broadcast_to(values, (n_samples,))
