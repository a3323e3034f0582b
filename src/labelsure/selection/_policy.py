"""`AcceptPolicy`: the most generous threshold that is proved to reach a target."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from labelsure._typing import Floats, Mask
from labelsure.errors import InputError, unknown_name
from labelsure.saving import Savable
from labelsure.selection._thresholds import (
    FAMILIES,
    TESTS,
    check_score,
    check_scored,
    n_needed,
)

if TYPE_CHECKING:
    import pandas as pd

ENOUGH = 10  # accepted instances whose mean is worth projecting from


class TargetWarning(UserWarning):
    """No threshold is proved to reach the target."""


class AcceptPolicy(Savable, BaseEstimator):  # type: ignore[misc]
    """Accept predictions whose score is high enough for a target mean accuracy.

    With probability `level` over the labelled instances that it is fitted to, the accepted
    predictions have a mean accuracy of at least `target`, in expectation over new instances of
    the same kind (not in every batch). These instances must be new to the classifier and to
    whatever made the scores. `docs/acceptance.md` says it in plain words.

    Parameters
    ----------
    target
        The mean accuracy that the accepted predictions shall reach.
    level
        The probability with which they do.
    outcome
        "bounded" for accuracies anywhere in [0, 1]; "binary" for exact match, where an exact
        test needs fewer instances.
    family
        How the thresholds share the error: "sequences" (from a few starting points down until one
        fails) or "bonferroni" (each alone).
    grid
        The thresholds to consider, fixed before any accuracy is seen; None means those on [0, 1]
        that suit estimated accuracies. Scores of another kind need a grid of their own and
        family="bonferroni", as sequences start from the target.

    Attributes
    ----------
    threshold_
        Accept scores of at least this; infinite if no threshold passes.
    coverage_
        The share of the instances fitted to that it accepts.
    message_
        What was found, in a sentence.
    n_needed_
        About how many labelled instances it would take; as many as there were if it passes,
        infinite if the target is out of reach.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> score = rng.uniform(size=2000)
    >>> accuracy = (rng.uniform(size=2000) < score).astype(float)
    >>> policy = AcceptPolicy(target=0.8, outcome="binary").fit(score, accuracy)
    >>> print(f"{policy.threshold_:.2f}, accepting {policy.coverage_:.0%}")
    0.65, accepting 36%
    >>> policy.accept([0.5, 0.9])
    array([False,  True])
    """

    def __init__(
        self,
        target: float = 0.9,
        level: float = 0.95,
        outcome: str = "bounded",
        family: str = "sequences",
        grid: ArrayLike | None = None,
    ) -> None:
        self.target = target
        self.level = level
        self.outcome = outcome
        self.family = family
        self.grid = grid

    def fit(self, score: ArrayLike, accuracy: ArrayLike) -> Self:
        """Find the threshold on labelled instances.

        Parameters
        ----------
        score
            (n,) e.g. estimated accuracies, by a model that has not seen these instances.
        accuracy
            (n,) accuracies that came out, in [0, 1].
        """
        self._check()
        scores, values = check_scored(score, accuracy)
        if self.outcome == "binary" and not np.isin(values, (0, 1)).all():
            raise InputError(
                "`accuracy` must be 0 or 1 for outcome='binary', got "
                f"{values[~np.isin(values, (0, 1))][0]}. Use outcome='bounded'."
            )
        self.n_samples_ = len(scores)
        self.grid_ = self._thresholds()
        order = np.argsort(scores)
        first = np.searchsorted(scores[order], self.grid_, side="left")
        totals = np.append(np.cumsum(values[order][::-1])[::-1], 0.0)[first]
        self.n_accepted_ = len(scores) - first
        self.mean_accuracy_ = np.divide(
            totals, self.n_accepted_, out=np.zeros(len(first)), where=self.n_accepted_ > 0
        )
        self._choose_threshold()
        if not self.reached_:
            warnings.warn(self.message_, TargetWarning, stacklevel=2)
        return self

    def accept(self, score: ArrayLike) -> Mask:
        """Return which predictions to accept; none if the target was not reached.

        Parameters
        ----------
        score
            (n,) made as those that it was fitted to.
        """
        check_is_fitted(self)
        return check_score(score) >= self.threshold_

    @property
    def reached_(self) -> bool:
        """Whether some threshold is proved to reach the target."""
        return math.isfinite(self.threshold_)

    def table(self, targets: ArrayLike | None = None) -> pd.DataFrame:
        """Return what other targets would cost: one row for each.

        Each row holds at the policy's level alone; to choose a target by looking at the table is
        a choice that the level does not cover.

        Parameters
        ----------
        targets
            Mean accuracies; None means 0.5, 0.55, ..., 0.95, 0.99 and the policy's own.

        Returns
        -------
        pandas.DataFrame
            With the columns `target`, `threshold`, `coverage`, `accuracy` (mean over the accepted
            of those fitted to; missing if there are none) and `n_needed`.
        """
        import pandas as pd

        check_is_fitted(self)
        if targets is None:
            usual = np.append(np.round(np.arange(0.5, 0.96, 0.05), 2), 0.99)
            targets = np.unique(np.append(usual, self.target))
        rows = []
        for target in np.asarray(targets, dtype=np.float64):
            chosen = self._choose(float(target))
            found = chosen is not None
            rows.append(
                (
                    target,
                    self.grid_[chosen] if found else np.inf,
                    self.n_accepted_[chosen] / self.n_samples_ if found else 0.0,
                    self.mean_accuracy_[chosen] if found else np.nan,
                    self.n_samples_ if found else self._n_needed(float(target)),
                )
            )
        columns = ["target", "threshold", "coverage", "accuracy", "n_needed"]
        return pd.DataFrame(rows, columns=columns)

    def _check(self) -> None:
        for name in ("target", "level"):
            value = getattr(self, name)
            if not isinstance(value, (int, float, np.number)) or not 0 < value < 1:
                raise InputError(
                    f"`{name}` must be a number between 0 and 1, both excluded, got {value!r}."
                )
        if self.outcome not in TESTS:
            raise unknown_name("outcome", self.outcome, TESTS)
        if self.family not in FAMILIES:
            raise unknown_name("family", self.family, FAMILIES)

    def _thresholds(self) -> Floats:
        if self.grid is None:
            return FAMILIES[self.family].grid()
        grid = np.unique(np.asarray(self.grid, dtype=np.float64))
        if grid.ndim != 1 or grid.size == 0 or not np.isfinite(grid).all():
            raise InputError(
                f"`grid` must be a list of finite thresholds, got {self.grid!r}. None takes "
                "thresholds on [0, 1]."
            )
        return grid

    def _choose_threshold(self) -> None:
        chosen = self._choose(self.target)
        self.threshold_ = np.inf if chosen is None else float(self.grid_[chosen])
        accepted = 0 if chosen is None else int(self.n_accepted_[chosen])
        self.coverage_ = accepted / max(self.n_samples_, 1)
        self.n_needed_ = self.n_samples_ if self.reached_ else self._n_needed(self.target)
        self.message_ = self._describe()

    def _p_values(self, target: float) -> Floats:
        totals = self.mean_accuracy_ * self.n_accepted_
        return TESTS[self.outcome](totals, self.n_accepted_, target)

    def _choose(self, target: float) -> int | None:
        """Return the position of the lowest threshold that passes, None if none does."""
        passed = FAMILIES[self.family].passed(
            self._p_values(target), self.grid_, target, 1 - self.level
        )
        return int(np.argmax(passed)) if passed.any() else None

    def _n_needed(self, target: float) -> float:
        """Return how many instances would do if the means stayed as they are, at best."""
        family = FAMILIES[self.family]
        level = family.single_level(self.grid_, target, 1 - self.level)
        entries = family.entries(self.grid_, target)
        entries = entries[self.n_accepted_[entries] >= ENOUGH]
        accepted = n_needed(self.mean_accuracy_[entries], target, level)
        total = accepted * self.n_samples_ / self.n_accepted_[entries]
        return float(np.ceil(total.min(initial=np.inf)))

    def _describe(self) -> str:
        goal = f"a mean accuracy of {self.target:g} with probability {self.level:g}"
        if self.reached_:
            return (
                f"Accepting scores of at least {self.threshold_:g} reaches {goal} and keeps "
                f"{self.coverage_:.1%} of the predictions."
            )
        if math.isfinite(self.n_needed_):
            return (
                f"Cannot show {goal} from {self.n_samples_} labelled instances. About "
                f"{self.n_needed_:.0f} would do if accuracies stay as they are."
            )
        entries = FAMILIES[self.family].entries(self.grid_, self.target)
        entries = entries[self.n_accepted_[entries] >= ENOUGH]
        if entries.size == 0:
            return (
                f"Cannot show {goal} from {self.n_samples_} labelled instances: fewer than "
                f"{ENOUGH} of them have scores near {self.target:g} or above. Label more, lower "
                "the target, or use sharper scores."
            )
        return (
            f"Cannot show {goal} from {self.n_samples_} labelled instances, and more would not "
            f"help: where the tests begin the accepted have a mean accuracy of at most "
            f"{self.mean_accuracy_[entries].max():.3f}. Lower the target, or improve the "
            "classifier or its scores."
        )
