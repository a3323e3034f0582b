"""The types of arrays and arguments that signatures name, each defined once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Indices = NDArray[np.intp]
"""Row numbers, positions of labels, numbers of groups."""

Mask = NDArray[np.bool_]
Labelsets = NDArray[np.int8]
"""Zeros and ones, the last axis running over the labels. Of very many labels a
`scipy.sparse.csr_array` of ones, which is no array to mypy: `labelsets` has functions of both."""

Array = NDArray[Any]
"""Array of any type; `Floats` and the others where the type is known."""

Rows = slice | Indices
"""Selector of some instances of a batch."""

Names = Iterable[object] | None
"""Label names as passed by users; None where labels have none."""

LabelNames = tuple[str, ...] | None
"""Checked label names; None where labels have none."""

FeaturesLike = Any
"""X as users pass it: an array, a DataFrame, a scipy sparse matrix, a list of dicts, a list of
texts, or whatever the wrapped estimator takes."""

Features = Any
"""X once it is read: an array, a sparse array, or any input of a wrapped foreign estimator."""

FrameLike = Any
"""A table of pandas, Polars or Arrow; `as_table` makes it a DataFrame."""

LabelsetsLike = Any
"""Labelsets as users pass them, read by `labelsets`: zeros and ones, a DataFrame, lists of names,
sparse rows, `Decisions`, or one class for each instance."""

Estimator = Any
"""An estimator with the methods of scikit-learn, which has no types."""

CvLike = Any
"""Calibration rows as users choose them: a share of the rows, a number of folds, or a splitter of
scikit-learn."""

RowsLike = int | slice | Sequence[int] | NDArray[np.intp] | NDArray[np.int64] | NDArray[np.bool_]
"""Some rows of a batch as users pick them: a position, a slice, positions, or a mask."""

Settings = dict[str, Any]
"""Keyword arguments that are passed on to a function."""

JsonObject = dict[str, Any]
"""JSON object, such as settings, a model card, a manifest or the data of a page."""

JsonValue = Any
"""Parsed JSON: an object, a list, a text, a number, a truth value or None."""

Parameters = Any
"""Fitted parameters of one kind of recalibration, a tuple in an order of its own."""

RowIndex: TypeAlias = "pd.Index | None"
"""Row names; None where rows have none."""

Column: TypeAlias = "pd.Series[Any]"
"""A column of a table that users pass, with values of any type."""

RandomState = int | np.random.Generator | np.random.RandomState | None
AnyPath = str | PathLike[str]
