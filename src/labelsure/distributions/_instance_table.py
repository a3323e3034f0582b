"""Table of distributions with a row for each instance, and a chart of one instance.

This module owns the columns of these tables, also those that `AccuracyAwareClassifier.assess` adds.
No label can have the name of another column: those of single labels begin with `probability_`, and
no other one does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from labelsure._runtime.arguments import read_whole_number
from labelsure._runtime.plots import plot_labelsets
from labelsure._runtime.typing import Labelsets
from labelsure.distributions.candidates import check_candidates, confidence_of_profile
from labelsure.errors import InputError
from labelsure.labelsets.label_names import show_names
from labelsure.labelsets.lists import name_rows
from labelsure.labelsets.names import check_sep

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from labelsure.distributions._base import LabelsetDistribution


def tabulate_modes(
    dist: LabelsetDistribution,
    candidates: str | Sequence[str] | None,
    *,
    k: int,
    probabilities: bool,
    sep: str | None,
) -> pd.DataFrame:
    """Most probable labelsets with the candidates, one row for each instance."""
    check_shown(k, dist.n_labels)  # before the profile, which may take a while
    check_sep(sep, dist.label_names)
    check_candidates(candidates)
    summary = dist._summary([], 1.0)
    mode, confidences = summary.mode, confidence_of_profile(summary.profile, candidates)
    known = {str(name): confidences[name].to_numpy() for name in confidences}
    return make_table(dist, mode, known, k=k, probabilities=probabilities, sep=sep)


def make_table(
    dist: LabelsetDistribution,
    Y_pred: Labelsets,
    known: Mapping[str, object],
    *,
    k: int,
    probabilities: bool,
    sep: str | None,
) -> pd.DataFrame:
    """Predictions, their probabilities and other columns, one row for each instance."""
    import pandas as pd

    n_top = check_shown(k, dist.n_labels)
    check_sep(sep, dist.label_names)

    def named(labelsets: Labelsets) -> list[object]:
        return name_rows(labelsets, dist.label_names, sep)

    columns = {"predicted": named(Y_pred), "probability": np.exp(dist._log_prob(Y_pred)), **known}
    if n_top:
        top = dist.top(n_top)
        for i in range(n_top):
            columns[f"top_{i + 1}"] = named(top.labelsets[:, i])
            columns[f"top_{i + 1}_probability"] = top.probabilities[:, i]
    if probabilities:
        marginals = dist.marginals()
        names = [f"probability_{name}" for name in show_names(dist.label_names, dist.n_labels)]
        columns |= dict(zip(names, marginals.T, strict=True))
    return pd.DataFrame(columns, dist.index)


def check_shown(k: int, n_labels: int) -> int:
    """Number of most probable labelsets to show: not more than there are.

    Examples
    --------
    >>> check_shown(10, n_labels=3)
    8
    """
    return min(read_whole_number(k, "k", 0), 2**n_labels)


def plot_instance(
    dist: LabelsetDistribution, row: int, k: int, ax: Axes | None, Y_pred: Labelsets | None = None
) -> Axes:
    """Bar chart of the k most probable labelsets of one instance and of its prediction."""
    n_top = check_shown(k, dist.n_labels)
    if not isinstance(row, (int, np.integer)) or n_top == 0:
        raise InputError(
            "`row` must be the position of one instance and `k` at least 1, got "
            f"row={row!r}, k={k!r}."
        )
    one, place = dist[row], None
    top = one.top(n_top)
    labelsets, probabilities = (
        list(name_rows(top.labelsets[0], one.label_names)),
        top.probabilities[0],
    )
    if Y_pred is not None:
        own = Y_pred[[row]]
        (predicted,) = name_rows(own, one.label_names)
        if predicted not in labelsets:
            labelsets.append(predicted)
            probabilities = np.append(probabilities, np.exp(one.log_prob(own)))
        place = labelsets.index(predicted)
    names = [", ".join(labels) or "(none)" for labels in labelsets]
    title = f"Most probable labelsets of {f'row {row}' if one.index is None else one.index[0]}"
    return plot_labelsets(names, probabilities, title, ax, place)
