"""`BlockProduct`: disjoint blocks of labels, independent of each other."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import Any, Self

import numpy as np

from labelsure import _limits
from labelsure._limits import cut_rows
from labelsure._typing import Floats, Indices, Integers, Labelsets, Rows
from labelsure.candidates import Profile
from labelsure.distributions import _probabilities as arguments
from labelsure.distributions._answers import Expected, MaxMarginals, Summary, TopLabelsets
from labelsure.distributions._bridge import LabelsetDistribution
from labelsure.distributions._engines import EngineSettings
from labelsure.distributions._overlap_tables import add_independent, count_overlaps
from labelsure.errors import InputError
from labelsure.labelsets import given_names
from labelsure.metrics import Metric
from labelsure.weighted_labelsets import WeightedLabelsets


class BlockProduct(LabelsetDistribution):
    """Distributions of labels in disjoint blocks, each of any kind, independent of each other.

    Entropies add and collisions multiply, so that everything is exact at any number of labels if
    it is so for each block. A product of single labels is `IndependentLabels`.

    Parameters
    ----------
    blocks
        Pairs of the labels of a block, rising positions, and the distribution of these labels.
        Every label is in one block, and all blocks have the same instances.
    label_names
        One for each label; None means those of the blocks, if they have any.

    Examples
    --------
    >>> from labelsure import DenseDistribution, IndependentLabels
    >>> pair = DenseDistribution([[0.5, 0.0, 0.0, 0.5]])
    >>> dist = BlockProduct([([0, 2], pair), ([1], IndependentLabels([[0.9]]))])
    >>> dist.marginals()
    array([[0.5, 0.9, 0.5]])
    >>> dist.top(2).labelsets
    array([[[0, 1, 0],
            [1, 1, 1]]], dtype=int8)
    """

    def __init__(
        self,
        blocks: Iterable[tuple[Any, LabelsetDistribution]],
        label_names: Iterable[Any] | None = None,
    ) -> None:
        self._blocks = _check_blocks(blocks)
        n_labels = sum(len(labels) for labels, _ in self._blocks)
        names = _join_names(self._blocks, n_labels) if label_names is None else label_names
        first = self._blocks[0][1]
        super().__init__(len(first), n_labels, names)
        self._index = first.index

    @property
    def blocks(self) -> list[tuple[Indices, LabelsetDistribution]]:
        """The labels of each block, and their distribution."""
        return list(self._blocks)

    def _replace(self, distributions: Iterable[LabelsetDistribution]) -> Self:
        """Return the same blocks with other distributions."""
        labels = (labels for labels, _ in self._blocks)
        return type(self)(zip(labels, distributions, strict=True), self.label_names)

    def _place(self, answers: Iterable[Any], last: tuple[int, ...] = ()) -> Floats:
        """Put what blocks answer for their labels, (n, L_b, ...), in the order of all labels."""
        placed = np.empty((len(self), self.n_labels, *last))
        for (labels, _), answer in zip(self._blocks, answers, strict=True):
            placed[:, labels] = answer
        return placed

    def _take(self, rows: Rows) -> Self:
        return self._replace(dist._take(rows) for _, dist in self._blocks)

    def _with_engine(self, settings: EngineSettings) -> Self:
        new = self._replace(dist._with_engine(settings) for _, dist in self._blocks)
        new._index = self._index
        return new

    def _temper(self, power: float) -> LabelsetDistribution:
        return self._replace(dist._temper(power) for _, dist in self._blocks)

    def _temper_links(self, power: float) -> LabelsetDistribution:
        return self._replace(dist._temper_links(power) for _, dist in self._blocks)

    def _link_logits(self, Y: Labelsets) -> Floats:
        found = [dist._link_logits(Y[:, labels]) for labels, dist in self._blocks]
        if any(logits.shape[1] != 1 for logits in found):
            raise arguments.without_links(self)  # a product of mixtures is none of chains
        return self._place(logits[:, 0] for logits in found)[:, np.newaxis]

    def _marginals(self) -> Floats:
        return self._marginal_bounds().value

    def _marginal_bounds(self) -> Expected:
        found = [dist._marginal_bounds() for _, dist in self._blocks]
        ends = ("value", "low", "high")
        return Expected(*(self._place(getattr(one, end) for one in found) for end in ends))

    def _log_prob(self, Y: Labelsets) -> Floats:
        return sum(
            (dist._log_prob(np.ascontiguousarray(Y[:, labels])) for labels, dist in self._blocks),
            np.zeros(len(self)),
        )

    def _max_marginals(self, log_at_least: float) -> MaxMarginals:
        # What a block needs not tell apart is so with the most probable labels of the others.
        tops = np.stack([dist._summary([], 1.0).profile.high.log_top for _, dist in self._blocks])
        found = [dist._max_marginals(log_at_least) for _, dist in self._blocks]
        others = tops.sum(axis=0) - tops

        def place(name: str) -> Floats:
            answers = (
                getattr(maxima, name) + rest[:, np.newaxis, np.newaxis]
                for maxima, rest in zip(found, others, strict=True)
            )
            return self._place(answers, (2,))

        return MaxMarginals(place("logs"), place("high"))

    def _sample(self, size: int, generator: np.random.Generator) -> Labelsets:
        draws = np.empty((len(self), size, self.n_labels), dtype=np.int8)
        for labels, dist in self._blocks:
            draws[:, :, labels] = dist._sample(size, generator)
        return draws

    def _mode(self) -> Labelsets:
        return self._place(dist._mode() for _, dist in self._blocks).astype(np.int8)

    def _top(self, k: int) -> TopLabelsets:
        """Return the k best, block after block: k of all so far and k of the next give k of both.

        Probabilities are relative to the largest, which may be too small for a number.
        """
        best = np.zeros((len(self), 1, self.n_labels), dtype=np.int8)
        relative, high = np.ones((len(self), 1)), np.ones((len(self), 1))
        log_top = np.zeros((len(self), 1))
        for labels, dist in self._blocks:
            found = dist._top(min(k, 2 ** len(labels)))
            top = found.probabilities[:, :1]
            first, second = _pair_ranks(best.shape[1], found.labelsets.shape[1], k)
            pairs = best[:, first]
            pairs[:, :, labels] = found.labelsets[:, second]
            merged = WeightedLabelsets.merge(
                pairs.reshape(-1, self.n_labels),
                (relative[:, first] * (found.probabilities / top)[:, second]).ravel(),
                np.repeat(np.arange(len(self)), len(first)),
                len(self),
            )
            n_kept = min(k, best.shape[1] * found.labelsets.shape[1])
            bounds = high[:, first] * (found.high / top)[:, second]
            high = -np.sort(-bounds, axis=1)[:, :n_kept]
            best, relative = merged.top(n_kept)
            log_top = log_top + np.log(top)
        return TopLabelsets(best, relative * np.exp(log_top), high * np.exp(log_top))

    def _summary(self, metrics: list[Metric], empty: float) -> Summary:
        profile = _join_profiles([dist._summary([], 1.0).profile for _, dist in self._blocks])
        mode = self._mode()
        expected = {metric.name: self._expected(metric, mode, empty) for metric in metrics}
        return Summary.of_mode(profile, mode, expected)

    def _expected_by_counts(self, metric: Metric, Y_pred: Labelsets, empty: float) -> Floats:
        expected = np.empty(len(self))
        n_predicted = Y_pred.sum(axis=1)
        bytes_each = 16 * (self.n_labels + 1) ** 2
        for rows in cut_rows(len(self), bytes_each, _limits.DECISION_BYTES):
            overlap = np.ones((rows.stop - rows.start, 1, 1))
            for labels, dist in self._blocks:
                some = np.ascontiguousarray(Y_pred[rows][:, labels])
                overlap = add_independent(overlap, count_overlaps(dist._take(rows), some))
            for i, k in zip(range(rows.start, rows.stop), n_predicted[rows], strict=True):
                table = metric.table(self.n_labels, k, empty=empty)
                reachable = overlap[i - rows.start, : k + 1, : self.n_labels - k + 1]
                expected[i] = (reachable * table).sum()
        return expected

    def _expected_steps(self, flips: bool) -> Integers:
        steps = len(self._blocks) * super()._expected_steps(flips)
        return sum((dist._expected_steps(flips) for _, dist in self._blocks), steps)

    def _size_marginals(self) -> Floats:
        by_size = [dist._size_marginals() for _, dist in self._blocks]
        sizes = [
            _size_probabilities(dist, found)
            for (_, dist), found in zip(self._blocks, by_size, strict=True)
        ]
        none = np.ones((len(self), 1))
        before, after = [none], [none]  # of the blocks before, and of those after
        for some in sizes[:-1]:
            before.append(_convolve(before[-1], some))
        for some in sizes[:0:-1]:
            after.append(_convolve(after[-1], some))
        placed = np.zeros((len(self), self.n_labels, self.n_labels))
        for (labels, _), found, left, right in zip(
            self._blocks, by_size, before, after[::-1], strict=True
        ):
            others = _convolve(left, right)
            for size in range(1, len(labels) + 1):
                stop = size - 1 + others.shape[1]
                placed[:, labels, size - 1 : stop] += (
                    found[:, :, size - 1, np.newaxis] * others[:, np.newaxis]
                )
        return placed

    def _probabilities(self) -> Floats:
        P = np.ones((len(self), 2**self.n_labels))
        codes = np.arange(2**self.n_labels)
        for labels, dist in self._blocks:
            bits = sum((codes >> label & 1) << i for i, label in enumerate(labels.tolist()))
            P *= dist._probabilities()[:, bits]
        return P


def _check_blocks(blocks: Any) -> list[tuple[Indices, LabelsetDistribution]]:
    checked = []
    for labels, dist in blocks:
        if not isinstance(dist, LabelsetDistribution):
            raise InputError(
                "`blocks` must be pairs of labels and their distribution, got a "
                f"{type(dist).__name__} in place of a distribution."
            )
        places = np.asarray(labels)
        if places.dtype.kind not in "iu" or places.ndim != 1 or (np.diff(places) <= 0).any():
            raise InputError(
                f"The labels of a block must be rising positions of labels, got {labels!r}."
            )
        if len(places) != dist.n_labels:
            raise InputError(
                f"A block of {len(places)} labels must have a distribution of as many, got one of "
                f"{dist.n_labels}."
            )
        checked.append((places.astype(np.intp), dist))
    if not checked:
        raise InputError("`blocks` must hold at least one block, got none.")
    every = np.sort(np.concatenate([places for places, _ in checked]))
    if not np.array_equal(every, np.arange(len(every))):
        raise InputError(
            "Every label must be in one block, from 0 to the last, got the labels "
            f"{every.tolist()[:20]}."
        )
    lengths = {len(dist) for _, dist in checked}
    if len(lengths) > 1:
        raise InputError(f"All blocks must have the same instances, got {sorted(lengths)}.")
    return checked


def _join_names(
    blocks: list[tuple[Indices, LabelsetDistribution]], n_labels: int
) -> list[str] | None:
    """Return the names that the blocks were given for their labels; None unless all were."""
    names = [""] * n_labels
    for labels, dist in blocks:
        given = given_names(dist.label_names)
        if given is None:
            return None
        for place, name in zip(labels.tolist(), given, strict=True):
            names[place] = name
    return names


def _join_profiles(profiles: list[Profile]) -> Profile:
    """Return the profile of independent blocks: logs of probabilities add, and so do entropies."""
    joined = _add_fields(profiles)
    if all(profile.bounds is None for profile in profiles):
        bounds = None
    else:
        bounds = (_add_fields([p.low for p in profiles]), _add_fields([p.high for p in profiles]))
    relative = [profile.collision_error / profile.collision for profile in profiles]
    return Profile(
        joined.log_top,
        joined.log_runner_up,
        joined.entropy,
        joined.log_collision,
        joined.n_labels,
        reduce(lambda a, b: np.where(a == "exact", b, a), [p.method for p in profiles]),
        bounds,
        np.sqrt(sum(profile.entropy_error**2 for profile in profiles)),
        np.sqrt(sum(error**2 for error in relative)) * joined.collision,
    )


def _add_fields(profiles: list[Profile]) -> Profile:
    tops = np.stack([profile.log_top for profile in profiles])
    # One block has its second best, all others their best.
    runners_up = [tops.sum(axis=0) - p.log_top + p.log_runner_up for p in profiles]
    return Profile(
        tops.sum(axis=0),
        np.max(runners_up, axis=0),
        np.sum([profile.entropy for profile in profiles], axis=0),
        np.sum([profile.log_collision for profile in profiles], axis=0),
        sum(profile.n_labels for profile in profiles),
    )


def _pair_ranks(n_first: int, n_second: int, k: int) -> tuple[Indices, Indices]:
    """Return the pairs of ranks that may be among the k best.

    Before the pair (i, j) come all (i', j') with i' <= i and j' <= j, (i + 1)(j + 1) of them.
    """
    first, second = np.indices((n_first, n_second)).reshape(2, -1)
    possible = (first + 1) * (second + 1) <= k
    return first[possible], second[possible]


def _size_probabilities(dist: LabelsetDistribution, by_size: Floats) -> Floats:
    """Return P(|y| = s), (n, L + 1): each labelset of s labels is in `by_size` s times."""
    empty = np.exp(dist._log_prob(np.zeros((len(dist), dist.n_labels), dtype=np.int8)))
    counted = by_size.sum(axis=1) / np.arange(1, dist.n_labels + 1)
    return np.column_stack([empty, counted])


def _convolve(first: Floats, second: Floats) -> Floats:
    """Return the probabilities of sums of two independent numbers, row by row."""
    total = np.zeros((len(first), first.shape[1] + second.shape[1] - 1))
    for i in range(second.shape[1]):
        total[:, i : i + first.shape[1]] += first * second[:, i : i + 1]
    return total
