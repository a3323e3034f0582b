"""The predictions that a report shows one by one: a random sample, small enough for a page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from labelsure._runtime.pages._html_page import encode_json
from labelsure._runtime.typing import LabelNames, Labelsets
from labelsure.distributions._bridge import LabelsetDistribution
from labelsure.estimation.label_outcomes import calibration_marginals
from labelsure.labelsets.codes import to_indices
from labelsure.labelsets.rows import show_names
from labelsure.metrics.registry import Metric
from labelsure.model._assessment import Assessment

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
N_NAMES = 200  # of labels in a page; of more labels those that the shown instances have

LABEL_FIELDS = ("predicted", "truth", "open", "decided", "certain", "possible")
"""What is a list of labels in the description of an instance."""


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
        As of `Assessment.leave_open`; None does not show which labels are better left open.
    """

    def __init__(
        self,
        metrics: Sequence[Metric],
        empty: float,
        n_labels: int,
        seed: int = 0,
        open_cost: float | None = None,
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
        predicted = to_indices(found.Y_pred)
        truth = None if Y_true is None else to_indices(Y_true[rows])
        best = self._describe_best(dist)
        probable = _describe_marginals(calibration_marginals(dist), predicted)
        answers = None if self.open_cost is None else found.leave_open(self.open_cost)
        instances = []
        for i, name in enumerate(names):
            accepted = None if found.accepted is None else bool(found.accepted[i])
            instance = {
                "id": str(name),
                "predicted": predicted[i],
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
                instance["truth"] = truth[i]
                instance["is_exact"] = truth[i] == predicted[i]
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
        ranks = [to_indices(best.labelsets[:, rank]) for rank in range(best.labelsets.shape[1])]
        return [
            [
                [labels, round(float(probability), N_DIGITS), values]
                for labels, probability, values in zip(*columns, strict=True)
                if probability > 0
            ]
            for columns in zip(
                zip(*ranks, strict=True), best.probabilities, expected.tolist(), strict=True
            )
        ]

    def describe(self, label_names: LabelNames, n_labels: int) -> dict[str, Any]:
        """Return the sample, as many of it as the page can hold.

        Parameters
        ----------
        label_names, n_labels
            One for each label, or None; how many there are.
        """
        order = np.argsort(self._keys, kind="stable").tolist()
        sizes = np.cumsum([len(encode_json(self._instances[i]).encode()) + 1 for i in order])
        n_shown = int(np.searchsorted(sizes, MAX_BYTES, side="right"))
        shown = [self._instances[i] for i in sorted(order[:n_shown])]
        note = f"All {self.n_seen:,} predictions."
        if n_shown < self.n_seen:
            note = f"A random sample: {n_shown:,} of {self.n_seen:,} predictions."
        if n_labels <= N_NAMES:
            return {"labels": show_names(label_names, n_labels), "note": note, "instances": shown}
        labels = sorted({label for instance in shown for label in _labels_in(instance)})
        place = {label: j for j, label in enumerate(labels)}
        return {
            "labels": show_names(label_names, labels),
            "note": note,
            "instances": [_renumber(instance, place) for instance in shown],
        }


def _labels_in(instance: dict[str, Any]) -> list[int]:
    """Return all labels that the description of an instance names by number."""
    found = [label for name in LABEL_FIELDS for label in instance.get(name, ())]
    found += [label for label, _ in instance["probabilities"]]
    return found + [label for labels, *_ in instance["best"] for label in labels]


def _renumber(instance: dict[str, Any], place: dict[int, int]) -> dict[str, Any]:
    """Return a description whose labels have other numbers."""
    fields = {name: instance[name] for name in LABEL_FIELDS if name in instance}
    return {
        **instance,
        **{name: [place[label] for label in labels] for name, labels in fields.items()},
        "probabilities": [[place[label], p] for label, p in instance["probabilities"]],
        "best": [[[place[label] for label in labels], *rest] for labels, *rest in instance["best"]],
    }


def _describe_marginals(marginals: Any, predicted: list[list[int]]) -> list[list[list[Any]]]:
    """Return the most probable and the predicted labels of each instance, the first ones first.

    Of sparse rows only labels that are listed.
    """
    described = []
    rows = sparse.csr_array(marginals)
    for i, chosen in enumerate(predicted):
        part = slice(rows.indptr[i], rows.indptr[i + 1])
        labels, values = rows.indices[part], rows.data[part]
        order = np.argsort(-(values + np.isin(labels, chosen)), kind="stable")[:N_MARGINALS]
        pairs = [[int(labels[at]), round(float(values[at]), N_DIGITS)] for at in order]
        described.append(sorted(pairs, key=lambda pair: -pair[1]))
    return described
