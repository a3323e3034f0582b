"""`IndependentLabels`: marginals of independent labels; closed forms for any number of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Self

import numpy as np
from scipy.special import expit, logit

from labelsure._runtime import limits as _limits
from labelsure._runtime.limits import check_size, cut_rows
from labelsure._runtime.typing import Floats, Labelsets, Rows
from labelsure.distributions._answers import (
    Expected,
    Guesses,
    MaxMarginals,
    TopLabelsets,
    each_guess,
)
from labelsure.distributions._bridge import SIMPLE, LabelsetDistribution, log_prob_of_logits
from labelsure.distributions._cheapest_flips import cheapest_codes, write_codes
from labelsure.distributions._listed_labels import ListedLabels, best_sizes, has_best_size
from labelsure.distributions._probabilities import as_floats, check_unit_interval
from labelsure.distributions.candidates import Profile, log
from labelsure.errors import InputError
from labelsure.labelsets.codes import fill_with_lowest
from labelsure.labelsets.names import order_columns
from labelsure.labelsets.rows import index_of
from labelsure.metrics.registry import Metric

WAITING_BYTES = 512
"""What the search for the most probable labelsets takes for each of them: numbers of Python."""


class IndependentLabels(LabelsetDistribution):
    """Distributions whose labels are independent: binary relevance, sigmoid heads.

    Parameters
    ----------
    marginals
        (n, L) probabilities P(y_j = 1), of which a copy is kept; a DataFrame brings its label
        names.
    label_names
        One for each label.

    Examples
    --------
    >>> dist = IndependentLabels([[0.9, 0.2]])
    >>> dist.mode()
    array([[1, 0]], dtype=int8)
    >>> dist.profile().top
    array([0.72])
    """

    def __init__(self, marginals: Any, label_names: Iterable[Any] | None = None) -> None:
        values, names = order_columns(marginals, label_names, "marginals")
        array = as_floats(values, "marginals")
        if array.ndim != 2 or array.shape[1] == 0:
            raise InputError(
                "`marginals` must have shape (n_samples, n_labels) with at least one label, got "
                f"shape {array.shape}. One instance is one row: `[marginals]`."
            )
        array = check_unit_interval(array, "marginals")
        super().__init__(array.shape[0], array.shape[1], names)
        self._p = array.copy()
        self._logits: Floats | None = None
        self._index = index_of(marginals)

    @classmethod
    def from_logits(cls, logits: Any, label_names: Iterable[Any] | None = None) -> Self:
        """Make the distributions whose marginals have these logits.

        A marginal near 1 is rounded, its logit is not: log-probabilities, the runner-up and `top`
        come from the logits, so that no labelset is impossible.

        Parameters
        ----------
        logits
            (n, L) log of the odds P(y_j = 1) / P(y_j = 0); a DataFrame brings its label names.
        label_names
            One for each label.

        Examples
        --------
        >>> dist = IndependentLabels.from_logits([[100.0, -1.0]])
        >>> dist.marginals().round(3)
        array([[1.   , 0.269]])
        >>> dist.log_prob([[0, 0]]).round(3)
        array([-100.313])
        """
        values, names = order_columns(logits, label_names, "logits")
        array = as_floats(values, "logits").astype(np.float64)
        if np.isnan(array).any():
            row = np.argwhere(np.isnan(array))[0][0]
            raise InputError(
                f"`logits` must hold logits that are numbers, got NaN in row {row}. "
                "Mend or drop that row."
            )
        new = cls(expit(array), names)
        new._logits = array
        new._index = index_of(logits)
        return new

    def _take(self, rows: Rows) -> Self:
        # In one piece, as kernels are compiled for: every other row would compile them anew.
        new = type(self).__new__(type(self))
        new._p = np.ascontiguousarray(self._p[rows])
        new._logits = None if self._logits is None else self._logits[rows]
        LabelsetDistribution.__init__(new, len(new._p), self.n_labels, self.label_names)
        return new

    def _marginals(self) -> Floats:
        return self._p.astype(np.float64)

    def _log_prob(self, Y: Labelsets) -> Floats:
        return _sum_logs(*self.log_marginals, Y)

    def _max_marginals(self, log_at_least: float = -np.inf) -> MaxMarginals:
        # The value itself, and the most probable value of every other label.
        log_one, log_zero = self.log_marginals
        best = np.maximum(log_one, log_zero)
        others = best.sum(axis=1, keepdims=True) - best
        return MaxMarginals.exactly(np.stack([log_zero + others, log_one + others], axis=2))

    @property
    def log_marginals(self) -> tuple[Floats, Floats]:
        """The logs of P(y_j = 1) and of P(y_j = 0), (n, L)."""
        if self._logits is not None:
            return -np.logaddexp(0.0, -self._logits), -np.logaddexp(0.0, self._logits)
        p = self._p.astype(np.float64, copy=False)
        return log(p), log(1 - p)

    def _profile_and_mode(self) -> tuple[Profile, Labelsets]:
        log_top, flip_odds, entropy, log_collision = self.listed.profile()
        log_flip = log(flip_odds)
        if self._logits is not None:
            log_flip = -np.abs(self._logits).min(axis=1)
        profile = Profile(log_top, log_top + log_flip, entropy, log_collision, self.n_labels)
        return profile, self._mode()

    def _mode(self) -> Labelsets:
        return (self._p > 0.5).astype(np.int8)

    def _top(self, k: int) -> TopLabelsets:
        check_size(
            k * (WAITING_BYTES + 2 * self.n_labels),
            f"The search for the `k` most probable labelsets of {self.n_labels} labels",
            "Ask for fewer.",
        )
        labelsets = np.empty((len(self), k, self.n_labels), dtype=np.int8)
        logs = np.empty((len(self), k))
        modes, (log_one, log_zero) = self._mode(), self.log_marginals
        # What flipping a label away from the mode costs, in units of log-probability.
        costs = np.abs(log_one - log_zero)
        for i, best in enumerate(labelsets):
            codes = cheapest_codes(costs[i], modes[i], k)
            write_codes(codes, best)
            fill_with_lowest(best[np.newaxis], np.array([len(codes)]))
            for rows in cut_rows(k, 8 * self.n_labels, _limits.CACHED_JOINT_BYTES):
                logs[i, rows] = _sum_logs(log_one[i], log_zero[i], best[rows])
        return TopLabelsets(labelsets, logs)

    def _sample(self, size: int, generator: np.random.Generator) -> Labelsets:
        uniforms = generator.random((len(self), size, self.n_labels))
        return (uniforms < self._p[:, np.newaxis, :]).astype(np.int8)

    def _expected(self, metric: Metric, guesses: Guesses, empty: float) -> Expected:
        if metric in SIMPLE:
            return super()._expected(metric, guesses, empty)
        listed = self.listed
        columns = [
            listed.expected(metric, Y.reshape(-1), empty, self.n_labels)
            for Y in each_guess(guesses)
        ]
        return Expected.exactly(np.stack(columns, axis=1))

    @property
    def listed(self) -> ListedLabels:
        """All labels, as their closed forms need them."""
        return ListedLabels.of_matrix(self._p)

    def _size_marginals(self) -> Floats:
        by_size = np.empty((len(self), self.n_labels, self.n_labels))
        for j in range(self.n_labels):  # the size is one more than that of the other labels
            only_j = np.zeros((len(self), self.n_labels), dtype=np.int8)
            only_j[:, j] = 1
            hits, misses = self.listed.count_hits(only_j.reshape(-1), self.n_labels)
            by_size[:, j] = hits[:, 1:2] * misses[:, : self.n_labels]
        return by_size

    def _probabilities(self) -> Floats:
        P = np.ones((len(self), 2**self.n_labels))
        for j in range(self.n_labels):
            p = self._p[:, j : j + 1].astype(np.float64)
            half = 2**j
            np.multiply(P[:, :half], p, out=P[:, half : 2 * half])
            P[:, :half] *= 1 - p
        return P

    def _temper(self, temperature: float) -> Self:
        return type(self).from_logits(self._marginal_logits() / temperature, self.label_names)

    def _tempered_log_prob(self, Y: Labelsets) -> Callable[[float], Floats]:
        logits = self._marginal_logits()
        logits = np.where(Y == 1, logits, -logits)
        return lambda temperature: log_prob_of_logits(logits / temperature)

    def _marginal_logits(self) -> Floats:
        if self._logits is not None:
            return self._logits
        return logit(self._p.astype(np.float64, copy=False))

    def _best(self, metric: Metric, empty: float) -> tuple[Labelsets, Floats] | None:
        """Return the best of the k most probable labels, k from 0 to L, where that is optimal."""
        if not has_best_size(metric):
            return None
        order = np.argsort(-self._p, axis=1, kind="stable")
        descending = np.take_along_axis(self._p, order, axis=1).astype(np.float64, copy=False)
        n_chosen, _ = best_sizes(metric, descending, self.listed.rest, empty)
        chosen = np.arange(self.n_labels) < n_chosen[:, np.newaxis]
        best = np.zeros((len(self), self.n_labels), dtype=np.int8)
        np.put_along_axis(best, order, chosen.astype(np.int8), axis=1)
        return best, np.zeros(len(self))


def _sum_logs(log_one: Floats, log_zero: Floats, Y: Labelsets) -> Floats:
    """Return the log-probability of each labelset, (n,); logs for each of them or for all."""
    return np.where(Y == 1, log_one, log_zero).sum(axis=1)
