"""The classifiers that can be trained on a table, by short names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from labelsure.classifiers._bernoulli_mixture import ConditionalBernoulliMixture
from labelsure.classifiers._chain_classifiers import (
    BinaryRelevance,
    EnsembleOfClassifierChains,
    ProbabilisticClassifierChain,
)
from labelsure.classifiers._dependence_layer import DependenceLayer
from labelsure.classifiers._powerset_classifier import LabelPowerset
from labelsure.classifiers._trellis_classifier import ClassifierTrellis


def _make_forest(seed: int | None) -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(n_estimators=200, min_samples_leaf=2, random_state=seed)


CLASSIFIERS: dict[str, Callable[[int | None], Any]] = {
    "ecc": lambda seed: EnsembleOfClassifierChains(random_state=seed),
    "br": lambda seed: BinaryRelevance(random_state=seed),
    "trellis": lambda seed: ClassifierTrellis(random_state=seed),
    "pcc": lambda seed: ProbabilisticClassifierChain(random_state=seed),
    "powerset": lambda seed: LabelPowerset(random_state=seed),
    "cbm": lambda seed: ConditionalBernoulliMixture(random_state=seed),
    "layer": lambda seed: DependenceLayer(random_state=seed),
    "forest": _make_forest,
}
"""Each is made from a seed. A new one is an entry here."""

FOREST_TYPES = ("sklearn.tree._tree.Tree",)
"""What `load` has to trust in the file of a forest."""
