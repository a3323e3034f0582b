"""The coefficients of a ridge model as a table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from labelsure.estimation._groups import Levels
from labelsure.estimation._models import RidgeModel
from labelsure.estimation._responses import RESPONSES

if TYPE_CHECKING:
    import pandas as pd

_CLASSES = {2: ("correct",), 4: ("tp", "fp", "fn", "tn")}


def coefficient_table(
    model: RidgeModel, features: tuple[str, ...], slopes: Levels, offsets: Levels
) -> pd.DataFrame:
    """Return one row for each coefficient, in the features' own units."""
    import pandas as pd

    named = list(_names(features, slopes, offsets))
    raw = model.coefficients / model.scales
    rows = [
        (*name, response, value)
        for response, values in zip(_CLASSES[RESPONSES[model.response].n_classes], raw, strict=True)
        for name, value in zip(named, values, strict=True)
    ]
    return pd.DataFrame(rows, columns=["kind", "group", "feature", "response", "value"])


def _names(
    features: tuple[str, ...], slopes: Levels, offsets: Levels
) -> Iterator[tuple[str, str, str]]:
    for group in slopes.names or [""]:
        for feature in features:
            yield "slope", group, feature
    for group in slopes.names or []:
        yield "slope offset", group, ""
    for group in offsets.names or []:
        yield "offset", group, ""
    yield "intercept", "", ""
