"""The columns that models of accuracy are fitted on, by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from labelsure._typing import Floats
from labelsure.candidates import CANDIDATES
from labelsure.errors import InputError, unknown_name
from labelsure.estimation._evidence import Evidence
from labelsure.metrics import Metric

EXPECTED = "expected"
N_PREDICTED = "n_predicted"
IS_EMPTY = "is_empty"

_OTHER_FEATURES: dict[str, Callable[[Evidence, Metric, float], Floats]] = {
    EXPECTED: lambda evidence, metric, empty: evidence.expected(metric, empty),
    N_PREDICTED: lambda evidence, metric, empty: evidence.n_predicted(),
    IS_EMPTY: lambda evidence, metric, empty: (evidence.n_predicted() == 0).astype(np.float64),
}
"""Features that are no candidates: they depend on the decision."""

MIX = ("HP", "TG", "SE", "CE", "ME", "CS")

FEATURE_SETS: dict[str, tuple[str, ...]] = {
    "mix": MIX,
    "full": (*MIX, EXPECTED, N_PREDICTED, IS_EMPTY),
}
"""Names for several features together. `mix` is the paper's. In `full` the number of labels has a
term of its own for none: from none to one is another step than from one to two, and without the
term sharp estimates are badly calibrated."""


def check_features(candidates: str | Sequence[str]) -> tuple[str, ...]:
    """Return the names of the features that `candidates` stands for.

    Examples
    --------
    >>> check_features("SE"), check_features("mix")
    (('SE',), ('HP', 'TG', 'SE', 'CE', 'ME', 'CS'))
    """
    if isinstance(candidates, str):
        if candidates in FEATURE_SETS:
            return FEATURE_SETS[candidates]
        candidates = (candidates,)
    known = [*CANDIDATES, *_OTHER_FEATURES, *FEATURE_SETS]
    for name in candidates:
        if name not in CANDIDATES and name not in _OTHER_FEATURES:
            raise unknown_name("candidate", name, known)
    if len(candidates) == 0:
        raise InputError(
            f"`candidates` must name at least one of {', '.join(known)}, got none of them."
        )
    return tuple(candidates)


def feature_matrix(
    evidence: Evidence, names: Sequence[str], metric: Metric, empty: float
) -> Floats:
    """Return the features as an (n, number of features) array, each column contiguous."""
    matrix = np.empty((len(evidence), len(names)), order="F")
    for j, name in enumerate(names):
        if name in CANDIDATES:
            matrix[:, j] = evidence.candidate(name)
        else:
            matrix[:, j] = _OTHER_FEATURES[name](evidence, metric, empty)
    finite = np.isfinite(matrix).all(axis=0)
    if not finite.all():
        raise InputError(
            f"The feature {names[int(np.argmin(finite))]!r} must be finite, got a value that is "
            "not. Leave it out of `candidates`, or check the distribution."
        )
    return matrix
