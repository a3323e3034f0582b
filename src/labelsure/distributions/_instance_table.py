"""Distributions as people look at them: a table with a row for each instance, a chart of one.

This module owns the columns of these tables, also those that `AccuracyAwareClassifier.assess` adds.
No label can have the name of another column: those of single labels begin with `probability_`, and
no other one does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from labelsure._runtime.notebook import count, list_names, make_html
from labelsure._runtime.plots import plot_labelsets
from labelsure._runtime.typing import Labelsets
from labelsure.distributions.candidates import check_candidates, confidence_of_profile
from labelsure.errors import InputError
from labelsure.labelsets.names import check_sep
from labelsure.labelsets.rows import show_names, to_names

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from labelsure.distributions._bridge import LabelsetDistribution

COLUMNS: dict[str, str] = {
    "predicted": "names of the predicted labels, in the order of the labels",
    "probability": "probability of exactly this labelset",
    "estimated_accuracy": "what the fitted model says its accuracy will be; from `assess`",
    "expected_accuracy": "mean accuracy under the distribution; from `assess`",
    "accept": "whether the policy accepts it, missing without a policy; from `assess`",
    "reason": "why, in a few words; from `assess`",
    "certain": "names of the labels that are certain; from `assess`, where the model has a region",
    "possible": "names of those that are certain or possible; likewise",
    "decided": "names of the labels that are set where labels may stay open; with `open_cost`",
    "open": "names of the labels that are better left open; with `open_cost`",
    "top_{}": "names of the labels of the most probable labelset (1), the second (2), ...",
    "top_{}_probability": "probability of that labelset",
    "probability_{}": "probability of the label whose name takes the place of the braces",
}
"""Columns and what they hold. Candidates stand before `top_1`, by their own names."""


def tabulate_modes(
    dist: LabelsetDistribution,
    candidates: str | Sequence[str] | None,
    *,
    k: int,
    probabilities: bool,
    sep: str | None,
) -> pd.DataFrame:
    """Return the most probable labelsets with the candidates, one row for each instance.

    Parameters
    ----------
    dist
        A batch of distributions.
    candidates
        Names of candidates; None for the paper's seven.
    k, probabilities, sep
        As for `make_table`.
    """
    check_shown(k, dist.n_labels)  # before the profile, which may take a while
    check_sep(sep, dist.label_names)
    check_candidates(candidates)
    summary = dist.summary([])
    confidences = confidence_of_profile(summary.profile, candidates)
    known = {str(name): confidences[name].to_numpy() for name in confidences}
    return make_table(dist, summary.mode, known, k=k, probabilities=probabilities, sep=sep)


def make_table(
    dist: LabelsetDistribution,
    Y_pred: Labelsets,
    known: Mapping[str, Any],
    *,
    k: int,
    probabilities: bool,
    sep: str | None,
) -> pd.DataFrame:
    """Return predictions and what is known of them, one row for each instance.

    Parameters
    ----------
    dist
        The distributions; their index is that of the table.
    Y_pred
        (n, L) what is predicted.
    known
        Further columns, (n,) each, by name.
    k
        How many of the most probable labelsets to add.
    probabilities
        Whether to add the probability of each label.
    sep
        What stands between the names of labels in a text; None for tuples of names.
    """
    import pandas as pd

    n_top = check_shown(k, dist.n_labels)
    check_sep(sep, dist.label_names)

    def named(labelsets: Labelsets) -> list[Any]:
        return to_names(labelsets, dist.label_names, sep)

    columns = {"predicted": named(Y_pred), "probability": np.exp(dist.log_prob(Y_pred)), **known}
    if n_top:
        top = dist.top(n_top)
        for i in range(n_top):
            columns[f"top_{i + 1}"] = named(top.labelsets[:, i])
            columns[f"top_{i + 1}_probability"] = top.probabilities[:, i]
    index = pd.RangeIndex(len(dist)) if dist.index is None else dist.index
    table = pd.DataFrame(columns).set_axis(index)
    if not probabilities:
        return table
    marginals = dist.with_dense_rows().marginals()
    names = [f"probability_{name}" for name in show_names(dist.label_names, dist.n_labels)]
    return pd.concat([table, pd.DataFrame(marginals, index, names)], axis=1)


def check_shown(k: int, n_labels: int) -> int:
    """Return how many of the most probable labelsets to show: not more than there are.

    Parameters
    ----------
    k
        How many are asked for.
    n_labels
        Of the distributions.

    Examples
    --------
    >>> check_shown(10, n_labels=3)
    8
    """
    if not isinstance(k, (int, np.integer)) or k < 0:
        raise InputError(f"`k` must be a whole number of labelsets to show, 0 for none, got {k!r}.")
    return min(int(k), 2**n_labels)


def plot_instance(dist: LabelsetDistribution, row: int, k: int, ax: Axes | None) -> Axes:
    """Draw the k most probable labelsets of one instance as bars.

    Parameters
    ----------
    dist
        A batch of distributions.
    row
        The position of the instance.
    k
        How many labelsets.
    ax
        Where to draw.
    """
    n_top = check_shown(k, dist.n_labels)
    if not isinstance(row, (int, np.integer)) or n_top == 0:
        raise InputError(
            "`row` must be the position of one instance and `k` at least 1, got "
            f"row={row!r}, k={k!r}."
        )
    one = dist[row]
    top = one.top(n_top)
    labelsets = to_names(top.labelsets[0], one.label_names)
    names = [", ".join(labels) or "(none)" for labels in labelsets]
    title = f"row {row}" if one.index is None else str(one.index[0])
    return plot_labelsets(names, top.probabilities[0], f"Most probable labelsets of {title}", ax)


def describe_in_html(dist: LabelsetDistribution) -> str:
    """Return what a notebook shows: sizes and names, for which nothing has to be computed."""
    sizes = f"{count(len(dist), 'instance')}, {count(dist.n_labels, 'label')}"
    names = "" if dist.label_names is None else f" ({list_names(dist.label_names)})"
    return make_html(f"{type(dist).__name__}: {sizes}{names}.")


class ShownInstances:
    """The part of a `LabelsetDistribution` that shows its instances to people."""

    def to_frame(
        self: Any,
        k: int = 3,
        *,
        candidates: str | Sequence[str] | None = None,
        probabilities: bool | None = None,
        sep: str | None = None,
    ) -> pd.DataFrame:
        """Return the mode and what is known of it as a table, see `docs/table.md`.

        Parameters
        ----------
        k
            How many of the most probable labelsets to add; not more than there are.
        candidates
            As for `labelsure.confidence`; [] for none.
        probabilities
            Whether to add a column for each label; None means yes, but for sparse labels.
        sep
            What stands between names of labels, e.g. ";" for CSV; None for tuples of names.
        """
        if probabilities is None:
            probabilities = not self.sparse_rows
        return tabulate_modes(self, candidates, k=k, probabilities=probabilities, sep=sep)

    def plot(self: Any, row: int = 0, k: int = 10, *, ax: Axes | None = None) -> Axes:
        """Draw the k most probable labelsets of one instance, by its position, as bars."""
        return plot_instance(self, row, k, ax)

    def _repr_html_(self: Any) -> str:
        return describe_in_html(self)
