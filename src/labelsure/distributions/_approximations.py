"""What every approximation of some instances answers, and what it is asked.

An approximation is a block of all 2**L probabilities (`DenseBlock`), enumerated labelsets with
bounds on all others (`Enumeration`), or draws beside them (`Sampled`). `ChainMixture` chooses.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from labelsure._runtime.typing import Labelsets
from labelsure.distributions._answers import Best, Expected, Guesses, Summary, TopLabelsets
from labelsure.metrics.registry import Metric


@dataclass(frozen=True)
class Question:
    """What is asked of all instances, by which an engine decides how far it goes.

    Parameters
    ----------
    about
        Which of the six answers.
    metrics, empty
        Metrics of expected accuracies or of the decision; accuracy of two empty labelsets.
    guesses
        (n, g, L) labelsets whose expected accuracies are asked for.
    k
        How many of the most probable labelsets.
    """

    about: Literal["summary", "mode", "top", "marginals", "expected", "decision"]
    metrics: Sequence[Metric] = ()
    empty: float = 1.0
    guesses: Guesses | None = None
    k: int = 1


class Approximation(ABC):
    """Answers about some instances, exact or with bounds."""

    @abstractmethod
    def summary(self, metrics: Sequence[Metric], empty: float) -> Summary:
        """Profile, mode and expected accuracies of the mode."""

    @abstractmethod
    def mode(self) -> Labelsets:
        """Most probable labelsets, (n, L)."""

    @abstractmethod
    def top(self, k: int) -> TopLabelsets:
        """K most probable labelsets."""

    @abstractmethod
    def marginals(self) -> Expected:
        """P(y_j = 1), (n, L)."""

    @abstractmethod
    def expected(self, metrics: Sequence[Metric], guesses: Guesses, empty: float) -> list[Expected]:
        """Means of each metric for guesses (n, g, L), one result a metric."""

    @abstractmethod
    def best(self, metric: Metric, empty: float) -> Best:
        """Labelsets of the highest expected accuracy, or what decisions go by instead."""
