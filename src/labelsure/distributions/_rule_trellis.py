"""Trellises over the valid labelsets of rules that form families, for any number of labels.

Independent labels with log-odds z, restricted to the valid labelsets of a forest, are a directed
model. The *effective odds* of a label are r_c = exp(z_c) times a factor for each family below it:
1 + the sum of the family's effective odds, or the sum alone where one member is required. Where all
parents of a family are true, each member is true with probability r_c / factor, the parent's share
of the factor being all of it. With several parents each gets an equal share; the model is then a
joint over valid labelsets of the same form, not the independent one restricted to them.

In the trellis a label depends on one bit: whether it may be true. Auxiliary positions compute these
bits ("all parents are true", "and no member so far") and carry bits that are needed later than the
trellis remembers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from labelsure._runtime import limits as _limits
from labelsure._runtime.typing import Floats, Indices, Labelsets
from labelsure.distributions._trellis import TrellisDistribution
from labelsure.errors import TooLargeError
from labelsure.labelsets.label_rules import Group, LabelRules

COPY, NOT = (0.0, 1.0), (1.0, 0.0)
AND, AND_NOT = (0.0, 0.0, 0.0, 1.0), (0.0, 1.0, 0.0, 0.0)
"""Values of an auxiliary position for each state of its sources, the first source lowest."""


class Step(NamedTuple):
    """A bit: a label that is true only where its source is, or a function of its sources."""

    label: int
    sources: tuple[int, ...]
    table: tuple[float, ...] = ()


def list_steps(rules: LabelRules, families: Sequence[Group]) -> list[Step]:
    """Bits of all labels and of the bits they depend on, depth first, small subtrees first.

    A bit is referred to by its place in the list. Few bits are then needed later at any time: those
    of ancestors that have larger subtrees to come.
    """
    steps: list[Step] = []
    bit_of: dict[int, int] = {}

    def add(label: int, sources: tuple[int, ...], table: tuple[float, ...] = ()) -> int:
        steps.append(Step(label, sources, table))
        return len(steps) - 1

    def add_gate(family: Group) -> int | None:
        gate: int | None = None
        for parent in rules.parents_of(family):
            gate = bit_of[parent] if gate is None else add(-1, (gate, bit_of[parent]), AND)
        return gate

    def size(family: Group) -> int:
        return int(rules.n_below[list(family.members)].sum())

    below: dict[int, list[Group]] = {}
    for family in sorted(families, key=size, reverse=True):
        for parent in rules.parents_of(family) or (-1,):
            below.setdefault(parent, []).append(family)
    waiting: list[tuple[Group, int, int | None]] = [(family, 0, None) for family in below[-1]]
    while waiting:  # the last one first
        family, n_done, gate = waiting.pop()
        label = family.members[n_done]
        bit = bit_of[label] = add(label, () if gate is None else (gate,))
        if n_done + 1 < len(family.members):
            next_gate = add(-1, (bit,), NOT) if gate is None else add(-1, (gate, bit), AND_NOT)
            waiting.append((family, n_done + 1, next_gate))
        ready = (
            family
            for family in below.get(label, ())
            if all(parent in bit_of for parent in rules.parents_of(family))
        )
        waiting.extend((child, 0, add_gate(child)) for child in ready)
    return steps


@dataclass(frozen=True)
class Positions:
    """Layout of a trellis: labels, -1 for auxiliary positions, parents and auxiliary values."""

    order: Indices
    parents: list[list[int]]
    tables: list[tuple[float, ...]]
    memory: int

    def conditionals(self, q: Floats) -> Floats:
        """(n, P, columns) conditionals for (n, L) probabilities of labels that may be true."""
        packed = np.zeros((len(q), len(self.order), 2 ** max(map(len, self.parents))))
        for j, (label, parents, table) in enumerate(
            zip(self.order.tolist(), self.parents, self.tables, strict=True)
        ):
            if label < 0:
                packed[:, j, : len(table)] = table
            else:
                packed[:, j, len(parents)] = q[:, label]
        return packed


def arrange(steps: Sequence[Step], memory: int) -> Positions | None:
    """Positions of all bits in a trellis that remembers `memory` positions; None if too few.

    Each position shows one bit, so that at most one bit a position leaves the memory; it is copied
    if it is needed later.
    """
    last_use = {bit: i for i, step in enumerate(steps) for bit in step.sources}
    bits: list[int] = []
    place: dict[int, int] = {}
    order: list[int] = []
    parents: list[list[int]] = []
    tables: list[tuple[float, ...]] = []

    def show(bit: int, label: int, sources: Sequence[int], table: tuple[float, ...]) -> None:
        parents.append([place[source] for source in sources])
        order.append(label)
        tables.append(table)
        bits.append(bit)
        place[bit] = len(bits) - 1

    for i, step in enumerate(steps):
        n_copies = 0
        while len(bits) >= memory:
            leaving = bits[len(bits) - memory]
            if place[leaving] != len(bits) - memory or last_use.get(leaving, -1) <= i:
                break
            show(leaving, -1, (leaving,), COPY)
            n_copies += 1
            if n_copies > memory:
                return None
        if any(len(bits) - place[source] > memory for source in step.sources):
            return None
        show(i, step.label, step.sources, step.table)
    return Positions(np.array(order), parents, tables, memory)


@lru_cache(maxsize=16)
def plan_positions(rules: LabelRules) -> Positions:
    """Layout with the shortest memory. Raises TooLargeError where none fits.

    It costs least: one bit more doubles the states, and saves less than half of the positions.
    """
    assert rules.families is not None
    steps, memory = list_steps(rules, rules.families), 1
    while 9 * len(steps) * 2**memory <= _limits.FRONTIER_BYTES:
        if (layout := arrange(steps, memory)) is not None:
            return layout
        memory += 1
    raise TooLargeError(
        f"Rules among {rules.n_labels} labels must leave few labels open at a time, got more than "
        f"{memory - 1} in any order. Drop labels with several parents, or rules between distant "
        "parts of the taxonomy."
    )


@dataclass(frozen=True, eq=False)
class EffectiveOdds:
    """Log of the effective odds of each label, (n, L), and of each family's factor, (n, families).

    Parameters
    ----------
    families
        Exclusive labels and their parents, parents first.
    log_odds, log_factors
        See the formulas of this module.
    """

    families: list[tuple[Group, list[int]]]
    log_odds: Floats
    log_factors: Floats

    @classmethod
    def of(cls, rules: LabelRules, logits: Floats) -> EffectiveOdds:
        """Effective odds of independent labels with these logits, children first."""
        assert rules.families is not None
        families = [(family, rules.parents_of(family)) for family in rules.families]
        log_odds = logits.copy()
        log_factors = np.empty((len(logits), len(families)))
        for i, (family, parents) in reversed(list(enumerate(families))):
            factor = np.logaddexp.reduce(log_odds[:, family.members], axis=1)
            log_factors[:, i] = factor if family.required else np.logaddexp(0.0, factor)
            for parent in parents:
                log_odds[:, parent] += log_factors[:, i] / len(parents)
        return cls(families, log_odds, log_factors)

    def conditionals(self) -> Floats:
        """P(label = 1 | its parents are true and no member before it is), (n, L)."""
        q = np.empty(self.log_odds.shape)
        for (members, required), _ in self.families:
            log_total = np.zeros(len(q)) if not required else np.full(len(q), -np.inf)
            for j in reversed(members):
                log_total = np.logaddexp(log_total, self.log_odds[:, j])
                q[:, j] = np.exp(self.log_odds[:, j] - log_total)
        return q

    def log_prob(self, Y: Labelsets) -> Floats:
        """Log-probability of valid labelsets, (n,)."""
        total = np.zeros(len(Y))
        for i, ((members, _), parents) in enumerate(self.families):
            is_open = Y[:, parents].all(axis=1)
            taken = (Y[:, members] * self.log_odds[:, members]).sum(axis=1)
            total += is_open * (taken - self.log_factors[:, i])
        return total

    def gradient(self, Y: Labelsets) -> Floats:
        """Gradient of `log_prob` with respect to the logits, (n, L), parents first."""
        gradient = np.empty(self.log_odds.shape)
        for i, ((members, _), parents) in enumerate(self.families):
            shares = np.exp(self.log_odds[:, members] - self.log_factors[:, i, np.newaxis])
            is_open = Y[:, parents].all(axis=1, keepdims=True)
            passed = gradient[:, parents].sum(axis=1, keepdims=True) / max(1, len(parents))
            gradient[:, members] = is_open * (Y[:, members] - shares) + shares * passed
        return gradient


def make_rule_trellis(rules: LabelRules, logits: Floats) -> TrellisDistribution:
    """Trellis over the valid labelsets of rules that form families."""
    layout = plan_positions(rules)
    q = EffectiveOdds.of(rules, logits).conditionals()
    return TrellisDistribution.with_auxiliary(
        layout.conditionals(q), layout.parents, layout.order, rules.n_labels
    )
