"""Streams of random numbers: each instance has its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from labelsure._typing import Floats, Indices


class DrawStreams:
    """Uniform random numbers for some instances of a batch.

    What an instance gets depends on the seed and on its own number alone: not on the instances
    that are drawn with it, nor on how many threads there are.

    Parameters
    ----------
    seed
        A whole number >= 0.
    rows
        The numbers of the instances.

    Examples
    --------
    >>> one, other = DrawStreams(0, [3, 4]), DrawStreams(0, [4])
    >>> bool((one.uniforms((5,))[1] == other.uniforms((5,))[0]).all())
    True
    """

    def __init__(self, seed: int, rows: Sequence[int] | Indices) -> None:
        word = 2**64
        self.rows = np.asarray(rows, dtype=np.intp)
        self._streams = [
            [
                np.random.Generator(np.random.Philox(key=[seed % word, 2 * int(row) + kind]))
                for kind in (0, 1)
            ]
            for row in rows
        ]

    def __getitem__(self, rows: Any) -> DrawStreams:
        taken = DrawStreams(0, [])
        taken.rows = self.rows[rows]
        taken._streams = [self._streams[i] for i in np.arange(len(self._streams))[rows]]
        return taken

    def uniforms(self, shape: tuple[int, ...], *, squared: bool = False) -> Floats:
        """Return the next numbers of each instance, (n, *shape), for one of two kinds of draws."""
        numbers = np.empty((len(self._streams), *shape))
        for mine, kinds in zip(numbers, self._streams, strict=True):
            kinds[int(squared)].random(out=mine)
        return numbers
