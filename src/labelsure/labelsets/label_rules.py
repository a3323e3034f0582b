"""Rules among labels, by position: implied parents, groups of exclusive labels, valid labelsets.

A *family* is a group of exclusive labels under the same parents, or one label outside all groups.
Rules are a forest or an acyclic graph of families unless a label is in two groups or the members of
a group have different parents; then only the list of all valid labelsets serves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from graphlib import TopologicalSorter
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array, eye_array

from labelsure._runtime.typing import Labelsets, Mask
from labelsure.labelsets.sparse import is_sparse, make_sparse

MAX_PARTIAL = 16
"""Limit of partial labelsets in an enumeration, as a multiple of the limit of valid labelsets."""


class Group(NamedTuple):
    """Labels of which at most one is true.

    A required group has exactly one true label in each labelset that has the common parents of its
    members: in every labelset if there are none.
    """

    members: tuple[int, ...]
    required: bool


class Family(NamedTuple):
    """Labels with the same parents of which at most one is true, or exactly one if required."""

    members: tuple[int, ...]
    parents: tuple[int, ...]
    required: bool


class Breach(NamedTuple):
    """A broken rule: a label without its parent, or a group with too many or no true labels."""

    rows: Mask
    labels: tuple[int, ...]
    kind: str


@dataclass(frozen=True)
class LabelRules:
    """Rules among L labels.

    Parameters
    ----------
    parents
        For each label the labels that it implies directly; without cycles.
    groups
        Labels that exclude each other.
    """

    parents: tuple[tuple[int, ...], ...]
    groups: tuple[Group, ...] = ()

    @classmethod
    def reduced(cls, parents: Sequence[Iterable[int]], groups: Iterable[Group] = ()) -> LabelRules:
        """Rules without the parents that other parents imply. Raises graphlib.CycleError."""
        direct = [set(some) for some in parents]
        above: dict[int, set[int]] = {}
        for j in TopologicalSorter(dict(enumerate(direct))).static_order():
            above[j] = direct[j].union(*(above[p] for p in direct[j]))
        needed = (some - set().union(*(above[p] for p in some)) for some in direct)
        return cls(tuple(tuple(sorted(some)) for some in needed), tuple(groups))

    @property
    def n_labels(self) -> int:
        """The number of labels, L."""
        return len(self.parents)

    @property
    def edges(self) -> list[tuple[int, int]]:
        """Pairs of a label and one of its parents."""
        return [(j, parent) for j, parents in enumerate(self.parents) for parent in parents]

    @property
    def has_nested_choice(self) -> bool:
        """Whether exactly one label of a group below parents must be true."""
        return any(group.required and self.parents[group.members[0]] for group in self.groups)

    @cached_property
    def families(self) -> list[Family] | None:
        """All families, parents first, members with few labels below them first.

        None where groups overlap or their members have different parents.
        """
        grouped = list(chain.from_iterable(group.members for group in self.groups))
        if len(set(grouped)) < len(grouped):
            return None
        if any(len({self.parents[j] for j in group.members}) > 1 for group in self.groups):
            return None
        free = (Group((j,), False) for j in set(range(self.n_labels)) - set(grouped))
        families = [
            Family(
                tuple(sorted(members, key=lambda j: (self.n_below[j], j))),
                self.parents[members[0]],
                required,
            )
            for members, required in sorted(chain(self.groups, free))
        ]
        owner = {j: i for i, family in enumerate(families) for j in family.members}
        graph = {i: {owner[p] for p in family.parents} for i, family in enumerate(families)}
        return [families[i] for i in TopologicalSorter(graph).static_order()]

    @cached_property
    def order(self) -> list[int]:
        """All labels, parents before their children."""
        if self.families is None:
            return list(TopologicalSorter(dict(enumerate(self.parents))).static_order())
        return [j for family in self.families for j in family.members]

    @cached_property
    def implied(self) -> csr_array:
        """(L, L) ones in row j for label j and all its ancestors."""
        children, parents = np.array(self.edges, dtype=np.intp).reshape(-1, 2).T
        closure = csr_array(
            (np.ones(len(parents), dtype=np.int32), (children, parents)),
            shape=(self.n_labels, self.n_labels),
        ) + eye_array(self.n_labels, dtype=np.int32, format="csr")
        while True:
            longer = ((closure @ closure) > 0).astype(np.int32)
            if longer.nnz == closure.nnz:
                return csr_array(longer)
            closure = longer

    @cached_property
    def n_below(self) -> NDArray[np.intp]:
        """(L,) labels that imply a label, itself included."""
        return np.bincount(self.implied.indices, minlength=self.n_labels)

    @cached_property
    def excluded(self) -> NDArray[np.bool_]:
        """(L, L) whether two labels exclude each other, by themselves or by their ancestors."""
        direct = np.zeros((self.n_labels, self.n_labels), dtype=np.int32)
        for group in self.groups:
            direct[np.ix_(group.members, group.members)] = 1
        np.fill_diagonal(direct, 0)
        return np.asarray((self.implied @ csr_array(direct) @ self.implied.T).toarray() > 0)

    def close(self, Y: Labelsets) -> Labelsets:
        """Labelsets with all ancestors of their labels added."""
        closed = ((csr_array(Y, dtype=np.int32) @ self.implied) > 0).astype(np.int8)
        return make_sparse(closed) if is_sparse(Y) else closed.toarray()

    def breaches(self, Y: Labelsets) -> Iterator[Breach]:
        """Yield the rules that some labelsets break, and the rows that break them."""
        columns = csc_array(Y, dtype=np.int32)
        children, parents = np.array(self.edges, dtype=np.intp).reshape(-1, 2).T
        broken = csc_array(columns[:, children] > columns[:, parents])
        for edge in np.flatnonzero(broken.count_nonzero(axis=0)).tolist():
            yield Breach(broken[:, [edge]].toarray().ravel(), self.edges[edge], "parent")
        for group in self.groups:
            n_true = np.asarray(columns[:, list(group.members)].sum(axis=1))
            yield Breach(n_true > 1, group.members, "exclusive")
            if group.required:
                lacking = (n_true == 0) & self._is_open(columns, group)
                yield Breach(lacking, group.members, "required")

    def is_valid(self, Y: Labelsets) -> Mask:
        """Whether a labelset breaks no rule, (n,)."""
        rows = csr_array(Y, dtype=np.int32)
        valid = (rows @ self.implied).count_nonzero(axis=1) == rows.sum(axis=1)
        for group in self.groups:
            n_true = np.asarray(rows[:, list(group.members)].sum(axis=1))
            needs_one = group.required & self._is_open(rows, group)
            valid &= (n_true == 1) | ((n_true == 0) & ~needs_one)
        return np.asarray(valid)

    def _is_open(self, Y: Labelsets, group: Group) -> Mask:
        """Whether a labelset has the common parents of a group, (n,)."""
        parents = list(self._common_parents(group))
        return np.asarray(Y[:, parents].sum(axis=1)) == len(parents)

    def valid_labelsets(self, most: int) -> Labelsets | None:
        """All valid labelsets, (V, L), in the order of their codes; None where V > most."""
        rank = {j: place for place, j in enumerate(self.order)}
        rows = np.zeros((1, self.n_labels), dtype=np.int8)
        for j in self.order:
            groups = [group for group in self.groups if j in group.members]
            allowed = rows[:, self.parents[j]].all(axis=1)
            for group in groups:
                allowed &= ~rows[:, group.members].any(axis=1)
            with_label = rows[allowed]
            with_label[:, j] = 1
            rows = np.concatenate([rows, with_label])
            for group in groups:
                if group.required and rank[j] == max(rank[member] for member in group.members):
                    is_open = rows[:, self._common_parents(group)].all(axis=1)
                    rows = rows[~is_open | rows[:, group.members].any(axis=1)]
            if len(rows) > MAX_PARTIAL * most:
                return None
        return rows[np.lexsort(rows.T)] if len(rows) <= most else None

    def _common_parents(self, group: Group) -> tuple[int, ...]:
        """Parents that all members of a group share; none where they have different ones."""
        all_parents = {self.parents[j] for j in group.members}
        return next(iter(all_parents)) if len(all_parents) == 1 else ()
