"""`SmoothedTable`: a few labelsets with probabilities, all others by independent labels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from scipy.special import xlogy

from labelsure._runtime.typing import Floats, Labelsets, Rows
from labelsure.distributions._answers import Expected, MaxMarginals, Summary, TopLabelsets
from labelsure.distributions._bridge import LabelsetDistribution, align_parts
from labelsure.distributions._independent_labels import IndependentLabels
from labelsure.distributions._labelset_table import LabelsetTable
from labelsure.distributions.candidates import Profile, log
from labelsure.errors import InputError
from labelsure.labelsets.rows import code_keys
from labelsure.labelsets.weighted import WeightedLabelsets


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
        super().__init__(len(table), table.n_labels, table.label_names)
        self._share = _check_share(share, len(table))
        self._rest = rest
        self._table = table
        self._index = table.index

    def _take(self, rows: Rows) -> Self:
        return type(self)(self._table._take(rows), self._rest._take(rows), self._share[rows])

    def _with_engine(self, settings: Any) -> Self:
        self._table._with_engine(settings)  # refuses what is wrong for all kinds
        return self

    # What is linear in the probabilities: the mean of both, by their shares.

    def _mix(self, of_table: Floats, of_rest: Floats) -> Floats:
        share = self._share.reshape(-1, *[1] * (of_table.ndim - 1))
        return (1 - share) * of_table + share * of_rest

    def _marginals(self) -> Floats:
        return np.minimum(self._mix(self._table._marginals(), self._rest._marginals()), 1.0)

    def _expected_by_counts(self, metric: Any, Y_pred: Labelsets, empty: float) -> Floats:
        return self._mix(
            *(part._expected(metric, Y_pred, empty).value for part in (self._table, self._rest))
        )

    def _expected_of_guesses(self, metric: Any, guesses: Labelsets, empty: float) -> Expected:
        parts = (self._table, self._rest)
        values = [part._expected_of_guesses(metric, guesses, empty).value for part in parts]
        return Expected.exactly(self._mix(*values))

    def _size_marginals(self) -> Floats:
        return self._mix(self._table._size_marginals(), self._rest._size_marginals())

    def _probabilities(self) -> Floats:
        return self._mix(self._table._probabilities(), self._rest._probabilities())

    def _sample(self, size: int, generator: np.random.Generator) -> Labelsets:
        is_rest = generator.random((len(self), size)) < self._share[:, np.newaxis]
        parts = [part._sample(size, generator) for part in (self._table, self._rest)]
        return np.where(is_rest[:, :, np.newaxis], parts[1], parts[0])

    def _log_prob(self, Y: Labelsets) -> Floats:
        of_table, of_rest = self._table._log_prob(Y), self._rest._log_prob(Y)
        return np.logaddexp(log(1 - self._share) + of_table, log(self._share) + of_rest)

    # What needs to know which labelsets the table holds.

    def _listed(self) -> tuple[WeightedLabelsets, Floats]:
        """Return the labelsets of the table with their probabilities, and logs of the rest's."""
        seen = self._table.labelsets
        log_rest = self._rest._take(seen.instance)._log_prob(seen.rows)
        share = self._share[seen.instance]
        weights = (1 - share) * seen.weights + share * np.exp(log_rest)
        return WeightedLabelsets(seen.rows, weights, seen.starts), log_rest

    def _summary(self, metrics: list[Any], empty: float) -> Summary:
        best = self._top(2)
        profile = self._profile_of(best.logs)
        mode = best.labelsets[:, 0]
        expected = {metric.name: self._expected(metric, mode, empty) for metric in metrics}
        return Summary.of_mode(profile, mode, expected)

    def _profile_of(self, largest: Floats) -> Profile:
        """Return the profile, given the logs of the two largest probabilities, (n, 2).

        Sums over what is not in the table are those over all labelsets, which independent labels
        have in closed form, without those that are in it.
        """
        listed, log_rest = self._listed()
        of_rest = np.exp(log_rest)
        whole, share = self._rest.profile(), self._share
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

    def _max_marginals(self, log_at_least: float) -> MaxMarginals:
        # A labelset in the table is at least as probable as by the rest alone.
        listed, _ = self._listed()
        of_table = LabelsetTable.from_weighted(listed)._max_marginals(log_at_least).logs
        of_rest = self._rest._max_marginals(log_at_least).logs
        share = log(self._share)[:, np.newaxis, np.newaxis]
        return MaxMarginals.exactly(np.maximum(of_table, share + of_rest))

    def _temper(self, temperature: float) -> Self:
        return type(self)(
            self._table._temper(temperature), self._rest._temper(temperature), self._share
        )

    def _tempered_log_prob(self, Y: Labelsets) -> Callable[[float], Floats]:
        of_table, of_rest = (part._tempered_log_prob(Y) for part in (self._table, self._rest))
        log_table, log_rest = log(1 - self._share), log(self._share)
        return lambda temperature: np.logaddexp(
            log_table + of_table(temperature), log_rest + of_rest(temperature)
        )


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
    return np.broadcast_to(values, (n_samples,)).copy()
