"""`ChainMixture`: a chain or the mean of several; dense, certified or sampled."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from typing import Any, Self, Unpack

import numpy as np
from numpy.typing import ArrayLike

from labelsure import _limits
from labelsure._kernels.threads import map_rows, n_threads
from labelsure._limits import cut_rows
from labelsure._typing import Floats, Indices, Integers, Labelsets, Rows
from labelsure.distributions._answers import (
    Expected,
    MaxMarginals,
    Summary,
    Support,
    TopLabelsets,
    expect_exact,
)
from labelsure.distributions._bridge import LabelsetDistribution
from labelsure.distributions._chain_links import Chain, LinearChain
from labelsure.distributions._chain_stack import log_prob_of_rows
from labelsure.distributions._chain_views import ANY, JOINT_BYTES, ChainViews, Question, Views
from labelsure.distributions._dense import DenseDistribution, has_dense_best
from labelsure.distributions._draw_rounds import (
    CollisionPhase,
    EntropyPhase,
    ExpectedPhase,
    MarginalPhase,
    Phase,
)
from labelsure.distributions._engines import DEFAULT_ENGINE, Engine, EngineSettings
from labelsure.distributions._kept_answers import KeptAnswers
from labelsure.distributions._weighted_chains import WeightedChains, read_weights
from labelsure.errors import InputError
from labelsure.metrics import EXACT, Metric


class ChainMixture(LabelsetDistribution):
    """The mean of the joint distributions of one or more chains, with weights if they have some.

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
        shares = read_weights(weights, len(self), len(chains))
        self._chains = WeightedChains(chains, shares)
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
        return self._copy(self._chains, self._engine.replace(settings)) if settings else self

    def _take(self, rows: Rows) -> Self:
        return self._copy(self._chains.take(rows), self._engine)

    def _copy(self, chains: WeightedChains, engine: Engine) -> Self:
        new = copy(self)  # what was checked need not be checked again
        new._chains, new._engine, new._n_samples = chains, engine, chains.n_samples
        new._kept = None
        return new

    def _keep_top(self, k: int) -> Self:
        if not (self._views.is_dense and self._views.is_affordable):
            return self
        new = self._copy(self._chains, self._engine)
        new._index, new._kept = self._index, KeptAnswers(len(self), self.n_labels, k)
        return new

    def _members(self) -> list[LabelsetDistribution]:
        return [self._copy(WeightedChains([chain]), self._engine) for chain in self._chains]

    def _member_weights(self) -> Floats:
        return self._chains.shares / self.n_chains

    # What needs no engine.

    def _log_prob(self, Y: Labelsets) -> Floats:
        return log_prob_of_rows(self._chains, Y, slice(None))

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
        if self._chains.is_equal:
            return generator.integers(self.n_chains, size=len(self) * size)
        return self._chains.find_owners(generator.random((len(self), size))).ravel()

    def _temper_links(self, power: float) -> Self:
        return self._copy(self._chains.change(lambda chain: chain.temper(power)), self._engine)

    def _link_logits(self, Y: Labelsets) -> Floats:
        return np.stack([chain.link_logits(Y) for chain in self._chains], axis=1)

    @property
    def _views(self) -> ChainViews:
        """Who answers for which instances."""
        return ChainViews(
            self._chains,
            self._engine,
            self.label_names,
            self.max_exact_labels,
            self._random_state,
            self._kept,
        )

    def _exact_blocks(self) -> Iterator[tuple[Indices, DenseDistribution]]:
        self._views.check_affordable()
        yield from self._views.dense_views(np.arange(len(self)))

    # Answers, put together from those of the views.

    def _summary(self, metrics: list[Metric], empty: float) -> Summary:
        def summarise(views: Views) -> list[tuple[Indices, Summary]]:
            return [(rows, view.summary(metrics, empty)) for rows, view in views]

        views = self._views
        linear = all(isinstance(chain, LinearChain) for chain in self._chains)
        if views.is_dense and linear and views.n_joints == n_threads():
            # Each thread makes joints and sums them up while they are in its cache. Not so with
            # base learners of any kind: they need not bear being asked by several threads.
            views.check_affordable()
            blocks = map_rows(
                lambda start, stop: summarise(views.dense_views(np.arange(start, stop))), len(self)
            )
            parts = [part for block in blocks for part in block]
        else:
            tolerance, sampled = self._engine.tolerance, self._engine.sampled_tolerance
            phases: list[Phase] = [EntropyPhase(sampled), CollisionPhase(sampled)]
            inexact = [metric for metric in metrics if metric not in _WITHOUT_ENGINE]
            if inexact:
                phases.append(ExpectedPhase(sampled, inexact, empty))
            unseen = tolerance if metrics else ANY
            question = Question(tolerance, unseen, certain=True, phases=tuple(phases))
            parts = summarise(views.answering(question))
        return Summary.assemble(parts) if parts else Summary.of_nothing(metrics, self.n_labels)

    def _marginals(self) -> Floats:
        if self._kept is not None and self._kept.is_complete:
            return self._kept.marginals.copy()
        marginals = np.empty((len(self), self.n_labels))
        if self._engine.name == "dense" or (
            self._engine.name == "auto" and self._views.prefers_exact
        ):
            for rows, dense in self._exact_blocks():
                marginals[rows] = dense.marginals()
            return marginals
        phases = (MarginalPhase(self._engine.sampled_tolerance),)
        question = Question(unseen=self._engine.tolerance, phases=phases)
        for rows, view in self._views.answering(question):
            marginals[rows] = view.marginals()
        return marginals

    def _max_marginals(self, log_at_least: float) -> MaxMarginals:
        # Never narrow enough: a search stops where no labelset unseen has as much as this.
        question = Question(width=-ANY, largest_unseen=float(np.exp(log_at_least)))
        views = self._views.answering(question)
        parts = [(rows, view.max_marginals()) for rows, view in views]
        return MaxMarginals.assemble(parts, self.n_labels)

    def _mode(self) -> Labelsets:
        mode = np.empty((len(self), self.n_labels), dtype=np.int8)
        for rows, view in self._views.answering(Question(certain=True)):
            mode[rows] = view.mode()
        return mode

    def _top(self, k: int) -> TopLabelsets:
        if self._kept is not None and self._kept.is_complete and k <= self._kept.k:
            return self._kept.top(k)
        labelsets = np.empty((len(self), k, self.n_labels), dtype=np.int8)
        probabilities, high = np.empty((len(self), k)), np.empty((len(self), k))
        question = Question(self._engine.tolerance, certain=True, k=k)
        for rows, view in self._views.answering(question):
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
        phases = (ExpectedPhase(self._engine.sampled_tolerance, [metric], empty, guesses),)
        question = Question(unseen=self._engine.tolerance, phases=phases)
        for rows, view in self._views.answering(question):
            for g in range(guesses.shape[1]):
                part = view.expected(metric, guesses[rows, g], empty=empty)
                value[rows, g], low[rows, g], high[rows, g] = part.value, part.low, part.high
        return Expected(value, low, high)

    def _expected_by_counts(self, metric: Metric, Y_pred: Labelsets, empty: float) -> Floats:
        return self._expected(metric, Y_pred, empty).value

    # What only the dense engine answers; decisions beyond it go by what was enumerated.

    @property
    def _goes_by_support(self) -> bool:
        exact = self._engine.name == "dense" or self._views.prefers_exact
        return self._engine.name == "certified" or not exact

    def _support(self) -> Iterator[tuple[Indices, Support]] | None:
        return self._enumerated_blocks() if self._goes_by_support else None

    def _enumerated_blocks(self) -> Iterator[tuple[Indices, Support]]:
        views, budget = self._views, self._engine.budget
        goals = Question(unseen=self._engine.tolerance, certain=True).goals(self._engine.mass)
        bytes_each = max(1, budget) * (8 * self.n_labels + 32)
        for some in cut_rows(len(self), bytes_each, _limits.DECISION_BYTES):
            rows = np.arange(len(self))[some]
            yield rows, views.search(rows, goals, budget).support(self.label_names)

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
