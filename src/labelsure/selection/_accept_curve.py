"""`accept_curve`: how accurate the most confident predictions are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from labelsure.selection._scores import check_scored

if TYPE_CHECKING:
    import pandas as pd


def accept_curve(score: ArrayLike, accuracy: ArrayLike) -> pd.DataFrame:
    """Return the mean accuracy of what is accepted, from the most confident prediction on.

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
    pandas.DataFrame
        With the columns `threshold` (accept scores of at least this), `n_accepted`, `coverage`
        (as a share of all), `accuracy` (mean over the accepted) and `area` (the curve's mean
        up to this coverage; the last one is the area under the whole curve).

    Examples
    --------
    >>> accept_curve([0.9, 0.5, 0.5, 0.1], [1, 1, 0, 0]).round(3)
       threshold  n_accepted  coverage  accuracy   area
    0        0.9           1      0.25     1.000  1.000
    1        0.5           3      0.75     0.667  0.778
    2        0.1           4      1.00     0.500  0.708
    """
    import pandas as pd

    score, accuracy = check_scored(score, accuracy)
    order = np.argsort(-score, kind="stable")
    ranked, total = score[order], np.cumsum(accuracy[order])
    last = np.flatnonzero(np.append(ranked[1:] != ranked[:-1], True)[: len(score)])
    n_accepted = last + 1
    means = total[last] / n_accepted
    sizes = np.diff(n_accepted, prepend=0)
    return pd.DataFrame(
        {
            "threshold": ranked[last],
            "n_accepted": n_accepted,
            "coverage": n_accepted / max(len(score), 1),
            "accuracy": means,
            "area": np.cumsum(sizes * means) / n_accepted,
        }
    )
