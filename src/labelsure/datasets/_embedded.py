"""Data sets that come with ordinary dependencies: nothing is fetched."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd

from labelsure.datasets._dataset import Dataset, checksum_of
from labelsure.datasets._files import decompressed, read_bytes
from labelsure.datasets._simulated import make_labelsets
from labelsure.datasets._tabular import read_csv
from labelsure.errors import DataError

DIGIT_TRAITS = {
    "even": {0, 2, 4, 6, 8},
    "prime": {2, 3, 5, 7},
    "at_least_five": {5, 6, 7, 8, 9},
    "has_loop": {0, 6, 8, 9},
    "has_straight_stroke": {1, 2, 4, 5, 7},
}
"""The digits that have each trait, as they are written in scikit-learn's images.

Four is written with an open top as often as with a closed one, and counts as having no loop. Two
has a straight base and five a straight top; the stem of nine is a curve.
"""


def load_digits() -> Dataset:
    """Return scikit-learn's 1797 handwritten digits, 8 x 8 pixels, with their traits as labels."""
    from sklearn import datasets

    bunch = datasets.load_digits()
    columns = [np.isin(bunch.target, list(digits)) for digits in DIGIT_TRAITS.values()]
    Y = np.stack(columns, axis=1).astype(np.int8)
    return Dataset(
        pd.DataFrame(bunch.data, columns=bunch.feature_names),
        Y,
        tuple(DIGIT_TRAITS),
        name="digits",
        source="scikit-learn",
        checksum=checksum_of(bunch.data, Y),
    )


def load_yeast() -> Dataset:
    """Return Yeast, 2417 genes with 14 functions, from the package river."""
    try:
        from river.datasets import Yeast
    except ImportError as error:
        raise DataError(
            "`yeast` comes with the package river (0.26 or newer), which is not installed. Run "
            '`pip install "labelsure[data]"`, name a folder that has yeast.arff with `data_dir`, '
            'or pass source="openml".'
        ) from error
    path = Path(Yeast().path)  # type: ignore[no-untyped-call]
    content = read_bytes(path)
    data = read_csv(decompressed(content, path), "Class*", path.name)
    return Dataset(
        data.X,
        data.Y,
        data.label_names,
        name="yeast",
        source=f"river {version('river')}",
        checksum=checksum_of(data.X.to_numpy(), data.Y),
    )


def load_simulated() -> Dataset:
    """Return what `make_labelsets(random_state=0)` makes, without its true distribution."""
    return make_labelsets(random_state=0)[0]
