"""Chains: each label's probability given x and the labels before it, in the chain's own order."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, logit

from labelsure._kernels.chain_joints import BlockPlan, joint_rows, plan_blocks
from labelsure._kernels.threads import for_rows
from labelsure._runtime.typing import Floats, Indices, Labelsets, Rows
from labelsure.distributions._probabilities import as_floats
from labelsure.errors import InputError
from labelsure.labelsets.rows import check_label_order

Conditional = Callable[[int, Indices, Labelsets], Floats]

CALL_ROWS = 2**16
"""How many rows a base learner is asked for in one call."""


def open_interval(p: Floats) -> Floats:
    """Keep probabilities off 0 and 1, so that their logits are numbers."""
    return np.clip(p, np.finfo(float).tiny, 1 - 2.0**-53)


class Chain(ABC):
    """One chain over a batch of n instances.

    Parameters
    ----------
    order
        (L,) the label at each position: a permutation of 0 to L - 1.
    """

    def __init__(self, order: ArrayLike) -> None:
        self.order = check_label_order(order, name="order")

    @property
    @abstractmethod
    def n_samples(self) -> int:
        """The number of instances."""

    @abstractmethod
    def take(self, rows: Rows) -> Self:
        """Return the chain for some of its instances."""

    @abstractmethod
    def conditional(self, position: int, rows: Indices, prefixes: Labelsets) -> Floats:
        """Return P(label at `position` = 1) for pairs of an instance and its earlier labels.

        Parameters
        ----------
        position
            In the chain.
        rows
            (m,) instances.
        prefixes
            (m, position) values at the earlier positions.
        """

    @abstractmethod
    def square_odds(self) -> Chain:
        """Return the chain whose conditionals have the odds of this one, squared."""

    def log_prob(self, Y: Labelsets) -> Floats:
        """Return the log-probability of one labelset for each instance."""
        ordered = Y[:, self.order]
        rows = np.arange(len(Y))
        total = np.zeros(len(Y))
        with np.errstate(divide="ignore"):
            for j in range(ordered.shape[1]):
                p = self.conditional(j, rows, ordered[:, :j])
                total += np.log(np.where(ordered[:, j] == 1, p, 1 - p))
        return total

    @abstractmethod
    def temper(self, temperature: float) -> Self:
        """Return the chain with the log-odds of each link divided by the temperature."""

    def link_logits(self, Y: Labelsets) -> Floats:
        """Return the log-odds of the value at each position, given those before it, (n, L)."""
        ordered = Y[:, self.order]
        rows = np.arange(len(Y))
        logits = np.empty(ordered.shape)
        for j in range(ordered.shape[1]):
            logits[:, j] = logit(self.conditional(j, rows, ordered[:, :j]))
        return np.where(ordered == 1, logits, -logits)

    def sample(self, rows: Indices, uniforms: Floats) -> Labelsets:
        """Draw one labelset for each entry of `rows`, label by label.

        Parameters
        ----------
        rows
            (m,) instances.
        uniforms
            (m, L) numbers in [0, 1).
        """
        unused = np.broadcast_to(0.0, (self.n_samples, self.order.size))
        return self.draw_paths(rows, uniforms, unused)[0]

    def draw_paths(
        self, rows: Indices, uniforms: Floats, mean_logits: Floats
    ) -> tuple[Labelsets, Floats, Floats]:
        """Draw as `sample` does; also return what the links say of each draw.

        Returns
        -------
        The labelsets; their log-probabilities; and by how much these are above what they are on
        average, link by link: the sums of (y - p) logit(p) and of (y - p) times what (n, L)
        `mean_logits` have instead, (k, 2), whose means are 0. Section 7.
        """
        ordered = np.empty(uniforms.shape, dtype=np.int8)
        log_prob, excess = np.zeros(len(rows)), np.zeros((len(rows), 2))
        for j in range(uniforms.shape[1]):
            p = self.conditional(j, rows, ordered[:, :j])
            ordered[:, j] = one = uniforms[:, j] < p
            open_p = open_interval(p)  # what is certain adds nothing
            log_prob += np.log(np.where(one, open_p, 1 - open_p))
            excess[:, 0] += (one - p) * logit(open_p)
            excess[:, 1] += (one - p) * mean_logits[rows, self.order[j]]
        drawn = np.empty_like(ordered)
        drawn[:, self.order] = ordered
        return drawn, log_prob, excess

    def path_conditionals(self, Y: Labelsets) -> Floats:
        """Return P(y_j = 1) of each label given those before it in the labelset, (n, L)."""
        ordered = Y[:, self.order]
        p = np.empty(Y.shape)
        for j, label in enumerate(self.order):
            p[:, label] = self.conditional(j, np.arange(len(Y)), ordered[:, :j])
        return p

    def joint(self) -> Floats:
        """Return all probabilities, (n, 2**L) in code order, prefix by prefix."""
        n_labels = self.order.size
        q = np.ones((self.n_samples, 1))
        for j in range(n_labels):
            p = np.zeros(q.shape)
            rows, codes = np.nonzero(q > 0)  # what is impossible need not be asked for
            for first in range(0, rows.size, CALL_ROWS):
                some, prefix = rows[first : first + CALL_ROWS], codes[first : first + CALL_ROWS]
                bits = ((prefix[:, np.newaxis] >> np.arange(j)) & 1).astype(np.int8)
                p[some, prefix] = self.conditional(j, some, bits)
            q = np.concatenate([q * (1 - p), q * p], axis=1)
        # Axis 1 + a of the reshaped array is the bit of position L - 1 - a: make it the bit of
        # label L - 1 - a.
        axes = [n_labels - int(np.argmax(self.order == n_labels - 1 - a)) for a in range(n_labels)]
        return q.reshape(-1, *(2,) * n_labels).transpose(0, *axes).reshape(q.shape)


@dataclass(frozen=True, eq=False)
class ChainLinks:
    """How the labels of a linear chain depend on each other, which is the same for all instances.

    Chains taken from one another share it, and with it what was once computed.
    """

    order: Indices
    weights: Floats

    @cached_property
    def terms(self) -> Floats:
        """(L, L) what label i, set, adds to the logit of label j: 0 unless it comes earlier."""
        terms = np.empty(self.weights.shape)
        terms[np.ix_(self.order, self.order)] = self.weights.T
        return terms

    @cached_property
    def reach(self) -> Floats:
        """(L,) how far the earlier labels can move the logit at each position."""
        return np.asarray(np.abs(self.weights).sum(axis=1))


def _check_finite(values: Floats, name: str) -> None:
    if not np.isfinite(values).all():
        raise InputError(
            f"`{name}` must be finite, got a value that is not in row "
            f"{np.argwhere(~np.isfinite(values))[0][0]}."
        )


class LinearChain(Chain):
    """A chain whose conditionals are the logistic of a linear function.

    Parameters
    ----------
    order
        (L,) the label at each position.
    base
        (n, L) logit at each position when no earlier label is set.
    weights
        (L, L) weights[j, i] is what a 1 at position i < j adds to the logit at position j.

    Examples
    --------
    Label 1 first; label 0 likes company:

    >>> chain = LinearChain([1, 0], base=[[0.0, -2.0]], weights=[[0, 0], [4.0, 0]])
    >>> chain.joint().round(3)
    array([[0.44, 0.06, 0.06, 0.44]])
    """

    def __init__(self, order: ArrayLike, base: ArrayLike, weights: ArrayLike) -> None:
        super().__init__(order)
        self.base = as_floats(base, "base").astype(np.float64)  # a copy, also of such an array
        self.weights = np.tril(as_floats(weights, "weights").astype(np.float64), -1)
        n_labels = self.order.size
        if self.base.ndim != 2 or self.base.shape[1] != n_labels:
            raise InputError(
                f"`base` must have shape (n_samples, {n_labels}), got shape {self.base.shape}."
            )
        if self.weights.shape != (n_labels, n_labels):
            raise InputError(
                f"`weights` must have shape ({n_labels}, {n_labels}), got {self.weights.shape}."
            )
        _check_finite(self.base, "base")
        _check_finite(self.weights, "weights")
        self._links = ChainLinks(self.order, self.weights)

    @classmethod
    def from_fitted(cls, order: Indices, base: Floats, weights: Floats) -> Self:
        """Return the chain of a fitted model, whose order and weights were checked with it.

        Parameters
        ----------
        order, base, weights
            As for the class; `weights` are 0 but below the diagonal. Logits may overflow where
            features are extreme, so these are still looked at.
        """
        _check_finite(base, "base")
        new = cls.__new__(cls)
        new.order, new.base, new.weights = order, base, weights
        new._links = ChainLinks(order, weights)
        return new

    @property
    def n_samples(self) -> int:
        """The number of instances."""
        return len(self.base)

    def take(self, rows: Rows) -> Self:
        """Return the chain for some of its instances."""
        taken = copy(self)  # what was checked need not be checked again
        taken.base = self.base[rows]
        return taken

    def square_odds(self) -> LinearChain:
        """Return the chain whose conditionals have the odds of this one, squared."""
        return LinearChain.from_fitted(self.order, 2 * self.base, 2 * self.weights)

    @property
    def links(self) -> ChainLinks:
        """What is the same for all instances."""
        return self._links

    @property
    def largest_logit(self) -> float:
        """No logit of a label is farther from 0, whatever the labels before it."""
        most = np.abs(self.base).max(axis=0, initial=0.0) + self._links.reach
        return float(most.max(initial=0.0))

    def log_prob(self, Y: Labelsets) -> Floats:
        """Return the log-probability of one labelset for each instance."""
        return -np.logaddexp(0.0, -self.link_logits(Y)).sum(axis=1)

    def link_logits(self, Y: Labelsets) -> Floats:
        """Return the log-odds of the value at each position, given those before it, (n, L)."""
        ordered = Y[:, self.order]
        logits = self.base + ordered @ self.weights.T
        return np.where(ordered == 1, logits, -logits)

    def temper(self, temperature: float) -> Self:
        """Return the chain with the log-odds of each link divided by the temperature."""
        return self.from_fitted(self.order, self.base / temperature, self.weights / temperature)

    def conditional(self, position: int, rows: Indices, prefixes: Labelsets) -> Floats:
        """Return P(label at `position` = 1) for pairs of an instance and its earlier labels."""
        logits = self.base[rows, position] + prefixes @ self.weights[position, :position]
        return expit(logits)


def plan_joint(chains: Sequence[LinearChain]) -> BlockPlan:
    """Return what the kernel of their mean joint has to know of the chains, for any instances."""
    return _plan_joint(tuple(chain._links for chain in chains))


@lru_cache(maxsize=8)
def _plan_joint(links: tuple[ChainLinks, ...]) -> BlockPlan:
    """Make the plan once for a mixture: its instances come a few at a time, in several threads."""
    weights, orders = [link.weights for link in links], [link.order for link in links]
    return plan_blocks(np.stack(weights), np.stack(orders))


def write_joints(chains: Sequence[Chain], shares: Floats | None, P: Floats) -> None:
    """Write the joints of mixtures: of linear chains in one kernel, of others one by one.

    Parameters
    ----------
    chains
        Over the same instances and labels.
    shares
        (n, m) the weight of each chain times m; None means that all have the same.
    P
        (n, 2**L) where to write.
    """
    shares = np.ones((len(P), len(chains))) if shares is None else shares
    is_linear = [isinstance(chain, LinearChain) for chain in chains]
    linear = [chain for chain in chains if isinstance(chain, LinearChain)]
    if linear:
        bases = np.stack([chain.base for chain in linear], axis=1)
        mine = shares[:, is_linear] * (len(linear) / len(chains))
        for_rows(joint_rows, len(P), bases, mine, plan_joint(linear), into=[P])
    else:
        P[:] = 0.0
    for m, chain in enumerate(chains):
        if not is_linear[m]:
            P += chain.joint() * shares[:, m : m + 1] / len(chains)


class PrefixChain(Chain):
    """A chain whose conditionals any function gives: a base learner of any kind.

    Parameters
    ----------
    order
        (L,) the label at each position.
    conditional
        Takes (position, rows, prefixes) as `Chain.conditional` does and returns (m,)
        probabilities. Asked for many pairs at once.
    n_samples
        The number of instances.

    Examples
    --------
    A fair coin, and a second label that mostly follows it:

    >>> def follows(position, rows, prefixes):
    ...     return 0.1 + 0.8 * prefixes[:, 0] if position else np.full(len(rows), 0.5)
    >>> PrefixChain([0, 1], follows, n_samples=1).joint()
    array([[0.45, 0.05, 0.05, 0.45]])
    """

    def __init__(
        self,
        order: ArrayLike,
        conditional: Conditional,
        n_samples: int,
    ) -> None:
        super().__init__(order)
        self._conditional = conditional
        self._rows = np.arange(n_samples)
        self._temperature = 1.0

    @property
    def n_samples(self) -> int:
        """The number of instances."""
        return self._rows.size

    def take(self, rows: Rows) -> Self:
        """Return the chain for some of its instances."""
        taken = copy(self)
        taken._rows = self._rows[rows]
        return taken

    def square_odds(self) -> PrefixChain:
        """Return the chain whose conditionals have the odds of this one, squared."""

        def conditional(position: int, rows: Indices, prefixes: Labelsets) -> Floats:
            p = self.conditional(position, rows, prefixes)
            return p**2 / (p**2 + (1 - p) ** 2)

        return PrefixChain(self.order, conditional, self.n_samples)

    def conditional(self, position: int, rows: Indices, prefixes: Labelsets) -> Floats:
        """Return P(label at `position` = 1) for pairs of an instance and its earlier labels."""
        if not rows.size:
            return np.empty(0)  # most learners refuse to predict no rows
        given: Any = self._conditional(position, self._rows[rows], prefixes)
        p = np.asarray(given, dtype=np.float64)
        if p.shape != rows.shape or not ((p >= 0) & (p <= 1)).all():
            raise InputError(
                f"`conditional` must return {rows.size} probabilities in [0, 1] for position "
                f"{position}, got shape {p.shape}, from {p.min(initial=np.nan)} to "
                f"{p.max(initial=np.nan)}."
            )
        return p if self._temperature == 1 else expit(logit(p) / self._temperature)

    def temper(self, temperature: float) -> Self:
        """Return the chain with the log-odds of each link divided by the temperature."""
        tempered = copy(self)
        tempered._temperature = temperature * self._temperature
        return tempered
