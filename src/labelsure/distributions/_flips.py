"""A labelset and all that differ from it in one label: what searches for better ones ask about."""

from __future__ import annotations

import numpy as np

from labelsure._runtime.typing import Labelsets


def with_flips(Y: Labelsets) -> Labelsets:
    """Return each labelset, followed by the same with one label flipped, (n, 1 + L, L).

    Examples
    --------
    >>> with_flips(np.array([[0, 1]], dtype=np.int8))
    array([[[0, 1],
            [1, 1],
            [0, 0]]], dtype=int8)
    """
    n_labels = Y.shape[1]
    change = np.concatenate([np.zeros((1, n_labels)), np.eye(n_labels)]).astype(np.int8)
    return Y[:, np.newaxis] ^ change


def are_flips(guesses: Labelsets) -> bool:
    """Whether (n, g, L) guesses are what `with_flips` makes of the first of each instance."""
    _, n_guesses, n_labels = guesses.shape
    return n_guesses == n_labels + 1 and np.array_equal(guesses, with_flips(guesses[:, 0]))
