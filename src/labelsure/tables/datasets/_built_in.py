"""Data sets that need no file: those of installed packages, and simulated ones.

In a simulated one label j depends on the features and on label j - 1:

    logit P(y_j = 1 | x, y_{j-1})
        = (1 - noise) SIGNAL w_j.x + c_j + shift + dependence (2 y_{j-1} - 1)

with unit vectors w_j, offsets c_j that make labels differ in frequency, and the one shift that
gives the wanted cardinality. The first label has no predecessor, so no last term.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import expit

from labelsure._runtime.limits import check_size
from labelsure._runtime.storage import decompress, read_bytes
from labelsure._runtime.typing import Floats, LabelNames, Labelsets, RandomState
from labelsure.distributions._bridge import LabelsetDistribution
from labelsure.distributions._probabilities import make_generator
from labelsure.distributions._trellis import TrellisDistribution
from labelsure.errors import DataError, InputError
from labelsure.tables.datasets._column_roles import ColumnChoice
from labelsure.tables.datasets._dataset import Dataset, checksum_values
from labelsure.tables.datasets._reading import read_csv

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

MAX_DEPENDENCE = 100
BYTES_OF_LABEL = 1024
BYTES_OF_CONDITIONALS = 64
"""Of the true distribution: what it notes of a label, and of a label of an instance."""

SIGNAL = 3.0
"""The standard deviation of what the features add to a logit when there is no noise."""


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
        checksum=checksum_values(bunch.data, Y),
    )


def load_yeast() -> Dataset:
    """Return Yeast, 2417 genes with 14 functions, from the package river."""
    try:
        from river.datasets import Yeast
    except ImportError as error:
        raise DataError(
            "`yeast` comes with the package river (0.26 or newer), which is not installed. Run "
            '`pip install "labelsure[study]"`, name a folder that has yeast.arff with `data_dir`, '
            'or pass source="openml".'
        ) from error
    path = Path(Yeast().path)  # type: ignore[no-untyped-call]
    content = read_bytes(path)
    data = read_csv(decompress(content, path), ColumnChoice("Class*"), path.name)
    return Dataset(
        data.X,
        data.Y,
        data.label_names,
        name="yeast",
        source=f"river {version('river')}",
        checksum=checksum_values(data.X.to_numpy(), data.Y),
    )


def load_simulated() -> Dataset:
    """Return what `make_labelsets(random_state=0)` makes, without its true distribution."""
    return make_labelsets(random_state=0)[0]


@dataclass(frozen=True)
class Conditionals:
    """P(y_j = 1 | x, y_{j-1}) for both values of the label before; the first has none."""

    after_zero: Floats
    after_one: Floats

    @classmethod
    def of(cls, logits: Floats, dependence: float) -> Conditionals:
        """Return the conditionals of a chain from its (n, L) logits without predecessors."""
        coupling = np.full(logits.shape[1], dependence)
        coupling[0] = 0.0
        return cls(expit(logits - coupling), expit(logits + coupling))

    def marginals(self) -> Floats:
        """Return P(y_j = 1 | x), (n, L)."""
        marginals = np.empty_like(self.after_zero)
        before = np.zeros(len(marginals))
        for j in range(marginals.shape[1]):
            before = (1 - before) * self.after_zero[:, j] + before * self.after_one[:, j]
            marginals[:, j] = before
        return marginals

    def draw(self, generator: np.random.Generator) -> Labelsets:
        """Return one labelset for each instance."""
        n_samples, n_labels = self.after_zero.shape
        uniforms = generator.random((n_samples, n_labels))
        Y = np.zeros((n_samples, n_labels), dtype=np.int8)
        before = np.zeros(n_samples, dtype=bool)
        for j in range(n_labels):
            chance = np.where(before, self.after_one[:, j], self.after_zero[:, j])
            before = uniforms[:, j] < chance
            Y[:, j] = before
        return Y


def make_labelsets(
    n_samples: int = 1000,
    n_labels: int = 6,
    *,
    n_features: int = 10,
    dependence: float = 1.0,
    cardinality: float | None = None,
    noise: float = 0.5,
    random_state: RandomState = None,
) -> tuple[Dataset, LabelsetDistribution]:
    """Simulate a data set, and return it with the true P(Y|x).

    Features are standard normal. Each label depends on them and on the label before it, through
    a logistic function.

    Parameters
    ----------
    n_samples, n_labels, n_features
        The size of the data set.
    dependence
        How much the logit of a label rises if the label before it is set, and falls if it is not.
        0: labels are independent given the features. Negative: neighbours exclude each other.
        From -100 to 100.
    cardinality
        The expected number of labels of an instance, over the features drawn; strictly between 0
        and `n_labels`. None: a third of the labels.
    noise
        From 0 to 1: how much of what the features say is taken away. At 1 they say nothing, and
        all instances have the same distribution.
    random_state
        Seed, generator or None.

    Returns
    -------
    data : Dataset
        Its `Y` is one draw from `truth` for each instance.
    truth : TrellisDistribution
        The distribution of each instance; exact for any number of labels.

    Examples
    --------
    >>> data, truth = make_labelsets(200, 4, cardinality=1.5, random_state=0)
    >>> data
    Dataset('simulated', n_samples=200, n_labels=4, n_features=10)
    >>> round(float(truth.marginals().sum(axis=1).mean()), 6)
    1.5
    """
    _check_sizes(n_samples=n_samples, n_labels=n_labels, n_features=n_features)
    cardinality = n_labels / 3 if cardinality is None else cardinality
    _check_strengths(dependence, cardinality, noise, n_labels)
    generator = make_generator(random_state)
    X = generator.standard_normal((n_samples, n_features))
    directions = generator.standard_normal((n_features, n_labels))
    directions /= np.linalg.norm(directions, axis=0)
    offsets = generator.standard_normal(n_labels)
    logits = (1 - noise) * SIGNAL * (X @ directions) + offsets
    logits += _find_shift(logits, dependence, cardinality)
    conditionals = Conditionals.of(logits, dependence)
    Y = conditionals.draw(generator)
    data = Dataset(X, Y, name="simulated", source="make_labelsets", checksum=checksum_values(X, Y))
    return data, _make_distribution(conditionals, data.label_names)


def _find_shift(logits: Floats, dependence: float, cardinality: float) -> float:
    """Return what must be added to all logits so that the labels have the cardinality."""
    from scipy.optimize import brentq  # slow to import, and only needed here

    def excess(shift: float) -> float:
        marginals = Conditionals.of(logits + shift, dependence).marginals()
        return float(marginals.sum(axis=1).mean() - cardinality)

    reach = float(np.abs(logits).max()) + abs(dependence) + 40.0  # expit(-40) is 4e-18
    if excess(-reach) >= 0 or excess(reach) <= 0:
        raise InputError(
            f"`cardinality` must not be as close to 0 or to the number of labels as {cardinality}. "
            "Choose one that leaves some instances with, and some without a label."
        )
    return float(brentq(excess, -reach, reach, xtol=1e-12, rtol=1e-14))


def _make_distribution(conditionals: Conditionals, label_names: LabelNames) -> LabelsetDistribution:
    """Return the chain as a trellis of width one: exact for any number of labels."""
    pairs = np.stack([conditionals.after_zero, conditionals.after_one], axis=2)
    n_labels = pairs.shape[1]
    return TrellisDistribution(
        [pairs[:, 0, :1], *(pairs[:, j] for j in range(1, n_labels))],
        parents=[(), *((j - 1,) for j in range(1, n_labels))],
        order=range(n_labels),
        label_names=label_names,
    )


def _check_sizes(**sizes: int) -> None:
    for name, size in sizes.items():
        if isinstance(size, bool) or not isinstance(size, (int, np.integer)) or size < 1:
            raise InputError(f"`{name}` must be a whole number >= 1, got {size!r}.")
    n_samples, n_labels, n_features = (int(size) for size in sizes.values())
    for_labels = n_labels * (BYTES_OF_LABEL + BYTES_OF_CONDITIONALS * n_samples)
    check_size(
        8 * n_features * (n_samples + n_labels) + for_labels,
        f"{n_samples} simulated instances with {n_features} features and {n_labels} labels",
        "Ask for fewer.",
    )


def _check_strengths(dependence: float, cardinality: float, noise: float, n_labels: int) -> None:
    if not _is_number(dependence) or abs(dependence) > MAX_DEPENDENCE:
        raise InputError(
            f"`dependence` must be a number from -{MAX_DEPENDENCE} to {MAX_DEPENDENCE}, got "
            f"{dependence!r}. Beyond 40, a label already follows the one before it with certainty."
        )
    if not _is_number(cardinality) or not 0 < cardinality < n_labels:
        raise InputError(
            f"`cardinality` must lie between 0 and the number of labels, {n_labels}, "
            f"got {cardinality!r}."
        )
    if not _is_number(noise) or not 0 <= noise <= 1:
        raise InputError(f"`noise` must lie in [0, 1], got {noise!r}.")


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float, np.number)) and bool(np.isfinite(value))
