"""What a fitted region says of itself, in a sentence."""

from __future__ import annotations

import math

from labelsure.guarantees._conformal_ranks import ROUNDING, coverage_interval, rank_for_coverage


def say_coverage(coverage: float, n_samples: int, level: float) -> str:
    """Say what holds of regions with a coverage.

    Parameters
    ----------
    coverage
        That was asked for.
    n_samples
        The number of labelled instances.
    level
        Of the interval that is said.
    """
    if rank_for_coverage(n_samples, coverage) > n_samples:
        needed = math.ceil(coverage / (1 - coverage) - ROUNDING)
        return (
            f"{n_samples} labelled instances are too few for a coverage of {coverage:.1%}: all "
            f"labelsets are in the region. Label at least {needed}."
        )
    low, high = coverage_interval(n_samples, coverage, level)
    return (
        f"Regions hold the true labelset with probability {coverage:g} or more; given these "
        f"{n_samples:,} labelled instances, between {low:.3f} and {high:.3f} with probability "
        f"{level:g}."
    )


def say_recall(recall: float, quantile: float, n_samples: int) -> str:
    """Say what holds of possible labels with a recall, without the full stop.

    Parameters
    ----------
    recall
        That was asked for.
    quantile
        The threshold: -inf if there are too few labelled instances.
    n_samples
        The number of labelled instances.
    """
    if quantile == -math.inf:
        few = f"{n_samples} labelled instances are too few for a recall of {recall:.1%}"
        return f"{few}: all labels are possible"
    return (
        f"The possible labels hold {recall:.1%} of the true ones on average ({n_samples:,} "
        "labelled instances)"
    )


def say_precision(precision: float, certain_from: float, level: float) -> str:
    """Say what holds of certain labels.

    Parameters
    ----------
    precision
        That was asked for.
    certain_from
        The threshold: inf if none is proved.
    level
        The probability with which it holds.
    """
    if certain_from == math.inf:
        return f"no label is certain: a precision of {precision:.1%} cannot be shown"
    return (
        f"of the certain labels of an instance at least {precision:.1%} are right, averaged over "
        f"instances that have any, with probability {level:g}"
    )
