"""What `fit` may be given as y: labelsets, or a vector of two classes as the case of one label."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import type_of_target

from labelsure._typing import Labelsets
from labelsure.errors import InputError
from labelsure.labelsets import check_label_names, check_labelsets, names_in


@dataclass(frozen=True)
class Targets:
    """Y as labelsets, and what is needed to give predictions the form that Y had.

    Parameters
    ----------
    labelsets
        (n, L) zeros and ones.
    classes
        For a vector its two values; for labelsets a list with [0, 1] of Y's type for each label.
    """

    labelsets: Labelsets
    classes: NDArray[Any] | list[NDArray[Any]]


def read_targets(Y: Any) -> Targets:
    """Return Y as labelsets, or say why it is none.

    Parameters
    ----------
    Y
        An array that scikit-learn's validation has passed: numbers or strings, maybe sparse.
    """
    if Y.ndim == 1:
        classes = _two_classes(Y)
        return Targets((classes[1] == Y).astype(np.int8)[:, np.newaxis], classes)
    labelsets = check_labelsets(Y, name="y")
    dtype = Y.dtype if Y.dtype.kind in "biuf" else np.dtype(np.int64)
    return Targets(labelsets, [np.array([0, 1], dtype=dtype) for _ in range(labelsets.shape[1])])


def _two_classes(y: NDArray[Any]) -> NDArray[Any]:
    kind = type_of_target(y, input_name="y")
    if kind not in ("binary", "multiclass"):
        raise InputError(
            f"Unknown label type: {kind}. `y` must be zeros and ones of shape (n_samples, "
            "n_labels), or a vector of two classes."
        )
    classes = np.unique(y)
    if kind == "multiclass":
        raise InputError(
            f"Unknown label type: {kind}. Only binary classification is supported. `y` as a "
            f"vector must have two classes, got {len(classes)}. For several labels at once pass "
            "zeros and ones of shape (n_samples, n_labels)."
        )
    if len(classes) == 2:
        return classes
    if classes.dtype.kind in "biuf" and classes[0] in (0, 1):
        return np.array([0, 1], dtype=classes.dtype)
    raise InputError(
        f"`y` as a vector must have two classes, got only {classes[0]!r}. Which class is missing "
        "is known for zeros and ones alone: pass those."
    )


def label_names_of(Y: Any, n_labels: int) -> tuple[str, ...]:
    """Return the column names of a DataFrame, the name of a Series, otherwise y0, y1, ..."""
    names = names_in(Y)
    series_name = getattr(Y, "name", None)
    if names is None and series_name is not None:
        names = [str(series_name)]
    return check_label_names(names, n_labels)
