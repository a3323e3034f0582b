"""Training and test parts, with or without the same frequency of every label in both."""

from __future__ import annotations

from typing import Any

import numpy as np

from labelsure._typing import Indices, Labelsets, RandomState
from labelsure.datasets._dataset import Dataset
from labelsure.distributions import make_generator
from labelsure.errors import InputError
from labelsure.labelsets import check_labelsets


def split_dataset(
    data: Dataset,
    test_size: float | int = 0.4,
    *,
    stratified: bool = False,
    random_state: RandomState = None,
) -> tuple[Dataset, Dataset]:
    """Split a data set into a training and a test part.

    Parameters
    ----------
    data
        What to split.
    test_size
        A share of the instances, or how many.
    stratified
        Whether every label shall be as frequent in one part as in the other, as nearly as can be
        (iterative stratification). The size of the parts is then met only nearly.
    random_state
        Seed, generator or None. The same seed gives the same parts.

    Returns
    -------
    train, test : Dataset
        Their rows in the order of `data`. `labelsure.datasets.split_rows` gives the row numbers.

    Examples
    --------
    >>> from labelsure import load_dataset
    >>> train, test = split_dataset(load_dataset("digits"), 0.4, random_state=0)
    >>> len(train), len(test)
    (1078, 719)
    """
    if not isinstance(data, Dataset):
        raise InputError(
            f"`data` must be a Dataset, got {type(data).__name__}. Make one with "
            "`Dataset(X, Y)`, or use `labelsure.datasets.split_rows(Y)`."
        )
    train, test = split_rows(data.Y, test_size, stratified=stratified, random_state=random_state)
    return data.take(train), data.take(test)


def split_rows(
    Y: Any,
    test_size: float | int = 0.4,
    *,
    stratified: bool = False,
    random_state: RandomState = None,
) -> tuple[Indices, Indices]:
    """Return the row numbers of a training and a test part; arguments as in `split_dataset`.

    Examples
    --------
    >>> train, test = split_rows([[1, 0], [0, 1], [1, 1], [0, 0]], 0.5, random_state=0)
    >>> sorted([*train.tolist(), *test.tolist()])
    [0, 1, 2, 3]
    """
    rows = check_labelsets(Y)
    n_test = _n_test(test_size, len(rows))
    seed = int(make_generator(random_state).integers(2**32))
    if stratified:
        return _stratified(rows, n_test, seed)
    return _plain(len(rows), n_test, seed)


def _n_test(test_size: float, n_samples: int) -> int:
    whole = isinstance(test_size, (int, np.integer)) and not isinstance(test_size, bool)
    if whole and 1 <= test_size < n_samples:
        return int(test_size)
    if isinstance(test_size, float) and 0 < test_size < 1 and n_samples >= 2:
        return min(max(1, round(test_size * n_samples)), n_samples - 1)
    raise InputError(
        f"`test_size` must be a share between 0 and 1, or a number of instances from 1 to "
        f"{n_samples - 1}, got {test_size!r}."
    )


def _plain(n_samples: int, n_test: int, seed: int) -> tuple[Indices, Indices]:
    from sklearn.model_selection import train_test_split

    train, test = train_test_split(np.arange(n_samples), test_size=n_test, random_state=seed)
    return np.sort(train), np.sort(test)


def _stratified(Y: Labelsets, n_test: int, seed: int) -> tuple[Indices, Indices]:
    from iterstrat.ml_stratifiers import MultilabelStratifiedShuffleSplit

    # A single label looks like a binary problem to the splitter; its opposite adds nothing new.
    indicators = np.hstack([Y, 1 - Y]) if Y.shape[1] == 1 else Y
    splitter = MultilabelStratifiedShuffleSplit(n_splits=1, test_size=n_test, random_state=seed)
    train, test = next(splitter.split(np.zeros((len(Y), 1)), indicators))
    return train, test
