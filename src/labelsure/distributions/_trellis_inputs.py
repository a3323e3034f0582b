"""What a trellis is made of: parents, memory and conditionals, checked."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable
from typing import Any

import numpy as np

from labelsure._runtime import limits as _limits
from labelsure._runtime.typing import Floats
from labelsure.distributions._probabilities import as_floats, check_unit_interval
from labelsure.errors import InputError, TooLargeError

FIX = "Pass probabilities, not logits."

MAX_PARENTS = 3
"""The left, the upper and the upper-left neighbour."""


def check_parents(parents: Iterable[Iterable[int]], n_labels: int) -> list[list[int]]:
    try:
        positions = [list(some) for some in parents]
    except TypeError:
        positions = []
    if len(positions) != n_labels:
        raise InputError(
            f"`parents` must have one sequence of positions for each of the {n_labels} positions, "
            f"got {reprlib.repr(parents)}. A label without parents has an empty one: `()`."
        )
    for j, some in enumerate(positions):
        if len(some) > MAX_PARENTS:
            raise InputError(
                f"`parents[{j}]` must have at most {MAX_PARENTS} positions, got {len(some)}. "
                "Keep the parents that matter most."
            )
        earlier = all(isinstance(p, (int, np.integer)) and 0 <= p < j for p in some)
        if not earlier or len(set(some)) < len(some):
            raise InputError(
                f"`parents[{j}]` must be distinct positions before {j}, got {some}. "
                "Parents are positions in `order`, not labels."
            )
    return positions


def check_frontier(n_labels: int, memory: int) -> None:
    bytes_per_state = 9 * n_labels
    if bytes_per_state * 2**memory > _limits.FRONTIER_BYTES:
        allowed = (_limits.FRONTIER_BYTES // bytes_per_state).bit_length() - 1
        raise TooLargeError(
            f"`parents` reach back {memory} positions: with {n_labels} labels, 2**{memory} states "
            f"do not fit in the {_limits.FRONTIER_BYTES // 2**20} MiB that a thread may take. Use "
            f"parents at most {allowed} positions back: a grid of width {allowed}, or "
            f"{allowed - 1} with upper-left neighbours."
        )


def pack_conditionals(conditionals: Iterable[Any], parents: list[list[int]]) -> Floats:
    """Return the conditionals as one (n, L, columns) array, columns that are not used being 0."""
    tables = [as_floats(table, f"conditionals[{j}]") for j, table in enumerate(conditionals)]
    if len(tables) != len(parents):
        raise InputError(
            f"`conditionals` must have one array for each of the {len(parents)} positions, got "
            f"{len(tables)}. Its rows are the instances, its columns the ways the parents can be."
        )
    n_samples = tables[0].shape[0] if tables[0].ndim else 0
    packed = np.zeros((n_samples, len(tables), 2 ** max(map(len, parents))))
    for j, (table, some) in enumerate(zip(tables, parents, strict=True)):
        shape = (n_samples, 2 ** len(some))
        if table.shape != shape:
            raise InputError(
                f"`conditionals[{j}]` must have shape {shape}: a row for each instance, a column "
                f"for every way that its {len(some)} parents can be, got shape {table.shape}."
            )
        packed[:, j, : shape[1]] = check_unit_interval(table, f"conditionals[{j}]", fix=FIX)
    return packed
