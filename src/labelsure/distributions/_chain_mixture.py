"""`ChainMixture`: a chain or the mean of several; dense, certified or sampled."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, Unpack

import numpy as np
from numpy.typing import ArrayLike

from labelsure._runtime import limits as _limits
from labelsure._runtime.arguments import read_whole_number
from labelsure._runtime.typing import Floats, Indices, Labelsets, Rows
from labelsure.distributions._answers import (
    Expected,
    Guesses,
    MaxMarginals,
    Summary,
    Support,
    TopLabelsets,
    View,
    each_guess,
    join_answers,
)
from labelsure.distributions._bridge import LabelsetDistribution, log_prob_of_logits
from labelsure.distributions._chain_links import Chain, LinearChain, write_joints
from labelsure.distributions._dense import JOINT_BYTES, DenseBlocks
from labelsure.distributions._engines import DEFAULT_ENGINE, EngineSettings
from labelsure.distributions._mixture import Mixture
from labelsure.distributions._probabilities import read_shares
from labelsure.distributions.candidates import Profile
from labelsure.errors import InputError, TooLargeError
from labelsure.metrics.registry import EXACT, Metric

if TYPE_CHECKING:
    from labelsure.distributions._chain_views import ChainViews, Question


class ChainMixture(Mixture):
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
        read_whole_number(random_state, "random_state", 0)
        n_samples, n_labels = shapes.pop()
        shares = None if weights is None else read_shares(weights, n_samples, len(chains))
        super().__init__(chains, shares, n_samples, n_labels, label_names)
        self._max_exact_labels = max_exact_labels
        self._engine = DEFAULT_ENGINE.replace(settings) if settings else DEFAULT_ENGINE
        self._random_state = random_state

    @property
    def n_chains(self) -> int:
        """The number of chains."""
        return len(self._parts)

    @property
    def max_exact_labels(self) -> int:
        """Up to how many labels all 2**L probabilities are computed."""
        if self._max_exact_labels is not None:
            return self._max_exact_labels
        return (_limits.DENSE_WORK_BYTES // JOINT_BYTES).bit_length() - 1

    def _with_parts(self, parts: list[Any], shares: Floats | None, n_samples: int) -> Self:
        new = super()._with_parts(parts, shares, n_samples)
        new.__dict__.pop("_joints", None)
        return new

    def _with_engine(self, settings: EngineSettings) -> Self:
        if not settings:
            return self
        new = self._with_parts(self._parts, self._shares, len(self))
        new._engine = self._engine.replace(settings)
        return new

    def _take(self, rows: Rows) -> Self:
        parts = [chain.take(rows) for chain in self._parts]
        shares = None if self._shares is None else self._shares[rows]
        new = self._with_parts(parts, shares, parts[0].n_samples)
        new._engine = replace(self._engine, keep_top=0)
        return new

    def _members(self) -> list[LabelsetDistribution]:
        return [self._with_parts([chain], None, len(self)) for chain in self._parts]

    # What needs no engine.

    def _log_prob(self, Y: Labelsets) -> Floats:
        return self._mix_logs(np.stack([chain.log_prob(Y) for chain in self._parts], axis=1))

    def _sample(self, size: int, generator: np.random.Generator) -> Labelsets:
        drawn = np.empty((len(self) * size, self.n_labels), dtype=np.int8)
        owners = self._draw_owners(size, generator).ravel()
        uniforms = generator.random(drawn.shape)
        rows = np.repeat(np.arange(len(self)), size)
        for m, chain in enumerate(self._parts):
            mine = owners == m
            drawn[mine] = chain.sample(rows[mine], uniforms[mine])
        return drawn.reshape(len(self), size, self.n_labels)

    def _temper(self, temperature: float) -> Self:
        parts = [chain.temper(temperature) for chain in self._parts]
        return self._with_parts(parts, self._shares, len(self))

    def _tempered_log_prob(self, Y: Labelsets) -> Callable[[float], Floats]:
        logits = np.stack([chain.link_logits(Y) for chain in self._parts], axis=1)
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
        return all(isinstance(chain, LinearChain) for chain in self._parts)

    @property
    def _dense(self) -> DenseBlocks:
        if self.n_labels > self.max_exact_labels:
            raise TooLargeError(
                f"All 2**{self.n_labels} labelsets are too many to enumerate: this distribution "
                f"is set to at most {self.max_exact_labels} labels. Use engine='auto', "
                "'certified' or 'sampled', or raise `max_exact_labels` if there is memory for "
                f"{JOINT_BYTES} * 2**{self.n_labels} bytes."
            )
        return self._joints

    @cached_property
    def _joints(self) -> DenseBlocks:
        # Base learners of any kind need not bear being asked by several threads.
        n_kept = self._engine.keep_top
        return DenseBlocks(self, self._write, concurrent=self._is_linear, n_kept=n_kept)

    def _write(self, rows: Indices, P: Floats) -> None:
        shares = None if self._shares is None else self._shares[rows]
        write_joints([chain.take(rows) for chain in self._parts], shares, P)

    # Other engines, which are loaded when they are needed.

    @property
    def _beyond_dense(self) -> ChainViews:
        from labelsure.distributions._chain_views import ChainViews
        from labelsure.distributions._weighted_chains import WeightedChains

        chains = WeightedChains(self._parts, self._shares)
        return ChainViews(chains, self._engine, self.label_names, self._random_state)

    def _ask(
        self, ask: Callable[[ChainViews], Question], answer: Callable[[Indices, View], Any]
    ) -> Any:
        """Return what the views of a question answer, put together."""
        views = self._beyond_dense
        question, nobody = ask(views), np.arange(0)
        parts = [(rows, answer(rows, view)) for rows, view in views.answering(question)]
        if not parts:
            nothing = views.search(nobody, question.goals(None), 0)
            parts = [(nobody, answer(nobody, nothing))]
        return join_answers(parts)

    def _profile_and_mode(self) -> tuple[Profile, Labelsets]:
        found = self._summary([], 1.0)
        return found.profile, found.mode

    def _summary(self, metrics: Sequence[Metric], empty: float) -> Summary:
        if self._is_dense:
            return self._dense._summary(metrics, empty)
        inexact = [metric for metric in metrics if metric != EXACT]
        return self._ask(
            lambda views: views.ask_summary(metrics, inexact, empty),
            lambda _, view: view.summary(metrics, empty),
        )

    def _marginals(self) -> Floats:
        return self._marginal_bounds().value

    def _marginal_bounds(self) -> Expected:
        if self._is_dense:
            return self._dense._marginal_bounds()
        return self._ask(
            lambda views: views.ask_marginals(), lambda _, view: view.marginal_bounds()
        )

    def _max_marginals(self, log_at_least: float = -np.inf) -> MaxMarginals:
        if self._is_dense:
            return self._dense._max_marginals()
        return self._ask(
            lambda views: views.ask_max_marginals(log_at_least),
            lambda _, view: view.max_marginals(),
        )

    def _mode(self) -> Labelsets:
        if self._is_dense:
            return self._dense._mode()
        return self._ask(lambda views: views.ask_mode(), lambda _, view: view.mode())

    def _top(self, k: int) -> TopLabelsets:
        if self._is_dense:
            return self._dense._top(k)
        best = self._ask(lambda views: views.ask_top(k), lambda _, view: view.top(k))
        # Where nothing was found, what stands for the mode can be evaluated all the same.
        unseen = np.flatnonzero(np.isneginf(best.logs[:, 0]))
        if not unseen.size:
            return best
        logs = best.logs.copy()
        logs[unseen, 0] = self._take(unseen)._log_prob(best.labelsets[unseen, 0])
        return TopLabelsets(best.labelsets, logs, np.maximum(best.log_high, logs))

    def _expected(self, metric: Metric, guesses: Guesses, empty: float) -> Expected:
        if metric == EXACT:  # which needs no engine
            return LabelsetDistribution._expected(self, metric, guesses, empty)
        if self._is_dense:
            return self._dense._expected(metric, guesses, empty)
        given = np.asarray(guesses)

        def answer(rows: Indices, view: View) -> Any:
            found = [view.expected(metric, Y, empty=empty) for Y in each_guess(given[rows])]
            columns = ([getattr(one, name) for one in found] for name in ("value", "low", "high"))
            return Expected(*(np.stack(column, axis=1) for column in columns))

        return self._ask(lambda views: views.ask_expected(metric, given, empty), answer)

    # What only the dense engine answers; decisions beyond it go by what was enumerated.

    def _support(self) -> Iterator[tuple[Indices, Support]] | None:
        if self._is_dense:
            return None
        from labelsure.distributions._chain_views import support_blocks

        return support_blocks(self._beyond_dense)

    def _size_marginals(self) -> Floats:
        return self._dense._size_marginals()

    def _probabilities(self) -> Floats:
        return self._dense._probabilities()

    def _best(self, metric: Metric, empty: float) -> tuple[Labelsets, Floats] | None:
        return self._dense._best(metric, empty) if self._is_dense else None
