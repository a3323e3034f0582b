"""Parts of a report that cannot be made: a sentence takes their place, all others are written."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from labelsure.errors import LabelsureError

Part = TypeVar("Part")


class LeftOut:
    """The parts of a report that could not be made, by the reason.

    Examples
    --------
    >>> left_out = LeftOut()
    >>> left_out.make_or_say("sizes", lambda: 3, str)
    3
    >>> left_out.sentences
    []
    """

    def __init__(self) -> None:
        self._names: dict[str, list[str]] = {}

    def make_or_say(self, name: str, make: Callable[[], Part], say: Callable[[str], Part]) -> Part:
        """Return a part, or what says why there is none.

        Only our own errors say something that a reader of the report can use; any other is a
        mistake of ours and must be seen.

        Parameters
        ----------
        name
            Of the part.
        make
            Makes it.
        say
            Makes what stands in its place, from the reason.
        """
        try:
            return make()
        except LabelsureError as error:
            self._names.setdefault(str(error), []).append(name)
            return say(str(error))

    @property
    def sentences(self) -> list[str]:
        """For each reason the parts that could not be made."""
        return [
            f"Could not be made: {', '.join(names)}. {reason}"
            for reason, names in self._names.items()
        ]
