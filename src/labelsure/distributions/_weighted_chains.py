"""Several chains over the same instances, and what each has of their mixture."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, overload

import numpy as np

from labelsure._kernels.chain_joints import joint_rows
from labelsure._kernels.threads import for_rows
from labelsure._typing import Floats, Indices, Integers, Rows
from labelsure.distributions._chain_links import Chain, LinearChain, plan_joint
from labelsure.distributions._probabilities import SUM_TOLERANCE, as_floats
from labelsure.errors import InputError


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
        return self.find_owners(places.reshape(len(places), -1)).reshape(uniforms.shape)

    def find_owners(self, places: Floats) -> Integers:
        """Return in whose part of the weights a number in [0, 1) lies, (n, size) of them."""
        ends = np.cumsum(self.shares, axis=1)
        ends = ends / ends[:, -1:]  # the last ones are 1: nothing lies beyond a chain with weight
        owners = np.empty(places.shape, dtype=np.intp)
        for mine, row, place in zip(owners, ends, places, strict=True):
            mine[:] = np.searchsorted(row, place, side="right")
        return owners


def read_weights(weights: Any, n_samples: int, n_chains: int) -> Floats | None:
    """Return the shares that follow from weights, (n, m); None where all are equal.

    Parameters
    ----------
    weights
        (m,) for all instances, or (n, m); None for equal ones.
    n_samples, n_chains
        n and m.
    """
    if weights is None:
        return None
    given = as_floats(weights, "weights")
    if given.shape not in ((n_chains,), (n_samples, n_chains)):
        raise InputError(
            f"`weights` must have shape ({n_chains},), one for each chain, or ({n_samples}, "
            f"{n_chains}), for each instance as well, got {given.shape}."
        )
    if not (given >= 0).all():  # also where one is not a number
        raise InputError("`weights` must be numbers >= 0, got one that is not.")
    totals = given.sum(axis=-1, keepdims=True)
    if (np.abs(totals - 1) > SUM_TOLERANCE[given.dtype]).any():
        at = np.unravel_index(np.abs(totals - 1).argmax(), totals.shape)
        raise InputError(
            f"`weights` must sum to one for each instance, got {totals[at]:.6g}. Divide them by "
            "their sum."
        )
    if (given == given[..., :1]).all():
        return None
    shares = given.astype(np.float64) * (n_chains / totals)
    return np.array(np.broadcast_to(shares, (n_samples, n_chains)))


def write_joints(chains: WeightedChains, P: Floats) -> None:
    """Write the joints of mixtures: of linear chains in one kernel, of others one by one.

    Parameters
    ----------
    chains
        Of n instances.
    P
        (n, 2**L) where to write.
    """
    places: Indices = np.flatnonzero([isinstance(chain, LinearChain) for chain in chains])
    linear = [chain for chain in chains if isinstance(chain, LinearChain)]
    if linear:
        bases = np.stack([chain.base for chain in linear], axis=1)
        shares = chains.shares[:, places] * (len(linear) / len(chains))
        for_rows(joint_rows, len(P), bases, shares, plan_joint(linear), into=[P])
    else:
        P[:] = 0.0
    for m, chain in enumerate(chains):
        if not isinstance(chain, LinearChain):
            P += chain.joint() * chains.shares[:, m : m + 1] / len(chains)
