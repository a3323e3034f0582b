"""`Mixture`: several parts over the same instances and labels, each with its weight."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import copy
from typing import Any, Self

import numpy as np
from scipy.special import logsumexp

from labelsure._runtime.typing import Floats, Integers, Labelsets, Names, Rows
from labelsure.distributions._answers import Expected, Guesses
from labelsure.distributions._bridge import LabelsetDistribution
from labelsure.distributions.candidates import log
from labelsure.metrics.registry import Metric


class Mixture(LabelsetDistribution):
    """What all mixtures share: everything that is linear in the probabilities.

    The mixture is the mean over its m parts of share * P(y). Equal weights are shares of 1, with
    which everything is what it is without weights, to the last bit.

    Parameters
    ----------
    parts
        Distributions over the same instances and labels, or what a kind has in their place.
    shares
        (n, m) each weight times m; None means that all parts have the same.
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
        """(n, m) what each part has of the mixture."""
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


def find_owners(shares: Floats, places: Floats) -> Integers:
    """Return in whose part of the weights a number in [0, 1) lies, (n, size) of them."""
    ends = np.cumsum(shares, axis=1)
    ends = ends / ends[:, -1:]  # the last ones are 1: nothing lies beyond a part with weight
    owners = np.empty(places.shape, dtype=np.intp)
    for mine, row, place in zip(owners, ends, places, strict=True):
        mine[:] = np.searchsorted(row, place, side="right")
    return owners
