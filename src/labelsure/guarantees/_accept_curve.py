"""`AcceptCurve`: how accurate the most confident predictions are, without any guarantee."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from labelsure._runtime.notebook import count, make_html
from labelsure._runtime.plots import plot_accept_curve
from labelsure._runtime.typing import Floats
from labelsure.guarantees._policy import read_scored
from labelsure.metrics.mean_tests import wilson_interval
from labelsure.metrics.registry import check_level

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

N_SHOWN = 10  # rows in a notebook, from the first to the last


@dataclass(frozen=True, eq=False)
class AcceptCurve:
    """The mean accuracy of what is accepted, from the most confident prediction on.

    Parameters
    ----------
    table
        One row for each distinct score, the highest first: `threshold` (accept scores of at least
        this), `n_accepted`, `share` (of all), `accuracy` (mean over the accepted),
        `spread` (their standard deviation) and `area` (the curve's mean up to this share).

    Examples
    --------
    >>> from labelsure import accept_curve
    >>> curve = accept_curve([0.9, 0.5, 0.5, 0.1], [1, 1, 0, 0])
    >>> round(curve.area, 3)
    0.708
    """

    table: pd.DataFrame

    @property
    def area(self) -> float:
        """The area under the whole curve: the higher, the better the order; NaN if it is empty."""
        return float(self.table["area"].iloc[-1]) if len(self.table) else float("nan")

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Return between what each mean accuracy lies, (low, high), one for each row.

        Each interval holds for its own row, not for the whole curve at once.

        Parameters
        ----------
        level
            How often such an interval covers (Wilson's, with the variance that is there).
        """
        table = self.table
        return wilson_interval(
            table["accuracy"], table["spread"], table["n_accepted"], check_level(level)
        )

    def plot(
        self,
        ax: Axes | None = None,
        *,
        target: float | None = None,
        label: str | None = None,
        level: float = 0.95,
    ) -> Axes:
        """Draw the mean accuracy of the accepted against their share, with its uncertainty.

        At the left end few are accepted: the band around the curve is wide there, and the stretch
        with fewer than 30 is hatched.

        Parameters
        ----------
        ax
            Where to draw; several curves can share it. None makes a new figure.
        target
            A mean accuracy to mark, and how many can be accepted for it. That is what happened on
            these instances and guarantees nothing: `AcceptPolicy` does.
        label
            For the legend; None shows the area under the curve.
        level
            How often the band covers a mean.
        """
        shown = "nothing to accept" if self.table.empty else f"area {self.area:.3f}"
        return plot_accept_curve(
            self.table,
            self.interval(level),
            label=shown if label is None else label,
            interval_label=f"{level:.0%} interval of the mean",
            target=target,
            ax=ax,
        )

    def _repr_html_(self) -> str:
        if self.table.empty:
            return make_html("An acceptance curve of no instances.")
        last = len(self.table) - 1
        some = self.table.iloc[np.unique(np.linspace(0, last, N_SHOWN).round().astype(int))]
        n_samples = count(int(self.table["n_accepted"].iloc[-1]), "instance")
        return make_html(f"Area under the acceptance curve {self.area:.3f} ({n_samples}).", some)


def accept_curve(score: ArrayLike, accuracy: ArrayLike) -> AcceptCurve:
    """Compute the accuracy-rejection curve: mean accuracy against the share accepted.

    Predictions with equal scores cannot be told apart and are accepted together: one row for each
    distinct score. The curve is a step function: an instance counts with the mean accuracy of the
    smallest accepted set that it is in.

    Parameters
    ----------
    score
        (n,) any confidence, larger being surer.
    accuracy
        (n,) accuracies in [0, 1].

    Returns
    -------
    AcceptCurve
        With a `table`, the `area` under the curve, and `plot`.

    See Also
    --------
    AcceptPolicy : A threshold with a guarantee.
    reliability : Estimated against actual accuracy.

    Notes
    -----
    Also called accuracy-rejection or risk-coverage curve: El-Yaniv and Wiener (2010), On the
    foundations of noise-free selective classification, Journal of Machine Learning Research 11.

    Examples
    --------
    >>> accept_curve([0.9, 0.5, 0.5, 0.1], [1, 1, 0, 0]).table.round(3)
       threshold  n_accepted  share  accuracy  spread   area
    0        0.9           1   0.25     1.000   0.000  1.000
    1        0.5           3   0.75     0.667   0.471  0.778
    2        0.1           4   1.00     0.500   0.500  0.708
    """
    import pandas as pd

    score, accuracy = read_scored(score, accuracy)
    order = np.argsort(-score, kind="stable")
    ranked, total = score[order], np.cumsum(accuracy[order])
    squares = np.cumsum(accuracy[order] ** 2)
    last = np.flatnonzero(np.append(ranked[1:] != ranked[:-1], True)[: len(score)])
    n_accepted = last + 1
    means = total[last] / n_accepted
    variances = np.maximum(squares[last] / n_accepted - means**2, 0.0)  # rounding goes below 0
    sizes = np.diff(n_accepted, prepend=0)
    return AcceptCurve(
        pd.DataFrame(
            {
                "threshold": ranked[last],
                "n_accepted": n_accepted,
                "share": n_accepted / max(len(score), 1),
                "accuracy": means,
                "spread": np.sqrt(variances),
                "area": np.cumsum(sizes * means) / n_accepted,
            }
        )
    )
