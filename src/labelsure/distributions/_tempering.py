"""What distributions are asked about temperatures: sharper or flatter ones, and their links."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from labelsure._typing import Floats, Labelsets
from labelsure.distributions import _probabilities as arguments

if TYPE_CHECKING:
    from labelsure.distributions._bridge import LabelsetDistribution


class TemperingQuestions:
    """The part of a `LabelsetDistribution` that is about temperatures."""

    def temper(self: Any, power: float, *, links: bool = False) -> LabelsetDistribution:
        """Return distributions that are sharper (power above 1) or flatter (below 1) than these.

        Parameters
        ----------
        power
            Above 0; 1 changes nothing.
        links
            False raises the probability of every labelset to the power, and divides by the sum:
            `labelsure.JointTemperature` fits it. True multiplies the log-odds of each label given
            those before it: `labelsure.LinkTemperature` fits that.
        """
        power = arguments.check_power(power)
        if power == 1:
            return self
        new = self._temper_links(power) if links else self._temper(power)
        return new.with_index(self._index)

    def link_logits(self: Any, Y: Any) -> Floats:
        """Return the log-odds of each label's value in Y, given those before: (n, n_chains, L)."""
        return self._link_logits(self.align(Y, "Y"))

    # What has a default, for kinds that have no way of their own.

    def _temper(self: Any, power: float) -> LabelsetDistribution:
        from labelsure.distributions._dense import temper_all  # a kind is above

        return temper_all(self, power)

    def _temper_links(self, power: float) -> LabelsetDistribution:
        raise arguments.without_links(self)

    def _link_logits(self, Y: Labelsets) -> Floats:
        raise arguments.without_links(self)
