"""Orders of labels that users choose: a permutation, or the name of a way to make one."""

from __future__ import annotations

from typing import Any

import numpy as np

from labelsure._typing import Indices
from labelsure.errors import InputError


def check_permutation(order: Any, n_labels: int, *, name: str, names: str) -> Indices:
    """Return an order as an array, or say what is wrong with it.

    Parameters
    ----------
    order
        Every label index once.
    n_labels
        How many labels there are.
    name, names
        The argument, and which names it may have instead, for the message.
    """
    try:
        array = np.asarray(order)
    except ValueError:
        array = np.empty(0)
    whole = array.ndim == 1 and array.dtype.kind in "iu"
    if not whole or sorted(array.tolist()) != list(range(n_labels)):
        raise InputError(
            f"`{name}` must be {names} or every label index from 0 to {n_labels - 1} once, "
            f"got {order!r}."
        )
    return array.astype(np.intp)
