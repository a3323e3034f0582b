"""Who answers for which instances of a mixture: the likely labelsets, or draws beside them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from labelsure._kernels.labelset_search import Goals
from labelsure._kernels.threads import Progress
from labelsure._runtime import limits as _limits
from labelsure._runtime.limits import cut_rows
from labelsure._runtime.typing import Indices, LabelNames, Labelsets
from labelsure.distributions._answers import Support, View
from labelsure.distributions._engines import Engine
from labelsure.distributions._enumeration import Enumeration, add_greedy, enumerate_chains
from labelsure.distributions._labelset_table import LabelsetTable
from labelsure.distributions._sampling import (
    CollisionNeed,
    DrawStreams,
    EntropyNeed,
    ExpectedNeed,
    MarginalNeed,
    Need,
    Sampled,
    draw_for,
)
from labelsure.distributions._weighted_chains import WeightedChains
from labelsure.labelsets.weighted import WeightedLabelsets
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
    needs
        What draws are made for; none where they would not answer better than a search.
    """

    width: float = ANY
    unseen: float = ANY
    certain: bool = False
    k: int = 1
    largest_unseen: float = 0.0
    needs: tuple[Need, ...] = ()

    def goals(self, mass: float | None) -> Goals:
        """Return when the search may stop."""
        enough = ANY if mass is None else mass
        return Goals.of(self.width, self.unseen, enough, self.largest_unseen, self.certain)

    def goals_instead_of_draws(self, width: float) -> Goals:
        """Return which guaranteed intervals are narrow enough to do without draws."""
        return Goals.of(max(self.width, width), max(self.unseen, width), enough_mass=ANY)


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
        needs: list[Need] = [EntropyNeed(sampled), CollisionNeed(sampled)]
        if inexact:
            needs.append(ExpectedNeed(sampled, inexact, empty))
        unseen = width if metrics else ANY
        return Question(width, unseen, certain=True, needs=tuple(needs))

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
        needs = (MarginalNeed(self.engine.sampled_tolerance),)
        return Question(unseen=self.engine.tolerance, needs=needs)

    def ask_expected(self, metric: Metric, guesses: Labelsets, empty: float) -> Question:
        """Ask for the expected accuracies of (n, g, L) guesses."""
        needs = (ExpectedNeed(self.engine.sampled_tolerance, [metric], empty, guesses),)
        return Question(unseen=self.engine.tolerance, needs=needs)

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
            good = found.meets(goals) | (found.meets(enough) & bool(question.needs))
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
        if not question.needs:
            yield rows, found
            return
        start = self.sampled(rows, found)
        limits = [need.limit(n_draws, self.engine.name == "auto") for need in question.needs]
        yield from draw_for(rows, start, question.needs, limits)

    def sampled(self, rows: Indices, found: Enumeration) -> Sampled:
        """Return what was found of some instances, to be drawn beside."""
        chains = self.chains.take(rows)
        return Sampled(found, chains, DrawStreams(self.random_state, rows, chains.row_keys()))

    def search(self, rows: Indices, goals: Goals, budget: int, small: float = 0.0) -> Enumeration:
        """Enumerate the likely labelsets of some instances."""
        return enumerate_chains(self.chains.take(rows), goals, budget, small)

    def _blocks(self, n_searched: int, n_drawn: int) -> Iterator[Indices]:
        """Cut so that labelsets seen and drawn, with their random numbers, fit into memory."""
        drawn = (9 * self.n_labels + 64) * n_drawn
        enumerated = (self.n_labels + 32) * max(n_searched, 1)
        for some in cut_rows(len(self), enumerated + drawn, _limits.SEEN_LABELSETS_BYTES):
            yield np.arange(len(self))[some]


# What decisions go by where not all labelsets can be seen: those enumerated, and draws.


def support_blocks(views: ChainViews) -> Iterator[tuple[Indices, Support]]:
    """Yield some instances at a time with the labelsets that decisions go by.

    "certified" enumerates only; the other engines draw where a short search leaves more unseen
    than the tolerance.
    """
    budget, tolerance = views.engine.budget, views.engine.tolerance
    n_searched, n_drawn = views.share_budget()
    small = views.small_unseen
    if views.engine.name == "certified":
        n_searched, n_drawn, small = budget, 0, 0.0
    elif views.engine.name == "sampled":  # which draws, however small the budget is
        n_searched = min(n_searched, budget // 2)
        n_drawn = budget - n_searched
    n_drawn = min(n_drawn, _limits.DECISION_DRAWS)
    goals = Question(unseen=tolerance, certain=True).goals(views.engine.mass)
    bytes_each = max(1, n_searched + n_drawn) * (8 * views.n_labels + 32)
    progress = Progress(len(views))
    for some in cut_rows(len(views), bytes_each, _limits.DECISION_BYTES):
        rows = np.arange(len(views))[some]
        found = views.search(rows, goals, n_searched, small)
        good = found.meets(goals) if n_drawn else np.ones(len(rows), dtype=bool)
        if good.any():
            yield rows[good], found[np.flatnonzero(good)].support(views.label_names)
        if not good.all():
            yield rows[~good], _draw_rest(views, rows[~good], found[np.flatnonzero(~good)], n_drawn)
        progress.add(len(rows))


def _draw_rest(views: ChainViews, rows: Indices, found: Enumeration, n_drawn: int) -> Support:
    """Let draws stand for what was not found.

    Where they stand may be far from where it is: what is unseen counts once for its own place and
    once for theirs.
    """
    chains = views.chains.take(rows)
    found = add_greedy(chains, found)
    size = max(2, -(-n_drawn // len(chains)))
    sampled = views.sampled(rows, found).draw_more(size)
    draws = sampled.draws.reshape(len(rows), -1, views.n_labels)
    table = _share_rest(found, draws, views.label_names)
    elsewhere = np.minimum(2 * found.unseen_mass, 1.0)
    return Support(
        table, np.ones(len(rows)), elsewhere, found.largest_unseen, sampled.marginal_bounds
    )


def _share_rest(found: Enumeration, draws: Labelsets, label_names: LabelNames) -> LabelsetTable:
    """Return enumerated labelsets with their own probabilities, and draws that share what is left.

    A draw says little of the probability of its own labelset: the mode is one of those enumerated.
    """
    known = found.seen
    instance, place = np.nonzero(~known.contains(draws))
    n_new = np.bincount(instance, minlength=len(known))
    rest = np.maximum(1.0 - known.totals(), 0.0)
    shares = (rest / np.maximum(n_new, 1))[instance]
    drawn = WeightedLabelsets.merge(draws[instance, place], shares, instance, len(known))
    return LabelsetTable.from_weighted(known.join(drawn).normalise(), label_names, known)
