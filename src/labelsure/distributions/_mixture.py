"""`ChainMixture`: a chain, or the mean of several, dense while 2**L is affordable."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Self

import numpy as np
from scipy.special import logsumexp

from labelsure._kernels.chains import joint_rows
from labelsure._kernels.threads import for_rows, n_threads
from labelsure.distributions._base import Floats, LabelsetDistribution, Rows
from labelsure.distributions._chains import Chain, LinearChain
from labelsure.distributions._dense import DenseDistribution
from labelsure.distributions._profile import Profile, Summary, TopLabelsets
from labelsure.errors import InputError, TooLargeError
from labelsure.labelsets import Labelsets
from labelsure.metrics import JACCARD, Metric

MEMORY_BUDGET = 2**31
"""Bytes that the dense engine may use for its work arrays, on all threads together."""

BLOCK_BYTES = 2**24
"""Of probabilities held at a time where that is more than one instance a thread: they stay in
the processor's cache between making and using them."""


class ChainMixture(LabelsetDistribution):
    """The mean of the joint distributions of one or more chains.

    Up to `max_exact_labels` labels every answer is exact: all 2**L probabilities of a few
    instances at a time are made, asked and thrown away. Log-probabilities and samples need no
    such array and work for any number of labels.

    Parameters
    ----------
    chains
        `LinearChain` or `PrefixChain` objects over the same instances and labels.
    label_names
        One for each label.
    max_exact_labels
        Refuse dense computation beyond; None works it out from a memory budget of 2 GiB.

    Examples
    --------
    >>> chain = LinearChain([1, 0], base=[[0.0, -2.0]], weights=[[0, 0], [4.0, 0]])
    >>> dist = ChainMixture([chain])
    >>> dist.marginals()
    array([[0.5, 0.5]])
    >>> dist.profile().top.round(3)
    array([0.44])
    """

    def __init__(
        self,
        chains: Sequence[Chain],
        label_names: Iterable[Any] | None = None,
        *,
        max_exact_labels: int | None = None,
    ) -> None:
        chains = list(chains)
        if not chains:
            raise InputError("`chains` must hold at least one chain, got none.")
        shapes = {(chain.n_samples, chain.order.size) for chain in chains}
        if len(shapes) > 1:
            raise InputError(
                "`chains` must all have the same instances and labels, got (n_samples, n_labels) "
                f"of {sorted(shapes)}."
            )
        super().__init__(*shapes.pop(), label_names)
        self._chains = chains
        self._max_exact_labels = max_exact_labels

    @property
    def n_chains(self) -> int:
        """The number of chains."""
        return len(self._chains)

    @property
    def max_exact_labels(self) -> int:
        """Up to how many labels all 2**L probabilities are computed."""
        if self._max_exact_labels is not None:
            return self._max_exact_labels
        # Each thread holds the joint and, half as large each, two levels of the prefix tree.
        return (MEMORY_BUDGET // (16 * n_threads())).bit_length() - 1

    def _take(self, rows: Rows) -> Self:
        chains = [chain.take(rows) for chain in self._chains]
        return type(self)(chains, self.label_names, max_exact_labels=self._max_exact_labels)

    def _log_prob(self, Y: Labelsets) -> Floats:
        by_chain = [chain.log_prob(Y) for chain in self._chains]
        return logsumexp(by_chain, axis=0) - np.log(self.n_chains)

    def _sample(self, size: int, generator: np.random.Generator) -> Labelsets:
        drawn = np.empty((len(self) * size, self.n_labels), dtype=np.int8)
        chosen = generator.integers(self.n_chains, size=len(drawn))
        uniforms = generator.random(drawn.shape)
        rows = np.repeat(np.arange(len(self)), size)
        for m, chain in enumerate(self._chains):
            mine = chosen == m
            drawn[mine] = chain.sample(rows[mine], uniforms[mine])
        return drawn.reshape(len(self), size, self.n_labels)

    def _dense_blocks(self) -> Iterator[tuple[slice, DenseDistribution]]:
        """Yield all instances, a few at a time, with their probabilities written out."""
        if self.n_labels > self.max_exact_labels:
            raise TooLargeError(
                f"All 2**{self.n_labels} labelsets are too many to enumerate: this distribution "
                f"is set to at most {self.max_exact_labels} labels. `log_prob` and `sample` work "
                "for any number; `max_exact_labels` raises the limit if there is memory for "
                f"{16 * n_threads()} * 2**{self.n_labels} bytes."
            )
        step = max(n_threads(), BLOCK_BYTES >> (self.n_labels + 3))
        for first in range(0, len(self), step):
            rows = slice(first, min(first + step, len(self)))
            yield rows, DenseDistribution._trusted(self._joint(rows), self.label_names)

    def _joint(self, rows: slice) -> Floats:
        """Return the mean of the chains' joints: linear ones in one kernel, others one by one."""
        chains = [chain.take(rows) for chain in self._chains]
        linear = [chain for chain in chains if isinstance(chain, LinearChain)]
        P = np.zeros((rows.stop - rows.start, 2**self.n_labels))
        if linear:
            bases = np.stack([chain.base for chain in linear], axis=1)
            weights = np.stack([chain.weights for chain in linear])
            orders = np.stack([chain.order for chain in linear])
            for_rows(joint_rows, len(P), bases, weights, orders, P)
            P *= len(linear) / len(chains) if len(linear) < len(chains) else 1.0
        for chain in chains:
            if not isinstance(chain, LinearChain):
                P += chain.joint() / len(chains)
        return P

    def _marginals(self) -> Floats:
        marginals = np.empty((len(self), self.n_labels))
        for rows, dense in self._dense_blocks():
            marginals[rows] = dense._marginals()
        return marginals

    def _profile_and_mode(self) -> tuple[Profile, Labelsets]:
        summary = self._summary([], 1.0)
        return summary.profile, summary.mode

    def _summary(self, metrics: list[Metric], empty: float) -> Summary:
        mode = np.empty((len(self), self.n_labels), dtype=np.int8)
        expected = {metric.name: np.empty(len(self)) for metric in metrics}
        profiles = []
        for rows, dense in self._dense_blocks():
            part = dense._summary(metrics, empty)
            profiles.append(part.profile)
            mode[rows] = part.mode
            for name, values in part.expected.items():
                expected[name][rows] = values
        return Summary(Profile.concatenate(profiles, self.n_labels), mode, expected)

    def _top(self, k: int) -> TopLabelsets:
        labelsets = np.empty((len(self), k, self.n_labels), dtype=np.int8)
        probabilities = np.empty((len(self), k))
        for rows, dense in self._dense_blocks():
            best = dense._top(k)
            labelsets[rows], probabilities[rows] = best.labelsets, best.probabilities
        return TopLabelsets(labelsets, probabilities)

    def _expected_by_counts(self, metric: Metric, Y_pred: Labelsets, empty: float) -> Floats:
        expected = np.empty(len(self))
        for rows, dense in self._dense_blocks():
            expected[rows] = dense._expected_by_counts(metric, Y_pred[rows], empty)
        return expected

    def _size_marginals(self) -> Floats:
        by_size = np.empty((len(self), self.n_labels, self.n_labels))
        for rows, dense in self._dense_blocks():
            by_size[rows] = dense._size_marginals()
        return by_size

    def _probabilities(self) -> Floats:
        P = np.empty((len(self), 2**self.n_labels))
        for rows, dense in self._dense_blocks():
            P[rows] = dense._P
        return P

    def _optimum(self, metric: Metric, empty: float) -> Labelsets | None:
        if metric != JACCARD:
            return None
        best = np.empty((len(self), self.n_labels), dtype=np.int8)
        for rows, dense in self._dense_blocks():
            best[rows] = dense._best_jaccard(empty)
        return best
