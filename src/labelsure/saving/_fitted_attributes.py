"""Questions about fitted attributes: the rules that a loaded model must keep."""

from __future__ import annotations

from typing import Any

import numpy as np

from labelsure.errors import InputError


def expect(holds: bool, rule: str) -> None:
    """Raise an `InputError` with the rule if it does not hold.

    Parameters
    ----------
    holds
        Whether it does.
    rule
        What must hold, e.g. "`order_` must name every label once".
    """
    if not holds:
        raise InputError(rule)


def is_array(value: Any, shape: tuple[int, ...]) -> bool:
    """Whether a value is an array of finite numbers with that shape.

    Parameters
    ----------
    value
        Anything.
    shape
        As in numpy.
    """
    return (
        isinstance(value, np.ndarray)
        and value.dtype.kind in "iuf"
        and value.shape == shape
        and bool(np.isfinite(value).all())
    )


def is_count(value: Any, least: int = 1) -> bool:
    """Whether a value is a whole number and not below the least.

    Parameters
    ----------
    value
        Anything.
    least
        The smallest that will do.
    """
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    return whole and bool(value >= least)


def are_label_names(names: Any, n_labels: int) -> bool:
    """Whether these are distinct names of so many labels, or None.

    Parameters
    ----------
    names
        Anything.
    n_labels
        How many labels there are.
    """
    if names is None:
        return True
    is_text = isinstance(names, tuple) and all(isinstance(name, str) for name in names)
    return is_text and len(set(names)) == len(names) == n_labels


def check_loaded_labels(model: Any) -> int:
    """Return `n_labels_`, or raise an `InputError` if it does not go with `label_names_`.

    Parameters
    ----------
    model
        A loaded object that is about labels.
    """
    n_labels = model.n_labels_
    expect(is_count(n_labels), "`n_labels_` must be a number of labels")
    expect(
        are_label_names(model.label_names_, n_labels),
        "`label_names_` must be None, or a distinct name for each label",
    )
    return int(n_labels)


def is_number(value: Any, least: float = -np.inf, largest: float = np.inf) -> bool:
    """Whether a value is one finite number within limits.

    Parameters
    ----------
    value
        Anything.
    least, largest
        The limits, which it may reach.
    """
    real = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
    return real and bool(np.isfinite(value)) and bool(least <= value <= largest)
