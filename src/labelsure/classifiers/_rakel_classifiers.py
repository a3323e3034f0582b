"""`RakelD` and `RakelO`: powersets of small blocks of labels, disjoint or overlapping.

After Tsoumakas, Katakis and Vlahavas, "Random k-labelsets for multilabel classification" (2011).
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from sklearn.utils.parallel import Parallel, delayed

from labelsure._kernels.threads import one_blas_thread
from labelsure._processes import count_workers
from labelsure._typing import Floats, Indices, Labelsets
from labelsure.classifiers._base_learners import MAX_SEED, Features
from labelsure.classifiers._powerset_classifier import LabelPowerset, check_share
from labelsure.classifiers._predictor import LabelsetClassifier
from labelsure.distributions import BlockProduct, IndependentLabels, make_random_state
from labelsure.errors import InputError, unknown_name
from labelsure.saving import expect

VOTES = ("soft", "hard")
PARTITIONS = ("random", "dependence")
BLOCKS_PER_LABEL = 2  # of overlapping blocks, as its authors use


class _Rakel(LabelsetClassifier):
    """What both share: a powerset for each block of labels."""

    block_size: int
    share: float | None
    n_jobs: int | None
    random_state: Any
    blocks_: list[list[int]]
    classifiers_: list[LabelPowerset]

    @abstractmethod
    def _choose_blocks(self, Y: Labelsets, generator: np.random.RandomState) -> list[list[int]]:
        """Return the places of the labels of each block, in rising order."""

    def _fit_clones(
        self, learner: Any, X: Features, Y: Labelsets, sample_weight: Floats | None
    ) -> None:
        check_share(self.share)
        generator = make_random_state(self.random_state)
        self.blocks_ = self._choose_blocks(Y, generator)
        seeds = generator.randint(MAX_SEED, size=len(self.blocks_)).tolist()
        with one_blas_thread():
            self.classifiers_ = Parallel(n_jobs=count_workers(self.n_jobs, len(seeds)))(
                delayed(_fit_block)(self, learner, X, Y[:, labels], labels, sample_weight, seed)
                for labels, seed in zip(self.blocks_, seeds, strict=True)
            )

    def _check_loaded(self) -> None:
        super()._check_loaded()
        n_labels = self.n_labels_
        known = all(
            isinstance(labels, list) and all(label in range(n_labels) for label in labels)
            for labels in self.blocks_
        )
        expect(known and len(self.blocks_) > 0, "`blocks_` must be lists of places of labels")
        expect(
            len(self.classifiers_) == len(self.blocks_)
            and all(
                isinstance(each, LabelPowerset) and each.n_labels_ == len(labels)
                for each, labels in zip(self.classifiers_, self.blocks_, strict=False)
            ),
            "`classifiers_` must hold a powerset for each block, of as many labels",
        )


class RakelD(_Rakel):
    """Disjoint blocks of labels: a powerset of each, independent of the others.

    Parameters
    ----------
    estimator
        Multi-class learner with `predict_proba`; None means logistic regression.
    block_size
        How many labels a block has; the last may have fewer.
    partition
        "random"; "dependence", which puts labels together that are correlated in training; or the
        blocks themselves, lists of places of labels that hold each label once.
    share
        As of `LabelPowerset`, for each block.
    n_jobs
        How many blocks are fitted at a time, as in joblib.
    random_state
        For random blocks, for folds, and for learners that are random and have no seed.

    Attributes
    ----------
    blocks_
        The places of the labels of each block.
    classifiers_
        The fitted `LabelPowerset` of each.
    classes_, label_names_, n_features_in_, feature_names_in_
        As in `BinaryRelevance`.

    Examples
    --------
    >>> X = [[0.0], [1.0], [2.0], [3.0]]
    >>> Y = [[0, 1, 0], [0, 1, 0], [1, 1, 1], [1, 0, 1]]
    >>> model = RakelD(block_size=2, partition="dependence", share=0.01).fit(X, Y)
    >>> model.blocks_
    [[0, 2], [1]]
    >>> model.predict_distribution(X)
    BlockProduct(n_samples=4, n_labels=3)
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        block_size: int = 3,
        partition: Any = "random",
        share: float | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.block_size = block_size
        self.partition = partition
        self.share = share
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _choose_blocks(self, Y: Labelsets, generator: np.random.RandomState) -> list[list[int]]:
        n_labels = Y.shape[1]
        if not isinstance(self.partition, str):
            blocks = _read_blocks(self.partition, n_labels, "partition")
            if sum(map(len, blocks)) != n_labels:
                raise InputError(
                    f"`partition` must hold each of the {n_labels} labels once, it holds "
                    f"{sum(map(len, blocks))} places. Use `RakelO` for blocks that overlap."
                )
            return blocks
        if self.partition not in PARTITIONS:
            raise unknown_name("partition", self.partition, PARTITIONS)
        size = _check_size(self.block_size)
        if self.partition == "dependence":
            return group_by_dependence(Y, size)
        return _cut_at_random(n_labels, size, generator)

    def distribution_of_checked(self, X: Features) -> BlockProduct:
        """Return P(Y|x) of each row of features that are checked already."""
        parts = [classifier.distribution_of_checked(X) for classifier in self.classifiers_]
        return BlockProduct(zip(self.blocks_, parts, strict=True), self.label_names_)


class RakelO(_Rakel):
    """Overlapping blocks of labels: each label is voted for by the powersets that hold it.

    Votes tell how likely each label is, not which occur together: the distribution has independent
    labels.

    Parameters
    ----------
    estimator
        Multi-class learner with `predict_proba`; None means logistic regression.
    block_size
        How many labels a block has.
    n_blocks
        How many blocks; None means twice as many as there are labels.
    blocks
        The blocks themselves, lists of places of labels, instead of random ones.
    voting
        "soft", the mean of the probabilities of a label; or "hard", the share of the blocks whose
        most probable labelset has it, as its authors do.
    share
        As of `LabelPowerset`, for each block.
    n_jobs
        How many blocks are fitted at a time, as in joblib.
    random_state
        For random blocks, for folds, and for learners that are random and have no seed.

    Attributes
    ----------
    blocks_
        The places of the labels of each block.
    classifiers_
        The fitted `LabelPowerset` of each.
    classes_, label_names_, n_features_in_, feature_names_in_
        As in `BinaryRelevance`.

    Examples
    --------
    >>> X = [[0.0], [1.0], [2.0], [3.0]]
    >>> Y = [[0, 1, 0], [0, 1, 0], [1, 1, 1], [1, 0, 1]]
    >>> model = RakelO(block_size=2, share=0.01, random_state=0).fit(X, Y)
    >>> len(model.blocks_), model.predict([[0.0], [3.0]]).tolist()
    (6, [[0, 1, 0], [1, 0, 1]])
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        block_size: int = 3,
        n_blocks: int | None = None,
        blocks: Any = None,
        voting: str = "soft",
        share: float | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.block_size = block_size
        self.n_blocks = n_blocks
        self.blocks = blocks
        self.voting = voting
        self.share = share
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _choose_blocks(self, Y: Labelsets, generator: np.random.RandomState) -> list[list[int]]:
        n_labels = Y.shape[1]
        if self.voting not in VOTES:
            raise unknown_name("voting", self.voting, VOTES)
        if self.blocks is not None:
            blocks = _read_blocks(self.blocks, n_labels, "blocks")
            missing = sorted(set(range(n_labels)) - {label for some in blocks for label in some})
            if missing:
                raise InputError(
                    f"`blocks` must hold every label, the labels {missing} are missing."
                )
            return blocks
        size = _check_size(self.block_size)
        n_blocks = BLOCKS_PER_LABEL * n_labels if self.n_blocks is None else self.n_blocks
        least = -(-n_labels // size)
        if isinstance(n_blocks, bool) or not isinstance(n_blocks, int) or n_blocks < least:
            raise InputError(
                f"`n_blocks` must be a whole number, at least {least} so that {n_labels} labels in "
                f"blocks of {size} are all in one, got {n_blocks!r}."
            )
        return _draw_overlapping(n_labels, size, n_blocks, generator)

    def distribution_of_checked(self, X: Features) -> IndependentLabels:
        """Return P(Y|x) of each row of features that are checked already."""
        votes = np.zeros((X.shape[0], self.n_labels_))
        n_votes = np.zeros(self.n_labels_)
        for labels, classifier in zip(self.blocks_, self.classifiers_, strict=True):
            dist = classifier.distribution_of_checked(X)
            votes[:, labels] += dist.marginals() if self.voting == "soft" else dist.mode()
            n_votes[labels] += 1
        if self.voting == "hard":  # as if there was one vote more, by a coin
            votes, n_votes = votes + 0.5, n_votes + 1
        return IndependentLabels(votes / n_votes, self.label_names_)


def _fit_block(
    owner: _Rakel,
    learner: Any,
    X: Features,
    Y: Labelsets,
    labels: list[int],
    sample_weight: Floats | None,
    seed: int,
) -> LabelPowerset:
    known = owner.label_names_
    names = None if known is None else [known[label] for label in labels]
    powerset = LabelPowerset(learner, share=owner.share, random_state=seed)
    return powerset.fit_checked(X, Y, names, sample_weight)


def _check_size(block_size: Any) -> int:
    if isinstance(block_size, bool) or not isinstance(block_size, int | np.integer):
        raise InputError(f"`block_size` must be a whole number >= 1, got {block_size!r}.")
    if block_size < 1:
        raise InputError(f"`block_size` must be a whole number >= 1, got {block_size!r}.")
    return int(block_size)


def _read_blocks(blocks: Any, n_labels: int, name: str) -> list[list[int]]:
    """Return given blocks with their labels in rising order."""
    try:
        read = [sorted(int(label) for label in labels) for labels in blocks]
    except (TypeError, ValueError) as error:
        raise InputError(
            f"`{name}` must be lists of places of labels, e.g. [[0, 2], [1]], got {blocks!r}."
        ) from error
    wrong = [
        some
        for some in read
        if not some or len(set(some)) < len(some) or some[0] < 0 or some[-1] >= n_labels
    ]
    if wrong or not read:
        raise InputError(
            f"`{name}` must be lists of different places from 0 to {n_labels - 1}, got "
            f"{wrong[0] if wrong else read}."
        )
    return read


def _cut_at_random(n_labels: int, size: int, generator: np.random.RandomState) -> list[list[int]]:
    order = generator.permutation(n_labels).tolist()
    return [sorted(order[first : first + size]) for first in range(0, n_labels, size)]


def _draw_overlapping(
    n_labels: int, size: int, n_blocks: int, generator: np.random.RandomState
) -> list[list[int]]:
    """Return blocks in which all labels occur about equally often: random orders, cut into blocks.

    Where an order does not divide evenly its last block is filled up with other labels.
    """
    blocks: list[list[int]] = []
    while len(blocks) < n_blocks:
        for block in _cut_at_random(n_labels, size, generator):
            others = [label for label in range(n_labels) if label not in block]
            n_missing = min(size, n_labels) - len(block)
            added = generator.choice(others, n_missing, replace=False).tolist() if n_missing else []
            blocks.append(sorted([*block, *added]))
    return blocks[:n_blocks]


def group_by_dependence(Y: Labelsets, size: int) -> list[list[int]]:
    """Return blocks of labels that go together, the strongest pair of those left first.

    A block begins with the two labels of largest absolute correlation and takes in the label with
    the largest sum of these, until it is full.

    Parameters
    ----------
    Y
        (n, L) labelsets.
    size
        Of a block; the last may be smaller.

    Examples
    --------
    >>> Y = np.array([[0, 0, 0], [1, 0, 1], [0, 1, 0], [1, 1, 1]])
    >>> group_by_dependence(Y, 2)
    [[0, 2], [1]]
    """
    strength = _correlations(Y)
    left = list(range(Y.shape[1]))
    blocks = []
    while left:
        among = strength[np.ix_(left, left)]
        chosen = [left[int(among.max(axis=1).argmax())]]
        left.remove(chosen[0])
        while left and len(chosen) < size:
            gains: Indices | Floats = strength[np.ix_(left, chosen)].sum(axis=1)
            chosen.append(left.pop(int(gains.argmax())))
        blocks.append(sorted(chosen))
    return blocks


def _correlations(Y: Labelsets) -> Floats:
    """Return absolute correlations of labels, 0 for a constant one and of a label with itself."""
    centred = Y - Y.mean(axis=0)
    spread = np.sqrt((centred**2).sum(axis=0))
    scaled = centred / np.where(spread > 0, spread, 1.0)
    strength = np.abs(scaled.T @ scaled)
    np.fill_diagonal(strength, 0.0)
    return strength
