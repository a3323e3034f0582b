"""`ChainMixture`: a chain or the mean of several; dense, certified or sampled."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, Self, Unpack

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from labelsure._kernels.threads import Progress, map_rows, n_threads
from labelsure._runtime import limits as _limits
from labelsure._runtime.typing import Floats, Indices, Integers, Labelsets, Rows
from labelsure.distributions import _probabilities as arguments
from labelsure.distributions._answers import (
    Expected,
    MaxMarginals,
    Summary,
    Support,
    TopLabelsets,
    expect_exact,
)
from labelsure.distributions._bridge import LabelsetDistribution, log_prob_of_logits
from labelsure.distributions._chain_links import Chain, LinearChain, write_joints
from labelsure.distributions._dense import DenseDistribution, has_dense_best
from labelsure.distributions._engines import DEFAULT_ENGINE, Engine, EngineSettings
from labelsure.distributions._kept_answers import KeptAnswers
from labelsure.distributions.candidates import log
from labelsure.errors import InputError, TooLargeError
from labelsure.metrics.registry import EXACT, Metric

if TYPE_CHECKING:
    from labelsure.distributions._chain_views import ChainViews, Question, Views
    from labelsure.distributions._weighted_chains import WeightedChains

JOINT_BYTES = 16  # for each labelset: its probability, and as much again for some questions


class ChainMixture(LabelsetDistribution):
    """The mean of the joint distributions of one or more chains, with weights if they have some.

    Three engines answer. *dense* makes all 2**L probabilities of a few instances at a time, asks
    and throws them away. *certified* looks for the likely labelsets and bounds all others.
    *sampled* draws labelsets and evaluates them, which gives unbiased estimates. Left to itself
    ("auto") a mixture is dense up to 16 labels, or 14 with a `PrefixChain`; beyond, it searches for
    a while, draws where that does not meet the tolerance, and says which in `profile().method`.
    Log-probabilities and samples need no engine. Beyond dense computation the mode is the best that
    the search found: `profile().high.top` says what another could have.

    Parameters
    ----------
    chains
        `LinearChain` or `PrefixChain` objects over the same instances and labels.
    label_names
        One for each label.
    weights
        (n_chains,) what each chain has of the mixture, or (n, n_chains) by instance; None for equal
        ones.
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
        weights: ArrayLike | None = None,
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
        self._shares: Floats | None = None
        if weights is not None:
            self._shares = arguments.read_shares(weights, len(self), len(chains))
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
        return (_limits.DENSE_WORK_BYTES // JOINT_BYTES).bit_length() - 1

    def _with_engine(self, settings: EngineSettings) -> Self:
        return (
            self._copy(self._chains, self._shares, self._engine.replace(settings))
            if settings
            else self
        )

    def _take(self, rows: Rows) -> Self:
        shares = None if self._shares is None else self._shares[rows]
        return self._copy([chain.take(rows) for chain in self._chains], shares, self._engine)

    def _copy(self, chains: list[Chain], shares: Floats | None, engine: Engine) -> Self:
        new = copy(self)  # what was checked need not be checked again
        new._chains, new._engine, new._n_samples = chains, engine, chains[0].n_samples
        new._shares, new._kept = shares, None
        return new

    def _keep_top(self, k: int) -> Self:
        if not (self._is_dense and self._is_affordable):
            return self
        new = self._copy(self._chains, self._shares, self._engine)
        new._index, new._kept = self._index, KeptAnswers(len(self), self.n_labels, k)
        return new

    def _members(self) -> list[LabelsetDistribution]:
        return [self._copy([chain], None, self._engine) for chain in self._chains]

    # What needs no engine.

    def _log_prob(self, Y: Labelsets) -> Floats:
        return self._mix_logs(np.stack([chain.log_prob(Y) for chain in self._chains], axis=1))

    def _mix_logs(self, by_chain: Floats) -> Floats:
        """Return the log of the mixture of probabilities whose logs are given, (n, n_chains)."""
        if self._shares is not None:
            by_chain = by_chain + log(self._shares)
        return np.asarray(logsumexp(by_chain, axis=1) - np.log(self.n_chains))

    def _sample(self, size: int, generator: np.random.Generator) -> Labelsets:
        drawn = np.empty((len(self) * size, self.n_labels), dtype=np.int8)
        chosen = self._choose_chains(size, generator)
        uniforms = generator.random(drawn.shape)
        rows = np.repeat(np.arange(len(self)), size)
        for m, chain in enumerate(self._chains):
            mine = chosen == m
            drawn[mine] = chain.sample(rows[mine], uniforms[mine])
        return drawn.reshape(len(self), size, self.n_labels)

    def _choose_chains(self, size: int, generator: np.random.Generator) -> Integers:
        """Return the chains that draws come from, `size` for each instance, one after the other."""
        if self._shares is None:
            return generator.integers(self.n_chains, size=len(self) * size)
        return self._weighted.find_owners(generator.random((len(self), size))).ravel()

    def _temper(self, temperature: float) -> Self:
        return self._copy([c.temper(temperature) for c in self._chains], self._shares, self._engine)

    def _tempered_log_prob(self, Y: Labelsets) -> Callable[[float], Floats]:
        logits = np.stack([chain.link_logits(Y) for chain in self._chains], axis=1)
        return lambda temperature: self._mix_logs(log_prob_of_logits(logits / temperature))

    # All probabilities, of some instances at a time.

    @property
    def _is_dense(self) -> bool:
        """Whether all instances get their whole joint, whatever the question."""
        most = _limits.EXACT_LABELS if self._is_linear else _limits.CHEAP_DENSE_LABELS
        is_small = self._engine.name == "auto" and self.n_labels <= min(most, self.max_exact_labels)
        return self._engine.name == "dense" or is_small

    @property
    def _is_linear(self) -> bool:
        return all(isinstance(chain, LinearChain) for chain in self._chains)

    @property
    def _is_affordable(self) -> bool:
        return self.n_labels <= self.max_exact_labels

    def _check_affordable(self) -> None:
        if not self._is_affordable:
            raise TooLargeError(
                f"All 2**{self.n_labels} labelsets are too many to enumerate: this distribution "
                f"is set to at most {self.max_exact_labels} labels. Use engine='auto', "
                "'certified' or 'sampled', or raise `max_exact_labels` if there is memory for "
                f"{JOINT_BYTES} * 2**{self.n_labels} bytes."
            )

    @property
    def _n_joints(self) -> int:
        """How many joints are made at a time: one for each thread, if there is memory."""
        room = _limits.DENSE_WORK_BYTES // (JOINT_BYTES << self.n_labels)
        return max(1, min(n_threads(), room))

    def _dense_views(self, rows: Indices) -> Iterator[tuple[Indices, DenseDistribution]]:
        """Yield instances with all their probabilities, as many at a time as fit into memory."""
        step = max(self._n_joints, _limits.CACHED_JOINT_BYTES >> (self.n_labels + 3))
        step = min(len(rows), step)
        # One array for all: memory that the system gives anew is as slow as filling it.
        P = np.empty((step, 2**self.n_labels))
        for first in range(0, len(rows), max(step, 1)):
            some = rows[first : first + step]
            shares = None if self._shares is None else self._shares[some]
            write_joints([chain.take(some) for chain in self._chains], shares, P[: len(some)])
            dense = DenseDistribution.from_trusted(P[: len(some)], self.label_names)
            if self._kept is not None:
                self._kept.note(some, dense)
            yield some, dense

    def _exact_blocks(self) -> Iterator[tuple[Indices, DenseDistribution]]:
        self._check_affordable()
        progress = Progress(len(self))
        for rows, dense in self._dense_views(np.arange(len(self))):
            yield rows, dense
            progress.add(len(rows))

    # Other engines, which are loaded when they are needed.

    @property
    def _weighted(self) -> WeightedChains:
        from labelsure.distributions._weighted_chains import WeightedChains

        return WeightedChains(self._chains, self._shares)

    @property
    def _beyond_dense(self) -> ChainViews:
        from labelsure.distributions._chain_views import ChainViews

        return ChainViews(self._weighted, self._engine, self.label_names, self._random_state)

    def _answering(self, ask: Callable[[ChainViews], Question]) -> Views:
        """Yield all instances, some at a time, with what answers until the next are due."""
        if self._is_dense:
            return self._exact_blocks()
        views = self._beyond_dense
        return views.answering(ask(views))

    # Answers, put together from those of the views.

    def _summary(self, metrics: list[Metric], empty: float) -> Summary:
        def summarise(views: Views) -> list[tuple[Indices, Summary]]:
            return [(rows, view.summary(metrics, empty)) for rows, view in views]

        def summarise_dense(start: int, stop: int) -> list[tuple[Indices, Summary]]:
            part = summarise(self._dense_views(np.arange(start, stop)))
            progress.add(stop - start)
            return part

        if self._is_dense and self._is_linear and self._n_joints == n_threads():
            # Each thread makes joints and sums them up while they are in its cache. Not so with
            # base learners of any kind: they need not bear being asked by several threads.
            self._check_affordable()
            progress = Progress(len(self))
            parts = [part for block in map_rows(summarise_dense, len(self)) for part in block]
        else:
            inexact = [metric for metric in metrics if metric not in _WITHOUT_ENGINE]
            parts = summarise(
                self._answering(lambda views: views.ask_summary(metrics, inexact, empty))
            )
        return Summary.assemble(parts) if parts else Summary.of_nothing(metrics, self.n_labels)

    def _marginals(self) -> Floats:
        return self._marginal_bounds().value

    def _marginal_bounds(self) -> Expected:
        if self._kept is not None and self._kept.is_complete:
            return Expected.exactly(self._kept.marginals.copy())
        value, low, high = (np.empty((len(self), self.n_labels)) for _ in range(3))
        for rows, view in self._answering(lambda views: views.ask_marginals()):
            part = view.marginal_bounds()
            value[rows], low[rows], high[rows] = part.value, part.low, part.high
        return Expected(value, low, high)

    def _max_marginals(self, log_at_least: float) -> MaxMarginals:
        views = self._answering(lambda views: views.ask_max_marginals(log_at_least))
        parts = [(rows, view.max_marginals()) for rows, view in views]
        return MaxMarginals.assemble(parts, self.n_labels)

    def _mode(self) -> Labelsets:
        mode = np.empty((len(self), self.n_labels), dtype=np.int8)
        for rows, view in self._answering(lambda views: views.ask_mode()):
            mode[rows] = view.mode()
        return mode

    def _top(self, k: int) -> TopLabelsets:
        if self._kept is not None and self._kept.is_complete and k <= self._kept.k:
            return self._kept.top(k)
        labelsets = np.empty((len(self), k, self.n_labels), dtype=np.int8)
        logs, log_high = np.empty((len(self), k)), np.empty((len(self), k))
        for rows, view in self._answering(lambda views: views.ask_top(k)):
            best = view.top(k)
            labelsets[rows], logs[rows], log_high[rows] = best.labelsets, best.logs, best.log_high
        # Where nothing was found, what stands for the mode can be evaluated all the same.
        unseen = np.flatnonzero(np.isneginf(logs[:, 0]))
        if unseen.size:
            logs[unseen, 0] = self._take(unseen)._log_prob(labelsets[unseen, 0])
            log_high = np.maximum(log_high, logs)
        return TopLabelsets(labelsets, logs, log_high)

    def _expected(self, metric: Metric, Y_pred: Labelsets, empty: float) -> Expected:
        found = self._expected_of_guesses(metric, Y_pred[:, np.newaxis], empty)
        return Expected(found.value[:, 0], found.low[:, 0], found.high[:, 0])

    def _expected_of_guesses(self, metric: Metric, guesses: Labelsets, empty: float) -> Expected:
        if metric in _WITHOUT_ENGINE:
            columns = np.swapaxes(guesses, 0, 1)
            values = [_WITHOUT_ENGINE[metric](self, Y_pred) for Y_pred in columns]
            return Expected.exactly(np.column_stack(values))
        value, low, high = (np.empty(guesses.shape[:2]) for _ in range(3))
        for rows, view in self._answering(lambda views: views.ask_expected(metric, guesses, empty)):
            for g in range(guesses.shape[1]):
                part = view.expected(metric, guesses[rows, g], empty=empty)
                value[rows, g], low[rows, g], high[rows, g] = part.value, part.low, part.high
        return Expected(value, low, high)

    def _expected_by_counts(self, metric: Metric, Y_pred: Labelsets, empty: float) -> Floats:
        return self._expected(metric, Y_pred, empty).value

    # What only the dense engine answers; decisions beyond it go by what was enumerated.

    def _support(self) -> Iterator[tuple[Indices, Support]] | None:
        if self._is_dense:
            return None
        from labelsure.distributions._chain_views import support_blocks

        return support_blocks(self._beyond_dense)

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
        if not (self._is_dense and has_dense_best(metric, self.n_labels)):
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
