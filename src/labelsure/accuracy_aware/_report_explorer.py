"""The predictions that a report shows one by one: a random sample, small enough for a page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from labelsure._pages import encode_json
from labelsure._typing import Floats, Labelsets
from labelsure.accuracy_aware._assessment import Assessment
from labelsure.distributions import LabelsetDistribution
from labelsure.label_outcomes import calibration_marginals
from labelsure.metrics import Metric

MAX_INSTANCES = 2000
"""In a page, which has to open quickly."""

MAX_BYTES = 600_000
"""Of all instances in a page."""

MANY_LABELS = 50
"""From here on the most probable labelsets of chains take up to seconds for an instance."""

FEW_INSTANCES = 200  # of so many labels

N_BEST = 5  # labelsets of an instance
N_MARGINALS = 12  # labels of an instance, the most probable and the predicted ones
N_DIGITS = 3


class InstanceSample:
    """A random sample of the predictions, batch by batch.

    Parameters
    ----------
    metrics
        Whose expected accuracies are shown of the most probable labelsets.
    empty
        The Jaccard and F1 of two empty labelsets.
    n_labels
        How many there are.
    seed
        Of the sample.
    open_cost
        As of `labelsure.decide`; None does not show which labels are better left open.
    """

    def __init__(
        self,
        metrics: Sequence[Metric],
        empty: float,
        n_labels: int,
        seed: int = 0,
        open_cost: Any = None,
    ) -> None:
        self.metrics, self.empty, self.open_cost = list(metrics), empty, open_cost
        self.size = FEW_INSTANCES if n_labels > MANY_LABELS else MAX_INSTANCES
        self.n_seen = 0
        self._random = np.random.default_rng(seed)
        # Each prediction draws a key; those with the smallest keys are the sample.
        self._keys = np.empty(0)
        self._instances: list[dict[str, Any]] = []

    def add(self, found: Assessment, Y_true: Labelsets | None) -> None:
        """Add a batch.

        Parameters
        ----------
        found
            Its predictions.
        Y_true
            (n, L) the truth, where it is known.
        """
        keys = self._random.random(len(found))
        every = np.concatenate([self._keys, keys])
        order = np.argsort(every, kind="stable")[: self.size]
        n_old = len(self._keys)
        new = np.sort(order[order >= n_old] - n_old)
        kept = np.sort(order[order < n_old])
        self._instances = [self._instances[i] for i in kept.tolist()]
        self._instances += self._describe(found[new], new + self.n_seen, Y_true, new)
        self._keys = np.concatenate([self._keys[kept], keys[new]])
        self.n_seen += len(found)

    def _describe(
        self, found: Assessment, positions: Any, Y_true: Labelsets | None, rows: Any
    ) -> list[dict[str, Any]]:
        if len(found) == 0:
            return []
        dist = found.distribution
        names = positions.tolist() if dist.index is None else list(dist.index)
        truth = None if Y_true is None else Y_true[rows]
        best = self._describe_best(dist)
        probable = _describe_marginals(calibration_marginals(dist), found.Y_pred)
        answers = None if self.open_cost is None else found.leave_open(self.open_cost)
        instances = []
        for i, name in enumerate(names):
            accepted = None if found.accepted is None else bool(found.accepted[i])
            instance = {
                "id": str(name),
                "predicted": np.flatnonzero(found.Y_pred[i]).tolist(),
                "estimated": round(float(found.accuracy[i]), N_DIGITS),
                "advice": {None: "no advice", True: "accept", False: "refer"}[accepted],
                "reason": str(found.reason[i]),
                "probabilities": probable[i],
                "n_more": dist.n_labels - len(probable[i]),
                "best": best[i],
            }
            if answers is not None:
                instance["open"] = np.flatnonzero(answers.is_open[i]).tolist()
                instance["decided"] = np.flatnonzero(answers.is_certain[i]).tolist()
            if found.region is not None:
                instance["certain"] = np.flatnonzero(found.region.is_certain[i]).tolist()
                instance["possible"] = np.flatnonzero(found.region.is_open[i]).tolist()
            if truth is not None:
                instance["truth"] = np.flatnonzero(truth[i]).tolist()
                instance["is_exact"] = bool((truth[i] == found.Y_pred[i]).all())
            instances.append(instance)
        return instances

    def _describe_best(self, dist: LabelsetDistribution) -> list[list[Any]]:
        """Return for each instance its best labelsets, with probability and expected accuracies."""
        best = dist.top(min(N_BEST, 2 ** min(dist.n_labels, 10)))
        expected = np.stack(
            [
                dist.expected(metric, best.labelsets, empty=self.empty).value
                for metric in self.metrics
            ],
            axis=-1,
        ).round(N_DIGITS)
        return [
            [
                [np.flatnonzero(labelset).tolist(), round(float(probability), N_DIGITS), values]
                for labelset, probability, values in zip(*columns, strict=True)
                if probability > 0
            ]
            for columns in zip(best.labelsets, best.probabilities, expected.tolist(), strict=True)
        ]

    def describe(self, label_names: Sequence[str]) -> dict[str, Any]:
        """Return the sample, as many of it as the page can hold.

        Parameters
        ----------
        label_names
            One for each label.
        """
        order = np.argsort(self._keys, kind="stable").tolist()
        sizes = np.cumsum([len(encode_json(self._instances[i]).encode()) + 1 for i in order])
        n_shown = int(np.searchsorted(sizes, MAX_BYTES, side="right"))
        shown = sorted(order[:n_shown])
        note = f"All {self.n_seen:,} predictions."
        if n_shown < self.n_seen:
            note = f"A random sample: {n_shown:,} of {self.n_seen:,} predictions."
        return {
            "labels": list(label_names),
            "note": note,
            "instances": [self._instances[i] for i in shown],
        }


def _describe_marginals(marginals: Floats, Y_pred: Labelsets) -> list[list[list[Any]]]:
    """Return the most probable and the predicted labels of each instance, the first ones first."""
    order = np.argsort(-(marginals + Y_pred), axis=1, kind="stable")[:, :N_MARGINALS]
    described = []
    for labels, row in zip(order.tolist(), marginals, strict=True):
        pairs = [[label, round(float(row[label]), N_DIGITS)] for label in labels]
        described.append(sorted(pairs, key=lambda pair: -pair[1]))
    return described
