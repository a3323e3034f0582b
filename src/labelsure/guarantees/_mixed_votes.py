"""Votes mixed with independent labels, so that no labelset is impossible."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from labelsure._runtime.typing import Floats, LabelNames, Labelsets
from labelsure.distributions._answers import MaxMarginals, TopLabelsets
from labelsure.distributions._independent_labels import IndependentLabels
from labelsure.distributions._labelset_table import LabelsetTable
from labelsure.distributions.candidates import log
from labelsure.labelsets.weighted import WeightedLabelsets

if TYPE_CHECKING:
    import pandas as pd


class Source(Protocol):
    """What regions are made of: a distribution, or votes that others are mixed with."""

    @property
    def n_labels(self) -> int:
        """The number of labels."""

    @property
    def label_names(self) -> LabelNames:
        """Their names."""

    @property
    def index(self) -> pd.Index | None:
        """The names of the rows."""

    def __len__(self) -> int: ...

    def __getitem__(self, rows: Any) -> Source: ...

    def log_prob(self, Y: Any) -> Floats:
        """Return the log-probability of a labelset for each instance."""

    def max_marginals(self, log_at_least: float = ...) -> MaxMarginals:
        """Return how probable a labelset with each value can be."""

    def marginals(self) -> Floats:
        """Return P(y_j = 1)."""

    def top(self, k: int) -> TopLabelsets:
        """Return the most probable labelsets."""

    def sample(self, size: int, random_state: Any = ...) -> Labelsets:
        """Draw labelsets."""

    def probabilities(self) -> Floats:
        """Return all probabilities."""


@dataclass(frozen=True)
class MixedVotes:
    """(1 - share) times the votes, plus `share` times independent labels.

    The independent labels have the marginals of the votes, drawn to 1/2 by the same share: a label
    that nobody voted for is not impossible either.

    Parameters
    ----------
    votes
        A table of labelsets.
    share
        Above 0 and below 1.

    Examples
    --------
    >>> votes = MixedVotes(LabelsetTable([[[1, 0]]], [[1.0]]), 0.1)
    >>> votes.probabilities().round(3)
    array([[0.005, 0.99 , 0.   , 0.005]])
    """

    votes: LabelsetTable
    share: float

    @property
    def n_labels(self) -> int:
        """The number of labels."""
        return self.votes.n_labels

    @property
    def label_names(self) -> LabelNames:
        """Their names."""
        return self.votes.label_names

    @property
    def index(self) -> pd.Index | None:
        """The names of the rows."""
        return self.votes.index

    @property
    def independent(self) -> IndependentLabels:
        """The independent labels."""
        drawn = (1 - self.share) * self.votes.marginals() + self.share / 2
        return IndependentLabels(drawn, self.label_names)

    def __len__(self) -> int:
        return len(self.votes)

    def __getitem__(self, rows: Any) -> MixedVotes:
        return MixedVotes(self.votes[rows], self.share)

    def _mix(self, log_votes: Floats, log_independent: Floats) -> Floats:
        return np.logaddexp(np.log1p(-self.share) + log_votes, np.log(self.share) + log_independent)

    def log_prob(self, Y: Any) -> Floats:
        """Return the log-probability of a labelset for each instance."""
        rows = self.votes.align(Y)
        return self._mix(self.votes.log_prob(rows), self.independent.log_prob(rows))

    def marginals(self) -> Floats:
        """Return P(y_j = 1)."""
        voted, drawn = self.votes.marginals(), self.independent.marginals()
        return np.asarray((1 - self.share) * voted + self.share * drawn)

    def probabilities(self) -> Floats:
        """Return all probabilities."""
        voted, drawn = self.votes.probabilities(), self.independent.probabilities()
        return np.asarray((1 - self.share) * voted + self.share * drawn)

    def sample(self, size: int, random_state: Any = None) -> Labelsets:
        """Draw labelsets of one or of the other."""
        generator = np.random.default_rng(random_state)
        voted = self.votes.sample(size, generator)
        drawn = self.independent.sample(size, generator)
        is_voted = generator.random((len(self), size, 1)) >= self.share
        return np.where(is_voted, voted, drawn)

    def _voted(self) -> WeightedLabelsets:
        """Return the labelsets that somebody voted for, with their probabilities in the mixture."""
        seen = self.votes.labelsets
        beside = IndependentLabels(self.independent.marginals()[seen.instance])
        mixed = np.exp(self._mix(np.log(seen.weights), beside.log_prob(seen.rows)))
        return WeightedLabelsets.merge(seen.rows, mixed, seen.instance, len(self))

    def max_marginals(self, log_at_least: float = -np.inf) -> MaxMarginals:
        """Return how probable a labelset with each value can be.

        It is among the voted ones, or it is the most probable independent one: where that was voted
        for, it is among those, and more probable.
        """
        voted = LabelsetTable.from_weighted(self._voted()).max_marginals().logs
        drawn = np.log(self.share) + self.independent.max_marginals().logs
        return MaxMarginals.exactly(np.maximum(voted, drawn))

    def top(self, k: int) -> TopLabelsets:
        """Return the most probable labelsets: voted ones, and independent ones that are not."""
        voted = self._voted()
        n_drawn = min(k + int(voted.lengths.max(initial=0)), 2**self.n_labels)
        drawn = self.independent.top(n_drawn)
        new = ~voted.contains(drawn.labelsets)
        instance = np.repeat(np.arange(len(self)), new.sum(axis=1))
        others = WeightedLabelsets.merge(
            drawn.labelsets[new], self.share * drawn.probabilities[new], instance, len(self)
        )
        labelsets, probabilities = voted.join(others).top(k)
        return TopLabelsets(labelsets, log(probabilities))
