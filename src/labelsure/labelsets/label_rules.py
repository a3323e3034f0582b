"""Rules among labels, by position: implied parents, groups of exclusive labels, valid labelsets.

A *family* is a group of exclusive labels under the same parents, or one label outside all groups.
Rules are a forest or an acyclic graph of families unless a label is in two groups or the members of
a group have different parents; then only the list of all valid labelsets serves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from graphlib import TopologicalSorter
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array, eye_array

from labelsure._runtime.typing import Indices, LabelNames, Labelsets, Mask
from labelsure.errors import InputError
from labelsure.labelsets.label_names import show_names
from labelsure.labelsets.sparse import is_sparse, make_sparse

if TYPE_CHECKING:
    import pandas as pd

MAX_PARTIAL = 16
"""Limit of partial labelsets in an enumeration, as a multiple of the limit of valid labelsets."""

N_SHOWN = 5
"""Rows that a message lists."""


class Group(NamedTuple):
    """Labels of which at most one is true.

    A required group has exactly one true label in each labelset that has the common parents of its
    members: in every labelset if there are none.
    """

    members: tuple[int, ...]
    required: bool = False


@dataclass(frozen=True)
class LabelRules:
    """Rules among L labels.

    Parameters
    ----------
    parents
        For each label the labels that it implies directly; without cycles.
    groups
        Labels that exclude each other.
    label_names
        Names of the labels in messages.
    """

    parents: tuple[tuple[int, ...], ...]
    groups: tuple[Group, ...] = ()
    label_names: LabelNames = None

    @classmethod
    def reduced(
        cls,
        parents: Sequence[Iterable[int]],
        groups: Iterable[Group] = (),
        label_names: LabelNames = None,
    ) -> LabelRules:
        """Rules without the parents that other parents imply. Raises graphlib.CycleError."""
        direct = [set(labels) for labels in parents]
        above: dict[int, set[int]] = {}
        for j in TopologicalSorter(dict(enumerate(direct))).static_order():
            above[j] = direct[j].union(*(above[p] for p in direct[j]))
        needed = (labels - set().union(*(above[p] for p in labels)) for labels in direct)
        return cls(tuple(tuple(sorted(labels)) for labels in needed), tuple(groups), label_names)

    @property
    def n_labels(self) -> int:
        """The number of labels, L."""
        return len(self.parents)

    @property
    def has_dependent_choice(self) -> bool:
        """Whether a label of an exactly-one group has parents or is in another group."""
        n_groups = Counter(chain.from_iterable(group.members for group in self.groups))
        required = chain.from_iterable(group.members for group in self.groups if group.required)
        return any(self.parents[j] or n_groups[j] > 1 for j in required)

    @cached_property
    def families(self) -> list[Group] | None:
        """All families, parents first, members with few labels below them first.

        None where groups overlap or their members have different parents.
        """
        grouped = list(chain.from_iterable(group.members for group in self.groups))
        if len(set(grouped)) < len(grouped):
            return None
        if any(len({self.parents[j] for j in group.members}) > 1 for group in self.groups):
            return None
        alone = (Group((j,)) for j in set(range(self.n_labels)) - set(grouped))
        families = [
            Group(tuple(sorted(members, key=lambda j: (self.n_below[j], j))), required)
            for members, required in sorted(chain(self.groups, alone))
        ]
        owner = {j: i for i, family in enumerate(families) for j in family.members}
        graph = {i: {owner[p] for p in self.parents_of(g)} for i, g in enumerate(families)}
        return [families[i] for i in TopologicalSorter(graph).static_order()]

    def parents_of(self, group: Group) -> list[int]:
        """Parents that all members of a group share; none where they have different ones."""
        first, *others = {self.parents[j] for j in group.members}
        return [] if others else list(first)

    @cached_property
    def order(self) -> list[int]:
        """All labels, parents before their children."""
        if self.families is None:
            return list(TopologicalSorter(dict(enumerate(self.parents))).static_order())
        return [j for family in self.families for j in family.members]

    @cached_property
    def _edges(self) -> tuple[Indices, Indices]:
        """Labels that have parents and these parents, side by side."""
        pairs = [(j, parent) for j, parents in enumerate(self.parents) for parent in parents]
        children, parents = np.array(pairs, dtype=np.intp).reshape(-1, 2).T
        return children, parents

    @cached_property
    def implied(self) -> csr_array:
        """(L, L) ones in row j for label j and all its ancestors."""
        shape = (self.n_labels, self.n_labels)
        direct = csr_array((np.ones(len(self._edges[0]), dtype=np.int32), self._edges), shape=shape)
        closure = direct + eye_array(self.n_labels, dtype=np.int32, format="csr")
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
    def excluded(self) -> Mask:
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

    def breaches(self, Y: Labelsets) -> Iterator[tuple[str, Mask]]:
        """Broken rules in words, and whether a labelset breaks each, (n,)."""
        columns = csc_array(Y, dtype=np.int32)
        children, parents = self._edges
        lacking = csc_array(columns[:, children] > columns[:, parents])
        for edge in np.flatnonzero(lacking.count_nonzero(axis=0)):
            child, parent = self._quote([children[edge], parents[edge]])
            yield f"{child} needs {parent}", lacking[:, [edge]].toarray().ravel()
        for group in self.groups:
            names, common = ", ".join(self._quote(group.members)), self.parents_of(group)
            n_true = np.asarray(columns[:, list(group.members)].sum(axis=1))
            yield f"at most one of {names} is true", n_true > 1
            if group.required:
                is_open = np.asarray(columns[:, common].sum(axis=1)) == len(common)
                yield f"one of {names} is true", is_open & (n_true == 0)

    def _quote(self, labels: Sequence[int]) -> list[str]:
        return [repr(name) for name in show_names(self.label_names, labels)]

    def is_valid(self, Y: Labelsets) -> Mask:
        """Whether a labelset breaks no rule, (n,)."""
        valid = np.ones(Y.shape[0], dtype=bool)
        for _, broken in self.breaches(Y):
            valid &= ~broken
        return valid

    def refuse_broken(self, Y: Labelsets, name: str, index: pd.Index | None = None) -> None:
        """Raise InputError for true labelsets that break a rule, with the first rows."""
        broken = np.flatnonzero(~self.is_valid(Y))
        if not broken.size:
            return
        first = broken[:N_SHOWN]
        rule = next(rule for rule, is_broken in self.breaches(Y[first]) if is_broken.any())
        shown = first if index is None else index[first]
        fix = "Correct the labels or the rules."
        if any(group.required for group in self.groups):
            fix += " If a group may have no true label, use `exclusive` for `exactly_one`."
        if self.is_valid(self.close(Y)).all():
            fix = "Add the ancestors by `LabelConstraints.close`."
        raise InputError(
            f"`{name}` must obey the label constraints, got {broken.size:,} of {Y.shape[0]:,} rows "
            f"that break them, first {', '.join(map(str, shown))}: {rule}. {fix}"
        )

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
                    is_open = rows[:, self.parents_of(group)].all(axis=1)
                    rows = rows[~is_open | rows[:, group.members].any(axis=1)]
            if len(rows) > MAX_PARTIAL * most:
                return None
        return rows[np.lexsort(rows.T)] if len(rows) <= most else None
