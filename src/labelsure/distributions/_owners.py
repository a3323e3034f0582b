"""Which part of a mixture each draw comes from."""

from __future__ import annotations

import numpy as np

from labelsure._runtime.typing import Floats, Integers

BELOW_ONE = float(np.nextafter(1.0, 0.0))


def find_owners(shares: Floats, places: Floats) -> Integers:
    """Return the part that each number in [0, 1) selects by the weights, (n, size)."""
    ends = np.cumsum(shares, axis=1)
    ends = ends / ends[:, -1:]  # the last ones are 1: nothing lies beyond a part with weight
    owners = np.empty(places.shape, dtype=np.intp)
    places = np.minimum(places, BELOW_ONE)  # a stratum of the largest uniforms may round to 1
    for mine, row, place in zip(owners, ends, places, strict=True):
        mine[:] = np.searchsorted(row, place, side="right")
    return owners


def draw_owners(
    shares: Floats | None, n_parts: int, shape: tuple[int, int], generator: np.random.Generator
) -> Integers:
    """Draw the part that each of (n, size) draws comes from; `shares` are None if all are equal."""
    if shares is None:
        return generator.integers(n_parts, size=shape)
    return find_owners(shares, generator.random(shape))
