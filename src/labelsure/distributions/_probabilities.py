"""Input validation of probabilities and random states."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelsure._runtime import limits as _limits
from labelsure._runtime.typing import Array, Floats, Integers, RandomState
from labelsure.errors import InputError
from labelsure.labelsets.foreign import refuse_masked
from labelsure.labelsets.sparse import is_sparse

SUM_TOLERANCE = {np.dtype(np.float32): 1e-4, np.dtype(np.float64): 1e-6}
"""Tolerance of sums of probabilities around one, for rounding."""

ROUNDING = 1e-6
"""A probability this far outside of [0, 1] is rounded: float32 has seven digits, of which sums over
trees or folds lose one."""


def as_floats(values: Any, name: str) -> NDArray[np.floating]:
    """Contiguous array of float32 or float64, without a copy where it is one."""
    refuse_masked(values, name)
    if is_sparse(values):
        raise InputError(
            f"`{name}` must be a dense array, got a {type(values).__name__}. If missing entries "
            f"are 0, pass `{name}.toarray()`."
        )
    try:
        array = np.asarray(without_gradient(values), order="C")
    except ValueError as error:
        lengths = [len(row) if hasattr(row, "__len__") else 1 for row in values]
        odd = next((i for i, length in enumerate(lengths) if length != lengths[0]), None)
        where = "" if odd is None else f": {lengths[0]} in row 0, {lengths[odd]} in row {odd}"
        raise InputError(
            f"`{name}` must be rectangular, an array of numbers, got rows of different "
            f"lengths{where}."
        ) from error
    if array.dtype.name == "bfloat16":  # of JAX
        array = array.astype(np.float32)
    if array.dtype in SUM_TOLERANCE:
        return array
    is_object = array.dtype == object and array.size  # e.g. of a frame with nullable columns
    if is_object and all(isinstance(value, Real) for value in array.flat):
        return array.astype(np.float64)
    if array.dtype.kind not in "biuf":
        raise InputError(
            f"`{name}` must be an array of real numbers, got dtype {array.dtype}. "
            "Convert it first, e.g. `np.asarray(..., dtype=float)`."
        )
    return array.astype(np.float64)


def without_gradient(source: Any) -> Any:
    """Tensor as a NumPy array, detached from gradient and device; other input as it is."""
    if not hasattr(source, "detach"):
        return source
    tensor = source.detach().cpu()
    if str(getattr(tensor, "dtype", "")).endswith("bfloat16"):
        tensor = tensor.float()
    return tensor.numpy() if hasattr(tensor, "numpy") else tensor


def clip_rounding(values: Array) -> Array:
    """Values clipped to [0, 1] if only rounding moved some outside; others as they are.

    Examples
    --------
    >>> clip_rounding(np.array([1 + 1e-7, 0.5])), clip_rounding(np.array([1.1, 0.5]))
    (array([1. , 0.5]), array([1.1, 0.5]))
    """
    if values.size == 0:
        return values
    least, most = values.min(), values.max()
    is_inside = least >= 0 and most <= 1
    is_rounded = least >= -ROUNDING and most <= 1 + ROUNDING  # neither where there is a NaN
    return values.clip(0, 1) if is_rounded and not is_inside else values


def clip_certain(values: Array) -> Array:
    """Estimated probabilities clipped to [floor, 1 - floor] by `_limits.PROBABILITY_FLOOR`.

    Values that are no probabilities stay, to be refused where they are checked.

    Examples
    --------
    >>> clip_certain(np.array([0.0, 0.5, 1.0])).tolist()
    [5.960464477539063e-08, 0.5, 0.9999999403953552]
    """
    values = clip_rounding(values)
    clipped = values.clip(_limits.PROBABILITY_FLOOR, 1 - _limits.PROBABILITY_FLOOR)
    return np.where((values >= 0) & (values <= 1), clipped, values)


def check_unit_interval(
    values: NDArray[np.floating],
    name: str,
    fix: str = 'If these are logits, pass kind="logit" to `as_distribution`.',
) -> NDArray[np.floating]:
    """Probabilities clipped to [0, 1] where rounding left it. Raises InputError for others."""
    values = clip_rounding(values)
    bad = ~((values >= 0) & (values <= 1))
    if not bad.any():
        return values
    # The first that no rounding explains.
    at = tuple(np.argwhere(~((values >= -ROUNDING) & (values <= 1 + ROUNDING)))[0])
    where = ", ".join(
        f"{axis} {i}" for axis, i in zip(("row", "column", "entry"), at, strict=False)
    )
    if np.isnan(values[at]):
        fix = "A missing probability must be filled in, or its row dropped."
    raise InputError(f"`{name}` must lie in [0, 1], got {values[at]} in {where}. {fix}")


def check_row_sums(
    totals: Floats, n_bad: Integers, dtype: np.dtype[Any], *, normalise: bool
) -> None:
    """Raise InputError for the first row that is no distribution."""
    bad = np.flatnonzero((n_bad > 0) | ~np.isfinite(totals))
    if bad.size:
        raise InputError(
            f"`probabilities` must be finite and not negative, row {bad[0]} is not. Fix or drop "
            "that row."
        )
    if normalise:
        zero = np.flatnonzero(totals <= 0)
        if zero.size:
            raise InputError(
                f"`probabilities` cannot be normalised where all are zero, as in row {zero[0]}. "
                "Fix or drop that row."
            )
        return
    off = np.flatnonzero(np.abs(totals - 1) > SUM_TOLERANCE[dtype])
    if off.size:
        raise InputError(
            f"`probabilities` must sum to one for each instance, row {off[0]} sums to "
            f"{totals[off[0]]:.6g}. Pass `normalise=True` to divide each row by its sum."
        )


def read_shares(weights: object, n_samples: int, n_chains: int) -> Floats | None:
    """Weights times the number of chains, (n, m); None where all are equal."""
    if weights is None:
        return None
    given = as_floats(weights, "weights")
    if given.shape not in ((n_chains,), (n_samples, n_chains)):
        raise InputError(
            f"`weights` must have shape ({n_chains},), one for each chain, or ({n_samples}, "
            f"{n_chains}), for each instance as well, got {given.shape}."
        )
    if not (given >= 0).all():  # also where one is not a number
        raise InputError("`weights` must be numbers >= 0, got one that is not.")
    totals = given.sum(axis=-1, keepdims=True)
    if (np.abs(totals - 1) > SUM_TOLERANCE[given.dtype]).any():
        at = np.unravel_index(np.abs(totals - 1).argmax(), totals.shape)
        raise InputError(
            f"`weights` must sum to one for each instance, got {totals[at]:.6g}. Divide them by "
            "their sum."
        )
    if (given == given[..., :1]).all():
        return None
    shares = given.astype(np.float64) * (n_chains / totals)
    return np.array(np.broadcast_to(shares, (n_samples, n_chains)))


def log_prob_of_logits(logits: Floats) -> Floats:
    """Sum over the last axis of log sigmoid(logit)."""
    # Vectorised exp and log take a fifth of logaddexp's time; the error is 1e-16 a label.
    return (np.minimum(logits, 0.0) - np.log(1 + np.exp(-np.abs(logits)))).sum(axis=-1)


def make_generator(random_state: RandomState) -> np.random.Generator:
    """NumPy generator of any random state. Raises InputError if it is none.

    Examples
    --------
    >>> make_generator(0).integers(10, size=3)
    array([8, 6, 5])
    """
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**32, dtype=np.uint64))
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"`random_state` must be a whole number >= 0, a numpy generator or None, "
            f"got {random_state!r}."
        ) from error


def make_random_state(random_state: RandomState) -> np.random.RandomState:
    """NumPy RandomState, which scikit-learn uses. Raises InputError if it is none.

    Examples
    --------
    >>> int(make_random_state(0).randint(10))
    5
    """
    from sklearn.utils import check_random_state  # distributions alone need no scikit-learn

    try:
        return check_random_state(random_state)
    except ValueError as error:
        raise InputError(
            f"`random_state` must be a whole number from 0 to {2**32 - 1}, a numpy RandomState or "
            f"None, got {random_state!r}."
        ) from error
