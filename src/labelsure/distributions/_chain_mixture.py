"""`ChainMixture`: a chain or the mean of several.

With few labels the whole joint distribution is computed (`DenseBlock`). With more, a search
enumerates the likely labelsets (`Enumeration`). Where its bounds are too wide, the joint
distribution or draws (`Sampled`) follow, a block of instances at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Self, Unpack

import numpy as np
from numpy.typing import ArrayLike

from labelsure._kernels.labelset_search import Goals
from labelsure._kernels.threads import Progress
from labelsure._runtime import limits as _limits
from labelsure._runtime.arguments import read_whole_number
from labelsure._runtime.limits import cut_rows
from labelsure._runtime.typing import Floats, Indices, Labelsets, Mask, Names, Rows
from labelsure.distributions._answers import (
    Approximation,
    Best,
    Expected,
    Question,
    TopLabelsets,
    join_answers,
)
from labelsure.distributions._base import LabelsetDistribution
from labelsure.distributions._chains import (
    Chain,
    LinearChain,
    WeightedChains,
    draw_owners,
    write_joints,
)
from labelsure.distributions._dense_block import JOINT_BYTES, DenseBlock
from labelsure.distributions._engine_settings import DEFAULT_ENGINE, EngineSettings
from labelsure.distributions._enumeration import Enumeration, enumerate_chains
from labelsure.distributions._probabilities import read_shares
from labelsure.distributions._sampling import (
    DrawKind,
    DrawStreams,
    Need,
    Sampled,
    draw_for,
    need_collision,
    need_entropy,
    need_expected,
    need_marginals,
)
from labelsure.errors import InputError, TooLargeError
from labelsure.metrics.registry import EXACT, HAMMING, JACCARD, Metric

LISTED_EACH = 4  # labelsets that a search may enumerate for each of the k most probable ones
ANY = 2.0  # above 1: as an upper limit no constraint, as a mass never reached


@dataclass(frozen=True)
class Plan:
    """Effort of the engines "auto", "certified" and "sampled" for a question.

    Parameters
    ----------
    goals
        Stopping rule of the search.
    n_searched, n_drawn
        Labelsets of an instance that are enumerated and drawn at most.
    small
        Bound on a single unseen labelset at which an unproductive search may end.
    n_best
        Most probable labelsets that a beam search improves where they are not certain.
    needs
        Quantities to estimate by draws, none where draws are no better than a search; and how many
        draws each of them may take.
    bytes_each
        Memory of the labelsets of an instance.
    is_written
        Whether the joint distribution, which costs no more than draws, replaces them.
    """

    goals: Goals
    n_searched: int
    n_drawn: int
    small: float
    n_best: int
    needs: list[tuple[Need, int]]
    bytes_each: int
    is_written: bool


class ChainMixture(LabelsetDistribution):
    """The weighted mean of the joint distributions of one or more chains.

    Three engines compute its properties. *dense* computes the joint distribution, all 2**L
    probabilities, of a few instances at a time. *certified* enumerates the likely labelsets by
    branch and bound and bounds all others. *sampled* gives unbiased estimates with 95% intervals.
    The default, *auto*, is dense up to 14 labels. With more labels a short search comes first.
    Where it misses the tolerance, *auto* is dense up to 16 labels (18 for candidates and most
    decisions) unless it has a `PrefixChain`, and sampled otherwise; `profile().method` says which.
    Log-probabilities and samples need no engine. Unless dense, the mode is the best labelset that
    the search or else a beam search found, and `profile().high.top` bounds the probability of any
    other.

    Parameters
    ----------
    chains
        `LinearChain` or `PrefixChain` objects over the same instances and labels.
    label_names
        One for each label.
    weights
        (n_chains,) weight of each chain, or (n, n_chains) by instance; None for equal weights.
    max_exact_labels
        Largest number of labels for dense computation; None derives it from a memory budget of
        2 GiB.
    random_state
        Seed of the sampled engine.
    **settings
        engine, tolerance, sampled_tolerance, mass, budget, keep_top: how it computes and when it
        stops, see `labelsure.distributions.Engine`; `with_engine` changes them.

    Examples
    --------
    >>> chain = LinearChain([1, 0], base=[[0.0, -2.0]], weights=[[0, 0], [4.0, 0]])
    >>> dist = ChainMixture([chain])
    >>> dist.marginals()
    array([[0.5, 0.5]])
    >>> dist.profile().top.round(3)
    array([0.44])
    """

    _has_conditionals = True
    _has_engines = True

    def __init__(
        self,
        chains: Sequence[Chain],
        label_names: Names = None,
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
        shares = read_shares(weights, n_samples, len(chains))
        super().__init__(n_samples, n_labels, label_names)
        self._parts, self._shares = chains, shares
        self._max_exact_labels = max_exact_labels
        self._engine = DEFAULT_ENGINE.replace(settings) if settings else DEFAULT_ENGINE
        self._random_state = random_state
        self._chains = WeightedChains(chains, shares)
        self._kept: tuple[TopLabelsets, Expected] | None = None
        self._check_engine()

    @property
    def n_chains(self) -> int:
        """The number of chains."""
        return len(self._parts)

    @property
    def max_exact_labels(self) -> int:
        """Largest number of labels for which all 2**L probabilities are computed."""
        if self._max_exact_labels is not None:
            return self._max_exact_labels
        return (_limits.DENSE_WORK_BYTES // JOINT_BYTES).bit_length() - 1

    def _with_parts(self, parts: list[Chain], shares: Floats | None, n_samples: int) -> Self:
        """A mixture of other chains, which need not be checked again."""
        new = copy(self)
        new._parts, new._shares, new._n_samples = parts, shares, n_samples
        new._chains, new._kept = WeightedChains(parts, shares), None
        return new

    def with_engine(self, **settings: Unpack[EngineSettings]) -> Self:
        """The same distributions with other settings of inference.

        Parameters
        ----------
        **settings
            As for the class: engine, tolerance, sampled_tolerance, mass, budget, keep_top.
        """
        if not settings:
            return self
        new = self._with_parts(self._parts, self._shares, len(self))
        new._engine = self._engine.replace(settings)
        new._check_engine()
        return new

    def _check_engine(self) -> None:
        if self._engine.name == "certified" and not self._can_enumerate:
            raise InputError(
                "`engine` must be 'auto', 'dense' or 'sampled' for chains with a base learner that "
                "is not linear, got 'certified': enumeration needs `LinearChain` objects."
            )

    def _take(self, rows: Rows) -> Self:
        parts = [chain.take(rows) for chain in self._parts]
        shares = None if self._shares is None else self._shares[rows]
        new = self._with_parts(parts, shares, parts[0].n_samples)
        new._engine = replace(self._engine, keep_top=0)
        return new

    @property
    def _members(self) -> list[LabelsetDistribution]:  # type: ignore[override]
        return [self._with_parts([chain], None, len(self)) for chain in self._parts]

    # Log-probabilities and samples need no engine.

    def _log_prob(self, Y: Labelsets) -> Floats:
        return self._tempered_log_prob(Y)(1.0)

    def _tempered_log_prob(self, Y: Labelsets) -> Callable[[float], Floats]:
        return self._chains.tempered_log_prob(Y)

    def _sample(self, size: int, generator: np.random.Generator) -> Labelsets:
        drawn = np.empty((len(self) * size, self.n_labels), dtype=np.int8)
        owners = draw_owners(self._shares, len(self._parts), (len(self), size), generator).ravel()
        uniforms = generator.random(drawn.shape)
        rows = np.repeat(np.arange(len(self)), size)
        for m, chain in enumerate(self._parts):
            mine = owners == m
            drawn[mine] = chain.sample(rows[mine], uniforms[mine])
        return drawn.reshape(len(self), size, self.n_labels)

    def _temper(self, temperature: float) -> Self:
        parts = [chain.temper(temperature) for chain in self._parts]
        return self._with_parts(parts, self._shares, len(self))

    # All probabilities.

    @property
    def _is_dense(self) -> bool:  # type: ignore[override]
        if self._engine.name == "auto":
            most = min(_limits.CHEAP_DENSE_LABELS, self.max_exact_labels)
            return self._n_labels <= most
        return self._engine.name == "dense"

    @property
    def _can_enumerate(self) -> bool:  # type: ignore[override]
        return all(isinstance(chain, LinearChain) for chain in self._parts)

    def _dense_blocks(self) -> Iterator[tuple[Indices, DenseBlock]]:
        n_labels, most = self._n_labels, self.max_exact_labels
        if n_labels > most:
            raise TooLargeError(
                f"All 2**{n_labels} labelsets are too many to enumerate, the limit is "
                f"{most} labels. Use engine='auto', 'certified' or 'sampled', or "
                f"raise `max_exact_labels` if {JOINT_BYTES} * 2**{n_labels} bytes fit into "
                "memory."
            )
        keeps, kept = self._engine.keep_top > 0 and self._kept is None, []
        k, progress = min(self._engine.keep_top, 2**n_labels), Progress(self._n_samples)
        for rows, block in super()._dense_blocks():
            if keeps:
                kept.append((rows, (block.top(k), block.marginals())))
            yield rows, block
            progress.add(len(rows))
        if keeps:
            self._kept = join_answers(kept)

    def _write(self, rows: Indices, P: Floats) -> None:
        shares = None if self._shares is None else self._shares[rows]
        write_joints([chain.take(rows) for chain in self._parts], shares, P)

    def _probabilities(self) -> Floats:
        P = np.empty((len(self), 2**self.n_labels))
        self._write(np.arange(len(self)), P)
        return P

    def _marginals(self) -> Expected:
        if self._kept is not None:
            return Expected.exactly(self._kept[1].value.copy())
        return super()._marginals()

    def _top(self, k: int) -> TopLabelsets:
        if self._kept is not None and k <= self._kept[0].logs.shape[1]:
            best = self._kept[0]
            return TopLabelsets(best.labelsets[:, :k].copy(), best.logs[:, :k].copy())
        best = super()._top(k)
        if self._is_dense:
            return best
        # Labelsets that fill up the top k were not found, but can be evaluated.
        rows, places = np.nonzero(np.isneginf(best.logs))
        if not rows.size:
            return best
        best.logs[rows, places] = self._chains.log_prob_of_pairs(best.labelsets[rows, places], rows)
        order = np.argsort(-best.logs, axis=1, kind="stable")
        labelsets = np.take_along_axis(best.labelsets, order[:, :, np.newaxis], axis=1)
        logs = np.take_along_axis(best.logs, order, axis=1)
        return TopLabelsets(labelsets, logs, np.maximum(best.log_high, logs))

    # The one place where engines are chosen.

    def _views(self, question: Question) -> Iterator[tuple[Indices, Approximation]]:
        if self._is_dense:
            yield from self._dense_blocks()
            return
        for rows, found in self._approximate(question):
            if isinstance(found, Approximation):
                yield rows, found
            else:
                for mine, block in found._dense_blocks():
                    yield rows[mine], block

    def _best(self, metric: Metric, empty: float) -> Iterator[tuple[Indices, Best]]:
        """Optimum by the joint distribution, or enumerated and drawn labelsets."""
        if self._is_dense:
            yield from super()._best(metric, empty)
            return
        for rows, found in self._approximate(Question("decision", [metric], empty)):
            if isinstance(found, Approximation):
                yield rows, found.best(metric, empty)
            else:
                for mine, best in found._best(metric, empty):
                    yield rows[mine], best

    def _approximate(self, question: Question) -> Iterator[tuple[Indices, Approximation | Self]]:
        """Enumeration; where its bounds are too wide, draws or the joint distribution."""
        plan, progress = self._plan(question), Progress(len(self))
        if not len(self):
            yield np.arange(0), enumerate_chains(self._chains, plan.goals, 0)
        for block in cut_rows(len(self), plan.bytes_each, _limits.SEEN_LABELSETS_BYTES):
            rows = np.arange(len(self))[block]
            chains = self._chains.take(rows)
            found = enumerate_chains(chains, plan.goals, plan.n_searched, plan.small)
            is_enough = self._is_enough(plan, found)
            for mine in _groups(is_enough):
                if is_enough[mine[0]] or not plan.is_written:
                    lacks = not is_enough[mine[0]]
                    yield from self._finish(question, plan, rows[mine], found[mine], lacks)
                else:
                    yield rows[mine], self.with_engine(engine="dense")._take(rows[mine])
                progress.add(len(mine))

    def _is_enough(self, plan: Plan, found: Enumeration) -> Mask:
        """Whether the enumeration is narrow enough, or nothing may be drawn."""
        if plan.needs and self._engine.name == "sampled":
            return np.zeros(len(found.bounds), dtype=bool)
        good = found.meets(plan.goals)
        if plan.needs:  # certified intervals as narrow as the sampling tolerance need no draws
            width = self._engine.sampled_tolerance
            goals = Goals.of(max(plan.goals.width, width), max(plan.goals.unseen, width), ANY)
            good |= found.meets(goals)
        return good | (not plan.n_drawn)

    def _finish(
        self, question: Question, plan: Plan, rows: Indices, found: Enumeration, lacks: bool
    ) -> Iterator[tuple[Indices, Approximation]]:
        """Improve the most probable labelsets by a beam search; draw where it still lacks."""
        is_certain, is_decision = found.n_certain >= plan.n_best, question.about == "decision"
        for mine in _groups(is_certain):
            own, known = rows[mine], found[mine]
            if not is_certain[mine[0]]:
                known = known.with_beam(self._chains.take(own), plan.n_best)
            if is_decision:
                known = known.join_beam()
            if lacks and is_decision:
                kind: DrawKind = "marginals" if HAMMING in question.metrics else "plain"
                size = max(2, -(-plan.n_drawn // self.n_chains))
                yield own, self._sampled(own, known).draw_more(size, kind)
            elif lacks and plan.needs:
                yield from draw_for(own, self._sampled(own, known), plan.needs)
            else:
                yield own, known

    def _sampled(self, rows: Indices, found: Enumeration) -> Sampled:
        """Random numbers of some instances beside their enumeration, no draws yet."""
        chains = self._chains.take(rows)
        streams = DrawStreams(self._random_state, rows, chains.row_keys())
        return Sampled.nothing(found, chains, streams)

    def _plan(self, question: Question) -> Plan:
        engine, about, k = self._engine, question.about, question.k
        width = unseen = ANY
        n_certain = n_best = 0
        most, needs, sampled = _limits.WRITTEN_LABELS, [], engine.sampled_tolerance
        inexact = [metric for metric in question.metrics if metric != EXACT]
        if about == "summary":
            width, unseen = engine.tolerance, engine.tolerance if question.metrics else ANY
            n_certain, n_best, most = 1, 2, _limits.WRITTEN_FOR_MANY_DRAWS
            needs = [need_entropy(sampled), need_collision(sampled)]
        elif about == "top":
            n_certain = n_best = k
        else:
            unseen = engine.tolerance
        if about == "marginals":
            needs = [need_marginals(sampled)]
        if about in ("summary", "expected") and inexact:
            given = None if question.guesses is None else np.asarray(question.guesses)
            needs.append(need_expected(sampled, inexact, question.empty, given))
        is_decision = about == "decision"
        if is_decision:
            # Hamming goes by marginals, which the most probable labelsets do not improve.
            n_certain, n_best = int(EXACT in question.metrics), int(HAMMING not in question.metrics)
            if JACCARD not in question.metrics:
                most = _limits.WRITTEN_FOR_MANY_DRAWS
        is_linear = self._can_enumerate and self.n_labels <= min(most, self.max_exact_labels)
        is_written = engine.name == "auto" and is_linear
        # How the budget is shared.
        n_searched = min(max(_limits.FIRST_SEARCH, LISTED_EACH * n_certain), engine.budget)
        if engine.name == "certified":
            n_searched = engine.budget
        elif engine.name == "sampled":  # draws, however small the budget is
            n_searched = min(n_searched, engine.budget // 2) if is_decision else 0
        n_drawn = engine.budget - n_searched
        if is_decision:
            n_drawn = min(n_drawn, _limits.DECISION_DRAWS)
        shares = [need.share_of_auto if engine.name == "auto" else need.share for need in needs]
        # Draws do not bound the largest probabilities. Where these matter, the search goes on until
        # the top gap's interval is at most as wide as the tolerance.
        small = sampled / 2 if n_certain and not is_linear else ANY
        return Plan(
            Goals.of(width, unseen, ANY if engine.mass is None else engine.mass, n_certain),
            n_searched,
            n_drawn,
            small=0.0 if engine.name == "certified" else small,
            n_best=n_best,
            needs=[(need, s * n_drawn // 6) for need, s in zip(needs, shares, strict=True)],
            bytes_each=(n_searched + n_drawn + 1) * (9 * self.n_labels + 64),
            is_written=is_written,
        )


def _groups(mask: Mask) -> list[Indices]:
    """Places where a mask is true, and where it is not, without empty ones."""
    return [np.flatnonzero(some) for some in (mask, ~mask) if some.any()]
