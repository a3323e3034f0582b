"""Streams of random numbers: each instance has its own, by what it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelsure._runtime.typing import Floats, Indices


class DrawStreams:
    """Uniform random numbers for some instances of a batch.

    What an instance gets depends on the seed and on its key alone: not on where it stands, nor on
    the instances that are drawn with it, nor on how many threads there are.

    Parameters
    ----------
    seed
        A whole number >= 0.
    rows
        The numbers of the instances.
    keys
        What each of them is, as a number of 64 bits: equal instances have equal keys.

    Examples
    --------
    >>> one, other = DrawStreams(0, [3, 4], [17, 5]), DrawStreams(0, [8], [5])
    >>> bool((one.uniforms((5,))[1] == other.uniforms((5,))[0]).all())
    True
    """

    def __init__(
        self, seed: int, rows: Sequence[int] | Indices, keys: Sequence[int] | NDArray[np.uint64]
    ) -> None:
        word = 2**64
        self.rows = np.asarray(rows, dtype=np.intp)
        self._streams = [
            [
                np.random.Generator(np.random.Philox(key=[(seed + kind * 2**63) % word, int(key)]))
                for kind in (0, 1)
            ]
            for key in keys
        ]

    def __getitem__(self, rows: Any) -> DrawStreams:
        taken = DrawStreams(0, [], [])
        taken.rows = self.rows[rows]
        taken._streams = [self._streams[i] for i in np.arange(len(self._streams))[rows]]
        return taken

    def uniforms(self, shape: tuple[int, ...], *, squared: bool = False) -> Floats:
        """Return the next numbers of each instance, (n, *shape), for one of two kinds of draws."""
        numbers = np.empty((len(self._streams), *shape))
        for mine, kinds in zip(numbers, self._streams, strict=True):
            kinds[int(squared)].random(out=mine)
        return numbers
