"""Groups of instances (data sets, classifiers) with slopes or offsets of their own."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelsure._typing import Indices
from labelsure.errors import InputError, unknown_name


class Levels:
    """The groups of one kind that a model was fitted with.

    Parameters
    ----------
    argument
        The argument they came by, for the messages.
    groups
        (n,) names; None means that there are no groups.
    """

    def __init__(self, argument: str, groups: NDArray[Any] | None) -> None:
        self.argument = argument
        self.names = None if groups is None else [str(name) for name in np.unique(groups)]

    def __len__(self) -> int:
        return 0 if self.names is None else len(self.names)

    def encode(self, groups: NDArray[Any] | None, n_samples: int) -> Indices:
        """Return the number of each instance's group, all 0 where there are none."""
        if (groups is None) != (self.names is None):
            was, is_now = ("with", "no groups") if groups is None else ("without", "groups")
            raise InputError(
                f"`{self.argument}` must be given as when fitting, which was {was} groups, got "
                f"{is_now}."
            )
        if groups is None or self.names is None:
            return np.zeros(n_samples, dtype=np.intp)
        position = {name: code for code, name in enumerate(self.names)}
        seen, inverse = np.unique(groups, return_inverse=True)
        for name in seen:
            if str(name) not in position:
                what = self.argument.removesuffix("s").replace("_", " ")
                raise unknown_name(what, str(name), self.names)
        return np.array([position[str(name)] for name in seen], dtype=np.intp)[inverse]


def check_groups(groups: Any, dist: Any, n_samples: int, argument: str) -> NDArray[Any] | None:
    """Return the groups as an (n,) array of strings; a string is a column of the table."""
    if groups is None:
        return None
    if isinstance(groups, str):
        if groups not in getattr(dist, "columns", ()):
            raise InputError(
                f"`{argument}` must be one group for each instance, or the name of a column of the "
                f"table, got {groups!r}, which is no column."
            )
        groups = dist[groups]
    names = np.asarray(groups).astype(str)
    if names.shape != (n_samples,):
        raise InputError(
            f"`{argument}` must have one group for each of the {n_samples} instances, got shape "
            f"{names.shape}."
        )
    return names
