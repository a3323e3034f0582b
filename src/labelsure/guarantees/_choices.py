"""Which threshold: the lowest that is proved to reach a target, or the one of a coverage."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from labelsure._runtime.typing import Floats, Indices, Mask
from labelsure.errors import InputError
from labelsure.guarantees._families import Family
from labelsure.metrics.mean_tests import MeanTest

ENOUGH = 10  # accepted instances whose mean is worth projecting from


@dataclass(frozen=True)
class Choice:
    """A threshold and what is known of it.

    Parameters
    ----------
    threshold
        Accept scores of at least this; infinite if no threshold passes.
    coverage
        The share of the labelled instances that it accepts.
    bound
        What the mean accuracy of the accepted exceeds, but for the error; missing if no threshold
        passes.
    message
        All of it in a sentence.
    """

    threshold: float
    coverage: float
    bound: float
    message: str


@dataclass(frozen=True)
class LabelledScores:
    """Scores of predictions, and how accurate these came out.

    Parameters
    ----------
    scores, accuracies
        (n,) in an order that has nothing to do with their values.
    """

    scores: Floats
    accuracies: Floats

    def __len__(self) -> int:
        return len(self.scores)

    def __getitem__(self, rows: Indices | Mask) -> LabelledScores:
        return LabelledScores(self.scores[rows], self.accuracies[rows])

    def accepted(self, threshold: float) -> Floats:
        """Return the accuracies of what a threshold accepts."""
        return self.accuracies[self.scores >= threshold]


def choose_for_coverage(
    labelled: LabelledScores, coverage: float, level: float, test: MeanTest
) -> Choice:
    """Return the highest threshold that accepts at least this share, ties apart.

    The threshold is the score of one instance, and the others above it are a sample of what it will
    accept. That instance is no part of the sample: it was chosen for its score. Where others have
    the same score, which of them come to be accepted would depend on how many are above, and the
    sample would not be one of what is accepted: only scores strictly above are. Of scores that are
    tied at the very top all are accepted.

    Parameters
    ----------
    labelled
        The labelled instances.
    coverage
        The share to accept, in (0, 1].
    level
        The probability with which the bound holds.
    test
        Of the mean accuracy.
    """
    if len(labelled) == 0:
        raise InputError("A coverage needs at least one labelled instance, got none.")
    n_accepted = math.ceil(coverage * len(labelled))
    last = int(np.argsort(-labelled.scores, kind="stable")[n_accepted - 1])
    threshold = float(labelled.scores[last])
    is_tied, is_above = labelled.scores == threshold, labelled.scores > threshold
    referred = ""
    if is_tied.sum() > 1 and is_above.any():
        referred = f" Those tied at {threshold:g} ({is_tied.mean():.1%}) are referred."
        threshold = float(np.nextafter(threshold, np.inf))
        is_sample = is_above
        share = float(is_above.mean())
    else:
        is_sample = is_tied | is_above
        share = float(is_sample.mean())
        is_sample[last] = False
    bound = test.lower_bound(labelled.accuracies[is_sample], 1 - level)
    message = (
        f"Accepting scores of at least {threshold:g} keeps {share:.1%} of the predictions, and "
        f"their mean accuracy is at least {bound:.3f} with probability {level:g}.{referred}"
    )
    return Choice(threshold, share, bound, message)


def choose_for_target(
    labelled: LabelledScores,
    target: float,
    level: float,
    test: MeanTest,
    family: Family,
    grid: Floats,
) -> Choice:
    """Return the lowest threshold that is proved to reach the target.

    Parameters
    ----------
    labelled
        The labelled instances.
    target
        The mean accuracy to reach.
    level
        The probability with which it is reached.
    test
        Of the mean accuracy.
    family
        How the thresholds share the error.
    grid
        The thresholds, rising.
    """
    single = family.single_level(grid, target, 1 - level)

    def p_value(i: int) -> float:
        return test.p_value(labelled.accepted(grid[i]), target, single)

    passed = family.passed(p_value, grid, target, 1 - level)
    goal = f"a mean accuracy of {target:g} with probability {level:g}"
    if passed.any():
        threshold = float(grid[np.argmax(passed)])
        coverage = len(labelled.accepted(threshold)) / len(labelled)
        message = (
            f"Accepting scores of at least {threshold:g} reaches {goal} and keeps {coverage:.1%} "
            "of the predictions."
        )
        return Choice(threshold, coverage, target, message)
    parts = [labelled.accepted(grid[entry]) for entry in family.entries(grid, target)]
    parts = [part for part in parts if len(part) >= ENOUGH]
    return Choice(math.inf, 0.0, math.nan, _say_why_not(labelled, target, goal, parts))


def _say_why_not(labelled: LabelledScores, target: float, goal: str, parts: list[Floats]) -> str:
    said = f"Cannot show {goal} from {len(labelled)} labelled instances"
    if not parts:
        return (
            f"{said}: fewer than {ENOUGH} of them have scores near {target:g} or above. Label "
            "more, lower the target, or use sharper scores."
        )
    highest = max(float(part.mean()) for part in parts)
    if highest > target:
        return (
            f"{said}: where the tests begin the accepted have a mean accuracy of {highest:.3f}, "
            "too close to the target for so few. Label more, or lower the target."
        )
    return (
        f"{said}, and more would not help: where the tests begin the accepted have a mean accuracy "
        f"of at most {highest:.3f}. Lower the target, or improve the classifier or its scores."
    )
