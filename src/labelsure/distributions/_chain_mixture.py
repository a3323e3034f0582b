"""`ChainMixture`: a chain or the mean of several.

With few labels the whole joint distribution is computed (`DenseBlocks`). With more, a search
enumerates the likely labelsets (`Enumeration`). Where its bounds are too wide, the joint
distribution or draws (`Sampled`) follow, a block of instances at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self, Unpack

import numpy as np
from numpy.typing import ArrayLike

from labelsure._kernels.labelset_search import Goals
from labelsure._kernels.threads import Progress
from labelsure._runtime import limits as _limits
from labelsure._runtime.arguments import read_whole_number
from labelsure._runtime.limits import cut_rows
from labelsure._runtime.typing import Floats, Indices, Labelsets, Rows
from labelsure.distributions._answers import (
    Expected,
    Guesses,
    Known,
    Summary,
    Support,
    TopLabelsets,
    join_answers,
)
from labelsure.distributions._base import (
    DEFAULT_ENGINE,
    EngineSettings,
    LabelsetDistribution,
    log_prob_of_logits,
)
from labelsure.distributions._chains import Chain, LinearChain, WeightedChains, write_joints
from labelsure.distributions._dense import JOINT_BYTES, DenseBlocks
from labelsure.distributions._enumeration import (
    Enumeration,
    View,
    enumerate_chains,
)
from labelsure.distributions._labelset_table import LabelsetTable
from labelsure.distributions._mixture import Mixture
from labelsure.distributions._probabilities import read_shares
from labelsure.distributions._sampling import (
    DrawStreams,
    Need,
    Sampled,
    draw_for,
    need_collision,
    need_entropy,
    need_expected,
    need_marginals,
)
from labelsure.distributions.candidates import Profile
from labelsure.errors import InputError, TooLargeError
from labelsure.labelsets.weighted import WeightedLabelsets
from labelsure.metrics.registry import EXACT, JACCARD, Metric

LISTED_EACH = 4  # labelsets that a search may enumerate for each of the k most probable ones
ANY = 2.0  # above 1: as an upper limit no constraint, as a mass never reached


@dataclass(frozen=True)
class Question:
    """Accuracy that a computation needs, by which engines stop.

    Parameters
    ----------
    width
        Largest width of the candidates' certified intervals; `ANY` for no limit.
    unseen
        Largest mass that may stay unseen.
    n_certain
        How many of the most probable labelsets must be certain: 1 for the mode.
    n_best
        How many of them a beam search improves where they are not certain; 0 for none.
    needs
        Quantities to estimate by draws; none where draws are no better than a search.
    written_labels
        Number of labels up to which the joint distribution costs no more than draws.
    draws_first
        Whether to try one round of draws before the joint distribution.
    """

    width: float = ANY
    unseen: float = ANY
    n_certain: int = 0
    n_best: int = 0
    needs: tuple[Need, ...] = ()
    written_labels: int = 0
    draws_first: bool = False

    def goals(self, mass: float | None) -> Goals:
        """Return the stopping rule of the search."""
        enough = ANY if mass is None else mass
        return Goals.of(self.width, self.unseen, enough, self.n_certain)


class ChainMixture(Mixture):
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
        shares = read_shares(weights, n_samples, len(chains))
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
        """Largest number of labels for which all 2**L probabilities are computed."""
        if self._max_exact_labels is not None:
            return self._max_exact_labels
        return (_limits.DENSE_WORK_BYTES // JOINT_BYTES).bit_length() - 1

    def _with_parts(self, parts: list[Any], shares: Floats | None, n_samples: int) -> Self:
        new = super()._with_parts(parts, shares, n_samples)
        for cached in ("_dense", "_chains"):
            new.__dict__.pop(cached, None)
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

    # Log-probabilities and samples need no engine.

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

    # The dense engine.

    @property
    def _is_dense(self) -> bool:
        """Whether everything is computed from the joint distribution."""
        if self._engine.name == "auto":
            return self.n_labels <= min(_limits.CHEAP_DENSE_LABELS, self.max_exact_labels)
        return self._engine.name == "dense"

    def _is_written_out(self, most: int) -> bool:
        """Whether the joint replaces draws up to so many labels: only of linear base learners."""
        return self._is_linear and self.n_labels <= min(most, self.max_exact_labels)

    @property
    def _is_linear(self) -> bool:
        return all(isinstance(chain, LinearChain) for chain in self._parts)

    @cached_property
    def _dense(self) -> DenseBlocks:
        """The joint distribution, a few instances at a time."""
        if self.n_labels > self.max_exact_labels:
            raise TooLargeError(
                f"All 2**{self.n_labels} labelsets are too many to enumerate, the limit is "
                f"{self.max_exact_labels} labels. Use engine='auto', 'certified' or 'sampled', or "
                f"raise `max_exact_labels` if {JOINT_BYTES} * 2**{self.n_labels} bytes fit into "
                "memory."
            )
        # Base learners other than linear ones need not be thread-safe.
        n_kept = self._engine.keep_top
        return DenseBlocks(self, self._write, concurrent=self._is_linear, n_kept=n_kept)

    def _write(self, rows: Indices, P: Floats) -> None:
        shares = None if self._shares is None else self._shares[rows]
        write_joints([chain.take(rows) for chain in self._parts], shares, P)

    # The other engines.

    @cached_property
    def _chains(self) -> WeightedChains:
        return WeightedChains(self._parts, self._shares)

    def _ask(self, question: Question, answer: Callable[[Indices, Any], Any]) -> Any:
        """Apply a function to the dense joint, or to every view, and join the results."""
        if self._is_dense:
            return answer(np.arange(len(self)), self._dense)
        progress, nobody = Progress(len(self)), np.arange(0)
        parts = []
        for rows, view in self._views(question):
            parts.append((rows, answer(rows, view)))
            progress.add(len(rows))
        if not parts:
            parts = [(nobody, answer(nobody, self._search(nobody, question.goals(None), 0)))]
        return join_answers(parts)

    def _views(self, question: Question) -> Iterator[tuple[Indices, View | DenseBlocks]]:
        """Yield blocks of instances with their enumeration, draws or joint distribution."""
        if self._engine.name == "sampled":
            n_draws = self._engine.budget
            for rows in self._row_blocks(0, n_draws):
                nothing = self._search(rows, question.goals(self._engine.mass), 0)
                if question.n_best:
                    nothing = nothing.with_beam(self._chains.take(rows), question.n_best)
                yield from self._draw(rows, nothing, question, n_draws)
            return
        n_searched, n_drawn = self._share_budget(LISTED_EACH * question.n_certain)
        is_written = self._is_written_out(question.written_labels)
        blocks = self._row_blocks(n_searched, n_drawn)
        for rows, found, is_enough in self._search_blocks(question, blocks, n_searched, n_drawn):
            if is_written and not is_enough and question.draws_first:
                yield from self._draw_or_write(rows, found, question.needs[0], n_drawn)
                continue
            if is_written and not is_enough:
                yield rows, self._dense._take(rows)
                continue
            for mine, known in self._add_floor(rows, found, question.n_best):
                if is_enough:
                    yield mine, known
                else:
                    yield from self._draw(mine, known, question, n_drawn)

    def _add_floor(
        self, rows: Indices, found: Enumeration, n_best: int
    ) -> Iterator[tuple[Indices, Enumeration]]:
        """Add a beam search where fewer of the most probable labelsets than that are certain."""
        is_certain = found.n_certain >= n_best
        for mine in (np.flatnonzero(is_certain), np.flatnonzero(~is_certain)):
            if mine.size:
                known = found if len(mine) == len(rows) else found[mine]
                if not is_certain[mine[0]]:
                    known = known.with_beam(self._chains.take(rows[mine]), n_best)
                yield rows[mine], known

    def _search_blocks(
        self, question: Question, blocks: Iterator[Indices], n_searched: int, n_drawn: int
    ) -> Iterator[tuple[Indices, Enumeration, bool]]:
        """Enumerate; split each block by whether the bounds suffice, or nothing may be drawn."""
        goals, small = question.goals(self._engine.mass), self._small_unseen(question)
        # Certified intervals as narrow as the sampling tolerance need no draws.
        width = self._engine.sampled_tolerance
        narrow = Goals.of(max(question.width, width), max(question.unseen, width), ANY)
        for rows in blocks:
            found = self._search(rows, goals, n_searched, small)
            good = found.meets(goals) | (found.meets(narrow) & bool(question.needs)) | (not n_drawn)
            for is_enough in (True, False):
                mine = np.flatnonzero(good == is_enough)
                if mine.size:
                    yield rows[mine], found[mine], is_enough

    def _draw_or_write(
        self, rows: Indices, found: Enumeration, need: Need, n_draws: int
    ) -> Iterator[tuple[Indices, View | DenseBlocks]]:
        """Draw one round; compute the joint distribution where its intervals are too wide."""
        n_draws = min(n_draws, _limits.FIRST_DRAWS)
        drawn = need.draw(self._sampled(rows, found), n_draws)
        is_enough = need.growth(drawn) <= 1
        if is_enough.any():
            yield rows[is_enough], drawn[np.flatnonzero(is_enough)]
        if not is_enough.all():
            yield rows[~is_enough], self._dense._take(rows[~is_enough])

    def _small_unseen(self, question: Question) -> float:
        """Return the bound on a single unseen labelset at which an unproductive search may end.

        Draws do not bound the largest probabilities. Where these matter, the search goes on until
        the top gap's interval is at most as wide as the tolerance.
        """
        if self._engine.name == "certified":
            return 0.0
        if not question.n_certain or self._is_written_out(question.written_labels):
            return ANY
        return self._engine.sampled_tolerance / 2

    def _share_budget(self, n_least: int = 0) -> tuple[int, int]:
        """Return how many labelsets may be enumerated, and how many may be drawn."""
        if self._engine.name == "certified":
            return self._engine.budget, 0
        n_searched = min(max(_limits.FIRST_SEARCH, n_least), self._engine.budget)
        return n_searched, self._engine.budget - n_searched

    def _draw(
        self, rows: Indices, found: Enumeration, question: Question, n_draws: int
    ) -> Iterator[tuple[Indices, View]]:
        """Yield groups of instances with as many draws as the question needs."""
        if not question.needs:
            yield rows, found
            return
        is_auto = self._engine.name == "auto"
        sixths = [need.share_of_auto if is_auto else need.share for need in question.needs]
        limits = [share * n_draws // 6 for share in sixths]
        yield from draw_for(rows, self._sampled(rows, found), question.needs, limits)

    def _sampled(self, rows: Indices, found: Enumeration) -> Sampled:
        """Return the enumeration of some instances with their random numbers, no draws yet."""
        chains = self._chains.take(rows)
        streams = DrawStreams(self._random_state, rows, chains.row_keys())
        return Sampled.nothing(found, chains, streams)

    def _search(self, rows: Indices, goals: Goals, budget: int, small: float = 0.0) -> Enumeration:
        """Enumerate the likely labelsets of some instances."""
        return enumerate_chains(self._chains.take(rows), goals, budget, small)

    def _row_blocks(self, n_searched: int, n_drawn: int) -> Iterator[Indices]:
        """Yield blocks whose enumerated and drawn labelsets, with random numbers, fit in memory."""
        drawn = (9 * self.n_labels + 64) * n_drawn
        enumerated = (self.n_labels + 32) * max(n_searched, 1)
        return self._cut_rows(enumerated + drawn, _limits.SEEN_LABELSETS_BYTES)

    def _cut_rows(self, bytes_each: int, most: int) -> Iterator[Indices]:
        return (np.arange(len(self))[some] for some in cut_rows(len(self), bytes_each, most))

    def _profile_and_mode(self) -> tuple[Profile, Labelsets]:
        found = self._summary([], 1.0)
        return found.profile, found.mode

    def _summary(self, metrics: Sequence[Metric], empty: float) -> Summary:
        sampled, width = self._engine.sampled_tolerance, self._engine.tolerance
        needs = [need_entropy(sampled), need_collision(sampled)]
        inexact = [metric for metric in metrics if metric != EXACT]
        if inexact:
            needs.append(need_expected(sampled, inexact, empty))
        unseen = width if metrics else ANY
        question = Question(width, unseen, 1, 2, tuple(needs), _limits.WRITTEN_FOR_MANY_DRAWS)
        return self._ask(question, lambda _, view: view._summary(metrics, empty))

    def _marginals(self) -> Floats:
        return self._marginal_bounds().value

    def _marginal_bounds(self) -> Expected:
        question = Question(
            unseen=self._engine.tolerance,
            needs=(need_marginals(self._engine.sampled_tolerance),),
            written_labels=_limits.WRITTEN_LABELS,
            draws_first=True,
        )
        return self._ask(question, lambda _, view: view.marginal_bounds())

    def _mode(self) -> Labelsets:
        question = Question(n_certain=1, n_best=1, written_labels=_limits.WRITTEN_LABELS)
        return self._ask(question, lambda _, view: view.mode())

    def _top(self, k: int) -> TopLabelsets:
        question = Question(n_certain=k, n_best=k, written_labels=_limits.WRITTEN_LABELS)
        best = self._ask(question, lambda _, view: view.top(k))
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

    def _expected(self, metric: Metric, guesses: Guesses, empty: float) -> Expected:
        return self._expected_each([metric], guesses, empty)[0]

    def _expected_each(
        self, metrics: Sequence[Metric], guesses: Guesses, empty: float
    ) -> list[Expected]:
        # Exact match needs no engine.
        searched, found = [metric for metric in metrics if metric != EXACT], {}
        if searched:
            given = np.asarray(guesses)
            question = Question(
                unseen=self._engine.tolerance,
                needs=(need_expected(self._engine.sampled_tolerance, searched, empty, given),),
                written_labels=_limits.WRITTEN_LABELS,
            )
            answers = self._ask(
                question,
                lambda rows, view: tuple(view._expected_each(searched, given[rows], empty)),
            )
            found = dict(zip(searched, answers, strict=True))
        if EXACT in metrics:
            found[EXACT] = LabelsetDistribution._expected(self, EXACT, guesses, empty)
        return [found[metric] for metric in metrics]

    # Decisions: from the joint distribution, or else from enumerated and drawn labelsets.

    def _support(self, metric: Metric) -> Iterator[tuple[Indices, Known]] | None:
        return None if self._is_dense else self._support_blocks(metric)

    def _support_blocks(self, metric: Metric) -> Iterator[tuple[Indices, Known]]:
        """Yield blocks of instances with the labelsets from which decisions are made.

        "certified" enumerates only. Where a short search leaves more mass unseen than the
        tolerance, "sampled" draws, and "auto" draws or computes the joint distribution.
        """
        engine = self._engine
        most = _limits.WRITTEN_LABELS if metric == JACCARD else _limits.WRITTEN_FOR_MANY_DRAWS
        question = Question(
            unseen=engine.tolerance, n_certain=int(metric == EXACT), written_labels=most
        )
        is_written = engine.name == "auto" and self._is_written_out(most)
        n_searched, n_drawn = self._share_budget()
        if engine.name == "sampled":  # draws, however small the budget is
            n_searched = min(n_searched, engine.budget // 2)
            n_drawn = engine.budget - n_searched
        n_drawn = min(n_drawn, _limits.DECISION_DRAWS)
        bytes_each = max(1, n_searched + n_drawn) * (8 * self.n_labels + 32)
        blocks = self._cut_rows(bytes_each, _limits.DECISION_BYTES)
        progress = Progress(len(self))
        for rows, found, is_enough in self._search_blocks(question, blocks, n_searched, n_drawn):
            if is_written and not is_enough:
                yield rows, self._dense._take(rows)
                continue
            for mine, known in self._add_floor(rows, found, 1):
                if is_enough:
                    yield mine, known.join_beam().support(self.label_names)
                else:
                    yield mine, self._draw_rest(mine, known.join_beam(), n_drawn)
            progress.add(len(rows))

    def _draw_rest(self, rows: Indices, found: Enumeration, n_drawn: int) -> Support:
        """Represent the unseen mass by draws of equal weight.

        Both the unseen mass and the draws in its place may be misplaced, so the gap counts that
        mass twice. The weight of a draw does not estimate the probability of its labelset: the mode
        is one of the enumerated labelsets.
        """
        known, size = found.seen, max(2, -(-n_drawn // self.n_chains))
        sampled = self._sampled(rows, found).draw_more(size)
        draws = sampled.paths.draws.reshape(len(rows), -1, self.n_labels)
        instance, place = np.nonzero(~known.contains(draws))
        n_new = np.bincount(instance, minlength=len(known))
        rest = np.maximum(1.0 - known.totals(), 0.0)
        shares = (rest / np.maximum(n_new, 1))[instance]
        drawn = WeightedLabelsets.merge(draws[instance, place], shares, instance, len(known))
        return Support(
            LabelsetTable.from_weighted(known.join(drawn).normalise(), self.label_names, known),
            np.ones(len(rows)),
            np.minimum(2 * found.unseen_mass, 1.0),
            found.largest_unseen,
            sampled.marginal_bounds,
        )

    def _size_marginals(self) -> Floats:
        return self._dense._size_marginals()

    def _probabilities(self) -> Floats:
        return self._dense._probabilities()

    def _best(self, metric: Metric, empty: float) -> tuple[Labelsets, Floats] | None:
        return self._dense._best(metric, empty) if self._is_dense else None
