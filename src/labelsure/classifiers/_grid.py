"""The geometry of a trellis: places in a grid, their parents, and which label goes where."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from labelsure._typing import Floats, Indices, Labelsets

Parents = tuple[tuple[int, ...], ...]
"""For each position the earlier positions that its label depends on."""

MAX_DEFAULT_WIDTH = 12  # the exact answers cost 2**width


def _no_parents(row: int, column: int, width: int) -> list[tuple[int, int]]:
    return []


def _left_and_upper(row: int, column: int, width: int) -> list[tuple[int, int]]:
    return [(row, column - 1), (row - 1, column)]


def _left_upper_and_diagonal(row: int, column: int, width: int) -> list[tuple[int, int]]:
    return [*_left_and_upper(row, column, width), (row - 1, column - 1)]


DENSITIES: dict[int, Callable[[int, int, int], list[tuple[int, int]]]] = {
    0: _no_parents,
    1: _left_and_upper,
    2: _left_upper_and_diagonal,
}
"""For each density the neighbours that a place depends on, before the border is taken off."""


def default_width(n_labels: int) -> int:
    """Return the side of the square that the labels fill, at most 12."""
    return min(max(1, math.isqrt(n_labels)), MAX_DEFAULT_WIDTH)


def grid_parents(n_labels: int, width: int, density: int) -> Parents:
    """Return the parents of each position of a grid that is filled row by row.

    Examples
    --------
    >>> grid_parents(4, width=2, density=1)
    ((), (0,), (0,), (2, 1))
    """
    neighbours = DENSITIES[density]
    return tuple(
        tuple(
            row * width + column
            for row, column in neighbours(*divmod(j, width), width)
            if row >= 0 and column >= 0
        )
        for j in range(n_labels)
    )


def mutual_information(Y: Labelsets, sample_weight: Floats | None = None) -> Floats:
    """Return the mutual information of every pair of labels in nats, (L, L).

    Parameters
    ----------
    Y
        (n, L) zeros and ones.
    sample_weight
        (n,) weights of the rows.
    """
    weights = np.ones(len(Y)) if sample_weight is None else sample_weight
    ones = Y.astype(np.float64)
    both = (ones * weights[:, np.newaxis]).T @ ones / weights.sum()
    p = np.diag(both).copy()
    cells = [
        (both, np.outer(p, p)),
        (p[:, np.newaxis] - both, np.outer(p, 1 - p)),
        (p - both, np.outer(1 - p, p)),
        (1 - p[:, np.newaxis] - p + both, np.outer(1 - p, 1 - p)),
    ]
    return sum((_cell_information(joint, apart) for joint, apart in cells), np.zeros_like(both))


def _cell_information(joint: Floats, apart: Floats) -> Floats:
    # Differences of equal shares leave rounding of either sign; a share of 1e-15 is no row.
    seen = (joint > 1e-14) & (apart > 0)
    ratio = np.divide(joint, apart, out=np.ones_like(joint), where=seen)
    return np.where(seen, joint * np.log(ratio), 0.0)


def place_by_information(information: Floats, parents: Parents, corner: int) -> Indices:
    """Return the label at each position: the one that its parents say most about.

    Parameters
    ----------
    information
        (L, L) mutual information.
    parents
        The parents of each position.
    corner
        The label at position 0.
    """
    order = [corner]
    unused = [label for label in range(len(information)) if label != corner]
    for above in parents[1:]:
        placed = [order[position] for position in above]
        # On a tie the lowest index, and rounding must not make one.
        gains = np.round(information[np.ix_(unused, placed)].sum(axis=1), 12)
        order.append(unused.pop(int(gains.argmax())))
    return np.array(order, dtype=np.intp)
