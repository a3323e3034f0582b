"""Several chains over the same instances, and what each has of their mixture."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b
from typing import overload

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from labelsure._runtime.typing import Floats, Integers, Labelsets, Rows
from labelsure.distributions._chain_links import Chain
from labelsure.distributions._mixture import find_owners


class WeightedChains(Sequence[Chain]):
    """The chains of a mixture with their shares.

    The mixture is the mean over chains of share * P(y). Equal weights are shares of 1, with which
    everything is what it is without weights, to the last bit.

    Parameters
    ----------
    chains
        m of them over the same n instances and labels.
    shares
        (n, m) each weight times m; None means that all chains have the same.
    """

    def __init__(self, chains: Sequence[Chain], shares: Floats | None = None) -> None:
        self._chains = list(chains)
        self.is_equal = shares is None
        equal = np.broadcast_to(1.0, (self.n_samples, len(self)))
        self.shares: Floats = equal if shares is None else shares

    @overload
    def __getitem__(self, place: int) -> Chain: ...
    @overload
    def __getitem__(self, place: slice) -> list[Chain]: ...
    def __getitem__(self, place: int | slice) -> Chain | list[Chain]:
        return self._chains[place]

    def __len__(self) -> int:
        return len(self._chains)

    def __iter__(self) -> Iterator[Chain]:
        return iter(self._chains)

    @property
    def n_samples(self) -> int:
        """The number of instances."""
        return self._chains[0].n_samples

    @property
    def log_shares(self) -> Floats:
        """(n, m), minus infinity for a chain without weight."""
        with np.errstate(divide="ignore"):
            return np.log(self.shares)

    def log_prob(self, Y: Labelsets, rows: Rows) -> Floats:
        """Return the log of the mixture's P(y) for pairs of a labelset and its instance, (k,)."""
        log_shares = self.log_shares
        by_chain = [
            chain.take(rows).log_prob(Y) + log_shares[rows, m] for m, chain in enumerate(self)
        ]
        return np.asarray(logsumexp(by_chain, axis=0) - np.log(len(self)))

    def row_keys(self) -> NDArray[np.uint64]:
        """Return a number of 64 bits for what each instance is, (n,).

        It is a digest of the shares and of the log-odds along the path on which no label is set,
        in single precision: equal instances whose log-odds differ by rounding have the same.
        """
        none = np.zeros((self.n_samples, self._chains[0].order.size), dtype=np.int8)
        logits = [chain.link_logits(none) for chain in self._chains]
        known = np.concatenate([self.shares, *logits], axis=1).astype(np.float32) + 0.0  # no -0.0
        digests = (blake2b(row.tobytes(), digest_size=8).digest() for row in known)
        return np.frombuffer(b"".join(digests), dtype=np.uint64)

    def take(self, rows: Rows) -> WeightedChains:
        """Return the chains for some of their instances."""
        taken = [chain.take(rows) for chain in self._chains]
        return WeightedChains(taken, None if self.is_equal else self.shares[rows])

    def change(self, function: Callable[[Chain], Chain]) -> WeightedChains:
        """Return what a function makes of each chain, with the same shares."""
        shares = None if self.is_equal else self.shares
        return WeightedChains([function(chain) for chain in self._chains], shares)

    def owners_of_each(self, size: int) -> Integers:
        """Return which chain each draw comes from, (n, m, size), where each gives `size`."""
        of_chain = np.arange(len(self))[:, np.newaxis]
        return np.broadcast_to(of_chain, (self.n_samples, len(self), size))

    def choose_owners(self, uniforms: Floats) -> Integers:
        """Return which chain each draw comes from, by its weight.

        The weights of an instance, one after the other, are cut into m strata of the same size.
        With equal weights the strata are the chains.

        Parameters
        ----------
        uniforms
            (n, m, size) numbers in [0, 1): where in its stratum each draw is.
        """
        n_strata = uniforms.shape[1]
        places = (np.arange(n_strata)[:, np.newaxis] + uniforms) / n_strata
        return find_owners(self.shares, places.reshape(len(places), -1)).reshape(uniforms.shape)
