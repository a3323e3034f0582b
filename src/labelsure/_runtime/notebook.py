"""Notebook display of results: a sentence, and the first rows of a table."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, ClassVar

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

N_ROWS = 5
"""Number of rows of a long table in a notebook."""

MAX_COLUMNS = 20


def make_html(sentence: str, table: pd.DataFrame | None = None) -> str:
    """HTML of a sentence and a table, with all names escaped.

    Examples
    --------
    >>> make_html("Labels <b> and <i>.")
    '<p>Labels &lt;b&gt; and &lt;i&gt;.</p>'
    """
    shown = f"<p>{escape(sentence)}</p>"
    if table is None:
        return shown
    return shown + table.to_html(border=0, max_cols=MAX_COLUMNS, float_format="{:.3f}".format)


def list_names(names: Sequence[str], at_most: int = 5) -> str:
    """First names, separated by commas, and the number of further names.

    Examples
    --------
    >>> list_names(["a", "b"]), list_names("abcdefg"), list_names(["a", "b", "c"], 2)
    ('a, b', 'a, b, c, d, e and 2 more', 'a, b and 1 more')
    """
    n_more = len(names) - at_most
    return ", ".join(names[:at_most]) + (f" and {n_more:,} more" if n_more > 0 else "")


def count(number: int, noun: str) -> str:
    """A number with its noun in the singular or the plural.

    Examples
    --------
    >>> count(1, "instance"), count(2000, "label")
    ('1 instance', '2,000 labels')
    """
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


class ColumnResult:
    """A frozen dataclass whose arrays and tuples are the columns of a table."""

    _index: ClassVar[str | None] = None
    """The field that names the rows."""

    def to_frame(self) -> pd.DataFrame:
        """Table with a column for each array."""
        import pandas as pd

        values = {n: v for n, v in vars(self).items() if isinstance(v, (np.ndarray, tuple))}
        index = values.pop(self._index) if self._index else None
        return pd.DataFrame(values, None if index is None else pd.Index(index, name=self._index))

    def __repr__(self) -> str:
        return repr(self.to_frame())

    def _repr_html_(self) -> str:
        return make_html(str(self), self.to_frame())


class SentenceMixin:
    """Display of a fitted object by a sentence about the result, its attribute `message_`."""

    _shown: tuple[str, ...] = ()
    """Fitted attributes that notebooks show as a table, if none of them is None."""

    def __str__(self) -> str:
        """The sentence about the result; the parameters before `fit`."""
        return getattr(self, "message_", repr(self))

    def _repr_html_(self) -> str:
        import pandas as pd

        values = {name.rstrip("_"): getattr(self, name, None) for name in self._shown}
        if not values or None in values.values():
            return make_html(str(self))
        return make_html(str(self), pd.DataFrame(values, [""]))

    def _repr_mimebundle_(self, **kwargs: object) -> dict[str, str]:
        # scikit-learn's would show the parameters only.
        return {"text/plain": str(self), "text/html": self._repr_html_()}
