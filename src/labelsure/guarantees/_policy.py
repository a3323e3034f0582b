"""`AcceptPolicy`: which predictions to accept, and what is proved of their mean accuracy."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from labelsure._runtime.notebook import ShownBySentence
from labelsure._runtime.typing import Mask
from labelsure.errors import InputError, unknown_name
from labelsure.guarantees._choices import (
    Choice,
    LabelledScores,
    choose_for_coverage,
    choose_for_target,
)
from labelsure.guarantees._families import FAMILIES
from labelsure.guarantees._scores import (
    check_grid,
    check_groups,
    check_score,
    check_scored,
    check_share,
)
from labelsure.labelsets.codes import OPEN
from labelsure.labelsets.index import align_rows
from labelsure.labelsets.rows import index_of
from labelsure.metrics.mean_tests import MEAN_TESTS
from labelsure.metrics.partial import PartialLabelsets
from labelsure.saving import Savable

if TYPE_CHECKING:
    import pandas as pd

USUAL_TARGETS = (0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.99)
USUAL_COVERAGES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


class TargetWarning(UserWarning):
    """No threshold is proved to reach the target."""


class AcceptPolicy(ShownBySentence, Savable, BaseEstimator):  # type: ignore[misc]
    """Accept predictions whose score is high enough, for a target or for a capacity.

    With a `target`, as many are accepted as are proved to reach it: with probability `level` over
    the labelled instances that the policy is fitted to, the accepted predictions have a mean
    accuracy of at least `target`, in expectation over new instances of the same kind (not in
    every batch). With a `coverage`, that share is accepted, the rest being what people have time
    to check, and `bound_` is a mean accuracy that the accepted exceed with probability `level`.

    The labelled instances must be new to the classifier and to whatever made the scores.
    `docs/acceptance.md` says it in plain words.

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
    coverage
        Instead of a target: the share of the predictions to accept, in (0, 1].
    random_state
        Seed of the order in which the test for "bounded" sees the accuracies. They must not
        come in an order that depends on the scores, so they are shuffled.

    Attributes
    ----------
    threshold_
        Accept scores of at least this; infinite if no threshold passes.
    coverage_
        The share of the instances fitted to that it accepts.
    bound_
        The mean accuracy that the accepted have at least, with probability `level`: the target,
        or what a coverage allows to say; missing if no threshold passes.
    message_
        What was found, in a sentence.
    policies_
        The policy of each group, if it was fitted with groups, else None. Then `threshold_` and
        `bound_` are dicts with one entry for each group.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> score = rng.uniform(size=2000)
    >>> accuracy = (rng.uniform(size=2000) < score).astype(float)
    >>> policy = AcceptPolicy(target=0.8, outcome="binary").fit(score, accuracy)
    >>> print(f"{policy.threshold_:.2f}, accepting {policy.coverage_:.0%}")
    0.63, accepting 37%
    >>> policy.accept([0.5, 0.9])
    array([False,  True])

    Four fifths are to be accepted, whatever their accuracy:

    >>> policy = AcceptPolicy(coverage=0.8, outcome="binary").fit(score, accuracy)
    >>> print(f"{policy.threshold_:.2f}, with a mean accuracy of at least {policy.bound_:.2f}")
    0.19, with a mean accuracy of at least 0.58
    """

    def __init__(
        self,
        target: float | None = None,
        level: float = 0.95,
        outcome: str = "bounded",
        family: str = "sequences",
        grid: ArrayLike | None = None,
        *,
        coverage: float | None = None,
        random_state: int | None = 0,
    ) -> None:
        self.target = target
        self.level = level
        self.outcome = outcome
        self.family = family
        self.grid = grid
        self.coverage = coverage
        self.random_state = random_state

    def fit(self, score: ArrayLike, accuracy: ArrayLike, groups: ArrayLike | None = None) -> Self:
        """Find the threshold on labelled instances.

        Parameters
        ----------
        score
            (n,) e.g. estimated accuracies, by a model that has not seen these instances.
        accuracy
            (n,) accuracies that came out, in [0, 1].
        groups
            (n,) the group of each, e.g. a language. Each group gets a threshold of its own, and
            what is proved holds with probability `level` in each group by itself.
        """
        self.check_parameters()
        scores, values = check_scored(score, accuracy)
        MEAN_TESTS[self.outcome].check(values)
        labelled = LabelledScores(scores, values)
        self.policies_: dict[str, AcceptPolicy] | None = None
        if groups is None:
            self._fit_shuffled(self._shuffle(labelled))
        else:
            names = check_groups(groups, index_of(score), len(scores))
            self._fit_groups(labelled, names)
        if not self.reached_:
            warnings.warn(self.message_, TargetWarning, stacklevel=2)
        return self

    def accept(self, score: ArrayLike, groups: ArrayLike | None = None) -> Mask:
        """Return which predictions to accept; none if the target was not reached.

        Parameters
        ----------
        score
            (n,) made as those that it was fitted to.
        groups
            (n,) the group of each, if it was fitted with groups.
        """
        check_is_fitted(self)
        scores = check_score(score)
        if (groups is None) != (self.policies_ is None):
            raise InputError(
                "`groups` must be given to `accept` just as to `fit`, got "
                f"{'none' if groups is None else 'some'} here and "
                f"{'none' if self.policies_ is None else 'some'} there."
            )
        if self.policies_ is None:
            return scores >= self.threshold_
        names = check_groups(groups, index_of(score), len(scores))
        unknown = sorted(set(names.tolist()) - set(self.policies_))
        if unknown:
            raise InputError(
                f"`groups` must be among those that the policy was fitted to, got {unknown[0]!r}. "
                f"It knows {', '.join(repr(name) for name in list(self.policies_)[:5])}."
            )
        return scores >= np.array([self.threshold_[name] for name in names])

    def accept_labels(
        self, score: ArrayLike, answers: PartialLabelsets, groups: ArrayLike | None = None
    ) -> PartialLabelsets:
        """Return answers whose decided labels are accepted; what is open is to be referred.

        Of an answer that is not accepted all labels are open. What is proved is then about the
        accuracy of the decided labels: fit to `answers.accuracy(Y_true, metric)`.

        Parameters
        ----------
        score
            (n,) of the answers, made as those that it was fitted to.
        answers
            As `labelsure.decide` returns them with `open_cost`.
        groups
            (n,) the group of each, if it was fitted with groups.

        Examples
        --------
        >>> from labelsure import PartialLabelsets
        >>> policy = AcceptPolicy(coverage=0.5).fit([0.9, 0.2] * 50, [1, 0] * 50)
        >>> policy.accept_labels([0.3, 0.9], PartialLabelsets([[1, -1], [0, -1]])).values
        array([[-1, -1],
               [ 0, -1]], dtype=int8)
        """
        accepted = self.accept(score, groups)
        if len(accepted) != len(answers):
            raise InputError(
                f"`score` must have one entry for each of the {len(answers)} answers, got "
                f"{len(accepted)}."
            )
        order = align_rows(index_of(score), answers.index, name="score", beside="the answers")
        accepted = accepted if order is None else accepted[order]
        values = np.where(accepted[:, np.newaxis], answers.values, OPEN)
        return replace(answers, values=values)

    @property
    def reached_(self) -> bool:
        """Whether some threshold is proved to reach the target; with groups, in each of them."""
        if self.policies_ is None:
            return math.isfinite(self.threshold_)
        return all(policy.reached_ for policy in self.policies_.values())

    def table(self, values: ArrayLike | None = None) -> pd.DataFrame:
        """Return what other targets, or other coverages, would mean: one row for each.

        Each row holds at the policy's level alone; to choose one by looking at the table is a
        choice that the level does not cover.

        Parameters
        ----------
        values
            Targets for a policy that has one, coverages for one that has a coverage; None means
            the usual ones and the policy's own.

        Returns
        -------
        pandas.DataFrame
            With the columns `target` (if the policy has one), `threshold`, `coverage`, `accuracy`
            (mean over the accepted of those fitted to; missing if there are none) and `bound`; and
            before them `group`, if there are groups.
        """
        import pandas as pd

        check_is_fitted(self)
        if self.policies_ is not None:
            parts = {name: policy.table(values) for name, policy in self.policies_.items()}
            table = pd.concat(parts, names=["group"]).reset_index(level="group")
            return table.reset_index(drop=True)
        if values is None and self.coverage is None:
            values = np.unique([*USUAL_TARGETS, self.target])
        elif values is None:
            values = np.unique([*USUAL_COVERAGES, self.coverage])
        rows = []
        for value in np.asarray(values, dtype=np.float64):
            found = self._choose(float(value))
            accepted = self.accuracies_[self.scores_ >= found.threshold]
            rows.append(
                {
                    **({"target": value} if self.coverage is None else {}),
                    "threshold": found.threshold,
                    "coverage": found.coverage,
                    "accuracy": accepted.mean() if accepted.size else np.nan,
                    "bound": found.bound,
                }
            )
        return pd.DataFrame(rows)

    def check_parameters(self) -> None:
        """Raise an `InputError` if the policy cannot be fitted with these parameters."""
        if (self.target is None) == (self.coverage is None):
            raise InputError(
                "`target` or `coverage` must be given, and not both, got "
                f"target={self.target!r} and coverage={self.coverage!r}. A target is a mean "
                "accuracy to reach, a coverage the share to accept."
            )
        check_share("level", self.level)
        if self.target is not None:
            check_share("target", self.target)
        else:
            check_share("coverage", self.coverage, one=True)
        if self.outcome not in MEAN_TESTS:
            raise unknown_name("outcome", self.outcome, MEAN_TESTS)
        if self.family not in FAMILIES:
            raise unknown_name("family", self.family, FAMILIES)

    def _shuffle(self, labelled: LabelledScores) -> LabelledScores:
        """Put instances in random order, which depends on nothing but their number."""
        return labelled[np.random.default_rng(self.random_state).permutation(len(labelled))]

    def _fit_shuffled(self, labelled: LabelledScores) -> None:
        """Find the threshold of instances that are in random order."""
        # Kept in this order: what is proved of another target or coverage rests on it.
        self.scores_, self.accuracies_ = labelled.scores, labelled.accuracies
        self.n_samples_ = len(labelled)
        chosen = self._choose(self.target if self.coverage is None else self.coverage)
        self.threshold_: Any = chosen.threshold
        self.coverage_ = chosen.coverage
        self.bound_: Any = chosen.bound
        self.message_ = chosen.message

    def _fit_groups(self, labelled: LabelledScores, names: NDArray[np.str_]) -> None:
        policies = {}
        for name in np.unique(names).tolist():
            policies[name] = clone(self)
            policies[name].policies_ = None
            policies[name]._fit_shuffled(self._shuffle(labelled[names == name]))
        self._join_groups(policies)

    def _join_groups(self, policies: dict[str, AcceptPolicy]) -> None:
        """Take what is said of each group from its policy."""
        self.policies_ = policies
        parts = policies.items()
        self.n_samples_ = sum(policy.n_samples_ for _, policy in parts)
        self.threshold_ = {name: policy.threshold_ for name, policy in parts}
        self.bound_ = {name: policy.bound_ for name, policy in parts}
        n_accepted = sum(policy.coverage_ * policy.n_samples_ for _, policy in parts)
        self.coverage_ = n_accepted / max(self.n_samples_, 1)
        self.message_ = "\n".join(f"Group {name!r}: {policy.message_}" for name, policy in parts)

    def _choose(self, value: Any) -> Choice:
        """Return the threshold for a target, or for a coverage."""
        test = MEAN_TESTS[self.outcome]
        labelled = LabelledScores(self.scores_, self.accuracies_)
        if self.coverage is not None:
            check_share("coverage", value, one=True)
            return choose_for_coverage(labelled, value, self.level, test)
        check_share("target", value)
        family = FAMILIES[self.family]
        grid = family.grid() if self.grid is None else check_grid(self.grid)
        return choose_for_target(labelled, value, self.level, test, family, grid)
