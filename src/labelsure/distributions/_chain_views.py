"""Who answers for which instances of a mixture: the likely labelsets, or draws beside them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from labelsure._kernels.threads import Progress
from labelsure._runtime import limits as _limits
from labelsure._runtime.limits import cut_rows
from labelsure._runtime.typing import Floats, Indices, LabelNames, Labelsets
from labelsure.distributions._answers import View
from labelsure.distributions._draw_rounds import (
    CollisionPhase,
    EntropyPhase,
    ExpectedPhase,
    MarginalPhase,
    Phase,
    draw_in_phases,
)
from labelsure.distributions._draw_streams import DrawStreams
from labelsure.distributions._engines import Engine
from labelsure.distributions._enumeration import Enumeration, add_greedy, enumerate_chains
from labelsure.distributions._sampling import Sampled
from labelsure.distributions._weighted_chains import WeightedChains
from labelsure.metrics.registry import Metric

Views = Iterator[tuple[Indices, View]]

ANY = 2.0  # a limit that everything in [0, 1] meets, or none reaches


@dataclass(frozen=True)
class Question:
    """What is asked, as far as engines have to know it.

    Parameters
    ----------
    width
        Of the candidates' guaranteed intervals; `ANY` where nobody asks for them.
    unseen
        Mass that may stay unseen.
    certain
        Whether the mode must be certain.
    k
        How many of the most probable labelsets have to be certain, where they can.
    largest_unseen
        A probability that no labelset unseen may have, which is enough instead of all the others.
    phases
        What draws are made for; none where they would not answer better than a search.
    """

    width: float = ANY
    unseen: float = ANY
    certain: bool = False
    k: int = 1
    largest_unseen: float = 0.0
    phases: tuple[Phase, ...] = ()

    def goals(self, mass: float | None) -> Floats:
        """Return when the search may stop, as `enumerate_row` takes it."""
        enough = ANY if mass is None else mass
        certain = float(self.certain)
        return np.array([self.width, self.unseen, certain, enough, self.largest_unseen])

    def goals_instead_of_draws(self, width: float) -> Floats:
        """Return which guaranteed intervals are narrow enough to do without draws."""
        return np.array([max(self.width, width), max(self.unseen, width), 0.0, ANY, 0.0])


@dataclass(frozen=True)
class ChainViews:
    """The chains of a batch, and how they are computed where not all labelsets are made.

    Parameters
    ----------
    chains
        Over the same instances and labels, with their weights.
    engine
        Which computes.
    label_names
        One for each label.
    random_state
        Seed of the draws.
    """

    chains: WeightedChains
    engine: Engine
    label_names: LabelNames
    random_state: int

    def __len__(self) -> int:
        return self.chains[0].n_samples

    @property
    def n_labels(self) -> int:
        """The number of labels, L."""
        return self.chains[0].order.size

    def ask_summary(
        self, metrics: Sequence[Metric], inexact: Sequence[Metric], empty: float
    ) -> Question:
        """Ask for the profile, the mode, and the mode's accuracies, of which some are inexact."""
        width, sampled = self.engine.tolerance, self.engine.sampled_tolerance
        phases: list[Phase] = [EntropyPhase(sampled), CollisionPhase(sampled)]
        if inexact:
            phases.append(ExpectedPhase(sampled, inexact, empty))
        unseen = width if metrics else ANY
        return Question(width, unseen, certain=True, phases=tuple(phases))

    def ask_mode(self) -> Question:
        """Ask for the mode."""
        return Question(certain=True)

    def ask_top(self, k: int) -> Question:
        """Ask for the k most probable labelsets."""
        return Question(self.engine.tolerance, certain=True, k=k)

    def ask_max_marginals(self, log_at_least: float) -> Question:
        """Ask for the most probable labelset with each value of each label."""
        # Never narrow enough: a search stops where no labelset unseen has as much as this.
        return Question(width=-ANY, largest_unseen=float(np.exp(log_at_least)))

    def ask_marginals(self) -> Question:
        """Ask for the marginals."""
        phases = (MarginalPhase(self.engine.sampled_tolerance),)
        return Question(unseen=self.engine.tolerance, phases=phases)

    def ask_expected(self, metric: Metric, guesses: Labelsets, empty: float) -> Question:
        """Ask for the expected accuracies of (n, g, L) guesses."""
        phases = (ExpectedPhase(self.engine.sampled_tolerance, [metric], empty, guesses),)
        return Question(unseen=self.engine.tolerance, phases=phases)

    def answering(self, question: Question) -> Views:
        """Yield all instances, some at a time, with what answers until the next are due."""
        progress = Progress(len(self))
        for rows, view in self._choose_views(question):
            yield rows, view
            progress.add(len(rows))

    def _choose_views(self, question: Question) -> Views:
        budget, goals = self.engine.budget, question.goals(self.engine.mass)
        if self.engine.name == "certified":
            for rows in self._blocks(budget, 0):
                yield rows, self.search(rows, goals, budget)
        elif self.engine.name == "sampled":
            for rows in self._blocks(0, budget):
                yield from self._draw(rows, self.search(rows, goals, 0), question, budget)
        else:
            yield from self._search_or_draw(question)

    def _search_or_draw(self, question: Question) -> Views:
        """Search for a while; draw where that does not do."""
        n_searched, n_left = self.share_budget()
        small = self.small_unseen
        if question.k > 1:  # draws do not find what a search does not
            n_searched, n_left, small = self.engine.budget, 0, 0.0
        goals = question.goals(self.engine.mass)
        enough = question.goals_instead_of_draws(self.engine.sampled_tolerance)
        for rows in self._blocks(n_searched, n_left):
            found = self.search(rows, goals, n_searched, small)
            good = found.meets(goals) | (found.meets(enough) & bool(question.phases))
            if n_left and not good.all():
                rest = np.flatnonzero(~good)
                greedy = add_greedy(self.chains.take(rows[rest]), found[rest])
                yield from self._draw(rows[rest], greedy, question, n_left)
            else:
                good[:] = True
            if good.any():
                yield rows[good], found[np.flatnonzero(good)]

    @property
    def small_unseen(self) -> float:
        """A probability small enough: the interval of the top gap is at most twice as wide.

        Draws say nothing of the largest probabilities, so a search before them goes on until no
        labelset unseen has more.
        """
        return self.engine.sampled_tolerance / 2

    def share_budget(self) -> tuple[int, int]:
        """Return how many labelsets "auto" searches for, and how many it may draw."""
        n_searched = min(_limits.FIRST_SEARCH, self.engine.budget)
        return n_searched, self.engine.budget - n_searched

    def _draw(self, rows: Indices, found: Enumeration, question: Question, n_draws: int) -> Views:
        """Yield the instances with draws beside what was found, as many as the question needs."""
        if not question.phases:
            yield rows, found
            return
        start = self.sampled(rows, found)
        limits = [phase.limit(n_draws, self.engine.name == "auto") for phase in question.phases]
        yield from draw_in_phases(rows, start, question.phases, limits)

    def sampled(self, rows: Indices, found: Enumeration) -> Sampled:
        """Return what was found of some instances, to be drawn beside."""
        chains = self.chains.take(rows)
        return Sampled(found, chains, DrawStreams(self.random_state, rows, chains.row_keys()))

    def search(self, rows: Indices, goals: Floats, budget: int, small: float = 0.0) -> Enumeration:
        """Enumerate the likely labelsets of some instances."""
        return enumerate_chains(self.chains.take(rows), goals, budget, small)

    def _blocks(self, n_searched: int, n_drawn: int) -> Iterator[Indices]:
        """Cut so that labelsets seen and drawn, with their random numbers, fit into memory."""
        drawn = (9 * self.n_labels + 64) * n_drawn
        enumerated = (self.n_labels + 32) * max(n_searched, 1)
        for some in cut_rows(len(self), enumerated + drawn, _limits.SEEN_LABELSETS_BYTES):
            yield np.arange(len(self))[some]
