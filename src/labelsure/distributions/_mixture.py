"""Mixtures: several parts over the same instances and labels, each with its weight.

`SmoothedTable` is one of a table and of independent labels; those of chains are in
`_chain_mixture.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import replace
from typing import Any, Self

import numpy as np
from scipy.special import logsumexp, xlogy

from labelsure._runtime import limits as _limits
from labelsure._runtime.typing import Floats, Integers, Labelsets, Names, Rows
from labelsure.distributions._answers import Expected, Guesses, TopLabelsets, Votes
from labelsure.distributions._base import LabelsetDistribution
from labelsure.distributions._labelset_table import LabelsetTable
from labelsure.distributions.candidates import Profile, log
from labelsure.errors import InputError
from labelsure.labelsets.names import align_rows
from labelsure.labelsets.rows import code_keys, refuse_other_labels
from labelsure.labelsets.weighted import WeightedLabelsets, order_by_weight
from labelsure.metrics.registry import Metric


class Mixture(LabelsetDistribution):
    """Base class of mixtures: quantities that are linear in the probabilities.

    The mixture is the mean over its m parts of share * P(y). Equal weights are shares of 1, which
    give the same bits as no weights.

    Parameters
    ----------
    parts
        Distributions, or chains, over the same instances and labels.
    shares
        (n, m) each weight times m; None for equal weights.
    n_samples, n_labels, label_names
        Of the mixture.
    """

    def __init__(
        self,
        parts: list[Any],
        shares: Floats | None,
        n_samples: int,
        n_labels: int,
        label_names: Names = None,
    ) -> None:
        super().__init__(n_samples, n_labels, label_names)
        self._parts, self._shares = parts, shares

    def _with_parts(self, parts: list[Any], shares: Floats | None, n_samples: int) -> Self:
        """Return a mixture of other parts, which need not be checked again."""
        new = copy(self)
        new._parts, new._shares, new._n_samples = parts, shares, n_samples
        return new

    @property
    def _weights(self) -> Floats:
        """(n, m) weight of each part."""
        shares = np.ones((len(self), len(self._parts))) if self._shares is None else self._shares
        return shares / len(self._parts)

    def _mix(self, by_part: Iterable[Floats]) -> Floats:
        """Return the mean of (n, ...) values over the parts, by their weights."""
        total: Floats | float = 0.0
        for weight, values in zip(self._weights.T, by_part, strict=True):
            total = total + weight.reshape(-1, *[1] * (values.ndim - 1)) * values
        return np.asarray(total)

    def _mix_logs(self, by_part: Floats) -> Floats:
        """Return the log of the mixture of probabilities whose logs are given, (n, m)."""
        if self._shares is not None:
            by_part = by_part + log(self._shares)
        return np.asarray(logsumexp(by_part, axis=1) - np.log(len(self._parts)))

    def _draw_owners(self, size: int, generator: np.random.Generator) -> Integers:
        """Return the part that each draw comes from, (n, size)."""
        if self._shares is None:
            return generator.integers(len(self._parts), size=(len(self), size))
        return find_owners(self._shares, generator.random((len(self), size)))

    def _take(self, rows: Rows) -> Self:
        parts = [part._take(rows) for part in self._parts]
        shares = None if self._shares is None else self._shares[rows]
        return self._with_parts(parts, shares, len(parts[0]))

    def _temper(self, temperature: float) -> Self:
        parts = [part._temper(temperature) for part in self._parts]
        return self._with_parts(parts, self._shares, len(self))

    def _marginals(self) -> Floats:
        return np.minimum(self._mix(part._marginals() for part in self._parts), 1.0)

    def _expected(self, metric: Metric, guesses: Guesses, empty: float) -> Expected:
        parts = (part._expected(metric, guesses, empty).value for part in self._parts)
        return Expected.exactly(self._mix(parts))

    def _size_marginals(self) -> Floats:
        return self._mix(part._size_marginals() for part in self._parts)

    def _probabilities(self) -> Floats:
        return self._mix(part._probabilities() for part in self._parts)

    def _log_prob(self, Y: Labelsets) -> Floats:
        return self._mix_logs(np.column_stack([part._log_prob(Y) for part in self._parts]))

    def _tempered_log_prob(self, Y: Labelsets) -> Callable[[float], Floats]:
        parts = [part._tempered_log_prob(Y) for part in self._parts]
        return lambda temperature: self._mix_logs(
            np.column_stack([part(temperature) for part in parts])
        )

    def _sample(self, size: int, generator: np.random.Generator) -> Labelsets:
        owners = self._draw_owners(size, generator)[:, :, np.newaxis]
        drawn = self._parts[0]._sample(size, generator)
        for m, part in enumerate(self._parts[1:], 1):
            drawn = np.where(owners == m, part._sample(size, generator), drawn)
        return drawn


BELOW_ONE = float(np.nextafter(1.0, 0.0))


def find_owners(shares: Floats, places: Floats) -> Integers:
    """Return the part that each number in [0, 1) selects by the weights, (n, size)."""
    ends = np.cumsum(shares, axis=1)
    ends = ends / ends[:, -1:]  # the last ones are 1: nothing lies beyond a part with weight
    owners = np.empty(places.shape, dtype=np.intp)
    places = np.minimum(places, BELOW_ONE)  # a stratum of the largest uniforms may round to 1
    for mine, row, place in zip(owners, ends, places, strict=True):
        mine[:] = np.searchsorted(row, place, side="right")
    return owners


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

    def __init__(self, table: LabelsetTable, rest: LabelsetDistribution, share: Any) -> None:
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
        refuse_other_labels(
            rest.label_names, rest.n_labels, table.label_names, table.n_labels, "the first part"
        )
        order = align_rows(rest.index, table.index, name="rest", beside="the first part")
        rest = rest if order is None else rest[order]
        of_rest = _check_share(share, len(table))
        shares = 2 * np.column_stack([1 - of_rest, of_rest])
        super().__init__([table, rest], shares, len(table), table.n_labels, table.label_names)
        self._index = table.index

    @property
    def _table(self) -> LabelsetTable:
        return self._parts[0]

    @property
    def _rest(self) -> LabelsetDistribution:
        return self._parts[1]

    @property
    def _share(self) -> Floats:
        return self._weights[:, 1]

    def _votes(self) -> Votes | None:
        votes = self._table._votes()
        return None if votes is None else replace(votes, prior=self._rest.marginals())

    # Quantities that depend on which labelsets are in the table.

    def _tabled(self) -> tuple[WeightedLabelsets, Floats]:
        """Return the labelsets of the table with their probabilities, and logs of the rest's."""
        seen = self._table.labelsets
        log_rest = self._rest._take(seen.instance)._log_prob(seen.rows)
        share = self._share[seen.instance]
        weights = (1 - share) * seen.weights + share * np.exp(log_rest)
        return WeightedLabelsets(seen.rows, weights, seen.starts), log_rest

    def _profile_and_mode(self) -> tuple[Profile, Labelsets]:
        """Sum over the table, then over all other labelsets.

        The sum over the others is the sum over all labelsets, which independent labels have in
        closed form, minus the sum over those in the table.
        """
        best, (tabled, log_rest) = self._top(2), self._tabled()
        of_rest = np.exp(log_rest)
        whole, share = self._rest._profile_and_mode()[0], self._share
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
        return profile, best.labelsets[:, 0]

    def _top(self, k: int) -> TopLabelsets:
        """Return the best of those in the table and of the k best of the rest.

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


def _check_share(share: Any, n_samples: int) -> Floats:
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
