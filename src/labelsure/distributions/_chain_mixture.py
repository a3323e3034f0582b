"""`ChainMixture`: a chain or the mean of several; dense, certified or sampled."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from typing import Any, Self, Unpack

import numpy as np
from scipy.special import logsumexp

from labelsure import _limits
from labelsure._kernels.threads import map_rows, n_threads
from labelsure._limits import cut_rows
from labelsure._typing import Floats, Indices, Labelsets, Rows
from labelsure.distributions._answers import (
    Expected,
    MaxMarginals,
    Summary,
    Support,
    TopLabelsets,
    View,
    expect_exact,
)
from labelsure.distributions._bridge import LabelsetDistribution
from labelsure.distributions._chain_links import Chain, LinearChain, write_joints
from labelsure.distributions._dense import DenseDistribution, has_dense_best
from labelsure.distributions._engines import DEFAULT_ENGINE, Engine, EngineSettings
from labelsure.distributions._enumeration import Enumeration, enumerate_chains
from labelsure.distributions._kept_answers import KeptAnswers
from labelsure.distributions._sampling import Sampled, sample_chains
from labelsure.errors import InputError, TooLargeError
from labelsure.metrics import EXACT, Metric

DENSE_PER_ENUMERATED = 256
"""How many dense probabilities cost as much as one labelset found by the search, roughly."""


Views = Iterator[tuple[Indices, View]]
ANY = 2.0  # a limit that everything in [0, 1] meets, or none reaches


class ChainMixture(LabelsetDistribution):
    """The mean of the joint distributions of one or more chains.

    Three engines answer. *dense* makes all 2**L probabilities of a few instances at a time, asks
    and throws them away. *certified* looks for the likely labelsets and bounds all others.
    *sampled* draws labelsets and evaluates them, which gives unbiased estimates. Left to itself
    ("auto") a mixture takes the cheapest that meets the tolerance and says which in
    `profile().method`. Log-probabilities and samples need no engine. Beyond dense computation the
    mode is the best that the search found: `profile().high.top` says what another could have.

    Parameters
    ----------
    chains
        `LinearChain` or `PrefixChain` objects over the same instances and labels.
    label_names
        One for each label.
    max_exact_labels
        Refuse dense computation beyond; None works it out from a memory budget of 2 GiB.
    random_state
        Seed of the sampled engine.
    **settings
        engine, tolerance, mass, budget: how it computes and when it stops, see
        `labelsure.distributions.Engine`; each call can replace them.

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
        random_state: int = 0,
        **settings: Unpack[EngineSettings],
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
        if not isinstance(random_state, (int, np.integer)) or random_state < 0:
            raise InputError(f"`random_state` must be a whole number >= 0, got {random_state!r}.")
        super().__init__(*shapes.pop(), label_names)
        self._chains = chains
        self._max_exact_labels = max_exact_labels
        self._engine = DEFAULT_ENGINE.replace(settings) if settings else DEFAULT_ENGINE
        self._random_state = random_state
        self._kept: KeptAnswers | None = None

    @property
    def n_chains(self) -> int:
        """The number of chains."""
        return len(self._chains)

    @property
    def max_exact_labels(self) -> int:
        """Up to how many labels all 2**L probabilities are computed."""
        if self._max_exact_labels is not None:
            return self._max_exact_labels
        # Each thread holds a joint and, for some questions, as much again to work with.
        return (_limits.DENSE_WORK_BYTES // (16 * n_threads())).bit_length() - 1

    def _with_engine(self, settings: EngineSettings) -> Self:
        return self._copy(self._chains, self._engine.replace(settings)) if settings else self

    def _take(self, rows: Rows) -> Self:
        return self._copy([chain.take(rows) for chain in self._chains], self._engine)

    def _copy(self, chains: list[Chain], engine: Engine) -> Self:
        new = copy(self)  # what was checked need not be checked again
        new._chains, new._engine, new._n_samples = chains, engine, chains[0].n_samples
        new._kept = None
        return new

    def _keep_top(self, k: int) -> Self:
        if not (self._is_dense and self._is_affordable):
            return self
        new = self._copy(self._chains, self._engine)
        new._index, new._kept = self._index, KeptAnswers(len(self), self.n_labels, k)
        return new

    def _members(self) -> list[LabelsetDistribution]:
        return [self._copy([chain], self._engine) for chain in self._chains]

    # What needs no engine.

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

    def _temper_links(self, power: float) -> Self:
        return self._copy([chain.temper(power) for chain in self._chains], self._engine)

    def _link_logits(self, Y: Labelsets) -> Floats:
        return np.stack([chain.link_logits(Y) for chain in self._chains], axis=1)

    # Views: who answers for which instances.

    def _goals(
        self, *, width: float | None = None, unseen: float = ANY, certain: bool = False
    ) -> Floats:
        """Return when the search may stop, as `enumerate_row` takes it.

        Parameters
        ----------
        width
            Of the candidates' intervals; None means the engine's tolerance.
        unseen
            Mass that may stay unseen.
        certain
            Whether the mode must be certain.
        """
        width = self._engine.tolerance if width is None else width
        mass = ANY if self._engine.mass is None else self._engine.mass
        return np.array([width, unseen, float(certain), mass, 0.0])

    def _views(self, goals: Floats, *, k: int = 1, draw: bool = True) -> Views:
        """Yield all instances, some at a time, with what answers for them until the next are due.

        Parameters
        ----------
        goals
            When a search may stop.
        k
            How many of the most probable labelsets "auto" has to be certain of, where it can.
        draw
            Whether draws would answer what is asked better than the labelsets seen.
        """
        if self._is_dense:
            self._check_affordable()
            yield from self._dense_views(np.arange(len(self)))
        elif self._engine.name == "certified":
            for rows in self._seen_blocks(self._engine.budget):
                yield rows, self._search(rows, goals, self._engine.budget)
        elif self._engine.name == "sampled":
            for rows in self._seen_blocks(0):
                yield rows, self._draw(rows, self._search(rows, goals, 0))
        else:
            yield from self._auto_views(goals, k, draw)

    def _auto_views(self, goals: Floats, k: int, draw: bool) -> Views:
        """Search first; what that does not answer well enough goes to a better engine."""
        budget, blocks = self._engine.budget, self._seen_blocks
        if self._is_affordable:  # a search that costs more than the dense engine is no use
            budget = min(budget, 2**self.n_labels // DENSE_PER_ENUMERATED)
            blocks = self._searched_blocks
        for rows in blocks(budget):
            found = self._search(rows, goals, budget)
            good = found.meets(goals)
            if k > 1:
                good &= found.top_is_certain(k)
            rest = np.flatnonzero(~good)
            if not self._is_affordable and not draw:
                good[:], rest = True, rest[:0]
            if good.any():
                yield rows[good], found[np.flatnonzero(good)]
            if self._is_affordable:
                del found  # not to be held beside the joints, nor beside what is found next
                yield from self._dense_views(rows[rest])
            elif rest.size:
                yield rows[rest], self._draw(rows[rest], found[rest])

    @property
    def _is_dense(self) -> bool:
        """Whether all instances get their whole joint, whatever the question."""
        cheap = self._is_affordable and self.n_labels <= _limits.CHEAP_DENSE_LABELS
        return self._engine.name == "dense" or (self._engine.name == "auto" and cheap)

    @property
    def _is_affordable(self) -> bool:
        return self.n_labels <= self.max_exact_labels

    def _check_affordable(self) -> None:
        if not self._is_affordable:
            raise TooLargeError(
                f"All 2**{self.n_labels} labelsets are too many to enumerate: this distribution "
                f"is set to at most {self.max_exact_labels} labels. Use engine='auto', "
                "'certified' or 'sampled', or raise `max_exact_labels` if there is memory for "
                f"{16 * n_threads()} * 2**{self.n_labels} bytes."
            )

    def _search(self, rows: Indices, goals: Floats, budget: int) -> Enumeration:
        return enumerate_chains([chain.take(rows) for chain in self._chains], goals, budget)

    def _draw(self, rows: Indices, found: Enumeration) -> Sampled:
        generator = np.random.default_rng([self._random_state, int(rows[0])])
        chains = [chain.take(rows) for chain in self._chains]
        return sample_chains(chains, found, self._engine.budget, generator)

    def _seen_blocks(self, budget: int) -> Iterator[Indices]:
        drawn = 8 * self.n_chains * self._engine.budget
        enumerated = (self.n_labels + 32) * max(budget, 1)
        for some in cut_rows(len(self), enumerated + drawn, _limits.SEEN_LABELSETS_BYTES):
            yield np.arange(len(self))[some]

    def _searched_blocks(self, budget: int) -> Iterator[Indices]:
        """Cut so that a search holds at most half of what the dense engine takes for its joints."""
        half = 4 * n_threads() * 2**self.n_labels
        bytes_each = max(budget, 1) * (3 * self.n_labels + 80)  # sorted copies included
        for some in cut_rows(len(self), bytes_each, max(_limits.CACHED_JOINT_BYTES, half)):
            yield np.arange(len(self))[some]

    def _dense_views(self, rows: Indices) -> Iterator[tuple[Indices, DenseDistribution]]:
        step = min(len(rows), max(n_threads(), _limits.CACHED_JOINT_BYTES >> (self.n_labels + 3)))
        # One array for all: memory that the system gives anew is as slow as filling it.
        P = np.empty((step, 2**self.n_labels))
        for first in range(0, len(rows), max(step, 1)):
            some = rows[first : first + step]
            write_joints([chain.take(some) for chain in self._chains], P[: len(some)])
            dense = DenseDistribution.from_trusted(P[: len(some)], self.label_names)
            if self._kept is not None:
                self._kept.note(some, dense)
            yield some, dense

    def _exact_blocks(self) -> Iterator[tuple[Indices, DenseDistribution]]:
        self._check_affordable()
        yield from self._dense_views(np.arange(len(self)))

    # Answers, put together from those of the views.

    def _summary(self, metrics: list[Metric], empty: float) -> Summary:
        def summarise(views: Views) -> list[tuple[Indices, Summary]]:
            return [(rows, view.summary(metrics, empty)) for rows, view in views]

        if self._is_dense and all(isinstance(chain, LinearChain) for chain in self._chains):
            # Each thread makes joints and sums them up while they are in its cache. Not so with
            # base learners of any kind: they need not bear being asked by several threads.
            self._check_affordable()
            blocks = map_rows(
                lambda start, stop: summarise(self._dense_views(np.arange(start, stop))), len(self)
            )
            parts = [part for block in blocks for part in block]
        else:
            goals = self._goals(unseen=self._engine.tolerance if metrics else ANY, certain=True)
            parts = summarise(self._views(goals))
        return Summary.assemble(parts) if parts else Summary.of_nothing(metrics, self.n_labels)

    def _marginals(self) -> Floats:
        if self._kept is not None and self._kept.is_complete:
            return self._kept.marginals.copy()
        marginals = np.empty((len(self), self.n_labels))
        if self._is_affordable and self._engine.name in ("auto", "dense"):
            for rows, dense in self._exact_blocks():
                marginals[rows] = dense.marginals()
            return marginals
        goals = self._goals(width=ANY, unseen=self._engine.tolerance)
        for rows, view in self._views(goals):
            marginals[rows] = view.marginals()
        return marginals

    def _max_marginals(self, log_at_least: float) -> MaxMarginals:
        goals = self._goals(width=-ANY)  # never narrow enough: it stops where no unseen one has
        goals[-1] = np.exp(log_at_least)  # as much as this
        parts = [(rows, view.max_marginals()) for rows, view in self._views(goals, draw=False)]
        return MaxMarginals.assemble(parts, self.n_labels)

    def _mode(self) -> Labelsets:
        mode = np.empty((len(self), self.n_labels), dtype=np.int8)
        for rows, view in self._views(self._goals(width=ANY, certain=True), draw=False):
            mode[rows] = view.mode()
        return mode

    def _top(self, k: int) -> TopLabelsets:
        if self._kept is not None and self._kept.is_complete and k <= self._kept.k:
            return self._kept.top(k)
        labelsets = np.empty((len(self), k, self.n_labels), dtype=np.int8)
        probabilities, high = np.empty((len(self), k)), np.empty((len(self), k))
        for rows, view in self._views(self._goals(certain=True), k=k, draw=False):
            best = view.top(k)
            labelsets[rows], probabilities[rows] = best.labelsets, best.probabilities
            high[rows] = best.high
        return TopLabelsets(labelsets, probabilities, high)

    def _expected(self, metric: Metric, Y_pred: Labelsets, empty: float) -> Expected:
        found = self._expected_of_guesses(metric, Y_pred[:, np.newaxis], empty)
        return Expected(found.value[:, 0], found.low[:, 0], found.high[:, 0])

    def _expected_of_guesses(self, metric: Metric, guesses: Labelsets, empty: float) -> Expected:
        if metric in _WITHOUT_ENGINE:
            columns = np.swapaxes(guesses, 0, 1)
            values = [_WITHOUT_ENGINE[metric](self, Y_pred) for Y_pred in columns]
            return Expected.exactly(np.column_stack(values))
        value, low, high = (np.empty(guesses.shape[:2]) for _ in range(3))
        goals = self._goals(width=ANY, unseen=self._engine.tolerance)
        for rows, view in self._views(goals):
            for g in range(guesses.shape[1]):
                part = view.expected(metric, guesses[rows, g], empty=empty)
                value[rows, g], low[rows, g], high[rows, g] = part.value, part.low, part.high
        return Expected(value, low, high)

    def _expected_by_counts(self, metric: Metric, Y_pred: Labelsets, empty: float) -> Floats:
        return self._expected(metric, Y_pred, empty).value

    # What only the dense engine answers; decisions beyond it go by what was enumerated.

    @property
    def _goes_by_support(self) -> bool:
        return not self._is_affordable or self._engine.name == "certified"

    def _support(self) -> Iterator[tuple[Indices, Support]] | None:
        return self._enumerated_blocks() if self._goes_by_support else None

    def _enumerated_blocks(self) -> Iterator[tuple[Indices, Support]]:
        goals = self._goals(width=ANY, unseen=self._engine.tolerance, certain=True)
        bytes_each = max(1, self._engine.budget) * (8 * self.n_labels + 32)
        for some in cut_rows(len(self), bytes_each, _limits.DECISION_BYTES):
            rows = np.arange(len(self))[some]
            found = self._search(rows, goals, self._engine.budget)
            yield rows, found.support(self.label_names)

    def _size_marginals(self) -> Floats:
        by_size = np.empty((len(self), self.n_labels, self.n_labels))
        for rows, dense in self._exact_blocks():
            by_size[rows] = dense.size_marginals()
        return by_size

    def _probabilities(self) -> Floats:
        P = np.empty((len(self), 2**self.n_labels))
        for rows, dense in self._exact_blocks():
            P[rows] = dense.probabilities()
        return P

    def _best(self, metric: Metric, empty: float) -> Labelsets | None:
        if self._goes_by_support or not has_dense_best(metric, self.n_labels):
            return None
        best = np.empty((len(self), self.n_labels), dtype=np.int8)
        for rows, dense in self._exact_blocks():
            found = dense.best(metric, empty=empty)
            if found is None:
                return None
            best[rows] = found
        return best


_WITHOUT_ENGINE: dict[Metric, Callable[[ChainMixture, Labelsets], Floats]] = {EXACT: expect_exact}
"""Metrics whose expectation every mixture has exactly, whatever its engine."""
