"""Who answers for which instances of a mixture: all labelsets, the likely ones, or draws."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from labelsure import _limits
from labelsure._kernels.threads import n_threads
from labelsure._limits import cut_rows
from labelsure._typing import Floats, Indices
from labelsure.distributions import _engine_costs as costs
from labelsure.distributions._answers import View
from labelsure.distributions._dense import DenseDistribution
from labelsure.distributions._draw_rounds import Phase, draw_in_phases
from labelsure.distributions._draw_streams import DrawStreams
from labelsure.distributions._engines import Engine
from labelsure.distributions._enumeration import Enumeration, add_greedy, enumerate_chains
from labelsure.distributions._sampling import Sampled
from labelsure.distributions._weighted_chains import WeightedChains, write_joints
from labelsure.errors import TooLargeError

if TYPE_CHECKING:
    from labelsure.distributions._kept_answers import KeptAnswers

Views = Iterator[tuple[Indices, View]]

ANY = 2.0  # a limit that everything in [0, 1] meets, or none reaches
JOINT_BYTES = 16  # for each labelset: its probability, and as much again for some questions


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
    """The chains of a batch, and how they are computed.

    Parameters
    ----------
    chains
        Over the same instances and labels, with their weights.
    engine
        Which computes.
    label_names
        One for each label.
    max_exact_labels
        Dense computation is refused beyond.
    random_state
        Seed of the draws.
    kept
        What a table shows, to be noted while all probabilities are there; None where nobody asked.
    """

    chains: WeightedChains
    engine: Engine
    label_names: tuple[str, ...]
    max_exact_labels: int
    random_state: int
    kept: KeptAnswers | None = None

    def __len__(self) -> int:
        return self.chains[0].n_samples

    @property
    def n_labels(self) -> int:
        """The number of labels, L."""
        return self.chains[0].order.size

    def answering(self, question: Question) -> Views:
        """Yield all instances, some at a time, with what answers until the next are due."""
        budget, goals = self.engine.budget, question.goals(self.engine.mass)
        if self.is_dense:
            self.check_affordable()
            yield from self.dense_views(np.arange(len(self)))
        elif self.engine.name == "certified":
            for rows in self._blocks(budget, 0):
                yield rows, self.search(rows, goals, budget)
        elif self.engine.name == "sampled":
            for rows in self._blocks(0, budget):
                yield from self._draw(rows, self.search(rows, goals, 0), question, budget)
        elif self.prefers_exact:
            yield from self._search_or_dense(question)
        else:
            yield from self._search_or_draw(question)

    def _search_or_dense(self, question: Question) -> Views:
        """Search for no longer than the dense engine takes; ask that where it does not do."""
        budget, goals = costs.searches_before_dense(self.n_labels), question.goals(self.engine.mass)
        for rows in self._searched_blocks(budget):
            found = self.search(rows, goals, budget)
            good = found.meets(goals)
            if question.k > 1:
                good &= found.top_is_certain(question.k)
            if good.any():
                yield rows[good], found[np.flatnonzero(good)]
            del found  # not to be held beside the joints, nor beside what is found next
            yield from self.dense_views(rows[~good])

    def _search_or_draw(self, question: Question) -> Views:
        """Search for a while; draw where that does not do."""
        n_searched, n_left = self.share_budget()
        if question.k > 1:  # draws do not find what a search does not
            n_searched, n_left = self.engine.budget, 0
        goals = question.goals(self.engine.mass)
        enough = question.goals_instead_of_draws(self.engine.sampled_tolerance)
        for rows in self._blocks(n_searched, n_left):
            found = self.search(rows, goals, n_searched)
            good = found.meets(goals) | (found.meets(enough) & bool(question.phases))
            if n_left and not good.all():
                rest = np.flatnonzero(~good)
                greedy = add_greedy(self.chains.take(rows[rest]), found[rest])
                yield from self._draw(rows[rest], greedy, question, n_left)
            else:
                good[:] = True
            if good.any():
                yield rows[good], found[np.flatnonzero(good)]

    def share_budget(self) -> tuple[int, int]:
        """Return how many labelsets "auto" searches for, and how many it may draw."""
        n_searched = min(_limits.FIRST_SEARCH, self.engine.budget)
        return n_searched, self.engine.budget - n_searched

    def _draw(self, rows: Indices, found: Enumeration, question: Question, n_draws: int) -> Views:
        """Yield the instances with draws beside what was found, as many as the question needs."""
        if not question.phases:
            yield rows, found
            return
        start = Sampled(found, self.chains.take(rows), DrawStreams(self.random_state, rows))
        limits = [phase.limit(n_draws, self.engine.name == "auto") for phase in question.phases]
        yield from draw_in_phases(rows, start, question.phases, limits)

    @property
    def is_dense(self) -> bool:
        """Whether all instances get their whole joint, whatever the question."""
        cheap = self.is_affordable and self.n_labels <= _limits.CHEAP_DENSE_LABELS
        return self.engine.name == "dense" or (self.engine.name == "auto" and cheap)

    @property
    def is_affordable(self) -> bool:
        """Whether there may be memory for all probabilities of an instance."""
        return self.n_labels <= self.max_exact_labels

    @property
    def prefers_exact(self) -> bool:
        """Whether exact answers are worth what they cost."""
        return self.is_affordable and (self.is_dense or costs.is_dense_worthwhile(self.chains))

    def check_affordable(self) -> None:
        """Refuse what needs too much memory."""
        if not self.is_affordable:
            raise TooLargeError(
                f"All 2**{self.n_labels} labelsets are too many to enumerate: this distribution "
                f"is set to at most {self.max_exact_labels} labels. Use engine='auto', "
                "'certified' or 'sampled', or raise `max_exact_labels` if there is memory for "
                f"{JOINT_BYTES} * 2**{self.n_labels} bytes."
            )

    def search(self, rows: Indices, goals: Floats, budget: int) -> Enumeration:
        """Enumerate the likely labelsets of some instances."""
        return enumerate_chains(self.chains.take(rows), goals, budget)

    def _blocks(self, n_searched: int, n_drawn: int) -> Iterator[Indices]:
        """Cut so that labelsets seen and drawn, with their random numbers, fit into memory."""
        drawn = (9 * self.n_labels + 64) * n_drawn
        enumerated = (self.n_labels + 32) * max(n_searched, 1)
        for some in cut_rows(len(self), enumerated + drawn, _limits.SEEN_LABELSETS_BYTES):
            yield np.arange(len(self))[some]

    def _searched_blocks(self, budget: int) -> Iterator[Indices]:
        """Cut so that a search holds at most half of what the dense engine takes for its joints."""
        half = 4 * n_threads() * 2**self.n_labels
        bytes_each = max(budget, 1) * (3 * self.n_labels + 80)  # sorted copies included
        for some in cut_rows(len(self), bytes_each, max(_limits.CACHED_JOINT_BYTES, half)):
            yield np.arange(len(self))[some]

    def dense_views(self, rows: Indices) -> Iterator[tuple[Indices, DenseDistribution]]:
        """Yield instances with all their probabilities, as many at a time as fit into memory."""
        step = max(self.n_joints, _limits.CACHED_JOINT_BYTES >> (self.n_labels + 3))
        step = min(len(rows), step)
        # One array for all: memory that the system gives anew is as slow as filling it.
        P = np.empty((step, 2**self.n_labels))
        for first in range(0, len(rows), max(step, 1)):
            some = rows[first : first + step]
            costs.note_operations(len(some) * costs.dense_operations(self.chains))
            write_joints(self.chains.take(some), P[: len(some)])
            dense = DenseDistribution.from_trusted(P[: len(some)], self.label_names)
            if self.kept is not None:
                self.kept.note(some, dense)
            yield some, dense

    @property
    def n_joints(self) -> int:
        """How many joints are made at a time: one for each thread, if there is memory."""
        room = _limits.DENSE_WORK_BYTES // (JOINT_BYTES << self.n_labels)
        return max(1, min(n_threads(), room))
